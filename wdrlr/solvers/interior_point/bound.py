"""Step 4: a lower bound, from the masses and slopes after the full Newton step.

The argument is that of ``certificate``: masses that sum to w_i a sample, slopes t in [0, 1], the value sum mass H(t).
The balance r (in terms of b) may stay within the penalties; the numbers' part may cost what the masses leave of the
radius; what is left over is charged at the largest |b_j| and lam that the objective allows, or at the box, or cancelled
by moving mass, for which see ``kernels.absorb``. Up to ``repairs`` times, the balance is corrected through the Newton
matrix.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wdrlr.model.certificate import DualPoint
from wdrlr.solvers.dual_repair import reserve, residual_charge
from wdrlr.solvers.interior_point import kernels
from wdrlr.solvers.interior_point.instance import LOG_2, Instance, Iterate
from wdrlr.solvers.interior_point.newton import Newton, Step, solve


class Dual(NamedTuple):
    """What is behind a lower bound: masses and v = mass * slope of the cuts, and how they are to be read."""

    pool: kernels.Pool
    mass: np.ndarray  # (C,)
    v: np.ndarray  # (C,)
    shares: np.ndarray  # (T,): over which levels the mass at a top or bottom is spread
    wall: np.ndarray  # (1 + n + k,): the force of the box
    moved: tuple | None = None  # the changes of ``kernels.absorb``, to be carried out


class Bounds(NamedTuple):
    """The best so far: the objective and its theta, and the lower bound and what is behind it."""

    upper: float
    best: np.ndarray
    lower: float = 0.0
    dual: Dual | None = None


def bound_below(instance: Instance, at: Iterate, newton: Newton, step: Step, bounds: Bounds) -> Bounds:
    """The bounds, the lower one raised if the step's dual point is better."""
    problem, coordinates, tol = instance.problem, instance.coordinates, instance.tol
    upper = min(bounds.upper, LOG_2) if instance.tilt is None else instance.tilt.budget
    penalty = problem.balance_limits
    radius = problem.radius
    if instance.bounds[1].any():
        settings = instance.settings
        spared = reserve(problem, at.theta[-1], loss=settings.reserve_of_tol * tol, share=settings.reserve_of_radius)
        radius -= spared
    curvature = at.cuts.multiplier * newton.slope * (1 - newton.slope)
    mass, v = step.cuts.multiplier.copy(), step.cuts.multiplier * newton.slope + curvature * step.a
    force = np.where(newton.live, np.maximum(step.limits.multiplier, 0.0), 0.0)

    def charge_for(r: np.ndarray, wall: np.ndarray, spent: float) -> tuple[float, np.ndarray, float]:
        return residual_charge(problem, instance.bounds, penalty, r, wall, spent, radius, upper)

    for repairs_left in range(instance.settings.repairs, -1, -1):
        mass, v, entropy, spent, balance = kernels.dual_point(coordinates.E, coordinates.data, at.pool, mass, v)
        shares = instance.tops.shares(force)
        r, wall = _balance_of_b(instance, at, balance, force, shares)
        charge, left, spent_with_numbers = charge_for(r, wall, spent)
        if entropy - charge > bounds.lower:
            dual = Dual(at.pool, mass, v, shares, wall)
            bounds = bounds._replace(lower=entropy - charge, dual=dual)
        hopeless = bounds.upper - entropy > tol
        if problem.radius > 0 and not hopeless and bounds.upper - bounds.lower > tol:
            carried = np.clip(r, -penalty, penalty) + wall
            excess = coordinates.b_of_theta.transposed_times(r - carried, coordinates.E)
            gained, paid, rest, *changes = kernels.absorb(excess, coordinates.data, instance.costs, at.pool, mass, v)
            if np.isfinite(paid):
                carried += coordinates.on_b(rest[: coordinates.n_scores])
                charge = charge_for(carried, wall, spent + paid)[0]
                if entropy + gained - charge > bounds.lower:
                    dual = Dual(at.pool, mass, v, shares, wall, tuple(changes))
                    bounds = bounds._replace(lower=entropy + gained - charge, dual=dual)
        if bounds.upper - bounds.lower <= tol or hopeless or not repairs_left:
            break
        g = coordinates.b_of_theta.transposed_times(left - wall, coordinates.E)
        g[-1] = min(radius - spent_with_numbers, 0.0)
        repair = solve(instance, newton, g)
        a = instance.arguments(repair, instance.scores(repair), at.pool)
        slack, mult = at.cuts
        _, repaired = kernels.directions(a, repair[-1], coordinates.data, at.pool, newton.slope, mult, slack, mass)
        v = v + newton.slope * (repaired - mass) + curvature * a
        mass = repaired
        eased = at.limits.weight * at.rows.times(repair)
        force = np.where(newton.live, np.maximum(force - eased, 0.0), 0.0)
    return bounds


