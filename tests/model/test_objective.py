"""The objective against nature's linear program, long doubles and the paper's closed form."""

from itertools import product

import numpy as np
import pytest

from tests.instances import CODE_SETTINGS, COST_SETTINGS, random_coefficients, random_problem, worst_case_by_hand
from wdrlr.model.metric import ground_metric
from wdrlr.model.objective import objective, rounding_of_objective, worst_case_loss
from wdrlr.model.problem import Problem

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


@pytest.mark.parametrize("setting", [*SETTINGS, *COST_SETTINGS, *CODE_SETTINGS], ids=str)
@pytest.mark.parametrize("size", [0.3, 2.0])
def test_worst_case_loss_is_the_value_of_natures_program(setting, size):
    for seed in range(1, 4):
        problem = random_problem(seed, N=6, **setting)
        b = random_coefficients(problem, size=size)
        loss, lam = worst_case_loss(problem, b)
        assert loss == pytest.approx(worst_case_by_hand(problem, b), abs=1e-8)
        assert lam >= problem.metric.dual_norm(problem.numeric(b)) * (1 - 1e-12)


def test_penalty_is_added_to_the_upper_bound():
    problem = random_problem(1, gamma=0.3, penalize_intercept=True)
    b = random_coefficients(problem)
    assert objective(problem, b)[0] == pytest.approx(worst_case_loss(problem, b)[0] + 0.3 * np.abs(b).sum())


@pytest.mark.parametrize("setting", [*SETTINGS, *COST_SETTINGS, *CODE_SETTINGS], ids=str)
@pytest.mark.parametrize("size", [0.1, 1.0, 10.0])
def test_a_guess_of_the_multiplier_moves_the_worst_case_loss_by_rounding_alone(setting, size):
    for seed in range(4):
        problem = random_problem(seed, N=25, **setting)
        b = problem.feasible(random_coefficients(problem, seed, size))
        value, lam = worst_case_loss(problem, b)
        for guess in (
            0.0,
            1e-12,
            0.5 * lam,
            0.991 * lam,
            lam,
            1.008 * lam,
            1.9 * lam,
            2.1 * lam,
            50 * lam + 1.0,
            1e300,
            np.inf,
            np.nan,
        ):
            assert worst_case_loss(problem, b, guess)[0] == pytest.approx(value, rel=1e-13)


def test_rounding_is_allowed_for():
    """F in long doubles is within the allowance, which is a small multiple of what double precision must lose."""
    for seed in range(20):
        problem = random_problem(seed, N=25, n=3, radius=0.05, gamma=0.01)
        problem.x[:] *= 10.0 ** np.arange(0, 6, 2)
        b = random_coefficients(problem, seed, size=3.0)
        value, lam = objective(problem, b)
        rounding = rounding_of_objective(problem, b, value)
        exact = objective_in_long_doubles(problem, b, lam)
        assert abs(value - float(exact)) <= rounding
        assert rounding < 1e-8


def objective_in_long_doubles(problem, b, lam):
    b, lam = b.astype(np.longdouble), np.longdouble(lam)
    worst = []
    for i in range(problem.n_samples):
        values = []
        for z in product(*map(range, problem.n_levels)):
            row = np.concatenate([[1.0], problem.x[i], problem.level_matrix[problem.offsets + np.array(z)].sum(axis=0)])
            f, changes = row @ b, sum(np.array(z) != problem.z[i])
            for flip in (1, -1):
                cost = problem.metric.level_changes(problem.n_categorical)[changes] + problem.metric.label_change * (
                    flip < 0
                )
                values.append(np.logaddexp(np.longdouble(0), -flip * problem.y[i] * f) - lam * cost)
        worst.append(max(values))
    return lam * problem.radius + problem.w @ np.array(worst) + problem.penalty @ np.abs(b)


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
