"""The smallest radius at which the adversary makes all slopes 0: the counterpart of the Lasso's largest penalty."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from wdrlr.model.cuts import Cuts, join
from wdrlr.model.metric import GroundMetric, LevelCosts
from wdrlr.model.problem import Problem
from wdrlr.model.separation import candidates, changed
from wdrlr.solvers import half_slopes
from wdrlr.solvers.closed_form import best_constant
from wdrlr.solvers.conic import ConicSolverError
from wdrlr.solvers.half_slopes import base_norm
from wdrlr.solvers.linear import minimise_linear

logger = logging.getLogger("wdrlr")

ACCURACY = 1e-9
"""In a problem's own units: to this the programs are solved, and what is smaller is left out."""

ROUNDING = 1e-12
"""Of a value of h in a problem's own units."""

LARGEST_PENALTY = 4.0
"""A penalty that leaves every slope 0 in a problem's own units; what is larger only spoils a solver's tolerances."""

WIDTH = 1e-7
"""Of a bracket around the radius, relative to its upper end, at which the upper end is returned."""

LIGHT = 1e-9
"""Times the largest weight: where solvers fail, lighter samples are left out of their programs."""

NEAR = 1e-6
"""Relative distance within which the radius may be one at which labels alone are changed."""

ROUNDING_OF_COST = 1e-14
"""Relative, of a sum of costs, all of which are >= 0."""

GRID = 2.0**52
"""Its inverse divides masses whose sums are to be exact."""

HALVINGS = 16
"""Of the angle in which a pair of slopes lies: the radius is then too large by 1e-9 of itself at most."""

MOST_ROUNDS = 300
"""Of cuts; on small problems some dozens do."""

MANY_SAMPLES = 6_000
"""With more, most of them are counted on one side of a kink, see ``_minimise_in_parts``."""

NEAR_KINK = 0.2
"""The share of the samples that have variables of their own then, before others turn out to need them."""

MOST_PAIRS = 20_000
"""Of levels in matrices of costs. If there are more, only those that matter are in the program, found as cuts are."""

LINEAR_METHODS = ("highs-ipm", "highs-ds")
"""Tried in this order: on thousands of rows the simplex method is slower, and gives up more often."""


def largest_useful_radius(problem: Problem) -> float:
    """The smallest radius from which on all slopes are 0 at the optimum; ``problem.radius`` itself plays no role.

    In terms of distributions: the least transport cost that makes every feature useless for predicting the label.
    Changing labels alone may do (``_by_labels_alone``). If not, the best constant model at that radius is the one
    at all larger ones, b = 0 or, if labels cannot be changed, the log-odds. Let t_c be the slope of the log-loss at
    cut c there. The multiplier is 0, and the derivative in a direction (d, 1) of the coefficients and the multiplier
    is radius + h(d) with

        h(d) = sum_i w_i max_c [ t_c A_c d - cost_c ] + sum_j penalty_j |d_j|,    metric.dual_norm(d_N) <= 1,

    so the model is optimal iff radius >= -min h. Bounds on slopes, which are not active at 0, play no role; that of the
    intercept does where it binds the best constant model. The cuts are those of a finite cost.

    Any d proves that the radius is no less than -h(d), by Algorithm 2, and a way of making labels and features
    independent that it is no more than what this costs. Where ``half_slopes`` applies, as with the metric of the paper,
    it proposes both (``_by_flips``), and ``_cost_of_balance`` counts the cost. Elsewhere linear programs take its
    place, and the upper end is what they say (``_steepest``).

    Returns
    -------
    float
        In units of the metric: the upper end of a bracket, at most ``WIDTH`` times itself above the lower one. inf if
        at every radius some slope is not 0, which takes labels that cannot be changed, and features of use that may not
        be changed, or slopes that can stand in for an absent or bounded intercept.

    Raises
    ------
    ConicSolverError
        If none of the solvers tried finds it.
    """
    least = problem.metric.label_change * _surplus(problem) if problem.metric.flips else 0.0
    low, high = _by_flips(problem) if half_slopes.applies(problem) else (0.0, np.inf)
    closed = high - low <= WIDTH * high < np.inf
    if closed and low > (1 + NEAR) * least:
        return high
    radius = _by_labels_alone(problem)
    if radius is not None:
        return radius
    return high if closed else _steepest(problem)


def _by_flips(problem: Problem) -> tuple[float, float]:
    """Ends of a bracket around -min h, by the direction and the changes of labels that ``half_slopes`` proposes."""
    problem = replace(problem, radius=1.0)  # any but 0, where nothing can be changed
    d, q = half_slopes.solve(problem)
    low = -_h(problem, {1.0: 0.5, -1.0: 0.5}, d / max(1.0, problem.metric.dual_norm(problem.numeric(d))))
    return low, min(_cost_of_balance(problem, q), problem.metric.label_change / 2)


