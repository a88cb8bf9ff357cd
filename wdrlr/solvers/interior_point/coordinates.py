"""The coordinates that the method works in: scaled numbers, one score a level, tops and bottoms, lam."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from wdrlr.model.metric import NORMS, LInf
from wdrlr.model.problem import Problem
from wdrlr.model.threads import filled
from wdrlr.solvers.interior_point import kernels

MIN_LEVELS_FOR_TOPS = 4
"""With three levels the other two are no more cuts than a top and its rows; measured as faster from four on."""
FAR_FROM_0 = 10.0
"""Times half their range, that the middle of a column's numbers is away from 0: they are centred then."""
NEGLIGIBLE = 1e-13
"""Times the largest weight: a sample below it is left out."""

Row = tuple[Sequence[int] | np.ndarray, Sequence[float] | np.ndarray, float]
"""The coordinates, coefficients and constant of an affine function of theta."""


class LinearRows:
    """Sparse affine functions of theta: row r has the value const_r + row_r . theta."""

    def __init__(self, rows: Sequence[Row] = ()):
        self.ends = np.cumsum([0, *(len(row[0]) for row in rows)], dtype=np.int64)
        self.index = np.array([e for row in rows for e in row[0]], np.int64)
        self.value = np.array([value for row in rows for value in row[1]], float)
        self.const = np.array([row[2] for row in rows], float)

    @cached_property
    def row(self) -> np.ndarray:
        """The row of every entry."""
        return np.arange(len(self)).repeat(np.diff(self.ends))

    def __len__(self) -> int:
        return len(self.const)

    def joined(self, others: LinearRows) -> LinearRows:
        """These rows, then the others."""
        both = LinearRows()
        both.ends = np.concatenate([self.ends, self.ends[-1] + others.ends[1:]])
        both.index = np.concatenate([self.index, others.index])
        both.value = np.concatenate([self.value, others.value])
        both.const = np.concatenate([self.const, others.const])
        return both

    def times(self, theta: np.ndarray) -> np.ndarray:
        """Rows . theta; shape (number of rows,)."""
        return np.bincount(self.row, self.value * theta[self.index], len(self))

    def values(self, theta: np.ndarray) -> np.ndarray:
        """const + rows . theta; shape (number of rows,)."""
        return self.const + self.times(theta)

    def transposed_times(self, force: np.ndarray, E: int) -> np.ndarray:
        """sum_r force_r row_r; shape (E,)."""
        return np.bincount(self.index, self.value * force[self.row], E)

    def add_gram(self, M: kernels.Folded, position: np.ndarray, D: np.ndarray) -> None:
        """M += rows' diag(D) rows, in place; ``position`` as in ``kernels.Fold``."""
        kernels.add_rows_gram(M, position, self.ends, self.index, self.value, D)


NO_ROWS = LinearRows()


