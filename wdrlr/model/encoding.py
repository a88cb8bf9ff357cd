"""From a table with numbers and categories to arrays: kinds of columns, level codes, and the coding of the slopes."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass, field
from numbers import Number
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from wdrlr.model.problem import level_offsets


@dataclass(frozen=True, eq=False)
class FeatureEncoding:
    """Which columns of a table are numbers and which are categories, and the levels of the latter.

    Attributes
    ----------
    names : list of str
        The names of all columns.
    numeric, categorical : list of int
        Positions of the numeric and of the categorical columns.
    categories : list of ndarray
        The levels of each categorical column, in order.
    ordered : list of bool
        Whether this order means something: it is declared, or that of numbers or times.
    category_weights : list of ndarray
        Of the rows of a problem, the share of their weight at each level; see ``Posed``. Empty without a problem.
    n_rows : int
        How many rows of the problem have a weight above 0.
    category_rows : list of ndarray
        How many of these are at each level.
    """

    names: list[str]
    numeric: list[int]
    categorical: list[int]
    categories: list[np.ndarray]
    ordered: list[bool]
    category_weights: list[np.ndarray] = field(default_factory=list)
    n_rows: int = 0
    category_rows: list[np.ndarray] = field(default_factory=list)

    @property
    def n_levels(self) -> tuple[int, ...]:
        return tuple(len(levels) for levels in self.categories)

    def numbers(self, table: pd.DataFrame) -> np.ndarray:
        """The numeric columns; shape (N, n).

        Raises
        ------
        ValueError
            If a column contains text that is not a number, dates, collections, or missing or infinite values.
        """
        x = np.empty((len(table), len(self.numeric)))
        for column, j in enumerate(self.numeric):
            values = table.iloc[:, j]
            types = _types(values)
            _refuse_collections(types, self.names[j])
            _refuse_times(types, self.names[j])
            try:
                x[:, column] = values.to_numpy(dtype=float, na_value=np.nan)
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"column {self.names[j]!r} is numeric but has a value that is not a number ({error}); "
                    "name it in categorical_features or convert it."
                ) from error
            if not np.isfinite(x[:, column]).all():
                what = "NaN" if np.isnan(x[:, column]).any() else "infinity"
                raise ValueError(f"Input X contains {what} in the numeric column {self.names[j]!r}; impute it first.")
        return x

    def codes(self, table: pd.DataFrame, handle_unknown: str) -> np.ndarray:
        """Level codes of the categorical columns, -1 for an unknown level; shape (N, m).

        Raises
        ------
        ValueError
            If a value is missing or a collection, or if a level is unknown and ``handle_unknown`` is "error".
        """
        z, columns = np.empty((len(table), len(self.categorical)), dtype=np.int64), _columns(table)
        for column, (j, levels) in enumerate(zip(self.categorical, self.categories, strict=True)):
            _refuse_collections(_types(columns[j]), self.names[j])
            codes, distinct = _factorised(columns[j])
            if (codes < 0).any():
                raise _missing(columns[j], self.names[j])
            known = _positions(distinct, levels)[codes]
            z[:, column] = known
            if handle_unknown == "error" and (known < 0).any():
                unknown = distinct[pd.unique(codes[known < 0])]
                raise ValueError(
                    f"column {self.names[j]!r} has levels that were not seen in fit: {quoted(unknown)}; the levels "
                    f"are {quoted(levels)}. Declare all levels in a pandas categorical before fit, or predict "
                    'with handle_unknown="ignore".'
                )
        return z

    def table(self, x: np.ndarray, z: np.ndarray) -> pd.DataFrame:
        """The table with these numbers (A, n) and known level codes (A, m): columns named, and in their order."""
        columns = dict(zip(self.numeric, x.T, strict=True))
        for j, codes, levels in zip(self.categorical, z.T, self.categories, strict=True):
            columns[j] = pd.Categorical.from_codes(codes, categories=levels)
        table = pd.DataFrame({j: columns[j] for j in range(len(self.names))})
        table.columns = self.names
        return table


def fit_encoding(table: pd.DataFrame, categorical_features: Any) -> FeatureEncoding:
    """Decide which columns are categories, and find their levels.

    Parameters
    ----------
    table : DataFrame
    categorical_features : "from_dtype", "all", None, boolean mask, positions or names
        "from_dtype": the columns of dtype category, str, object or bool.

    Raises
    ------
    ValueError
        If ``categorical_features`` does not fit the table, a categorical value is missing, levels cannot be sorted, or
        a column of dtype object holds only numbers, or dates, so that its dtype does not say what they are.
    """
    names = [str(name) for name in table.columns]
    mask = _categorical_mask(table, categorical_features)
    categorical = [int(j) for j in np.flatnonzero(mask)]
    by_dtype = isinstance(categorical_features, str) and categorical_features == "from_dtype"
    categories, ordered, columns = [], [], _columns(table)
    for j in categorical:
        values = columns[j]
        types = _types(values)
        _refuse_collections(types, names[j])
        if by_dtype and values.dtype == object:
            _refuse_times(types, names[j])
            _refuse_numbers(types, names[j])
        categories.append(_levels(values, names[j]))
        ordered.append(bool(getattr(values.dtype, "ordered", False)) or _is_natural(categories[-1]))
    return FeatureEncoding(names, [int(j) for j in np.flatnonzero(~mask)], categorical, categories, ordered)


_TIMES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64, pd.Period)
_COMPLEX = (complex, np.complexfloating)
_COLLECTIONS = (list, dict, set, frozenset, np.ndarray, pd.Series)
_BOOLEANS = (bool, np.bool_)


def _columns(table: pd.DataFrame) -> list[pd.Series]:
    """The columns by position."""
    return [values for _, values in table.items()]


def _types(values: pd.Series) -> dict[type, str]:
    """The types of the values that are not missing, each with its description for an error message."""
    if values.dtype == object:
        text = pd.api.types.infer_dtype(values) == "string"  # most are, and this takes no loop in Python
        kinds = {str} if text else set(map(type, values[values.notna()]))
        return {kind: f"holds values of the type {kind.__name__}" for kind in kinds}
    return {values.dtype.type: f"has the dtype {values.dtype}"}


def _refuse_collections(types: dict[type, str], name: str) -> None:
    for kind, words in types.items():
        if issubclass(kind, _COLLECTIONS):
            raise ValueError(
                f"column {name!r} has levels that cannot be sorted or looked up: it {words}; split it into columns of "
                "numbers or text, or convert it to text."
            )


def _refuse_times(types: dict[type, str], name: str) -> None:
    """Raise ValueError for times, whose unit as numbers only the user knows, and for complex numbers."""
    for kind, words in types.items():
        if issubclass(kind, (*_TIMES, *_COMPLEX)):
            remedy = (
                "its real and imaginary parts"
                if issubclass(kind, _COMPLEX)
                else "days since a date, or name it in categorical_features"
            )
            raise ValueError(f"column {name!r} {words}, which is not a number; convert it, for example to {remedy}.")


def _refuse_numbers(types: dict[type, str], name: str) -> None:
    numbers_only = all(issubclass(kind, (Number, *_BOOLEANS)) for kind in types)
    if numbers_only and not all(issubclass(kind, _BOOLEANS) for kind in types):
        raise ValueError(
            f"column {name!r} has the dtype object but holds only numbers; give it a numeric dtype, or make it "
            "a pandas categorical if its numbers are names of levels."
        )


def _levels(values: pd.Series, name: str) -> np.ndarray:
    try:
        distinct = values.unique()
        if not pd.isna(distinct).any():
            declared = isinstance(values.dtype, pd.CategoricalDtype)
            return np.asarray(values.dtype.categories) if declared else np.unique(np.asarray(distinct))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"column {name!r} has levels that cannot be sorted or looked up ({error}); convert them to text, or make "
            "the column a pandas categorical."
        ) from error
    raise _missing(values, name)


def _missing(values: pd.Series, name: str) -> ValueError:
    return ValueError(
        f"the categorical column {name!r} has {values.isna().sum()} missing values; drop those rows, or make missing "
        f'values a level: X[{name!r}].astype("category").cat.add_categories("missing").fillna("missing").'
    )


def _factorised(values: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Codes of the values, shape (N,), -1 for missing ones, and the values that the codes 0, 1, ... stand for."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        return values.array.codes, np.asarray(values.dtype.categories)
    codes, distinct = pd.factorize(values.to_numpy() if isinstance(values.dtype, np.dtype) else values.array)
    return codes, np.asarray(distinct)


def _positions(values: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Where the values are among the levels, -1 for those that are not there; shape (number of values,)."""
    if pd.api.types.infer_dtype(levels) != "string":
        return pd.Index(levels).get_indexer(values)
    known = {level: code for code, level in enumerate(levels)}  # for a few texts a hundred times as fast
    return np.array([known.get(value, -1) for value in values], dtype=np.int64)


