"""Theorems 6, 7 and 8 in numbers and pictures: the radius needed, consistency, and worst-case distributions."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from wdrlr.model.metric import ground_metric
from wdrlr.model.problem import Problem, log_loss
from wdrlr.model.worst_case import worst_case_distribution
from wdrlr.paper.synthetic import categorical_problem, synthetic_data, true_loss
from wdrlr.plots import TEXT_WIDTH, figure_style, plain_log_ticks, plain_number
from wdrlr.solvers.interior_point.method import solve_tailored

N_RESAMPLES = 200
"""Resamples of the runs behind the interval of a fitted rate."""


def radii_needed(fits: pd.DataFrame) -> pd.DataFrame:
    """The radius from which on the guarantee holds, of each run.

    A run's own radius lies where true and worst-case loss cross last: between the largest radius at which the guarantee
    fails and the next one, by a straight line over the log radius; at most the smallest where it never fails.

    Parameters
    ----------
    fits
        From `wdrlr.paper.theorems.guarantee_fits`.

    Returns
    -------
    DataFrame with the columns N, run, radius; nan where the guarantee fails at the largest radius.
    """
    rows = []
    for (N, run), of_run in fits.sort_values("radius").groupby(["N", "run"]):
        missing = (of_run["true"] - of_run["worst_case"]).to_numpy()
        log_radius = np.log(of_run["radius"].to_numpy())
        fails = np.flatnonzero(~of_run["holds"])
        if not fails.size:
            needed = log_radius[0]
        elif fails[-1] + 1 == len(of_run):
            needed = np.nan
        else:
            i = fails[-1]
            part = missing[i] / (missing[i] - missing[i + 1])
            needed = log_radius[i] + min(part, 1.0) * (log_radius[i + 1] - log_radius[i])
        rows.append((N, run, np.exp(needed)))
    return pd.DataFrame(rows, columns=["N", "run", "radius"])


def fitted_rate(needed: pd.DataFrame, share: float, seed: int) -> tuple[pd.Series, float, tuple[float, float]]:
    """The quantile of the radii by N, its power of N, and the 95 % interval of the power from resampled runs."""
    quantiles = needed.groupby("N")["radius"].quantile(share)
    wide = needed.pivot_table(index="run", columns="N", values="radius")
    rng = np.random.default_rng(seed)
    powers = [
        _power(pd.Series({N: wide[N].iloc[rng.integers(0, len(wide), len(wide))].quantile(share) for N in wide}))
        for _ in range(N_RESAMPLES)
    ]
    low, high = np.quantile(powers, (0.025, 0.975))
    return quantiles, _power(quantiles), (float(low), float(high))


def _power(of_N: pd.Series) -> float:
    return float(np.polyfit(np.log(of_N.index.to_numpy(dtype=float)), np.log(of_N.to_numpy(dtype=float)), 1)[0])


def theorem_6(needed: pd.DataFrame, n_features: int, share: float, seed: int) -> bool:
    """Whether the radius needed falls at least as fast as the theorem's, by the whole 95 % interval."""
    low, _ = fitted_rate(needed, share, seed)[2]
    return bool(low <= -1 / max(n_features + 1, 2))


def describe_rate(needed: pd.DataFrame, n_features: int, share: float, seed: int) -> Iterator[str]:
    """The fitted power of N beside those of Theorem 6; one sentence per line."""
    quantiles, power, (low, high) = fitted_rate(needed, share, seed)
    radii = ", ".join(f"{radius:.3f} (N = {N})" for N, radius in quantiles.items())
    general = 1 / max(n_features + 1, 2)
    yield f"radius at which the guarantee holds in {100 * share:.0f} % of the runs: {radii}"
    yield f"it falls as N to the power {power:.2f} (95 % interval {low:.2f} to {high:.2f})"
    holds = theorem_6(needed, n_features, share, seed)
    yield (
        f"Theorem 6 {'holds' if holds else 'does not hold'} here: a radius of the order N^-{general:.2f} is "
        f"{'enough, and ' if holds else 'not enough, '}"
        f"{'more than needed' if high < -general else 'not shown to be more'}; the sharper order for categories "
        f"alone, N^-0.50, is {'enough, too' if low <= -0.5 else 'not enough'}."
    )


def rate_plot(needed: pd.DataFrame, share: float, seed: int, smallest: float) -> Figure:
    """The runs' radii against N, their quantile, and the line fitted to it.

    Parameters
    ----------
    smallest
        The smallest radius of the fits. Runs that need no more are hollow triangles: what they need may be less still.
    """
    quantiles, power, _ = fitted_rate(needed, share, seed)
    N = quantiles.index.to_numpy(dtype=float)
    line = np.exp(np.log(quantiles).mean()) * (N / np.exp(np.log(N).mean())) ** power
    with figure_style():
        figure, axis = plt.subplots(figsize=(TEXT_WIDTH / 2, 2.6), layout="constrained")
        censored = needed["radius"] <= smallest * (1 + 1e-9)  # up to the rounding of a logarithm
        axis.plot("N", "radius", ".", data=needed[~censored], color="0.7", markersize=2, label="one run")
        at_most = f"one run, {plain_number(smallest)} or less"
        axis.plot("N", "radius", "v", data=needed[censored], color="0.5", mfc="none", markersize=4, label=at_most)
        axis.plot(N, quantiles, "C0o", markersize=4, label=f"{100 * share:.0f} % quantile")
        axis.plot(N, line, color="C1", label=f"power {power:.2f}")
        plain_log_ticks(axis, "x", quantiles.index)
        plain_log_ticks(axis, "y")
        axis.set(xlabel="samples N", ylabel="radius needed")
        figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=6)
    return figure


