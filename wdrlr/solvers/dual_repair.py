"""What makes dual points of a solver's multipliers: the solvers' side of ``certificate``, which believes none of it."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from wdrlr.model.certificate import LARGEST_SCORE, DualPoint
from wdrlr.model.cuts import Cuts, data_cuts, join
from wdrlr.model.objective import worst_case_loss
from wdrlr.model.problem import Problem, codes, log_loss

LEAST_CLASS = 1e-3
"""Weight of the smaller class below which bounds from the classes are no help if labels can be changed."""

NEGLIGIBLE = 1e-5
"""Coefficients and multipliers below this may be 0 but for a solver's tolerance."""

NEARLY_ACTIVE = 1e-6
"""Relative distance from its limit within which an inequality is taken to hold with equality."""

SLACK_OF_NO_CUT = 1e-4
"""Slack above which a cut can have no mass at an optimum."""

BALANCING_STEPS = 6
RIDGE = 1e-12
"""Of the least squares that balance v: how often, and what makes the matrix regular."""


def dual_points(problem: Problem, cuts: Cuts, mass: np.ndarray, b: np.ndarray, tol: float) -> list[DualPoint]:
    """Dual points near approximate multipliers of some cuts; which is best, ``certificate`` says.

    Masses are clipped and normalised, mass is moved from or to (x_i, z_i, y_i) until the radius is kept, v = mass *
    slope is moved by weighted least squares until r fits (see ``certificate``). Where b says that an inequality is
    active, it is met with equality, which keeps the bound tight.

    Parameters
    ----------
    cuts, mass : C cuts and their approximate multipliers, shape (C,)
    b : ndarray of shape (1 + n + k,)
        An approximate solution.
    tol : float
        A small part of it may be spent on leaving room for residuals.
    """
    lam = worst_case_loss(problem, b)[1]
    cuts = join(data_cuts(problem, False), cuts)
    costs, rows = cuts.costs(problem), cuts.rows(problem)
    mass = np.concatenate([np.zeros(problem.n_samples), np.maximum(np.nan_to_num(mass), 0.0)])
    # What an interior-point solver leaves on cuts with slack counts at the full price of that slack, so it is dropped;
    # but where all values are close together (b near 0), slack says little about which masses are real.
    value = log_loss(rows @ b) - np.nan_to_num(lam * costs)
    slack = _largest(value, cuts.sample, problem.n_samples)[cuts.sample] - value
    several = (mass, np.where(slack > SLACK_OF_NO_CUT, 0.0, mass))
    with np.errstate(all="ignore"):  # what is not finite, the certificate drops
        return [_repaired(problem, cuts, costs, rows, masses, b, lam, tol) for masses in several]


def cut_dual_point(problem: Problem, cuts: Cuts, mass: np.ndarray, v: np.ndarray, wall: np.ndarray) -> DualPoint:
    """The dual point with these masses and v on the cuts; C of each, and ``wall`` of shape (1 + n + k,).

    A code that is no level is the mixture with its number among those of its feature.
    """
    changed = cuts.z != problem.z[cuts.sample]
    cut, feature = np.nonzero(changed)
    level = cuts.z[cut, feature]
    of_codes = []
    for j in problem.coded:
        n_levels = problem.n_levels[j]
        those = (feature == j) & (level >= n_levels)
        number, place = np.unique(level[those] - n_levels, return_inverse=True)
        level[those] = -1 - place
        of_codes.append(codes(number, n_levels - 1))
    mixtures = np.zeros((max(map(len, of_codes), default=0), sum(problem.n_levels)))
    for j, of_feature in zip(problem.coded, of_codes, strict=True):
        start = problem.offsets[j]
        mixtures[: len(of_feature), start : start + of_feature.shape[1]] = of_feature
    return DualPoint(
        sample=cuts.sample,
        flipped=cuts.flipped,
        mass=mass,
        v=v,
        start=np.concatenate([[0], np.cumsum(changed.sum(axis=1))]),
        feature=feature,
        level=level,
        mixtures=mixtures,
        wall=wall,
    )


