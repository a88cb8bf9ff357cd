"""Theorem 1's exponential conic program, restricted to a set of cuts, in primal and in dual form.

With all cuts this is the monolithic program; with some it is the relaxation that Algorithm 1 solves in each round.
Both forms are written as sparse matrices, without a modelling layer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.special import entr

from wdrlr.model.cuts import Cuts
from wdrlr.model.problem import Problem
from wdrlr.solvers.conic import ConicPoint, ConicProgram, solve_conic


@dataclass(frozen=True)
class ProgramSolution:
    """What the conic solver returned for a program with C cuts.

    Attributes
    ----------
    value : float
        The optimal value: the solver's in primal form, recomputed from clipped variables in dual form.
    b, lam, s : ndarray (1 + n + k,), float, ndarray (N,)
        Coefficients, multiplier (nan at radius 0) and epigraph variables.
    mass : ndarray of shape (C,)
        Multipliers of the cuts: the masses of a worst-case distribution.
    """

    value: float
    b: np.ndarray
    lam: float
    s: np.ndarray
    mass: np.ndarray


Rows = tuple[dict[str, sp.sparray], np.ndarray]
"""Some rows of a conic program: a block of A for each variable that occurs in them, and h."""


def solve_program(
    problem: Problem, cuts: Cuts, form: str, conic_solver: str, deadline: float = np.inf
) -> ProgramSolution:
    """Solve the program with the given cuts; ``form`` is "primal" or "dual", ``deadline`` as in ``conic.solve_conic``.

    Raises
    ------
    OutOfTime
        If the solver was stopped at the deadline.
    ConicSolverError
        If the solver returns no point.
    """
    return (_solve_primal if form == "primal" else _solve_dual)(problem, cuts, conic_solver, deadline)


def _solve_primal(problem: Problem, cuts: Cuts, conic_solver: str, deadline: float) -> ProgramSolution:
    """minimise lam radius + w.s + penalty.|b|  subject to, for every cut c = (i, z, y), as in Theorem 1,

    u_c + v_c <= 1,  (-s_i - lam d_c, 1, u_c) in K_exp,  (-y f(x_i, z) - s_i - lam d_c, 1, v_c) in K_exp,

    and dual_norm(b_N) <= lam, |b_j| <= coef_bound, s_i >= 0 for samples without the cut (i, z_i, y_i), which implies
    it.
    """
    C, n, n_b, N = len(cuts), problem.n_numeric, problem.n_coefficients, problem.n_samples
    widths = {"b": n_b, "s": N, "u": C, "v": C}
    cost = {"s": problem.w}
    none, one = np.zeros(C), np.ones(C)
    allowance = {"s": _owner(problem, cuts).T}
    zero: list[Rows] = []
    inequalities: list[Rows] = [({"u": sp.eye_array(C), "v": sp.eye_array(C)}, one)]
    second_order: list[Rows] = []
    bare = _without_data_cut(problem, cuts)
    if len(bare):
        inequalities.append(({"s": -sp.eye_array(N, format="csr")[bare]}, np.zeros(len(bare))))
    if problem.radius > 0:
        widths["spent"] = 1  # lam radius, which is at most log 2
        cost["spent"] = np.ones(1)
        allowance["spent"] = _column(cuts.costs(problem) / problem.radius)
        inequalities.append(({"spent": -sp.eye_array(1)}, np.zeros(1)))
        if n:
            order, matrix = problem.metric.number_norm.dual_form(n)
            scaled = problem.metric.scale * problem.radius * (sp.csr_array(matrix) @ _numbers(problem))
            widths["part"] = len(matrix)
            linear, cones = _norm_at_most(order, "b", scaled, "spent")
            inequalities += linear
            second_order += cones
    if problem.penalty.any():
        widths["size"] = n_b
        cost["size"] = problem.penalty
        inequalities += _size_at_most("b", sp.eye_array(n_b), {"size": -sp.eye_array(n_b)}, np.zeros(n_b))
    bounded = np.flatnonzero(np.isfinite(problem.coef_bound))
    if bounded.size:
        inequalities += _size_at_most("b", sp.eye_array(n_b, format="csr")[bounded], {}, problem.coef_bound[bounded])
    if not problem.fit_intercept:
        zero.append(({"b": sp.eye_array(1, n_b)}, np.zeros(1)))
    rows = sp.coo_array(cuts.rows(problem))
    exponential: list[tuple[Rows, Rows, Rows]] = [
        ((allowance, none), ({}, one), ({"u": -sp.eye_array(C)}, none)),
        ((allowance | {"b": -rows}, none), ({}, one), ({"v": -sp.eye_array(C)}, none)),
    ]
    program, at = _assemble(widths, cost, zero, inequalities, second_order, exponential)
    found = solve_conic(program, conic_solver, deadline)
    first = program.zero  # the inequalities u + v <= 1 come first
    return ProgramSolution(
        found.value,
        found.x[at["b"]],
        float(found.x[at["spent"]][0]) / problem.radius if problem.radius > 0 else np.nan,
        found.x[at["s"]],
        found.multipliers[first : first + C],
    )


def _solve_dual(problem: Problem, cuts: Cuts, conic_solver: str, deadline: float) -> ProgramSolution:
    """Nature's problem: maximise the entropy of the label given the point, over distributions in the ball.

    maximise  sum_c [ mass_c log mass_c - v_c log v_c - (mass_c - v_c) log(mass_c - v_c) ] - sum_j coef_bound_j |wall_j|

    subject to  sum of mass_c over the cuts of sample i + idle_i = w_i,  idle_i >= 0,  0 <= v_c <= mass_c,
                idle_i = 0 for samples with the cut (i, z_i, y_i),
                sum_c v_c A_c = paid + free + wall,  |free_j| <= penalty_j,  wall = 0 without bounds,
                sum_c mass_c d_c + ||paid_N|| / scale <= radius,  paid_0 = 0,  paid_C = 0,
                paid_r = 0 for numbers that may not move.

    mass_c is what is moved from sample i to (x_i, z, y), v_c / mass_c the slope of the log-loss there. The balance says
    that no b is better on average. Its multiplier is b, that of the radius is lam, that of the masses is s. With
    K_exp the entropy is -e1 - e0, e1 >= v log(v / mass) and e0 >= (mass - v) log((mass - v) / mass).
    """
    C, n, n_b = len(cuts), problem.n_numeric, problem.n_coefficients
    widths = {"mass": C, "v": C, "e1": C, "e0": C}
    cost = {"e1": np.ones(C), "e0": np.ones(C)}
    none, every = np.zeros(C), sp.eye_array(C)
    balance = {"v": sp.coo_array(cuts.rows(problem)).T}
    inequalities: list[Rows] = []
    second_order: list[Rows] = []
    if problem.radius > 0:
        spent = {"mass": _column(cuts.costs(problem) / problem.radius).T}
        if n:
            order, matrix = problem.metric.number_norm.form(n)
            movable = problem.metric.movable(n)
            widths |= {"paid": int(movable.sum()), "toll": 1, "part": len(matrix)}
            balance["paid"] = -_numbers(problem).tocsr()[movable].T
            spent["toll"] = sp.eye_array(1)
            scaled = sp.csr_array(matrix[:, movable]) / (problem.metric.scale * problem.radius)
            linear, second_order = _norm_at_most(order, "paid", scaled, "toll")
            inequalities += linear
        inequalities.insert(0, (spent, np.ones(1)))
    if problem.penalty.any():
        widths["free"] = n_b
        balance["free"] = -sp.eye_array(n_b)
        inequalities += _size_at_most("free", sp.eye_array(n_b), {}, problem.penalty)
    bounded = np.flatnonzero(np.isfinite(problem.coef_bound))
    B = len(bounded)
    if B:
        widths |= {"wall": B, "size": B}
        balance["wall"] = -sp.eye_array(n_b, format="csc")[:, bounded]
        cost["size"] = problem.coef_bound[bounded]
        inequalities += _size_at_most("wall", sp.eye_array(B), {"size": -sp.eye_array(B)}, np.zeros(B))
    masses = {"mass": _owner(problem, cuts)}
    bare = _without_data_cut(problem, cuts)
    if len(bare):
        widths["idle"] = len(bare)
        masses["idle"] = sp.eye_array(problem.n_samples, format="csc")[:, bare]
        inequalities.append(({"idle": -sp.eye_array(len(bare))}, np.zeros(len(bare))))
    fitted = _fitted(problem)
    balance = {name: sp.csr_array(block)[fitted] for name, block in balance.items()}
    zero: list[Rows] = [
        (masses, problem.w),
        (balance, np.zeros(n_b - fitted.start)),
    ]
    exponential: list[tuple[Rows, Rows, Rows]] = [
        (({"e1": every}, none), ({"v": -every}, none), ({"mass": -every}, none)),
        (({"e0": every}, none), ({"mass": -every, "v": every}, none), ({"mass": -every}, none)),
    ]
    program, at = _assemble(widths, cost, zero, inequalities, second_order, exponential)
    return _read_dual(problem, program, at, solve_conic(program, conic_solver, deadline))


def _read_dual(problem: Problem, program: ConicProgram, at: dict[str, slice], found: ConicPoint) -> ProgramSolution:
    """What the dual form's solution says.

    Its value is taken from clipped variables, since the entropy of a mass that is negative by rounding is minus
    infinity.
    """
    N, radius, bounded = problem.n_samples, problem.radius, np.isfinite(problem.coef_bound)
    b = np.zeros(problem.n_coefficients)
    b[_fitted(problem)] = -found.multipliers[N : program.zero]
    mass = found.x[at["mass"]]
    masses = np.maximum(mass, 0.0)
    moved = np.clip(found.x[at["v"]], 0.0, masses)
    value = float(np.sum(entr(moved) + entr(masses - moved) - entr(masses)))
    if bounded.any():
        value -= float(problem.coef_bound[bounded] @ np.abs(found.x[at["wall"]]))
    lam = float(found.multipliers[program.zero]) / radius if radius > 0 else np.nan  # the radius comes first
    return ProgramSolution(value, b, lam, found.multipliers[:N], mass)


def _fitted(problem: Problem) -> slice:
    """The coefficients that are not fixed to 0."""
    return slice(0 if problem.fit_intercept else 1, problem.n_coefficients)


def _norm_at_most(order: float, vector: str, scaled: sp.sparray, limit: str) -> tuple[list[Rows], list[Rows]]:
    """The norm of ``scaled`` @ vector, of order 1, 2 or infinity, is at most ``limit``: inequalities and one cone.

    For order 1 the absolute values are the variables "part".
    """
    n = scaled.shape[0]
    if order == 2:
        head, tail = sp.eye_array(1 + n, 1), sp.vstack([sp.coo_array((1, scaled.shape[1])), scaled])
        return [], [({limit: -head, vector: -tail}, np.zeros(1 + n))]
    if order == 1:
        total = ({"part": _column(np.ones(n)).T, limit: -sp.eye_array(1)}, np.zeros(1))
        return [*_size_at_most(vector, scaled, {"part": -sp.eye_array(n)}, np.zeros(n)), total], []
    return _size_at_most(vector, scaled, {limit: -_column(np.ones(n))}, np.zeros(n)), []


def _size_at_most(vector: str, scaled: sp.sparray, others: dict[str, sp.sparray], limit: np.ndarray) -> list[Rows]:
    """|scaled @ vector| + others <= limit."""
    return [({vector: scaled, **others}, limit), ({vector: -scaled, **others}, limit)]


def _assemble(
    widths: dict[str, int],
    cost: dict[str, np.ndarray],
    zero: list[Rows],
    inequalities: list[Rows],
    second_order: list[Rows],
    exponential: list[tuple[Rows, Rows, Rows]],
) -> tuple[ConicProgram, dict[str, slice]]:
    """The program with these rows, and where each variable is among its columns.

    Each triple of ``exponential`` has the first, second and third rows of as many cones.
    """
    ends = np.cumsum(list(widths.values()))
    at = {name: slice(int(end) - width, int(end)) for (name, width), end in zip(widths.items(), ends, strict=True)}
    placed: list[tuple[Rows, np.ndarray]] = []
    n_rows = 0
    for rows in (*zero, *inequalities, *second_order):
        placed.append((rows, np.arange(n_rows, n_rows + rows[1].size)))
        n_rows += rows[1].size
    for triple in exponential:
        size = triple[0][1].size
        placed += [(rows, n_rows + place + 3 * np.arange(size)) for place, rows in enumerate(triple)]
        n_rows += 3 * size
    row, column, value, h = [], [], [], np.empty(n_rows)
    for (blocks, right), position in placed:
        h[position] = right
        for name, block in blocks.items():
            block = block.tocoo()
            row.append(position[block.coords[0]])
            column.append(at[name].start + block.coords[1])
            value.append(block.data)
    entries = (np.concatenate(value), (np.concatenate(row), np.concatenate(column)))
    q = np.concatenate([cost.get(name, np.zeros(width)) for name, width in widths.items()])
    program = ConicProgram(
        q=q,
        A=sp.csc_array(entries, shape=(n_rows, q.size)),
        h=h,
        zero=sum(rows[1].size for rows in zero),
        nonnegative=sum(rows[1].size for rows in inequalities),
        second_order=tuple(rows[1].size for rows in second_order),
        exponential=sum(triple[0][1].size for triple in exponential),
    )
    return program, at


def _owner(problem: Problem, cuts: Cuts) -> sp.csr_array:
    """The (N, C) matrix that sums cuts by sample."""
    C = len(cuts)
    return sp.csr_array((np.ones(C), (cuts.sample, np.arange(C))), shape=(problem.n_samples, C))


def _without_data_cut(problem: Problem, cuts: Cuts) -> np.ndarray:
    """The samples i without the cut (i, z_i, y_i)."""
    own = ~cuts.flipped & (cuts.z == problem.z[cuts.sample]).all(axis=1)
    return np.setdiff1d(np.arange(problem.n_samples), cuts.sample[own])


def _numbers(problem: Problem) -> sp.coo_array:
    """The (n, 1 + n + k) matrix that takes b_N from b."""
    n = problem.n_numeric
    return sp.coo_array((np.ones(n), (np.arange(n), np.arange(1, 1 + n))), shape=(n, problem.n_coefficients))


def _column(values: np.ndarray) -> sp.coo_array:
    return sp.coo_array(values[:, None])
