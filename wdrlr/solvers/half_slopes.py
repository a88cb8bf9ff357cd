"""A direction and changes of labels near the largest useful radius: an interior-point method for the usual metric.

Where b = 0 is the best constant model, which takes labels that can be changed, every sample has the slope 1/2 of the
log-loss. Where all changes of feature j cost the same, p_j, no direction d needs levels whose scores are more than
2 p_j apart: with all scores clipped to such a range, no point is worse, and no penalty of a dummy larger, if the range
has the reference in it. Then no change of a level pays, and h of ``largest_radius`` is

    h(d) = sum_i w_i [ -g_i / 2 + max(0, g_i - kappa) ] + sum_j penalty_j |d_j|,    g_i = y_i f_d(x_i, z_i).

To minimise it is a linear program with one kink a sample (with a ball for the norm l2). In its dual, the mass q_i of
sample i gets the other label, 0 <= q_i <= w_i; what the classes still differ by is moved away. Mehrotra's predictor and
corrector solve both, with one Newton matrix of the order 1 + n + sum(n_levels) a step, one more for each size, as in
``interior_point``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from wdrlr.model.metric import L1, L2, GroundMetric, LevelCosts, LInf, Norm, Weighted
from wdrlr.model.problem import Problem
from wdrlr.model.threads import on_one_thread
from wdrlr.solvers.interior_point import kernels
from wdrlr.solvers.interior_point.coordinates import NEGLIGIBLE

MOST_STEPS = 60
"""Ten to twenty are usual."""

ACCURACY = 1e-12
"""Of the complementarity, relative to the value, at which the method ends."""

LARGEST_PENALTY = 1.0
"""One that leaves a coefficient 0: no derivative is larger, in units of each column. Stands for larger ones."""

FIRST_SHARE = 0.25
"""Of each sample's mass, that has the other label at the start."""

STEP_TO_EDGE = 0.995
RIDGE = 1e-14
"""How far a step goes to where the first slack or multiplier would be 0; what makes the matrix, its diagonal scaled to
1, regular."""


def level_prices(metric: GroundMetric, n_levels: tuple[int, ...]) -> np.ndarray:
    """What every change of a feature costs, in units of the metric; inf where some cost more than others; shape (m,).

    0 without a second level.
    """
    costs = metric.level_costs or (1.0,) * len(n_levels)
    each = [_one_cost(of_feature) if K > 1 else 0.0 for of_feature, K in zip(costs, n_levels, strict=True)]
    return metric.level_cost * np.array(each, dtype=float) / metric.scale


def _one_cost(costs: LevelCosts) -> float:
    if not isinstance(costs, np.ndarray):
        return costs
    others = costs[~np.eye(len(costs), dtype=bool)]
    return float(others[0]) if (others == others[0]).all() else np.inf


def applies(problem: Problem) -> bool:
    """Whether the module's docstring holds: labels and numbers can be changed, and each feature at one price.

    Penalties, and an intercept that is penalised or absent, need 0/1 dummies.
    """
    metric, n = problem.metric, problem.n_numeric
    prices, matrix = level_prices(metric, problem.n_levels), problem.level_matrix
    of_dummies = matrix.nnz == matrix.shape[1] and (matrix.data == 1).all()
    return bool(
        metric.p == 1
        and metric.flips
        and np.isfinite(prices).all()
        and ((prices > 0) | (np.array(problem.n_levels, dtype=int) < 2)).all()
        and metric.movable(n).all()
        and (n < 2 or type(base_norm(metric, n)[0]) in (L1, L2, LInf))
        and not len(problem.coded)
        and (of_dummies or (problem.fit_intercept and not problem.penalty.any()))
    )


def base_norm(metric: GroundMetric, n: int) -> tuple[Norm, np.ndarray]:
    """The norm on the numbers without their costs, and these; shape (n,)."""
    norm = metric.number_norm
    return (norm.base, norm.costs) if isinstance(norm, Weighted) else (norm, np.ones(n))


