"""The smallest radius at which the adversary makes all slopes 0: the counterpart of the Lasso's largest penalty."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from scipy.special import expit

from wdrlr import conic
from wdrlr.closed_form import best_constant
from wdrlr.cuts import Cuts, initial_cuts, join
from wdrlr.metric import DUAL_NORMS
from wdrlr.problem import Problem
from wdrlr.separation import candidates, changed


def largest_useful_radius(problem: Problem) -> float:
    """The smallest radius at which all slopes are 0 at the optimum; ``problem.radius`` itself plays no role.

    Let b be the best constant model at a large radius (b = 0, or the log-odds if labels cannot be changed), and t_c
    the slope of the log-loss at cut c there. The multiplier is 0, and the derivative in a direction (d, 1) of the
    coefficients and the multiplier is radius + h(d) with

        h(d) = sum_i w_i max_c [ t_c A_c d - cost_c ] + sum_j penalty_j |d_j|,    metric.dual_norm(d_N) <= 1,

    so b is optimal iff radius >= -min h. That is a linear program (a second-order cone program for the l2 norm and
    n >= 2), solved exactly by cuts from Algorithm 2, for every p. In terms of distributions: the least transport cost
    that makes every feature useless for predicting the label.

    With a finite kappa and classes of unequal size, models with b_0 != 0 and slopes 0 can be optimal below that
    radius; see ``_with_intercept``.
    """
    radius = max(0.0, -_steepest(problem))
    return min(radius, _with_intercept(problem, radius))


def _steepest(problem: Problem) -> float:
    """min h(d), by adding the most violated cut of every sample and label until there is none."""
    # Any radius but 0, where nothing can be changed; and no bound, which is not active at slopes 0.
    probe = replace(problem, radius=1.0, coef_bound=np.inf)
    constant = np.zeros(probe.n_coefficients)
    if np.isinf(probe.metric.label_change):
        constant = best_constant(probe)
    slope = {flipped: expit((1 if flipped else -1) * probe.y * constant[0]) for flipped in probe.label_flips}
    # Too few cuts leave the direction unbounded: it is kept in a box until the cuts found keep it smaller.
    cuts, box = initial_cuts(probe), 100.0
    known = set(cuts.keys())
    while True:
        d, s, value = _minimise(probe, cuts, slope, box)
        found = []
        for flipped in probe.label_flips:
            cand = candidates(probe, d, flipped)
            values = slope[flipped][:, None] * cand.argument - cand.cost
            best = np.argmax(values, axis=1)
            violated = np.flatnonzero(values[np.arange(probe.n_samples), best] > s + 1e-9 * max(1.0, np.abs(d).max()))
            z = changed(probe, cand, best)[violated]
            found.append(Cuts(violated, z, np.full(len(violated), flipped)))
        new = join(*found)
        new = new[np.array([key not in known for key in new.keys()], dtype=bool)]
        if len(new):
            cuts = join(cuts, new)
            known.update(new.keys())
        elif np.abs(d).max(initial=0.0) >= box * (1 - 1e-9) and box < 1e9:
            box *= 100
        else:
            return value


def _minimise(problem: Problem, cuts: Cuts, slope: dict, box: float) -> tuple[np.ndarray, np.ndarray, float]:
    """min w.s + penalty.|d| over the cuts s_i >= t_c A_c d - cost_c and dual_norm(d_N) <= 1."""
    p, n, N, C = problem.n_coefficients, problem.n_numeric, problem.n_samples, len(cuts)
    t = np.where(cuts.flipped, slope.get(True, slope[False])[cuts.sample], slope[False][cuts.sample])
    rows, costs = t[:, None] * cuts.rows(problem), cuts.costs(problem)
    if n > 1 and problem.metric.norm == "l2":
        import cvxpy as cp  # not at the top: only this branch needs it

        d, s = cp.Variable(p), cp.Variable(N)
        limits = [rows @ d - s[cuts.sample] <= costs, cp.abs(d) <= box]
        limits.append(problem.metric.scale * cp.pnorm(d[1 : 1 + n], DUAL_NORMS["l2"]) <= 1)
        program = cp.Problem(cp.Minimize(problem.w @ s + problem.penalty @ cp.abs(d)), limits)
        conic.solve(program, "CLARABEL")
        return d.value, s.value, float(program.value)
    # d = plus - minus, so that |d| is linear; the variables are plus, minus, s.
    epigraph = sp.csr_array((-np.ones(C), (np.arange(C), cuts.sample)), shape=(C, N))
    matrix = sp.hstack([sp.csr_array(rows), sp.csr_array(-rows), epigraph], format="csr")
    largest = np.full(p, box)
    if not problem.fit_intercept:
        largest[0] = 0.0
    if n and (problem.metric.norm == "l1" or n == 1):
        largest[1 : 1 + n] = 1 / problem.metric.scale
    if n > 1 and problem.metric.norm == "linf":
        total = np.zeros((1, 2 * p + N))
        total[0, 1 : 1 + n] = total[0, p + 1 : p + 1 + n] = problem.metric.scale
        matrix, costs = sp.vstack([matrix, sp.csr_array(total)], format="csr"), np.append(costs, 1.0)
    bounds = [(0, top) for top in [*largest, *largest]] + [(None, None)] * N
    objective = np.concatenate([problem.penalty, problem.penalty, problem.w])
    found = linprog(objective, A_ub=matrix, b_ub=costs, bounds=bounds, method="highs")
    if found.status != 0:
        raise RuntimeError(f"the linear program for radius_max was not solved: {found.message}")
    return found.x[:p] - found.x[p : 2 * p], found.x[2 * p :], float(found.fun)


def _with_intercept(problem: Problem, radius: float) -> float:
    """The smallest radius at which a model with slopes 0 and b_0 != 0 is optimal; inf if there is none.

    Let the class of label c have weight P > 1/2. While radius < kappa (P - 1/2 - penalty_0), the best constant model
    has sigmoid(c b_0) = P - radius / kappa - penalty_0, and the adversary changes labels of that class only, of
    sample i with some probability f_i. All slopes are 0 iff such f balance every feature, which is linear in f and
    the radius: the smallest radius is the value of a linear program.
    """
    kappa = problem.metric.label_change
    share = float(problem.w[problem.y > 0].sum())
    c = 1.0 if share > 0.5 else -1.0
    majority, P, penalty = problem.y == c, max(share, 1 - share), problem.penalty
    if not problem.fit_intercept or np.isinf(kappa) or P - 0.5 - penalty[0] <= 0:
        return np.inf
    if radius > kappa * (P - 0.5 - penalty[0]) * (1 + 1e-9):
        return np.inf  # b = 0 is the best constant model there, and it is not optimal just below ``radius``
    features = problem.design(np.arange(problem.n_samples), problem.z)[:, 1:]
    mean_major = problem.w[majority] @ features[majority]
    mean_minor = problem.w[~majority] @ features[~majority]
    # (1 - sigma) mean_major - sigma mean_minor - sum_i w_i f_i x_i within the penalties, sigma = P - penalty_0 - s.
    weighted = (problem.w[majority][:, None] * features[majority]).T
    balance = np.column_stack([mean_major + mean_minor, -weighted])
    constant = (1 - P + penalty[0]) * mean_major - (P - penalty[0]) * mean_minor
    found = linprog(
        np.r_[1.0, np.zeros(majority.sum())],
        A_ub=np.vstack([balance, -balance]),
        b_ub=np.concatenate([penalty[1:] - constant, penalty[1:] + constant]),
        A_eq=[np.r_[-1.0, problem.w[majority]]],
        b_eq=[0.0],
        bounds=[(0, P - 0.5 - penalty[0]), *[(0, 1)] * int(majority.sum())],
        method="highs",
    )
    return kappa * found.fun if found.status == 0 else np.inf
