"""Figure 2's rows: resumable, honest about what was not solved, and equal for all solvers. No test looks at a time."""

import numpy as np
import pandas as pd
import pytest

from wdrlr.model.cuts import count_all_cuts
from wdrlr.paper import runtimes
from wdrlr.paper.runtimes import COLUMNS, GRIDS, SOLVERS, Panel, Setting, instance, rows_for, solve, summarise
from wdrlr.solvers.conic import OutOfTime

SMALL = {"m": Panel("small", "m", (("2", 8, 2), ("3 and 5", 8, 2)))}
SETTING = Setting(time_limit=30.0)


def test_all_solvers_agree_and_their_rows_come_back(tmp_path):
    rows = rows_for(SMALL, ["1", "m"], 2, SETTING, tmp_path, compute_missing=True)
    assert list(rows.columns) == list(COLUMNS)
    assert len(rows) == 2 * 2 * 2 * len(SOLVERS)
    assert set(rows["status"]) == {"done"} and (rows["gap"] <= SETTING.tol).all()
    for _, same in rows.groupby(["label_cost", "levels", "run"]):
        assert set(same["solver"]) == set(SOLVERS)
        assert np.ptp(same["objective"]) <= 1e-6
    again = rows_for(SMALL, ["1", "m"], 2, SETTING, tmp_path, compute_missing=False)
    pd.testing.assert_frame_equal(rows, again)  # seconds included: read, not computed


def test_a_killed_run_goes_on_and_redoes_nothing(tmp_path, monkeypatch):
    fitted = []

    def dies(problem, solver, setting):
        fitted.append(solver)
        if len(fitted) == 3 + len(SOLVERS):  # the first ones are warm-ups
            raise KeyboardInterrupt
        return solve(problem, solver, setting)

    monkeypatch.setattr(runtimes, "solve", dies)
    with pytest.raises(KeyboardInterrupt):
        rows_for(SMALL, ["1"], 1, SETTING, tmp_path, compute_missing=True)
    before = rows_for(SMALL, ["1"], 1, SETTING, tmp_path, compute_missing=False)
    assert len(before) == 2
    rows = rows_for(SMALL, ["1"], 1, SETTING, tmp_path, compute_missing=True)
    assert len(rows) == 8
    pd.testing.assert_frame_equal(rows[: len(before)], before)
    assert [path.name for path in tmp_path.glob("*.csv*")] == ["figure2_kappa_1_seed0.csv"]


def test_a_size_is_given_up_after_a_run_that_was_stopped_and_tried_again_with_more_time(tmp_path, monkeypatch):
    tried = []

    def slow(problem, solver, setting):
        if problem.n_samples == 8 and solver == "monolithic":
            tried.append(problem.n_levels)
            if setting.time_limit < 100:
                raise OutOfTime("no")
        return solve(problem, solver, setting)

    monkeypatch.setattr(runtimes, "solve", slow)
    rows = rows_for(SMALL, ["1"], 3, SETTING, tmp_path, compute_missing=True)
    assert tried == [(2, 2), (3, 5)]
    summary = summarise(rows, SMALL, ["1"], SETTING).set_index(["solver", "levels"])
    stopped = summary.loc[("monolithic", "2")]
    assert (stopped["tried"], stopped["solved"], stopped["missing"]) == (1, 0, "time limit")
    assert np.isinf(stopped["median"])
    assert summary.loc[("tailored", "2"), "solved"] == 3 and summary.loc[("tailored", "2"), "missing"] == ""
    longer = Setting(time_limit=200.0)
    rows = rows_for(SMALL, ["1"], 3, longer, tmp_path, compute_missing=True)
    assert len(tried) == 2 + 6 and set(rows["status"]) == {"done"}


def test_a_fit_that_took_longer_than_a_smaller_limit_counts_as_stopped(tmp_path, monkeypatch):
    rows = rows_for(SMALL, ["1"], 3, SETTING, tmp_path, compute_missing=True)
    limit = float(np.median(rows["seconds"]))
    shorter = Setting(time_limit=limit)
    monkeypatch.setattr(runtimes, "timed", None)  # nothing is done again, and what is given up stays as it is
    again = rows_for(SMALL, ["1"], 3, shorter, tmp_path, compute_missing=True)
    assert (again["status"] == np.where(rows["seconds"] >= limit, "time limit", "done")).all()
    pd.testing.assert_frame_equal(again.drop(columns="status"), rows.drop(columns="status"))
    back = rows_for(SMALL, ["1"], 3, SETTING, tmp_path, compute_missing=True)
    pd.testing.assert_frame_equal(back, rows)


