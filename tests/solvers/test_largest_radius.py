"""radius_max against fits on both sides of it."""

import sys
import tracemalloc
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

from tests.instances import (
    COSTS,
    at,
    cost_by_hand,
    enumerated_points,
    f_by_hand,
    in_other_units,
    random_problem,
)
from tests.solvers.test_half_slopes import bracket_settings
from wdrlr import WassersteinLogisticRegression, radius_max
from wdrlr.model.objective import worst_case_loss
from wdrlr.solvers import largest_radius, slope_program
from wdrlr.solvers.closed_form import best_constant
from wdrlr.solvers.column_constraint import solve_column_constraint
from wdrlr.solvers.conic import ConicSolverError
from wdrlr.solvers.interior_point.method import solve_tailored
from wdrlr.solvers.largest_radius import largest_useful_radius

SETTINGS = [
    {},
    {"n": 0},
    {"n": 3, "norm": "l2"},
    {"n": 3, "norm": "l1"},
    {"n": 2, "norm": "linf"},
    {"label_cost": np.inf},
    {"label_cost": np.inf, "n": 2, "norm": "l2"},
    {"label_cost": 3.0},
    {"label_cost": 10.0, "n": 0, "N": 30},
    {"p": 2.0},
    {"p": 0.5, "label_cost": 3.0},
    {"metric_scale": "unit"},
    {"gamma": 0.03},
    {"fit_intercept": False},
    {"n": 1, "n_levels": (), "label_cost": np.inf},
    {"weighted": True, "n": 0, "coding": "pm1"},
    {"n": 0, "n_levels": (2, 2), "N": 40, "label_cost": 0.1, "gamma": 0.01, "penalize_intercept": True},
]


def fit_at(problem, radius):
    return solve_column_constraint(at(problem, radius), all_violated=True, tol=1e-7)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("seed", [3, 4])
def test_slopes_are_zero_above_and_not_below(setting, seed):
    problem = random_problem(seed, **setting)
    radius = largest_useful_radius(problem)
    assert 0 < radius
    if np.isfinite(problem.metric.label_change):
        assert radius <= problem.metric.label_change / 2 * (1 + 1e-9)
    assert not fit_at(problem, 1.01 * radius).b[1:].any()
    assert np.abs(fit_at(problem, 0.97 * radius).b[1:]).max() > 1e-5


def test_unequal_classes_and_useless_features_leave_an_intercept_only():
    """One class in twice as many rows, the feature the same in both: slopes are 0 at every radius."""
    z = np.tile([[0], [1]], (6, 1))
    problem = random_problem(0, N=12, n=0, n_levels=(2,))
    problem.z[:], problem.y[:] = z, np.repeat([1.0, -1.0, 1.0], 4)
    assert largest_useful_radius(problem) == pytest.approx(0.0, abs=1e-9)
    solution = fit_at(problem, 0.05)
    assert solution.b[0] > 0.1
    assert not solution.b[1:].any()


def test_radius_max_of_a_table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=40), "b": rng.choice(["u", "v", "w"], 40)})
    y = (X["a"] + (X["b"] == "u") > rng.normal(size=40)).astype(int)
    options = {"label_cost": 2.0, "metric_scale": "unit"}
    radius = radius_max(X, y, **options)
    assert WassersteinLogisticRegression(radius=0.9 * radius, **options).fit(X, y).coef_.any()
    assert not WassersteinLogisticRegression(radius=1.01 * radius, **options).fit(X, y).coef_.any()
    with pytest.raises(ValueError, match="'label_cost' parameter"):
        radius_max(X, y, label_cost=-1.0)


# Units


@pytest.mark.parametrize(
    "setting", [*SETTINGS, {"n": 3, "norm": "l2", "label_cost": 10.0, "N": 40}, {"coef_bound": 0.1, "N": 30}]
)
def test_the_radius_has_the_units_of_the_data(setting):
    problem = random_problem(5, **setting)
    radius = largest_useful_radius(problem)
    assert radius > 0
    for c in (2.0**45, 2.0**-45):
        assert largest_useful_radius(in_other_units(problem, c)) == c * radius
    for c in (1e12, 1e-13, 3.7e4):
        assert largest_useful_radius(in_other_units(problem, c)) == pytest.approx(c * radius, rel=1e-9)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("label_cost", [10.0, np.inf])
