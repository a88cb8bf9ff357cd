"""The tables and the plot of `benchmarks/results/`: `python -m benchmarks.report`; `benchmarks.run` ends with it.

Every ratio is of two times from the same run. Gaps are F, evaluated outside the solvers, less the best lower bound that
any solver found for the problem in that run.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

from benchmarks.objective import TOL
from benchmarks.solvers import OURS
from benchmarks.store import read
from wdrlr.files import replace_file
from wdrlr.paper.methods import METHODS
from wdrlr.paper.paths import project_root
from wdrlr.paper.printed import published_values

HERE = Path(__file__).resolve().parent
MARK = "<!-- written by benchmarks.report; what is below is overwritten -->"
SETTING = ["data", "kappa", "radius"]
WINDOW = ["data", "kappa", "metric", "share"]
CERTIFIED = TOL + 1e-12
"""The largest gap that counts as certified, with an allowance for rounding."""
LABELS = {OURS: "wdrlr", "all-violated": "all violated cuts", "algorithm1": "Algorithm 1"}


def write(results: Path) -> Path:
    """Write the report on a folder of results, README.md, gap.pdf and gap.png, and return the path of the README.

    The report on the project's results goes into `benchmarks/README.md`, that on another folder into a copy inside it.
    """
    readme = HERE / "README.md" if results.resolve() == HERE / "results" else results / "README.md"
    head = (HERE / "README.md").read_text(encoding="utf-8").partition(MARK)[0]
    sections = []
    for part, (title, section) in SECTIONS.items():
        path = results / f"{part}.csv"
        body = ["Not run yet."]
        if path.is_file():
            machine, rows = read(path)
            body = [*section(rows), f"Machine: {machine}."]
        sections.append("\n\n".join([f"## {title}", *body]))
    if (results / "algorithm1.csv").is_file():
        plot_gaps(read(results / "algorithm1.csv")[1], results)
        picture = (results / "gap.png").relative_to(readme.parent)
        sections.insert(0, f"![gap against time]({picture.as_posix()})")
    replace_file(readme, head + MARK + "\n\n" + "\n\n".join(sections) + "\n")
    return readme


def with_gap(rows: pd.DataFrame, problem: list[str] = SETTING) -> pd.DataFrame:
    """The rows with `gap`: F less the best lower bound for the problem; nan for fits that failed."""
    return rows.assign(gap=rows["upper"] - rows.groupby(problem)["lower"].transform("max"))


def against_plain(rows: pd.DataFrame, problem: list[str] = SETTING) -> pd.DataFrame:
    """Our rows with `gap`, `plain` (scikit-learn's seconds) and `ratio`, ours to these."""
    rows = with_gap(rows, problem)
    ours = rows[rows["solver"] == OURS].set_index(problem)
    plain = rows[rows["solver"] != OURS].set_index(problem)
    return ours.assign(plain=plain["seconds"], ratio=ours["seconds"] / plain["seconds"]).reset_index()


def _in_short(ours: pd.DataFrame, problem: list[str], aside: str = "") -> str:
    """The median and the worst ratio, and how many fits are certified and how many failed."""
    certified, failed = int((ours["gap"] <= CERTIFIED).sum()), int(ours["seconds"].isna().sum())
    return (
        f"Median ratio {_ratio(ours['ratio'].median())} over {len(ours)} settings{aside}; worst: "
        f"{_worst(ours, problem)}. Certified to 1e-6: {certified} of {len(ours)}; failed: {failed}."
    )


def lr_section(rows: pd.DataFrame) -> Iterator[str]:
    """Ratios to plain logistic regression, and the paper's seconds beside ours."""
    ours = against_plain(rows)
    open_form = ours[~ours["closed_form"]]
    yield _in_short(
        ours,
        SETTING,
        f" (without the {int(ours['closed_form'].sum())} in closed form: {_ratio(open_form['ratio'].median())})",
    )
    table = []
    for name, group in ours.groupby("data", sort=False):
        table.append(
            {
                "data set": name,
                "N": group["N"].iloc[0],
                "n": group["n"].iloc[0],
                "k": group["k"].iloc[0],
                "m": group["m"].iloc[0],
                "LR, s": _seconds(group["plain"].median()),
                "wdrlr, s": _seconds(group["seconds"].median()),
                "median ratio": _ratio(group["ratio"].median()),
                "worst ratio": _worst(group, SETTING[1:]),
                "closed form": int(group["closed_form"].sum()),
                "certified": _certified(group),
            }
        )
    yield markdown(table)
    yield "### The paper's seconds (MOSEK, Intel Xeon 2.66 GHz) beside ours (over the nine radii)"
    table = []
    for (name, kappa), group in ours.groupby(["data", "kappa"], sort=False):
        seconds = _paper_seconds(name, f"DRO_kappa_{kappa}")
        table.append(
            {
                "data set": name,
                "kappa": kappa,
                "paper, s": seconds,
                "wdrlr median, s": _seconds(group["seconds"].median()),
                "wdrlr worst, s": _seconds(group["seconds"].max()),
                "paper / median": _ratio(seconds / group["seconds"].median()),
                "paper / worst": _ratio(seconds / group["seconds"].max()),
                "paper's DRO / LR": _ratio(seconds / _paper_seconds(name, "LR")),
            }
        )
    yield markdown(table)


def _paper_seconds(name: str, method: str) -> float:
    cells = pd.concat([published_values("table3"), published_values("table4")])
    (seconds,) = cells.loc[(cells["dataset"] == name) & (cells["method"] == method), "value"]
    return float(seconds)


def window_section(rows: pd.DataFrame) -> Iterator[str]:
    """Ratios to plain logistic regression from a hundredth of the largest useful radius to just below it."""
    ours = against_plain(rows, WINDOW)
    yield _in_short(ours, WINDOW) + " The aim is at most 5 and 50."
    yield markdown(
        [
            {
                "data set": name,
                "LR, s": _seconds(group["plain"].median()),
                "wdrlr, s": _seconds(group["seconds"].median()),
                "median ratio": _ratio(group["ratio"].median()),
                "worst ratio": _worst(group, WINDOW[1:]),
                "most Newton systems": f"{group['rounds'].max():.0f}",
                "certified": _certified(group),
            }
            for name, group in ours.groupby("data", sort=False)
        ]
    )


def numbers_section(rows: pd.DataFrame) -> Iterator[str]:
    """Ratios to plain logistic regression on numbers."""
    return _each_setting(rows, ["data", "norm", "kappa", "radius"])


def levels_section(rows: pd.DataFrame) -> Iterator[str]:
    """Ratios to plain logistic regression where features have many levels."""
    return _each_setting(rows, SETTING)


def _each_setting(rows: pd.DataFrame, problem: list[str]) -> Iterator[str]:
    ours = against_plain(rows, problem)
    yield _in_short(ours, problem) + " The aim is at most 10."
    yield markdown(
        [
            {column: row[column] for column in problem}
            | {
                "LR, s": _seconds(row["plain"]),
                "wdrlr, s": _seconds(row["seconds"]) or row["note"],
                "ratio": _ratio(row["ratio"]),
                "Newton systems": f"{row['rounds']:.0f}",
                "gap": f"{row['gap']:.0e}",
            }
            for row in ours.to_dict("records")
        ]
    )


def largest_radius_section(rows: pd.DataFrame) -> Iterator[str]:
    """The largest useful radius in fits."""
    rows = rows.assign(ratio=rows["seconds"] / rows["fit_seconds"])
    yield (
        f"Median: {_ratio(rows['ratio'].median())} fits; worst: {_worst(rows, ['data', 'kappa'])}. The aim is three. "
        f"Fits certified to 1e-6: {_certified(rows)}."
    )
    yield markdown(
        [
            {
                "data": row["data"],
                "kappa": row["kappa"],
                "largest useful radius": "" if np.isnan(row["largest"]) else f"{row['largest']:.6g}",
                "s": _seconds(row["seconds"]) or row["note"],
                "a fit, s": _seconds(row["fit_seconds"]),
                "fits": _ratio(row["ratio"]),
            }
            for row in rows.to_dict("records")
        ]
    )


def path_section(rows: pd.DataFrame) -> Iterator[str]:
    """Seconds of paths and cross-validation relative to those of separate fits."""
    yield markdown(
        [
            {
                "data": row["data"],
                "kappa": row["kappa"],
                "task": row["task"],
                "fits": row["fits"],
                "together, s": _seconds(row["seconds"]) or row["note"],
                "separately, s": _seconds(row["separate_seconds"]),
                "ratio": _ratio(row["seconds"] / row["separate_seconds"]),
                "largest gap": f"{row['gap']:.0e}",
                "largest difference of objectives": f"{row['difference']:.0e}",
            }
            for row in rows.to_dict("records")
        ]
    )
    yield "The aim is a ratio of at most 0.5. Cross-validation includes the search for the largest useful radius."


def algorithm1_section(rows: pd.DataFrame) -> Iterator[str]:
    """How long Algorithm 1 takes, measured or extrapolated."""
    table = []
    for setting, group in with_gap(rows).groupby(SETTING, sort=False):
        runs = group[(group["solver"] == "algorithm1") & group["seconds"].notna()].sort_values("stop")
        ours = group[(group["solver"] == OURS) & (group["stop"] == TOL)].iloc[0]
        if runs.empty:
            continue
        last = runs.iloc[-1]
        finished = last["rounds"] < last["stop"]
        expected = extrapolated_seconds(runs[runs["rounds"] < last["rounds"]] if finished else runs)
        table.append(
            dict(zip(SETTING, setting, strict=True))
            | {
                "wdrlr, s": _seconds(ours["seconds"]),
                "rounds": int(last["rounds"]),
                "s": _seconds(last["seconds"]),
                "gap reached": f"{last['gap']:.0e}",
                "finished": "yes" if finished else "no",
                "ratio": ("" if finished else "> ") + _ratio(last["seconds"] / ours["seconds"]),
                "extrapolated s": "" if finished else _seconds(expected),
                "extrapolated ratio": "" if finished else _ratio(expected / ours["seconds"]),
                "check": _seconds(expected) if finished else "",
            }
        )
    yield markdown(table)
    yield (
        "A run is unfinished if twice as many rounds would have exceeded the limit; its ratio is then a lower bound. "
        "Extrapolated (not measured): a line through the logarithm of the paper's UB - LB over the last half of the "
        "rounds is followed down to 1e-3, from where the gap closes abruptly, and each further round is counted at the "
        'mean seconds of the last rounds measured, though rounds get slower. "check", for finished runs, is the result '
        "of this rule for the longest unfinished run of the same problem, to be compared with s."
    )


def extrapolated_seconds(runs: pd.DataFrame) -> float:
    """Seconds of Algorithm 1 to its end, from runs of 1, 2, 4, ... rounds.

    Each missing round is counted at the mean seconds of the rounds that the last run has more than the one before.
    """
    if len(runs) < 2:
        return np.nan
    before, last = runs.iloc[-2], runs.iloc[-1]
    a_round = (last["seconds"] - before["seconds"]) / (last["rounds"] - before["rounds"])
    return last["seconds"] + a_round * (last["expected_rounds"] - last["rounds"])


def all_violated_section(rows: pd.DataFrame) -> Iterator[str]:
    """Ratios of the variant with all violated cuts."""
    yield markdown(_pairs(with_gap(rows), "all-violated", SETTING))


def dro_section(rows: pd.DataFrame) -> Iterator[str]:
    """Ratios of the package dro."""
    columns = [*SETTING, "features"]
    # Each problem has its own gap; dro cannot solve the one with categories, so its seconds are shown for both.
    rows = with_gap(rows, columns)
    theirs = rows[rows["solver"] == "dro"]
    yield markdown(_pairs(pd.concat([rows, theirs.assign(features="categories", gap=np.nan)]), "dro", columns))
    yield (
        "With the 0/1 data as numbers both packages solve the same problem; as categories they give the mixed-feature "
        "model."
    )


def _pairs(rows: pd.DataFrame, other: str, columns: list[str]) -> list[dict]:
    table = []
    for setting, group in rows.groupby(columns, sort=False):
        mine, its = (group[group["solver"] == solver].iloc[0] for solver in (OURS, other))
        table.append(
            dict(zip(columns, setting, strict=True))
            | {
                "wdrlr, s": _seconds(mine["seconds"]),
                f"{other}, s": _seconds(its["seconds"]),
                "ratio": _ratio(its["seconds"] / mine["seconds"]),
                "gap": f"{mine['gap']:.0e}",
                f"gap of {other}": "" if np.isnan(its["gap"]) else f"{its['gap']:.0e}",
            }
        )
    return table


def growth_section(rows: pd.DataFrame) -> Iterator[str]:
    """Seconds and memory as N and m grow."""
    yield _grown(with_gap(rows).sort_values(["kappa", "m", "N"]), ["N", "m", "kappa", "radius"])


def threads_section(rows: pd.DataFrame) -> Iterator[str]:
    """Seconds and memory by the number of threads."""
    yield _grown(with_gap(rows), ["N", "m", "kappa", "radius", "threads"])


def _grown(rows: pd.DataFrame, setting: list[str]) -> str:
    table = []
    for row in rows.to_dict("records"):
        done = not np.isnan(row["seconds"])
        table.append(
            {column: row[column] for column in setting}
            | {
                "s": _seconds(row["seconds"]) if done else row["note"],
                "μs / (N m)": f"{1e6 * row['seconds'] / row['N'] / row['m']:.3g}" if done else "",
                "peak memory, GB": f"{row['memory_gb']:.2f}" if done else "",
                "rounds": int(row["rounds"]) if done else "",
                "gap": f"{row['gap']:.0e}" if done else "",
            }
        )
    return markdown(table)


def table1_section(rows: pd.DataFrame) -> Iterator[str]:
    """The hours that all of Table 1 takes."""
    names = list(dict.fromkeys(rows["data"]))
    table = []
    for name in names:
        group = rows[rows["data"] == name].set_index("method")
        table.append(
            {"data set": name} | {f"{method}, s": _seconds(group["seconds"][method]) for method in group.index}
        )
    yield markdown(table)
    wanted = set(published_values("table1")["dataset"])
    fits, seconds = 100 * rows["n_fits"].sum(), 100 * rows["seconds"].sum()
    missing = [method for method in dict.fromkeys(published_values("table1")["method"]) if method not in METHODS]
    yield (
        f"One split each, cross-validation included. 100 splits of these {len(names)} of Table 1's {len(wanted)} data "
        f"sets are {fits:,} fits and take {seconds / 2 / 3600:.2g} hours on 2 cores, if two processes run as fast as "
        f"one. {rows['n_uncertified'].sum()} of the {rows['n_fits'].sum()} fits made are not certified to 1e-6."
        + (f" Not included: {', '.join(missing)}." if missing else "")
    )


def certify_section(rows: pd.DataFrame) -> Iterator[str]:
    """How many fits of the whole grid are certified."""
    table = []
    for name, group in rows.groupby("data", sort=False):
        table.append(
            {
                "data set": name,
                "fits": group["fits"].sum(),
                "closed form": group["closed_form"].sum(),
                "certified": group["certified"].sum(),
                "largest gap": f"{group['largest_gap'].max():.1e}",
                "median Newton systems": f"{group['median_rounds'].median():.0f}",
                "most": group["largest_rounds"].max(),
                "seconds per fit": _seconds(group["seconds"].sum() / group["fits"].sum()),
            }
        )
    yield markdown(table)
    yield (
        f"{rows['certified'].sum():,} of {rows['fits'].sum():,} fits are certified to 1e-6: the training part of split "
        "0 and its rows outside the first fold, both codings (-1/+1: bound 100), the raw metric with kappa 0.1, 1, m "
        "and inf, the unit metric with 0.1, 1 and m, radii 0, 1e-6, ..., 10, penalties 0, 5e-6, 5e-4, 0.05 and 0.5."
    )


SECTIONS: dict[str, tuple[str, Callable[[pd.DataFrame], Iterator[str]]]] = {
    "lr": ("Plain logistic regression", lr_section),
    "window": ("Plain logistic regression, up to the largest useful radius", window_section),
    "numbers": ("Plain logistic regression on numbers", numbers_section),
    "levels": ("Plain logistic regression with many levels", levels_section),
    "radius-max": ("The largest useful radius", largest_radius_section),
    "path": ("Paths and cross-validation", path_section),
    "algorithm1": ("Algorithm 1 as the paper has it", algorithm1_section),
    "all-violated": ("Algorithm 1 with all violated cuts", all_violated_section),
    "dro": ("The package dro", dro_section),
    "growth": ("Growth", growth_section),
    "threads": ("Threads", threads_section),
    "table1": ("The hours of Table 1", table1_section),
    "certify": ("Is every fit certified?", certify_section),
}
"""The title of each part, and the function that writes the text below it."""


def plot_gaps(rows: pd.DataFrame, folder: Path) -> None:
    """Gap against seconds of every solver, one panel per setting, as gap.pdf and gap.png."""
    groups = list(with_gap(rows[rows["seconds"].notna()]).groupby(SETTING, sort=False))
    n_columns = min(3, len(groups))
    n_rows = -(-len(groups) // n_columns)
    style = {"pdf.fonttype": 42, "axes.grid": True, "grid.alpha": 0.3}
    with sns.plotting_context("paper"), sns.axes_style("ticks"), plt.rc_context(style):
        size = (5.5, 1.75 * n_rows + 0.6)
        figure, axes = plt.subplots(n_rows, n_columns, figsize=size, sharex=True, sharey=True, squeeze=False)
        colours = dict(zip(LABELS, sns.color_palette("colorblind"), strict=False))
        for axis, (setting, group) in zip(axes.flat, groups, strict=False):
            for solver, marker in zip(LABELS, "osx", strict=True):
                line = group[group["solver"] == solver]
                if len(line):
                    # Below 1e-10 the gap is rounding.
                    gap = line["gap"].clip(lower=1e-10)
                    axis.loglog(line["seconds"], gap, marker, ls="-", ms=3, color=colours[solver], label=LABELS[solver])
            axis.axhline(TOL, color="0.4", lw=0.8, ls="--")
            axis.set_title(
                f"{setting[0].replace(' x ', ' × ')}\n$\\kappa$ = {setting[1]}, radius {setting[2]:g}", fontsize=7
            )
        for axis in axes.flat[len(groups) :]:
            axis.set_visible(False)
        figure.supxlabel("seconds", fontsize=9)
        figure.supylabel("objective less best lower bound", fontsize=9)
        named = {
            label: line for axis in axes.flat for line, label in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        figure.legend(named.values(), named.keys(), loc="outside upper center", ncols=3, frameon=False)
        figure.set_layout_engine("constrained")
        figure.savefig(folder / "gap.pdf", metadata={"CreationDate": None})
        figure.savefig(folder / "gap.png", dpi=200)
        plt.close(figure)


def _worst(rows: pd.DataFrame, columns: list[str]) -> str:
    """The largest ratio, with these columns of its row."""
    if rows["ratio"].isna().all():
        return ""
    row = rows.loc[rows["ratio"].idxmax()]
    values = {column: f"{row[column]:g}" if isinstance(row[column], float) else row[column] for column in columns}
    words = [value if column == "data" else f"{column} {value}" for column, value in values.items()]
    return f"{_ratio(row['ratio'])} ({', '.join(words)})"


def _certified(rows: pd.DataFrame) -> str:
    return f"{int((rows['gap'] <= CERTIFIED).sum())}/{len(rows)}"


def _seconds(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.3g}" if value < 999.5 else f"{value:,.0f}"


def _ratio(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.2g}" if value < 99.5 else f"{value:,.0f}"


def markdown(table: list[dict]) -> str:
    columns = list(dict.fromkeys(column for row in table for column in row))
    lines = [columns, ["---"] * len(columns)] + [[str(row.get(column, "")) for column in columns] for row in table]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    print(write(Path(sys.argv[1]) if len(sys.argv) > 1 else project_root() / "benchmarks" / "results"))
