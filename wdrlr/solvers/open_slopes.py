"""Slopes that the data leave open, chosen by one rule, so that a fit does not depend on its solver.

The objective does not see the score of a level without rows while the adversary has no use for the level: where all
changes cost the same, while the score lies between the lowest and the highest of the feature's levels with rows. Nor
can it tell the slope of a number that is the same in all rows from the intercept. Among the optimal coefficients the
rule takes those for which

- a level without rows has the mean score of the feature's rows, or the nearest one that the objective does not see:
  somebody of an unknown kind is an average case. If all rows have the same level, all scores of the feature are then
  equal, and its slopes are 0;
- a number that is the same in all rows has the slope 0, and the intercept takes its share.

Where the coding fixes the score of a level without rows (as "onehot" does for the reference level), all scores of the
feature move by a constant, and the intercept moves back, so that f at the rows stays the same. With a free intercept, f
is thus the same under every coding.

Without an intercept the constants of all features sum to 0. The scores without rows are then as near to the means as
that allows, in the sum of their squared distances, or, if this raises the objective, as near as is possible where the
objective does not see them; and a number that is the same in all rows, and not 0, keeps its slope.

A penalty or a bound can be in the way; then nothing moves, so that the objective is never raised.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from wdrlr.model.objective import Objective, objective_with_rounding
from wdrlr.model.problem import Problem


def settle(problem: Problem, b: np.ndarray, guess: Objective | None = None) -> tuple[np.ndarray, Objective]:
    """Coefficients with the same f at all rows as b, and open slopes by the rule of this module; and their objective.

    They are b itself where nothing is open, or where the others have a higher objective, by more than rounding.

    Parameters
    ----------
    b : ndarray of shape (1 + n + k,)
        Within the box, and b_0 = 0 without an intercept.
    guess : Objective or None
        What the solver takes the objective of b for. Where the rule cannot raise the objective, that of b is evaluated
        only if it turns out to be below that of the others.
    """
    # Which multiplier it is matters to ``interval``; where several attain the objective, a guess would choose.
    lam = guess.lam if guess is not None and problem.metric.level_costs is None else 0.0
    cannot_raise = lam > 0 and problem.fit_intercept and not problem.penalty.any()

    def evaluated() -> Objective:
        return objective_with_rounding(problem, b, lam)

    before = guess if guess is not None and cannot_raise else evaluated()
    rows = problem.x[problem.w > 0]
    constant = np.flatnonzero(rows.min(axis=0) == rows.max(axis=0))
    if not constant.size and problem.level_weights.all():
        return b, before if before is not guess else evaluated()
    features = _open_features(problem, b, before.lam)
    shared = _without_constants(problem, b, constant, rows[0])
    for anywhere in (False,) if problem.fit_intercept else (True, False):
        moved = _at_means(problem, shared, features, anywhere)
        if np.array_equal(moved, b):
            continue
        after = objective_with_rounding(problem, moved, before.lam)
        if before is guess and after.value - after.rounding > before.value:
            before = evaluated()
        if after.value - after.rounding <= before.value + before.rounding:
            return moved, after
    return b, before if before is not guess else evaluated()


def interval(problem: Problem, b: np.ndarray, lam: float, j: int, level: int) -> tuple[float, float]:
    """Between which scores the objective does not see a level without rows.

    Where all changes of the feature cost the same, the adversary prefers the levels with rows of the lowest and of the
    highest score to those between them. Where costs differ, let u be a level with rows, d the cost of changing it into
    this level, and (d_v, g_v) the costs and scores of the levels v with rows, u among them at the cost 0. As
    ``separation`` explains, the adversary does not go up to this level from u if its score is at most the upper concave
    envelope of these points at d, continued with the slope lam: at most

        max over v with d_v <= d of g_v + lam (d - d_v)   and over v and v' with d_v <= d < d_v' of their chord at d.

    It is the same for going down. Codes that are no levels have scores that depend on all slopes: then nothing is open.

    Parameters
    ----------
    b : ndarray of shape (1 + n + k,)
    lam : float
        The multiplier at which the objective of b is attained.
    j, level : int
        A categorical feature, and a level of it that has no rows.
    """
    if problem.radius == 0:
        return -np.inf, np.inf
    scores, seen = problem.level_scores(b)[problem.levels(j)], problem.level_weights[problem.levels(j)] > 0
    if j in problem.coded:
        return float(scores[level]), float(scores[level])
    costs = 1.0 if problem.metric.level_costs is None else problem.metric.level_costs[j]
    if isinstance(costs, np.ndarray):
        unit = lam * problem.metric.level_cost / problem.metric.scale
        low, high = (
            min(_top(sign * scores[seen], costs[u, seen], float(costs[u, level]), unit) for u in np.flatnonzero(seen))
            for sign in (-1.0, 1.0)
        )
        return -low, high
    return (float(scores[seen].min()), float(scores[seen].max())) if np.isfinite(costs) else (-np.inf, np.inf)


def _top(g: np.ndarray, d: np.ndarray, at: float, slope: float) -> float:
    """The upper concave envelope of the points (d, g) at a cost, continued with the slope; see ``interval``."""
    if np.isinf(at):
        return np.inf
    cheap, dear = d <= at, (d > at) & np.isfinite(d)
    top = np.max(g[cheap] + slope * (at - d[cheap]))
    share = (at - d[cheap][:, None]) / (d[dear] - d[cheap][:, None])
    return float(max(top, np.max((1 - share) * g[cheap][:, None] + share * g[dear], initial=-np.inf)))


class _Feature(NamedTuple):
    """A feature with levels that have no rows."""

    number: int
    scores: np.ndarray  # (K,): with the mean for the levels without rows
    of_constant: np.ndarray  # (K,): with the scores, what they add to the intercept
    missing: np.ndarray  # (U,): the levels without rows
    room: np.ndarray  # (2, U): how far from the mean their scores may be, below and above


def _open_features(problem: Problem, b: np.ndarray, lam: float) -> list[_Feature]:
    features = []
    for j in range(problem.n_categorical):
        levels = problem.levels(j)
        weights = problem.level_weights[levels]
        missing = np.flatnonzero(weights == 0)
        if not missing.size:
            continue
        scores = problem.level_scores(b)[levels]
        mean = weights @ scores / weights.sum()
        room = np.transpose([interval(problem, b, lam, j, level) for level in missing.tolist()]) - mean
        if not problem.fit_intercept:  # what the objective does see may come nearer, or stay
            off = scores[missing] - mean
            room = np.array([np.minimum(room[0], off), np.maximum(room[1], off)])
        scores[missing] = mean
        features.append(_Feature(j, scores, problem.all_dummies.constant[levels], missing, room))
    return features


def _without_constants(problem: Problem, b: np.ndarray, constant: np.ndarray, row: np.ndarray) -> np.ndarray:
    """b with the slope 0 at constant numbers, and what they add to f at the intercept."""
    for column in constant:
        if problem.fit_intercept or row[column] == 0:
            moved = b.copy()
            moved[0] += b[1 + column] * row[column]
            moved[1 + column] = 0.0
            b = _if_feasible(problem, moved, b)
    return b


def _at_means(problem: Problem, b: np.ndarray, features: list[_Feature], anywhere: bool) -> np.ndarray:
    """b with the scores without rows at the means, or near them; within their ``room`` unless ``anywhere``."""
    groups = [[feature] for feature in features] if problem.fit_intercept else [features] if features else []
    for group in groups:
        moved = b.copy()
        for feature, off_mean in zip(group, _off_means(problem, group, anywhere), strict=True):
            scores = feature.scores.copy()
            scores[feature.missing] += off_mean
            constant, slopes = problem.slopes_of_scores(feature.number, scores)
            moved[0] += constant * problem.fit_intercept
            moved[1 + problem.n_numeric :][problem.dummies(feature.number)] = slopes
        b = _if_feasible(problem, moved, b)
    return b


def _off_means(problem: Problem, group: list[_Feature], anywhere: bool) -> list[np.ndarray]:
    """How far from the means the scores without rows of these features are put.

    If it is e, the features' constants sum to g + a.e. Where no intercept takes them up, this must be 0. The smallest
    such e within its room is clip(-theta a), theta being the multiplier of that equation.
    """
    a = np.concatenate([feature.of_constant[feature.missing] for feature in group])
    room = np.concatenate([feature.room for feature in group], axis=1)
    low, high = [[-np.inf], [np.inf]] if anywhere else room
    g = sum(feature.of_constant @ feature.scores for feature in group)

    def excess(theta: float) -> float:
        return float(g + a @ np.clip(-theta * a, low, high))

    theta, first = 0.0, excess(0.0)
    if not problem.fit_intercept and first and a.any():
        used = a[a != 0]
        ends = np.abs(room[:, a != 0] / used)
        # There each e is at an end of its room, or makes up for the excess alone.
        theta = np.copysign(max(ends[np.isfinite(ends)].max(initial=0.0), np.abs(first / used**2).max()), first)
        theta = brentq(excess, 0.0, theta, xtol=1e-300) if excess(theta) * first < 0 else theta
    return np.split(np.clip(-theta * a, low, high), np.cumsum([len(feature.missing) for feature in group])[:-1])


def _if_feasible(problem: Problem, moved: np.ndarray, b: np.ndarray) -> np.ndarray:
    return moved if (problem.feasible(moved) == moved).all() else b
