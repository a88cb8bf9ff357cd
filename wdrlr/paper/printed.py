"""The numbers that the paper prints: the size of each data set and every cell of Tables 1 to 4."""

from __future__ import annotations

from importlib.resources import files

import pandas as pd

TABLES = ("table1", "table2", "table3", "table4")

N_SPLITS = {"table1": 100, "table2": 20}
"""The random splits behind the means of Table 1 and the medians of Table 2."""


def published_values(table: str) -> pd.DataFrame:
    """Return the cells of one table of the paper, one row per cell, in printed order.

    Parameters
    ----------
    table : "table1" (test errors in %, categorical sets), "table2" (the same, mixed sets),
        "table3" (seconds, mixed sets) or "table4" (seconds, categorical sets).

    Returns
    -------
    DataFrame with the columns dataset, multiclass_source, N, n, k, m, method, value,
        value_identification_s (the second runtime of PI), best_overall_bold, best_in_group_italic, dagger,
        double_dagger, and table.

    Raises
    ------
    ValueError
        If the paper has no such table.
    """
    if table not in TABLES:
        raise ValueError(f"unknown table {table!r}: the paper's tables are {', '.join(TABLES)}")
    with files("wdrlr.paper").joinpath("printed.csv").open(encoding="utf-8") as file:
        cells = pd.read_csv(file)
    return cells[cells["table"] == table].reset_index(drop=True)


def published_counts() -> pd.DataFrame:
    """Return the paper's N, n, k and m, indexed by data set: Table 1's sets first, then Table 2's."""
    cells = pd.concat([published_values("table1"), published_values("table2")])
    return cells.drop_duplicates("dataset").set_index("dataset")[["N", "n", "k", "m"]]
