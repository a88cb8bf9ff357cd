"""Bad values for every parameter of every notebook, and what is said; notebooks whose `parameters` tag is gone."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import papermill
import pytest
from papermill.translators import PythonTranslator

from wdrlr.paper.notebook import DEPENDENT_KINDS, KINDS

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = {path.stem: nbformat.read(path, 4) for path in sorted(FOLDER.glob("*.ipynb"))}
TABLES = "table1 table2 table3 table4 figure3 figure4"
CATEGORICAL = "table1 table4 figure3 significance"
SETTINGS = f"{TABLES} significance"
SHARED = f"{SETTINGS} differences"
OPEN = "open_predictions"
NAN, INF = float("nan"), float("inf")
FILE = "FILE"  # stands for the path of a file

# Notebooks, parameter, bad values, and what the message says beside the parameter's name: the remedy.
NOT_A_SEED = [-1, 2**31, 1.0, True, NAN, "0", None]
NOT_A_FOLDER = [FILE, f"{FILE}/under", "null\0", 5, None]
TABLE = [
    (CATEGORICAL, "dataset", ["spekt", "", "credit-approval", 5, None], "one of 'all', 'breast"),
    (CATEGORICAL, "dataset", ["spekt"], "did you mean 'spect'?"),
    ("table2 table3 figure4", "dataset", ["hepatitus", "spect", ["all"]], "one of 'all', "),
    ("differences", "dataset", ["hepatitis", True], "one of 'all', 'breast-cancer'"),
    ("tutorial", "dataset", ["all", "credit", 5, None], "one of 'breast-cancer', "),
    (TABLES, "methods", [[], ["DRO"], ["LR", "LR"], ["all", "LR"]], "['all'], or"),
    (TABLES, "methods", ["LR", "['LR']"], "-y 'NAME: [a, b]'"),
    (f"{TABLES} tutorial {OPEN}", "n_splits", [0, 10**9, True, 2.0, "3", NAN], "integer from 1"),
    ("significance differences", "n_splits", [1, -3, 10**9, True, 2.0, "3", None], "integer from 2"),
    (SETTINGS, "first_split", [-1, False, 0.5, 10**12], "integer from 0"),
    (
        f"{SHARED} claims figure1 figure2 theorems tutorial {OPEN}",
        "seed",
        NOT_A_SEED,
        "integer from 0 to 2,147,483,647",
    ),
    (OPEN, "datasets", [[], ["spekt"], "all", ["all", "spect"], ["car", "car"]], "['all'], or"),
    (OPEN, "ranged", [[], ["all"], "car", ["car", "car"], None], "a non-empty list"),
    (OPEN, "methods", [[], ["all"], ["PI"], ["LR"], "DRO_kappa_1"], "a non-empty list"),
    (OPEN, "seconds", [0, -1, NAN, INF, True, "60"], "a number above 0"),
    (OPEN, "n_rows", [0, -1, 10**9, 2.0, True, "5"], "integer from 1"),
    (f"{SETTINGS} {OPEN}", "protocol", ["papers", "", None, 1], "one of 'code', 'paper'"),
    (f"{SHARED} figure2 {OPEN}", "compute_missing", ["true", 1, 0, None], "True or False"),
    (SHARED, "n_jobs", [10**9, 0, -(10**9), 2.0, True, "2"], "for each core of this machine, or -1 for one per core"),
    (SHARED, "backend", ["locky", "", None, True], "one of 'loky', 'sequential', 'dask'"),
    (SHARED, "scheduler", ["tcp://host:8786"], "empty unless backend is 'dask'"),
    (SHARED, "scheduler", [8786, None, "my host"], "an address such as tcp://host:8786"),
    (f"{SHARED} claims figure2 {OPEN}", "results_dir", NOT_A_FOLDER, "folder"),
    (
        f"figure2 figure3 figure4 significance differences {OPEN}",
        "results_dir",
        ["not-there"],
        "unless compute_missing is True",
    ),
    (" ".join(NOTEBOOKS), "figures_dir", NOT_A_FOLDER, "folder"),
    (f"{SETTINGS} claims figure2", "tol", [0, -1e-6, NAN, INF, True], "a number above 0"),
    (f"{SETTINGS} claims figure2", "tol", ["1e-6"], "in YAML write 1.0e-3, not 1e-3"),
    (SETTINGS, "solver", ["mosek", "tailor", None], "one of 'tailored', 'column-constraint'"),
    (
        "figure1",
        "sizes",
        [[], [1], [0, 50], [50, 50], [50.0], [True, 50], [NAN], 50, None],
        "each entry|without repeats",
    ),
    ("figure1", "sizes", ["[50]"], "-y 'NAME: [a, b]'"),
    ("figure1", "runs", [0, -1, 10**9, 2.0, True, "40"], "integer from 1"),
    ("figure1", "worst_case_size", [0, -1, 10**9, 2.0, True, "40"], "integer from 1"),
    ("figure1", "gamma", [0, -1e-3, NAN, True, "1e-3"], "a number above 0"),
    ("figure1", "gamma", [0.04, 1], "below the radius 1 / (2 sqrt(worst_case_size)) = 0.0316"),
    ("figure2", "grid", ["ful", "", None, 1], "one of 'full', 'quick'"),
    ("figure2", "n_runs", [0, -1, 10**9, 2.0, True, "2"], "integer from 1"),
    ("figure2", "label_costs", [[], ["2"], ["1", "1"], ["m", "all"], [NAN], None], "each entry|without repeats"),
    ("figure2", "label_costs", [[1], [1, "m"]], "as text, in quotes"),
    ("figure2", "label_costs", ["1", "m"], "-y 'NAME: [a, b]'"),
    ("figure2", "radius", [-0.1, NAN, INF, True, "0.1", None], "a number at least 0"),
    ("figure2 table3 table4", "time_limit", [0, -1, NAN, INF, True, "30"], "a number above 0"),
    ("figure2", "max_constraints", [0, -1, 5e5, True, "500000"], "integer from 1"),
    ("figure2", "conic_solver", ["clarabell", "tailored", None], "one of 'CLARABEL', 'MOSEK'"),
    ("theorems", "radius", [0, 1, 1.5, -0.3, NAN, True, "0.3"], "a number above 0 and below 1"),
    ("theorems", "slopes", [[], [0, 1], [0, 3, 1], [0, 1, 1], [0, 0, 3], [0, 1, 3, 4]], "intercept|non-empty"),
    (
        "theorems",
        "slopes",
        [[0, 1, NAN], [0, 1, 1000], [True, 1, 3], ["0", 1, 3], "[0, 1, 3]", None],
        "a non-empty list",
    ),
    ("theorems", "sample_sizes", [[], [0], [25, 25], [25.0], [True], "[25]", 25], "a non-empty list without repeats"),
    ("theorems", "n_features", [0, 17, 5.0, True, "5"], "integer from 1 to 16"),
    ("theorems", "n_runs", [0, -1, 10**9, 2.0, True, "2"], "integer from 1"),
    (
        "theorems",
        "growth_features",
        [[], [0], [2, 2], [2000], [True], [2.0], "[2]", 2],
        "a non-empty list without repeats",
    ),
    ("theorems", "atom_runs", [0, -1, 10**9, 2.0, True, "2"], "integer from 1"),
    ("theorems", "growth_runs", [0, -1, 10**9, 2.0, True, "2"], "integer from 1"),
    ("tutorial", "radius", [-0.1, NAN, INF, True, "0.1", None], "a number at least 0"),
    ("tutorial", "shifts", [[], [-0.1], [0, 1.1], [0, 0], [NAN], [True], ["0.1"], "[0.1]", 0.1], "a non-empty list"),
]
CASES = [
    (name, parameter, value, words)
    for names, parameter, values, words in TABLE
    for name in names.split()
    for value in values
]


def cell(name, which):
    (found,) = [one for one in NOTEBOOKS[name].cells if one.get("id") == which]
    return found.source


def check(name, given):
    """Run the cells up to the check as papermill would have them run, without a kernel."""
    cells = [cell(name, "parameters"), PythonTranslator.codify(given, "Parameters"), cell(name, "check")]
    namespace = {"In": ["", *cells]}
    for source in cells:
        exec(source, namespace)


def declared(name):
    """The parameters with their types and defaults."""
    return {
        statement.target.id: (ast.unparse(statement.annotation), ast.literal_eval(statement.value))
        for statement in ast.parse(cell(name, "parameters")).body
    }


@pytest.mark.parametrize("name, parameter, value, words", CASES)
def test_a_bad_value_is_refused_with_the_parameter_s_name_and_a_remedy(
    name, parameter, value, words, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / FILE).write_text("")
    with pytest.raises(ValueError) as error:
        check(name, {"figures_dir": "out"} | {parameter: value})
    assert re.search(rf"\b{parameter}\b", str(error.value))
    assert any(one in str(error.value) for one in words.split("|")), error.value
    assert [path.name for path in tmp_path.rglob("*")] == [FILE]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_parameter_is_in_the_table(name):
    assert {parameter for notebook, parameter, _, _ in CASES if notebook == name} == set(declared(name))


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_parameter_has_the_type_of_its_default_unless_the_annotation_names_a_kind(name):
    for annotation, default in declared(name).values():
        kind = ast.literal_eval(annotation) if annotation.startswith("'") else ""
        assert kind in KINDS if kind else type(default) is getattr(eval(annotation), "__origin__", eval(annotation))


def test_no_kind_is_left_without_a_parameter():
    used = {key for name in NOTEBOOKS for parameter, (kind, _) in declared(name).items() for key in (parameter, kind)}
    assert {*KINDS, *DEPENDENT_KINDS} <= {key.strip("'") for key in used}


def test_papermill_lists_the_parameters_with_type_default_and_meaning(tmp_path):
    done = run(NOTEBOOKS["significance"], tmp_path, "--help-notebook")
    listed = " ".join(done.stdout.split())
    assert 'dataset: data set of Table 1 (default "all") a data set of Table 1, or "all"' in listed
    assert "n_splits: int from 2 (default 100) random splits into a training and a test part" in listed


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_defaults_pass_and_the_extremes(name, tmp_path):
    check(name, {})
    extremes = {"n_splits": 100_000, "seed": 2**31 - 1, "n_jobs": 1, "tol": 1, "figures_dir": str(tmp_path / "new")}
    extremes |= {"label_costs": ["m"], "shifts": [0, 1], "slopes": [1, 1, 2], "sizes": [2], "growth_features": [1]}
    check(name, {parameter: value for parameter, value in extremes.items() if parameter in declared(name)})
    assert not [*tmp_path.iterdir()]


SLOW = ["numba", "sklearn", "scipy", "cvxpy", "clarabel", "matplotlib", "seaborn", "distributed"]


@pytest.mark.parametrize(
    "given, said, slow",
    [
        ({}, "None", SLOW),
        ({"seeds": 1}, "unknown parameter 'seeds'", [*SLOW, "pandas", "numpy", "joblib"]),
        ({"seed": -1}, "parameter 'seed' must be", [*SLOW, "pandas", "numpy", "joblib"]),
        ({"dataset": "spekt"}, "parameter 'dataset' must be", SLOW),
    ],
)
def test_the_check_waits_for_no_slow_import(given, said, slow):
    runs = [
        [cell(name, "parameters"), PythonTranslator.codify(given, "Parameters"), cell(name, "check")]
        for name in NOTEBOOKS
        if given.keys() <= {"seeds", *declared(name)}
    ]
    code = (
        "import json, sys\n"
        "for cells in json.load(sys.stdin):\n"
        "    namespace, said = {'In': ['', *cells]}, None\n"
        "    try:\n"
        "        for source in cells: exec(source, namespace)\n"
        "    except Exception as error: said = error\n"
        "    print(said)\n"
        f"print([module for module in {slow} if module in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], input=json.dumps(runs), capture_output=True, text=True)
    *messages, imported = done.stdout.splitlines()
    assert len(messages) == len(runs) > 1 and all(message.startswith(said) for message in messages), done.stderr
    assert imported == "[]"


# By papermill


def run(notebook, folder, *arguments):
    nbformat.write(notebook, folder / "notebook.ipynb")
    command = [sys.executable, "-m", "papermill", "--no-progress-bar", "notebook.ipynb", "out.ipynb", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.fixture
def small():
    """The cells of the tutorial up to its check, and one that writes a file."""
    cells = [*NOTEBOOKS["tutorial"].cells[:4], nbformat.v4.new_code_cell("open('n', 'w').write(str(n_splits))")]
    notebook = nbformat.from_dict(NOTEBOOKS["tutorial"] | {"cells": cells})
    return nbformat.reads(nbformat.writes(notebook), 4)  # a copy


def without_tags(notebook):
    for one in notebook.cells:
        one.metadata.pop("tags", None)
    return notebook


@pytest.mark.parametrize(
    "given", [("-p", "n_splits", "3"), ("-y", "shifts: [0.5]"), ("-p", "n_split", "3")], ids=lambda given: given[1]
)
def test_what_is_given_to_a_notebook_without_the_tag_is_refused_and_nothing_is_written(small, tmp_path, given):
    done = run(without_tags(small), tmp_path, *given)
    assert done.returncode != 0
    assert f"no cell tagged 'parameters', so the values given for {given[1].partition(':')[0]} would" in done.stderr
    assert not (tmp_path / "n").exists()


def test_without_tag_and_parameters_the_defaults_are_used(small, tmp_path):
    assert run(without_tags(small), tmp_path).returncode == 0
    assert (tmp_path / "n").read_text() == "20"


def test_with_the_tag_what_is_given_is_used_also_in_a_second_run_of_the_output(small, tmp_path):
    assert run(small, tmp_path, "-p", "n_splits", "3").returncode == 0
    assert (tmp_path / "n").read_text() == "3"
    assert run(nbformat.read(tmp_path / "out.ipynb", 4), tmp_path, "-p", "n_splits", "4").returncode == 0
    assert (tmp_path / "n").read_text() == "4"


def test_a_second_run_of_an_output_whose_tags_are_gone_is_refused(small, tmp_path):
    assert run(small, tmp_path, "-p", "n_splits", "3").returncode == 0
    done = run(without_tags(nbformat.read(tmp_path / "out.ipynb", 4)), tmp_path, "-p", "n_splits", "4")
    assert done.returncode != 0 and "the values given for n_splits would not be used" in done.stderr
    assert (tmp_path / "n").read_text() == "3"


@pytest.mark.parametrize(
    "name, given, message",
    [
        ("table1", {"n_jobs": 10**9}, "parameter 'n_jobs' must be an integer from 1 to"),
        ("theorems", {"seed": -1}, "parameter 'seed' must be an integer from 0"),
        ("tutorial", {"shifts": [0.0, 1.5]}, "parameter 'shifts' must be a non-empty list"),
    ],
)
def test_a_run_stops_at_the_check(name, given, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(papermill.PapermillExecutionError) as error:
        papermill.execute_notebook(FOLDER / f"{name}.ipynb", "out.ipynb", given, progress_bar=False)
    assert message in str(error.value) and error.value.exec_count == 3
    assert [path.name for path in tmp_path.iterdir()] == ["out.ipynb"]
