"""The paper's theorems in numbers and pictures.

No regulariser is equivalent to the robust problem (Theorem 3), its worst-case loss is at least the true loss if the
radius is large enough (Theorem 6), and of its exponentially many constraints only a few are needed (Theorems 1 and 4).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from wdrlr.model.cuts import count_all_cuts
from wdrlr.model.metric import ground_metric
from wdrlr.model.objective import worst_case_loss
from wdrlr.model.problem import Problem, log_loss
from wdrlr.paper.runtimes import instance
from wdrlr.paper.synthetic import categorical_problem, synthetic_data, true_loss
from wdrlr.plots import TEXT_WIDTH, figure_style, plain_log_ticks
from wdrlr.solvers.column_constraint import solve_column_constraint
from wdrlr.solvers.interior_point.method import solve_tailored

CASES = {"": "with category", "_without_category": "without"}
"""Theorem 3's example, and that of the remark after its proof: suffix of the columns, and label."""

SCHEMES = {"one cut a label and round, as the paper's": False, "all violated cuts": True}
"""Column-and-constraint schemes, and whether they add all violated cuts."""


def one_sample(x: float, n_categories: int, radius: float) -> Problem:
    """The sample of Theorem 3's proof: a number x, a category 0 (or none) and the label -1; kappa is infinite."""
    return Problem(
        x=np.array([[x]]),
        z=np.zeros((1, n_categories), dtype=int),
        y=np.array([-1.0]),
        w=np.ones(1),
        n_levels=(2,) * n_categories,
        level_matrix=np.array([[0.0], [1.0]])[: 2 * n_categories, :n_categories],
        metric=ground_metric(np.inf, 1, n_categories),
        radius=radius,
        penalty=np.zeros(2 + n_categories),
    )


def kink(slopes: Sequence[float]) -> float:
    """The x at which the two terms of the second part of Theorem 3's worst-case loss are equal."""
    # log((1 + c e^f) / (1 + e^f)) = b_N, with f = b_0 + b_N x and c = e^b_C.
    b_0, b_N, b_C = slopes
    return float((np.log(np.expm1(b_N) / (np.exp(b_C) - np.exp(b_N))) - b_0) / b_N)


def losses_by_x(slopes: Sequence[float], radius: float) -> pd.DataFrame:
    """Worst-case losses of one sample around the kink, by the formula of the proof and by Algorithm 2.

    Parameters
    ----------
    slopes
        Intercept, slope of the number and of the category.

    Returns
    -------
    DataFrame with the columns x, plain_loss, closed_form, worst_case_loss, and the last two also without the category.
    """
    b_0, b_N, b_C = slopes
    x = kink(slopes) + np.linspace(-6, 6, 121)
    plain = log_loss(b_0 + b_N * x)
    jump = log_loss(b_0 + b_N * x + b_C) - plain
    return pd.DataFrame(
        {
            "x": x,
            "plain_loss": plain,
            "closed_form": plain + radius * np.maximum(jump, abs(b_N)),
            "worst_case_loss": [_worst_case(value, slopes, radius) for value in x],
            "closed_form_without_category": plain + radius * abs(b_N),
            "worst_case_loss_without_category": [_worst_case(value, slopes[:2], radius) for value in x],
        }
    )


def _worst_case(x: float, b: Sequence[float], radius: float) -> float:
    return worst_case_loss(one_sample(x, len(b) - 2, radius), np.array(b))[0]


def describe_losses(losses: pd.DataFrame, slopes: Sequence[float], radius: float) -> Iterator[str]:
    """How far formula and Algorithm 2 are apart, and the slopes on both sides of the kink; one sentence per line."""
    for case in CASES:
        difference = (losses[f"closed_form{case}"] - losses[f"worst_case_loss{case}"]).abs().max()
        yield f"largest difference between formula and worst_case_loss{case.replace('_', ' ')}: {difference:.1e}"
    at, width = kink(slopes), 1e-4
    before, after = np.diff([_worst_case(at + step, slopes, radius) for step in (-width, 0, width)]) / width
    yield f"kink at x = {at:.4f}: the slope of worst_case_loss is {before:.4f} before it and {after:.4f} after it"


def _moves(losses: pd.DataFrame) -> list[float]:
    """By how much the second part of the worst-case loss moves with x, in each case."""
    return [np.ptp(losses[f"worst_case_loss{case}"] - losses["plain_loss"]) for case in CASES]


def theorem_3(losses: pd.DataFrame) -> bool:
    """Whether the second part of the worst-case loss moves with x, as no regulariser does, but only with a category."""
    with_category, without = _moves(losses)
    return bool(with_category > 1e-6 > without)


def judge_losses(losses: pd.DataFrame) -> str:
    """Whether `theorem_3` holds, with the numbers."""
    with_category, without = _moves(losses)
    return (
        f"Theorem 3 {'holds' if theorem_3(losses) else 'does not hold'} here: what is added to the plain "
        f"loss moves by {with_category:.3f} with x; without the category by {without:.1e}, as the remark says."
    )


def losses_plot(losses: pd.DataFrame, slopes: Sequence[float]) -> Figure:
    """Worst-case losses against x (left), and less the plain loss (right): lines are the formula, dots Algorithm 2."""
    with figure_style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(TEXT_WIDTH, 2.4), layout="constrained")
        left.plot(losses["x"], losses["plain_loss"], color="0.6", label="plain loss")
        for axis, minus in ((left, 0.0), (right, losses["plain_loss"])):
            for (case, label), color in zip(CASES.items(), ("C0", "C1"), strict=True):
                axis.plot(losses["x"], losses[f"closed_form{case}"] - minus, color=color, label=label)
                dots = (losses[f"worst_case_loss{case}"] - minus).iloc[::10]
                axis.plot(losses["x"].iloc[::10], dots, ".", color=color, markersize=5)
            axis.axvline(kink(slopes), color="0.5", lw=0.6, ls=":")
            axis.set_xlabel("x of the sample")
        left.set(title="worst-case loss", ylabel="loss")
        right.set(title="worst-case loss less plain loss", ylabel="difference")
        left.legend(frameon=False)
    return figure


