import math

import pytest

from wdrlr.paper import cells as experiments
from wdrlr.paper import notebook, paths, runtimes
from wdrlr.paper.methods import METHODS
from wdrlr.paper.notebook import check_parameters
from wdrlr.paper.printed import TABLES, published_values
from wdrlr.paper.protocols import PROTOCOLS
from wdrlr.solvers import registry
from wdrlr.solvers.conic import SETTINGS

PARAMETERS_CELL = """
dataset: "data set" = "spect"  # a name
n_splits: int = 2
tol: float = 1e-6
methods: list[str] = ["LR"]
"""
CHECK_CELL = "from wdrlr.paper import notebook\n\nparameters = notebook.check_parameters(globals())"


def run(*injected, before=(), after=()):
    """What IPython does: run cells one by one and keep their sources in `In`."""
    history = ["", *before, PARAMETERS_CELL, *injected, CHECK_CELL, *after]
    namespace = {"In": history}
    for source in history:
        if source != CHECK_CELL:
            exec(source, namespace)
    return check_parameters(namespace)


def test_defaults_and_given_values_pass_and_are_returned():
    assert run() == {"dataset": "spect", "n_splits": 2, "tol": 1e-6, "methods": ["LR"]}
    given = run("# Parameters\ntol = 1\nmethods = ['all']\ndataset = 'car'\n")
    assert given == {"dataset": "car", "n_splits": 2, "tol": 1, "methods": ["all"]}


def test_without_a_history_as_in_a_script_the_annotations_count():
    namespace = {}
    exec(PARAMETERS_CELL, namespace)
    assert [*check_parameters(namespace)] == ["dataset", "n_splits", "tol", "methods"]
    namespace["n_splits"] = 0
    with pytest.raises(ValueError, match="'n_splits' must be an integer from 1"):
        check_parameters(namespace)


def test_an_unknown_parameter_is_named_with_the_closest_one():
    with pytest.raises(NameError, match=r"unknown parameter 'n_split'.*Did you mean 'n_splits'"):
        run("# Parameters\nn_split = 3\n")


def test_an_unknown_name_in_the_parameters_cell_is_named():
    with pytest.raises(NameError, match="unknown parameter 'radius'"):
        run("# by hand\nradius: float = 3.0\n")


def test_names_of_other_cells_do_not_matter():
    run(before=["scratch = 1", "magic = 2"], after=["rows = 3", "a, b = 1, 2"])


def test_a_second_parameters_cell_counts_anew():
    with pytest.raises(NameError, match="'tools'"):
        run(after=["rows = 1", PARAMETERS_CELL, "# Parameters\ntools = 1"])


def test_a_parameters_cell_that_was_mended_counts_as_the_newest():
    typo = PARAMETERS_CELL.replace("n_splits", "n_split")
    run(before=[typo])
    with pytest.raises(NameError, match=r"'n_split' has no kind in wdrlr.paper.notebook. Did you mean 'n_splits'"):
        run(after=[typo])


def test_the_kind_named_by_the_annotation_goes_before_that_of_the_name():
    with pytest.raises(ValueError, match="'n_splits' must be an integer from 2"):
        check_parameters({"In": ['n_splits: "int from 2" = 1'], "n_splits": 1})


def test_a_kind_can_depend_on_another_parameter_s_value_wherever_that_stands():
    cell = 'scheduler: str = "tcp://host:8786"\nbackend: str = "dask"'
    namespace = {"In": [cell], "scheduler": "tcp://host:8786", "backend": "dask"}
    check_parameters(namespace)
    with pytest.raises(ValueError, match="'scheduler' must be empty unless backend is 'dask'"):
        check_parameters(namespace | {"backend": "loky"})
    with pytest.raises(ValueError, match="'backend' must be one of"):
        check_parameters(namespace | {"backend": "locky"})


def test_cells_that_do_not_parse_are_skipped():
    history = ["", "1 +", PARAMETERS_CELL, "x = (", CHECK_CELL]
    namespace = {"In": history}
    exec(PARAMETERS_CELL, namespace)
    check_parameters(namespace)


def test_a_missing_value_is_named():
    with pytest.raises(NameError, match="'dataset' has no value"):
        check_parameters({"In": [PARAMETERS_CELL]})
    with pytest.raises(NameError, match="run the cell tagged 'parameters' first"):
        check_parameters({"In": ["rows = 3", CHECK_CELL]})


@pytest.mark.parametrize("given", ["n_splits = 3", "n_split = 3"])
def test_values_that_papermill_put_above_the_defaults_are_refused(given):
    with pytest.raises(RuntimeError, match=r"no cell tagged 'parameters', so the values given for n_splits? would not"):
        run(before=[f"# Parameters\n{given}\n"])


def test_values_of_an_earlier_round_in_the_same_session_are_not_refused():
    run(before=[PARAMETERS_CELL, "# Parameters\nn_splits = 3\n", CHECK_CELL])


# Kinds


