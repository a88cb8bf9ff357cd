"""The two readings of the experiments, and the grids that both share.

The paper's text (Numerical Results, Appendices C and D) leaves open a few choices that its authors' public
code makes, and the two differ in others. Each reading is one `Protocol`; no fit knows which one is in
use.
"""

from dataclasses import dataclass
from typing import Literal

RADII = (0.0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""Wasserstein radii to choose from."""

GAMMAS = tuple(radius / 2 for radius in RADII)
"""Lasso penalties to choose from."""

TEST_SHARE = 0.2
"""Share of the rows in the test part of a split; the number of rows is rounded down."""

N_FOLDS = 5
"""Folds of the cross-validation."""


@dataclass(frozen=True)
class Protocol:
    """One reading of the experiments.

    Parameters
    ----------
    name
        Its name in the result rows.
    metric_scale
        None for the ground metric of Definition 2; "unit" for that metric divided by n + m + kappa.
    coding
        "onehot" (0/1, the first level is the reference) or "pm1" (-1/+1, the last level's slope is 0).
    any_code
        Whether the adversary of DRO and r-DRO can give a feature with three or more levels any -1/+1 code of its
        dummies, at the cost of a change, and not only those of its levels.
    coef_bound
        Bound on the absolute value of every slope and the intercept of DRO, r-DRO and MT; None for no bound.
    bounded_at_0
        Whether the bound applies at radius 0, too, where the problem is plain logistic regression.
    penalize_intercept
        Whether the Lasso penalty counts the intercept.
    ties
        Which of the grid points with the smallest cross-validation error is chosen: the one with the "largest"
        penalty and then the largest radius, or the "smallest".
    keep_order
        Whether the rows of a training part keep one order of the data set, so that the folds of its cross-validation
        are much the same in all splits; otherwise each split has an order of its own.
    radii, gammas
        The grids where only one of the two is chosen.
    joint_radii, joint_gammas
        The grids where both are chosen, from their product.
    """

    name: str
    metric_scale: Literal["unit"] | None
    coding: Literal["onehot", "pm1"]
    any_code: bool
    coef_bound: float | None
    bounded_at_0: bool
    penalize_intercept: bool
    ties: Literal["largest", "smallest"] = "largest"
    keep_order: bool = False
    radii: tuple[float, ...] = RADII
    gammas: tuple[float, ...] = GAMMAS
    joint_radii: tuple[float, ...] = RADII
    joint_gammas: tuple[float, ...] = GAMMAS


PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        # The authors' public code, which made the printed numbers.
        # When it searches two grids at once, it takes only every other point of each.
        Protocol(
            "code",
            metric_scale="unit",
            coding="pm1",
            any_code=True,
            coef_bound=100.0,
            bounded_at_0=False,
            penalize_intercept=True,
            joint_radii=(0.0, 1e-5, 1e-3, 1e-1, 1.0),
            joint_gammas=(0.0, 0.5e-5, 0.5e-3, 0.5e-1, 0.5),
        ),
        # The paper's text. It does not say whether the intercept is penalised; as usual, it is not.
        Protocol(
            "paper",
            metric_scale=None,
            coding="onehot",
            any_code=False,
            coef_bound=None,
            bounded_at_0=False,
            penalize_intercept=False,
        ),
    )
}
