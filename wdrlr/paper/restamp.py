"""Give stored rows the versions in use, if these compute the same: ``python -m wdrlr.paper.restamp``.

A change of code that can move no digit still changes the stamp of the sources (`wdrlr.paper.results.versions`). Instead
of computing all rows anew, a sample of them is: at least one of each method on each data set, one of each change of
`wdrlr.paper.variants`, one of Algorithm 1 (`wdrlr.paper.scheme_runtimes`) on each data set, one of each method on each
data set of the fits timed alone (`wdrlr.paper.quiet_runtimes`), and one of each solver at each size of Figure 2
(`wdrlr.paper.runtimes`). Only if each has the same errors and choices, and an objective within
the certified gaps, do all rows get the new versions. Seconds stay those of the older code: where a change alters them,
the rows of fits timed alone, of Algorithm 1 and of Figure 2 are to be computed anew.
"""

import argparse
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

from wdrlr.extras import required
from wdrlr.paper import quiet_runtimes, runtimes, scheme_runtimes
from wdrlr.paper.cells import Cell, plan_cells, run_cell
from wdrlr.paper.methods import METHODS
from wdrlr.paper.paths import results_folder
from wdrlr.paper.quiet_runtimes import QUIET_RUNTIMES, run_alone
from wdrlr.paper.results import RESULTS, versions
from wdrlr.paper.runtimes import RUNTIMES, Setting
from wdrlr.paper.scheme_runtimes import SCHEME_RUNTIMES, run_scheme
from wdrlr.paper.store import Row, Table
from wdrlr.paper.variants import VARIANTS

FREE = (
    *("seconds", "solver_seconds", "identification_seconds", "cv_seconds"),
    *("lr_seconds", "tailored_seconds", "cpu_seconds", "machine", "versions"),
    *("gap", "n_iter", "n_cuts", "rounds", "cuts"),
)
"""The columns that may differ: seconds, and the path to a certified optimum, which a processor's rounding can alter."""

OBJECTIVES = ("objective", "tailored_objective")
"""The columns that may differ as much as the certificates of both rows allow."""

REPEATABLE = 20.0
"""Seconds: a single fit (all but the experiments' rows) that took longer is not in the sample."""


class Kind(NamedTuple):
    """One kind of rows: where they are, which versions they should have, which ones are the sample, and a row anew."""

    store: Table
    files: Sequence[str]
    now: str
    sample: Callable[[Sequence[Row]], list[Row]]
    anew: Callable[[Row], Row]


def kinds(n_rows: int, seed: int) -> list[Kind]:
    """The experiments' rows, of which at least `n_rows` are drawn; those of Algorithm 1, of fits timed alone, and of
    Figure 2."""
    return [
        Kind(
            RESULTS,
            [f"*_{name}_seed*.csv" for name in METHODS],
            versions(),
            lambda rows: draw_sample(rows, n_rows, random.Random(seed)),
            lambda row: run_cell(*cell_of(row)),
        ),
        Kind(
            SCHEME_RUNTIMES,
            ["algorithm1_*.csv"],
            versions(scheme_runtimes.STAMPED_HERE),
            lambda rows: _one_of_each(rows, ["dataset"]),
            lambda row: run_scheme(row, row["time_limit"]),
        ),
        Kind(
            QUIET_RUNTIMES,
            ["quiet_*.csv"],
            versions(quiet_runtimes.STAMPED_HERE),
            lambda rows: _one_of_each(rows, ["dataset", "method"]),
            run_alone,
        ),
        Kind(
            RUNTIMES,
            ["figure2_*.csv"],
            versions(runtimes.STAMPED_HERE),
            lambda rows: _one_of_each(rows, ["label_cost", "solver", "levels", "N", "m"]),
            _timed_anew,
        ),
    ]


def cell_of(row: Row) -> Cell:
    """The cell that a row belongs to.

    Raises
    ------
    ValueError
        If there is no such method, protocol or variant any more.
    """
    name, _, variant = row["protocol"].partition("-")
    if variant and variant not in VARIANTS:
        raise ValueError(f"there is no variant {variant!r}, of which {row['dataset']} has rows; remove these.")
    (cell,) = plan_cells(
        [row["dataset"]],
        [row["method"]],
        n_splits=1,
        first_split=row["split"],
        seed=row["seed"],
        protocol=name,
        tol=1e-6 if variant else row["tol"],
        solver=row["solver"],
    )
    return VARIANTS[variant].of(cell) if variant else cell


