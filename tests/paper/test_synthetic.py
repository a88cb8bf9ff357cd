"""Algorithm 3's data, and the true loss against simulation."""

import numpy as np
import pytest
from scipy.special import expit

from tests.instances import at
from wdrlr.model.objective import objective
from wdrlr.model.problem import log_loss
from wdrlr.paper.synthetic import categorical_problem, synthetic_data, true_loss


@pytest.mark.parametrize("n_levels", [(2,) * 4, (3, 5, 3), (2, 1, 4)])
def test_data_are_those_of_algorithm_3(n_levels):
    data = synthetic_data(20_000, n_levels, 3)
    assert data.b.shape == (1 + sum(n_levels) - len(n_levels),)
    assert np.linalg.norm(data.b) == pytest.approx(1.0)
    for j, levels in enumerate(n_levels):
        shares = np.bincount(data.z[:, j], minlength=levels) / len(data.z)
        np.testing.assert_allclose(shares, 1 / levels, atol=0.02)
    # Among the rows with the same z the share of +1 is the model's probability.
    f = categorical_problem(data.z, data.y, n_levels).decision(data.b)
    for score in np.unique(f.round(12)):
        same = np.isclose(f, score)
        error = 5 * np.sqrt(0.25 / same.sum())
        assert np.mean(data.y[same] > 0) == pytest.approx(expit(score), abs=error)


def test_equal_seeds_give_equal_data_and_others_do_not():
    first, again, other = (synthetic_data(50, (2, 3), seed) for seed in ([1, 2], [1, 2], [1, 3]))
    assert (first.z == again.z).all() and (first.y == again.y).all() and (first.b == again.b).all()
    assert (first.b != other.b).any()


def test_the_true_loss_is_the_mean_loss_of_very_many_rows():
    data = synthetic_data(200_000, (2, 3, 2), 4)
    b = np.random.default_rng(0).normal(size=data.b.size)
    f = categorical_problem(data.z, data.y, data.n_levels).decision(b)
    assert true_loss(b, data) == pytest.approx(log_loss(-data.y * f).mean(), abs=0.01)
    assert true_loss(data.b, data) < true_loss(b, data)
    assert true_loss(np.zeros_like(b), data) == pytest.approx(np.log(2))


def test_the_problem_has_the_metric_asked_for():
    data = synthetic_data(30, (2, 2, 3), 5)
    problem = categorical_problem(data.z, data.y, data.n_levels, "n_categorical", 0.02, "unit")
    assert (problem.metric.label_cost, problem.metric.scale, problem.radius) == (3.0, 6.0, 0.02)
    assert objective(problem, data.b)[0] > objective(at(problem, 0.0), data.b)[0]


@pytest.mark.parametrize("N, n_levels", [(0, (2, 2)), (5, (2, 0))])
def test_nothing_to_draw_is_refused(N, n_levels):
    with pytest.raises(ValueError, match="must be at least 1"):
        synthetic_data(N, n_levels)
