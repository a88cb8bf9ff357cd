"""Give stored rows the versions in use, if these compute the same: ``python -m wdrlr.paper.restamp``.

A change of code that can move no digit still changes the stamp of the sources (`wdrlr.paper.results.versions`). Instead
of computing all rows anew, a sample of them is, at least one a file. Only if each is the same in every column but its
seconds do all rows get the new versions.
"""

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

from wdrlr.extras import required
from wdrlr.paper.cells import Cell, plan_cells, run_cell
from wdrlr.paper.methods import METHODS
from wdrlr.paper.paths import results_folder
from wdrlr.paper.results import RESULTS, versions
from wdrlr.paper.store import Row
from wdrlr.paper.variants import VARIANTS

FREE = ("seconds", "solver_seconds", "identification_seconds", "cv_seconds", "versions")
"""The columns that may differ."""


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
    """The columns in which two rows of a cell differ, but for those of `FREE`."""
    return [name for name, value in row.items() if name not in FREE and repr(value) != repr(anew[name])]


def restamp(folder: Path, n_rows: int, seed: int = 0) -> int:
    """Compute `n_rows` of the rows with other versions anew, or one a file if that is more, and restamp them all.

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
    paths = sorted(path for name in METHODS for path in folder.glob(f"*_{name}_seed*.csv"))  # not those of Figure 2
    files = {path: RESULTS.read(path) for path in paths}
    older = {path: [row for row in rows if row["versions"] != versions()] for path, rows in files.items()}
    older = {path: rows for path, rows in older.items() if rows}
    every = [row for rows in older.values() for row in rows]
    draw = random.Random(seed)
    sample = [draw.choice(rows) for rows in older.values()]
    rest = [row for row in every if not any(row is drawn for drawn in sample)]
    sample += draw.sample(rest, min(len(rest), max(0, n_rows - len(sample))))
    moved = []
    for row in tqdm(sample, unit="row"):
        columns = differing(row, run_cell(*cell_of(row)))
        if columns:
            moved.append(f"{row['dataset']}, {row['protocol']}, {row['method']}, split {row['split']}: {columns}")
    if moved:
        raise RuntimeError(
            f"{len(moved)} of {len(sample)} rows computed anew differ, so all must be: {'; '.join(moved)}"
        )
    RESULTS.save(folder, [row | {"versions": versions()} for row in every])
    return len(every)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results-dir", default="", help="the folder of the rows; default: the project's")
    parser.add_argument("--rows", type=int, default=100, help="how many rows to compute anew")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    given = parser.parse_args(arguments)
    count = restamp(results_folder(given.results_dir), given.rows, given.seed)
    print(f"{count} rows have the versions in use now.")


if __name__ == "__main__":
    main()
