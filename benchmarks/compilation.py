"""What compiling costs: the first fit of a process without compiled code, and that of the next process.

    python -m benchmarks.compilation

Each row is one kind of problem: the CPU seconds of the first and of the second fit in a process with an empty folder
for compiled code, and of the first fit in a second process, all without imports. The last line names the functions
that a process which fits every kind compiles more than once.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from time import process_time

import numpy as np
import pandas as pd

from wdrlr import WassersteinLogisticRegression
from wdrlr.solvers.interior_point import kernels

LEVELS = {"a": "opqrs", "b": "xyz", "c": "st"}
KINDS: dict[str, dict] = {
    "mixed": {},
    "categories": {"columns": ["a", "b", "c"]},
    "numbers": {"columns": ["u", "v"]},
    "radius 0": {"radius": 0.0},
    "penalty": {"l1_penalty": 1e-3},
    "bound": {"coef_bound": 0.5},
    "no intercept": {"fit_intercept": False},
    "l2": {"norm": "l2"},
    "level costs": {"feature_costs": {"a": pd.DataFrame(2.0 - 2 * np.eye(5), list(LEVELS["a"]), list(LEVELS["a"]))}},
}
"""The options of each kind's classifier, and its columns."""


def fit(columns: tuple[str, ...] | list[str] = ("a", "b", "c", "u", "v"), radius: float = 0.01, **options) -> float:
    """Fit 200 random rows; CPU seconds."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.choice(list(levels), 200) for name, levels in LEVELS.items()})
    X[["u", "v"]] = rng.random((200, 2))
    y = rng.integers(0, 2, 200)
    began = process_time()
    WassersteinLogisticRegression(radius, **options).fit(X[list(columns)], y)
    return process_time() - began


def compiled_again() -> dict[str, int]:
    """The kernels with several signatures in this process, and how many these are."""
    counts = {name: len(getattr(kernel, "signatures", ())) for name, kernel in vars(kernels).items()}
    return {name: count for name, count in counts.items() if count > 1}


def in_process(call: str, folder: str) -> list[str]:
    """What a new process prints of the values of ``call``; its compiled code is kept in the folder."""
    code = f"from benchmarks.compilation import *; print(*{call}, sep='\\n')"
    environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.splitlines()


def row_of(kind: str) -> dict:
    """The row of one kind of problem."""
    with tempfile.TemporaryDirectory() as folder:
        first, second = in_process(f"[fit(**KINDS[{kind!r}]) for _ in range(2)]", folder)
        (kept,) = in_process(f"[fit(**KINDS[{kind!r}])]", folder)
    return {"kind": kind, "first": float(first), "second": float(second), "next process": float(kept)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    arguments = parser.parse_args()
    print(pd.DataFrame([row_of(kind) for kind in arguments.kinds]).round(2).to_string(index=False))
    with tempfile.TemporaryDirectory() as folder:
        calls = f"[[fit(**KINDS[kind]) for kind in {arguments.kinds}], compiled_again()][1:]"
        print("compiled more than once:", *in_process(calls, folder))


if __name__ == "__main__":
    main()
