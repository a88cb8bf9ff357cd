"""Algorithm 2 against the enumeration of all z."""

from itertools import product

import numpy as np
import pytest

from tests.instances import cost_by_hand, f_by_hand, random_coefficients, random_problem
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
                assert (z != problem.z[i]).sum() == worst.n_changes[i]
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
    assert (worst.n_changes == 0).all()
    assert (worst.z == problem.z).all()


def test_large_coefficients_do_not_overflow():
    problem = random_problem(6, n_levels=(2, 1, 3))
    worst = most_violated(problem, random_coefficients(problem, size=1e4), 1.0, True)
    assert np.isfinite(worst.value).all()
