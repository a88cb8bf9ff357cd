"""The conic programs against Theorem 1's program written with cvxpy's own log-loss, and against nature's programs."""

from itertools import product
from math import inf
from time import perf_counter

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar

from tests.instances import WeightedL1, cost_by_hand, enumerated_points, f_by_hand, random_problem, worst_case_by_hand
from wdrlr.model import metric
from wdrlr.model.cuts import Cuts, all_cuts
from wdrlr.model.problem import log_loss
from wdrlr.solvers.conic import OutOfTime
from wdrlr.solvers.programs import _assemble, solve_program

SETTINGS = {
    "l1": {"n": 2},
    "l2": {"n": 2, "norm": "l2", "metric_scale": "unit", "radius": 0.03},
    "linf": {"n": 2, "norm": "linf"},
    "weighted l1": {"n": 2, "norm": "weighted"},
    "no numbers": {"n": 0},
    "no categories": {"n": 2, "n_levels": (), "norm": "linf", "weighted": True},
    "weights, p = 2": {"weighted": True, "p": 2.0, "label_cost": 0.4},
    "labels never change": {"label_cost": inf},
    "costs of levels": {"n": 0, "costs": "matrices"},
    "costs of levels and numbers": {"n": 2, "costs": "fixed"},
    "penalty": {"gamma": 0.02, "penalize_intercept": True},
    "box": {"n": 2, "coef_bound": np.array([0.1, inf, 0.2, 0.3, inf, 0.2, 0.1])},
    "penalty and box": {"gamma": 0.01, "coef_bound": 0.3, "norm": "l2"},
    "no intercept": {"fit_intercept": False, "gamma": 0.01, "coef_bound": 0.5},
    "radius 0": {"radius": 0.0, "N": 40, "weighted": True},
    "radius 0, penalty, box, no intercept": {"radius": 0.0, "gamma": 0.01, "coef_bound": 0.5, "fit_intercept": False},
}


@pytest.fixture(params=["primal", "dual"])
def form(request):
    return request.param


@pytest.fixture(params=["all cuts", "some cuts"])
def share(request):
    return {"all cuts": 1.0, "some cuts": 0.3}[request.param]


@pytest.fixture(params=SETTINGS)
def problem(request, monkeypatch):
    monkeypatch.setitem(metric.NORMS, "weighted", WeightedL1(np.array([0.5, 2.0])))
    return random_problem(3, **{"N": 8, **SETTINGS[request.param]})


def chosen_points(problem, share):
    """(i, z, flip) of the program's constraints: the data, and a share of all other points the adversary can go to."""
    draw = np.random.default_rng(0)
    points = [(i, z, flip) for i in range(problem.n_samples) for z, flip in enumerated_points(problem)]
    costs = [cost_by_hand(problem, *point) for point in points]
    kept = [cost == 0 or (problem.radius > 0 and cost < inf and draw.random() < share) for cost in costs]
    return [point for point, keep in zip(points, kept, strict=True) if keep]


def written_out(problem, points):
    """The matrix of the arguments of the log-losses, the costs, and the samples, one point after the other."""
    units = np.eye(problem.n_coefficients)
    rows = [[-flip * problem.y[i] * f_by_hand(problem, unit, i, z) for unit in units] for i, z, flip in points]
    return np.array(rows), np.array([cost_by_hand(problem, *point) for point in points]), [i for i, *_ in points]


def as_cuts(problem, points):
    sample, z, flip = zip(*points, strict=True)
    return Cuts(np.array(sample), np.array(z, dtype=int).reshape(len(z), -1), np.array(flip) < 0)


def modelled_value(problem, points):
    """Theorem 1, before its log-losses are written with exponential cones."""
    rows, costs, sample = written_out(problem, points)
    b, lam, s = cp.Variable(problem.n_coefficients), cp.Variable(), cp.Variable(problem.n_samples)
    constraints = [cp.logistic(rows @ b) - lam * costs <= s[sample]]
    slopes = b[1 : 1 + problem.n_numeric]
    if problem.metric.number_costs is not None:
        slopes = cp.multiply(1 / problem.metric.number_costs, slopes)
    dual = {"l1": lambda v: cp.norm(v, inf), "l2": lambda v: cp.norm(v, 2), "linf": lambda v: cp.norm(v, 1)}
    dual["weighted"] = lambda v: cp.norm(cp.multiply([2.0, 0.5], v), inf)
    constraints.append(lam >= (problem.metric.scale * dual[problem.metric.norm](slopes) if problem.n_numeric else 0.0))
    bounded = np.flatnonzero(np.isfinite(problem.coef_bound))
    if bounded.size:
        constraints.append(cp.abs(b[bounded]) <= problem.coef_bound[bounded])
    if not problem.fit_intercept:
        constraints.append(b[0] == 0)
    value = problem.radius * lam + problem.w @ s + problem.penalty @ cp.abs(b)
    return cp.Problem(cp.Minimize(value), constraints).solve(solver="CLARABEL")


def test_the_value_is_that_of_theorem_1(problem, form, share):
    points = chosen_points(problem, share)
    found = solve_program(problem, as_cuts(problem, points), form, "CLARABEL")
    assert found.value == pytest.approx(modelled_value(problem, points), abs=1e-7)


