"""What an instance says of theta, against the problem itself; what its rows mean."""

from itertools import product

import numpy as np
import pytest

from tests.instances import random_coefficients, random_problem
from wdrlr.model.cuts import all_cuts
from wdrlr.model.objective import objective
from wdrlr.model.problem import log_loss
from wdrlr.solvers.interior_point import kernels
from wdrlr.solvers.interior_point.coordinates import Coordinates
from wdrlr.solvers.interior_point.instance import Instance


def instance_of(problem):
    return Instance(problem, Coordinates(problem), 1e-7)


def theta_of(instance, b, lam):
    """theta at b with lam in the instance's unit of cost, tops at the highest scores of their levels."""
    coordinates, tops = instance.coordinates, instance.tops
    theta = np.zeros(coordinates.E)
    theta[: coordinates.n_scores] = coordinates.of_b(b)
    if tops.n_rows:
        theta[tops.column[tops.start]] = tops.sign[tops.start] * tops.highest(-instance.rows.times(theta))
    theta[-1] = lam
    return theta


def worst_values(instance, theta):
    """The values of the worst cuts, and the cuts of both labels of all samples."""
    N = len(instance.coordinates.data.w)
    empty = kernels.empty_pool(N)
    worst, owner, new = instance.separate(theta, instance.scores(theta), np.full(N, -np.inf), empty)
    return worst, kernels.merge(empty, np.zeros(0, bool), owner, new)[0]


SETTINGS = [
    {"n": 2, "n_levels": (5, 3, 2), "gamma": 0.02, "weighted": True},
    {"n": 0, "n_levels": (4, 4), "label_cost": np.inf, "penalize_intercept": True, "gamma": 0.1},
    {"n": 3, "n_levels": (), "norm": "l2"},
    {"n": 1, "n_levels": (2, 6), "norm": "linf", "radius": 0.3, "fit_intercept": False, "gamma": 0.01},
]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_objective_and_worst_values_are_those_of_the_problem(setting):
    problem = random_problem(2, **setting)
    b = random_coefficients(problem, 2)
    instance = instance_of(problem)
    upper, lam = objective(problem, b)
    unit = instance.problem.metric.scale / problem.metric.scale  # of cost
    theta = theta_of(instance, b, lam * unit)
    assert instance.objective(theta, worst_values(instance, theta)[0]) == pytest.approx(upper, rel=1e-12)
    theta[-1] = 0.2 * unit  # most samples change then
    worst, pool = worst_values(instance, theta)
    cuts = all_cuts(problem, 10_000)
    values = log_loss(cuts.rows(problem) @ b) - 0.2 * cuts.costs(problem)
    assert worst == pytest.approx([values[cuts.sample == i].max() for i in range(problem.n_samples)], rel=1e-12)
    assert np.maximum.reduceat(instance.values(theta, instance.scores(theta), pool), pool.start[:-1]) == pytest.approx(
        worst, rel=1e-12
    )


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_rows_say_what_is_feasible(norm):
    problem = random_problem(4, n=3, n_levels=(4, 2), norm=norm, coef_bound=0.7)
    instance = instance_of(problem)
    for seed, share in product(range(5), (0.5, 0.999, 1.001, 2.0)):
        b = random_coefficients(problem, seed)
        theta = theta_of(instance, b, 0.0)
        theta[-1] = instance.dual_norm(theta) * share
        values = instance.turned(instance.rows, theta).values(theta)
        tops = values[: instance.tops.n_rows]
        assert tops.min() == 0 == -instance.tops.highest(-tops).min()
        np.testing.assert_allclose(values[instance.box], np.column_stack([0.7 - b, 0.7 + b]).ravel(), atol=1e-12)
        if share > 1:
            assert values[instance.norm].min() > 0
        elif not instance.by_tangents:  # else the rows at the start are not yet all of the norm
            assert values[instance.norm].min() < 0


def test_the_turned_row_is_the_tangent_of_the_norm():
    problem = random_problem(5, n=3, norm="l2")
    instance = instance_of(problem)
    theta = theta_of(instance, random_coefficients(problem, 5), 2.0)
    rows, units = instance.turned(instance.rows, theta), np.eye(len(theta))

    def room(theta):
        return instance.toll * theta[-1] - np.linalg.norm(instance.slopes(theta))

    gradient = [rows.times(unit)[-1] for unit in units]
    differences = [(room(theta + 1e-6 * unit) - room(theta - 1e-6 * unit)) / 2e-6 for unit in units]
    assert rows.values(theta)[-1] == pytest.approx(room(theta), rel=1e-12)
    np.testing.assert_allclose(gradient, differences, atol=1e-8)
    assert instance.rows.values(theta)[-1] == instance.toll * 2.0, "the instance's own rows stay as they are"
