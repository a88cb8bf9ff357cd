"""What every committed notebook is like: executed from top to bottom, without an error, ready for papermill."""

from pathlib import Path

import nbformat
import pytest

MOST_LINES = 15
NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    return nbformat.read(request.param, as_version=4)


def test_there_are_notebooks():
    assert NOTEBOOKS


def test_notebook_is_valid_and_runs_on_the_plain_python_kernel(notebook):
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"


def test_one_cell_holds_the_parameters_each_with_a_type_and_a_comment(notebook):
    tagged = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    assert len(tagged) == 1
    lines = [line for line in tagged[0].source.splitlines() if line and not line.startswith("#")]
    assert lines
    for line in lines:
        name, _, rest = line.partition(":")
        assert name.isidentifier(), line
        assert "=" in rest and "#" in rest, line
    assert not [cell for cell in notebook.cells if "injected-parameters" in cell.metadata.get("tags", [])]


def test_cells_were_run_in_order_and_without_an_error(notebook):
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
    assert counts == list(range(1, len(counts) + 1))
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert outputs
    assert not [output for output in outputs if output.output_type == "error"]


def test_a_code_cell_is_a_few_lines(notebook):
    lengths = {cell.id: len(cell.source.splitlines()) for cell in notebook.cells if cell.cell_type == "code"}
    assert {name: length for name, length in lengths.items() if length > MOST_LINES} == {}


def test_nothing_in_it_is_of_one_machine(notebook):
    text = nbformat.writes(notebook)
    for trace in ("/home/", "/root/", "/Users/", "/tmp/", "C:\\\\", str(Path.home())):
        assert trace not in text, trace
    assert "papermill" not in notebook.metadata
