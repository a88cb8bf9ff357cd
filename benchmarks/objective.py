"""The objective, evaluated outside the solvers by the same code for all of them, and the race between solvers."""

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.datasets import some_rows
from benchmarks.solvers import SOLVERS
from wdrlr.model.objective import objective as value_at
from wdrlr.model.problem import Problem

TOL = 1e-6
"""The gap that fits are certified to."""

LONG = 10.0
"""A run of more than this many seconds is not repeated."""


def objective(problem: Problem, b: np.ndarray) -> float:
    """F at b, by separation; infinite outside the bounds on the coefficients."""
    if not np.all(np.abs(b) <= problem.coef_bound * (1 + 1e-9)):
        return np.inf
    return value_at(problem, b)[0]


class Timed(NamedTuple):
    """The best time of a function, what it returned, the process's peak memory after it, and its error, if any."""

    seconds: float
    result: Any
    memory_gb: float
    note: str


def timed(functions: Sequence[Callable[[], Any]], repeats: int = 1) -> list[Timed]:
    """Call functions in turn on one thread, `repeats` times over; one that failed or took long is not called again.

    The seconds of a function that failed are nan.
    """
    best = [Timed(np.inf, None, np.nan, "")] * len(functions)
    with threadpool_limits(1):
        for repeat in range(repeats):
            for i, function in enumerate(functions):
                if best[i].note or (repeat and best[i].seconds > LONG):
                    continue
                start = perf_counter()
                try:
                    result = function()
                    seconds = min(perf_counter() - start, best[i].seconds)
                    best[i] = Timed(seconds, result, peak_memory_gb(), "")
                except Exception as error:  # one that fails must not end a run of hours
                    note = f"{type(error).__name__}: {error}".partition("\n")[0]
                    best[i] = Timed(np.nan, None, peak_memory_gb(), note)
    return best


def race(
    problem: Problem, entrants: Sequence[tuple[str, float]], repeats: int = 1, small: Problem | None = None
) -> list[dict]:
    """Run solvers in turn, `repeats` times over, and keep the best time of each.

    Parameters
    ----------
    entrants : pairs (name in `SOLVERS`, stop)
        The solver stops at the certified gap `stop` or, if it is "algorithm1", after `stop` rounds.
    small
        A problem of the same kind for the warm-up; 60 of the rows by default.

    Returns
    -------
    One row per entrant: solver, stop, seconds, memory_gb (the peak of the process so far), note (the error, if any; the
    measurements are nan then), upper (F), lower (the solver's lower bound, -inf if it has none), rounds,
    expected_rounds.
    """
    solvers = [SOLVERS[name](problem) for name, _ in entrants]
    small = some_rows(problem, 30) if small is None else small
    with threadpool_limits(1):
        for name, stop in entrants:
            # A warm-up for imports and compilation: gaps stay the same, but two rounds are enough.
            SOLVERS[name](small).run(min(stop, 2))
        runs = [partial(solver.run, stop) for solver, (_, stop) in zip(solvers, entrants, strict=True)]
        rows = []
        for solver, run, (name, stop) in zip(solvers, timed(runs, repeats), entrants, strict=True):
            row = unmeasured(name, stop, run.note) | {"memory_gb": run.memory_gb}
            if not run.note:
                answer = solver.result()
                row |= {
                    "seconds": run.seconds,
                    "upper": objective(problem, answer.b),
                    "lower": answer.lower,
                    "rounds": answer.rounds,
                    "expected_rounds": answer.expected_rounds,
                }
            rows.append(row)
    return rows


def unmeasured(solver: str, stop: float, note: str) -> dict:
    """The row of a run without measurements, with a note of the reason."""
    measured = ("upper", "lower", "rounds", "expected_rounds")
    return {
        "solver": solver,
        "stop": stop,
        "seconds": np.nan,
        "memory_gb": np.nan,
        "note": note,
        **dict.fromkeys(measured, np.nan),
    }


def peak_memory_gb() -> float:
    """The largest resident memory of this process so far, in GB.

    From Linux's VmHWM, since getrusage's maximum includes that of the parent process.
    """
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            (line,) = [line for line in file if line.startswith("VmHWM:")]
        return int(line.split()[1]) * 1024 / 1e9
    except (OSError, ValueError):
        return np.nan
