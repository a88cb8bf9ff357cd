"""Variants of the standard setting: how the paper's numbers may have been made where ours differ.

The paper and its authors' public code leave a few choices open. Each is one `Variant`, whose cells are cells like any
other (`wdrlr.paper.cells`), under a separate protocol name, so that their rows are stored and resumed like all others.
`wdrlr.paper.trials` says which is tried where, and `wdrlr.paper.differences` compares them.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from wdrlr.model.problem import Problem
from wdrlr.paper.baselines import dummies_as_numbers, profile_penalty
from wdrlr.paper.cells import Cell
from wdrlr.paper.protocols import PROTOCOLS, RADII
from wdrlr.paper.solver_ends import RESIDUE, SHARED, STOPPED, STOPPED_AFTER, STOPPED_FROM

STANDARD = "code"
"""The protocol that is varied."""

STOPS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-8)
"""Gaps at which LR stops, in place of 1e-6."""


def dummies_at_half_distance(problem: Problem) -> tuple[Problem, np.ndarray]:
    """MT's problem with the cost |z - z'| / 2 = 1 for a flip between -1 and +1, the distance of Section 2.2."""
    return dummies_as_numbers(problem, flip_cost=1.0)


def half_profile_penalty(problem: Problem, n_rows: float, random_state: int) -> float:
    """PI's penalty from the limit law of [3] in `wdrlr.paper.baselines` at b = 0: the covariance E[x x'] / 4."""
    return profile_penalty(problem, n_rows, random_state) / 2


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
        Variant(
            SHARED.name, "columns that the training part leaves constant share the intercept", method={"solver": SHARED}
        ),
        Variant(
            STOPPED.name,
            f"from radius {STOPPED_FROM:g} on, Algorithm 1 stops after {STOPPED_AFTER} rounds",
            method={"solver": STOPPED},
        ),
        Variant(
            "radius-0", "no fit at a radius above 0 ended in time, which leaves logistic regression", {"radii": (0.0,)}
        ),
        Variant("ties", "ties in the cross-validation go to the smallest penalty and radius", {"ties": "smallest"}),
        Variant("folds", "the folds are much the same in all splits, as in the authors' code", {"keep_order": True}),
        Variant(
            "grid",
            "the grid has every other value only, as that of r-DRO",
            {"radii": PROTOCOLS[STANDARD].joint_radii, "gammas": PROTOCOLS[STANDARD].joint_gammas},
        ),
        Variant("twice", "the Lasso penalties are twice as large", {"gammas": RADII}),
        Variant("levels", "the adversary keeps to the levels of a feature, as in the paper", {"any_code": False}),
        Variant("box-at-0", "the coefficients are bounded at radius 0, too", {"bounded_at_0": True}),
        Variant("metric", "the ground metric is not divided by n + m + kappa", {"metric_scale": None}),
        Variant("box", "the coefficients are not bounded", {"coef_bound": None}),
        Variant("intercept", "the Lasso penalty leaves the intercept free", {"penalize_intercept": False}),
        Variant("coding", "the Lasso penalty is on 0/1 dummies, the first level dropped", {"coding": "onehot"}),
        Variant("half", "a dummy's flip costs 1 in MT's distance, not 2", method={"change": dummies_at_half_distance}),
        Variant("PI-coding", "PI has 0/1 dummies, the first level dropped", method={"coding": "onehot"}),
        Variant("PI-half", "PI's quantile is that of its limit law at b = 0", method={"penalty": half_profile_penalty}),
        Variant("PI-intercept", "PI leaves the intercept free", method={"penalize_intercept": False}),
        *(Variant(f"stop-{tol:g}", f"LR stops at a gap of {tol:g}", cell={"tol": tol}) for tol in STOPS),
    )
}
"""The changes by name."""
