"""The notebook of Figure 1, with few sizes and runs."""

import ast
from pathlib import Path

import nbformat
import pandas as pd
import papermill
import pytest

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "figure1.ipynb"


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def execute(**parameters):
        quick = {"sizes": [60, 250], "runs": 40, "figures_dir": "out"}
        notebook = papermill.execute_notebook(NOTEBOOK, "out.ipynb", quick | parameters, progress_bar=False)
        return "\n".join(str(cell.get("outputs")) for cell in notebook.cells)

    return execute


def test_a_quick_run_draws_the_figure_and_finds_the_paper_s_number(run, tmp_path):
    output = run()
    kinds = ["figure1.csv", "figure1.pdf", "figure1.png", "figure1_distributions.csv"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == kinds
    bands = pd.read_csv(tmp_path / "out" / "figure1.csv")
    assert bands["N"].tolist() == [60] * 3 + [250] * 3 and set(bands["runs"]) == {40}
    assert bands["off_closed_form"].max() < 1e-5
    atoms = pd.read_csv(tmp_path / "out" / "figure1_distributions.csv")
    assert sorted(atoms.loc[atoms["z"].abs() > 1, "z"].round()) == [15312, 30624]
    assert "15,312" in output and "at 2 of 2 sizes; closed form: 951 of 951" in output
    assert "image/png" in output


def test_another_data_set_size(run, tmp_path):
    run(worst_case_size=100, gamma=0.01, seed=5)
    atoms = pd.read_csv(tmp_path / "out" / "figure1_distributions.csv")
    assert atoms["z"].abs().max() == pytest.approx(1 + 2 * (0.05 - 0.01) * 100 / 0.005)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"run": 10}, "unknown parameter 'run'. Did you mean 'runs'?"),
        (
            {"worst_case_size": 100, "gamma": 0.05},
            "parameter 'gamma' must be below the radius 1 / (2 sqrt(worst_case_size))",
        ),
    ],
)
def test_a_wrong_parameter_stops_the_notebook_and_leaves_nothing(run, tmp_path, parameters, message):
    with pytest.raises(papermill.PapermillExecutionError) as error:
        run(**parameters)
    assert message in str(error.value)
    assert not [path for path in tmp_path.rglob("figure1*")]


def test_the_full_settings_are_the_paper_s():
    cells = {cell.id: cell for cell in nbformat.read(NOTEBOOK, 4).cells}
    assert cells["claim"].source.startswith("# Figure 1") and "**What the paper claims**" in cells["claim"].source
    assert cells["parameters"].metadata["tags"] == ["parameters"]
    defaults = {
        statement.target.id: ast.literal_eval(statement.value)
        for statement in ast.parse(cells["parameters"].source).body
    }
    assert defaults["runs"] == 2000 and defaults["worst_case_size"] == 250 and defaults["gamma"] == 1e-3
