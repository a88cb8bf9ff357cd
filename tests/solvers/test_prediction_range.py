from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

from tests.instances import at, cost_by_hand, enumerated_points, random_problem
from wdrlr.model.cuts import all_cuts
from wdrlr.model.metric import ground_metric
from wdrlr.model.objective import objective
from wdrlr.solvers import prediction_range as module
from wdrlr.solvers.column_constraint import solve_column_constraint
from wdrlr.solvers.conic import SETTINGS
from wdrlr.solvers.interior_point.method import solve_tailored
from wdrlr.solvers.prediction_range import ACCURACY, is_unbounded, prediction_range
from wdrlr.solvers.programs import solve_program


def every_point(problem, x=0.3):
    """Rows of all z, with all numbers at x."""
    z = np.indices(problem.n_levels).reshape(problem.n_categorical, np.prod(problem.n_levels, dtype=int)).T
    rows = problem.design(np.zeros(len(z), dtype=int), z)
    rows[:, 1 : 1 + problem.n_numeric] = x
    return rows


def extremes_by_hand(problem, row, budget):
    """The range of row.b by Theorem 1's program with every constraint, modelled by cvxpy."""
    n = problem.n_numeric
    b, lam, s = cp.Variable(problem.n_coefficients), cp.Variable(nonneg=True), cp.Variable(problem.n_samples)
    spent = lam * problem.radius + problem.w @ s + problem.penalty @ cp.abs(b)
    constraints = [spent <= budget]
    arguments, costs, owner = [], [], []
    for i in range(problem.n_samples):
        for z, flip in enumerated_points(problem):
            cost = cost_by_hand(problem, i, z, flip)
            if np.isinf(cost) or (problem.radius == 0 and cost > 0):
                continue
            arguments.append(-flip * problem.y[i] * problem.design(np.array([i]), np.array([z]))[0])
            costs.append(cost)
            owner.append(i)
    constraints.append(s[owner] >= cp.logistic(np.array(arguments) @ b) - lam * np.array(costs))
    bounded = np.isfinite(problem.coef_bound)
    if bounded.any():
        constraints.append(cp.abs(b[bounded]) <= problem.coef_bound[bounded])
    if n and problem.radius > 0:
        dual_order = {"l1": "inf", "l2": 2, "linf": 1}[problem.metric.norm]
        constraints.append(problem.metric.scale * cp.norm(b[1 : 1 + n], dual_order) <= lam)
    if not problem.fit_intercept:
        constraints.append(b[0] == 0)
    return [
        cp.Problem(sense(row @ b), constraints).solve(solver="CLARABEL", **SETTINGS["CLARABEL"])
        for sense in (cp.Minimize, cp.Maximize)
    ]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"seed": 1, "n": 0, "n_levels": (4, 5)},
        {"seed": 2, "label_cost": np.inf},
        {"seed": 3, "gamma": 0.01, "penalize_intercept": True},
        {"seed": 4, "coef_bound": 0.5},
        {"seed": 5, "coef_bound": 0.5, "fit_intercept": False, "gamma": 0.003},
        {"seed": 6, "n": 2, "norm": "l2", "n_levels": (3, 2)},
        {"seed": 7, "n": 2, "norm": "linf", "n_levels": (3, 2), "metric_scale": "unit", "radius": 0.01},
        {"seed": 8, "coding": "pm1", "weighted": True},
        {"seed": 9, "radius": 0.0, "N": 40},
        {"seed": 10, "radius": 0.0, "gamma": 0.01},
        {"seed": 11, "n": 3, "n_levels": ()},
        {"seed": 12, "radius": 2.0},
        {"seed": 13, "n": 0, "costs": "features"},
        {"seed": 14, "n": 0, "costs": "matrices"},
        {"seed": 15, "n_levels": (2, 4, 3), "coding": "pm1", "any_code": True},
    ],
)
@pytest.mark.parametrize("tol", [1e-2, 1e-3])
def test_the_range_is_that_of_the_program_with_every_constraint(options, tol):
    problem = random_problem(**options)
    b = solve_tailored(problem, tol=1e-9).b
    rows = every_point(problem)[1::7]
    found = prediction_range(problem, b, rows, tol)
    budget = objective(problem, b)[0] + tol
    for q, row in enumerate(rows):
        low, high = extremes_by_hand(problem, row, budget)
        near, slack = 2 * ACCURACY * (high - low), 1e-5 * (1 + high - low)
        assert found.least[q] - slack <= low <= found.low[q] + slack
        assert found.high[q] - slack <= high <= found.most[q] + slack
        assert found.low[q] - near - slack <= found.least[q] and found.most[q] <= found.high[q] + near + slack