def test_the_radius_of_a_table_of_numbers_has_their_units(norm, label_cost):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(60, 3)) * [1.0, 0.1, 1.0]
    y = (Z[:, 0] + rng.normal(size=60) > 0).astype(int)
    radius = radius_max(Z, y, norm=norm, label_cost=label_cost)
    assert 0.1 < radius
    for c in (1e-10, 1e3, 1e4, 1e14):
        assert radius_max(Z * c, y, norm=norm, label_cost=label_cost * c) == pytest.approx(c * radius, rel=1e-9)


def test_numbers_far_from_0_are_as_good_as_others_if_there_is_an_intercept():
    problem = random_problem(6, N=30, n=2)
    there = replace(problem, x=problem.x + 2.0**20)
    assert largest_useful_radius(there) == pytest.approx(largest_useful_radius(problem), rel=1e-8)


def test_a_column_of_use_beside_one_of_other_size():
    """Useless numbers of any size change nothing: the class means of each pair of rows are the same."""
    problem = random_problem(7, N=20, n=1, n_levels=(), label_cost=np.inf)
    x = np.vstack([problem.x, problem.x])
    y = np.concatenate([problem.y, problem.y])
    pairs = replace(problem, x=x, y=y, z=np.zeros((40, 0), dtype=int), w=np.full(40, 1 / 40))
    alone = largest_useful_radius(pairs)
    for size in (1e-6, 1e6):
        beside = np.column_stack([x, np.repeat([-size, size], 20)])
        both = replace(pairs, x=beside, penalty=np.zeros(3), coef_bound=np.inf)
        assert largest_useful_radius(both) == pytest.approx(alone, rel=1e-6)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("label_cost", [2.0, np.inf])
@pytest.mark.parametrize("balanced", [False, True])
def test_a_constant_column_changes_nothing_if_there_is_an_intercept(norm, label_cost, balanced):
    """Weights whose mean of equal numbers is not that number: its rest must not become a column of rounding errors."""
    problem = random_problem(8, N=35, n=2, norm=norm, label_cost=label_cost, weighted=True)
    problem.y[:] = np.where(np.arange(35) < 16, 1.0, -1.0)
    if not balanced:
        problem.y[:30] = 1.0
    problem.x[:, 1] = 0.1
    assert problem.w @ problem.x[:, 1] != 0.1
    without = replace(
        problem, x=problem.x[:, :1], penalty=problem.penalty[1:], coef_bound=np.inf, metric=replace(problem.metric)
    )
    assert largest_useful_radius(problem) == pytest.approx(largest_useful_radius(without), rel=1e-9)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("penalize_intercept", [False, True])
def test_labels_may_cost_much_more_than_the_numbers_differ(norm, penalize_intercept):
    """Classes of equal weight: the intercept is worth nothing, and rounding of it must not be."""
    options = {"gamma": 1e-12, "penalize_intercept": penalize_intercept}
    problem = random_problem(9, N=9, n=2, n_levels=(), norm=norm, **options)
    problem.y[:] = np.repeat([1.0, -1.0], [4, 5])
    problem.w[:] = np.array([0, 0, 3, 4, 2, 2, 3, 0, 0]) / 14
    free = largest_useful_radius(replace(problem, metric=replace(problem.metric, label_cost=np.inf)))
    assert free > 0
    for size in (1e-3, 1e-6, 1e-9, 1e-12):
        small = in_other_units(replace(problem, metric=replace(problem.metric, label_cost=205.6 / size)), size)
        assert largest_useful_radius(small) == pytest.approx(size * free, rel=1e-8)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("gamma", [0.0, 0.05])
def test_columns_of_one_value_and_of_next_to_nothing_change_nothing(norm, gamma):
    problem = random_problem(8, N=20, n=2, norm=norm, gamma=gamma)
    x = np.column_stack([problem.x, np.full(20, 0.1), problem.x[:, 0] * 1e-11])
    penalty, bound = np.insert(problem.penalty, 3, [gamma, gamma]), np.inf
    more = replace(problem, x=x, penalty=penalty, coef_bound=bound)
    assert largest_useful_radius(more) == pytest.approx(largest_useful_radius(problem), rel=1e-7)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_levels_may_cost_much_more_than_labels(norm, seed):
    """Four samples, three of them at levels of their own: slopes without end cost nothing there."""
    problem = random_problem(seed, N=4, n=3, n_levels=(5, 5), norm=norm, label_cost=2.4e-3)
    problem.z[:] = [[1, 2], [2, 0], [1, 2], [1, 0]]
    radius = largest_useful_radius(problem)
    assert radius > 0
    for cost in (1e3, 1e9):
        dear = replace(problem, metric=replace(problem.metric, level_cost=cost))
        assert largest_useful_radius(dear) == pytest.approx(radius, rel=1e-7)


