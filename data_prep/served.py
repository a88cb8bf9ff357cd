"""The tables that the package `ucimlrepo` serves, brought back to the form of UCI's raw files.

ucimlrepo reads a csv that UCI made from the raw files: "?" arrives as a missing value, codes such as 0500 as
numbers, columns in a different order, under different names, or with a superfluous empty one. Which of these
happens is not known in advance, so nothing is assumed: each plausible reading is prepared like the raw table, and
only one whose prepared table has the recorded hash is used. If there is none, the table is refused.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeGuard

import pandas as pd

from wdrlr.data_prep.catalog import recorded
from wdrlr.data_prep.recipe import ChecksumError, Recipe, prepare, table_sha256
from wdrlr.extras import required


class ServedTableError(OSError):
    """ucimlrepo does not serve the data set, or could not be reached."""


def table_checksums() -> dict[str, str]:
    """Return the hash of each set's table (`table_sha256`), as prepared from the raw files."""
    return recorded("TABLE_SHA256SUMS")


def is_prepared_table(recipe: Recipe, table: pd.DataFrame) -> bool:
    """Return whether a table of text, once prepared, is the same table as from UCI's raw files."""
    try:
        return table_sha256(prepare(recipe, table)) == table_checksums()[recipe.name]
    except (ValueError, LookupError):
        return False  # not even readable by the recipe: a wrong reading


def fetch_table(recipe: Recipe, timeout: float, retries: int) -> pd.DataFrame:
    """Return the raw table of a data set, less its dropped columns, from ucimlrepo.

    Raises
    ------
    ServedTableError
        If ucimlrepo does not serve the set, fails `retries` + 1 times, or gives no rows.
    ImportError
        If ucimlrepo is not installed.
    ChecksumError
        If no reading of the served table gives the same table as the raw files.
    """
    if recipe.uci_id is None or not recipe.in_ucimlrepo:
        raise ServedTableError("does not serve this set")
    if recipe.name not in table_checksums():
        raise ServedTableError("not asked, since TABLE_SHA256SUMS has no hash to check its table by")
    fetch_ucirepo = required("ucimlrepo", "a download", "data").fetch_ucirepo
    data = getattr(_fetch_in_time(lambda: fetch_ucirepo(id=recipe.uci_id), timeout, retries), "data", None)
    if not _is_table(getattr(data, "original", None)):
        raise ServedTableError(f"returned no table for {recipe.name} (id {recipe.uci_id}), or an empty one")
    for table in readings(recipe, data):
        if is_prepared_table(recipe, table):
            return table
    raise ChecksumError(
        f"the table served for id {recipe.uci_id} does not match UCI's raw files: "
        f"no reading of it, once prepared, has the hash {table_checksums()[recipe.name]}"
    )


def retry(fetch: Callable[[], Any], retries: int, errors: type[Exception] = Exception) -> Any:
    """Return what `fetch` returns; if it raises `errors`, call it again, after a pause, up to `retries` times."""
    for attempt in range(retries):
        try:
            return fetch()
        except errors:
            time.sleep(attempt + 1)
    return fetch()


def _fetch_in_time(fetch: Callable[[], Any], timeout: float, retries: int) -> Any:
    # ucimlrepo sets no timeout, and its urlopen uses the process-wide default.
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(timeout)
    try:
        return retry(fetch, retries)
    except Exception as error:  # errors of many types; a broken csv has yet another one
        raise ServedTableError(f"{type(error).__name__}: {error}") from error
    finally:
        socket.setdefaulttimeout(before)


def readings(recipe: Recipe, data: Any) -> Iterator[pd.DataFrame]:
    """Yield the possible readings of the served `data`: tables of text, under the recipe's column names.

    Columns are matched by name, else by position in the order served, else by position in reverse order, with
    and without the columns that the recipe drops.
    """
    original = data.original if recipe.served_rows is None else data.original.iloc[: recipe.served_rows]
    wanted = [column for column in recipe.columns if column not in recipe.dropped]

    by_name = {_bare(name): name for name in original.columns}
    if all(_bare(column) in by_name for column in wanted):
        yield _text(recipe, original, [by_name[_bare(column)] for column in wanted], wanted)

    features, targets = (getattr(data, name, None) for name in ("features", "targets"))
    if not (_is_table(features) and _is_table(targets)):
        return
    label = targets.columns[0]
    features = [name for name in features.columns if name != label]
    if not {label, *features} <= set(original.columns):
        return
    filled = [name for name in features if not original[name].isna().all()]
    for names in (features, filled):
        for columns in (wanted, list(recipe.columns)):
            columns = [column for column in columns if column != recipe.label]
            if len(names) == len(columns):
                yield _text(recipe, original, [label, *names], [recipe.label, *columns])
                yield _text(recipe, original, [label, *names[::-1]], [recipe.label, *columns])


def _is_table(table: object) -> TypeGuard[pd.DataFrame]:
    return isinstance(table, pd.DataFrame) and not table.empty and table.columns.is_unique


def _bare(name: object) -> str:
    return "".join(filter(str.isalnum, str(name).lower()))


def _text(recipe: Recipe, table: pd.DataFrame, names: list[str], columns: list[str]) -> pd.DataFrame:
    text = {}
    for name, column in zip(names, columns, strict=True):
        values = table[name].map(_as_in_file)
        width = recipe.zero_padded.get(column)
        text[column] = values.where(values == "?", values.str.zfill(width)) if width else values
    return pd.DataFrame(text)


def _as_in_file(value: object) -> str:
    if pd.isna(value):
        return "?"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()
