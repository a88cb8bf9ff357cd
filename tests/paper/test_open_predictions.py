import numpy as np
import pandas as pd
import pytest

from wdrlr.paper import open_predictions
from wdrlr.paper.cells import Rows, both_parts, plan_cells, run_cell
from wdrlr.paper.open_predictions import measure_open, summarise_open, with_unseen_level
from wdrlr.paper.results import to_frame
from wdrlr.solvers.prediction_range import Ranges

METHOD = "DRO_kappa_1"


@pytest.fixture(scope="module")
def rows():
    """The cells of two splits of hayes-roth."""
    return to_frame([run_cell(*cell) for cell in plan_cells(["hayes-roth"], [METHOD], n_splits=2)])


def test_the_error_is_that_of_the_cell_and_lies_between_its_ends(rows):
    measured = measure_open(rows)
    np.testing.assert_allclose(measured["error"], rows["test_error"])
    assert (measured["error_low"] <= measured["error"]).all() and (measured["error"] <= measured["error_high"]).all()
    np.testing.assert_allclose(measured["error_high"] - measured["error_low"], measured["open"])
    assert (measured["n_rows"] == rows["n_test"]).all() and not measured["constant"].any()


def test_at_radius_0_the_coefficients_are_those_of_the_cell_without_a_bound(rows, monkeypatch):
    posed = []

    def taken(problem, *others):
        posed.append(problem)
        return in_no_time(problem, *others)

    monkeypatch.setattr(open_predictions, "prediction_range", taken)
    for radius in (0.0, 1e-3):
        measure_open(rows[:1].assign(radius=radius), n_rows=3)
    assert [np.isfinite(problem.coef_bound).all() for problem in posed] == [False, True]


def test_a_level_without_training_rows_leaves_its_test_rows_open(rows, monkeypatch):
    """The feature that decides has one more level, which all test rows have."""

    def with_new_level(*cell):
        training, testing = both_parts(*cell)
        name = training.X.columns[-1]
        levels = [*training.X[name].cat.categories, "new"]
        new = pd.Categorical(["new"] * len(testing.y), categories=levels)
        return (
            Rows(training.X.assign(**{name: training.X[name].cat.set_categories(levels)}), training.y),
            Rows(testing.X.assign(**{name: new}), testing.y),
        )

    before = measure_open(rows[:1])
    monkeypatch.setattr(open_predictions, "both_parts", with_new_level)
    after = measure_open(rows[:1], n_rows=10)
    assert before["unseen"][0] == 0 and before["open"][0] < 0.1
    assert after["unseen"][0] == 1 and after["open"][0] > 0.3
    assert after["error_high"][0] - after["error_low"][0] == pytest.approx(after["open"][0])


def test_cells_that_time_does_not_reach_are_left_out(rows, monkeypatch):
    assert measure_open(rows, seconds=1e-9).empty
    ticks = iter([0.0, 0.0, 2.0])  # the deadline, the first cell, the second
    monkeypatch.setattr(open_predictions, "perf_counter", lambda: next(ticks))
    monkeypatch.setattr(open_predictions, "prediction_range", in_no_time)
    assert measure_open(rows, seconds=1.0, n_rows=3)["split"].tolist() == [0]


def in_no_time(problem, b, asked, tol, seconds):
    """f itself is the range, but for the last row, for which there was no time."""
    f = asked @ b
    f[-1] = np.nan
    return Ranges(f, f, f, f)


def test_a_penalty_that_rows_do_not_tell_is_refused(rows):
    with pytest.raises(ValueError, match="penalty of PI is not in the result rows; leave it out"):
        measure_open(rows.assign(method="PI"))


def test_unseen_levels_are_those_without_training_rows():
    z = pd.Categorical(["a", "b", "c", "a"], categories=["a", "b", "c"])
    parts = Rows(pd.DataFrame({"z": z, "x": [0.0, 1.0, 2.0, 3.0]}), np.ones(4))
    unseen = with_unseen_level(parts.part(np.array([0, 1])), parts.part(np.array([2, 3])))
    assert unseen.tolist() == [True, False]


def test_splits_count_by_their_test_rows():
    measured = pd.DataFrame(
        {
            "dataset": "weather",
            "method": METHOD,
            "split": [0, 1],
            "constant": [True, False],
            "n_rows": [30, 10],
            **{share: [0.2, 0.6] for share in ("unseen", "open", "error", "error_low", "error_high")},
        }
    )
    means = summarise_open(measured).loc[("weather", METHOD)]
    assert means["splits"] == 2 and means["n_rows"] == 40 and means["constant"] == 50
    assert means["open"] == pytest.approx(30)