# Intercepts that are bounded, penalised or absent


@pytest.mark.parametrize("coef_bound", [0.05, 0.1, 0.5])
@pytest.mark.parametrize("coding", ["onehot", "pm1"])
def test_a_bound_of_the_intercept_counts_where_it_binds(coef_bound, coding):
    X, y = pd.DataFrame({"c": ["a"] * 10 + ["b"] * 10}), [1] * 9 + [0] + [1] * 8 + [0] * 2
    radius = radius_max(X, y, label_cost=1.0, coef_bound=coef_bound, coding=coding)
    model = WassersteinLogisticRegression(label_cost=1.0, coef_bound=coef_bound, coding=coding, tol=1e-10)
    for factor in (1.001, 1.3, 2.0):
        assert not model.set_params(radius=factor * radius).fit(X, y).coef_.any()
    assert abs(model.set_params(radius=0.98 * radius).fit(X, y).coef_[0, 0]) > 1e-3


def test_a_bound_of_the_intercept_that_does_not_bind_changes_nothing():
    X, y = pd.DataFrame({"c": ["a"] * 10 + ["b"] * 10}), [1] * 9 + [0] + [1] * 8 + [0] * 2
    for label_cost in (1.0, np.inf):
        free = radius_max(X, y, label_cost=label_cost)
        assert radius_max(X, y, label_cost=label_cost, coef_bound=2.0) == pytest.approx(free, rel=1e-9)


def test_a_bound_that_makes_all_slopes_useless_at_once_leaves_radius_0():
    problem = random_problem(2, N=20, n=0, n_levels=(2,), gamma=0.2, coef_bound=0.05, label_cost=3.0)
    problem.y[:], problem.z[:] = np.repeat([1.0, -1.0], [14, 6]), np.tile([[0], [1]], (10, 1))
    assert largest_useful_radius(problem) == 0.0
    assert not solve_tailored(at(problem, 0.01)).b[1:].any()


@pytest.mark.parametrize("label_cost", [1.0, np.inf])
def test_the_penalty_of_the_intercept_counts_as_little_as_it_is(label_cost):
    X, y = pd.DataFrame({"c": ["a"] * 10 + ["b"] * 10}), [1] * 9 + [0] + [1] * 8 + [0] * 2
    radius = radius_max(X, y, label_cost=label_cost)
    penalised = radius_max(X, y, label_cost=label_cost, l1_penalty=1e-8, penalize_intercept=True)
    assert penalised == pytest.approx(radius, abs=1e-6)


def test_slopes_that_stand_in_for_an_absent_intercept_are_of_use_at_any_radius():
    """Four levels coded -1/+1: all slopes -1 raise every level, the least of them by a third of the most."""
    X = pd.DataFrame({"c": list("abcd") * 8})
    y = [1] * 28 + [0] * 4
    options = {"label_cost": np.inf, "fit_intercept": False, "coding": "pm1"}
    assert radius_max(X, y, **options) == np.inf
    assert WassersteinLogisticRegression(radius=1e3, **options).fit(X, y).coef_.any()
    assert np.isfinite(radius_max(X, y, **options | {"coding": "onehot"}))
    assert np.isfinite(radius_max(X, [1] * 20 + [0] * 12, **options))


# Against fits


