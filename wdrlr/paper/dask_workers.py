"""Cells on the workers of a running dask scheduler: the way beyond one machine. Needs the extra "dask"."""

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

from wdrlr.paper.results import versions

if TYPE_CHECKING:
    from distributed import Client, Future

ANSWER_SECONDS = 8
"""How long a scheduler, or a worker, may take to answer."""

ASK_SECONDS = 2
"""How long nothing is heard of cells before the scheduler is asked whether it is there."""

WORKER_SECONDS = 60
"""How long it may take until there is a worker; a cluster that adapts starts one only when it is asked to."""


@contextmanager
def connected(scheduler: str) -> Iterator[Client]:
    """A client of a running scheduler whose workers have the versions of this process.

    Parameters
    ----------
    scheduler
        Its address; "" takes dask's configuration ("scheduler-address", DASK_SCHEDULER_ADDRESS).

    Raises
    ------
    ImportError
        If dask or distributed is not installed.
    ConnectionError
        If no address is known, nothing answers there, or there is no worker.
    RuntimeError
        If a worker has other versions, or cannot import this package.
    """
    try:
        import dask
        import distributed  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "backend 'dask' needs the packages dask and distributed: pip install 'wdrlr[dask]' "
            "(in a checkout: pip install -e '.[dask]')"
        ) from error
    # Without an address a Client would start a cluster of its own, on this machine.
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
            raise RuntimeError(_said(strangers))
        yield client
    finally:
        with suppress(TimeoutError):  # of a scheduler that does not answer
            client.close(timeout=1)


def _client_of(address: str) -> Client:
    from distributed import Client

    try:
        # A Client for an address where nobody answers can hang, even when it is thrown away. The thread is for
        # notebooks, whose own has a running event loop. A scheduler of this process answers to its own loop only.
        if not address.startswith("inproc:"):
            with ThreadPoolExecutor(1) as thread:
                thread.submit(asyncio.run, asyncio.wait_for(_identity(address), ANSWER_SECONDS)).result()
        return Client(address, timeout=ANSWER_SECONDS, set_as_default=False)
    except Exception as error:  # a web server's answer, for one, is read as the size of a message: a MemoryError
        said = str(error) or f"nothing in {ANSWER_SECONDS} seconds"
        raise ConnectionError(f"no dask scheduler answers at {address!r} ({said}): is it running?") from error


async def _identity(address: str) -> dict:
    from distributed import Security
    from distributed.core import rpc

    async with rpc(address, connection_args=Security().get_connection_args("client")) as scheduler:
        return await scheduler.identity()


def _ask(client: Client, question: Callable[[], Awaitable]) -> Any:
    """The scheduler's answer; ConnectionError if there is none in time."""

    async def answer() -> Any:
        return await question()

    try:
        return client.sync(answer, callback_timeout=ANSWER_SECONDS)
    except Exception as error:  # of the connection, or of a client that has closed itself
        raise _gone("it does not answer") from error


def _gone(reason: str) -> ConnectionError:
    return ConnectionError(f"the dask scheduler went away ({reason}); finished cells are saved, run again to go on")


def _workers(client: Client) -> tuple[list[str], dict[str, object]]:
    """The workers with the versions of this process, and those without, with what they have.

    A worker that is ended while it is asked, or is silent, is in neither: another takes its cells.
    """

    async def asked(worker: str) -> dict[str, object]:
        try:
            answer = client.run(versions, workers=[worker], on_error="return")
            # Half of it, since otherwise a silent worker is taken for a silent scheduler.
            return await asyncio.wait_for(answer, ANSWER_SECONDS / 2)
        except OSError as error:
            return {worker: error}

    async def all_asked() -> list[dict[str, object]]:
        return await asyncio.gather(*map(asked, await client.nthreads()))

    found = {worker: answer for answers in _ask(client, all_asked) for worker, answer in answers.items()}
    same = [worker for worker, answer in found.items() if answer == versions()]
    others = {
        worker: answer for worker, answer in found.items() if worker not in same and not isinstance(answer, OSError)
    }
    return same, others


def _said(strangers: dict[str, object]) -> str:
    worker, found = min(strangers.items())
    return f"the dask worker {worker} has other versions: {found}, here {versions()}"


def outcomes_by_dask(client: Client, attempt: Callable, cells: Sequence, n_jobs: int) -> Iterator[tuple]:
    """Yield ``attempt(cell)`` as the cells are finished, in any order, while workers come and go.

    A worker that comes later with other versions computes nothing, and a warning names it. Workers that die are blamed
    on all cells that they had: such a cell is tried again alone, and if workers die then, too, it is an outcome without
    a row, with the traceback of that.

    Parameters
    ----------
    client
        See `connected`.
    attempt
        From a cell to (cell, row or None, traceback).
    n_jobs
        Cells handed out at a time; below 0 all of them.

    Raises
    ------
    ConnectionError
        If the scheduler goes away, or does not answer any more.
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
    """The cells that the workers have, and what is known of the workers.

    `suspects` are the cells that a worker had when it died.
    """

    def __init__(self, client: Client, attempt: Callable):
        self.client, self.attempt = client, attempt
        self.handed_out: dict[Future, _HandedOut] = {}
        self.suspects: list[Any] = []
        self._finished: SimpleQueue[Future] = SimpleQueue()
        self._preferred: list[str] = []  # workers, once there are others with other versions
        self._warned: set[str] = set()

    def hand_out(self, cell: Any, *, alone: bool) -> None:
        from distributed.protocol.pickle import dumps

        def attempt_if_same(wanted: str, pickled: bytes) -> tuple | None:
            # Being local, it is sent by value: a worker without this package would close itself over a name in it.
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
        """The outcome of a cell that is finished; None if there is none yet, or if its cell must be tried again."""
        from distributed import KilledWorker

        try:
            future = self._finished.get(timeout=ASK_SECONDS)
        except Empty:
            _ask(self.client, self.client.nthreads)
            return None
        task = self.handed_out.pop(future)
        try:
            outcome = future.result(timeout=ASK_SECONDS)
        except TimeoutError:  # on the way from the worker
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
            raise RuntimeError(f"{_said(strangers)}; finished cells are saved, run again to go on")
        self._preferred = same if strangers else []
        if strangers.keys() - self._warned:
            warnings.warn(f"{_said(strangers)}; it computes nothing", stacklevel=4)
            self._warned.update(strangers)
