import numpy as np
import pytest

from tests.instances import random_coefficients, random_problem, worst_case_by_hand
from wdrlr.certificate import coefficient_bounds, lower_bound, upper_bound, worst_case_loss
from wdrlr.column_constraint import solve_monolithic
from wdrlr.cuts import all_cuts
from wdrlr.metric import ground_metric
from wdrlr.problem import Problem

SETTINGS = [
    {},
    {"n": 0},
    {"n_levels": ()},
    {"n": 2, "norm": "l2"},
    {"n": 2, "norm": "linf"},
    {"label_cost": np.inf},
    {"label_cost": np.inf, "n": 3, "norm": "linf"},
    {"p": 2.0},
    {"p": 0.5},
    {"metric_scale": "unit", "radius": 0.01},
    {"radius": 1e-4},
    {"radius": 0.6},
    {"radius": 3.0},
    {"weighted": True},
    {"coding": "pm1"},
]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("size", [0.3, 2.0])
def test_worst_case_loss_is_the_value_of_natures_program(setting, size):
    problem = random_problem(1, N=8, **setting)
    b = random_coefficients(problem, size=size)
    loss, lam = worst_case_loss(problem, b)
    assert loss == pytest.approx(worst_case_by_hand(problem, b), abs=1e-8)
    assert lam >= problem.metric.dual_norm(problem.numeric(b)) * (1 - 1e-12)


def test_penalty_is_added_to_the_upper_bound():
    problem = random_problem(1, gamma=0.3, penalize_intercept=True)
    b = random_coefficients(problem)
    assert upper_bound(problem, b)[0] == pytest.approx(worst_case_loss(problem, b)[0] + 0.3 * np.abs(b).sum())


@pytest.mark.parametrize("setting", [*SETTINGS, {"gamma": 0.02}, {"coef_bound": 0.2}, {"fit_intercept": False}])
def test_no_dual_point_passes_any_objective(setting):
    """Whatever masses and coefficients it starts from, the lower bound is below the objective at every b."""
    problem = random_problem(2, N=8, **setting)
    cuts = all_cuts(problem, 10_000)
    rng = np.random.default_rng(0)
    optimum = solve_monolithic(problem)
    for attempt in range(8):
        mass = rng.random(len(cuts)) ** 8 * problem.w[cuts.sample]
        b = np.clip(random_coefficients(problem, attempt), -problem.coef_bound, problem.coef_bound)
        assert lower_bound(problem, cuts, mass, b, np.log(2)) <= optimum.upper + 1e-12


def test_coefficient_bounds_hold_on_the_level_set():
    """Where |b_j| passes its bound, the objective passes the level."""
    for setting in ({}, {"label_cost": np.inf}, {"coding": "pm1"}, {"n": 0}, {"p": 2.0}):
        problem = random_problem(4, radius=0.1, **setting)
        constant, per_lam = coefficient_bounds(problem, np.log(2))
        largest = constant + per_lam * np.log(2) / problem.radius
        assert np.isfinite(largest).all()
        for j in range(problem.n_coefficients):
            for seed in range(5):
                b = random_coefficients(problem, seed)
                b[j] = 1.001 * largest[j]
                assert upper_bound(problem, b)[0] > np.log(2)


def theorem_3_instance(x, radius):
    """The instance class in the proof of Theorem 3: one sample (x, z = 0, y = -1), kappa = inf."""
    return Problem(
        x=np.array([[x]]),
        z=np.array([[0]]),
        y=np.array([-1.0]),
        w=np.array([1.0]),
        n_levels=(2,),
        level_matrix=np.array([[0.0], [1.0]]),
        metric=ground_metric(np.inf, 1, 1),
        radius=radius,
        penalty=np.zeros(3),
    )


@pytest.mark.parametrize("x", [-2.0, -0.3, 0.0, 1.0, 4.0])
@pytest.mark.parametrize("b", [(0.1, 0.2, 1.5), (-1.0, 0.7, 0.3), (0.0, -0.4, -2.0), (0.5, 0.0, 1.0)])
@pytest.mark.parametrize("radius", [0.05, 0.5, 0.9])
def test_theorem_3_closed_form(x, b, radius):
    def loss(z):
        return np.logaddexp(0, b[0] + b[1] * x + b[2] * z)

    expected = loss(0) + radius * max(loss(1) - loss(0), abs(b[1]))
    assert worst_case_loss(theorem_3_instance(x, radius), np.array(b))[0] == pytest.approx(expected, abs=1e-12)
