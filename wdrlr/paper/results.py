"""The store of result rows: one csv file per data set, protocol, method and seed; one row per cell.

Files are only ever replaced whole, so a run killed at any moment leaves every finished cell and nothing half
done. A lock around read, merge and replace lets several runs share a folder.
"""

import ast
import csv
import hashlib
import io
import math
import re
import tempfile
import threading
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from platform import machine, python_version
from platform import processor as platform_processor

import pandas as pd
from filelock import FileLock, Timeout

from wdrlr.files import replace_file

COLUMNS = {
    "dataset": str,
    "protocol": str,
    "method": str,
    "split": int,
    "seed": int,
    "tol": float,  # certified gap asked for
    "solver": str,
    "n_train": int,  # rows in the training part
    "n_test": int,  # rows in the test part
    "radius": float,  # chosen Wasserstein radius, in units of the protocol's ground metric
    "gamma": float,  # chosen Lasso penalty
    "cv_error": float,  # mean error over the folds at the chosen point; nan without cross-validation
    "test_error": float,  # share of the test part that is misclassified
    "constant": bool,  # all slopes of the chosen fit are exactly 0: it predicts the majority class
    "n_constant": int,  # fits in the cell of that kind, cross-validation included
    "objective": float,  # objective of the final fit: an upper bound on the optimal value
    "gap": float,  # objective minus a lower bound on the optimal value
    "n_iter": int,  # iterations of the final fit
    "n_cuts": int,  # constraints in hand at the end of the final fit
    "conic_solver": str,  # empty for the tailored solver
    "n_fits": int,  # fits in the cell, cross-validation included
    "n_uncertified": int,  # those of them whose gap is above tol
    "n_warnings": int,  # convergence warnings of the final fit and of the cross-validation, separable data included
    "warning": str,  # the first line of the first of each category
    "seconds": float,  # wall clock of the final fit, from cold, without the identification
    "solver_seconds": float,  # the solver's share of it
    "identification_seconds": float,  # wall clock of the simulation behind PI's penalty; nan for other methods
    "cv_seconds": float,  # wall clock of the cross-validation
    "versions": str,  # of Python and the packages, and what sources of this one; see `versions`
}
"""Columns of a result row, with their types. Errors are shares in [0, 1]."""

KEY = ("dataset", "protocol", "method", "seed", "tol", "solver", "split")
"""What tells one cell from another."""

_FILE_KEY = ("dataset", "protocol", "method", "seed")
_LOCK_SECONDS = 60
_STAMPED = (
    *("wdrlr.model", "wdrlr.solvers", "wdrlr.solvers.interior_point", "wdrlr.estimators"),
    *("wdrlr.paper.protocols", "wdrlr.paper.methods", "wdrlr.paper.baselines", "wdrlr.paper.variants"),
    *("wdrlr.paper.cells", "wdrlr.datasets", "wdrlr.data_prep"),
)
"""The packages and modules that a number can depend on."""
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "cvxpy", "clarabel")
# A row ends with its versions, and they end with a number that always has three parts, so that a cut is seen.
_ALL_VERSIONS = re.compile(rf"python=\S+ wdrlr=\S+( \S+=\S+)* {_PACKAGES[-1]}=\d+\.\d+\.\d\S*")
# Python 3.11 cannot build the trees of two sources at a time: threads of a dask worker would get a SystemError.
_ONE_TREE_AT_A_TIME = threading.Lock()
_BOOLEANS = {"True": True, "False": False}

Row = dict[str, object]


@cache
def versions() -> str:
    """The versions that a number can depend on, as "name=version" separated by blanks.

    That of wdrlr ends in "+" and the stamp of its sources, which differ more often than its version.
    """
    own = f"wdrlr={version('wdrlr')}+{source_stamp()}"
    return " ".join([f"python={python_version()}", own, *(f"{name}={version(name)}" for name in _PACKAGES)])


def source_stamp() -> str:
    """Eight hexadecimal digits that change with the code a number can depend on: the solvers, the cells, the recipes.

    Comments, docstrings and layout do not count, nor do the modules that only present or store rows. Stamps are
    comparable under one version of Python, which writes the code that is hashed.
    """
    code = hashlib.sha256()
    for name in _STAMPED:
        package, _, module = name.rpartition(".")
        single = files(package) / f"{module}.py"
        modules = [single] if single.is_file() else [one for one in files(name).iterdir() if one.name.endswith(".py")]
        for file in sorted(modules, key=lambda one: one.name):
            code.update(f"{name}/{file.name}\n{_bare(file.read_text(encoding='utf-8'))}\n".encode())
    return code.hexdigest()[:8]


