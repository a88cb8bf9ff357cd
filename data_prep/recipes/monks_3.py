"""monks-3: the third of the MONK's problems, six categorical features of artificial robots, label `class`.

UCI's train part (122 rows, a few mislabelled on purpose) and test part (all 432 robots) are concatenated, as the
paper's N = 554 shows; so training rows occur twice. The row's id is dropped. Values are separated by blanks, and
each line starts with one. ucimlrepo serves only 432 rows of one problem, so it can't be used here.
"""

from wdrlr.data_prep.recipe import Recipe

RECIPE = Recipe(
    name="monks-3",
    uci_id=70,
    zip_name="monk+s+problems.zip",
    files=("monks-3.train", "monks-3.test"),
    columns=("class", "a1", "a2", "a3", "a4", "a5", "a6", "id"),
    label="class",
    dropped={"id": "the number of the row"},
    separator=r"\s+",
    in_ucimlrepo=False,
)
