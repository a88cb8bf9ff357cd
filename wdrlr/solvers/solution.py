"""What every solver returns: coefficients, their certificate, and what was done to get them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components

from wdrlr.model.certificate import Certificate, DualPoint, ambiguity, check, dual_value
from wdrlr.model.cuts import data_cuts
from wdrlr.model.objective import Objective, objective, objective_with_rounding
from wdrlr.model.problem import Problem
from wdrlr.solvers.closed_form import best_constant, constant_objective
from wdrlr.solvers.linear import minimise_linear
from wdrlr.solvers.open_slopes import settle

SEPARATED = 1e-9
"""A margin above this, in units of each column, is a margin; a solver of linear programs leaves less."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Coefficients with a certificate.

    Attributes
    ----------
    b : ndarray of shape (1 + n + k,)
    lam : float
        The multiplier at which the objective is attained; nan at radius 0.
    upper, lower : float
        The objective at b and a lower bound on the optimal value, both from ``certificate.check``; -inf where that
        found the lower bound above the objective, so that one of them is wrong.
    n_rounds, n_cuts : int
        Programs solved (iterations of Algorithm 1) or Newton systems, and cuts in the last one.
    separation_seconds, solver_seconds, certificate_seconds : float
        Of Algorithm 2 where it is called apart from the solver, of the solver, and of the certificate, which is in none
        of the others.
    bounds : tuple of (LB, UB)
        The bounds of Algorithm 1 after each round, as the paper defines them.
    ambiguity : float
        How far, on average over the samples, probabilities of coefficients with an objective of at most ``upper`` can
        be from those of b; see ``certificate.ambiguity``. 1 if nothing is known.
    out_of_time : bool
        Whether it is a time limit that ended the search.
    """

    b: np.ndarray
    lam: float
    upper: float
    lower: float
    n_rounds: int = 0
    n_cuts: int = 0
    separation_seconds: float = 0.0
    solver_seconds: float = 0.0
    certificate_seconds: float = 0.0
    bounds: tuple[tuple[float, float], ...] = ()
    ambiguity: float = 1.0
    out_of_time: bool = False

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


class Tilt(NamedTuple):
    """A term ``linear``.b (1 + n + k,) added to the objective, of interest where the objective is at most ``budget``.

    The sum may be unbounded below; what takes it below ``least`` is far outside the budget.
    """

    linear: np.ndarray
    budget: float
    least: float


def certified_tilted(
    problem: Problem, b: np.ndarray, dual_points: Sequence[DualPoint], tilt: Tilt, **record: Any
) -> Solution:
    """Coefficients b, made feasible, with the tilted objective there, and its lower bound within the budget or -inf."""
    b = problem.feasible(np.where(np.isfinite(b), b, 0.0))
    value, lam = objective(problem, b)
    lower = [dual_value(problem, dual, tilt.budget, b, tilt.linear) for dual in dual_points]
    return Solution(b=b, lam=lam, upper=value + float(tilt.linear @ b), lower=max(lower, default=-np.inf), **record)


def certified(
    problem: Problem,
    b: np.ndarray,
    dual_points: Sequence[DualPoint],
    tol: float,
    keep_residue: bool = False,
    guess: Objective | None = None,
    **record: Any,
) -> Solution:
    """The solution with coefficients b, made feasible, and the best of the lower bounds.

    Slopes that the data leave open are chosen by the rule of ``open_slopes``. Where the best constant model (all slopes
    0) is as good or optimal within ``tol``, that model is returned exactly, since what a solver finds there is residue
    of no meaning, whose signs would nevertheless classify. With ``keep_residue`` both are left as they are, to see what
    such signs do to an experiment.

    Parameters
    ----------
    guess
        What the solver takes the objective for. It saves evaluations, and nothing else depends on it.
    record
        The other attributes of the solution.
    """
    start = perf_counter()
    b = problem.feasible(np.where(np.isfinite(b), b, 0.0))
    if keep_residue:
        best = check(problem, b, *dual_points)
    else:
        b, best = _without_residue(problem, b, dual_points, tol, guess)
    lower = best.lower if best.lower <= best.upper else -np.inf
    if best.dual is not None and best.upper <= np.log(2.0):  # the bound is one where the objective is at most log 2
        record["ambiguity"] = ambiguity(problem, b, best.upper - lower, best.dual)
    record["certificate_seconds"] = perf_counter() - start
    return Solution(b=b, lam=best.lam, upper=best.upper, lower=lower, **record)


def _without_residue(
    problem: Problem, b: np.ndarray, dual_points: Sequence[DualPoint], tol: float, guess: Objective | None
) -> tuple[np.ndarray, Certificate]:
    """The coefficients that ``certified`` returns, and their certificate."""
    constant = best_constant(problem)
    value = constant_objective(problem, constant)

    def check_constant() -> Certificate:
        kappa = problem.metric.label_change  # the adversary gets |b_0| for it
        return check(
            problem, constant, *dual_points, at=objective_with_rounding(problem, constant, abs(constant[0]) / kappa)
        )

    known = check_constant() if guess is not None and value <= guess.value + tol else None
    if known is not None and known.lower <= known.upper <= known.lower + tol:
        return constant, known
    b, at = settle(problem, b, guess)
    best = check(problem, b, *dual_points, at=at)
    if (b != constant).any() and value <= max(best.upper, best.lower + tol):
        return constant, known or check_constant()
    return b, best


def separated(problem: Problem) -> np.ndarray:
    """Which samples the model separates, whatever the adversary does, by linear programming; bool (N,).

    At radius 0 a direction d with y_i f_d(x_i, z_i) >= 0 for all samples takes the loss of those with > 0 to 0, and so
    on for the other samples. If there are any, the infimum of the loss is not attained (Albert and Anderson 1984); it
    is that of the samples which no direction separates.

    With a radius the same holds of the directions that the adversary cannot touch, if labels cannot be changed: slopes
    of numbers that may not move, and scores that are the same for levels between which a feature may change. Others
    raise the multiplier or turn against a sample. (Where a level may be changed into another but not back, there can be
    further directions, which are not looked for.)
    """
    apart = _apart(problem)
    if apart is None:
        return np.zeros(problem.n_samples, dtype=bool)
    reach, same = apart
    margins, sample, scale = _margins(problem)
    left = np.ones(len(margins), dtype=bool)
    while left.any():
        rest = margins[left]
        found = minimise_linear(
            -rest.mean(axis=0),
            bounds=np.column_stack([-reach, reach]),
            A=-rest,
            limit=np.zeros(len(rest)),
            E=same / scale,
        )
        if found.status != 0 or -found.fun <= SEPARATED:
            break
        left[left] = rest @ found.x <= SEPARATED
    return ~left[sample]


def separating(problem: Problem, gone: np.ndarray) -> np.ndarray:
    """Which coefficients separate the samples that ``separated`` finds, by the shortest direction; bool (1 + n + k,).

    There is one direction for all of them: that of the first samples, long enough, plus that of the next ones, and so
    on. Of these directions the one with the smallest l1 norm, in units of each column and without the intercept, leaves
    out what contributes nothing. All False where none is found.
    """
    apart = _apart(problem)
    if apart is None or not gone.any():
        return np.zeros(problem.n_coefficients, dtype=bool)
    reach, same = apart
    margins, sample, scale = _margins(problem)
    needed = np.zeros(len(margins))
    needed[sample[gone]] = 1.0
    most, length = np.where(reach > 0, np.inf, 0.0), np.ones(len(reach))
    length[0] = 0.0
    found = minimise_linear(
        np.tile(length, 2),
        bounds=np.column_stack([np.zeros(2 * len(reach)), np.tile(most, 2)]),
        A=np.hstack([-margins, margins]),
        limit=-needed,
        E=np.hstack([same, -same]) / np.tile(scale, 2),
    )
    if found.status != 0:
        return np.zeros(problem.n_coefficients, dtype=bool)
    return np.abs(np.subtract(*np.split(found.x, 2))) > SEPARATED


def _margins(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows y_i (1, x_i, z_i) in units of each column, without repeats; the row of each sample; the units."""
    rows = -data_cuts(problem, False).rows(problem)
    scale = np.abs(rows).max(axis=0)
    scale[scale == 0] = 1.0
    margins, sample = np.unique(rows / scale, axis=0, return_inverse=True)
    return margins, sample.ravel(), scale


