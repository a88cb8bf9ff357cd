"""Figure 2: how the seconds of a fit grow with the samples and with the categorical features, on synthetic data.

Rows are kept in one csv file for each label cost and seed, and saved after every fit, so that a run killed at any
moment resumes where it stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from wdrlr.extras import required
from wdrlr.model.cuts import count_all_cuts
from wdrlr.model.problem import Problem
from wdrlr.paper.results import STAMPED, other_versions, processor, versions, versions_fault
from wdrlr.paper.store import Row, Table, check_writable
from wdrlr.paper.synthetic import categorical_problem, synthetic_data
from wdrlr.solvers import registry
from wdrlr.solvers.conic import ConicSolverError, OutOfTime, choose_conic_solver
from wdrlr.solvers.solution import Solution

LEVELS = {"2": (2,), "3 and 5": (3, 5)}
"""Numbers of levels of the features, in turn."""

SOLVERS = {
    "monolithic": "monolithic program",
    "algorithm1": "scheme, as the paper's",
    "all-violated": "scheme, all violated cuts",
    "tailored": "tailored solver",
}
"""Names of the four solvers compared, and their labels in the figure."""

WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "monolithic": ("monolithic", {}),
    "algorithm1": ("column-constraint", {"all_violated": False}),
    "all-violated": ("column-constraint", {"all_violated": True}),
    "tailored": ("tailored", {}),
}
"""For each of them the registered solver and its options, see ``wdrlr.solvers.registry``."""

MAX_ITER = 10_000
"""Limit on the iterations of a solver, more than any fit needs."""

SCHEMES = ("algorithm1", "all-violated")

STAMPED_HERE = (*STAMPED, "wdrlr.paper.runtimes")
"""The packages and modules that a row of Figure 2 can depend on."""

COLUMNS = {
    "label_cost": str,  # kappa: "1" or "m"
    "radius": float,  # in units of the metric divided by m + kappa
    "seed": int,
    "levels": str,  # a key of LEVELS
    "N": int,
    "m": int,
    "run": int,
    "solver": str,
    "conic_solver": str,  # empty for the tailored solver
    "tol": float,  # certified gap required
    "status": str,  # "done", "time limit", "uncertified" (it ended with a larger gap) or "failed"
    "seconds": float,  # wall clock: building, solving and certifying, on one thread
    "cpu_seconds": float,  # processor time of the same steps
    "time_limit": float,
    "rounds": int,  # programs solved, or Newton systems; -1 without a solution
    "cuts": int,  # in the last program; -1 without a solution
    "objective": float,
    "gap": float,
    "constant": bool,  # all slopes are exactly 0
    "machine": str,
    "versions": str,
}
"""Columns of a row, one fit each, with their types."""

KEY = ("label_cost", "radius", "seed", "levels", "N", "m", "run", "solver", "conic_solver", "tol")
"""The columns that identify a fit."""

RUNTIMES = Table(COLUMNS, KEY, "figure2_kappa_{label_cost}_seed{seed}.csv", versions_fault)
"""The store of these rows."""

Size = tuple[str, int, int]
"""The size of an instance: levels, N and m."""


class Fit(NamedTuple):
    """A fit that every run makes once."""

    label_cost: str
    size: Size
    solver: str


@dataclass(frozen=True)
class Panel:
    """One panel: its sizes (levels, N, m), what its horizontal axis shows ("N" or "m"), and the solvers compared."""

    title: str
    axis: str
    sizes: tuple[Size, ...]
    solvers: tuple[str, ...] = tuple(SOLVERS)


@dataclass(frozen=True)
class Setting:
    """What all fits of a figure share.

    Parameters
    ----------
    radius : float
        In units of the metric divided by m + kappa.
    seed : int
        The data of run r of a size depend only on the seed, r and the size.
    tol : float
        Certified gap at which a fit is done.
    time_limit : float
        Seconds of wall clock after which a fit is stopped; a stored fit that took longer, under a larger limit, counts
        as stopped as well.
    max_constraints : int
        Monolithic programs with more constraints are not built (the memory guard; 8 kB per constraint).
    conic_solver : str
        As in ``WassersteinLogisticRegression``.
    """

    radius: float = 0.01
    seed: int = 0
    tol: float = 1e-6
    time_limit: float = 30.0
    max_constraints: int = 500_000
    conic_solver: str = "CLARABEL"

    def __post_init__(self) -> None:
        if not 0 <= self.radius < np.inf:
            raise ValueError(f"radius must be a finite number, at least 0, not {self.radius!r}.")
        for name in ("tol", "time_limit", "max_constraints"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, not {getattr(self, name)!r}.")

    def row_key(self, fit: Fit, run: int) -> tuple:
        """The entries of ``KEY`` in the row of a fit."""
        conic_solver = "" if fit.solver == "tailored" else choose_conic_solver(self.conic_solver)
        common = (float(self.radius), self.seed)
        return (fit.label_cost, *common, *fit.size, run, fit.solver, conic_solver, float(self.tol))


def _grid(
    in_N: Sequence[int],
    m_of_N: int,
    N_of_m: int,
    in_m: Sequence[int],
    scheme_N: Sequence[int],
    scheme_m: Sequence[int],
    level_m: Sequence[int],
) -> dict[str, Panel]:
    sizes = tuple(("2", N, m) for m, N in product(scheme_m, scheme_N))
    return {
        "N": Panel(f"m = {m_of_N} binary features", "N", tuple(("2", N, m_of_N) for N in in_N)),
        "m": Panel(f"N = {N_of_m}, binary features", "m", tuple(("2", N_of_m, m) for m in in_m)),
        "scheme": Panel("the schemes alone, binary features", "N", sizes, SCHEMES),
        "levels": Panel(f"N = {N_of_m}, 3 and 5 levels in turn", "m", tuple(("3 and 5", N_of_m, m) for m in level_m)),
    }


GRIDS = {
    "full": _grid(
        in_N=(10, 20, 50, 100, 200, 500),
        m_of_N=10,
        N_of_m=50,
        in_m=(2, 4, 6, 8, 10, 12),
        scheme_N=(50, 100, 200, 500, 1000),
        scheme_m=(10, 20, 50, 100),
        level_m=(1, 2, 3, 4, 5, 6, 8, 12),
    ),
    "quick": _grid(
        in_N=(10, 20, 50),
        m_of_N=4,
        N_of_m=20,
        in_m=(2, 4, 6),
        scheme_N=(20, 50, 100),
        scheme_m=(5, 10),
        level_m=(1, 2, 3),
    ),
}
"""The panels of the figure: the paper's three, and one for features with several levels. The paper states no grid."""


