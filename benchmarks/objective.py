"""The objective, evaluated outside the solvers by the same code for all of them, and the race between solvers."""

from collections.abc import Sequence
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.datasets import some_rows
from benchmarks.solvers import SOLVERS
from wdrlr.model.certificate import objective as value_at
from wdrlr.model.problem import Problem

LONG = 10.0
"""A run of more than this many seconds is not repeated."""


def objective(problem: Problem, b: np.ndarray) -> float:
    """F at b, by separation; infinite outside the bounds on the coefficients."""
    if not np.all(np.abs(b) <= problem.coef_bound * (1 + 1e-9)):
        return np.inf
    return value_at(problem, b)[0]


def race(problem: Problem, entrants: Sequence[tuple[str, float]], repeats: int = 1) -> list[dict]:
    """Run solvers in turn, `repeats` times over, and keep the best time of each.

    Parameters
    ----------
    entrants : pairs (name in `SOLVERS`, stop)
        The solver stops at the certified gap `stop` or, if it is "algorithm1", after `stop` rounds.

    Returns
    -------
    One row per entrant: solver, stop, seconds, memory_gb (the peak of the process so far), note (the error, if any; the
    measurements are nan then), upper (F), lower (the solver's lower bound, -inf if it has none), rounds,
    expected_rounds.
    """
    solvers = [SOLVERS[name](problem) for name, _ in entrants]
    seconds: list[list[float]] = [[] for _ in entrants]
    notes = [""] * len(entrants)
    memory = [np.nan] * len(entrants)
    with threadpool_limits(1):
        for name, stop in entrants:
            # A warm-up for imports and compilation: gaps stay the same, but two rounds are enough.
            SOLVERS[name](some_rows(problem, 30)).run(min(stop, 2))
        for _ in range(repeats):
            for i, (solver, (_, stop)) in enumerate(zip(solvers, entrants, strict=True)):
                if notes[i] or (seconds[i] and min(seconds[i]) > LONG):
                    continue
                start = perf_counter()
                try:
                    solver.run(stop)
                except Exception as error:  # a solver that fails must not end a run of hours
                    notes[i] = f"{type(error).__name__}: {error}".partition("\n")[0]
                seconds[i].append(perf_counter() - start)
                memory[i] = peak_memory_gb()
        rows = []
        for i, (solver, (name, stop)) in enumerate(zip(solvers, entrants, strict=True)):
            row = unmeasured(name, stop, notes[i]) | {"memory_gb": memory[i]}
            if not notes[i]:
                answer = solver.result()
                row |= {
                    "seconds": min(seconds[i]),
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
