"""Small random problems, and the objective computed the slow way, for the tests."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy.optimize import linprog

from wdrlr.model.encoding import level_matrix
from wdrlr.model.metric import Norm, ground_metric
from wdrlr.model.problem import Problem


def random_problem(
    seed=0,
    *,
    N=12,
    n=1,
    n_levels=(2, 3, 2),
    radius=0.05,
    label_cost=1.0,
    p=1.0,
    norm="l1",
    metric_scale=None,
    gamma=0.0,
    penalize_intercept=False,
    coef_bound=np.inf,
    fit_intercept=True,
    coding="onehot",
    weighted=False,
    costs=None,
    any_code=False,
):
    """``costs`` is None, or one of ``COSTS``."""
    rng = np.random.default_rng(seed)
    m = len(n_levels)
    matrix = level_matrix(n_levels, coding)
    penalty = np.full(1 + n + matrix.shape[1], gamma)
    penalty[0] *= penalize_intercept
    w = rng.random(N) + 0.1 if weighted else np.ones(N)
    y = np.where(rng.random(N) < 0.5, -1.0, 1.0)
    y[:2] = -1.0, 1.0
    return Problem(
        x=rng.normal(size=(N, n)),
        z=np.column_stack([rng.integers(0, levels, N) for levels in n_levels]) if m else np.zeros((N, 0), dtype=int),
        y=y,
        w=w / w.sum(),
        n_levels=tuple(n_levels),
        level_matrix=matrix,
        metric=ground_metric(
            label_cost, n, m, p=p, norm=norm, metric_scale=metric_scale, **random_costs(costs, seed, n, n_levels, norm)
        ),
        radius=radius,
        penalty=penalty,
        coef_bound=coef_bound,
        fit_intercept=fit_intercept,
        any_code=any_code,
    )


COSTS = ("features", "fixed", "ordinal", "matrices", "mixed")

COST_SETTINGS = [
    *({"costs": kind} for kind in COSTS),
    *({"costs": kind, "label_cost": np.inf, "n": 3, "n_levels": (2, 4)} for kind in COSTS),
    *({"costs": kind, "n": 0, "weighted": True, "radius": 0.3} for kind in COSTS),
    {"costs": "mixed", "metric_scale": "unit", "radius": 0.01},
    {"costs": "matrices", "n": 2, "norm": "l2", "coding": "pm1"},
    {"costs": "ordinal", "n": 2, "norm": "linf", "label_cost": 3.0},
    {"costs": "fixed", "radius": 1e-4},
    {"costs": "mixed", "radius": 3.0},
]
"""Arguments of ``random_problem`` with costs of every kind."""

CODE_SETTINGS = [
    {"any_code": True, "coding": "pm1", "n_levels": (2, 4)},
    {"any_code": True, "coding": "pm1", "costs": "features", "weighted": True, "radius": 0.3},
    {"any_code": True, "coding": "pm1", "costs": "fixed", "label_cost": np.inf, "n": 2},
    {"any_code": True, "coding": "pm1", "metric_scale": "unit", "radius": 0.01, "n": 0},
]
"""The same with any code as support."""


def random_costs(kind, seed, n, n_levels, norm="l1"):
    """Costs of that kind for ``ground_metric``.

    One positive cost a feature; some of these inf; |v - v'| times one; matrices, asymmetric, with inf and changes that
    cost nothing, without the triangle inequality; some of each.
    """
    if kind is None:
        return {}
    rng = np.random.default_rng(7000 + seed)
    level_costs = []
    for K in n_levels:
        cost = rng.choice([0.3, 0.7, 1.0, 2.0])
        of_feature = kind if kind != "mixed" else rng.choice(["features", "fixed", "ordinal", "matrices"])
        if of_feature == "fixed" and rng.random() < 0.5:
            cost = np.inf
        if of_feature == "ordinal":
            cost = cost * np.abs(np.subtract.outer(np.arange(K), np.arange(K)))
        if of_feature == "matrices":
            cost = rng.choice([0.0, 0.2, 0.5, 1.0, 2.0, np.inf], size=(K, K), p=[0.05, 0.2, 0.2, 0.25, 0.2, 0.1])
            np.fill_diagonal(cost, 0.0)
        level_costs.append(cost if isinstance(cost, np.ndarray) else float(cost))
    number_costs = rng.choice([0.5, 1.0, 3.0], size=n) if norm == "l1" else np.full(n, 0.5)
    if norm == "l1" and kind in ("fixed", "mixed"):
        number_costs[rng.random(n) < 0.3] = np.inf
    return {"level_costs": tuple(level_costs), "number_costs": number_costs if n else None}


def at(problem, radius):
    """The same problem with another radius."""
    return replace(problem, radius=radius)


def in_other_units(problem, c):
    """Numbers, costs and radius times c; slopes of numbers are then divided by it, and so are their bounds."""
    factor = np.ones(problem.n_coefficients)
    factor[1 : 1 + problem.n_numeric] = c
    metric = replace(problem.metric, label_cost=problem.metric.label_cost * c, level_cost=problem.metric.level_cost * c)
    return replace(
        problem,
        x=problem.x * c,
        metric=metric,
        radius=problem.radius * c,
        penalty=problem.penalty * factor,
        coef_bound=problem.coef_bound / factor,
    )


def random_coefficients(problem, seed=0, size=1.0):
    b = np.random.default_rng(1000 + seed).normal(size=problem.n_coefficients) * size
    b[0] *= problem.fit_intercept
    return b


def enumerated_points(problem):
    """All (z, label factor) with f's rows written out: z as one tuple of levels, factor +1 (own label) or -1."""
    values = [range(levels) for levels in problem.n_levels]
    for j in problem.coded:
        values[j] = range(problem.n_levels[j] + 2 ** (problem.n_levels[j] - 1))
    return [(z, flip) for z in product(*values) for flip in (1.0, -1.0)]


