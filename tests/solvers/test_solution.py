"""What every solver returns: the certificate, the constant model in place of residue, and separated samples."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tests.instances import random_problem
from wdrlr.model.certificate import Certificate, check
from wdrlr.model.cuts import all_cuts
from wdrlr.model.encoding import level_matrix
from wdrlr.model.metric import GroundMetric
from wdrlr.model.objective import Objective
from wdrlr.model.problem import Problem
from wdrlr.solvers import solution
from wdrlr.solvers.closed_form import best_constant, constant_objective, optimal_constant
from wdrlr.solvers.dual_repair import dual_points
from wdrlr.solvers.programs import solve_program
from wdrlr.solvers.solution import Solution, certified, separated

RECORD = {"n_rounds": 3, "n_cuts": 7, "separation_seconds": 0.5, "solver_seconds": 0.25, "bounds": ((0.1, 0.2),)}


@pytest.fixture(scope="module")
def solved():
    """A problem, its optimal coefficients, and the dual points that prove it."""
    problem = random_problem(1)
    cuts = all_cuts(problem, 1000)
    program = solve_program(problem, cuts, "dual", "CLARABEL")
    return problem, program.b, dual_points(problem, cuts, program.mass, program.b, 1e-6)


def test_it_is_what_the_certificate_says(solved):
    problem, b, points = solved
    found = certified(problem, b, points, 1e-6, **RECORD)
    assert (found.b == b).all()
    assert (found.upper, found.lower, found.lam) == check(problem, b, *points)[:3]
    assert 0 <= found.gap == found.upper - found.lower <= 1e-6
    assert {name: getattr(found, name) for name in RECORD} == RECORD
    assert found.certificate_seconds > 0


@pytest.mark.parametrize("keep_residue", [False, True])
def test_residue_gives_way_to_the_constant_model(keep_residue):
    problem = random_problem(2, radius=2.0)  # more than half the label cost: the constant model is optimal
    b, point = optimal_constant(problem)
    residue = b + 1e-9
    found = certified(problem, residue, [point], 1e-6, keep_residue)
    assert (found.b == (residue if keep_residue else b)).all() and not b[1:].any()
    assert (found.upper, found.lower, found.lam) == check(problem, found.b, point)[:3]


def test_the_constant_model_is_good_enough_within_the_tolerance(solved):
    problem, b, points = solved
    constant = best_constant(problem)
    excess = constant_objective(problem, constant) - check(problem, b, *points).lower
    assert excess > 1e-3
    assert (certified(problem, b, points, 0.99 * excess).b == b).all()
    assert (certified(problem, b, points, 1.01 * excess).b == constant).all()
    assert (certified(problem, b, points, 1.01 * excess, keep_residue=True).b == b).all()


def test_what_a_solver_says_of_the_objective_changes_nothing(solved):
    problem, b, points = solved
    for tol in (1e-6, 1.0):  # with the second one the constant model is good enough
        found = certified(problem, b, points, tol)
        assert (found.b == (best_constant(problem) if tol == 1.0 else b)).all()
        for value in (0.0, found.upper, 10.0):
            again = certified(problem, b, points, tol, guess=Objective(value, 0.0, 0.9 * found.lam))
            assert (again.b == found.b).all()
            assert (again.upper, again.lower) == pytest.approx((found.upper, found.lower), rel=1e-12)


def test_coefficients_worse_than_the_constant_model_give_way_without_any_proof():
    problem = random_problem(2)
    assert (certified(problem, np.full(problem.n_coefficients, 50.0), [], 1e-6).b == best_constant(problem)).all()


def test_coefficients_are_made_feasible():
    problem = random_problem(2, coef_bound=np.array([0.3, 0.2, 0.1, np.inf, 0.4, 0.5]), fit_intercept=False)
    b = np.array([0.2, -0.3, 0.05, 7.0, 0.5, -0.6])
    assert certified(problem, b, [], 1e-6, keep_residue=True).b.tolist() == [0.0, -0.2, 0.05, 7.0, 0.4, -0.5]


def test_coefficients_that_are_not_finite_count_as_0():
    problem = random_problem(2, coef_bound=1.0)
    b = np.array([np.nan, np.inf, -np.inf, 0.5, -0.5, 0.25])
    found = certified(problem, b, [], 1e-6, keep_residue=True)
    assert found.b.tolist() == [0.0, 0.0, 0.0, 0.5, -0.5, 0.25]
    assert np.isfinite(found.gap)


def test_of_bounds_that_cross_the_lower_one_is_dropped(monkeypatch, solved):
    problem, b, points = solved
    for lower, kept in [(0.4, 0.4), (0.5, 0.5), (0.5 + 1e-12, -np.inf), (0.6, -np.inf)]:
        monkeypatch.setattr(solution, "check", lambda *_, at=None, lower=lower: Certificate(0.5, lower, 1.0))
        found = certified(problem, b, points, 1e-6, keep_residue=True)
        assert (found.upper, found.lower, found.lam) == (0.5, kept, 1.0)
    assert found.gap == np.inf


def test_report():
    found = Solution(np.zeros(2), 1.0, 0.6931, 0.69309, 3, 7, separation_seconds=0.125, solver_seconds=1.5)
    assert found.report() == (
        "objective 0.6931000, gap 1.0e-05, 3 rounds, 7 cuts, 0.12 s in separation, 1.50 s in the solver"
    )


# ------------------------------------------------------------ separated samples


def small_table(seed, fit_intercept=True):
    """One number in {-1, 0, 1} and one feature with two levels, coded -1 and +1."""
    draw = np.random.default_rng(seed)
    N = int(draw.integers(3, 9))
    return Problem(
        x=draw.integers(-1, 2, (N, 1)).astype(float),
        z=draw.integers(0, 2, (N, 1)),
        y=draw.choice([-1.0, 1.0], N),
        w=np.full(N, 1 / N),
        n_levels=(2,),
        level_matrix=level_matrix((2,), "pm1"),
        metric=GroundMetric(1.0),
        radius=0.0,
        penalty=np.zeros(3),
        fit_intercept=fit_intercept,
    )


def separated_by_definition(problem):
    """Whether some direction that is wrong about no sample is right about this one.

    The directions that are wrong about no sample form a cone. Up to directions in which all margins are 0, each is a
    sum of edges, and an edge is orthogonal to two vectors with entries -1, 0 and 1 (rows, or unit vectors): its own
    entries are integers up to 2.
    """
    rows = np.column_stack([np.full(len(problem.y), problem.fit_intercept), problem.x, 2 * problem.z - 1])
    directions = np.array(list(product(range(-2, 3), repeat=3)))
    margins = (problem.y[:, None] * rows) @ directions.T
    return (margins[:, (margins >= 0).all(axis=0)] > 0).any(axis=1)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_separated_samples_are_those_that_a_direction_separates(fit_intercept):
    seen = set()
    for seed in range(150):
        problem = small_table(seed, fit_intercept)
        expected = separated_by_definition(problem)
        assert separated(problem).tolist() == expected.tolist(), seed
        seen.add((bool(expected.any()), bool(expected.all())))
    assert seen == {(False, False), (True, False), (True, True)}


def test_separated_does_not_depend_on_the_unit_of_a_number():
    for seed in range(30):
        problem = small_table(seed)
        expected = separated(problem)
        for unit in (1e-9, 1e9):
            rescaled = replace(problem, x=problem.x * unit)
            assert separated(rescaled).tolist() == expected.tolist()
