"""The ucimlrepo route, against stand-ins that serve tables the way ucimlrepo is known to."""

from __future__ import annotations

import io
import os
import socket
import sys
from types import SimpleNamespace

import pandas as pd
import pytest

from wdrlr.data_prep import RECIPES, served
from wdrlr.data_prep.recipe import ChecksumError, prepare
from wdrlr.data_prep.sources import SHIPPED, raw_table

SERVED = [name for name, recipe in RECIPES.items() if recipe.in_ucimlrepo and recipe.uci_id is not None]
SETS = {
    name: pytest.param(
        name,
        marks=pytest.mark.skipif(
            not (SHIPPED / name).is_dir() and not os.environ.get("WDRLR_DATA"),
            reason=f"{name} is not shipped: set WDRLR_DATA to a folder with UCI's raw files",
        ),
    )
    for name in SERVED
}


def serve(recipe, table, ids=()):
    """Return what fetch_ucirepo returns for a table of text: a csv read by pandas with its defaults."""
    text = table.replace("?", "").to_csv(index=False)
    original = pd.read_csv(io.StringIO(text))
    label = recipe.label if recipe.label in original else original.columns[0]
    features = [name for name in original if name != label and name not in ids]
    data = SimpleNamespace(original=original, features=original[features], targets=original[[label]])
    return SimpleNamespace(data=data)


@pytest.fixture
def fetch(monkeypatch):
    """Make `ucimlrepo` serve a given table, and return what `fetch_table` makes of it."""

    def run(recipe, reply, retries=0):
        def fetch_ucirepo(id):
            assert id == recipe.uci_id
            if isinstance(reply, Exception):
                raise reply
            return reply

        monkeypatch.setitem(sys.modules, "ucimlrepo", SimpleNamespace(fetch_ucirepo=fetch_ucirepo))
        monkeypatch.setattr("time.sleep", lambda seconds: None)
        return served.fetch_table(recipe, timeout=5, retries=retries)

    return run


def raw(name):
    return raw_table(RECIPES[name])[0]


def assert_same(name, table):
    expected, found = prepare(RECIPES[name], raw(name)), prepare(RECIPES[name], table)
    pd.testing.assert_frame_equal(found.X, expected.X)
    assert (found.y == expected.y).all()


def test_every_set_that_it_serves_has_a_hash_to_check_it_by():
    assert not {"monks-3", "hiv"} & set(SERVED)
    assert set(SERVED) <= set(served.table_checksums()) <= set(RECIPES)


@pytest.mark.parametrize("name", [SETS[name] for name in SERVED if name != "annealing"])
@pytest.mark.parametrize("change", ["as is", "reversed", "other names", "other names, reversed"])
def test_columns_are_found_by_name_or_position(name, change, fetch):
    recipe, table = RECIPES[name], raw(name)
    label = table.pop(recipe.label)
    if "reversed" in change:
        table = table[table.columns[::-1]]
    if "other names" in change:
        table = table.rename(columns={column: f"v{i}" for i, column in enumerate(table)})
    table.insert(0, recipe.label, label)
    assert_same(name, fetch(recipe, serve(recipe, table)))


def test_credit_approval_in_reverse_with_floats_and_gaps(fetch):
    recipe, table = RECIPES["credit-approval"], raw("credit-approval")
    reply = serve(recipe, table[table.columns[::-1]])
    assert reply.data.original["A14"].iloc[0] == 202.0
    assert reply.data.original["A1"].isna().sum() == 12
    assert_same("credit-approval", fetch(recipe, reply))


def annealing_merged():
    recipe = RECIPES["annealing"]
    test = pd.read_csv(SHIPPED / "annealing/anneal.test", names=list(recipe.columns), dtype=str, keep_default_na=False)
    return pd.concat([raw("annealing"), test], ignore_index=True)


def test_annealing_merged_with_codes_read_as_numbers(fetch):
    recipe = RECIPES["annealing"]
    reply = serve(recipe, annealing_merged())
    assert len(reply.data.original) == 898
    assert reply.data.original["bore"].iloc[0] == 0
    assert_same("annealing", fetch(recipe, reply))


def test_lymphography_with_an_empty_column_too_many(fetch):
    table = raw("lymphography").rename(columns=lambda name: name if name == "class" else f"the {name}")
    table["nothing"] = "?"
    assert_same("lymphography", fetch(RECIPES["lymphography"], serve(RECIPES["lymphography"], table)))


