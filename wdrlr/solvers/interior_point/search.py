"""Step 5: shorten the step until the cuts found at the trial point fit under s; an upper bound on the way."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wdrlr.solvers.interior_point import kernels
from wdrlr.solvers.interior_point.bound import Bounds
from wdrlr.solvers.interior_point.coordinates import NO_ROWS, LinearRows
from wdrlr.solvers.interior_point.instance import Instance, Iterate
from wdrlr.solvers.interior_point.newton import Newton, Step


class Trial(NamedTuple):
    """A point on the way, and what was learnt there.

    ``pool`` has the iterate's cuts and those found; ``old`` says which of the iterate's each was, -1 for a new one.
    ``slack`` (C,) is what the iterate's cuts are to have at the point. ``tangents`` of the norm are to be added to the
    rows. ``accepted``: go there; else stay, with the new cuts.
    """

    theta: np.ndarray
    scores: kernels.Scores
    length: float
    slack: np.ndarray
    pool: kernels.Pool
    old: np.ndarray
    tangents: LinearRows
    accepted: bool


def search(instance: Instance, at: Iterate, newton: Newton, step: Step, bounds: Bounds) -> tuple[Trial, Bounds]:
    """The trial point to go to or to learn from, and the bounds with the best objective seen."""
    settings, w = instance.settings, instance.coordinates.data.w
    length = _first_length(instance, at, step)
    ceiling = instance.objective(at.theta, at.s) + newton.n_pairs * max(at.tau, step.mu)
    none_fresh = np.zeros(at.pool.n_cuts, bool)
    pool, old, tangents, n_halved = at.pool, np.arange(at.pool.n_cuts), NO_ROWS, 0
    while True:
        theta = at.theta + length * step.theta
        if not instance.problem.fit_intercept:
            theta[0] -= instance.intercept_row @ theta  # rounding
        theta[-1] = max(theta[-1], instance.dual_norm(theta))  # rounding
        _raise_tops(theta, instance, at, newton)
        tangents = _raise_lam(theta, instance, at, tangents)
        scores = instance.scores(theta)
        slack = np.maximum(at.cuts.slack + length * step.cuts.slack, settings.least_slack * at.cuts.slack)
        s = raised(instance, at, instance.values(theta, scores, at.pool), slack, none_fresh)
        worst, owner, new = instance.separate(theta, scores, s + step.target / w, pool)
        pool, before = kernels.merge(pool, np.ones(pool.n_cuts, bool), owner, new)
        old = np.where(before >= 0, old[before], -1)
        objective = instance.objective(theta, worst)
        if objective < bounds.upper and (at.rows.values(theta)[instance.box] >= 0).all():
            bounds = bounds._replace(upper=objective, best=theta.copy())
        violation = w @ np.maximum(worst - s, 0.0)
        allowed = settings.share_of_violation * (newton.n_pairs * at.tau)
        accepted = violation <= allowed and objective <= ceiling
        learnt = pool.n_cuts > at.pool.n_cuts
        accepted |= n_halved >= settings.halvings and not learnt
        if accepted or (n_halved >= settings.halvings_to_learn and learnt):
            return Trial(theta, scores, length, slack, pool, old, tangents, bool(accepted)), bounds
        length *= 0.5
        n_halved += 1


def raised(instance: Instance, at: Iterate, value: np.ndarray, slack: np.ndarray, fresh: np.ndarray) -> np.ndarray:
    """s (N,) for the values (C,) of the iterate's cuts and the slacks wanted, see ``kernels.raised``."""
    settings = instance.settings
    data, fresh_slack = instance.coordinates.data, settings.fresh_slack * at.tau
    return kernels.raised(value, slack, at.cuts.multiplier, fresh, data, at.pool, fresh_slack, settings.kept_slack)


def _first_length(instance: Instance, at: Iterate, step: Step) -> float:
    """The longest step to try: inside the rows but those of tops that make way, and with lam above 0."""
    slack = at.rows.values(at.theta)
    slack = np.where(slack > 0, slack, at.limits.slack)
    hard, lam = np.ones(len(slack), bool), at.theta[-1]
    hard[: instance.tops.n_rows] = instance.tops.firm & (at.limits.multiplier[: instance.tops.n_rows] > 0)
    length = instance.settings.before_wall * kernels.longest(slack, step.limits.slack, hard)
    if length * step.theta[-1] < -instance.settings.lam_fall * lam:
        length = -instance.settings.lam_fall * lam / step.theta[-1]
    return length


def _raise_tops(theta: np.ndarray, instance: Instance, at: Iterate, newton: Newton) -> None:
    """Tops rise, and bottoms fall, ahead of the scores of their levels (in place)."""
    tops, settings = instance.tops, instance.settings
    if not tops.n_rows:
        return
    column = tops.column[tops.start]
    sign = tops.sign[tops.start]
    # A wider margin would make fresh cuts that use the top raise s by a multiple of it.
    margin = min(settings.idle_top * theta[-1] * instance.change_cost, at.tau * len(at.s))
    for _ in range(2 if tops.n_sizes else 1):  # sizes, then tops of sums of these
        score = tops.sign * theta[tops.column] - at.rows.times(theta)[: tops.n_rows]
        edge = tops.highest(score + settings.least_slack * at.limits.slack[: tops.n_rows])
        ahead = np.where(newton.used[column], np.maximum(sign * theta[column], edge), tops.highest(score) + margin)
        theta[column] = sign * ahead


def _raise_lam(theta: np.ndarray, instance: Instance, at: Iterate, tangents: LinearRows) -> LinearRows:
    """Raise lam (in place) above the dual norm by a margin; by one more tangent of the norm, if need be."""
    problem, n, toll = instance.problem, instance.problem.n_numeric, instance.toll
    slopes = instance.slopes(theta)
    if instance.curved:
        margin = instance.settings.least_slack * at.limits.slack[-1] / toll
        theta[-1] = max(theta[-1], instance.dual_norm(theta) + margin)
    if instance.by_sizes:
        short = at.rows.values(theta)[-1] - instance.settings.least_slack * at.limits.slack[-1]
        theta[-1] -= min(short, 0.0) / toll
    if not instance.by_tangents or not slopes.any():
        return tangents
    short = instance.dual_norm(theta) - theta[-1]
    nearest = np.concatenate([at.rows.values(theta)[instance.norm], tangents.values(theta)]).min()
    if -short * toll < 0.5 * nearest:
        theta[-1] = max(theta[-1], theta[-1] + short + at.tau / problem.radius)
        tangent = -instance.number_norm.steepest(slopes) / instance.x_scale
        index = [len(theta) - 1, *range(1, 1 + n)]
        tangents = tangents.joined(LinearRows([(index, [toll, *tangent], 0.0)]))
    return tangents
