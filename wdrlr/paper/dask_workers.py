"""Cells on the workers of a running dask scheduler, to use more than one machine. Needs the extra "dask"."""

from __future__ import annotations

import asyncio
import pickle
import traceback
import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

from wdrlr.extras import required
from wdrlr.paper.results import versions

if TYPE_CHECKING:
    from distributed import Client, Future

ANSWER_SECONDS = 8
"""How long a scheduler, or a worker, may take to answer."""

ASK_SECONDS = 2
"""After how long without news of any cell the scheduler is asked whether it is still there."""

WORKER_SECONDS = 60
"""How long to wait for the first worker; an adaptive cluster starts one only when there is work."""


@contextmanager
def connected(scheduler: str) -> Iterator[Client]:
    """A client of a running scheduler whose workers have the versions of this process.

    Parameters
    ----------
    scheduler
        Its address; "" uses dask's configuration ("scheduler-address", DASK_SCHEDULER_ADDRESS).

    Raises
    ------
    ImportError
        If dask or distributed is not installed.
    ConnectionError
        If no address is known, nothing answers there, or there is no worker.
    RuntimeError
        If a worker has other versions, or cannot import this package.
    """
    dask, _ = (required(package, "backend 'dask'", "dask") for package in ("dask", "distributed"))
    # Without an address, a Client would start a new cluster on this machine.
    address = scheduler or dask.config.get("scheduler-address", None)
    if not address:
        raise ConnectionError(
            "backend 'dask' needs a running scheduler: start one with `dask scheduler` and workers with `dask worker "
            "ADDRESS --nthreads 1`, and give its address as `scheduler` or in DASK_SCHEDULER_ADDRESS"
        )
    client = _client_of(address)
    try:
        if not _ask(client, client.nthreads):
            try:
                client.submit(int, pure=False).result(timeout=WORKER_SECONDS)
            except TimeoutError:
                raise ConnectionError(
                    f"the dask scheduler at {address} has no worker: "
                    f"start some with `dask worker {address} --nthreads 1`"
                ) from None
        _, strangers = _workers(client)
        if strangers:
            raise RuntimeError(_mismatch(strangers))
        yield client
    finally:
        with suppress(TimeoutError):  # raised if the scheduler does not answer
            client.close(timeout=1)


def _client_of(address: str) -> Client:
    from distributed import Client

    try:
        # A Client for an address where nothing answers can hang, even when it is discarded. The extra thread is for
        # notebooks, whose main thread has a running event loop. A scheduler in this process answers only its own loop.
        if not address.startswith("inproc:"):
            with ThreadPoolExecutor(1) as thread:
                thread.submit(asyncio.run, asyncio.wait_for(_identity(address), ANSWER_SECONDS)).result()
        return Client(address, timeout=ANSWER_SECONDS, set_as_default=False)
    except Exception as error:  # for example, a web server's answer is read as a message size and gives a MemoryError
        reason = str(error) or f"nothing in {ANSWER_SECONDS} seconds"
        raise ConnectionError(f"no dask scheduler answers at {address!r} ({reason}): is it running?") from error


async def _identity(address: str) -> dict:
    from distributed import Security
    from distributed.core import rpc

    async with rpc(address, connection_args=Security().get_connection_args("client")) as scheduler:
        return await scheduler.identity()


def _ask(client: Client, question: Callable[[], Awaitable]) -> Any:
    """The scheduler's answer; raises ConnectionError if there is none in time."""

    async def answer() -> Any:
        return await question()

    try:
        return client.sync(answer, callback_timeout=ANSWER_SECONDS)
    except Exception as error:  # the connection failed, or the client has closed itself
        raise _gone("it does not answer") from error


def _gone(reason: str) -> ConnectionError:
    return ConnectionError(f"the dask scheduler went away ({reason}); finished cells are saved, run again to continue")


def _workers(client: Client) -> tuple[list[str], dict[str, object]]:
    """The workers with the versions of this process, and the others with their versions.

    A worker that stops while it is asked, or does not answer, is in neither: another takes its cells.
    """

    async def asked(worker: str) -> dict[str, object]:
        try:
            answer = client.run(versions, workers=[worker], on_error="return")
            # Half the time, since otherwise a silent worker would be mistaken for a silent scheduler.
            return await asyncio.wait_for(answer, ANSWER_SECONDS / 2)
        except OSError as error:
            return {worker: error}

    async def all_asked() -> list[dict[str, object]]:
        return await asyncio.gather(*map(asked, await client.nthreads()))

    answered = {worker: answer for answers in _ask(client, all_asked) for worker, answer in answers.items()}
    same = [worker for worker, answer in answered.items() if answer == versions()]
    others = {
        worker: answer for worker, answer in answered.items() if worker not in same and not isinstance(answer, OSError)
    }
    return same, others


