"""What the data leave open: the range of f at a point over all coefficients that are optimal within a tolerance.

    low, high = min, max  f_b(x, z)   subject to   F(b) <= budget,   b in the box,

F the objective of ``Problem``, attained near its minimum by a fit b*. Let phi(v) be the least F among the b with
f_b(x, z) = v: convex, and F(b*) at most a gap above its minimum. For any slope theta > 0,

    F(b) - theta f_b(x, z) >= D for all b with F(b) <= budget   implies   f_b(x, z) <= (budget - D) / theta

there. With the largest D that is an equality where theta is the slope of phi at the end. So each end takes a few fits
of the objective tilted by theta f, by the tailored solver, which differ in theta. Each of them gives both

- a value that is attained: the ray from b* to the minimiser is followed to where F, by Algorithm 2, reaches the budget;
- a value that nothing exceeds: D comes from ``certificate.dual_value``, and no solver is believed.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from wdrlr.model.cuts import Cuts, initial_cuts, join
from wdrlr.model.objective import objective
from wdrlr.model.problem import Problem
from wdrlr.model.separation import most_violated
from wdrlr.solvers.interior_point.coordinates import Coordinates
from wdrlr.solvers.interior_point.method import minimise
from wdrlr.solvers.linear import minimise_linear
from wdrlr.solvers.solution import Solution, Tilt

ACCURACY = 0.02
"""An end is settled where what is proved is at most this share farther from the fit than what is attained ..."""
NEGLIGIBLE = 1e-6
"""... or farther by this."""
MOST_FITS = 25
"""Fits for an end."""
MAX_STEPS = 150
"""Newton systems for a fit; most take 10 to 30."""
SHARE_OF_TOL = 0.01
"""The gap that the tilted fits aim at, times the tolerance."""
FIRST_WIDTH = 0.1
"""Distance of the first end from the fit that is tried."""
FARTHEST = 100.0
"""Times the tolerance: where a tilted objective is below that of the fit by this, its slope is far too large."""
LONGEST_RAY = 1024.0
"""How far beyond the minimiser of a tilted objective its ray is followed, times its distance from the fit."""
LARGEST_FACTOR = 100.0
"""Between the slopes of two fits."""
ESCAPES = 1e-6
"""A rise of f above this, in units of each column, is one; a linear program's tolerance allows less."""


class Ranges(NamedTuple):
    """Of f at Q points, each of shape (Q,); nan where time ran out.

    ``low`` and ``high`` are attained by coefficients within the budget; none within it has f below ``least`` or above
    ``most``. -inf or inf where f is not bounded; only ``least`` and ``most`` are where nothing was proved.
    """

    low: np.ndarray
    high: np.ndarray
    least: np.ndarray
    most: np.ndarray


def prediction_range(problem: Problem, b: np.ndarray, rows: np.ndarray, tol: float, seconds: float = np.inf) -> Ranges:
    """The range of f at some points over all coefficients whose objective is at most ``tol`` above that of b.

    Parameters
    ----------
    problem : Problem
        With p = 1.
    b : ndarray of shape (1 + n + k,)
        A fit, within the box.
    rows : ndarray of shape (Q, 1 + n + k)
        f = rows @ b at these points; equal ones are solved once.
    tol : float
        Above 0. The gap of the fit should be smaller, or the ranges are those of a tolerance wider by it.
    seconds : float
        After so many, the points left are given up; those that come first are done first.
    """
    deadline = perf_counter() + seconds
    search = _Search(problem, Coordinates(problem), b, *objective(problem, b), tol)
    different, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    found = np.full((4, len(different)), np.nan)
    slopes = [2 * tol / FIRST_WIDTH] * 2  # of the ends before, which are often near those of the next ones
    for q in np.argsort(first):
        ends = []
        for side, sign in enumerate((-1.0, 1.0)):
            end = search.farthest(sign * different[q], slopes[side], deadline)
            if end is None:
                break
            ends.append((sign * end.attained, sign * end.proved))
            slopes[side] = end.slope
        if len(ends) < 2:
            break
        found[:, q] = [*(attained for attained, _ in ends), *(proved for _, proved in ends)]
    return Ranges(*found[:, place.ravel()])


class _End(NamedTuple):
    """The largest row.b: attained, proved, and the last slope."""

    attained: float
    proved: float
    slope: float


