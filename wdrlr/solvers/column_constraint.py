"""Algorithm 1 of the paper: the column-and-constraint generation scheme, and the monolithic program it replaces."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from wdrlr.model.cuts import Cuts, all_cuts, initial_cuts, join
from wdrlr.model.problem import Problem, log_loss
from wdrlr.model.separation import most_violated
from wdrlr.model.units import power_of_two, with_distance_unit, with_number_unit
from wdrlr.solvers.conic import ConicSolverError, OutOfTime
from wdrlr.solvers.dual_repair import dual_points
from wdrlr.solvers.programs import ProgramSolution, solve_program
from wdrlr.solvers.solution import Solution, certified

logger = logging.getLogger("wdrlr")

MAX_MONOLITHIC_CUTS = 500_000
"""Clarabel needs about 8 kB for each of the monolithic program's cuts, so 4 GB for as many."""

SECONDS_BETWEEN_LINES = 1.0
"""Rounds in between are logged for debugging only."""


@dataclass(frozen=True)
class Easing:
    """The easing step: from time to time, cuts with much slack are deleted, each at most once (Appendix D).

    Parameters
    ----------
    schedule : {"every-200", "geometric"}
        Ease every 200 rounds, or in the rounds 100 * 1.5^k, k = 0, 1, ... (rounded down).
    threshold : {"constant", "growing"}
        Delete where 1 - u - v exceeds 0.05, or 0.02 in the first easing step, 0.04 in the second, and so on.
    """

    schedule: str = "every-200"
    threshold: str = "constant"

    def __post_init__(self) -> None:
        if self.schedule not in ("every-200", "geometric"):
            raise ValueError(f'the easing schedule must be "every-200" or "geometric", not {self.schedule!r}.')
        if self.threshold not in ("constant", "growing"):
            raise ValueError(f'the easing threshold must be "constant" or "growing", not {self.threshold!r}.')

    def is_due(self, n_rounds: int) -> bool:
        """Whether to ease after so many rounds."""
        if self.schedule == "every-200":
            return n_rounds % 200 == 0
        due = 100.0
        while int(due) < n_rounds:
            due *= 1.5
        return int(due) == n_rounds

    def slack(self, n_eased: int) -> float:
        """The slack above which a cut goes, after so many easing steps."""
        return 0.05 if self.threshold == "constant" else 0.02 * (n_eased + 1)


@dataclass(frozen=True)
class _Programs:
    """How conic programs are solved: in which form, by which solver, until when."""

    form: str
    conic_solver: str
    deadline: float

    def solve(self, problem: Problem, cuts: Cuts) -> ProgramSolution:
        """The form that is asked for, or the other one if the solver fails on it.

        The paper switches between the forms for the same reason (Appendix D).
        """
        try:
            return solve_program(problem, cuts, self.form, self.conic_solver, self.deadline)
        except OutOfTime:
            raise
        except ConicSolverError as error:
            logger.info("%s form: %s", self.form, error)
            return self.solve_other_form(problem, cuts)

    def solve_other_form(self, problem: Problem, cuts: Cuts) -> ProgramSolution:
        other = "dual" if self.form == "primal" else "primal"
        return solve_program(problem, cuts, other, self.conic_solver, self.deadline)