@pytest.mark.parametrize(
    "kind, good, bad",
    [
        (notebook.integer(1, 3), [1, 3], [0, 4, True, 2.0, "2", None, math.nan]),
        (notebook.seed, [0, 2**31 - 1], [-1, 2**31, 0.5]),
        (notebook.number(least=0, most=1), [0, 1, 0.5], [-0.1, 1.1, math.nan, math.inf, True, "0.5", None]),
        (notebook.number(above=0, below=1), [0.5], [0, 1, 10**400]),
        (notebook.boolean, [True, False], [0, 1, "true", None]),
        (notebook.one_of("1", "m"), ["1", "m"], [1, "M", "", None, ["1"]]),
        (notebook.list_of(notebook.integer(1, 3)), [[1], [2, 1]], [[], [1, 1], [0], [1, True], (1,), "[1]", 1, None]),
        (notebook.list_of(notebook.integer(1, 3), repeats=True), [[1, 1]], [[]]),
        (notebook.methods, [["all"], ["LR", "PI"]], [[], "LR", ["all", "LR"], ["LR", "LR"], ["lr"]]),
        (notebook.dataset(), ["spect", "hepatitis"], ["all", "spekt", 5]),
        (notebook.dataset("table2"), ["all", "hepatitis"], ["spect"]),
        (notebook.scheduler("dask"), ["", "tcp://host:8786"], ["my host", 8786]),
        (notebook.scheduler("loky"), [""], ["tcp://host:8786"]),
    ],
)
def test_a_kind_takes_what_it_says_and_nothing_else(kind, good, bad):
    assert [value for value in good if kind(value)] == []
    assert [value for value in bad if not kind(value)] == []


def test_the_message_names_parameter_kind_value_and_remedy(monkeypatch):
    for value, kind, words in (
        ("1e-3", notebook.number(above=0), r"must be a number above 0 \(in YAML write 1.0e-3.*got '1e-3' \(str\)"),
        ("[1]", notebook.list_of(notebook.seed), r"must be a non-empty list .*use -y 'NAME: \[a, b\]'.*got '\[1\]'"),
        ([1, 0], notebook.list_of(notebook.integer(1, 3)), "each entry an integer from 1 to 3, got"),
        ("spekt", notebook.dataset(), r"one of 'breast-cancer'.*did you mean 'spect'\?"),
        (1, notebook.one_of("1", "m"), r"one of '1', 'm' \(as text, in quotes\), got 1 \(int\)"),
    ):
        monkeypatch.setitem(notebook.KINDS, "x", kind)
        with pytest.raises(ValueError, match=f"parameter 'x' .*{words}"):
            check_parameters({"In": ["x: object = 0"], "x": value})


def test_jobs_are_as_many_as_the_cores_can_bear(monkeypatch):
    monkeypatch.setattr("joblib.cpu_count", lambda: 2)
    accepted = [n for n in (-(10**9), -3, -2, -1, 0, 1, 8, 9, 10**9) if not notebook.jobs("loky")(n)]
    assert accepted == [-2, -1, 1, 8]
    assert "from 1 to 8, 4 for each core of this machine, or -1 for one per core" in notebook.jobs("loky")(9)
    assert notebook.jobs("dask")(500) == ""
    assert notebook.jobs("dask")(10**9)


# Folders


def test_a_folder_that_can_be_made_leaves_no_trace_of_the_trial(tmp_path):
    (tmp_path / "there").mkdir()
    for folder in (tmp_path / "there", tmp_path / "new" / "deep", tmp_path):
        assert notebook.figures_folder(str(folder)) == ""
        assert notebook.results_folder(True)(str(folder)) == ""
    assert [path.name for path in tmp_path.rglob("*")] == ["there"]


def test_the_project_s_folders_are_meant_by_an_empty_text(tmp_path, monkeypatch):
    (tmp_path / "figures").write_text("a file")
    monkeypatch.setattr(paths, "project_root", lambda: tmp_path)
    assert str(tmp_path / "figures") in notebook.figures_folder("")
    assert str(tmp_path / "figures" / "results") in notebook.results_folder(True)("")


@pytest.mark.parametrize("name", ["file", "file/under", "x" * 300, "null\0", "~nobody-of-this-name/x"])
def test_a_folder_that_cannot_be_made_is_refused_with_the_reason(tmp_path, name):
    (tmp_path / "file").write_text("")
    path = name if name.startswith("~") else f"{tmp_path}/{name}"
    assert "exists or can be made, and is writable (" in notebook.figures_folder(path)
    assert "exists or can be made, and is writable (" in notebook.results_folder(True)(path)


def test_a_folder_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    def refuse(dir):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(notebook.tempfile, "TemporaryDirectory", refuse)  # root may write anywhere
    assert "Permission denied" in notebook.figures_folder(str(tmp_path))
    assert notebook.results_folder(False)(str(tmp_path)) == ""  # it is only read


def test_a_folder_of_rows_must_be_there_if_nothing_is_computed(tmp_path):
    assert "unless compute_missing is True (there is no folder" in notebook.results_folder(False)(f"{tmp_path}/none")


@pytest.mark.parametrize("value", [3, None, True, ["out"]])
def test_what_is_no_text_is_no_folder(value):
    assert notebook.figures_folder(value) and notebook.results_folder(True)(value)


# Names written down a second time, since their modules take long to import


def test_the_names_are_those_of_the_modules():
    assert notebook.BACKENDS == experiments.BACKENDS
    assert notebook.SOLVERS == tuple(registry.SOLVERS)
    assert list(published_values("table1")["method"].unique()) == list(METHODS)
    assert notebook.TABLES == TABLES
    assert notebook.PROTOCOLS == tuple(PROTOCOLS)
    assert notebook.PROPOSED == tuple(name for name, method in METHODS.items() if method.is_proposed)
    assert notebook.GRIDS == tuple(runtimes.GRIDS)
    assert notebook.CONIC_SOLVERS == (*SETTINGS, "auto")


def test_a_method_and_a_solver_from_outside_are_taken(monkeypatch):
    assert notebook.methods(["LR", "NEW"]) and notebook.KINDS["solver"]("mine")
    monkeypatch.setitem(METHODS, "NEW", METHODS["LR"])
    monkeypatch.setitem(registry.SOLVERS, "mine", registry.SOLVERS["tailored"])
    assert notebook.methods(["LR", "NEW"]) == notebook.KINDS["solver"]("mine") == ""
