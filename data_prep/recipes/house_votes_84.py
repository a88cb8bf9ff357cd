"""house-votes-84: is a member of the U.S. House a Democrat, judged from 16 votes of 1984? Label `party`.

Nothing is dropped or merged. "?" is neither yes nor no (absent, or voted "present"): a third level, not a gap.
"""

from wdrlr.data_prep.recipe import Recipe

RECIPE = Recipe(
    name="house-votes-84",
    uci_id=105,
    zip_name="congressional+voting+records.zip",
    files=("house-votes-84.data",),
    columns=(
        "party", "handicapped-infants", "water-project-cost-sharing", "adoption-of-the-budget-resolution",
        "physician-fee-freeze", "el-salvador-aid", "religious-groups-in-schools", "anti-satellite-test-ban",
        "aid-to-nicaraguan-contras", "mx-missile", "immigration", "synfuels-corporation-cutback",
        "education-spending", "superfund-right-to-sue", "crime", "duty-free-exports",
        "export-administration-act-south-africa",
    ),
    label="party",
)  # fmt: skip
