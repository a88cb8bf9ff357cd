"""The radius from which on changes of labels alone make all slopes 0."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from wdrlr.model.problem import Problem
from wdrlr.solvers.linear import minimise_linear
from wdrlr.solvers.slope_program import ACCURACY, LevelPairs, level_pairs, of_levels


def radius_of_labels_alone(problem: Problem) -> float | None:
    """The smallest radius from which on changes of labels alone make all slopes 0; None if they never do.

    Let the class of label c have weight w_max > 1/2. While radius < kappa (w_max - 1/2 - penalty_0), the best constant
    model has c b_0 > 0 and the adversary changes labels of that class only, of sample i with some probability q_i, to
    the share s = radius / kappa of all. sigma = sigmoid(c b_0) is w_max - s - penalty_0 or, if that is above it, what
    the bound of b_0 allows. The derivatives

        rho = (1 - sigma) sum_i [y_i = c] w_i x_i - sigma sum_i [y_i != c] w_i x_i - sum_i w_i q_i x_i

    must be within the penalties for all slopes to be 0: conditions that are linear in q and s on either side of the
    bound, so that s fills an interval on each. What counts is whether it reaches the largest s.

    Changes of levels that cost nothing come on top of those of labels.
    """
    kappa = problem.metric.label_change
    share = float(problem.w[problem.y > 0].sum())
    w_max, majority = max(share, 1 - share), problem.y == (1.0 if share > 0.5 else -1.0)
    end = w_max - 0.5 - float(problem.penalty[0])
    if not problem.fit_intercept or np.isinf(kappa) or end <= ACCURACY:
        return None
    most = float(expit(problem.coef_bound[0]))
    free_from = max(w_max - most - float(problem.penalty[0]), 0.0)  # where the bound ceases to bind
    least = _share_of_labels(problem, majority, None, free_from, end)
    if least is None:
        return None
    if free_from > 0 and least <= free_from * (1 + ACCURACY):
        bound = _share_of_labels(problem, majority, most, 0.0, free_from)
        least = least if bound is None else bound
    return kappa * least


def _holds(problem: Problem, majority: np.ndarray, share: float) -> bool:
    """Whether changes of this share of labels can make all slopes 0, with b_0 at its best within no bound."""
    sigma = float(problem.w[majority].sum()) - share - float(problem.penalty[0])
    return _share_of_labels(problem, majority, sigma, share, share) is not None


def _smallest(holds: Callable[[float], bool], start: float, end: float) -> float | None:
    """From where on in [start, end] something holds, by bisection; None if it does not at the end."""
    if not holds(end):
        return None
    if holds(start):
        return start
    while end - start > ACCURACY * end:
        middle = (start + end) / 2
        start, end = (start, middle) if holds(middle) else (middle, end)
    return end


def _share_of_labels(
    problem: Problem, majority: np.ndarray, sigma: float | None, start: float, end: float
) -> float | None:
    """The smallest share s in [start, end] of changed labels that, like ``end``, makes all slopes 0; None if none does.

    sigma is given, or follows from s. Where levels can be changed at no cost, the conditions are linear for a given
    sigma only, but if they hold for s, and penalty_0 is 0, so do they for more: with any further part of the larger
    class's labels changed, the derivatives shrink by the factor by which sigma does.
    """
    pairs = level_pairs(problem)
    free = pairs[pairs.cost == 0]
    if sigma is None and len(free):
        return _smallest(partial(_holds, problem, majority), start, end)
    N, n, w = problem.n_samples, problem.n_numeric, problem.w
    centre = problem.means
    x = problem.x - centre
    size = np.abs(x).max(axis=0, initial=0.0)
    size[size == 0] = 1.0
    w_max, w_min, penalty_0 = w[majority].sum(), w[~majority].sum(), problem.penalty[0]
    at = problem.level_matrix
    if sigma is None and penalty_0 == 0 and not problem.penalty[1 + n :].any():
        # With an intercept at its best these are the same conditions, each on the mass of one level, however rare.
        at = sp.eye_array(at.shape[0], format="csr")
    categories = [at[first + z] for first, z in zip(problem.offsets, problem.z.T, strict=True)]
    features = sp.csr_array(sp.hstack([sp.csr_array(x / size), sum(categories, sp.csr_array((N, at.shape[1])))]))
    major, minor = features[majority].T @ w[majority], features[~majority].T @ w[~majority]
    far = np.concatenate([centre / size, np.zeros(len(major) - n)])
    # rho is constant + s steep - sum_i w_i q_i x_i; where numbers are not centred, that of the intercept is in it.
    if sigma is None:
        constant, steep = (w_min + penalty_0) * major - (w_max - penalty_0) * minor + penalty_0 * far, major + minor
    else:
        constant, steep = (1 - sigma) * major - sigma * minor + (w_max - sigma) * far, -far
    penalty = np.zeros(len(major))
    penalty[:n] = problem.numeric(problem.penalty) / size
    if at.shape[1] == problem.level_matrix.shape[1]:
        penalty[n:] = problem.penalty[1 + n :]
    # The variables are N s, N w_i q_i and N times the masses of ``_free_moves``. Solvers have absolute tolerances: each
    # condition is counted in the mean size of its feature, the masses in that of the smaller class if few labels do.
    mean_size = abs(features).T @ w
    mean_size[mean_size == 0] = 1.0
    balance = sp.diags_array(1.0 / mean_size) @ sp.hstack([sp.csr_array(steep[:, None]), -features[majority].T])
    limits = np.concatenate([penalty - constant, penalty + constant]) / np.tile(mean_size, 2)
    moved, room, mass = _free_moves(problem, majority, free, sigma or 0.0)
    of_moves = sp.vstack([sp.csr_array((n, moved.shape[1])), at.T @ moved])
    balance = sp.hstack([balance, sp.diags_array(1.0 / mean_size) @ of_moves])
    ones = np.concatenate([np.ones(majority.sum()), np.zeros(moved.shape[1])])[None, :]
    most = np.concatenate([w[majority], np.full(moved.shape[1], np.inf)])
    least = None
    for low, high, unit in ((end, end, 1.0), (start, end, 1.0), (start, end, float(w_min))):
        if unit < 1 and (least is None or least > 1e-3):
            break
        found = minimise_linear(
            np.r_[1.0, np.zeros(ones.size)],
            bounds=N / unit * np.column_stack([np.r_[low, np.zeros(ones.size)], np.r_[high, most]]),
            A=sp.vstack([balance, -balance, room], format="csr"),
            limit=N / unit * np.concatenate([limits, mass]),
            E=sp.csr_array(np.column_stack([[[-1.0]], ones])),
            primal_feasibility_tolerance=ACCURACY,
        )
        if found.status != 0:
            return least
        least = float(found.fun) * unit / N
    return least


def _free_moves(
    problem: Problem, majority: np.ndarray, free: LevelPairs, sigma: float
) -> tuple[sp.sparray, sp.sparray, np.ndarray]:
    """What changes of levels at no cost do: from the larger class, from its changed labels and from the smaller class.

    Returns
    -------
    moved : sparse array of shape (sum(n_levels), 3 P)
        By how much the derivatives by the scores change if such mass moves.
    room, mass : sparse array of 1 + (size of the larger class) + 3 P columns, ndarray
        room @ (s, w_i q_i, masses that move) <= mass: no more than there is leaves a level.
    """
    level = sp.eye_array(sum(problem.n_levels), format="csr")
    sources = np.unique(free.old)
    held = of_levels(problem)[:, sources].T
    major, minor, none = held[:, majority], held[:, ~majority], np.zeros(len(sources))
    left = sp.kron(sp.eye_array(3), level[free.old][:, sources].T)
    room = sp.hstack([sp.csr_array((left.shape[0], 1)), sp.vstack([major, -major, 0 * major]), left])
    mass = np.concatenate([major @ problem.w[majority], none, minor @ problem.w[~majority]])
    gain = (level[free.new] - level[free.old]).T
    return sp.hstack([(1 - sigma) * gain, -sigma * gain, -sigma * gain]), room, mass
