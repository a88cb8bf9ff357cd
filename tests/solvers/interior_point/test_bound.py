"""Lower bounds at every step of some runs, against the optimum and against the certificate."""

import numpy as np
import pytest

from tests.instances import random_problem
from wdrlr.model.certificate import dual_value
from wdrlr.solvers.interior_point.bound import Bounds, as_dual_point, bound_below
from wdrlr.solvers.interior_point.coordinates import Coordinates
from wdrlr.solvers.interior_point.instance import Instance
from wdrlr.solvers.interior_point.method import first_iterate, move, solve_tailored
from wdrlr.solvers.interior_point.newton import linearise, predict_and_correct
from wdrlr.solvers.interior_point.search import search

SETTINGS = [
    {"n": 2, "n_levels": (5, 3, 2)},
    {"n": 0, "n_levels": (4, 3, 5), "label_cost": np.inf, "weighted": True},
    {"n": 3, "n_levels": (4, 2), "norm": "linf", "gamma": 0.005},
    {"n": 2, "n_levels": (6,), "norm": "l2", "coef_bound": 0.4},
    {"n": 1, "n_levels": (2, 5), "fit_intercept": False},
    {"n": 2, "n_levels": (3,), "radius": 0.0, "gamma": 0.01},
]


def steps(instance, n_steps):
    """The bounds after each step, without the certificate's word on them."""
    at = first_iterate(instance, None)
    bounds = Bounds(np.inf, at.theta)
    for count in range(1, n_steps + 1):
        newton = linearise(instance, at)
        step = predict_and_correct(instance, at, newton, bounds.upper)
        before = bounds.lower
        bounds = bound_below(instance, at, newton, step, bounds)
        yield before, bounds
        trial, bounds = search(instance, at, newton, step, bounds)
        at = move(instance, at, newton, step, trial, count % 4 == 0)


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_the_lower_bound_is_below_the_optimum_and_the_certificate_agrees(setting):
    problem = random_problem(3, **{"N": 30, "radius": 0.02, **setting})
    optimum = solve_tailored(problem, tol=1e-9)
    assert optimum.gap <= 1e-9
    instance = Instance(problem, Coordinates(problem), 1e-8)
    moved = False
    for before, bounds in steps(instance, 20):
        assert before <= bounds.lower <= optimum.upper + 1e-12
        if bounds.lower > before:
            certified = dual_value(problem, as_dual_point(instance, bounds.dual), np.log(2), optimum.b)
            assert certified <= optimum.upper
            # The certificate charges residuals in its own way; late in the run, few are left.
            missing, cancelled = optimum.upper - bounds.lower, bounds.dual.moved is not None
            share = 0.5 if missing > 1e-4 else 0.0 if cancelled else 0.25
            assert certified >= bounds.lower - share * missing - 1e-12
            moved |= cancelled
    assert optimum.upper - bounds.lower < 1e-8
    assert moved or "coef_bound" not in setting, "no bound of this run needs mass to be moved"


def test_a_bound_that_is_no_better_changes_nothing():
    problem = random_problem(3, N=30)
    instance = Instance(problem, Coordinates(problem), 1e-8)
    at = first_iterate(instance, None)
    newton = linearise(instance, at)
    step = predict_and_correct(instance, at, newton, np.inf)
    bounds = Bounds(0.69, at.theta, lower=0.68)
    assert bound_below(instance, at, newton, step, bounds) is bounds
