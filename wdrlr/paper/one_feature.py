"""The example of Section 2.2: one binary feature, taken as a category and as a number (Figure 1, Appendix B).

The feature z and the label y are -1 or +1, Prob(y | z) = 1 / (1 + exp(-beta y z)) with beta = 1, and no model has an
intercept. The three models are

    LR           logistic regression
    mixed        the paper's model, ground metric  [z != z'] + [y != y']
    continuous   z is a number, ground metric  |z - z'| / 2 + [y != y']

All three depend on the data only through the share q of rows with y = z, since (z, y) and (-z, -y) have the same loss
and the same distances. With c = 0, 1, 2 and the radius r, the objective for b >= 0 is, as long as c r <= q,

    (q - c r) log(1 + exp(-b)) + (1 - q + c r) log(1 + exp(b)),

least at b = log((q - c r) / (1 - q + c r)) where that is positive, else at 0.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from scipy.stats import binom

from wdrlr.model.metric import GroundMetric
from wdrlr.model.problem import Problem
from wdrlr.model.worst_case import WorstCase, worst_case_distribution
from wdrlr.solvers.interior_point.method import solve_tailored

BETA = 1.0
MODELS = {"LR": 0, "mixed": 1, "continuous": 2}
"""The models with their c in the objective above."""
POINTS = np.array([(1, 1), (1, -1), (-1, 1), (-1, -1)])
"""The four values of (z, y), in the order of the counts."""
QUANTILES = (0.15, 0.85)


def radius_at(N: int) -> float:
    """The radius that the paper uses for N rows: 1 / (2 sqrt N)."""
    return 0.5 / np.sqrt(N)


def draw_counts(N: int, runs: int, seed: int) -> np.ndarray:
    """How many of N random rows fall on each of ``POINTS``, in each run; z = 1 has probability 1/2. Shape (runs, 4)."""
    z, y = POINTS.T
    return np.random.default_rng([seed, N]).multinomial(N, 0.5 * expit(BETA * y * z), size=runs)


def pose(model: str, z: np.ndarray, y: np.ndarray, w: np.ndarray, radius: float) -> Problem:
    """One of the three models as a problem; z, y, w of shape (N,)."""
    continuous = model == "continuous"
    return Problem(
        x=z[:, None].astype(float) if continuous else np.zeros((len(z), 0)),
        z=np.zeros((len(z), 0), dtype=int) if continuous else (z[:, None] > 0).astype(int),
        y=y.astype(float),
        w=w,
        n_levels=() if continuous else (2,),
        level_matrix=np.zeros((0, 0)) if continuous else np.array([[-1.0], [1.0]]),
        metric=GroundMetric(label_cost=2.0, scale=2.0) if continuous else GroundMetric(label_cost=1.0),
        radius=0.0 if model == "LR" else radius,
        penalty=np.zeros(2),
        fit_intercept=False,
    )


def estimates(counts: np.ndarray, model: str, radius: float, tol: float = 1e-9) -> tuple[np.ndarray, float]:
    """The estimates of beta in many runs with the same number of rows, by the solver for p = 1.

    A run consists of four counts, of which only the number of rows with y = z matters, so one fit serves all runs that
    share this number.

    Parameters
    ----------
    counts : int ndarray of shape (runs, 4)
        See ``draw_counts``.

    Returns
    -------
    b : ndarray of shape (runs,)
    gap : the largest certified gap of the fits

    Raises
    ------
    ValueError
        If all rows of a run agree or all disagree: logistic regression has no estimate there.
    """
    z, y = POINTS.T
    N = counts[0].sum()
    agreeing, run = np.unique(counts[:, z == y].sum(axis=1), return_inverse=True)
    if model == "LR" and (agreeing[0] == 0 or agreeing[-1] == N):
        raise ValueError(f"with N = {N} the data of a run are separable: LR has no estimate; use larger sizes.")
    fits = []
    for n in agreeing:
        w = np.where(z == y, n, N - n) / (2 * N)
        fits.append(solve_tailored(pose(model, z, y, w, radius), tol=tol))
    return np.array([fit.b[1] for fit in fits])[run], max(fit.gap for fit in fits)


def closed_form(q: np.ndarray, model: str, radius: float) -> np.ndarray:
    """The estimate of beta where the share q of the rows has y = z; see the top of this module."""
    sign = np.where(np.asarray(q) >= 0.5, 1.0, -1.0)
    agreeing = np.maximum(q, 1.0 - np.asarray(q)) - MODELS[model] * radius
    return sign * logit(np.maximum(agreeing, 0.5))


def exact_band(N: int, model: str) -> np.ndarray:
    """The 15 % and the 85 % quantile of the closed form with N rows, N q being binomial; shape (2,)."""
    return closed_form(binom.ppf(QUANTILES, N, expit(BETA)) / N, model, radius_at(N))


def bands(sizes: list[int], runs: int, seed: int) -> pd.DataFrame:
    """Figure 1, left: mean and quantiles of the estimates for each size and model.

    Returns
    -------
    DataFrame with the columns N, model, runs, mean, lower, upper (the 15 % and 85 % quantiles over the runs),
    exact_lower, exact_upper (the same quantiles of the closed form, see ``exact_band``),
    off_closed_form (the largest distance of a run's estimate from it) and gap (the largest certified gap).

    Raises
    ------
    ValueError
        If there is no size or no run, or as for ``estimates``.
    """
    if not sizes or min(sizes) < 1 or runs < 1:
        raise ValueError(f"sizes must be a non-empty list, and sizes and runs at least 1, not {sizes} and {runs}.")
    z, y = POINTS.T
    rows = []
    for N in sizes:
        counts = draw_counts(N, runs, seed)
        q = counts[:, z == y].sum(axis=1) / N
        for model in MODELS:
            b, gap = estimates(counts, model, radius_at(N))
            lower, upper = np.quantile(b, QUANTILES)
            off = np.abs(b - closed_form(q, model, radius_at(N))).max()
            rows.append((N, model, runs, b.mean(), lower, upper, *exact_band(N, model), off, gap))
    columns = "N model runs mean lower upper exact_lower exact_upper off_closed_form gap".split()
    return pd.DataFrame(rows, columns=columns)


def continuous_worst_case(counts: np.ndarray, gamma: float, metric: GroundMetric) -> WorstCase:
    """A member Q_gamma of the sequence of Appendix B, which approaches the worst case of the continuous model.

    Appendix B keeps gamma of the radius unspent and lets the share eta = gamma / (theta + 2 - radius + gamma) of one
    row's mass escape, where theta is the part spent on moving z. This is our worst case at the radius less gamma; where
    no label is changed, theta is all of that radius, and eta = gamma / 2.

    Parameters
    ----------
    counts : int ndarray of shape (4,)
    metric : GroundMetric
        On z as a number.
    """
    N = int(counts.sum())
    z, y = np.repeat(POINTS, counts, axis=0).T
    problem = pose("continuous", z, y, np.full(N, 1.0 / N), radius_at(N) - gamma)
    return worst_case_distribution(replace(problem, metric=metric), np.array([0.0, BETA]), eta=gamma / 2)


def far_point(N: int, gamma: float, radius: float, distance: float = 1.0) -> float:
    """Where Appendix B's formula puts the escaping mass of a row with z = 1: 1 + (radius - gamma) N / (gamma / 2).

    ``distance`` is the factor of |z - z'| in the ground metric: 1 in that formula, 1/2 in Section 2.2.
    """
    return 1.0 + (radius - gamma) * N / (gamma / 2) / distance


def distributions(counts: np.ndarray, gamma: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Figure 1, right: the empirical distribution and the worst cases at beta, for the counts of one data set.

    The last two are those of the continuous model, by ``continuous_worst_case``: with the distance of Section 2.2, and
    with the distance |z - z'|, which Appendix B's number implies. With the latter, changing a label gains exactly as
    much per unit of cost as moving z, so both are worst; as in Appendix B no label is changed (its cost is infinite
    here).

    Returns
    -------
    probabilities : DataFrame with the columns distribution, z, y, probability
    facts : DataFrame with one row per distribution: distribution, radius (of the ball in which it is worst), atoms,
        expected_loss, worst_case_loss, transport_cost, attained

    Raises
    ------
    ValueError
        If there are no samples, or gamma is not above 0 and below the radius.
    """
    N = int(counts.sum())
    if N < 1:
        raise ValueError("the data set must have at least one sample.")
    if not 0 < gamma < radius_at(N):
        raise ValueError(f"gamma must be above 0 and below the radius {radius_at(N):.4f}, not {gamma!r}.")
    z, y = np.repeat(POINTS, counts, axis=0).T
    w, b = np.full(N, 1.0 / N), np.array([0.0, BETA])
    radius = radius_at(N)
    half, full = GroundMetric(2.0, scale=2.0), GroundMetric(np.inf)
    worst_cases = {
        "empirical": (0.0, worst_case_distribution(pose("LR", z, y, w, 0.0), b)),
        "mixed": (radius, worst_case_distribution(pose("mixed", z, y, w, radius), b)),
        "continuous, |z - z'| / 2": (radius - gamma, continuous_worst_case(counts, gamma, half)),
        "continuous, |z - z'|": (radius - gamma, continuous_worst_case(counts, gamma, full)),
    }
    probabilities, facts = [], []
    for name, (ball_radius, worst) in worst_cases.items():
        positions = worst.x[:, 0] if worst.x.size else 2.0 * worst.z[:, 0] - 1.0
        atoms = pd.DataFrame({"z": positions, "y": worst.y.astype(int), "probability": worst.mass})
        atoms = atoms.groupby(["z", "y"], as_index=False)["probability"].sum()
        probabilities.append(atoms.assign(distribution=name))
        facts.append(
            {
                "distribution": name,
                "radius": ball_radius,
                "atoms": len(worst.mass),
                "expected_loss": worst.expected_loss,
                "worst_case_loss": worst.worst_case_loss,
                "transport_cost": worst.transport_cost,
                "attained": worst.attained,
            }
        )
    return pd.concat(probabilities, ignore_index=True)[["distribution", "z", "y", "probability"]], pd.DataFrame(facts)
