"""The smallest radius at which the adversary makes all slopes 0: the counterpart of the Lasso's largest penalty."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from scipy.special import expit

from wdrlr.model.cuts import Cuts, join
from wdrlr.model.problem import Problem
from wdrlr.model.separation import candidates, changed
from wdrlr.solvers import conic
from wdrlr.solvers.closed_form import best_constant
from wdrlr.solvers.conic import ConicProgram, ConicSolverError

logger = logging.getLogger("wdrlr")

ACCURACY = 1e-9
"""In a problem's own units: to this the programs are solved, and what is smaller is left out."""

ROUNDING = 1e-12
"""Of a value of h in a problem's own units."""

LARGEST_PENALTY = 4.0
"""A penalty that leaves every slope 0 in a problem's own units; what is larger only spoils a solver's tolerances."""

MOST_ROUNDS = 300
"""Of cuts; on small problems some dozens do."""

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

    so the model is optimal iff radius >= -min h (``_steepest``). Bounds on slopes, which are not active at 0, play no
    role; that of the intercept does where it binds the best constant model.

    Returns
    -------
    float
        In units of the metric. inf if at every radius some slope is not 0, which takes labels that cannot be changed,
        an intercept that is absent or bounded, and slopes that can stand in for it.

    Raises
    ------
    ConicSolverError
        If none of the solvers tried finds it.
    """
    radius = _by_labels_alone(problem)
    return _steepest(problem) if radius is None else radius


def _steepest(problem: Problem) -> float:
    """-min h(d), found in the largest of the problem's own units, and in smaller ones while it is small there."""
    # Any radius but 0, where nothing can be changed.
    problem = replace(problem, radius=1.0)
    flips = np.isfinite(problem.metric.label_change)
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
        if _endless(problem, slope):
            return np.inf
    if anywhere:
        problem = replace(problem, x=problem.x - _centre(problem))
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
    distances = (sizes * metric.number_norm.of_units(problem.n_numeric) / metric.scale).tolist()
    if sum(problem.n_levels) > problem.n_categorical:
        distances.append(metric.typical_change(problem.n_categorical))
    if np.isfinite(kappa):
        # No radius above kappa / 2 is needed; and what balances the classes' sizes is.
        surplus = _surplus(problem) if problem.fit_intercept else 0.0
        distances = [min(distance, kappa) for distance in distances] + [kappa * surplus] * (surplus > ACCURACY)
    return sorted({distance for distance in distances if distance > 0}, reverse=True)


def _centre(problem: Problem) -> np.ndarray:
    """The means of the numbers, exact where a column is constant, so that rounding leaves nothing of it."""
    return np.clip(problem.w @ problem.x, problem.x.min(axis=0), problem.x.max(axis=0))


def _surplus(problem: Problem) -> float:
    """What the larger class has beyond half of the weight, and beyond the penalty of b_0; 0 within rounding."""
    surplus = abs(float(problem.w[problem.y > 0].sum()) - 0.5) - float(problem.penalty[0])
    return surplus if surplus > 1e-14 else 0.0


def _endless(problem: Problem, slope: dict[float, float]) -> bool:
    """Whether h falls for ever along some slopes of categories, when labels cannot be changed and d_0 = 0.

    Costs do not count far out, where samples of label +1 have the lowest score of all levels, the others the highest.
    """
    V, m, k = len(problem.level_matrix), problem.n_categorical, problem.level_matrix.shape[1]
    if k == 0:
        return False
    force = {label: slope[label] * float(problem.w[problem.y == label].sum()) for label in (1.0, -1.0)}
    of_feature = _of_feature(problem)
    matrix = sp.csr_array(problem.level_matrix)
    # The variables are slopes, plus less minus, and each feature's highest and lowest score.
    above = sp.hstack([matrix, -matrix, -of_feature, sp.csr_array((V, m))])
    below = sp.hstack([-matrix, matrix, sp.csr_array((V, m)), of_feature])
    penalty = problem.penalty[1 + problem.n_numeric :]
    found = linprog(
        np.concatenate([penalty, penalty, np.full(m, force[-1.0]), np.full(m, -force[1.0])]),
        A_ub=sp.vstack([above, below], format="csr"),
        b_ub=np.zeros(2 * V),
        bounds=[(0.0, 1.0)] * (2 * k) + [(None, None)] * (2 * m),
        method="highs",
    )
    return found.status == 0 and found.fun < -ACCURACY


