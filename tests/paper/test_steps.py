import re
from dataclasses import replace
from pathlib import Path

import pytest

from wdrlr.paper import cells, quiet_runtimes, runtimes, scheme_runtimes, steps
from wdrlr.paper.results import STAMPED, source_stamp, versions
from wdrlr.paper.verdicts import IN_PART, UNDECIDED

SMALL = {"dataset": "balance-scale", "methods": ["LR"], "n_splits": 2, "first_split": 0, "seed": 0, "protocol": "code"}
SMALL |= {"n_jobs": 1, "backend": "sequential", "scheduler": "", "tol": 1e-4, "solver": "tailored"}


@pytest.fixture
def run(tmp_path):
    folders = {"results_dir": str(tmp_path / "rows"), "figures_dir": str(tmp_path / "out")}
    return lambda **parameters: steps.run_experiment("table1", **SMALL | folders | parameters)


def test_an_experiment_is_computed_or_read_and_says_what_is_missing(run, capsys, tmp_path):
    run(compute_missing=True, n_splits=1)
    experiment = run(compute_missing=False)
    assert experiment.rows["split"].tolist() == [0] and experiment.datasets == ["balance-scale"]
    assert "2 cells: 1 data set(s), 2 split(s)" in capsys.readouterr().out
    experiment.require_all()  # they were not to be computed
    steps.show_table(experiment)
    shown = capsys.readouterr().out.split()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(shown[:3])
    assert shown[0] == "table1_balance-scale_code.csv"


def test_a_cell_that_failed_is_an_error_at_the_end(run, monkeypatch):
    experiment = run(compute_missing=True)
    experiment.require_all()
    monkeypatch.setattr(
        steps, "wanted_rows", lambda wanted, *_, **__: cells.to_frame(experiment.rows.to_dict("records")[:1])
    )
    with pytest.raises(RuntimeError, match=r"1 cell\(s\) failed: see the warning above"):
        run(compute_missing=True).require_all()
    with pytest.raises(RuntimeError, match=r"2 cell\(s\) failed"):
        replace(experiment, n_failed=2).require_all()


@pytest.mark.parametrize(
    "claims, sentence",
    [
        ({"it is fast": True, "it is good": True}, "The paper's claims hold: it is fast; it is good.\n"),
        ({"it is fast": False, "it is good": False}, "The paper's claims do not hold: it is fast; it is good.\n"),
        ({"it is fast": True}, "The paper's claim holds: it is fast.\n"),
        ({"it is fast": False}, "The paper's claim does not hold: it is fast.\n"),
        (
            {"it is fast": False, "it is good": True},
            "1 of the paper's 2 claims holds: it is good.\n1 of the paper's 2 claims does not hold: it is fast.\n",
        ),
        (
            {"it is fast": IN_PART, "it is good": UNDECIDED, "it is new": IN_PART},
            "2 of the paper's 3 claims hold in part: it is fast; it is new.\n"
            "1 of the paper's 3 claims is undecided: it is good.\n",
        ),
        ({"it is good": UNDECIDED}, "The paper's claim is undecided: it is good.\n"),
        ({}, "Whether the claim holds cannot be said from these rows.\n"),
    ],
)
def test_the_last_word_is_whether_the_claims_hold(capsys, claims, sentence):
    steps.conclude(claims)
    assert capsys.readouterr().out == sentence


def test_committed_rows_have_the_stamp_of_the_code():
    of_files = {
        "figure2": runtimes.STAMPED_HERE,
        "algorithm1": scheme_runtimes.STAMPED_HERE,
        "quiet": quiet_runtimes.STAMPED_HERE,
    }
    stamps: dict[tuple[str, ...], set[str]] = {stamped: set() for stamped in (STAMPED, *of_files.values())}
    pythons = set()
    for path in (Path(__file__).parents[2] / "figures" / "results").glob("*.csv"):
        text = path.read_text()
        pythons |= set(re.findall(r"python=(\d+\.\d+)", text))
        stamped = of_files.get(path.name.partition("_")[0], STAMPED)
        stamps[stamped] |= set(re.findall(r"wdrlr=[\d.]+\+?(\w*)", text))
    assert len(pythons) == 1 and [len(of_one) for of_one in stamps.values()] == [1, 1, 1, 1]
    if pythons != {re.match(r"python=(\d+\.\d+)", versions())[1]}:
        pytest.skip("stamps can be compared with the code under the same version of Python only")
    assert stamps == {stamped: {source_stamp(stamped)} for stamped in stamps}
