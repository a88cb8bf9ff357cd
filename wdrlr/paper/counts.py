"""The sizes of the data sets beside the paper's."""

from __future__ import annotations

import os

import pandas as pd

from wdrlr.data_prep import RECIPES
from wdrlr.data_prep.sources import DataUnavailableError, user_folder
from wdrlr.datasets import DATASETS, load_dataset
from wdrlr.paper.printed import published_counts


def dataset_counts(data_dir: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """Compare N, n, k and m of each data set with the paper's.

    Returns
    -------
    DataFrame indexed by data set
        The columns N, N_paper, n, n_paper, k, k_paper, m, m_paper, and reason: why they differ, empty where they
        agree. A set whose files can't be had has no counts, its reason says so.

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
        row = {f"{count}_paper": paper.loc[name, count] for count in paper.columns}
        try:
            data = load_dataset(name, data_dir)
        except DataUnavailableError as error:
            row["reason"] = "not counted: " + str(error).splitlines()[0].removeprefix(f"{name}: ").rstrip(".")
        else:
            row |= {"N": data.N, "n": data.n, "k": data.k, "m": data.m}
            agrees = all(row[count] == row[f"{count}_paper"] for count in paper.columns)
            row["reason"] = "" if agrees else RECIPES[name].difference or "not explained"
        rows[name] = row
    columns = [column for count in paper.columns for column in (count, f"{count}_paper")]
    table = pd.DataFrame.from_dict(rows, orient="index").reindex(columns=[*columns, "reason"])
    return table.astype(dict.fromkeys(columns, "Int64")).rename_axis("dataset")
