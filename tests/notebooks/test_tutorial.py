"""The tutorial as a reader runs it: small, from a folder that is not the project's."""

import re
from pathlib import Path

import pandas as pd
import papermill
import pytest

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "tutorial.ipynb"


def run(tmp_path, monkeypatch, **parameters):
    monkeypatch.chdir(tmp_path)
    given = {"n_splits": 2, "shifts": [0.0, 0.4], "figures_dir": "out"} | parameters
    return papermill.execute_notebook(NOTEBOOK, "out.ipynb", given, progress_bar=False)


def test_it_runs_and_writes_its_figures(tmp_path, monkeypatch):
    notebook = run(tmp_path, monkeypatch)
    names = [f"tutorial_{what}" for what in ("changes", "costs", "described", "path", "shift")]
    written = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert written == sorted(f"{name}.{kind}" for name in names for kind in ("csv", "pdf", "png"))
    shift = pd.read_csv(tmp_path / "out" / "tutorial_shift.csv")
    assert len(shift) == 7 * 2 * 2 * 2  # the plain model, three by two rules; ways to draw, shares, splits
    assert shift["error in %"].between(0, 100).all()
    assert shift.groupby("model")["rule"].nunique().to_dict() == {
        "plain": 0,
        **dict.fromkeys(("ridge", "robust, label cost 1", "robust, labels fixed"), 2),
    }
    clean = shift[shift["share"] == 0].groupby(["model", "rule", "split"], dropna=False)["log-loss"].nunique()
    assert (clean == 1).all()  # without a shift both ways to draw give the same table
    costs = pd.read_csv(tmp_path / "out" / "tutorial_costs.csv")
    assert len(costs) == 3 * 2 * 5 * 2  # what is wrong, descriptions, radii, splits
    described = pd.read_csv(tmp_path / "out" / "tutorial_described.csv").set_index("feature")
    assert described.loc["persons", "mass"] == 0 < described["mass"].max()  # they may not change
    output = "\n".join(str(cell.get("outputs")) for cell in notebook.cells)
    assert re.search(r"The claim (holds|holds in part|does not hold): in \d of these 4 cases", output)
    assert "certified to tol" in output and "radius_max" in output


def test_a_wrong_parameter_stops_it(tmp_path, monkeypatch):
    with pytest.raises(papermill.PapermillExecutionError, match="unknown parameter 'n_split'"):
        run(tmp_path, monkeypatch, n_split=1)