def random_setting(rng):
    n = int(rng.integers(0, 4))
    m = int(rng.integers(0 if n else 1, 4))
    return {
        "seed": int(rng.integers(1_000_000)),
        "N": int(rng.choice([8, 12, 25, 40])),
        "n": n,
        "n_levels": tuple(int(levels) for levels in rng.integers(2, 6, m)),
        "norm": str(rng.choice(["l1", "l2", "linf"])),
        "label_cost": float(rng.choice([0.1, 0.5, 1, 3, 10, np.inf])),
        "p": float(rng.choice([1, 1, 1, 2, 0.5])),
        "gamma": float(rng.choice([0, 0, 0.01, 0.05])),
        "penalize_intercept": bool(rng.random() < 0.3),
        "fit_intercept": bool(rng.random() < 0.8),
        "coding": str(rng.choice(["onehot", "pm1"])),
        "weighted": bool(rng.random() < 0.4),
        "coef_bound": float(rng.choice([np.inf, np.inf, 0.05, 0.2, 1.0])),
    }


@pytest.mark.parametrize("seed", range(8))
def test_a_constant_model_is_best_from_there_on_only(seed):
    rng = np.random.default_rng(seed)
    for _ in range(5):
        setting = random_setting(rng)
        problem = random_problem(**setting)
        if rng.random() < 0.5:
            problem.y[2:] = np.where(rng.random(problem.n_samples - 2) < 0.85, 1.0, -1.0)
        if rng.random() < 0.3 and problem.n_categorical:
            problem.z[:] = np.minimum(problem.z, np.array(problem.n_levels) - 2)
        radius = largest_useful_radius(problem)

        def beaten(radius, problem=problem):
            """By how much the best constant model is, at least and at most, and how far the two are from each other."""
            if problem.metric.p == 1:
                solution = solve_tailored(at(problem, radius), tol=1e-10)
            else:
                solution = solve_column_constraint(at(problem, radius), all_violated=True, tol=1e-8)
            constant = best_constant(at(problem, radius))
            value = worst_case_loss(at(problem, radius), constant)[0] + problem.penalty_value(constant)
            return value - solution.upper, value - solution.lower, solution.gap

        if np.isinf(radius):
            assert beaten(1e3)[0] > 1e-9, setting
            continue
        for factor in (1.0001, 1.3):
            least, most, gap = beaten(max(factor * radius, 1e-6))
            assert least < 1e-12, setting
            assert most < 1e-9 or (problem.metric.p != 1 and most <= 1.01 * gap), setting
        if radius > 1e-3:
            assert beaten(0.97 * radius)[0] > 1e-9, setting


# Costs of a feature's own, and any code


def moves_by_hand(problem):
    """Vectors v for which ||g|| <= 1 iff all v.g <= 1, for shifts g of the numbers that may move; a polygon for l2."""
    n, costs = problem.n_numeric, problem.metric.number_costs
    costs = np.ones(n) if costs is None else costs
    may_move = np.isfinite(costs)
    angles = np.linspace(0, 2 * np.pi, 720)
    extreme = {
        "l1": lambda: np.array(list(product([-1.0, 1.0], repeat=n))),
        "linf": lambda: np.vstack([np.eye(n), -np.eye(n)]),
        "l2": lambda: np.column_stack([np.cos(angles), np.sin(angles)])[:, :n],
    }[problem.metric.norm]()
    return np.where(may_move, extreme * np.where(may_move, costs, 0.0), 0.0) / problem.metric.scale, may_move


