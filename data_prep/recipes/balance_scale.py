"""balance-scale: which way does a scale tip, given two weights and two distances? All 625 settings.

The four features take the values 1 to 5 and are categorical, as in the paper (n = 0). The classes L (left)
and R (right) tie for the majority with 288 rows each: R is +1, by rule, so that the outcome does not depend on a
library's sort order.
"""

from wdrlr.data_prep.recipe import Recipe

RECIPE = Recipe(
    name="balance-scale",
    uci_id=12,
    zip_name="balance+scale.zip",
    files=("balance-scale.data",),
    columns=("class", "left-weight", "left-distance", "right-weight", "right-distance"),
    label="class",
    majority="R",
)