def _repaired(
    problem: Problem,
    cuts: Cuts,
    costs: np.ndarray,
    rows: np.ndarray,
    mass: np.ndarray,
    b: np.ndarray,
    lam: float,
    tol: float,
) -> DualPoint:
    """The dual point that ``dual_points`` makes of the given masses; the first N cuts are the data's."""
    radius_binds = lam > NEGLIGIBLE
    numbers_bind = radius_binds and problem.metric.dual_norm(problem.numeric(b)) > (1 - NEARLY_ACTIVE) * lam
    radius = problem.radius - reserve(problem, lam, loss=0.02 * tol, share=1e-4) if problem.radius > 0 else 0.0
    mass = _masses(problem, cuts, costs, mass, radius, exactly=radius_binds and not numbers_bind)
    left = radius - mass @ costs

    slope = expit(rows @ b)
    v = mass * slope
    free = np.abs(b) < problem.coef_bound * (1 - NEARLY_ACTIVE)
    free[0] &= problem.fit_intercept
    weighted = rows[:, free] * (v * (1.0 - slope))[:, None]
    gram = rows[:, free].T @ weighted
    scale = 1.0 / np.sqrt(np.maximum(np.diag(gram), 1e-300))
    gram = scale[:, None] * gram * scale + RIDGE * np.eye(len(scale))
    for _ in range(BALANCING_STEPS):
        r = v @ rows
        excess = (r - _balance(problem, r, left, b, numbers_bind))[free]
        # What is within its penalty may move there, and has to where its column is that of another coefficient.
        held = ~((np.abs(b) <= NEGLIGIBLE) & (np.abs(r) < problem.penalty))[free]
        move = scale[held] * np.linalg.solve(gram[np.ix_(held, held)], (scale * excess)[held])
        v = np.clip(v - weighted[:, held] @ move, 0.0, mass)

    r = v @ rows
    wall = np.where(free, 0.0, r - _balance(problem, r, left, b, numbers_bind))
    return cut_dual_point(problem, cuts, mass, v, wall)


def _largest(value: np.ndarray, sample: np.ndarray, n_samples: int) -> np.ndarray:
    """The largest value of each sample; shape (N,)."""
    largest = np.full(n_samples, -np.inf)
    np.maximum.at(largest, sample, value)
    return largest


def _masses(
    problem: Problem, cuts: Cuts, costs: np.ndarray, mass: np.ndarray, radius: float, exactly: bool
) -> np.ndarray:
    """The masses of N data cuts and further cuts, changed to sum to w_i a sample and to cost at most ``radius``.

    If ``exactly``, it is spent in full where that is a small change.
    """
    N = problem.n_samples
    if problem.radius == 0:
        mass[costs > 0] = 0.0
    total = np.bincount(cuts.sample, mass, minlength=N)
    mass[:N] += total <= 0
    mass *= (problem.w / np.where(total > 0, total, 1.0))[cuts.sample]
    spent = mass @ costs
    if spent > radius or (exactly and spent > 0.5 * radius):
        scaled = np.where(costs > 0, mass * (radius / spent), mass)
        moved = np.bincount(cuts.sample, mass - scaled, minlength=N)
        at_home = np.bincount(cuts.sample, np.where(costs > 0, 0.0, mass), minlength=N)
        short = moved + at_home < 0
        if short.any():
            scaled = np.where(short[cuts.sample], mass, scaled)
            moved[short] = 0.0
        mass = scaled
        # Free mass may sit in a given copy of the data cut too: gather it first. Changes that cost nothing keep theirs.
        free = costs == 0
        away = free & (cuts.z != problem.z[cuts.sample]).any(axis=1)
        kept = np.divide(at_home + moved, at_home, out=np.ones(N), where=(moved < 0) & (at_home > 0))
        mass = np.where(away, mass * kept[cuts.sample], mass)
        mass[N:][(free & ~away)[N:]] = 0.0
        mass[:N] = np.maximum(at_home + moved - np.bincount(cuts.sample, np.where(away, mass, 0.0), minlength=N), 0.0)
    return mass


