"""The distributionally robust logistic regression problem, as arrays (problem (2) of the paper).

The letters used throughout the package:

    N, n, m, k    samples, numeric features, categorical features, slopes of the categorical features
    x, z, y, w    numbers (N, n), level codes (N, m), labels (N,) in {-1, +1}, weights (N,) that sum to 1
    b             coefficients (1 + n + k,): intercept, slopes b_N of the numbers, slopes b_C of the categories
    lam           multiplier of the Wasserstein ball, lambda in the paper
    f             b_0 + b_N.x + (score of every level in z); the model predicts y = +1 where f > 0
    a             -y f, the argument of the log-loss L(a) = log(1 + e^a)
    t             the slope of the log-loss, L'(a) in (0, 1)
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from wdrlr.model.metric import GroundMetric
from wdrlr.model.threads import filled


def log_loss(a: np.ndarray) -> np.ndarray:
    """L(a) = log(1 + e^a), without overflow."""
    return np.maximum(a, 0.0) + np.log1p(np.exp(-np.abs(a)))


def codes(number: np.ndarray, width: int) -> np.ndarray:
    """The -1/+1 codes with these numbers, see ``Problem.any_code``; shape (number of these, width)."""
    return 2.0 * (number[:, None] >> np.arange(width) & 1) - 1.0


def level_offsets(n_levels: tuple[int, ...]) -> np.ndarray:
    """The index of each feature's first level when all levels are numbered consecutively; shape (m,)."""
    return np.concatenate([[0], np.cumsum(n_levels, dtype=int)])[: len(n_levels)].astype(int)


class Dummies(NamedTuple):
    """How the slopes b_C follow from scores of the levels, up to a constant of each feature."""

    level: np.ndarray  # (k,): the level that has the dummy; its score is span * slope above that of the reference
    reference: np.ndarray  # (m,): the level of each feature that has no dummy
    feature: np.ndarray  # (k,): whose dummy it is
    span: np.ndarray  # (k,)
    constant: np.ndarray  # (sum(n_levels),): constant @ scores, summed over a feature, is its constant


