"""Separation: the most violated constraint of every sample (Algorithm 2 of the paper), and with it F itself.

For fixed coefficients the constraint of sample i, a z and a label y is violated most where

    L(-y f(x_i, z)) - lam d_C(z, z_i) - lam kappa [y != y_i]

is largest. Where all changes cost the same, each changed feature should go to its best other level, and if d features
are changed, it should be those that raise -y f most: m + 1 candidates for each sample and label.

Where costs differ (p = 1), L(a) = max over t in [0, 1] of [t a + H(t)], H the entropy of (t, 1 - t), exchanges the
maxima:

    max over z of [ L(a + sum_j g_j(z_j)) - lam sum_j D_j(z_ij, z_j) ]
        = max over t of [ H(t) + t a + sum_j max over v of ( t g_j(v) - lam D_j(z_ij, v) ) ]

with g_j(v) what level v adds to -y f. As t grows from 0 to 1, feature j walks along the vertices of the upper concave
envelope of its points (D_j, g_j), one step at a time, where t / lam passes cost / gain of that step. So the candidates
are the first d steps of all features in the order of gain / cost, d = 0, 1, ..., whatever lam is; changing features in
the order of their gains is the case of one cost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wdrlr.model.problem import Problem, log_loss
from wdrlr.model.threads import blocks, in_blocks


class Steps(NamedTuple):
    """Along the envelope of each feature, from each level: D columns, a step each, several for a feature.

    The tables, of V = sum(n_levels) levels with up to S steps, are for labels +1 and then for -1, laid end to end: step
    s of level v is entry v S + s. Where a level has fewer steps than others of its feature, gain and cost are 0.
    """

    feature: np.ndarray  # (D,)
    number: np.ndarray  # (D,): 0 for the first step of a feature, and so on
    gain: np.ndarray  # (2 V S,): by how much each step raises -y f
    cost: np.ndarray  # (2 V S,): its transport cost; all are 1 where the metric counts changes
    steepness: np.ndarray  # (2 V S,): gain / cost, falling from step to step; -inf for no step
    level: np.ndarray  # (2 V S,): the level that it leads to


class Candidates(NamedTuple):
    """The K + 1 candidates of every sample for one of the two labels (the set W of Algorithm 2), K at most D."""

    argument: np.ndarray  # (N, K + 1): -y f after the first d = 0, ..., K steps
    cost: np.ndarray  # (1, K + 1) or (N, K + 1): transport cost, the label's included
    rank: np.ndarray  # (N, D): by this the steps are ordered, the largest first
    entry: np.ndarray  # (N, D): where the steps are in the tables
    steps: Steps


class Worst(NamedTuple):
    """The worst z of every sample for one of the two labels."""

    value: np.ndarray  # (N,): L(a) - lam * cost
    argument: np.ndarray  # (N,): a = -y f at the worst z
    n_steps: np.ndarray  # (N,): the number of steps; that of changed features where each has one
    z: np.ndarray  # (N, m): level codes


def candidates(problem: Problem, b: np.ndarray, least: float = 0.0) -> list[Candidates]:
    """Algorithm 2 for all samples at once, for each of the labels of ``problem.label_flips``.

    If p = 1, candidates that are worst at no multiplier above ``least`` may be left out: L has slopes of at most 1, so
    a step pays only where gain / cost is above the multiplier.

    Takes time O(k + N (n + D log D)), D = m if all changes cost the same. b has the shape (1 + n + k,).
    """
    steps, f = envelope_steps(problem, b), problem.decision(b)
    return [_of_label(problem, steps, f, flipped, least) for flipped in problem.label_flips]


def _of_label(problem: Problem, steps: Steps, f: np.ndarray, flipped: bool, least: float = 0.0) -> Candidates:
    """Those of the other label (second constraint set of Theorem 1) or of the sample's own (first); f of shape (N,)."""
    y = -problem.y if flipped else problem.y
    label = np.where(y > 0, 0, sum(problem.n_levels))[:, None]
    N, D = problem.n_samples, len(steps.feature)
    label_cost = problem.metric.label_change if flipped else 0.0
    counted = problem.metric.level_costs is None
    entry, rank = np.empty((N, D), dtype=int), np.empty((N, D))
    ordered_by = steps.gain if counted else steps.steepness

    def look_up(rows: slice) -> None:
        z = problem.z[rows] if counted and D == problem.n_categorical else problem.z[rows][:, steps.feature]
        np.add(z, problem.offsets[steps.feature] + label[rows], out=entry[rows])
        if not counted:
            entry[rows] = entry[rows] * (len(steps.gain) // max(2 * sum(problem.n_levels), 1)) + steps.number
        np.take(ordered_by, entry[rows], out=rank[rows])

    rows_of_blocks = blocks(*problem.shape)
    in_blocks(look_up, rows_of_blocks)
    K = D
    if least > 0 and problem.metric.p == 1:
        of_one = problem.metric.level_changes(1)[1] if counted else 1.0
        K = int(np.count_nonzero(rank > least * of_one, axis=1).max(initial=0))
    argument = np.empty((N, K + 1))
    cost = problem.metric.level_changes(K)[None] + label_cost if counted else np.empty((N, K + 1))

    def fill(rows: slice) -> None:
        argument[rows, 0] = -y[rows] * f[rows]
        if counted:
            first = -rank[rows]
            if 0 < K < D:
                first.partition(K - 1, axis=1)
            gain = -np.sort(first[:, :K], axis=1)
        else:
            order = np.argsort(-rank[rows], axis=1, kind="stable")[:, :K]
            taken = np.take_along_axis(entry[rows], order, axis=1)
            gain, price = steps.gain[taken], steps.cost[taken]
            cost[rows] = label_cost
            cost[rows, 1:] += np.cumsum(price, axis=1)
        np.cumsum(gain, axis=1, out=argument[rows, 1:])
        argument[rows, 1:] += argument[rows, :1]

    in_blocks(fill, rows_of_blocks)
    return Candidates(argument, cost, rank, entry, steps)


def most_violated(problem: Problem, b: np.ndarray, lam: float, flipped: bool) -> Worst:
    """The worst z of every sample, for its own or the other label; ties go to the fewest steps."""
    found = _of_label(problem, envelope_steps(problem, b), problem.decision(b), flipped)
    values = log_loss(found.argument) - lam * found.cost
    n_steps = np.argmax(values, axis=1)
    everyone = np.arange(problem.n_samples)
    z = changed(problem, found, n_steps)
    return Worst(values[everyone, n_steps], found.argument[everyone, n_steps], n_steps, z)


def changed(
    problem: Problem, found: Candidates, n_steps: np.ndarray, sample: np.ndarray | slice = slice(None)
) -> np.ndarray:
    """The candidate of every sample (or of those given) with its number of steps, as level codes; shape (., m)."""
    steps, entry = found.steps, found.entry[sample]
    order = np.argsort(-found.rank[sample], axis=1, kind="stable")
    taken = np.argsort(order, axis=1) < n_steps[:, None]
    z = problem.z[sample].copy()
    for number in range(steps.number.max(initial=-1) + 1):  # a later step of a feature counts
        those = steps.number == number
        feature = steps.feature[those]
        z[:, feature] = np.where(taken[:, those], steps.level[entry[:, those]], z[:, feature])
    return z


def envelope_steps(problem: Problem, b: np.ndarray) -> Steps:
    """The steps of all features from all levels, for both labels.

    Where a level has one cost to all others there is one step, to the best of these, even if it does not pay. Features
    that cannot be changed have none.
    """
    scores, metric, m = problem.level_scores(b), problem.metric, problem.n_categorical
    unit = metric.level_cost / metric.scale
    single = np.ones(m)
    matrices = {}
    for j, costs in enumerate(metric.level_costs or ()):
        if isinstance(costs, np.ndarray):
            matrices[j], single[j] = unit * costs, np.inf
        else:
            single[j] = unit * costs
    changeable = np.isfinite(single) & (np.array(problem.n_levels, dtype=int) > 1)
    n_steps = changeable.astype(int)
    of_label = []
    # A label +1 suffers from low scores, a label -1 from high ones.
    for sign, best in zip((-1.0, 1.0), _best_other_levels(scores, problem.n_levels), strict=True):
        position = best + np.repeat(problem.offsets, problem.n_levels)
        gain, level = sign * (scores[np.maximum(position, 0)] - scores), best.copy()
        for j in problem.coded:
            slopes = sign * b[1 + problem.n_numeric :][problem.dummies(j)]
            gain[problem.levels(j)] = np.abs(slopes).sum() - sign * scores[problem.levels(j)]
            level[problem.levels(j)] = problem.n_levels[j] + ((slopes >= 0) << np.arange(len(slopes))).sum()
        several = {j: _envelope(sign * scores[problem.levels(j)], costs) for j, costs in matrices.items()}
        for j, envelope in several.items():
            n_steps[j] = max(n_steps[j], envelope[0].shape[1])
        of_label.append((gain, level, several))
    shape = (2, sum(problem.n_levels), max(n_steps.max(initial=0), 1))
    gains, costs, steepness = np.zeros(shape), np.zeros(shape), np.full(shape, -np.inf)
    levels = np.zeros(shape, dtype=int)
    of_level = np.repeat(np.where(changeable, single, 1.0), problem.n_levels)
    for side, (gain, level, several) in enumerate(of_label):
        gains[side, :, 0], costs[side, :, 0] = gain, of_level
        free = np.where(gain > 0, np.inf, -np.inf)
        steepness[side, :, 0] = np.divide(gain, of_level, out=free, where=of_level > 0)
        levels[side, :, 0] = level
        for j, envelope in several.items():
            width = envelope[0].shape[1]
            for table, none, of_feature in zip(
                (gains, costs, steepness, levels), (0, 0, -np.inf, 0), envelope, strict=True
            ):
                table[side, problem.levels(j)] = none
                table[side, problem.levels(j), :width] = of_feature
    feature = np.repeat(np.arange(m), n_steps)
    number = np.arange(len(feature)) - np.repeat(np.cumsum(n_steps) - n_steps, n_steps)
    return Steps(feature, number, *(table.ravel() for table in (gains, costs, steepness, levels)))


def _envelope(score: np.ndarray, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The steps along the upper concave envelope of the points (cost_uv, score_v), v = 0, 1, ..., from each u.

    From u, and from each vertex, the next one is the point of higher score to which the chord is steepest; the farthest
    of these, so that of points which cost nothing it is the highest.

    Parameters
    ----------
    score, cost : ndarrays of shapes (K,) and (K, K)

    Returns
    -------
    gain, cost, steepness, level : ndarrays of shape (K, number of steps)
        As in ``Steps``.
    """
    every = np.arange(len(score))
    here, paid, last = every, np.zeros(len(score)), np.full(len(score), np.inf)
    steps = []
    while True:
        higher = score - score[here][:, None]
        dearer = np.maximum(cost - paid[:, None], 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            chord = np.where((higher > 0) & np.isfinite(cost), higher / dearer, -np.inf)
        steepest = chord.max(axis=1)
        goes_on = steepest > -np.inf
        if not goes_on.any():
            break
        to = np.argmax(np.where(chord == steepest[:, None], higher, -np.inf), axis=1)
        # An envelope's steepness falls; where two chords are equal, rounding could make it rise.
        last = np.where(goes_on, np.minimum(steepest, last), -np.inf)
        gain, price = np.where(goes_on, higher[every, to], 0.0), np.where(goes_on, dearer[every, to], 0.0)
        steps.append((gain, price, last, np.where(goes_on, to, 0)))
        here, paid = np.where(goes_on, to, here), np.where(goes_on, cost[every, to], paid)
    if not steps:
        return (*np.zeros((3, len(score), 0)), np.zeros((len(score), 0), dtype=int))
    gain, price, steepness, level = (np.stack(parts, axis=1) for parts in zip(*steps, strict=True))
    return gain, price, steepness, level


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
