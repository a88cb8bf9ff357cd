"""Figure 2: how the seconds of a fit grow with the samples and with the categorical features, on synthetic data.

Rows are kept in one csv file a label cost and seed, replaced whole after every fit, so that a run killed at any moment
goes on where it stopped. One process should write to a file at a time.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

from wdrlr.files import replace_file
from wdrlr.model.cuts import count_all_cuts
from wdrlr.model.problem import Problem, merge_duplicates
from wdrlr.paper.results import processor, versions
from wdrlr.paper.synthetic import categorical_problem, synthetic_data
from wdrlr.solvers.column_constraint import solve_column_constraint, solve_monolithic
from wdrlr.solvers.conic import ConicSolverError, OutOfTime, choose_conic_solver
from wdrlr.solvers.interior_point.method import solve_tailored
from wdrlr.solvers.solution import Solution

LEVELS = {"2": (2,), "3 and 5": (3, 5)}
"""Numbers of levels of the features, in turn."""

SOLVERS = {
    "monolithic": "monolithic program",
    "algorithm1": "scheme, as the paper's",
    "all-violated": "scheme, all violated cuts",
    "tailored": "tailored solver",
}
"""Names of the four ways to solve, and their labels in the figure."""

SCHEMES = ("algorithm1", "all-violated")

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
    "tol": float,  # certified gap asked for
    "status": str,  # "done", "time limit", "uncertified" (it ended with a larger gap) or "failed"
    "seconds": float,  # wall clock: building, solving and certifying, on one thread
    "cpu_seconds": float,  # processor time of the same
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

KEY = ("radius", "seed", "levels", "N", "m", "run", "solver", "conic_solver", "tol")
"""What tells a fit from the others with the same label cost."""

Row = dict[str, object]


@dataclass(frozen=True)
class Panel:
    """One panel: the sizes (levels, N, m) in it, what its horizontal axis shows ("N" or "m"), and who is compared."""

    title: str
    axis: str
    sizes: tuple[tuple[str, int, int], ...]
    solvers: tuple[str, ...] = tuple(SOLVERS)


@dataclass(frozen=True)
class Setting:
    """What all fits of a figure share.

    Parameters
    ----------
    radius : float
        In units of the metric divided by m + kappa.
    seed : int
        Run r of a size has data that follow from the seed, r and the size alone.
    tol : float
        Certified gap at which a fit is done.
    time_limit : float
        Seconds of wall clock after which a fit is stopped; one that once took longer, with a larger limit, counts as
        stopped as well.
    max_constraints : int
        A larger monolithic program is not built (the memory guard; 8 kB each).
    conic_solver : str
        As in ``WassersteinLogisticRegression``.
    """

    radius: float = 0.01
    seed: int = 0
    tol: float = 1e-6
    time_limit: float = 30.0
    max_constraints: int = 500_000
    conic_solver: str = "CLARABEL"

    def __post_init__(self):
        if not 0 <= self.radius < np.inf:
            raise ValueError(f"radius must be a finite number, at least 0, not {self.radius!r}.")
        for name in ("tol", "time_limit", "max_constraints"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, not {getattr(self, name)!r}.")

    def row_key(self, size: tuple[str, int, int], run: int, solver: str) -> tuple:
        """The fit's entries of ``KEY``."""
        conic_solver = "" if solver == "tailored" else choose_conic_solver(self.conic_solver)
        return (float(self.radius), self.seed, *size, run, solver, conic_solver, float(self.tol))


def _grid(N, m_of_N, N_of_m, m, scheme_N, scheme_m, level_m) -> dict[str, Panel]:
    sizes = tuple(("2", one, other) for other, one in product(scheme_m, scheme_N))
    return {
        "N": Panel(f"m = {m_of_N} binary features", "N", tuple(("2", one, m_of_N) for one in N)),
        "m": Panel(f"N = {N_of_m}, binary features", "m", tuple(("2", N_of_m, one) for one in m)),
        "scheme": Panel("the schemes alone, binary features", "N", sizes, SCHEMES),
        "levels": Panel(f"N = {N_of_m}, 3 and 5 levels in turn", "m", tuple(("3 and 5", N_of_m, o) for o in level_m)),
    }


