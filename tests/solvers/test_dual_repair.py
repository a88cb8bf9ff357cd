"""What the solvers' dual points rest on: bounds on coefficients, the charge for residuals, masses that can be."""

import cvxpy as cp
import numpy as np
import pytest

from tests.instances import random_coefficients, random_problem
from wdrlr.model.cuts import all_cuts, data_cuts, join
from wdrlr.model.objective import objective
from wdrlr.solvers.dual_repair import LARGEST_SCORE, coefficient_bounds, dual_points, residual_charge

SETTINGS = [
    {"n": 2, "n_levels": (2, 3), "gamma": 0.01},
    {"n": 1, "n_levels": (4,), "label_cost": np.inf, "coding": "pm1"},
    {"n": 1, "n_levels": (3, 3), "label_cost": 0.1, "weighted": True},
    {"n": 0, "n_levels": (3, 3)},
    {"n": 3, "n_levels": (), "norm": "linf", "radius": 0.3, "metric_scale": "unit"},
    {"n": 2, "n_levels": (2,), "norm": "l2", "coef_bound": 0.5},
    {"n": 2, "n_levels": (3,), "norm": "l2", "label_cost": 10.0, "fit_intercept": False},
    {"n": 2, "n_levels": (2, 3), "costs": "features"},
    {"n": 1, "n_levels": (4,), "costs": "ordinal", "metric_scale": "unit"},
    {"n": 1, "n_levels": (4,), "coding": "pm1", "any_code": True, "label_cost": 0.1},
]
FORBIDDEN = [
    *({"n": 3, "n_levels": (2, 3), "costs": kind} for kind in ("fixed", "matrices", "mixed")),
    {"n": 3, "n_levels": (2, 3), "costs": "fixed", "any_code": True, "coding": "pm1"},
]
"""With changes of an infinite cost."""
UPPER = 20.0
"""So large an objective that the bounds are not far from what they bound."""


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_no_coefficients_with_that_objective_are_beyond_the_bounds(setting):
    """The largest |b_j| - per_lam_j lam, by convex programs over all cuts."""
    problem = random_problem(1, N=8, **setting)
    problem.x[:] += 3.0  # away from 0, the intercept makes up for slopes
    constant, per_lam = coefficient_bounds(problem, UPPER)
    cuts, n_b = all_cuts(problem, 1000), problem.n_coefficients
    b, lam, s = cp.Variable(n_b), cp.Variable(), cp.Variable(problem.n_samples)
    order, matrix = problem.metric.number_norm.dual_form(problem.n_numeric)
    feasible = [
        problem.radius * lam + problem.w @ s + problem.penalty @ cp.abs(b) <= UPPER,
        cp.logistic(cuts.rows(problem) @ b) - lam * cuts.costs(problem) <= s[cuts.sample],
        lam >= (problem.metric.scale * cp.norm(matrix @ problem.numeric(b), order) if problem.n_numeric else 0.0),
        cp.abs(b)[np.isfinite(problem.coef_bound)] <= problem.coef_bound[np.isfinite(problem.coef_bound)],
    ]
    aim, price = cp.Parameter(n_b), cp.Parameter(nonneg=True)
    program = cp.Problem(cp.Maximize(aim @ b - price * lam), feasible)
    for j in range(0 if problem.fit_intercept else 1, n_b):
        price.value, largest = per_lam[j], []
        for sign in (1.0, -1.0):
            aim.value = sign * np.eye(n_b)[j]
            largest.append(program.solve(solver=cp.CLARABEL))
        assert 0.1 * constant[j] - 1e-4 <= max(largest) <= constant[j] + 1e-4


@pytest.mark.parametrize("setting", FORBIDDEN, ids=str)
@pytest.mark.parametrize("label_cost", [1.0, np.inf])
def test_what_has_no_bound_is_claimed(setting, label_cost):
    n_claimed = 0
    for seed in range(10):
        problem = random_problem(seed, N=8, label_cost=label_cost, **setting)
        constant, per_lam = coefficient_bounds(problem, UPPER)
        assert np.isfinite(constant).all() and np.isfinite(per_lam).all()
        movable, fixed = problem.metric.movable(3), np.isinf(problem.metric.largest_changes(2)).any()
        claimed = LARGEST_SCORE / np.abs(problem.x).max(axis=0)
        assert (constant[1:4] == np.where(movable, 0.0, claimed)).all()
        assert ((per_lam[1:4] > 0) == movable).all()
        if fixed:
            assert (constant[[0, 4, 5, 6]] == LARGEST_SCORE).all() and not per_lam[[0, 4, 5, 6]].any()
        n_claimed += fixed
    assert 0 < n_claimed


@pytest.mark.parametrize("setting", [*SETTINGS, *FORBIDDEN], ids=str)
def test_residuals_cost_no_more_than_they_are_charged(setting):
    problem = random_problem(2, **setting)
    bounds, limits = coefficient_bounds(problem, UPPER), problem.balance_limits
    rng = np.random.default_rng(2)
    none, n_charged = np.zeros(problem.n_coefficients), 0
    for seed in range(200):
        b = problem.feasible(random_coefficients(problem, seed, size=2.0))
        value, least = objective(problem, b)
        if value > UPPER:
            continue
        # F grows by no more than radius for each unit of lam.
        lam = least + rng.random() * (UPPER - value) / problem.radius
        r, spent = rng.normal(size=none.size) * 10.0 ** rng.integers(-4, 1), problem.radius * rng.uniform(0.5, 1.1)
        charge = residual_charge(problem, bounds, limits, r, none, spent, problem.radius, UPPER)[0]
        rest = lam * (problem.radius - spent) + r @ b + problem.penalty_value(b)
        assert rest >= -charge - 1e-9
        n_charged += rest < 0
    assert n_charged >= 10


@pytest.mark.parametrize("setting", [*SETTINGS, *FORBIDDEN], ids=str)
def test_masses_are_made_feasible(setting):
    """Whatever a solver says: infinite, not a number, negative or too much."""
    problem = random_problem(3, N=8, **setting)
    cuts, b = all_cuts(problem, 1000), problem.feasible(random_coefficients(problem, 3))
    mass = np.random.default_rng(3).normal(size=len(cuts)) * problem.w[cuts.sample]
    mass[:2] = np.nan, -np.inf
    costs = join(data_cuts(problem, False), cuts).costs(problem)
    for dual in dual_points(problem, cuts, mass, b, 1e-6):
        np.testing.assert_allclose(np.bincount(dual.sample, dual.mass), problem.w, rtol=1e-12)
        assert (dual.mass >= 0).all() and (dual.v >= 0).all() and (dual.v <= dual.mass).all()
        assert costs @ dual.mass <= problem.radius
        assert (dual.wall[1:][np.isinf(problem.coef_bound[1:])] == 0).all()
