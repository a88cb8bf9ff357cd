"""Certificates: how far a fit can be from the optimum, whoever computed it.

``check`` takes no solver at its word. From coefficients and a dual point it computes the objective, evaluated by
Algorithm 2, and a lower bound on the optimal value, from the dual point made feasible here. It shares nothing with the
solvers but ``separation``, and allows for its own rounding.

The lower bound. Let masses mu_c >= 0 sum to at most w_i over the cuts c of sample i, and t_c in [0, 1] be slopes. Since
L(a) = max_t [t a + H(t)] with H(t) = -t log t - (1 - t) log(1 - t), and since s_i >= 0, every b and lam satisfy

    objective >= sum_c mu_c H(t_c) + lam (radius - sum_c mu_c cost_c) + r.b + sum_j penalty_j |b_j|,
    r = sum_c mu_c t_c A_c     (a_c = A_c b is the argument of the log-loss at cut c).

It remains to bound the terms with lam, r and the penalties from below, over all b and lam that can be optimal. This is
done by ``_charge``; the solvers do the same in ``dual_repair``, and the two share no code on purpose.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import entr, expit

from wdrlr.model.metric import mean_costs
from wdrlr.model.objective import LONG_UNIT, UNIT, Objective, objective_with_rounding, pairwise
from wdrlr.model.problem import Problem

LARGEST_SCORE = 1e4
"""Without a box nothing bounds the coefficients at radius 0, nor at any radius those of features that may not change.
The lower bound then holds for all b for which these |b_j| (times the largest distance of a number from its mean) and
|f| at the means are below this, or below twice those of the fit."""

LEAST_AT_HOME = 1e-3
"""Times w_i: with less mass where it is, a sample counts as not known in ``ambiguity``."""

BLOCK = 4096
"""Cuts processed at a time."""


@dataclass(frozen=True, eq=False)
class DualPoint:
    """Masses on C cuts, and the slopes of the log-loss there: what a solver hands in for its lower bound.

    A cut is a sample, a label and a set of changed features. A feature may be changed into one level, or (level -1 - q)
    into mixture q of its levels: since L is convex, that is worth no more than mass which goes to each of these levels,
    at the mean of their costs. Where a feature can have any code (``Problem.any_code``), a mixture is a mean code.

    Attributes
    ----------
    sample : int ndarray of shape (C,)
    flipped : bool ndarray of shape (C,)
        Whether the label is the other one.
    mass, v : ndarrays of shape (C,)
        mu_c and mu_c t_c.
    start : int ndarray of shape (C + 1,)
        The changes of cut c are ``start[c] : start[c + 1]``.
    feature, level : int ndarrays of shape (changes,)
        The changed feature, and its new level as a code, or -1 - q for mixture q.
    mixtures : ndarray of shape (Q, sum(n_levels))
        In each row the shares of the levels of each feature; for a feature that can have any code, its K - 1 means, in
        [-1, 1], and an entry that is not used.
    wall : ndarray of shape (1 + n + k,)
        The part of r that bounds on the coefficients carry.
    """

    sample: np.ndarray
    flipped: np.ndarray
    mass: np.ndarray
    v: np.ndarray
    start: np.ndarray
    feature: np.ndarray
    level: np.ndarray
    mixtures: np.ndarray
    wall: np.ndarray


class Certificate(NamedTuple):
    """``upper`` is the objective at b, attained at ``lam`` (nan at radius 0). No coefficients have an objective below
    ``lower``, so that of b is at most upper - lower above the optimum: the possible rounding of both is subtracted from
    ``lower``. Without a box see ``LARGEST_SCORE``. If lower > upper, one of the two is wrong. ``dual`` is the dual
    point behind ``lower``, if there is one."""

    upper: float
    lower: float
    lam: float
    dual: DualPoint | None = None


def check(problem: Problem, b: np.ndarray, *dual_points: DualPoint, at: Objective | None = None) -> Certificate:
    """The certificate of coefficients b by the best of the given dual points, or by 0, which is a lower bound.

    Parameters
    ----------
    b : ndarray of shape (1 + n + k,)
        Within the box, and b_0 = 0 without an intercept.
    at : Objective or None
        ``objective_with_rounding`` of b, if that is known already.
    """
    upper, rounding, lam = at or objective_with_rounding(problem, b)
    # The objective at b = 0 is log 2, which bounds the optimum; so does the objective at b, if b is feasible.
    ceiling = float(np.log(2.0) * problem.w.sum() * (1 + 8 * UNIT))
    if (problem.feasible(b) == b).all():
        ceiling = min(upper + rounding, ceiling)
    least, best = 0.0, None
    for dual in dual_points:
        value = dual_value(problem, dual, ceiling, b)
        if value > least:
            least, best = value, dual
    return Certificate(upper, least - rounding, lam, best)


def dual_value(
    problem: Problem, dual: DualPoint, upper: float, b: np.ndarray, linear: np.ndarray | None = None
) -> float:
    """The lower bound of a dual point, less the possible rounding; 0 if it proves nothing.

    With ``linear``, the bound is one on objective + linear.b wherever the objective is at most ``upper``, and -inf if
    the dual point proves nothing.

    Masses are scaled down where they sum to more than w_i, v is clipped to [0, mass], mixtures are made to sum to 1.
    Dropped are cuts of infinite cost, or of any change at radius 0, cuts that change a feature twice or into a level
    that it does not have, and values that are not finite.

    Parameters
    ----------
    upper : float
        An upper bound on the optimal value.
    b : ndarray of shape (1 + n + k,)
        The fit; used only where it sets how far the bound has to hold (``LARGEST_SCORE``).
    linear : ndarray of shape (1 + n + k,) or None
        Its first entry must be 0 without an intercept.
    """
    tilt = np.zeros(problem.n_coefficients) if linear is None else linear
    dual, sign, mass, v, cost = _sound(problem, dual)
    most_cuts = int(np.bincount(dual.sample, mass > 0, problem.n_samples).max(initial=0))
    slope = np.divide(v, mass, out=np.zeros_like(v), where=mass > 0)

    entropy = (mass * (entr(slope) + entr(1.0 - slope))).sum()
    spent = (mass * cost).sum()
    of_costs = 0 if problem.metric.level_costs is None else problem.n_categorical + max(problem.n_levels, default=0)
    relative = UNIT * (pairwise(len(mass)) + 6 * most_cuts + 8 + of_costs)
    charge = _charge(problem, dual, v, sign, spent * (1 + relative), upper, b, tilt)
    # For the rounding of the slope: t |H'(t)| is at most 40 where 1 - t is not 0.
    value = float(entropy * (1 - relative) - 40 * UNIT - charge)
    nothing = 0.0 if linear is None else -np.inf
    return value if value > nothing else nothing  # also where it is nan


def ambiguity(problem: Problem, b: np.ndarray, gap: float, dual: DualPoint) -> float:
    """How far, on average over the samples, probabilities of coefficients that are as good can be from those of b.

    The bound of the dual point drops only terms >= 0 from the objective, among them the Kullback-Leibler divergences
    sum_c mu_c KL(t_c || sigmoid(a_c)) of a label's probabilities. So where the objective is at most ``upper``, these
    sum to no more than upper - lower, and by Pinsker's inequality, with the cut c of each sample i that changes none of
    its features and has the largest mass,

        sum_i mu_i (p_i - t_i)^2 <= (upper - lower) / 2,

    p_i the probability at the sample and t_i what the cut's slope says of it. By Cauchy and Schwarz

        sum_i w_i |p_i - t_i| <= ( (upper - lower) / 2  sum_i w_i^2 / mu_i )^(1/2),

    taken over the samples with a part of their mass at home; others may differ by 1.

    Parameters
    ----------
    b : ndarray of shape (1 + n + k,)
    gap : float
        upper - lower, of the objective at b and of this dual point; it is not checked here.

    Returns
    -------
    float
        In [0, 1]: if it is small, the optimum is as good as unique in what it says of the samples.
    """
    dual, sign, mass, v, _ = _sound(problem, dual)
    at_home = np.diff(dual.start) == 0
    order = np.argsort(mass[at_home], kind="stable")  # the heaviest comes last, and stays
    sample, mass, v, sign = (values[at_home][order] for values in (dual.sample, mass, v, sign))
    heaviest, slope = np.zeros(problem.n_samples), np.zeros(problem.n_samples)
    slope[sample] = np.where(sign > 0, v, mass - v) / np.where(
        mass > 0, mass, 1.0
    )  # the probability of +1 it stands for
    heaviest[sample] = mass
    known = heaviest > LEAST_AT_HOME * problem.w
    w = problem.w[known]
    own = np.abs(expit(problem.decision(b)) - slope)[known]
    others = np.sqrt(max(gap, 0.0) / 2 * (w**2 / heaviest[known]).sum())
    bound = float(w @ own + others + problem.w[~known].sum())
    return min(bound, 1.0) if np.isfinite(bound) else 1.0


def _sound(problem: Problem, dual: DualPoint) -> tuple[DualPoint, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The dual point without what is not allowed, and of its cuts the signs with a = sign f, mass, v and cost."""
    dual = _without_forgeries(problem, dual)
    mass = np.nan_to_num(dual.mass, posinf=0.0, neginf=0.0)
    sign = np.where(dual.flipped, 1.0, -1.0) * problem.y[dual.sample]  # a = sign f
    cost = _level_costs(problem, dual) + np.where(dual.flipped, problem.metric.label_change, 0.0)
    possible = (mass > 0) & np.isfinite(cost)
    if problem.radius == 0:
        possible &= (np.diff(dual.start) == 0) & ~dual.flipped
    mass, cost = np.where(possible, mass, 0.0), np.where(possible, cost, 0.0)
    total = np.bincount(dual.sample, mass, problem.n_samples)
    most_cuts = int(np.bincount(dual.sample, possible, problem.n_samples).max(initial=0))
    # An excess of the size of rounding may stay: it is allowed for below, and v keeps its balance.
    too_much = total > problem.w * (1 + 4 * most_cuts * UNIT)
    scaled = np.where(too_much, problem.w / np.where(too_much, total, 1.0), 1.0)[dual.sample]
    mass, v = mass * scaled, np.nan_to_num(dual.v, posinf=0.0, neginf=0.0) * scaled
    return dual, sign, mass, np.clip(v, 0.0, mass), cost


