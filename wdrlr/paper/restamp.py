"""Give stored rows the versions in use, if these compute the same: ``python -m wdrlr.paper.restamp``.

A change of code that can move no digit still changes the stamp of the sources (`wdrlr.paper.results.versions`). Instead
of computing all rows anew, a sample of them is: at least one of each method on each data set, one of each change of
`wdrlr.paper.variants`, and one of Algorithm 1 (`wdrlr.paper.scheme_runtimes`) on each data set. Only if each has the
same errors and choices, and an objective within the certified gaps, do all rows get the new versions.
"""

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

from wdrlr.extras import required
from wdrlr.paper import scheme_runtimes
from wdrlr.paper.cells import Cell, plan_cells, run_cell
from wdrlr.paper.methods import METHODS
from wdrlr.paper.paths import results_folder
from wdrlr.paper.results import RESULTS, versions
from wdrlr.paper.scheme_runtimes import SCHEME_RUNTIMES, run_scheme
from wdrlr.paper.store import Row, Table
from wdrlr.paper.variants import VARIANTS

FREE = (
    *("seconds", "solver_seconds", "identification_seconds", "cv_seconds"),
    *("lr_seconds", "tailored_seconds", "machine", "versions"),
    *("gap", "n_iter", "n_cuts", "rounds", "cuts"),
)
"""The columns that may differ: seconds, and the path to a certified optimum, which a processor's rounding can alter."""

OBJECTIVES = ("objective", "tailored_objective")
"""The columns that may differ as much as the certificates of both rows allow."""

REPEATABLE = 20.0
"""Seconds: a fit by Algorithm 1 that took longer is not in the sample."""


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
    now, now_scheme = versions(), versions(scheme_runtimes.STAMPED_HERE)
    older = _rows_of_others(RESULTS, folder, [f"*_{name}_seed*.csv" for name in METHODS], now)
    older_scheme = _rows_of_others(SCHEME_RUNTIMES, folder, ["algorithm1_*.csv"], now_scheme)
    sample = draw_sample(older, n_rows, random.Random(seed))
    by_scheme = {row["dataset"]: row for row in older_scheme if row["seconds"] < REPEATABLE}
    tasks = [(row, delayed(run_cell)(*cell_of(row))) for row in sample]
    tasks += [(row, delayed(run_scheme)(row, row["time_limit"])) for row in by_scheme.values()]
    moved = []
    with threadpool_limits(1), parallel_config("loky", inner_max_num_threads=1):
        found = Parallel(n_jobs=n_jobs, return_as="generator")(task for _, task in tasks)
        for (row, _), anew in zip(tasks, tqdm(found, total=len(tasks), unit="row"), strict=True):
            if columns := differing(row, anew):
                moved.append(f"{row['dataset']}, {row['protocol']}, {row['method']}, split {row['split']}: {columns}")
    if moved:
        raise RuntimeError(
            f"{len(moved)} of {len(tasks)} rows computed anew differ, so all must be: {'; '.join(moved)}"
        )
    RESULTS.save(folder, [row | {"versions": now} for row in older])
    SCHEME_RUNTIMES.save(folder, [row | {"versions": now_scheme} for row in older_scheme])
    return len(older) + len(older_scheme)


def _rows_of_others(store: Table, folder: Path, patterns: Sequence[str], now: str) -> list[Row]:
    """The rows with other versions than these in the files of a store."""
    rows = [row for name in patterns for path in sorted(folder.glob(name)) for row in store.read(path)]
    return [row for row in rows if row["versions"] != now]


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