def consistency_fits(sizes: Sequence[int], factor: float, n_features: int, n_runs: int, seed: int) -> pd.DataFrame:
    """Fits at radius factor / sqrt(N), kappa = 1, to data of known models.

    Returns
    -------
    DataFrame with the columns N, run, worst_case and true (losses of the fit less the smallest possible true loss),
    distance (of the coefficients from the true ones) and gap.
    """
    rows = []
    for N in sizes:
        for run in range(n_runs):
            data = synthetic_data(N, (2,) * n_features, [seed, run, N])
            problem = categorical_problem(data.z, data.y, data.n_levels, label_cost=1.0, radius=factor / np.sqrt(N))
            fit = solve_tailored(problem.merged())
            least = true_loss(data.b, data)
            distance = float(np.linalg.norm(fit.b - data.b))
            rows.append((N, run, fit.upper - least, true_loss(fit.b, data) - least, distance, fit.gap))
    return pd.DataFrame(rows, columns=["N", "run", "worst_case", "true", "distance", "gap"])


def _means_by_size(fits: pd.DataFrame) -> pd.DataFrame:
    return fits.assign(worst_case=fits["worst_case"].abs()).groupby("N")[["worst_case", "true", "distance"]].mean()


def theorem_7(fits: pd.DataFrame) -> bool:
    """Whether losses and coefficients come to less than half their distance from the optimum, first N to last."""
    means = _means_by_size(fits)
    return bool((means.iloc[-1] < means.iloc[0] / 2).all())


def describe_consistency(fits: pd.DataFrame, factor: float) -> Iterator[str]:
    """How fast the losses and the coefficients converge, and `theorem_7`; one sentence per line."""
    means = _means_by_size(fits)
    first, last = means.index[0], means.index[-1]
    names = {"worst_case": "worst-case loss", "true": "true loss", "distance": "coefficients"}
    for column, name in names.items():
        yield (
            f"{name}: mean distance from the optimum {means[column].iloc[0]:.4f} at N = {first}, "
            f"{means[column].iloc[-1]:.4f} at N = {last}; power {_power(means[column]):.2f} of N"
        )
    yield (
        f"Theorem 7's conclusion {'holds' if theorem_7(fits) else 'is not seen'} here at radius {factor:g} / sqrt(N), "
        "which is smaller than its assumptions ask for: with confidences whose sum is finite the radius has a factor "
        "sqrt(log N) more."
    )


def consistency_plot(fits: pd.DataFrame) -> Figure:
    """Means of the excess losses and of the coefficients' distance against N."""
    with figure_style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(TEXT_WIDTH, 2.2), layout="constrained")
        by_N = fits.groupby("N")
        left.plot(by_N["worst_case"].mean(), "C1", marker=".", label="worst-case loss")
        left.plot(by_N["true"].mean(), "C0", marker=".", label="true loss")
        right.plot(by_N["distance"].mean(), "C0", marker=".")
        for axis in (left, right):
            plain_log_ticks(axis, "x", list(by_N.groups))
            plain_log_ticks(axis, "y")
            axis.set_xlabel("samples N")
        left.set(title="less the smallest true loss", ylabel="loss")
        right.set(title="coefficients", ylabel="distance from the true ones")
        left.legend(frameon=False)
    return figure


def mixed_problem(N: int, n: int, m: int, radius: float, label_cost: float, seed: Sequence[int]) -> Problem:
    """Random rows with n numbers (standard normal, l1 norm) and m binary features, labels from a model of them."""
    rng = np.random.default_rng(seed)
    data = synthetic_data(N, (2,) * m, seed)
    problem = categorical_problem(data.z, data.y, data.n_levels, radius=radius)
    x = rng.standard_normal((N, n))
    slopes = rng.standard_normal(n)
    y = np.where(x @ slopes + problem.decision(data.b) + rng.logistic(size=N) > 0, 1.0, -1.0)
    metric = ground_metric(label_cost, n, m)
    return replace(problem, x=x, y=y, metric=metric, penalty=np.zeros(1 + n + m), coef_bound=np.array(np.inf))


