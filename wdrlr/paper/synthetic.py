"""The paper's synthetic data sets (Appendix D, Algorithm 3), and the exact loss under their distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from wdrlr.estimators.formulation import Formulation
from wdrlr.model.encoding import level_matrix
from wdrlr.model.problem import Problem, log_loss


class Synthetic(NamedTuple):
    """Rows drawn by Algorithm 3, with the coefficients that they were drawn from.

    z has shape (N, m), y and its values -1 and +1 shape (N,), b the intercept and the slopes of the 0/1 dummies, the
    first level of a feature being the reference; shape (1 + k,).
    """

    z: np.ndarray
    y: np.ndarray
    b: np.ndarray
    n_levels: tuple[int, ...]


def synthetic_data(N: int, n_levels: Sequence[int], seed: int | Sequence[int] = 0) -> Synthetic:
    """N rows of Algorithm 3: coefficients of length 1 in a random direction, uniform features, labels from the model

        P(y = +1 | z) = 1 / (1 + exp(-(b_0 + slopes of the levels in z))).

    The paper has two levels per feature; with more, each level but the first has a slope and all are equally likely.

    Parameters
    ----------
    N : int
    n_levels : sequence of m int
    seed : int or sequence of int
        Equal seeds give equal data.

    Raises
    ------
    ValueError
        If N or a number of levels is below 1.
    """
    if min([N, *n_levels]) < 1:
        raise ValueError(f"N and all n_levels must be at least 1, not {N} and {list(n_levels)}.")
    rng = np.random.default_rng(seed)
    n_levels = tuple(int(levels) for levels in n_levels)
    matrix = level_matrix(n_levels, "onehot")
    b = rng.standard_normal(1 + matrix.shape[1])
    b /= np.linalg.norm(b)
    z = rng.integers(0, np.array(n_levels, dtype=np.int64), (N, len(n_levels)))
    problem = categorical_problem(z, np.ones(N), n_levels)
    y = np.where(rng.random(N) < expit(problem.decision(b)), 1.0, -1.0)
    return Synthetic(z, y, b, n_levels)


def categorical_problem(
    z: np.ndarray,
    y: np.ndarray,
    n_levels: Sequence[int],
    label_cost: float | str = 1.0,
    radius: float = 0.0,
    metric_scale: str | None = None,
) -> Problem:
    """The problem of data with only categories: 0/1 dummies, p = 1, equal weights, no penalty, no bound.

    ``label_cost`` and ``metric_scale`` are those of ``Formulation``.
    """
    formulation = Formulation(radius, label_cost, metric_scale=metric_scale)
    return formulation.problem(np.zeros((len(y), 0)), z, y, np.full(len(y), 1 / len(y)), tuple(n_levels))


def true_loss(b: np.ndarray, data: Synthetic) -> float:
    """The expected log-loss of the coefficients b, shape (1 + k,), under the distribution that ``data`` are drawn from.

    Exact, by enumeration of all prod(n_levels) points z.
    """
    z = np.indices(data.n_levels).reshape(len(data.n_levels), -1).T
    points = categorical_problem(z, np.ones(len(z)), data.n_levels)
    f, positive = points.decision(b), expit(points.decision(data.b))
    return float(np.mean(positive * log_loss(-f) + (1 - positive) * log_loss(f)))
