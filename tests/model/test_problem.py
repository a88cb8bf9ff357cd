"""The problem as arrays, against what its letters mean."""

import numpy as np
import pytest

from tests.instances import f_by_hand, random_coefficients, random_problem
from wdrlr.model.objective import objective
from wdrlr.model.problem import level_offsets, log_loss, merge_duplicates


def test_the_log_loss_does_not_overflow():
    a = np.array([-800.0, -1.0, 0.0, 1.0, 800.0])
    np.testing.assert_allclose(log_loss(a), [0.0, np.log1p(np.exp(-1)), np.log(2), np.log1p(np.e), 800.0], rtol=1e-15)


@pytest.mark.parametrize(
    "setting", [{}, {"n": 0}, {"n_levels": ()}, {"coding": "pm1"}, {"fit_intercept": False}], ids=str
)
def test_f_is_the_sum_of_its_parts(setting):
    problem = random_problem(1, **setting)
    b = problem.feasible(random_coefficients(problem, 1))
    by_hand = [f_by_hand(problem, b, i, problem.z[i]) for i in range(problem.n_samples)]
    np.testing.assert_allclose(problem.decision(b), by_hand, atol=1e-12)
    np.testing.assert_allclose(problem.design(np.arange(problem.n_samples), problem.z) @ b, by_hand, atol=1e-12)


def test_levels_are_counted_through():
    assert level_offsets((2, 4, 1)).tolist() == [0, 2, 6]
    assert level_offsets(()).tolist() == []


def test_feasible_coefficients_are_the_nearest():
    problem = random_problem(2, coef_bound=0.5, fit_intercept=False)
    b = np.linspace(-1, 1, problem.n_coefficients)
    expected = np.clip(b, -0.5, 0.5)
    expected[0] = 0.0
    np.testing.assert_array_equal(problem.feasible(b), expected)


def test_equal_rows_are_merged_whatever_their_order():
    problem = random_problem(3, N=12, n=1)
    x, z, y, w = (np.concatenate([part, part[:5]]) for part in (problem.x, problem.z, problem.y, problem.w))
    order = np.random.default_rng(0).permutation(len(y))
    merged, again = merge_duplicates(x, z, y, w), merge_duplicates(x[order], z[order], y[order], w[order])
    for one, other in zip(merged, again, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-15)
    assert len(merged[2]) == 12
    assert merged[3].sum() == pytest.approx(w.sum())


def test_a_merged_problem_has_the_same_objective():
    problem = random_problem(5, N=40, n=0, n_levels=(2, 2), weighted=True)
    b = random_coefficients(problem, 5)
    merged = problem.merged()
    assert merged.n_samples < problem.n_samples
    assert objective(merged, b) == pytest.approx(objective(problem, b), rel=1e-12)


def test_means_of_constant_columns_are_exact():
    problem = random_problem(4, N=9, n=2, weighted=True)
    problem.x[:, 1] = 0.1
    np.testing.assert_allclose(problem.means, problem.w @ problem.x, rtol=1e-14)
    assert problem.means[1] == 0.1


def test_rows_are_in_one_order_whether_or_not_numbers_tie():
    rng = np.random.default_rng(0)
    x, z, y = rng.normal(size=(50, 3)), rng.integers(0, 3, (50, 2)), rng.choice([-1.0, 1.0], 50)
    order = np.lexsort([*z.T, *x.T, y])
    for tied in (False, True):
        if tied:
            x[:, -1] = rng.integers(0, 2, 50)
            order = np.lexsort([*z.T, *x.T, y])
        merged = merge_duplicates(x, z, y, np.ones(50))
        for ours, rows in zip(merged, (x, z, y), strict=False):
            np.testing.assert_array_equal(ours, rows[order])
    nothing = merge_duplicates(np.zeros((3, 0)), np.zeros((3, 0), int), np.array([1.0, -1.0, 1.0]), np.ones(3))
    assert nothing[3].tolist() == [1.0, 2.0]
