"""Separation: the most violated constraint of every sample (Algorithm 2 of the paper), and with it F itself.

For fixed coefficients the constraint of a sample i, a z and a label y is violated most where

    L(-y f(x_i, z)) - lam d_C(z, z_i) - lam kappa [y != y_i]

is largest. If z changes d features of z_i, it should change those d that raise -y f most, each to its best other
level. So there are m + 1 candidates per sample and label: those that change the first d features, in the order of
their gains.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wdrlr.model.problem import Problem, log_loss


class Candidates(NamedTuple):
    """The m + 1 candidates of every sample for one of the two labels (the set W of Algorithm 2)."""

    argument: np.ndarray  # (N, m + 1): -y f after the best d = 0, ..., m changes
    gain: np.ndarray  # (N, m): by how much the best change of each feature raises -y f
    entry: np.ndarray  # (N, m): the index in ``other`` of the level that it leads to
    other: np.ndarray  # (2 sum(n_levels),): for every level the best other level, for labels +1, then for -1
    cost: np.ndarray  # (m + 1,): transport cost of d changes, including the label's


class Worst(NamedTuple):
    """The worst z of every sample for one of the two labels."""

    value: np.ndarray  # (N,): L(a) - lam * cost
    argument: np.ndarray  # (N,): a = -y f at the worst z
    n_changes: np.ndarray  # (N,): the number of features in which the worst z differs from z_i
    z: np.ndarray  # (N, m): level codes


def candidates(problem: Problem, b: np.ndarray, flipped: bool) -> Candidates:
    """Algorithm 2 for all samples at once, in time O(k + N (n + m log m)).

    Parameters
    ----------
    b : ndarray of shape (1 + n + k,)
    flipped : bool
        Whether the label is the other one (second constraint set of Theorem 1) or the sample's own (first).
    """
    y = -problem.y if flipped else problem.y
    scores = problem.level_scores(b)
    # A label +1 suffers from low scores, a label -1 from high ones. A feature with one level has no other level.
    others = np.stack(_best_other_levels(scores, problem.n_levels))
    position = others + np.repeat(problem.offsets, problem.n_levels)
    gains = np.where(others >= 0, np.array([[-1.0], [1.0]]) * (scores[np.maximum(position, 0)] - scores), -np.inf)
    entry = problem.z + problem.offsets + np.where(y > 0, 0, len(scores))[:, None]  # index into the two tables joined
    gain = gains.ravel()[entry]
    argument = np.empty((problem.n_samples, problem.n_categorical + 1))
    argument[:, 0] = -y * problem.decision(b)
    np.cumsum(-np.sort(-gain, axis=1), axis=1, out=argument[:, 1:])
    argument[:, 1:] += argument[:, :1]
    cost = problem.level_changes + (problem.metric.label_change if flipped else 0.0)
    return Candidates(argument, gain, entry, others.ravel(), cost)


def most_violated(problem: Problem, b: np.ndarray, lam: float, flipped: bool) -> Worst:
    """The worst z of every sample, for its own or the other label; ties go to the fewest changes."""
    of_label = candidates(problem, b, flipped)
    values = log_loss(of_label.argument) - lam * of_label.cost
    n_changes = np.argmax(values, axis=1)
    everyone = np.arange(problem.n_samples)
    z = changed(problem, of_label, n_changes)
    return Worst(values[everyone, n_changes], of_label.argument[everyone, n_changes], n_changes, z)


def changed(
    problem: Problem, of_label: Candidates, n_changes: np.ndarray, sample: np.ndarray | slice = slice(None)
) -> np.ndarray:
    """The level codes of the candidates with these numbers of changes, for all samples or those given; shape (., m)."""
    order = np.argsort(-of_label.gain[sample], axis=1, kind="stable")
    rank = np.argsort(order, axis=1)
    return np.where(rank < n_changes[:, None], of_label.other[of_label.entry[sample]], problem.z[sample])


def _best_other_levels(scores: np.ndarray, n_levels: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """For every level, the other level of the same feature with the smallest and with the largest score.

    Shape (sum(n_levels),) each, as codes within the feature; -1 where the feature has only one level.
    """
    m, widest = len(n_levels), max(n_levels, default=0)
    exists = np.arange(widest) < np.asarray(n_levels, dtype=int).reshape(m, 1)
    best = []
    for sign in (1.0, -1.0):
        padded = np.full((m, widest), np.inf)
        padded[exists] = sign * scores
        first = np.argmin(padded, axis=1) if m else np.empty(0, dtype=int)
        padded[np.arange(m), first] = np.inf
        second = np.argmin(padded, axis=1) if m else np.empty(0, dtype=int)
        second[np.asarray(n_levels, dtype=int) == 1] = -1
        is_first = np.arange(widest) == first[:, None]
        best.append(np.where(is_first, second[:, None], first[:, None])[exists])
    return best[0], best[1]