def _mismatch(strangers: dict[str, object]) -> str:
    worker, answer = min(strangers.items())
    return f"the dask worker {worker} has other versions: {answer}, here {versions()}"


def outcomes_by_dask(client: Client, attempt: Callable, cells: Sequence, n_jobs: int) -> Iterator[tuple]:
    """Yield ``attempt(cell)`` as the cells finish, in any order, while workers come and go.

    A worker that joins later with other versions computes nothing, and a warning names it. If workers die, every cell
    that they had is a suspect and is tried again alone; if workers die then, too, the outcome has no row but the
    traceback.

    Parameters
    ----------
    client
        See `connected`.
    attempt
        Maps a cell to (cell, row or None, traceback).
    n_jobs
        Cells handed out at a time; all of them if negative.

    Raises
    ------
    ConnectionError
        If the scheduler goes away, or no longer answers.
    RuntimeError
        If only workers with other versions are left.
    """
    run = _Run(client, attempt)
    waiting = list(reversed(cells))
    while waiting or run.suspects or run.handed_out:
        while waiting and (n_jobs < 0 or len(run.handed_out) < n_jobs):
            run.hand_out(waiting.pop(), alone=False)
        if not run.handed_out:
            run.hand_out(run.suspects.pop(), alone=True)
        outcome = run.next_outcome()
        if outcome is not None:
            yield outcome


class _HandedOut(NamedTuple):
    cell: Any
    alone: bool  # no other cell is handed out
    directed: bool  # to workers with the versions of this process, if any is free


class _Run:
    """The cells that the workers have, and what is known about the workers.

    `suspects` are the cells that a worker had when it died.
    """

    def __init__(self, client: Client, attempt: Callable):
        self.client, self.attempt = client, attempt
        self.handed_out: dict[Future, _HandedOut] = {}
        self.suspects: list[Any] = []
        self._finished: SimpleQueue[Future] = SimpleQueue()
        self._preferred: list[str] = []  # the workers with our versions, once there are any with other versions
        self._warned: set[str] = set()

    def hand_out(self, cell: Any, *, alone: bool) -> None:
        from distributed.protocol.pickle import dumps

        def attempt_if_same(wanted: str, pickled: bytes) -> tuple | None:
            # A local function is sent by value: a worker without this package would fail to import a module-level one.
            try:
                from wdrlr.paper.results import versions
            except ImportError:
                return None
            return pickle.loads(pickled)() if versions() == wanted else None

        where = {"workers": self._preferred, "allow_other_workers": True} if self._preferred else {}
        pickled = dumps(partial(self.attempt, cell))
        future = self.client.submit(attempt_if_same, versions(), pickled, pure=False, **where)
        self.handed_out[future] = _HandedOut(cell, alone, directed=bool(self._preferred))
        future.add_done_callback(self._finished.put)

    def next_outcome(self) -> tuple | None:
        """The outcome of a finished cell; None if there is none yet, or if the cell must be tried again."""
        from distributed import KilledWorker

        try:
            future = self._finished.get(timeout=ASK_SECONDS)
        except Empty:
            _ask(self.client, self.client.nthreads)
            return None
        task = self.handed_out.pop(future)
        try:
            outcome = future.result(timeout=ASK_SECONDS)
        except TimeoutError:  # still on its way from the worker
            _ask(self.client, self.client.nthreads)
            self.handed_out[future] = task
            self._finished.put(future)
            return None
        except KilledWorker:
            if task.alone:
                return task.cell, None, traceback.format_exc()
            self.suspects.append(task.cell)
            return None
        except Exception as error:
            if future.cancelled():
                raise _gone("it has lost the cells") from error
            return task.cell, None, traceback.format_exc()
        if outcome is None:
            if task.directed or not self._preferred:
                self._look_for_strangers()
            self.hand_out(task.cell, alone=task.alone)
        return outcome

    def _look_for_strangers(self) -> None:
        same, strangers = _workers(self.client)
        if strangers and not same:
            raise RuntimeError(f"{_mismatch(strangers)}; finished cells are saved, run again to continue")
        self._preferred = same if strangers else []
        if strangers.keys() - self._warned:
            warnings.warn(f"{_mismatch(strangers)}; it computes nothing", stacklevel=4)
            self._warned.update(strangers)
