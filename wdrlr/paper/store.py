"""Rows in csv files: typed columns, a key, files that are only ever replaced whole, and a lock for each folder.

A run killed at any moment leaves every row that it saved and nothing half-written, and several runs can share a folder.
"""

import csv
import io
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any

import pandas as pd

from wdrlr.extras import required
from wdrlr.files import replace_file

Row = dict[str, Any]

_LOCK_SECONDS = 60
_BOOLEANS = {"True": True, "False": False}
_HEADING = re.compile(r"\A# (.*)")


@dataclass(frozen=True)
class Table:
    """Rows of one kind, and how the files of a folder hold them.

    Parameters
    ----------
    columns
        The names of the columns with their types: str, int, float or bool.
    key
        The columns that identify a row.
    file_name
        The name of the file that a row belongs to, with columns of the key in braces.
    fault
        Returns what is wrong with a row whose types are right, or "".
    optional
        Float columns whose fields may be empty; an empty field is read as nan.
    heading
        Written as a comment above the columns; "" for none.
    sort
        Whether a file is sorted by the key; otherwise new rows are appended.
    """

    columns: Mapping[str, type]
    key: tuple[str, ...]
    file_name: str
    fault: Callable[[Row], str] = lambda row: ""
    optional: tuple[str, ...] = ()
    heading: str = ""
    sort: bool = True

    def save(self, folder: Path, rows: Iterable[Row]) -> None:
        """Put rows into the files of `folder`; a row with the same key is replaced.

        Raises
        ------
        ValueError
            If a row's columns or types are not those of the table, or it has a fault; nothing is written then.
        TimeoutError
            If another process holds the folder's lock for a minute.
        OSError
            If the folder cannot be written to, or its file system has no locks.
        """
        by_file: dict[Path, list[Row]] = {}
        for row in rows:
            self._check(row)
            by_file.setdefault(self._path(folder, row), []).append(row)
        with locked(folder):
            for path, new in by_file.items():
                merged = {self._key_of(row): row for row in [*self._read_or_set_aside(path), *new]}
                replace_file(path, self._to_csv([merged[key] for key in (sorted(merged) if self.sort else merged)]))

    def load(self, folder: Path, keys: Iterable[tuple]) -> dict[tuple, Row]:
        """Those of the rows with these keys (tuples in the order of `key`) that are stored, by key and in that order.

        Damaged files are set aside, see `read`.
        """
        keys = list(keys)
        paths = dict.fromkeys(self._path(folder, dict(zip(self.key, key, strict=True))) for key in keys)
        stored = {self._key_of(row): row for path in paths for row in self.read(path)}
        return {key: stored[key] for key in keys if key in stored}

    def read(self, path: Path) -> list[Row]:
        """The rows of one file, [] if there is no such file.

        A damaged file is renamed to ``<name>.damaged-<n>`` and counts as empty; a warning names it and says what is
        wrong.
        """
        try:
            return self._parse(path)
        except ValueError:
            # Only with the lock held is it certain that the damaged file is renamed, and not a repaired one.
            with locked(path.parent):
                return self._read_or_set_aside(path)

    def to_frame(self, rows: Iterable[Row]) -> pd.DataFrame:
        """Rows as a DataFrame with the table's columns."""
        return pd.DataFrame(list(rows), columns=list(self.columns))

    def _path(self, folder: Path, row: Row) -> Path:
        return folder / self.file_name.format_map(row)

    def _key_of(self, row: Row) -> tuple:
        return tuple(row[name] for name in self.key)

    def _check(self, row: Row) -> None:
        if list(row) != list(self.columns):
            raise ValueError(f"a result row has the columns {list(row)}, expected {list(self.columns)}")
        for name, kind in self.columns.items():
            if type(row[name]) is not kind:
                raise ValueError(f"column {name} of a result row is {row[name]!r}, expected {kind.__name__}")
        if fault := self.fault(row):
            raise ValueError(f"a result row is wrong: {fault}")

    def _to_csv(self, rows: Iterable[Row]) -> str:
        text = io.StringIO()
        if self.heading:
            text.write(f"# {self.heading}\n")
        writer = csv.DictWriter(text, list(self.columns), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()

    def _parse(self, path: Path) -> list[Row]:
        """The rows of one file, [] if there is no such file; ValueError says what is wrong with a damaged one.

        Blank lines, as editors leave them, do no harm.
        """
        try:
            text = path.read_bytes().decode("utf-8")
        except FileNotFoundError:
            return []
        if not text.endswith("\n"):
            raise ValueError("its last line is cut off")
        reader = csv.reader(io.StringIO(_HEADING.sub("", text)), strict=True)
        try:
            (_, header), *lines = [(reader.line_num, line) for line in reader if "".join(line).strip() or len(line) > 1]
        except (csv.Error, ValueError) as error:
            raise ValueError(f"it is not a csv file ({error})") from error
        if header != list(self.columns):
            raise ValueError(f"its columns are {header}, expected {list(self.columns)}")
        rows = [self._parse_line(number, line) for number, line in lines]
        for row in rows:
            if self._path(path.parent, row) != path:
                names = [name for _, name, _, _ in Formatter().parse(self.file_name) if name]
                raise ValueError(f"it holds a row of {_named(names, row)}")
        repeated = [key for key, count in Counter(map(self._key_of, rows)).items() if count > 1]
        if repeated:
            key = dict(zip(self.key, repeated[0], strict=True))
            raise ValueError(f"{_named(self.key, key)} is in it more than once")
        return rows

    def _parse_line(self, number: int, line: list[str]) -> Row:
        if len(line) != len(self.columns):
            raise ValueError(f"line {number} has {len(line)} fields, expected {len(self.columns)}")
        row: Row = {}
        for (name, kind), field in zip(self.columns.items(), line, strict=True):
            text = "nan" if not field and name in self.optional else field
            try:
                row[name] = _BOOLEANS[text] if kind is bool else kind(text)
            except (ValueError, KeyError):
                raise ValueError(f"line {number}, column {name}: {field!r} is not of type {kind.__name__}") from None
        if fault := self.fault(row):
            raise ValueError(f"line {number}: {fault}")
        return row

    def _read_or_set_aside(self, path: Path) -> list[Row]:
        """Like `read`; the caller holds the lock."""
        try:
            return self._parse(path)
        except ValueError as error:
            n = 1
            while (aside := path.with_name(f"{path.name}.damaged-{n}")).exists():
                n += 1
            path.rename(aside)
            warnings.warn(
                f"damaged result file {path}: {error}. It was set aside as {aside.name}, and its rows count as not "
                "computed.",
                stacklevel=3,
            )
            return []


def _named(names: Iterable[str], row: Row) -> str:
    return ", ".join(f"{name} {row[name]}" for name in names)


def heading(path: Path) -> str:
    """The comment above the columns of a file; "" if it has none."""
    match = _HEADING.match(path.read_text(encoding="utf-8"))
    return match[1] if match else ""


def check_writable(folder: Path) -> None:
    """Check, before any work, that rows can be stored in an existing folder.

    Raises
    ------
    OSError
        As `Table.save`.
    """
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise _refused(folder, error) from error
    with locked(folder):
        pass


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock.

    It is a lock of the operating system, which releases it when the process dies, so there are no stale locks. Whoever
    may write to the folder may lock it; the lock cannot be taken without write access to the lock file.
    """
    file = folder / ".lock.tmp"
    filelock = required("filelock", "a store of rows", "notebooks")
    try:
        mode = folder.stat().st_mode & 0o666
        lock = filelock.FileLock(file, timeout=_LOCK_SECONDS, mode=mode, fallback_to_soft=False)
        lock.acquire()
    except filelock.Timeout as error:
        raise TimeoutError(f"cannot lock {folder}: is another run writing there? Try again when it is done.") from error
    except OSError as error:
        raise _refused(file, error) from error
    try:
        yield
    finally:
        lock.release()


def _refused(path: Path, error: OSError) -> OSError:
    """An error of the same kind as `error` that names the path and the remedy."""
    remedy = "rows need an existing folder that you may write to, on a file system with locks; name another results_dir"
    return OSError(error.errno, f"{error.strerror} ({remedy})", str(path))