def _cost_of_balance(problem: Problem, q: np.ndarray) -> float:
    """A radius from which on b = 0 is optimal: what it costs to change labels of mass q and to move what is unbalanced.

    With the mass q_i of every sample under the other label, let u_i = y_i (w_i / 2 - q_i). The derivatives at b = 0 are
    sums of nu_0 = sum_i u_i, nu_N = sum_i u_i x_i and nu_v, the sum of u_i over the samples of level v. What is beyond
    the penalties is moved away: numbers for ||nu_N||, and of each feature the mass 2 nu_v of one label that is too much
    at level v, to levels that have too little or, since no dummy counts it, to the reference. For problems to which
    ``half_slopes`` applies.
    """
    metric, y, allowed = problem.metric, problem.y, problem.balance_limits
    u = y * (problem.w / 2 - q)
    side, missing, room = _unbalanced(problem, u)
    if missing > room.sum():
        return np.inf
    u -= side * room * (missing / room.sum() if missing > 0 else 0.0)
    u = np.trunc(u * GRID) / GRID  # towards q = w / 2, and onto a grid on which sums are not rounded
    side, missing, room = _unbalanced(problem, u)
    if missing > room.max():
        return np.inf
    u[np.argmax(room)] -= side * missing
    x = problem.x - problem.means if problem.fit_intercept and allowed[0] == 0 else problem.x
    numbers = np.abs((x.T.astype(np.longdouble) * u).sum(axis=1)).astype(float)
    cost = metric.label_change * float((problem.w / 2 - y * u).sum())
    cost += metric.numeric_distance(np.maximum(numbers - problem.numeric(allowed), 0.0))
    at_levels = np.full(sum(problem.n_levels), np.inf)
    at_levels[problem.all_dummies.level] = allowed[1 + problem.n_numeric :]
    for j, price in enumerate(half_slopes.level_prices(metric, problem.n_levels)):
        nu, most = np.bincount(problem.z[:, j], u, problem.n_levels[j]), at_levels[problem.levels(j)]
        cost += 2.0 * float(price) * max(float(np.maximum(sign * nu - most, 0.0).sum()) for sign in (1.0, -1.0))
    return cost * (1 + ROUNDING_OF_COST)


def _unbalanced(problem: Problem, u: np.ndarray) -> tuple[float, float, np.ndarray]:
    """The label of the heavier class, by how much it is too heavy, and what of each of its samples can be changed."""
    total = float(u.sum())
    side = float(np.sign(total))
    room = np.where(side * problem.y > 0, problem.w / 2 + problem.y * u, 0.0)
    return side, max(abs(total) - float(problem.balance_limits[0]), 0.0), room


def _steepest(problem: Problem) -> float:
    """-min h(d), found in the largest of the problem's own units, and in smaller ones while it is small there."""
    # Any radius but 0, where nothing can be changed.
    problem = replace(problem, radius=1.0)
    flips = problem.metric.flips
    b_0 = 0.0 if flips else best_constant(problem)[0]
    slope = {1.0: float(expit(-b_0)), -1.0: float(expit(b_0))}
    if flips:
        # h does not mind where the numbers are if d_0 can make up for it.
        anywhere = problem.fit_intercept and problem.penalty[0] == 0
    else:
        # b_0 is at its best, so that no d_0 but 0 helps; and h minds unless the derivative by d_0 is 0.
        surplus = sum(label * slope[label] * problem.w[problem.y == label].sum() for label in (1.0, -1.0))
        anywhere = problem.fit_intercept and abs(surplus) <= ACCURACY
        problem = replace(problem, fit_intercept=False)
    if anywhere:
        problem = replace(problem, x=problem.x - problem.means)
    of_numbers = 0.0
    if not flips:
        if _endless(problem, slope):
            return np.inf
        # h is a sum over the features, and what no cost limits adds nothing to its smallest value.
        problem = replace(problem, penalty=np.where(_of_fixed_features(problem), np.inf, problem.penalty))
        push = problem.w * problem.y * _slopes(problem, False, slope)
        rest = np.abs(push @ problem.x) - problem.numeric(problem.penalty)
        of_numbers = problem.metric.numeric_distance(np.maximum(rest, 0.0))
        problem = _without_numbers(problem)
    return of_numbers + _in_units(problem, slope)


def _without_numbers(problem: Problem) -> Problem:
    kept = np.r_[0, 1 + problem.n_numeric : problem.n_coefficients]
    return replace(
        problem,
        x=problem.x[:, :0],
        metric=replace(problem.metric, number_costs=None),
        penalty=problem.penalty[kept],
        coef_bound=problem.coef_bound[kept],
    )


def _in_units(problem: Problem, slope: dict[float, float]) -> float:
    """-min h(d), see ``_steepest``."""
    value, last = 0.0, np.inf
    for unit in _units(problem):
        if value > 1e-3 * last or unit > 0.1 * last:
            continue
        try:
            found = unit * _in_unit(problem, unit, slope)
        except ConicSolverError:
            if last == np.inf:
                raise
            break  # what there is drowns in the rounding of larger costs
        # Each is -h at some d, and so no more than the largest; but a solver can stop short of that in small units.
        value = found if last == np.inf or found > value - 1e3 * ROUNDING * last else value
        last = unit
    return value


def _units(problem: Problem) -> list[float]:
    """Distances by which the radius may be measured, the largest one first: of levels, of numbers, of labels."""
    metric, kappa = problem.metric, problem.metric.label_change
    sizes = np.abs(problem.x).max(axis=0, initial=0.0)
    of_units = metric.number_norm.of_units(problem.n_numeric)
    distances = (np.multiply(sizes, of_units, out=np.zeros(len(sizes)), where=sizes > 0) / metric.scale).tolist()
    if sum(problem.n_levels) > problem.n_categorical:
        distances += _costs_of_levels(problem)
    if np.isfinite(kappa):
        # No radius above kappa / 2 is needed; and what balances the classes' sizes is.
        surplus = _surplus(problem) if problem.fit_intercept else 0.0
        distances = [min(distance, kappa) for distance in distances] + [kappa * surplus] * (surplus > ACCURACY)
    return sorted({distance for distance in distances if 0 < distance < np.inf}, reverse=True)


def _costs_of_levels(problem: Problem) -> list[float]:
    """What changes of levels cost; inf, too, for those that cost nothing: either way kappa limits their use."""
    metric = problem.metric
    if metric.level_costs is None:
        return [metric.typical_change(problem.n_categorical)]
    costs = np.concatenate([_off_diagonal(costs) for costs in metric.level_costs])
    return (metric.level_cost * np.unique(np.where(costs > 0, costs, np.inf)) / metric.scale).tolist()


