"""credit-approval: is a credit card granted? Anonymous features A1 to A15, six of them numbers, label `A16`.

Nothing is dropped or merged. "?" is a level in a categorical column; in the numeric ones (A2 and A14) it is
left missing. The paper does not say how it filled them.
"""

from wdrlr.data_prep.recipe import Recipe

RECIPE = Recipe(
    name="credit-approval",
    uci_id=27,
    zip_name="credit+approval.zip",
    files=("crx.data",),
    columns=tuple(f"A{i}" for i in range(1, 17)),
    label="A16",
    numeric=("A2", "A3", "A8", "A11", "A14", "A15"),
)
