"""load_dataset, and the sizes of the sets."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pandas as pd
import pytest

from wdrlr.data_prep import sources
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


def test_names_follow_the_papers_tables():
    in_paper = pd.concat([published_values("table1"), published_values("table2")])["dataset"].unique()
    assert list(EXPECTED) == list(in_paper) == list(published_counts().index)
    assert list(DATASETS) == [*EXPECTED, *sorted(set(DATASETS) - set(EXPECTED))]


@pytest.mark.parametrize("name", EXPECTED)
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
