"""Where changes of labels alone make all slopes 0: closed forms, and a level that they cannot make up for."""

import pytest

from tests.instances import at, random_problem
from wdrlr.solvers.interior_point.method import solve_tailored
from wdrlr.solvers.labels_alone import radius_of_labels_alone
from wdrlr.solvers.largest_radius import largest_useful_radius


@pytest.mark.parametrize("beta", [0.2, 1e-4, 1e-8])
@pytest.mark.parametrize("coding", ["onehot", "pm1"])
def test_a_small_class_takes_as_few_labels_as_it_is_small(beta, coding):
    """One level has half of the larger class, and all of the smaller one, whose weight is beta.

    With the share s of labels changed, all of them in the other level, the smaller class has s there, which must be its
    part of beta + s: s = (beta + s) (1 - beta) / 2.
    """
    problem = random_problem(0, N=3, n=0, n_levels=(2,), label_cost=3.0, coding=coding)
    problem.y[:], problem.z[:] = [1.0, 1.0, -1.0], [[0], [1], [1]]
    problem.w[:] = (1 - beta) / 2, (1 - beta) / 2, beta
    share = beta * (1 - beta) / (1 + beta)
    expected = pytest.approx(3.0 * share, rel=1e-6)
    assert radius_of_labels_alone(problem) == expected
    assert largest_useful_radius(problem) == expected


@pytest.mark.parametrize("coding", ["onehot", "pm1"])
def test_a_level_of_its_own_makes_a_small_class_worth_something(coding):
    """No change of labels makes up for it there, so that b = 0 is the first constant model that is optimal."""
    problem = random_problem(0, N=3, n=0, n_levels=(4,), coding=coding)
    problem.y[:], problem.z[:], problem.w[:] = [1.0, -1.0, 1.0], [[2], [1], [3]], [0.7 - 1e-8, 1e-8, 0.3]
    assert radius_of_labels_alone(problem) is None
    assert largest_useful_radius(problem) == pytest.approx(0.5, rel=1e-6)
    assert solve_tailored(at(problem, 0.005), tol=1e-10).b[1:].any()
