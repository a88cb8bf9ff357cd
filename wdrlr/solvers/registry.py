"""The solvers by name: what each of them takes and handles, and how it is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

from wdrlr.extras import check_installed
from wdrlr.model.problem import Problem
from wdrlr.solvers.column_constraint import Easing, solve_column_constraint, solve_monolithic
from wdrlr.solvers.conic import choose_conic_solver
from wdrlr.solvers.interior_point.coordinates import Coordinates
from wdrlr.solvers.interior_point.method import solve_tailored
from wdrlr.solvers.solution import Solution


def _any(p: float, norm: str) -> bool:
    return True


def _nothing(problem: Problem) -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class Values:
    """What an option may be: in words, as an error message says it, and by a test of a value."""

    words: str
    include: Callable[[Any], bool]


@dataclass(frozen=True)
class Solver:
    """A way to solve a problem.

    Parameters
    ----------
    name : str
        What ``WassersteinLogisticRegression(solver=...)`` calls it.
    solve : callable
        ``solve(problem, *, tol, max_iter, conic_solver, **options)`` returns a ``Solution``, which
        ``solution.certified`` makes of coefficients and dual points. The arguments are the classifier's parameters.
    options : mapping
        The names of its ``solver_options``, each with what it may be: a tuple of values, ``Values``, or None for any.
    handles : callable
        ``handles(p, norm)``: whether it can do with this exponent of the categorical distance and this norm on the
        numbers. By default it can with all.
    warm_start : bool
        Whether ``solve`` takes ``start``, the ``Solution`` of a similar problem with as many coefficients, or None.
    conic : bool
        Whether it uses a conic solver, which result rows then name.
    shared : callable
        Keyword arguments of ``solve`` that serve all problems which differ from a given one in radius and penalty only.
    """

    name: str
    solve: Callable[..., Solution] = field(compare=False)
    options: Mapping[str, tuple | Values | None] = field(default_factory=dict, compare=False)
    handles: Callable[[float, str], bool] = field(default=_any, compare=False)
    warm_start: bool = field(default=False, compare=False)
    conic: bool = field(default=False, compare=False)
    shared: Callable[[Problem], dict[str, Any]] = field(default=_nothing, compare=False)


SOLVERS: dict[str, Solver] = {}
"""The registered solvers, in the order in which "auto" tries them."""


def register(solver: Solver) -> None:
    """Make a solver known under its name, in this process; another process has to register it itself.

    Raises
    ------
    ValueError
        If the name is taken.
    """
    if solver.name in ("auto", *SOLVERS):
        raise ValueError(f"there is a solver {solver.name!r} already; choose another name.")
    SOLVERS[solver.name] = solver


def chosen_solver(solver: str | Solver, p: float, norm: str) -> Solver:
    """The solver of that name; for "auto", the first one registered that handles p and the norm.

    A ``Solver`` may be registered or not.

    Raises
    ------
    ValueError
        If there is none, or if it does not handle them.
    ImportError
        If it uses a conic solver, and there is none.
    """
    if isinstance(solver, Solver):
        if not solver.handles(p, norm):
            raise ValueError(f"the solver {solver.name!r} does not handle p = {p} with the norm {norm!r}; use another.")
        return solver
    able = [known for known in SOLVERS.values() if known.handles(p, norm)]
    chosen = able[0] if solver == "auto" else SOLVERS.get(solver)
    if chosen is None:
        raise ValueError(f"there is no solver {solver!r}; use {_listed(SOLVERS)} or 'auto'.")
    if chosen not in able:
        others = _listed(other.name for other in able)
        raise ValueError(f"the solver {solver!r} does not handle p = {p} with the norm {norm!r}; use {others}.")
    if chosen.conic:
        asked = f"solver={chosen.name!r}"
        check_installed("clarabel", asked if solver == chosen.name else f"p = {p}, which takes {asked},", "conic")
    return chosen


def check_options(solver: Solver, options: Mapping[str, Any]) -> None:
    """Raise a ValueError if the solver takes no option of one of these names, or not with this value."""
    for name, value in options.items():
        if name not in solver.options:
            takes = ", ".join(solver.options) or "no options"
            raise ValueError(f"solver_options has {name!r}, but the solver {solver.name!r} takes {takes}.")
        allowed = solver.options[name]
        if isinstance(allowed, tuple):
            allowed = Values(_listed(allowed), allowed.__contains__)
        if allowed is not None and not allowed.include(value):
            raise ValueError(f"the {name} in solver_options must be {allowed.words}, not {value!r}.")


def solve(
    problem: Problem, solver: str | Solver, options: dict, conic_solver: str, tol: float, max_iter: int
) -> Solution:
    """Solve a problem as ``WassersteinLogisticRegression`` does; the arguments are its parameters."""
    chosen = chosen_solver(solver, problem.metric.p, problem.metric.norm)
    return chosen.solve(problem, tol=tol, max_iter=max_iter, conic_solver=conic_solver, **options)


def _listed(values: Any) -> str:
    return " or ".join(map(repr, values))


# ------------------------------------------------------------ those of the package


def _tailored(problem: Problem, *, tol: float, max_iter: int, conic_solver: str, **options: Any) -> Solution:
    return solve_tailored(problem, tol=tol, max_iter=max_iter, **options)


def _p_is_1(p: float, norm: str) -> bool:
    return p == 1


def _coordinates(problem: Problem) -> dict[str, Any]:
    return {"coordinates": Coordinates(problem)}


def _column_constraint(
    problem: Problem, *, tol: float, max_iter: int, conic_solver: str, all_violated: bool = True, **options: Any
) -> Solution:
    return solve_column_constraint(
        problem,
        tol=tol,
        max_rounds=max_iter,
        conic_solver=choose_conic_solver(conic_solver),
        all_violated=all_violated,
        **options,
    )


def _monolithic(problem: Problem, *, tol: float, max_iter: int, conic_solver: str, **options: Any) -> Solution:
    return solve_monolithic(problem, tol=tol, conic_solver=choose_conic_solver(conic_solver), **options)


def _positive(kind: type[Any]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind) and not isinstance(value, bool) and value > 0


FORM = ("primal", "dual")
EASING = Values(
    'None or an Easing, such as wdrlr.solvers.column_constraint.Easing("geometric")',
    lambda value: value is None or isinstance(value, Easing),
)
SECONDS = Values("a positive number of seconds (without a limit, leave it out)", _positive(Real))
COUNT = Values("a positive integer", _positive(Integral))

register(
    Solver(
        "tailored",
        _tailored,
        handles=_p_is_1,
        warm_start=True,
        shared=_coordinates,
    )
)
register(
    Solver(
        "column-constraint",
        _column_constraint,
        {
            "all_violated": (False, True),
            "first_cuts": ("data", "none"),
            "easing": EASING,
            "form": FORM,
            "time_limit": SECONDS,
        },
        conic=True,
    )
)
register(Solver("monolithic", _monolithic, {"form": FORM, "time_limit": SECONDS, "max_cuts": COUNT}, conic=True))
