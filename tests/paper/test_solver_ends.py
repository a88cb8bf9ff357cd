import pickle
from dataclasses import replace

import numpy as np

from tests.instances import random_problem
from wdrlr.estimators.solving import Solving, at_point
from wdrlr.model.objective import objective
from wdrlr.paper.solver_ends import RESIDUE, SHARED, STOPPED, share_intercept
from wdrlr.solvers.registry import SOLVERS


def test_residue_is_left_only_where_all_slopes_are_zero():
    unit = random_problem(0, N=60, n=0, n_levels=(3, 2), coding="pm1", coef_bound=100.0)
    for radius, constant in ((0.001, False), (1.0, True)):
        for residue in RESIDUE.values():
            exact, left = (Solving(solver).solve(at_point(unit, radius, 0.0)).b[1:] for solver in ("tailored", residue))
            assert (not exact.any()) == constant
            assert left.any()
            assert np.array_equal(exact, left) == (not constant)
            assert np.abs(left - exact).max() < 0.1


def unseen(seed=0):
    """-1/+1 dummies, of which two have levels without rows: level 1 of the first feature, level 0 of the third."""
    problem = random_problem(seed, N=60, n=1, n_levels=(4, 2, 2), coding="pm1", radius=0.0)
    z = problem.z.copy()
    z[z[:, 0] == 1, 0] = 0
    z[:, 2] = 1
    return replace(problem, z=z)


def test_the_intercept_is_shared_among_columns_that_are_constant_in_the_data():
    problem = unseen()
    rows = problem.design(np.arange(problem.n_samples), problem.z)
    constant = np.flatnonzero((rows == rows[0]).all(axis=0))
    assert len(constant) == 3
    b = np.random.default_rng(0).normal(size=problem.n_coefficients)
    shared = share_intercept(problem, b)
    assert np.allclose(problem.decision(shared), problem.decision(b))
    assert np.ptp(shared[constant] * rows[0, constant]) < 1e-12
    others = np.delete(np.arange(len(b)), constant)
    assert np.array_equal(shared[others], b[others])


def test_a_shared_intercept_is_as_good_or_left_alone():
    unit = unseen()
    for radius, moves in ((0.0, True), (0.05, False)):
        problem = at_point(unit, radius, 0.0)
        exact, shared = (Solving(solver).solve(problem) for solver in ("tailored", SHARED))
        assert np.array_equal(exact.b, shared.b) == (not moves)
        assert shared.upper == objective(problem, shared.b)[0] <= exact.upper + 1e-6


def test_algorithm_1_stops_early_at_large_radii_only():
    unit = random_problem(0, N=60, n=0, n_levels=(3, 2, 2, 2), coding="pm1", coef_bound=100.0, label_cost=4.0)
    for radius, stopped in ((0.01, False), (0.2, True)):
        exact, left = (Solving(solver).solve(at_point(unit, radius, 0.0)) for solver in ("tailored", STOPPED))
        assert np.array_equal(exact.b, left.b) == (not stopped)
        assert left.n_rounds <= 100


def test_no_user_of_the_classifier_meets_them():
    ours = {*RESIDUE.values(), SHARED, STOPPED}
    assert not {solver.name for solver in ours} & set(SOLVERS)
    assert ours == {pickle.loads(pickle.dumps(solver)) for solver in ours}