def instance(label_cost: str, levels: str, N: int, m: int, run: int, radius: float, seed: int) -> Problem:
    """The problem of one run: Algorithm 3's data, kappa = 1 or m, the metric divided by m + kappa."""
    in_turn = LEVELS[levels]
    data = synthetic_data(N, [in_turn[j % len(in_turn)] for j in range(m)], [seed, run, N, m, *in_turn])
    kappa = "n_categorical" if label_cost == "m" else float(label_cost)
    return categorical_problem(data.z, data.y, data.n_levels, kappa, radius, "unit")


def rows_for(
    panels: dict[str, Panel],
    label_costs: Sequence[str],
    n_runs: int,
    setting: Setting,
    folder: Path,
    *,
    compute_missing: bool,
) -> pd.DataFrame:
    """The rows of all fits of the panels; with ``compute_missing``, those that ``folder`` lacks are computed first.

    Each run covers all sizes and solvers before the next begins. A solver is given up at a size when more than half of
    its earlier runs there were not solved (one of one is enough); the monolithic program is not tried if it has too
    many constraints. A fit that was stopped before the setting's time limit is repeated. Prints `other_versions`, if
    there are any.

    Returns
    -------
    DataFrame with the columns ``COLUMNS``

    Raises
    ------
    ValueError
        If ``label_costs`` or ``n_runs`` is invalid.
    OSError
        If rows are to be computed and cannot be stored in the folder, before any work.
    """
    if n_runs < 1:
        raise ValueError(f"n_runs must be at least 1, not {n_runs}.")
    unknown = [label_cost for label_cost in label_costs if label_cost not in ("1", "m")]
    if unknown or not label_costs:
        raise ValueError(f'label_costs must be a non-empty list of "1" and "m", not {list(label_costs)!r}.')
    of_panels = dict.fromkeys(
        (size, solver) for panel in panels.values() for size in panel.sizes for solver in panel.solvers
    )
    fits = [Fit(label_cost, size, solver) for label_cost, (size, solver) in product(label_costs, of_panels)]
    keys = [setting.row_key(fit, run) for fit, run in product(fits, range(n_runs))]
    stored = RUNTIMES.load(folder, keys)
    if compute_missing:
        check_writable(folder)
        tqdm = required("tqdm.auto", "compute_missing", "notebooks").tqdm
        with threadpool_limits(1), tqdm(total=len(keys), unit="fit") as progress:
            for solver in SOLVERS:  # imports and compilation
                solve(instance("1", "2", 12, 2, 0, 0.01, 0), solver, replace(setting, time_limit=np.inf))
            for run, fit in product(range(n_runs), fits):
                if row := _missing_row(stored, fit, run, setting):
                    RUNTIMES.save(folder, [row])
                    stored[setting.row_key(fit, run)] = row
                progress.update()
    rows = RUNTIMES.to_frame(row for key in keys if (row := _within(stored, key, setting.time_limit)))
    if message := other_versions(rows, STAMPED_HERE):
        print(message)
    return rows