def differing(row: Row, anew: Row) -> list[str]:
    """The columns in which two rows of a cell differ, but for those of `FREE`, and `OBJECTIVES` within the gaps."""
    allowed = max(row["gap"], row["tol"]) + max(anew["gap"], anew["tol"])
    return [
        name
        for name, value in row.items()
        if name not in FREE
        and repr(value) != repr(anew[name])
        and not (name in OBJECTIVES and abs(value - anew[name]) <= allowed)
    ]


def restamp(folder: Path, n_rows: int, seed: int = 0, n_jobs: int = 1) -> int:
    """Compute `n_rows` of the rows with other versions anew, or more if the sample needs them, and restamp them all.

    Returns
    -------
    The number of rows that had other versions.

    Raises
    ------
    RuntimeError
        If a row that is computed anew differs; then nothing is written.
    ValueError
        As `cell_of`.
    ImportError
        If a package of the extra "notebooks" is not installed.
    """
    tqdm = required("tqdm.auto", "restamp", "notebooks").tqdm
    older = [(kind, rows) for kind in kinds(n_rows, seed) if (rows := _rows_of_others(kind, folder))]
    sample = [(kind, row) for kind, rows in older for row in kind.sample(rows)]
    with threadpool_limits(1), parallel_config("loky", inner_max_num_threads=1):
        found = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(kind.anew)(row) for kind, row in sample)
        moved = [
            f"{', '.join(f'{name} {row[name]}' for name in kind.store.key)}: {columns}"
            for (kind, row), anew in zip(sample, tqdm(found, total=len(sample), unit="row"), strict=True)
            if (columns := differing(row, anew))
        ]
    if moved:
        raise RuntimeError(
            f"{len(moved)} of {len(sample)} rows computed anew differ, so all must be: {'; '.join(moved)}"
        )
    for kind, rows in older:
        kind.store.save(folder, [row | {"versions": kind.now} for row in rows])
    return sum(len(rows) for _, rows in older)


def _rows_of_others(kind: Kind, folder: Path) -> list[Row]:
    """The rows of a kind with other versions than these."""
    rows = [row for name in kind.files for path in sorted(folder.glob(name)) for row in kind.store.read(path)]
    return [row for row in rows if row["versions"] != kind.now]


def _one_of_each(rows: Sequence[Row], columns: Sequence[str]) -> list[Row]:
    """One row of each combination of these columns, among those that can be repeated."""
    repeatable = [row for row in rows if row["seconds"] < REPEATABLE]
    return list({tuple(row[name] for name in columns): row for row in repeatable}.values())


def _timed_anew(row: Row) -> Row:
    """A row of Figure 2 anew."""
    size = row["label_cost"], row["levels"], row["N"], row["m"]
    problem = runtimes.instance(*size, row["run"], row["radius"], row["seed"])
    setting = Setting(
        tol=row["tol"], time_limit=row["time_limit"], conic_solver=row["conic_solver"] or Setting.conic_solver
    )
    return row | runtimes.timed(problem, row["solver"], setting)


def draw_sample(rows: Sequence[Row], n_rows: int, draw: random.Random) -> list[Row]:
    """One row of each method on each data set and one of each protocol and change, then others up to `n_rows`."""
    shuffled = draw.sample(rows, len(rows))
    of_each = {("protocol", row["protocol"]): row for row in shuffled}
    of_each |= {(row["dataset"], row["method"]): row for row in shuffled}
    sample = list({id(row): row for row in of_each.values()}.values())
    taken = set(map(id, sample))
    rest = [row for row in shuffled if id(row) not in taken]
    return sample + rest[: max(0, n_rows - len(sample))]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results-dir", default="", help="the folder of the rows; default: the project's")
    parser.add_argument("--rows", type=int, default=100, help="how many rows to compute anew")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time")
    given = parser.parse_args(arguments)
    count = restamp(results_folder(given.results_dir), given.rows, given.seed, given.jobs)
    print(f"{count} rows have the versions in use now.")


if __name__ == "__main__":
    main()
