"""tic-tac-toe: has x won? All 958 final boards of games that x starts; nine squares with x, o or b (blank).

Nothing is dropped or merged; the label is `Class`, positive where x has three in a row.
"""

from wdrlr.data_prep.recipe import Recipe

ROWS = ("top", "middle", "bottom")

RECIPE = Recipe(
    name="tic-tac-toe",
    uci_id=101,
    zip_name="tic+tac+toe+endgame.zip",
    files=("tic-tac-toe.data",),
    columns=(
        *(f"{row}-{side}-square" for row in ROWS for side in ("left", "middle", "right")),
        "Class",
    ),
    label="Class",
)
