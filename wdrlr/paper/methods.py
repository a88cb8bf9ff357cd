"""The columns of the paper's Tables 1 to 4 as objects: what is fitted, and over which grid it is chosen."""

from dataclasses import dataclass, field
from itertools import product
from typing import Literal

from wdrlr import WassersteinLogisticRegression
from wdrlr.paper.baselines import ContinuousLogisticRegression, ProfileInferenceLogisticRegression
from wdrlr.paper.protocols import Protocol


@dataclass(frozen=True)
class Method:
    """One column of the tables: a family of estimators and the grid to choose from by cross-validation.

    LR and r-LR are the paper's problem at radius 0: the tailored solver minimises and certifies them too.

    Parameters
    ----------
    name
        What the result rows call it.
    label
        What the tables print above the column, in LaTeX.
    group
        Methods of one group are compared in italics: "unregularized", "regularized" and "numerical".
    model
        The class of the estimators.
    label_cost
        kappa of the ground metric: a number, or "n_categorical" for the paper's kappa = m.
    chooses
        What is chosen by cross-validation from the protocol's grids: the Wasserstein radius, the Lasso penalty gamma,
        "both" or "nothing"; what is not chosen is 0.
    robust
        Whether the protocol's bound on the coefficients applies (to the DRO problems and MT, not to plain LR).
    settings
        Attributes of the estimators that differ from what protocol and method say; see `wdrlr.paper.differences`.
    """

    name: str
    label: str
    group: str
    model: type[WassersteinLogisticRegression] = WassersteinLogisticRegression
    label_cost: float | Literal["n_categorical"] = 1.0
    chooses: Literal["nothing", "radius", "gamma", "both"] = "nothing"
    robust: bool = True
    settings: dict[str, object] = field(default_factory=dict, hash=False)

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
        """Whether it is one of the methods that the paper proposes: DRO and r-DRO."""
        return self.model is WassersteinLogisticRegression and self.chooses in ("radius", "both")

    def coding(self, protocol: Protocol) -> str:
        """The coding of the estimators: the protocol's, but PI has its own."""
        is_PI = self.model is ProfileInferenceLogisticRegression
        return self.settings.get("coding", ProfileInferenceLogisticRegression.coding if is_PI else protocol.coding)

    def estimator(
        self, radius: float, gamma: float, protocol: Protocol, tol: float, solver: str, random_state: int = 0
    ) -> WassersteinLogisticRegression:
        """The unfitted estimator at one point of the grid; `random_state` is for the one that simulates, PI."""
        if self.model is ProfileInferenceLogisticRegression:
            parameters = {"random_state": random_state}
        else:
            parameters = {
                "radius": radius,
                "label_cost": self.label_cost,
                "metric_scale": protocol.metric_scale,
                "coding": protocol.coding,
                "coef_bound": protocol.coef_bound if self.robust else None,
            }
            if self.model is not ContinuousLogisticRegression:
                parameters |= {"l1_penalty": gamma, "penalize_intercept": protocol.penalize_intercept}
        estimator = self.model(solver=solver, tol=tol, **parameters)
        for name, value in self.settings.items():
            setattr(estimator, name, value)
        return estimator


_KAPPA = {"kappa_1": (r"$\kappa = 1$", 1.0), "kappa_m": (r"$\kappa = m$", "n_categorical")}


def _for_both_label_costs(name: str, group: str, **fields) -> list[Method]:
    return [
        Method(f"{name}_{suffix}", f"{name} ({label})", group, label_cost=kappa, **fields)
        for suffix, (label, kappa) in _KAPPA.items()
    ]


METHODS = {
    method.name: method
    for method in (
        Method("LR", "LR", "unregularized", robust=False),
        *_for_both_label_costs("DRO", "unregularized", chooses="radius"),
        Method("r-LR", "r-LR", "regularized", chooses="gamma", robust=False),
        *_for_both_label_costs("r-DRO", "regularized", chooses="both"),
        *_for_both_label_costs("MT", "numerical", model=ContinuousLogisticRegression, chooses="radius"),
        Method("PI", "PI", "numerical", model=ProfileInferenceLogisticRegression, robust=False),
    )
}
"""The methods by name, in the order in which the paper prints them."""
