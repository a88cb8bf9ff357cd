"""The ground metric on mixed features (Definition 2 of the paper)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np

TIE = 1e-5
"""Slopes this close to the largest one, or to 0, may equal it up to a solver's tolerance; see ``Norm.aligned``."""


class Norm(ABC):
    """A norm on the numbers, ||v||, and its dual norm on their slopes, ||b||_* = max { b.v : ||v|| <= 1 }.

    The norm must depend only on the sizes |v_j|, since for some vectors the certificate knows nothing else. Register an
    object of a subclass by ``NORMS["name"] = ...``. Which methods are needed:

    - always, by the metric and the certificates: ``value`` and ``dual``;
    - by the solver "tailored", worst-case distributions and ``radius_max``: ``steepest``;
    - by the solvers "column-constraint" and "monolithic", which repair dual points by ``aligned``: ``form`` and
      ``dual_form``.
    """

    dual_order: ClassVar[float | None] = None
    """The order of the dual norm, if NumPy has a norm of that order: ``radius_max`` then needs no tangents."""

    @abstractmethod
    def value(self, v: np.ndarray) -> float:
        """||v||, of shape (n,) with n > 0."""

    @abstractmethod
    def dual(self, b: np.ndarray) -> float:
        """||b||_*, of shape (n,) with n > 0."""

    @abstractmethod
    def steepest(self, b: np.ndarray, length: float = 1.0) -> np.ndarray:
        """A v with ||v|| = length and b.v = length ||b||_*, for b other than 0; shapes (n,)."""

    def aligned(self, b: np.ndarray, near: np.ndarray, length: float) -> np.ndarray:
        """What ``steepest`` returns or, if several such v are equal within rounding, one near a given vector."""
        return self.steepest(b, length)

    def of_units(self, n: int) -> np.ndarray:
        """The norms of the unit vectors; shape (n,)."""
        return np.array([self.value(unit) for unit in np.eye(n)])

    def form(self, n: int) -> tuple[float, np.ndarray]:
        """An order, 1, 2 or infinity, and a matrix of n columns: ||v|| is the norm of that order of matrix @ v."""
        raise NotImplementedError(f"{type(self).__name__} has no form; conic programs need ``form`` and ``dual_form``.")

    def dual_form(self, n: int) -> tuple[float, np.ndarray]:
        """The same for the dual norm."""
        raise NotImplementedError(f"{type(self).__name__} has no form; conic programs need ``form`` and ``dual_form``.")


class _OfOrder(Norm):
    order: ClassVar[float]
    dual_order: ClassVar[float]

    def value(self, v: np.ndarray) -> float:
        return _norm(v, self.order)

    def dual(self, b: np.ndarray) -> float:
        return _norm(b, self.dual_order)

    def form(self, n: int) -> tuple[float, np.ndarray]:
        return self.order, np.eye(n)

    def dual_form(self, n: int) -> tuple[float, np.ndarray]:
        return self.dual_order, np.eye(n)


class L1(_OfOrder):
    """sum_j |v_j|; its dual norm is the largest |b_j|."""

    order, dual_order = 1, np.inf

    def steepest(self, b: np.ndarray, length: float = 1.0) -> np.ndarray:
        return np.where(np.arange(b.size) == np.argmax(np.abs(b)), length * np.sign(b), 0.0)

    def aligned(self, b: np.ndarray, near: np.ndarray, length: float) -> np.ndarray:
        largest = np.abs(b) >= (1 - TIE) * np.abs(b).max()
        share = np.where(largest, np.maximum(near * np.sign(b), 0.0), 0.0)
        share = share if share.sum() > 0 else largest.astype(float)
        return length * np.sign(b) * share / share.sum()


class L2(_OfOrder):
    """(sum_j v_j^2)^(1/2), its own dual norm."""

    order, dual_order = 2, 2

    def steepest(self, b: np.ndarray, length: float = 1.0) -> np.ndarray:
        return length * b / self.dual(b)


class LInf(_OfOrder):
    """The largest |v_j|; its dual norm is sum_j |b_j|."""

    order, dual_order = np.inf, 1

    def steepest(self, b: np.ndarray, length: float = 1.0) -> np.ndarray:
        return length * np.sign(b)

    def aligned(self, b: np.ndarray, near: np.ndarray, length: float) -> np.ndarray:
        return np.where(np.abs(b) > TIE, self.steepest(b, length), np.clip(near, -length, length))


def _norm(vector: np.ndarray, order: float) -> float:
    """The norm of an order, computed so that squares neither overflow nor underflow."""
    largest = np.abs(vector).max()
    if not 0 < largest < np.inf:
        return float(largest)
    unit = 2.0 ** np.floor(np.log2(largest))
    return float(unit * np.linalg.norm(vector / unit, order))


