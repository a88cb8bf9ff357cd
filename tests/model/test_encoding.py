import datetime
import decimal
import fractions

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from wdrlr.model.encoding import as_pandas, fit_encoding, level_matrix, level_scores, slope_names


def table():
    return pd.DataFrame(
        {
            "size": [1.5, 2.0, 3.0],
            "colour": pd.Categorical(["red", "blue", "red"], categories=["green", "red", "blue"]),
            "kind": ["b", "a", "b"],
            "flag": [True, False, True],
            "count": [3, 1, 2],
        }
    )


def test_dtype_decides_which_columns_are_categories():
    encoding = fit_encoding(table(), "from_dtype")
    assert encoding.numeric == [0, 4]
    assert encoding.categorical == [1, 2, 3]
    assert [levels.tolist() for levels in encoding.categories] == [["green", "red", "blue"], ["a", "b"], [False, True]]
    assert encoding.numbers(table()).tolist() == [[1.5, 3.0], [2.0, 1.0], [3.0, 2.0]]
    assert encoding.codes(table(), "error").tolist() == [[1, 1, 1], [2, 0, 0], [1, 1, 1]]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ([1, 4], [1, 4]),
        (["colour", "count"], [1, 4]),
        ([False, True, False, False, True], [1, 4]),
        ("all", [0, 1, 2, 3, 4]),
        ([], []),
        (None, []),
    ],
)
def test_categorical_features_can_be_named(chosen, expected):
    assert fit_encoding(table(), chosen).categorical == expected


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        (["shape"], "names columns that X does not have: \\['shape'\\]"),
        ([7], "positions outside 0..4: \\[7\\]"),
        ([True, False], "must have 5 entries"),
        ("some", "categorical_features must be"),
    ],
)
def test_wrong_names_are_refused(chosen, words):
    with pytest.raises(ValueError, match=words):
        fit_encoding(table(), chosen)


def test_missing_values_are_refused_with_a_remedy():
    data = table()
    data.loc[1, "kind"] = None
    with pytest.raises(ValueError, match=r"'kind' has 1 missing values; .*add_categories"):
        fit_encoding(data, "from_dtype")
    data = table()
    data.loc[1, "size"] = np.nan
    with pytest.raises(ValueError, match="NaN in the numeric column 'size'"):
        fit_encoding(data, "from_dtype").numbers(data)
    data["size"] = ["1", "2", "big"]
    with pytest.raises(ValueError, match=r"'size' is numeric but .*categorical_features"):
        fit_encoding(table(), "from_dtype").numbers(data)


def test_unknown_levels():
    encoding = fit_encoding(table(), "from_dtype")
    data = table()
    data["kind"] = ["a", "c", "d"]
    with pytest.raises(ValueError, match=r"'kind' has levels that were not seen in fit: 'c', 'd'"):
        encoding.codes(data, "error")
    assert encoding.codes(data, "ignore")[:, 1].tolist() == [0, -1, -1]


def column(values, dtype=None) -> pd.DataFrame:
    return pd.DataFrame({"c": pd.Series(list(values) * 3, dtype=dtype)})


DAYS = [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)]
SPANS = [datetime.timedelta(1), datetime.timedelta(2)]
TIMES = {
    "dates": column(DAYS),
    "datetimes": column([datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 2)], object),
    "Timestamps": column(map(pd.Timestamp, DAYS), object),
    "Periods": column([pd.Period(day, "D") for day in DAYS], object),
    "numpy's": column(np.array(DAYS, "datetime64[D]"), object),
    "times of day": column([datetime.time(1), datetime.time(2)]),
    "timedeltas": column(SPANS, object),
    "a missing one": column([*DAYS, pd.NaT], object).iloc[[0, 1, 3]],
    "datetime64": column(pd.to_datetime(DAYS)),
    "with a time zone": column(pd.to_datetime(DAYS).tz_localize("UTC")),
    "timedelta64": column(pd.to_timedelta(SPANS)),
    "period": column(pd.PeriodIndex(DAYS, freq="D")),
    "arrow date": column(DAYS, pd.ArrowDtype(pa.date32())),
    "arrow time": column([datetime.time(1), datetime.time(2)], pd.ArrowDtype(pa.time64("us"))),
    "arrow duration": column(SPANS, pd.ArrowDtype(pa.duration("us"))),
    "polars date": pl.DataFrame({"c": DAYS * 3}),
    "polars time": pl.DataFrame({"c": [datetime.time(1), datetime.time(2)] * 3}),
    "polars duration": pl.DataFrame({"c": SPANS * 3}),
    "pyarrow date": pa.table({"c": DAYS * 3}),
}


@pytest.mark.parametrize("table", TIMES.values(), ids=TIMES)
def test_times_are_neither_numbers_nor_levels_unless_named(table):
    table = as_pandas(table)
    with pytest.raises(ValueError, match=r"column 'c' .*, which is not a number; convert it, for example to days"):
        fit_encoding(table, "from_dtype").numbers(table)
    named = fit_encoding(table, ["c"])
    assert named.n_levels == (2,)
    assert named.codes(table, "error")[:2, 0].tolist() == [0, 1]