def worst_case_atoms(n_runs: int, seed: int, radius: float = 0.05, eta: float = 1e-4) -> pd.DataFrame:
    """Worst-case distributions at the optimal coefficients of random problems.

    There are n = 0, 1, 2 numbers, m = 3 binary features and N = 30 samples; kappa is 1 or infinite.

    Returns
    -------
    DataFrame with the columns n, label_cost, run, N, atoms, attained, short (supremum less expected loss), allowed (eta
    times the largest loss times the weight), excess_cost (transport cost less the radius), slack (multiplier less the
    dual norm of the numbers' slopes; above 0 where the radius is worth more than moving numbers) and moves (b_N != 0).
    """
    rows = []
    for n in (0, 1, 2):
        for label_cost in (1.0, np.inf):
            for run in range(n_runs):
                problem = mixed_problem(30, n, 3, radius, label_cost, [seed, run, n])
                fit = solve_tailored(problem)
                worst = worst_case_distribution(problem, fit.b, eta)
                loss = log_loss(-problem.y * problem.decision(fit.b)).max()
                slack = fit.lam - problem.metric.dual_norm(problem.numeric(fit.b))
                rows.append(
                    (
                        *(n, label_cost, run, 30, len(worst.mass), worst.attained, worst.gap, eta * loss / 30),
                        *(worst.transport_cost - radius, slack, bool(problem.numeric(fit.b).any())),
                    )
                )
    columns = "n label_cost run N atoms attained short allowed excess_cost slack moves".split()
    return pd.DataFrame(rows, columns=columns)


def growth_of_loss(distances: Sequence[float]) -> pd.DataFrame:
    """One number, b_N = 1, f = 0 at the sample: what a shift gains, and the loss over 1 + d^q.

    Returns
    -------
    DataFrame with the columns distance, gain_per_distance (at most 1, the rate of the supremum), missing (1 less that),
    linear (the loss over 1 + d) and sublinear (over 1 + d^0.9).
    """
    d = np.asarray(distances, dtype=float)
    loss = log_loss(d)
    missing = (np.log(2.0) - np.log1p(np.exp(-d))) / d  # 1 - (L(d) - L(0)) / d without cancellation
    return pd.DataFrame(
        {
            "distance": d,
            "gain_per_distance": 1 - missing,
            "missing": missing,
            "linear": loss / (1 + d),
            "sublinear": loss / (1 + d**0.9),
        }
    )


def theorem_8(atoms: pd.DataFrame) -> bool:
    """Whether all suprema are attained, by N + 1 atoms at most."""
    return bool((atoms["atoms"] <= atoms["N"] + 1).all() and atoms["attained"].all())


def describe_atoms(atoms: pd.DataFrame, growth: pd.DataFrame) -> Iterator[str]:
    """Numbers of atoms, where the supremum is attained, and what the cited condition needs; one sentence per line."""
    for n, of_n in atoms.groupby("n"):
        yield (
            f"n = {n}: at most {(of_n['atoms'] - of_n['N']).max()} atoms more than samples; the supremum is attained "
            f"in {of_n['attained'].sum()} of {len(of_n)} fits, else missed by at most {of_n['short'].max():.1e}"
        )
    yield (
        f"one number: a shift gains less than the supremum's rate at every distance, by {growth['missing'].min():.1e} "
        f"or more; the loss over 1 + d is at most {growth['linear'].max():.2f}, but over 1 + d^0.9 it is "
        f"{growth['sublinear'].iloc[-1]:.1f} at d = {growth['distance'].iloc[-1]:.0e} and grows without limit"
    )
    few = (atoms["atoms"] <= atoms["N"] + 1).all()
    missed = (~atoms.loc[atoms["n"] > 0, "attained"]).sum()
    yield (
        f"Theorem 8 {'holds' if theorem_8(atoms[atoms['n'] == 0]) else 'does not hold'} for n = 0; for n >= 1 it "
        f"{'does not hold: ' if missed else 'holds: '}the supremum is not attained in {missed} of "
        f"{(atoms['n'] > 0).sum()} optimal fits. The growth condition allows the loss to grow as fast as the "
        "distance; existence needs slower growth, or none of the radius left for moving numbers. What holds: "
        f"distributions with at most N + 1 atoms come as close as wanted ({'all' if few else 'not all'} of these have)."
    )


def growth_plot(growth: pd.DataFrame) -> Figure:
    """What a shift falls short of the supremum's rate against its distance (left); loss over 1 + d^q (right)."""
    with figure_style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(TEXT_WIDTH, 2.2), layout="constrained")
        left.plot(growth["distance"], growth["missing"], "C0", marker=".")
        plain_log_ticks(left, "y")
        left.set(title="rate of the supremum less gain of a shift", ylabel="loss a unit")
        right.plot(growth["distance"], growth["linear"], "C0", marker=".", label="loss / (1 + d)")
        right.plot(growth["distance"], growth["sublinear"], "C1", marker=".", label="loss / (1 + d^0.9)")
        right.set(title="growth condition, exponents 1 and 0.9", ylabel="ratio")
        right.legend(frameon=False)
        for axis in (left, right):
            plain_log_ticks(axis, "x")
            axis.set_xlabel("distance d of the shift")
    return figure