def imbalance_by_hand(problem, radius):
    """How far the best constant model is from optimal at that radius, by its optimality conditions over all points.

    Nature puts masses on the points that are worst for it, at the cost of the radius or, if the multiplier is 0, at
    less, and moves numbers for the rest. The derivatives by the coefficients then exceed the penalties by so much at
    least. inf if no masses have that cost.
    """
    problem = at(problem, radius)
    b, metric, n, n_b = best_constant(problem), problem.metric, problem.n_numeric, problem.n_coefficients
    lam = abs(b[0]) / metric.label_change
    points = []
    for i, (z, flip) in product(range(problem.n_samples), enumerated_points(problem)):
        cost = cost_by_hand(problem, i, z, flip)
        if np.isfinite(cost):
            sign = -flip * problem.y[i]
            points.append((i, np.logaddexp(0, sign * b[0]) - lam * cost, sign, z, cost))
    worst = np.full(problem.n_samples, -np.inf)
    for i, value, *_ in points:
        worst[i] = max(worst[i], value)
    points = [point for point in points if point[1] >= worst[point[0]] - 1e-9]
    owner, cost = np.array([point[0] for point in points]), np.array([point[4] for point in points])
    rows = np.array([[f_by_hand(problem, unit, i, z) for unit in np.eye(n_b)] for i, _, _, z, _ in points])
    rows[:, 0] *= problem.fit_intercept
    signs = np.array([point[2] for point in points])
    derivatives = (signs / (1 + np.exp(-signs * b[0])))[:, None] * rows
    # The derivatives may be between these: where b_0 is not 0, and within its bound, there is one value only.
    low, high = -problem.penalty, problem.penalty.copy()
    if b[0] != 0:
        low[0] = high[0] = -problem.penalty[0] * np.sign(b[0])
        if abs(b[0]) >= problem.coef_bound[0] * (1 - 1e-12):
            (low if b[0] > 0 else high)[0] = -np.sign(b[0]) * 10.0
    # The variables: masses, the unspent radius, the moves of the numbers that it pays for, the excess.
    directions, may_move = moves_by_hand(problem)
    C, n_rows = len(points), len(directions)
    one, nothing, shift = np.ones((n_b, 1)), np.zeros((n_b, 1)), np.eye(n_b)[:, 1 : 1 + n]
    paid = np.hstack([np.zeros((n_rows, C)), -np.ones((n_rows, 1)), directions, np.zeros((n_rows, 1))])
    total = np.hstack([owner == np.arange(problem.n_samples)[:, None], np.zeros((problem.n_samples, n + 2))])
    free = [(0, None) if lam == 0 else (0, 0)] + [(None, None) if able else (0, 0) for able in may_move & (lam == 0)]
    found = linprog(
        np.append(np.zeros(C + 1 + n), 1.0),
        A_ub=np.vstack(
            [
                np.hstack([derivatives.T, nothing, shift, -one]),
                np.hstack([-derivatives.T, nothing, -shift, -one]),
                paid,
            ]
        ),
        b_ub=np.concatenate([high, -low, np.zeros(n_rows)]),
        A_eq=np.vstack([total, np.concatenate([cost, [1.0], np.zeros(n + 1)])]),
        b_eq=np.append(problem.w, radius),
        bounds=[(0, None)] * C + free + [(0, None)],
        method="highs",
    )
    assert found.status in (0, 2)
    return found.fun if found.status == 0 else np.inf


def random_costly_problem(seed, kind):
    """Of a kind in COSTS, or "free" (matrices with many changes that cost nothing), or with any code."""
    rng = np.random.default_rng(seed)
    n, any_code = int(rng.integers(0, 3)), kind.startswith("any code")
    m = int(rng.integers(0 if n else 1, 4))
    problem = random_problem(
        seed,
        N=int(rng.choice([4, 7] if any_code else [4, 7, 12])),
        n=n,
        n_levels=tuple(int(levels) for levels in rng.integers(2, 5 if m < 3 else 4, m)),
        norm=str(rng.choice(["l1", "l1", "l2", "linf"])),
        label_cost=float(rng.choice([0.1, 1, 3, 10, np.inf, np.inf])) if kind != "free" else float(rng.choice([1, 10])),
        gamma=float(rng.choice([0, 0, 0.01, 0.05])),
        penalize_intercept=bool(rng.random() < 0.3),
        fit_intercept=bool(rng.random() < 0.8),
        coding="pm1" if any_code else str(rng.choice(["onehot", "pm1"])),
        weighted=bool(rng.random() < 0.4),
        coef_bound=float(rng.choice([np.inf, np.inf, 0.2, 1.0])),
        costs={"free": "matrices", "any code": None, "any code, fixed": "fixed"}.get(kind, kind),
        any_code=any_code,
    )
    if kind == "free" or rng.random() < 0.4:
        problem.y[2:] = np.where(rng.random(problem.n_samples - 2) < 0.85, 1.0, -1.0)
    if kind == "free":
        free = tuple(np.where(rng.random(D.shape) < 0.4, 0.0, D) for D in problem.metric.level_costs)
        problem = replace(problem, metric=replace(problem.metric, level_costs=free))
    return problem


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", [*COSTS, "free", "any code", "any code, fixed"])
def test_the_conditions_of_optimality_hold_from_there_on_only(kind, seed):
    for repeat in range(4):
        problem = random_costly_problem(100 * seed + repeat, kind)
        radius = largest_useful_radius(problem)
        if np.isinf(radius):
            assert np.isinf(problem.metric.label_cost)
            assert imbalance_by_hand(problem, 1e3) > 1e-8
            continue
        tight = 1e-3 if problem.metric.norm == "l2" and problem.n_numeric > 1 else 1e-6
        for factor in (1 + tight, 1.3, 20.0):
            assert imbalance_by_hand(problem, max(factor * radius, 1e-9)) < 1e-8, (kind, seed, repeat)
        if radius > 1e-6:
            assert imbalance_by_hand(problem, 0.999 * radius) > 1e-8, (kind, seed, repeat)


