"""Cuts as arrays: their rows and costs by hand, and how many there are."""

import numpy as np
import pytest

from tests.instances import (
    CODE_SETTINGS,
    COSTS,
    cost_by_hand,
    enumerated_points,
    f_by_hand,
    random_coefficients,
    random_problem,
)
from wdrlr.model.cuts import all_cuts, count_all_cuts, data_cuts, initial_cuts, join


@pytest.mark.parametrize("setting", [{}, {"label_cost": np.inf}, {"p": 2.0}, {"n": 0}], ids=str)
def test_all_cuts_have_the_rows_and_costs_of_the_constraints(setting):
    problem = random_problem(1, N=5, n_levels=(2, 3), **setting)
    cuts = all_cuts(problem, 1000)
    n_labels = 1 if np.isinf(problem.metric.label_change) else 2
    assert len(cuts) == count_all_cuts(problem) == len(set(cuts.keys())) == 5 * 6 * n_labels
    b = random_coefficients(problem, 1)
    arguments, costs = cuts.rows(problem) @ b, cuts.costs(problem)
    for c in range(len(cuts)):
        i, flip = int(cuts.sample[c]), -1.0 if cuts.flipped[c] else 1.0
        assert arguments[c] == pytest.approx(-flip * problem.y[i] * f_by_hand(problem, b, i, cuts.z[c]), abs=1e-12)
        assert costs[c] == pytest.approx(cost_by_hand(problem, i, cuts.z[c], flip))


@pytest.mark.parametrize("setting", [*({"costs": kind} for kind in COSTS), *CODE_SETTINGS], ids=str)
def test_all_cuts_are_all_points_of_finite_cost(setting):
    """Any (cost, f) among the enumerated points is there: of a code that is a level, the level alone is needed."""
    for seed in range(4):
        problem = random_problem(seed, N=5, **setting)
        cuts, b = all_cuts(problem, 10_000), random_coefficients(problem, seed)
        assert len(cuts) <= count_all_cuts(problem)
        arguments, costs = cuts.rows(problem) @ b, cuts.costs(problem)
        assert np.isfinite(costs).all()
        found = {(int(i), *pair) for i, *pair in zip(cuts.sample, arguments.round(9), costs.round(9), strict=True)}
        for c in range(len(cuts)):
            i, flip = int(cuts.sample[c]), -1.0 if cuts.flipped[c] else 1.0
            assert arguments[c] == pytest.approx(-flip * problem.y[i] * f_by_hand(problem, b, i, cuts.z[c]), abs=1e-12)
            assert costs[c] == pytest.approx(cost_by_hand(problem, i, cuts.z[c], flip))
        for i in range(problem.n_samples):
            for z, flip in enumerated_points(problem):
                cost, argument = cost_by_hand(problem, i, z, flip), -flip * problem.y[i] * f_by_hand(problem, b, i, z)
                cheaper = any(own == i and abs(a - argument) < 1e-8 and paid <= cost + 1e-8 for own, a, paid in found)
                assert cheaper or np.isinf(cost)


def test_too_many_cuts_are_refused_with_the_remedy():
    problem = random_problem(1, N=5, n_levels=(2, 3))
    with pytest.raises(ValueError, match=r'60 constraints, more than the 59 allowed; use solver="column-constraint"'):
        all_cuts(problem, 59)


def test_the_data_have_a_cut_for_each_label():
    problem = random_problem(1, N=5)
    first = initial_cuts(problem)
    assert first.keys() == join(data_cuts(problem, False), data_cuts(problem, True)).keys()
    assert first[:5].costs(problem).tolist() == [0.0] * 5
    assert first[5:].costs(problem).tolist() == [problem.metric.label_change] * 5
