"""radius_max against fits on both sides of it."""

import numpy as np
import pandas as pd
import pytest

from tests.instances import at, random_problem
from wdrlr import WassersteinLogisticRegression, radius_max
from wdrlr.column_constraint import solve_column_constraint
from wdrlr.largest_radius import largest_useful_radius

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
