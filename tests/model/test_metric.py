from itertools import product

import numpy as np
import pytest

from tests.instances import WeightedL1
from wdrlr.model.metric import NORMS, GroundMetric, Weighted, ground_metric, mean_costs


def test_definition_2():
    metric = ground_metric(2.0, 2, 3, p=2.0, norm="l2")
    assert metric.numeric_distance(np.array([3.0, 4.0])) == 5.0
    assert np.allclose(metric.level_changes(3), [0, 1, np.sqrt(2), np.sqrt(3)])
    assert metric.label_change == 2.0


SLOPES = ([0.5, -2.0, 1.0], [0.3, -2.0, 1.9], [0.0, 0.0, -1.0], [1.0, -1.0, 1.0])
EVERY_NORM = pytest.mark.parametrize(
    "norm",
    [
        *NORMS.values(),
        WeightedL1(np.array([0.5, 3.0, 1.0])),
        *(Weighted(norm, np.array([2.0, 0.5, 1.0])) for norm in NORMS.values()),
    ],
    ids=lambda norm: type(getattr(norm, "base", norm)).__name__,
)


@EVERY_NORM
@pytest.mark.parametrize("b", SLOPES)
def test_the_dual_norm_is_the_largest_product_with_a_vector_of_norm_one(norm, b):
    """Against many directions, among them the corners of the balls: vectors of -1, 0 and 1."""
    b = np.array(b)
    corners = np.array([v for v in product([-1.0, 0.0, 1.0], repeat=3) if any(v)])
    shifts = np.vstack([np.random.default_rng(0).normal(size=(5_000, 3)), corners, corners / norm.of_units(3)])
    shifts /= np.array([norm.value(v) for v in shifts])[:, None]
    largest = (shifts @ b).max()
    assert largest <= norm.dual(b) * (1 + 1e-12)
    assert largest >= 0.99 * norm.dual(b)


@EVERY_NORM
@pytest.mark.parametrize("b", SLOPES)
def test_the_steepest_vectors_attain_the_dual_norm(norm, b):
    b = np.array(b)
    near = np.array([0.1, -0.2, 0.3])
    for v in (norm.steepest(b, 3.0), norm.aligned(b, near, 3.0)):
        assert norm.value(v) == pytest.approx(3.0)
        assert v @ b == pytest.approx(3.0 * norm.dual(b))


@EVERY_NORM
def test_the_forms_of_conic_programs_and_the_unit_vectors_are_those_of_the_norm(norm):
    for v in np.random.default_rng(1).normal(size=(20, 3)):
        for value, (order, matrix) in ((norm.value, norm.form(3)), (norm.dual, norm.dual_form(3))):
            assert value(v) == pytest.approx(np.linalg.norm(matrix @ v, order))
            assert value(v) == value(np.abs(v))
    assert norm.of_units(3).tolist() == [norm.value(unit) for unit in np.eye(3)]
    assert norm.dual_order in (None, norm.dual_form(3)[0])


def test_numbers_that_may_not_move():
    """The others have the norm that they have alone; any move of theirs costs infinitely much."""
    for base in NORMS.values():
        costs = np.array([0.5, np.inf, 3.0])
        norm, others = Weighted(base, costs), Weighted(base, costs[[0, 2]])
        b, near = np.array([0.3, 50.0, -2.0]), np.array([0.1, 5.0, -0.3])
        assert norm.dual(b) == others.dual(b[[0, 2]])
        assert norm.value(np.array([1.0, 0.0, -2.0])) == others.value(np.array([1.0, -2.0]))
        assert norm.value(np.array([1.0, 1e-9, -2.0])) == np.inf
        for v in (norm.steepest(b, 3.0), norm.aligned(b, near, 3.0)):
            assert v[1] == 0
            assert norm.value(v) == pytest.approx(3.0)
            assert v @ b == pytest.approx(3.0 * norm.dual(b))
        order, matrix = norm.dual_form(3)
        assert np.linalg.norm(matrix @ b, order) == pytest.approx(norm.dual(b))
    metric = ground_metric(1.0, 3, 0, number_costs=costs)
    assert metric.movable(3).tolist() == [True, False, True]
    assert metric.dual_norm(np.array([0.0, 1e9, 0.0])) == 0.0
    assert ground_metric(1.0, 2, 0).movable(2).all()


def test_a_mixture_costs_the_mean_of_its_levels():
    costs = np.array([[0.0, 1.0, np.inf], [2.0, 0.0, 4.0], [np.inf, 0.5, 0.0]])
    shares = np.array([[0.25, 0.75, 0.0], [0.5, 0.0, 0.5]])
    assert mean_costs(costs, shares).tolist() == [[0.75, np.inf], [0.5, 3.0], [np.inf, np.inf]]


def test_unit_scale_divides_everything_by_n_m_and_kappa():
    raw, unit = ground_metric(2.0, 3, 5), ground_metric(2.0, 3, 5, metric_scale="unit")
    assert unit.scale == 10.0
    assert unit.label_change == raw.label_change / 10
    assert np.allclose(unit.level_changes(5), raw.level_changes(5) / 10)
    assert unit.numeric_distance(np.ones(3)) == raw.numeric_distance(np.ones(3)) / 10
    assert unit.dual_norm(np.ones(3)) == raw.dual_norm(np.ones(3)) * 10


def test_kappa_can_be_the_number_of_categorical_features():
    assert ground_metric("n_categorical", 1, 7).label_cost == 7.0


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((0.0, 1, 1), {}, "label_cost must be a positive number"),
        ((float("nan"), 1, 1), {}, "label_cost must be a positive number"),
        (("n_categorical", 1, 0), {}, "number of categorical features, which is 0"),
        ((1.0, 1, 1), {"p": 0.0}, "p must be a positive finite number"),
        ((1.0, 1, 1), {"norm": "l3"}, "norm must be one of l1, l2, linf"),
        ((1.0, 1, 1), {"metric_scale": "m"}, 'metric_scale must be None or "unit"'),
        ((np.inf, 1, 1), {"metric_scale": "unit"}, "needs a finite label_cost"),
    ],
)
def test_bad_arguments_are_named(arguments, options, words):
    with pytest.raises(ValueError, match=words):
        ground_metric(*arguments, **options)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("size", [1e-200, 1e-160, 1.0, 1e170, 1e300])
def test_norms_neither_vanish_nor_overflow(norm, size):
    metric = GroundMetric(1.0, norm=norm)
    vector = np.array([3.0, -4.0])
    assert metric.numeric_distance(vector * size) == pytest.approx(metric.numeric_distance(vector) * size, rel=1e-14)
    assert metric.dual_norm(vector * size) == pytest.approx(metric.dual_norm(vector) * size, rel=1e-14)


def test_a_p_whose_costs_overflow_is_refused():
    with pytest.raises(ValueError, match="is too small: 5 changes"):
        ground_metric(1.0, 0, 5, p=0.001)
