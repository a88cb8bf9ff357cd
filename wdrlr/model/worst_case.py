"""The worst-case distribution: what nature does to given coefficients (Section 2.1, Theorem 8, Appendix B).

For fixed b, nature's problem sup { E_Q[L(-y f)] : W(Q, P_N) <= radius } is a linear program in the masses mu_ic that
sample i sends to its candidates c, and in the toll, the part of the radius spent on moving numbers:

    maximise    sum_ic mu_ic L_ic + toll dual_norm(b_N)
    subject to  sum_c mu_ic = w_i for every i,   sum_ic mu_ic cost_c + toll <= radius,   mu, toll >= 0.

The candidates are those of Algorithm 2: where all changes cost the same, among all z with d changes one has the largest
loss, whatever the multiplier; else there is one for each step of ``separation``. So 2 (m + 1) candidates per sample
make the program exact, without column generation. And since only one constraint couples the samples, no solver is
needed either. Sample i climbs the concave envelope of its points (cost_c, L_ic); the steps of all samples, taken in
order of steepness until the radius is spent or moving numbers pays more, solve the program (it is the fractional
knapsack problem). Only the last step can be taken in part. One sample then has two atoms and every other sample one: at
most N + 1 in all, the number in Theorem 8. Where moving numbers pays more, mass escapes along them, and the supremum is
only approached (Appendix B).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from wdrlr.model.encoding import as_pandas, check_made_by
from wdrlr.model.objective import worst_case_loss
from wdrlr.model.problem import Problem, log_loss
from wdrlr.model.separation import candidates, changed

# Steepness and costs are compared up to this relative difference: values that differ only by rounding count as equal.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class WorstCase:
    """A worst-case distribution with A atoms, A <= N + 1.

    Attributes
    ----------
    mass : ndarray of shape (A,)
        Above 0. The masses of the atoms of sample i sum to w_i.
    sample : int ndarray of shape (A,)
        The sample i that each atom's mass comes from; in ascending order.
    x, z, y : ndarray of shapes (A, n), (A, m), (A,)
        Where the atoms lie: numbers, level codes, labels.
    expected_loss, transport_cost : float
        Both computed from the atoms as they stand.
    worst_case_loss : float
        The supremum, by the dual (``objective.worst_case_loss``).
    attained : bool
        False where the supremum is only approached, by mass that escapes along a ray.
    """

    mass: np.ndarray
    sample: np.ndarray
    x: np.ndarray
    z: np.ndarray
    y: np.ndarray
    expected_loss: float
    transport_cost: float
    worst_case_loss: float
    attained: bool

    @property
    def gap(self) -> float:
        """Supremum less expected loss: 0 up to rounding where it is attained."""
        return self.worst_case_loss - self.expected_loss


def worst_case_distribution(problem: Problem, b: np.ndarray, eta: float = 1e-4) -> WorstCase:
    """A distribution in the Wasserstein ball with the largest expected loss at the coefficients b.

    Where changes of levels and labels leave a part of the radius, the toll, unspent, because moving numbers pays more
    (lam = metric.dual_norm(b_N) in the dual), the supremum is not attained: the loss of the moved mass grows by less
    than dual_norm(b_N) per unit of cost, and approaches this rate the farther it moves. The result is then a member of
    a sequence that approaches the supremum, as in Appendix B: the share eta of the mass of one sample moves off by

        toll metric.scale / (eta w_i)    along the direction v with ||v|| = 1 and b_N.v = -y ||b_N||_*.

    The cost is then the radius, and the loss falls short by at most eta w_i L(y f). The sample is chosen to make this
    least: with equal weights, it is the one that f gets most wrong.

    The worst-case distribution need not be unique; this is one of them.

    Parameters
    ----------
    problem : Problem
        Its penalty and bounds play no role. Not one with ``any_code``, whose atoms are no levels.
    b : ndarray of shape (1 + n + k,)
        Any coefficients, fitted or not.
    eta : float
        In (0, 1], used only where the supremum is not attained.

    Raises
    ------
    ValueError
        If b has another shape, or a value that is not finite, or if eta is outside its range, or with ``any_code``.
    """
    if problem.coded.size:
        raise ValueError(
            "a worst-case distribution needs any_code=False: with it, features of three or more levels are moved to "
            "codes that are no levels, which no table of rows can show."
        )
    b = np.asarray(b, dtype=float)
    if b.shape != (problem.n_coefficients,) or not np.isfinite(b).all():
        raise ValueError(f"b must be {problem.n_coefficients} finite coefficients, the intercept first.")
    if not isinstance(eta, Real) or not 0 < eta <= 1:
        raise ValueError(f"eta, the share of a row's mass that escapes, must be above 0 and at most 1, not {eta!r}.")
    by_label = candidates(problem, b)
    losses = log_loss(np.hstack([of_label.argument for of_label in by_label]))
    costs = np.hstack([of_label.cost for of_label in by_label])
    gain = problem.metric.dual_norm(problem.numeric(b))
    choice, split, split_choice, split_mass, unspent = _spend(problem, losses, costs, gain)

    # One atom per sample, then the one that is split off, if any.
    sample = np.r_[np.arange(problem.n_samples), split]
    choice = np.r_[choice, split_choice]
    flipped, n_steps = np.divmod(choice, by_label[0].argument.shape[1])
    z = np.empty((len(sample), problem.n_categorical), dtype=problem.z.dtype)
    for flip, of_label in enumerate(by_label):
        atoms = flipped == flip
        z[atoms] = changed(problem, of_label, n_steps[atoms], sample[atoms])
    y = np.where(flipped == 1, -1.0, 1.0) * problem.y[sample]
    x = problem.x[sample]
    mass = np.r_[problem.w, split_mass]
    mass[split] -= split_mass

    attained = not (gain > 0 and unspent > 0)
    if not attained:  # no atom has been split off
        f = replace(problem, x=x, z=z, y=y).decision(b)
        missing = np.where(mass > 0, mass * log_loss(y * f), np.inf)
        i = int(np.argmin(missing))
        distance = unspent * problem.metric.scale / (eta * mass[i])
        direction = problem.metric.number_norm.steepest(problem.numeric(b))
        x = np.vstack([x, x[i] - y[i] * distance * direction])
        z, y, sample = np.vstack([z, z[i]]), np.r_[y, y[i]], np.r_[sample, i]
        mass = np.r_[mass, eta * mass[i]]
        mass[i] *= 1.0 - eta
    order = np.argsort(sample, kind="stable")
    order = order[mass[order] > 0]
    mass, sample, x, z, y = mass[order], sample[order], x[order], z[order], y[order]
    return WorstCase(
        mass=mass,
        sample=sample,
        x=x,
        z=z,
        y=y,
        expected_loss=float(mass @ log_loss(-y * replace(problem, x=x, z=z, y=y).decision(b))),
        transport_cost=float(mass @ _costs(problem, sample, x, z, y)),
        worst_case_loss=worst_case_loss(problem, b)[0],
        attained=attained,
    )


def _spend(
    problem: Problem, losses: np.ndarray, costs: np.ndarray, gain: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    """Solve nature's linear program; ``losses`` (N, C) and ``costs`` (1 or N, C) are those of the candidates.

    Returns
    -------
    choice : int ndarray of shape (N,)
        The candidate of every sample.
    split, split_choice, split_mass : ndarrays of shape (0,) or (1,)
        The sample of which a part goes to a second candidate, that candidate, and the mass of that part.
    unspent : float
        The unspent part of the radius.
    """
    first = np.zeros(problem.n_samples, dtype=int)
    if problem.radius > 0:  # changes that cost nothing come first
        first = np.argmax(np.where(costs <= 0, losses, -np.inf), axis=1)
    sample, target, steepness, cost = _envelope_steps(losses, costs, first, gain)
    # The steps of one sample come in order and with falling steepness, and a stable sort keeps them in order.
    order = np.argsort(-steepness, kind="stable")
    sample, target = sample[order], target[order]
    spent = np.cumsum(problem.w[sample] * cost[order])
    taken = int(np.searchsorted(spent, problem.radius * (1 + ROUNDING), side="right"))
    choice = first.copy()
    choice[sample[:taken]] = target[:taken]  # the last step of a sample counts
    unspent = problem.radius - (spent[taken - 1] if taken else 0.0)
    if unspent <= ROUNDING * problem.radius:
        unspent = 0.0
    none = np.empty(0, dtype=int)
    if taken == len(sample) or unspent == 0:
        return choice, none, none, np.empty(0), unspent
    part = unspent / cost[order[taken]]
    return choice, sample[[taken]], target[[taken]], np.array([part]), 0.0


def _envelope_steps(
    losses: np.ndarray, costs: np.ndarray, first: np.ndarray, gain: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The steps along the concave envelope of the points (cost_c, loss_ic) of every sample, from its first point on.

    Only steps that pay are taken: steepness (loss over cost) above 0 and at least ``gain``. From each vertex the next
    is the one to which the chord is steepest, for all samples at once.

    Returns
    -------
    sample, target, steepness, cost : ndarrays of shape (number of steps,)
        The sample, the candidate to which the step leads, and loss over cost and cost of the step.
    """
    active = np.arange(len(losses))
    here, costs = first.copy(), np.broadcast_to(costs, losses.shape)
    last = np.full(len(losses), np.inf)
    steps = []
    while active.size:
        further = costs[active] - costs[active, here[active], None]
        further[further <= 0] = np.inf
        chords = (losses[active] - losses[active, here[active], None]) / further
        target = np.argmax(chords, axis=1)
        everyone = np.arange(len(active))
        # The steepness of an envelope falls; where two chords are equal, rounding could make it rise.
        steepness = np.minimum(chords[everyone, target], last[active])
        pays = (steepness > 0) & (steepness >= gain * (1 - ROUNDING))
        active, target, steepness = active[pays], target[pays], steepness[pays]
        steps.append((active, target, steepness, further[everyone[pays], target]))
        here[active], last[active] = target, steepness
    samples, targets, steepnesses, step_costs = (np.concatenate(parts) for parts in zip(*steps, strict=True))
    return samples, targets, steepnesses, step_costs


