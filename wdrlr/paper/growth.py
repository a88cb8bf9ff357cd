"""Figure 2 in numbers: how the seconds of a fit grow with the samples and with the categorical features."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from wdrlr.paper.runtimes import SOLVERS, Panel


def describe_fits(rows: pd.DataFrame, n_runs: int) -> Iterator[str]:
    """How many of the fits were tried and solved, how long they took, and on which machines; one sentence per line.

    Parameters
    ----------
    rows
        From `wdrlr.paper.runtimes.rows_for`.
    n_runs
        How many fits of each size are wanted.
    """
    points = rows.groupby(["label_cost", "solver", "levels", "N", "m"]).size()
    n_complete = (points == n_runs).sum()
    yield f"{len(points)} combinations of kappa, solver and size tried, {n_complete} of them {n_runs} times"
    yield f"{len(rows)} fits: {', '.join(f'{n} {status}' for status, n in rows['status'].value_counts().items())}"
    yield f"{rows['cpu_seconds'].sum() / 3600:.1f} hours of processor time"
    for machine, of_machine in rows.groupby("machine"):
        yield f"{len(of_machine)} of them on {machine}; {', '.join(sorted(set(of_machine['versions'])))}"


def require_label_costs(rows: pd.DataFrame, label_costs: Sequence[str], folder_name: str) -> None:
    """Raise a RuntimeError unless there are rows of every label cost."""
    for label_cost in label_costs:
        if not (rows["label_cost"] == label_cost).any():
            raise RuntimeError(
                f"{folder_name} has no rows of these fits for kappa = {label_cost}: set compute_missing to True, name "
                "another results_dir, or take it out of label_costs."
            )


def count_solved(summary: pd.DataFrame) -> pd.DataFrame:
    """Fits solved of those tried, and the reason where a size was given up: sizes by solvers.

    Parameters
    ----------
    summary
        From `wdrlr.paper.runtimes.summarise`.
    """
    points = summary.drop_duplicates(["label_cost", "solver", "levels", "N", "m"])
    counts = points["solved"].astype(str) + "/" + points["tried"].astype(str) + " " + points["missing"]
    points = points.assign(counts=counts.str.strip())
    table = points.pivot_table("counts", ["label_cost", "levels", "N", "m"], "solver", aggfunc="first")
    return table.reindex(columns=list(SOLVERS)).fillna("").rename(columns=SOLVERS)


def describe_scheme(rows: pd.DataFrame, label_cost: str) -> str:
    """How many rounds the paper's scheme needed."""
    scheme = rows[(rows["label_cost"] == label_cost) & (rows["status"] == "done") & (rows["solver"] == "algorithm1")]
    first, constant = 100 * (scheme["rounds"] == 1).mean(), 100 * scheme["constant"].mean()
    return (
        f"kappa = {label_cost}: the paper's scheme ended in its first round in {first:.0f} % of its {len(scheme)} "
        f"solved fits (most: {scheme['rounds'].max()} rounds); all slopes are 0 at the optimum in {constant:.0f} %."
    )


def describe_growth(summary: pd.DataFrame, panels: dict[str, Panel], label_cost: str) -> Iterator[str]:
    """Median seconds at the largest size that all four solvers solved, and the ratio to the smallest; one line each."""
    of_cost = summary[(summary["label_cost"] == label_cost) & (summary["missing"] == "")]
    for name in ("N", "m", "levels"):
        panel = panels[name]
        medians = of_cost[of_cost["panel"] == name].pivot_table("median", panel.axis, "solver")
        all_four = medians.reindex(columns=list(SOLVERS)).dropna()
        if all_four.empty:
            continue
        smallest, largest = all_four.loc[all_four.index.min()], all_four.loc[all_four.index.max()]
        yield f"  {panel.title}, from {panel.axis} = {all_four.index.min()} to {all_four.index.max()}:"
        for solver, label in SOLVERS.items():
            yield (
                f"    {label:26s} {largest[solver]:9.4f} s, {largest[solver] / smallest[solver]:7.1f} times as long as "
                f"at the smallest; the monolithic program takes {largest['monolithic'] / largest[solver]:7.1f} times "
                "as long"
            )


def growth_table(summary: pd.DataFrame, label_costs: Sequence[str]) -> pd.DataFrame:
    """`growth_numbers` for each label cost as text, one row per number; "nan" where fewer than two sizes are known.

    Parameters
    ----------
    summary
        From `wdrlr.paper.runtimes.summarise`; only medians that ended in time count.
    """
    return pd.DataFrame(
        {
            f"kappa = {label_cost}": {
                name: f"{number:.2f}" if isinstance(number, float) else f"{number}"
                for name, number in growth_numbers(summary[summary["label_cost"] == label_cost]).items()
            }
            for label_cost in label_costs
        }
    )


def growth_numbers(of_cost: pd.DataFrame) -> dict[str, float]:
    """Powers of N and m, and the factor of one more feature, by straight lines through the known log seconds.

    Those of the scheme alone are from one plane through all sizes of its panel. The last two are numbers
    of these sizes, which ``of_cost`` has of one label cost.
    """
    ended = of_cost.assign(median=of_cost["median"].where(of_cost["missing"] == ""))
    of_N, of_m = (
        ended[ended["panel"] == panel]
        .pivot_table("median", panel, "solver", dropna=False)
        .reindex(columns=list(SOLVERS))
        for panel in ("N", "m")
    )
    scheme = ended[(ended["panel"] == "scheme") & (ended["solver"] == "algorithm1")]
    power_of_N, power_of_m = _powers(scheme)
    both = of_N.dropna(subset=["monolithic", "algorithm1"])
    return {
        "power of N, monolithic program": _slope(np.log(both.index), both["monolithic"]),
        "sizes in N that both ended": len(both),
        "power of N, scheme, at the same N": _slope(np.log(both.index), both["algorithm1"]),
        "power of N, scheme, alone": power_of_N,
        "power of m, scheme, alone": power_of_m,
        "factor of a feature, monolithic program": float(np.exp(_slope(of_m.index, of_m["monolithic"]))),
        "factor of a feature, scheme": float(np.exp(_slope(of_m.index, of_m["algorithm1"]))),
        "sizes whose median ended in time, scheme": int((scheme["missing"] == "").sum()),
        "sizes, scheme": len(scheme),
    }


def _powers(medians: pd.DataFrame) -> tuple[float, float]:
    """Powers of N and m in the median seconds, by least squares in the logarithms."""
    known = medians.dropna(subset="median")
    if known["N"].nunique() < 2 or known["m"].nunique() < 2:
        return np.nan, np.nan
    sizes = np.column_stack([np.ones(len(known)), np.log(known["N"]), np.log(known["m"])])
    _, of_N, of_m = np.linalg.lstsq(sizes, np.log(known["median"]), rcond=None)[0]
    return float(of_N), float(of_m)


def _slope(sizes: pd.Index, seconds: pd.Series) -> float:
    """The slope of the straight line through the log seconds; nan for fewer than two points."""
    known = seconds.notna()
    return float(np.polyfit(sizes[known], np.log(seconds[known]), 1)[0]) if known.sum() > 1 else np.nan
