"""Costs of a feature's own: problems that are the same although they are posed in two ways."""

from dataclasses import replace

import numpy as np
import pytest

from tests.instances import COSTS, at, random_coefficients, random_problem
from wdrlr.model.encoding import level_matrix
from wdrlr.model.objective import objective
from wdrlr.model.worst_case import worst_case_distribution
from wdrlr.solvers.column_constraint import solve_column_constraint, solve_monolithic
from wdrlr.solvers.interior_point.method import solve_tailored

SOLVERS = pytest.mark.parametrize("solve", [solve_column_constraint, solve_monolithic, solve_tailored])
SETTINGS = [{}, {"label_cost": np.inf, "radius": 0.02}, {"gamma": 0.01, "weighted": True}, {"coef_bound": 0.5}]


def with_costs(problem, level_costs=None, number_costs=None, **others):
    """The problem with these costs."""
    metric = replace(problem.metric, level_costs=level_costs, number_costs=number_costs, **others)
    return replace(problem, metric=metric)


def same_everywhere(problem, other, of=lambda b: b):
    """The objective, and the worst case that attains it, at coefficients b and ``of(b)``."""
    for seed in range(5):
        b = random_coefficients(problem, seed, size=[0.3, 2.0][seed % 2])
        assert objective(other, of(b))[0] == pytest.approx(objective(problem, b)[0], rel=1e-12)
        ours, theirs = worst_case_distribution(problem, b), worst_case_distribution(other, of(b))
        assert theirs.expected_loss == pytest.approx(ours.expected_loss, rel=1e-9)
        assert theirs.transport_cost / other.radius == pytest.approx(ours.transport_cost / problem.radius, abs=1e-9)


def same_optimum(solve, problem, other, of=lambda b: b):
    ours, theirs = solve(problem), solve(other)
    assert 0 <= ours.gap <= 1e-6 and 0 <= theirs.gap <= 1e-6
    assert theirs.upper == pytest.approx(ours.upper, abs=1e-6)
    assert objective(other, other.feasible(of(ours.b)))[0] == pytest.approx(ours.upper, abs=1e-8)


@SOLVERS
@pytest.mark.parametrize("kind", COSTS)
def test_all_costs_times_c_are_the_radius_divided_by_c(kind, solve):
    for seed, c in enumerate((0.01, 1.7, 300.0)):
        problem = random_problem(seed, n=2, costs=kind, label_cost=[1.0, np.inf][seed % 2], radius=0.1)
        metric = problem.metric
        dearer = with_costs(
            problem,
            tuple(c * costs for costs in metric.level_costs),
            c * metric.number_costs,
            label_cost=c * metric.label_cost,
        )
        same_everywhere(dearer, at(problem, 0.1 / c))
        same_optimum(solve, dearer, at(problem, 0.1 / c))


@SOLVERS
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_the_unit_of_a_column_is_that_of_its_cost(setting, solve):
    c, j = 7.0, 1
    problem = random_problem(3, n=3, costs="fixed", **setting)
    x, costs, factor = problem.x.copy(), problem.metric.number_costs.copy(), np.ones(problem.n_coefficients)
    x[:, j], costs[j], factor[1 + j] = c * x[:, j], costs[j] / c, c
    other = with_costs(problem, problem.metric.level_costs, costs)
    other = replace(other, x=x, penalty=problem.penalty * factor, coef_bound=problem.coef_bound / factor)
    same_everywhere(problem, other, lambda b: b / factor)
    same_optimum(solve, problem, other, lambda b: b / factor)


@SOLVERS
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_a_matrix_of_equal_costs_is_that_cost(setting, solve):
    """So is an order of two levels; 0.6 for all is level_cost = 0.6."""
    problem = random_problem(4, n=2, n_levels=(2, 4, 3), **setting)
    single = with_costs(problem, (0.7, 0.4, np.inf))
    matrices = tuple(
        np.where(np.eye(K, dtype=bool), 0.0, cost) for K, cost in zip((2, 4, 3), (0.7, 0.4, np.inf), strict=True)
    )
    same_everywhere(single, with_costs(problem, matrices))
    same_optimum(solve, single, with_costs(problem, matrices))
    same_everywhere(with_costs(problem, (0.6, 0.6, 0.6)), with_costs(problem, level_cost=0.6))
    same_optimum(solve, with_costs(problem, (0.6, 0.6, 0.6)), with_costs(problem, level_cost=0.6))


@SOLVERS
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_a_feature_that_may_not_change_is_a_number_that_may_not_move(setting, solve):
    """A binary one is its dummy."""
    problem = random_problem(5, N=30, n=1, n_levels=(3, 2), costs="features", **setting)
    costs = problem.metric.level_costs[0]
    fixed = with_costs(problem, (costs, np.inf), np.array([0.5]))
    order = np.array([0, 1, 4, 2, 3])  # the dummy comes after the number
    number = replace(
        with_costs(problem, (costs,), np.array([0.5, np.inf])),
        x=np.column_stack([problem.x, problem.z[:, 1]]),
        z=problem.z[:, :1],
        n_levels=(3,),
        level_matrix=level_matrix((3,), "onehot"),
        penalty=problem.penalty[order],
        coef_bound=problem.coef_bound[order],
    )
    same_everywhere(fixed, number, lambda b: b[order])
    same_optimum(solve, fixed, number, lambda b: b[order])


@SOLVERS
@pytest.mark.parametrize("setting", [{}, {"gamma": 0.02}, {"coef_bound": 0.4}, {"fit_intercept": False}], ids=str)
@pytest.mark.parametrize("matrix", [False, True])
def test_where_nothing_may_change_it_is_logistic_regression(setting, matrix, solve):
    problem = random_problem(6, N=60, n=2, label_cost=np.inf, weighted=True, **setting)
    costs = tuple(np.where(np.eye(K, dtype=bool), 0.0, np.inf) if matrix else np.inf for K in problem.n_levels)
    plain = solve(at(problem, 0.0))
    assert plain.gap <= 1e-6
    for radius in (1e-4, 0.1, 10.0):
        fixed = at(with_costs(problem, costs, np.full(2, np.inf)), radius)
        b = random_coefficients(problem, 6)
        assert objective(fixed, b)[0] == pytest.approx(objective(at(problem, 0.0), b)[0], rel=1e-14)
        solution = solve(fixed)
        assert 0 <= solution.gap <= 1e-6
        assert solution.upper == pytest.approx(plain.upper, abs=1e-6)
        np.testing.assert_allclose(solution.b, plain.b, atol=2e-3)
