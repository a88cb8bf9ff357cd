"""Which conic solver solves the programs of Theorem 1, and how accurately."""

from __future__ import annotations

import logging
import warnings
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import cvxpy as cp

logger = logging.getLogger("wdrlr")

SETTINGS: dict[str, dict[str, Any]] = {
    "CLARABEL": {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9, "max_iter": 500, "max_threads": 1},
    "MOSEK": {
        "mosek_params": {
            "MSK_DPAR_INTPNT_CO_TOL_REL_GAP": 1e-9,
            "MSK_DPAR_INTPNT_CO_TOL_PFEAS": 1e-9,
            "MSK_DPAR_INTPNT_CO_TOL_DFEAS": 1e-9,
            "MSK_IPAR_NUM_THREADS": 1,
        }
    },
    "SCS": {"eps_abs": 1e-8, "eps_rel": 1e-8, "max_iters": 200_000},
}


class ConicSolverError(RuntimeError):
    """The conic solver returned no point at all."""


@cache
def mosek_licence() -> str | None:
    """None if a MOSEK licence can be checked out, else the reason why not. Asked once a process.

    cvxpy lists MOSEK as installed whether or not there is a licence, and a solve without one raises an error that
    is no ``cvxpy.SolverError``; hence this probe.
    """
    try:
        import mosek
    except ImportError:
        return "the package mosek is not installed"
    try:
        with mosek.Env() as env:
            env.checkoutlicense(mosek.feature.pton)
    except mosek.Error as error:
        return f"no licence: {' '.join(str(error).split())}"
    return None


@cache
def choose_conic_solver(conic_solver: str = "auto") -> str:
    """The name of the conic solver to use: for "auto", MOSEK if its licence can be checked out, else CLARABEL.

    Raises
    ------
    ValueError
        For a name that is neither "auto" nor a supported solver, or for "MOSEK" without a licence.
    """
    name = conic_solver.upper() if isinstance(conic_solver, str) else conic_solver
    if name != "AUTO" and name not in SETTINGS:
        raise ValueError(f'conic_solver must be "auto" or one of {", ".join(SETTINGS)}, not {conic_solver!r}.')
    if name in ("AUTO", "MOSEK"):
        reason = mosek_licence()
        if reason is None:
            name = "MOSEK"
        elif name == "MOSEK":
            raise ValueError(f'conic_solver="MOSEK" cannot be used: {reason}; "auto" falls back to CLARABEL.')
        else:
            name = "CLARABEL"
            logger.info("conic solver: CLARABEL (MOSEK: %s)", reason)
            return name
    logger.info("conic solver: %s", name)
    return name


def solve(program: cp.Problem, conic_solver: str) -> bool:
    """Solve ``program``; return whether the solver says that it reached its tolerances.

    An inaccurate point is no error: whoever reads it from the variables certifies it (see ``certificate``).

    Raises
    ------
    ConicSolverError
        If the solver returns no point.
    """
    import cvxpy as cp  # not at the top: the default solver does without it

    try:
        with warnings.catch_warnings():
            # An inaccurate solution is judged by its certificate instead.
            warnings.filterwarnings("ignore", message="Solution may be inaccurate")
            program.solve(solver=conic_solver, **SETTINGS[conic_solver])
    except cp.SolverError as error:
        raise ConicSolverError(f"{conic_solver} failed: {error}") from error
    if program.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise ConicSolverError(f"{conic_solver} stopped with status {program.status}")
    return program.status == cp.OPTIMAL
