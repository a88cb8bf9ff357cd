"""splice: does a piece of DNA have a splice junction in its middle? 60 letters, label `class` (EI, IE or N).

The sequence, stripped of its blanks, is split into 60 categorical features of one letter each; letters other
than A, C, G and T stand for uncertain bases and are levels of their own. The name of the instance is dropped.

The paper has N = 3189 and k = 229. UCI's file has 3190 rows and gives k = 227: 3189 most likely comes from
reading the first row as a header, and no reading of the file that we know of gives k = 229.
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
    dropped={"instancename": "a name of the row"},
    read=read_letters,
    difference=(
        "UCI's file has 3190 rows and gives k = 227; the paper's N is most likely the first row read as a "
        "header, its k can't be had from the file"
    ),
)
