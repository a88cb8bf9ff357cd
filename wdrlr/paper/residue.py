"""Solvers that leave what a conic solver finds where all slopes are 0 at the optimum; see `wdrlr.paper.variants`."""

from typing import Any

import numpy as np

from wdrlr.model.problem import Problem
from wdrlr.solvers.column_constraint import solve_column_constraint
from wdrlr.solvers.conic import ConicSolverError, choose_conic_solver
from wdrlr.solvers.registry import SOLVERS, Solver, register
from wdrlr.solvers.solution import Solution

FORMS = ("primal", "dual")
"""Of the conic program; each makes a solver ``residue-<form>``."""


def _leaving_residue(form: str) -> Solver:
    tailored = SOLVERS["tailored"]

    def solve(problem: Problem, *, tol: float, max_iter: int, conic_solver: str, **options: Any) -> Solution:
        solution = tailored.solve(problem, tol=tol, max_iter=max_iter, conic_solver=conic_solver, **options)
        if np.any(solution.b[1:]):
            return solution
        name = choose_conic_solver(conic_solver)
        try:
            return solve_column_constraint(
                problem, tol=tol, all_violated=True, form=form, conic_solver=name, keep_residue=True
            )
        except ConicSolverError:
            return solution

    return Solver(f"residue-{form}", solve, handles=tailored.handles, shared=tailored.shared)


for _form in FORMS:
    register(_leaving_residue(_form))
