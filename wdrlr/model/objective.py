"""The objective at given coefficients: the worst-case loss, by Algorithm 2, and how far rounding can move it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from wdrlr.model.problem import Problem, log_loss
from wdrlr.model.separation import candidates
from wdrlr.model.threads import filled

UNIT = np.finfo(float).eps
"""Twice the unit roundoff; the factor 2 covers products of errors."""

LONG_UNIT = float(np.finfo(np.longdouble).eps)


class Objective(NamedTuple):
    """The objective at some b, by how much its value can be below the truth, and the multiplier that attains it."""

    value: float
    rounding: float
    lam: float  # nan at radius 0


def objective(problem: Problem, b: np.ndarray, guess: float = 0.0) -> tuple[float, float]:
    """Worst-case loss plus penalty at b (1 + n + k,), and the multiplier that attains it, nan at radius 0.

    ``guess`` is as in ``worst_case_loss``.
    """
    loss, lam = worst_case_loss(problem, b, guess)
    return loss + problem.penalty_value(b), lam


def objective_with_rounding(problem: Problem, b: np.ndarray, guess: float = 0.0) -> Objective:
    """``objective`` with its rounding."""
    value, lam = objective(problem, b, guess)
    return Objective(value, rounding_of_objective(problem, b, value), lam)


def worst_case_loss(problem: Problem, b: np.ndarray, guess: float = 0.0) -> tuple[float, float]:
    """sup { E_Q[L(-y f)] : W(Q, P_N) <= radius } at fixed coefficients, and the multiplier that attains it.

    The supremum is min over lam >= metric.dual_norm(b_N) of lam radius + sum_i w_i max_c (L_ic - lam cost_c), where c
    runs over the candidates of Algorithm 2: a convex piecewise linear function of one variable, minimised exactly by
    intersecting tangents from both sides. Source: proof of Theorem 1.

    With a ``guess`` of the multiplier, candidates that can only be worst below half of it are left out, if the function
    turns out to fall there. The result does not depend on it but for rounding.
    """
    if problem.radius == 0:
        return float((problem.w * log_loss(-problem.y * problem.decision(b))).sum()), np.nan
    least = problem.metric.dual_norm(problem.numeric(b)) * (1 + (problem.n_numeric + 4) * UNIT)
    low = max(least, guess / 2) if np.isfinite(guess) else least
    left, at_low, low_value, low_slope = _from(problem, b, low)
    if low_slope >= 0 and low > least:
        low = least
        left, at_low, low_value, low_slope = _from(problem, b, low)
    if low_slope >= 0:
        return low_value, low
    # Above this multiplier no change pays.
    steepest = left.steepest().max()
    high = max(low, float(steepest) * (1 + 8 * UNIT))
    at_high = left.worst(high)
    high_value, high_slope = left.line(high, at_high, problem.radius)
    near = [0.99 * guess, 1.01 * guess]
    for _ in range(200):  # about ten are enough
        # A candidate that is worst at both ends is worst in between: only the other samples need checking.
        left, at_low, at_high = left.without(at_low, at_high)
        crossing = low + (high_value - low_value - high_slope * (high - low)) / (low_slope - high_slope)
        if not low < crossing < high:
            break
        lam = near.pop() if near else crossing
        if not low < lam < high:
            lam = crossing
        at_lam = left.worst(lam)
        value, slope = left.line(lam, at_lam, problem.radius)
        if lam == crossing and value <= low_value + low_slope * (lam - low) + 64 * UNIT * value:
            low_value, low = min((value, lam), (low_value, low))
            break
        if slope < 0:
            low, at_low, low_value, low_slope = lam, at_lam, value, slope
        else:
            high, at_high, high_value, high_slope = lam, at_lam, value, slope
    value, lam = min((low_value, low), (high_value, high))
    return float(value), float(lam)


def _from(problem: Problem, b: np.ndarray, lam: float) -> tuple[_Samples, np.ndarray, float, float]:
    """The samples with all candidates that can be worst at lam and above; at lam, these, the value and the slope."""
    by_label = candidates(problem, b, lam)
    n_candidates = sum(of_label.argument.shape[1] for of_label in by_label)
    losses = filled(
        np.empty((problem.n_samples, n_candidates)),
        n_candidates,
        lambda rows: np.hstack([log_loss(of_label.argument[rows]) for of_label in by_label]),
    )
    costs = np.hstack([of_label.cost for of_label in by_label])
    samples = _Samples(losses, costs, problem.w)
    worst = samples.worst(lam)
    return samples, worst, *samples.line(lam, worst, problem.radius)


@dataclass(frozen=True, eq=False)
class _Samples:
    """The samples whose worst candidate is not settled yet, and the sums over those for which it is."""

    losses: np.ndarray  # (N, C)
    costs: np.ndarray  # (1, C) where they are the same for all, else (N, C)
    w: np.ndarray  # (N,)
    settled_loss: float = 0.0
    settled_cost: float = 0.0

    def worst(self, lam: float) -> np.ndarray:
        """The worst candidate of every sample; shape (N,)."""
        return self._by_rows(lambda losses, costs: np.argmax(losses - lam * costs, axis=1)).astype(int)

    def steepest(self) -> np.ndarray:
        """The multiplier above which no candidate beats the first one, of every sample; shape (N,)."""
        return self._by_rows(
            lambda losses, costs: ((losses - losses[:, :1]) / np.where(costs > 0, costs, np.inf)).max(axis=1)
        )

    def _by_rows(self, work: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        """What ``work`` makes of the losses and the costs of every sample; shape (N,)."""
        (N, width), same = self.losses.shape, len(self.costs) == 1
        return filled(
            np.empty(N), width, lambda rows: work(self.losses[rows], self.costs if same else self.costs[rows])
        )

    def line(self, lam: float, choice: np.ndarray, radius: float) -> tuple[float, float]:
        """Value and slope of the objective with these candidates."""
        loss, cost = self._sums(np.ones(len(choice), dtype=bool), choice)
        return float(lam * radius + loss - lam * cost), float(radius - cost)

    def without(self, left: np.ndarray, right: np.ndarray) -> tuple[_Samples, np.ndarray, np.ndarray]:
        """The samples for which two choices differ, and these choices."""
        open_ = left != right
        loss, cost = self._sums(~open_, left)
        costs = self.costs if len(self.costs) == 1 else self.costs[open_]
        some, width = np.flatnonzero(open_), self.losses.shape[1]
        losses = filled(np.empty((len(some), width)), width, lambda rows: self.losses[some[rows]])
        return _Samples(losses, costs, self.w[open_], loss, cost), left[open_], right[open_]

    def _sums(self, included: np.ndarray, choice: np.ndarray) -> tuple[float, float]:
        rows = np.flatnonzero(included)
        loss = (self.w[rows] * self.losses[rows, choice[rows]]).sum()
        cost = (self.w[rows] * self.costs[0 if len(self.costs) == 1 else rows, choice[rows]]).sum()
        return self.settled_loss + loss, self.settled_cost + cost


def rounding_of_objective(problem: Problem, b: np.ndarray, value: float) -> float:
    """How far ``objective`` can be below the truth.

    f, and the gains that are added to it, are sums of at most 1 + n + 3 m + K terms (K is the largest number of nonzero
    entries in a row of the level matrix) with total size |f_1| + |x_i - x_1|.|b_N| + 3 sum_j (the largest score of
    feature j), where f_1 is the contribution of intercept and numbers at the first sample, computed in long doubles; L
    has slopes in [0, 1]. Logarithm, exponential, products with lam and w and NumPy's pairwise sums lose a few units
    more, relative to their results.
    """
    m, levels = problem.n_categorical, problem.level_sizes
    terms = 8 + problem.n_numeric + 3 * m + int(np.diff(levels.indptr).max(initial=0))
    sizes = levels @ np.abs(b[1 + problem.n_numeric :])
    slopes = problem.numeric(b)
    at_first = problem.x[0].astype(np.longdouble) * slopes
    size = abs(b[0] + at_first.sum()) + (problem.w * (np.abs(problem.x - problem.x[0]) @ np.abs(slopes))).sum()
    size += LONG_UNIT / UNIT * (abs(b[0]) + np.abs(at_first).sum())
    size += 3 * (np.maximum.reduceat(sizes, problem.offsets).sum() if m else 0.0)
    return float(UNIT * (terms * size + (pairwise(problem.n_samples) + len(b)) * value))


def pairwise(n: int) -> float:
    """Relative error, in units, of NumPy's sum of n terms of one sign: 8 running sums a block of 128, then halving."""
    return 16.0 + np.log2(max(n, 1))
