"""Theorem 1's exponential conic program, restricted to a set of cuts, in primal and in dual form.

With all cuts this is the monolithic program; with some it is the relaxation that Algorithm 1 solves in each round.
"""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from scipy.special import entr

from wdrlr import conic
from wdrlr.cuts import Cuts
from wdrlr.metric import DUAL_NORMS, NORMS
from wdrlr.problem import Problem


@dataclass(frozen=True)
class ProgramSolution:
    """What the conic solver returned for a program with C cuts.

    Attributes
    ----------
    accurate : bool
        Whether the solver says that it reached its tolerances.
    value : float
        The optimal value as the solver reports it.
    b, lam, s : ndarray (1 + n + k,), float, ndarray (N,)
        Coefficients, multiplier (nan at radius 0) and epigraph variables.
    mass : ndarray of shape (C,)
        Multipliers of the cuts: the masses of a worst-case distribution.
    """

    accurate: bool
    value: float
    b: np.ndarray
    lam: float
    s: np.ndarray
    mass: np.ndarray


def solve_program(problem: Problem, cuts: Cuts, form: str, conic_solver: str) -> ProgramSolution:
    """Solve the program with the given cuts; ``form`` is "primal" or "dual".

    Raises
    ------
    ConicSolverError
        If the solver returns no point.
    """
    return (_solve_primal if form == "primal" else _solve_dual)(problem, cuts, conic_solver)


def _solve_primal(problem: Problem, cuts: Cuts, conic_solver: str) -> ProgramSolution:
    """minimise lam radius + w.s + penalty.|b|  subject to, for every cut c = (i, z, y), as in Theorem 1,

    u_c + v_c <= 1,  (u_c, 1, -s_i - lam d_c) in K_exp,  (v_c, 1, -y f(x_i, z) - s_i - lam d_c) in K_exp,

    and dual_norm(b_N) <= lam, |b_j| <= coef_bound.
    """
    C, n = len(cuts), problem.n_numeric
    b = cp.Variable(problem.n_coefficients)
    s = cp.Variable(problem.n_samples)
    u, v = cp.Variable(C), cp.Variable(C)
    owner = _owner(problem, cuts)
    objective = problem.w @ s
    allowance = owner.T @ s
    constraints = [u + v <= 1]
    if problem.radius > 0:
        spent = cp.Variable(nonneg=True)  # lam radius, which is at most log 2
        allowance = allowance + (cuts.costs(problem) / problem.radius) * spent
        objective = objective + spent
        if n:
            dual_norm = cp.pnorm(b[1 : 1 + n], DUAL_NORMS[problem.metric.norm])
            constraints.append(problem.metric.scale * problem.radius * dual_norm <= spent)
    one = np.ones(C)
    constraints.append(cp.ExpCone(-allowance, one, u))
    constraints.append(cp.ExpCone(cuts.rows(problem) @ b - allowance, one, v))
    if problem.penalty.any():
        objective = objective + problem.penalty @ cp.abs(b)
    if np.isfinite(problem.coef_bound):
        constraints.append(cp.abs(b) <= problem.coef_bound)
    if not problem.fit_intercept:
        constraints.append(b[0] == 0)
    program = cp.Problem(cp.Minimize(objective), constraints)
    accurate = conic.solve(program, conic_solver)
    multiplier = float(spent.value) / problem.radius if problem.radius > 0 else np.nan
    return ProgramSolution(accurate, float(program.value), b.value, multiplier, s.value, constraints[0].dual_value)


def _solve_dual(problem: Problem, cuts: Cuts, conic_solver: str) -> ProgramSolution:
    """Nature's problem: maximise the entropy of the label given the point, over distributions in the ball.

    maximise  sum_c [ mass_c log mass_c - v_c log v_c - (mass_c - v_c) log(mass_c - v_c) ] - coef_bound ||h||_1

    subject to  sum of mass_c over the cuts of sample i = w_i,  0 <= v_c <= mass_c,
                sum_c v_c A_c = q + g + h,  |g_j| <= penalty_j,
                sum_c mass_c d_c + ||q_N|| / scale <= radius,  q_0 = 0,  q_C = 0,  h = 0 without bounds.

    mass_c is what is moved from sample i to (x_i, z, y), v_c / mass_c the slope of the log-loss there. The balance says
    that no b is better on average. Its multiplier is b, that of the radius is lam, that of the masses is s.
    """
    C, n, p = len(cuts), problem.n_numeric, problem.n_coefficients
    mass, v = cp.Variable(C), cp.Variable(C)
    numbers = np.zeros((p, n))
    numbers[1 : 1 + n] = np.eye(n)
    objective = -cp.sum(cp.rel_entr(v, mass)) - cp.sum(cp.rel_entr(mass - v, mass))
    balance = cuts.rows(problem).T @ v
    constraints = [_owner(problem, cuts) @ mass == problem.w]
    if problem.radius > 0:
        spent = (cuts.costs(problem) / problem.radius) @ mass
        if n:
            q = cp.Variable(n)
            balance = balance - numbers @ q
            spent = spent + cp.pnorm(q, NORMS[problem.metric.norm]) / (problem.metric.scale * problem.radius)
        budget = spent <= 1
        constraints.append(budget)
    if problem.penalty.any():
        g = cp.Variable(p)
        balance = balance - g
        constraints.append(cp.abs(g) <= problem.penalty)
    if np.isfinite(problem.coef_bound):
        h = cp.Variable(p)
        balance = balance - h
        objective = objective - problem.coef_bound * cp.norm1(h)
    fitted = slice(0 if problem.fit_intercept else 1, p)
    constraints.append(balance[fitted] == 0)
    stationary = constraints[-1]
    accurate = conic.solve(cp.Problem(cp.Maximize(objective), constraints), conic_solver)
    # The multipliers of a maximisation have the other sign. The value is taken from clipped variables, since the
    # entropy of a mass that is negative by rounding is minus infinity.
    b = np.zeros(p)
    b[fitted] = -stationary.dual_value
    masses, moved = np.maximum(mass.value, 0.0), np.clip(v.value, 0.0, np.maximum(mass.value, 0.0))
    value = float(np.sum(entr(moved) + entr(masses - moved) - entr(masses)))
    if np.isfinite(problem.coef_bound):
        value -= problem.coef_bound * float(np.abs(h.value).sum())
    return ProgramSolution(
        accurate,
        value,
        b,
        float(budget.dual_value) / problem.radius if problem.radius > 0 else np.nan,
        constraints[0].dual_value,
        mass.value,
    )


def _owner(problem: Problem, cuts: Cuts) -> sp.csr_array:
    """The (N, C) matrix that sums cuts by sample."""
    C = len(cuts)
    return sp.csr_array((np.ones(C), (cuts.sample, np.arange(C))), shape=(problem.n_samples, C))
