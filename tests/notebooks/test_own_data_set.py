"""Notebooks with a data set that the paper does not have."""

from pathlib import Path

import pandas as pd
import papermill
import pytest

from tests.weather import make_weather

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
RUN = {"dataset": "weather", "n_splits": 2, "n_jobs": 1, "backend": "sequential", "compute_missing": True}
METHODS = ["LR", "DRO_kappa_1"]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Execute a notebook with `WDRLR_RECIPES` set, and return the table that it writes."""
    monkeypatch.setenv("WDRLR_RECIPES", str(make_weather(tmp_path / "mine")))
    folders = {"results_dir": str(tmp_path / "rows"), "figures_dir": str(tmp_path)}

    def execute(name, **parameters):
        path = NOTEBOOKS / f"{name}.ipynb"
        papermill.execute_notebook(path, tmp_path / "out.ipynb", RUN | folders | parameters, progress_bar=False)
        return pd.read_csv(tmp_path / f"{name}_weather_code.csv")

    return execute


def test_table_1_leaves_the_papers_columns_empty(run, tmp_path):
    table = run("table1", methods=METHODS)
    assert table["dataset"].tolist() == ["weather"] * 2
    assert table["method"].tolist() == METHODS
    assert table["n_splits"].tolist() == [2, 2]
    assert table["ours"].notna().all()
    assert table[["N", "n", "k", "m", "paper", "difference"]].isna().all(axis=None)
    html = (tmp_path / "table1_weather_code.html").read_text()
    assert html.count("weather") == 1 and "nan" not in html


def test_its_wins_are_assessed_without_the_papers(run):
    assert set(run("significance")["dataset"]) == {"weather"}
