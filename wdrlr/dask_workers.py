"""Cells on the workers of a running dask scheduler: the way beyond one machine. Needs the extra "dask"."""

import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

from wdrlr.results import versions

ANSWER_SECONDS = 10
"""How long a scheduler may take to answer."""

WORKER_SECONDS = 60
"""How long it may take until there is a worker; a cluster that adapts starts one only when it is asked to."""


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
    RuntimeError
        If a worker has other versions, or cannot import this package.
    """
    try:
        import dask
        from distributed import Client
        from distributed.comm import resolve_address
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
        resolve_address(address)  # a Client of an address that is none hangs when it is thrown away
        client = Client(address, timeout=ANSWER_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        # also a TimeoutError, which is an OSError
        raise ConnectionError(f"no dask scheduler answers at {address!r} ({error}): is it running?") from error
    with client:
        try:
            client.submit(versions, pure=False).result(timeout=WORKER_SECONDS)
        except TimeoutError:
            raise ConnectionError(
                f"the dask scheduler at {address} has no worker: start some with `dask worker {address} --nthreads 1`"
            ) from None
        except ImportError:
            pass  # said below, with the worker's name
        for worker, found in client.run(versions, on_error="return").items():
            if found != versions():
                raise RuntimeError(f"the dask worker {worker} has other versions: {found}, here {versions()}")
        yield client


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
        If the scheduler goes away.
    """
    from distributed import as_completed

    waiting, cell_of = iter(cells), {}

    def hand_out(n: int | None) -> list:
        futures = {client.submit(attempt, cell, pure=False): cell for cell in islice(waiting, n)}
        cell_of.update(futures)
        return list(futures)

    in_flight = as_completed(hand_out(n_jobs if n_jobs > 0 else None), loop=client.loop)
    try:
        for future in in_flight:
            if future.cancelled():
                raise ConnectionError("the dask scheduler went away; finished cells are saved, run again to go on")
            cell = cell_of.pop(future)
            try:
                yield future.result()
            except Exception:
                yield cell, None, traceback.format_exc()
            in_flight.update(hand_out(1))
    finally:
        client.cancel(list(cell_of))
