"""hepatitis: does the patient live? Six numbers (age, blood values), 13 categories, label `Class`.

Nothing is dropped or merged. "?" is a level in a categorical column; in the numeric ones it is left missing
(67 of 155 values of Protime). The paper does not say how it filled them.
"""

from wdrlr.data_prep.recipe import Recipe

RECIPE = Recipe(
    name="hepatitis",
    uci_id=46,
    zip_name="hepatitis.zip",
    files=("hepatitis.data",),
    columns=(
        "Class", "Age", "Sex", "Steroid", "Antivirals", "Fatigue", "Malaise", "Anorexia", "Liver Big",
        "Liver Firm", "Spleen Palpable", "Spiders", "Ascites", "Varices", "Bilirubin", "Alk Phosphate",
        "Sgot", "Albumin", "Protime", "Histology",
    ),
    label="Class",
    numeric=("Age", "Bilirubin", "Alk Phosphate", "Sgot", "Albumin", "Protime"),
)  # fmt: skip
