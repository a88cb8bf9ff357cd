"""splice: does a piece of DNA have a splice junction in its middle? 60 letters, label `class` (EI, IE or N).

The sequence, stripped of its blanks, is split into 60 categorical features of one letter each; letters other
than A, C, G and T stand for uncertain bases and are separate levels. The name of the instance is dropped.
"""

from collections.abc import Mapping

import pandas as pd

from wdrlr.data_prep.recipe import Recipe


def read_letters(recipe: Recipe, contents: Mapping[str, bytes]) -> pd.DataFrame:
    (name,) = recipe.files
    rows = []
    for line in contents[name].decode("ascii").splitlines():
        label, instance, sequence = (value.strip() for value in line.split(","))
        rows.append([label, instance, *sequence])
    return pd.DataFrame(rows, columns=list(recipe.columns))


RECIPE = Recipe(
    name="splice",
    uci_id=69,
    zip_name="molecular+biology+splice+junction+gene+sequences.zip",
    files=("splice.data",),
    columns=("class", "instancename", *(f"base{i}" for i in range(1, 61))),
    label="class",
    dropped={"instancename": "the name of the row"},
    read=read_letters,
)