def _is_natural(levels: np.ndarray) -> bool:
    """Whether the levels ascend and are not text, whose order is merely alphabetical."""
    return not any(isinstance(level, (str, bytes)) for level in levels) and pd.Index(levels).is_monotonic_increasing


def as_pandas(X: Any) -> Any:
    """X, with tables of polars or pyarrow converted to pandas; pyarrow's dictionaries become categoricals.

    Raises
    ------
    TypeError
        If X is a table whose rows are not computed yet.
    ValueError
        If X is an array with masked values.
    """
    declared = hasattr(X, "to_pandas")
    if declared:
        X = X.to_pandas()
    for method in ("collect", "compute"):  # polars, dask
        if hasattr(X, method) and hasattr(type(X), "columns"):
            raise TypeError(f"X is a {type(X).__name__}, whose rows are not computed yet; pass X.{method}().")
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise ValueError("X is an array with masked values; impute them first.")
    if not isinstance(X, pd.DataFrame):
        return X
    replaced: dict[int, Any] = {}
    for j, dtype in enumerate(X.dtypes):
        if declared and pd.api.types.is_object_dtype(dtype) and pd.api.types.infer_dtype(X.iloc[:, j]) == "decimal":
            replaced[j] = X.iloc[:, j].astype(float)  # declared as a number, by a dtype that pandas does not have
        elif isinstance(dtype, pd.ArrowDtype) and dtype.type is pd.CategoricalDtype.type:
            replaced[j] = X.iloc[:, j].array.__arrow_array__().to_pandas().array
    if replaced:
        X = X.copy(deep=False)
        for j, values in replaced.items():
            X.isetitem(j, values)
    return X


