"""The dask backend on a cluster of this machine."""

import os
import sys
from importlib.util import find_spec

import pandas as pd
import pytest

from tests.test_experiments import TIMES
from wdrlr import dask_workers
from wdrlr.dask_workers import connected, outcomes_by_dask
from wdrlr.experiments import plan_cells, run_cells

# Whoever has the extra "test" has dask; hypothesis stands for that extra.
pytestmark = pytest.mark.skipif(
    find_spec("distributed") is None and find_spec("hypothesis") is None, reason="needs the extra test, or dask"
)


@pytest.fixture(scope="module")
def scheduler():
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


def test_numbers_are_those_of_one_process(scheduler, tmp_path, monkeypatch):
    import dask

    cells = plan_cells(["balance-scale"], ["LR"], n_splits=3)
    frames = []
    for name, options in (
        ("one", {"backend": "sequential"}),
        ("address", {"backend": "dask", "scheduler": scheduler, "n_jobs": -1}),
        ("configured", {"backend": "dask"}),
    ):
        (tmp_path / name).mkdir()
        with dask.config.set({"scheduler-address": scheduler}):
            frames.append(run_cells(cells, tmp_path / name, **options).drop(columns=TIMES))
        assert len(pd.read_csv(tmp_path / name / "balance-scale_code_LR_seed0.csv")) == 3
    pd.testing.assert_frame_equal(frames[0], frames[1])
    pd.testing.assert_frame_equal(frames[0], frames[2])


def _square(cell):
    if cell == 2:
        os._exit(1)  # as a worker that runs out of memory
    return cell, {"square": cell**2}, ""


def test_a_cell_that_kills_its_worker_is_an_outcome_like_others(scheduler):
    with connected(scheduler) as client:
        outcomes = {cell: (row, error) for cell, row, error in outcomes_by_dask(client, _square, range(5), 2)}
    assert sorted(outcomes) == list(range(5))
    assert outcomes[3] == ({"square": 9}, "")
    row, error = outcomes[2]
    assert row is None and "KilledWorker" in error


def test_workers_of_other_versions_are_refused(scheduler, monkeypatch):
    here = os.getpid()
    monkeypatch.setattr(dask_workers, "versions", lambda: f"wdrlr={int(os.getpid() == here)}")
    with pytest.raises(RuntimeError, match=r"the dask worker tcp://.* has other versions: wdrlr=0, here wdrlr=1"):
        with connected(scheduler):
            pass


def test_a_scheduler_without_workers_is_said(monkeypatch):
    from distributed import LocalCluster

    monkeypatch.setattr(dask_workers, "WORKER_SECONDS", 0.2)
    with LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster:
        with pytest.raises(ConnectionError, match=r"has no worker: start some with `dask worker .* --nthreads 1`"):
            with connected(cluster.scheduler_address):
                pass


@pytest.mark.parametrize(
    "address, message",
    [("", "needs a running scheduler: .*DASK_SCHEDULER_ADDRESS"), ("tcp://127.0.0.1:1", "no dask scheduler answers")],
)
def test_no_scheduler_is_said_before_any_work(tmp_path, monkeypatch, address, message):
    monkeypatch.setattr(dask_workers, "ANSWER_SECONDS", 0.5)
    cells = plan_cells(["balance-scale"], ["LR"], n_splits=1)
    with pytest.raises(ConnectionError, match=message):
        run_cells(cells, tmp_path, backend="dask", scheduler=address)
    assert not list(tmp_path.glob("*.csv"))


def test_without_dask_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)
    cells = plan_cells(["balance-scale"], ["LR"], n_splits=1)
    with pytest.raises(ImportError, match=r"pip install 'wdrlr\[dask\]'"):
        run_cells(cells, tmp_path, backend="dask")
