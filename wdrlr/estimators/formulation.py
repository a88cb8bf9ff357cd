"""From a table with numbers and categories to a problem, and from the problem's coefficients back to the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from wdrlr.estimators.feature_costs import ALL_ONE, LARGEST_COST, Costs, costs_of
from wdrlr.model import encoding as enc
from wdrlr.model.metric import GroundMetric, ground_metric
from wdrlr.model.problem import Problem, level_offsets, merge_duplicates

Stretch = np.ndarray | float

LEAST_SIZE, LARGEST_SIZE = 1e-15, 1e15
"""Sizes of the numbers in a column; beyond these, sums over columns round the other columns away."""

LARGEST_OFFSET = 1e10
"""How far from 0 a column may be, in multiples of its range: the intercept loses as many digits to rounding."""


class Posed(NamedTuple):
    """The problem of a table.

    encoding : FeatureEncoding
        With the weights of the levels in this table.
    problem : Problem
    stretch : ndarray of shape (n + k,), or float
        The factor from a slope of the problem to that of the table's number or dummy.
    """

    encoding: enc.FeatureEncoding
    problem: Problem
    stretch: Stretch = 1.0

    def read(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``coef_`` (1, n + k) and ``intercept_`` (1,) of the problem's coefficients b."""
        return (b[1:] * self.stretch)[None], b[:1]

    def coefficients(self, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
        """The problem's coefficients b; the inverse of ``read``."""
        return np.concatenate([intercept, coef[0] / self.stretch])


@dataclass(frozen=True, eq=False)
class Formulation:
    """The parameters that turn a table into a problem.

    Parameters
    ----------
    radius, label_cost, p, norm, metric_scale, feature_costs, l1_penalty, penalize_intercept, categorical_features, \
coding, coef_bound, fit_intercept
        As in ``WassersteinLogisticRegression``.
    change : callable or None
        Turns the problem that these parameters describe into another one with as many coefficients, for a baseline or
        a variant of the paper, and returns it with its ``Posed.stretch``. It must be a module-level function, so that
        it can be pickled.
    any_code : bool
        As in ``Problem``; needs coding "pm1", and features that cost the same whatever their change.
    """

    radius: float = 0.01
    label_cost: float | str = np.inf
    p: float = 1.0
    norm: str = "l1"
    metric_scale: str | None = None
    feature_costs: Mapping[Any, Any] | None = None
    l1_penalty: float = 0.0
    penalize_intercept: bool = False
    categorical_features: Any = "from_dtype"
    coding: str = "onehot"
    coef_bound: float | None = None
    fit_intercept: bool = True
    change: Callable[[Problem], tuple[Problem, Stretch]] | None = None
    any_code: bool = False

    def fit(self, table: pd.DataFrame, labels: np.ndarray, weights: np.ndarray) -> Posed:
        """Learn the kinds and levels of a table's columns, and pose its problem.

        Parameters
        ----------
        table : DataFrame of N rows
        labels : ndarray of shape (N,)
            -1.0 or +1.0.
        weights : ndarray of shape (N,)
            Not negative.

        Raises
        ------
        ValueError
            If the table, its weights or the parameters make no problem; the message says what to change.
        """
        posed = self.pose(self.encode(table), table, labels, weights)
        if np.unique(posed.problem.y).size < 2:
            raise ValueError("the samples with a positive weight are all of one class; two classes are needed.")
        return posed

    def encode(self, table: pd.DataFrame) -> enc.FeatureEncoding:
        """Which columns are numbers, which are categories, and their levels."""
        return enc.fit_encoding(table, self.categorical_features)

    def pose(
        self,
        encoding: enc.FeatureEncoding,
        table: pd.DataFrame,
        labels: np.ndarray,
        weights: np.ndarray,
        merge: bool = True,
    ) -> Posed:
        """The problem of these rows; without ``merge``, its samples are the rows one by one, in their order."""
        costs = self.costs(encoding)
        x, z = encoding.numbers(table), encoding.codes(table, "error")
        kept = weights > 0
        if not kept.any():
            raise ValueError("sample_weight must have at least one non-zero entry.")
        _refuse_extreme(x, costs.number_costs, [encoding.names[j] for j in encoding.numeric])
        w = weights / weights.max()  # their sum may be too large for a float
        known = z[kept]
        if merge:
            if not kept.all():
                x, z, labels, w = x[kept], z[kept], labels[kept], w[kept]
            x, z, labels, w = merge_duplicates(x, z, labels, w)
        problem = self.problem(x, z, labels, w / w.sum(), encoding.n_levels, costs)
        weights_of_levels = np.split(problem.level_weights, problem.offsets[1:])[: problem.n_categorical]
        counts = [np.bincount(codes, minlength=K) for codes, K in zip(known.T, encoding.n_levels, strict=True)]
        encoding = replace(encoding, category_weights=weights_of_levels, n_rows=int(kept.sum()), category_rows=counts)
        return Posed(encoding, problem) if self.change is None else Posed(encoding, *self.change(problem))

    def costs(self, encoding: enc.FeatureEncoding) -> Costs:
        """What changes of the features of this table cost."""
        return costs_of(self.feature_costs, encoding, self.norm)

    def problem(
        self,
        x: np.ndarray,
        z: np.ndarray,
        y: np.ndarray,
        w: np.ndarray,
        n_levels: tuple[int, ...],
        costs: Costs = ALL_ONE,
    ) -> Problem:
        """The problem of arrays, named as in ``Problem``; ``change`` is not applied."""
        if self.any_code and self.coding != "pm1":
            raise ValueError(f'any_code needs coding="pm1", whose codes it means, not {self.coding!r}.')
        if self.any_code and any(isinstance(cost, np.ndarray) for cost in costs.level_costs or ()):
            raise ValueError(
                "any_code needs features with one cost each, since a code is no level; change feature_costs."
            )
        matrix = enc.level_matrix(n_levels, self.coding)
        penalty = np.full(1 + x.shape[1] + matrix.shape[1], float(self.l1_penalty))
        penalty[0] *= self.penalize_intercept
        return Problem(
            x=x,
            z=z,
            y=y,
            w=w,
            n_levels=n_levels,
            level_matrix=matrix,
            metric=self.metric(x.shape[1], z.shape[1], costs),
            radius=float(self.radius),
            penalty=penalty,
            coef_bound=np.array(np.inf if self.coef_bound is None else self.coef_bound, dtype=float),
            fit_intercept=bool(self.fit_intercept),
            any_code=self.any_code,
        )

    def metric(self, n: int, m: int, costs: Costs = ALL_ONE) -> GroundMetric:
        """The ground metric on n numbers and m categories."""
        options: dict[str, Any] = {"p": self.p, "norm": self.norm, "metric_scale": self.metric_scale}
        return ground_metric(self.label_cost, n, m, **options, **costs._asdict())

    def decision(
        self,
        encoding: enc.FeatureEncoding,
        coef: np.ndarray,
        intercept: np.ndarray,
        table: pd.DataFrame,
        handle_unknown: str = "error",
    ) -> np.ndarray:
        """f at every row of a table; shape (N,). Unknown levels have the mean score of the problem's rows."""
        x, z = encoding.numbers(table), encoding.codes(table, handle_unknown)
        n, n_levels = x.shape[1], encoding.n_levels
        scores, offsets = enc.level_scores(coef[0, n:], n_levels, self.coding), level_offsets(n_levels)
        by_feature = zip(encoding.category_weights, np.split(scores, offsets[1:]), strict=False)
        means = np.array([weights @ of_feature for weights, of_feature in by_feature])
        with_means = np.insert(scores, offsets, means)  # each before the levels of its feature, where -1 finds it
        return intercept[0] + x @ coef[0, :n] + with_means[z + offsets + np.arange(1, len(offsets) + 1)].sum(axis=1)

    def rows(self, encoding: enc.FeatureEncoding, table: pd.DataFrame, handle_unknown: str = "error") -> np.ndarray:
        """The rows whose product with intercept and coefficients is ``decision``; shape (N, 1 + n + k)."""
        x, z = encoding.numbers(table), encoding.codes(table, handle_unknown)
        matrix = enc.level_matrix(encoding.n_levels, self.coding).toarray()
        categories = np.zeros((len(table), matrix.shape[1]))
        by_feature = np.split(matrix, level_offsets(encoding.n_levels)[1:])
        for of_levels, weights, codes in zip(by_feature, encoding.category_weights, z.T, strict=False):
            categories += np.vstack([of_levels, weights @ of_levels])[codes]  # unknown is -1, the last row
        return np.column_stack([np.full(len(table), float(self.fit_intercept)), x, categories])


def _refuse_extreme(x: np.ndarray, number_costs: np.ndarray | None, names: list[str]) -> None:
    costs = np.ones(len(names)) if number_costs is None else number_costs
    for column, cost, name in zip(x.T, costs, names, strict=True):
        size, extent = np.abs(column).max(initial=0.0), np.ptp(column) if len(column) else 0.0
        if size > LARGEST_SIZE or 0 < size < LEAST_SIZE:
            raise ValueError(f"the numbers in column {name!r} are of the size {size:.0e}; rescale them.")
        if 0 < extent < size / LARGEST_OFFSET:
            raise ValueError(
                f"the numbers in column {name!r} are of the size {size:.0e} and differ by {extent:.0e} at most, which "
                f"rounding would blur; subtract {column[0]:.17g} from them."
            )
        if cost not in (1, np.inf) and (0 < cost * size < LEAST_SIZE or cost * extent > LARGEST_COST):
            raise ValueError(
                f"the numbers in column {name!r}, of the size {size:.0e}, cost {cost:g} a unit by feature_costs, which "
                "rounding would blur beside other costs; use inf if they may not change, else a cost in another unit."
            )
