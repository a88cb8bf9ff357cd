"""The notebooks of Tables 1 to 4, Figures 3 and 4, significance and differences, on a few results of shipped data."""

import ast
from pathlib import Path
from shutil import copy, copytree

import nbformat
import numpy as np
import pandas as pd
import papermill
import pytest

from wdrlr.paper.cells import plan_cells, run_cell, run_cells
from wdrlr.paper.methods import METHODS
from wdrlr.paper.protocols import PROTOCOLS
from wdrlr.paper.quiet_runtimes import timed_alone
from wdrlr.paper.results import KEY, save_rows
from wdrlr.paper.trials import ONLY_ON, VARIANTS_OF, kind_of, plan_trials

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = "table1 table2 table3 table4 figure3 figure4 significance differences".split()
CATEGORICAL, MIXED = "hayes-roth", "credit-approval"
SMALL = {"table2": MIXED, "table3": MIXED, "table4": CATEGORICAL, "figure3": CATEGORICAL, "figure4": MIXED}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Two splits: all methods on one data set, the cheapest three on the other."""
    folder = tmp_path_factory.mktemp("rows")
    for dataset, methods in ((CATEGORICAL, list(METHODS)), (MIXED, ["LR", "r-LR", "PI"])):
        rows = run_cells(plan_cells([dataset], methods, n_splits=2, tol=1e-4), folder, backend="sequential")
        timed_alone(rows, folder, compute_missing=True)
    return folder


@pytest.fixture
def run(results, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def execute(name, **parameters):
        folders = {"results_dir": str(results), "figures_dir": "out"}
        shared = {"n_splits": 3, "tol": 1e-4, "compute_missing": False, "n_jobs": 1, "backend": "sequential"}
        notebook = papermill.execute_notebook(
            FOLDER / f"{name}.ipynb", "out.ipynb", folders | shared | parameters, progress_bar=False
        )
        return "\n".join(str(cell.get("outputs")) for cell in notebook.cells)

    return execute


def written(folder):
    return sorted(path.name for path in (folder / "out").iterdir())


@pytest.mark.parametrize("name", ["table2", "table3", "table4"])
def test_a_table_shows_what_is_there_and_says_what_is_missing(run, tmp_path, name):
    output = run(name, dataset=SMALL[name])
    assert written(tmp_path) == [f"{name}_{SMALL[name]}_code.{kind}" for kind in ("csv", "html", "tex")]
    table = pd.read_csv(tmp_path / "out" / f"{name}_{SMALL[name]}_code.csv")
    if SMALL[name] == CATEGORICAL:
        assert table["method"].tolist() == list(METHODS)
        assert "18 of 27 cells done." in output and "hayes-roth: splits of each method 2 of 3" in output
    else:
        assert table["method"].tolist() == ["LR", "r-LR", "PI"]
        assert "6 of 27 cells done." in output and "DRO (κ = 1) 0 of 3" in output
    assert set(table["n_splits"]) == {2}


def test_the_tables_of_runtimes_time_algorithm_1_on_the_first_split(run, results, tmp_path):
    rows = tmp_path / "rows"
    copytree(results, rows)
    (rows / f"quiet_{CATEGORICAL}_code_seed0.csv").unlink()
    output = run("table4", dataset=CATEGORICAL, n_splits=2, compute_missing=True, results_dir=str(rows))
    assert "18 of these 18 fits were timed one after the other, on " in output
    assert "Algorithm 1 ended 4 of 4 fits within 60 s." in output
    found = pd.read_csv(tmp_path / "out" / f"table4_algorithm1_{CATEGORICAL}_code.csv")
    assert found["method"].tolist() == [name for name in METHODS if METHODS[name].is_proposed]
    assert (found["difference"] < 1e-3).all() and (found["rounds"] >= 1).all()


def test_a_table_of_runtimes_has_no_seconds_of_a_loaded_machine(run, results, tmp_path):
    rows = tmp_path / "rows"
    copytree(results, rows)
    (rows / f"quiet_{CATEGORICAL}_code_seed0.csv").unlink()
    with pytest.raises(papermill.PapermillExecutionError, match="none of these 18 fits has been timed alone in rows"):
        run("table4", dataset=CATEGORICAL, n_splits=2, results_dir=str(rows))


@pytest.mark.parametrize("name", ["figure3", "figure4"])
def test_a_figure_is_drawn_of_what_is_there(run, tmp_path, name):
    output = run(name)  # all data sets of the table
    assert written(tmp_path) == [f"{name}_all_code.{kind}" for kind in ("csv", "pdf", "png")]
    points = pd.read_csv(tmp_path / "out" / f"{name}_all_code.csv")
    assert set(points["dataset"]) == {SMALL[name]}
    assert len(points) == (18 if name == "figure3" else 6)
    assert "image/png" in output
    assert "of our standard errors from the paper's" in output


def test_significance_counts_complete_data_sets(run, tmp_path):
    output = run("significance", n_splits=2)
    assert written(tmp_path) == ["significance_all_code.csv"]
    assessed = pd.read_csv(tmp_path / "out" / "significance_all_code.csv")
    assert set(assessed["dataset"]) == {CATEGORICAL}
    assert "one of the proposed methods wins" in output
    assert "margins are within two standard errors of 0." in output


def test_differences_computes_the_changes_and_judges_them(tmp_path, monkeypatch):
    """Those of LR and PI, which are fast; the others have rows."""
    monkeypatch.chdir(tmp_path)
    standard, variants = plan_trials("monks-3", 2, 0)
    row, draw = run_cell(*standard[0]), np.random.default_rng(0)
    slow = [cell for cell in [*standard, *variants] if cell.method.name not in ("LR", "PI")]
    made_up = [{"test_error": float(draw.choice([0.0, 0.01]))} | dict(zip(KEY, cell.key, strict=True)) for cell in slow]
    (tmp_path / "rows").mkdir()
    save_rows(tmp_path / "rows", [row | of_cell for of_cell in made_up])
    parameters = {"dataset": "monks-3", "n_splits": 2, "n_jobs": 1, "backend": "sequential", "compute_missing": True}
    folders = {"results_dir": "rows", "figures_dir": "out"}
    notebook = papermill.execute_notebook(
        FOLDER / "differences.ipynb", "out.ipynb", parameters | folders, progress_bar=False
    )
    assert written(tmp_path) == ["differences_monks-3.csv"]
    compared = pd.read_csv(tmp_path / "out" / "differences_monks-3.csv")
    tried = {
        (method, name)
        for method in METHODS
        for name in VARIANTS_OF[kind_of(method)]
        if "monks-3" in ONLY_ON.get((name, kind_of(method)), ("monks-3",))
    }
    assert set(zip(compared["method"], compared["variant"], strict=True)) == tried
    assert len(compared) == len(tried)
    assert set(compared["n_splits"]) == {2}
    output = "\n".join(str(cell.get("outputs")) for cell in notebook.cells)
    assert f"{2 * len(compared)} of {2 * len(compared)} cells of the variants done." in output
    assert "Chance alone makes" in output and "likely for all means at once" in output


def test_differences_with_rows_of_the_standard_setting_alone_stops_before_it_writes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows").mkdir()
    copy(FOLDER.parent / "figures" / "results" / "monks-3_code_PI_seed0.csv", tmp_path / "rows")
    parameters = {"dataset": "monks-3", "results_dir": "rows", "figures_dir": "out"}
    with pytest.raises(papermill.PapermillExecutionError, match="no change has two splits in common"):
        papermill.execute_notebook(FOLDER / "differences.ipynb", "out.ipynb", parameters, progress_bar=False)
    assert written(tmp_path) == []


def test_significance_without_a_complete_data_set_stops_before_it_writes(run, tmp_path):
    with pytest.raises(papermill.PapermillExecutionError, match="no data set has all nine methods on the same splits"):
        run("significance", n_splits=2, first_split=1)  # there are splits 0 and 1
    assert written(tmp_path) == []


def test_missing_cells_are_computed_when_asked_for(run, tmp_path):
    own = str(tmp_path / "rows")
    output = run("figure3", dataset="balance-scale", methods=["LR"], n_splits=1, compute_missing=True, results_dir=own)
    assert "1 of 1 cells done." in output


def test_nothing_at_all_stops_the_notebook_with_a_remedy(run):
    with pytest.raises(papermill.PapermillExecutionError, match="set compute_missing to True"):
        run("table4", dataset="monks-3")


# The files


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_by_default_they_show_what_is_there(name):
    (cell,) = [cell for cell in nbformat.read(FOLDER / f"{name}.ipynb", 4).cells if cell.id == "parameters"]
    defaults = {statement.target.id: ast.literal_eval(statement.value) for statement in ast.parse(cell.source).body}
    assert defaults.get("protocol", "code") in PROTOCOLS
    assert defaults.get("methods", ["all"]) == ["all"]
    assert defaults["compute_missing"] is False


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_it_begins_with_the_paper_s_claim_and_has_unique_cells(name):
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", 4)
    assert "**What the paper" in notebook.cells[0].source
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
    titles = {
        "table": "# Table ",
        "figure": "# Figure ",
        "significance": "# Significance",
        "differences": "# Differences",
    }
    assert notebook.cells[0].source.startswith(titles[name.rstrip("1234")])