def test_stopped_fits_count_as_the_longest(tmp_path):
    rows = rows_for({"m": Panel("one", "m", (("2", 8, 2),))}, ["1"], 5, SETTING, tmp_path, compute_missing=True)
    rows["cpu_seconds"] = rows["run"] + 1.0
    ours = rows["solver"] == "tailored"
    rows.loc[ours & rows["run"].isin([0, 1]), "status"] = "time limit"
    summary = summarise(rows, {"m": Panel("one", "m", (("2", 8, 2),))}, ["1"], SETTING).set_index("solver")
    assert summary.loc["monolithic", ["low", "median", "high"]].tolist() == [2.0, 3.0, 5.0]
    assert summary.loc["tailored", ["low", "median", "high"]].tolist() == [4.0, 5.0, np.inf]


def test_too_large_a_program_is_not_built(tmp_path, monkeypatch):
    sizes = {"m": Panel("large", "m", (("2", 10, 10),), ("monolithic",))}
    assert count_all_cuts(instance("1", "2", 10, 10, 0, 0.01, 0)) == 2 * 10 * 2**10
    guarded = Setting(max_constraints=20_479)
    rows = rows_for(sizes, ["1"], 2, guarded, tmp_path, compute_missing=True)
    assert rows.empty
    assert summarise(rows, sizes, ["1"], guarded)["missing"].tolist() == ["memory guard"]
    assert summarise(rows, sizes, ["1"], Setting(max_constraints=20_480))["missing"].tolist() == ["not run"]
    with pytest.raises(ValueError, match="20,480 constraints, more than the 20,479 allowed"):
        solve(instance("1", "2", 10, 10, 0, 0.01, 0), "monolithic", guarded)


@pytest.mark.parametrize("solver", ["monolithic", "algorithm1", "all-violated"])
def test_the_time_limit_stops_a_fit(solver):
    with pytest.raises(OutOfTime):
        solve(instance("m", "2", 50, 8, 0, 0.01, 0), solver, Setting(time_limit=1e-4))


@pytest.mark.parametrize(
    "label_costs, n_runs, message",
    [
        (["2"], 1, 'label_costs must be a non-empty list of "1" and "m"'),
        ([], 1, "label_costs"),
        (["1"], 0, "n_runs must be at least 1"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path, label_costs, n_runs, message):
    with pytest.raises(ValueError, match=message):
        rows_for(SMALL, label_costs, n_runs, SETTING, tmp_path, compute_missing=False)


@pytest.mark.parametrize("name, value", [("radius", -0.1), ("tol", 0.0), ("time_limit", -1.0), ("max_constraints", 0)])
def test_a_setting_that_makes_no_sense_is_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} must be .*{value}"):
        Setting(**{name: value})


@pytest.mark.parametrize("text", ["1,0.01,0,2\n", "a,b\n1,2\n"])
def test_a_damaged_file_is_named_and_set_aside(tmp_path, text):
    rows = rows_for(SMALL, ["1"], 1, SETTING, tmp_path, compute_missing=True)
    path = tmp_path / "figure2_kappa_1_seed0.csv"
    path.write_text(path.read_text() + text)
    with pytest.warns(UserWarning, match=rf"{path.name}: .* [24] fields.*damaged-1"):
        assert rows_for(SMALL, ["1"], 1, SETTING, tmp_path, compute_missing=False).empty
    assert len(rows_for(SMALL, ["1"], 1, SETTING, tmp_path, compute_missing=True)) == len(rows)


def test_rows_of_other_versions_are_reported(tmp_path, capsys):
    rows_for(SMALL, ["1"], 1, SETTING, tmp_path, compute_missing=True)
    assert capsys.readouterr().out == ""
    path = tmp_path / "figure2_kappa_1_seed0.csv"
    path.write_text(path.read_text().replace("wdrlr=", "wdrlr=0+", 1))
    rows_for(SMALL, ["1"], 1, SETTING, tmp_path, compute_missing=False)
    said = capsys.readouterr().out
    assert said.startswith("1 of these 8 rows were computed by other versions (wdrlr 0+")


def test_the_grids_are_those_that_the_notebook_states():
    full = GRIDS["full"]
    assert [size[1] for size in full["N"].sizes] == [10, 20, 50, 100, 200, 500]
    assert {size[2] for size in full["N"].sizes} == {10}
    assert [size[2] for size in full["m"].sizes] == [2, 4, 6, 8, 10, 12]
    assert {size[1] for size in full["m"].sizes} == {50}
    assert {size[1:] for size in full["scheme"].sizes} == {
        (N, m) for N in (50, 100, 200, 500, 1000) for m in (10, 20, 50, 100)
    }
    assert instance("1", "3 and 5", 5, 3, 0, 0.01, 0).n_levels == (3, 5, 3)
