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
    sizes, tops = instance.tops_of_sizes
    used[sizes] = used[tops].any(axis=0)
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
    at.rows.add_gram(M, fold.position, at.limits.weight)
    if instance.curved:
        _add_curvature(M.core, instance, at)
    D_above, D_below = at.above.weight, at.below.weight
    if len(D_above):
        instance.penalised.add_gram(M, fold.position, 4 * D_above * D_below / (D_above + D_below))
    diagonal = np.concatenate([M.core.diagonal(), M.diagonal])
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
    settings, several, slope, J = instance.settings, newton.several, newton.slope, len(instance.penalties)
    # That of a sample's only cut stays as it is; rows without a force are left without one.
    aims = [np.where(several, 0.0, at.cuts.multiplier), np.zeros(len(at.rows)), np.zeros(J), np.zeros(J)]
    predictor = _newton_step(instance, at, newton, *aims)

    every = np.ones(J, bool)
    families = [
        (*at.cuts, *predictor.cuts, several),
        (*at.limits, *predictor.limits, newton.live),
        (*at.above, *predictor.above, every),
        (*at.below, *predictor.below, every),
    ]
    families = families[: 4 if J else 2]
    products, primals, duals = zip(*(kernels.reach(*family) for family in families), strict=True)
    mu, primal, dual = sum(products) / newton.n_pairs, min(primals), min(duals)
    left = sum(kernels.products_after(*family, primal, dual) for family in families) / newton.n_pairs

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
    for aim, family in zip(aims, families, strict=False):
        kernels.correct(aim, *family, target, trusted * settings.second_order * target)
    if trusted:  # the cuts' slacks change by their curvature along the predictor, too
        bend = np.minimum(0.5 * slope * (1 - slope) * predictor.a**2, settings.bend * at.cuts.slack)
        aims[0] += np.where(several, at.cuts.weight * bend, 0.0)
    return _newton_step(instance, at, newton, *aims)._replace(target=target, mu=mu, ridge=ridge)


def _newton_step(
    instance: Instance,
    at: Iterate,
    newton: Newton,
    aim_cuts: np.ndarray,
    aim_limits: np.ndarray,
    aim_above: np.ndarray,
    aim_below: np.ndarray,
) -> Step:
    """The Newton step for the multipliers that each family aims at: those that would do with the present slacks."""
    E, data, J = instance.coordinates.E, instance.coordinates.data, len(instance.penalties)
    slack, mult = at.cuts
    penalties = at.above, at.below, aim_above, aim_below, instance.penalties
    g = kernels.gradient(E, data, at.pool, newton.slope, mult, slack, aim_cuts)
    g -= at.rows.transposed_times(aim_limits, E)
    if J:
        g += instance.penalised.transposed_times(kernels.penalty_forces(*penalties), E)
    g += instance.linear_row
    g[-1] += instance.problem.radius
    theta = solve(instance, newton, g)

    a = instance.arguments(theta, instance.scores(theta), at.pool)
    cuts = kernels.directions(a, theta[-1], data, at.pool, newton.slope, mult, slack, aim_cuts)
    of_rows, of_b = at.rows.times(theta), instance.penalised.times(theta)
    size, full_above, full_below = kernels.penalty_directions(of_b, *penalties) if J else (of_b, of_b, of_b)
    return Step(
        theta=theta,
        a=a,
        cuts=Pairs(*cuts),
        limits=Pairs(of_rows, aim_limits - at.limits.weight * of_rows),
        above=Pairs(size - of_b, full_above),
        below=Pairs(size + of_b, full_below),
        size=size,
    )