def _off_diagonal(costs: LevelCosts) -> np.ndarray:
    return costs[~np.eye(len(costs), dtype=bool)] if isinstance(costs, np.ndarray) else np.array([costs])


def _of_fixed_features(problem: Problem) -> np.ndarray:
    """Which coefficients are those of numbers that may not move and categories that may not change; (1 + n + k,)."""
    metric = problem.metric
    fixed = [bool(np.isinf(_off_diagonal(costs)).all()) for costs in metric.level_costs or ()]
    of_levels = np.repeat(fixed, problem.n_levels) if fixed else np.zeros(problem.level_matrix.shape[0], dtype=bool)
    numbers = ~metric.movable(problem.n_numeric)
    return np.concatenate([[False], numbers, abs(problem.level_matrix[of_levels]).sum(axis=0) > 0])


def _surplus(problem: Problem) -> float:
    """What the larger class has beyond half of the weight, and beyond the penalty of b_0; 0 within rounding."""
    surplus = abs(float(problem.w[problem.y > 0].sum()) - 0.5) - float(problem.penalty[0])
    return surplus if surplus > 1e-14 else 0.0


def _endless(problem: Problem, slope: dict[float, float]) -> bool:
    """Whether h falls for ever along some slopes, when labels cannot be changed and d_0 = 0.

    Costs that are finite do not count far out, nor do the slopes of numbers that may move, which are limited.
    """
    size = np.abs(problem.x).max(axis=0, initial=0.0)
    size[size == 0] = 1.0
    metric, factor = problem.metric, np.ones(problem.n_coefficients)
    factor[1 : 1 + problem.n_numeric] = size
    fixed = ~metric.movable(problem.n_numeric)
    level_costs = metric.level_costs or (0.0,) * problem.n_categorical
    free = tuple(np.where(np.isinf(D), D, 0.0) if np.isinf(D).any() else 0.0 for D in level_costs)
    far = replace(
        problem,
        x=np.where(fixed, problem.x / size, 0.0),
        metric=GroundMetric(np.inf, level_costs=tuple(D if np.ndim(D) else float(D) for D in free)),
        penalty=np.minimum(problem.penalty / factor, LARGEST_PENALTY),
    )
    program = _program(far, np.ones(problem.n_numeric), slope, _pairs(far))
    first, last = 1 + problem.n_numeric, problem.n_coefficients
    program.high[first:last], program.low[first:last] = 1.0, -1.0
    return _minimise(program, "highs")[1] < -ACCURACY * problem.n_samples


def _in_unit(problem: Problem, unit: float, slope: dict[float, float]) -> float:
    """-min h(d), with distances counted in ``unit`` and every number in that of its column."""
    metric, size = problem.metric, np.abs(problem.x).max(axis=0, initial=0.0)
    # The largest slope of each number alone, in a norm that is 1 at the unit vectors; it is worth no more than that.
    norm, costs = base_norm(metric, problem.n_numeric)
    reach = np.multiply(size / metric.scale / unit, costs, out=np.zeros(len(size)), where=size > 0)
    nothing = reach * norm.of_units(problem.n_numeric) < ACCURACY
    size[nothing] = reach[nothing] = 1.0
    factor = np.ones(problem.n_coefficients)
    factor[1 : 1 + problem.n_numeric] = size
    # Scores far beyond kappa are of no use, so that a level need not cost more.
    if metric.level_costs is None:
        metric = replace(metric, level_cost=min(metric.level_cost, 1e4 * metric.label_cost))
    else:
        most = 1e4 * metric.label_cost / metric.level_cost
        at_most = tuple(np.where(np.isinf(D), D, np.minimum(D, most))[()] for D in metric.level_costs)
        metric = replace(metric, level_costs=at_most)
    own = replace(
        problem,
        x=np.where(nothing, 0.0, problem.x / size),
        metric=replace(metric, scale=metric.scale * unit),
        penalty=np.minimum(problem.penalty / factor, LARGEST_PENALTY),
    )
    labels_cost_much = 1e3 * (problem.n_numeric + problem.n_categorical) < own.metric.label_change < np.inf
    if labels_cost_much and _surplus(problem) == 0:
        # d_0 is worth nothing before it makes changes of labels pay, but a large one times rounding would be.
        own = replace(own, fit_intercept=False)
    # Where samples are so light that solvers do not see them, slopes that only they limit are anything.
    heavy = own.w > LIGHT * own.w.max()
    known = replace(own, **{name: getattr(own, name)[heavy] for name in ("x", "z", "y", "w")})
    for part in (own,) if heavy.all() else (own, known):
        for method in LINEAR_METHODS:
            logger.info("largest useful radius: %d samples, by %s", part.n_samples, method)
            try:
                return _by_cuts(part, own, reach, slope, method)
            except ConicSolverError as error:
                logger.info("largest useful radius: %s", error)
    raise ConicSolverError(
        f"the largest useful radius was not found by {', '.join(LINEAR_METHODS)}. Rescale or leave out columns whose "
        "numbers are much larger than those of others, or hardly differ; or narrow it down by fits: slopes are 0 from "
        "it on."
    )


