"""The tailored solver: an interior-point method for p = 1 with Algorithm 2 inside.

The problem is that of ``wdrlr.model.problem`` in the coordinates of ``wdrlr.solvers.interior_point.kernels``: minimise

    lam radius + sum_i w_i s_i + penalty.|b|   subject to   s_i >= L(a_c) - lam cost_c   for the cuts c of sample i
    and linear rows >= 0: lam, the box, the norm of the numbers, tops above and bottoms below their feature's scores.

Method.

    start with b = 0, or where one is told to, and the two cuts (i, z_i) of every sample
    repeat
        M: the Newton matrix with s, slacks and multipliers eliminated; one Cholesky factorisation
        a predictor step (target 0) sets the target tau, a corrector step aims at it with second-order terms
        lower bound: masses and slopes after the full step, balanced as in ``_bound_below``
        shorten the step until the cuts that Algorithm 2 finds at the trial point violate s by no more than a share of
        the complementarity; failing that, stay where we are, keep the cuts found, and solve again
        upper bound: F at the trial point, from the same separation
        move: multipliers and slacks are clipped one by one, s_i is raised above new cuts, tau falls
    until upper - lower <= tol, and ``certificate.check`` agrees

The bounds in the loop steer the method and say when to ask for a certificate; it is the certificate's that are
returned. Transport cost and numbers are counted in units of the method's own. Every pair of slack and multiplier aims
at the product tau. Without an intercept all directions keep b_0 = 0. Nothing of order N is factorised: M has an order
of 2 + n + k, plus two for each feature with four levels or more, and its cost is linear in N.
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from types import SimpleNamespace

import numpy as np
from scipy.linalg import lapack
from scipy.special import expit

from wdrlr.model.certificate import DualPoint, objective
from wdrlr.model.problem import Problem, log_loss
from wdrlr.model.units import with_distance_unit
from wdrlr.solvers.closed_form import optimal_constant
from wdrlr.solvers.dual_repair import coefficient_bounds, reserve, residual_charge
from wdrlr.solvers.interior_point import kernels
from wdrlr.solvers.solution import Solution, certified

LOG_2 = np.log(2.0)
FIRST_TAU = 0.1  # times 1 / N
SHARE_OF_VIOLATION = 0.1  # of the complementarity, that new cuts may violate s by
LEAST_MULTIPLIER, LEAST_SLACK = 0.02, 0.05  # what a step leaves of a multiplier and of a slack
PRUNE_EVERY = 4
PATIENCE = 250  # steps without a smaller gap; the longest wait seen that ended certified is 123 (annealing)
PROXIMAL = 1e-3  # times pairs * tau: weak ridge, for directions that the data do not determine
LEAST_PROXIMAL = 1e-6  # the ridge fades to this while tau is at its least value
MIN_LEVELS_FOR_TOPS = 4
FAR_FROM_0 = 10.0  # times their range, that the middle of a column's numbers is away from 0
NO_CHANGE = 1e6  # lam at radius 0: no change of a level pays
NEGLIGIBLE = 1e-13  # times the largest weight: a sample below it is left out
NEGLIGIBLE_LOSS = 0.1  # times tol: what all samples may weigh that are left out where the method got stuck with them


class LinearRows:
    """Sparse rows r with values const_r + row_r . theta."""

    def __init__(self, rows: list[tuple[list, list, float]] = ()):
        self.ends = np.zeros(1, np.int64)
        self.index, self.value, self.const = np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
        self.append(rows)

    def append(self, rows: list[tuple[list, list, float]]) -> None:
        """Add rows given as (coordinates, coefficients, constant)."""
        lengths = np.cumsum([len(row[0]) for row in rows], dtype=np.int64)
        self.ends = np.concatenate([self.ends, self.ends[-1] + lengths])
        self.index = np.concatenate([self.index, *(np.asarray(row[0], np.int64) for row in rows)])
        self.value = np.concatenate([self.value, *(np.asarray(row[1], float) for row in rows)])
        self.const = np.concatenate([self.const, np.array([row[2] for row in rows], float)])

    def __len__(self) -> int:
        return len(self.const)

    def times(self, theta: np.ndarray) -> np.ndarray:
        return kernels.rows_times(self.ends, self.index, self.value, theta)

    def values(self, theta: np.ndarray) -> np.ndarray:
        return self.const + self.times(theta)

    def transposed_times(self, y: np.ndarray, E: int) -> np.ndarray:
        return kernels.rows_transposed_times(self.ends, self.index, self.value, y, E)

    def add_gram(self, M: np.ndarray, D: np.ndarray) -> None:
        kernels.add_rows_gram(M, self.ends, self.index, self.value, D)


class Coordinates:
    """The coordinates of ``kernels`` for the data of a problem, and the linear map from them to b.

    They depend on the data and the coding only, so that problems that differ in radius, label cost, penalty or bound
    can share them.

    Samples of a weight below ``light`` are left out. What that costs, the certificate tells, which has all samples.
    """

    def __init__(self, problem: Problem, light: float = 0.0):
        self.kept = np.flatnonzero(problem.w > max(light, NEGLIGIBLE * problem.w.max()))
        x, y, w = problem.x[self.kept], problem.y[self.kept].astype(float), problem.w[self.kept].astype(float)
        N, n, m = len(self.kept), problem.n_numeric, problem.n_categorical
        offsets = np.append(problem.offsets, sum(problem.n_levels)).astype(np.int64)
        z = np.ascontiguousarray(problem.z[self.kept] + problem.offsets, dtype=np.int32).reshape(N, m)
        counts = np.bincount(z.ravel(), minlength=offsets[-1])
        column = np.full(offsets[-1], -1, np.int32)
        top = np.full((2, m), -1, np.int32)
        matrix, p = problem.level_matrix, problem.n_coefficients
        self.to_theta = np.zeros((p, p))  # theta[:p] = to_theta b
        # Numbers are scaled to [-1, 1]: theta[1 + r] = x_scale[r] b[1 + r]. Those far from 0 (a year, a time stamp) are
        # first centred, or they would be one direction with the intercept.
        high, low = x.max(axis=0, initial=-np.inf), x.min(axis=0, initial=np.inf)
        far = problem.fit_intercept & (np.abs(high + low) > FAR_FROM_0 * (high - low))
        center = np.where(far, (high + low) / 2, 0.0)
        largest = np.maximum(high - center, center - low)
        self.x_scale = np.where(largest > 0, largest, 1.0)
        self.to_theta[: 1 + n, : 1 + n] = np.diag([1.0, *self.x_scale])
        self.to_theta[0, 1 : 1 + n] = center
        rows_b: list[tuple[list, list, float]] = [([1 + r], [1.0 / self.x_scale[r]], 0.0) for r in range(n)]
        intercept: tuple[list, list] = (
            [0, *(1 + np.flatnonzero(far))],
            [1.0, *(-center[far] / self.x_scale[far])],
        )
        at = 1 + n
        for j in range(m):
            levels = np.arange(offsets[j], offsets[j + 1])
            common = levels[np.argmax(counts[levels])]
            others = levels[levels != common]
            mine = np.arange(at, at + len(others))
            column[others] = mine
            at += len(others)
            block = matrix[others][:, mine - 1 - n] - matrix[common, mine - 1 - n]
            self.to_theta[np.ix_(mine, mine)] = block
            self.to_theta[0, mine] = matrix[common, mine - 1 - n]
            back = np.linalg.inv(block)
            rows_b += [(mine[row != 0], row[row != 0], 0.0) for row in back]
            shift = -matrix[common, mine - 1 - n] @ back
            intercept[0].extend(mine[shift != 0])
            intercept[1].extend(shift[shift != 0])
        self.n_scores = at
        for j in range(m):
            if problem.n_levels[j] >= MIN_LEVELS_FOR_TOPS:
                top[:, j] = at, at + 1
                at += 2
        self.E = at + 1
        self.b_rows = [(*intercept, 0.0), *rows_b]
        self.b_of_theta = LinearRows(self.b_rows)
        self.x_size = np.abs(center) + self.x_scale
        x = np.ascontiguousarray((x - center) / self.x_scale)
        self.data = kernels.Data(x, z, y, w, offsets, column, top)


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
        Largest number of Newton systems. If it is reached the gap of the solution is above ``tol``.
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
        raise ValueError(f"the tailored solver needs p = 1, not {problem.metric.p}; use solve_column_constraint.")
    began = perf_counter()
    known = optimal_constant(problem)
    if known is not None:
        solution = certified(problem, known[0], [known[1]], tol)
        if solution.gap <= tol:
            return solution
    coordinates = coordinates or Coordinates(problem)
    solution = _from(problem, coordinates, tol, max_iter, start)
    if start is not None and not solution.gap <= tol:  # a start can lie where the method gets stuck
        solution = min(solution, _from(problem, coordinates, tol, max_iter), key=lambda found: found.gap)
    light = NEGLIGIBLE_LOSS * tol / problem.n_samples
    if not solution.gap <= tol and problem.w.min() < light:
        others = Coordinates(problem, light)
        solution = min(solution, _from(problem, others, tol, max_iter), key=lambda found: found.gap)
    return replace(solution, solver_seconds=perf_counter() - began)


def _from(
    problem: Problem, coordinates: Coordinates, tol: float, max_iter: int, start: Solution | None = None
) -> Solution:
    """The method, begun at a start or at b = 0."""
    with np.errstate(all="ignore"):  # what is not finite ends the method
        method = _InteriorPoint(_in_own_unit(problem, coordinates), coordinates, tol, start)
        return _iterate(problem, method, max_iter)


def _iterate(problem: Problem, method: _InteriorPoint, max_iter: int) -> Solution:
    """Steps until the certificate is within the tolerance; the method's own bounds only say when to ask for it."""
    least, improved = np.inf, 0  # the smallest gap but for small improvements, and its step
    while True:
        direction, trial = method.step()
        if method.upper - method.lower < 0.9 * least:
            least, improved = method.upper - method.lower, method.n_steps
        last = method.stuck or method.n_steps == max_iter or method.n_steps - improved > PATIENCE
        if last or method.upper - method.lower <= method.tol:
            b = method.coordinates.b_of_theta.times(method.best)
            record = {"n_rounds": method.n_steps, "n_cuts": len(method.p)}
            solution = certified(problem, b, method.dual_points(), method.tol, **record)
            if last or solution.gap <= method.tol:
                return solution
            method.upper, method.lower = solution.upper, max(solution.lower, 0.0)
        method.move(direction, trial)


