"""Which conic solver solves the programs of Theorem 1, and how accurately."""

from __future__ import annotations

import logging
import os
import warnings
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from wdrlr.extras import installing, required

if TYPE_CHECKING:
    import cvxpy as cp

logger = logging.getLogger("wdrlr")

SETTINGS: dict[str, dict[str, Any]] = {
    "CLARABEL": {
        "tol_gap_abs": 1e-9,
        "tol_gap_rel": 1e-9,
        "tol_feas": 1e-9,
        "max_iter": 500,
        "max_threads": 1,
        # Short steps come early on these programs, and pass. By default the first below 0.1 makes Clarabel change its
        # scaling for good, and one below 1e-4 ends it; it then often stops without an accurate point.
        "min_switch_step_length": 1e-2,
        "min_terminate_step_length": 1e-8,
    },
    "MOSEK": {
        "mosek_params": {
            "MSK_DPAR_INTPNT_CO_TOL_REL_GAP": 1e-9,
            "MSK_DPAR_INTPNT_CO_TOL_PFEAS": 1e-9,
            "MSK_DPAR_INTPNT_CO_TOL_DFEAS": 1e-9,
            "MSK_IPAR_NUM_THREADS": 1,
        }
    },
    # A first-order method: it takes some thousand iterations, each through all cones, and is seldom near its tolerances
    # if it is not by then. The point it has after that time is certified like any other.
    "SCS": {"eps_abs": 1e-8, "eps_rel": 1e-8, "max_iters": 200_000, "time_limit_secs": 60.0},
}

REMEDY = (
    "Rescale or centre columns whose numbers are large or far from 0, try another conic_solver, "
    'or solver="tailored" where p = 1.'
)
OUT_OF_TIME = (
    'The limit is the time_limit of the solver (solver_options={"time_limit": seconds}); raise it, or leave it out.'
)


class ConicSolverError(RuntimeError):
    """The conic solver returned no point that it calls solved, or nearly."""


class OutOfTime(ConicSolverError):
    """The conic solver was stopped at the deadline."""


@dataclass(frozen=True, eq=False)
class ConicProgram:
    """minimise q.x  subject to  h - A x in K,  K = {0}^zero x R_+^nonnegative x second-order cones x K_exp^exponential.

    Parameters
    ----------
    q : ndarray of shape (V,)
    A, h : sparse matrix of shape (rows, V), ndarray of shape (rows,)
        The rows of the cones in the order of K.
    zero, nonnegative, exponential : int
        Numbers of equations, of inequalities and of cones K_exp = cl{(a, b, c): b > 0, b exp(a / b) <= c}.
    second_order : tuple of int
        The dimensions of cones {(r, v): ||v|| <= r}.
    """

    q: np.ndarray
    A: sp.sparray
    h: np.ndarray
    zero: int
    nonnegative: int
    second_order: tuple[int, ...]
    exponential: int


@dataclass(frozen=True, eq=False)
class ConicPoint:
    """A solution x, its value, and the multipliers of the equations and inequalities."""

    x: np.ndarray
    value: float
    multipliers: np.ndarray


@cache
def mosek_licence() -> str | None:
    """None if a MOSEK licence can be checked out, else the reason why not. Asked once a process.

    cvxpy lists MOSEK as installed whether or not there is a licence, and a solve without one raises an error that
    is not a ``cvxpy.SolverError``; hence this probe. Whatever the package raises is a reason.
    """
    try:
        import mosek
    except ModuleNotFoundError as error:
        return f"it needs the package mosek: {installing('mosek')}" if error.name == "mosek" else _unusable(error)
    except Exception as error:  # a shared library that is missing or does not fit raises what it likes
        return _unusable(error)
    try:
        with mosek.Env() as env:
            try:
                env.checkoutlicense(mosek.feature.pton)
            except mosek.Error:
                with env.Task() as task:
                    task.optimize()  # its error has words where the other has a number only
                raise
    except Exception as error:  # so does a module that is not what its name says
        if isinstance(error, getattr(mosek, "Error", ())):
            return f"no licence: {' '.join(str(error).split())}"
        return _unusable(error)
    return None


def _unusable(error: Exception) -> str:
    return f"the package mosek does not work here: {type(error).__name__}: {' '.join(str(error).split())}"


def _licence_places() -> str:
    """Where MOSEK looks for a licence, and what is there."""
    variable = os.environ.get("MOSEKLM_LICENSE_FILE")
    file = Path(os.path.expanduser("~/mosek/mosek.lic"))  # unlike Path.home, without a home as well
    named = "is not set" if variable is None else f"is {variable!r}"
    return f"MOSEKLM_LICENSE_FILE {named}; {file} {'exists' if file.exists() else 'does not exist'}"


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
            raise ValueError(
                f'conic_solver="MOSEK" cannot be used: {reason} ({_licence_places()}). '
                'conic_solver="CLARABEL" needs no licence; "auto" falls back to it.'
            )
        else:
            name = "CLARABEL"
            logger.info("conic solver: CLARABEL (MOSEK: %s)", reason)
            return name
    logger.info("conic solver: %s", name)
    return name