@dataclass(frozen=True, eq=False)
class Problem:
    """minimise over b:  sup { E_Q[L(-y f)] : W(Q, P_N) <= radius }  +  sum_j penalty_j |b_j|.

    P_N puts weight w_i on sample i, W is the type-1 Wasserstein distance of ``metric``. In dual form (proof of
    Theorem 1) the objective is the minimum over lam >= metric.dual_norm(b_N) of

        F(b, lam) = lam radius + sum_i w_i max_{z, y} [ L(-y f(x_i, z)) - lam d((x_i, z, y), (x_i, z_i, y_i)) ]
                    + sum_j penalty_j |b_j|

    Parameters
    ----------
    x, z, y, w : ndarray of shapes (N, n), (N, m), (N,), (N,)
        Data: numbers, level codes from 0, labels -1 or +1, weights that sum to 1.
    n_levels : tuple of m int
        The number of levels of each categorical feature, seen in the data or not.
    level_matrix : array or sparse array of shape (sum(n_levels), k)
        Row v: the score of level v is row . b_C (see ``encoding.level_matrix``). It is kept as a ``csr_array``. Each
        feature has a level without a dummy, its reference; each dummy has one value > 0 at its own level, and another
        at all other levels.
    metric : GroundMetric
    radius : float
        Wasserstein radius, in units of the metric. At 0 the problem is plain logistic regression, even where changes
        cost nothing.
    penalty : ndarray of shape (1 + n + k,)
        l1 penalty of each coefficient.
    coef_bound : ndarray of shape (1 + n + k,) or ()
        Coefficient j lies in [-coef_bound_j, coef_bound_j]; one number stands for all. inf: not bounded.
    fit_intercept : bool
        If False, b_0 = 0.
    any_code : bool
        False: C in the paper, each feature has one of its levels. True: the adversary of the paper's public code, who
        can also give a feature with three or more levels any -1/+1 code of its dummies ("pm1" coding), at the cost of a
        change. Such a code is numbered n_levels_j + sum_v 2^v [dummy v is +1] among the levels.
    """

    x: np.ndarray
    z: np.ndarray
    y: np.ndarray
    w: np.ndarray
    n_levels: tuple[int, ...]
    level_matrix: sp.csr_array
    metric: GroundMetric
    radius: float
    penalty: np.ndarray
    coef_bound: np.ndarray = field(default_factory=lambda: np.array(np.inf))
    fit_intercept: bool = True
    any_code: bool = False
    offsets: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "offsets", level_offsets(self.n_levels))
        object.__setattr__(self, "level_matrix", sp.csr_array(self.level_matrix))
        object.__setattr__(self, "coef_bound", np.broadcast_to(self.coef_bound, self.n_coefficients))

    @property
    def n_samples(self) -> int:
        return self.x.shape[0]

    @property
    def n_numeric(self) -> int:
        return self.x.shape[1]

    @property
    def n_categorical(self) -> int:
        return self.z.shape[1]

    @property
    def shape(self) -> tuple[int, int]:
        """N and n + m"""
        return self.n_samples, self.n_numeric + self.n_categorical

    @property
    def n_coefficients(self) -> int:
        return 1 + self.n_numeric + self.level_matrix.shape[1]

    @cached_property
    def coded(self) -> np.ndarray:
        """The features that can have codes which are no levels; shape (number of these,)."""
        return np.flatnonzero(np.array(self.n_levels, dtype=int) >= 3) if self.any_code else np.zeros(0, dtype=int)

    def levels(self, j: int) -> slice:
        """Where the levels of feature j are among all of them."""
        return slice(int(self.offsets[j]), int(self.offsets[j]) + self.n_levels[j])

    def dummies(self, j: int) -> slice:
        """Where the slopes of feature j are among b_C."""
        start = int(self.offsets[j]) - j
        return slice(start, start + self.n_levels[j] - 1)

    @cached_property
    def of_dummies(self) -> sp.csr_array:
        """The level matrix transposed; shape (k, sum(n_levels))."""
        return self.level_matrix.T.tocsr()

    @cached_property
    def level_sizes(self) -> sp.csr_array:
        """The level matrix with the absolute values of its entries."""
        return abs(self.level_matrix)

    @cached_property
    def all_dummies(self) -> Dummies:
        matrix, (V, k) = self.level_matrix.tocoo(), self.level_matrix.shape
        own = matrix.data > 0
        level = np.zeros(k, dtype=int)
        level[matrix.col[own]] = matrix.row[own]
        is_reference = np.ones(V, dtype=bool)
        is_reference[level] = False
        reference, other = np.flatnonzero(is_reference), is_reference[matrix.row]
        at_reference = np.bincount(matrix.col[other], matrix.data[other], k)
        span = np.bincount(matrix.col[own], matrix.data[own], k) - at_reference
        feature = np.repeat(np.arange(self.n_categorical), np.array(self.n_levels, dtype=int) - 1)
        constant = np.empty(V)
        constant[level] = -at_reference / span
        constant[reference] = 1 - np.bincount(feature, constant[level], len(reference))
        return Dummies(level, reference, feature, span, constant)

    def slopes_of_scores(self, j: int, score: np.ndarray) -> tuple[float, np.ndarray]:
        """The constant and the slopes with which the levels of feature j have the scores (n_levels_j,)."""
        all_dummies, mine, first = self.all_dummies, self.dummies(j), self.offsets[j]
        above = score[all_dummies.level[mine] - first] - score[all_dummies.reference[j] - first]
        return float(all_dummies.constant[self.levels(j)] @ score), above / all_dummies.span[mine]

    @cached_property
    def level_weights(self) -> np.ndarray:
        """The weight of the samples with each level; shape (sum(n_levels),)."""
        weights = np.repeat(self.w, self.n_categorical)
        return np.bincount((self.z + self.offsets).ravel(), weights, minlength=sum(self.n_levels))

    @cached_property
    def balance_limits(self) -> np.ndarray:
        """How far from 0 each r_j of the bound in ``certificate`` may be at no cost; shape (1 + n + k,).

        The penalty of b_j, or inf where b_0 is fixed to 0.
        """
        limits = self.penalty.astype(float)
        if not self.fit_intercept:
            limits[0] = np.inf
        return limits

    @cached_property
    def means(self) -> np.ndarray:
        """The weighted means of the numbers, exact where a column is constant; shape (n,)."""
        return np.clip(self.w @ self.x, self.x.min(axis=0), self.x.max(axis=0))

    def merged(self) -> Problem:
        """The problem with equal rows merged, see ``merge_duplicates``."""
        x, z, y, w = merge_duplicates(self.x, self.z, self.y, self.w)
        return replace(self, x=x, z=z, y=y, w=w)

    @property
    def label_flips(self) -> tuple[bool, ...]:
        """The labels that the adversary can give a sample: its own (False) and the other (True)."""
        return (False, True) if self.radius > 0 and self.metric.flips else (False,)

    def numeric(self, b: np.ndarray) -> np.ndarray:
        """The slopes b_N of the numbers; shape (n,)."""
        return b[1 : 1 + self.n_numeric]

    def level_scores(self, b: np.ndarray) -> np.ndarray:
        """What each level adds to f; shape (sum(n_levels),)."""
        return self.level_matrix @ b[1 + self.n_numeric :]

    def decision(self, b: np.ndarray) -> np.ndarray:
        """f at every sample; shape (N,).

        Numbers far from 0 (a year, a time stamp) are taken relative to the first sample; otherwise the rounding of
        their products with b_N would exceed their differences.
        """
        scores, slopes, first = self.level_scores(b), self.numeric(b), self.x[0]
        at_first = float(b[0] + np.sum(first.astype(np.longdouble) * slopes))

        def of(rows: slice) -> np.ndarray:
            of_levels = scores[self.z[rows] + self.offsets].sum(axis=1)
            return at_first + (self.x[rows] - first) @ slopes + of_levels

        return filled(np.empty(self.n_samples), self.shape[1], of)

    def design(self, sample: np.ndarray, z: np.ndarray) -> np.ndarray:
        """The rows whose product with b is f(x_sample, z), for levels or codes z (C, m); shape (C, 1 + n + k)."""
        categories = np.zeros((len(sample), self.level_matrix.shape[1]))
        for j, start in enumerate(self.offsets):
            is_level = z[:, j] < self.n_levels[j]
            categories[is_level] += self.level_matrix[start + z[is_level, j]].toarray()
            if not is_level.all():
                categories[~is_level, self.dummies(j)] = codes(z[~is_level, j] - self.n_levels[j], self.n_levels[j] - 1)
        return np.column_stack([np.full(len(sample), float(self.fit_intercept)), self.x[sample], categories])

    def feasible(self, b: np.ndarray) -> np.ndarray:
        """The nearest coefficients within the bound, b_0 = 0 without an intercept; shape (1 + n + k,)."""
        b = np.clip(b, -self.coef_bound, self.coef_bound)
        b[0] *= self.fit_intercept
        return b

    def penalty_value(self, b: np.ndarray) -> float:
        """The l1 penalty, sum_j penalty_j |b_j|."""
        return float(self.penalty @ np.abs(b))


