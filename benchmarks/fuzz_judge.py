"""The objective of an instance of the fuzz, by enumeration in extended precision.

    F(b) = min over lam of  lam radius + sum_i w_i max_{z, y} [ log(1 + exp(-y f(x_i, z))) - lam d ]  + penalty,

with lam >= scale * dual_norm(b_N / costs), z over all combinations of levels or codes and y over both labels. Nothing
here comes from the package: a check shares no code with what it checks.
"""

from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from benchmarks.fuzz_instances import Instance

UNIT = 2.0**-53
Real = np.longdouble
"""Extended precision, if the machine has it; the allowance for rounding takes its precision into account."""


class Value(NamedTuple):
    """F, and how far a careful evaluation in double precision can be from it."""

    F: float
    allowance: float


class Judge:
    """F for the table of an instance, by enumeration.

    Rounding. With u = 2^-53, an f computed in double precision is off by at most u times its number of operations times
    S_i, the sum of the sizes of its terms, and the log-loss does not amplify this (its slope is at most 1). The
    numbers' terms are counted once more at the largest entries of their columns, since f may be summed as its
    difference from that of some row, which is far away if the table has an outlier. A relative error of u in the
    multiplier moves F by u lam |slope|, where lam times the cost of a change is at most its loss, again at most S_i +
    1. Weighting and summing N losses adds N u F, and the minimisation over lam may stop 1e-14 (F + 1) above the
    minimum. Altogether

        allowance = u [ (operations + 10) sum_i w_i S_i  +  (N + 100) (F + 1) ].
    """

    def __init__(self, instance: Instance):
        self.problem = instance.problem
        self.x, self.y, self.n_levels = instance.x.astype(Real), instance.y, instance.n_levels
        self.w = np.ones(len(instance.y), Real) if instance.w is None else instance.w.astype(Real)
        n, m = instance.x.shape[1], instance.z.shape[1]
        self.z, self.number_costs = instance.z, instance.number_costs
        self.kappa, self.scale = Real(instance.kappa), Real(instance.scale)
        self.points = [_points(K, self.problem["coding"], instance.any_code) for K in instance.n_levels]
        # All combinations of points and, for each different row of levels, their costs in ascending order.
        counts = [len(points) for points in self.points]
        self.combinations = np.array(list(product(*map(range, counts))), int).reshape(np.prod(counts, dtype=int), m)
        distinct, self.group = np.unique(instance.z, axis=0, return_inverse=True)
        self.group = self.group.reshape(-1)
        costs = np.zeros((len(distinct), len(self.combinations)), Real)
        for j, of_levels in enumerate(instance.level_costs):
            of_codes = np.repeat(of_levels.max(axis=1, keepdims=True), counts[j] - len(of_levels), axis=1)
            costs += np.hstack([of_levels, of_codes])[distinct[:, j]][:, self.combinations[:, j]]
        costs = costs ** (1 / Real(self.problem["p"])) / self.scale
        self.order = np.argsort(costs, axis=1, kind="stable")
        self.costs = np.take_along_axis(costs, self.order, axis=1)
        # Whether a lower bound holds only for coefficients of limited size, at a radius above 0.
        self.fixed = not all(np.isfinite(costs).all() for costs in (self.number_costs, *instance.level_costs))
        self.n_coefficients = 1 + n + sum(instance.n_levels) - m
        self.operations = n + 2 * m + max(instance.n_levels, default=0) + 2

    @cached_property
    def sizes(self) -> np.ndarray:
        """The largest |x_ij|, and 1 for the intercept and the levels; shape (1 + n + k,)."""
        sizes = np.ones(self.n_coefficients)
        sizes[1 : 1 + self.x.shape[1]] = np.abs(self.x).max(axis=0)
        return sizes

    def feasible(self, b: np.ndarray) -> bool:
        """Whether the coefficients are within the bound and, without an intercept, b_0 is 0."""
        bound = self.problem["coef_bound"]
        inside = bound is None or bool((np.abs(b) <= bound).all())
        return inside and (self.problem["fit_intercept"] or b[0] == 0)

    def objective(self, b: np.ndarray, radius: float) -> Value:
        """F at the coefficients; shape (1 + n + k,)."""
        loss = self.worst_case_loss(b, radius, self.w)
        penalised = b if self.problem["penalize_intercept"] else b[1:]
        penalty = float(Real(self.problem["l1_penalty"]) * np.abs(penalised.astype(Real)).sum())
        return Value(loss.F + penalty, loss.allowance + (len(b) + 2) * UNIT * penalty)

    def worst_case_loss(self, b: np.ndarray, radius: float, w: np.ndarray) -> Value:
        """F without the penalty, for weights of shape (N,)."""
        b, n = b.astype(Real), self.x.shape[1]
        w, y, f = w / w.sum(), self.y[:, None], (b[0] + self.x @ b[1 : 1 + n])[:, None]
        slopes = np.split(b[1 + n :], np.cumsum([points.shape[1] for points in self.points])[:-1])
        scores = [points @ own for points, own in zip(self.points, slopes, strict=False)]
        if radius == 0:
            F = w @ _log_loss(-y * sum((scores[j][self.z[:, [j]]] for j in range(len(scores))), f))[:, 0]
        else:
            total = np.zeros(len(self.combinations), Real)
            total += sum(scores[j][self.combinations[:, j]] for j in range(len(scores)))
            a, costs = [], []
            for sign in (1, -1):
                gains, of_gains = (part[self.group] for part in _by_cost(sign * total[self.order], self.costs))
                flip = sign * y > 0
                a.append(np.where(flip & np.isinf(self.kappa), -np.inf, sign * f + gains))
                costs.append(of_gains + np.where(flip & np.isfinite(self.kappa), self.kappa / self.scale, 0))
            least_lam = self.scale * _dual_norm(b[1 : 1 + n] / self.number_costs, self.problem["norm"])
            F = _least(_log_loss(np.hstack(a)), np.hstack(costs), w, Real(radius), least_lam)
        sizes = np.abs(b[0]) + (np.abs(self.x) + np.abs(self.x).max(axis=0)) @ np.abs(b[1 : 1 + n])
        sizes += sum((np.abs(points) @ np.abs(own)).max() for points, own in zip(self.points, slopes, strict=False))
        rounding = UNIT * (1 + np.finfo(Real).eps / np.finfo(float).eps)
        allowance = rounding * ((self.operations + 10) * (w @ sizes) + (len(w) + 100) * (F + 1))
        return Value(float(F), float(allowance))

    def best_constant(self, radius: float) -> np.ndarray:
        """A near-optimal model whose slopes are 0; shape (1 + n + k,)."""
        b = np.zeros(self.n_coefficients)
        if self.problem["fit_intercept"]:
            largest = min(40.0, self.problem["coef_bound"] or np.inf)

            def value(intercept: float) -> float:
                return self.objective(np.r_[intercept, b[1:]], radius).F

            minimum = minimize_scalar(value, bounds=(-largest, largest), method="bounded", options={"xatol": 1e-9})
            b[0] = minimum.x
        return b


