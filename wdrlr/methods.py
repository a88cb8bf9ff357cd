"""The columns of the paper's Tables 1 to 4 as objects: what is fitted, and over which grid it is chosen."""

from dataclasses import dataclass
from itertools import product
from typing import Literal

from wdrlr import WassersteinLogisticRegression
from wdrlr.protocols import RADII, Protocol


@dataclass(frozen=True)
class Method:
    """One column of the tables: a family of estimators and the grid to choose from by cross-validation.

    Parameters
    ----------
    name
        What the result rows call it.
    label
        What the tables print above the column, in LaTeX.
    group
        Methods of one group are compared in italics: "unregularized", later "regularized" and "numerical".
    label_cost
        kappa of the ground metric: a number, or "n_categorical" for the paper's kappa = m.
    radii, gammas
        Wasserstein radii and Lasso penalties; the grid is their product. A grid of one point needs no
        cross-validation.
    bounded
        Whether the protocol's bound on the coefficients applies (to the DRO problems, not to plain LR).
    """

    name: str
    label: str
    group: str
    label_cost: float | Literal["n_categorical"] = 1.0
    radii: tuple[float, ...] = (0.0,)
    gammas: tuple[float, ...] = (0.0,)
    bounded: bool = True

    @property
    def grid(self) -> list[tuple[float, float]]:
        """All pairs (radius, gamma)."""
        return list(product(self.radii, self.gammas))

    def estimator(
        self, radius: float, gamma: float, protocol: Protocol, tol: float, solver: str
    ) -> WassersteinLogisticRegression:
        """The unfitted estimator at one point of the grid."""
        return WassersteinLogisticRegression(
            radius=radius,
            label_cost=self.label_cost,
            metric_scale=protocol.metric_scale,
            l1_penalty=gamma,
            penalize_intercept=protocol.penalize_intercept,
            coding=protocol.coding,
            coef_bound=protocol.coef_bound if self.bounded else None,
            solver=solver,
            tol=tol,
        )


METHODS = {
    method.name: method
    for method in (
        Method("LR", "LR", "unregularized", bounded=False),
        Method("DRO_kappa_1", r"DRO ($\kappa = 1$)", "unregularized", 1.0, RADII),
        Method("DRO_kappa_m", r"DRO ($\kappa = m$)", "unregularized", "n_categorical", RADII),
    )
}
"""The methods by name, in the order in which the paper prints them."""
