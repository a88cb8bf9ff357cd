import numpy as np
import pytest

from tests.instances import COSTS, random_problem
from wdrlr.model.certificate import _level_costs
from wdrlr.solvers.closed_form import _of_samples, _spread, _towards_each_other


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


@pytest.mark.parametrize("kind", [None, *COSTS])
@pytest.mark.parametrize("part", [0.5, 1.0])
def test_the_cost_of_moving_classes_to_each_other_is_that_of_its_cuts(kind, part):
    n_finite = 0
    for seed in range(12):
        problem = random_problem(seed, n=0, n_levels=(2, 3, 4), costs=kind, weighted=True)
        leaves, mixtures, cost = _towards_each_other(problem, part)
        probability = _of_samples(problem, leaves)
        plus = problem.w[problem.y > 0].sum()
        smaller = problem.y == (-1.0 if plus >= 0.5 else 1.0)
        if part == 1.0:
            probability[~smaller] = 0.0
        share = np.where(smaller, 1.0, min(plus, 1 - plus) / max(plus, 1 - plus))
        dual = _spread(problem, probability, mixtures, share, np.full(problem.n_samples, 0.5))
        assert cost == pytest.approx(dual.mass @ _level_costs(problem, dual))
        n_finite += np.isfinite(cost)
    assert n_finite
