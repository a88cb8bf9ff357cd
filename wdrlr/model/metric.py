"""The ground metric on mixed features (Definition 2 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np

# The order of each norm and of its dual norm, as numpy and cvxpy count them.
NORMS = {"l1": 1, "l2": 2, "linf": np.inf}
DUAL_NORMS = {"l1": np.inf, "l2": 2, "linf": 1}


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
    norm : {"l1", "l2", "linf"}
        Norm on the numeric features.
    scale : float
        What the whole distance is divided by.
    level_cost : float
        Distance of a level from every other one, > 0.
    """

    label_cost: float
    p: float = 1.0
    norm: str = "l1"
    scale: float = 1.0
    level_cost: float = 1.0

    @property
    def label_change(self) -> float:
        """Distance of a label from the other one: kappa / scale."""
        return self.label_cost / self.scale

    def level_changes(self, m: int) -> np.ndarray:
        """Distance of two z that differ in 0, 1, ..., m features; shape (m + 1,)."""
        return self.level_cost * np.arange(m + 1.0) ** (1.0 / self.p) / self.scale

    def dual_norm(self, b_numeric: np.ndarray) -> float:
        """``scale * ||b_N||_*``: the smallest multiplier lam at which no move of a number pays (Lemma 1)."""
        if b_numeric.size == 0:
            return 0.0
        return float(self.scale * _norm(b_numeric, DUAL_NORMS[self.norm]))

    def numeric_distance(self, shift: np.ndarray) -> float:
        """Distance of two points whose numbers differ by ``shift`` (shape (n,)) and nothing else does."""
        if shift.size == 0:
            return 0.0
        return float(_norm(shift, NORMS[self.norm]) / self.scale)


def _norm(vector: np.ndarray, order: float) -> float:
    """A norm whose squares neither overflow nor vanish."""
    largest = np.abs(vector).max()
    if not 0 < largest < np.inf:
        return float(largest)
    unit = 2.0 ** np.floor(np.log2(largest))
    return float(unit * np.linalg.norm(vector / unit, order))


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