def _balance(problem: Problem, r: np.ndarray, left: float, b: np.ndarray, numbers_bind: bool) -> np.ndarray:
    """The nearby r for which the last terms of the bound in ``certificate`` are non-negative; shape (1 + n + k,).

    Where b_j is not 0 the penalty is met with equality, r_j = -penalty_j sign(b_j); if ``numbers_bind``, so is the
    radius.
    """
    penalty = problem.penalty
    target = np.where(np.abs(b) > NEGLIGIBLE, -penalty * np.sign(b), np.clip(r, -penalty, penalty))
    numbers = slice(1, 1 + problem.n_numeric)
    q = np.where(problem.metric.movable(problem.n_numeric), r[numbers] - target[numbers], 0.0)
    left = max(left, 0.0)
    if numbers_bind:
        # A number at its bound takes what the others leave of the radius; the bound carries the rest.
        boxed = np.abs(b[numbers]) >= problem.coef_bound[numbers] * (1 - NEARLY_ACTIVE)
        if boxed.any():
            paid = np.where(problem.metric.number_norm.aligned(-b[numbers], q, 1.0) != 0, q, 0.0)
            rest = left - problem.metric.numeric_distance(np.where(boxed, 0.0, paid))
            wanted = problem.metric.numeric_distance(np.where(boxed, paid, 0.0))
            q = np.where(boxed, q * min(max(rest, 0.0) / max(wanted, 1e-300), 1.0), q)
        target[numbers] += problem.metric.number_norm.aligned(-b[numbers], q, left * problem.metric.scale)
    else:
        needed = problem.metric.numeric_distance(q)
        target[numbers] += q * (left / needed if needed > left else 1.0)
    return target


def residual_charge(
    problem: Problem,
    bounds: tuple[np.ndarray, np.ndarray],
    penalty: np.ndarray,
    r: np.ndarray,
    wall: np.ndarray,
    spent: float,
    radius: float,
    upper: float,
) -> tuple[float, np.ndarray, float]:
    """What the last terms of the bound in ``certificate`` can be below 0, for every b and lam with objective at most
    ``upper``.

    r is taken within the penalties, its part for the numbers is paid for from what the masses leave of ``radius``, and
    the rest costs |r_j| (constant_j + per_lam_j lam). Since lam <= upper / problem.radius, the terms in lam cost

        max(0, spent + sum_j |r_j| per_lam_j - problem.radius) * upper / problem.radius.

    Parameters
    ----------
    bounds : (constant, per_lam)
        See ``coefficient_bounds``.
    penalty : ndarray of shape (1 + n + k,)
        inf where the coefficient is fixed to 0.
    r, wall : ndarray of shape (1 + n + k,)
        The balance, and how much of it a bound on the coefficients carries.
    spent, radius : float
        Transport cost of the masses, and how much may be used for the numbers; at most ``problem.radius``.

    Returns
    -------
    charge, r, spent : the charge (inf if anything is not finite), what is left of r, what is spent with the numbers
    """
    constant, per_lam = bounds
    if not (np.isfinite(spent) and np.isfinite(r).all()):
        return np.inf, r, spent
    r = r - np.clip(r, -penalty, penalty)
    numbers = slice(1, 1 + problem.n_numeric)
    if problem.n_numeric and problem.radius > 0:
        to_pay = np.where(problem.metric.movable(problem.n_numeric), r[numbers] - wall[numbers], 0.0)
        toll = problem.metric.numeric_distance(to_pay)
        if toll > 0:
            share = min(max(radius - spent, 0.0) / toll, 1.0)
            r[numbers] -= share * to_pay
            spent += share * toll
    size = np.abs(r)
    charge = float(size[size > 0] @ constant[size > 0])
    if problem.radius > 0:
        charge += max(0.0, spent + float(size @ per_lam) - problem.radius) * upper / problem.radius
    return charge, r, spent


