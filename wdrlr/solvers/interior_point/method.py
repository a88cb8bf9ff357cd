"""The tailored solver: an interior-point method for p = 1 with Algorithm 2 inside.

docs/interior_point.md derives it; its steps are numbered there as here. The problem is that of ``instance``, in the
coordinates of ``kernels``.

    1. start with b = 0, or near a better start, and the worst cut of each label of each sample
    repeat
        2. the Newton matrix with s, slacks and multipliers eliminated; one Cholesky factorisation
        3. a predictor step sets the target tau, a corrector step aims at it with second-order terms
        4. lower bound: masses and slopes after the full step, balanced
        5. shorten the step until the cuts that Algorithm 2 finds at the trial point violate s by no more than a share
           of the complementarity; failing that, stay, with the cuts found. Upper bound: F at the trial points
        6. move: multipliers and slacks are clipped one by one, s_i is raised above new cuts, idle cuts leave
    until upper - lower <= tol, and ``certificate.check`` agrees

The bounds in the loop steer the method and say when to ask for a certificate; it is the certificate's that are
returned. Nothing of order N is factorised: the matrix has an order of 2 + n + k, plus two for each feature with tops
and one for each size, and the cost of a step is linear in N.
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from wdrlr.model.certificate import DualPoint
from wdrlr.model.objective import Objective, objective
from wdrlr.model.problem import Problem
from wdrlr.model.threads import on_one_thread
from wdrlr.solvers.closed_form import optimal_constant
from wdrlr.solvers.interior_point import kernels
from wdrlr.solvers.interior_point.bound import Bounds, as_dual_point, bound_below
from wdrlr.solvers.interior_point.coordinates import Coordinates
from wdrlr.solvers.interior_point.instance import LOG_2, Instance, Iterate, Pairs
from wdrlr.solvers.interior_point.newton import Newton, Step, in_use, linearise, predict_and_correct
from wdrlr.solvers.interior_point.search import Trial, raised, search
from wdrlr.solvers.interior_point.settings import SETTINGS, Settings
from wdrlr.solvers.solution import Solution, Tilt, certified, certified_tilted

NEGLIGIBLE_LOSS = 0.1
"""Times tol: what all samples may weigh that are left out where the method got stuck with them."""


def solve_tailored(
    problem: Problem,
    *,
    tol: float = 1e-6,
    max_iter: int = 500,
    coordinates: Coordinates | None = None,
    start: Solution | None = None,
) -> Solution:
    """Minimise the objective of ``problem`` to a certified absolute gap of ``tol``.

    Parameters
    ----------
    problem : Problem
        With p = 1.
    tol : float
        Absolute gap of the objective, which is at most log 2 (the value of b = 0).
    max_iter : int
        Largest number of Newton systems of an attempt. If it is reached the gap of the solution is above ``tol``.
    coordinates : Coordinates or None
        Those of a problem with the same data and coding, to save making them again.
    start : Solution or None
        That of a problem with as many coefficients, to start near it unless b = 0 is better. The result is the same
        within ``tol``.

    Raises
    ------
    ValueError
        If p is not 1.
    """
    if problem.metric.p != 1:
        raise ValueError(f"the tailored solver needs p = 1, not {problem.metric.p}; use 'column-constraint'.")
    began = perf_counter()
    known = optimal_constant(problem)
    if known is not None:
        solution = certified(problem, known[0], [known[1]], tol)
        if solution.gap <= tol:
            return _timed(solution, began)
    coordinates = coordinates or Coordinates(problem)
    solution, _ = minimise(problem, coordinates, tol, max_iter, start)

    def again(coordinates: Coordinates, max_iter: int, start: Solution | None = None) -> Solution:
        """The solution, or that of another attempt if its gap is smaller."""
        return min(solution, minimise(problem, coordinates, tol, max_iter, start)[0], key=lambda found: found.gap)

    if start is not None and not solution.gap <= tol:  # a start can lie where the method gets stuck
        solution = again(coordinates, max_iter)
    if not solution.gap <= tol and solution.n_rounds < max_iter and solution.upper < LOG_2:  # it can have strayed
        solution = again(coordinates, max_iter - solution.n_rounds, solution)
    light = NEGLIGIBLE_LOSS * tol / problem.n_samples
    if not solution.gap <= tol and problem.w.min() < light:
        solution = again(Coordinates(problem, light), max_iter)
    return _timed(solution, began)


def _timed(solution: Solution, began: float) -> Solution:
    """With the seconds since then, but for those of its certificate."""
    return replace(solution, solver_seconds=perf_counter() - began - solution.certificate_seconds)


@on_one_thread
def minimise(
    problem: Problem,
    coordinates: Coordinates,
    tol: float,
    max_iter: int,
    start: Solution | None = None,
    settings: Settings = SETTINGS,
    tilt: Tilt | None = None,
) -> tuple[Solution, list[DualPoint]]:
    """The loop of the module's docstring, begun at a start or at b = 0.

    It ends where the certificate is within the tolerance, after ``max_iter`` steps, where a step is not finite, or
    after ``Settings.patience`` steps without progress. With the solution comes the dual point behind its lower bound,
    if there is one.

    With a tilt it is the tilted objective that is minimised and bounded, and the loop ends below ``Tilt.least``, too.
    """
    instance = Instance(problem, coordinates, tol, settings, tilt)
    known = 0.0 if tilt is None else -np.inf
    with np.errstate(all="ignore"):  # what is not finite ends the method
        at = first_iterate(instance, start)
        bounds = Bounds(np.inf, at.theta, known)
        least, improved, n_steps = np.inf, 0, 0  # the smallest gap but for small improvements, and its step
        while True:
            n_steps += 1
            newton = linearise(instance, at)
            step = predict_and_correct(instance, at, newton, bounds.upper)
            stuck = not (np.isfinite(step.theta).all() and np.isfinite(step.cuts.multiplier).all())
            if not stuck:
                bounds = bound_below(instance, at, newton, step, bounds)
                trial, bounds = search(instance, at, newton, step, bounds)
            if bounds.upper - bounds.lower < settings.progress * least:
                least, improved = bounds.upper - bounds.lower, n_steps
            last = stuck or n_steps == max_iter or n_steps - improved > settings.patience
            last |= tilt is not None and bounds.upper < tilt.least
            if last or bounds.upper - bounds.lower <= tol:
                b = coordinates.b_of_theta.times(bounds.best)
                duals = [] if bounds.dual is None else [as_dual_point(instance, bounds.dual)]
                told: dict[str, Any] = {"n_rounds": n_steps, "n_cuts": at.pool.n_cuts}
                if tilt is None:
                    lam = bounds.best[-1] * instance.problem.radius / (problem.radius or 1.0)  # in its units
                    guess = Objective(bounds.upper, 0.0, lam)
                    solution = certified(problem, b, duals, tol, guess=guess, **told)
                else:
                    solution = certified_tilted(problem, b, duals, tilt, **told)
                if last or solution.gap <= tol:
                    return solution, duals
                bounds = bounds._replace(upper=solution.upper, lower=max(solution.lower, known))
            prune = n_steps % settings.prune_every == 0 and n_steps - improved < settings.prune_patience
            at = move(instance, at, newton, step, trial, prune)


# ------------------------------------------------------------ step 1


def first_iterate(instance: Instance, start: Solution | None) -> Iterate:
    """Step 1: b = 0, or the start where that is better; the worst cuts; multipliers that aim at products tau."""
    settings, data = instance.settings, instance.coordinates.data
    (theta, is_near), w = _first_theta(instance, start), data.w
    scores = instance.scores(theta)
    tau = (settings.start_tau if is_near else settings.first_tau) / len(w)
    empty = kernels.empty_pool(len(w))
    _, owner, new = instance.separate(theta, scores, np.full(len(w), -np.inf), empty)
    pool, _ = kernels.merge(empty, np.zeros(0, bool), owner, new)
    value = instance.values(theta, scores, pool)
    s = np.maximum.reduceat(value, pool.start[:-1]) + tau / w
    slack = s.repeat(pool.counts) - value
    if is_near:  # then there is no need of cuts that would soon be pruned
        keep = slack < settings.prune_slack * (tau / w).repeat(pool.counts)
        pool, old = kernels.merge(pool, keep, np.zeros(0, np.int32), empty)
        slack = slack[old]
    rows = instance.turned(instance.rows, theta)
    of_rows = _above_rounding(instance, tau, rows.values(theta), instance.most)
    b = instance.penalised.times(theta)
    u = np.abs(b) + 2 * tau / instance.penalties
    above, below = u - b, u + b
    at = Iterate(
        theta=theta,
        scores=scores,
        s=s,
        tau=tau,
        pool=pool,
        cuts=Pairs(slack, _normalised(w, pool, tau / slack)),
        rows=rows,
        most=instance.most,
        limits=Pairs(of_rows, np.minimum(tau / of_rows, instance.most)),
        b=b,
        above=Pairs(above, instance.penalties * below / (2 * u)),
        below=Pairs(below, instance.penalties * above / (2 * u)),
        ridge=settings.start_ridge if is_near else settings.ridge,
    )
    return _without_idle_forces(instance, at)


def _first_theta(instance: Instance, start: Solution | None) -> tuple[np.ndarray, bool]:
    """theta, and whether it is near the start."""
    problem, coordinates, settings, tops = instance.problem, instance.coordinates, instance.settings, instance.tops
    theta, is_near = np.zeros(coordinates.E), False
    theta[-1] = settings.no_change
    if problem.radius > 0:
        theta[-1] = settings.first_lam / max(instance.change_cost if problem.n_categorical else 1.0, problem.radius)
    if start is not None:
        inside = settings.start_inside * problem.coef_bound
        b = np.clip(problem.feasible(start.b), -inside, inside)
        value, lam = objective(problem, b)
        is_near = value < LOG_2  # else b = 0 is the better start
        if is_near:
            theta[: coordinates.n_scores] = coordinates.of_b(b)
            if problem.radius > 0:  # a little room above the dual norm, which is often the best lam
                theta[-1] = max(
                    lam, instance.dual_norm(theta) + settings.start_tau / len(problem.w) / instance.most[-1]
                )
    if tops.n_rows:
        first = tops.start
        for _ in range(2 if tops.n_sizes else 1):  # sizes, then tops of sums of these
            score = tops.sign * theta[tops.column] - instance.rows.times(theta)[: tops.n_rows]
            theta[tops.column[first]] = tops.sign[first] * (tops.highest(score) + settings.first_top)
    if instance.by_sizes:
        size, movable = coordinates.number_size, np.flatnonzero(np.isfinite(instance.x_scale))
        theta[size] = np.abs(theta[1 + movable])
        theta[size] += 0.5 * instance.rows.values(theta)[-1] / len(size) * instance.x_scale[movable]
    return theta, is_near


# ------------------------------------------------------------ step 6


def move(instance: Instance, at: Iterate, newton: Newton, step: Step, trial: Trial, prune: bool) -> Iterate:
    """Step 6: go to the trial point, or stay and take its cuts in; prune where that is asked for."""
    if len(trial.tangents):
        most = np.append(at.most, np.full(len(trial.tangents), instance.problem.radius / instance.toll))
        at = at._replace(rows=at.rows.joined(trial.tangents), most=most)
    to = _moved(instance, at, step, trial) if trial.accepted else at._replace(length=0.0, ridge=step.ridge)
    to = _with_limits(instance, to, newton, step, trial)
    to = _with_cuts(instance, to, trial)
    if trial.accepted and prune:
        to = _pruned(instance, to, step, trial)
    return _without_idle_forces(instance, _with_lone_cuts(instance, to))


def _moved(instance: Instance, at: Iterate, step: Step, trial: Trial) -> Iterate:
    """The iterate at the trial point: theta, cuts and penalties; multipliers keep a part of what they were."""
    settings = instance.settings
    least = settings.least_multiplier
    mult = np.maximum(step.cuts.multiplier, least * at.cuts.multiplier)
    b, u = instance.penalised.times(trial.theta), at.b + at.above.slack + trial.length * step.size
    edge = np.maximum(b + settings.least_slack * at.above.slack, -b + settings.least_slack * at.below.slack)
    u = np.maximum(u, edge)
    above_p = np.maximum(step.above.multiplier, least * at.above.multiplier)
    below_p = np.maximum(step.below.multiplier, least * at.below.multiplier)
    above, below = (_above_rounding(instance, step.target, slack, instance.penalties) for slack in (u - b, u + b))
    return at._replace(
        theta=trial.theta,
        scores=trial.scores,
        tau=step.target,
        length=trial.length,
        ridge=step.ridge,
        cuts=Pairs(trial.slack, _normalised(instance.coordinates.data.w, at.pool, mult)),
        b=b,
        above=Pairs(above, above_p * instance.penalties / (above_p + below_p)),
        below=Pairs(below, below_p * instance.penalties / (above_p + below_p)),
    )


def _with_limits(instance: Instance, at: Iterate, newton: Newton, step: Step, trial: Trial) -> Iterate:
    """Slacks of the rows at theta, and their multipliers; what had no force, or was not there, aims at tau."""
    rows = instance.turned(at.rows, at.theta)
    slack = _above_rounding(instance, at.tau, rows.values(at.theta), at.most)
    before = at.limits.multiplier
    kept = before
    if trial.accepted:
        kept = np.maximum(step.limits.multiplier, instance.settings.least_multiplier * before)
    multiplier = at.tau / slack
    multiplier[: len(before)] = np.where(newton.live & (before > 0), kept, multiplier[: len(before)])
    return at._replace(rows=rows, limits=Pairs(slack, multiplier))


def _with_cuts(instance: Instance, at: Iterate, trial: Trial) -> Iterate:
    """The iterate with the trial's pool: s is raised above the new cuts."""
    settings, fresh = instance.settings, trial.old < 0
    slack, mult = (np.where(fresh, 0.0, values[trial.old]) for values in at.cuts)
    at = at._replace(pool=trial.pool, cuts=Pairs(slack, mult))
    value = instance.values(at.theta, at.scores, at.pool)
    s, mass = raised(instance, at, value, slack, fresh), at.by_cut(instance.coordinates.data.w)
    slack = np.maximum(at.by_cut(s) - value, settings.slack_floor * at.tau / mass)
    mult[fresh] = np.minimum(at.tau / slack[fresh], settings.fresh_mass * mass[fresh])
    return at._replace(s=s, cuts=Pairs(slack, mult))