def _by_cuts(problem: Problem, whole: Problem, reach: np.ndarray, slope: dict[float, float], method: str) -> float:
    """-min h(d): a program that knows less than h, and cuts to make up for it until it finds what h has at its d.

    The programs are those of ``problem``, which may be without samples of ``whole`` that hardly count; the value is
    that of the whole. For p = 1 the program knows all of h, unless tangents stand for the ball of the dual norm, or
    matrices of costs have too many pairs of levels.
    """
    pairs = _pairs(problem)
    all_pairs = len(pairs) <= MOST_PAIRS
    # On a scale of levels these are steps of lengths 1, 1, 2, 4, ..., which come near what the others demand.
    rank = np.arange(len(pairs)) - np.searchsorted(pairs.old, pairs.old)
    kept = all_pairs | (rank & (rank + 1) == 0)
    program = _program(problem, reach, slope, pairs[kept])
    N, n_b, n = problem.n_samples, problem.n_coefficients, problem.n_numeric
    norm, _ = base_norm(problem.metric, n)
    if not all_pairs:
        # A few of them may set no limit.
        program.high[1 + n : n_b] = 1e4 * pairs.cost.max() / min(slope.values())
        program.low[1 + n : n_b] = -program.high[1 + n : n_b]
    excess = sp.eye_array(N, program.q.size, k=program.q.size - N, format="csr")
    known: set = set()
    lower = -np.inf
    tangents = n > 1 and norm.dual_order is None
    for _ in range(MOST_ROUNDS):
        x, value = _minimise_in_parts(program, N, method)
        d, upper = x[:n_b].copy(), -value / N
        missed = ~kept & _missed(problem, slope, pairs, x)
        if missed.any():
            kept |= missed
            program = _with_rows(program, _pair_rows(problem, slope, pairs[missed]), np.tile(pairs.cost[missed], 2))
            continue
        new = _violated(problem, slope, d, (program.own + excess) @ x)
        new = new[np.array([key not in known for key in new.keys()], dtype=bool)]
        known.update(new.keys())
        length = _length(problem, d, reach)
        d /= max(length, 1.0)
        lower = -_h(whole, slope, d)
        logger.info("largest useful radius: in units of its own from %.9g to %.9g", lower, upper)
        outside = tangents and length > 1 + ACCURACY
        if upper - lower <= ACCURACY * max(upper, lower) or not (len(new) or outside):
            break
        rows, limits = [], []
        if len(new):
            t = _slopes(problem, new.flipped, slope, new.sample)
            rows.append(_wide(t[:, None] * new.rows(problem), 0, x.size) - (program.own + excess)[new.sample])
            limits.append(new.costs(problem))
        if outside:
            rows.append(_wide((norm.steepest(problem.numeric(d) / reach) / reach)[None, :], 1, x.size))
            limits.append(np.ones(1))
        program = _with_rows(program, sp.vstack(rows), np.concatenate(limits))
    if abs(upper - lower) > WIDTH * max(upper, lower, 1e-3):
        raise ConicSolverError(f"{method} found {upper:.9g} where there is {lower:.9g}")
    return lower if lower > ROUNDING else 0.0


def _with_rows(program: _Program, rows: sp.sparray, limit: np.ndarray) -> _Program:
    """The program with more rows of A x <= limit."""
    A = sp.vstack([program.A, rows], format="csr")
    return replace(program, A=A, limit=np.concatenate([program.limit, limit]))


def _wide(columns: np.ndarray | sp.sparray, first: int, width: int) -> sp.sparray:
    """The columns from ``first`` on, among so many."""
    height, n_columns = columns.shape
    after = sp.csr_array((height, width - first - n_columns))
    return sp.hstack([sp.csr_array((height, first)), sp.csr_array(columns), after], format="csr")


def _slopes(
    problem: Problem, flipped: np.ndarray | bool, slope: dict[float, float], sample: Any = slice(None)
) -> np.ndarray:
    """t_c of the cuts of these samples with their own or the other label."""
    return np.where((problem.y[sample] > 0) != flipped, slope[1.0], slope[-1.0])


def _h(problem: Problem, slope: dict[float, float], d: np.ndarray) -> float:
    """h(d) by Algorithm 2."""
    worst = np.full(problem.n_samples, -np.inf)
    for flipped, found in zip(problem.label_flips, candidates(problem, d), strict=True):
        values = _slopes(problem, flipped, slope)[:, None] * found.argument - found.cost
        worst = np.maximum(worst, values.max(axis=1))
    return float(problem.w @ worst) + problem.penalty_value(d)


def _violated(problem: Problem, slope: dict[float, float], d: np.ndarray, s: np.ndarray) -> Cuts:
    """The most violated cut of every sample and label, if there is one."""
    cuts = []
    for flipped, found in zip(problem.label_flips, candidates(problem, d), strict=True):
        values = _slopes(problem, flipped, slope)[:, None] * found.argument - found.cost
        above = np.flatnonzero(values.max(axis=1) > s + ACCURACY)
        z = changed(problem, found, np.argmax(values, axis=1))[above]
        cuts.append(Cuts(above, z, np.full(len(above), flipped)))
    return join(*cuts)


def _length(problem: Problem, d: np.ndarray, reach: np.ndarray) -> float:
    """metric.dual_norm(d_N), whatever the units; the numbers' slopes must have at most 1."""
    n = problem.n_numeric
    return base_norm(problem.metric, n)[0].dual(problem.numeric(d) / reach) if n else 0.0


@dataclass(frozen=True, eq=False)
class _Program:
    """minimise q.x  subject to  A x <= limit,  E x = 0,  low <= x <= high.

    own @ x and the last N variables are the two parts of max_c [ t_c A_c d - cost_c ].
    """

    q: np.ndarray
    A: sp.sparray
    limit: np.ndarray
    E: sp.sparray
    low: np.ndarray
    high: np.ndarray
    own: sp.sparray


def _of_feature(problem: Problem) -> sp.sparray:
    """Which level belongs to which feature; shape (sum(n_levels), m)."""
    V, m = sum(problem.n_levels), problem.n_categorical
    return sp.csr_array((np.ones(V), (np.arange(V), np.repeat(np.arange(m), problem.n_levels))), shape=(V, m))


