"""Variants of the standard setting: how the paper's numbers may have been made where ours differ.

The paper and its authors' public code leave a few choices open. Each is one `Variant`, whose cells are cells like any
other (`wdrlr.paper.cells`), under a separate protocol name, so that their rows are stored and resumed like all others.
`wdrlr.paper.differences` compares them.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from wdrlr.model.problem import Problem
from wdrlr.paper.baselines import dummies_as_numbers
from wdrlr.paper.cells import Cell, plan_cells
from wdrlr.paper.protocols import PROTOCOLS
from wdrlr.paper.residue import RESIDUE

STANDARD = "code"
"""The protocol that is varied."""

TRIALS = {
    "house-votes-84": ("LR", "r-LR", "DRO_kappa_1", "DRO_kappa_m", "MT_kappa_m", "PI"),
    "primary-tumor": ("r-LR", "DRO_kappa_1", "DRO_kappa_m", "MT_kappa_1", "MT_kappa_m", "PI"),
    "spect": ("r-LR", "DRO_kappa_1", "MT_kappa_m", "PI"),
    "hayes-roth": ("r-LR", "DRO_kappa_m", "MT_kappa_m", "PI"),
    "lymphography": ("LR", "r-LR", "PI"),
    "balance-scale": ("LR", "r-LR", "MT_kappa_m", "PI"),
    "tic-tac-toe": ("MT_kappa_m", "PI"),
    "monks-3": ("PI",),
    "breast-cancer": ("r-LR", "PI"),
}
"""Which means are tested: those far from the paper's, and others of the same methods, which should stay near."""


def dummies_at_full_distance(problem: Problem) -> tuple[Problem, np.ndarray]:
    """MT's problem with the cost |z - z'| = 2 for a flip between -1 and +1."""
    return dummies_as_numbers(problem, flip_cost=2.0)


@dataclass(frozen=True)
class Variant:
    """One change to the standard setting.

    Parameters
    ----------
    name
        Its rows are stored under the protocol ``<standard>-<name>``.
    reason
        How the printed numbers would have been made, if this change explains the difference.
    protocol, method, cell
        What changes in the `Protocol`, the `Method` and the `Cell`.
    """

    name: str
    reason: str
    protocol: dict[str, Any] = field(default_factory=dict)
    method: dict[str, Any] = field(default_factory=dict)
    cell: dict[str, Any] = field(default_factory=dict)

    def of(self, cell: Cell) -> Cell:
        """A cell of the standard setting with this change applied."""
        protocol = replace(cell.protocol, name=f"{cell.protocol.name}-{self.name}", **self.protocol)
        return cell._replace(protocol=protocol, method=replace(cell.method, **self.method), **self.cell)


_RESIDUE = tuple(solver.name for solver in RESIDUE.values())

VARIANTS_OF = {
    "LR": ("early", "late"),
    "r-LR": (*_RESIDUE, "ties", "grid", "intercept", "coding"),
    "DRO": (*_RESIDUE, "ties", "grid", "metric", "levels", "box", "box-at-0"),
    "MT": (*_RESIDUE, "ties", "grid", "metric", "distance"),
    "PI": (*_RESIDUE, "PI-intercept", "PI-coding"),
}
"""The changes tried on each kind of method, whatever its kappa."""

VARIANTS = {
    variant.name: variant
    for variant in (
        *(
            Variant(
                solver.name,
                f"where all slopes are 0 at the optimum, what a conic solver ({form} form) leaves there classifies",
                method={"solver": solver},
            )
            for form, solver in RESIDUE.items()
        ),
        Variant("ties", "ties in the cross-validation go to the smallest penalty and radius", {"ties": "smallest"}),
        Variant(
            "grid",
            "the grid has every other value only, as that of r-DRO",
            {"radii": PROTOCOLS[STANDARD].joint_radii, "gammas": PROTOCOLS[STANDARD].joint_gammas},
        ),
        Variant("levels", "the adversary keeps to the levels of a feature, as in the paper", {"any_code": False}),
        Variant("box-at-0", "the coefficients are bounded at radius 0, too", {"bounded_at_0": True}),
        Variant("metric", "the ground metric is not divided by n + m + kappa", {"metric_scale": None}),
        Variant("box", "the coefficients are not bounded", {"coef_bound": None}),
        Variant("intercept", "the Lasso penalty leaves the intercept free", {"penalize_intercept": False}),
        Variant("coding", "the Lasso penalty is on 0/1 dummies, the first level dropped", {"coding": "onehot"}),
        Variant("distance", "a dummy's flip costs 2 in MT's distance", method={"change": dummies_at_full_distance}),
        Variant("PI-coding", "PI has 0/1 dummies, the first level dropped", method={"coding": "onehot"}),
        Variant("PI-intercept", "PI leaves the intercept free", method={"penalize_intercept": False}),
        Variant("early", "LR stops at a gap of 0.01", cell={"tol": 1e-2}),
        Variant("late", "LR stops at a gap of 1e-8", cell={"tol": 1e-8}),
    )
}
"""The changes by name."""


def plan_trials(dataset: str, n_splits: int, seed: int) -> tuple[list[Cell], list[Cell]]:
    """The cells of the standard setting, and those of its variants, of one data set of `TRIALS` or "all".

    Raises
    ------
    ValueError
        If the data set is not one of `TRIALS`, or a number is out of range.
    """
    if dataset != "all" and dataset not in TRIALS:
        raise ValueError(f"unknown data set {dataset!r}; choose 'all' or one of {', '.join(TRIALS)}")
    standard = [
        cell
        for name in (TRIALS if dataset == "all" else [dataset])
        for cell in plan_cells([name], TRIALS[name], n_splits=n_splits, seed=seed, protocol=STANDARD)
    ]
    return standard, [
        VARIANTS[name].of(cell) for cell in standard for name in VARIANTS_OF[cell.method.name.split("_")[0]]
    ]