def _pruned(instance: Instance, at: Iterate, step: Step, trial: Trial) -> Iterate:
    """The iterate without the cuts that have little mass and much slack."""
    settings, (slack, mult) = instance.settings, at.cuts
    mass = at.by_cut(instance.coordinates.data.w)
    largest = at.by_cut(np.maximum.reduceat(mult, at.pool.start[:-1]))
    # A cut whose slack is small against its last change may be back in the next step.
    restless = (trial.old < 0) | (slack < settings.restless * np.abs(step.cuts.slack[trial.old]))
    # Mass that is small against w_i can be large against what the radius allows.
    heavy = (mult > settings.prune_mass * mass) | (mult * at.pool.cost > settings.prune_mass * instance.problem.radius)
    keep = restless | heavy | (slack < settings.prune_slack * at.tau / mass) | (mult >= largest)
    none = kernels.empty_pool(0)
    pool, old = kernels.merge(at.pool, keep, np.zeros(0, np.int32), none)
    return at._replace(pool=pool, cuts=Pairs(slack[old], mult[old]))


def _with_lone_cuts(instance: Instance, at: Iterate) -> Iterate:
    """A sample's only cut has all its mass, and the slack that goes with it."""
    w, lone = instance.coordinates.data.w, at.pool.counts == 1
    cut = at.pool.start[:-1][lone]
    s, (slack, mult) = at.s.copy(), (values.copy() for values in at.cuts)
    mult[cut] = w[lone]
    s[lone] += at.tau / w[lone] - slack[cut]
    slack[cut] = at.tau / w[lone]
    return at._replace(s=s, cuts=Pairs(slack, mult))


def _without_idle_forces(instance: Instance, at: Iterate) -> Iterate:
    """Rows of a top that no cut uses have no force."""
    if not instance.tops.n_rows:
        return at
    multiplier = at.limits.multiplier.copy()
    multiplier[: instance.tops.n_rows][~in_use(instance, at.pool)[1]] = 0.0
    return at._replace(limits=at.limits._replace(multiplier=multiplier))


def _above_rounding(instance: Instance, tau: float, slack: np.ndarray, most: np.ndarray) -> np.ndarray:
    """Slacks that rounding may have made 0 or less, lifted to a small part of what large multipliers leave."""
    return np.maximum(slack, instance.settings.slack_floor * tau / most)


def _normalised(w: np.ndarray, pool: kernels.Pool, mult: np.ndarray) -> np.ndarray:
    """Multipliers scaled to sum to w_i a sample."""
    return mult * (w / np.add.reduceat(mult, pool.start[:-1])).repeat(pool.counts)