@dataclass(frozen=True, eq=False)
class _Pairs:
    """The P changes of levels that have finite costs in matrices; levels are numbered over all features."""

    old: np.ndarray  # (P,)
    new: np.ndarray  # (P,)
    cost: np.ndarray  # (P,): in units of the metric

    def __len__(self) -> int:
        return len(self.cost)

    def __getitem__(self, index: Any) -> _Pairs:
        return _Pairs(self.old[index], self.new[index], self.cost[index])


def _pairs(problem: Problem) -> _Pairs:
    """In the order of the old levels, the cheapest change from each first."""
    metric = problem.metric
    parts = [np.zeros((3, 0))]
    for j, costs in enumerate(metric.level_costs or ()):
        if isinstance(costs, np.ndarray):
            old, new = np.nonzero(np.isfinite(costs) & ~np.eye(len(costs), dtype=bool))
            cost, start = metric.level_cost * costs[old, new] / metric.scale, problem.offsets[j]
            parts.append(np.stack([start + old, start + new, cost]))
    old, new, cost = np.hstack(parts)
    order = np.lexsort([cost, old])
    return _Pairs(old[order].astype(int), new[order].astype(int), cost[order])


def _pair_rows(problem: Problem, slope: dict[float, float], pairs: _Pairs) -> sp.sparray:
    """The left-hand sides, at most the costs of the pairs, of what their changes are worth for labels -1 and +1."""
    level = sp.eye_array(sum(problem.n_levels), format="csr")
    gain = level[pairs.new] - level[pairs.old]
    raised = _rows(problem, len(pairs), score=slope[-1.0] * gain, up=-level[pairs.old])
    lowered = _rows(problem, len(pairs), score=-slope[1.0] * gain, down=-level[pairs.old])
    return sp.vstack([raised, lowered], format="csr")


def _missed(problem: Problem, slope: dict[float, float], pairs: _Pairs, x: np.ndarray) -> np.ndarray:
    """From each level, and for each label, the pair whose row x violates most, if there is one; shape (P,)."""
    widths = _widths(problem)
    part = dict(zip(widths, np.split(x, np.cumsum([*widths.values()])[:-1]), strict=True))
    gain = part["score"][pairs.new] - part["score"][pairs.old]
    chosen = np.zeros(len(pairs), dtype=bool)
    for sign, name in ((1.0, "up"), (-1.0, "down")):
        excess = sign * slope[-sign] * gain - part[name][pairs.old] - pairs.cost
        order = np.lexsort([-excess, pairs.old])
        first = order[np.diff(pairs.old[order], prepend=-1) > 0]
        chosen[first] |= excess[first] > ACCURACY
    return chosen


def _of_levels(problem: Problem) -> sp.sparray:
    """Which levels each sample has; shape (N, sum(n_levels))."""
    N, m = problem.n_samples, problem.n_categorical
    columns = (problem.z + problem.offsets).ravel()
    return sp.csr_array((np.ones(N * m), (np.repeat(np.arange(N), m), columns)), shape=(N, sum(problem.n_levels)))


def _widths(problem: Problem) -> dict[str, int]:
    """The variables of ``_program``, and how many there are of each."""
    N, n_b, V, m = problem.n_samples, problem.n_coefficients, sum(problem.n_levels), problem.n_categorical
    of_ball = _in_ball(problem.n_numeric).shape[1] - problem.n_numeric if _is_round(problem) else 0
    return {"d": n_b, "size": n_b, "ball": of_ball, "score": V, "top": m, "bottom": m, "up": V, "down": V, "excess": N}


def _is_round(problem: Problem) -> bool:
    """Whether the slopes of several numbers lie in a ball of the norm l2."""
    return problem.n_numeric > 1 and base_norm(problem.metric, problem.n_numeric)[0].dual_order == 2


@cache
def _in_ball(n: int) -> sp.csr_array:
    """Rows R (u, more) <= (0, ..., 0, 1) that hold for some further variables iff ||u||_2 <= 1, but for 1e-9.

    Slopes are taken in pairs, their lengths again, and so on. Reflected at lines whose angles are halved each time, a
    pair comes near the first axis, where its length is its first coordinate (Ben-Tal and Nemirovski 2001).
    """
    rows: list[dict[int, float]] = []
    queue, width = list(range(n)), n
    while len(queue) > 1:
        sides, queue = queue[:2], queue[2:]
        for at, side in enumerate(sides):
            rows += [{side: sign, width + at: -1.0} for sign in (1.0, -1.0)]
        for angle in np.pi / 2.0 ** np.arange(2, HALVINGS + 2):
            across, up = width, width + 1
            cos, sin = float(np.cos(angle)), float(np.sin(angle))
            rows.append({across: cos, up: sin, width + 2: -1.0})
            rows += [{across: -sign * sin, up: sign * cos, width + 3: -1.0} for sign in (1.0, -1.0)]
            width += 2
        rows.append({width: -float(np.tan(angle)), width + 1: 1.0})
        queue.append(width)
        width += 2
    rows.append({queue[0]: 1.0})
    entries = [(row, column, value) for row, terms in enumerate(rows) for column, value in terms.items()]
    row, column, value = zip(*entries, strict=True)
    return sp.csr_array((value, (row, column)), shape=(len(rows), width))


def _rows(problem: Problem, height: int, **blocks: sp.sparray) -> sp.sparray:
    """So many rows of a matrix that acts on these variables, made of a block for each that occurs."""
    empty = {name: sp.csr_array((height, width)) for name, width in _widths(problem).items()}
    return sp.hstack(list((empty | blocks).values()), format="csr")