def refuse_text(X: Any) -> None:
    """Raise ValueError if an array, or nested lists, contain text or times, which would be read as numbers.

    Also if X has no rows and columns, like a dict, a list of dicts, or one row of a table with text.
    """
    try:
        array = np.asarray(X)
    except ValueError:  # rows differ in length; scikit-learn reports it
        return
    if array.ndim < 2 and array.dtype.kind not in "biufc":  # else scikit-learn says how to reshape it
        raise ValueError(
            f"X is a {type(X).__name__}, which has no rows and columns; pass a DataFrame: pandas.DataFrame(X) of a "
            "dict or a list of dicts, X.iloc[[i]] rather than X.iloc[i] for one row of a table."
        )
    for kind in set(map(type, array.ravel())) if array.dtype == object else {array.dtype.type}:
        if issubclass(kind, (str, bytes, *_TIMES)):
            what = "times" if issubclass(kind, _TIMES) else "text"
            raise ValueError(
                f"X is an array with {what}; pass a DataFrame, as a ColumnTransformer and other transformers of "
                'scikit-learn return after .set_output(transform="pandas"). Where scikit-learn makes arrays of tables, '
                "as in BaggingClassifier, give the positions of the columns of categories in categorical_features."
            )


def check_made_by(function: str, name: str, table: Any, columns: Iterable[str]) -> None:
    """Raise ValueError if an argument is no table with the columns of those that a function makes."""
    if not (isinstance(table, pd.DataFrame) and {*columns} <= {*table.columns}):
        raise ValueError(f"{name} must be the table of {function}, with the columns {quoted(columns)}.")


def look_alikes(levels: Iterable[Any]) -> tuple[str, str] | None:
    """Two texts that differ only in surrounding blanks or a final dot, or None."""
    seen: dict[str, str] = {}
    for level in levels:
        if isinstance(level, str):
            other = seen.setdefault(level.strip().removesuffix(".").rstrip(), level)
            if other != level:
                return other, level
    return None


def quoted(values: Iterable[Any]) -> str:
    """The first ten values as Python would write them."""
    values = [value.item() if isinstance(value, np.generic) else value for value in values]
    return ", ".join(map(repr, values[:10])) + (f" and {len(values) - 10} more" if len(values) > 10 else "")


