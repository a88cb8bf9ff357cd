"""lymphography: what do X-rays of the lymph system show? 18 categorical features, label `class`.

Nothing is dropped or merged. `lym.nodes dimin` has the four values 0 to 3 that UCI's documentation declares,
though 0 never occurs: the paper's k = 42 counts it (the observed levels give 41).
"""

from wdrlr.data_prep.recipe import Recipe

RECIPE = Recipe(
    name="lymphography",
    uci_id=63,
    zip_name="lymphography.zip",
    files=("lymphography.data",),
    columns=(
        "class", "lymphatics", "block of affere", "bl. of lymph. c", "bl. of lymph. s", "by pass",
        "extravasates", "regeneration of", "early uptake in", "lym.nodes dimin", "lym.nodes enlar",
        "changes in lym.", "defect in node", "changes in node", "changes in stru", "special forms",
        "dislocation of", "exclusion of no", "no. of nodes in",
    ),
    label="class",
    levels={"lym.nodes dimin": ("0", "1", "2", "3")},
    acknowledgement="Data from M. Zwitter and M. Soklic, University Medical Centre, Ljubljana.",
)  # fmt: skip