def solve_column_constraint(
    problem: Problem,
    *,
    tol: float = 1e-6,
    max_rounds: int = 10_000,
    all_violated: bool = False,
    first_cuts: str = "data",
    easing: Easing | None = None,
    form: str = "dual",
    conic_solver: str = "CLARABEL",
    time_limit: float = np.inf,
    keep_residue: bool = False,
) -> Solution:
    """Algorithm 1.

    In every round t the program of Theorem 1 is solved with the cuts in hand; LB_t is its value. Then the most violated
    cut of each label is added; with violations vartheta,

        UB_t = min { UB_{t-1}, LB_t + log(1 + max vartheta) },

    until UB_t - LB_t <= tol / 2. The other half of ``tol`` is for the certificate, which trusts neither.

    Parameters
    ----------
    problem : Problem
    tol : float
        Absolute gap of the objective, whose optimal value is at most log 2, the objective at b = 0.
    max_rounds : int
        Stop there, whatever the gap.
    all_violated : bool
        False: one cut a label and round, as in the paper. True: the most violated cut of every sample and label.
    first_cuts : {"data", "none"}
        Start from the cuts (i, z_i) of the data, or, as the paper's public code does, from none but s >= 0. Radius 0,
        which is plain logistic regression, has those of the data.
    easing : Easing or None
        Whether and how cuts with slack are deleted.
    form : {"primal", "dual"}
        Which form of the conic program is solved. If the solver fails on it, the other one is tried. Clarabel reaches
        its tolerances more often on the dual.
    conic_solver : str
        A name from ``conic.SETTINGS``, as ``conic.choose_conic_solver`` returns it.
    keep_residue : bool
        Return what the conic solver finds even where all slopes are 0 at the optimum; see ``solution.certified``.
    time_limit : float
        Stop after so many seconds, whatever the gap.

    Raises
    ------
    OutOfTime, ConicSolverError
        If the first program cannot be solved, in time or at all. If a later one cannot, the last solution is returned;
        its gap tells.
    """
    programs = _Programs(form, conic_solver, perf_counter() + time_limit)
    told = perf_counter()
    given, problem = problem, _in_own_units(problem)
    cuts = initial_cuts(problem)
    if first_cuts == "none" and problem.radius > 0:
        cuts = cuts[:0]
    deleted: set = set()
    n_eased = 0
    bounds: list[tuple[float, float]] = []
    upper = np.inf
    separation_seconds = solver_seconds = 0.0
    out_of_time = False
    while True:
        start = perf_counter()
        try:
            program, solved = programs.solve(problem, cuts), cuts
        except ConicSolverError as error:
            if not bounds:
                raise
            out_of_time = isinstance(error, OutOfTime)
            break
        solver_seconds += perf_counter() - start

        start = perf_counter()
        new, excess = _violated(problem, program, tol, all_violated)
        separation_seconds += perf_counter() - start
        upper = min(upper, program.value + excess)
        bounds.append((program.value, upper))
        seldom = perf_counter() - told >= SECONDS_BETWEEN_LINES
        told = perf_counter() if seldom else told
        level = logging.INFO if seldom else logging.DEBUG
        logger.log(level, "round %d: LB %.8f, UB %.8f, %d cuts", len(bounds), *bounds[-1], len(cuts))
        if upper - program.value <= tol / 2 or len(bounds) >= max_rounds:
            break

        known = set(cuts.keys())
        fresh = np.array([key not in known for key in new.keys()], dtype=bool)
        if not fresh.any():
            break  # what is violated is there already: the solver is at the end of its accuracy
        if easing is not None and easing.is_due(len(bounds)):
            tight = _slack(problem, cuts, program) <= easing.slack(n_eased)
            keep = tight | np.array([key in deleted for key in cuts.keys()])
            deleted.update(cuts[~keep].keys())
            cuts = cuts[keep]
            n_eased += 1
        cuts = join(cuts, new[fresh])

    solution = _certified(given, problem, solved, program, programs, tol, keep_residue)
    return replace(
        solution,
        n_rounds=len(bounds),
        bounds=tuple(bounds),
        out_of_time=out_of_time,
        separation_seconds=separation_seconds,
        solver_seconds=solver_seconds + solution.solver_seconds,
    )


