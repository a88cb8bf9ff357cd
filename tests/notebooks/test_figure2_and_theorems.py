"""Figure 2 and the theorems, small, from nothing."""

from pathlib import Path
from shutil import copy

import nbformat
import numpy as np
import pandas as pd
import papermill
import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"
QUICK = {"grid": "quick", "n_runs": 2, "time_limit": 20.0, "compute_missing": True, "results_dir": "rows"}
KINDS = ("csv", "pdf", "png")
SHOWN = "atoms bounds cone consistency growth guarantee no_regulariser rate separation".split()
FEW = {"sample_sizes": [20, 80], "n_runs": 10, "growth_features": [2, 5, 8], "growth_runs": 2, "atom_runs": 2}


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def execute(name, **parameters):
        notebook = papermill.execute_notebook(
            FOLDER / f"{name}.ipynb", "out.ipynb", {"figures_dir": "out"} | parameters, progress_bar=False
        )
        return "\n".join(str(cell.get("outputs")) for cell in notebook.cells)

    return execute


def written(folder):
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".tmp")


def test_figure_2_in_the_quick_setting_and_again_from_its_rows(run, tmp_path):
    output = run("figure2", **QUICK)
    assert written(tmp_path / "rows") == [f"figure2_kappa_{kappa}_seed0.csv" for kappa in "1m"]
    names = [f"figure2_quick_kappa_{kappa}.{kind}" for kappa in "1m" for kind in ("csv", "pdf", "png")]
    assert written(tmp_path / "out") == names
    assert "176 fits: 176 done" in output
    points = pd.read_csv(tmp_path / "out" / "figure2_quick_kappa_m.csv", keep_default_na=False)
    assert set(points["panel"]) == {"N", "m", "scheme", "levels"}
    assert (points["solved"] == 2).all() and (points["missing"] == "").all()
    before = (tmp_path / "out" / "figure2_quick_kappa_m.csv").read_bytes()
    run("figure2", **QUICK | {"compute_missing": False})
    assert (tmp_path / "out" / "figure2_quick_kappa_m.csv").read_bytes() == before


def test_figure_2_without_rows_of_a_label_cost_stops_before_it_writes(run, tmp_path):
    (tmp_path / "rows").mkdir()
    copy(FOLDER.parent / "figures" / "results" / "figure2_kappa_1_seed0.csv", tmp_path / "rows")
    with pytest.raises(papermill.PapermillExecutionError, match="for kappa = m: set compute_missing to True"):
        run("figure2", results_dir="rows")
    assert written(tmp_path / "out") == []


def test_the_theorems_can_be_seen(run, tmp_path):
    run("theorems", **FEW)
    names = [f"theorems_{what}.{kind}" for what in SHOWN for kind in KINDS]
    assert written(tmp_path / "out") == [*names, "theorems_worst_cases.csv"]

    one = pd.read_csv(tmp_path / "out" / "theorems_no_regulariser.csv")
    for case in ("", "_without_category"):
        np.testing.assert_allclose(one[f"worst_case_loss{case}"], one[f"closed_form{case}"], rtol=0, atol=1e-12)
    second = one["worst_case_loss"] - one["plain_loss"]
    assert np.ptp(second) > 0.1  # it moves with x, which no regulariser does
    assert np.ptp(one["worst_case_loss_without_category"] - one["plain_loss"]) < 1e-12
    bend = np.abs(np.diff(one["worst_case_loss"], 2))
    assert bend.max() > 5 * np.sort(bend)[-2]  # one kink

    shares = pd.read_csv(tmp_path / "out" / "theorems_guarantee.csv").pivot_table("holds", "radius", "N")
    assert (shares.iloc[-1] == 1.0).all()
    assert (shares.iloc[0] < 0.5).all()
    assert (shares[80] >= shares[20]).mean() > 0.5

    growth = pd.read_csv(tmp_path / "out" / "theorems_growth.csv")
    assert (growth["gap"] <= 1e-6).all()
    assert growth.groupby("m")["constraints"].first().tolist() == [100 * 2**m for m in (2, 5, 8)]
    assert (growth.loc[growth["m"] == 8, "cuts"] < 1000).all()


@pytest.mark.parametrize("name", ["figure2", "theorems"])
def test_it_begins_with_what_the_paper_says_and_has_unique_cells(name):
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", 4)
    assert "**What the paper" in notebook.cells[0].source
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