def _in_unit(problem: Problem, unit: float, slope: dict[float, float]) -> float:
    """-min h(d), with distances counted in ``unit`` and every number in that of its column."""
    size = np.abs(problem.x).max(axis=0, initial=0.0)
    # The largest slope of each number alone, in a norm that is 1 at the unit vectors; it is worth no more than that.
    reach = size / problem.metric.scale / unit
    nothing = reach * problem.metric.number_norm.of_units(problem.n_numeric) < ACCURACY
    size[nothing] = reach[nothing] = 1.0
    factor = np.ones(problem.n_coefficients)
    factor[1 : 1 + problem.n_numeric] = size
    own = replace(
        problem,
        x=np.where(nothing, 0.0, problem.x / size),
        # Scores far beyond kappa are of no use, so that a level need not cost more.
        metric=replace(
            problem.metric,
            scale=problem.metric.scale * unit,
            level_cost=min(problem.metric.level_cost, 1e4 * problem.metric.label_cost),
        ),
        penalty=np.minimum(problem.penalty / factor, LARGEST_PENALTY),
    )
    labels_cost_much = 1e3 * (problem.n_numeric + problem.n_categorical) < own.metric.label_change < np.inf
    if labels_cost_much and _surplus(problem) == 0:
        # d_0 is worth nothing before it makes changes of labels pay, but a large one times rounding would be.
        own = replace(own, fit_intercept=False)
    cone = problem.n_numeric > 1 and problem.metric.number_norm.dual_order == 2
    methods = ("CLARABEL", *LINEAR_METHODS) if cone else LINEAR_METHODS
    for method in methods:
        try:
            return _by_cuts(own, reach, slope, method)
        except ConicSolverError as error:
            logger.info("largest useful radius: %s", error)
    raise ConicSolverError(
        f"the largest useful radius was not found by {', '.join(methods)}. Rescale or leave out columns whose numbers "
        "are much larger than those of others, or hardly differ; or narrow it down by fits: slopes are 0 from it on."
    )


def _by_cuts(problem: Problem, reach: np.ndarray, slope: dict[float, float], method: str) -> float:
    """-min h(d): a program that knows less than h, and cuts to make up for it until it finds what h has at its d.

    For p = 1 the program knows all of h, unless tangents stand for the ball of the dual norm.
    """
    program = _program(problem, reach, slope)
    N, n_b, n, norm = problem.n_samples, problem.n_coefficients, problem.n_numeric, problem.metric.number_norm
    excess = sp.eye_array(N, program.q.size, k=program.q.size - N, format="csr")
    known: set = set()
    tangents = n > 1 and (norm.dual_order is None or (norm.dual_order == 2 and method != "CLARABEL"))
    for _ in range(MOST_ROUNDS):
        x, value = _minimise(program, method)
        d, upper = x[:n_b].copy(), -value / N
        new = _violated(problem, slope, d, (program.own + excess) @ x)
        new = new[np.array([key not in known for key in new.keys()], dtype=bool)]
        known.update(new.keys())
        length = _length(problem, d, reach)
        d /= max(length, 1.0)
        lower = -_h(problem, slope, d)
        outside = tangents and length > 1 + ACCURACY
        if upper - lower <= ACCURACY * max(upper, lower) or not (len(new) or outside):
            break
        rows, limits = [program.A], [program.limit]
        if len(new):
            t = _slopes(problem, new.flipped, slope, new.sample)
            rows.append(_wide(t[:, None] * new.rows(problem), 0, x.size) - (program.own + excess)[new.sample])
            limits.append(new.costs(problem))
        if outside:
            rows.append(_wide((norm.steepest(problem.numeric(d) / reach) / reach)[None, :], 1, x.size))
            limits.append(np.ones(1))
        program = replace(program, A=sp.vstack(rows, format="csr"), limit=np.concatenate(limits))
    if abs(upper - lower) > 1e-7 * max(upper, lower, 1e-3):
        raise ConicSolverError(f"{method} found {upper:.9g} where there is {lower:.9g}")
    return lower if lower > ROUNDING else 0.0


