import numpy as np

from wdrlr.paper import theorems_algorithms as algorithms


def test_the_bounds_close_and_a_lower_bound_that_falls_is_reported():
    bounds = algorithms.bounds_by_round([6], seed=0)
    assert bounds["upper"].iloc[-1] - bounds["lower"].iloc[-1] <= 1e-6
    assert "Theorem 4 holds" in [*algorithms.describe_bounds(bounds)][-1]
    falling = bounds.assign(lower=bounds["lower"].to_numpy()[::-1] - 1e-3 * np.arange(len(bounds)))
    assert "Theorem 4 does not hold" in [*algorithms.describe_bounds(falling)][-1]


def test_algorithm_2_is_brute_force_and_a_difference_is_reported():
    timed = algorithms.separations([3, 5, 8, 16], brute_force_up_to=8, seed=1)
    assert timed["difference"].max() <= 1e-12 and timed.loc[timed["m"] == 16, "difference"].isna().all()
    wrong = timed.assign(difference=timed["difference"] + 1e-3)
    assert "not the worst was found" in [*algorithms.describe_separations(wrong)][-1]


def test_integer_programs_are_worst_cases_at_a_large_radius_only():
    solved = algorithms.integer_programs(6, 3, 12, seed=0)
    np.testing.assert_allclose(solved["worst_case"], solved["optimum"], rtol=0, atol=1e-9)
    assert 0 < solved["feasible"].sum() < len(solved)
    assert (solved["small_radius"] < solved["optimum"] - 1e-6).any()
    assert "does not hold" in [*algorithms.describe_integer_programs(solved.assign(worst_case=0.0))][-1]


def test_programs_without_the_cone_have_the_same_optimum():
    compared = algorithms.with_and_without_cone([2, 3], 1, seed=0)
    assert compared["gap"].max() <= algorithms.CONE_TOL
    np.testing.assert_allclose(compared["tangents"], compared["cone"], rtol=0, atol=2 * algorithms.CONE_TOL)
    assert "undecided" in [*algorithms.describe_cone(compared)][-1]
