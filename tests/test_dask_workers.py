"""The dask backend on a cluster of this machine."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from importlib.util import find_spec

import pandas as pd
import pytest

from tests.test_experiments import TIMES
from wdrlr import dask_workers
from wdrlr.dask_workers import OtherVersions, connected, outcomes_by_dask
from wdrlr.experiments import plan_cells, run_cells
from wdrlr.results import versions

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


def test_a_worker_that_came_later_with_other_versions_computes_nothing(scheduler, monkeypatch):
    with connected(scheduler) as client:
        monkeypatch.setattr(dask_workers, "versions", lambda: "wdrlr=1")  # now all workers are of that kind
        outcomes = outcomes_by_dask(client, _square, range(3, 5), 2)
        with pytest.raises(OtherVersions, match=r"tcp://.* has other versions: python=.*, wanted wdrlr=1; .*run again"):
            next(outcomes)


def test_a_worker_that_dies_while_asked_is_not_one_of_other_versions(scheduler, tmp_path, monkeypatch):
    from distributed import Client

    with Client(scheduler, set_as_default=False) as client:  # a worker that another test killed may not be back yet
        client.wait_for_workers(2, timeout=60)
    here, real = os.getpid(), versions()

    def die_when_asked_again():
        if os.getpid() != here:
            asked = len(os.listdir(tmp_path))
            (tmp_path / str(asked)).touch()
            if asked == 1:  # the first is asked whether there is a worker
                os._exit(1)
        return real

    monkeypatch.setattr(dask_workers, "versions", die_when_asked_again)
    with connected(scheduler):
        pass
    assert len(os.listdir(tmp_path)) >= 2


def test_something_silent_is_said_soon(monkeypatch):
    assert dask_workers.ANSWER_SECONDS + dask_workers.ASK_SECONDS < 15
    monkeypatch.setattr(dask_workers, "ANSWER_SECONDS", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        start = time.monotonic()
        address = "tcp://{}:{}".format(*silent.getsockname())
        with pytest.raises(ConnectionError, match=f"no dask scheduler answers at '{address}' .nothing in 1 seconds"):
            with connected(address):
                pass
    assert time.monotonic() - start < 5


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


@pytest.fixture
def processes():
    """Starts a scheduler and a worker as processes of their own; ends them in the end."""
    started = []

    def start(address):
        port = address.rpartition(":")[2]
        for command in (
            ["scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard"],
            ["worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"],
        ):
            started.append(subprocess.Popen([sys.executable, "-m", "dask", *command], stderr=subprocess.DEVNULL))
            if command[0] == "scheduler":
                wait_for_port(int(port))
        return started[-2:]

    yield start
    for process in started:
        process.kill()
        process.wait()


def wait_for_port(port):
    last = time.monotonic() + 30
    while time.monotonic() < last:
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"nothing at port {port}")


def _slow(cell):
    time.sleep(0.1 if cell == 0 else 3)
    return cell, {"square": cell**2}, ""


@pytest.mark.skipif(os.name == "nt", reason="needs SIGSTOP")
def test_a_cluster_that_freezes_or_dies_in_the_middle_is_said_and_a_new_one_goes_on(processes):
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = "tcp://{}:{}".format(*free.getsockname())

    @contextlib.contextmanager
    def in_the_middle():
        with connected(address) as client:
            outcomes = outcomes_by_dask(client, _slow, range(2), 2)
            assert next(outcomes)[0] == 0
            yield outcomes

    scheduler, worker = processes(address)
    with in_the_middle() as outcomes:
        scheduler.send_signal(signal.SIGSTOP)
        start = time.monotonic()
        with pytest.raises(ConnectionError, match=r"scheduler does not answer; .* run again"):
            next(outcomes)
    assert time.monotonic() - start < 15
    scheduler.send_signal(signal.SIGCONT)
    with in_the_middle() as outcomes:
        for process in (scheduler, worker):
            process.kill()
            process.wait()
        with pytest.raises(ConnectionError, match=r"scheduler (went away|does not answer); .* run again"):
            next(outcomes)
    processes(address)
    with in_the_middle() as outcomes:
        assert list(outcomes) == [(1, {"square": 1}, "")]