@pytest.mark.parametrize("dtype", [complex, object])
def test_complex_numbers_are_refused(dtype):
    table = column([1j, 2.0 + 0j], dtype)
    with pytest.raises(ValueError, match=r"column 'c' .*, which is not a number; convert it, for example to its real"):
        fit_encoding(table, "from_dtype").numbers(table)


COLLECTIONS = {
    "lists": column([[1], [2]]),
    "dicts": column([{"a": 1}, {"a": 2}]),
    "sets": column([{1}, {2}]),
    "frozensets": column([frozenset([1]), frozenset([2])]),
    "arrays": column([np.zeros(2), np.ones(2)]),
    "some": column(["a", [1]]),
    "arrow list": column([[1], [2]], pd.ArrowDtype(pa.list_(pa.int64()))),
    "arrow struct": column([{"a": 1}, {"a": 2}], pd.ArrowDtype(pa.struct({"a": pa.int64()}))),
    "polars List": pl.DataFrame({"c": [[1], [2]] * 3}),
    "polars Array": pl.DataFrame({"c": pl.Series([[1], [2]] * 3, dtype=pl.Array(pl.Int64, 1))}),
    "polars Struct": pl.DataFrame({"c": [{"a": 1}, {"a": 2}] * 3}),
    "pyarrow map": pa.table({"c": pa.array([[("k", 1)], [("k", 2)]] * 3, type=pa.map_(pa.string(), pa.int64()))}),
}


@pytest.mark.parametrize("categorical_features", ["from_dtype", ["c"], None])
@pytest.mark.parametrize("table", COLLECTIONS.values(), ids=COLLECTIONS)
def test_collections_are_refused_whatever_the_column_is_taken_for(table, categorical_features):
    table = as_pandas(table)
    words = r"column 'c' has levels that cannot be sorted or looked up: it .*; split it into columns"
    with pytest.raises(ValueError, match=words):
        fit_encoding(table, categorical_features).numbers(table)
    with pytest.raises(ValueError, match=words):
        fit_encoding(column(["a", "b"]), "all").codes(table, "ignore")
    text = table.astype({"c": object})["c"].map(str).to_frame()  # what the message advises
    assert fit_encoding(text, "from_dtype").n_levels == (len(set(text["c"])),)


@pytest.mark.parametrize(
    "values",
    [
        [1, 2],
        [1, 2.5],
        [decimal.Decimal(1), decimal.Decimal(2)],
        [fractions.Fraction(1, 2), fractions.Fraction(1, 3)],
        [1, True],
        [np.int64(1), np.float32(2)],
    ],
    ids=["int", "int and float", "Decimal", "Fraction", "int and bool", "numpy's"],
)
def test_numbers_as_objects_must_say_what_they_are(values):
    with pytest.raises(ValueError, match="'c' has the dtype object but holds only numbers; give it a numeric dtype"):
        fit_encoding(column(values, object), "from_dtype")
    assert fit_encoding(column(values, float), "from_dtype").numeric == [0]


@pytest.mark.parametrize("values", [[False, True], [np.False_, np.True_]])
def test_booleans_as_objects_are_levels(values):
    assert [levels.tolist() for levels in fit_encoding(column(values, object), "from_dtype").categories] == [values]


@pytest.mark.parametrize("values", [["a", 1], ["a", b"a"], ["a", True], [1.5, "1.5"]])
def test_text_mixed_with_other_things_is_refused_with_a_remedy(values):
    table = column(values, object)
    with pytest.raises(ValueError, match=r"'c' has levels that cannot be sorted .*; convert them to text, or make"):
        fit_encoding(table, "from_dtype")
    assert fit_encoding(table.astype("category"), "from_dtype").codes(table, "error")[:2, 0].tolist() in (
        [0, 1],
        [1, 0],
    )


CODES = pa.DictionaryArray.from_arrays([1, 0, 1], [7, 5, 9])
TEXTS = pa.DictionaryArray.from_arrays([1, 0, 1], ["b", "a", "never"])


@pytest.mark.parametrize(("values", "levels"), [(CODES, [7, 5, 9]), (TEXTS, ["b", "a", "never"])], ids=["int", "text"])
@pytest.mark.parametrize("container", ["pandas", "pyarrow", "pyarrow in chunks"])
def test_dictionaries_of_arrow_are_categories_with_all_their_levels(container, values, levels):
    given = pa.table({"n": [1.0, 2.0, 3.0], "c": values})
    if container == "pandas":
        given = given.to_pandas(types_mapper=pd.ArrowDtype).set_axis([5, 5, 7])
        assert isinstance(given.dtypes["c"], pd.ArrowDtype)
    elif container == "pyarrow in chunks":
        given = pa.concat_tables([given[:1], given[1:]])
    table = as_pandas(given)
    encoding = fit_encoding(table, "from_dtype")
    assert (encoding.numeric, encoding.categorical) == ([0], [1])
    assert encoding.categories[0].tolist() == levels
    assert encoding.codes(table, "error").tolist() == [[1], [0], [1]]
    if container == "pandas":
        assert isinstance(given.dtypes["c"], pd.ArrowDtype)  # what was given is unchanged
        assert table.index.tolist() == [5, 5, 7]


