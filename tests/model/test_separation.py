"""Algorithm 2 against the enumeration of all z."""

from itertools import product

import numpy as np
import pytest

from tests.instances import COSTS, cost_by_hand, enumerated_points, f_by_hand, random_coefficients, random_problem
from wdrlr.model.separation import most_violated

LEVELS = [(2,), (3, 2, 4), (2, 2, 2, 2), (1, 3), (5, 1, 2), ()]


def enumerated(problem, b, lam, i, flip):
    return max(
        np.logaddexp(0, -flip * problem.y[i] * f_by_hand(problem, b, i, z)) - lam * cost_by_hand(problem, i, z, flip)
        for z in product(*map(range, problem.n_levels))
    )


@pytest.mark.parametrize("n_levels", LEVELS)
@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.7])
@pytest.mark.parametrize("label_cost", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("coding", ["onehot", "pm1"])
def test_separation_equals_enumeration(n_levels, p, label_cost, coding):
    for seed, lam in enumerate([0.0, 0.3, 1.0, 7.0]):
        problem = random_problem(seed, N=6, n_levels=n_levels, p=p, label_cost=label_cost, coding=coding)
        b = random_coefficients(problem, seed, size=2.0)
        for flipped, flip in ((False, 1.0), (True, -1.0)):
            worst = most_violated(problem, b, lam, flipped)
            for i in range(problem.n_samples):
                assert worst.value[i] == pytest.approx(enumerated(problem, b, lam, i, flip), abs=1e-12)
                # The z that is returned has that value, and as many changes as it says.
                z = worst.z[i]
                value = np.logaddexp(0, -flip * problem.y[i] * f_by_hand(problem, b, i, z))
                assert value - lam * cost_by_hand(problem, i, z, flip) == pytest.approx(worst.value[i], abs=1e-12)
                assert (z != problem.z[i]).sum() == worst.n_steps[i]
                assert worst.argument[i] == pytest.approx(-flip * problem.y[i] * f_by_hand(problem, b, i, z))


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_ties_between_levels_and_features(p):
    problem = random_problem(3, N=8, n=0, n_levels=(3, 3, 3), p=p)
    for b in (np.zeros(7), np.r_[0.5, np.tile([1.0, 1.0], 3)], np.r_[0.0, np.tile([1.0, -1.0], 3)]):
        for flipped, flip in ((False, 1.0), (True, -1.0)):
            worst = most_violated(problem, b, 0.4, flipped)
            for i in range(problem.n_samples):
                assert worst.value[i] == pytest.approx(enumerated(problem, b, 0.4, i, flip), abs=1e-12)


def test_nothing_changes_where_the_multiplier_is_large():
    problem = random_problem(5)
    worst = most_violated(problem, random_coefficients(problem), 1e6, False)
    assert (worst.n_steps == 0).all()
    assert (worst.z == problem.z).all()


def test_large_coefficients_do_not_overflow():
    problem = random_problem(6, n_levels=(2, 1, 3))
    worst = most_violated(problem, random_coefficients(problem, size=1e4), 1.0, True)
    assert np.isfinite(worst.value).all()


def losses_and_costs(problem, b, i, flip):
    """Of all z, with that label, of a finite cost; an array with two rows."""
    points = [z for z, of_label in enumerated_points(problem) if of_label == flip]
    pairs = [(f_by_hand(problem, b, i, z), cost_by_hand(problem, i, z, flip)) for z in points]
    f, cost = np.array([pair for pair in pairs if np.isfinite(pair[1])]).T
    return np.array([np.logaddexp(0, -flip * problem.y[i] * f), cost])


def assert_worst(problem, b, lam, worst, flip, enumerated):
    """It has the value of the worst of all z with a finite cost, and so has its z."""
    for i, (losses, costs) in enumerate(enumerated):
        assert worst.value[i] == pytest.approx((losses - lam * costs).max(), abs=1e-12)
        value = np.logaddexp(0, -flip * problem.y[i] * f_by_hand(problem, b, i, worst.z[i]))
        cost = cost_by_hand(problem, i, worst.z[i], flip)
        assert value - lam * cost == pytest.approx(worst.value[i], abs=1e-12)


@pytest.mark.parametrize("kind", COSTS)
@pytest.mark.parametrize("n_levels", [(2,), (3, 2, 4), (1, 3), (5, 1, 2), (6, 4)])
def test_separation_with_costs_equals_enumeration(kind, n_levels):
    """So does the loss at any multiplier; the z that is returned has the value, and a finite cost."""
    for seed in range(25):
        problem = random_problem(seed, N=6, n_levels=n_levels, costs=kind, label_cost=[0.3, 1.0, 4.0][seed % 3])
        b = random_coefficients(problem, seed, size=[0.3, 2.0][seed % 2])
        if seed % 5 == 0:
            b = np.round(b)  # ties
        for flipped, flip in ((False, 1.0), (True, -1.0)):
            enumerated = [losses_and_costs(problem, b, i, flip) for i in range(problem.n_samples)]
            for lam in (0.0, 0.05, 0.3, 1.0, 7.0):
                worst = most_violated(problem, b, lam, flipped)
                assert_worst(problem, b, lam, worst, flip, enumerated)


@pytest.mark.parametrize("kind", [None, "features", "fixed"])
@pytest.mark.parametrize("n_levels", [(2,), (3, 2, 4), (1, 3), (5,)])
def test_separation_over_codes_equals_enumeration(kind, n_levels):
    """Any -1/+1 code at the cost of a change, as in the paper's public code."""
    for seed in range(10):
        problem = random_problem(seed, N=5, n_levels=n_levels, costs=kind, coding="pm1", any_code=True)
        b = random_coefficients(problem, seed)
        for flipped, flip in ((False, 1.0), (True, -1.0)):
            enumerated = [losses_and_costs(problem, b, i, flip) for i in range(problem.n_samples)]
            for lam in (0.0, 0.3, 1.0):
                worst = most_violated(problem, b, lam, flipped)
                assert_worst(problem, b, lam, worst, flip, enumerated)
                label = -flip * problem.y
                rows = problem.design(np.arange(problem.n_samples), worst.z)
                assert np.allclose(label * (rows @ b), worst.argument)
