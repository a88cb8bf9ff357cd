"""What every solver returns: coefficients, their certificate, and what was done to get them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog, minimize_scalar

from wdrlr.certificate import lower_bound, upper_bound
from wdrlr.cuts import Cuts, initial_cuts
from wdrlr.problem import Problem


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


def certify(problem: Problem, b: np.ndarray, cuts: Cuts, mass: np.ndarray, tol: float, **what_was_done) -> Solution:
    """The solution with coefficients b, its bounds recomputed.

    Where the best constant model (all slopes 0) is optimal within ``tol``, that model is returned exactly, since
    what a solver finds there is residue of no meaning, whose signs would nevertheless classify.
    """
    b = np.where(
        problem.fit_intercept | (np.arange(b.size) > 0), np.clip(b, -problem.coef_bound, problem.coef_bound), 0.0
    )
    upper, lam = upper_bound(problem, b)
    lower = lower_bound(problem, cuts, mass, b, upper)
    constant = best_constant(problem)
    constant_upper, constant_lam = upper_bound(problem, constant)
    if constant_upper <= max(upper, lower + tol):
        b, upper, lam = constant, constant_upper, constant_lam
    # Rounding can put a lower bound above an upper one by some units in the last place.
    return Solution(b, lam, upper, min(lower, upper), **what_was_done)


def best_constant(problem: Problem) -> np.ndarray:
    """The best coefficients whose slopes are all 0; shape (1 + n + k,).

    Without changes of labels and without a penalty on the intercept, b_0 is the log-odds of the labels. Else b_0 lies
    between 0 and the log-odds and minimises the objective of the two-sample problem with the weights of the classes.
    """
    b = np.zeros(problem.n_coefficients)
    positive = float(problem.w[problem.y > 0].sum())
    if not problem.fit_intercept or not 0 < positive < 1:
        return b
    log_odds = float(np.clip(np.log(positive / (1 - positive)), -problem.coef_bound, problem.coef_bound))
    if problem.label_flips == (False,) and problem.penalty[0] == 0:
        b[0] = log_odds
        return b
    two = Problem(
        x=np.zeros((2, 0)),
        z=np.zeros((2, 0), dtype=int),
        y=np.array([1.0, -1.0]),
        w=np.array([positive, 1 - positive]),
        n_levels=(),
        level_matrix=np.zeros((0, 0)),
        metric=problem.metric,
        radius=problem.radius,
        penalty=problem.penalty[:1],
    )

    def objective(b_0):
        return upper_bound(two, np.array([b_0]))[0]

    ends = sorted((0.0, log_odds))
    best = minimize_scalar(objective, bounds=ends, method="bounded", options={"xatol": 1e-10})
    b[0] = min((0.0, log_odds, float(best.x)), key=lambda b_0: (objective(b_0), abs(b_0)))
    return b


def closed_form(problem: Problem) -> Solution | None:
    """b = 0, the objective log 2, if the radius is enough to flip every label with probability 1/2; else None.

    That costs kappa / 2 (over the metric's scale), makes labels independent of the features, and so no model beats a
    coin. It is an optimal dual point with slopes 1/2, so the gap is 0 but for rounding.
    """
    if not (problem.radius > 0 and problem.radius >= problem.metric.label_change / 2):
        return None
    cuts = initial_cuts(problem)
    b = np.zeros(problem.n_coefficients)
    upper, lam = upper_bound(problem, b)
    lower = lower_bound(problem, cuts, problem.w[cuts.sample] / 2, b, upper)
    return Solution(b, lam, upper, min(lower, upper), n_cuts=len(cuts))


def is_separable(problem: Problem) -> bool:
    """Whether the infimum of plain logistic regression is not attained on these data, by linear programming.

    That is so iff there is a direction d with y_i f_d(x_i, z_i) >= 0 for all samples and > 0 for some: the data are
    separable, or quasi-separable if some are 0 (Albert and Anderson 1984).
    """
    cuts = initial_cuts(problem)[: problem.n_samples]
    margins = np.unique(-cuts.rows(problem), axis=0)
    scale = np.abs(margins).max(axis=0)
    margins = margins / np.where(scale > 0, scale, 1.0)
    found = linprog(-margins.mean(axis=0), A_ub=-margins, b_ub=np.zeros(len(margins)), bounds=(-1, 1), method="highs")
    return bool(found.status == 0 and -found.fun > 1e-9)
