import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from tests.test_plots import check_readable, legend_texts, ticks
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


def two_bounds(m, gaps):
    bounds = pd.DataFrame({"m": m, "round": np.arange(1, len(gaps) + 1), "lower": 0.5, "upper": 0.5 + np.array(gaps)})
    return bounds.assign(optimum_lower=0.5, optimum_upper=0.5)


@pytest.fixture
def drawn_bounds():
    gaps = {1: [0.0], 5: [0.2, 0.0], 20: np.append(np.geomspace(4, 1e-3, 50), 0.0)}
    figure = algorithms.bounds_plot(pd.concat(two_bounds(m, of_m) for m, of_m in gaps.items()))
    figure.canvas.draw()
    yield figure, np.array(figure.axes).reshape(2, 3)
    plt.close(figure)


def test_rounds_are_whole(drawn_bounds):
    _, axes = drawn_bounds
    assert [ticks(axis.xaxis) for axis in axes[1]] == [["1"], ["1", "2"], ["0", "20", "40"]]
    assert [axis.get_xlabel() for axis in axes[1]] == ["round"] * 3


def test_bounds_close_on_a_log_scale_down_to_their_accuracy(drawn_bounds):
    figure, axes = drawn_bounds
    assert [axis.get_ylabel() for axis in axes[:, 0]] == ["objective", "gap of the bounds"]
    assert legend_texts(figure) == ["upper bound", "lower bound", "optimum", "gap", "gap of 0.0000001 or less"]
    for axis, n_rounds in zip(axes[1], (1, 2, 51), strict=True):
        gap, closed = axis.lines
        assert axis.get_yscale() == "log" and len(gap.get_xdata()) == n_rounds
        assert (closed.get_xdata().tolist(), closed.get_ydata().tolist()) == ([n_rounds], [algorithms.ACCURACY])
        assert closed.get_marker() == "v" and closed.get_markerfacecolor() == "white"
    assert len({axis.get_ylim() for axis in axes[1]}) == 1
    assert ticks(axes[1, 0].yaxis) == ["0.000001", "0.0001", "0.01", "1"]


def test_metrics_can_be_told_apart():
    timed = pd.DataFrame({"p": np.repeat([1.0, 2.0], 3), "m": [2, 14, 3200] * 2, "seconds": [2e-4, 2e-4, 1e-2] * 2})
    figure = algorithms.separations_plot(timed.assign(brute_force_seconds=[2e-5, 5e-3, np.nan] * 2))
    check_readable(figure)
    (axis,) = figure.axes
    assert ticks(axis.xaxis) == ["10", "100", "1000"] and "0.001" in ticks(axis.yaxis)
    ways = ("Algorithm 2", "brute force")
    assert legend_texts(figure) == [f"{way}, metric with p = {p}" for way in ways for p in (1, 2)]
    for one, two in (axis.lines[:2], axis.lines[2:]):
        for look in ("color", "linestyle", "marker", "linewidth"):
            assert plt.getp(one, look) != plt.getp(two, look)
        assert two.get_markerfacecolor() == "none" and two.get_markersize() > one.get_markersize()
    plt.close(figure)


def test_seconds_of_the_cone_have_more_ticks_than_two():
    seconds = pd.DataFrame({"m": [2, 6], "run": 0, "cone_seconds": [0.013, 0.2], "tangents_seconds": [0.04, 0.4]})
    figure = algorithms.cone_plot(seconds)
    check_readable(figure)
    assert ticks(figure.axes[0].yaxis) == ["0.02", "0.05", "0.1", "0.2"]
    plt.close(figure)
