"""Cells on the workers of a running dask scheduler: the way beyond one machine. Needs the extra "dask"."""

import asyncio
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from queue import Empty, SimpleQueue

from wdrlr.results import versions

ANSWER_SECONDS = 8
"""How long a scheduler may take to answer."""

ASK_SECONDS = 4
"""How long nothing is heard of cells before the scheduler is asked whether it is there."""

WORKER_SECONDS = 60
"""How long it may take until there is a worker; a cluster that adapts starts one only when it is asked to."""

_GO_ON = "finished cells are saved, run again to go on"


@contextmanager
def connected(scheduler: str) -> Iterator:
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
    OtherVersions
        If a worker has other versions, or cannot import this package.
    """
    try:
        import dask
        from distributed import Client
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
    try:
        # A Client for an address where nobody answers can hang, even when it is thrown away. The thread is for
        # notebooks, whose own has a running event loop. A scheduler of this process answers to its own loop only.
        if not address.startswith("inproc:"):
            with ThreadPoolExecutor(1) as thread:
                thread.submit(asyncio.run, asyncio.wait_for(_identity(address), ANSWER_SECONDS)).result()
        client = Client(address, timeout=ANSWER_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        # also a TimeoutError, which is an OSError
        said = str(error) or f"nothing in {ANSWER_SECONDS} seconds"
        raise ConnectionError(f"no dask scheduler answers at {address!r} ({said}): is it running?") from error
    with client:
        try:
            client.submit(versions, pure=False).result(timeout=WORKER_SECONDS)
        except TimeoutError:
            raise _no_worker(address) from None
        except ImportError:
            pass  # said below, with the worker's name
        asked = client.sync(client.run, versions, on_error="return", callback_timeout=WORKER_SECONDS)
        # An OSError is of the connection: that worker is gone, and another takes its cells.
        answers = {worker: found for worker, found in asked.items() if not isinstance(found, OSError)}
        if not answers:
            raise _no_worker(address)
        for worker, found in answers.items():
            if found != versions():
                raise OtherVersions(f"the dask worker {worker} has other versions: {found}, here {versions()}")
        yield client


async def _identity(address: str) -> dict:
    from distributed import Security
    from distributed.core import rpc

    async with rpc(address, connection_args=Security().get_connection_args("client")) as scheduler:
        return await scheduler.identity()


def _no_worker(address: str) -> ConnectionError:
    return ConnectionError(
        f"the dask scheduler at {address} has no worker: start some with `dask worker {address} --nthreads 1`"
    )


class OtherVersions(RuntimeError):
    """A worker has other versions than the process that gives it work, or cannot import this package."""


def _attempt_with(wanted: str, attempt: Callable, cell):
    """``attempt(cell)`` on a worker, unless it has other versions than those wanted: it may have come later."""
    if versions() != wanted:
        from distributed import get_worker

        raise OtherVersions(f"the dask worker {get_worker().address} has other versions: {versions()}, wanted {wanted}")
    return attempt(cell)


def outcomes_by_dask(client, attempt: Callable, cells: Sequence, n_jobs: int) -> Iterator[tuple]:
    """Yield ``attempt(cell)`` as the cells are finished, in any order.

    A cell that takes its worker down several times is an outcome without a row, with the traceback of that.

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
    OtherVersions
        If a worker that came later has other versions; it computes nothing.
    """
    waiting, cell_of, done = iter(cells), {}, SimpleQueue()

    def hand_out(n: int | None) -> None:
        for cell in islice(waiting, n):
            future = client.submit(_attempt_with, versions(), attempt, cell, pure=False)
            cell_of[future] = cell
            future.add_done_callback(done.put)

    try:
        hand_out(n_jobs if n_jobs > 0 else None)
        while cell_of:
            try:
                future = done.get(timeout=ASK_SECONDS)
            except Empty:
                try:
                    client.sync(client.scheduler.identity, callback_timeout=ANSWER_SECONDS)
                except (OSError, asyncio.CancelledError) as error:
                    raise ConnectionError(f"the dask scheduler does not answer; {_GO_ON}") from error
                continue
            if future.cancelled():
                raise ConnectionError(f"the dask scheduler went away; {_GO_ON}")
            cell = cell_of.pop(future)
            try:
                outcome = future.result()
            except OtherVersions as error:
                raise OtherVersions(f"{error}; {_GO_ON} without it") from None
            except (ImportError, AttributeError) as error:
                raise OtherVersions(f"a dask worker cannot import this package ({error}); {_GO_ON}") from error
            except Exception:
                outcome = cell, None, traceback.format_exc()
            yield outcome
            hand_out(1)
    finally:
        client.cancel(list(cell_of))