def _without_forgeries(problem: Problem, dual: DualPoint) -> DualPoint:
    """The dual point without the mass of cuts that change a feature twice, or one that does not exist, or into a level
    that the feature does not have."""
    m = problem.n_categorical
    n_changes = np.diff(dual.start)
    cut = np.repeat(np.arange(len(dual.mass)), n_changes)
    n_levels = np.array([*problem.n_levels, 0])[np.where((dual.feature >= 0) & (dual.feature < m), dual.feature, m)]
    forged = (dual.level >= n_levels) | (dual.level < -len(dual.mixtures))
    order = np.lexsort([dual.feature, cut])
    forged[order[1:]] |= (np.diff(cut[order]) == 0) & (np.diff(dual.feature[order]) == 0)
    if not forged.any():
        return dual
    honest = np.bincount(cut[forged], minlength=len(dual.mass)) == 0
    return replace(
        dual,
        mass=np.where(honest, dual.mass, 0.0),
        start=np.concatenate([[0], np.cumsum(np.where(honest, n_changes, 0))]),
        feature=dual.feature[honest[cut]],
        level=dual.level[honest[cut]],
    )


def _level_costs(problem: Problem, dual: DualPoint) -> np.ndarray:
    """What the changes of levels cost in each cut; shape (C,)."""
    metric = problem.metric
    if metric.level_costs is None:
        return metric.level_changes(problem.n_categorical)[np.diff(dual.start)]
    cut = np.repeat(np.arange(len(dual.mass)), np.diff(dual.start))
    own = problem.z[dual.sample[cut], dual.feature]
    shares = _mixtures(problem, dual.mixtures)
    of_change = np.zeros(len(cut))
    for j, costs in enumerate(metric.level_costs):
        those = dual.feature == j
        if isinstance(costs, np.ndarray):  # those into levels, then into the last mixture, ..., into the first
            into = np.hstack([costs, mean_costs(costs, shares[::-1, problem.levels(j)])])
            of_change[those] = into[own[those], dual.level[those]]
        else:
            of_change[those] = costs
    return metric.level_cost * np.bincount(cut, of_change, len(dual.mass)) / metric.scale


