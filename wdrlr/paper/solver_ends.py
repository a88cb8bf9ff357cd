"""Solvers that keep a conic solver's residue where all slopes are 0 at the optimum; see `wdrlr.paper.variants`."""

from functools import partial
from typing import Any

import numpy as np

from wdrlr.model.problem import Problem
from wdrlr.solvers.column_constraint import solve_column_constraint
from wdrlr.solvers.conic import ConicSolverError, choose_conic_solver
from wdrlr.solvers.registry import SOLVERS, Solver
from wdrlr.solvers.solution import Solution

TAILORED = SOLVERS["tailored"]


def _solve(problem: Problem, *, form: str, tol: float, max_iter: int, conic_solver: str, **options: Any) -> Solution:
    solution = TAILORED.solve(problem, tol=tol, max_iter=max_iter, conic_solver=conic_solver, **options)
    if np.any(solution.b[1:]):
        return solution
    name = choose_conic_solver(conic_solver)
    try:
        return solve_column_constraint(
            problem, tol=tol, all_violated=True, form=form, conic_solver=name, keep_residue=True
        )
    except ConicSolverError:
        return solution


RESIDUE = {
    form: Solver(
        f"residue-{form}", partial(_solve, form=form), handles=TAILORED.handles, conic=True, shared=TAILORED.shared
    )
    for form in ("primal", "dual")
}
"""By the form of the conic program. They are not registered: no user of the classifier should meet them."""
