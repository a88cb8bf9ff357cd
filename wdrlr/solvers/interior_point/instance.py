"""The problem in the method's coordinates, and the state of an iteration: what all steps read and none changes."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from wdrlr.model.metric import L1, L2, NORMS, Norm
from wdrlr.model.problem import Problem
from wdrlr.model.units import with_distance_unit
from wdrlr.solvers.dual_repair import coefficient_bounds
from wdrlr.solvers.interior_point import kernels
from wdrlr.solvers.interior_point.coordinates import Coordinates, LinearRows, Row
from wdrlr.solvers.interior_point.kernels import Pairs
from wdrlr.solvers.interior_point.settings import SETTINGS, Settings
from wdrlr.solvers.solution import Tilt

LOG_2 = float(np.log(2.0))
MANY_LEVELS = 12
"""Where there are more, a top that made way for each level in turn would take a step a level."""
LEAST_APART = 30
"""Levels of a feature that the Newton system eliminates first; more than those of narrow ones, see ``coordinates``."""


class Tops(NamedTuple):
    """The rows "top >= score" and "score >= bottom", T of them, ordered by top or bottom.

    Where a feature can have any code, its top is that of sums of sizes, size_v >= |b_v|: one row "top >= sum of sizes",
    and each size is a top itself, of b_v and -b_v. The rows of these sizes come first, those of numbers' sizes last.
    """

    column: np.ndarray  # (T,): the coordinate of the row's top or bottom
    sign: np.ndarray  # (T,): +1 for a top, -1 for a bottom
    side: np.ndarray  # (T,): 0 for a top, 1 for a bottom
    level: np.ndarray  # (T,): the level whose score the row has, counted through; -1 if it is a size or sums sizes
    firm: np.ndarray  # (T,) bool: whether the row limits a step, as all other rows do; else the top makes way
    start: np.ndarray  # the first row of each top or bottom
    number: np.ndarray  # (T,): of the row's top or bottom, counted through
    n_sizes: int  # the number of rows of codes' sizes

    @property
    def n_rows(self) -> int:
        """T"""
        return len(self.column)

    def highest(self, per_row: np.ndarray) -> np.ndarray:
        """The largest value among the rows of each top or bottom."""
        return np.maximum.reduceat(per_row[: self.n_rows], self.start)

    def shares(self, force: np.ndarray) -> np.ndarray:
        """The rows' multipliers as shares of their top or bottom; shape (T,)."""
        force = np.maximum(force[: self.n_rows], 1e-300)
        return force / np.add.reduceat(force, self.start)[self.number]


def level_costs(problem: Problem) -> kernels.LevelCosts:
    """What changes of levels cost, as the kernels read it."""
    metric, m = problem.metric, problem.n_categorical
    unit = metric.level_cost / metric.scale
    given = (1.0,) * m if metric.level_costs is None else metric.level_costs
    single = np.array([np.inf if isinstance(costs, np.ndarray) else unit * costs for costs in given])
    matrices = [unit * costs.ravel() if isinstance(costs, np.ndarray) else np.zeros(0) for costs in given]
    start = np.cumsum([0, *map(len, matrices)]).astype(np.int64)
    return kernels.LevelCosts(single, start, np.concatenate([np.zeros(0), *matrices]))


