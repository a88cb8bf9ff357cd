"""The dask backend on a cluster of this machine."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec

import pandas as pd
import pytest

from tests.paper.test_cells import TIMES
from wdrlr.paper import dask_workers
from wdrlr.paper.cells import plan_cells, run_cells
from wdrlr.paper.dask_workers import connected, outcomes_by_dask
from wdrlr.paper.results import versions

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


def test_a_cell_that_kills_its_worker_fails_and_those_beside_it_do_not():
    import dask
    from distributed import LocalCluster

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),  # whatever waits on the worker fails with it
        LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        connected(cluster.scheduler_address) as client,
    ):
        outcomes = {cell: (row, error) for cell, row, error in outcomes_by_dask(client, _square, range(6), -1)}
    row, error = outcomes.pop(2)
    assert row is None and "KilledWorker" in error
    assert outcomes == {cell: ({"square": cell**2}, "") for cell in (0, 1, 3, 4, 5)}


def test_workers_of_other_versions_are_refused(scheduler, monkeypatch):
    here = os.getpid()
    monkeypatch.setattr(dask_workers, "versions", lambda: f"wdrlr={int(os.getpid() == here)}")
    with pytest.raises(RuntimeError, match=r"the dask worker tcp://.* has other versions: wdrlr=0, here wdrlr=1"):
        with connected(scheduler):
            pass


def test_a_worker_that_dies_while_asked_is_not_one_of_other_versions(scheduler, tmp_path, monkeypatch):
    here, real = os.getpid(), versions()

    def die_when_first_asked():
        if os.getpid() != here:
            try:
                (tmp_path / "asked").touch(exist_ok=False)
            except FileExistsError:
                return real
            os._exit(1)
        return real

    monkeypatch.setattr(dask_workers, "versions", die_when_first_asked)
    with connected(scheduler):
        pass
    assert (tmp_path / "asked").exists()


@contextmanager
def dask_process(*arguments):
    """A scheduler or a worker as users start it."""
    command = [sys.executable, "-m", "dask", *arguments, "--no-dashboard"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def _who(cell):
    number, start = cell
    while number and not os.path.exists(start):
        time.sleep(0.02)
    time.sleep(0.1)
    return number, {"pid": os.getpid()}, ""


STRANGERS = {
    "other versions": "from wdrlr.paper import results\nresults.versions = lambda: 'wdrlr=0'",
    "no package": "import sys\nsys.modules['wdrlr'] = None",
}


@pytest.mark.parametrize("kind", STRANGERS)
def test_a_worker_of_other_versions_that_comes_later_computes_nothing(scheduler, tmp_path, kind):
    (tmp_path / "preload.py").write_text(STRANGERS[kind])
    options = ["--nthreads", "1", "--no-nanny", "--preload", str(tmp_path / "preload.py")]
    start = tmp_path / "start"
    with connected(scheduler) as client, dask_process("worker", scheduler, *options) as stranger:
        outcomes = outcomes_by_dask(client, _who, [(number, str(start)) for number in range(30)], 6)
        done = [next(outcomes)]
        client.wait_for_workers(3, timeout=30)
        start.touch()
        with pytest.warns(UserWarning, match=r"the dask worker tcp://.* has other versions: .*; it computes nothing"):
            done.extend(outcomes)
    assert not [error for _, _, error in done if error]
    assert sorted(number for number, _, _ in done) == list(range(30))
    assert stranger.pid not in {row["pid"] for _, row, _ in done}


@pytest.mark.parametrize("says", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n" + 100 * b" "])
def test_what_is_no_scheduler_is_reported_in_time(monkeypatch, says):
    assert dask_workers.ANSWER_SECONDS + 2 * dask_workers.ASK_SECONDS < 15
    monkeypatch.setattr(dask_workers, "ANSWER_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server, ExitStack() as kept:

        def answer():
            while True:
                try:
                    visitor, _ = server.accept()
                except OSError:
                    return
                kept.enter_context(visitor)
                visitor.sendall(says)

        threading.Thread(target=answer, daemon=True).start()
        start = time.monotonic()
        with pytest.raises(ConnectionError, match="no dask scheduler answers at 'tcp://127"):
            with connected(f"tcp://127.0.0.1:{server.getsockname()[1]}"):
                pass
        assert time.monotonic() - start < 10
        server.shutdown(socket.SHUT_RDWR)


def test_a_scheduler_without_workers_is_reported(monkeypatch):
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
def test_no_scheduler_is_reported_before_any_work(tmp_path, monkeypatch, address, message):
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


def wait_for_port(port):
    last = time.monotonic() + 30
    while time.monotonic() < last:
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"nothing at port {port}")


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_a_run_whose_scheduler_goes_away_ends_and_the_next_one_goes_on(tmp_path, monkeypatch):
    cells = plan_cells(["balance-scale"], ["LR"], n_splits=60)
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    stored = tmp_path / "there" / "balance-scale_code_LR_seed0.csv"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    ended = []

    def lines():
        return stored.read_text().splitlines()[1:] if stored.exists() else []

    def run(end=None):
        def end_in_the_middle(n_lines):
            while len(lines()) <= n_lines:
                time.sleep(0.01)
            ended.append(time.monotonic())
            scheduler.send_signal(end)
            if end == signal.SIGKILL:
                worker.send_signal(end)

        address = f"tcp://127.0.0.1:{port}"
        with (
            dask_process("scheduler", "--host", "127.0.0.1", "--port", port) as scheduler,
            dask_process("worker", address, "--nthreads", "1", "--no-nanny") as worker,
        ):
            wait_for_port(int(port))
            if end:
                threading.Thread(target=end_in_the_middle, args=[len(lines())], daemon=True).start()
            return run_cells(cells, tmp_path / "there", n_jobs=2, backend="dask", scheduler=address)

    for end in (signal.SIGSTOP, signal.SIGKILL):
        before = lines()
        with pytest.raises(ConnectionError, match=r"the dask scheduler went away .* run again to continue"):
            run(end)
        assert time.monotonic() - ended[-1] < 15
        assert set(before) < set(lines())
    before = lines()
    assert len(before) < 60
    rows = run()
    assert set(before) < set(lines())  # nothing is done twice: the seconds are the same
    here = run_cells(cells, tmp_path / "here", backend="sequential")
    pd.testing.assert_frame_equal(rows.drop(columns=TIMES), here.drop(columns=TIMES))