def test_fits_by_all_solvers_and_from_all_starts_are_inside():
    """Level 3 of the first feature is without rows: any score between those of the others is as good."""
    problem = random_problem(3, N=30, n=1, n_levels=(4, 3), radius=0.02)
    problem.z[problem.z[:, 0] == 3, 0] = 0
    tol, rows = 1e-6, every_point(problem)
    fit = solve_tailored(problem, tol=tol)
    starts = [solve_tailored(at(problem, radius), tol=tol) for radius in (1e-4, 0.1)]
    others = [solve_tailored(problem, tol=tol, start=start) for start in starts]
    others += [solve_column_constraint(problem, tol=tol, form=form) for form in ("primal", "dual")]
    found = prediction_range(problem, fit.b, rows, tol)
    assert (found.low <= rows @ fit.b).all() and (rows @ fit.b <= found.high).all()
    others += [solve_program(problem, all_cuts(problem, 10_000), form, "CLARABEL") for form in ("primal", "dual")]
    optimal = [other.b for other in others]
    for score in (min(0, *fit.b[2:4]), max(0, *fit.b[2:4])):
        optimal.append(np.where(np.arange(len(fit.b)) == 4, score, fit.b))
    assert all(objective(problem, b)[0] <= fit.upper + tol for b in optimal)
    predictions = np.array([rows @ b for b in optimal])
    assert np.ptp(predictions, axis=0).max() > 0.01  # else there is nothing to see
    assert (found.least <= predictions).all() and (predictions <= found.most).all()


def test_a_level_without_rows_has_the_range_of_the_others_at_least():
    problem = random_problem(3, N=30, n=1, n_levels=(4, 3), radius=0.02)
    problem.z[problem.z[:, 0] == 3, 0] = 0
    b = solve_tailored(problem, tol=1e-8).b
    rows = every_point(problem).reshape(4, 3, -1)
    found = prediction_range(problem, b, rows[3], 1e-6)
    seen = rows[:3] @ b
    assert (found.low <= seen.min(axis=0) + 1e-6).all() and (seen.max(axis=0) - 1e-6 <= found.high).all()
    assert np.ptp(seen, axis=0).min() > 0.1
    assert (found.most - found.high <= ACCURACY * (found.most - rows[3] @ b)).all()
    assert (found.low - found.least <= ACCURACY * (rows[3] @ b - found.least)).all()
    determined = prediction_range(problem, b, rows[:3].reshape(9, -1), 1e-6)
    assert (determined.most - determined.least).max() < 0.1


def test_the_width_falls_with_the_root_of_the_tolerance():
    problem = random_problem(0, N=200, n=1, n_levels=(2, 3), radius=0.01)
    b = solve_tailored(problem, tol=1e-10).b
    rows = every_point(problem)[:3]
    widths = []
    for tol in (1e-4, 1e-6, 1e-8):
        found = prediction_range(problem, b, rows, tol)
        widths.append(found.most - found.least)
    np.testing.assert_allclose(widths[0] / widths[1], 10, rtol=0.1)
    np.testing.assert_allclose(widths[1] / widths[2], 10, rtol=0.1)
    assert widths[2].max() < 2e-3


def test_what_no_minimum_bounds_is_infinite():
    """At radius 0: the sign of x separates the classes, and the third level has no rows."""
    problem = random_problem(0, N=20, n=1, n_levels=(3,), radius=0.0)
    problem.z[:] = np.arange(20)[:, None] % 2
    problem.y[:] = np.sign(problem.x[:, 0])
    b = solve_tailored(problem, tol=1e-6).b
    unseen, beyond, between = np.array([[1, 0.5, 0, 1], [1, 3.0, 0, 0], [1, 0.0, 0, 0]])
    found = prediction_range(problem, b, np.array([unseen, beyond, between]), 1e-6)
    assert (found.high == np.inf).all() and (found.most == np.inf).all()
    assert found.low[0] == found.least[0] == found.low[2] == found.least[2] == -np.inf
    assert 0 < found.least[1] <= found.low[1] <= beyond @ b