class Instance:
    """A problem in its coordinates: minimise over theta and s

        lam radius + sum_i w_i s_i + sum_j penalty_j |b_j(theta)| + linear.b(theta)
        subject to  s_i >= L(a_c(theta)) - lam cost_c   for the cuts c of sample i,
                    rows(theta) >= 0.

    Attributes
    ----------
    problem : Problem
        With transport cost in the method's own unit.
    coordinates, settings, tol
    costs : kernels.LevelCosts
    change_cost, label_cost, toll : float
        Typical cost of changing a level, that of the label, and of moving a number by 1 at a cost of 1.
    x_scale : ndarray of shape (n,)
        That of the coordinates times what a move of each number costs; inf: it may not move.
    number_norm : Norm
        On numbers times their costs.
    penalised : LinearRows
        b_j(theta) of the coefficients with a penalty, and ``penalties`` (J,) these.
    intercept_row : ndarray of shape (E,)
        b_0 = intercept_row . theta; without an intercept, theta stays where this is 0.
    tilt : Tilt or None
        What brings ``linear`` (1 + n + k,); 0 without it. ``linear_row`` (E,) is the same in terms of theta.
    bounds : tuple
        ``coefficient_bounds`` of the problem, where its objective is at most log 2 or the tilt's budget.
    tops : Tops
    rows : LinearRows
        At the start: those of the tops, the box, then lam >= 0 and lam >= dual_norm(b_N), as far as this is linear.
    most : ndarray
        About the largest multiplier that each row can have: the mass that a top can carry, what of the balance a box
        can, the radius for those in lam.
    box, norm : slice
        The rows of the box, two for each coefficient in it, and those in lam.
    fold : kernels.Fold
        Of the Newton matrix.
    curved : bool
        Whether the last row is the tangent of the l2 norm at theta, see ``turned``.
    by_sizes : bool
        Whether the last row is toll lam >= sum of the numbers' sizes.
    by_tangents : bool
        Whether lam >= dual_norm(b_N) takes more rows than those at the start, which searches find.
    """

    def __init__(
        self,
        problem: Problem,
        coordinates: Coordinates,
        tol: float,
        settings: Settings = SETTINGS,
        tilt: Tilt | None = None,
    ):
        self.x_scale = coordinates.x_scale
        if problem.metric.number_costs is not None:
            self.x_scale = self.x_scale * problem.metric.number_costs
        smallest_column = float(self.x_scale[np.isfinite(self.x_scale)].min(initial=np.inf))
        self.problem = problem = with_distance_unit(problem, smallest_column if smallest_column < np.inf else 1.0)
        self.coordinates, self.tol, self.settings = coordinates, tol, settings
        self.costs = level_costs(problem)
        self.change_cost = problem.metric.typical_change(1) or 1.0
        penalty = problem.penalty.astype(float)
        penalty[0] *= problem.fit_intercept
        penalised = np.flatnonzero(penalty > 0)
        self.penalties = penalty[penalised]
        self.penalised = LinearRows([coordinates.b_rows[j] for j in penalised])
        self.intercept_row = np.zeros(coordinates.E)
        index, value, _ = coordinates.b_rows[0]
        self.intercept_row[list(index)] = value
        self.tilt = tilt
        self.linear_row = coordinates.b_of_theta.transposed_times(self.linear, coordinates.E)
        self.bounds = coefficient_bounds(problem, LOG_2 if tilt is None else tilt.budget)
        self._make_rows()
        self.fold = kernels.fold(coordinates.E, self._apart(), coordinates.data)

    @cached_property
    def linear(self) -> np.ndarray:
        return np.zeros(self.problem.n_coefficients) if self.tilt is None else self.tilt.linear

    @cached_property
    def bounded(self) -> np.ndarray:
        """The coefficients in the box."""
        return np.flatnonzero(np.isfinite(self.problem.coef_bound))

    @property
    def number_norm(self) -> Norm:
        return NORMS[self.problem.metric.norm]

    @property
    def label_cost(self) -> float:
        return self.problem.metric.label_change if self.problem.radius > 0 else np.inf

    @property
    def toll(self) -> float:
        return 1.0 / self.problem.metric.scale

    def _make_rows(self) -> None:
        problem, E, x_scale = self.problem, self.coordinates.E, self.x_scale
        self.tops, rows = self._rows_of_tops()
        bounded = self.bounded
        self.box = slice(len(rows), len(rows) + 2 * len(bounded))
        for j in bounded:
            index, value, _ = self.coordinates.b_rows[j]
            rows += [(index, [-v for v in value], problem.coef_bound[j]), (index, value, problem.coef_bound[j])]
        # What a box can carry of the balance: the mean size of its column.
        n = problem.n_numeric
        carried = np.concatenate([[1.0], self.coordinates.x_size, np.ones(problem.n_coefficients - 1 - n)])[bounded]
        may_move = np.flatnonzero(np.isfinite(x_scale))
        n_sizes = len(self.coordinates.number_size)
        of_sizes = problem.radius / (self.toll * x_scale[may_move].repeat(2)) if n_sizes else np.zeros(0)
        most = [np.ones(self.tops.n_rows - len(of_sizes)), of_sizes, carried.repeat(2)]
        self.norm = slice(len(rows), None)
        if problem.radius > 0:
            rows.append(([E - 1], [self.toll], 0.0))
            units = self.number_norm.of_units(n) if n else np.zeros(0)
            for r in [] if n_sizes else may_move.tolist():  # the dual norm is at least |b_r| / ||e_r||
                rows += [([E - 1, 1 + r], [self.toll, sign / (x_scale[r] * units[r])], 0.0) for sign in (-1.0, 1.0)]
        several = problem.radius > 0 and n > 1
        kind = type(self.number_norm)  # a subclass may have other values
        self.curved = several and kind is L2
        self.by_sizes = problem.radius > 0 and n_sizes > 0
        self.by_tangents = several and kind not in (L1, L2) and not self.by_sizes
        if self.by_sizes:
            sizes = self.coordinates.number_size
            rows.append(([E - 1, *sizes], [self.toll, *(-1.0 / x_scale[may_move])], 0.0))
        if self.curved:
            rows.append(([E - 1, *range(1, 1 + n)], [self.toll, *np.zeros(n)], 0.0))
        most.append(np.full(len(rows) - self.norm.start, problem.radius / self.toll))
        self.most = np.concatenate(most)
        self.rows = LinearRows(rows)

    def _apart(self) -> np.ndarray:
        """The coordinates of a feature with many levels, but for the reference's, if no row or cut has two of them.

        A cut that changes a feature with a top has its own level's and the top.
        """
        problem, data = self.problem, self.coordinates.data
        n_levels = np.where(data.top[0] >= 0, problem.n_levels, 0)
        n_levels[problem.coded] = 0
        if max(n_levels, default=0) < LEAST_APART:
            return np.zeros(0, int)
        j = int(np.argmax(n_levels))
        apart = np.delete(data.column[problem.levels(j)], problem.all_dummies.reference[j] - problem.offsets[j])
        apart = apart[apart >= 0]
        rows = (self.rows, self.penalised)
        alone = all(np.bincount(some.row[np.isin(some.index, apart)]).max(initial=0) < 2 for some in rows)
        return apart if alone else apart[:0]

    def _rows_of_tops(self) -> tuple[Tops, list[Row]]:
        data, problem = self.coordinates.data, self.problem
        rows, of_row = self._rows_of_sizes()
        n_sizes = len(rows)
        for j in range(problem.n_categorical):
            for side, sign in ((0, 1.0), (1, -1.0)):
                top = data.top[side, j]
                if top < 0:
                    continue
                if j in problem.coded:
                    rows.append(self._row_of_code(j, top, sign))
                    of_row.append((top, sign, side, -1))
                    continue
                for level in range(data.offsets[j], data.offsets[j + 1]):
                    score = data.column[level]
                    rows.append(([top, score], [sign, -sign], 0.0) if score >= 0 else ([top], [sign], 0.0))
                    of_row.append((top, sign, side, level))
        movable = np.flatnonzero(np.isfinite(self.x_scale))
        for r, size in zip(movable.tolist(), self.coordinates.number_size.tolist(), strict=False):
            rows += [([size, 1 + r], [1.0, -sign], 0.0) for sign in (1.0, -1.0)]
            of_row += [(size, 1.0, 0, -1)] * 2
        table = np.array(of_row).reshape(-1, 4)
        column, side, level = table[:, [0, 2, 3]].T.astype(int)
        of_level = np.append(np.repeat(problem.n_levels, problem.n_levels), 0)  # the last for rows without a level
        is_first = np.diff(column, prepend=-1) != 0
        start, number = np.flatnonzero(is_first), np.cumsum(is_first) - 1
        return Tops(column, table[:, 1], side, level, of_level[level] > MANY_LEVELS, start, number, n_sizes), rows

    def _rows_of_sizes(self) -> tuple[list[Row], list[tuple[float, ...]]]:
        """size_v - b_v >= 0 and size_v + b_v >= 0, and what ``Tops`` has of these rows."""
        rows: list[Row] = []
        of_row: list[tuple[float, ...]] = []
        for v, size in enumerate(self.coordinates.size):
            if size >= 0:
                index, value, _ = self.coordinates.b_rows[1 + self.problem.n_numeric + v]
                rows += [([size, *index], [1.0, *(-sign * np.asarray(value))], 0.0) for sign in (1.0, -1.0)]
                of_row += [(size, 1.0, 0, -1)] * 2
        return rows, of_row

    def _row_of_code(self, j: int, top: int, sign: float) -> Row:
        """sign top >= sum of sizes - sign times the score of the commonest level, which tops are relative to."""
        coordinates, codes = self.coordinates, self.common_codes
        of_scores = np.zeros(coordinates.n_scores)
        entries = slice(*codes.indptr[j : j + 2])
        for v, code in zip(codes.indices[entries], codes.data[entries], strict=True):
            index, value, _ = coordinates.b_rows[1 + self.problem.n_numeric + v]
            of_scores[list(index)] += sign * code * np.asarray(value)
        index = np.flatnonzero(of_scores)
        sizes = coordinates.size[self.problem.dummies(j)]
        return [top, *sizes, *index], [sign, *-np.ones(len(sizes)), *of_scores[index]], 0.0

    @cached_property
    def common_codes(self) -> sp.csr_array:
        """The codes of the commonest levels; shape (m, k)."""
        return self.problem.level_matrix[self.coordinates.common]

    @cached_property
    def tops_of_sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """The coordinates of the sizes of codes, and those of their features' tops and bottoms, of shape (2, .)."""
        sized = np.flatnonzero(self.coordinates.size >= 0)
        return self.coordinates.size[sized], self.coordinates.data.top[:, self.coordinates.feature[sized]]

    @cached_property
    def floor(self) -> float:
        """What tau times the number of pairs need not go below, but for small objectives.

        Multipliers of tops stand for mass that is moved, and should be no larger than that.
        """
        floor = self.settings.floor_of_tol * self.tol
        if (self.coordinates.data.top >= 0).any() and self.problem.radius > 0:
            floor = min(floor, self.settings.floor_of_mass * self.problem.radius / self.change_cost)
        return floor

    # ------------------------------------------------------------ functions of theta

    def objective(self, theta: np.ndarray, per_sample: np.ndarray) -> float:
        """lam radius + w.(per_sample) + penalty.|b| + linear.b"""
        b = self.coordinates.b_of_theta.times(theta)
        lam = self.problem.radius * theta[-1] if self.problem.radius > 0 else 0.0
        return float(self.coordinates.data.w @ per_sample + lam + self.problem.penalty_value(b) + self.linear @ b)

    def scores(self, theta: np.ndarray) -> kernels.Scores:
        """f of every sample, and the score of every level."""
        return kernels.scores(theta, self.coordinates.data)

    def arguments(self, theta: np.ndarray, scores: kernels.Scores, pool: kernels.Pool) -> np.ndarray:
        """a of every cut, or its change if ``theta`` is a direction; shape (C,)."""
        return kernels.arguments(theta, scores, self.coordinates.data, pool)

    def values(self, theta: np.ndarray, scores: kernels.Scores, pool: kernels.Pool) -> np.ndarray:
        """L(a) - lam cost of every cut; shape (C,)."""
        return kernels.values(theta, scores, self.coordinates.data, pool)

    def separate(
        self, theta: np.ndarray, scores: kernels.Scores, threshold: np.ndarray, pool: kernels.Pool
    ) -> tuple[np.ndarray, np.ndarray, kernels.Pool]:
        """``kernels.separate``: values (N,) of the worst cuts, and those above the threshold that the pool lacks."""
        data, code = self.coordinates.data, self.best_code(theta)
        return kernels.separate(scores, theta[-1], code, data, self.costs, self.label_cost, threshold, pool)

    def best_code(self, theta: np.ndarray) -> np.ndarray:
        """The highest and the lowest score of any code, less that of the commonest level; nan if there are levels only.

        Shape (2, m).
        """
        problem, best = self.problem, np.full((2, self.problem.n_categorical), np.nan)
        if len(problem.coded):
            slopes = self.coordinates.b_of_theta.times(theta)[1 + problem.n_numeric :]
            size = np.bincount(self.coordinates.feature, np.abs(slopes), problem.n_categorical)
            common = self.common_codes @ slopes
            best[:, problem.coded] = np.array([size - common, -size - common])[:, problem.coded]
        return best

    def slopes(self, theta: np.ndarray) -> np.ndarray:
        """b_N over the costs of moving; shape (n,)."""
        return theta[1 : 1 + self.problem.n_numeric] / self.x_scale

    def dual_norm(self, theta: np.ndarray) -> float:
        """The least lam at theta."""
        if self.problem.radius == 0 or not self.problem.n_numeric:
            return 0.0
        return float(self.problem.metric.scale * self.number_norm.dual(self.slopes(theta)))

    def turned(self, rows: LinearRows, theta: np.ndarray) -> LinearRows:
        """The rows, that of the l2 norm its tangent at theta; its value there is toll lam - ||b_N||."""
        if not self.curved:
            return rows
        slopes = self.slopes(theta)
        turned = copy(rows)
        turned.value = rows.value.copy()
        turned.value[-len(slopes) :] = -slopes / max(np.linalg.norm(slopes), 1e-300) / self.x_scale
        return turned


class Iterate(NamedTuple):
    """Where the method is. Four families of pairs: cuts, rows, and u - b and u + b of every penalised |b_j| <= u_j.

    theta (E,), its scores, s (N,) and tau; the pool of cuts; ``rows`` >= 0 with ``most`` as in ``Instance``; b (J,) of
    the penalised coefficients; ``length`` of the last step and the ``ridge`` of the next one.
    """

    theta: np.ndarray
    scores: kernels.Scores
    s: np.ndarray
    tau: float
    pool: kernels.Pool
    cuts: Pairs
    rows: LinearRows
    most: np.ndarray
    limits: Pairs
    b: np.ndarray
    above: Pairs
    below: Pairs
    ridge: float
    length: float = 1.0

    def by_cut(self, per_sample: np.ndarray) -> np.ndarray:
        """(N,) to (C,)"""
        return per_sample.repeat(self.pool.counts)
