import pytest

from wdrlr.notebook import check_parameters

DECLARED = {"dataset": str, "n_splits": int, "tol": float, "shuffle": bool, "methods": list[str]}
PARAMETERS_CELL = """
dataset: str = "spect"  # a name
n_splits: int = 2
tol: float = 1e-6
shuffle: bool = True
methods: list[str] = ["LR"]
"""
CHECK_CELL = "from wdrlr.notebook import check_parameters\n\ncheck_parameters(globals(), dataset=str)"


def run(*injected, before=(), after=()):
    """What IPython does: run cells one by one and keep their sources in `In`."""
    history = ["", *before, PARAMETERS_CELL, *injected, CHECK_CELL, *after]
    namespace = {"In": history}
    for source in history:
        if source != CHECK_CELL:
            exec(source, namespace)
    check_parameters(namespace, **DECLARED)


def test_defaults_and_given_values_pass():
    run()
    run("# Parameters\ntol = 1\nmethods = []\ndataset = 'car'\n")


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


def test_cells_that_do_not_parse_are_skipped():
    history = ["", "1 +", PARAMETERS_CELL, "x = (", CHECK_CELL]
    namespace = {"In": history}
    exec(PARAMETERS_CELL, namespace)
    check_parameters(namespace, **DECLARED)


def test_a_missing_value_is_named():
    with pytest.raises(NameError, match="'dataset' has no value"):
        check_parameters({}, dataset=str)


@pytest.mark.parametrize(
    "kind, value",
    [(int, True), (int, "3"), (int, 3.0), (float, "1e-3"), (float, False), (str, 3), (str, None), (bool, 1)],
)
def test_wrong_kinds_are_refused(kind, value):
    with pytest.raises(TypeError, match=f"'x' must be {kind.__name__}, got "):
        check_parameters({"x": value}, x=kind)


def test_yaml_numbers_that_are_text_come_with_the_remedy():
    with pytest.raises(TypeError, match=r"1\.0e-3"):
        check_parameters({"x": "1e-3"}, x=float)


@pytest.mark.parametrize("value", ["['LR']", "LR", ["LR", 1], ("LR",), None])
def test_what_is_no_list_of_text_is_refused(value):
    with pytest.raises(TypeError, match="'x' must be a list of str") as error:
        check_parameters({"x": value}, x=list[str])
    assert ("-y" in str(error.value)) == isinstance(value, str)
