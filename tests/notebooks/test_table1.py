"""The notebook as a user runs it: by papermill, from a folder that is not the project's."""

import ast
import subprocess
import sys
from pathlib import Path

import nbformat
import pandas as pd
import papermill
import pytest

from wdrlr.paper.results import COLUMNS

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "table1.ipynb"
SMALL = {"dataset": "balance-scale", "methods": ["LR"], "n_jobs": 1, "backend": "sequential", "compute_missing": True}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Execute the notebook with rows and tables in `tmp_path`, and return the text of all its outputs."""
    monkeypatch.chdir(tmp_path)
    folders = {"results_dir": str(tmp_path / "new" / "rows"), "figures_dir": "tables"}

    def execute(**parameters):
        notebook = papermill.execute_notebook(NOTEBOOK, "out.ipynb", SMALL | folders | parameters, progress_bar=False)
        return "\n".join(str(cell.get("outputs")) for cell in notebook.cells)

    return execute


def written(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and path.suffix != ".tmp")


def test_a_run_writes_rows_and_table_and_a_second_run_adds_to_it(run, tmp_path):
    output = run(n_splits=1)
    files = ["balance-scale_code_LR_seed0.csv", "out.ipynb"]
    assert written(tmp_path) == [
        *files,
        *(f"table1_balance-scale_code.{kind}" for kind in ("csv", "html", "tex")),
    ]
    first = pd.read_csv(tmp_path / "new" / "rows" / files[0])
    assert list(first.columns) == list(COLUMNS)
    assert "0.85 %" in output  # the paper's
    assert "1 of 1 cells done." in output

    run(n_splits=2)
    both = pd.read_csv(tmp_path / "new" / "rows" / files[0])
    pd.testing.assert_frame_equal(first, both.head(1))  # seconds included: not computed again
    table = pd.read_csv(tmp_path / "tables" / "table1_balance-scale_code.csv")
    assert table["n_splits"].tolist() == [2]
    assert table["ours"].iloc[0] == pytest.approx(100 * both["test_error"].mean())


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"n_split": 3}, "unknown parameter 'n_split'. Did you mean 'n_splits'?"),
        ({"dataset": "spekt"}, "parameter 'dataset' must be one of 'all', 'breast-cancer', 'spect', "),
    ],
)
def test_a_wrong_parameter_stops_the_notebook_and_leaves_nothing(run, tmp_path, parameters, message):
    with pytest.raises(papermill.PapermillExecutionError) as error:
        run(**parameters)
    assert message in str(error.value)
    assert written(tmp_path) == ["out.ipynb"]


def test_from_the_shell_a_list_as_text_is_refused_with_the_remedy(tmp_path):
    command = [sys.executable, "-m", "papermill", NOTEBOOK, "out.ipynb", "-p", "methods", "['LR']"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert "parameter 'methods' must be" in done.stderr and "for a list use -y 'NAME: [a, b]'" in done.stderr
    assert written(tmp_path) == ["out.ipynb"]


# The file itself


def source(name):
    (cell,) = [cell for cell in nbformat.read(NOTEBOOK, 4).cells if cell.id == name]
    return cell


def test_the_parameters_cell_is_tagged_and_every_parameter_has_a_kind_and_a_comment():
    assert source("parameters").metadata["tags"] == ["parameters"]
    parameters = papermill.inspect_notebook(NOTEBOOK)
    assert list(parameters) == (
        "dataset methods n_splits first_split seed protocol compute_missing n_jobs backend scheduler results_dir "
        "figures_dir tol solver".split()
    )
    assert all(entry["inferred_type_name"] != "None" and entry["help"].strip() for entry in parameters.values())


def test_by_default_all_methods_run():
    assert ast.literal_eval(papermill.inspect_notebook(NOTEBOOK)["methods"]["default"]) == ["all"]


def test_the_notebook_is_valid_and_asks_for_a_kernel_that_everyone_has():
    notebook = nbformat.read(NOTEBOOK, 4)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
