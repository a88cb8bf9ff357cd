"""primary-tumor: where is the primary tumor? 17 categorical features coded 1, 2, 3, label `class` (22 sites).

Nothing is dropped or merged; lung (code 1), the most frequent site, is set against all others.
"""

from wdrlr.data_prep.recipe import Recipe

RECIPE = Recipe(
    name="primary-tumor",
    uci_id=83,
    zip_name="primary+tumor.zip",
    files=("primary-tumor.data",),
    columns=(
        "class", "age", "sex", "histologic-type", "degree-of-diffe", "bone", "bone-marrow", "lung", "pleura",
        "peritoneum", "liver", "brain", "skin", "neck", "supraclavicular", "axillar", "mediastinum",
        "abdominal",
    ),
    label="class",
    acknowledgement="Data from M. Zwitter and M. Soklic, University Medical Centre, Ljubljana.",
)  # fmt: skip