def f_by_hand(problem, b, i, z):
    """f(x_i, z) by summing what each part adds."""
    total = b[0] + sum(b[1 + j] * problem.x[i, j] for j in range(problem.n_numeric))
    slopes = b[1 + problem.n_numeric :]
    row = 0
    for j, level in enumerate(z):
        if level < problem.n_levels[j]:
            total += problem.level_matrix[row + level] @ slopes
        else:
            number = level - problem.n_levels[j]
            own = slopes[problem.dummies(j)]
            total += sum(slope if number >> v & 1 else -slope for v, slope in enumerate(own))
        row += problem.n_levels[j]
    return total


def cost_by_hand(problem, i, z, flip):
    """Definition 2, one term after the other."""
    metric = problem.metric
    changes = [(j, int(a), int(b)) for j, (a, b) in enumerate(zip(problem.z[i], z, strict=True)) if a != b]
    cost = metric.level_cost * len(changes) ** (1 / metric.p) if changes else 0.0
    if metric.level_costs is not None:
        each = [(metric.level_costs[j], a, b) for j, a, b in changes]
        cost = metric.level_cost * sum(D[a, b] if isinstance(D, np.ndarray) else D for D, a, b in each)
    if flip < 0:
        cost += metric.label_cost
    return cost / metric.scale


def worst_case_by_hand(problem, b):
    """sup E_Q[L] as nature's linear program over all points, numbers moved off along a ray (Theorem 1's proof)."""
    N = problem.n_samples
    loss, cost, owner = [], [], []
    for i in range(N):
        for z, flip in enumerated_points(problem):
            c = cost_by_hand(problem, i, z, flip)
            if np.isinf(c):
                continue
            loss.append(np.logaddexp(0, -flip * problem.y[i] * f_by_hand(problem, b, i, z)))
            cost.append(c)
            owner.append(i)
    # One more variable: what is spent on moving numbers, which pays ||b_N||_* scale a unit in the limit.
    gain = problem.metric.dual_norm(problem.numeric(b))
    marginals = np.zeros((N, len(loss) + 1))
    marginals[owner, np.arange(len(loss))] = 1.0
    found = linprog(
        -np.array([*loss, gain]),
        A_ub=[[*cost, 1.0]],
        b_ub=[problem.radius],
        A_eq=marginals,
        b_eq=problem.w,
        bounds=(0, None),
        method="highs",
    )
    assert found.status == 0
    return -found.fun


@dataclass(frozen=True, eq=False)
class WeightedL1(Norm):
    """A norm that the package does not have: sum_j weights_j |v_j|."""

    weights: np.ndarray

    def value(self, v):
        return float(self.weights @ np.abs(v))

    def dual(self, b):
        return float(np.max(np.abs(b) / self.weights))

    def steepest(self, b, length=1.0):
        j = np.argmax(np.abs(b) / self.weights)
        return np.where(np.arange(b.size) == j, length * np.sign(b) / self.weights, 0.0)

    def form(self, n):
        return 1, np.diag(self.weights)

    def dual_form(self, n):
        return np.inf, np.diag(1 / self.weights)
