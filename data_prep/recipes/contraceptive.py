"""contraceptive: does a couple use contraception? Two numbers (age, children) and seven categories.

Nothing is dropped or merged; the label is `contraceptive_method`: none (code 1), the most frequent, against
the long-term and short-term methods.
"""

from wdrlr.data_prep.recipe import Recipe

RECIPE = Recipe(
    name="contraceptive",
    uci_id=30,
    zip_name="contraceptive+method+choice.zip",
    files=("cmc.data",),
    columns=(
        "wife_age", "wife_edu", "husband_edu", "num_children", "wife_religion", "wife_working",
        "husband_occupation", "standard_of_living_index", "media_exposure", "contraceptive_method",
    ),
    label="contraceptive_method",
    numeric=("wife_age", "num_children"),
)  # fmt: skip