def _charge(
    problem: Problem,
    dual: DualPoint,
    v: np.ndarray,
    sign: np.ndarray,
    spent: float,
    upper: float,
    b: np.ndarray,
    linear: np.ndarray,
) -> float:
    """How far lam (radius - spent) + r.b + sum_j penalty_j |b_j| can be below 0 where the objective is <= ``upper``.

    ``linear`` is part of r.

    - r_j costs nothing within the penalty of b_j, nor does r_0 without an intercept.
    - The wall, which is 0 where there is no box, is charged at the box.
    - The part of the numbers costs at most lam ||r_N|| / scale, as lam >= dual_norm(b_N) (Hoelder),
      or what a box or a penalty allows, if that is less.
    - The rest is charged at the bounds of ``_bounds``, |b_j| <= constant_j + per_lam_j lam.
    - lam <= upper / radius, as all losses are >= 0: the terms in lam cost at most
      max(0, spent + ||r_N|| / scale + sum_j |r_j| per_lam_j - radius) upper / radius.

    The numbers are taken relative to their means, with f at the means in place of b_0.
    """
    n = problem.n_numeric
    center, bounds, cap = _bounds(problem, upper, b)
    intercept, numbers, levels, of_codes, slack = _balance(problem, dual, v, sign, center)
    intercept, numbers = intercept + linear[0], numbers + (linear[1 : 1 + n] - center * linear[0])
    wall = np.where(np.isfinite(problem.coef_bound), np.nan_to_num(dual.wall), 0.0)
    wall[0] *= problem.fit_intercept
    charge = _product(np.abs(wall), problem.coef_bound).sum() * (1 + len(b) * UNIT)

    sizes = abs(problem.of_dummies)
    terms = np.maximum(np.diff(sizes.indptr) - 1, 0)
    slack_categories = sizes @ slack[1 + n :] + 2 * UNIT * terms * (sizes @ np.abs(levels))
    slack_categories += UNIT * (len(dual.mixtures) + 8) * np.abs(of_codes).sum(axis=0)
    # The part of r_0 that penalty and wall carry stays with b_0; only the rest is taken relative to the means.
    kept = np.clip(intercept - wall[0], -problem.penalty[0], problem.penalty[0]) + wall[0]
    numbers = numbers + center * kept
    slack_numbers = slack[1 : 1 + n] + np.abs(center) * (slack[0] + 2 * UNIT * (abs(kept) + abs(wall[0])))
    categories = problem.of_dummies @ levels + of_codes.sum(axis=0) + linear[1 + n :]
    r = np.concatenate([[intercept], numbers, categories]) - wall
    slack = np.concatenate([slack[:1], slack_numbers, slack_categories])
    slack += UNIT * (np.abs(wall) + np.abs(r) + 2 * np.abs(linear))
    slack[1 : 1 + n] += 2 * UNIT * np.abs(center * linear[0])
    size = np.maximum(np.abs(r) + slack - problem.penalty, 0.0) * (1 + 2 * UNIT)
    size[0] *= problem.fit_intercept

    if problem.radius == 0:
        return float(charge + _product(size, bounds[0][0]).sum())

    def total(constant: np.ndarray, per_lam: np.ndarray, capped: np.ndarray) -> float:
        """The charge: these coefficients at their caps, other numbers paid by the radius, the rest at their bounds."""
        toll = problem.metric.numeric_distance(np.where(capped | ~movable, 0.0, size)[1 : 1 + n])
        fixed, in_lam = _product(size, np.where(capped, cap, constant)), _product(size, np.where(capped, 0.0, per_lam))
        fixed, in_lam = np.where(capped | ~movable, fixed, 0.0), np.where(movable, 0.0, in_lam)
        excess = (spent + toll + in_lam.sum()) * (1 + (len(b) + 8) * UNIT) - problem.radius
        return float(charge + fixed.sum() + max(0.0, excess) * upper / problem.radius)

    movable = np.zeros(len(b), dtype=bool)  # numbers, for which lam >= dual_norm(b_N) is a bound
    movable[1 : 1 + n] = problem.metric.movable(n)
    totals = []
    for constant, per_lam in bounds:
        tight = cap < constant + per_lam * upper / problem.radius
        choices = (cap < constant, tight & ~movable, tight | movable)
        totals += [total(constant, per_lam, capped) for capped in choices]
    return min(totals)