def _prices(problem: Problem) -> np.ndarray:
    """Of a change of each feature: what it costs at most, inf where matrices say it; shape (m,)."""
    metric, m = problem.metric, problem.n_categorical
    if metric.level_costs is None:
        changes = metric.level_changes(m)
        return np.full(m, np.max(changes[1:] / np.arange(1, m + 1), initial=0.0))
    single = [np.inf if isinstance(costs, np.ndarray) else costs for costs in metric.level_costs]
    return metric.level_cost * np.array(single, dtype=float) / metric.scale


def _worth(problem: Problem, slope: dict[float, float], flipped: bool) -> sp.sparray:
    """t A d, with all changes that pay, of each sample with its own or the other label, by the variables."""
    N, at = problem.n_samples, _of_levels(problem)
    intercept = np.full((N, 1), float(problem.fit_intercept))
    numbers = _wide(np.hstack([intercept, problem.x]), 0, problem.n_coefficients)
    label = -problem.y if flipped else problem.y
    push = sp.diags_array(-label * _slopes(problem, flipped, slope))
    side = {sign: sp.diags_array((label == sign).astype(float)) for sign in (1.0, -1.0)}
    return _rows(problem, N, d=push @ numbers, score=push @ at, up=side[-1.0] @ at, down=side[1.0] @ at)


def _program(problem: Problem, reach: np.ndarray, slope: dict[float, float], pairs: _Pairs) -> _Program:
    """min h(d) for p = 1, as a program of size N + sum(n_levels); for another p, with all changes at the highest price.

    What a change of a feature is worth depends on its level, the label and t alone, as t is the same for all samples of
    a label. With s_v the score of level v, top and bottom the largest and the smallest of the feature,

        down_v >= t (s_v - bottom) - price,    up_v >= t (top - s_v) - price,    both >= 0,

    say what it is worth if the label is +1 or -1. Where a matrix of costs takes the place of the price, t (s_v - s_u)
    less the cost does for each pair of levels (``_pair_rows``). Where any code may come, top = -bottom is the sum of
    |d_v| over the dummies. The variables (``_widths``) are d, |d| where it is needed, s, top, bottom, up, down and, for
    every sample, by how much the other label is worth more than its own.
    """
    N, n, n_b, V = problem.n_samples, problem.n_numeric, problem.n_coefficients, sum(problem.n_levels)
    of_feature, level = _of_feature(problem), sp.eye_array(V)
    norm, _ = base_norm(problem.metric, n)
    summed = n > 1 and norm.dual_order == 1
    sized = problem.penalty > 0
    sized[1 : 1 + n] |= summed
    of_codes = np.zeros((len(problem.coded), n_b))
    for row, j in enumerate(problem.coded):
        of_codes[row, 1 + n :][problem.dummies(j)] = 1.0
    sized |= of_codes.any(axis=0)
    sizes = sp.eye_array(n_b, format="csr")[np.flatnonzero(sized)]
    prices = np.repeat(_prices(problem), problem.n_levels)
    priced = np.flatnonzero(np.isfinite(prices))
    price = prices[priced]
    own = _worth(problem, slope, False)
    rows = [
        (_rows(problem, V, score=level, top=-of_feature), np.zeros(V)),
        (_rows(problem, V, score=-level, bottom=of_feature), np.zeros(V)),
        (_rows(problem, V, score=-slope[-1.0] * level, top=slope[-1.0] * of_feature, up=-level)[priced], price),
        (_rows(problem, V, score=slope[1.0] * level, bottom=-slope[1.0] * of_feature, down=-level)[priced], price),
        (_rows(problem, sized.sum(), d=sizes, size=-sizes), np.zeros(sized.sum())),
        (_rows(problem, sized.sum(), d=-sizes, size=-sizes), np.zeros(sized.sum())),
    ]
    if True in problem.label_flips:
        kappa = np.full(N, problem.metric.label_change)
        rows.append((_worth(problem, slope, True) - own - _rows(problem, N, excess=sp.eye_array(N)), kappa))
    if len(pairs):
        rows.append((_pair_rows(problem, slope, pairs), np.tile(pairs.cost, 2)))
    if len(of_codes):
        coded, sums = sp.eye_array(problem.n_categorical, format="csr")[problem.coded], sp.csr_array(of_codes)
        for ends in ({"top": -coded}, {"bottom": coded}):
            rows.append((_rows(problem, len(of_codes), size=sums, **ends), np.zeros(len(of_codes))))
    if _is_round(problem):
        ball = _in_ball(n)
        of_numbers = _wide((ball[:, :n] @ sp.diags_array(1 / reach)).toarray(), 1, n_b)
        limit = np.append(np.zeros(ball.shape[0] - 1), 1.0)
        rows.append((_rows(problem, ball.shape[0], d=of_numbers, ball=ball[:, n:]), limit))
    if summed:
        rows.append((_rows(problem, 1, size=_wide(1 / reach[None, :], 1, n_b)), np.ones(1)))

    high = np.full(own.shape[1], np.inf)
    high[0] = np.inf if problem.fit_intercept else 0.0
    high[1 : 1 + n] = np.where(reach < 1e20, reach * norm.of_units(n), np.inf)
    low = -high
    low[-N - 2 * V :] = 0.0
    matrix = _wide(problem.level_matrix, 1 + n, n_b)
    linear = np.concatenate([np.zeros(n_b), problem.penalty, np.zeros(len(high) - 2 * n_b - N), problem.w])
    return _Program(
        # N w rather than w: the tolerances of solvers are absolute.
        q=N * (linear + own.T @ problem.w),
        A=sp.vstack([matrix for matrix, _ in rows], format="csr"),
        limit=np.concatenate([limit for _, limit in rows]),
        E=_rows(problem, V, d=-matrix, score=level),
        low=low,
        high=high,
        own=own,
    )


