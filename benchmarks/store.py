"""Where results are kept: one csv file a part, with the machine in its first line."""

import io
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_info

from wdrlr.files import replace_file
from wdrlr.paper.results import processor, versions


class Store:
    """The rows of one part. A finished setting survives whatever ends the run."""

    def __init__(self, folder: Path, part: str, again: bool):
        self.path = folder / f"{part}.csv"
        self.machine = machine()
        self.rows = pd.DataFrame()
        if self.path.is_file() and not again:
            before, self.rows = read(self.path)
            if before != self.machine:
                raise SystemExit(
                    f"{self.path} is of another machine or of other versions, and ratios are of one run:\n  {before}\n"
                    f"now:\n  {self.machine}\nTo compute this part anew: --again."
                )

    def has(self, setting: dict) -> bool:
        """Whether a setting (column: value) is done: it has rows, which were all added at once."""
        if self.rows.empty:
            return False
        found = [
            np.isclose(self.rows[column], value, rtol=1e-9, atol=0)
            if column == "radius"
            else self.rows[column] == value
            for column, value in setting.items()
        ]
        return bool(np.logical_and.reduce(found).any())

    def add(self, setting: dict, rows: list[dict]) -> None:
        """Keep the rows of a setting."""
        new = pd.DataFrame([setting | row for row in rows])
        self.rows = new if self.rows.empty else pd.concat([self.rows, new], ignore_index=True)
        table = self.rows.to_csv(index=False, lineterminator="\n")
        replace_file(self.path, f"# {self.machine}\n{table}")
        where = ", ".join(str(value) if column == "data" else f"{column} {value}" for column, value in setting.items())
        for row in rows:
            print(f"  {where}: {_in_short(row)}", flush=True)


def read(path: Path) -> tuple[str, pd.DataFrame]:
    """The machine and the rows of a file."""
    first, _, table = path.read_text(encoding="utf-8").partition("\n")
    rows = pd.read_csv(io.StringIO(table), dtype={"data": str, "kappa": str})
    return first.removeprefix("# "), rows


def machine() -> str:
    """The machine and the versions that seconds depend on, in one line."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9 if hasattr(os, "sysconf") else float("nan")
    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    blas = sorted({f"{library['internal_api']}={library.get('architecture')}" for library in libraries})
    more = [f"{name}={found}" for name in ("dro",) if (found := _version(name))]
    return (
        f"{processor()}, {os.cpu_count()} cores, {memory:.0f} GB, {_system()}; one thread; "
        f"{' '.join([versions(), *more, *blas])}"
    )


def _system() -> str:
    try:
        return f"{platform.freedesktop_os_release()['PRETTY_NAME']}, {platform.system()} {platform.release()}"
    except OSError:
        return platform.platform()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _in_short(row: dict) -> str:
    words = [row["solver"]]
    words += [f"stop {row['stop']:g}"] if "stop" in row else []
    words += [f"{row['seconds']:.4f} s"]
    words += [f"F {row['upper']:.9f}"] if "upper" in row else []
    return ", ".join([*words, *([row["note"]] if row.get("note") else [])])