def _categorical_mask(table: pd.DataFrame, categorical_features: Any) -> np.ndarray:
    n_columns = table.shape[1]
    if categorical_features is None:
        return np.zeros(n_columns, dtype=bool)
    if isinstance(categorical_features, str):
        if categorical_features == "all":
            return np.ones(n_columns, dtype=bool)
        if categorical_features == "from_dtype":
            return np.array([_is_categorical(dtype) for dtype in table.dtypes], dtype=bool)
        raise ValueError(
            'categorical_features must be "from_dtype", "all", None, a mask, positions or names, '
            f"not {categorical_features!r}."
        )
    chosen = np.asarray(categorical_features)
    mask = np.zeros(n_columns, dtype=bool)
    if chosen.size == 0:
        return mask
    if chosen.dtype == bool:
        if chosen.shape != (n_columns,):
            raise ValueError(f"categorical_features as a mask must have {n_columns} entries, not {chosen.size}.")
        return chosen
    if np.issubdtype(chosen.dtype, np.integer):
        if chosen.min() < 0 or chosen.max() >= n_columns:
            raise ValueError(
                f"categorical_features has positions outside 0..{n_columns - 1}: "
                f"{sorted(set(chosen[(chosen < 0) | (chosen >= n_columns)].tolist()))}."
            )
        mask[chosen] = True
        return mask
    missing = [name for name in chosen.tolist() if name not in set(table.columns)]
    if missing:
        raise ValueError(
            f"categorical_features names columns that X does not have: {missing}; they are {quoted(table.columns)}. "
            "In an array, which has no names, give positions."
        )
    return np.asarray(table.columns.isin(chosen.tolist()))


def _is_categorical(dtype: Any) -> bool:
    return (
        isinstance(dtype, pd.CategoricalDtype)
        or pd.api.types.is_bool_dtype(dtype)
        or pd.api.types.is_object_dtype(dtype)
        or pd.api.types.is_string_dtype(dtype)
        or dtype.type is bytes
    )


def level_matrix(n_levels: tuple[int, ...], coding: str) -> sp.csr_array:
    """The matrix that turns the slopes b_C into the scores of all levels; sparse, of shape (sum(n_levels), k).

    "onehot" is the paper's coding: 0/1 dummies for all levels but the first of each feature, whose score is 0. "pm1"
    is the coding of the authors' public code: a -1/+1 dummy for every level, with the slope of the last one fixed to 0,
    so that the score of level v is 2 b_v - sum_u b_u (with b = 0 for the last level).
    """
    counts, offsets = np.array(n_levels, dtype=int), level_offsets(n_levels)
    level = np.delete(np.arange(counts.sum()), offsets if coding == "onehot" else offsets + counts - 1)  # of each slope
    own = sp.csr_array((np.ones(len(level)), (level, np.arange(len(level)))), shape=(counts.sum(), len(level)))
    if coding == "onehot":
        return own
    return sp.csr_array(2.0 * own - sp.block_diag([np.ones((K, K - 1)) for K in n_levels], "csr") if n_levels else own)


def level_scores(slopes: np.ndarray, n_levels: tuple[int, ...], coding: str) -> np.ndarray:
    """The scores of all levels, ``level_matrix(n_levels, coding) @ slopes``; shape (sum(n_levels),)."""
    if coding != "onehot":
        return level_matrix(n_levels, coding) @ slopes
    return np.insert(slopes, level_offsets(n_levels) - np.arange(len(n_levels)), 0.0)


def slope_names(encoding: FeatureEncoding, coding: str) -> np.ndarray:
    """The names of the n + k slopes: the numbers, then the levels of each categorical feature except the reference."""
    names = [encoding.names[j] for j in encoding.numeric]
    for j, levels in zip(encoding.categorical, encoding.categories, strict=True):
        names.extend(f"{encoding.names[j]}_{level}" for level in _without_reference(levels, coding))
    return np.asarray(names, dtype=object)


def features_of_slopes(encoding: FeatureEncoding) -> np.ndarray:
    """The name of the column that each slope belongs to; shape (n + k,)."""
    n_slopes = [1] * len(encoding.numeric) + [K - 1 for K in encoding.n_levels]
    return np.repeat(
        np.array([encoding.names[j] for j in (*encoding.numeric, *encoding.categorical)], dtype=object), n_slopes
    )


def without_rows(encoding: FeatureEncoding, coding: str) -> np.ndarray:
    """Which of the n + k slopes are those of levels that none of the problem's rows have; bool (n + k,)."""
    weights = [_without_reference(weights, coding) for weights in encoding.category_weights]
    return np.concatenate([np.ones(len(encoding.numeric)), *weights]) == 0


def _without_reference(of_levels: np.ndarray, coding: str) -> np.ndarray:
    return of_levels[1:] if coding == "onehot" else of_levels[:-1]
