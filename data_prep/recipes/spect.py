"""spect: is a heart normal, judged from 22 binary features of its SPECT images? Label `diagnosis`.

UCI's train and test parts are concatenated, train first: the paper splits at random.
"""

from wdrlr.data_prep.recipe import Recipe

RECIPE = Recipe(
    name="spect",
    uci_id=95,
    zip_name="spect+heart.zip",
    files=("SPECT.train", "SPECT.test"),
    columns=("diagnosis", *(f"F{i}" for i in range(1, 23))),
    label="diagnosis",
)