def _wide(columns: np.ndarray, first: int, width: int) -> sp.sparray:
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
    for flipped in problem.label_flips:
        found = candidates(problem, d, flipped)
        values = _slopes(problem, flipped, slope)[:, None] * found.argument - found.cost
        worst = np.maximum(worst, values.max(axis=1))
    return float(problem.w @ worst) + problem.penalty_value(d)


def _violated(problem: Problem, slope: dict[float, float], d: np.ndarray, s: np.ndarray) -> Cuts:
    """The most violated cut of every sample and label, if there is one."""
    cuts = []
    for flipped in problem.label_flips:
        found = candidates(problem, d, flipped)
        values = _slopes(problem, flipped, slope)[:, None] * found.argument - found.cost
        above = np.flatnonzero(values.max(axis=1) > s + ACCURACY)
        z = changed(problem, found, np.argmax(values, axis=1))[above]
        cuts.append(Cuts(above, z, np.full(len(above), flipped)))
    return join(*cuts)


def _length(problem: Problem, d: np.ndarray, reach: np.ndarray) -> float:
    """metric.dual_norm(d_N), whatever the units; the numbers' slopes must have at most 1."""
    return problem.metric.number_norm.dual(problem.numeric(d) / reach) if problem.n_numeric else 0.0


@dataclass(frozen=True, eq=False)
class _Program:
    """minimise q.x  subject to  A x <= limit,  E x = 0,  low <= x <= high,  ||ball x|| <= 1.

    own @ x and the last N variables are the two parts of max_c [ t_c A_c d - cost_c ].
    """

    q: np.ndarray
    A: sp.sparray
    limit: np.ndarray
    E: sp.sparray
    low: np.ndarray
    high: np.ndarray
    ball: sp.sparray | None
    own: sp.sparray


def _of_feature(problem: Problem) -> sp.sparray:
    """Which level belongs to which feature; shape (sum(n_levels), m)."""
    V, m = sum(problem.n_levels), problem.n_categorical
    return sp.csr_array((np.ones(V), (np.arange(V), np.repeat(np.arange(m), problem.n_levels))), shape=(V, m))


def _widths(problem: Problem) -> dict[str, int]:
    """The variables of ``_program``, and how many there are of each."""
    N, n_b, V, m = problem.n_samples, problem.n_coefficients, sum(problem.n_levels), problem.n_categorical
    return {"d": n_b, "size": n_b, "score": V, "top": m, "bottom": m, "up": V, "down": V, "excess": N}


def _rows(problem: Problem, height: int, **blocks: sp.sparray) -> sp.sparray:
    """So many rows of a matrix that acts on these variables, made of a block for each that occurs."""
    empty = {name: sp.csr_array((height, width)) for name, width in _widths(problem).items()}
    return sp.hstack(list((empty | blocks).values()), format="csr")