def test_house_votes_with_gaps(fetch):
    reply = serve(RECIPES["house-votes-84"], raw("house-votes-84"))
    assert reply.data.original.isna().any(axis=None)
    assert_same("house-votes-84", fetch(RECIPES["house-votes-84"], reply))


def test_values_with_blanks(fetch):
    table = raw("kr-vs-kp").apply(lambda column: column + " ")
    assert_same("kr-vs-kp", fetch(RECIPES["kr-vs-kp"], serve(RECIPES["kr-vs-kp"], table)))


@pytest.mark.parametrize(
    "edit",
    [
        lambda table: table.iloc[:132],
        lambda table: table.sample(frac=1, random_state=0),
        lambda table: table.replace("3", "1"),
        lambda table: table.drop(columns="age"),
        lambda table: table[["class"]],
    ],
    ids=["test part missing", "rows shuffled", "values edited", "column missing", "no features"],
)
def test_another_table_is_refused(edit, fetch):
    reply = serve(RECIPES["hayes-roth"], edit(raw("hayes-roth")))
    with pytest.raises(ChecksumError, match=served.table_checksums()["hayes-roth"]):
        fetch(RECIPES["hayes-roth"], reply)


def test_a_table_without_targets_is_refused(fetch):
    table = raw("car").rename(columns=lambda name: f"v {name}")
    reply = serve(RECIPES["car"], table)
    reply.data.targets = None
    with pytest.raises(ChecksumError):
        fetch(RECIPES["car"], reply)


@pytest.mark.parametrize(
    "reply",
    [
        None,
        SimpleNamespace(data=None),
        SimpleNamespace(data=SimpleNamespace(original=None, features=None, targets=None)),
        SimpleNamespace(data=SimpleNamespace(original=pd.DataFrame())),
        serve(RECIPES["car"], raw_table(RECIPES["car"])[0].iloc[:0]),
    ],
    ids=["nothing", "no data", "no table", "empty", "no rows"],
)
def test_no_table_at_all_is_reported(reply, fetch):
    with pytest.raises(served.ServedTableError, match=r"returned no table for car \(id 19\), or an empty one"):
        fetch(RECIPES["car"], reply)


@pytest.mark.parametrize(
    "parts",
    [
        {"targets": pd.DataFrame()},
        {"features": pd.DataFrame()},
        {"features": None},
        {"targets": pd.DataFrame({"not served": [1]})},
        {"features": pd.DataFrame({"not served": [1]})},
        {"original": raw_table(RECIPES["car"])[0].rename(columns={"class": 7})},
    ],
    ids=["empty targets", "empty features", "no features", "another target", "other features", "a number as a name"],
)
def test_a_table_with_parts_that_do_not_fit_is_refused(parts, fetch):
    reply = serve(RECIPES["car"], raw("car").rename(columns=lambda name: f"v {name}"))
    vars(reply.data).update(parts)
    with pytest.raises(ChecksumError, match=served.table_checksums()["car"]):
        fetch(RECIPES["car"], reply)


@pytest.mark.parametrize("name", ["monks-3", "hiv"])
def test_sets_that_it_does_not_serve(name):
    with pytest.raises(served.ServedTableError, match="does not serve"):
        served.fetch_table(RECIPES[name], timeout=1, retries=0)


def test_connection_error_names_its_cause(fetch):
    with pytest.raises(served.ServedTableError, match="ConnectionError: Error connecting to server"):
        fetch(RECIPES["car"], ConnectionError("Error connecting to server"), retries=2)
    assert socket.getdefaulttimeout() is None


def test_a_failure_is_tried_again_under_a_time_out(monkeypatch):
    seen = []

    def fetch():
        seen.append(socket.getdefaulttimeout())
        if len(seen) < 3:
            raise ConnectionError
        return "data"

    monkeypatch.setattr("time.sleep", lambda seconds: None)
    assert served._fetch_in_time(fetch, timeout=7, retries=2) == "data"
    assert seen == [7, 7, 7]


def test_without_ucimlrepo(monkeypatch):
    monkeypatch.setitem(sys.modules, "ucimlrepo", None)
    with pytest.raises(ImportError, match=r"a download needs the package ucimlrepo: pip install 'wdrlr\[data\]'"):
        served.fetch_table(RECIPES["car"], timeout=1, retries=0)