def _within(stored: dict[tuple, Row], key: tuple, time_limit: float) -> Row | None:
    """A fit's row as seen under this time limit; None if the fit was not made, or was stopped at an earlier limit."""
    row = stored.get(key)
    if row is None or (row["status"] == "time limit" and row["time_limit"] < time_limit):
        return None
    return row | {"status": "time limit"} if row["seconds"] >= time_limit else row


def _missing_row(stored: dict[tuple, Row], fit: Fit, run: int, setting: Setting) -> Row | None:
    """Fit, and return the row; None if it is stored, if its solver was given up, or if the program is too large."""
    keys = [setting.row_key(fit, number) for number in range(run + 1)]
    *earlier, this = [_within(stored, key, setting.time_limit) for key in keys]
    solved = [row["status"] == "done" for row in earlier if row is not None]
    if this is not None or solved.count(False) > solved.count(True):
        return None
    problem = instance(fit.label_cost, *fit.size, run, setting.radius, setting.seed)
    if fit.solver == "monolithic" and count_all_cuts(problem) > setting.max_constraints:
        return None
    row = dict(zip(KEY, keys[-1], strict=True)) | timed(problem, fit.solver, setting)
    return {name: row[name] for name in COLUMNS}


def solve(problem: Problem, solver: str, setting: Setting) -> Solution:
    """Solve a problem by one of ``SOLVERS``; the conic ones are stopped at the time limit.

    The conic programs have one set of constraints for each sample, as in the paper; merging equal samples first is
    part of the tailored solver.
    """
    if solver == "tailored":
        problem = problem.merged()
    name, options = WAYS[solver]
    limits = {"time_limit": setting.time_limit, "max_cuts": setting.max_constraints}
    options = options | {limit: value for limit, value in limits.items() if limit in registry.SOLVERS[name].options}
    return registry.solve(problem, name, options, setting.conic_solver, setting.tol, MAX_ITER)


def timed(problem: Problem, solver: str, setting: Setting) -> Row:
    """Solve a problem by one of ``SOLVERS``: the columns of a row other than its key."""
    solution, status = None, "failed"
    start, cpu_start = perf_counter(), process_time()
    try:
        solution = solve(problem, solver, setting)
    except OutOfTime:
        status = "time limit"
    except ConicSolverError:
        pass
    seconds, cpu_seconds = perf_counter() - start, process_time() - cpu_start
    if solution is not None:
        late = seconds >= setting.time_limit
        status = "done" if solution.gap <= setting.tol else "time limit" if late else "uncertified"
    return {
        "status": status,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "time_limit": float(setting.time_limit),
        "rounds": solution.n_rounds if solution else -1,
        "cuts": solution.n_cuts if solution else -1,
        "objective": solution.upper if solution else np.nan,
        "gap": solution.gap if solution else np.nan,
        "constant": bool(solution and not solution.b[1:].any()),
        "machine": processor(),
        "versions": versions(STAMPED_HERE),
    }


def summarise(
    rows: pd.DataFrame, panels: dict[str, Panel], label_costs: Sequence[str], setting: Setting
) -> pd.DataFrame:
    """Median and 10 to 90 % of the processor seconds, one row per label cost, panel, solver and size.

    A run that was not solved counts as longer than any other, so that a quantile can be infinite. The quantiles are
    observed values (of two, the higher).

    Returns
    -------
    DataFrame with the columns label_cost, panel, solver, levels, N, m, tried, solved, low, median, high, constant
    (share of the solved runs with slopes that are all 0), rounds (their median) and missing: "" where the median is
    finite, else the reason why not, "time limit", "uncertified", "failed", "memory guard" or "not run".
    """
    groups = dict(iter(rows.groupby(["label_cost", "solver", "levels", "N", "m"])))
    table = []
    for label_cost, (name, panel) in product(label_costs, panels.items()):
        for solver, size in product(panel.solvers, panel.sizes):
            of_point = groups.get((label_cost, solver, *size), rows[:0])
            solved = of_point[of_point["status"] == "done"]
            row: Row = {"label_cost": label_cost, "panel": name, "solver": solver}
            row |= dict(zip(("levels", "N", "m"), size, strict=True))
            row |= {"tried": len(of_point), "solved": len(solved), "low": np.inf, "median": np.inf, "high": np.inf}
            if len(of_point):
                seconds = np.where(of_point["status"] == "done", of_point["cpu_seconds"], np.inf)
                row |= zip(
                    ("low", "median", "high"), np.quantile(seconds, [0.1, 0.5, 0.9], method="higher"), strict=True
                )
            row |= {"constant": solved["constant"].mean(), "rounds": solved["rounds"].median(), "missing": ""}
            if np.isinf(row["median"]):
                unsolved = of_point.loc[of_point["status"] != "done", "status"]
                problem = instance(label_cost, *size, 0, setting.radius, setting.seed)
                guarded = solver == "monolithic" and count_all_cuts(problem) > setting.max_constraints
                row["missing"] = unsolved.mode()[0] if len(unsolved) else "memory guard" if guarded else "not run"
            table.append(row)
    return pd.DataFrame(table)
