"""The numbers that steer the method, each with what it decides; docs/interior_point.md has the measurements."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """All of them but the thresholds of the kernels. A problem's solution depends on them within its tolerance only."""

    # Start
    first_tau: float = 0.1
    """tau at the start, times 1 / N."""
    start_inside: float = 0.99
    """Times what coefficients one starts from: they may lie on walls of another problem."""
    start_lam: float = 1.05
    """Times the multiplier of the coefficients one starts from."""
    first_lam: float = 2.0
    """lam at the start, over the cost of a change or the radius."""
    first_top: float = 0.1
    """How far a top is above its levels at the start."""
    no_change: float = 1e6
    """lam at radius 0: no change of a level pays."""

    # Target
    slowest: float = 0.9
    """Largest ratio of the target to the mean product."""
    fastest: float = 0.02
    """Smallest ratio of the target to the mean product."""
    long_step: float = 0.9
    """Steps as long show that the cuts in hand are the right ones."""
    after_long: float = 0.2
    """Largest ratio after a long step."""
    short_step: float = 0.3
    """Up to this length a step says nothing of the cuts in hand."""
    after_medium: float = 0.5
    """Largest ratio after a step of medium length."""
    least_fall: float = 0.1
    """tau falls to no less than this part of itself in one step."""
    floor_of_tol: float = 0.1
    """tau times the number of pairs stays above this part of the tolerance ..."""
    floor_of_objective: float = 1e-3
    """... or this part of the objective if that is smaller ..."""
    floor_of_mass: float = 0.3
    """... or, with tops, this part of the mass that the radius allows to be moved."""
    trusted_step: float = 0.1
    """Second-order terms are used where the predictor can go as far as this."""
    second_order: float = 10.0
    """Times the target: what products of changes are clipped to."""
    bend: float = 0.5
    """Of its slack, that a cut's curvature may take at most."""

    # Newton matrix
    ridge: float = 1e-3
    """Times pairs * tau: weak ridge, for directions that the data do not determine."""
    ridge_fades: float = 0.3
    """By this factor a step, while tau is at its floor ..."""
    least_ridge: float = 1e-6
    """... down to this."""
    regular: float = 1e-13
    """Added to the diagonal of the scaled matrix, ten times more where the factorisation fails."""

    # Step
    before_wall: float = 0.99
    """Of the way to the nearest linear row, that a step may go."""
    lam_fall: float = 0.9
    """Of lam, that a step may take off: the first one can take it far too low."""
    least_multiplier: float = 0.02
    """What a step leaves of a multiplier."""
    least_slack: float = 0.05
    """What a step leaves of a slack."""
    share_of_violation: float = 0.1
    """Of the complementarity, that new cuts may violate s by at an accepted point."""
    halvings_to_learn: int = 2
    """Of a step whose cuts are new, before these are taken in at the old point."""
    halvings: int = 12
    """Of a step without new cuts, before it is taken as it is."""
    idle_top: float = 0.05
    """Times lam change_cost: margin of a top that no cut uses."""

    # Pool
    fresh_slack: float = 0.5
    """Times tau / w_i: slack of a new cut."""
    kept_slack: float = 0.1
    """Part of the slack wanted that each old cut keeps when s is raised."""
    fresh_mass: float = 0.5
    """Times w_i: largest multiplier of a new cut."""
    slack_floor: float = 1e-3
    """Times tau over the largest multiplier: no slack is below."""
    prune_every: int = 4
    """Steps between two prunings."""
    light: float = 1e-4
    """Times w_i, or times the radius for its cost: a cut below can be pruned ..."""
    slack: float = 200.0
    """... if its slack is above this times tau / w_i ..."""
    restless: float = 2.0
    """... and above this times its last change."""

    # Lower bound
    reserve_of_tol: float = 0.05
    """Times tol: what leaving a part of the radius to residuals may cost."""
    reserve_of_radius: float = 0.1
    """Largest part of the radius that is left so."""
    repairs: int = 3
    """Corrections of a dual point through the Newton matrix."""

    # End
    patience: int = 250
    """Steps without a smaller gap; the longest wait seen that ended certified is 123 (annealing)."""
    progress: float = 0.9
    """A gap below this times the smallest one is smaller."""


SETTINGS = Settings()
