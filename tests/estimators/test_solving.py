"""One fit, and a grid of them."""

import numpy as np
import pytest

from tests.instances import random_problem
from wdrlr.estimators.solving import Solving, at


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_a_grid_is_its_points(p):
    unit = random_problem(3, p=p, gamma=1.0, penalize_intercept=True)
    solving, grid = Solving(tol=1e-7), [(0.0, 0.01), (0.05, 0.0), (0.05, 0.01)]
    for point, found in zip(grid, solving.solve_all([at(unit, *point) for point in grid]), strict=True):
        problem = at(unit, *point)
        assert problem.radius == point[0] and (problem.penalty == point[1]).all()
        np.testing.assert_array_equal(found.b, solving.solve(problem).b)


def test_a_start_of_another_length_is_none():
    solving, problem = Solving(), random_problem(3, radius=0.02)
    other = solving.solve(random_problem(3, n=3, radius=0.02))
    np.testing.assert_array_equal(solving.fit(problem, start=other).b, solving.fit(problem).b)
    warm = solving.fit(problem, start=solving.fit(problem))
    assert warm.n_rounds < solving.fit(problem).n_rounds and warm.gap <= 1e-6
