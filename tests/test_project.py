"""The project's own files agree with each other."""

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import wdrlr

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_conda_environment_has_the_bounds_of_pyproject():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    conda = [entry for entry in environment["dependencies"] if isinstance(entry, str)]
    (pip,) = [entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)]
    assert pip[-1] == "--editable ."
    (python,) = [entry for entry in conda if re.fullmatch(r"python=3\.\d+", entry)]  # Binder reads no other form
    assert SpecifierSet(PYPROJECT["requires-python"]).contains(python.removeprefix("python="))
    assert not [name for name in ("binder", ".binder") if (ROOT / name).exists()]  # it would read only what is in there
    wanted = {*PYPROJECT["dependencies"], *requirements("all"), python, "pip"}
    assert sorted([*conda, *pip[:-1]]) == sorted(wanted)


def requirements(extra):
    """What an extra brings, the extras that it names included."""
    found = set()
    for requirement in PYPROJECT["optional-dependencies"][extra]:
        others = re.fullmatch(r"wdrlr\[(.*)\]", requirement)
        found |= set().union(*map(requirements, others[1].split(","))) if others else {requirement}
    return found


def test_the_packages_and_the_folders_that_were_asked_for_are_kept():
    everything = {Requirement(line).name for line in (*PYPROJECT["dependencies"], *requirements("all"))}
    assert everything >= set("jupyter papermill numpy pandas cvxpy mosek seaborn scipy ucimlrepo".split())
    for name in ("environment.yml", "notebooks/", "wdrlr/", "data_prep/", "figures/", "tests/", "README.md"):
        assert (ROOT / name).is_dir() if name.endswith("/") else (ROOT / name).is_file(), name


def test_the_extra_all_is_all_but_those_of_developers():
    others = PYPROJECT["optional-dependencies"].keys() - {"all", "docs", "test"}
    assert others == {"conic", "dask", "data", "mosek", "notebooks"}
    assert set().union(*map(requirements, others)) == requirements("all")


def test_the_constraints_are_versions_of_all_requirements_within_their_bounds():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert re.fullmatch(r"# CPython 3\.\d+\.\d+ \w+ \w+", lines[0])
    pinned = {}
    for line in lines[1:]:
        ((name, version),) = re.findall(r"^([\w.-]+)==([\w.+!]+)$", line)
        pinned[canonicalize_name(name)] = version
    for line in {*PYPROJECT["dependencies"], *requirements("all"), *requirements("test")}:
        requirement = Requirement(line)
        assert requirement.specifier.contains(pinned[requirement.name]), line


def test_bounds_stand_in_one_place():
    """Every dependency is bounded below and above, and versions agree where they stand twice."""
    for requirement in {*PYPROJECT["dependencies"], *requirements("all"), *requirements("docs")}:
        assert re.fullmatch(r"[a-z0-9-]+>=[\d.]+,<[\d.]+", requirement), requirement
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == wdrlr.__version__
    assert citation["license"] == PYPROJECT["license"] == "MIT"


def test_the_readme_has_two_commands_that_exist():
    readme = (ROOT / "README.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    for target in ("table1", "test"):
        assert f"make {target}" in readme
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_the_quick_start_of_the_readme_runs():
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "certified to tol" in done.stdout


@pytest.mark.parametrize("target", ["table1", "test", "docs"])
def test_make_knows_its_targets(target):
    done = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_importing_the_package_is_quiet_and_leaves_notebook_tools_alone():
    code = "import sys, wdrlr; print([m for m in ('seaborn', 'papermill', 'dask') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.strip() == "[]"


def test_importing_the_package_costs_next_to_nothing_and_a_default_fit_needs_no_cvxpy():
    code = (
        "import sys, wdrlr; heavy = {'sklearn', 'scipy', 'pandas', 'numpy', 'numba', 'cvxpy', 'matplotlib'}\n"
        "print(heavy & set(sys.modules))\n"
        "wdrlr.WassersteinLogisticRegressionCV(cv=2).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])\n"
        "wdrlr.radius_max([[0.0], [1.0], [2.0]], [0, 1, 1]); print('cvxpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split("\n")[:2] == ["set()", "False"], done.stderr


WITHOUT_TESTS_OF_THEIR_OWN = {
    "data_prep/__main__.py",  # in test_counts.py
    "data_prep/recipe.py",  # in test_recipes.py, as all data sets
}
"""The tests of their users test them; this list only shrinks."""


def test_every_module_has_its_tests_in_the_same_place():
    modules = {path.relative_to(ROOT / "wdrlr") for path in (ROOT / "wdrlr").rglob("*.py")}
    modules |= {path.relative_to(ROOT) for path in (ROOT / "data_prep").glob("*.py")}
    recipes = {name.replace("-", "_") for name in wdrlr.DATASETS}
    wanted = {path for path in modules if path.stem not in {"__init__", *recipes}}
    missing = {one.as_posix() for one in wanted if not (ROOT / "tests" / one.with_name(f"test_{one.name}")).is_file()}
    assert missing == WITHOUT_TESTS_OF_THEIR_OWN


def test_imports_go_down_only():
    lint = [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"]
    done = subprocess.run(lint, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_public_names_and_the_version():
    assert {*wdrlr.__all__, "__version__"} == set(dir(wdrlr)) and "WassersteinLogisticRegression" in wdrlr.__all__
    assert all(getattr(wdrlr, name) is not None for name in wdrlr.__all__)
    assert wdrlr.__version__ == importlib.metadata.version("wdrlr")
    with pytest.raises(AttributeError, match="attribute nothing"):
        wdrlr.nothing  # noqa: B018
