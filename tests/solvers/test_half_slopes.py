"""Directions and changes of labels where every feature has one price: both ends of the bracket that they give."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tests.instances import at, random_problem
from wdrlr.model.certificate import DualPoint, dual_value
from wdrlr.model.objective import objective
from wdrlr.solvers import half_slopes, largest_radius
from wdrlr.solvers.largest_radius import largest_useful_radius


def bracket_settings():
    """Of every kind to which ``half_slopes`` applies, with classes of equal and of other size."""
    kinds = [{"n": 0}, {"n": 1, "n_levels": (3,), "norm": "l2"}]
    kinds += [{"n": n, "norm": norm, "n_levels": (2, 4)[: 4 - n]} for n in (2, 4) for norm in ("l1", "l2", "linf")]
    more = [
        {},
        {"label_cost": 4.0},
        {"weighted": True, "coding": "pm1", "metric_scale": "unit"},
        {"gamma": 0.02},
        {"gamma": 0.01, "penalize_intercept": True},
        {"fit_intercept": False},
        {"costs": "features", "label_cost": 2.0},
        {"n_levels": (1, 3, 2), "coding": "pm1"},
    ]
    return [kind | other for kind in kinds for other in more]


def independence(problem, q):
    """The dual point of b = 0 in which mass q_i has the other label and levels of too much mass of one label lose it.

    By enumeration: from each level of a feature, for each label, with which probability a sample's level is changed,
    all features at once in a common order of their probabilities.
    """
    u = problem.y * (problem.w / 2 - q)
    allowed = np.ones(sum(problem.n_levels))  # of references: more than there is
    allowed[problem.all_dummies.level] = problem.penalty[1 + problem.n_numeric :]
    atoms, mixtures = [], np.zeros((2, sum(problem.n_levels)))
    leaves = np.zeros((2, sum(problem.n_levels)))  # the share of the mass of label -1, +1 that leaves each level
    for j in range(problem.n_categorical):
        own = problem.levels(j)
        level, most = problem.z[:, j], allowed[own]
        nu = np.bincount(level, u, problem.n_levels[j])
        mass = [
            np.bincount(level, np.where(problem.y == label, problem.w - q, q), problem.n_levels[j])
            for label in (-1.0, 1.0)
        ]
        above, below = np.maximum(nu - most, 0.0), np.maximum(-nu - most, 0.0)
        if above.sum() == below.sum() == 0:
            continue
        room = np.where(most == 1.0, 1.0, 0.0)
        giving = above if above.sum() >= below.sum() else below
        taking = below if giving is above else above
        short = max(giving.sum() - taking.sum(), 0.0)
        taking = taking + (short * room / room.sum() if room.any() else 0.0)
        # Of what has to go, all by moves of the heavier label, of twice that mass.
        label = 1 if giving is above else 0
        leaves[label, own] = np.divide(2 * giving, mass[label], out=np.zeros(len(giving)), where=giving > 0)
        mixtures[label, own] = taking
    for i in range(problem.n_samples):
        for flipped, total in ((False, problem.w[i] - q[i]), (True, q[i])):
            side = int((problem.y[i] > 0) != flipped)
            shares = leaves[side, problem.offsets + problem.z[i]]
            for begin, end in pairwise(np.unique([0.0, 1.0, *np.minimum(shares, 1.0)])):
                atoms.append((i, flipped, (end - begin) * total, np.flatnonzero(shares > begin), -1 - side))
    count = [len(atom[3]) for atom in atoms]
    mass = np.array([atom[2] for atom in atoms])
    return DualPoint(
        sample=np.array([atom[0] for atom in atoms]),
        flipped=np.array([atom[1] for atom in atoms]),
        mass=mass,
        v=mass / 2,
        start=np.concatenate([[0], np.cumsum(count)]),
        feature=np.concatenate([atom[3] for atom in atoms]).astype(int),
        level=np.repeat([atom[4] for atom in atoms], count),
        mixtures=mixtures,
        wall=np.zeros(problem.n_coefficients),
    )


@pytest.mark.parametrize("setting", bracket_settings())
def test_the_certificate_agrees_with_both_ends_of_the_bracket(setting):
    """Above its upper end b = 0 is optimal to the last digit, and below its lower one something is better."""
    problem = at(random_problem(21, N=25, **setting), 1.0)
    assert half_slopes.applies(problem)
    d, q = half_slopes.solve(problem)
    low, high = largest_radius._by_flips(problem)
    assert 0 < high - low < 1e-10 * high
    above = at(problem, high * (1 + 1e-9))
    assert dual_value(above, independence(above, q), np.log(2), np.zeros(problem.n_coefficients)) > np.log(2) - 1e-13
    below = at(problem, 0.999 * low)
    values = [objective(below, below.feasible(10.0**-size * d))[0] for size in np.arange(0, 6, 0.5)]
    assert min(values) < np.log(2) - 1e-11
    assert largest_radius._steepest(problem) == pytest.approx(high, rel=1e-7)


def test_a_direction_and_changes_that_are_far_off_are_not_believed(monkeypatch):
    problem = random_problem(3, n=2)
    radius = largest_useful_radius(problem)
    solve = half_slopes.solve
    for wrong in (lambda d, q: (0.9 * d, q), lambda d, q: (d, 0.9 * q), lambda d, q: (np.nan * d, np.nan * q)):
        monkeypatch.setattr(half_slopes, "solve", lambda problem, wrong=wrong: wrong(*solve(problem)))
        assert largest_useful_radius(problem) == pytest.approx(radius, rel=1e-7)


@pytest.mark.parametrize(
    "setting",
    [
        {"label_cost": np.inf},
        {"p": 2.0},
        {"costs": "matrices"},
        {"costs": "ordinal"},
        {"coding": "pm1", "gamma": 0.01},
        {"coding": "pm1", "fit_intercept": False},
        {"coding": "pm1", "any_code": True},
    ],
    ids=str,
)
def test_other_metrics_and_codings_are_left_to_linear_programs(setting):
    assert half_slopes.applies(random_problem(0))
    assert not half_slopes.applies(random_problem(0, **setting))


def test_prices_are_those_of_features_whose_changes_all_cost_the_same():
    costs = (0.5, np.array([[0.0, 3.0], [3.0, 0.0]]), np.array([[0.0, 1, 2], [1, 0, 1], [2, 1, 0]]), 7.0)
    metric = random_problem(0, n=0, n_levels=(2, 2, 3, 1)).metric
    metric = replace(metric, level_costs=costs, level_cost=2.0, scale=4.0)
    np.testing.assert_array_equal(half_slopes.level_prices(metric, (2, 2, 3, 1)), [0.25, 1.5, np.inf, 0.0])