@pytest.mark.parametrize("label_cost", [3.0, np.inf])
@pytest.mark.parametrize("costs", ["features", "ordinal", "matrices", "any code"])
def test_slopes_are_zero_above_and_not_below_whatever_changes_cost(costs, label_cost):
    codes = {"coding": "pm1", "any_code": True, "n_levels": (3, 4)} if costs == "any code" else {"costs": costs}
    problem = random_problem(4, label_cost=label_cost, **codes)
    radius = largest_useful_radius(problem)
    assert 0 < radius < np.inf
    assert not fit_at(problem, 1.01 * radius).b[1:].any()
    assert np.abs(fit_at(problem, 0.97 * radius).b[1:]).max() > 1e-5


def with_costs(problem, level_costs, number_costs=None, **changes):
    return replace(
        problem, metric=replace(problem.metric, level_costs=level_costs, number_costs=number_costs, **changes)
    )


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("label_cost", [2.0, np.inf])
def test_costs_that_are_all_1_are_the_metric_of_the_paper(norm, label_cost):
    problem = random_problem(11, n=2, norm=norm, label_cost=label_cost, gamma=0.01)
    radius = largest_useful_radius(problem)
    ordinal = [np.abs(np.subtract.outer(np.arange(2), np.arange(2))).astype(float)]
    every = [1.0 - np.eye(3)]
    for level_costs in ([1.0] * 3, [*ordinal, 1.0, *ordinal], [1.0, *every, 1.0]):
        same = with_costs(problem, tuple(level_costs), np.ones(2))
        assert largest_useful_radius(same) == pytest.approx(radius, rel=1e-9)


@pytest.mark.parametrize("kind", COSTS)
def test_the_radius_has_the_units_of_the_costs(kind):
    for seed in range(4):
        problem = random_problem(20 + seed, costs=kind, N=20, label_cost=2.0)
        radius, metric = largest_useful_radius(problem), problem.metric
        assert radius > 0
        for c in (1e-9, 7.0, 1e6):
            level_costs = tuple(c * D for D in metric.level_costs)
            dearer = with_costs(problem, level_costs, c * metric.number_costs, label_cost=c * metric.label_cost)
            assert largest_useful_radius(dearer) == pytest.approx(c * radius, rel=1e-8)


def test_features_of_two_levels_have_no_other_codes():
    problem = random_problem(12, n_levels=(2, 2, 2), coding="pm1")
    radius = largest_useful_radius(problem)
    assert largest_useful_radius(replace(problem, any_code=True)) == pytest.approx(radius, rel=1e-12)


def test_what_may_not_change_is_of_use_at_any_radius():
    problem = random_problem(13, N=4, n=1, n_levels=(2, 2), label_cost=np.inf)
    problem.y[:], problem.z[:, 1], problem.x[:, 0] = [1.0, 1.0, -1.0, -1.0], [0, 1, 0, 1], [-1.0, 1.0, -1.0, 1.0]
    useless = np.array([[0, 1], [1, 1], [0, 0], [1, 1]])
    fixed = with_costs(problem, (np.inf, np.inf), np.array([np.inf]))
    for level, radius in ((1, np.inf), (0, 0.0)):
        fixed.z[:, 0] = useless[:, 1] if level else useless[:, 0]
        assert largest_useful_radius(fixed) == radius
    fixed.x[0] = 1.0
    assert largest_useful_radius(fixed) == np.inf
    # A large enough penalty leaves nothing of it.
    assert largest_useful_radius(replace(fixed, penalty=np.full(4, 0.3))) == 0.0


