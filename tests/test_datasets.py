"""load_dataset, and the comparison of the sets' sizes with the paper's."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pandas as pd
import pytest

from wdrlr.data_prep import sources
from wdrlr.data_prep.__main__ import as_markdown
from wdrlr.datasets import DATASETS, DataUnavailableError, load_dataset
from wdrlr.paper.counts import dataset_counts
from wdrlr.paper.printed import published_counts, published_values

EXPECTED = {
    "breast-cancer": (277, 0, 42, 9),
    "spect": (267, 0, 22, 22),
    "monks-3": (554, 0, 11, 6),
    "tic-tac-toe": (958, 0, 18, 9),
    "kr-vs-kp": (3196, 0, 37, 36),
    "balance-scale": (625, 0, 16, 4),
    "hayes-roth": (160, 0, 11, 4),
    "lymphography": (148, 0, 42, 18),
    "car": (1728, 0, 15, 6),
    "splice": (3190, 0, 227, 60),
    "house-votes-84": (435, 0, 32, 16),
    "hiv": (6590, 0, 152, 8),
    "primary-tumor": (339, 0, 25, 17),
    "audiology": (226, 0, 92, 69),
    "credit-approval": (690, 6, 36, 9),
    "annealing": (798, 6, 46, 25),
    "contraceptive": (1473, 2, 15, 7),
    "hepatitis": (155, 6, 23, 13),
    "cylinder-bands": (539, 19, 43, 14),
}
DIFFERENT = {"splice", "annealing", "cylinder-bands"}


@pytest.fixture
def offline(tmp_path, monkeypatch):
    def unavailable(recipe, *arguments):
        raise OSError("offline")

    monkeypatch.setattr(sources, "_download", unavailable)
    monkeypatch.setattr(sources.served, "fetch_table", unavailable)
    monkeypatch.setattr(sources, "user_cache_path", lambda name: tmp_path / "cache")


def test_names_follow_the_papers_tables():
    in_paper = pd.concat([published_values("table1"), published_values("table2")])["dataset"].unique()
    assert list(DATASETS) == list(in_paper) == list(published_counts().index)


@pytest.mark.parametrize("name", DATASETS)
def test_counts(name):
    if not (sources.SHIPPED / name).is_dir() and not os.environ.get("WDRLR_DATA"):
        pytest.skip(f"{name} is not shipped: set WDRLR_DATA to a folder with UCI's raw files")
    data = load_dataset(name)
    assert data.name == name
    assert (data.N, data.n, data.k, data.m) == EXPECTED[name]
    assert data.X.shape == (data.N, data.n + data.m)
    assert data.y.shape == (data.N,)
    assert np.issubdtype(data.y.dtype, np.integer)
    assert (EXPECTED[name] != tuple(published_counts().loc[name])) == (name in DIFFERENT)


def test_count_table_gives_a_reason_for_every_difference_and_only_there(offline):
    counts = dataset_counts()
    assert list(counts.index) == list(DATASETS)
    ours = counts[["N", "n", "k", "m"]]
    paper = counts[[f"{count}_paper" for count in ours]].set_axis(ours.columns, axis="columns")
    pd.testing.assert_frame_equal(paper, published_counts().astype("Int64"))
    for name, reason in counts["reason"].items():
        if ours.loc[name].isna().all():
            assert reason.startswith("not counted: the raw files are not on this machine")
        else:
            assert bool(reason) == (name in DIFFERENT)
            assert reason != "not explained"
            assert tuple(ours.loc[name]) == EXPECTED[name]


def test_count_table_prints_both_counts_where_they_differ(offline):
    text = as_markdown(dataset_counts())
    assert "| 25 (32) |" in text
    assert "- annealing: the paper's m counts" in text
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 21
    assert len({len(line) for line in lines}) == 1


def test_data_dir_is_used(tmp_path):
    with pytest.raises(DataUnavailableError, match="nowhere"):
        load_dataset("car", data_dir=tmp_path / "nowhere")
    with pytest.raises(DataUnavailableError, match="nowhere"):
        dataset_counts(data_dir=str(tmp_path / "nowhere"))
    shutil.copytree(sources.SHIPPED / "car", tmp_path / "car")
    assert "the folder that data_dir sets" in load_dataset("car", data_dir=tmp_path).record[0]


@pytest.mark.parametrize(("name", "close"), [("breast_cancer", "breast-cancer"), ("KR-vs-kp", "kr-vs-kp")])
def test_unknown_name_suggests_a_close_one(name, close):
    with pytest.raises(ValueError, match=f"unknown data set '{name}' \\(did you mean '{close}'\\?\\)") as caught:
        load_dataset(name)
    assert all(known in str(caught.value) for known in DATASETS)


@pytest.mark.parametrize("name", ["iris", "", None, 3])
def test_unknown_name_lists_the_known_ones(name):
    with pytest.raises(ValueError, match="unknown data set") as caught:
        load_dataset(name)
    assert "cylinder-bands" in str(caught.value)


def test_unknown_table_of_the_paper():
    with pytest.raises(ValueError, match="unknown table 'table5'"):
        published_values("table5")
