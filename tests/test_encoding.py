import numpy as np
import pandas as pd
import pytest

from wdrlr.encoding import fit_encoding, level_matrix, slope_names, unknown_row


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
    with pytest.raises(ValueError, match=r"'kind' has levels that were not there in fit: 'c', 'd'"):
        encoding.codes(data, "error")
    assert encoding.codes(data, "ignore")[:, 1].tolist() == [0, -1, -1]


def test_codings():
    """Scores as written-out dummies times slopes, feature by feature."""
    n_levels = (3, 2, 1)
    b = np.array([0.7, -1.3, 0.4])
    onehot = level_matrix(n_levels, "onehot") @ b
    assert np.allclose(onehot, [0, 0.7, -1.3, 0, 0.4, 0])
    dummies = np.array([[1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    expected = np.concatenate([dummies @ [0.7, -1.3, 0.0], np.array([[1, -1], [-1, 1]]) @ [0.4, 0.0], [0.0]])
    assert np.allclose(level_matrix(n_levels, "pm1") @ b, expected)
    assert np.allclose(unknown_row(n_levels, "onehot") @ b, 0)
    assert np.allclose(unknown_row(n_levels, "pm1") @ b, [-(0.7 - 1.3), -0.4, 0])


def test_slope_names_skip_the_reference_level():
    encoding = fit_encoding(table(), "from_dtype")
    assert slope_names(encoding, "onehot").tolist() == [
        "size", "count", "colour_red", "colour_blue", "kind_b", "flag_True",
    ]  # fmt: skip
    assert slope_names(encoding, "pm1").tolist() == [
        "size", "count", "colour_green", "colour_red", "kind_a", "flag_False",
    ]  # fmt: skip