def _worth(problem: Problem, slope: dict[float, float], flipped: bool) -> sp.sparray:
    """t A d, with all changes that pay, of each sample with its own or the other label, by the variables."""
    N, m = problem.n_samples, problem.n_categorical
    columns = (problem.z + problem.offsets).ravel()
    at = sp.csr_array((np.ones(N * m), (np.repeat(np.arange(N), m), columns)), shape=(N, sum(problem.n_levels)))
    intercept = np.full((N, 1), float(problem.fit_intercept))
    numbers = _wide(np.hstack([intercept, problem.x]), 0, problem.n_coefficients)
    label = -problem.y if flipped else problem.y
    push = sp.diags_array(-label * _slopes(problem, flipped, slope))
    side = {sign: sp.diags_array((label == sign).astype(float)) for sign in (1.0, -1.0)}
    return _rows(problem, N, d=push @ numbers, score=push @ at, up=side[-1.0] @ at, down=side[1.0] @ at)


def _program(problem: Problem, reach: np.ndarray, slope: dict[float, float]) -> _Program:
    """min h(d) for p = 1, as a program of size N + sum(n_levels); for another p, with all changes at the highest price.

    What a change of a feature is worth depends on its level, the label and t alone, as t is the same for all samples of
    a label. With s_v the score of level v, top and bottom the largest and the smallest of the feature,

        down_v >= t (s_v - bottom) - price,    up_v >= t (top - s_v) - price,    both >= 0,

    say what it is worth if the label is +1 or -1. The variables (``_widths``) are d, |d| where it is needed, s, top,
    bottom, up, down and, for every sample, by how much the other label is worth more than its own.
    """
    N, n, n_b, V = problem.n_samples, problem.n_numeric, problem.n_coefficients, sum(problem.n_levels)
    of_feature, level = _of_feature(problem), sp.eye_array(V)
    norm = problem.metric.number_norm
    summed = n > 1 and norm.dual_order == 1
    sized = problem.penalty > 0
    sized[1 : 1 + n] |= summed
    sizes = sp.eye_array(n_b, format="csr")[np.flatnonzero(sized)]
    changes = problem.metric.level_changes(problem.n_categorical)
    price = np.full(V, np.max(changes[1:] / np.arange(1, problem.n_categorical + 1), initial=0.0))
    own = _worth(problem, slope, False)
    rows = [
        (_rows(problem, V, score=level, top=-of_feature), np.zeros(V)),
        (_rows(problem, V, score=-level, bottom=of_feature), np.zeros(V)),
        (_rows(problem, V, score=-slope[-1.0] * level, top=slope[-1.0] * of_feature, up=-level), price),
        (_rows(problem, V, score=slope[1.0] * level, bottom=-slope[1.0] * of_feature, down=-level), price),
        (_rows(problem, sized.sum(), d=sizes, size=-sizes), np.zeros(sized.sum())),
        (_rows(problem, sized.sum(), d=-sizes, size=-sizes), np.zeros(sized.sum())),
    ]
    if True in problem.label_flips:
        kappa = np.full(N, problem.metric.label_change)
        rows.append((_worth(problem, slope, True) - own - _rows(problem, N, excess=sp.eye_array(N)), kappa))
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
        ball=_rows(problem, n, d=_wide(np.diag(1 / reach), 1, n_b)) if n > 1 and norm.dual_order == 2 else None,
        own=own,
    )


def _minimise(program: _Program, method: str) -> tuple[np.ndarray, float]:
    """x and the value of a program; without ``ball`` unless the method is CLARABEL.

    Raises
    ------
    ConicSolverError
        If the method does not end at an optimum.
    """
    if method != "CLARABEL":
        tolerances = dict.fromkeys(("primal_feasibility_tolerance", "dual_feasibility_tolerance"), ACCURACY)
        found = linprog(
            program.q,
            A_ub=program.A,
            b_ub=program.limit,
            A_eq=program.E,
            b_eq=np.zeros(program.E.shape[0]),
            bounds=np.column_stack([program.low, program.high]),
            method=method,
            options=tolerances,
        )
        if found.status != 0:
            raise ConicSolverError(f"{method}: {found.message}")
        return found.x, float(found.fun)
    assert program.ball is not None
    one = sp.eye_array(program.q.size, format="csr")
    above, below = np.flatnonzero(np.isfinite(program.high)), np.flatnonzero(np.isfinite(program.low))
    matrices = [program.E, program.A, one[above], -one[below], sp.csr_array((1, program.q.size)), -program.ball]
    limits = [np.zeros(program.E.shape[0]), program.limit, program.high[above], -program.low[below]]
    n = program.ball.shape[0]
    posed = ConicProgram(
        q=program.q,
        A=sp.vstack(matrices),
        h=np.concatenate([*limits, np.ones(1), np.zeros(n)]),
        zero=program.E.shape[0],
        nonnegative=sum(map(len, limits[1:])),
        second_order=(1 + n,),
        exponential=0,
    )
    found = conic.solve_conic(posed, method)
    return found.x, found.value


