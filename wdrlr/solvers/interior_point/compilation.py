"""How kernels are compiled: once for all processes, if there is a folder for the code, else once a process."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache
from numba.extending import is_jitted

logger = logging.getLogger("wdrlr")


_OPTIONS: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True, "nogil": True}
_OPTIONS_OF_HELPERS = {**_OPTIONS, "no_cpython_wrapper": True}


def jit(function: Callable[..., Any]) -> Any:
    """Compile a function when it is first called; it leaves the interpreter to other threads.

    In it, a division by zero gives inf or nan, as in numpy.

    The code is kept in NUMBA_CACHE_DIR, beside the function's module or in the user's cache folder, whichever comes
    first and can be written. Without such a folder, or where its files are damaged, nothing fails: the function is
    compiled anew in each process, and a warning is logged. So is the first compilation of a process, or whoever waits
    for it would wonder.
    """
    # numba notices a change of the function's module, but not one of these options: code kept before it is still used.
    compiled = njit(**_OPTIONS)(function)
    if is_jitted(compiled):  # under NUMBA_DISABLE_JIT it is the plain function
        try:
            compiled._cache = _Cache(function)  # type: ignore[attr-defined]
        except RuntimeError:
            _warn_not_kept("beside its source or in the user's cache folder")
    return compiled


def helper(function: Callable[..., Any]) -> Any:
    """Compile as ``jit`` does what only compiled functions call: it is kept with these, and costs less to compile."""
    return njit(**_OPTIONS_OF_HELPERS)(function)


class _Cache(FunctionCache):
    """numba's files of compiled code; one that cannot be read or written costs a compilation, not the call."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            found = super().load_overload(sig, target_context)
            if found is None:
                _say_compiling(self.cache_path)
            return found
        except Exception as error:  # of any type: a pickle may be cut anywhere
            _warn(f"compiled code in {self.cache_path} cannot be read ({_cause(error)}) and is compiled anew")
        try:
            self.flush()  # or else nothing could be saved beside what is damaged
        except OSError as error:
            _warn_not_kept(f"in {self.cache_path} ({_cause(error)})")
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception as error:
            _warn_not_kept(f"in {self.cache_path} ({_cause(error)})")


def _cause(error: Exception) -> str:
    # Without the file's name, so that the same cause is logged once.
    return getattr(error, "strerror", None) or type(error).__name__


@cache
def _say_compiling(path: str) -> None:
    # A warning, since nobody who waits at a prompt or a notebook sees less; cached, since it holds for all functions.
    logger.warning(
        "the solver is being compiled, for some five seconds; this happens once, the code is kept in %s", path
    )


def _warn_not_kept(where: str) -> None:
    _warn(
        f"compiled code cannot be kept {where}, so that each process compiles anew, for some five seconds: "
        "set NUMBA_CACHE_DIR to a folder that can be written"
    )


@cache
def _warn(message: str) -> None:
    logger.warning(message)
