"""Fits behind Tables 3 and 4 once more, by the paper's Algorithm 1: two algorithms on one machine.

Rows are kept in one csv file for each protocol and seed, and saved after every fit, so that a run killed at any moment
resumes where it stopped.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from wdrlr.extras import required
from wdrlr.model.problem import Problem
from wdrlr.paper import runtimes
from wdrlr.paper.cells import both_parts
from wdrlr.paper.methods import METHODS
from wdrlr.paper.printed import published_values
from wdrlr.paper.protocols import PROTOCOLS
from wdrlr.paper.results import other_versions, versions, versions_fault
from wdrlr.paper.runtimes import Setting, timed
from wdrlr.paper.store import Row, Table, check_writable
from wdrlr.solvers.conic import choose_conic_solver

STAMPED_HERE = (*runtimes.STAMPED_HERE, "wdrlr.paper.scheme_runtimes")
"""The packages and modules that a row can depend on."""

COLUMNS = {
    "dataset": str,
    "protocol": str,
    "method": str,
    "split": int,
    "seed": int,
    "radius": float,  # as chosen by cross-validation
    "gamma": float,
    "tol": float,  # certified gap required of both
    "conic_solver": str,
    "lr_seconds": float,  # the tailored solver's for LR, on the same rows; wall clock, as below
    "tailored_seconds": float,  # the tailored solver's for this fit
    "tailored_objective": float,
    "status": str,  # of Algorithm 1: "done", "time limit", "uncertified" or "failed"
    "seconds": float,  # wall clock: building, solving and certifying, on one thread
    "time_limit": float,
    "rounds": int,  # programs solved; -1 without a solution
    "cuts": int,  # in the last program; -1 without a solution
    "objective": float,
    "gap": float,
    "machine": str,
    "versions": str,
}
"""Columns of a row, one fit each, with their types."""

KEY = ("dataset", "protocol", "method", "split", "seed", "radius", "gamma", "tol", "conic_solver")
"""The columns that identify a fit."""

SCHEME_RUNTIMES = Table(COLUMNS, KEY, "algorithm1_{protocol}_seed{seed}.csv", versions_fault)
"""The store of these rows."""


def scheme_rows(rows: pd.DataFrame, folder: Path, *, time_limit: float, compute_missing: bool) -> pd.DataFrame:
    """The fits of DRO and r-DRO on the first split of each data set, by Algorithm 1 with Clarabel.

    Those stopped before `time_limit` are repeated. Prints `other_versions`, if there are any.

    Parameters
    ----------
    rows
        Result rows, from `wdrlr.paper.cells.wanted_rows`: they have the radius and the penalty of each fit.
    folder
        Where the rows are kept.
    time_limit
        Seconds of wall clock after which Algorithm 1 is stopped.
    compute_missing
        Whether to make the fits that `folder` lacks, one after the other; otherwise they are left out.

    Returns
    -------
    DataFrame with the columns `COLUMNS`

    Raises
    ------
    OSError
        If fits are to be made and cannot be stored in the folder, before any work.
    """
    proposed = rows[[METHODS[name].is_proposed for name in rows["method"]]]
    first = proposed[proposed["split"] == proposed.groupby("dataset")["split"].transform("min")]
    conic_solver = choose_conic_solver("CLARABEL")
    keys = [(*key, conic_solver) for key in first[list(KEY[:-1])].itertuples(index=False, name=None)]
    stored = SCHEME_RUNTIMES.load(folder, keys)
    stored = {key: row for key, row in stored.items() if row["status"] == "done" or row["time_limit"] >= time_limit}
    if compute_missing and (missing := [key for key in keys if key not in stored]):
        check_writable(folder)
        tqdm = required("tqdm.auto", "compute_missing", "notebooks").tqdm
        with threadpool_limits(1):
            timed(runtimes.instance("1", "2", 12, 2, 0, 0.01, 0), "algorithm1", Setting())  # imports
            for key in tqdm(missing, unit="fit"):
                stored[key] = run_scheme(dict(zip(KEY, key, strict=True)), time_limit)
                SCHEME_RUNTIMES.save(folder, [stored[key]])
    kept = SCHEME_RUNTIMES.to_frame(stored[key] for key in keys if key in stored)
    if message := other_versions(kept, STAMPED_HERE):
        print(message)
    return kept


def run_scheme(key: Row, time_limit: float) -> Row:
    """The row of a fit, by its entries of `KEY`: LR and the fit by the tailored solver, the fastest of three each, and
    the fit by Algorithm 1."""
    setting = Setting(tol=key["tol"], time_limit=time_limit, conic_solver=key["conic_solver"])
    lr, problem = _posed(key, "LR", (0.0, 0.0)), _posed(key, key["method"], (key["radius"], key["gamma"]))
    of_lr, tailored = (
        min((timed(one, "tailored", setting) for _ in range(3)), key=lambda row: row["seconds"])
        for one in (lr, problem)
    )
    row = {name: key[name] for name in KEY} | timed(problem, "algorithm1", setting)
    row |= {"lr_seconds": of_lr["seconds"], "tailored_seconds": tailored["seconds"]}
    row |= {"tailored_objective": tailored["objective"], "versions": versions(STAMPED_HERE)}
    return {name: row[name] for name in COLUMNS}


def _posed(key: Row, name: str, point: tuple[float, float]) -> Problem:
    """The problem of a method at a radius and penalty, on the training part of a row's split."""
    method, protocol = METHODS[name], PROTOCOLS[key["protocol"]]
    training, _ = both_parts(key["dataset"], protocol, method, key["split"], key["seed"])
    posed = method.formulation(protocol).fit(*training, np.ones(len(training.y)))
    return method.at(protocol, posed.problem, *point)