def _by_labels_alone(problem: Problem) -> float | None:
    """The smallest radius from which on changes of labels alone make all slopes 0; None if they never do.

    Let the class of label c have weight w_max > 1/2. While radius < kappa (w_max - 1/2 - penalty_0), the best constant
    model has c b_0 > 0 and the adversary changes labels of that class only, of sample i with some probability q_i, to
    the share s = radius / kappa of all. sigma = sigmoid(c b_0) is w_max - s - penalty_0 or, if that is above it, what
    the bound of b_0 allows. The derivatives

        rho = (1 - sigma) sum_i [y_i = c] w_i x_i - sigma sum_i [y_i != c] w_i x_i - sum_i w_i q_i x_i

    must be within the penalties for all slopes to be 0: conditions that are linear in q and s on either side of the
    bound, so that s fills an interval on each. What counts is whether it reaches the largest s.
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


def _share_of_labels(
    problem: Problem, majority: np.ndarray, sigma: float | None, start: float, end: float
) -> float | None:
    """The smallest share s in [start, end] of changed labels that, like ``end``, makes all slopes 0; None if none does.

    sigma is given, or follows from s.
    """
    N, n, w = problem.n_samples, problem.n_numeric, problem.w
    centre = _centre(problem)
    x = problem.x - centre
    size = np.abs(x).max(axis=0, initial=0.0)
    size[size == 0] = 1.0
    w_max, w_min, penalty_0 = w[majority].sum(), w[~majority].sum(), problem.penalty[0]
    slopes = problem.level_matrix
    if sigma is None and penalty_0 == 0 and not problem.penalty[1 + n :].any():
        # With an intercept at its best these are the same conditions, each on the mass of one level, however rare.
        slopes = np.eye(len(slopes))
    at = sp.csr_array(slopes)
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
    # The variables are N s and N w_i q_i. The tolerances of solvers are absolute: each condition is counted in the mean
    # size of its feature, and the masses in that of the smaller class if few labels do.
    mean_size = abs(features).T @ w
    mean_size[mean_size == 0] = 1.0
    balance = sp.diags_array(1.0 / mean_size) @ sp.hstack([sp.csr_array(steep[:, None]), -features[majority].T])
    limits = np.concatenate([penalty - constant, penalty + constant]) / np.tile(mean_size, 2)
    ones = np.ones((1, majority.sum()))
    least = None
    for low, high, unit in ((end, end, 1.0), (start, end, 1.0), (start, end, float(w_min))):
        if unit < 1 and (least is None or least > 1e-3):
            break
        found = linprog(
            np.r_[1.0, np.zeros(majority.sum())],
            A_ub=sp.vstack([balance, -balance], format="csr"),
            b_ub=N / unit * limits,
            A_eq=sp.csr_array(np.column_stack([[[-1.0]], ones])),
            b_eq=[0.0],
            bounds=N / unit * np.column_stack([np.r_[low, np.zeros(majority.sum())], np.r_[high, w[majority]]]),
            method="highs",
            options={"primal_feasibility_tolerance": ACCURACY},
        )
        if found.status != 0:
            return least
        least = float(found.fun) * unit / N
    return least