def _product(size: np.ndarray, bound: np.ndarray | float) -> np.ndarray:
    """size * bound, 0 where the size is 0 and the bound infinite."""
    return size * np.where(size > 0, bound, 0.0)


def _balance(
    problem: Problem, dual: DualPoint, v: np.ndarray, sign: np.ndarray, center: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """r in terms of the intercept, of the numbers less their center, and of the scores of levels.

    Sums over levels are exact to about 1e-25 v: v is split in two parts, and sums of the high parts, whole multiples
    of a power of two, are not rounded. Otherwise, at a tiny radius, residuals of the order of 1e-16 would be multiplied
    by multipliers of the order of its inverse. Sums over numbers are in long doubles, if the machine has them.

    Returns
    -------
    intercept, numbers (n,), levels (sum(n_levels),)
    of_codes : ndarray of shape (Q, k)
        Further parts of the balance of the slopes of categories: codes that are no levels, a row for each mixture.
    slack : ndarray of shape (1 + n + sum(n_levels),)
        How far rounding can put each of these off.
    """
    n, n_levels = problem.n_numeric, sum(problem.n_levels)
    u = v * sign
    grid = 2.0 ** np.ceil(np.log2(max(float(v.sum()), 1e-290))) * 2.0**-50
    high = np.round(u / grid) * grid
    sums = np.zeros((2, 1 + n_levels))  # of high and low parts, for the intercept and the levels
    n_mixtures, m = len(dual.mixtures), problem.n_categorical
    mixed = np.zeros((2, n_mixtures * m))  # high and low parts at mixtures, by mixture and by feature
    numbers, size = np.zeros(n, dtype=np.longdouble), np.zeros(n)
    original = problem.z + problem.offsets
    for begin in range(0, len(u), BLOCK):
        cuts = slice(begin, begin + BLOCK)
        sample, changes = dual.sample[cuts], slice(dual.start[begin], dual.start[min(begin + BLOCK, len(u))])
        cut = np.repeat(np.arange(len(u))[cuts], np.diff(dual.start[begin : begin + BLOCK + 1]))
        feature, level = dual.feature[changes], dual.level[changes]
        old = original[dual.sample[cut], feature]
        mixes = level < 0
        new = problem.offsets[feature] + np.where(mixes, 0, level)
        for part, amount in enumerate((high, u - high)):
            sums[part, 0] += amount[cuts].sum()
            kept = np.bincount(original[sample].ravel(), np.repeat(amount[cuts], problem.n_categorical), n_levels)
            kept -= np.bincount(old, amount[cut], n_levels)
            sums[part, 1:] += kept + np.bincount(new[~mixes], amount[cut[~mixes]], n_levels)
            of_mixture = (-1 - level[mixes]) * m + feature[mixes]
            mixed[part] += np.bincount(of_mixture, amount[cut[mixes]], n_mixtures * m)
    if n:
        N = problem.n_samples
        of_sample = np.bincount(dual.sample, high, N).astype(np.longdouble) + np.bincount(dual.sample, u - high, N)
        for begin in range(0, N, BLOCK):
            rows = slice(begin, begin + BLOCK)
            shifted = np.ascontiguousarray(problem.x[rows].T, dtype=np.longdouble) - center[:, None]
            numbers += (shifted * of_sample[rows]).sum(axis=1)
        size = np.bincount(dual.sample, v, N) @ np.abs(problem.x - center)
    levels = sums[0, 1:] + sums[1, 1:]
    slack = np.empty(1 + n + n_levels)
    slack[0] = slack[1 + n :] = 1e-25 * float(v.sum()) * len(v)
    slack[0] += 2 * UNIT * abs(sums[:, 0].sum())
    slack[1 : 1 + n] = LONG_UNIT * (pairwise(min(len(v), BLOCK)) + len(v) / BLOCK + 4) * size + UNIT * np.abs(numbers)
    of_codes = np.zeros((n_mixtures, problem.level_matrix.shape[1]))
    if mixed.any():
        at_mixture = mixed.sum(axis=0).reshape(n_mixtures, m)
        spread = _mixtures(problem, dual.mixtures) * np.repeat(at_mixture, problem.n_levels, axis=1)
        for j in problem.coded:
            of_codes[:, problem.dummies(j)] = spread[:, problem.levels(j)][:, :-1]
            spread[:, problem.levels(j)] = 0.0
        levels = levels + spread.sum(axis=0)
        slack[1 + n :] += UNIT * (max(problem.n_levels) + 6 + n_mixtures) * np.abs(spread).sum(axis=0)
    slack[1 + n :] += 2 * UNIT * np.abs(levels)
    return float(sums[:, 0].sum()), numbers.astype(float), levels, of_codes, slack


def _mixtures(problem: Problem, share: np.ndarray) -> np.ndarray:
    """Shares that are >= 0 and sum to 1 in each feature, means of codes that are in [-1, 1]; (Q, sum(n_levels))."""
    clean = np.clip(np.nan_to_num(share, posinf=0.0), 0.0, 1e100)
    if problem.n_categorical:
        total = np.repeat(np.add.reduceat(clean, problem.offsets, axis=1), problem.n_levels, axis=1)
        sizes = np.repeat(problem.n_levels, problem.n_levels)
        clean = np.where(total > 0, clean / np.where(total > 0, total, 1.0), 1.0 / sizes)
    for j in problem.coded:
        clean[:, problem.levels(j)] = np.clip(np.nan_to_num(share[:, problem.levels(j)]), -1.0, 1.0)
    return clean


def _bounds(
    problem: Problem, upper: float, b: np.ndarray
) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]], np.ndarray]:
    """How large b can be where the objective is at most ``upper``: |b_j| <= constant_j + per_lam_j lam.

    Let f(v) be the mean of f over the samples if all their categories are set to v, and c the cost of that change. If
    labels can be changed, sum_i w_i s_i is at least the mean of L(-+f) less lam (c + kappa), for either sign, and by
    Jensen

        |f(v)| <= upper + lam (c + kappa).

    A change of one feature, at the cost c_1, is enough to compare two of its levels: their scores differ by at most
    twice this bound, with c_1 for c. Whether labels can be changed or not, the same holds within each class, with L(-f)
    for y = 1 and L(f) for y = -1: |f(v)| <= upper / w_min + lam (c + d), where w_min is the weight of the smaller class
    and d the distance between the means of the classes. The scores of two levels of a feature differ by at most twice
    that, so no slope of a category is larger. Features that may not change keep their levels; for what then has no
    bound, the claim is ``LARGEST_SCORE``.

    Returns
    -------
    center : ndarray of shape (n,)
        The weighted means of the numbers; 0 without an intercept.
    bounds : list of pairs (constant, per_lam) of ndarrays of shape (1 + n + k,)
        Any of the pairs may be used. Entry 0 is for b_0 + center.b_N, the entries of the numbers are for radius 0.
    cap : ndarray of shape (1 + n + k,)
        What the box allows, and the penalty, by upper / penalty_j; entry 0 is for b_0 + center.b_N, too.
    """
    n, w, x, n_b = problem.n_numeric, problem.w, problem.x, len(b)
    center = problem.means if problem.fit_intercept else np.zeros(n)
    bounds = []
    extent = np.concatenate([[1.0], np.abs(x - center).max(axis=0, initial=0.0), np.ones(n_b - 1 - n)])
    size = np.abs(b) * extent
    size[0] = abs(b[0] + center @ problem.numeric(b))
    claimed = max(LARGEST_SCORE, 2 * size.max()) / np.where(extent > 0, extent, 1.0)
    if problem.radius == 0:
        bounds.append((claimed, np.zeros(n_b)))
    else:
        # A reference level whose score is not 0 adds to f at the means, and so does the rounding of the means.
        sizes = problem.level_sizes.sum(axis=1)
        references = np.minimum.reduceat(sizes, problem.offsets).sum() if len(sizes) else 0.0
        blur = problem.metric.numeric_distance(len(w) * UNIT * np.abs(x).max(axis=0))
        changes = problem.metric.largest_changes(problem.n_categorical)
        fixed = bool(np.isinf(changes).any())
        all_changed = problem.metric.largest_distance(problem.n_categorical)
        all_changed = float(changes[np.isfinite(changes)].sum()) if fixed else all_changed
        of_slope = np.repeat(changes, np.array(problem.n_levels, dtype=int) - 1)

        def of(constant: float, at_means: float, of_levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            per_lam = np.zeros(n_b)
            per_lam[1 + n :] = 2 * of_levels
            of_references = references * per_lam[1 + n :].max(initial=0.0) if references else 0.0
            per_lam[0] = np.inf if fixed else at_means + of_references + 2 * blur
            constants = constant * np.concatenate([[1 + 2 * references], np.full(n_b - 1, 2.0)])
            bounded = np.isfinite(per_lam)
            return np.where(bounded, constants, claimed), np.where(bounded, per_lam, 0.0)

        kappa, plus = problem.metric.label_change, problem.y > 0
        if np.isfinite(kappa):
            bounds.append(of(upper, all_changed + kappa, of_slope + kappa))
        w_min = min(w[plus].sum(), w[~plus].sum())
        if w_min > 0:
            means = [w[rows] @ x[rows] / w[rows].sum() for rows in (plus, ~plus)]
            apart = all_changed + problem.metric.numeric_distance(means[0] - means[1]) + 2 * blur
            apart = np.inf if fixed else apart
            bounds.append(of(upper / w_min, apart, np.full(len(of_slope), apart)))
        if not bounds:
            bounds.append((np.full(n_b, np.inf), np.zeros(n_b)))
        immobile = 1 + np.flatnonzero(~problem.metric.movable(n))
        for constant, _ in bounds:
            constant[immobile] = claimed[immobile]
    cap = np.divide(upper, problem.penalty, out=np.full(n_b, np.inf), where=problem.penalty > 0)
    cap = np.minimum(problem.coef_bound, cap)
    cap[0] += _product(np.abs(center), cap[1 : 1 + n]).sum()
    at_most = [(constant * (1 + 32 * UNIT), per_lam * (1 + 32 * UNIT)) for constant, per_lam in bounds]
    if problem.radius == 0:
        at_most = [(np.minimum(constant, cap), per_lam) for constant, per_lam in at_most]
    return center, at_most, cap * (1 + 8 * UNIT)
