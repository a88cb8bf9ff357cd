"""The program against itself: in parts, with few pairs of levels; and its ball against the norm."""

import numpy as np
import pytest
import scipy.sparse as sp

from tests.instances import random_problem
from tests.solvers.test_largest_radius import SETTINGS
from wdrlr.solvers import largest_radius, slope_program
from wdrlr.solvers.largest_radius import largest_useful_radius
from wdrlr.solvers.linear import minimise_linear
from wdrlr.solvers.slope_program import _in_ball


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_the_longest_projection_of_the_ball_is_the_norm(n):
    rows = _in_ball(n)
    limit = np.append(np.zeros(rows.shape[0] - 1), 1.0)
    for seed in range(5):
        c = np.random.default_rng(seed).normal(size=n)
        c[seed % n] *= 100.0 ** (seed - 2)
        found = minimise_linear(
            np.concatenate([-c, np.zeros(rows.shape[1] - n)]),
            bounds=np.tile([-np.inf, np.inf], (rows.shape[1], 1)),
            A=rows,
            limit=limit,
            E=sp.csr_array((0, rows.shape[1])),
        )
        assert -found.fun == pytest.approx(np.linalg.norm(c), rel=1e-7)


@pytest.mark.parametrize("kind", ["ordinal", "matrices"])
def test_pairs_of_levels_are_found_where_there_are_too_many(monkeypatch, kind):
    problems = [
        random_problem(seed, costs=kind, n_levels=(9, 7), N=40, label_cost=cost)
        for seed in range(4)
        for cost in (2.0, np.inf)
    ]
    radii = [largest_useful_radius(problem) for problem in problems]
    assert min(radii) > 0
    monkeypatch.setattr(largest_radius, "MOST_PAIRS", 10)
    for problem, radius in zip(problems, radii, strict=True):
        assert largest_useful_radius(problem) == pytest.approx(radius, rel=1e-7)


@pytest.mark.parametrize("setting", SETTINGS)
def test_many_samples_are_solved_in_parts(monkeypatch, setting):
    problem = random_problem(5, **{**setting, "N": 300})
    radius = largest_radius._steepest(problem)
    monkeypatch.setattr(slope_program, "MANY_SAMPLES", 50)
    assert largest_radius._steepest(problem) == pytest.approx(radius, rel=1e-7)


def test_in_parts_few_samples_have_variables(monkeypatch):
    sizes = []
    minimise = slope_program.minimise
    monkeypatch.setattr(
        slope_program,
        "minimise",
        lambda program, method: (sizes.append(program.q.size), minimise(program, method))[1],
    )
    problem = random_problem(5, N=2000, n=2, label_cost=0.5)
    whole = largest_radius._steepest(problem)
    n_all = max(sizes)
    sizes.clear()
    monkeypatch.setattr(slope_program, "MANY_SAMPLES", 200)
    assert largest_radius._steepest(problem) == pytest.approx(whole, rel=1e-7)
    assert max(sizes) < 0.6 * n_all
