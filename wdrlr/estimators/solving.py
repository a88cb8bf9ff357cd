"""From a problem to a solution, for one problem or a grid: the parameters of a classifier that say how to solve."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from wdrlr.estimators.frames import depth_of_user
from wdrlr.model.encoding import quoted
from wdrlr.model.metric import GroundMetric
from wdrlr.model.problem import Problem
from wdrlr.solvers.registry import Solver, chosen_solver, solve
from wdrlr.solvers.solution import Solution, separated, separating

logger = logging.getLogger("wdrlr")

N_NAMED = 5
"""How many features a warning names."""


class SeparableDataWarning(ConvergenceWarning):
    """The data are (quasi-)separable in a way that nothing makes up for: there is no optimum, only a limit."""


@dataclass(frozen=True, eq=False)
class Solving:
    """Which solver to use, and how; the parameters are those of ``WassersteinLogisticRegression``."""

    solver: str | Solver = "auto"
    solver_options: dict[str, Any] | None = None
    conic_solver: str = "auto"
    tol: float = 1e-6
    max_iter: int = 1000
    verbose: int = 0

    def chosen(self, problem: Problem) -> Solver:
        """The solver that the parameters choose for this problem."""
        return chosen_solver(self.solver, problem.metric.p, problem.metric.norm)

    def solve(self, problem: Problem, **others: Any) -> Solution:
        """Solve a problem; ``others`` are further options of the solver."""
        options = {**(self.solver_options or {}), **others}
        with shown(self.verbose):
            return solve(problem, self.solver, options, self.conic_solver, self.tol, self.max_iter)

    def fit(
        self, problem: Problem, start: Solution | None = None, features: Sequence[str] | np.ndarray = ()
    ) -> Solution:
        """Solve a problem, and warn where it has no minimiser or the certificate falls short.

        ``start`` is the solution of a similar problem, for a solver that takes one; ``features`` are the names that a
        warning gives the slopes, shape (n + k,), or none.
        """
        warm = start is not None and len(start.b) == problem.n_coefficients and self.chosen(problem).warm_start
        solution = self.solve(problem, **({"start": start} if warm else {}))
        solution = without_minimiser(problem, solution, self.tol, features)
        warn_if_uncertified(solution, self.tol)
        return solution

    def solve_all(self, problems: Sequence[Problem]) -> list[Solution]:
        """Solve several problems, each as ``solve`` would.

        They differ only in radius, penalty and bounds, and share whatever the solver can share.
        """
        shared = self.chosen(problems[0]).shared(problems[0])
        return [self._told(problem, self.solve(problem, **shared)) for problem in problems]

    def solve_path(self, problems: Sequence[Problem]) -> list[Solution]:
        """As ``solve_all``, but each starts at the solution of the next larger radius, if the solver takes a start.

        The solutions are those of ``solve`` within their gaps, and do not depend on the order of the problems. At
        radius 0, where there may be no optimum, a start would decide; there they are those of ``solve``.
        """
        chosen = self.chosen(problems[0])
        if not chosen.warm_start:
            return self.solve_all(problems)
        shared = chosen.shared(problems[0])
        solutions: list[Any] = [None] * len(problems)
        last: dict[bytes, Solution] = {}  # by penalties
        for number in sorted(range(len(problems)), key=lambda number: -problems[number].radius):
            problem = problems[number]
            penalties = problem.penalty.tobytes()
            start = last.get(penalties) if problem.radius > 0 else None
            solutions[number] = last[penalties] = self._told(problem, self.solve(problem, **shared, start=start))
        return solutions

    def _told(self, problem: Problem, solution: Solution) -> Solution:
        """The solution; with ``verbose``, a line about it is printed."""
        if self.verbose:
            penalty = f", l1 penalty {problem.penalty.max():g}" if problem.penalty.any() else ""
            print(f"wdrlr: radius {problem.radius:g}{penalty}: {solution.report()}", flush=True)
        return solution


@contextmanager
def shown(verbose: int) -> Iterator[None]:
    """Print what is logged meanwhile and would not be seen otherwise: from level INFO on, above 1 from DEBUG on."""
    usual, level = logger.getEffectiveLevel(), logger.level
    wanted = logging.INFO if verbose <= 1 else logging.DEBUG
    if not verbose or usual <= wanted:
        yield
        return

    def show(record: logging.LogRecord) -> bool:
        if record.levelno < usual:
            print(f"wdrlr: {record.getMessage()}", flush=True)
        return record.levelno >= usual

    logger.setLevel(wanted)
    logger.addFilter(show)
    try:
        yield
    finally:
        logger.removeFilter(show)
        logger.setLevel(level)


def at_point(unit: Problem, radius: float, l1_penalty: float) -> Problem:
    """The problem at one point of a grid; ``unit`` has l1_penalty = 1, so that it says which slopes are penalised."""
    return replace(unit, radius=float(radius), penalty=l1_penalty * unit.penalty)


class Infimum(NamedTuple):
    """Of an objective without a minimiser."""

    bound: float  # on the objective at all coefficients, from below
    separated: np.ndarray  # the samples that a direction separates; bool (N,)


def without_minimiser(
    problem: Problem, solution: Solution, tol: float, features: Sequence[str] | np.ndarray
) -> Solution:
    """The solution, its lower bound made to hold for all coefficients where there is no minimiser; warns of that."""
    found = infimum(problem, tol)
    if found is not None:
        warn_of_no_minimiser(problem, found, features)
    return lowered(solution, found)


def lowered(solution: Solution, found: Infimum | None) -> Solution:
    """The solution with a lower bound not above that of the infimum, if there is one."""
    return solution if found is None else replace(solution, lower=min(solution.lower, found.bound))


def infimum(problem: Problem, tol: float) -> Infimum | None:
    """The infimum of the objective where it has no minimiser; None where it has one.

    It is that of the samples which no direction separates, as far as ``separated`` detects them.
    """
    unbounded = np.isinf(problem.coef_bound).all() and not problem.penalty[1:].any()
    gone = separated(problem) if unbounded else np.zeros(1, dtype=bool)
    if not gone.any():
        return None
    if gone.all():
        return Infimum(0.0, gone)
    x, z, y, w = (values[~gone] for values in (problem.x, problem.z, problem.y, problem.w))
    share = float(w.sum())
    # At radius 0 the metric plays no role: this one has the p and the norm that the default solver handles.
    metric = problem.metric if problem.radius > 0 else GroundMetric(np.inf)
    rest = replace(problem, x=x, z=z, y=y, w=w / share, metric=metric, radius=problem.radius / share)
    return Infimum(share * max(solve(rest, "auto", {}, "auto", tol / 100, 500).lower, 0.0), gone)


def warn_of_no_minimiser(problem: Problem, found: Infimum, features: Sequence[str] | np.ndarray) -> None:
    """Warn that a problem has no minimiser, and of which features that is the doing; ``features`` as in ``fit``."""
    named = separating(problem, found.separated)[1:] if len(features) else np.zeros(0, dtype=bool)
    names = list(dict.fromkeys(np.asarray(features)[named]))
    by = f" They are separated by {quoted(names[:N_NAMED])}{', ...' if len(names) > N_NAMED else ''}." if names else ""
    why = (
        "the data are separable or quasi-separable: without a radius, a penalty or a bound"
        if problem.radius == 0
        else "features that may not change separate the data, or a part of them: with label_cost=inf and without a "
        "penalty or a bound"
    )
    warnings.warn(
        f"{why} the objective has no minimiser, and the coefficients are merely where the tolerance was reached.{by}",
        SeparableDataWarning,
        stacklevel=depth_of_user(),
    )


def warn_if_uncertified(solution: Solution, tol: float) -> None:
    """Warn if the certified gap is above ``tol``, or if the lower bound was discarded."""
    if np.isinf(solution.gap):
        warnings.warn(
            f"the lower bound of this fit came out above the objective, {solution.upper:.9f}, so one of them is wrong "
            "and the gap is infinite. Please report this with the data; rescaling columns of numbers can help.",
            ConvergenceWarning,
            stacklevel=depth_of_user(),
        )
    elif not solution.gap <= tol:
        remedy = (
            'The time was up: raise the time_limit in solver_options, for example solver_options={"time_limit": 300.0}.'
            if solution.out_of_time
            else "Raise max_iter, and rescale columns of very large numbers."
        )
        warnings.warn(
            f"the objective is only certified to {solution.gap:.1e}, not to tol={tol:.1e}: it is "
            f"{solution.upper:.9f}, the lower bound {solution.lower:.9f}, after {solution.n_rounds} rounds. {remedy}",
            ConvergenceWarning,
            stacklevel=depth_of_user(),
        )