@dataclass(frozen=True, eq=False)
class _Search:
    """The coefficients within ``tol`` of the objective ``value`` of b, whose multiplier is ``lam``."""

    problem: Problem
    coordinates: Coordinates
    b: np.ndarray
    value: float
    lam: float
    tol: float

    @property
    def budget(self) -> float:
        return self.value + self.tol

    def farthest(self, row: np.ndarray, slope: float, deadline: float) -> _End | None:
        """The largest row.b within the budget, the slope given being tried first; None if there was no time."""
        fit = float(row @ self.b)
        if not row.any():
            return _End(fit, fit, slope)
        if is_unbounded(self.problem, row):
            return _End(np.inf, np.inf, slope)
        start = Solution(self.b, self.lam, self.value, 0.0)
        attained, proved = fit, np.inf
        too_flat, too_steep = 0.0, np.inf  # slopes
        within, beyond = self.b, None  # minimisers nearest the budget, on either side
        for _ in range(MOST_FITS):
            if perf_counter() > deadline:
                return None
            linear = -slope * row
            tilt = Tilt(linear, self.budget, self.value - slope * fit - FARTHEST * self.tol)
            gap = SHARE_OF_TOL * self.tol
            to = minimise(self.problem, self.coordinates, gap, MAX_STEPS, start, tilt=tilt)[0]
            proved = min(proved, (self.budget - to.lower) / slope)
            rise = self.rise(to.b)
            attained = max(attained, float(row @ self._reached(within if rise > self.tol else self.b, to.b)))
            if proved - attained <= max(ACCURACY * (proved - fit), NEGLIGIBLE):
                break
            stopped = to.upper < tilt.least
            # Where phi is a parabola, the rise goes with the square of the slope, which is 2 tol / width at the end.
            ratio = np.sqrt(self.tol / max(rise, 1e-9 * self.tol))
            if stopped and attained > fit:
                ratio = 2 * self.tol / (attained - fit) / slope
            if stopped or rise > self.tol:
                too_steep, beyond = min(too_steep, slope), beyond if stopped else to.b
            else:
                too_flat, within = max(too_flat, slope), to.b
            following = slope * np.clip(ratio, 1 / LARGEST_FACTOR, LARGEST_FACTOR)
            if not 1.01 * too_flat < following < too_steep / 1.01:
                if too_steep < 1.01 * too_flat:
                    break
                following = np.sqrt(max(too_flat, 1e-2 * too_steep) * too_steep)
                if beyond is not None:
                    # Where phi is a straight line, all slopes but its own lead to its ends.
                    chord = (self.rise(beyond) - self.rise(within)) / float(row @ (beyond - within))
                    following = chord if too_flat < chord < too_steep else following
            slope = following
        return _End(attained, max(proved, attained), slope)

    def rise(self, b: np.ndarray) -> float:
        """The objective less that of the fit."""
        return objective(self.problem, b)[0] - self.value

    def _reached(self, start: np.ndarray, to: np.ndarray) -> np.ndarray:
        """About the last point within the budget on the ray from one point within to any other; it is within."""

        def point(length: float) -> np.ndarray:
            return self.problem.feasible(start + length * (to - start))

        def excess(length: float) -> float:
            return self.rise(point(length)) - self.tol

        length, beyond = 0.0, 1.0
        while excess(beyond) <= 0:
            if beyond >= LONGEST_RAY:
                return point(beyond)
            length, beyond = beyond, 2 * beyond
        accuracy = 1e-3 * (beyond - length)
        last = brentq(excess, length, beyond, xtol=accuracy, rtol=1e-12) - 2 * accuracy
        return point(last if last > length and excess(last) <= 0 else length)


def is_unbounded(problem: Problem, row: np.ndarray) -> bool:
    """Whether row.b is unbounded above where the objective is bounded.

    It is if, from anywhere, some direction d with row.d > 0 makes no loss grow that the adversary can choose, nor lam,
    the penalty or the distance from the box. Where every level can be changed and every class occurs, f_d then is 0.
    """
    if problem.radius > 0 and problem.metric.level_costs is None and problem.metric.number_costs is None:
        return False
    n = problem.n_numeric
    fixed = np.isfinite(problem.coef_bound) | (problem.penalty > 0)
    fixed[0] |= not problem.fit_intercept
    if problem.radius > 0:
        fixed[1 : 1 + n] |= problem.metric.movable(n)
    scale = np.ones(problem.n_coefficients)
    scale[1 : 1 + n] = np.maximum(np.abs(problem.x).max(axis=0), np.abs(row[1 : 1 + n]))
    scale = np.where(scale > 0, scale, 1.0)
    bounds = np.where(fixed, 0.0, 1.0)
    cuts = initial_cuts(problem)
    while True:
        found = minimise_linear(
            -row / scale,
            bounds=np.column_stack([-bounds, bounds]),
            A=cuts.rows(problem) / scale,
            limit=np.zeros(len(cuts)),
        )
        if found.status != 0 or -found.fun <= ESCAPES:
            return False
        if problem.radius == 0:
            return True
        new = []
        for flipped in problem.label_flips:
            worst = most_violated(problem, found.x / scale, 0.0, flipped)
            grows = np.flatnonzero(worst.argument > ESCAPES)
            new.append(Cuts(grows, worst.z[grows], np.full(len(grows), flipped)))
        if not any(map(len, new)):
            return True
        cuts = join(cuts, *new)
