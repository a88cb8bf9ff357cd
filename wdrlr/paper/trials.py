"""Which changes of the standard setting are tried on which methods, data sets and splits.

Unlike `wdrlr.paper.variants`, nothing here can change a number, only which numbers there are.
"""

from wdrlr.paper.cells import Cell, plan_cells
from wdrlr.paper.methods import METHODS
from wdrlr.paper.printed import published_values
from wdrlr.paper.solver_ends import RESIDUE
from wdrlr.paper.variants import STANDARD, STOPS, VARIANTS

MOST_SPLITS = {"kr-vs-kp": 20, "splice": 5, "hiv": 5, "audiology": 20}
"""On how many splits the changes are tried at most where a split takes longest, but for the methods of `FAST`."""

FAST = [name for name, method in METHODS.items() if method.chooses == "nothing"]
"""The methods without cross-validation."""

_RESIDUE = tuple(solver.name for solver in RESIDUE.values())
_BALL = ("shared", "ties", "folds", "grid", "metric")

VARIANTS_OF = {
    "LR": ("shared", *(f"stop-{tol:g}" for tol in STOPS)),
    "r-LR": (*_RESIDUE, "ties", "folds", "grid", "twice", "intercept", "coding"),
    "DRO": (*_RESIDUE, *_BALL, "levels", "box", "box-at-0", "stopped", "radius-0"),
    "r-DRO": ("ties", "folds", "metric", "levels", "box", "intercept"),
    "MT": (*_RESIDUE, *_BALL, "half"),
    "PI": (*_RESIDUE, "PI-intercept", "PI-coding", "PI-half"),
}
"""The changes tried on each kind of method, whatever its kappa."""

ONLY_ON = {
    ("stopped", "DRO"): ("audiology",),
    ("radius-0", "DRO"): ("audiology",),
    **{(name, "DRO"): ("hayes-roth", "balance-scale", "monks-3", "lymphography") for name in _RESIDUE},
}
"""The data sets on which a change of a kind of method is tried; others are tried on all.

Residue is that of a conic program for each radius and fold, which takes minutes where a data set has more levels.
"""


def kind_of(method: str) -> str:
    """The key of `VARIANTS_OF` for a method: its name without kappa."""
    return method.split("_")[0]


def plan_trials(dataset: str, n_splits: int, seed: int) -> tuple[list[Cell], list[Cell]]:
    """The cells of the standard setting, and those of its variants, of one data set of Table 1 or "all".

    Data sets of `MOST_SPLITS` have no more splits than that, but for the methods of `FAST`.

    Raises
    ------
    ValueError
        If the data set is not one of Table 1, or a number is out of range.
    """
    known = list(published_values("table1")["dataset"].unique())
    if dataset not in ("all", *known):
        raise ValueError(f"unknown data set {dataset!r}; choose 'all' or one of {', '.join(known)}")
    standard = [
        cell
        for name in (known if dataset == "all" else [dataset])
        for cell in plan_cells(
            *([name], ["all"]),
            n_splits=n_splits,
            seed=seed,
            protocol=STANDARD,
        )
        if cell.method.name in FAST or cell.split < MOST_SPLITS.get(name, n_splits)
    ]
    return standard, [
        VARIANTS[name].of(cell)
        for cell in standard
        for name in VARIANTS_OF[kind_of(cell.method.name)]
        if cell.dataset in ONLY_ON.get((name, kind_of(cell.method.name)), (cell.dataset,))
    ]
