"""Our data sets beside the paper's: which of them belong to a table, and their sizes."""

from __future__ import annotations

import os

import pandas as pd

from wdrlr.data_prep.sources import DataUnavailableError, user_folder
from wdrlr.datasets import DATASETS, load_dataset
from wdrlr.paper.printed import published_counts, published_values

REASONS = {
    "splice": (
        "UCI's file has 3190 rows and gives k = 227; the paper's N is most likely the first row read as a header, its "
        "k can't be had from the file"
    ),
    "annealing": "the paper's m counts the 7 columns that have a single value, dropped here (k is the same)",
    "cylinder-bands": (
        "with the text lower-cased two columns have a single value and are dropped; keeping both gives m = 16, neither "
        "gives the paper's 15 (k is the same)"
    ),
}
"""Why N, n, k or m is not the paper's."""


def datasets_for(table: str) -> list[str]:
    """Return the data sets of one of the paper's tables, in printed order, then those that are not in the paper."""
    others = [name for name in DATASETS if name not in published_counts().index]
    return [*published_values(table)["dataset"].unique(), *others]


def dataset_counts(data_dir: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """Compare N, n, k and m of each data set with the paper's.

    Returns
    -------
    DataFrame indexed by data set
        The columns N, N_paper, n, n_paper, k, k_paper, m, m_paper, and reason: why they differ, empty where they
        agree. For a set that is not in the paper, the paper's counts are missing. For a set whose files are not
        available, ours are missing, and the reason says so.

    Raises
    ------
    DataUnavailableError
        If the data folder does not exist.
    ChecksumError, UnsafeArchiveError
        As `load_dataset`.
    """
    user_folder(data_dir)
    paper = published_counts()
    rows = {}
    for name in DATASETS:
        row = {f"{count}_paper": paper.loc[name, count] for count in paper.columns if name in paper.index}
        try:
            data = load_dataset(name, data_dir)
        except DataUnavailableError as error:
            row["reason"] = "not counted: " + str(error).splitlines()[0].removeprefix(f"{name}: ").rstrip(".")
        else:
            row |= {"N": data.N, "n": data.n, "k": data.k, "m": data.m}
            agrees = all(row[count] == row.get(f"{count}_paper", row[count]) for count in paper.columns)
            row["reason"] = "" if agrees else REASONS.get(name, "not explained")
        rows[name] = row
    columns = [column for count in paper.columns for column in (count, f"{count}_paper")]
    table = pd.DataFrame.from_dict(rows, orient="index").reindex(columns=[*columns, "reason"])
    return table.astype(dict.fromkeys(columns, "Int64")).rename_axis("dataset")
