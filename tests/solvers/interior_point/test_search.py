"""Trial points and the upper bound, at every step of some runs."""

import numpy as np
import pytest

from tests.instances import random_problem
from wdrlr.model.objective import objective
from wdrlr.solvers.interior_point.bound import Bounds, bound_below
from wdrlr.solvers.interior_point.coordinates import Coordinates
from wdrlr.solvers.interior_point.instance import Instance
from wdrlr.solvers.interior_point.method import first_iterate, move, solve_tailored
from wdrlr.solvers.interior_point.newton import linearise, predict_and_correct
from wdrlr.solvers.interior_point.search import search


@pytest.mark.parametrize(
    "setting",
    [
        {"n": 2, "n_levels": (5, 3, 2)},
        {"n": 3, "n_levels": (4, 2), "norm": "linf", "gamma": 0.005},
        {"n": 2, "n_levels": (6,), "norm": "l2", "coef_bound": 0.4},
    ],
    ids=str,
)
def test_trial_points_are_feasible_and_the_upper_bound_is_one(setting):
    problem = random_problem(3, N=30, radius=0.02, **setting)
    optimum = solve_tailored(problem, tol=1e-9)
    assert optimum.gap <= 1e-9
    instance = Instance(problem, Coordinates(problem), 1e-8)
    at = first_iterate(instance, None)
    bounds = Bounds(np.inf, at.theta)
    for n_steps in range(1, 25):
        newton = linearise(instance, at)
        step = predict_and_correct(instance, at, newton, bounds.upper)
        bounds = bound_below(instance, at, newton, step, bounds)
        trial, bounds = search(instance, at, newton, step, bounds)
        values = at.rows.joined(trial.tangents).values(trial.theta)
        assert (values[: instance.tops.n_rows][newton.live[: instance.tops.n_rows]] > 0).all()
        assert (values[instance.tops.n_rows :] >= -1e-12).all()
        assert trial.theta[-1] >= instance.dual_norm(trial.theta)
        b = instance.coordinates.b_of_theta.times(bounds.best)
        assert bounds.upper >= objective(problem, b)[0] - 1e-12
        assert bounds.upper >= optimum.lower - 1e-12
        at = move(instance, at, newton, step, trial, n_steps % 4 == 0)
        assert (at.cuts.slack > 0).all() and (at.cuts.multiplier > 0).all()
    assert bounds.upper - bounds.lower < 1e-6
