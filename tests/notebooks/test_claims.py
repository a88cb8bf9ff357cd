"""The notebook of the verdicts, on made-up rows and on the files of the figures."""

from pathlib import Path
from shutil import copy

import papermill
import pytest

from tests.paper.test_redrawn import printed_rows
from wdrlr.paper import referee
from wdrlr.paper.claims import CLAIMS
from wdrlr.paper.methods import METHODS
from wdrlr.paper.results import COLUMNS, save_rows, versions
from wdrlr.paper.verdicts import FAILS, HOLDS, NOT_COMPUTED

ROOT = Path(__file__).parents[2]
FIGURES = "figure1 figure1_distributions figure2_full_kappa_1 figure2_full_kappa_m".split()


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("rows", "out"):
        (tmp_path / name).mkdir()

    def execute():
        folders = {"results_dir": "rows", "figures_dir": "out"}
        notebook = papermill.execute_notebook(
            ROOT / "notebooks" / "claims.ipynb", "out.ipynb", folders, progress_bar=False
        )
        stored = referee.read_table(tmp_path / "out", "claims").set_index("claim")
        return stored, "\n".join(str(cell.get("outputs")) for cell in notebook.cells)

    return execute


def test_nothing_stored_is_nothing_computed(run, tmp_path):
    stored, output = run()
    assert set(stored["verdict_code"]) == {NOT_COMPUTED} and set(stored["verdict_paper"]) == {NOT_COMPUTED, ""}
    assert 'Protocol "code"' in output and output.count("table1: nothing is stored.") == 2
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "claims.csv",
        "claims.md",
        "claims_choices.csv",
    ]


def test_verdicts_come_from_the_rows_and_files_of_the_folders(run, tmp_path):
    for stem in FIGURES:
        copy(ROOT / "figures" / f"{stem}.csv", tmp_path / "out")
    save_rows(tmp_path / "rows", [stored_row(row) for row in printed_rows(J=5).to_dict("records")])
    stored, output = run()
    wins = stored.loc["A proposed method is best"]
    assert (wins["ours_code"], wins["verdict_code"], wins["verdict_paper"]) == ("12 of 14", HOLDS, NOT_COMPUTED)
    figures = stored[stored["place"].str.startswith("Figure")]
    assert len(figures) == 6 and not (figures["verdict_code"] == NOT_COMPUTED).any()
    assert f"of {len(CLAIMS)} claims" in output and not any(f"{name} " in output for name in METHODS if "_" in name)
    better = printed_rows(J=5).assign(test_error=lambda rows: rows["test_error"].where(rows["method"] != "LR", 0.0))
    save_rows(tmp_path / "rows", [stored_row(row) for row in better.to_dict("records")])
    stored, _ = run()
    wins = stored.loc["A proposed method is best"]
    assert (wins["ours_code"], wins["verdict_code"]) == ("0 of 14", FAILS)


def stored_row(row):
    """A whole row of the store."""
    values = {name: {str: "", int: 1, float: 0.5, bool: False}[kind] for name, kind in COLUMNS.items()}
    values |= {"solver": "tailored", "versions": versions()}
    return {name: row.get(name, values[name]) for name in COLUMNS}
