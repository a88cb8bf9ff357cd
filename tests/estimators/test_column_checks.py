"""A slip in a table is told once, with the remedy; tables without one, and fits that are asked not to, are quiet."""

import re
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import OneHotEncoder

from wdrlr import (
    ColumnWarning,
    WassersteinLogisticRegression,
    WassersteinLogisticRegressionCV,
    fit_path,
    load_dataset,
    radius_max,
)
from wdrlr.estimators.column_checks import findings
from wdrlr.estimators.formulation import Formulation

N = 40
RNG = np.random.default_rng(0)
Y = np.arange(N) % 2
CLEAN = pd.DataFrame({"size": RNG.normal(size=N), "kind": RNG.choice(list("abc"), N)})


def found(table, weights=None, **parameters):
    table = pd.DataFrame(table)
    formulation = Formulation(**parameters)
    weights = np.ones(len(table)) if weights is None else weights
    labels = np.where(np.arange(len(table)) % 2, 1.0, -1.0)
    return findings(table, formulation, formulation.fit(table, labels, weights))


def with_column(values, name="new", **parameters):
    return found(CLEAN.assign(**{name: values}), **parameters)


FLAG = RNG.integers(0, 2, N)
DAYS = pd.date_range("2024-01-01", periods=N)
SLIPS = {
    "flag": (CLEAN.assign(new=FLAG), "Only 0 and 1 are in column 'new'"),
    "float flag": (CLEAN.assign(new=FLAG.astype(float)), "Only 0 and 1 are in column 'new'"),
    "dense dummies": (
        CLEAN[["size"]].join(pd.get_dummies(CLEAN["kind"], dtype=float)),
        "Only 0 and 1 are in columns 'a', 'b', 'c'",
    ),
    "boolean dummies": (pd.get_dummies(CLEAN), "Exactly one of columns 'kind_a', 'kind_b', 'kind_c' is true"),
    "id": (CLEAN.assign(new=[f"row {i}" for i in range(N)]), f"Nearly every one of the {N} rows .* column 'new'"),
    "row number": (CLEAN.assign(new=RNG.permutation(N) + 1), f"The {N} rows seem to be numbered by column 'new'"),
    "numbers": (CLEAN.assign(new=RNG.integers(1, 9, N).astype(str)), "Numbers are written as text in column 'new'"),
    "dates": (CLEAN.assign(new=DAYS.strftime("%Y-%m-%d")), "Dates or times are written as text in column 'new'"),
    "scales": (CLEAN.assign(new=1e4 * RNG.normal(size=N)), r"One norm .* differ by a factor .* in 'size', .* in 'new'"),
    "blanks": (CLEAN.assign(new=["a", "a "] * (N // 2)), "'new' has levels that differ only in blanks or a dot: 'a', "),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_each_slip_is_told_once_by_every_way_to_fit(slip):
    table, words = SLIPS[slip]
    (message,) = found(table)
    assert re.search(words, message)
    ways = {
        "fit": lambda **off: WassersteinLogisticRegression(**off).fit(table, Y),
        "cv": lambda **off: WassersteinLogisticRegressionCV([0.1, 1.0], cv=2, **off).fit(table, Y),
        "path": lambda **off: fit_path(table, Y, [0.1], **off),
        "radius": lambda **off: radius_max(table, Y, **off),
    }
    for fit in ways.values():
        with pytest.warns(ColumnWarning, match=words) as caught:
            fit()
        assert [(one.category, one.filename) for one in caught] == [(ColumnWarning, __file__)]
        assert "check_columns=False" in str(caught[0].message)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fit(check_columns=False)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ColumnWarning)
            fit()


def test_a_slip_changes_no_fit():
    table, _ = SLIPS["scales"]
    quiet = WassersteinLogisticRegression(check_columns=False).fit(table, Y)
    with pytest.warns(ColumnWarning):
        loud = WassersteinLogisticRegression().fit(table, Y)
    assert quiet.coef_.tolist() == loud.coef_.tolist()


@pytest.mark.parametrize(
    "values",
    [
        FLAG.astype(bool),
        FLAG + 1,
        np.zeros(N, dtype=int),
        pd.Categorical(FLAG),
        pd.Categorical(np.arange(N).astype(str), categories=[str(i) for i in range(9 * N)])[[i % 9 for i in range(N)]],
        [f"0{i % 9}" for i in range(N)],  # codes
        ["10-19", "20-29", "30-39", "40-49"] * (N // 4),  # ranges
        ["1", "2"] * (N // 2),  # two levels have no order to lose
        ["1", "2", "A", "B"] * (N // 4),
        ["jan", "feb", "mar", "apr"] * (N // 4),
        99 * RNG.normal(size=N) / 2,
    ],
    ids=["bool", "1 and 2", "constant", "declared", "digits", "codes", "ranges", "two", "mixed", "months", "scale"],
)
def test_what_may_well_be_meant_is_no_slip(values):
    assert with_column(values) == []


def test_what_the_user_says_of_a_column_is_believed():
    assert with_column(FLAG, categorical_features=["kind", "new"]) == []
    assert found({"new": FLAG}, categorical_features=None) == []
    numbers = RNG.integers(1, 9, N).astype(str)
    assert with_column(numbers, categorical_features=["kind", "new"]) == []
    assert with_column(pd.Categorical(numbers)) == []
    assert len(with_column(FLAG, categorical_features=["kind"])) == 1


def test_a_stray_level_makes_numbers_text_and_is_named():
    numbers = RNG.integers(1, 9, N).astype(str)
    numbers[3] = "?"
    (message,) = with_column(numbers)
    assert "They hold '?' too" in message
    numbers[4] = "unknown"
    assert with_column(numbers) == []


@pytest.mark.parametrize("text", ["{}.5", "{},5", "-{}", "1,00{}", " {} %", "{}e-3", "+.{}"])
def test_numbers_in_other_writing(text):
    (message,) = with_column([text.format(1 + i % 7) for i in range(N)])
    assert message.startswith("Numbers are written as text")


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%y", "%Y-%m-%dT%H:%M:%S", "%H:%M", "%Y-%m-%d %H:%M"])
def test_dates_in_other_writing_are_neither_numbers_nor_ids(form):
    times = pd.date_range("2024-01-01", periods=N, freq="25h40min")
    (message,) = with_column(times.strftime(form))
    assert message.startswith("Dates or times")


def test_ids_from_the_share_of_levels_on():
    ids = np.arange(N).astype(object).astype(str)
    names = np.char.add("n", ids)
    assert len(with_column(names)) == 1
    assert [message.split()[0] for message in with_column(ids)] == ["Nearly", "Numbers"]
    assert len(with_column(np.char.add(ids, ".5"))) == 1
    names[:4] = "n0"
    assert len(with_column(names)) == 1
    names[:9] = "n0"
    assert with_column(names) == []
    few = pd.DataFrame({"new": list("abcdefgh")})
    assert found(few) == []
    assert len(found({"new": list("abcdefghij")})) == 1


def test_row_numbers_are_found_in_a_part_of_the_rows_and_after_scaling():
    numbers = RNG.permutation(2 * N)[:N]
    for given in (numbers, 0.37 * numbers - 4.0, (numbers - numbers.mean()) / numbers.std()):
        assert len(with_column(given)) == 1
    assert with_column(np.where(numbers == numbers[0], numbers[1], numbers)) == []  # two the same
    assert with_column(numbers + (numbers == numbers[0]) * 0.5) == []
    assert with_column(RNG.permutation(9 * N)[:N] / N) == []
    assert found({"new": np.arange(19.0)}) == []
    assert len(found({"new": np.arange(20.0)})) == 1


def test_rows_without_weight_do_not_count():
    names = [f"n{i}" for i in range(N)]
    names[N // 2 :] = ["n0"] * (N // 2)
    weights = np.repeat([1.0, 0.0], N // 2)
    assert found({"new": names}) == []
    assert len(found({"new": names}, weights)) == 1
    wide = np.append(CLEAN["size"][: N - 1], 1e9)
    assert len(with_column(wide)) == 1
    assert with_column(wide, weights=np.append(np.ones(N - 1), 0.0)) == []


def test_dummies_are_found_among_other_flags():
    dummies = pd.get_dummies(CLEAN["kind"])
    before, after = RNG.random((2, N)) < 0.3
    (message,) = found(pd.concat([pd.Series(before, name="before"), dummies.assign(after=after)], axis=1))
    assert message.startswith("Exactly one of columns 'a', 'b', 'c' is true")
    assert found(dummies[["a", "b"]].assign(after=after)) == []
    assert found({"new": pd.Categorical(FLAG, [1, 0]), "other": pd.Categorical(1 - FLAG)}) != []
    assert found({"new": FLAG > 0, "other": FLAG > 0}) == []


def test_scales_are_those_that_the_metric_sees():
    numbers = pd.DataFrame({"small": RNG.normal(size=N), "large": 1e3 * RNG.normal(size=N)})
    for norm in ("l1", "l2", "linf"):
        assert len(found(numbers, norm=norm)) == 1
    assert found(numbers, feature_costs={"large": 1e-3}) == []
    assert found(numbers, feature_costs={"large": np.inf}) == []
    assert found(numbers, radius=0.0) == []
    assert len(found(numbers, radius=0.0, l1_penalty=0.1)) == 1
    assert found(numbers.assign(small=0.1), weights=RNG.random(N)) == []  # whose spread is rounding
    hidden = np.append(np.ones(N - 1), 1e-320)
    assert found(numbers.assign(small=np.arange(N) // (N - 1) * 2.0), weights=hidden) == []  # no weight to speak of
    assert found(numbers.assign(small=numbers["large"] + 1e6)) == []
    (message,) = found(numbers * [1.0, 1e-3], feature_costs={"large": 1e3})
    assert "times their costs" in message
    rare = (np.arange(N) == 3).astype(int)  # is told as a flag, not for its small scale
    assert len(found({"rare": rare, "other": 50 * RNG.normal(size=N)})) == 1


def test_the_dummies_of_a_column_transformer_have_a_remedy_that_works():
    table = CLEAN.assign(flag=FLAG > 0)
    encoded = ColumnTransformer([("dummies", OneHotEncoder(sparse_output=False), ["kind"])], remainder="passthrough")
    with pytest.warns(ColumnWarning, match=r'"passthrough" .*\.set_output\(transform="pandas"\)'):
        WassersteinLogisticRegression().fit(encoded.fit_transform(table[["size", "kind"]]), Y)
    passed = ColumnTransformer([("rest", "passthrough", ["size", "kind"])]).set_output(transform="pandas")
    assert found(passed.fit_transform(table)) == []


def test_a_fit_within_another_tool_points_at_neither_library():
    """A frame of this package or of scikit-learn would be of no use to the reader of the warning."""
    search = GridSearchCV(WassersteinLogisticRegression(), {"radius": [0.1]}, cv=2)
    with pytest.warns(ColumnWarning) as caught:
        search.fit(CLEAN.assign(flag=FLAG), Y)
    assert not [one for one in caught if "sklearn" in one.filename or "wdrlr/estimators" in one.filename]


def test_checks_need_no_scikit_learn():
    code = "import sys, wdrlr.estimators.column_checks; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("name", ["house-votes-84", "monks-3", "lymphography", "breast-cancer", "contraceptive"])
def test_the_data_sets_of_the_paper_are_quiet(name):
    data = load_dataset(name)
    assert found(data.X) == []


def test_a_radius_that_leaves_no_slope_is_told_by_fit_alone():
    X, y = pd.DataFrame({"a": list("uuvvuv") * 5, "x": np.tile([0.0, 0.5, 1.0], 10)}), [0, 0, 1, 1, 1, 0] * 5
    options = {"label_cost": 1.0}
    largest = radius_max(X, y, **options)
    with pytest.warns(ColumnWarning, match=r"All slopes are 0: with radius=.* below radius_max") as caught:
        model = WassersteinLogisticRegression(2 * largest, **options).fit(X, y)
    assert not model.coef_.any() and [one.filename for one in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        WassersteinLogisticRegression(2 * largest, **options, check_columns=False).fit(X, y)
        assert WassersteinLogisticRegression(0.9 * largest, **options).fit(X, y).coef_.any()
        WassersteinLogisticRegressionCV([2 * largest], cv=2, **options).fit(X, y)
        fit_path(X, y, [2 * largest], label_costs=[1.0])
        # Where no radius is to blame: the penalty alone does it, or the column is of no use.
        assert not WassersteinLogisticRegression(0.01, **options, l1_penalty=1.0).fit(X, y).coef_.any()
        assert not WassersteinLogisticRegression(0.01, **options).fit(X[["x"]], np.repeat([0, 1], 15)).coef_.any()