def solve_monolithic(
    problem: Problem,
    *,
    tol: float = 1e-6,
    form: str = "dual",
    conic_solver: str = "CLARABEL",
    time_limit: float = np.inf,
    max_cuts: int = MAX_MONOLITHIC_CUTS,
) -> Solution:
    """Theorem 1's program with all its constraints, exponentially many in the number of categorical features.

    Parameters
    ----------
    problem, tol, form, conic_solver
        As for ``solve_column_constraint``.
    time_limit : float
        Give up after so many seconds.
    max_cuts : int
        The largest program to build, which guards the memory.

    Raises
    ------
    ValueError
        If there are more than ``max_cuts`` constraints; nothing is built then.
    OutOfTime, ConicSolverError
        If the solver returns no point, in time or at all.
    """
    programs = _Programs(form, conic_solver, perf_counter() + time_limit)
    given, problem = problem, _in_own_units(problem)
    cuts = all_cuts(problem, max_cuts)
    logger.info("one program with %d cuts", len(cuts))
    start = perf_counter()
    program = programs.solve(problem, cuts)
    seconds = perf_counter() - start
    solution = _certified(given, problem, cuts, program, programs, tol)
    return replace(solution, n_rounds=1, solver_seconds=seconds + solution.solver_seconds)


def _in_own_units(problem: Problem) -> Problem:
    """Numbers around 0 and of a size of 1 at most, and transport cost in a unit that fits."""
    centred = replace(problem, x=problem.x - _center(problem))
    return with_distance_unit(with_number_unit(centred, _number_unit(problem)), 1.0)


def _center(problem: Problem) -> np.ndarray:
    """From where numbers are counted: their means if b_0 is free to make up for it, else 0; shape (n,)."""
    free = problem.fit_intercept and problem.penalty[0] == 0 and np.isinf(problem.coef_bound[0])
    return problem.means if free else np.zeros(problem.n_numeric)


def _number_unit(problem: Problem) -> float:
    return power_of_two(float(np.abs(problem.x - _center(problem)).max(initial=0.0)))


def _certified(
    given: Problem,
    problem: Problem,
    cuts: Cuts,
    program: ProgramSolution,
    programs: _Programs,
    tol: float,
    keep_residue: bool = False,
) -> Solution:
    """The solution of a program with its certificate; the other form is tried where the gap is above ``tol``.

    The program is that of ``problem``, which is ``given`` in units of its own.
    """
    factor = np.ones(problem.n_coefficients)  # slopes of the given problem over those of the program
    factor[1 : 1 + problem.n_numeric] = 1.0 / _number_unit(given)

    def certificate_of(program: ProgramSolution) -> Solution:
        points = dual_points(problem, cuts, program.mass, program.b, tol)
        points = [replace(point, wall=point.wall / factor) for point in points]
        b = program.b * factor
        b[0] -= _center(given) @ given.numeric(b)
        return certified(given, b, points, tol, keep_residue)

    solution = certificate_of(program)
    seconds = 0.0
    if not solution.gap <= tol:
        start = perf_counter()
        try:
            other = programs.solve_other_form(problem, cuts)
            solution = min(solution, certificate_of(other), key=lambda found: found.gap)
        except ConicSolverError as error:
            logger.info("the other form: %s", error)
        seconds = perf_counter() - start
    return replace(solution, n_cuts=len(cuts), solver_seconds=seconds)


def _violated(problem: Problem, program: ProgramSolution, tol: float, all_violated: bool) -> tuple[Cuts, float]:
    """The cuts to add, and log(1 + the largest violation) over both labels.

    The violation is u + v - 1 = exp(L(a) - lam d - s) - 1, whose exponential can overflow and is not needed.
    """
    found, largest = [], 0.0
    if problem.radius > 0:
        lam = max(program.lam, problem.metric.dual_norm(problem.numeric(program.b)))
        for flipped in problem.label_flips:
            worst = most_violated(problem, program.b, lam, flipped)
            excess = worst.value - program.s
            most = int(np.argmax(excess))
            largest = max(largest, float(excess[most]))
            chosen = np.flatnonzero(excess > tol / 10) if all_violated else np.array([most])
            found.append(Cuts(chosen, worst.z[chosen], np.full(len(chosen), flipped)))
    else:
        found.append(initial_cuts(problem)[:0])
    return join(*found), largest


def _slack(problem: Problem, cuts: Cuts, program: ProgramSolution) -> np.ndarray:
    """1 - u - v of every cut; shape (C,)."""
    loss = log_loss(cuts.rows(problem) @ program.b)
    return -np.expm1(loss - program.lam * cuts.costs(problem) - program.s[cuts.sample])