def _costs(problem: Problem, sample: np.ndarray, x: np.ndarray, z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The ground metric between atoms and the samples that they come from; shape (A,)."""
    cost = problem.metric.level_distance(problem.z[sample], z)
    cost = cost + np.where(y != problem.y[sample], problem.metric.label_change, 0.0)
    shift = x - problem.x[sample]
    moved = np.flatnonzero(shift.any(axis=1))
    cost[moved] += [problem.metric.numeric_distance(row) for row in shift[moved]]
    return cost


def atoms_table(worst: WorstCase, classes: np.ndarray, features: pd.DataFrame, n_rows: int) -> pd.DataFrame:
    """The atoms as a table; see ``WassersteinLogisticRegression.worst_case_distribution``.

    Parameters
    ----------
    classes : ndarray of shape (2,)
        The names of the labels -1 and +1.
    features : DataFrame of A rows
    n_rows : int
        The number of rows of the original table, including those without weight.

    Raises
    ------
    ValueError
        If a feature has the name of one of the other columns.
    """
    table = pd.DataFrame({"mass": worst.mass, "source_row": worst.sample, "label": classes[(worst.y > 0).astype(int)]})
    clash = [name for name in features if name in table]
    if clash:
        raise ValueError(f"the worst-case distribution has its own columns {clash}; rename these features.")
    table = pd.concat([table, features], axis=1)
    table.attrs = {
        "expected_loss": worst.expected_loss,
        "transport_cost": worst.transport_cost,
        "worst_case_loss": worst.worst_case_loss,
        "gap": worst.gap,
        "attained": worst.attained,
        "n_rows": n_rows,
    }
    return table


def changed_mass(distribution: pd.DataFrame, X: Any, y: Any) -> pd.DataFrame:
    """Which features nature changes, how often, and into what.

    Parameters
    ----------
    distribution : DataFrame
        What ``worst_case_distribution(X, y)`` returned.
    X, y
        The same data.

    Returns
    -------
    DataFrame indexed by "label" and the features, the most changed first
        ``mass`` (the probability of a value other than the source row's), ``commonest`` (the change with the largest
        mass, "from → to", or the shift of a number; "" where nothing is changed) and ``commonest_mass``.

    Raises
    ------
    ValueError
        If the distribution is another table, or X does not have its columns or its number of rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from wdrlr import WassersteinLogisticRegression
    >>> X = pd.DataFrame({"colour": ["red"] * 4 + ["blue"] * 4, "shape": ["round", "flat"] * 4})
    >>> y = [1, 1, 1, 0, 0, 0, 0, 1]
    >>> model = WassersteinLogisticRegression(radius=0.05, label_cost=2.0).fit(X, y)
    >>> changed_mass(model.worst_case_distribution(X, y), X, y).round(3)
            mass   commonest  commonest_mass
    colour  0.05  blue → red            0.05
    label   0.00                        0.00
    shape   0.00                        0.00
    """
    check_made_by("worst_case_distribution", "distribution", distribution, ("mass", "source_row", "label"))
    X = as_pandas(X)
    if np.ndim(X) != 2:
        raise ValueError(f"X is a {type(X).__name__}, which is no table; pass the distribution, X and y in this order.")
    names = (
        [str(name) for name in X.columns] if isinstance(X, pd.DataFrame) else [f"x{j}" for j in range(np.shape(X)[1])]
    )
    X, y = pd.DataFrame(X), np.asarray(y)
    after = distribution.drop(columns=["mass", "source_row"])
    row = distribution["source_row"].to_numpy()
    if [*after.columns] != ["label", *names]:
        raise ValueError(
            f"X has the columns {names}, but the distribution has the features {[*after.columns[1:]]}; pass the data "
            "that worst_case_distribution was called with."
        )
    n_rows = distribution.attrs.get("n_rows", len(X))
    if not len(X) == len(y) == n_rows > row.max():
        raise ValueError(
            f"the distribution is of {max(n_rows, row.max() + 1)} rows, but X has {len(X)} rows and y {len(y)}; pass "
            "the data that worst_case_distribution was called with."
        )
    rows = []
    for j in range(1 + len(names)):
        old, new = (y if j == 0 else X.iloc[:, j - 1].to_numpy())[row], after.iloc[:, j].to_numpy()
        differs = new != old
        if j > 0 and pd.api.types.is_float_dtype(after.dtypes.iloc[j]):
            changes = [f"{shift:+,.5g}" for shift in (new - old)[differs]]
        else:
            changes = [f"{a} → {b}" for a, b in zip(old[differs], new[differs], strict=True)]
        mass = distribution["mass"][differs].groupby(changes).sum()
        rows.append((mass.sum(), mass.idxmax(), mass.max()) if len(mass) else (0.0, "", 0.0))
    table = pd.DataFrame(rows, index=["label", *names], columns=["mass", "commonest", "commonest_mass"])
    return table.sort_values("mass", ascending=False, kind="stable")
