"""What every solver returns: coefficients, their certificate, and what was done to get them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linprog
from scipy.special import logit

from wdrlr.certificate import lower_bound, upper_bound
from wdrlr.cuts import Cuts, data_cuts
from wdrlr.problem import Problem, log_loss


@dataclass(frozen=True, eq=False)
class Solution:
    """Coefficients with a certificate.

    Attributes
    ----------
    b : ndarray of shape (1 + n + k,)
    lam : float
        The multiplier at which the objective is attained; nan at radius 0.
    upper, lower : float
        The objective at b, evaluated by separation, and a lower bound on the optimal value.
    n_rounds, n_cuts : int
        Programs solved (iterations of Algorithm 1), and cuts in the last one.
    separation_seconds, solver_seconds : float
    bounds : tuple of (LB, UB)
        The bounds of Algorithm 1 after each round, as the paper defines them.
    """

    b: np.ndarray
    lam: float
    upper: float
    lower: float
    n_rounds: int = 0
    n_cuts: int = 0
    separation_seconds: float = 0.0
    solver_seconds: float = 0.0
    bounds: tuple[tuple[float, float], ...] = ()

    @property
    def gap(self) -> float:
        """Certified absolute gap: the objective at b is at most this much above the optimal value."""
        return self.upper - self.lower

    def report(self) -> str:
        """One line that says what was done."""
        return (
            f"objective {self.upper:.7f}, gap {self.gap:.1e}, {self.n_rounds} rounds, {self.n_cuts} cuts, "
            f"{self.separation_seconds:.2f} s in separation, {self.solver_seconds:.2f} s in the solver"
        )


def certify(
    problem: Problem, b: np.ndarray, cuts: Cuts, mass: np.ndarray, tol: float, keep_residue: bool = False
) -> Solution:
    """The solution with coefficients b, its bounds recomputed.

    Where the best constant model (all slopes 0) is optimal within ``tol``, that model is returned exactly, since
    what a solver finds there is residue of no meaning, whose signs would nevertheless classify. With ``keep_residue``
    it is left as it is, to see what such signs do to an experiment.
    """
    b = problem.feasible(b)
    upper, lam = upper_bound(problem, b)
    lower = lower_bound(problem, cuts, mass, b, upper)
    # Rounding can put a lower bound above an upper one by some units in the last place.
    solution = Solution(b, lam, upper, min(lower, upper))
    return solution if keep_residue else prefer_constant(problem, solution, tol)


def prefer_constant(problem: Problem, solution: Solution, tol: float) -> Solution:
    """The best constant model in place of the solution's, if it is as good or within ``tol`` of optimal."""
    b, objective = best_constant(problem)
    if objective > max(solution.upper, solution.lower + tol):
        return solution
    lam = np.nan if problem.radius == 0 else 0.0
    if problem.radius > 0 and np.isfinite(problem.metric.label_change):
        lam = abs(b[0]) / problem.metric.label_change
    return replace(solution, b=b, lam=lam, upper=objective, lower=min(solution.lower, objective))


def best_constant(problem: Problem) -> tuple[np.ndarray, float]:
    """The best coefficients whose slopes are all 0, shape (1 + n + k,), and their objective.

    Let P >= 1/2 be the weight of the larger class, c its label and b_0 = c beta with beta >= 0. The adversary can only
    change labels, and only those of the larger class pay, at most beta each for the price kappa: the objective is

        P L(-beta) + (1 - P) L(beta) + beta radius / kappa + penalty_0 beta    (radius < kappa P),

    minimal where sigmoid(beta) = P - radius / kappa - penalty_0, or at 0 if that is below 1/2. kappa is in units of the
    metric. Labels that cannot be changed are the case radius / kappa = 0; if there is then one class only and no
    penalty, b_0 has no best value and stays 0.
    """
    b = np.zeros(problem.n_coefficients)
    share = float(problem.w[problem.y > 0].sum())
    P = max(share, 1 - share)
    slope = problem.penalty[0] + problem.radius / problem.metric.label_change
    beta = 0.0
    if problem.fit_intercept and 0.5 < P - slope < 1:
        beta = min(float(logit(P - slope)), problem.coef_bound)
    b[0] = beta if share >= 0.5 else -beta
    return b, float(P * log_loss(-beta) + (1 - P) * log_loss(beta) + slope * beta)