@dataclass(frozen=True, eq=False)
class Weighted(Norm):
    """||costs * v||: the numbers of a table on scales of their own.

    Parameters
    ----------
    base : Norm
    costs : ndarray of shape (n,)
        What a move of each number by 1 costs, > 0; inf: the number may not move, and any slope is free. ``form`` does
        not charge for its move and ``dual_form`` leaves out its slope: the former needs v = 0 there.
    """

    base: Norm
    costs: np.ndarray

    def value(self, v: np.ndarray) -> float:
        return self.base.value(np.multiply(self.costs, v, out=np.zeros(len(v)), where=v != 0))

    def dual(self, b: np.ndarray) -> float:
        return self.base.dual(b / self.costs)

    def steepest(self, b: np.ndarray, length: float = 1.0) -> np.ndarray:
        return self.base.steepest(b / self.costs, length) / self.costs

    def aligned(self, b: np.ndarray, near: np.ndarray, length: float) -> np.ndarray:
        scaled = np.multiply(self.costs, near, out=np.zeros(len(near)), where=np.isfinite(self.costs))
        return self.base.aligned(b / self.costs, scaled, length) / self.costs

    def of_units(self, n: int) -> np.ndarray:
        return self.costs * self.base.of_units(n)

    def form(self, n: int) -> tuple[float, np.ndarray]:
        order, matrix = self.base.form(n)
        return order, matrix * np.where(np.isfinite(self.costs), self.costs, 0.0)

    def dual_form(self, n: int) -> tuple[float, np.ndarray]:
        order, matrix = self.base.dual_form(n)
        return order, matrix / self.costs


NORMS: dict[str, Norm] = {"l1": L1(), "l2": L2(), "linf": LInf()}
"""The norms by name."""


LevelCosts = float | np.ndarray
"""Of a categorical feature: what a change into any other level costs, or a (K, K) matrix from the row's level to the
column's, >= 0 with a zero diagonal. inf: may not happen."""


@dataclass(frozen=True, eq=False)
class GroundMetric:
    """The distance between two data points (x, z, y) and (x', z', y').

        d = ( ||x - x'|| + level_cost sum_j D_j(z_j, z'_j) + kappa [y != y'] ) / scale

    with x in R^n (numbers), z_j one of k_j levels (categories) and y in {-1, +1} (label). In the paper (Definition 2)
    all changes cost the same and the sum is (sum_j [z_j != z'_j])^(1/p); level_cost = scale = 1, in its public code
    scale = n + m + kappa. Costs that differ need p = 1. They need not be symmetric, nor satisfy the triangle
    inequality: the dual of Theorem 1 uses neither.

    Parameters
    ----------
    label_cost : float
        kappa > 0, possibly ``inf`` (labels are then never changed).
    p : float
        Exponent of the categorical distance, > 0.
    norm : str
        Norm on the numeric features: a name from ``NORMS``.
    scale : float
        What the whole distance is divided by.
    level_cost : float
        What changes of levels cost is multiplied by, > 0.
    level_costs : tuple of m LevelCosts, or None
        D_j of each feature. None: all changes cost 1.
    number_costs : ndarray of shape (n,) or None
        What numbers are multiplied by in the norm, > 0; inf: may not move. None: 1.
    """

    label_cost: float
    p: float = 1.0
    norm: str = "l1"
    scale: float = 1.0
    level_cost: float = 1.0
    level_costs: tuple[LevelCosts, ...] | None = None
    number_costs: np.ndarray | None = None

    @property
    def number_norm(self) -> Norm:
        """The norm on the numeric features, without ``scale``."""
        norm = NORMS[self.norm]
        return norm if self.number_costs is None else Weighted(norm, self.number_costs)

    @property
    def label_change(self) -> float:
        """Distance of a label from the other one: kappa / scale."""
        return self.label_cost / self.scale

    @property
    def flips(self) -> bool:
        """Whether labels can be changed."""
        return bool(np.isfinite(self.label_change))

    def level_changes(self, m: int) -> np.ndarray:
        """Distance of two z that differ in 0, ..., m features where all changes cost the same; shape (m + 1,)."""
        return self.level_cost * np.arange(m + 1.0) ** (1.0 / self.p) / self.scale

    def level_distance(self, old: np.ndarray, new: np.ndarray) -> np.ndarray:
        """d_C of rows of level codes, from ``old`` to ``new`` (both (C, m)); shape (C,)."""
        changed = old != new
        if self.level_costs is None:
            return self.level_changes(old.shape[1])[changed.sum(axis=1)]
        total = np.zeros(len(old))
        for j, costs in enumerate(self.level_costs):
            if isinstance(costs, np.ndarray):
                total += costs[old[:, j], new[:, j]]
            else:
                total[changed[:, j]] += costs
        return self.level_cost * total / self.scale

    def largest_changes(self, m: int) -> np.ndarray:
        """The largest distance of two z that differ in one given feature; shape (m,)."""
        if self.level_costs is None:
            return np.full(m, self.level_changes(1)[1])
        return self.level_cost * np.array([np.max(costs) for costs in self.level_costs]) / self.scale

    def largest_distance(self, m: int) -> float:
        """No two z are farther apart."""
        return float(self.level_changes(m)[-1] if self.level_costs is None else self.largest_changes(m).sum())

    def typical_change(self, m: int) -> float:
        """The middle one of the features' largest finite costs, a unit for distances; 0 if no level can be changed."""
        if self.level_costs is None:
            return float(self.level_changes(1)[1]) if m else 0.0
        costs = largest_finite(self.level_costs)
        return self.level_cost * float(np.median(costs[costs > 0])) / self.scale if (costs > 0).any() else 0.0

    def movable(self, n: int) -> np.ndarray:
        """Which numbers may move; bool (n,)."""
        return np.ones(n, dtype=bool) if self.number_costs is None else np.isfinite(self.number_costs)

    def dual_norm(self, b_numeric: np.ndarray) -> float:
        """``scale * ||b_N||_*``: the smallest multiplier lam at which no move of a number pays (Lemma 2)."""
        if b_numeric.size == 0:
            return 0.0
        return float(self.scale * self.number_norm.dual(b_numeric))

    def numeric_distance(self, shift: np.ndarray) -> float:
        """Distance of two points whose numbers differ by ``shift`` (shape (n,)) and nothing else does."""
        if shift.size == 0:
            return 0.0
        return float(self.number_norm.value(shift) / self.scale)


