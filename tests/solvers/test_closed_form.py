import numpy as np
import pytest

from tests.instances import random_problem
from wdrlr.solvers.closed_form import _spread


@pytest.mark.parametrize("seed", range(30))
def test_cuts_around_a_circle_change_features_with_their_probabilities(seed):
    rng = np.random.default_rng(seed)
    N, m = 12, int(rng.integers(1, 6))
    problem = random_problem(seed, N=N, n_levels=(3,) * m)
    probability = rng.random((N, m)) * rng.choice([0.0, 0.3, 1.0], size=(N, m))
    probability[rng.random((N, m)) < 0.05] = 1.0
    share = rng.random(N)
    dual = _spread(problem, probability, rng.random((2, 3 * m)), share, np.full(N, 0.25))

    cut = np.repeat(np.arange(len(dual.mass)), np.diff(dual.start))
    changed = np.zeros((N, m))
    np.add.at(changed, (dual.sample[cut], dual.feature), dual.mass[cut])
    np.testing.assert_allclose(changed, probability * (share * problem.w)[:, None], atol=1e-15)
    np.testing.assert_allclose(np.bincount(dual.sample, dual.mass, N), share * problem.w, atol=1e-15)
    assert len(set(zip(cut, dual.feature, strict=True))) == len(cut)  # a cut changes a feature once
    assert (dual.v == dual.mass * 0.25).all()