def merge_duplicates(
    x: np.ndarray, z: np.ndarray, y: np.ndarray, w: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Merge equal rows (x, z, y) and add their weights; the result does not depend on the order of the rows.

    Shapes as in ``Problem``; the objective is the same, and so is everything computed from it.
    """
    small = z.astype(np.min_scalar_type(z.max(initial=0)))  # up to 16 bits are sorted by radix
    keys = [*small.T, *x.T, y]
    order = np.lexsort(keys[-2:])
    tied = np.all([key[order][1:] == key[order][:-1] for key in keys[-2:]], axis=0)
    if not tied.any():  # as a rule where there are numbers
        return _taken(x, order), _taken(z, order), y[order], w[order]
    order = np.lexsort(keys)
    x, z, y, w = _taken(x, order), _taken(z, order), y[order], w[order]
    new = np.ones(len(y), dtype=bool)
    new[1:] = (x[1:] != x[:-1]).any(axis=1) | (z[1:] != z[:-1]).any(axis=1) | (y[1:] != y[:-1])
    return x[new], z[new], y[new], np.add.reduceat(w, np.flatnonzero(new))


def _taken(values: np.ndarray, order: np.ndarray) -> np.ndarray:
    """values[order], a block of rows at a time."""
    taken = np.empty((len(order), values.shape[1]), values.dtype)
    return filled(taken, values.shape[1], lambda rows: values[order[rows]])
