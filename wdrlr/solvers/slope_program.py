"""The linear program behind the largest useful radius: min h(d), see ``largest_radius``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from wdrlr.model.problem import Problem
from wdrlr.solvers.conic import ConicSolverError
from wdrlr.solvers.half_slopes import base_norm
from wdrlr.solvers.linear import minimise_linear

ACCURACY = 1e-9
"""In a problem's own units: to this the programs are solved, and what is smaller is left out."""

HALVINGS = 16
"""Of the angle in which a pair of slopes lies: the radius is then too large by 1e-9 of itself at most."""

MANY_SAMPLES = 6_000
"""With more, most of them are counted on one side of a kink, see ``minimise_in_parts``."""

NEAR_KINK = 0.2
"""The share of the samples that have variables of their own then, before others turn out to need them."""


@dataclass(frozen=True, eq=False)
class SlopeProgram:
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


@dataclass(frozen=True, eq=False)
class LevelPairs:
    """The P changes of levels that have finite costs in matrices; levels are numbered over all features."""

    old: np.ndarray  # (P,)
    new: np.ndarray  # (P,)
    cost: np.ndarray  # (P,): in units of the metric

    def __len__(self) -> int:
        return len(self.cost)

    def __getitem__(self, index: Any) -> LevelPairs:
        return LevelPairs(self.old[index], self.new[index], self.cost[index])


def level_pairs(problem: Problem) -> LevelPairs:
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
    return LevelPairs(old[order].astype(int), new[order].astype(int), cost[order])


def slopes_of(
    problem: Problem, flipped: np.ndarray | bool, slope: dict[float, float], sample: Any = slice(None)
) -> np.ndarray:
    """t_c of the cuts of these samples with their own or the other label."""
    return np.where((problem.y[sample] > 0) != flipped, slope[1.0], slope[-1.0])


