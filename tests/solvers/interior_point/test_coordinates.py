"""The coordinates are another way to write b, and their rows are those of dense matrices."""

import numpy as np
import pytest

from tests.instances import random_coefficients, random_problem
from wdrlr.solvers.interior_point import kernels
from wdrlr.solvers.interior_point.coordinates import Coordinates, LinearRows


@pytest.mark.parametrize("setting", [{}, {"n": 0, "n_levels": (4, 1, 5)}, {"coding": "pm1"}, {"n_levels": ()}], ids=str)
def test_theta_and_b_are_the_same(setting):
    problem = random_problem(5, **setting)
    problem.x[:, :1] += 2000.0  # a year: it is centred
    coordinates = Coordinates(problem)
    b = random_coefficients(problem, 5)
    theta = np.zeros(coordinates.E)
    theta[: coordinates.n_scores] = coordinates.of_b(b)
    np.testing.assert_allclose(coordinates.b_of_theta.times(theta), b, rtol=1e-9, atol=1e-9)
    data = coordinates.data
    scores = np.where(data.column >= 0, theta[data.column], 0.0)
    f = theta[0] + data.x @ theta[1 : 1 + problem.n_numeric] + scores[data.z].sum(axis=1)
    np.testing.assert_allclose(f, problem.decision(b)[coordinates.kept], rtol=1e-9, atol=1e-9)
    assert np.abs(data.x).max(initial=0.0) <= 1.0


def test_samples_without_weight_are_left_out():
    problem = random_problem(6, N=10)
    problem.w[:] = [1e-14, *[1 / 9] * 9]
    assert Coordinates(problem).kept.tolist() == list(range(1, 10))
    problem.w[1] = 0.01
    assert Coordinates(problem, light=0.05).kept.tolist() == list(range(2, 10))


def test_rows_are_those_of_a_matrix():
    rows = LinearRows([([0, 2], [1.0, -2.0], 0.5), ([], [], 3.0)]).joined(LinearRows([([1], [4.0], 0.0)]))
    matrix, const = np.array([[1.0, 0, -2], [0, 0, 0], [0, 4, 0]]), np.array([0.5, 3.0, 0.0])
    theta, force = np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.2, 0.3])
    np.testing.assert_array_equal(rows.values(theta), const + matrix @ theta)
    np.testing.assert_allclose(rows.transposed_times(force, 3), matrix.T @ force)
    M = kernels.Folded(np.eye(3), np.zeros((0, 3)), np.zeros(0))
    rows.add_gram(M, np.arange(3), force)
    np.testing.assert_allclose(M.core, np.eye(3) + matrix.T @ np.diag(force) @ matrix)
