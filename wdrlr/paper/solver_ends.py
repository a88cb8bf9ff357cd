"""Where other solvers may have ended: at points that an optimum does not determine, or before it.

These solvers are not registered: no user of the classifier should meet them. `wdrlr.paper.variants` tries them.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from wdrlr.model.objective import objective
from wdrlr.model.problem import Problem
from wdrlr.solvers.column_constraint import solve_column_constraint
from wdrlr.solvers.conic import ConicSolverError, choose_conic_solver
from wdrlr.solvers.registry import SOLVERS, Solver
from wdrlr.solvers.solution import Solution

TAILORED = SOLVERS["tailored"]

STOPPED_FROM = 0.1
"""The radius from which on Algorithm 1 does not come to its end."""

STOPPED_AFTER = 100
"""Rounds of Algorithm 1."""


def _with_residue(problem: Problem, *, form: str, tol: float, conic_solver: str, **options: Any) -> Solution:
    """The tailored solver's solution; where all its slopes are 0, the point at which a conic solver ends."""
    solution = TAILORED.solve(problem, tol=tol, conic_solver=conic_solver, **options)
    if np.any(solution.b[1:]):
        return solution
    name = choose_conic_solver(conic_solver)
    try:
        return solve_column_constraint(
            problem, tol=tol, all_violated=True, form=form, conic_solver=name, keep_residue=True
        )
    except ConicSolverError:
        return solution


def _shared(problem: Problem, *, tol: float, **options: Any) -> Solution:
    """The tailored solver's solution with its intercept shared, where that is optimal too."""
    solution = TAILORED.solve(problem, tol=tol, **options)
    b = share_intercept(problem, solution.b)
    value, lam = objective(problem, b)
    return replace(solution, b=b, upper=value, lam=lam) if value <= solution.upper + tol else solution


def share_intercept(problem: Problem, b: np.ndarray) -> np.ndarray:
    """Coefficients with the same f at all rows, and an intercept shared with the dummies that are constant there.

    The dummy of a level that no row has is -1 in all rows with the coding "pm1", as good as an intercept of -1. Of all
    ways to share b_0 among such columns, an interior point ends at equal sizes.

    Parameters
    ----------
    b : ndarray of shape (1 + n + k,)
    """
    column = np.zeros(problem.n_coefficients)  # the value of a constant column, 0 for others
    column[0] = 1.0
    of_dummies = column[1 + problem.n_numeric :]
    for j in range(problem.n_categorical):
        seen = problem.level_weights[problem.levels(j)] > 0
        values = problem.level_matrix[problem.levels(j), problem.dummies(j)].toarray()[seen]
        of_dummies[problem.dummies(j)] = np.where((values == values[0]).all(axis=0), values[0], 0.0)
    return np.where(column == 0, b, column * (column @ b) / (column @ column))


def _stopped(problem: Problem, *, tol: float, conic_solver: str, **options: Any) -> Solution:
    """The tailored solver's solution; at large radii the point of Algorithm 1 after `STOPPED_AFTER` rounds."""
    if problem.radius < STOPPED_FROM:
        return TAILORED.solve(problem, tol=tol, conic_solver=conic_solver, **options)
    return solve_column_constraint(
        problem,
        tol=tol,
        max_rounds=STOPPED_AFTER,
        first_cuts="none",
        conic_solver=choose_conic_solver(conic_solver),
        keep_residue=True,
    )


RESIDUE = {
    form: Solver(
        *(f"residue-{form}", partial(_with_residue, form=form)),
        handles=TAILORED.handles,
        conic=True,
        shared=TAILORED.shared,
    )
    for form in ("primal", "dual")
}
"""What a conic solver leaves where all slopes are 0 at the optimum, by the form of the conic program."""

SHARED = Solver("shared", _shared, handles=TAILORED.handles, shared=TAILORED.shared)
"""The intercept shared among columns that are constant in the training part."""

STOPPED = Solver("stopped", _stopped, handles=TAILORED.handles, conic=True, shared=TAILORED.shared)
"""Algorithm 1 as the paper writes it, stopped early at large radii."""
