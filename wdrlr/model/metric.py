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


NORMS: dict[str, Norm] = {"l1": L1(), "l2": L2(), "linf": LInf()}
"""The norms by name."""


@dataclass(frozen=True)
class GroundMetric:
    """The distance between two data points (x, z, y) and (x', z', y').

        d = ( ||x - x'|| + level_cost (sum_j [z_j != z'_j])^(1/p) + kappa [y != y'] ) / scale

    with x in R^n (numbers), z_j one of k_j levels (categories) and y in {-1, +1} (label).
    Source: Definition 2; the paper has level_cost = scale = 1, its public code scale = n + m + kappa.

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
        Distance between any two levels, > 0.
    """

    label_cost: float
    p: float = 1.0
    norm: str = "l1"
    scale: float = 1.0
    level_cost: float = 1.0

    @property
    def number_norm(self) -> Norm:
        """The norm on the numeric features, without ``scale``."""
        return NORMS[self.norm]

    @property
    def label_change(self) -> float:
        """Distance between the two labels: kappa / scale."""
        return self.label_cost / self.scale

    def level_changes(self, m: int) -> np.ndarray:
        """Distance between two z that differ in 0, 1, ..., m features; shape (m + 1,)."""
        return self.level_cost * np.arange(m + 1.0) ** (1.0 / self.p) / self.scale

    def dual_norm(self, b_numeric: np.ndarray) -> float:
        """``scale * ||b_N||_*``: the smallest multiplier lam at which no move of a number pays (Lemma 1)."""
        if b_numeric.size == 0:
            return 0.0
        return float(self.scale * self.number_norm.dual(b_numeric))

    def numeric_distance(self, shift: np.ndarray) -> float:
        """Distance between two points that differ only in their numbers, by ``shift`` (shape (n,))."""
        if shift.size == 0:
            return 0.0
        return float(self.number_norm.value(shift) / self.scale)


def ground_metric(
    label_cost: float | str, n: int, m: int, *, p: float = 1.0, norm: str = "l1", metric_scale: str | None = None
) -> GroundMetric:
    """The ground metric for data with n numbers and m categories.

    Parameters
    ----------
    label_cost : float or "n_categorical"
        kappa; "n_categorical" is the paper's choice kappa = m and needs m > 0.
    metric_scale : None or "unit"
        "unit" divides the metric by n + m + kappa, so that for p = 1 and numbers in [0, 1] with the l1 norm
        no two points are more than 1 apart.

    Raises
    ------
    ValueError
        If an argument is outside its range, or "unit" meets an infinite kappa.
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
    if norm not in NORMS:
        raise ValueError(f"norm must be one of {', '.join(NORMS)}, not {norm!r}.")
    if metric_scale not in (None, "unit"):
        raise ValueError(f'metric_scale must be None or "unit", not {metric_scale!r}.')
    if metric_scale == "unit" and np.isinf(label_cost):
        raise ValueError(
            'metric_scale="unit" divides by n + m + kappa and needs a finite label_cost; '
            "use metric_scale=None with label_cost=inf."
        )
    scale = n + m + label_cost if metric_scale == "unit" else 1.0
    return GroundMetric(label_cost=float(label_cost), p=float(p), norm=norm, scale=float(scale))