def _apart(problem: Problem) -> tuple[np.ndarray, np.ndarray] | None:
    """The directions that the adversary cannot touch; None if there is none but that of the intercept.

    Returns
    -------
    reach : ndarray of shape (1 + n + k,)
        1 for coefficients that may differ from 0, else 0.
    same : ndarray of shape (., 1 + n + k)
        Rows whose product with a direction must be 0: scores that must be equal.
    """
    n, n_levels, metric = problem.n_numeric, problem.n_levels, problem.metric
    reach, same = np.ones(problem.n_coefficients), np.zeros((sum(n_levels), problem.n_coefficients))
    if problem.radius == 0:
        return reach, same[:0]
    reach[1 : 1 + n] = ~metric.movable(n)
    touched = not reach[1 : 1 + n].any()
    for j, (K, costs) in enumerate(zip(n_levels, metric.level_costs or (1.0,) * len(n_levels), strict=True)):
        n_parts, part = connected_components(np.isfinite(np.broadcast_to(costs, (K, K))))
        touched &= n_parts == 1
        first = np.unique(part, return_index=True)[1][part]
        scores = problem.level_matrix[problem.levels(j)].toarray()
        same[problem.levels(j), 1 + n :] = scores - scores[first]
        if j in problem.coded and np.isfinite(costs):  # codes that are no levels
            reach[1 + n :][problem.dummies(j)] = 0.0
    return None if touched or len(problem.label_flips) > 1 else (reach, same[same.any(axis=1)])
