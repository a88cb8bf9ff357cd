"""car: how acceptable is a car, by a decision model? All 1,728 combinations of six categorical features.

Nothing is dropped or merged; the label is `class`, unacc (unacceptable) against the other three grades.
"""

from wdrlr.data_prep.recipe import Recipe

RECIPE = Recipe(
    name="car",
    uci_id=19,
    zip_name="car+evaluation.zip",
    files=("car.data",),
    columns=("buying", "maint", "doors", "persons", "lug_boot", "safety", "class"),
    label="class",
)