def _bare(source: str) -> str:
    """The code of a module without comments, layout and docstrings."""
    with _ONE_TREE_AT_A_TIME:
        tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            # A string that stands alone: a docstring, or what is said of the name above it.
            node.body = [one for one in body if not (isinstance(one, ast.Expr) and _is_text(one.value))] or [ast.Pass()]
    return ast.unparse(tree)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


@cache
def processor() -> str:
    """The processor's name, which seconds depend on."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform_processor() or machine()
    known = dict(reversed([[part.strip() for part in line.split(":", 1)] for line in lines if ":" in line]))
    name = known.get("model name", machine())
    return f"{name} (family {known['cpu family']}, model {known['model']})" if "cpu family" in known else name


def results_file(folder: Path, dataset: str, protocol: str, method: str, seed: int) -> Path:
    """The file that holds the rows of one data set, protocol, method and seed (all splits, tolerances and solvers)."""
    return folder / f"{dataset}_{protocol}_{method}_seed{seed}.csv"


def check_writable(folder: Path) -> None:
    """Find out before any work whether rows can be stored in an existing folder.

    Raises
    ------
    OSError
        As `save_rows`.
    """
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise _refused(folder, error) from error
    with _locked(folder):
        pass


def save_rows(folder: Path, rows: Iterable[Row]) -> None:
    """Put `rows` into the store; a row with the same key is replaced.

    Raises
    ------
    ValueError
        If a row's columns or types are not those of `COLUMNS`; nothing is written then.
    TimeoutError
        If another process holds the folder's lock for a minute.
    OSError
        If the folder cannot be written to, or its file system has no locks.
    """
    by_file: dict[Path, list[Row]] = {}
    for row in rows:
        _check(row)
        by_file.setdefault(results_file(folder, *(row[name] for name in _FILE_KEY)), []).append(row)
    with _locked(folder):
        for path, new in by_file.items():
            merged = {_key(row): row for row in [*_read_or_set_aside(path), *new]}
            replace_file(path, _to_csv(sorted(merged.values(), key=_key)))


def load_rows(folder: Path, keys: Iterable[tuple]) -> dict[tuple, Row]:
    """The stored rows of the cells named by `keys` (tuples in the order of `KEY`), by key and in that order.

    Cells without a row are left out. A damaged file is renamed to ``<name>.damaged-<n>`` with a warning that
    names it and says what is wrong. Rows made by other versions of the packages are returned, with one warning
    that says how many and what differs.
    """
    keys = list(keys)
    stored: dict[tuple, Row] = {}
    for path in {results_file(folder, *key[:4]): None for key in keys}:
        try:
            rows = _parse(path)
        except ValueError:
            # Only under the lock is it certain that the file renamed is the damaged one and not its repair.
            with _locked(folder):
                rows = _read_or_set_aside(path)
        stored.update((_key(row), row) for row in rows)
    found = {key: stored[key] for key in keys if key in stored}
    _announce_other_versions(found.values(), folder)
    return found


def _announce_other_versions(rows: Iterable[Row], folder: Path) -> None:
    """Warn, once, if rows were made by other versions than those in use: how many, and what differs."""
    rows = list(rows)
    now = _by_name(versions())
    others = [made_by for row in rows if (made_by := _by_name(row["versions"])) != now]
    if not others:
        return
    differing = []
    for name in sorted({name for made_by in others for name in made_by} | now.keys()):
        found = {made_by.get(name, "not recorded") for made_by in others} - {now.get(name)}
        if found:
            differing.append(f"{name} {', '.join(sorted(found))}, now {now.get(name, 'none')}")
    warnings.warn(
        f"{len(others)} of the {len(rows)} rows from {folder.name} were made by other versions "
        f"({'; '.join(differing)}). An empty results_dir computes them anew.",
        stacklevel=3,
    )


def _by_name(versions: str) -> dict[str, str]:
    return {name: number for name, _, number in (entry.partition("=") for entry in versions.split())}


def to_frame(rows: Iterable[Row]) -> pd.DataFrame:
    """Result rows as a DataFrame with the columns of `COLUMNS`."""
    return pd.DataFrame(list(rows), columns=list(COLUMNS))


def _key(row: Row) -> tuple:
    return tuple(row[name] for name in KEY)


def _check(row: Row) -> None:
    if list(row) != list(COLUMNS):
        raise ValueError(f"a result row has the columns {list(row)}, expected {list(COLUMNS)}")
    for name, kind in COLUMNS.items():
        if type(row[name]) is not kind:
            raise ValueError(f"column {name} of a result row is {row[name]!r}, expected {kind.__name__}")


def _to_csv(rows: list[Row]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(COLUMNS), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _parse(path: Path) -> list[Row]:
    """The rows of one file, [] when there is none; ValueError says what is wrong with a damaged one.

    Blank lines, as editors leave them, are no damage.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return []
    if not text.endswith("\n"):
        raise ValueError("its last line is cut off")
    reader = csv.reader(io.StringIO(text), strict=True)
    try:
        (_, header), *lines = [(reader.line_num, line) for line in reader if "".join(line).strip() or len(line) > 1]
    except (csv.Error, ValueError) as error:
        raise ValueError(f"it is no csv file ({error})") from error
    if header != list(COLUMNS):
        raise ValueError(f"its columns are {header}, expected {list(COLUMNS)}")
    rows = [_parse_line(number, line) for number, line in lines]
    for row in rows:
        if results_file(path.parent, *(row[name] for name in _FILE_KEY)) != path:
            raise ValueError(f"it holds a row of {', '.join(f'{name} {row[name]}' for name in _FILE_KEY)}")
    repeated = [key for key, count in Counter(map(_key, rows)).items() if count > 1]
    if repeated:
        raise ValueError(f"split {repeated[0][-1]} is in it more than once")
    return rows