def _balance_of_b(
    instance: Instance, at: Iterate, balance: np.ndarray, force: np.ndarray, shares: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The balance in terms of b, mass at tops and bottoms spread over their levels, and the force of the box.

    Both of shape (1 + n + k,).
    """
    tops, coordinates = instance.tops, instance.coordinates
    for some in (slice(tops.n_sizes, tops.n_rows), slice(0, tops.n_sizes)):
        if some.start < some.stop:
            back = np.zeros(len(at.rows))
            back[some] = (-tops.sign * balance[tops.column] * shares)[some]
            balance = balance + at.rows.transposed_times(back, coordinates.E)
    r = coordinates.on_b(balance[: coordinates.n_scores]) + instance.linear
    wall = np.zeros_like(r)
    wall[instance.bounded] = force[instance.box][1::2] - force[instance.box][::2]
    return r, wall


def as_dual_point(instance: Instance, dual: Dual) -> DualPoint:
    """What ``certificate`` reads: the same in terms of the problem."""
    data, kept = instance.coordinates.data, instance.coordinates.kept
    mass, v = dual.mass.copy(), dual.v.copy()
    sample, start, feature, level = kernels.changed_levels(dual.pool, data)
    above, flipped = dual.pool.sign > 0, dual.pool.sign * data.y[sample] > 0  # above: a = f
    if dual.moved is not None:
        bent, dv, cut, to, amount = dual.moved
        if bent >= 0:
            v[bent] += dv
        taken = amount * v[cut] / mass[cut]
        np.subtract.at(mass, cut, amount)
        np.subtract.at(v, cut, taken)
        j = np.searchsorted(data.offsets, to, side="right") - 1
        mass, v = np.concatenate([mass, amount]), np.concatenate([v, taken])
        above = np.concatenate([above, above[cut]])
        sample, flipped = np.concatenate([sample, sample[cut]]), np.concatenate([flipped, flipped[cut]])
        start = np.concatenate([start, start[-1] + 1 + np.arange(len(cut))])
        feature, level = np.concatenate([feature, j]), np.concatenate([level, to - data.offsets[j]])
    mixtures = _mixtures(instance, dual.shares)
    level = np.where(level < 0, np.repeat(np.where(above, -1, -2), np.diff(start)), level)
    return DualPoint(kept[sample], flipped, mass, v, start, feature, level, mixtures, dual.wall)


def _mixtures(instance: Instance, shares: np.ndarray) -> np.ndarray:
    """Where mass at tops (row 0) and at bottoms goes, as in ``DualPoint``; shape (2, sum(n_levels))."""
    tops, problem = instance.tops, instance.problem
    mixtures = np.zeros((2, sum(problem.n_levels)))
    plain = tops.level >= 0
    mixtures[tops.side[plain], tops.level[plain]] = shares[plain]
    mean = np.zeros(problem.level_matrix.shape[1])  # of the code at the top
    mean[instance.coordinates.size >= 0] = shares[: tops.n_sizes].reshape(-1, 2) @ [1.0, -1.0]
    for j in problem.coded:
        code = np.append(mean[problem.dummies(j)], 0.0)
        mixtures[:, problem.levels(j)] = np.array([code, -code])
    return mixtures
