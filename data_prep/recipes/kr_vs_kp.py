"""kr-vs-kp: can white win a chess endgame, king and rook against king and pawn? 36 features of the board.

Nothing is dropped or merged; the label is `class`, the last column. The two empty lines at the end of the file
are not rows.
"""

from wdrlr.data_prep.recipe import Recipe

RECIPE = Recipe(
    name="kr-vs-kp",
    uci_id=22,
    zip_name="chess+king+rook+vs+king+pawn.zip",
    files=("kr-vs-kp.data",),
    columns=(
        "bkblk", "bknwy", "bkon8", "bkona", "bkspr", "bkxbq", "bkxcr", "bkxwp", "blxwp", "bxqsq", "cntxt",
        "dsopp", "dwipd", "hdchk", "katri", "mulch", "qxmsq", "r2ar8", "reskd", "reskr", "rimmx", "rkxwp",
        "rxmsq", "simpl", "skach", "skewr", "skrxp", "spcop", "stlmt", "thrsk", "wkcti", "wkna8", "wknck",
        "wkovl", "wkpos", "wtoeg", "class",
    ),
    label="class",
)  # fmt: skip
