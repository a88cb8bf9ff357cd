"""The 19 data sets of the paper, and others. `python -m wdrlr.data_prep` compares their sizes with the paper's."""

from __future__ import annotations

import difflib
import os
from importlib.resources import files

import pandas as pd

from wdrlr.data_prep import RECIPES
from wdrlr.data_prep.recipe import ChecksumError, Dataset, prepare
from wdrlr.data_prep.sources import DataUnavailableError, UnsafeArchiveError, raw_table

__all__ = [
    "DATASETS",
    "ChecksumError",
    "DataUnavailableError",
    "Dataset",
    "UnsafeArchiveError",
    "load_dataset",
]

# Read the file rather than import the module that reads it: wdrlr.paper depends on this module.
with files("wdrlr.paper").joinpath("printed.csv").open(encoding="utf-8") as _file:
    _PRINTED = list(pd.read_csv(_file)["dataset"].unique())

DATASETS: tuple[str, ...] = (
    *(name for name in _PRINTED if name in RECIPES),
    *sorted(name for name in RECIPES if name not in _PRINTED),
)
"""The names, in the order of the paper's Table 1 and then of its Table 2; data sets not in the paper come last."""


def load_dataset(name: str, data_dir: str | os.PathLike[str] | None = None) -> Dataset:
    """Return a data set: features, label and the record of how they were made.

    Parameters
    ----------
    name : one of `DATASETS`.
    data_dir : folder with the raw files, one subfolder per data set (`car/car.data`, ...); by default the
        environment variable `WDRLR_DATA`. A set that is not in the folder comes from the shipped files, the user's
        cache or the UCI archive, in this order.

    Returns
    -------
    Dataset
        With `X` (DataFrame of categorical columns with declared levels and of float columns, nan where missing),
        `y` (array of +1, the majority class, and -1), the counts `N`, `n`, `k`, `m`, `positive_class`,
        `negative_classes` and `record`.

    Raises
    ------
    ValueError
        If there is no data set of that name, or its raw files do not match its recipe.
    DataUnavailableError (an OSError)
        If the data folder does not exist, or a file is missing or unreadable: the message says what to put where.
    ChecksumError (a ValueError)
        If a file does not have the recorded checksum, or none is recorded.
    UnsafeArchiveError (a ValueError)
        If UCI's zip has a member with a path outside its folder.

    Warns
    -----
    UserWarning
        If downloaded files are used but cannot be kept in the cache.

    Notes
    -----
    The environment variable `WDRLR_RECIPES` adds data sets: it names a folder with `recipes/`, where each data set has
    one module that defines its `RECIPE`, and `raw/` with `SHA256SUMS` and the raw files (see CONTRIBUTING.md). Worker
    processes on other machines need it too.

    Examples
    --------
    >>> data = load_dataset("balance-scale")
    >>> data.N, data.n, data.k, data.m
    (625, 0, 16, 4)
    >>> data.positive_class, int((data.y == 1).sum())
    ('R', 288)
    """
    if name not in RECIPES:
        close = difflib.get_close_matches(str(name), DATASETS, n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise ValueError(f"unknown data set {name!r}{hint}: the data sets are {', '.join(DATASETS)}")
    table, origin = raw_table(RECIPES[name], data_dir)
    return prepare(RECIPES[name], table, origin)
