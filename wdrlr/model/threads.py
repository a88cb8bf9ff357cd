"""Threads: blocks of rows on several of them, BLAS on one, and sums in the same order however many there are.

Rows are cut into blocks by the size of the data alone, and what comes of the blocks is put together in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache, wraps
from itertools import pairwise
from typing import ParamSpec, TypeVar

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")

ENTRIES_A_BLOCK = 2**18
"""At least; a kernel takes half a millisecond for these, several times what it costs to hand a block to a thread."""
MOST_BLOCKS = 8

_threads: ContextVar[Executor | None] = ContextVar("threads", default=None)


@contextmanager
def threads(n_jobs: int | None) -> Iterator[None]:
    """In this context, blocks are worked on by so many threads; in a worker of joblib, one by one.

    Parameters
    ----------
    n_jobs : int or None
        As in joblib: None means 1 unless ``joblib.parallel_config`` says otherwise, -1 all processors.

    Raises
    ------
    ValueError
        If it is 0.
    """
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; use 1 for one thread or -1 for one per core.")
    in_worker = bool(get_active_backend()[0].nesting_level)
    count = 1 if in_worker else min(effective_n_jobs(n_jobs), MOST_BLOCKS)
    with ThreadPoolExecutor(count) as executor:  # a thread is started when there is work for it
        token = _threads.set(executor if count > 1 else None)
        try:
            yield
        finally:
            _threads.reset(token)


def blocks(n_rows: int, width: int, most: int = MOST_BLOCKS) -> list[slice]:
    """The blocks of so many rows with so many entries each: one if the entries are few, and at most ``most``."""
    count = min(n_rows * width // ENTRIES_A_BLOCK, n_rows, most)
    if count < 2:
        return [slice(0, n_rows)]
    return [slice(*ends) for ends in pairwise(n_rows * number // count for number in range(count + 1))]


def in_blocks(work: Callable[[slice], R], rows: list[slice]) -> list[R]:
    """What ``work`` returns for each block of rows, in the order of the blocks, several of which may run at a time."""
    executor = _threads.get()
    if executor is None or len(rows) == 1:
        return [work(some) for some in rows]
    # Each in the caller's context, which has NumPy's errstate, but for the threads: they must not wait for one another.
    contexts = [copy_context() for _ in rows]
    for context in contexts:
        context.run(_threads.set, None)
    return list(executor.map(lambda context, some: context.run(work, some), contexts, rows))


def filled(out: np.ndarray, width: int, work: Callable[[slice], np.ndarray]) -> np.ndarray:
    """``out`` with what ``work``, which reads ``width`` entries a row, returns for each block of rows."""

    def fill(rows: slice) -> None:
        out[rows] = work(rows)

    in_blocks(fill, blocks(len(out), width))
    return out


def on_one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """The function, during whose calls BLAS uses one thread; afterwards it uses as many as before."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with _controller().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return limited


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # it looks for libraries, which takes milliseconds