GRIDS = {
    "full": _grid(
        N=(10, 20, 50, 100, 200, 500),
        m_of_N=10,
        N_of_m=50,
        m=(2, 4, 6, 8, 10, 12),
        scheme_N=(50, 100, 200, 500, 1000),
        scheme_m=(10, 20, 50, 100),
        level_m=(1, 2, 3, 4, 5, 6, 8, 12),
    ),
    "quick": _grid(
        N=(10, 20, 50), m_of_N=4, N_of_m=20, m=(2, 4, 6), scheme_N=(20, 50, 100), scheme_m=(5, 10), level_m=(1, 2, 3)
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
    """The rows of all fits of the panels; what ``folder`` does not hold is computed first, if that is wanted.

    Run by run, all sizes and solvers in each. A solver is given up at a size when more than half of its earlier runs
    there were not solved (one of one is enough); it is not tried where the monolithic program has too many
    constraints. A fit that was stopped earlier than the setting's time limit is done again.

    Returns
    -------
    DataFrame with the columns ``COLUMNS``

    Raises
    ------
    ValueError
        For label costs or numbers of runs that make no sense, or if a file in the folder is not of this kind.
    """
    if n_runs < 1:
        raise ValueError(f"n_runs must be at least 1, not {n_runs}.")
    unknown = [label_cost for label_cost in label_costs if label_cost not in ("1", "m")]
    if unknown or not label_costs:
        raise ValueError(f'label_costs must be of "1" and "m", not {list(label_costs)!r}.')
    stores = {label_cost: _Store(folder, label_cost, setting) for label_cost in label_costs}
    fits = list(
        dict.fromkeys((size, solver) for panel in panels.values() for size in panel.sizes for solver in panel.solvers)
    )
    if compute_missing:
        with threadpool_limits(1), tqdm(total=n_runs * len(label_costs) * len(fits), unit="fit") as progress:
            for solver in SOLVERS:  # imports and compilation
                solve(instance("1", "2", 12, 2, 0, 0.01, 0), solver, replace(setting, time_limit=np.inf))
            for run, label_cost, (size, solver) in product(range(n_runs), label_costs, fits):
                stores[label_cost].compute(size, run, solver)
                progress.update()
    wanted = [
        stores[label_cost].find(size, run, solver)
        for label_cost, (size, solver), run in product(label_costs, fits, range(n_runs))
    ]
    return pd.DataFrame([row for row in wanted if row is not None], columns=list(COLUMNS))


def solve(problem: Problem, solver: str, setting: Setting) -> Solution:
    """One of ``SOLVERS`` on a problem; the conic ones are stopped at the time limit.

    The conic programs have one set of constraints for each sample, as in the paper; merging equal samples first is
    part of the tailored solver.
    """
    if solver == "tailored":
        x, z, y, w = merge_duplicates(problem.x, problem.z, problem.y, problem.w)
        return solve_tailored(replace(problem, x=x, z=z, y=y, w=w), tol=setting.tol)
    options = {
        "tol": setting.tol,
        "conic_solver": choose_conic_solver(setting.conic_solver),
        "time_limit": setting.time_limit,
    }
    if solver == "monolithic":
        return solve_monolithic(problem, max_cuts=setting.max_constraints, **options)
    return solve_column_constraint(problem, all_violated=solver == "all-violated", **options)


class _Store:
    """The rows of one label cost and seed, by key, and the file that holds them."""

    def __init__(self, folder: Path, label_cost: str, setting: Setting):
        self.path = folder / f"figure2_kappa_{label_cost}_seed{setting.seed}.csv"
        self.label_cost, self.setting = label_cost, setting
        self.rows: dict[tuple, Row] = {}
        if self.path.is_file():
            self.rows = {tuple(row[name] for name in KEY): row for row in _parse(self.path)}

    def find(self, size: tuple[str, int, int], run: int, solver: str) -> Row | None:
        """The fit's row, as it is with this time limit; None if it was not done, or was stopped at an earlier one."""
        row = self.rows.get(self.setting.row_key(size, run, solver))
        limit = self.setting.time_limit
        if row is None or (row["status"] == "time limit" and row["time_limit"] < limit):
            return None
        return row | {"status": "time limit"} if row["seconds"] >= limit else row

    def compute(self, size: tuple[str, int, int], run: int, solver: str) -> None:
        """Fit, unless that is done or there is no hope, and keep the row."""
        setting = self.setting
        key = setting.row_key(size, run, solver)
        if self.find(size, run, solver) is not None:
            return
        before = [self.find(size, other, solver) for other in range(run)]
        solved = [row["status"] == "done" for row in before if row is not None]
        if solved.count(False) > solved.count(True):
            return
        problem = instance(self.label_cost, *size, run, setting.radius, setting.seed)
        if solver == "monolithic" and count_all_cuts(problem) > setting.max_constraints:
            return
        self.rows[key] = dict(zip(KEY, key, strict=True)) | _timed(problem, solver, setting, self.label_cost)
        text = io.StringIO()
        writer = csv.DictWriter(text, list(COLUMNS), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows.values())
        replace_file(self.path, text.getvalue())


def _timed(problem: Problem, solver: str, setting: Setting, label_cost: str) -> Row:
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
        "label_cost": label_cost,
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
        "versions": versions(),
    }


def _parse(path: Path) -> list[Row]:
    reader = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))
    try:
        if reader.fieldnames != list(COLUMNS):
            raise ValueError(f"its columns are {reader.fieldnames}")
        return [
            {name: row[name] == "True" if kind is bool else kind(row[name]) for name, kind in COLUMNS.items()}
            for row in reader
        ]
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{path} holds no rows of this figure ({error}); move it away or choose another results_dir."
        ) from None


def summarise(
    rows: pd.DataFrame, panels: dict[str, Panel], label_costs: Sequence[str], setting: Setting
) -> pd.DataFrame:
    """Median and 10 to 90 % of the processor seconds, one row a label cost, panel, solver and size.

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
            row = {"label_cost": label_cost, "panel": name, "solver": solver}
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
