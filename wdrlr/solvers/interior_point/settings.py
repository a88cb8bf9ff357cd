"""The numbers that steer the method, each with what it decides; `benchmarks.settings` measures what each is worth."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """What steers the method. Solutions depend on these within their tolerance only.

    Guards against overflow, and thresholds that belong to one kernel or one formula, stand where they are used.
    """

    # Start
    first_tau: float = 0.1
    """tau at the start, times 1 / N."""
    start_tau: float = 3e-2
    """tau at a start with the coefficients of another solution, times 1 / N."""
    start_ridge: float = 1.0
    """The ridge there: multipliers are found first, while the coefficients move little."""
    start_inside: float = 0.99
    """Share of the box within which these are taken: they may lie on its walls."""
    first_lam: float = 0.5
    """lam at the start, times 1 over the larger of the cost of a level change and the radius."""
    first_top: float = 0.1
    """Height of a top above its levels at the start."""
    no_change: float = 1e6
    """lam at radius 0: no change of a level pays."""

    # Target
    slowest: float = 0.9
    """Largest ratio of the target to the mean product."""
    fastest: float = 0.02
    """Smallest ratio of the target to the mean product."""
    long_step: float = 0.9
    """From this length on, a step shows that the pool has the right cuts."""
    after_long: float = 0.2
    """Largest ratio after a long step."""
    short_step: float = 0.3
    """Up to this length, a step says nothing about the pool."""
    after_medium: float = 0.5
    """Largest ratio after a step of medium length."""
    least_fall: float = 0.1
    """tau falls to no less than this part of itself in one step."""
    floor_of_tol: float = 0.1
    """tau times the number of pairs stays above this part of the tolerance ..."""
    floor_of_objective: float = 1e-3
    """... or of the objective, if that is smaller ..."""
    floor_of_mass: float = 0.3
    """... or, with tops, of the mass that the radius allows the adversary to move."""
    trusted_step: float = 0.1
    """Second-order terms are used where both predictor steps are longer than this."""
    second_order: float = 10.0
    """Products of the predictor's changes are clipped to this times the target."""
    bend: float = 0.5
    """Largest share of a cut's slack that its curvature may take."""

    # Newton matrix
    ridge: float = 0.01
    """Times pairs * tau: weak ridge, for directions that the data do not determine."""
    ridge_fades: float = 0.3
    """Factor by which the ridge falls at each step while tau is at its floor ..."""
    least_ridge: float = 1e-4
    """... down to this."""
    regular: float = 1e-13
    """Added to the diagonal of the scaled matrix, less where that is large unscaled, ten times more each time that the
    factorisation fails."""

    # Step
    before_wall: float = 0.99
    """Share of the way to the nearest row that a step may take."""
    lam_fall: float = 0.9
    """Largest share of lam that one step may take off: the first one can take it far too low."""
    least_multiplier: float = 0.02
    """Share of a multiplier that a step leaves at least."""
    least_slack: float = 0.05
    """Share of a slack that a step leaves at least."""
    share_of_violation: float = 0.1
    """Violation of s by new cuts at an accepted point, as a share of the complementarity."""
    halvings_to_learn: int = 6
    """Halvings of a step that finds new cuts before it becomes a null step."""
    halvings: int = 12
    """Halvings of a step that finds none before it is taken as it is."""
    idle_top: float = 0.05
    """Height of a top that no cut uses, times lam change_cost."""

    # Pool
    fresh_slack: float = 0.5
    """Slack of a new cut, times tau / w_i."""
    kept_slack: float = 0.1
    """Share of the slack wanted that each old cut keeps when s is raised."""
    fresh_mass: float = 0.5
    """Largest multiplier of a new cut, times w_i."""
    slack_floor: float = 1e-3
    """Least slack, times tau over the largest multiplier."""
    prune_every: int = 4
    """Steps between two prunings."""
    prune_patience: int = 10
    """Steps without a smaller gap from which on cuts stay: some left and came back for hundreds of steps."""
    prune_mass: float = 1e-4
    """A cut can be pruned if its multiplier is below this times w_i, and costs less than this times the radius ..."""
    prune_slack: float = 200.0
    """... and its slack above this times tau / w_i ..."""
    restless: float = 2.0
    """... and above this times its last change."""

    # Lower bound
    reserve_of_tol: float = 0.05
    """Times tol: what leaving a part of the radius to residuals may cost."""
    reserve_of_radius: float = 0.1
    """Largest share of the radius that is left so."""
    repairs: int = 3
    """Corrections of a dual point through the Newton matrix."""

    # End
    patience: int = 250
    """Steps without a smaller gap; the longest wait seen that ended certified is 123 (annealing)."""
    progress: float = 0.9
    """A gap counts as smaller if it is below this times the smallest one."""


SETTINGS = Settings()
