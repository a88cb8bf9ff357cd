"""Warnings of columns that a model probably takes for something else than they are.

Nothing fails in such a fit, so nothing else reveals it: the adversary may do what makes no sense, or may not do what
does. Each check is a function of the problem that says what it found, or None; its thresholds stand above it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit

from wdrlr.estimators.formulation import Formulation, Posed
from wdrlr.estimators.frames import depth_of_user
from wdrlr.model.encoding import FeatureEncoding, look_alikes, quoted
from wdrlr.model.problem import Problem
from wdrlr.solvers.closed_form import best_constant

ROUNDING = 1e-9
"""Derivatives below this, in units of their columns, are 0 but for rounding."""


class ColumnWarning(UserWarning):
    """A column is probably not modelled as it is meant; ``check_columns=False`` switches these warnings off."""


def warn_of_columns(table: pd.DataFrame, formulation: Formulation, posed: Posed) -> None:
    """Warn, once for each check, of the columns of a table that probably are not modelled as they are meant.

    Parameters
    ----------
    table : DataFrame
        Its dtypes tell whether categories were declared.
    formulation, posed
        The problem, as ``formulation.fit`` makes it of the table.
    """
    for message in findings(table, formulation, posed):
        warnings.warn(f"{message} (check_columns=False turns this off.)", ColumnWarning, stacklevel=depth_of_user())


def findings(table: pd.DataFrame, formulation: Formulation, posed: Posed) -> list[str]:
    """What the checks found, in sentences."""
    data = _Data(formulation, posed.encoding, posed.problem, _text_by_dtype(table, formulation, posed.encoding))
    return [message for check in CHECKS if (message := check(data)) is not None]


def warn_of_no_use(problem: Problem, b: np.ndarray) -> None:
    """Warn if it is the radius that makes all slopes of the optimum b 0: without one, some would not be.

    Without one they are 0 if, at the best constant model, no slope's derivative is beyond its penalty.
    """
    if b[1:].any() or problem.radius == 0:
        return
    constant = best_constant(replace(problem, radius=0.0))[0]
    force = problem.w * problem.y * expit(-problem.y * constant)
    entries, forces = (problem.z + problem.offsets).ravel(), force.repeat(problem.n_categorical)
    of_levels = np.bincount(entries, forces, sum(problem.n_levels))
    pull = np.abs(np.concatenate([force @ problem.x, problem.of_dummies @ of_levels]))
    size = np.concatenate([np.abs(problem.x).max(axis=0), np.ones(len(pull) - problem.n_numeric)])
    if (pull > problem.penalty[1:] + ROUNDING * size).any():
        warnings.warn(
            f"All slopes are 0: with radius={problem.radius:g} the adversary can make every feature useless, and all "
            "rows get the same probability. Choose a radius below radius_max of these data and parameters, or let "
            "WassersteinLogisticRegressionCV choose one. (check_columns=False turns this off.)",
            ColumnWarning,
            stacklevel=depth_of_user(),
        )


class _Data(NamedTuple):
    """What the checks look at; rows with weight 0 are not in it."""

    formulation: Formulation
    encoding: FeatureEncoding
    problem: Problem
    text: list[int]  # which of the categorical features are text that nobody declared to be categories

    @property
    def zero_one(self) -> np.ndarray:
        """Which numbers are 0 in some rows and 1 in all others; bool (n,)."""
        x = self.problem.x
        return ((x == 0) | (x == 1)).all(axis=0) & (x == 0).any(axis=0) & (x == 1).any(axis=0)

    def name(self, feature: int) -> str:
        """The name of a categorical feature."""
        return self.encoding.names[self.encoding.categorical[feature]]

    def observed(self, feature: int) -> np.ndarray:
        """The levels that rows have."""
        return self.encoding.categories[feature][self.encoding.category_rows[feature] > 0]


def _text_by_dtype(table: pd.DataFrame, formulation: Formulation, encoding: FeatureEncoding) -> list[int]:
    chosen = formulation.categorical_features
    if not (isinstance(chosen, str) and chosen == "from_dtype"):
        return []
    dtypes = table.dtypes.to_list()
    return [
        feature
        for feature, (j, levels) in enumerate(zip(encoding.categorical, encoding.categories, strict=True))
        if not isinstance(dtypes[j], pd.CategoricalDtype) and isinstance(levels[0], str)
    ]


def _written(data: _Data, pattern: str) -> list[int]:
    """The features of text whose levels read so, but for a stray one."""
    found = []
    for feature in data.text:
        levels = data.observed(feature)
        strays = islice((level for level in levels if not re.fullmatch(pattern, level)), STRAY_LEVELS + 1)
        n_strays = len(list(strays))
        if n_strays <= STRAY_LEVELS and len(levels) - n_strays >= FEWEST_LEVELS:
            found.append(feature)
    return found


def _columns(names: list[str]) -> str:
    return f"{'column' if len(names) == 1 else 'columns'} {quoted(names)}"


# ------------------------------------------------------------ the checks


def zero_one_numbers(data: _Data) -> str | None:
    """Numbers that are 0 or 1 in every row, flags or dense dummies, unless no column was to be a category."""
    found = [data.encoding.names[j] for j, flag in zip(data.encoding.numeric, data.zero_one, strict=True) if flag]
    if not found or data.formulation.categorical_features is None:
        return None
    return (
        f"Only 0 and 1 are in {_columns(found)}, taken for numbers, which the adversary moves to any value. Make flags "
        "boolean, or name them in categorical_features (None says that all are numbers); in place of dummies pass the "
        'column that they were made of: from a ColumnTransformer with "passthrough" for it, after '
        '.set_output(transform="pandas").'
    )


FEWEST_ROWS = 10
"""In fewer rows, chance alone makes all levels differ, or two flags exclude each other."""


def dummies(data: _Data) -> str | None:
    """Neighbouring categories of which exactly one is 1, or True, in every row: dummies of one feature."""
    if data.encoding.n_rows < FEWEST_ROWS:
        return None
    flags = [set(levels.tolist()) == {0, 1} for levels in data.encoding.categories]
    start = 0
    while start < len(flags):
        end, ones = start, np.zeros(data.problem.n_samples, dtype=int)
        while end < len(flags) and flags[end] and not ones.all():
            ones += (data.encoding.categories[end] == 1)[data.problem.z[:, end]]
            end += 1
            if ones.max() > 1:
                break
        if end - start > 1 and (ones == 1).all():
            return (
                f"Exactly one of {_columns([data.name(feature) for feature in range(start, end)])} is true in every "
                "row: dummies, it seems, but each is a feature here, so that another level costs the adversary two "
                "changes, and one change makes a row of no level or of two. Pass the one column that they were made of."
            )
        start += 1
    return None


SHARE_OF_LEVELS = 0.9
"""Levels a row, from which on a column looks like an id."""


def ids(data: _Data) -> str | None:
    """Categories with nearly a level a row, apart from dates and from numbers that are not in digits alone."""
    N, written = data.encoding.n_rows, {*_written(data, NUMBER), *_written(data, DATE)}
    measured = {feature for feature in written if not all(level.isdigit() for level in data.observed(feature))}
    found = [
        data.name(feature)
        for feature in range(len(data.encoding.categories))
        if feature not in measured and len(data.observed(feature)) >= SHARE_OF_LEVELS * N
    ]
    if N < FEWEST_ROWS or not found:
        return None
    return (
        f"Nearly every one of the {N} rows has a level of its own in {_columns(found)}, like an id or free text, from "
        "which nothing can be learnt of other rows. Drop such columns, or group their levels."
    )


FEWEST_NUMBERED, LARGEST_GRID = 20, 2.0
"""Rows, and places of a grid for each: in fewer, chance may give each its own; half may have been split off."""


def row_numbers(data: _Data) -> str | None:
    """Numbers that count the rows, also after scaling: all are different, on a grid that has few more places."""
    encoding, found = data.encoding, []
    for j, x in zip(encoding.numeric, data.problem.x.T, strict=True):
        steps = np.diff(np.unique(x))
        if len(steps) == encoding.n_rows - 1 >= FEWEST_NUMBERED - 1:
            steps = steps / steps.min()
            if steps.sum() < LARGEST_GRID * encoding.n_rows and np.allclose(steps, steps.round()):
                found.append(encoding.names[j])
    if not found:
        return None
    return (
        f"The {encoding.n_rows} rows seem to be numbered by {_columns(found)}: no two numbers are the same, and few "
        "are left out, so nothing can be learnt from them of other rows. Drop them, unless this order means something."
    )


NUMBER = r"\s*[-+]?(?!0\d)(\d[\d.,]*|[.,]\d+)([eE][-+]?\d+)?\s*%?\s*"
"""A number as text, with any sign for decimals or thousands; not 007, which is a code."""

DATE = r"\s*(\d{1,4}([-/.])\d{1,2}\2\d{1,4}([T ]\d.*)?|\d{1,2}:\d{2}(:\d{2}.*)?)\s*"
"""A date in digits, with or without a time, or a time."""

FEWEST_LEVELS, STRAY_LEVELS = 3, 1
"""How many levels must read so, as an order is lost only where there are three; and how many may not, like "?"."""


def numbers_as_text(data: _Data) -> str | None:
    """Text whose levels are numbers, with at most a stray one that made the column text."""
    found = [feature for feature in _written(data, NUMBER) if feature not in _written(data, DATE)]
    if not found:
        return None
    strays = sorted({level for feature in found for level in data.observed(feature) if not re.fullmatch(NUMBER, level)})
    why = f" They hold {quoted(strays)} too: mark that as missing and impute it." if strays else ""
    return (
        f"Numbers are written as text in {_columns([data.name(feature) for feature in found])}, and so taken for "
        f"categories without an order.{why} Convert them with pandas.to_numeric, or to a pandas categorical if they "
        "are names of levels."
    )


def dates_as_text(data: _Data) -> str | None:
    """Text whose levels are dates or times, with at most a stray one."""
    found = [data.name(feature) for feature in _written(data, DATE)]
    if not found:
        return None
    return (
        f"Dates or times are written as text in {_columns(found)}, and so taken for categories without an order. "
        "Convert them with pandas.to_datetime and then to a number, for example days since a date."
    )


LARGEST_RATIO = 100.0
"""Of the standard deviations of two columns, from which on a radius that is felt in one is nothing in the other."""

LEAST_SPREAD = 1e-9
"""A standard deviation, as a share of the range, below which it is rounding, or due to rows of next to no weight."""


def scales(data: _Data) -> str | None:
    """Numbers that one norm measures although their scales differ, costs included."""
    formulation, encoding, problem = data.formulation, data.encoding, data.problem
    if not (formulation.radius > 0 or formulation.l1_penalty > 0):
        return None
    spread = np.sqrt(np.maximum(problem.w @ (problem.x - problem.w @ problem.x) ** 2, 0.0))
    costs = problem.metric.number_norm.of_units(problem.n_numeric)
    extent = np.ptp(problem.x, axis=0)
    varied = (extent > 0) & (spread > LEAST_SPREAD * extent)
    counted = np.flatnonzero(varied & ~data.zero_one & np.isfinite(costs))
    spread[counted] *= costs[counted]
    if len(counted) < 2:
        return None
    least, most = (counted[find(spread[counted])] for find in (np.argmin, np.argmax))
    if spread[most] < LARGEST_RATIO * spread[least]:
        return None
    names = [encoding.names[encoding.numeric[column]] for column in (least, most)]
    priced = " times their costs" if problem.metric.number_costs is not None else ""
    return (
        f"One norm measures columns whose standard deviations{priced} differ by a factor of "
        f"{spread[most] / spread[least]:.2g}: {spread[least]:.2g} in {names[0]!r}, {spread[most]:.2g} in {names[1]!r}. "
        "A move by 1 costs the same in both: scale the columns, with StandardScaler for example, or set feature_costs."
    )


def similar_levels(data: _Data) -> str | None:
    """Levels that are likely to be one."""
    pairs = [(data.name(feature), look_alikes(levels)) for feature, levels in enumerate(data.encoding.categories)]
    found = [
        f"Column {name!r} has levels that differ only in blanks or a dot: {quoted(pair)}"
        for name, pair in pairs
        if pair
    ]
    return f"{'; '.join(found)} count as two." if found else None


CHECKS: tuple[Callable[[_Data], str | None], ...] = (
    zero_one_numbers,
    dummies,
    ids,
    row_numbers,
    numbers_as_text,
    dates_as_text,
    scales,
    similar_levels,
)
