"""Where the optimum is known without a solver: the best constant model, and radii at which it is the best of all."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy.special import expit, logit

from wdrlr.model.certificate import DualPoint
from wdrlr.model.metric import mean_costs
from wdrlr.model.problem import Problem, log_loss

LARGEST_COUPLING = 30_000_000
"""N m^2 up to which ``optimal_constant`` couples the classes: its cuts have fewer changes than that."""


def best_constant(problem: Problem) -> np.ndarray:
    """The best coefficients whose slopes are all 0; shape (1 + n + k,).

    Let w_max >= 1/2 be the weight of the larger class, c its label and b_0 = c beta with beta >= 0. The adversary can
    only change labels, and only those of the larger class pay, at most beta each for the price kappa: the objective is

        w_max L(-beta) + (1 - w_max) L(beta) + beta radius / kappa + penalty_0 beta    (radius < kappa w_max),

    minimal where sigmoid(beta) = w_max - radius / kappa - penalty_0, or at 0 if that is below 1/2. kappa is in units of
    the metric. Labels that cannot be changed are the case radius / kappa = 0; if there is then one class only and no
    penalty, b_0 has no best value and stays 0.
    """
    b = np.zeros(problem.n_coefficients)
    share = float(problem.w[problem.y > 0].sum())
    w_max = max(share, 1 - share)
    slope = problem.penalty[0] + problem.radius / problem.metric.label_change
    beta = 0.0
    if problem.fit_intercept and 0.5 < w_max - slope < 1:
        beta = min(float(logit(w_max - slope)), float(problem.coef_bound[0]))
    b[0] = beta if share >= 0.5 else -beta
    return b


def constant_objective(problem: Problem, b: np.ndarray) -> float:
    """The objective at the best constant model, by the formula of ``best_constant``."""
    beta, agrees = abs(b[0]), problem.w[problem.y * b[0] > 0].sum() if b[0] else 0.5
    slope = problem.penalty[0] + problem.radius / problem.metric.label_change
    return float(agrees * log_loss(-beta) + (1 - agrees) * log_loss(beta) + slope * beta)


def optimal_constant(problem: Problem) -> tuple[np.ndarray, DualPoint] | None:
    """The best constant model and the dual point that proves it optimal, if the radius is large enough; else None.

    Changing every label with probability 1/2, for kappa / 2, makes labels and features independent, and b = 0 optimal.
    Another way, for p >= 1, is this: let w_min be the weight of the smaller class; change the labels of the larger
    one's surplus 1 - 2 w_min with probability 1/2; in the rest, move the features of both classes half-way to each
    other, which for a category costs the total variation distance of its levels between the classes (times the mean
    cost of its changes), and for the numbers half the distance of their means:

        kappa (1/2 - w_min) + w_min (sum of total variations + ||mean_+ - mean_-|| / 2)      (over the metric's scale).

    Under such a distribution all coefficients have derivative 0 at b = 0, so no b has an objective below log 2.

    Labels that cannot be changed leave the best constant model. It is optimal from the radius on at which the features
    of the smaller class can be moved to those of the larger one,

        w_min (sum of total variations + ||mean_+ - mean_-||)      (over the metric's scale).

    Whether the dual point proves what it should, its certificate says: penalties and bounds can be in the way.
    """
    if problem.radius == 0:
        return None
    kappa = problem.metric.label_change
    w_min = float(min(problem.w[problem.y > 0].sum(), problem.w[problem.y < 0].sum()))
    flips = problem.metric.flips
    b = np.zeros(problem.n_coefficients) if flips else best_constant(problem)
    if flips and problem.radius >= kappa / 2:
        return b, _stay(problem, np.full(problem.n_samples, 0.5), np.full(problem.n_samples, 0.5))
    coupled = problem.n_samples * problem.n_categorical**2 <= LARGEST_COUPLING
    if w_min == 0 or problem.metric.p < 1 or not (flips or problem.fit_intercept) or not coupled:
        return None
    leaves, mixtures, cost = _towards_each_other(problem, 0.5 if flips else 1.0)
    if problem.radius < (kappa * (0.5 - w_min) + cost if flips else cost):
        return None
    probability = _of_samples(problem, leaves)
    larger = problem.y == (1.0 if problem.w[problem.y > 0].sum() >= 0.5 else -1.0)
    slope = expit(-problem.y * b[0])
    if not flips:
        probability[larger] = 0.0
        return b, _spread(problem, probability, mixtures, np.ones(problem.n_samples), slope)
    surplus = np.where(larger, 1.0 - w_min / (1.0 - w_min), 0.0)
    return b, _joined(_stay(problem, surplus / 2, slope), _spread(problem, probability, mixtures, 1.0 - surplus, slope))


def _towards_each_other(problem: Problem, part: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Move the features of each class that part of the way to those of the other one.

    Returns
    -------
    leaves : ndarray of shape (2, sum(n_levels))
        The probability with which a level is changed, for label -1 and for label +1.
    mixtures : ndarray of shape (2, sum(n_levels))
        Where it then goes.
    cost : float
        Transport cost of moving as much mass as the smaller class has, in both classes a half or in one the whole way.
    """
    classes = problem.y < 0, problem.y > 0
    weight = np.array([problem.w[rows].sum() for rows in classes])
    share = _class_weights(problem, classes) / weight[:, None]
    surplus = share - share[::-1]
    leaves = part * np.maximum(surplus, 0.0) / np.where(share > 0, share, 1.0)
    mixtures = np.maximum(-surplus, 0.0)
    transport, largest = 0.0, problem.metric.largest_changes(problem.n_categorical)
    unit, level_costs = problem.metric.level_cost / problem.metric.scale, problem.metric.level_costs or ()
    moving = [0, 1] if part < 1 else [int(weight[1] < 0.5)]
    for j in range(problem.n_categorical):
        into = mixtures[:, problem.levels(j)]
        variation = float(into.sum() / 2)
        costs = level_costs[j] if level_costs else 1.0
        if variation > 0 and isinstance(costs, np.ndarray):
            leaving, of_each = into[::-1], mean_costs(costs, into / variation).T
            paid = np.multiply(leaving, of_each, out=np.zeros_like(into), where=leaving > 0)
            transport += unit * float(paid[moving].sum()) / len(moving)
        elif variation > 0:
            transport += variation * largest[j]
    means = [problem.w[rows] @ problem.x[rows] / of_class for rows, of_class in zip(classes, weight, strict=True)]
    shift = problem.metric.numeric_distance(means[1] - means[0])
    for j in problem.coded:  # the mean of the codes of these levels
        own = problem.levels(j)
        shares = mixtures[:, own] / np.maximum(mixtures[:, own].sum(axis=1, keepdims=True), 1e-300)
        mixtures[:, own] = np.pad(shares @ problem.level_matrix[own, problem.dummies(j)], ((0, 0), (0, 1)))
    return leaves, mixtures, float(weight.min() * (transport + part * shift))


def _class_weights(problem: Problem, classes: Iterable[np.ndarray]) -> np.ndarray:
    """The weight of the samples of each class (N,) with each level; shape (number of classes, sum(n_levels))."""
    m, V = problem.n_categorical, sum(problem.n_levels)
    level = problem.z + problem.offsets
    return np.array([np.bincount(level[rows].ravel(), problem.w[rows].repeat(m), V) for rows in classes])


def _of_samples(problem: Problem, leaves: np.ndarray) -> np.ndarray:
    """The probability with which each level of each sample is changed; shape (N, m)."""
    return leaves[(problem.y > 0).astype(int)[:, None], problem.z + problem.offsets]


def _stay(problem: Problem, share: np.ndarray, slope: np.ndarray) -> DualPoint:
    """That share of every sample's mass at (x_i, z_i, y_i), and as much at (x_i, z_i, -y_i)."""
    everyone = np.tile(np.arange(problem.n_samples), 2)
    mass = np.tile(share * problem.w, 2)
    return DualPoint(
        sample=everyone,
        flipped=np.repeat([False, True], problem.n_samples),
        mass=mass,
        v=mass * np.tile(slope, 2),
        start=np.zeros(len(everyone) + 1, dtype=int),
        feature=np.zeros(0, dtype=int),
        level=np.zeros(0, dtype=int),
        mixtures=np.zeros((2, sum(problem.n_levels))),
        wall=np.zeros(problem.n_coefficients),
    )


def _spread(
    problem: Problem, probability: np.ndarray, mixtures: np.ndarray, share: np.ndarray, slope: np.ndarray
) -> DualPoint:
    """That share of every sample's mass, with its features changed with the given probabilities (N, m).

    Laid end to end around a circle of length 1, the probabilities cut it into m + 1 arcs at most. An arc is a cut: its
    length is the share of the mass, and the features that cover it are changed.
    """
    N, m = probability.shape
    ends = np.cumsum(probability, axis=1) % 1.0
    order = np.argsort(ends, axis=1, kind="stable")
    points = np.concatenate([np.zeros((N, 1)), np.take_along_axis(ends, order, axis=1), np.ones((N, 1))], axis=1)
    length = np.diff(points, axis=1)  # of the m + 1 arcs
    rank = np.concatenate([np.zeros((N, 1), dtype=int), 1 + np.argsort(order, axis=1)], axis=1)  # arc that begins there
    n_covered = np.where(probability >= 1.0, m + 1, np.diff(rank, axis=1) % (m + 1)) * (probability > 0)
    # One entry for each arc that a feature covers, and those of length 0 dropped.
    feature, sample = np.tile(np.arange(m), N).repeat(n_covered.ravel()), np.arange(N).repeat(n_covered.sum(axis=1))
    step = np.arange(len(feature)) - (np.cumsum(n_covered) - n_covered.ravel()).repeat(n_covered.ravel())
    arc = sample * (m + 1) + (rank[:, :-1].ravel().repeat(n_covered.ravel()) + step) % (m + 1)
    kept = length.ravel() > 0
    order = np.argsort(arc, kind="stable")
    order = order[kept[arc[order]]]
    owner = np.arange(N).repeat(m + 1)[kept]
    mass = length.ravel()[kept] * (share * problem.w)[owner]
    return DualPoint(
        sample=owner,
        flipped=np.zeros(len(owner), dtype=bool),
        mass=mass,
        v=mass * slope[owner],
        start=np.concatenate([[0], np.cumsum(np.bincount(arc[order], minlength=N * (m + 1))[kept])]),
        feature=feature[order],
        level=np.where(problem.y[sample[order]] < 0, -1, -2),
        mixtures=mixtures,
        wall=np.zeros(problem.n_coefficients),
    )


def _joined(stay: DualPoint, spread: DualPoint) -> DualPoint:
    """The cuts of both; the first has no changes."""
    return DualPoint(
        sample=np.concatenate([stay.sample, spread.sample]),
        flipped=np.concatenate([stay.flipped, spread.flipped]),
        mass=np.concatenate([stay.mass, spread.mass]),
        v=np.concatenate([stay.v, spread.v]),
        start=np.concatenate([stay.start[:-1], spread.start]),
        feature=spread.feature,
        level=spread.level,
        mixtures=spread.mixtures,
        wall=stay.wall,
    )