def _minimise_in_parts(program: _Program, N: int, method: str) -> tuple[np.ndarray, float]:
    """As ``_minimise``, but with variables for those of many samples only that are near the kink of their excess.

    The excess of sample i, which costs q_i, is max(0, B_i y - limit_i), y being all other variables. Counting it as 0,
    or as B_i y - limit_i, makes a program whose value is no larger; where no sample turns out to be on the other side
    of its kink, the value is the same. A sample of the samples gives the first guess of the sides.
    """
    of_excess = program.A[:, -N:].tocoo()
    if N <= MANY_SAMPLES or len(of_excess.row) != N or program.q[-N:].min() < 0:  # cuts have the excess in more rows
        return _minimise(program, method)
    kink, others = np.empty(N, dtype=int), np.ones(program.A.shape[0], dtype=bool)
    kink[of_excess.col], others[of_excess.row] = of_excess.row, False
    B, limit, cost = program.A[kink][:, :-N], program.limit[kink], program.q[-N:]

    def minimise(near: np.ndarray, beyond: np.ndarray, share: float) -> tuple[np.ndarray, float]:
        """y and the value with variables for the excess of the samples that are near, each for 1 / share of them."""
        rest = program.A[others]
        part = replace(
            program,
            q=np.concatenate([program.q[:-N] + B[beyond].T @ cost[beyond], cost[near] / share]),
            A=sp.vstack([rest[:, : rest.shape[1] - N + len(near)], _kinks(B[near])], format="csr"),
            limit=np.concatenate([program.limit[others], limit[near]]),
            E=program.E[:, : program.q.size - N + len(near)],
            low=program.low[: program.q.size - N + len(near)],
            high=program.high[: program.q.size - N + len(near)],
        )
        x, value = _minimise(part, method)
        return x[: len(x) - len(near)], value - float(cost[beyond] @ limit[beyond])

    some = np.arange(0, N, -(-N // MANY_SAMPLES))
    y, _ = minimise(some, some[:0], float(cost[some].sum() / cost.sum()))
    margin = B @ y - limit
    near = np.abs(margin) <= np.quantile(np.abs(margin), NEAR_KINK)
    near[some[::2]] = True  # these keep the program bounded
    while True:
        beyond = ~near & (margin > 0)
        y, value = minimise(np.flatnonzero(near), np.flatnonzero(beyond), 1.0)
        margin = B @ y - limit
        wrong = ~near & np.where(beyond, margin < -ACCURACY, margin > ACCURACY)
        if not wrong.any():
            return np.concatenate([y, np.maximum(margin, 0.0)]), value
        near |= wrong


def _kinks(B: sp.sparray) -> sp.sparray:
    """Rows B y - excess."""
    return sp.hstack([B, -sp.eye_array(B.shape[0])], format="csr")


def _minimise(program: _Program, method: str) -> tuple[np.ndarray, float]:
    """x and the value of a program.

    Raises
    ------
    ConicSolverError
        If the method does not end at an optimum.
    """
    tolerances = dict.fromkeys(("primal_feasibility_tolerance", "dual_feasibility_tolerance"), ACCURACY)
    found = minimise_linear(
        program.q,
        bounds=np.column_stack([program.low, program.high]),
        A=program.A,
        limit=program.limit,
        E=program.E,
        method=method,
        **tolerances,
    )
    if found.status != 0:
        raise ConicSolverError(f"{method}: {found.message}")
    return found.x, float(found.fun)


def _by_labels_alone(problem: Problem) -> float | None:
    """The smallest radius from which on changes of labels alone make all slopes 0; None if they never do.

    Let the class of label c have weight w_max > 1/2. While radius < kappa (w_max - 1/2 - penalty_0), the best constant
    model has c b_0 > 0 and the adversary changes labels of that class only, of sample i with some probability q_i, to
    the share s = radius / kappa of all. sigma = sigmoid(c b_0) is w_max - s - penalty_0 or, if that is above it, what
    the bound of b_0 allows. The derivatives

        rho = (1 - sigma) sum_i [y_i = c] w_i x_i - sigma sum_i [y_i != c] w_i x_i - sum_i w_i q_i x_i

    must be within the penalties for all slopes to be 0: conditions that are linear in q and s on either side of the
    bound, so that s fills an interval on each. What counts is whether it reaches the largest s.

    Changes of levels that cost nothing come on top of those of labels.
    """
    kappa = problem.metric.label_change
    share = float(problem.w[problem.y > 0].sum())
    w_max, majority = max(share, 1 - share), problem.y == (1.0 if share > 0.5 else -1.0)
    end = w_max - 0.5 - float(problem.penalty[0])
    if not problem.fit_intercept or np.isinf(kappa) or end <= ACCURACY:
        return None
    most = float(expit(problem.coef_bound[0]))
    free_from = max(w_max - most - float(problem.penalty[0]), 0.0)  # where the bound ceases to bind
    least = _share_of_labels(problem, majority, None, free_from, end)
    if least is None:
        return None
    if free_from > 0 and least <= free_from * (1 + ACCURACY):
        bound = _share_of_labels(problem, majority, most, 0.0, free_from)
        least = least if bound is None else bound
    return kappa * least


def _holds(problem: Problem, majority: np.ndarray, share: float) -> bool:
    """Whether changes of this share of labels can make all slopes 0, with b_0 at its best within no bound."""
    sigma = float(problem.w[majority].sum()) - share - float(problem.penalty[0])
    return _share_of_labels(problem, majority, sigma, share, share) is not None


def _smallest(holds: Callable[[float], bool], start: float, end: float) -> float | None:
    """From where on in [start, end] something holds, by bisection; None if it does not at the end."""
    if not holds(end):
        return None
    if holds(start):
        return start
    while end - start > ACCURACY * end:
        middle = (start + end) / 2
        start, end = (start, middle) if holds(middle) else (middle, end)
    return end


def _share_of_labels(
    problem: Problem, majority: np.ndarray, sigma: float | None, start: float, end: float
) -> float | None:
    """The smallest share s in [start, end] of changed labels that, like ``end``, makes all slopes 0; None if none does.

    sigma is given, or follows from s. Where levels can be changed at no cost, the conditions are linear for a given
    sigma only, but if they hold for s, and penalty_0 is 0, so do they for more: with any further part of the larger
    class's labels changed, the derivatives shrink by the factor by which sigma does.
    """
    pairs = _pairs(problem)
    free = pairs[pairs.cost == 0]
    if sigma is None and len(free):
        return _smallest(partial(_holds, problem, majority), start, end)
    N, n, w = problem.n_samples, problem.n_numeric, problem.w
    centre = problem.means
    x = problem.x - centre
    size = np.abs(x).max(axis=0, initial=0.0)
    size[size == 0] = 1.0
    w_max, w_min, penalty_0 = w[majority].sum(), w[~majority].sum(), problem.penalty[0]
    at = problem.level_matrix
    if sigma is None and penalty_0 == 0 and not problem.penalty[1 + n :].any():
        # With an intercept at its best these are the same conditions, each on the mass of one level, however rare.
        at = sp.eye_array(at.shape[0], format="csr")
    categories = [at[first + z] for first, z in zip(problem.offsets, problem.z.T, strict=True)]
    features = sp.csr_array(sp.hstack([sp.csr_array(x / size), sum(categories, sp.csr_array((N, at.shape[1])))]))
    major, minor = features[majority].T @ w[majority], features[~majority].T @ w[~majority]
    far = np.concatenate([centre / size, np.zeros(len(major) - n)])
    # rho is constant + s steep - sum_i w_i q_i x_i; where numbers are not centred, that of the intercept is in it.
    if sigma is None:
        constant, steep = (w_min + penalty_0) * major - (w_max - penalty_0) * minor + penalty_0 * far, major + minor
    else:
        constant, steep = (1 - sigma) * major - sigma * minor + (w_max - sigma) * far, -far
    penalty = np.zeros(len(major))
    penalty[:n] = problem.numeric(problem.penalty) / size
    if at.shape[1] == problem.level_matrix.shape[1]:
        penalty[n:] = problem.penalty[1 + n :]
    # The variables are N s, N w_i q_i and N times the masses of ``_free_moves``. Solvers have absolute tolerances: each
    # condition is counted in the mean size of its feature, the masses in that of the smaller class if few labels do.
    mean_size = abs(features).T @ w
    mean_size[mean_size == 0] = 1.0
    balance = sp.diags_array(1.0 / mean_size) @ sp.hstack([sp.csr_array(steep[:, None]), -features[majority].T])
    limits = np.concatenate([penalty - constant, penalty + constant]) / np.tile(mean_size, 2)
    moved, room, mass = _free_moves(problem, majority, free, sigma or 0.0)
    of_moves = sp.vstack([sp.csr_array((n, moved.shape[1])), at.T @ moved])
    balance = sp.hstack([balance, sp.diags_array(1.0 / mean_size) @ of_moves])
    ones = np.concatenate([np.ones(majority.sum()), np.zeros(moved.shape[1])])[None, :]
    most = np.concatenate([w[majority], np.full(moved.shape[1], np.inf)])
    least = None
    for low, high, unit in ((end, end, 1.0), (start, end, 1.0), (start, end, float(w_min))):
        if unit < 1 and (least is None or least > 1e-3):
            break
        found = minimise_linear(
            np.r_[1.0, np.zeros(ones.size)],
            bounds=N / unit * np.column_stack([np.r_[low, np.zeros(ones.size)], np.r_[high, most]]),
            A=sp.vstack([balance, -balance, room], format="csr"),
            limit=N / unit * np.concatenate([limits, mass]),
            E=sp.csr_array(np.column_stack([[[-1.0]], ones])),
            primal_feasibility_tolerance=ACCURACY,
        )
        if found.status != 0:
            return least
        least = float(found.fun) * unit / N
    return least


def _free_moves(
    problem: Problem, majority: np.ndarray, free: _Pairs, sigma: float
) -> tuple[sp.sparray, sp.sparray, np.ndarray]:
    """What changes of levels at no cost do: from the larger class, from its changed labels and from the smaller class.

    Returns
    -------
    moved : sparse array of shape (sum(n_levels), 3 P)
        By how much the derivatives by the scores change if such mass moves.
    room, mass : sparse array of 1 + (size of the larger class) + 3 P columns, ndarray
        room @ (s, w_i q_i, masses that move) <= mass: no more than there is leaves a level.
    """
    level = sp.eye_array(sum(problem.n_levels), format="csr")
    sources = np.unique(free.old)
    held = _of_levels(problem)[:, sources].T
    major, minor, none = held[:, majority], held[:, ~majority], np.zeros(len(sources))
    left = sp.kron(sp.eye_array(3), level[free.old][:, sources].T)
    room = sp.hstack([sp.csr_array((left.shape[0], 1)), sp.vstack([major, -major, 0 * major]), left])
    mass = np.concatenate([major @ problem.w[majority], none, minor @ problem.w[~majority]])
    gain = (level[free.new] - level[free.old]).T
    return sp.hstack([(1 - sigma) * gain, -sigma * gain, -sigma * gain]), room, mass
