"""Theorems 2, 4 and 5 and the remark on the exponential cone in numbers and pictures.

What is polynomial, what is not, and how Algorithms 1 and 2 do.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.special import entr, expit

from wdrlr.model.cuts import all_cuts
from wdrlr.model.objective import objective
from wdrlr.model.problem import Problem, log_loss
from wdrlr.model.separation import most_violated
from wdrlr.model.threads import threads
from wdrlr.paper.runtimes import instance
from wdrlr.paper.synthetic import categorical_problem, synthetic_data
from wdrlr.plots import TEXT_WIDTH, figure_style, plain_log_ticks, plain_number
from wdrlr.solvers.column_constraint import solve_column_constraint, solve_monolithic

T = TypeVar("T")

ACCURACY = 1e-7
"""That of the conic solver, to which the bounds of Algorithm 1 are known."""

CONE_TOL = 1e-6
"""Gap to which the programs with and without the exponential cone are solved."""


def bounds_by_round(n_features: Sequence[int], seed: int) -> pd.DataFrame:
    """Algorithm 1's bounds after each round: N = 50, kappa = m, radius 0.01 in units of the metric over m + kappa.

    Returns
    -------
    DataFrame with the columns m, round, lower, upper, and optimum_lower, optimum_upper (the certificate of the fit).
    """
    frames = []
    for m in n_features:
        fit = solve_column_constraint(instance("m", "2", 50, m, 0, 0.01, seed))
        frame = pd.DataFrame(fit.bounds, columns=["lower", "upper"])
        frame = frame.assign(m=m, round=np.arange(1, len(frame) + 1))
        frames.append(frame.assign(optimum_lower=fit.lower, optimum_upper=fit.upper))
    return pd.concat(frames, ignore_index=True)[["m", "round", "lower", "upper", "optimum_lower", "optimum_upper"]]


def theorem_4(of_m: pd.DataFrame) -> bool:
    """Whether the bounds of a run are monotone, enclose the optimum and close, up to `ACCURACY`."""
    last = of_m.iloc[-1]
    monotone = len(of_m) == 1 or (of_m["lower"].diff().min() >= -ACCURACY and of_m["upper"].diff().max() <= ACCURACY)
    below = (of_m["lower"] <= of_m["optimum_upper"] + ACCURACY).all()
    above = (of_m["upper"] >= of_m["optimum_lower"] - ACCURACY).all()
    return bool(monotone and below and above and last["upper"] - last["lower"] <= 1e-6)


def describe_bounds(bounds: pd.DataFrame) -> Iterator[str]:
    """The bounds of each run, and in how many `theorem_4` holds; one sentence per line."""
    verdicts = []
    for m, of_m in bounds.groupby("m"):
        verdicts.append(theorem_4(of_m))
        first, last = (of_m["upper"].iloc[end] - of_m["lower"].iloc[end] for end in (0, -1))
        fall = max(0.0, -of_m["lower"].diff().min())
        yield (
            f"m = {m}: {len(of_m)} rounds, from a gap of {first:.1e} to {last:.1e}; the lower bound falls by at most "
            f"{fall:.1e} in a round"
        )
    if all(verdicts):
        yield (
            "Theorem 4 holds in these runs: both bounds are monotone and enclose the optimum (to "
            f"{ACCURACY:.0e}, the accuracy of the conic solver), and they close in {sum(verdicts)} of {len(verdicts)}."
        )
    else:
        yield f"Theorem 4 does not hold in {len(verdicts) - sum(verdicts)} of {len(verdicts)} runs."


def bounds_plot(bounds: pd.DataFrame) -> Figure:
    """Both bounds against the rounds (above), and the gap between them on a log scale (below)."""
    gaps = (bounds["upper"] - bounds["lower"]).clip(lower=ACCURACY)
    with figure_style():
        figure, axes = plt.subplots(
            2, bounds["m"].nunique(), figsize=(TEXT_WIDTH, 3.6), sharex="col", layout="constrained", squeeze=False
        )
        for (above, below), (m, of_m) in zip(axes.T, bounds.assign(gap=gaps).groupby("m"), strict=True):
            above.plot("round", "upper", "C1.-", data=of_m, markersize=3, label="upper bound")
            above.plot("round", "lower", "C0.-", data=of_m, markersize=3, label="lower bound")
            above.axhline(of_m["optimum_upper"].iloc[0], color="0.3", lw=0.8, ls=":", label="optimum")
            above.set_title(f"m = {m}")
            below.plot("round", "gap", "C2.-", data=of_m, markersize=3, label="gap")
            closed, at_most = of_m[of_m["gap"] <= ACCURACY], f"gap of {plain_number(ACCURACY)} or less"
            below.plot("round", "gap", "C2v", data=closed, mfc="white", markersize=4, label=at_most)
            plain_log_ticks(below, "y")
            below.set(xlabel="round", ylim=(ACCURACY / 2, 2 * gaps.max()))
            below.tick_params(labelleft=bool(below is axes[1, 0]))
            below.xaxis.set_major_locator(plt.MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))
        axes[0, 0].set_ylabel("objective")
        axes[1, 0].set_ylabel("gap of the bounds")
        lines = [line for axis in axes[:, 0] for line in axis.get_legend_handles_labels()[0]]
        figure.legend(handles=lines, loc="outside lower center", ncols=5, frameon=False)
    return figure


def separations(n_features: Sequence[int], brute_force_up_to: int, seed: int) -> pd.DataFrame:
    """Algorithm 2 and brute force on the same coefficients, p = 1 and 2, for N = 20 samples, features of 2 levels.

    Returns
    -------
    DataFrame with the columns p, m, seconds (of Algorithm 2), brute_force_seconds (both the least of five runs) and
    difference (the largest one of the samples' worst values); nan where there are too many points for brute force.
    """
    rows = []
    for p in (1.0, 2.0):
        for m in n_features:
            data = synthetic_data(20, (2,) * m, [seed, m])
            problem = categorical_problem(data.z, data.y, data.n_levels, radius=0.1)
            problem = replace(problem, metric=replace(problem.metric, p=p))
            b, lam = np.sqrt(m) * data.b, 0.3
            with threads(1):
                worst, seconds = _least_seconds(partial(most_violated, problem, b, lam, False))
            brute, difference = np.nan, np.nan
            if m <= brute_force_up_to:
                values, brute = _least_seconds(partial(_values_of_all, problem, b, lam))
                difference = np.abs(values.max(axis=1) - worst.value).max()
            rows.append((p, m, seconds, brute, difference))
    return pd.DataFrame(rows, columns=["p", "m", "seconds", "brute_force_seconds", "difference"])


def _least_seconds(work: Callable[[], T], n_runs: int = 5) -> tuple[T, float]:
    """What some work returns, and the least seconds that it takes in so many runs."""
    least = np.inf
    for _ in range(n_runs):
        start = perf_counter()
        found = work()
        least = min(least, perf_counter() - start)
    return found, least


def _values_of_all(problem: Problem, b: np.ndarray, lam: float) -> np.ndarray:
    """L(-y f(x_i, z)) - lam d_C(z, z_i) of every z; shape (N, 2^m), for features of two levels."""
    m = problem.n_categorical
    points = np.indices((2,) * m).reshape(m, -1).T
    f = b[0] + points @ b[1:]
    n_changes = (problem.z[:, None, :] != points).sum(axis=2)
    return log_loss(-problem.y[:, None] * f) - lam * problem.metric.level_changes(m)[n_changes]


def _power_of_features(timed: pd.DataFrame) -> float:
    """The power of m in the seconds of Algorithm 2, at the largest m."""
    largest = timed[timed["m"] >= timed["m"].max() / 8]
    return float(np.polyfit(np.log(largest["m"]), np.log(largest["seconds"]), 1)[0])


def theorem_5(timed: pd.DataFrame) -> bool:
    """Whether Algorithm 2 found the maximum, at a cost of the order m^2 or less; allows for the timing's scatter."""
    return bool(timed["difference"].max() <= 1e-12 and _power_of_features(timed) <= 2.2)


def describe_separations(timed: pd.DataFrame) -> Iterator[str]:
    """How near Algorithm 2 is to the maximum, how its seconds grow with m, and `theorem_5`; one sentence per line."""
    compared, power = timed.dropna(), _power_of_features(timed)
    dearest = compared[compared["m"] >= compared["m"].max() / 2]  # those of few points take the time of the calls
    factor = np.exp(np.polyfit(dearest["m"], np.log(dearest["brute_force_seconds"]), 1)[0])
    off = compared["difference"].max()
    yield f"{len(compared)} comparisons with brute force, largest difference {off:.1e}"
    yield f"seconds of Algorithm 2: power {power:.2f} of m at the largest m; brute force: times {factor:.2f} a feature"
    if theorem_5(timed):
        yield "Theorem 5 holds here: the constraint found is a most violated one, at a cost of at most the order m^2."
    else:
        yield "Theorem 5 does not hold here: " + (
            "not the worst was found." if off > 1e-12 else "the cost grows faster."
        )


def separations_plot(timed: pd.DataFrame) -> Figure:
    """Seconds of Algorithm 2 and of brute force against m; p = 2 is dashed with hollow marks, on top of p = 1."""
    ways = {"seconds": ("Algorithm 2", "C0", "C2"), "brute_force_seconds": ("brute force", "C1", "C3")}
    below: dict[str, Any] = {"linewidth": 2, "marker": "o", "markersize": 3}
    above: dict[str, Any] = {"linewidth": 0.8, "linestyle": "--", "marker": "s", "markersize": 5, "mfc": "none"}
    with figure_style():
        figure, axis = plt.subplots(figsize=(TEXT_WIDTH / 2, 2.9), layout="constrained")
        for seconds, (way, *colors) in ways.items():
            for (p, of_p), look, color in zip(timed.groupby("p"), (below, above), colors, strict=True):
                label = f"{way}, metric with p = {p:g}"
                axis.plot("m", seconds, data=of_p, color=color, label=label, **look)
        for which in ("x", "y"):
            plain_log_ticks(axis, which)
        axis.set(xlabel="binary features m", ylabel="seconds, 20 samples")
        figure.legend(loc="outside lower center", frameon=False, fontsize=6, handlelength=3)
    return figure


def integer_programs(n_variables: int, n_constraints: int, n_runs: int, seed: int) -> pd.DataFrame:
    """Theorem 2's reduction: max c.chi subject to F chi <= g, chi in {0, 1}^n, as a worst-case expectation.

    One sample at z = 0, the loss c.z where F z <= g and -M elsewhere; nature chooses a distribution on all 2^n points
    of mean distance at most the radius, by a linear program. It is compared with an integer program's solver.

    Returns
    -------
    DataFrame with the columns run, optimum (-M if nothing is feasible), worst_case (at radius n, as far as any point
    is), small_radius (the same at radius 1), feasible, penalty (M).
    """
    rows = []
    points = np.indices((2,) * n_variables).reshape(n_variables, -1).T
    distance = points.sum(axis=1)
    for run in range(n_runs):
        rng = np.random.default_rng([seed, run])
        F = rng.integers(-5, 10, (n_constraints, n_variables))
        g = rng.integers(-5, 20, n_constraints)
        c = rng.integers(-3, 10, n_variables)
        penalty = 1.0 + np.abs(c).sum()
        found = milp(-c, constraints=LinearConstraint(F, ub=g), integrality=np.ones(n_variables), bounds=Bounds(0, 1))
        loss = np.where((points @ F.T <= g).all(axis=1), points @ c, -penalty)
        optimum = -found.fun if found.success else -penalty
        worst = [_worst_expectation(loss, distance, radius) for radius in (n_variables, 1)]
        rows.append((run, optimum, *worst, found.success, penalty))
    return pd.DataFrame(rows, columns=["run", "optimum", "worst_case", "small_radius", "feasible", "penalty"])


def _worst_expectation(loss: np.ndarray, distance: np.ndarray, radius: float) -> float:
    """The largest q.loss over distributions q with q.distance <= radius."""
    found = linprog(-loss, A_ub=distance[None], b_ub=[radius], A_eq=np.ones((1, len(loss))), b_eq=[1.0])
    return float(-found.fun)


def _off_optimum(solved: pd.DataFrame) -> float:
    return float((solved["optimum"] - solved["worst_case"]).abs().max())


def theorem_2(solved: pd.DataFrame) -> bool:
    """Whether the worst-case expectation answers the integer programs."""
    return _off_optimum(solved) <= 1e-6


def describe_integer_programs(solved: pd.DataFrame) -> Iterator[str]:
    """How near the worst-case expectation is to the optimum, and `theorem_2`; one sentence per line."""
    off = _off_optimum(solved)
    too_small = (solved["small_radius"] < solved["optimum"] - 1e-6).sum()
    yield (
        f"{len(solved)} integer programs, {solved['feasible'].sum()} of them feasible: the worst-case expectation is "
        f"the optimum (or -M) up to {off:.1e}; at radius 1 it is below in {too_small}"
    )
    verdict = "holds" if theorem_2(solved) else "does not hold"
    yield (
        f"Theorem 2 (i), the reduction, {verdict} in these instances, if the radius is at least the largest distance, "
        "and M above any |c.chi|; (ii), polynomial time for the log-loss, rests on Theorem 5."
    )


def with_and_without_cone(n_features: Sequence[int], n_runs: int, seed: int) -> pd.DataFrame:
    """All constraints of N = 20 samples, by Clarabel's exponential cone and by linear programs (HiGHS).

    The linear programs replace the log-loss by tangents, t a + H(t) <= L(a) with H the entropy of (t, 1 - t), and add
    those at the last solution until the certified gap is 1e-6.

    Returns
    -------
    DataFrame with the columns m, run, cone_seconds, tangents_seconds, programs (linear ones), cone, tangents (the
    objectives, by Algorithm 2) and gap (of the linear programs).
    """
    rows = []
    for m in n_features:
        for run in range(n_runs):
            problem = instance("m", "2", 20, m, run, 0.01, seed)
            start = perf_counter()
            cone = solve_monolithic(problem, tol=CONE_TOL)
            between = perf_counter()
            upper, lower, programs = _solve_by_tangents(problem)
            end = perf_counter()
            rows.append((m, run, between - start, end - between, programs, cone.upper, upper, upper - lower))
    columns = ["m", "run", "cone_seconds", "tangents_seconds", "programs", "cone", "tangents", "gap"]
    return pd.DataFrame(rows, columns=columns)


def _solve_by_tangents(problem: Problem, most_programs: int = 60) -> tuple[float, float, int]:
    """The best objective found, a lower bound on the optimum, and the number of linear programs; without numbers."""
    cuts = all_cuts(problem, 100_000)
    rows, costs = cuts.rows(problem), cuts.costs(problem)
    owner = np.zeros((len(cuts), problem.n_samples))
    owner[np.arange(len(cuts)), cuts.sample] = 1.0
    n_b = problem.n_coefficients
    slope, cut = np.tile([0.0, 0.5, 1.0], len(cuts)), np.repeat(np.arange(len(cuts)), 3)
    objective_row = np.r_[np.zeros(n_b), problem.radius, problem.w]
    bounds = [(None, None)] * n_b + [(0, None)] * (1 + problem.n_samples)
    upper = np.inf
    programs = 0
    while programs < most_programs:
        programs += 1
        A = np.hstack([slope[:, None] * rows[cut], -costs[cut, None], -owner[cut]])
        found = linprog(objective_row, A_ub=A, b_ub=-(entr(slope) + entr(1 - slope)), bounds=bounds, method="highs")
        b, lam, s = np.split(found.x, [n_b, n_b + 1])
        upper = min(upper, objective(problem, b)[0])
        a = rows @ b
        violated = np.flatnonzero(log_loss(a) - lam[0] * costs - s[cuts.sample] > CONE_TOL / 10)
        if upper - found.fun <= CONE_TOL or not violated.size:
            break
        slope, cut = np.r_[slope, expit(a[violated])], np.r_[cut, violated]
    return upper, float(found.fun), programs


def describe_cone(compared: pd.DataFrame) -> Iterator[str]:
    """Medians of both ways, and what can be said of the remark; one sentence per line."""
    for m, of_m in compared.groupby("m"):
        yield (
            f"m = {m}: exponential cone {of_m['cone_seconds'].median():.3f} s, {of_m['programs'].median():.0f} linear "
            f"programs {of_m['tangents_seconds'].median():.3f} s (medians); objectives differ by at most "
            f"{(of_m['cone'] - of_m['tangents']).abs().max():.1e}"
        )
    ratio = (compared["tangents_seconds"] / compared["cone_seconds"])[compared["m"] == compared["m"].max()].median()
    yield (
        "The remark on the exponential cone is undecided: it is about MOSEK, which needs a licence. Among solvers that "
        f"need none, linear programs take {ratio:.2g} times as long as the cone at the largest m."
    )


def cone_plot(compared: pd.DataFrame) -> Figure:
    """Median seconds with and without the exponential cone against m, and the range of the runs."""
    with figure_style():
        figure, axis = plt.subplots(figsize=(TEXT_WIDTH / 2, 2.2), layout="constrained")
        ways = (("C0", "cone", "exponential cone (Clarabel)"), ("C1", "tangents", "linear programs (HiGHS)"))
        for color, what, label in ways:
            by_m = compared.groupby("m")[f"{what}_seconds"]
            axis.plot(by_m.median(), color=color, marker=".", label=label)
            axis.fill_between(by_m.min().index, by_m.min(), by_m.max(), color=color, alpha=0.2, lw=0)
        plain_log_ticks(axis, "y")
        axis.set(xlabel="binary features m", ylabel="seconds")
        axis.legend(frameon=False)
    return figure