@pytest.mark.parametrize("dtype", [pl.Enum(["b", "a", "never"]), pl.Categorical])
def test_categories_of_polars(dtype):
    table = as_pandas(pl.DataFrame({"c": pl.Series(["a", "b"], dtype=dtype)}))
    encoding = fit_encoding(table, "from_dtype")
    assert encoding.categories[0].tolist() == (["a", "b"] if dtype is pl.Categorical else ["b", "a", "never"])
    assert encoding.categories[0][encoding.codes(table, "error")[:, 0]].tolist() == ["a", "b"]


@pytest.mark.parametrize("container", [pl.DataFrame, pa.table])
def test_decimals_are_numbers_where_they_have_a_dtype(container):
    table = as_pandas(container({"c": [decimal.Decimal("1.5"), decimal.Decimal("-2.5")]}))
    assert fit_encoding(table, "from_dtype").numbers(table).tolist() == [[1.5], [-2.5]]


def test_bytes_are_levels():
    for table in (column([b"1", b"2"]), column([b"1", b"2"], pd.ArrowDtype(pa.binary()))):
        assert fit_encoding(table, "from_dtype").categories[0].tolist() == [b"1", b"2"]


def test_a_table_that_is_not_computed_yet_is_refused_with_the_remedy():
    lazy = pl.DataFrame({"c": [1.0]}).lazy()
    with pytest.raises(TypeError, match=r"X is a LazyFrame, .*; pass X\.collect\(\)"):
        as_pandas(lazy)
    assert as_pandas(lazy.collect()).equals(pd.DataFrame({"c": [1.0]}))


def test_masked_values_are_missing_values():
    with pytest.raises(ValueError, match="X is an array with masked values; impute them first"):
        as_pandas(np.ma.masked_array([[1.0], [2.0]], mask=[[False], [True]]))
    assert as_pandas(np.ma.masked_array([[1.0], [2.0]])).tolist() == [[1.0], [2.0]]


def test_codings():
    """Scores as written-out dummies times slopes, feature by feature."""
    n_levels = (3, 2, 1)
    b = np.array([0.7, -1.3, 0.4])
    onehot = level_matrix(n_levels, "onehot") @ b
    assert np.allclose(onehot, [0, 0.7, -1.3, 0, 0.4, 0])
    dummies = np.array([[1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    expected = np.concatenate([dummies @ [0.7, -1.3, 0.0], np.array([[1, -1], [-1, 1]]) @ [0.4, 0.0], [0.0]])
    assert np.allclose(level_matrix(n_levels, "pm1") @ b, expected)


@pytest.mark.parametrize("coding", ["onehot", "pm1"])
@pytest.mark.parametrize("n_levels", [(3, 2, 1), (1, 4), (5,), ()])
def test_scores_without_the_matrix_are_those_with_it(n_levels, coding):
    matrix = level_matrix(n_levels, coding)
    slopes = np.random.default_rng(0).normal(size=matrix.shape[1])
    assert level_scores(slopes, n_levels, coding).tolist() == (matrix @ slopes).tolist()


def test_levels_that_are_declared_but_have_no_rows_are_no_unknown_levels():
    encoding = fit_encoding(column(["a", "b"], "category"), "from_dtype")
    more = column(["b", "a"], pd.CategoricalDtype(["never", "b", "a"]))
    assert encoding.codes(more, "error")[:, 0].tolist() == [1, 0] * 3
    more.loc[1, "c"] = "never"
    with pytest.raises(ValueError, match="'c' has levels that were not seen in fit: 'never'; the levels are 'a', 'b'"):
        encoding.codes(more, "error")


@pytest.mark.parametrize("dtype", [object, "str", "category"])
def test_an_order_of_appearance_is_no_order_of_levels(dtype):
    values = ["c", "a", "b", "c"]
    encoding = fit_encoding(column(values, dtype), "from_dtype")
    assert encoding.categories[0].tolist() == ["a", "b", "c"]
    assert encoding.codes(column(["b", "x", "c"], dtype), "ignore")[:3, 0].tolist() == [1, -1, 2]


def test_slope_names_skip_the_reference_level():
    encoding = fit_encoding(table(), "from_dtype")
    assert slope_names(encoding, "onehot").tolist() == [
        "size", "count", "colour_red", "colour_blue", "kind_b", "flag_True",
    ]  # fmt: skip
    assert slope_names(encoding, "pm1").tolist() == [
        "size", "count", "colour_green", "colour_red", "kind_a", "flag_False",
    ]  # fmt: skip
