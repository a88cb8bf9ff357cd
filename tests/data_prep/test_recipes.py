"""The prepared tables: what a recipe does, and the sets that follow from their definition."""

from __future__ import annotations

import itertools
import os
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from wdrlr.data_prep import RECIPES
from wdrlr.data_prep.recipe import Recipe, prepare, table_sha256
from wdrlr.data_prep.served import table_checksums
from wdrlr.data_prep.sources import SHIPPED, raw_table

ALL_SETS = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            not (SHIPPED / name).is_dir() and not os.environ.get("WDRLR_DATA"),
            reason=f"{name} is not shipped: set WDRLR_DATA to a folder with UCI's raw files",
        ),
    )
    for name in RECIPES
]
MISSING = {
    "credit-approval": {"A2": 12, "A14": 13},
    "hepatitis": {"Bilirubin": 6, "Alk Phosphate": 29, "Sgot": 4, "Albumin": 16, "Protime": 67},
}


def load(name):
    return prepare(RECIPES[name], *raw_table(RECIPES[name]))


def toy(**changes) -> Recipe:
    recipe = Recipe("toy", ("toy.data",), columns=("c", "z", "y"), label="y")
    return replace(recipe, **changes)


def toy_table(**columns) -> pd.DataFrame:
    return pd.DataFrame({"c": list("abba"), "z": list("1234"), "y": list("uuuv")} | columns)


@pytest.mark.parametrize("name", ALL_SETS)
def test_prepared_table_is_the_recorded_one(name):
    assert table_sha256(load(name)) == table_checksums()[name]


@pytest.mark.parametrize("name", ALL_SETS)
def test_features_are_categories_without_gaps_or_floats(name):
    data = load(name)
    assert data.X.columns.is_unique
    assert list(data.X.index) == list(range(data.N))
    assert [c for c in data.X if c in RECIPES[name].numeric] == list(RECIPES[name].numeric)
    for column, values in data.X.items():
        if column in RECIPES[name].numeric:
            assert values.dtype == np.float64
            if name != "cylinder-bands":
                assert values.isna().sum() == MISSING.get(name, {}).get(column, 0)
        else:
            assert isinstance(values.dtype, pd.CategoricalDtype)
            assert not values.isna().any()
            assert len(set(values)) > 1
            levels = list(values.cat.categories)
            declared = RECIPES[name].levels.get(column)
            assert levels == (sorted(set(values)) if declared is None else list(declared))


@pytest.mark.parametrize("name", ALL_SETS)
def test_plus_one_is_the_largest_class(name):
    recipe, data = RECIPES[name], load(name)
    table, _ = recipe.edit(raw_table(recipe)[0])
    sizes = table[recipe.label].value_counts()
    assert set(data.y) == {-1, 1}
    assert (data.y == 1).sum() == sizes.max() == sizes[data.positive_class]
    assert {data.positive_class, *data.negative_classes} == set(sizes.index)


@pytest.mark.parametrize("name", ALL_SETS)
def test_record_says_what_was_done(name):
    recipe, data = RECIPES[name], load(name)
    record = " ".join(data.record)
    for words in (*recipe.files, *recipe.dropped, data.positive_class, *data.negative_classes):
        assert words in record
    assert f"({(data.y == 1).sum()} rows" in record
    for column in set(recipe.columns) - {recipe.label, *data.X.columns}:
        assert f"Dropped {column}: " in record
    for column in recipe.levels:
        assert f"{column}: {len(recipe.levels[column])} levels as documented" in record
    for column in data.X.columns[data.X.isna().any()]:
        assert f"{column}: {data.X[column].isna().sum()} values are '?'" in record


def test_tic_tac_toe_is_all_final_boards():
    lines = ["012", "345", "678", "036", "147", "258", "048", "246"]

    def won(board, player):
        return any(all(board[int(square)] == player for square in line) for line in lines)

    seen, final = set(), {}

    def play(board, player, other):
        if board in seen:
            return
        seen.add(board)
        if won(board, other) or "b" not in board:
            final[board] = 1 if won(board, "x") else -1
            return
        for square in range(9):
            if board[square] == "b":
                play((*board[:square], player, *board[square + 1 :]), other, player)

    play(("b",) * 9, "x", "o")
    data = load("tic-tac-toe")
    boards = [tuple(row) for row in data.X.astype(str).to_numpy()]
    assert len(boards) == len(set(boards)) == 958
    assert dict(zip(boards, data.y.tolist(), strict=True)) == final