def _parse_line(number: int, line: list[str]) -> Row:
    if len(line) != len(COLUMNS):
        raise ValueError(f"line {number} has {len(line)} fields, expected {len(COLUMNS)}")
    row: Row = {}
    for (name, kind), field in zip(COLUMNS.items(), line, strict=True):
        try:
            row[name] = _BOOLEANS[field] if kind is bool else kind(field)
        except (ValueError, KeyError):
            raise ValueError(f"line {number}, column {name}: {field!r} is no {kind.__name__}") from None
    if not (row["cv_error"] >= 0 or math.isnan(row["cv_error"])) or not 0 <= row["test_error"] <= 1:
        raise ValueError(f"line {number}: an error is no share in [0, 1]")
    if not _ALL_VERSIONS.fullmatch(row["versions"]):
        raise ValueError(f"line {number}: its versions are cut off ({row['versions']!r})")
    return row


def _read_or_set_aside(path: Path) -> list[Row]:
    """The rows of one file; a damaged one is renamed and counts as empty. The caller holds the lock."""
    try:
        return _parse(path)
    except ValueError as error:
        n = 1
        while (aside := path.with_name(f"{path.name}.damaged-{n}")).exists():
            n += 1
        path.rename(aside)
        warnings.warn(
            f"damaged result file {path}: {error}. It was set aside as {aside.name}, and its cells count as not done.",
            stacklevel=3,
        )
        return []


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock.

    It is one of the operating system, which itself releases it when its process dies: there are no stale locks to
    judge. Whoever may write to the folder may lock it; without the right to write to the lock file nobody gets it.
    """
    file = folder / ".lock.tmp"
    try:
        lock = FileLock(file, timeout=_LOCK_SECONDS, mode=folder.stat().st_mode & 0o666, fallback_to_soft=False)
        lock.acquire()
    except Timeout as error:
        raise TimeoutError(f"cannot lock {folder}: is another run writing there?") from error
    except OSError as error:
        raise _refused(file, error) from error
    try:
        yield
    finally:
        lock.release()


def _refused(path: Path, error: OSError) -> OSError:
    """An error of the kind of `error` that names the path and the remedy."""
    remedy = "rows need an existing folder that you may write to, on a file system with locks; name another results_dir"
    return OSError(error.errno, f"{error.strerror} ({remedy})", str(path))
