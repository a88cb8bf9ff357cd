"""The dual of linf through sizes of the numbers, against the conic solver and the same norm through tangents."""

from dataclasses import replace

import numpy as np
import pytest

from tests.instances import random_problem
from wdrlr.model.metric import NORMS, LInf, Norm
from wdrlr.model.objective import objective
from wdrlr.solvers.column_constraint import solve_column_constraint
from wdrlr.solvers.interior_point.bound import Bounds, bound_below
from wdrlr.solvers.interior_point.coordinates import Coordinates
from wdrlr.solvers.interior_point.instance import Instance
from wdrlr.solvers.interior_point.method import first_iterate, move, solve_tailored
from wdrlr.solvers.interior_point.newton import linearise, predict_and_correct
from wdrlr.solvers.interior_point.search import search

SETTINGS = {
    "mixed": {},
    "penalty and box": {"gamma": 0.001, "radius": 0.05, "coef_bound": 0.3},
    "numbers only": {"n_levels": (), "label_cost": np.inf, "radius": 0.02},
    "tops": {"n_levels": (5, 4), "weighted": True, "radius": 0.05},
    "sizes of codes": {"n_levels": (5, 3), "coding": "pm1", "any_code": True},
    "no intercept": {"fit_intercept": False},
    "costs": {"number_costs": [0.5, 1.0, 3.0, 0.2]},
    "one may not move": {"number_costs": [0.5, np.inf, 3.0, 1.0]},
    "one may move": {"number_costs": [np.inf, 0.1, np.inf, np.inf]},
    "none may move": {"number_costs": [np.inf] * 4},
    "one number": {"n": 1},
    "radius 0": {"radius": 0.0, "gamma": 0.01},
}


def posed(name, seed, norm="linf"):
    setting = {"N": 40, "n": 4, "n_levels": (3, 2), "radius": 0.05, **SETTINGS[name]}
    costs = setting.pop("number_costs", None)
    problem = random_problem(seed, norm=norm, **setting)
    problem.x[:] *= np.array([0.1, 0.6, 0.3, 1.2])[: problem.n_numeric]
    costs = None if costs is None else np.array(costs)
    return replace(problem, metric=replace(problem.metric, number_costs=costs))


class Outside(Norm):
    """The values of linf, of which the method knows nothing else."""

    value, dual, steepest = LInf().value, LInf().dual, LInf().steepest


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("seed", range(3))
def test_the_fit_is_that_through_tangents(monkeypatch, name, seed):
    monkeypatch.setitem(NORMS, "outside", Outside())
    ours, theirs = (solve_tailored(posed(name, seed, norm), tol=1e-10) for norm in ("linf", "outside"))
    assert 0 <= ours.gap <= 1e-10 and 0 <= theirs.gap <= 1e-10
    assert ours.upper == pytest.approx(theirs.upper, abs=1e-10)
    effect = np.abs(posed(name, seed).x).max(axis=0)
    scale = np.concatenate([[1.0], effect, np.ones(len(ours.b) - 1 - len(effect))])
    np.testing.assert_allclose(scale * ours.b, scale * theirs.b, rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", [name for name in SETTINGS if name not in ("none may move", "radius 0")])
def test_the_norm_decides_some_fits(name):
    """Where it is as large as lam, and with several slopes in it."""
    problem = posed(name, 0)
    b = solve_tailored(problem, tol=1e-9).b
    slopes, movable = problem.numeric(b), problem.metric.movable(problem.n_numeric)
    assert problem.metric.dual_norm(slopes) == pytest.approx(objective(problem, b)[1], rel=1e-6)
    assert (np.abs(slopes[movable]) > 1e-4).sum() >= min(movable.sum(), 2)
    bound = problem.coef_bound[np.isfinite(problem.coef_bound)]
    assert not len(bound) or np.abs(b).max() == pytest.approx(bound[0], rel=1e-4)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_fit_is_that_of_the_conic_solver(name):
    problem = posed(name, 0)
    ours, theirs = solve_tailored(problem), solve_column_constraint(problem)
    assert 0 <= ours.gap <= 1e-6 and theirs.gap <= 1e-4
    assert ours.lower <= theirs.upper + 1e-10 and theirs.lower <= ours.upper + 1e-10
    assert ours.upper == pytest.approx(theirs.upper, abs=2e-6)


@pytest.mark.parametrize("name", SETTINGS)
def test_sizes_are_those_of_the_numbers_that_may_move(name):
    problem = posed(name, 0)
    coordinates = Coordinates(problem)
    instance = Instance(problem, coordinates, 1e-7)
    movable = problem.metric.movable(problem.n_numeric)
    assert len(coordinates.number_size) == (movable.sum() if problem.n_numeric > 1 else 0)
    assert instance.by_sizes == (len(coordinates.number_size) > 0 and problem.radius > 0)
    if instance.by_sizes:
        rng = np.random.default_rng(0)
        theta = rng.normal(size=coordinates.E)
        theta[coordinates.number_size] = np.abs(theta[1 : 1 + len(movable)])[movable]
        room = instance.toll * theta[-1] - instance.number_norm.dual(instance.slopes(theta))
        assert instance.rows.values(theta)[-1] == pytest.approx(room, rel=1e-12)
        last = instance.rows.values(theta)[: instance.tops.n_rows][-2 * movable.sum() :].reshape(-1, 2)
        above = 2 * np.abs(theta[1 : 1 + len(movable)])[movable]
        np.testing.assert_allclose(np.sort(last), np.column_stack([0 * above, above]), atol=1e-15)


@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("name", [name for name in SETTINGS if name not in ("none may move", "one number", "radius 0")])
def test_iterates_are_strictly_feasible(name, started):
    problem = posed(name, 1)
    start = solve_tailored(replace(problem, radius=2 * problem.radius)) if started else None
    assert start is None or objective(problem, start.b)[0] < np.log(2), "else it is not used"
    coordinates = Coordinates(problem)
    instance = Instance(problem, coordinates, 1e-8)
    at = first_iterate(instance, start)
    bounds = Bounds(np.inf, at.theta)
    movable = problem.metric.movable(problem.n_numeric)
    for n_steps in range(1, 25):
        sizes = at.theta[coordinates.number_size]
        assert (sizes > np.abs(at.theta[1 : 1 + len(movable)])[movable]).all()
        assert instance.toll * at.theta[-1] > (sizes / instance.x_scale[movable]).sum()
        assert (at.rows.values(at.theta)[instance.tops.n_rows :] > 0).all()
        newton = linearise(instance, at)
        assert newton.used[coordinates.number_size].all()
        step = predict_and_correct(instance, at, newton, bounds.upper)
        bounds = bound_below(instance, at, newton, step, bounds)
        trial, bounds = search(instance, at, newton, step, bounds)
        at = move(instance, at, newton, step, trial, n_steps % 4 == 0)
    assert bounds.upper - bounds.lower <= 1e-8


@pytest.mark.parametrize("name", SETTINGS)
def test_a_start_changes_nothing_but_the_way(name):
    problem = posed(name, 2)
    for other in (replace(problem, radius=1e-4), replace(problem, radius=2 * problem.radius)):
        again = solve_tailored(problem, tol=1e-9, start=solve_tailored(other))
        assert 0 <= again.gap <= 1e-9
        assert again.upper == pytest.approx(solve_tailored(problem, tol=1e-9).upper, abs=1e-9)
