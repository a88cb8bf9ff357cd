"""The content of a recipe, and how it turns the raw table of a data set into features and a label.

The rules for all sets: "?" in a categorical column is a level like any other, "?" in a numeric column is a
missing number (filling it is left to the experiments); ids and columns with a single value are dropped; the
label is +1 for the majority class and -1 for the rest. A recipe states what its set needs beyond these rules.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd


class ChecksumError(ValueError):
    """The hash of the data differs from the recorded one, or none is recorded."""


def read_separated(recipe: Recipe, contents: Mapping[str, bytes]) -> pd.DataFrame:
    """Return the recipe's files, concatenated, as one table of text with the recipe's column names.

    Raises
    ------
    ValueError
        If the rows of a file do not have as many values as the recipe has columns.
    """
    parts = []
    for name in recipe.files:
        part = pd.read_csv(
            io.BytesIO(contents[name]),
            sep=recipe.separator,
            header=None,
            names=list(recipe.columns),
            dtype=str,
            keep_default_na=False,  # a level called None or NA is a level
        )
        # pandas turns surplus values into an index, and fills missing ones with empty text.
        if not isinstance(part.index, pd.RangeIndex) or (part[recipe.columns[-1]] == "").all():
            raise ValueError(
                f"{recipe.name}: the rows of {name} do not have {len(recipe.columns)} values each: correct the "
                "recipe's `columns` or `separator`, or give the recipe its own `read`"
            )
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def unedited(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    return table, []


@dataclass(frozen=True)
class Recipe:
    """One data set: where its raw files are and how they become a table.

    `read` turns the contents of `files` into the raw table, all text, under the names in `columns`; `edit` changes its
    rows or values where the set needs it and returns sentences for the record.

    Raises
    ------
    ValueError
        If the name cannot be part of a file's name, or if the label, or a column that is dropped, numeric or has
        levels, is not among the columns.
    """

    name: str
    files: tuple[str, ...]
    columns: tuple[str, ...]
    label: str
    uci_id: int | None = None  # None: not in the UCI archive, so not downloaded
    zip_name: str = ""  # name of the zip in the UCI archive
    dropped: Mapping[str, str] = field(default_factory=dict)  # column: why
    numeric: tuple[str, ...] = ()
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # if not just the observed levels
    majority: str | None = None  # the positive class in a tie
    separator: str = ","
    read: Callable[[Recipe, Mapping[str, bytes]], pd.DataFrame] = read_separated
    edit: Callable[[pd.DataFrame], tuple[pd.DataFrame, list[str]]] = unedited
    acknowledgement: str = ""
    # Facts about the table that ucimlrepo serves.
    in_ucimlrepo: bool = True
    served_rows: int | None = None  # if only the first rows belong to the set
    zero_padded: Mapping[str, int] = field(default_factory=dict)  # width of codes that look like numbers

    def __post_init__(self) -> None:
        if not re.fullmatch("[A-Za-z0-9.-]+", self.name) or self.name == "all":
            raise ValueError(f"no data set can be called {self.name!r}: use letters, digits, dots, hyphens, not 'all'")
        named = [self.label, *self.dropped, *self.numeric, *self.levels]
        if unknown := sorted(set(named) - set(self.columns)):
            raise ValueError(f"{self.name}: the recipe names {unknown}, but its `columns` lack them: correct either")


@dataclass(frozen=True, eq=False)
class Dataset:
    """A prepared data set.

    X : DataFrame of N rows, categorical columns with their levels and float columns (nan where missing).
    y : int array of shape (N,), +1 for the majority class `positive_class`, -1 for `negative_classes`.
    record : sentences that say what was done to the raw table.
    """

    name: str
    X: pd.DataFrame
    y: np.ndarray
    positive_class: str
    negative_classes: tuple[str, ...]
    record: tuple[str, ...]

    @property
    def N(self) -> int:
        """Number of rows."""
        return len(self.X)

    @property
    def n(self) -> int:
        """Number of numeric features."""
        return self.X.shape[1] - self.m

    @property
    def m(self) -> int:
        """Number of categorical features."""
        return len(self.X.select_dtypes("category").columns)

    @property
    def k(self) -> int:
        """Number of dummies: levels less one, summed over the categorical features."""
        return sum(len(column.cat.categories) - 1 for _, column in self.X.select_dtypes("category").items())


def prepare(recipe: Recipe, table: pd.DataFrame, origin: str = "the raw table") -> Dataset:
    """Turn a raw table, all text, into a Dataset.

    Raises
    ------
    ValueError
        If a numeric column holds anything but numbers and "?", if a value is not among the declared levels,
        or if classes tie for the majority and the recipe does not name one.
    """
    record = [f"Read {', '.join(recipe.files)}, {len(table)} rows, from {origin}."]
    table, sentences = recipe.edit(table)
    record += sentences
    features = [c for c in recipe.columns if c != recipe.label and c not in recipe.dropped]
    for column, why in recipe.dropped.items():
        record.append(f"Dropped {column}: {why}.")

    X = {}
    for column in features:
        values = table[column]
        if column in recipe.numeric:
            X[column] = _numbers(recipe, values)
            if X[column].isna().any():
                record.append(f"{column}: {X[column].isna().sum()} values are '?', left missing.")
        elif (values == values.iloc[0]).all():
            record.append(f"Dropped {column}: its only value is {values.iloc[0]!r}.")
        else:
            X[column] = _categorical(recipe, values)
    for column, levels in recipe.levels.items():
        if column in X:
            observed = X[column].nunique()
            record.append(f"{column}: {len(levels)} levels as documented, {observed} of them observed.")
    X = pd.DataFrame(X).reset_index(drop=True)

    positive, negative = _classes(recipe, table[recipe.label])
    y = np.where(table[recipe.label] == positive, 1, -1)
    tie = ", by rule in a tie for the majority" if recipe.majority else ", the majority class"
    record.append(
        f"Label {recipe.label}: +1 is {positive} ({(y == 1).sum()} rows{tie}), "
        f"-1 is {', '.join(negative)} ({(y == -1).sum()} rows)."
    )
    if recipe.acknowledgement:
        record.append(recipe.acknowledgement)
    return Dataset(recipe.name, X, y, positive, negative, tuple(record))


def _numbers(recipe: Recipe, values: pd.Series) -> pd.Series:
    try:
        return values.where(values != "?").astype(float)
    except ValueError as error:
        raise ValueError(
            f"{recipe.name}: the numeric column {values.name} has a value that is neither a number nor '?' ({error}): "
            "take the column out of `numeric`, or mend the value in `edit`"
        ) from None


def _categorical(recipe: Recipe, values: pd.Series) -> pd.Series:
    levels = recipe.levels.get(values.name, tuple(sorted(values.unique())))
    undeclared = sorted(set(values) - set(levels))
    if undeclared:
        raise ValueError(f"{recipe.name}: {values.name} has values that are not in `levels`: {undeclared}; add them")
    return values.astype(pd.CategoricalDtype(list(levels)))


def _classes(recipe: Recipe, label: pd.Series) -> tuple[str, tuple[str, ...]]:
    counts = label.value_counts()
    largest = sorted(counts.index[counts == counts.max()])
    if len(largest) > 1 and recipe.majority not in largest:
        raise ValueError(f"{recipe.name}: the classes {largest} tie for the majority: name one in `majority`")
    positive = largest[0] if len(largest) == 1 else str(recipe.majority)
    return positive, tuple(sorted(set(counts.index) - {positive}))


def table_sha256(dataset: Dataset) -> str:
    """Return the sha256 of a prepared table in canonical form.

    The form has one JSON line each for the positive class, for every column (name and levels, or null) and for
    every row (its values, then the label), with the rows in order. Numbers are written with 12 digits, so that
    two ways of reading a decimal agree. The form does not depend on the index or on how a dtype stores values.
    """
    columns = [
        [name, list(column.cat.categories) if column.dtype == "category" else None]
        for name, column in dataset.X.items()
    ]
    values = [
        column.astype(object) if column.dtype == "category" else [f"{value:.12g}" for value in column]
        for _, column in dataset.X.items()
    ]
    rows = zip(*values, dataset.y.tolist(), strict=True)
    lines = [dataset.positive_class, *columns, *rows]
    return hashlib.sha256("\n".join(json.dumps(line) for line in lines).encode()).hexdigest()
