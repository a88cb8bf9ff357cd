import pandas as pd
import pytest

from tests.test_datasets import DIFFERENT, EXPECTED
from wdrlr.data_prep import sources
from wdrlr.data_prep.__main__ import as_markdown
from wdrlr.datasets import DATASETS
from wdrlr.paper.counts import dataset_counts
from wdrlr.paper.printed import published_counts


@pytest.fixture
def offline(tmp_path, monkeypatch):
    def unavailable(recipe, *arguments):
        raise OSError("offline")

    monkeypatch.setattr(sources, "_download", unavailable)
    monkeypatch.setattr(sources.served, "fetch_table", unavailable)
    monkeypatch.setattr(sources, "user_cache_path", lambda name: tmp_path / "cache")


def test_count_table_gives_a_reason_for_every_difference_and_only_there(offline):
    counts = dataset_counts()
    assert list(counts.index) == list(DATASETS)
    counts = counts.loc[list(EXPECTED)]
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
    assert len(lines) == len(DATASETS) + 2
    assert len({len(line) for line in lines}) == 1