def test_balance_scale_is_its_definition():
    data = load("balance-scale")
    settings = data.X.astype(int)
    assert sorted(map(tuple, settings.to_numpy())) == sorted(itertools.product(range(1, 6), repeat=4))
    left = settings["left-weight"] * settings["left-distance"]
    right = settings["right-weight"] * settings["right-distance"]
    expected = np.where(left > right, "L", np.where(left < right, "R", "B"))
    assert (raw_table(RECIPES["balance-scale"])[0]["class"] == expected).all()
    assert ((data.y == 1) == (right > left)).all()  # L and R tie: R is +1, by rule


def test_breast_cancer_keeps_declared_levels_in_order():
    X = load("breast-cancer").X
    assert [len(values.cat.categories) for _, values in X.items()] == [9, 3, 12, 13, 2, 3, 2, 5, 2]
    assert list(X["age"].cat.categories[[0, -1]]) == ["10-19", "90-99"]
    assert list(X["tumor-size"].cat.categories[[0, 1, -1]]) == ["0-4", "5-9", "55-59"]
    assert list(X["inv-nodes"].cat.categories[[0, -1]]) == ["0-2", "36-39"]


def test_lymphography_counts_a_declared_level_that_no_row_has():
    values = load("lymphography").X["lym.nodes dimin"]
    assert list(values.cat.categories) == ["0", "1", "2", "3"]
    assert "0" not in set(values)


def test_levels_called_none_or_na_stay_levels():
    recipe = toy(numeric=("z",))
    data = prepare(recipe, recipe.read(recipe, {"toy.data": b"None,1,u\nNA,2,u\n,3,v\n?,4,u\n"}))
    assert list(data.X["c"].cat.categories) == ["", "?", "NA", "None"]
    assert not data.X["c"].isna().any()


def test_single_valued_columns_are_dropped_and_recorded():
    data = prepare(toy(numeric=("z",)), toy_table(c=list("????")))
    assert list(data.X) == ["z"]
    assert "Dropped c: its only value is '?'." in data.record


def test_a_tie_needs_a_rule():
    table = toy_table(y=list("uvuv"))
    with pytest.raises(ValueError, match=r"toy: the classes \['u', 'v'\] tie"):
        prepare(toy(), table)
    assert prepare(toy(majority="v"), table).positive_class == "v"


def test_undeclared_value_is_refused():
    with pytest.raises(ValueError, match=r"toy: c has values that are not in .levels.: \['b'\]"):
        prepare(toy(levels={"c": ("a",)}), toy_table())


def test_text_in_a_numeric_column_is_refused():
    with pytest.raises(ValueError, match=r"toy: the numeric column z has a value .*'x'"):
        prepare(toy(numeric=("z",)), toy_table(z=list("12x4")))


@pytest.mark.parametrize("content", [b"a,1,u,extra\nb,2,v,extra\n", b"a,1\nb,2\n", b"a;1;u\nb;2;v\n"])
def test_rows_of_another_length_are_refused(content):
    with pytest.raises(ValueError, match=r"toy: the rows of toy\.data do not have 3 values"):
        toy().read(toy(), {"toy.data": content})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"label": "class"}, r"toy: the recipe names \['class'\]"),
        ({"dropped": {"id": "a name"}, "numeric": ("x",)}, r"names \['id', 'x'\]"),
        ({"levels": {"C": ("a",)}}, r"names \['C'\]"),
        ({"name": "all"}, "can be called 'all'"),
        ({"name": "to/y"}, "can be called 'to/y'"),
    ],
)
def test_a_recipe_that_cannot_be_right_is_refused_when_it_is_made(changes, message):
    with pytest.raises(ValueError, match=message):
        toy(**changes)


def test_a_single_valued_column_is_dropped_whatever_levels_it_declares():
    data = prepare(toy(numeric=("z",), levels={"c": ("a", "b")}), toy_table(c=list("aaaa")))
    assert list(data.X) == ["z"]


def test_hash_sees_values_levels_and_order_but_not_index_or_dtypes():
    recipe, table = toy(numeric=("z",)), toy_table()
    reference = table_sha256(prepare(recipe, table))
    assert table_sha256(prepare(recipe, table.set_index(pd.Index([7, 5, 3, 1])).astype(object))) == reference
    assert table_sha256(prepare(recipe, table.assign(z=["1.0", "2", "3", "4.00"]))) == reference
    for other in (table[::-1], table.assign(z=list("1235")), table.assign(c=list("abbc"))):
        assert table_sha256(prepare(recipe, other)) != reference
    assert table_sha256(prepare(replace(recipe, levels={"c": ("b", "a")}), table)) != reference