def largest_finite(level_costs: tuple[LevelCosts, ...]) -> np.ndarray:
    """The largest finite cost of each feature, 0 if all its changes are forbidden; shape (m,)."""
    return np.array([np.max(np.where(np.isfinite(costs), costs, 0.0)) for costs in level_costs])


def mean_costs(costs: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """What a change of each level into Q mixtures of levels costs: (K, K) costs and (Q, K) shares give (K, Q).

    inf only where a level of infinite cost has a share.
    """
    forbidden = np.isinf(costs)
    mean = np.where(forbidden, 0.0, costs) @ shares.T
    return np.where(forbidden.astype(float) @ (shares != 0).T > 0, np.inf, mean)


def ground_metric(
    label_cost: float | str,
    n: int,
    m: int,
    *,
    p: float = 1.0,
    norm: str = "l1",
    metric_scale: str | None = None,
    level_costs: tuple[LevelCosts, ...] | None = None,
    number_costs: np.ndarray | None = None,
) -> GroundMetric:
    """The ground metric for data with n numbers and m categories.

    Parameters
    ----------
    label_cost : float or "n_categorical"
        kappa; "n_categorical" is the paper's choice kappa = m and needs m > 0.
    metric_scale : None or "unit"
        "unit" divides the metric by n + m + kappa, so that for p = 1 and numbers in [0, 1] with the l1 norm
        no two points are more than 1 apart; with costs of their own, n and m become the sums of the numbers' and of
        the features' largest finite costs.
    level_costs, number_costs
        As in ``GroundMetric``; None where all are 1.

    Raises
    ------
    ValueError
        If an argument is outside its range, or "unit" meets an infinite kappa, or costs meet p other than 1.
    """
    if label_cost == "n_categorical":
        if m == 0:
            raise ValueError(
                'label_cost="n_categorical" sets kappa to the number of categorical features, which is 0 here; '
                "pass a positive number."
            )
        label_cost = float(m)
    if not isinstance(label_cost, Real) or not label_cost > 0:
        raise ValueError(f'label_cost must be a positive number, "n_categorical" or inf, not {label_cost!r}.')
    if not isinstance(p, Real) or not 0 < p < np.inf:
        raise ValueError(f"p must be a positive finite number, not {p!r}.")
    if np.log(max(m, 1)) / p > 700:
        raise ValueError(f"p = {p!r} is too small: {m} changes would cost {m}^(1/p), which is not finite.")
    if p != 1 and not (level_costs is None and number_costs is None):
        raise ValueError(f"feature_costs need p = 1, not {p!r}: the cost of several changes is the sum of theirs.")
    if norm not in NORMS:
        raise ValueError(f"norm must be one of {', '.join(NORMS)}, not {norm!r}.")
    if metric_scale not in (None, "unit"):
        raise ValueError(f'metric_scale must be None or "unit", not {metric_scale!r}.')
    if metric_scale == "unit" and np.isinf(label_cost):
        raise ValueError(
            'metric_scale="unit" divides by n + m + kappa and needs a finite label_cost; '
            "use metric_scale=None with label_cost=inf."
        )
    scale = 1.0
    if metric_scale == "unit":
        of_numbers = n if number_costs is None else number_costs[np.isfinite(number_costs)].sum()
        of_levels = m if level_costs is None else largest_finite(level_costs).sum()
        scale = float(of_numbers + of_levels + label_cost)
    return GroundMetric(float(label_cost), float(p), norm, scale, level_costs=level_costs, number_costs=number_costs)