def test_what_may_not_change_takes_changes_of_labels():
    """Three of four rows of each level have one label: one each has to change before both look the same."""
    problem = random_problem(14, N=8, n=0, n_levels=(2,), label_cost=3.0)
    problem.z[:, 0], problem.y[:] = np.repeat([0, 1], 4), [1, 1, 1, -1, 1, -1, -1, -1]
    assert largest_useful_radius(with_costs(problem, (np.inf,))) == pytest.approx(3.0 * 2 / 8, rel=1e-9)
    assert largest_useful_radius(problem) == pytest.approx(2 / 8, rel=1e-9)


@pytest.mark.parametrize(("label_cost", "expected"), [(1e3, 0.25), (4.0, 4.0 / 58), (np.inf, 0.25)])
def test_levels_on_a_scale_move_by_one_step(label_cost, expected):
    """One class is a step of 0.5 above the other: a half of all rows moves by a step, or as many as both ends have
    change their labels with probability 1/2."""
    K = 30
    problem = random_problem(15, N=2 * K - 2, n=0, n_levels=(K,), label_cost=label_cost)
    problem.z[:, 0] = np.concatenate([np.arange(K - 1), np.arange(1, K)])
    problem.y[:] = np.repeat([1.0, -1.0], K - 1)
    ordinal = (0.5 * np.abs(np.subtract.outer(np.arange(K), np.arange(K))),)
    assert largest_useful_radius(with_costs(problem, ordinal)) == pytest.approx(expected, rel=1e-9)


# Solvers that fail


def test_a_radius_that_the_first_unit_finds_is_not_cut_short_by_another():
    """A solver's word on a smaller unit was 5 % short: classes of 2e-5 and 1, numbers of 1e7.

    Of numbers alone, whose labels cannot be changed, it is the product of the classes' weights and the distance of
    their means.
    """
    numbers = {"x0": [-6.77e6, -2.26e6, -4.51e6, -2.26e6], "x1": [-3.79e6, -1.21e6, -2.97e6, 8.8e5]}
    table = pd.DataFrame(numbers | {"x2": [4.59e6, -49.9, -56.7, -20.3]})
    about = {"sample_weight": [2.2e-6, 0.59, 0.58, 2.1e-5], "label_cost": np.inf, "norm": "l2"}
    w = np.array(about["sample_weight"]) / sum(about["sample_weight"])
    apart = table.iloc[3] - w[:3] @ table.iloc[:3] / w[:3].sum()
    expected = pytest.approx(w[3] * w[:3].sum() * np.linalg.norm(apart), rel=1e-8)
    assert radius_max(table, [0, 0, 0, 1], **about) == expected
    levels = pd.Categorical.from_codes([1, 0, 0, 0], list("abcd"))
    assert radius_max(table.assign(z=levels), [0, 0, 0, 1], **about) == expected


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_where_one_method_fails_another_is_tried(monkeypatch, norm):
    problem = random_problem(3, N=20, n=3, norm=norm, costs="ordinal")
    radius = largest_useful_radius(problem)
    minimise, tried = slope_program.minimise, []

    def fails_unless_simplex(program, method):
        tried.append(method)
        if method != "highs-ds":
            raise ConicSolverError("HiGHS Status 15")
        return minimise(program, method)

    monkeypatch.setattr(slope_program, "minimise", fails_unless_simplex)
    assert largest_useful_radius(problem) == pytest.approx(radius, rel=1e-7)
    assert tried[0] == "highs-ipm"


def test_a_value_that_its_direction_does_not_have_is_not_believed(monkeypatch):
    minimise = slope_program.minimise

    def wrong(program, method):
        x, value = minimise(program, method)
        return x, 1.001 * value

    monkeypatch.setattr(slope_program, "minimise", wrong)
    with pytest.raises(ConicSolverError, match=r"not found by highs-ipm, highs-ds. Rescale or leave out columns"):
        largest_useful_radius(random_problem(3, costs="ordinal"))


@pytest.mark.parametrize("setting", [setting for setting in bracket_settings() if setting["n"] <= 2])
def test_any_changes_of_labels_make_an_upper_end(setting):
    problem = at(random_problem(22, N=10, **setting), 1.0)
    radius = largest_radius._by_flips(problem)[0]
    rng = np.random.default_rng(0)
    for _ in range(2):
        cost = largest_radius._cost_of_balance(problem, rng.random(10) ** 3 * problem.w)
        assert radius * (1 - 1e-12) < cost < np.inf
        assert imbalance_by_hand(problem, cost * 1.001) < 1e-8