def summarise_scheme(rows: pd.DataFrame, table: str) -> pd.DataFrame:
    """Algorithm 1's seconds beside those of the tailored solver and the printed ones, one row per data set and method.

    Parameters
    ----------
    rows
        From `scheme_rows`.
    table
        "table3" or "table4".

    Returns
    -------
    DataFrame with the columns dataset, method, tailored_seconds, status, seconds (inf if it was not done), ratio
    (seconds over tailored_seconds; if it was stopped, the time limit over these, a lower bound; else nan), ratio_to_LR
    (seconds over those of LR by the tailored solver), rounds, difference (of the objectives; nan if it was not done),
    and paper and paper_ratio_to_LR (the printed seconds, and as a multiple of LR's).
    """
    done = rows["status"] == "done"
    seconds = rows["seconds"].where(done, np.inf)
    summary = rows[["dataset", "method", "tailored_seconds", "status"]].assign(
        seconds=seconds,
        ratio=rows["seconds"].where(done, rows["time_limit"].where(rows["status"] == "time limit"))
        / rows["tailored_seconds"],
        ratio_to_LR=seconds / rows["lr_seconds"],
        rounds=rows["rounds"],
        difference=(rows["objective"] - rows["tailored_objective"]).abs().where(done),
    )
    printed = published_values(table).set_index(["dataset", "method"])["value"].rename("paper")
    summary = summary.join(printed, on=["dataset", "method"])
    return summary.assign(paper_ratio_to_LR=summary["paper"] / summary["dataset"].map(printed.xs("LR", level="method")))


def describe_ratios(summary: pd.DataFrame, time_limit: float) -> list[str]:
    """How many fits Algorithm 1 ended, and what is due to the algorithm and what to the machine."""
    done = summary[summary["status"] == "done"]
    lines = [f"Algorithm 1 ended {len(done)} of {len(summary)} fits within {time_limit:g} s."]
    if len(done):
        lines += [
            f"Where it did, it took {_spread(done['ratio'])} times as long as the tailored solver, and the printed "
            f"seconds are {_spread(done['paper'] / done['seconds'])} times its seconds here.",
            f"The objectives of the two differ by at most {done['difference'].max():.0e}.",
        ]
    return lines


def _spread(values: pd.Series) -> str:
    return f"{values.median():,.3g} ({values.min():,.3g} to {values.max():,.3g})"