class Coordinates:
    """The coordinates of ``kernels`` for the data of a problem, and the linear map from them to b.

    Problems that differ in radius, label cost, costs that are no matrices, penalty or bound can share them: they depend
    on the data, the coding and whether there is an intercept; on which costs are matrices, which features can have any
    code and which numbers may move; and on whether the norm is linf. Samples of a weight below
    ``light`` are left out. What that costs, the certificate tells, which has all samples.

    Attributes
    ----------
    E, n_scores : int
        The number of coordinates, and of those before tops, bottoms and lam; n_scores = 1 + n + k.
    kept : int ndarray
        The samples that are not left out.
    x_scale, x_size : ndarrays of shape (n,)
        theta[1 + r] = x_scale_r b_{1 + r}; the largest |x_ir|.
    center : ndarray of shape (n,)
        The value of each number that is 0 in the coordinates.
    common : int ndarray of shape (m,)
        The commonest level of each feature, counted through.
    level_matrix, feature
        Those of the problem, and of ``Problem.all_dummies``.
    b_rows, b_of_theta : list of Row, LinearRows
        b_j as affine functions of theta.
    size : int ndarray of shape (k,)
        The coordinate of |b_j| of a category's slope, if its feature can have any code; else -1.
    number_size : int ndarray
        Those of |theta| of the numbers that may move, where the norm sums their slopes.
    data : kernels.Data
    """

    def __init__(self, problem: Problem, light: float = 0.0):
        self.kept = np.flatnonzero(problem.w > max(light, NEGLIGIBLE * problem.w.max()))
        self.n_scores = problem.n_coefficients
        self.level_matrix, self.feature = problem.level_matrix, problem.all_dummies.feature
        self._of_dummies = problem.of_dummies
        intercept: list[tuple[int, float]] = [(0, 1.0)]  # coordinates and coefficients of b_0
        x, number_rows = self._scale_numbers(problem, intercept)
        z = np.empty((len(self.kept), problem.n_categorical), np.int32)
        z = filled(z, z.shape[1], lambda rows: problem.z[self.kept[rows]] + problem.offsets)
        offsets = np.append(problem.offsets, sum(problem.n_levels)).astype(np.int64)
        column, level_rows = self._score_levels(problem, z, offsets, intercept)
        top = np.full((2, problem.n_categorical), -1, np.int32)
        has_top = self._features_with_tops(problem)
        top[:, has_top] = self.n_scores + np.arange(2 * len(has_top)).reshape(-1, 2).T
        self.size = np.full(problem.level_matrix.shape[1], -1)
        sized = np.concatenate(
            [np.zeros(0, int), *(np.arange(len(self.size))[problem.dummies(j)] for j in problem.coded)]
        )
        self.size[sized] = self.n_scores + 2 * len(has_top) + np.arange(len(sized))
        at = self.n_scores + 2 * len(has_top) + len(sized)
        self.number_size = at + np.arange(len(self._sized_numbers(problem)))
        self.E = at + len(self.number_size) + 1
        first: Row = ([at for at, _ in intercept], [value for _, value in intercept], 0.0)
        self.b_rows = [first, *number_rows, *level_rows]
        self.b_of_theta = LinearRows(self.b_rows)
        y, w = problem.y[self.kept], problem.w[self.kept]
        self.data = kernels.make_data(x, z, y, w, problem.n_levels, column, top)

    @staticmethod
    def _sized_numbers(problem: Problem) -> np.ndarray:
        """Those that may move, if the norm is linf, whose dual sums slopes; that of a subclass may not."""
        may_move = problem.metric.movable(problem.n_numeric)
        return np.flatnonzero(may_move & (type(NORMS[problem.metric.norm]) is LInf) & (problem.n_numeric > 1))

    @staticmethod
    def _features_with_tops(problem: Problem) -> np.ndarray:
        """Those that can have any code, and those with many levels which all cost the same."""
        has_top = np.array(problem.n_levels, int) >= MIN_LEVELS_FOR_TOPS
        has_top[problem.coded] = True
        for j, costs in enumerate(problem.metric.level_costs or ()):
            has_top[j] &= not isinstance(costs, np.ndarray)
        return np.flatnonzero(has_top)

    def _scale_numbers(self, problem: Problem, intercept: list[tuple[int, float]]) -> tuple[np.ndarray, list[Row]]:
        """Numbers scaled to [-1, 1], and their slopes.

        Those far from 0 (a year, a time stamp) are first centred, or they would be one direction with the intercept.
        """
        x, n = problem.x[self.kept], problem.n_numeric
        high, low = x.max(axis=0, initial=-np.inf), x.min(axis=0, initial=np.inf)
        far = problem.fit_intercept & (np.abs(high + low) > FAR_FROM_0 * (high - low))
        center = np.where(far, (high + low) / 2, 0.0)
        largest = np.maximum(high - center, center - low)
        self.x_scale = np.where(largest > 0, largest, 1.0)
        self.x_size = np.abs(center) + self.x_scale
        self.center = center
        intercept += [(1 + int(r), -center[r] / self.x_scale[r]) for r in np.flatnonzero(far)]
        rows: list[Row] = [([1 + r], [1.0 / self.x_scale[r]], 0.0) for r in range(n)]
        return np.ascontiguousarray((x - center) / self.x_scale), rows

    def _score_levels(
        self, problem: Problem, z: np.ndarray, offsets: np.ndarray, intercept: list[tuple[int, float]]
    ) -> tuple[np.ndarray, list[Row]]:
        """The coordinate of every level, -1 for the commonest of its feature, and b_C."""
        level, reference, feature, span, constant = problem.all_dummies
        counts = np.bincount(z.ravel(), minlength=offsets[-1])
        self.common = np.array([offsets[j] + np.argmax(counts[problem.levels(j)]) for j in range(z.shape[1])], int)
        others = np.delete(np.arange(offsets[-1]), self.common)
        column = np.full(offsets[-1], -1, np.int32)
        column[others] = 1 + problem.n_numeric + np.arange(len(others))
        ends = zip(column[level].tolist(), column[reference][feature].tolist(), (1 / span).tolist(), strict=True)
        entries = ([(at, v), (ref, -v)] for at, ref, v in ends)
        rows: list[Row] = [([e for e, _ in two if e >= 0], [v for e, v in two if e >= 0], 0.0) for two in entries]
        some = np.flatnonzero((column >= 0) & (constant != 0))
        intercept += list(zip(column[some].tolist(), constant[some].tolist(), strict=True))
        return column, rows

    def of_b(self, b: np.ndarray) -> np.ndarray:
        """theta[:n_scores] for coefficients b (1 + n + k,)."""
        n = len(self.x_scale)
        score = self.level_matrix @ b[1 + n :]
        common = score[self.common]
        relative = np.delete(score, self.common) - common[self.feature]
        intercept = b[0] + self.center @ b[1 : 1 + n] + common.sum()
        return np.concatenate([[intercept], self.x_scale * b[1 : 1 + n], relative])

    def on_b(self, force: np.ndarray) -> np.ndarray:
        """r (1 + n + k,) with r.b = force.theta[:n_scores] for all b; force (n_scores,)."""
        n, of_levels = len(self.x_scale), force[1 + len(self.x_scale) :]
        common = force[0] - np.bincount(self.feature, of_levels, len(self.common))
        spread = np.zeros(self.level_matrix.shape[0])
        spread[self.data.column >= 0] = of_levels
        spread[self.common] = common
        numbers = self.center * force[0] + self.x_scale * force[1 : 1 + n]
        return np.concatenate([force[:1], numbers, self._of_dummies @ spread])
