"""The smallest radius at which the adversary makes all slopes 0: the counterpart of the Lasso's largest penalty."""

from __future__ import annotations

import logging
from dataclasses import replace

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
from wdrlr.solvers.labels_alone import radius_of_labels_alone
from wdrlr.solvers.slope_program import (
    ACCURACY,
    level_pairs,
    minimise,
    minimise_in_parts,
    missed_pairs,
    pair_rows,
    slope_program,
    slopes_of,
    wide,
    with_rows,
)

logger = logging.getLogger("wdrlr")

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

MOST_ROUNDS = 300
"""Of cuts; on small problems some dozens do."""

MOST_PAIRS = 20_000
"""Of levels in matrices of costs. If there are more, only those that matter are in the program, found as cuts are."""

LINEAR_METHODS = ("highs-ipm", "highs-ds")
"""Tried in this order: on thousands of rows the simplex method is slower, and gives up more often."""


def largest_useful_radius(problem: Problem) -> float:
    """The smallest radius from which on all slopes are 0 at the optimum; ``problem.radius`` itself plays no role.

    In terms of distributions: the least transport cost that makes every feature useless for predicting the label.
    Changing labels alone may do (``radius_of_labels_alone``). If not, the best constant model at that radius is the one
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
    radius = radius_of_labels_alone(problem)
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
        push = problem.w * problem.y * slopes_of(problem, False, slope)
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
    program = slope_program(far, np.ones(problem.n_numeric), slope, level_pairs(far))
    first, last = 1 + problem.n_numeric, problem.n_coefficients
    program.high[first:last], program.low[first:last] = 1.0, -1.0
    return minimise(program, "highs")[1] < -ACCURACY * problem.n_samples


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
    pairs = level_pairs(problem)
    all_pairs = len(pairs) <= MOST_PAIRS
    # On a scale of levels these are steps of lengths 1, 1, 2, 4, ..., which come near what the others demand.
    rank = np.arange(len(pairs)) - np.searchsorted(pairs.old, pairs.old)
    kept = all_pairs | (rank & (rank + 1) == 0)
    program = slope_program(problem, reach, slope, pairs[kept])
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
        x, value = minimise_in_parts(program, N, method)
        d, upper = x[:n_b].copy(), -value / N
        missed = ~kept & missed_pairs(problem, slope, pairs, x)
        if missed.any():
            kept |= missed
            program = with_rows(program, pair_rows(problem, slope, pairs[missed]), np.tile(pairs.cost[missed], 2))
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
            t = slopes_of(problem, new.flipped, slope, new.sample)
            rows.append(wide(t[:, None] * new.rows(problem), 0, x.size) - (program.own + excess)[new.sample])
            limits.append(new.costs(problem))
        if outside:
            rows.append(wide((norm.steepest(problem.numeric(d) / reach) / reach)[None, :], 1, x.size))
            limits.append(np.ones(1))
        program = with_rows(program, sp.vstack(rows), np.concatenate(limits))
    if abs(upper - lower) > WIDTH * max(upper, lower, 1e-3):
        raise ConicSolverError(f"{method} found {upper:.9g} where there is {lower:.9g}")
    return lower if lower > ROUNDING else 0.0


def _h(problem: Problem, slope: dict[float, float], d: np.ndarray) -> float:
    """h(d) by Algorithm 2."""
    worst = np.full(problem.n_samples, -np.inf)
    for flipped, found in zip(problem.label_flips, candidates(problem, d), strict=True):
        values = slopes_of(problem, flipped, slope)[:, None] * found.argument - found.cost
        worst = np.maximum(worst, values.max(axis=1))
    return float(problem.w @ worst) + problem.penalty_value(d)


def _violated(problem: Problem, slope: dict[float, float], d: np.ndarray, s: np.ndarray) -> Cuts:
    """The most violated cut of every sample and label, if there is one."""
    cuts = []
    for flipped, found in zip(problem.label_flips, candidates(problem, d), strict=True):
        values = slopes_of(problem, flipped, slope)[:, None] * found.argument - found.cost
        above = np.flatnonzero(values.max(axis=1) > s + ACCURACY)
        z = changed(problem, found, np.argmax(values, axis=1))[above]
        cuts.append(Cuts(above, z, np.full(len(above), flipped)))
    return join(*cuts)


def _length(problem: Problem, d: np.ndarray, reach: np.ndarray) -> float:
    """metric.dual_norm(d_N), whatever the units; the numbers' slopes must have at most 1."""
    n = problem.n_numeric
    return base_norm(problem.metric, n)[0].dual(problem.numeric(d) / reach) if n else 0.0