def test_coefficients_are_feasible_and_attain_the_value(problem, form, share):
    points = chosen_points(problem, share)
    rows, costs, sample = written_out(problem, points)
    found = solve_program(problem, as_cuts(problem, points), form, "CLARABEL")
    assert np.isnan(found.lam) == (problem.radius == 0)
    lam = np.nan_to_num(found.lam)
    assert problem.radius == 0 or lam >= problem.metric.dual_norm(problem.numeric(found.b)) - 1e-5
    assert (np.abs(found.b) <= problem.coef_bound + 1e-6).all()
    assert problem.fit_intercept or found.b[0] == pytest.approx(0.0, abs=1e-9)
    assert (log_loss(rows @ found.b) - lam * costs <= found.s[sample] + 1e-5).all()
    value = lam * problem.radius + problem.w @ found.s + problem.penalty @ np.abs(found.b)
    assert value == pytest.approx(found.value, abs=1e-6)


def test_masses_are_as_likely_as_the_data_and_within_the_ball(problem, form, share):
    points = chosen_points(problem, share)
    _, costs, sample = written_out(problem, points)
    mass = solve_program(problem, as_cuts(problem, points), form, "CLARABEL").mass
    assert (mass >= -1e-7).all()
    np.testing.assert_allclose(np.bincount(sample, mass), problem.w, atol=1e-5)
    assert mass @ costs <= problem.radius + 1e-6


def test_strong_duality(problem, share):
    """Values agree, and no form's masses lie where the coefficients of either leave slack."""
    points = chosen_points(problem, share)
    rows, costs, sample = written_out(problem, points)
    found = [solve_program(problem, as_cuts(problem, points), form, "CLARABEL") for form in ("primal", "dual")]
    assert found[0].value == pytest.approx(found[1].value, abs=1e-7)
    for masses, point in product(found, found):
        slack = point.s[sample] - log_loss(rows @ point.b) + np.nan_to_num(point.lam) * costs
        assert masses.mass @ slack == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize(
    "setting",
    [
        {"n": 1, "n_levels": ()},
        {"n": 0, "n_levels": (2,), "label_cost": 0.6, "weighted": True},
        {"n": 0, "n_levels": (2,), "gamma": 0.05, "radius": 0.1},
        {"n": 0, "n_levels": (2,), "coef_bound": 0.2, "radius": 0.01},
    ],
)
def test_one_slope_against_brute_force(setting, form):
    """Nature's linear program at each b that a line search tries."""
    problem = random_problem(5, N=8, fit_intercept=False, **setting)

    def objective(slope):
        b = np.array([0.0, slope])
        return worst_case_by_hand(problem, b) + problem.penalty_value(b)

    size = min(10.0, problem.coef_bound[1])
    best = minimize_scalar(objective, bounds=(-size, size), method="bounded", options={"xatol": 1e-9})
    assert best.fun < objective(0.0) - 1e-3
    found = solve_program(problem, all_cuts(problem, 1000), form, "CLARABEL")
    assert found.value == pytest.approx(best.fun, abs=1e-7)
    assert found.b[1] == pytest.approx(best.x, abs=1e-4)


def test_the_solver_gets_the_deadline(form):
    problem = random_problem(1)
    cuts = all_cuts(problem, 1000)
    assert solve_program(problem, cuts, form, "CLARABEL", perf_counter() + 600).value < np.log(2)
    with pytest.raises(OutOfTime, match="no time is left"):
        solve_program(problem, cuts, form, "CLARABEL", perf_counter())


def test_where_the_blocks_stand():
    """Columns in the order of ``widths``, rows in that of the cones, and those of K_exp three by three."""
    two, three = sp.csr_array([[1.0, 2.0], [0.0, 3.0]]), sp.coo_array([[4.0], [5.0], [6.0]])
    program, at = _assemble(
        {"x": 1, "y": 2, "unused": 1},
        {"y": np.array([7.0, 8.0])},
        [({"y": two}, np.array([1.0, 2.0]))],
        [({"x": sp.eye_array(1)}, np.array([3.0])), ({"x": sp.eye_array(1), "y": two[[0]]}, np.array([4.0]))],
        [({"x": three}, np.array([5.0, 6.0, 7.0]))],
        [
            (({"y": two}, np.array([10.0, 11.0])), ({}, np.array([20.0, 21.0])), ({"y": -two}, np.array([30.0, 31.0]))),
            (({"x": -sp.eye_array(1)}, np.array([12.0])), ({}, np.array([22.0])), ({}, np.array([32.0]))),
        ],
    )
    assert at == {"x": slice(0, 1), "y": slice(1, 3), "unused": slice(3, 4)}
    assert program.q.tolist() == [0, 7, 8, 0]
    assert (program.zero, program.nonnegative, program.second_order, program.exponential) == (2, 2, (3,), 3)
    assert program.h.tolist() == [1, 2, 3, 4, 5, 6, 7, 10, 20, 30, 11, 21, 31, 12, 22, 32]
    none = [0, 0, 0, 0]
    assert program.A.toarray().tolist() == [
        *([0, 1, 2, 0], [0, 0, 3, 0]),
        *([1, 0, 0, 0], [1, 1, 2, 0]),
        *([4, 0, 0, 0], [5, 0, 0, 0], [6, 0, 0, 0]),
        *([0, 1, 2, 0], none, [0, -1, -2, 0]),
        *([0, 0, 3, 0], none, [0, 0, -3, 0]),
        *([-1, 0, 0, 0], none, none),
    ]