def _points(K: int, coding: str, any_code: bool) -> np.ndarray:
    """The dummies of K levels and then, with ``any_code``, of all other codes; shape (number of these, K - 1)."""
    if coding == "onehot":
        return np.eye(K, K - 1, -1)
    levels = 2 * np.eye(K, K - 1) - 1
    others = [code for code in product([-1.0, 1.0], repeat=K - 1) if code not in set(map(tuple, levels))]
    return np.vstack([levels, *others]) if any_code else levels


def _by_cost(gains: np.ndarray, costs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each row, the gains above all that cost less, and their costs; rows end in gains of -inf for nothing.

    Costs ascend and may be inf; shapes (G, C).
    """
    best, better = np.maximum.accumulate(gains, axis=1), np.isfinite(costs)
    better[:, 1:] &= best[:, 1:] > best[:, :-1]
    first = np.argsort(~better, axis=1, kind="stable")[:, : better.sum(axis=1).max()]
    better, gains, costs = (np.take_along_axis(part, first, axis=1) for part in (better, gains, costs))
    return np.where(better, gains, -np.inf), np.where(better, costs, 0)


def _log_loss(a: np.ndarray) -> np.ndarray:
    return np.maximum(a, 0) + np.log1p(np.exp(-np.abs(a)))


def _dual_norm(b: np.ndarray, norm: str) -> Any:
    if b.size == 0:
        return Real(0)
    size = np.abs(b)
    if norm == "l2":
        largest = size.max()
        return largest * np.sqrt(((size / largest) ** 2).sum()) if largest > 0 else Real(0)
    return size.max() if norm == "l1" else size.sum()


def _least(losses: np.ndarray, costs: np.ndarray, w: np.ndarray, radius: Any, least_lam: Any) -> Any:
    """min over lam >= least_lam of lam radius + sum_i w_i max_c (loss_ic - lam cost_ic); losses and costs (N, C).

    The function is convex and piecewise linear, and its breakpoints are where the largest line of a row changes. From
    lam = inf down they are found one by one, then sorted, and bisected for where the slope changes its sign.
    """
    everyone = np.arange(len(w))
    line, breaks = np.where(costs == 0, losses, -np.inf).argmax(axis=1), [least_lam]
    while True:
        gain, dearer = (part - part[everyone, line, None] for part in (losses, costs))
        meet = np.divide(gain, dearer, out=np.full_like(gain, -np.inf), where=dearer > 0)
        following = meet.argmax(axis=1)
        lam = meet[everyone, following]
        if not (lam > least_lam).any():
            break
        breaks.extend(lam[lam > least_lam])
        line = np.where(lam > least_lam, following, line)
    lams = np.unique(breaks)

    def value_and_slope(lam: Any) -> tuple[Any, Any]:
        reduced = losses - lam * costs
        worst = reduced.argmax(axis=1)
        return lam * radius + w @ reduced[everyone, worst], radius - w @ costs[everyone, worst]

    low, high = 0, len(lams) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if value_and_slope(lams[middle])[1] < 0:
            low = middle
        else:
            high = middle
    # Rounding can decide ties at a breakpoint either way.
    return min(value_and_slope(lam)[0] for lam in lams[max(0, low - 2) : high + 3])
