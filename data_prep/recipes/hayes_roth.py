"""hayes-roth: which of three clubs does a person belong to? Four categorical features, label `class`.

UCI's train and test parts are concatenated, train first. The train part has a leading id, which the test part
lacks; it is cut off while reading, to make the two alike. `hobby` was drawn at random; it is kept, as in the paper.
"""

from collections.abc import Mapping

import pandas as pd

from wdrlr.data_prep.recipe import Recipe


def read_without_id(recipe: Recipe, contents: Mapping[str, bytes]) -> pd.DataFrame:
    rows = [
        line.split(",")[-len(recipe.columns) :]
        for name in recipe.files
        for line in contents[name].decode("ascii").splitlines()
    ]
    return pd.DataFrame(rows, columns=list(recipe.columns))


RECIPE = Recipe(
    name="hayes-roth",
    uci_id=44,
    zip_name="hayes+roth.zip",
    files=("hayes-roth.data", "hayes-roth.test"),
    columns=("hobby", "age", "educational_level", "marital_status", "class"),
    label="class",
    read=read_without_id,
)
