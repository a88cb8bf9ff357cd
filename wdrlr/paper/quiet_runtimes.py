"""The fits behind Tables 3 and 4 once more, one after the other with nothing beside them: the seconds of these tables.

Result rows have seconds, too, but of whatever machine computed them, beside whatever ran there. Rows of this module are
kept in one csv file for each data set, protocol and seed, and saved after every fit, so that a run killed at any moment
resumes where it stopped.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pandas as pd

from wdrlr.extras import required
from wdrlr.paper import results
from wdrlr.paper.cells import run_cell
from wdrlr.paper.methods import METHODS
from wdrlr.paper.protocols import PROTOCOLS
from wdrlr.paper.results import other_versions, processor, versions, versions_fault
from wdrlr.paper.store import Row, Table, check_writable

STAMPED_HERE = (*results.STAMPED, "wdrlr.paper.quiet_runtimes")
"""The packages and modules that a row can depend on."""

KEY = (*results.KEY, "radius", "gamma")
"""The columns that identify a fit: those of its result row, and the point that cross-validation chose."""

SECONDS = ("seconds", "solver_seconds", "identification_seconds")
"""The columns of a result row that are timed here."""

COLUMNS = {
    **{name: results.COLUMNS[name] for name in (*KEY, "test_error", "objective", "gap", *SECONDS)},
    "machine": str,
    "versions": str,
}
"""Columns of a row, one fit each, with their types."""

QUIET_RUNTIMES = Table(COLUMNS, KEY, "quiet_{dataset}_{protocol}_seed{seed}.csv", versions_fault)
"""The store of these rows."""


def timed_alone(rows: pd.DataFrame, folder: Path, *, compute_missing: bool) -> pd.DataFrame:
    """Result rows with the seconds of fits made one after the other on one processor; without those not timed there.

    It is this processor if `compute_missing`, which times anew what another one has, and otherwise the one with most
    rows. Prints `other_versions`, if there are any.

    Parameters
    ----------
    rows
        Result rows, from `wdrlr.paper.cells.wanted_rows`: they have the radius and the penalty of each fit. Their
        ``cv_seconds`` stay as they are.
    folder
        Where the rows of fits are kept.
    compute_missing
        Whether to make the fits that `folder` lacks, in this process; keep the machine quiet then.

    Returns
    -------
    DataFrame with the columns of `rows` and "machine", the processor

    Raises
    ------
    OSError
        If fits are to be made and cannot be stored in the folder, before any work.
    """
    keys = list(rows[list(KEY)].itertuples(index=False, name=None))
    stored = QUIET_RUNTIMES.load(folder, keys)
    machines = Counter(row["machine"] for row in stored.values())
    machine = processor() if compute_missing or not machines else machines.most_common(1)[0][0]
    stored = {key: row for key, row in stored.items() if row["machine"] == machine}
    if compute_missing and (missing := [key for key in keys if key not in stored]):
        check_writable(folder)
        tqdm = required("tqdm.auto", "compute_missing", "notebooks").tqdm
        for key in tqdm(missing, unit="fit"):
            stored[key] = run_alone(dict(zip(KEY, key, strict=True)))
            QUIET_RUNTIMES.save(folder, [stored[key]])
    kept = QUIET_RUNTIMES.to_frame(stored.values())
    if message := other_versions(kept, STAMPED_HERE):
        print(message)
    timed = kept[[*KEY, *SECONDS, "machine"]]
    return rows.drop(columns=list(SECONDS)).merge(timed, on=list(KEY))[[*rows.columns, "machine"]]


def run_alone(key: Row) -> Row:
    """The row of a fit, by its entries of `KEY`: the cell whose grid is the chosen point alone."""
    radius, gamma = (key["radius"],), (key["gamma"],)
    at_point = replace(PROTOCOLS[key["protocol"]], radii=radius, gammas=gamma, joint_radii=radius, joint_gammas=gamma)
    row = run_cell(
        key["dataset"], at_point, METHODS[key["method"]], key["split"], key["seed"], key["tol"], key["solver"]
    )
    row |= {"machine": processor(), "versions": versions(STAMPED_HERE)}
    return {name: row[name] for name in COLUMNS}
