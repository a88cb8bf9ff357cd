"""The columns of the paper's Tables 1 to 4 as objects: what is fitted, and the grid for cross-validation."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

import numpy as np

from wdrlr.estimators.formulation import Formulation, Stretch
from wdrlr.estimators.solving import at_point
from wdrlr.model.problem import Problem
from wdrlr.paper.baselines import dummies_as_numbers, profile_penalty
from wdrlr.paper.protocols import Protocol
from wdrlr.solvers.registry import Solver


@dataclass(frozen=True)
class Method:
    """One column of the tables: what is fitted, and the grid to choose from by cross-validation.

    LR and r-LR are the paper's problem at radius 0: the tailored solver minimises them, too.

    Parameters
    ----------
    name
        Its name in the result rows.
    label
        Its column heading in the tables, in LaTeX.
    group
        The best method of each group is in italics: "unregularized", "regularized" and "numerical".
    label_cost
        kappa of the ground metric: a number, or "n_categorical" for the paper's kappa = m.
    chooses
        What is chosen by cross-validation from the protocol's grids: the Wasserstein radius, the Lasso penalty gamma,
        "both" or "nothing"; what is not chosen is 0.
    bounded
        Whether the protocol's bound on the coefficients applies (to the DRO problems and MT, not to plain LR).
    coding, penalize_intercept
        The method's own; None for the protocol's.
    change
        Turns the paper's problem into another one, see `Formulation`.
    penalty
        Finds the l1 penalty without cross-validation, from a problem, its number of rows and the seed of a simulation.
    solver
        What is used whatever the cell's solver is; None for the cell's.
    """

    name: str
    label: str
    group: str
    label_cost: float | Literal["n_categorical"] = 1.0
    chooses: Literal["nothing", "radius", "gamma", "both"] = "nothing"
    bounded: bool = True
    coding: Literal["onehot", "pm1"] | None = None
    penalize_intercept: bool | None = None
    change: Callable[[Problem], tuple[Problem, Stretch]] | None = None
    penalty: Callable[[Problem, float, int], float] | None = None
    solver: Solver | None = None

    def grid(self, protocol: Protocol) -> list[tuple[float, float]]:
        """All pairs (radius, gamma). One pair needs no cross-validation."""
        match self.chooses:
            case "radius":
                return [(radius, 0.0) for radius in protocol.radii]
            case "gamma":
                return [(0.0, gamma) for gamma in protocol.gammas]
            case "both":
                return list(product(protocol.joint_radii, protocol.joint_gammas))
        return [(0.0, 0.0)]

    @property
    def is_proposed(self) -> bool:
        """Whether the paper proposes this method: DRO and r-DRO."""
        return self.change is None and self.chooses in ("radius", "both")

    def formulation(self, protocol: Protocol) -> Formulation:
        """The formulation of this method, with an l1 penalty of 1: radius and penalty come from the grid."""
        intercept = self.penalize_intercept
        return Formulation(
            label_cost=self.label_cost,
            metric_scale=protocol.metric_scale,
            l1_penalty=1.0,
            penalize_intercept=protocol.penalize_intercept if intercept is None else intercept,
            coding=self.coding or protocol.coding,
            any_code=protocol.any_code and self.is_proposed,
            coef_bound=protocol.coef_bound if self.bounded else None,
            change=self.change,
        )

    def at(self, protocol: Protocol, unit: Problem, radius: float, gamma: float) -> Problem:
        """The problem at one point of the grid; ``unit`` is that of ``formulation``."""
        free = radius == 0 and not protocol.bounded_at_0
        return at_point(replace(unit, coef_bound=np.full(unit.n_coefficients, np.inf)) if free else unit, radius, gamma)


_KAPPA: dict[str, tuple[str, Any]] = {"kappa_1": (r"$\kappa = 1$", 1.0), "kappa_m": (r"$\kappa = m$", "n_categorical")}


def _for_both_label_costs(name: str, group: str, **fields: Any) -> list[Method]:
    return [
        Method(f"{name}_{suffix}", f"{name} ({label})", group, label_cost=kappa, **fields)
        for suffix, (label, kappa) in _KAPPA.items()
    ]


METHODS = {
    method.name: method
    for method in (
        Method("LR", "LR", "unregularized", bounded=False),
        *_for_both_label_costs("DRO", "unregularized", chooses="radius"),
        Method("r-LR", "r-LR", "regularized", chooses="gamma", bounded=False),
        *_for_both_label_costs("r-DRO", "regularized", chooses="both"),
        *_for_both_label_costs("MT", "numerical", chooses="radius", change=dummies_as_numbers),
        Method(
            *("PI", "PI", "numerical"),
            bounded=False,
            coding="pm1",
            penalize_intercept=True,
            penalty=profile_penalty,
        ),
    )
}
"""The methods by name, in the order in which the paper prints them."""
