"""What the committed notebooks show: pictures, a last word on their claims, and nothing that only a program reads."""

import json
import re
from base64 import b64decode
from io import BytesIO
from pathlib import Path

import nbformat
import numpy as np
import pytest
from matplotlib.image import imread

from wdrlr.paper.methods import METHODS
from wdrlr.paper.tables import label_of

NOTEBOOKS = {
    path.stem: nbformat.read(path, as_version=4)
    for path in sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
}
DRAWS = re.compile(r"\b(show_figure|save_figure|subplots|box_plots|\w+_plot|\w+_panels)\(")
LAST_WORD = re.compile(r"\bclaims? (holds?( in part)?|do(es)? not hold|(is|are) undecided)\b[^\n]*\.$")
RAW_NAMES = [name for name in METHODS if name != label_of(name)]


@pytest.fixture(params=NOTEBOOKS)
def cells(request):
    return NOTEBOOKS[request.param].cells


def outputs(cells):
    return [output for cell in cells if cell.cell_type == "code" for output in cell.outputs]


def shown_text(cells):
    return "\n".join(json.dumps({**output.get("data", {}), "": output.get("text", "")}) for output in outputs(cells))


def test_every_figure_cell_stores_an_image_that_is_not_blank(cells):
    for cell in cells:
        if cell.cell_type == "code" and DRAWS.search(cell.source):
            images = [output.data["image/png"] for output in cell.outputs if "image/png" in output.get("data", {})]
            assert images, cell.id
            assert all(np.ptp(imread(BytesIO(b64decode(image)))) > 0 for image in images), cell.id


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_it_ends_with_a_sentence_on_whether_its_claim_holds(name):
    last = NOTEBOOKS[name].cells[-1]
    said = "".join(output.get("text", "") for output in last.outputs) if last.cell_type == "code" else last.source
    assert LAST_WORD.search(said.strip().split("\n\n")[-1].replace("\n", " ")), said


def test_it_shows_no_error_stream_and_no_residue_of_a_widget(cells):
    assert not [output for output in outputs(cells) if output.get("name") == "stderr"]
    shown = shown_text(cells)
    assert "jupyter.widget" not in shown and not re.search(r"\d%\|", shown)


def test_widgets_have_no_state():
    assert [name for name, notebook in NOTEBOOKS.items() if "widgets" in notebook.metadata] == []


def test_methods_have_their_labels(cells):
    shown = shown_text(cells)
    assert [name for name in RAW_NAMES if name in shown] == []


@pytest.mark.parametrize("name", ["table1", "table2", "table3", "table4"])
def test_the_tables_have_all_data_sets_from_stored_rows(name):
    (cell,) = [cell for cell in NOTEBOOKS[name].cells if "parameters" in cell.metadata.get("tags", [])]
    parameters = {}
    exec(cell.source, parameters)
    n_splits = 100 if name in ("table1", "table4") else 20
    wanted = {"dataset": "all", "methods": ["all"], "n_splits": n_splits, "compute_missing": False}
    assert {key: parameters[key] for key in wanted} == wanted
    assert f"{14 if n_splits == 100 else 5} data set(s), {n_splits} split(s)" in shown_text(NOTEBOOKS[name].cells)
