"""Result rows, one per cell, in a csv file for each data set, protocol, method and seed; and their versions."""

import ast
import hashlib
import math
import re
import threading
from collections import Counter
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from platform import machine, python_version
from platform import processor as platform_processor

import pandas as pd

from wdrlr.paper.store import Row, Table

COLUMNS = {
    "dataset": str,
    "protocol": str,
    "method": str,
    "split": int,
    "seed": int,
    "tol": float,  # certified gap required
    "solver": str,
    "n_train": int,  # rows in the training part
    "n_test": int,  # rows in the test part
    "radius": float,  # chosen Wasserstein radius, in units of the protocol's ground metric
    "gamma": float,  # chosen Lasso penalty
    "cv_error": float,  # mean error over the folds at the chosen point; nan without cross-validation
    "test_error": float,  # share of the test part that is misclassified
    "constant": bool,  # all slopes of the chosen fit are exactly 0: it predicts the majority class
    "n_constant": int,  # number of such fits in the cell, cross-validation included
    "objective": float,  # objective of the final fit: an upper bound on the optimal value
    "gap": float,  # objective minus a lower bound on the optimal value
    "n_iter": int,  # iterations of the final fit
    "n_cuts": int,  # constraints at the end of the final fit
    "conic_solver": str,  # empty for the tailored solver
    "n_fits": int,  # fits in the cell, cross-validation included
    "n_uncertified": int,  # number of these whose gap is above tol
    "n_warnings": int,  # convergence warnings of the final fit and of the cross-validation, separable data included
    "warning": str,  # the first line of the first warning of each category
    "seconds": float,  # wall clock of the final fit, from a cold start, without the identification
    "solver_seconds": float,  # the solver's share of it
    "identification_seconds": float,  # wall clock of the simulation behind PI's penalty; nan for other methods
    "cv_seconds": float,  # wall clock of the cross-validation
    "versions": str,  # of Python and the packages, with the stamp of this package's sources; see `versions`
}
"""Columns of a result row, with their types. Errors are shares in [0, 1]."""

KEY = ("dataset", "protocol", "method", "seed", "tol", "solver", "split")
"""The columns that identify a cell."""

SOLVER = ("wdrlr.model", "wdrlr.solvers", "wdrlr.solvers.interior_point", "wdrlr.estimators")
"""The packages that a fit can depend on."""

STAMPED = (
    *SOLVER,
    *("wdrlr.paper.protocols", "wdrlr.paper.methods", "wdrlr.paper.baselines", "wdrlr.paper.variants"),
    *("wdrlr.paper.solver_ends", "wdrlr.paper.synthetic"),
    *("wdrlr.paper.cells", "wdrlr.datasets", "wdrlr.data_prep", "wdrlr.data_prep.recipes"),
)
"""The packages and modules that a row can depend on."""

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "cvxpy", "clarabel")
_ABSENT = "-"
# A row ends with its versions, and these end with a number that always has three parts, so that truncation is detected.
_ALL_VERSIONS = re.compile(rf"python=\S+ wdrlr=\S+( \S+=\S+)* {_PACKAGES[-1]}=({_ABSENT}|\d+\.\d+\.\d\S*)")
# Python 3.11 cannot parse two sources at the same time: threads of a dask worker would get a SystemError.
_ONE_TREE_AT_A_TIME = threading.Lock()


@cache
def versions(stamped: tuple[str, ...] = STAMPED) -> str:
    """The versions that a number can depend on, as "name=version" separated by blanks.

    The version of wdrlr ends in "+" and the stamp of its sources, which change more often than the version. A package
    that is not installed has "-".
    """
    packages = [
        f"wdrlr={version('wdrlr')}+{source_stamp(stamped)}",
        *(f"{name}={_installed(name)}" for name in _PACKAGES),
    ]
    return " ".join([f"python={python_version()}", *packages])


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return _ABSENT


def source_stamp(stamped: tuple[str, ...] = STAMPED) -> str:
    """Eight hexadecimal digits that change with the code of these packages and modules.

    Comments, docstrings and layout do not count. By default, nor do modules that only present or store rows. Stamps are
    comparable only under the same version of Python, which writes the code that is hashed.
    """
    code = hashlib.sha256()
    for name in stamped:
        package, _, module = name.rpartition(".")
        single = files(package) / f"{module}.py"
        sources = [single] if single.is_file() else files(name).iterdir()
        for file in sorted(sources, key=lambda file: file.name):
            if file.name.endswith(".py"):
                code.update(f"{name}/{file.name}\n{_bare(file.read_text(encoding='utf-8'))}\n".encode())
    return code.hexdigest()[:8]


def _bare(source: str) -> str:
    """The code of a module without comments, layout and docstrings."""
    with _ONE_TREE_AT_A_TIME:
        tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            # A string that stands alone is a docstring, or documents the name above it.
            vars(node)["body"] = [statement for statement in body if not _is_text(statement)] or [ast.Pass()]
    return ast.unparse(tree)


def _is_text(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
    return False


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


def versions_fault(row: Row) -> str:
    """The fault in the versions of a row, "" if there is none."""
    return "" if _ALL_VERSIONS.fullmatch(row["versions"]) else f"its versions are cut off ({row['versions']!r})"


def other_versions(rows: pd.DataFrame, stamped: tuple[str, ...] = STAMPED) -> str:
    """A sentence on the rows computed by versions other than those in use: how many, and what differs; "" if none."""
    now = _by_name(versions(stamped))
    counts = {made_by: n for made_by, n in Counter(rows["versions"]).items() if _by_name(made_by) != now}
    if not counts:
        return ""
    others = [_by_name(made_by) for made_by in counts]
    differing = []
    for name in sorted({name for made_by in others for name in made_by} | now.keys()):
        recorded = {made_by.get(name, "not recorded") for made_by in others} - {now.get(name)}
        if recorded:
            differing.append(f"{name} {', '.join(sorted(recorded))}, now {now.get(name, 'none')}")
    return (
        f"{sum(counts.values())} of these {len(rows)} rows were computed by other versions ({'; '.join(differing)}); "
        "an empty results_dir computes them anew."
    )


def _by_name(versions: str) -> dict[str, str]:
    return {name: number for name, _, number in (entry.partition("=") for entry in versions.split())}


def _fault(row: Row) -> str:
    if not (row["cv_error"] >= 0 or math.isnan(row["cv_error"])) or not 0 <= row["test_error"] <= 1:
        return "an error is not a share in [0, 1]"
    return versions_fault(row)


RESULTS = Table(COLUMNS, KEY, "{dataset}_{protocol}_{method}_seed{seed}.csv", _fault)
"""The store of result rows."""

load_rows, save_rows, to_frame = RESULTS.load, RESULTS.save, RESULTS.to_frame
