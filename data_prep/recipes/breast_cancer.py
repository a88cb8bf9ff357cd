"""breast-cancer: does the cancer come back? Label `Class`, nine categorical features.

The 9 rows with an unknown value ("?" in node-caps or breast-quad) are dropped: only then is N the paper's
277. Levels are those that UCI's documentation declares, even if no row has them (k = 42; the observed levels
give 32), since the paper's k counts them. Their order is the documented one, from low to high.
"""

import pandas as pd

from wdrlr.data_prep.recipe import Recipe


def drop_unknown(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    unknown = (table == "?").any(axis="columns")
    return table[~unknown], [f"Dropped {unknown.sum()} rows with a '?', as the paper's N = 277 requires."]


def ranges(first: int, last: int, width: int) -> tuple[str, ...]:
    """Return "first-...", ..., the intervals of integers of a width, up to the one that starts at `last`."""
    return tuple(f"{low}-{low + width - 1}" for low in range(first, last + 1, width))


RECIPE = Recipe(
    name="breast-cancer",
    uci_id=14,
    zip_name="breast+cancer.zip",
    files=("breast-cancer.data",),
    columns=(
        "Class", "age", "menopause", "tumor-size", "inv-nodes", "node-caps", "deg-malig", "breast",
        "breast-quad", "irradiat",
    ),
    label="Class",
    levels={
        "age": ranges(10, 90, 10),
        "menopause": ("lt40", "ge40", "premeno"),
        "tumor-size": ranges(0, 55, 5),
        "inv-nodes": (*ranges(0, 33, 3), "36-39"),  # UCI's last one is wider
        "node-caps": ("yes", "no"),
        "deg-malig": ("1", "2", "3"),
        "breast": ("left", "right"),
        "breast-quad": ("left_up", "left_low", "right_up", "right_low", "central"),
        "irradiat": ("yes", "no"),
    },
    edit=drop_unknown,
    acknowledgement="Data from M. Zwitter and M. Soklic, University Medical Centre, Ljubljana.",
)  # fmt: skip
