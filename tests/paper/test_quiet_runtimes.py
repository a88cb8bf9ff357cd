"""Fits timed alone: the same fits as those of the result rows, resumable, and never mixed with seconds under load."""

import pandas as pd
import pytest

from wdrlr.paper import quiet_runtimes
from wdrlr.paper.cells import plan_cells, run_cells
from wdrlr.paper.methods import METHODS
from wdrlr.paper.quiet_runtimes import QUIET_RUNTIMES, SECONDS, timed_alone
from wdrlr.paper.results import processor


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """All methods on one split, with seconds that no fit takes."""
    cells = plan_cells(["monks-3"], ["all"], n_splits=1, tol=1e-4)
    rows = run_cells(cells, tmp_path_factory.mktemp("rows"), backend="sequential")
    return rows.assign(seconds=1e6, solver_seconds=1e6)


def test_the_fits_are_those_of_the_rows_and_come_back(rows, tmp_path, monkeypatch):
    timed = timed_alone(rows, tmp_path, compute_missing=True)
    pd.testing.assert_frame_equal(timed.drop(columns=[*SECONDS, "machine"]), rows.drop(columns=list(SECONDS)))
    assert (timed["seconds"] < 1e3).all() and (timed["solver_seconds"] <= timed["seconds"]).all()
    assert timed["identification_seconds"].notna().tolist() == [name == "PI" for name in METHODS]
    assert set(timed["machine"]) == {processor()}
    (path,) = tmp_path.glob("*.csv")
    stored = QUIET_RUNTIMES.to_frame(QUIET_RUNTIMES.read(path)).set_index("method").loc[rows["method"]]
    assert stored["test_error"].tolist() == rows["test_error"].tolist()
    assert (stored["gap"] <= 1e-4).all()
    assert (abs(stored["objective"].to_numpy() - rows["objective"].to_numpy()) <= 1e-4).all()
    monkeypatch.setattr(quiet_runtimes, "run_cell", None)  # nothing is done again
    pd.testing.assert_frame_equal(timed_alone(rows, tmp_path, compute_missing=True), timed)


def test_a_fit_that_is_not_timed_is_left_out_and_so_is_one_at_another_radius(rows, tmp_path):
    assert timed_alone(rows, tmp_path, compute_missing=False).empty
    timed_alone(rows[:2], tmp_path, compute_missing=True)
    assert timed_alone(rows, tmp_path, compute_missing=False)["method"].tolist() == rows["method"].tolist()[:2]
    moved = rows.assign(radius=rows["radius"] + 0.001)
    assert timed_alone(moved, tmp_path, compute_missing=False).empty


def test_processors_are_not_mixed(rows, tmp_path, monkeypatch):
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(quiet_runtimes, "processor", lambda: "another")
        timed_alone(rows[:3], tmp_path, compute_missing=True)
    assert set(timed_alone(rows, tmp_path, compute_missing=False)["machine"]) == {"another"}
    timed = timed_alone(rows[1:6], tmp_path, compute_missing=True)
    assert timed["method"].tolist() == rows["method"].tolist()[1:6] and set(timed["machine"]) == {processor()}
    shown = timed_alone(rows, tmp_path, compute_missing=False)  # the processor with most rows
    assert set(shown["machine"]) == {processor()} and len(shown) == 5
