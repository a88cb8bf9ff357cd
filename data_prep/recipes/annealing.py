"""annealing: which class does a piece of steel belong to? Six numeric and 32 categorical features, label `classes`.

Only anneal.data is used: the paper's N = 798 shows that the test part (100 rows) is not merged here. "?" is a
level ("does not apply" for most columns). Seven columns have a single value in anneal.data and are dropped.
Carbon, hardness and strength are numbers, bore has three values and is a category: the paper's n = 6 and k = 46
require it.
"""

from wdrlr.data_prep.recipe import Recipe

RECIPE = Recipe(
    name="annealing",
    uci_id=3,
    zip_name="annealing.zip",
    files=("anneal.data",),
    columns=(
        "family", "product-type", "steel", "carbon", "hardness", "temper_rolling", "condition", "formability",
        "strength", "non-ageing", "surface-finish", "surface-quality", "enamelability", "bc", "bf", "bt",
        "bw/me", "bl", "m", "chrom", "phos", "cbond", "marvi", "exptl", "ferro", "corr",
        "blue/bright/varn/clean", "lustre", "jurofm", "s", "p", "shape", "thick", "width", "len", "oil",
        "bore", "packing", "classes",
    ),
    label="classes",
    numeric=("carbon", "hardness", "strength", "thick", "width", "len"),
    served_rows=798,
    zero_padded={"bore": 4},
)  # fmt: skip
