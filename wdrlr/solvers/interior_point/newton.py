"""Steps 2 and 3: the Newton matrix, and Mehrotra's predictor-corrector step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack
from scipy.special import expit

from wdrlr.solvers.interior_point import kernels
from wdrlr.solvers.interior_point.instance import Instance, Iterate, Pairs


class Newton(NamedTuple):
    """The linearised optimality conditions at an iterate, with all but theta eliminated: M theta = -g.

    Attributes
    ----------
    slope : ndarray of shape (C,)
        t, the slope of each cut's log-loss.
    several : bool ndarray of shape (C,)
        Whether the cut's sample has other cuts. A lone cut has no slack to speak of: its multiplier is w_i.
    used : bool ndarray of shape (E,)
        The coordinates on which something depends: not a top that no cut uses, nor lam at radius 0.
    live : bool ndarray
        The rows with a force.
    n_pairs : int
        Of slack and multiplier, at least 1.
    fold : kernels.Fold
        The order of the coordinates in what follows.
    scale : ndarray of shape (E,)
        M / scale / scale' has the diagonal 1, but for what makes it regular.
    factor, side, diagonal : ndarrays
        Those apart eliminated, the Cholesky factor of what this leaves of the core; their rows and their diagonal.
    pull : float
        -e M^-1 e', e the intercept's row; 0 with an intercept.
    """

    slope: np.ndarray
    several: np.ndarray
    used: np.ndarray
    live: np.ndarray
    n_pairs: int
    fold: kernels.Fold
    scale: np.ndarray
    factor: np.ndarray
    side: np.ndarray
    diagonal: np.ndarray
    pull: float

    def solve_freely(self, g: np.ndarray) -> np.ndarray:
        """-M^-1 g"""
        if not len(self.diagonal):
            return -lapack.dpotrs(self.factor, np.where(self.used, g, 0.0) / self.scale, lower=0)[0] / self.scale
        right = np.where(self.used, g, 0.0)[self.fold.order] / self.scale
        core, apart = np.split(right, [self.fold.n_core])
        core = lapack.dpotrs(self.factor, core - self.side.T @ (apart / self.diagonal), lower=0)[0]
        apart = (apart - self.side @ core) / self.diagonal
        return -(np.concatenate([core, apart]) / self.scale)[self.fold.position]


class Step(NamedTuple):
    """A direction for theta and the slacks, and the multipliers as they are after the full step.

    The four families are those of ``Iterate``; ``slack`` is a change, ``multiplier`` is not. ``a`` (C,) is the change
    of the cuts' arguments and ``size`` (J,) that of u. ``target`` is what all products aim at, ``mu`` their mean,
    ``ridge`` that of the next matrix.
    """

    theta: np.ndarray
    a: np.ndarray
    cuts: Pairs
    limits: Pairs
    above: Pairs
    below: Pairs
    size: np.ndarray
    target: float = 0.0
    mu: float = 0.0
    ridge: float = 0.0


def in_use(instance: Instance, pool: kernels.Pool) -> tuple[np.ndarray, np.ndarray]:
    """The coordinates on which something depends, and the rows with a force: a top that no cut uses has none."""
    used = np.zeros(instance.coordinates.E, bool)
    used[: instance.coordinates.n_scores] = True
    used[instance.coordinates.number_size] = instance.by_sizes
    used[pool.entry] = True
    used[-1] = instance.problem.radius > 0
    size = instance.coordinates.size
    for j in instance.problem.coded:  # sizes serve the top and the bottom
        used[size[instance.problem.dummies(j)]] = used[instance.coordinates.data.top[:, j]].any()
    return used, used[instance.tops.column]


def linearise(instance: Instance, at: Iterate) -> Newton:
    """Step 2: slopes, which pairs are live, and the factorised matrix."""
    fold, C, data = instance.fold, instance.fold.n_core, instance.coordinates.data
    several = at.by_cut(at.pool.counts) > 1
    slope = expit(instance.arguments(at.theta, at.scores, at.pool))
    used, live_tops = in_use(instance, at.pool)
    live = np.ones(len(at.rows), bool)
    live[: instance.tops.n_rows] = live_tops
    n_pairs = max(int(several.sum() + live.sum()) + 2 * len(instance.penalties), 1)

    M = kernels.gram(fold, data, at.pool, slope, at.cuts.multiplier, at.cuts.slack)
    at.rows.add_gram(M, fold, at.limits.weight)
    if instance.curved:
        _add_curvature(M.core, instance, at)
    D_above, D_below = at.above.weight, at.below.weight
    instance.penalised.add_gram(M, fold, 4 * D_above * D_below / (D_above + D_below))
    diagonal = np.concatenate([np.diag(M.core), M.diagonal])
    diagonal[fold.order < instance.coordinates.n_scores] += at.ridge * n_pairs * at.tau
    diagonal[~used[fold.order]] = 1.0
    scale = np.sqrt(np.maximum(diagonal, 1e-30))
    core, side = M.core / scale[:C] / scale[:C, None], M.side / scale[:C] / scale[C:, None]
    diagonal = diagonal / scale / scale
    # Small where the diagonal is small, but no larger than the data's part of it where rows of limits dominate.
    regular, failed = instance.settings.regular * np.minimum(1.0, 0.01 / scale**2), 1
    factor = core
    while failed and regular.max() < 1.0:  # not for ever, should M not be finite
        diagonal += regular
        np.fill_diagonal(core, diagonal[:C])
        left = core
        if len(side):
            rows = side / np.sqrt(diagonal[C:, None])
            left = core - rows.T @ rows
        factor, failed = lapack.dpotrf(left.T, lower=0)
        regular *= 10
    newton = Newton(slope, several, used, live, n_pairs, fold, scale, factor, side, diagonal[C:], 0.0)
    if instance.problem.fit_intercept:
        return newton
    row = instance.intercept_row
    return newton._replace(pull=float(row @ newton.solve_freely(row)))


def _add_curvature(core: np.ndarray, instance: Instance, at: Iterate) -> None:
    """The second derivative of the l2 norm times its multiplier, in place."""
    n, x_scale = instance.problem.n_numeric, instance.x_scale
    tangent, size = at.rows.value[-n:], np.linalg.norm(instance.slopes(at.theta))
    if size > 0:
        second = np.diag(x_scale**-2.0) - np.outer(tangent, tangent)
        core[1 : 1 + n, 1 : 1 + n] += at.limits.multiplier[-1] / size * second


def solve(instance: Instance, newton: Newton, g: np.ndarray) -> np.ndarray:
    """The minimiser of g.theta + theta.M theta / 2, without an intercept among the theta with b_0 = 0."""
    theta = newton.solve_freely(g)
    if not instance.problem.fit_intercept:
        for _ in range(2):  # the first time, theta can be a small difference of large numbers
            g = g - (instance.intercept_row @ theta) / newton.pull * instance.intercept_row
            theta = newton.solve_freely(g)
    return theta


def predict_and_correct(instance: Instance, at: Iterate, newton: Newton, upper: float) -> Step:
    """Step 3: the predictor aims at 0 and so sets the target; the corrector aims at that, with second-order terms."""
    settings, several, slope = instance.settings, newton.several, newton.slope
    lone = at.cuts.multiplier * at.cuts.slack  # what the product of a sample's only cut is, and stays
    zeros = np.zeros(len(several))
    targets = (np.where(several, zeros, lone), 0 * at.limits.slack, 0 * at.above.slack, 0 * at.below.slack)
    predictor = _newton_step(instance, at, newton, *targets, zeros)

    every = np.ones(len(instance.penalties), bool)
    families = [
        (at.cuts, predictor.cuts, several),
        (at.limits, predictor.limits, newton.live),
        (at.above, predictor.above, every),
        (at.below, predictor.below, every),
    ]
    slacks = [(now.slack[some], step.slack[some]) for now, step, some in families]
    multipliers = [(now.multiplier[some], (step.multiplier - now.multiplier)[some]) for now, step, some in families]
    both = list(zip(slacks, multipliers, strict=True))
    mu = sum(mult @ slack for (slack, _), (mult, _) in both) / newton.n_pairs
    primal, dual = (min(longest(*pair) for pair in pairs) for pairs in (slacks, multipliers))  # step lengths
    left = sum((mult + dual * by) @ (slack + primal * change) for (slack, change), (mult, by) in both) / newton.n_pairs

    # A long last step shows that the cuts in hand are the right ones: then tau may fall fast.
    limit = 1.0
    if at.length > settings.short_step:
        limit = settings.after_long if at.length >= settings.long_step else settings.after_medium
    ratio = min(max((left / mu) ** 3, settings.fastest) if mu > 0 else 0.1, settings.slowest, limit)
    floor = min(settings.floor_of_objective * upper, instance.floor) / newton.n_pairs
    target = max(min(ratio * mu, at.tau), settings.least_fall * at.tau, floor)
    faded = max(settings.ridge_fades * at.ridge, settings.least_ridge)
    ridge = max(at.ridge, settings.ridge) if target > floor else faded

    trusted = min(primal, dual) > settings.trusted_step
    clip = settings.second_order * target

    def with_second_order(now: Pairs, step: Pairs) -> np.ndarray:
        return target - trusted * np.clip((step.multiplier - now.multiplier) * step.slack, -clip, clip)

    bend = np.maximum(-0.5 * slope * (1 - slope) * predictor.a**2, -settings.bend * at.cuts.slack)
    return _newton_step(
        instance,
        at,
        newton,
        np.where(several, with_second_order(at.cuts, predictor.cuts), lone),
        with_second_order(at.limits, predictor.limits),
        with_second_order(at.above, predictor.above),
        with_second_order(at.below, predictor.below),
        trusted * np.where(several, bend, 0.0),
        target=target,
        mu=mu,
        ridge=ridge,
    )


def _newton_step(
    instance: Instance,
    at: Iterate,
    newton: Newton,
    cuts: np.ndarray,
    limits: np.ndarray,
    above: np.ndarray,
    below: np.ndarray,
    bend: np.ndarray,
    **told: float,
) -> Step:
    """The Newton step for the given targets of the products of each family.

    ``bend`` (C,), at most 0, is the second-order change of the cuts' slacks along the predictor. ``told`` goes into
    the step.
    """
    E, data = instance.coordinates.E, instance.coordinates.data
    slack, mult = at.cuts
    # The multipliers that the targets ask for at the present slacks.
    aim = (cuts - mult * bend) / slack
    aim_limits = np.where(newton.live, limits / at.limits.slack, 0.0)
    aim_above, aim_below = above / at.above.slack, below / at.below.slack
    D_above, D_below = at.above.weight, at.below.weight
    D, difference = D_above + D_below, D_above - D_below
    surplus = aim_above + aim_below - instance.penalties
    g = kernels.gradient(E, data, at.pool, newton.slope, mult, slack, aim)
    g -= at.rows.transposed_times(aim_limits, E)
    g += instance.penalised.transposed_times(aim_above - aim_below - difference / D * surplus, E)
    g += instance.linear_row
    g[-1] += instance.problem.radius
    theta = solve(instance, newton, g)

    a = instance.arguments(theta, instance.scores(theta), at.pool)
    change = newton.slope * a - at.pool.cost * theta[-1]
    ds, full = kernels.directions(change, data, at.pool, mult, slack, aim)
    of_rows, of_b = at.rows.times(theta), instance.penalised.times(theta)
    size = (surplus + difference * of_b) / D
    return Step(
        theta=theta,
        a=a,
        cuts=Pairs(np.where(newton.several, at.by_cut(ds) - change, 0.0), full),
        limits=Pairs(of_rows, aim_limits - at.limits.weight * of_rows),
        above=Pairs(size - of_b, aim_above - D_above * (size - of_b)),
        below=Pairs(size + of_b, aim_below - D_below * (size + of_b)),
        size=size,
        **told,
    )


def longest(value: np.ndarray, change: np.ndarray) -> float:
    """The largest step in [0, 1] that keeps value + step * change >= 0."""
    falling = change < 0
    return min(1.0, float(np.min(value[falling] / -change[falling], initial=np.inf)))