class _Program(NamedTuple):
    """minimise c.v + sum_i w_i max(0, y_i R_i v - 1)  subject to  G v <= limit  and, with a ball, ||ball * v_N|| <= 1.

    v is the intercept, the numbers' slopes, a score for each level, then sizes; kappa is the unit.
    """

    data: kernels.Data
    c: np.ndarray  # (V,)
    G: sp.csr_array  # (rows, V)
    limit: np.ndarray  # (rows,)
    ball: np.ndarray  # (n,), or (0,) without a ball
    first: np.ndarray  # (V,): within the limits

    def decisions(self, v: np.ndarray) -> np.ndarray:
        """y_i R_i v; shape (N,)."""
        return self.data.y * kernels.scores(v, self.data).f

    def sums(self, mass: np.ndarray) -> np.ndarray:
        """sum_i mass_i y_i R_i; shape (V,)."""
        pool = _own_cuts(len(mass))
        return kernels.sum_rows(mass * self.data.y, len(self.c) + 1, self.data, pool)[:-1]

    def split(self, pairs: np.ndarray) -> list[np.ndarray]:
        """What ``_Iterate`` has of slacks or multipliers: of the samples, twice N, of the rows, and of the ball."""
        N = len(self.data.w)
        return np.split(pairs, [N, 2 * N, 2 * N + len(self.limit)])

    def gram(self, weight: np.ndarray) -> np.ndarray:
        """sum_i weight_i R_i R_i'; shape (V, V)."""
        N = len(weight)
        fold = kernels.fold(len(self.c) + 1, np.zeros(0, dtype=np.int64), self.data)
        half = np.full(N, 0.5)
        return kernels.gram(fold, self.data, _own_cuts(N), half, 4.0 * weight, np.ones(N)).core[:-1, :-1]


def _own_cuts(N: int) -> kernels.Pool:
    """A cut for each sample that changes nothing."""
    nothing = kernels.empty_pool(N)
    return nothing._replace(
        start=np.arange(N + 1), sign=np.ones(N), cost=np.zeros(N), ends=np.zeros(N + 1, dtype=np.int64)
    )


