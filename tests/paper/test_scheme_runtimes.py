"""The fits behind Tables 3 and 4 by Algorithm 1: the same problems, resumable, and honest about what was stopped."""

import numpy as np
import pandas as pd
import pytest

from wdrlr.paper import runtimes, scheme_runtimes
from wdrlr.paper.cells import plan_cells, run_cells
from wdrlr.paper.printed import published_values
from wdrlr.paper.scheme_runtimes import COLUMNS, describe_ratios, scheme_rows, summarise_scheme
from wdrlr.solvers.conic import OutOfTime


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Two splits of one data set, LR and two of the proposed methods."""
    cells = plan_cells(["hayes-roth"], ["LR", "DRO_kappa_m", "r-DRO_kappa_1"], n_splits=2, tol=1e-4)
    return run_cells(cells, tmp_path_factory.mktemp("rows"), backend="sequential")


def test_both_solve_the_problem_of_the_result_row_and_the_rows_come_back(rows, tmp_path, monkeypatch):
    found = scheme_rows(rows, tmp_path, time_limit=60.0, compute_missing=True)
    assert list(found.columns) == list(COLUMNS)
    assert found["method"].tolist() == ["DRO_kappa_m", "r-DRO_kappa_1"] and set(found["split"]) == {0}
    assert (found["status"] == "done").all() and (found["gap"] <= 1e-4).all()
    of_row = rows[rows["split"] == 0].set_index("method").loc[found["method"]]
    for objective in ("objective", "tailored_objective"):
        np.testing.assert_allclose(found[objective], of_row["objective"], atol=1e-4)
    assert (found[["seconds", "tailored_seconds", "lr_seconds"]] > 0).all(axis=None)
    monkeypatch.setattr(scheme_runtimes, "timed", None)  # nothing is done again
    pd.testing.assert_frame_equal(scheme_rows(rows, tmp_path, time_limit=60.0, compute_missing=True), found)


def test_another_radius_is_another_fit(rows, tmp_path):
    scheme_rows(rows, tmp_path, time_limit=60.0, compute_missing=True)
    other = rows.assign(radius=rows["radius"] + 0.001)
    assert scheme_rows(other, tmp_path, time_limit=60.0, compute_missing=False).empty


def test_a_stopped_fit_is_repeated_with_more_time_only_and_bounds_the_ratio(rows, tmp_path, monkeypatch):
    def stopped(problem, solver, setting):
        raise OutOfTime("no")

    solve = runtimes.solve
    monkeypatch.setattr(runtimes, "solve", stopped)
    found = scheme_rows(rows, tmp_path, time_limit=60.0, compute_missing=True)
    assert set(found["status"]) == {"time limit"}
    summary = summarise_scheme(found, "table4")
    np.testing.assert_allclose(summary["ratio"], 60.0 / found["tailored_seconds"])
    assert np.isinf(summary["seconds"]).all() and np.isinf(summary["ratio_to_LR"]).all()
    assert describe_ratios(summary, 60.0) == ["Algorithm 1 ended 0 of 2 fits within 60 s."]
    assert summarise_scheme(found.assign(status="uncertified"), "table4")["ratio"].isna().all()
    monkeypatch.setattr(runtimes, "solve", solve)
    assert set(scheme_rows(rows, tmp_path, time_limit=30.0, compute_missing=True)["status"]) == {"time limit"}
    assert set(scheme_rows(rows, tmp_path, time_limit=90.0, compute_missing=True)["status"]) == {"done"}


def test_the_summary_has_the_printed_seconds(rows, tmp_path):
    found = scheme_rows(rows, tmp_path, time_limit=60.0, compute_missing=True)
    found[["seconds", "tailored_seconds", "lr_seconds"]] = [[2.0, 0.5, 0.25], [6.0, 1.5, 0.25]]
    summary = summarise_scheme(found, "table4").set_index("method")
    printed = published_values("table4").set_index(["dataset", "method"])["value"].loc["hayes-roth"]
    assert summary["ratio"].tolist() == [4.0, 4.0] and summary["ratio_to_LR"].tolist() == [8.0, 24.0]
    assert summary["paper"].tolist() == printed[summary.index].tolist()
    assert summary["paper_ratio_to_LR"].tolist() == (printed[summary.index] / printed["LR"]).tolist()
    lines = describe_ratios(summary, 60.0)
    assert lines[0] == "Algorithm 1 ended 2 of 2 fits within 60 s."
    assert lines[1].startswith("Where it did, it took 4 (4 to 4) times as long as the tailored solver")