def guarantee_fits(sample_sizes: Sequence[int], n_features: int, n_runs: int, seed: int) -> pd.DataFrame:
    """Robust fits to data sets drawn from known models, at radii from 0.001 to 1.

    Returns
    -------
    DataFrame with the columns N, radius, run, worst_case and true (losses of the coefficients), constant (all slopes
    are 0), gap and holds (the worst-case loss is at least the true loss).
    """
    rows = []
    for N in sample_sizes:
        for run in range(n_runs):
            data = synthetic_data(N, (2,) * n_features, [seed, run, N])
            problem = categorical_problem(data.z, data.y, data.n_levels, label_cost=1.0).merged()
            for radius in np.geomspace(1e-3, 1, 13):
                fit = solve_tailored(replace(problem, radius=float(radius)))
                rows.append((N, radius, run, fit.upper, true_loss(fit.b, data), not fit.b[1:].any(), fit.gap))
    fits = pd.DataFrame(rows, columns=["N", "radius", "run", "worst_case", "true", "constant", "gap"])
    return fits.assign(holds=fits["true"] <= fits["worst_case"] + 1e-9)  # up to rounding


def describe_guarantee(shares: pd.DataFrame) -> Iterator[str]:
    """From which radius on the guarantee holds, and how often it does where the true loss is smallest; one line per N.

    Parameters
    ----------
    shares
        Means of `guarantee_fits` by N and radius.
    """
    for N, of_N in shares.groupby("N"):
        enough = of_N.loc[(of_N["holds"] >= 0.95)[::-1].cummin(), "radius"]
        where = f"from radius {enough.min():.3f} on" if len(enough) else "at none of the radii"
        best = of_N.loc[of_N["true"].idxmin()]
        yield (
            f"N = {N}: it holds in 95 % of the runs {where}; the true loss is smallest at radius "
            f"{best['radius']:.3f}, where it holds in {100 * best['holds']:.0f} %"
        )


def guarantee_plot(shares: pd.DataFrame) -> Figure:
    """Share of runs in which the guarantee holds (left), and mean losses (right), against the radius."""
    with figure_style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(TEXT_WIDTH, 2.6), layout="constrained")
        colors = plt.rcParams["axes.prop_cycle"].by_key()["color"]
        for color, (N, of_N) in zip(colors, shares.groupby("N"), strict=False):
            left.plot(of_N["radius"], 100 * of_N["holds"], color=color, marker=".", label=f"N = {N}")
            left.plot(of_N["radius"], 100 * of_N["constant"], color=color, lw=0.8, ls=":")
            right.plot(of_N["radius"], of_N["true"], color=color, marker=".")
            right.plot(of_N["radius"], of_N["worst_case"], color=color, lw=0.8, ls="--")
        right.axhline(np.log(2), color="0.5", lw=0.6, ls=":")
        left.set(title="guarantee holds (dotted: slopes all 0)", ylabel="% of runs")
        right.set(title="true loss (dashed: worst case)", ylabel="mean loss")
        right.set_ylim(top=min(1.0, 1.05 * shares["true"].max()))
        for axis in (left, right):
            plain_log_ticks(axis, "x")
            axis.set_xlabel("radius")
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    return figure


def scheme_fits(n_features: Sequence[int], n_runs: int, seed: int) -> pd.DataFrame:
    """Fits by the column-and-constraint schemes: N = 50, kappa = m, radius 0.01 in units of the metric over m + kappa.

    Returns
    -------
    DataFrame with the columns m, run, scheme, constraints (of the monolithic program), cuts, rounds and gap.
    """
    rows = []
    for m in n_features:
        for run in range(n_runs):
            problem = instance("m", "2", 50, m, run, 0.01, seed)
            for name, all_violated in SCHEMES.items():
                fit = solve_column_constraint(problem, all_violated=all_violated)
                rows.append((m, run, name, float(count_all_cuts(problem)), fit.n_cuts, fit.n_rounds, fit.gap))
    return pd.DataFrame(rows, columns=["m", "run", "scheme", "constraints", "cuts", "rounds", "gap"])


def schemes_plot(fits: pd.DataFrame) -> Figure:
    """Cuts at the end (left) and rounds (right) of `scheme_fits` against m: medians, and the range of the runs."""
    with figure_style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(TEXT_WIDTH, 2.6), layout="constrained")
        left.plot("m", "constraints", color="0.3", ls="--", label="all constraints", data=fits.drop_duplicates("m"))
        for color, (name, of_scheme) in zip(("C0", "C1"), fits.groupby("scheme", sort=False), strict=True):
            for axis, what in ((left, "cuts"), (right, "rounds")):
                by_m = of_scheme.groupby("m")[what]
                axis.plot(by_m.median(), color=color, marker=".", label=name)
                axis.fill_between(by_m.min().index, by_m.min(), by_m.max(), color=color, alpha=0.2, lw=0)
                axis.set_xlabel("binary features m")
        plain_log_ticks(left, "y")
        left.set_ylabel("constraints (log scale)")
        right.set_ylabel("rounds")
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure
