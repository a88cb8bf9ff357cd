"""What works without the extras, and what an option says whose package is missing."""

import ast
import os
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from wdrlr.extras import required

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BLOCKED = (
    *("clarabel", "cvxpy", "scs", "osqp", "mosek", "dask", "distributed", "pooch", "requests", "tqdm", "ucimlrepo"),
    *("filelock", "seaborn", "matplotlib", "jinja2", "IPython", "papermill"),
)
"""What the extras bring."""

BARE = f"import sys; sys.modules.update(dict.fromkeys({BLOCKED}))\n"


def without_extras(code, **variables):
    """The standard output of a Python process that has only the core."""
    variables = {name: str(value) for name, value in variables.items()}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", BARE + code],
        env={name: value for name, value in os.environ.items() if name != "WDRLR_DATA"} | variables,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_core_fits_validates_and_explains_without_them():
    printed = without_extras(
        "import wdrlr\n"
        "assert wdrlr.__all__ and all(getattr(wdrlr, name) is not None for name in wdrlr.__all__)\n"
        "data = wdrlr.load_dataset('hayes-roth')\n"
        "grid = {'radii': [0.01, 0.1], 'l1_penalties': [0.0, 0.01], 'cv': 2}\n"
        "model = wdrlr.WassersteinLogisticRegressionCV(**grid).fit(data.X, data.y)\n"
        "assert len(model.cv_results_) == 4 and model.gap_ <= model.tol\n"
        "atoms = model.worst_case_distribution(data.X, data.y)\n"
        "assert wdrlr.changed_mass(atoms, data.X, data.y)['mass'].sum() > 0\n"
        "assert model._repr_html_() and 0 < wdrlr.radius_max(data.X, data.y) < float('inf')\n"
        "assert len(wdrlr.fit_path(data.X, data.y, radii=[0.1, 0.01])) == 2\n"
        "print(model.summary())"
    )
    assert "certified to tol" in printed


def test_result_rows_record_what_is_there():
    code = "from importlib import metadata\nfound = metadata.version\ndef version(name):\n"
    code += f"    if name in {BLOCKED}: raise metadata.PackageNotFoundError(name)\n    return found(name)\n"
    code += "metadata.version = version\nfrom wdrlr.paper import results\nrow = {'versions': results.versions()}\n"
    code += "print(row['versions']); assert results.versions_fault(row) == ''\n"
    code += "assert results.versions_fault({'versions': row['versions'][:-1]})"
    *others, cvxpy, clarabel = without_extras(code).split()
    assert (cvxpy, clarabel) == ("cvxpy=-", "clarabel=-")
    assert [entry.partition("=")[0] for entry in others] == "python wdrlr numpy scipy scikit-learn numba".split()


FIT = "from wdrlr import WassersteinLogisticRegression as Model\nModel({}).fit([['a'], ['b'], ['a']], [0, 1, 1])"
SOLVE = "from tests.instances import random_problem\nfrom wdrlr.solvers.column_constraint import solve_monolithic\n"
SOLVE += "solve_monolithic(random_problem(1, N=5), conic_solver={!r})"


@pytest.mark.parametrize(
    ("code", "option", "package", "extra"),
    [
        (FIT.format("solver='column-constraint'"), "solver='column-constraint'", "clarabel", "conic"),
        (FIT.format("solver='monolithic'"), "solver='monolithic'", "clarabel", "conic"),
        (FIT.format("p=2"), "p = 2, which takes solver='column-constraint',", "clarabel", "conic"),
        (SOLVE.format("CLARABEL"), "conic_solver='CLARABEL'", "clarabel", "conic"),
        (SOLVE.format("SCS"), "conic_solver='SCS'", "cvxpy", "conic"),
        ("import wdrlr.plots", "wdrlr.plots", "matplotlib", "notebooks"),
        (
            "from wdrlr.paper.notebook import check_parameters; check_parameters({'In': ['seed: int = 0'], 'seed': 0})",
            "a notebook",
            "filelock",
            "notebooks",
        ),
        (
            "import pathlib; from wdrlr.paper.cells import run_cells; run_cells([], pathlib.Path())",
            "run_cells",
            "tqdm",
            "notebooks",
        ),
        (
            "import pathlib; from wdrlr.paper.store import check_writable; check_writable(pathlib.Path())",
            "a store of rows",
            "filelock",
            "notebooks",
        ),
        (
            "from wdrlr.paper.dask_workers import connected\nwith connected(''): pass",
            "backend 'dask'",
            "dask",
            "dask",
        ),
    ],
    ids=lambda value: None if len(value) > 40 else value,
)
def test_an_option_names_the_package_and_the_extra(code, option, package, extra):
    caught = f"try:\n    exec({code!r})\nexcept ImportError as error:\n    print(error)"
    remedy = f"pip install 'wdrlr[{extra}]' (in a checkout: pip install -e '.[{extra}]')"
    assert without_extras(caught, PYTHONPATH=ROOT).strip() == f"{option} needs the package {package}: {remedy}"
    assert package in {Requirement(line).name for line in PYPROJECT["optional-dependencies"][extra]} | {"matplotlib"}


def test_a_download_names_the_extra_and_shipped_sets_and_the_user_s_need_none(tmp_path):
    code = "from wdrlr import load_dataset\nfrom wdrlr.data_prep.sources import DataUnavailableError\n"
    code += "assert load_dataset('car').N == 1728\ntry:\n    load_dataset('spect')\n"
    code += "except DataUnavailableError as error:\n    print(error)"
    printed = without_extras(code, XDG_CACHE_HOME=tmp_path, HOME=tmp_path)
    for package in ("pooch", "ucimlrepo"):
        assert f"a download needs the package {package}: pip install 'wdrlr[data]'" in printed
    assert "spect: the raw files are not on this machine" in printed and "SPECT.train" in printed
    (tmp_path / "car").mkdir()
    (tmp_path / "car" / "car.data").write_bytes((ROOT / "data_prep/raw/car/car.data").read_bytes())
    mine = "import wdrlr; print(wdrlr.load_dataset('car').record[0])"
    assert "WDRLR_DATA" in without_extras(mine, WDRLR_DATA=tmp_path)


def test_a_package_that_is_there_and_broken_speaks_for_itself(tmp_path, monkeypatch):
    (tmp_path / "broken_solver.py").write_text("import something_that_it_needs\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="something_that_it_needs"):
        required("broken_solver", "solver='broken'", "conic")


FOR_NOTEBOOKS = {"plots", "figures", "steps", "theorems", "theorems_algorithms", "theorems_guarantees"}
"""Modules that draw or display."""


def test_the_core_depends_on_what_its_modules_import_and_on_nothing_else():
    distributions = packages_distributions()
    imported = {"lazy-loader"}  # by __init__.py, which reads a stub
    for path in (*(ROOT / "wdrlr").rglob("*.py"), *(ROOT / "data_prep").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body if path.stem not in FOR_NOTEBOOKS else []:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            roots = {name.partition(".")[0] for name in names} - {"wdrlr", *sys.stdlib_module_names}
            imported |= {distributions[root][0].lower() for root in roots}
    assert imported == {Requirement(line).name for line in PYPROJECT["dependencies"]}
