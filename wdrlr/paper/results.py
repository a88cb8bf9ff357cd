"""Result rows, one a cell, in one csv file for each data set, protocol, method and seed; and the versions behind."""

import ast
import hashlib
import math
import re
import threading
from collections import Counter
from functools import cache
from importlib.metadata import version
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

_STAMPED = (
    *("wdrlr.model", "wdrlr.solvers", "wdrlr.solvers.interior_point", "wdrlr.estimators"),
    *("wdrlr.paper.protocols", "wdrlr.paper.methods", "wdrlr.paper.baselines", "wdrlr.paper.variants"),
    *("wdrlr.paper.residue", "wdrlr.paper.synthetic"),
    *("wdrlr.paper.cells", "wdrlr.datasets", "wdrlr.data_prep", "wdrlr.data_prep.recipes"),
)
"""The packages and modules that a number can depend on."""
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "cvxpy", "clarabel")
# A row ends with its versions, and they end with a number that always has three parts, so that a cut is seen.
_ALL_VERSIONS = re.compile(rf"python=\S+ wdrlr=\S+( \S+=\S+)* {_PACKAGES[-1]}=\d+\.\d+\.\d\S*")
# Python 3.11 cannot build the trees of two sources at a time: threads of a dask worker would get a SystemError.
_ONE_TREE_AT_A_TIME = threading.Lock()


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
            # A string that stands alone: a docstring, or what is said of the name above it.
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
    """What is wrong with the versions of a row, "" if nothing."""
    return "" if _ALL_VERSIONS.fullmatch(row["versions"]) else f"its versions are cut off ({row['versions']!r})"


def other_versions(rows: pd.DataFrame) -> str:
    """A sentence on the rows that other versions than those in use computed: how many, and what differs; "" if none."""
    now = _by_name(versions())
    counts = {made_by: n for made_by, n in Counter(rows["versions"]).items() if _by_name(made_by) != now}
    if not counts:
        return ""
    others = [_by_name(made_by) for made_by in counts]
    differing = []
    for name in sorted({name for made_by in others for name in made_by} | now.keys()):
        found = {made_by.get(name, "not recorded") for made_by in others} - {now.get(name)}
        if found:
            differing.append(f"{name} {', '.join(sorted(found))}, now {now.get(name, 'none')}")
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