def test_memory_is_linear_in_the_rows():
    def peak(N):
        problem = random_problem(1, N=N, n=4, n_levels=(2, 3, 5, 10))
        largest_useful_radius(problem)  # compiled, imported
        tracemalloc.start()
        largest_useful_radius(problem)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    few, many = peak(4_000), peak(16_000)
    assert many < 5 * few
    assert many < 100 * 16_000 * 8 * 9  # a hundred times the table of 4 numbers, 4 levels and a label


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("costs", [None, "ordinal"])
@pytest.mark.parametrize("label_cost", [1.0, np.inf])
def test_no_conic_solver_is_imported(monkeypatch, norm, costs, label_cost):
    for name in ("clarabel", "cvxpy"):
        monkeypatch.setitem(sys.modules, name, None)
    assert largest_useful_radius(random_problem(3, n=3, norm=norm, costs=costs, label_cost=label_cost)) > 0


def test_samples_that_weigh_next_to_nothing_do_not_spoil_the_others():
    """Weights of 1e-11 at levels of their own, whose slopes were anything to a solver of linear programs."""
    problem = random_problem(
        0, N=7, n=0, n_levels=(5,), label_cost=1e4, fit_intercept=False, coding="pm1", any_code=True
    )
    problem.z[:, 0], problem.y[:] = [4, 1, 3, 2, 4, 1, 3], [1.0, -1.0, 1.0, -1.0, -1.0, 1.0, -1.0]
    problem.w[:] = [0.4, 0.35, 0.25 - 2e-11, 6e-12, 6e-12, 6e-12, 2e-12]
    heavy = replace(problem, **{name: getattr(problem, name)[:3] for name in ("x", "z", "y", "w")})
    assert largest_useful_radius(problem) == pytest.approx(largest_useful_radius(heavy), rel=1e-7)


def test_numbers_much_larger_than_labels_cost_leave_half_of_that():
    """No intercept, three rows, one of them with nearly all weight: half of all labels."""
    x = np.array([[1.2e7, 1.4e7, 4.1e7], [-4.5e6, 0.0, 2.7e7], [1.2e7, 1.4e7, 4.1e7]])
    for norm in ("l1", "l2", "linf"):
        problem = random_problem(0, N=3, n=3, norm=norm, label_cost=0.0574, fit_intercept=False)
        problem.x[:], problem.y[:], problem.w[:] = x, [-1.0, 1.0, 1.0], [4.1e-8, 1 - 8.04e-7, 7.63e-7]
        assert largest_useful_radius(problem) == pytest.approx(0.0287, rel=1e-6)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_numbers_that_hardly_count_beside_labels_do_not_spoil_these(norm):
    """Labels at 35,000, numbers of 0.01: the surplus of a class, 4 of 14, has to change, and the others to move."""
    penalised = {"gamma": 7e-11, "penalize_intercept": True}
    problem = random_problem(4, N=14, n=2, n_levels=(), norm=norm, label_cost=35e3, **penalised)
    problem.x[:], problem.y[:] = 0.01 * problem.x, np.repeat([1.0, -1.0], [11, 3])
    problem.x[11:] += 0.1
    radius = largest_useful_radius(problem)
    assert 35e3 * 4 / 14 < radius < 35e3 * 4 / 14 + 0.1
    assert imbalance_by_hand(problem, radius * (1 + 1e-7)) < 1e-8
    assert imbalance_by_hand(problem, radius - 0.01) > 1e-8


def test_a_method_that_goes_on_for_ever_is_stopped(monkeypatch):
    """highs-ipm did on this table, whose labels cost 1e10 times what levels do."""
    levels = pd.CategoricalDtype(range(4))
    X = pd.DataFrame({"a": [0, 1, 1, 0, 0, 3], "b": [2, 1, 0, 1, 2, 0]}).astype(levels).assign(fixed=0.0)
    options = {"label_cost": 2.4e9, "metric_scale": "unit", "fit_intercept": False}
    options["feature_costs"] = {"fixed": np.inf, "a": 0.035}
    radius = radius_max(X, [1, 0, 1, 0, 1, 1], **options)
    monkeypatch.setattr(largest_radius, "LINEAR_METHODS", ("highs-ds",))
    assert radius == pytest.approx(radius_max(X, [1, 0, 1, 0, 1, 1], **options), rel=1e-7)