def slope_program(problem: Problem, reach: np.ndarray, slope: dict[float, float], pairs: LevelPairs) -> SlopeProgram:
    """min h(d) for p = 1, as a program of size N + sum(n_levels); for another p, with all changes at the highest price.

    What a change of a feature is worth depends on its level, the label and t alone, as t is the same for all samples of
    a label. With s_v the score of level v, top and bottom the largest and the smallest of the feature,

        down_v >= t (s_v - bottom) - price,    up_v >= t (top - s_v) - price,    both >= 0,

    say what it is worth if the label is +1 or -1. Where a matrix of costs takes the place of the price, t (s_v - s_u)
    less the cost does for each pair of levels (``pair_rows``). Where any code may come, top = -bottom is the sum of
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
        rows.append((pair_rows(problem, slope, pairs), np.tile(pairs.cost, 2)))
    if len(of_codes):
        coded, sums = sp.eye_array(problem.n_categorical, format="csr")[problem.coded], sp.csr_array(of_codes)
        for ends in ({"top": -coded}, {"bottom": coded}):
            rows.append((_rows(problem, len(of_codes), size=sums, **ends), np.zeros(len(of_codes))))
    if _is_round(problem):
        ball = _in_ball(n)
        of_numbers = wide((ball[:, :n] @ sp.diags_array(1 / reach)).toarray(), 1, n_b)
        limit = np.append(np.zeros(ball.shape[0] - 1), 1.0)
        rows.append((_rows(problem, ball.shape[0], d=of_numbers, ball=ball[:, n:]), limit))
    if summed:
        rows.append((_rows(problem, 1, size=wide(1 / reach[None, :], 1, n_b)), np.ones(1)))

    high = np.full(own.shape[1], np.inf)
    high[0] = np.inf if problem.fit_intercept else 0.0
    high[1 : 1 + n] = np.where(reach < 1e20, reach * norm.of_units(n), np.inf)
    low = -high
    low[-N - 2 * V :] = 0.0
    matrix = wide(problem.level_matrix, 1 + n, n_b)
    linear = np.concatenate([np.zeros(n_b), problem.penalty, np.zeros(len(high) - 2 * n_b - N), problem.w])
    return SlopeProgram(
        # N w rather than w: the tolerances of solvers are absolute.
        q=N * (linear + own.T @ problem.w),
        A=sp.vstack([matrix for matrix, _ in rows], format="csr"),
        limit=np.concatenate([limit for _, limit in rows]),
        E=_rows(problem, V, d=-matrix, score=level),
        low=low,
        high=high,
        own=own,
    )


def _worth(problem: Problem, slope: dict[float, float], flipped: bool) -> sp.sparray:
    """t A d, with all changes that pay, of each sample with its own or the other label, by the variables."""
    N, at = problem.n_samples, of_levels(problem)
    intercept = np.full((N, 1), float(problem.fit_intercept))
    numbers = wide(np.hstack([intercept, problem.x]), 0, problem.n_coefficients)
    label = -problem.y if flipped else problem.y
    push = sp.diags_array(-label * slopes_of(problem, flipped, slope))
    side = {sign: sp.diags_array((label == sign).astype(float)) for sign in (1.0, -1.0)}
    return _rows(problem, N, d=push @ numbers, score=push @ at, up=side[-1.0] @ at, down=side[1.0] @ at)


def _prices(problem: Problem) -> np.ndarray:
    """Of a change of each feature: what it costs at most, inf where matrices say it; shape (m,)."""
    metric, m = problem.metric, problem.n_categorical
    if metric.level_costs is None:
        changes = metric.level_changes(m)
        return np.full(m, np.max(changes[1:] / np.arange(1, m + 1), initial=0.0))
    single = [np.inf if isinstance(costs, np.ndarray) else costs for costs in metric.level_costs]
    return metric.level_cost * np.array(single, dtype=float) / metric.scale


def _of_feature(problem: Problem) -> sp.sparray:
    """Which level belongs to which feature; shape (sum(n_levels), m)."""
    V, m = sum(problem.n_levels), problem.n_categorical
    return sp.csr_array((np.ones(V), (np.arange(V), np.repeat(np.arange(m), problem.n_levels))), shape=(V, m))


def of_levels(problem: Problem) -> sp.sparray:
    """Which levels each sample has; shape (N, sum(n_levels))."""
    N, m = problem.n_samples, problem.n_categorical
    columns = (problem.z + problem.offsets).ravel()
    return sp.csr_array((np.ones(N * m), (np.repeat(np.arange(N), m), columns)), shape=(N, sum(problem.n_levels)))


def _rows(problem: Problem, height: int, **blocks: sp.sparray) -> sp.sparray:
    """So many rows of a matrix that acts on these variables, made of a block for each that occurs."""
    empty = {name: sp.csr_array((height, width)) for name, width in _widths(problem).items()}
    return sp.hstack(list((empty | blocks).values()), format="csr")


def _widths(problem: Problem) -> dict[str, int]:
    """The variables of ``slope_program``, and how many there are of each."""
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


def pair_rows(problem: Problem, slope: dict[float, float], pairs: LevelPairs) -> sp.sparray:
    """The left-hand sides, at most the costs of the pairs, of what their changes are worth for labels -1 and +1."""
    level = sp.eye_array(sum(problem.n_levels), format="csr")
    gain = level[pairs.new] - level[pairs.old]
    raised = _rows(problem, len(pairs), score=slope[-1.0] * gain, up=-level[pairs.old])
    lowered = _rows(problem, len(pairs), score=-slope[1.0] * gain, down=-level[pairs.old])
    return sp.vstack([raised, lowered], format="csr")


def missed_pairs(problem: Problem, slope: dict[float, float], pairs: LevelPairs, x: np.ndarray) -> np.ndarray:
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


def with_rows(program: SlopeProgram, rows: sp.sparray, limit: np.ndarray) -> SlopeProgram:
    """The program with more rows of A x <= limit."""
    A = sp.vstack([program.A, rows], format="csr")
    return replace(program, A=A, limit=np.concatenate([program.limit, limit]))


def wide(columns: np.ndarray | sp.sparray, first: int, width: int) -> sp.sparray:
    """The columns from ``first`` on, among so many."""
    height, n_columns = columns.shape
    after = sp.csr_array((height, width - first - n_columns))
    return sp.hstack([sp.csr_array((height, first)), sp.csr_array(columns), after], format="csr")


def minimise(program: SlopeProgram, method: str) -> tuple[np.ndarray, float]:
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


def minimise_in_parts(program: SlopeProgram, N: int, method: str) -> tuple[np.ndarray, float]:
    """As ``minimise``, but with variables for those of many samples only that are near the kink of their excess.

    The excess of sample i, which costs q_i, is max(0, B_i y - limit_i), y being all other variables. Counting it as 0,
    or as B_i y - limit_i, makes a program whose value is no larger; where no sample turns out to be on the other side
    of its kink, the value is the same. A sample of the samples gives the first guess of the sides.
    """
    of_excess = program.A[:, -N:].tocoo()
    if N <= MANY_SAMPLES or len(of_excess.row) != N or program.q[-N:].min() < 0:  # cuts have the excess in more rows
        return minimise(program, method)
    kink, others = np.empty(N, dtype=int), np.ones(program.A.shape[0], dtype=bool)
    kink[of_excess.col], others[of_excess.row] = of_excess.row, False
    B, limit, cost = program.A[kink][:, :-N], program.limit[kink], program.q[-N:]

    def of_sides(near: np.ndarray, beyond: np.ndarray, share: float) -> tuple[np.ndarray, float]:
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
        x, value = minimise(part, method)
        return x[: len(x) - len(near)], value - float(cost[beyond] @ limit[beyond])

    some = np.arange(0, N, -(-N // MANY_SAMPLES))
    y, _ = of_sides(some, some[:0], float(cost[some].sum() / cost.sum()))
    margin = B @ y - limit
    near = np.abs(margin) <= np.quantile(np.abs(margin), NEAR_KINK)
    near[some[::2]] = True  # these keep the program bounded
    while True:
        beyond = ~near & (margin > 0)
        y, value = of_sides(np.flatnonzero(near), np.flatnonzero(beyond), 1.0)
        margin = B @ y - limit
        wrong = ~near & np.where(beyond, margin < -ACCURACY, margin > ACCURACY)
        if not wrong.any():
            return np.concatenate([y, np.maximum(margin, 0.0)]), value
        near |= wrong


def _kinks(B: sp.sparray) -> sp.sparray:
    """Rows B y - excess."""
    return sp.hstack([B, -sp.eye_array(B.shape[0])], format="csr")