def _in_own_unit(problem: Problem, coordinates: Coordinates) -> Problem:
    """The problem as the method sees it; the coordinates have units of their own for the numbers."""
    return with_distance_unit(problem, float(coordinates.x_scale.min(initial=np.inf)) if problem.n_numeric else 1.0)


class _InteriorPoint:
    """The state of the method; ``step`` is one pass of the loop in the module's docstring.

    theta (E,), s (N,); pool with p, f (C,) multipliers and slacks; limits (linear rows) with limit_p, limit_f; for
    every penalised coefficient |b_j| <= r_j: plus = r - b, minus = r + b, with plus_p + minus_p = penalty.
    """

    def __init__(self, problem: Problem, coordinates: Coordinates, tol: float, start: Solution | None = None):
        self.problem, self.coordinates, self.tol = problem, coordinates, tol
        self.data, E = coordinates.data, coordinates.E
        metric = problem.metric
        self.change_cost = float(metric.level_changes(1)[1])
        self.toll = 1.0 / metric.scale  # of moving a number by 1
        self.label_cost = metric.label_change if problem.radius > 0 else np.inf

        self.penalty = problem.penalty.astype(float).copy()
        self.penalty[0] *= problem.fit_intercept
        penalised = np.flatnonzero(self.penalty > 0)
        self.gamma = self.penalty[penalised]
        self.penalised_rows = LinearRows([coordinates.b_rows[j] for j in penalised])
        # Without an intercept, theta stays where the first row of b_of_theta is 0.
        self.intercept_row = np.zeros(E)
        index, value, _ = coordinates.b_rows[0]
        self.intercept_row[index] = value

        self.bounds = coefficient_bounds(problem, LOG_2)
        self._make_limits()
        # Multipliers of tops stand for mass that is moved, and should be no larger than that.
        self.least_mass = np.inf
        if self.n_top_rows and problem.radius > 0:
            self.least_mass = 0.3 * problem.radius / self.change_cost
        self.theta = np.zeros(E)
        self.theta[-1] = NO_CHANGE
        if problem.radius > 0:
            self.theta[-1] = 2.0 / max(self.change_cost if problem.n_categorical else 1.0, problem.radius)
        if start is not None:  # a little off the walls, which may stand elsewhere in the start's problem
            b = problem.feasible(start.b)
            value, lam = objective(problem, b)
            if value < LOG_2:  # else b = 0 is the better start
                self.theta[: coordinates.n_scores] = 0.99 * coordinates.to_theta @ b
                if lam > 0:
                    self.theta[-1] = 1.05 * lam
        if self.n_top_rows:
            level = np.maximum.reduceat(-self.limits.times(self.theta)[: self.n_top_rows], self.top_start)
            self.theta[self.top_column[self.top_start]] = self.top_sign[self.top_start] * (level + 0.1)
        w = self.data.w
        self.tau = FIRST_TAU / len(w)
        empty = kernels.empty_pool(len(w), E)
        self.no_cuts = empty
        _, owner, new = self._separate(self.theta, np.full(len(w), -np.inf), empty)
        self.pool, _ = kernels.merge(empty, np.zeros(0, bool), owner, new)
        value = self._values(self.theta)
        self.s = np.maximum.reduceat(value, self.pool.start[:-1]) + self.tau / w
        self.f = self._by_cut(self.s) - value
        self.p = self._normalised(self.tau / self.f)
        self.limit_f = self._limit_slacks()
        self.limit_p = np.minimum(self.tau / self.limit_f, self.limit_most)
        self.b_before = self.penalised_rows.times(self.theta)
        r = np.abs(self.b_before) + 2 * self.tau / self.gamma
        self.plus, self.minus = r - self.b_before, r + self.b_before
        self.plus_p, self.minus_p = self.gamma * self.minus / (2 * r), self.gamma * self.plus / (2 * r)
        self.upper, self.lower, self.best = np.inf, 0.0, self.theta
        self.dual: tuple | None = None  # behind ``lower``
        self.stuck = False
        self.n_steps, self.length, self.proximal = 0, 1.0, PROXIMAL

    def _make_limits(self) -> None:
        """The linear rows: first those of tops and bottoms, then the box, lam >= 0, and the norm of the numbers.

        ``limit_most`` is about the largest multiplier that each can have: the mass that a top can carry, what of the
        balance a box can, the radius for those in lam.
        """
        problem, data, E = self.problem, self.data, self.coordinates.E
        rows, column, sign, top_code = [], [], [], []
        for j in range(problem.n_categorical):
            for side, sgn in ((0, 1.0), (1, -1.0)):
                if data.top[side, j] < 0:
                    continue
                for level in range(data.offsets[j], data.offsets[j + 1]):
                    score = data.column[level]
                    top_code.append((side, level))
                    rows.append(([data.top[side, j]], [sgn], 0.0))
                    if score >= 0:
                        rows[-1] = ([data.top[side, j], score], [sgn, -sgn], 0.0)
                    column.append(data.top[side, j])
                    sign.append(sgn)
        self.n_top_rows = len(rows)
        self.top_column, self.top_sign = np.array(column, int), np.array(sign)
        self.top_code = tuple(np.array(top_code, int).reshape(-1, 2).T)  # side and level
        self.top_start = np.flatnonzero(np.diff(self.top_column, prepend=-1))  # the first row of each top
        self.top_count = np.diff(self.top_start, append=len(rows))
        bounded = np.flatnonzero(np.isfinite(problem.coef_bound))
        self.box = slice(len(rows), len(rows) + 2 * len(bounded))
        for j in bounded:
            index, value, _ = self.coordinates.b_rows[j]
            rows += [(index, -np.asarray(value), problem.coef_bound[j]), (index, value, problem.coef_bound[j])]
        most = [np.ones(self.n_top_rows), self._carried_by_box().repeat(2)]
        self.norm_rows = slice(len(rows), None)
        if problem.radius > 0:
            rows.append(([E - 1], [self.toll], 0.0))
            for r in range(problem.n_numeric):  # every dual norm is at least the largest |b_r|
                slope = 1.0 / self.coordinates.x_scale[r]
                rows += [([E - 1, 1 + r], [self.toll, sgn * slope], 0.0) for sgn in (-1.0, 1.0)]
        self.curved = problem.radius > 0 and problem.metric.norm == "l2" and problem.n_numeric > 1
        if self.curved:  # the last row is the tangent of the norm at theta, see ``_turn_norm_row``
            rows.append(([E - 1, *range(1, 1 + problem.n_numeric)], [self.toll, *np.zeros(problem.n_numeric)], 0.0))
        most.append(np.full(len(rows) - self.norm_rows.start, problem.radius / self.toll))
        self.limit_most = np.concatenate(most)
        self.limits = LinearRows(rows)

    def _carried_by_box(self) -> np.ndarray:
        """The largest force of the box on each bounded coefficient: the mean size of its column."""
        n, bounded = self.problem.n_numeric, np.isfinite(self.problem.coef_bound)
        return np.concatenate([[1.0], self.coordinates.x_size, np.ones(len(bounded) - 1 - n)])[bounded]

    # ------------------------------------------------------------ small helpers

    def _separate(self, theta: np.ndarray, level: np.ndarray, pool: kernels.Pool):
        return kernels.separate(theta, self.data, self.change_cost, self.label_cost, level, pool)

    def _values(self, theta: np.ndarray, pool: kernels.Pool | None = None) -> np.ndarray:
        """L(a) - lam cost of every cut; shape (C,)."""
        pool = pool or self.pool
        return log_loss(kernels.arguments(theta, self.data.x, pool)) - pool.cost * theta[-1]

    def _by_cut(self, per_sample: np.ndarray) -> np.ndarray:
        """(N,) to (C,)"""
        return per_sample.repeat(self._counts())

    def _counts(self) -> np.ndarray:
        """The number of cuts of each sample; shape (N,)."""
        return self.pool.start[1:] - self.pool.start[:-1]

    def _above_rounding(self, slack: np.ndarray, most: np.ndarray) -> np.ndarray:
        """Slacks that rounding may have made 0 or less, lifted to a small part of what large multipliers leave."""
        return np.maximum(slack, 1e-3 * self.tau / most)

    def _limit_slacks(self) -> np.ndarray:
        """Those of the linear rows at theta."""
        self._turn_norm_row()
        return self._above_rounding(self.limits.values(self.theta), self.limit_most)

    def _normalised(self, p: np.ndarray) -> np.ndarray:
        """Multipliers scaled to sum to w_i a sample."""
        return p * self._by_cut(self.data.w / np.add.reduceat(p, self.pool.start[:-1]))

    def _objective(self, theta: np.ndarray, per_sample: np.ndarray) -> float:
        """lam radius + w.(per_sample) + penalty.|b|"""
        b = self.coordinates.b_of_theta.times(theta)
        lam = self.problem.radius * theta[-1] if self.problem.radius > 0 else 0.0
        return float(self.data.w @ per_sample + lam + self.penalty @ np.abs(b))

    # ------------------------------------------------------------ one step

    def step(self) -> tuple[SimpleNamespace, SimpleNamespace | None]:
        """One Newton system: direction, lower bound, trial points with upper bounds; ``move`` follows."""
        self.n_steps += 1
        self._linearise()
        direction = self._predict_and_correct()
        if not (np.isfinite(direction.theta).all() and np.isfinite(direction.p).all()):
            self.stuck = True
            return direction, None
        self._bound_below(direction)
        return direction, self._search(direction)

    def dual_points(self) -> list[DualPoint]:
        """The dual point behind ``lower``, if there is one, in terms of the problem."""
        if self.dual is None:
            return []
        pool, mass, v, share, wall, absorbed = self.dual
        data, kept = self.data, self.coordinates.kept
        sample, start, feature, level = kernels.changed_levels(pool, data)
        flipped = pool.sign * data.y[sample] > 0
        if absorbed is not None:
            bent, dv, cut, to, amount = absorbed
            if bent >= 0:
                v[bent] += dv
            moved = amount * v[cut] / mass[cut]
            np.subtract.at(mass, cut, amount)
            np.subtract.at(v, cut, moved)
            j = np.searchsorted(data.offsets, to, side="right") - 1
            mass, v = np.concatenate([mass, amount]), np.concatenate([v, moved])
            sample, flipped = np.concatenate([sample, sample[cut]]), np.concatenate([flipped, flipped[cut]])
            start = np.concatenate([start, start[-1] + 1 + np.arange(len(cut))])
            feature, level = np.concatenate([feature, j]), np.concatenate([level, to - data.offsets[j]])
        mixture = np.zeros((2, data.column.size))
        mixture[self.top_code] = share
        return [DualPoint(kept[sample], flipped, mass, v, start, feature, level, mixture, wall)]

    def _linearise(self) -> None:
        """Slopes, which pairs are alive, and the factorised Newton matrix."""
        E, p = self.coordinates.E, self.coordinates.n_scores
        self.several = self._by_cut(self._counts()) > 1  # a sample's only cut has no slack to speak of
        self.t = expit(kernels.arguments(self.theta, self.data.x, self.pool))
        # A top that no cut uses would have no force: it is left out.
        self.used = np.zeros(E, bool)
        self.used[:p] = True
        self.used[-1] = self.problem.radius > 0
        self.used[self.pool.entry] = True
        self.live = np.ones(len(self.limits), bool)
        self.live[: self.n_top_rows] = self.used[self.top_column]
        self.limit_p = np.where(self.live, self.limit_p, 0.0)
        self.n_pairs = max(int(self.several.sum() + self.live.sum()) + 2 * len(self.gamma), 1)

        M = kernels.gram(E, self.data.x, self.pool, self.t, self.p, self.f)
        self.limits.add_gram(M, self.limit_p / self.limit_f)
        if self.curved:
            self._add_curvature(M)
        self.D_plus, self.D_minus = self.plus_p / self.plus, self.minus_p / self.minus
        self.penalised_rows.add_gram(M, 4 * self.D_plus * self.D_minus / (self.D_plus + self.D_minus))
        diagonal = M.ravel()[:: E + 1]
        diagonal[:p] += self.proximal * self.n_pairs * self.tau
        diagonal[~self.used] = 1.0
        self.scale = np.sqrt(np.maximum(diagonal, 1e-30))
        M /= self.scale
        M /= self.scale[:, None]
        # Small where the diagonal is small, but no larger than the data's part of it where rows of limits dominate.
        regular, failed = 1e-13 * np.minimum(1.0, 0.01 / self.scale**2), 1
        while failed and regular.max() < 1.0:  # not for ever, should M not be finite
            diagonal += regular
            self.factor, failed = lapack.dpotrf(M, lower=1)
            regular *= 10
        if not self.problem.fit_intercept:
            self.pull = self.intercept_row @ self._solve_freely(self.intercept_row)

    def _solve_freely(self, g: np.ndarray) -> np.ndarray:
        """-M^-1 g"""
        right = np.where(self.used, g, 0.0) / self.scale
        return -lapack.dpotrs(self.factor, right, lower=1)[0] / self.scale

    def _solve(self, g: np.ndarray) -> np.ndarray:
        """The minimiser of g.theta + theta.M theta / 2, without an intercept among the theta with b_0 = 0."""
        theta = self._solve_freely(g)
        if not self.problem.fit_intercept:
            for _ in range(2):  # the first time, theta can be a small difference of large numbers
                g = g - (self.intercept_row @ theta) / self.pull * self.intercept_row
                theta = self._solve_freely(g)
        return theta

    def _newton_step(self, target, limit_target, plus_target, minus_target, curvature) -> SimpleNamespace:
        """The Newton step for the given targets of the products; multipliers as they are after the full step.

        ``curvature`` is the second-order change of the cuts' values, for the corrector.
        """
        e = (target - self.p * curvature) / self.f
        limit_e = np.where(self.live, limit_target / self.limit_f, 0.0)
        plus_e, minus_e = plus_target / self.plus, minus_target / self.minus
        D, difference = self.D_plus + self.D_minus, self.D_plus - self.D_minus
        surplus = plus_e + minus_e - self.gamma
        E, x, w = self.coordinates.E, self.data.x, self.data.w
        g = kernels.gradient(E, x, w, self.pool, self.t, self.p, self.f, e)
        g -= self.limits.transposed_times(limit_e, E)
        g += self.penalised_rows.transposed_times(plus_e - minus_e - difference / D * surplus, E)
        g[-1] += self.problem.radius
        theta = self._solve(g)
        a = kernels.arguments(theta, x, self.pool)
        change = self.t * a - self.pool.cost * theta[-1]
        ds, p = kernels.directions(change, w, self.pool, self.p, self.f, e)
        limit_f, b = self.limits.times(theta), self.penalised_rows.times(theta)
        r = (surplus + difference * b) / D
        return SimpleNamespace(
            theta=theta,
            a=a,
            f=np.where(self.several, self._by_cut(ds) - change, 0.0),
            p=p,
            limit_f=limit_f,
            limit_p=limit_e - self.limit_p / self.limit_f * limit_f,
            r=r,
            plus=r - b,
            minus=r + b,
            plus_p=plus_e - self.D_plus * (r - b),
            minus_p=minus_e - self.D_minus * (r + b),
        )

    def _predict_and_correct(self) -> SimpleNamespace:
        """Mehrotra's predictor-corrector; sets ``goal``, the tau aimed at."""
        several, live = self.several, self.live
        zeros = np.zeros(len(self.p))
        now = np.where(several, zeros, self.p * self.f)  # a single cut keeps its product
        step = self._newton_step(now, 0 * self.limit_p, 0 * self.plus, 0 * self.minus, zeros)
        pairs = (
            (self.p[several], step.p[several] - self.p[several], self.f[several], step.f[several]),
            (self.limit_p[live], step.limit_p[live] - self.limit_p[live], self.limit_f[live], step.limit_f[live]),
            (self.plus_p, step.plus_p - self.plus_p, self.plus, step.plus),
            (self.minus_p, step.minus_p - self.minus_p, self.minus, step.minus),
        )
        mu = self.mu = sum(p @ f for p, _, f, _ in pairs) / self.n_pairs
        length_p = min(_longest(p, dp) for p, dp, _, _ in pairs)
        length_f = min(_longest(f, df) for _, _, f, df in pairs)
        left = sum((p + length_p * dp) @ (f + length_f * df) for p, dp, f, df in pairs) / self.n_pairs
        # A long last step shows that the cuts in hand are the right ones: then tau may fall fast.
        limit = 0.2 if self.length >= 0.9 else 0.5 if self.length > 0.3 else 1.0
        sigma = min(max((left / mu) ** 3, 0.02) if mu > 0 else 0.1, 0.9, limit)
        least = min(0.1 * self.tol, 1e-3 * self.upper, self.least_mass) / self.n_pairs
        goal = max(min(sigma * mu, self.tau), 0.1 * self.tau, least)
        self.goal = goal
        self.proximal = PROXIMAL if goal > least else max(0.3 * self.proximal, LEAST_PROXIMAL)
        trusted = min(length_f, length_p) > 0.1

        def with_second_order(dp, df):
            return goal - trusted * np.clip(dp * df, -10 * goal, 10 * goal)

        t = self.t
        curvature = np.where(several, np.maximum(-0.5 * t * (1 - t) * step.a**2, -0.5 * self.f), 0.0)
        return self._newton_step(
            np.where(several, with_second_order(step.p - self.p, step.f), self.p * self.f),
            with_second_order(step.limit_p - self.limit_p, step.limit_f),
            with_second_order(step.plus_p - self.plus_p, step.plus),
            with_second_order(step.minus_p - self.minus_p, step.minus),
            trusted * curvature,
        )

    def _bound_below(self, step: SimpleNamespace) -> None:
        """A lower bound from the masses and slopes after the full step.

        The argument is that of ``certificate.lower_bound``: masses that sum to w_i a sample, slopes in [0, 1], value
        sum of mass * H(slope). The balance r (in terms of b) may stay within the penalties; the numbers' part may
        cost what the masses leave of the radius; what is left over is charged at the largest |b_j| and lam that the
        objective allows, or at the box, or cancelled by moving mass, for which see ``kernels.absorb``. Up to three
        times, the balance is repaired through the Newton matrix.
        """
        problem, E, x, w = self.problem, self.coordinates.E, self.data.x, self.data.w
        upper, limits = min(self.upper, LOG_2), problem.balance_limits
        radius = problem.radius
        if self.bounds[1].any():
            radius -= reserve(problem, self.theta[-1], loss=0.05 * self.tol, share=0.1)
        curvature = self.p * self.t * (1 - self.t)
        mass, v = step.p.copy(), step.p * self.t + curvature * step.a
        force = np.where(self.live, np.maximum(step.limit_p, 0.0), 0.0)

        def charge_for(r, wall, spent):
            return residual_charge(problem, self.bounds, limits, r, wall, spent, radius, upper)

        share = np.zeros(self.n_top_rows)
        for repairs_left in (3, 2, 1, 0):
            entropy, spent, balance = kernels.dual_point(E, x, w, self.pool, mass, v)
            if self.n_top_rows:  # mass at a top stands for levels: it is spread over them
                share = np.maximum(force[: self.n_top_rows], 1e-300)
                share /= np.add.reduceat(share, self.top_start).repeat(self.top_count)
                back = np.zeros(len(self.limits))
                back[: self.n_top_rows] = -self.top_sign * balance[self.top_column] * share
                balance = balance + self.limits.transposed_times(back, E)
            r = self.coordinates.to_theta.T @ balance[: self.coordinates.n_scores]
            wall = np.zeros_like(r)  # the force of the box
            wall[np.isfinite(problem.coef_bound)] = force[self.box].reshape(-1, 2) @ [-1.0, 1.0]
            charge, left, spent_then = charge_for(r, wall, spent)
            if entropy - charge > self.lower:
                self.lower = entropy - charge
                self.dual = self.pool, mass.copy(), v.copy(), share, wall, None
            hopeless = self.upper - entropy > self.tol
            if problem.radius > 0 and not hopeless and self.upper - self.lower > self.tol:
                wanted = np.clip(r, -limits, limits) + wall
                excess = self.coordinates.b_of_theta.transposed_times(r - wanted, E)
                gained, moved, rest, *absorbed = kernels.absorb(excess, self.data, self.pool, mass, v)
                if np.isfinite(moved):
                    numbers = slice(1, 1 + problem.n_numeric)
                    wanted[numbers] += self.coordinates.x_scale * rest[numbers]
                    charge = charge_for(wanted, wall, spent + moved * self.change_cost)[0]
                    if entropy + gained - charge > self.lower:
                        self.lower = entropy + gained - charge
                        self.dual = self.pool, mass.copy(), v.copy(), share, wall, absorbed
            if self.upper - self.lower <= self.tol or hopeless or not repairs_left:
                return
            g = self.coordinates.b_of_theta.transposed_times(left - wall, E)
            g[-1] = min(radius - spent_then, 0.0)
            repair = self._solve(g)
            a = kernels.arguments(repair, x, self.pool)
            change = self.t * a - self.pool.cost * repair[-1]
            repaired = kernels.directions(change, w, self.pool, self.p, self.f, mass)[1]
            v += self.t * (repaired - mass) + curvature * a
            mass = repaired
            eased = self.limit_p / self.limit_f * self.limits.times(repair)
            force = np.where(self.live, np.maximum(force - eased, 0.0), 0.0)

    def _search(self, step: SimpleNamespace) -> SimpleNamespace:
        """Shorten the step until the cuts found at the trial point fit under s; update the upper bound."""
        w, theta = self.data.w, self.theta
        hard = slice(self.n_top_rows, None)
        slack = self.limits.values(theta)
        slack = np.where(slack > 0, slack, self.limit_f)
        length = min(1.0, 0.99 * _longest(slack[hard], step.limit_f[hard]))
        if length * step.theta[-1] < -0.9 * theta[-1]:  # the first step can take lam far too low
            length = -0.9 * theta[-1] / step.theta[-1]
        ceiling = self._objective(theta, self.s)
        pool, old, n_halved = self.pool, np.arange(len(self.p)), 0
        while True:
            at = theta + length * step.theta
            if not self.problem.fit_intercept:
                at[0] -= self.intercept_row @ at  # rounding
            at[-1] = max(at[-1], self._dual_norm(at))  # rounding
            self._make_way(at)
            self._add_norm_row(at, step)
            wanted = np.maximum(self.f + length * step.f, LEAST_SLACK * self.f)
            s = self.s.copy()
            none_fresh = np.zeros(len(self.p), bool)
            kernels.raise_s(s, self._values(at), wanted, self.p, none_fresh, w, self.pool, self.tau)
            worst, owner, new = self._separate(at, s + self.goal / w, pool)
            pool, before = kernels.merge(pool, np.ones(len(pool.sign), bool), owner, new)
            old = np.where(before >= 0, old[before], -1)
            objective = self._objective(at, worst)
            if objective < self.upper and (self.limits.values(at)[self.box] >= 0).all():
                self.upper, self.best = objective, at.copy()
            violation = w @ np.maximum(worst - s, 0.0)
            slackness = self.n_pairs * self.tau
            allowed = self.n_pairs * max(self.tau, self.mu)
            fits = violation <= SHARE_OF_VIOLATION * slackness and objective <= ceiling + allowed
            grown = len(pool.sign) > len(self.p)
            fits |= n_halved >= 12 and not grown  # nothing to learn here
            if fits or (n_halved >= 2 and grown):
                return SimpleNamespace(theta=at, wanted=wanted, pool=pool, old=old, moves=fits, length=length)
            length *= 0.5
            n_halved += 1

    def _dual_norm(self, theta: np.ndarray) -> float:
        """The least lam at theta."""
        if self.problem.radius == 0:
            return 0.0
        return self.problem.metric.dual_norm(theta[1 : 1 + self.problem.n_numeric] / self.coordinates.x_scale)

    def _make_way(self, at: np.ndarray) -> None:
        """Tops rise, and bottoms fall, ahead of the scores of their levels (in place)."""
        if not self.n_top_rows:
            return
        start, column = self.top_start, self.top_column[self.top_start]
        sign = self.top_sign[start]
        level = self.top_sign * at[self.top_column] - self.limits.times(at)[: self.n_top_rows]
        edge = np.maximum.reduceat(level + LEAST_SLACK * self.limit_f[: self.n_top_rows], start)
        # A wider margin would make fresh cuts that use the top raise s by a multiple of it.
        margin = min(0.05 * at[-1] * self.change_cost, self.tau * len(self.s))
        idle = np.maximum.reduceat(level, start) + margin
        at[column] = sign * np.where(self.used[column], np.maximum(sign * at[column], edge), idle)

    def _turn_norm_row(self) -> None:
        """Let the row of the l2 norm be its tangent at theta; its value is toll lam - ||b_N||, exactly."""
        if self.curved:
            n, x_scale = self.problem.n_numeric, self.coordinates.x_scale
            b_numeric = self.theta[1 : 1 + n] / x_scale
            self.limits.value[-n:] = -b_numeric / max(np.linalg.norm(b_numeric), 1e-300) / x_scale

    def _add_curvature(self, M: np.ndarray) -> None:
        """The second derivative of the l2 norm times its multiplier, in place."""
        n, x_scale = self.problem.n_numeric, self.coordinates.x_scale
        tangent, size = self.limits.value[-n:], np.linalg.norm(self.theta[1 : 1 + n] / x_scale)
        if size > 0:
            M[1 : 1 + n, 1 : 1 + n] += self.limit_p[-1] / size * (np.diag(x_scale**-2.0) - np.outer(tangent, tangent))

    def _add_norm_row(self, at: np.ndarray, step: SimpleNamespace) -> None:
        """lam >= dual_norm(b_N) at the trial point, for linf by one more tangent of the norm there (in place)."""
        problem = self.problem
        x_scale = self.coordinates.x_scale
        b_numeric = at[1 : 1 + problem.n_numeric] / x_scale
        if self.curved:
            at[-1] = max(at[-1], self._dual_norm(at) + LEAST_SLACK * self.limit_f[-1] / self.toll)
        if problem.radius == 0 or problem.n_numeric == 1 or problem.metric.norm != "linf" or not b_numeric.any():
            return
        tangent = np.sign(b_numeric)
        short = self._dual_norm(at) - at[-1]
        if -short * self.toll < 0.5 * self.limits.values(at)[self.norm_rows].min():
            at[-1] = max(at[-1], at[-1] + short + self.tau / problem.radius)
            index = [len(at) - 1, *range(1, 1 + problem.n_numeric)]
            self.limits.append([(index, [self.toll, *(-tangent / x_scale)], 0.0)])
            self.limit_most = np.append(self.limit_most, problem.radius / self.toll)
            self.limit_f, self.limit_p = np.append(self.limit_f, 1.0), np.append(self.limit_p, 0.0)
            self.live, step.limit_f = np.append(self.live, True), np.append(step.limit_f, 0.0)
            step.limit_p = np.append(step.limit_p, 0.0)

    def move(self, step: SimpleNamespace, trial: SimpleNamespace) -> None:
        """Go to the trial point, or stay and take its cuts in; prune now and then."""
        w = self.data.w
        if trial.moves:
            self.theta, self.tau, self.length = trial.theta, self.goal, trial.length
            self.p = self._normalised(np.maximum(step.p, LEAST_MULTIPLIER * self.p))
            self.f = trial.wanted
            self.limit_f = self._limit_slacks()
            kept = np.maximum(step.limit_p, LEAST_MULTIPLIER * self.limit_p)
            self.limit_p = np.where(self.live & (self.limit_p > 0), kept, self.tau / self.limit_f)
            self._move_penalty(step)
        else:
            self.length = 0.0
            self.limit_f = self._limit_slacks()
            self.limit_p = np.where(self.live & (self.limit_p > 0), self.limit_p, self.tau / self.limit_f)

        self._take_in(trial.pool, trial.old)
        if trial.moves and self.n_steps % PRUNE_EVERY == 0:
            mass = self._by_cut(w)
            largest = self._by_cut(np.maximum.reduceat(self.p, self.pool.start[:-1]))
            # A cut whose slack is small against its last change may be back in the next step.
            restless = (trial.old < 0) | (self.f < 2 * np.abs(step.f[trial.old]))
            # Mass that is small against w_i can be large against what the radius allows.
            heavy = (self.p > 1e-4 * mass) | (self.p * self.pool.cost > 1e-4 * self.problem.radius)
            keep = restless | heavy | (self.f < 200 * self.tau / mass) | (self.p >= largest)
            self.pool, old = kernels.merge(self.pool, keep, np.zeros(0, np.int32), self.no_cuts)
            self.p, self.f = self.p[old], self.f[old]
        # A sample's only cut has all its mass and the slack that goes with it.
        single = self._counts() == 1
        cut = self.pool.start[:-1][single]
        self.p[cut] = w[single]
        self.s[single] += self.tau / w[single] - self.f[cut]
        self.f[cut] = self.tau / w[single]

    def _move_penalty(self, step: SimpleNamespace) -> None:
        """New r, plus, minus and their multipliers; called when theta has moved."""
        r = self.b_before + self.plus + self.length * step.r
        b = self.penalised_rows.times(self.theta)
        r = np.maximum(r, np.maximum(b + LEAST_SLACK * self.plus, -b + LEAST_SLACK * self.minus))
        self.b_before = b
        self.plus, self.minus = (self._above_rounding(slack, self.gamma) for slack in (r - b, r + b))
        plus_p = np.maximum(step.plus_p, LEAST_MULTIPLIER * self.plus_p)
        minus_p = np.maximum(step.minus_p, LEAST_MULTIPLIER * self.minus_p)
        self.plus_p = plus_p * self.gamma / (plus_p + minus_p)
        self.minus_p = minus_p * self.gamma / (plus_p + minus_p)

    def _take_in(self, pool: kernels.Pool, old: np.ndarray) -> None:
        """Let ``pool`` be the cuts in hand; ``old`` says which of the present ones each was, -1 for a new one."""
        fresh = old < 0
        self.p, self.f = np.where(fresh, 0.0, self.p[old]), np.where(fresh, 0.0, self.f[old])
        self.pool = pool
        value = self._values(self.theta)
        kernels.raise_s(self.s, value, self.f, self.p, fresh, self.data.w, pool, self.tau)
        mass = self._by_cut(self.data.w)
        self.f = np.maximum(self._by_cut(self.s) - value, 1e-3 * self.tau / mass)
        self.p[fresh] = np.minimum(self.tau / self.f[fresh], 0.5 * mass[fresh])


def _longest(value: np.ndarray, change: np.ndarray) -> float:
    """The largest step in [0, 1] that keeps value + step * change >= 0."""
    falling = change < 0
    return min(1.0, float(np.min(value[falling] / -change[falling], initial=np.inf)))