def solve(program: cp.Problem, conic_solver: str, seconds: float = np.inf) -> None:
    """Solve ``program``, in at most so many seconds.

    An inaccurate point is not an error: it is certified like any other (see ``certificate``).

    Raises
    ------
    ConicSolverError
        If the solver returns no point.
    ImportError
        If cvxpy is not installed.
    """
    cp = _modelling(conic_solver)
    settings = SETTINGS[conic_solver]
    if np.isfinite(seconds) and conic_solver == "MOSEK":
        settings = {"mosek_params": {**settings["mosek_params"], "MSK_DPAR_OPTIMIZER_MAX_TIME": seconds}}
    elif np.isfinite(seconds):
        settings = {**settings, {"CLARABEL": "time_limit", "SCS": "time_limit_secs"}[conic_solver]: seconds}
    try:
        with warnings.catch_warnings():
            # An inaccurate solution is judged by its certificate instead.
            warnings.filterwarnings("ignore", message="Solution may be inaccurate")
            program.solve(solver=conic_solver, **settings)
    except cp.SolverError as error:
        raise ConicSolverError(f"{conic_solver} failed: {error} {REMEDY}") from error
    if program.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise ConicSolverError(f"{conic_solver} stopped with status {program.status}. {REMEDY}")


def solve_conic(program: ConicProgram, conic_solver: str, deadline: float = np.inf) -> ConicPoint:
    """Solve a program that is given by its matrices; Clarabel gets them as they are, the others by way of cvxpy.

    Parameters
    ----------
    deadline : float
        A time of ``time.perf_counter``, in seconds, at which the solver is stopped.

    Raises
    ------
    OutOfTime
        If the solver was stopped.
    ConicSolverError
        If it returns no point.
    ImportError
        If it is not installed, or cvxpy is not.
    """
    seconds = deadline - perf_counter()
    if seconds <= 0:
        raise OutOfTime(f"no time is left. {OUT_OF_TIME}")
    return (_with_clarabel if conic_solver == "CLARABEL" else _with_cvxpy)(program, conic_solver, seconds)


def _with_clarabel(program: ConicProgram, conic_solver: str, seconds: float) -> ConicPoint:
    clarabel = required("clarabel", f"conic_solver={conic_solver!r}", "conic")
    cones = [clarabel.ZeroConeT(program.zero), clarabel.NonnegativeConeT(program.nonnegative)]
    cones += [clarabel.SecondOrderConeT(size) for size in program.second_order]
    cones += [clarabel.ExponentialConeT()] * program.exponential
    settings = clarabel.DefaultSettings()
    told = logger.isEnabledFor(logging.DEBUG)
    for name, value in {**SETTINGS[conic_solver], "verbose": told, "time_limit": seconds}.items():
        setattr(settings, name, value)
    no_squares = sp.csc_matrix((program.q.size, program.q.size))
    found = clarabel.DefaultSolver(no_squares, program.q, sp.csc_matrix(program.A), program.h, cones, settings).solve()
    if found.status == clarabel.SolverStatus.MaxTime:
        raise OutOfTime(f"{conic_solver} was stopped after {seconds:.3g} s. {OUT_OF_TIME}")
    if found.status not in (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved):
        raise ConicSolverError(f"{conic_solver} stopped with status {found.status}. {REMEDY}")
    linear = program.zero + program.nonnegative
    return ConicPoint(np.array(found.x), found.obj_val, np.array(found.z[:linear]))


def _modelling(conic_solver: str) -> Any:
    return required("cvxpy", f"conic_solver={conic_solver!r}", "conic")


def _with_cvxpy(program: ConicProgram, conic_solver: str, seconds: float) -> ConicPoint:
    cp = _modelling(conic_solver)
    x = cp.Variable(program.q.size)
    value = program.h - sp.csr_array(program.A) @ x
    ends = np.cumsum([program.zero, program.nonnegative, *program.second_order])
    constraints = [value[: ends[0]] == 0, value[ends[0] : ends[1]] >= 0]
    constraints += [cp.SOC(value[start], value[start + 1 : end]) for start, end in pairwise(ends[1:])]
    constraints.append(cp.ExpCone(value[ends[-1] :: 3], value[ends[-1] + 1 :: 3], value[ends[-1] + 2 :: 3]))
    posed = cp.Problem(cp.Minimize(program.q @ x), constraints)
    start = perf_counter()
    try:
        solve(posed, conic_solver, seconds)
    except ConicSolverError as error:
        if perf_counter() - start >= seconds:
            raise OutOfTime(f"{conic_solver} was stopped after {seconds:.3g} s. {OUT_OF_TIME}") from error
        raise
    # cvxpy's Lagrangian adds multiplier times expression for an equation.
    multipliers = np.concatenate([-constraints[0].dual_value, constraints[1].dual_value])
    return ConicPoint(np.asarray(x.value), float(posed.value), multipliers)