def closed_form(problem: Problem) -> Solution | None:
    """b = 0, the objective log 2, if the radius is enough to make labels and features independent; else None.

    One way to do that is to change every label with probability 1/2, for kappa / 2. Another, for p >= 1, is this: let
    beta be the weight of the smaller class; change the labels of the larger one's surplus 1 - 2 beta with probability
    1/2; in the rest, move the features of both classes half-way to each other, which for a category costs the total
    variation distance of its levels between the classes, and for the numbers half the distance of their means:

        kappa (1/2 - beta) + beta (sum of total variations + ||mean_+ - mean_-|| / 2)      (over the metric's scale).

    Under such a distribution all coefficients have derivative 0 at b = 0, so no b has an objective below log 2.

    Labels that cannot be changed leave the best constant model. It is optimal from the radius on at which the features
    of the smaller class can be moved to those of the larger one,

        beta (sum of total variations + ||mean_+ - mean_-||)      (over the metric's scale),

    if then the slopes' derivatives, which are penalty_0 times the larger class's mean row, are within their penalties.
    """
    if problem.radius == 0:
        return None
    kappa = problem.metric.label_change
    variation, shift, beta = _class_distances(problem)
    if np.isfinite(kappa):
        cost = kappa * (0.5 - beta) + beta * (variation + shift / 2)
        if problem.radius < (kappa / 2 if problem.metric.p < 1 else min(kappa / 2, cost)):
            return None
        return Solution(np.zeros(problem.n_coefficients), 0.0, float(np.log(2)), float(np.log(2)))
    if problem.metric.p < 1 or beta == 0 or not problem.fit_intercept or problem.radius < beta * (variation + shift):
        return None
    b, objective = best_constant(problem)
    larger = problem.y == (1.0 if problem.w[problem.y > 0].sum() >= 0.5 else -1.0)
    mean_row = problem.w[larger] @ problem.design(np.flatnonzero(larger), problem.z[larger])
    mean_row /= problem.w[larger].sum()
    within = problem.penalty[0] * np.abs(mean_row[1:]) <= problem.penalty[1:]
    if abs(b[0]) >= problem.coef_bound or not within.all():
        return None
    return Solution(b, 0.0, objective, objective)


def _class_distances(problem: Problem) -> tuple[float, float, float]:
    """How the features of the two classes differ: the sum of total variations and the distance of the means (both over
    the metric's scale), and the weight of the smaller class; zeros if there is one class only."""
    plus, minus = problem.y > 0, problem.y < 0
    mass_plus, mass_minus = problem.w[plus].sum(), problem.w[minus].sum()
    beta = float(min(mass_plus, mass_minus))
    if beta == 0:
        return 0.0, 0.0, 0.0
    w_plus, w_minus = problem.w[plus] / mass_plus, problem.w[minus] / mass_minus
    variation = 0.0
    for j, levels in enumerate(problem.n_levels):
        difference = np.bincount(problem.z[plus, j], w_plus, levels) - np.bincount(problem.z[minus, j], w_minus, levels)
        variation += np.abs(difference).sum() / 2
    shift = problem.metric.numeric_distance(w_plus @ problem.x[plus] - w_minus @ problem.x[minus])
    return variation / problem.metric.scale, shift, beta


def is_separable(problem: Problem) -> bool:
    """Whether the infimum of plain logistic regression is not attained on these data, by linear programming.

    That is so iff there is a direction d with y_i f_d(x_i, z_i) >= 0 for all samples and > 0 for some: the data are
    separable, or quasi-separable if some are 0 (Albert and Anderson 1984).
    """
    cuts = data_cuts(problem, False)
    margins = np.unique(-cuts.rows(problem), axis=0)
    scale = np.abs(margins).max(axis=0)
    margins = margins / np.where(scale > 0, scale, 1.0)
    found = linprog(-margins.mean(axis=0), A_ub=-margins, b_ub=np.zeros(len(margins)), bounds=(-1, 1), method="highs")
    return bool(found.status == 0 and -found.fun > 1e-9)