@on_one_thread
def solve(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """A direction d and masses q that change their labels, both nearly optimal for the module's program.

    Parameters
    ----------
    problem : Problem
        One to which ``applies`` says yes.

    Returns
    -------
    d : ndarray of shape (1 + n + k,)
        In the coefficients of the problem, ||d_N|| <= 1 up to rounding.
    q : ndarray of shape (N,)
        0 <= q_i <= w_i.
    """
    heavy = problem.w > NEGLIGIBLE * problem.w.max()  # of the others, half of the mass changes its label
    center = _center(problem)
    size = np.abs(problem.x - center).max(axis=0, initial=0.0)
    size[size == 0] = 1.0
    program = _pose(problem, heavy, center, size)
    with np.errstate(all="ignore"):  # what is not finite ends the method
        v, mass = _minimise(program)
    q = problem.w / 2
    q[heavy] = np.clip(mass, 0.0, problem.w[heavy])
    return _coefficients(problem, v, center, size), q


def _center(problem: Problem) -> np.ndarray:
    """The means of the numbers, if the intercept makes up for any shift, exact where a column is constant; (n,)."""
    if not problem.fit_intercept or problem.penalty[0] > 0:
        return np.zeros(problem.n_numeric)
    return problem.means


def _coefficients(problem: Problem, v: np.ndarray, center: np.ndarray, size: np.ndarray) -> np.ndarray:
    """d for the program's variables: scores are those of dummies plus one constant a feature."""
    n, kappa = problem.n_numeric, problem.metric.label_change
    d = np.zeros(problem.n_coefficients)
    d[0], d[1 : 1 + n] = v[0], v[1 : 1 + n] / size
    for j in range(problem.n_categorical):
        constant, slopes = problem.slopes_of_scores(j, v[1 + n :][problem.levels(j)])
        d[0] += constant
        d[1 + n :][problem.dummies(j)] = slopes
    d[0] -= center @ d[1 : 1 + n]
    d[0] *= problem.fit_intercept
    return kappa * d


def _pose(problem: Problem, heavy: np.ndarray, center: np.ndarray, size: np.ndarray) -> _Program:
    """The program of the heavy samples, its numbers in units of each column."""
    metric, n, V = problem.metric, problem.n_numeric, sum(problem.n_levels)
    kappa, prices = metric.label_change, level_prices(metric, problem.n_levels)
    column = (1 + n + np.arange(V)).astype(np.int32)
    data = kernels.make_data(
        x=np.ascontiguousarray((problem.x[heavy] - center) / size),
        z=np.ascontiguousarray(problem.z[heavy] + problem.offsets, dtype=np.int32),
        y=problem.y[heavy],
        w=problem.w[heavy],
        n_levels=problem.n_levels,
        column=column,
        top=np.full((2, problem.n_categorical), -1, dtype=np.int32),
    )
    norm, costs = base_norm(metric, n)
    reach = size * costs * (norm.of_units(n) if n == 1 else 1.0) / metric.scale / kappa
    one = sp.eye_array(1 + n + V, format="csr")
    # |box v| <= most; |sized v| <= the sizes, whose prices are in the objective, and the first of which sum to 1.
    most = np.concatenate([reach, np.repeat(prices, problem.n_levels) / kappa])
    if n > 1 and type(norm) is not L1:
        most[:n] = np.inf
    boxed = np.flatnonzero(np.isfinite(most) & (most > 0))
    box = one[1 + boxed]
    summed = n if n > 1 and type(norm) is LInf else 0
    penalty, functionals = _penalties(problem, size, one)
    sized = sp.vstack([sp.diags_array(1.0 / reach[:summed]) @ one[1 : 1 + summed], functionals], format="csr")
    K = sized.shape[0]
    size_of = sp.eye_array(K, format="csr")
    total = sp.csr_array((np.arange(K) < summed).astype(float)[None, :])
    parts = [[box, None], [-box, None], [sized, -size_of], [-sized, -size_of], [None, total]]
    limits = [most[boxed], most[boxed], np.zeros(K), np.zeros(K), np.ones(1)]
    first = np.full(K, 0.5)
    first[:summed] /= max(summed, 1)
    program = _Program(
        data=data,
        c=np.zeros(1 + n + V + K),
        G=sp.block_array(parts, format="csr"),
        limit=np.concatenate(limits),
        ball=1.0 / reach if n > 1 and type(norm) is L2 else np.zeros(0),
        first=np.concatenate([np.zeros(1 + n + V), first]),
    )
    program.c[: 1 + n + V] = -0.5 * program.sums(data.w)[: 1 + n + V]
    program.c[1 + n + V + summed :] = penalty
    return program


def _penalties(problem: Problem, size: np.ndarray, one: sp.csr_array) -> tuple[np.ndarray, sp.csr_array]:
    """The penalties that are not 0, and what is penalised, as rows that act on intercept, slopes and scores."""
    n = problem.n_numeric
    penalty = np.concatenate([problem.penalty[:1], problem.numeric(problem.penalty) / size, problem.penalty[1 + n :]])
    if not problem.fit_intercept:
        penalty[0] = np.inf
    rows = one[: 1 + n]
    if penalty[1 + n :].any() or penalty[0] > 0:
        # Scores are counted from those of the references.
        of_all, scores = problem.all_dummies, one[1 + n :]
        intercept = one[:1] + sp.csr_array(scores[of_all.reference].sum(axis=0)[None, :])
        dummies = scores[of_all.level] - scores[of_all.reference[of_all.feature]]
        rows = sp.vstack([intercept, rows[1:], dummies], format="csr")
    else:
        penalty = penalty[: 1 + n]
    penalised = np.flatnonzero(penalty > 0)
    return np.minimum(penalty[penalised], LARGEST_PENALTY), rows[penalised]


class _Iterate(NamedTuple):
    """Variables, slacks, and multipliers.

    Slacks and multipliers are those of y_i R_i v - 1 <= e_i, which are q_i, of e_i >= 0, which are w_i - q_i, of the
    rows, and of the ball, (1 - ||ball * v_N||^2) / 2 >= 0, if there is one.
    """

    v: np.ndarray
    slack: np.ndarray  # (2 N + rows + 0 or 1,)
    multiplier: np.ndarray  # the same

    @property
    def complementarity(self) -> float:
        return float(self.slack @ self.multiplier)


class _Newton(NamedTuple):
    """The linearised conditions at an iterate, with all but v eliminated, and their matrix factorised."""

    program: _Program
    at: _Iterate
    bent: np.ndarray  # (V,): minus the gradient of the ball's slack
    room: np.ndarray  # (0 or 1,): the slack of the ball that is not in its variable yet
    unbalanced: np.ndarray  # (V,): the gradient of the Lagrangian
    factor: tuple
    root: np.ndarray  # (V,): the matrix is factorised with its diagonal scaled to 1

    def direction(self, aim: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Changes of v, slacks and multipliers that change the products of the last two by ``aim``, to first order."""
        program, at, split = self.program, self.at, self.program.split
        (s, e, a, t), (q, p, of_rows, of_ball), (of_s, of_e, of_a, of_t) = map(split, (at.slack, at.multiplier, aim))
        curve = s * p + q * e
        base = (of_s * p - q * of_e) / curve
        of_ball_slack = (of_t - of_ball * self.room) / t
        right = -self.unbalanced - program.sums(base) - program.G.T @ (of_a / a) - self.bent * of_ball_slack.sum()
        dv = cho_solve(self.factor, right * self.root, check_finite=False) * self.root
        g = program.decisions(dv)
        dq = base + q * p / curve * g
        de, da, dt = (of_e + e * dq) / p, -(program.G @ dv), self.room - self.bent @ dv
        d_slack = np.concatenate([de - g, de, da, dt])
        d_mult = np.concatenate([dq, -dq, (of_a - of_rows * da) / a, (of_t - of_ball * dt) / t])
        return dv, d_slack, d_mult


def _minimise(program: _Program) -> tuple[np.ndarray, np.ndarray]:
    """v and q by Mehrotra's method, as near to the optimum as it gets."""
    at, last = _first_iterate(program), np.inf
    for _ in range(MOST_STEPS):
        newton = _linearised(program, at)
        value = -float(program.c @ at.v + program.data.w @ np.maximum(program.decisions(at.v) - 1.0, 0.0))
        unbalanced = float(np.abs(newton.unbalanced).max())
        as_balanced_as_can_be = unbalanced <= ACCURACY or unbalanced > 0.5 * last
        if newton.factor is None or (at.complementarity <= ACCURACY * value and as_balanced_as_can_be):
            break
        last = unbalanced
        aim = -at.slack * at.multiplier
        _, d_slack, d_mult = newton.direction(aim)
        slack = at.slack + min(1.0, _longest(at.slack, d_slack)) * d_slack
        predicted = slack @ (at.multiplier + min(1.0, _longest(at.multiplier, d_mult)) * d_mult)
        target = (predicted / at.complementarity) ** 3 * at.complementarity / len(slack)
        following = _moved(at, *newton.direction(aim + target - d_slack * d_mult))
        if not np.isfinite(following.complementarity):
            break
        at = following
    return at.v, program.split(at.multiplier)[0]


def _first_iterate(program: _Program) -> _Iterate:
    """v within its limits, and multipliers that nearly balance."""
    data, a = program.data, program.limit - program.G @ program.first
    N, has_ball = len(data.w), np.ones(min(len(program.ball), 1))
    excess = np.full(N, 0.5)
    q = FIRST_SHARE * data.w
    left = program.c + program.sums(q)
    of_rows = np.maximum(-(program.G @ left), 0.0) + np.abs(left).mean()
    return _Iterate(
        v=program.first,
        slack=np.concatenate([excess + 1.0, excess, a, 0.5 * has_ball]),
        multiplier=np.concatenate([q, data.w - q, of_rows, np.abs(left).mean() * has_ball]),
    )


def _linearised(program: _Program, at: _Iterate) -> _Newton:
    """The Newton system at an iterate; its factor is None where rounding leaves the matrix without one."""
    n = len(program.ball)
    (s, e, a, t), (q, p, of_rows, of_ball) = program.split(at.slack), program.split(at.multiplier)
    M = program.gram(q * p / (s * p + q * e)) + (program.G.T @ sp.diags_array(of_rows / a) @ program.G).toarray()
    numbers, bent = np.arange(1, 1 + n), np.zeros(len(at.v))
    bent[numbers] = program.ball**2 * at.v[numbers]
    if n:
        M[numbers, numbers] += of_ball[0] * program.ball**2
        M += of_ball[0] / t[0] * np.outer(bent, bent)
    room = 0.5 * (1.0 - bent @ at.v) - t
    unbalanced = program.c + program.sums(q) + program.G.T @ of_rows + of_ball.sum() * bent
    root = 1.0 / np.sqrt(np.diag(M))
    M *= root[:, None] * root
    M[np.diag_indices_from(M)] += RIDGE
    try:
        factor = cho_factor(M, overwrite_a=True)
    except (LinAlgError, ValueError):  # what is not finite is a ValueError
        factor = None
    return _Newton(program, at, bent, room, unbalanced, factor, root)


def _moved(at: _Iterate, dv: np.ndarray, d_slack: np.ndarray, d_mult: np.ndarray) -> _Iterate:
    """The iterate a step on: slacks and multipliers each go most of the way to the first that would be 0."""
    primal, dual = (
        min(1.0, STEP_TO_EDGE * _longest(now, change)) for now, change in ((at.slack, d_slack), (at.multiplier, d_mult))
    )
    return _Iterate(at.v + primal * dv, at.slack + primal * d_slack, at.multiplier + dual * d_mult)


def _longest(values: np.ndarray, changes: np.ndarray) -> float:
    """The length of a step at which the first of these values, all above 0, is 0."""
    falling = changes < 0
    return float((values[falling] / -changes[falling]).min(initial=np.inf))
