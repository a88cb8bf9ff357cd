"""What changes of features cost: from ``feature_costs`` and the levels of a table to the costs of a ground metric."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from wdrlr.model.encoding import FeatureEncoding, quoted
from wdrlr.model.metric import LevelCosts


class Costs(NamedTuple):
    """The costs of a ``GroundMetric``; None where all are 1."""

    level_costs: tuple[LevelCosts, ...] | None = None
    number_costs: np.ndarray | None = None


ALL_ONE = Costs()

LEAST_COST, LARGEST_COST = 1e-8, 1e8
"""Of a change, other than 0 and inf; beyond these, rounding would hide either this cost or those of other features."""


def costs_of(feature_costs: Mapping[Any, Any] | None, encoding: FeatureEncoding, norm: str = "l1") -> Costs:
    """The costs that ``feature_costs`` of ``WassersteinLogisticRegression`` gives the features of a table.

    Raises
    ------
    ValueError
        If a key is no column, or one that another key names, or if a value does not fit its column or, for numbers,
        the norm.
    """
    if not feature_costs:
        return ALL_ONE
    given = by_position(feature_costs, encoding.names)
    numbers = [_of_number(given.get(j, 1.0), encoding.names[j]) for j in encoding.numeric]
    if norm != "l1" and len(set(numbers)) > 1:
        costs = ", ".join(f"{encoding.names[j]!r} {cost:g}" for j, cost in zip(encoding.numeric, numbers, strict=True))
        raise ValueError(
            f"with norm={norm!r} feature_costs must give all columns of numbers the same cost, but they cost {costs} "
            '(1 unless named); use norm="l1", or rescale the columns.'
        )
    categories = tuple(
        _within_limits(_of_category(given.get(j, 1.0), encoding.names[j], levels, ordered), encoding.names[j])
        for j, levels, ordered in zip(encoding.categorical, encoding.categories, encoding.ordered, strict=True)
    )
    own_levels = any(isinstance(cost, np.ndarray) or cost != 1 for cost in categories)
    own_numbers = any(cost != 1 for cost in numbers)
    return Costs(categories if own_levels else None, np.array(numbers) if own_numbers else None)


def by_position(feature_costs: Mapping[Any, Any], names: list[str]) -> dict[int, Any]:
    """The values by the position of the column, in the order of the columns.

    Raises
    ------
    ValueError
        If a key is neither the name nor the position of one column, or if two name the same.
    """
    values: dict[int, Any] = {}
    for key, value in feature_costs.items():
        if isinstance(key, str):
            if key not in names:
                raise ValueError(f"feature_costs names the column {key!r}, but the columns of X are {quoted(names)}.")
            if names.count(key) > 1:
                raise ValueError(f"feature_costs names {key!r}, but X has several such columns; use their positions.")
            j = names.index(key)
        elif isinstance(key, Integral) and not isinstance(key, bool):
            j = int(key)
            if not 0 <= j < len(names):
                raise ValueError(f"feature_costs has the position {key!r}, but those of X are 0 to {len(names) - 1}.")
        else:
            raise ValueError(f"feature_costs has the key {key!r}; use the name of a column, or its position.")
        if j in values:
            raise ValueError(f"feature_costs has the column {names[j]!r} twice, by name and by position; drop one.")
        values[j] = value
    return dict(sorted(values.items()))


def in_words(value: Any) -> str:
    """A value of ``feature_costs``, as short as possible."""
    if isinstance(value, pd.DataFrame):
        return "by a matrix"
    ordinal = _per_step(value)
    if ordinal is not None:
        return "ordinal" if ordinal == 1 else f"ordinal, {ordinal:g} a step"
    return "may not change" if np.isinf(value) else f"{value:g}"


def _is_cost(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_)) and float(value) > 0


def _per_step(value: Any) -> Any:
    """The cost of a step in "ordinal" or ("ordinal", cost); None for any other value."""
    kind, cost = value if isinstance(value, (tuple, list)) and len(value) == 2 else (value, 1.0)
    return cost if isinstance(kind, str) and kind == "ordinal" else None


def _within_limits(costs: LevelCosts, name: str) -> LevelCosts:
    sizes = np.extract(np.isfinite(costs) & (np.asarray(costs) > 0), costs)
    for extreme in (sizes.min(initial=1.0), sizes.max(initial=1.0)):
        if not LEAST_COST <= extreme <= LARGEST_COST:
            raise ValueError(
                f"a change of {name!r} costs {extreme:g} by feature_costs, which rounding would blur beside other "
                f"costs; use inf for what may not change, and else costs from {LEAST_COST:g} to {LARGEST_COST:g}."
            )
    return costs


def _shown(value: Any) -> str:
    return f"a {type(value).__name__}" if hasattr(value, "shape") and np.ndim(value) else repr(value)


def _of_number(value: Any, name: str) -> float:
    if not _is_cost(value):
        raise ValueError(
            f"feature_costs gives {name!r}, a column of numbers, the cost {_shown(value)}; use a positive number, what "
            "a move by 1 costs, or inf if it may not change; or name the column in categorical_features."
        )
    return float(value)


def _of_category(value: Any, name: str, levels: np.ndarray, ordered: bool) -> LevelCosts:
    if isinstance(value, pd.DataFrame):
        return _as_one_cost(_matrix(value, name, levels))
    step = _per_step(value)
    if step is not None:
        if not _is_cost(step) or np.isinf(step):
            raise ValueError(f"feature_costs gives {name!r} a step of {step!r}; use a positive, finite number.")
        if len(levels) > 2 and not ordered:
            raise ValueError(
                f'feature_costs calls {name!r} "ordinal", but the order of its levels is not declared; make it an '
                f"ordered pandas categorical, with these levels from the lowest to the highest: "
                f"X[{name!r}].astype(pd.CategoricalDtype({[*levels]!r}, ordered=True))."
            )
        codes = np.arange(float(len(levels)))
        return _as_one_cost(float(step) * np.abs(codes[:, None] - codes))
    if not _is_cost(value):
        raise ValueError(
            f"feature_costs gives the categorical column {name!r} the cost {_shown(value)}; use a positive number, inf "
            'if it may not change, "ordinal", ("ordinal", cost of a step), or a DataFrame over its levels; what could '
            "change for nothing is better dropped."
        )
    return float(value)


def _matrix(frame: pd.DataFrame, name: str, levels: np.ndarray) -> np.ndarray:
    """The costs in the order of the levels; shape (K, K)."""
    known = pd.Index(levels)
    for part, labels in (("index", frame.index), ("columns", frame.columns)):
        where = f"the {part} of the DataFrame that feature_costs has for {name!r}"
        if labels.has_duplicates:
            raise ValueError(f"{where} has {quoted(labels[labels.duplicated()].unique())} more than once.")
        missing, extra = known[labels.get_indexer(known) < 0], labels[known.get_indexer(labels) < 0]
        if len(missing):
            raise ValueError(f"{where} lacks the levels {quoted(missing)}; it has {quoted(labels)}.")
        if len(extra):
            declared = [*levels, *extra]
            raise ValueError(
                f"{where} has {quoted(extra)}, which are no levels of that column; if rows can have these, declare "
                f"them: X[{name!r}].astype(pd.CategoricalDtype({declared!r})); else drop them from the DataFrame."
            )
    try:
        costs = frame.to_numpy(dtype=float, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"feature_costs has a DataFrame for {name!r} with values that are not numbers: {error}."
        ) from error
    costs = costs[np.ix_(frame.index.get_indexer(known), frame.columns.get_indexer(known))]
    wrong = ~(costs >= 0) | (np.eye(len(levels), dtype=bool) & (costs != 0))
    if wrong.any():
        u, v = np.argwhere(wrong)[0]
        least = "0, as nothing is changed" if u == v else "at least 0, or inf if that change may not happen"
        raise ValueError(
            f"feature_costs has {costs[u, v]:g} for {name!r} from {quoted(levels[[u]])} to {quoted(levels[[v]])}; this "
            f"cost must be {least}."
        )
    if len(levels) > 1 and not costs.any():
        raise ValueError(f"all changes of {name!r} would cost nothing by feature_costs; drop the column instead.")
    return costs


def _as_one_cost(costs: np.ndarray) -> LevelCosts:
    """One number in place of a matrix whose changes all cost the same."""
    changes = costs[~np.eye(len(costs), dtype=bool)]
    if not len(changes):
        return 1.0
    return float(changes[0]) if (changes == changes[0]).all() else costs