def test_a_box_or_a_penalty_bounds_a_level_without_rows_at_radius_0():
    unbounded = random_problem(1, N=40, n=0, n_levels=(3, 2), radius=0.0)
    unbounded.z[:, 0] = np.arange(40) % 2
    row = np.array([[1.0, 0, 1, 0]])  # the third level, without rows
    for options in ({"coef_bound": 2.0}, {"gamma": 1e-5}):
        problem = random_problem(1, N=40, n=0, n_levels=(3, 2), radius=0.0, **options)
        problem.z[:] = unbounded.z
        b = solve_tailored(problem, tol=1e-9).b
        found = prediction_range(problem, b, row, 1e-6)
        half = 2.0 if "coef_bound" in options else 0.1  # tol / gamma
        low, high = extremes_by_hand(problem, row[0], objective(problem, b)[0] + 1e-6)
        assert high - low == pytest.approx(2 * half, rel=0.1)
        assert (
            found.least[0] - 1e-3 <= low <= found.low[0] + 1e-3 and found.high[0] - 1e-3 <= high <= found.most[0] + 1e-3
        )
    b = solve_tailored(unbounded, tol=1e-9).b
    assert np.isinf(np.concatenate(prediction_range(unbounded, b, row, 1e-6))).all()


@pytest.mark.parametrize("label_cost", [1.0, np.inf])
def test_a_level_that_nobody_has_and_none_can_reach_is_not_bounded(label_cost):
    """Level 2 of the first feature: unless a change into it is possible from some level, in any number of rounds."""
    problem = random_problem(1, N=20, n=1, n_levels=(3, 2))
    problem.z[:, 0] = np.arange(20) % 2
    row = np.array([1.0, 0.3, 0, 1, 1])
    for cost, unbounded in ((np.inf, True), (5.0, False)):
        costs = np.array([[0.0, 1.0, np.inf], [1.0, 0.0, cost], [1.0, 1.0, 0.0]])
        metric = ground_metric(label_cost, 1, 2, level_costs=(costs, 1.0))
        assert is_unbounded(replace(problem, metric=metric), row) == unbounded
    forbidden = ground_metric(label_cost, 1, 2, level_costs=(np.inf, 1.0))
    assert is_unbounded(replace(problem, metric=forbidden), row)
    assert not is_unbounded(replace(problem, metric=forbidden, coef_bound=np.full(5, 1.0)), row)
    assert not is_unbounded(replace(problem, metric=forbidden), np.array([1.0, 0.3, 1, 0, 1]))


def test_equal_rows_are_solved_once_and_those_out_of_time_are_nan(monkeypatch):
    problem = random_problem(0)
    b = solve_tailored(problem, tol=1e-8).b
    rows = every_point(problem)[[0, 1, 0, 0]]
    fits = []
    monkeypatch.setattr(module, "minimise", lambda *a, **k: fits.append(1) or original(*a, **k))
    twice = prediction_range(problem, b, rows, 1e-6)
    n_fits = len(fits)
    once = prediction_range(problem, b, rows[:2], 1e-6)
    assert len(fits) == 2 * n_fits
    np.testing.assert_array_equal(twice.low, once.low[[0, 1, 0, 0]])
    assert np.isnan(np.concatenate(prediction_range(problem, b, rows, 1e-6, seconds=0.0))).all()
    fits.clear()
    monkeypatch.setattr(module, "perf_counter", lambda: float(len(fits)))
    late = prediction_range(problem, b, rows, 1e-6, seconds=n_fits - 1.5)  # time for one row of the two
    reached = np.isfinite(late.low)
    assert reached.sum() in (1, 3)
    np.testing.assert_array_equal(late.low[reached], twice.low[reached])


original = module.minimise