def coefficient_bounds(problem: Problem, upper: float) -> tuple[np.ndarray, np.ndarray]:
    """How large b can be where the objective is at most ``upper``: |b_j| <= constant_j + per_lam_j lam.

    The mean of f over the samples, with the levels of all of them set to the same, is at most upper + lam (c + kappa)
    in size, c the cost of all these changes, since both labels can be given to everybody; and within each class at most
    upper / w_min + lam (c + d) without a change of labels, w_min the weight of the smaller class and d the distance of
    their means. The one taken has the smaller lam. Numbers are bounded by dual_norm(b_N) <= lam. A box bounds
    everything. Without a box, at radius 0 and where features or numbers may not change, the claim is
    ``LARGEST_SCORE``.

    Returns
    -------
    constant, per_lam : ndarray of shape (1 + n + k,)
    """
    n, n_b, x, w = problem.n_numeric, problem.n_coefficients, problem.x, problem.w
    boxed = np.isfinite(problem.coef_bound)
    claimed = np.full(n_b, LARGEST_SCORE)
    width = np.abs(x).max(axis=0, initial=0.0)
    claimed[1 : 1 + n] /= np.where(width > 0, width, 1.0)
    if problem.radius == 0:
        return np.where(boxed, problem.coef_bound, claimed), np.zeros(n_b)
    plus = problem.y > 0
    w_min = min(w[plus].sum(), w[~plus].sum())
    f_constant, f_per_lam = upper, problem.metric.label_change
    if w_min > LEAST_CLASS or np.isinf(f_per_lam):
        means = [w[rows] @ x[rows] / w[rows].sum() if rows.any() else np.zeros(n) for rows in (plus, ~plus)]
        apart = problem.metric.numeric_distance(means[0] - means[1])
        if apart < f_per_lam:
            f_constant, f_per_lam = upper / w_min if w_min > 0 else np.inf, apart
    f_per_lam += problem.metric.largest_distance(problem.n_categorical)
    constant, per_lam = np.full(n_b, 2.0 * f_constant), np.full(n_b, 2.0 * f_per_lam)
    if n:  # one number: |b_j| <= ||e_j|| ||b_N||_*
        constant[1 : 1 + n], per_lam[1 : 1 + n] = 0.0, problem.metric.number_norm.of_units(n) / problem.metric.scale
    sizes = problem.level_sizes.sum(axis=1)
    levels = np.minimum.reduceat(sizes, problem.offsets).sum() if len(sizes) else 0.0
    constant[0] = (1.0 + 2.0 * levels) * f_constant
    per_lam[0] = (1.0 + 2.0 * levels) * f_per_lam + problem.metric.numeric_distance(w @ x)
    unbounded = np.isinf(per_lam)
    constant, per_lam = np.where(unbounded, claimed, constant), np.where(unbounded, 0.0, per_lam)
    return np.where(boxed, problem.coef_bound, constant), np.where(boxed, 0.0, per_lam)


def reserve(problem: Problem, lam: float, loss: float, share: float) -> float:
    """The part of the radius that a dual point should leave unspent, at most ``share`` of it and ``loss`` / lam.

    What is left bounds the price of residuals: a residual r_j costs |r_j| (constant_j + per_lam_j lam), and
    the second part is covered where sum_j |r_j| per_lam_j is below what is left of the radius. The price of leaving
    it is about lam times it, with the lam of the solution, while the largest possible lam can be thousands of times
    larger.
    """
    return min(share * problem.radius, loss / max(lam, 1e-300))
