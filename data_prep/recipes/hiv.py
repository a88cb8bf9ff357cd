"""hiv: does the HIV-1 protease cleave a protein, given the 8 amino acids around a site? Label `cleaved`.

UCI's four files are concatenated in the order of `files`, duplicates kept (the same site may be in several
studies): only then is N the paper's 6590. The 8 letters become 8 categorical features, named by their position
before (P4 to P1) and after (P1' to P4') the cut. ucimlrepo does not serve this set.
"""

from collections.abc import Mapping

import pandas as pd

from wdrlr.data_prep.recipe import Recipe


def read_octamers(recipe: Recipe, contents: Mapping[str, bytes]) -> pd.DataFrame:
    rows = []
    for name in recipe.files:
        for line in contents[name].decode("ascii").splitlines():
            octamer, label = line.split(",")
            rows.append([*octamer, label])
    return pd.DataFrame(rows, columns=list(recipe.columns))


RECIPE = Recipe(
    name="hiv",
    uci_id=330,
    zip_name="hiv+1+protease+cleavage.zip",
    files=("1625Data.txt", "746Data.txt", "impensData.txt", "schillingData.txt"),
    columns=("P4", "P3", "P2", "P1", "P1'", "P2'", "P3'", "P4'", "cleaved"),
    label="cleaved",
    read=read_octamers,
    in_ucimlrepo=False,
)
