"""The store of results: one csv file for each part, headed by a description of the machine."""

import os
import platform
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pandas as pd
from threadpoolctl import threadpool_info

from wdrlr.paper.results import SOLVER, processor, versions
from wdrlr.paper.store import Row, Table, heading

_SET = {"data": str, "kappa": str}
_BALL = _SET | {"radius": float}
_RACE = {"solver": str, "stop": float, "seconds": float, "memory_gb": float, "note": str}
_RACE |= {"upper": float, "lower": float, "rounds": float, "expected_rounds": float}
_SIZES = {"N": int, "n": int, "m": int, "k": int, "closed_form": bool}
_CELL = {"seconds": float, "solver": str, "n_fits": int, "n_uncertified": int}
_RUN = {"solver": str, "seconds": float, "note": str}
_LARGEST = {"largest": float, "fit_seconds": float, "gap": float}
_PATH = {"fits": int, "separate_seconds": float, "gap": float, "difference": float}
_GRID = {"data": str, "coding": str, "rows": str, "metric": str, "kappa": str}
_FITS = {"seconds": float, "fits": int, "certified": int, "largest_gap": float, "closed_form": int}
_ROUNDS = {"median_rounds": float, "largest_rounds": int}


_PARTS: dict[str, tuple[dict[str, type], tuple[str, ...]]] = {
    "lr": (_BALL | _RACE | _SIZES, (*_BALL, "solver")),
    "window": (_BALL | {"metric": str, "share": float} | _RACE, ("data", "kappa", "metric", "share", "solver")),
    "numbers": (_BALL | {"norm": str} | _RACE, (*_BALL, "norm", "solver")),
    "levels": (_BALL | _RACE, (*_BALL, "solver")),
    "radius-max": (_SET | _RUN | _LARGEST, (*_SET,)),
    "path": (_SET | {"task": str} | _RUN | _PATH, (*_SET, "task")),
    "algorithm1": (_BALL | _RACE, (*_BALL, "solver", "stop")),
    "all-violated": (_BALL | _RACE, (*_BALL, "solver")),
    "dro": (_BALL | _RACE | {"features": str}, (*_BALL, "solver", "features")),
    "growth": (_BALL | {"N": int, "m": int} | _RACE, (*_BALL,)),
    "threads": (_BALL | {"threads": int, "N": int, "m": int} | _RACE, (*_BALL, "threads")),
    "table1": ({"data": str, "method": str} | _CELL, ("data", "method")),
    "certify": (_GRID | {"solver": str} | _FITS | _ROUNDS, (*_GRID,)),
}
"""The columns of each part's rows, and their key."""

TABLES = {
    part: Table(
        columns,
        key,
        f"{part}.csv",
        optional=tuple(name for name, kind in columns.items() if kind is float),  # older files leave nan empty
        sort=False,
    )
    for part, (columns, key) in _PARTS.items()
}


class Store:
    """The rows of one part. Finished settings survive however the run ends."""

    def __init__(self, folder: Path, part: str):
        self.folder, self.table = folder, replace(TABLES[part], heading=machine())
        path = folder / f"{part}.csv"
        self.rows = self.table.read(path)
        if self.rows and heading(path) != self.table.heading:
            raise SystemExit(
                f"{path} is from another machine or other versions, and ratios are only valid within one run:\n"
                f"  {heading(path)}\nnow:\n  {self.table.heading}\nTo recompute this part, move the file away."
            )

    def has(self, setting: Row) -> bool:
        """Whether a setting (column: value) is done: it has rows, which were all added at once."""
        return any(row.items() >= setting.items() for row in self.rows)

    def add(self, setting: Row, rows: list[Row]) -> None:
        """Keep the rows of a setting."""
        new = [
            {name: kind((setting | row)[name]) for name, kind in self.table.columns.items()}  # converts NumPy's types
            for row in rows
        ]
        self.table.save(self.folder, new)
        self.rows += new
        where = ", ".join(str(value) if column == "data" else f"{column} {value}" for column, value in setting.items())
        for row in rows:
            print(f"  {where}: {_in_short(row)}", flush=True)


def read(path: Path) -> tuple[str, pd.DataFrame]:
    """The machine and the rows of a file."""
    table = TABLES[path.stem]
    return heading(path), table.to_frame(table.read(path))


def machine() -> str:
    """The machine and the versions that seconds depend on, in one line."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9 if hasattr(os, "sysconf") else float("nan")
    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    blas = sorted({f"{library['internal_api']}={library.get('architecture')}" for library in libraries})
    try:
        dro = [f"dro={version('dro')}"]
    except PackageNotFoundError:
        dro = []
    return (
        f"{processor()}, {os.cpu_count()} cores, {memory:.0f} GB, {_system()}; one thread; "
        f"{' '.join([versions(SOLVER), *dro, *blas])}"
    )


def _system() -> str:
    try:
        return f"{platform.freedesktop_os_release()['PRETTY_NAME']}, {platform.system()} {platform.release()}"
    except OSError:
        return platform.platform()


def _in_short(row: Row) -> str:
    words = [row["solver"]]
    words += [f"stop {row['stop']:g}"] if "stop" in row else []
    words += [f"{row['seconds']:.4f} s"]
    words += [f"F {row['upper']:.9f}"] if "upper" in row else []
    return ", ".join([*words, *([row["note"]] if row.get("note") else [])])
