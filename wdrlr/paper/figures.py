"""The paper's figures: Figure 1, the panels of Figure 2, the box plots of Figures 3 and 4."""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, NullLocator

from wdrlr.paper.methods import METHODS
from wdrlr.paper.runtimes import SCHEMES, SOLVERS, Panel, Setting
from wdrlr.plots import TEXT_WIDTH, figure_style, plain_log_ticks

LARGE_ERROR = 10.0
"""In per cent: data sets on which the median error of a method other than PI is above it have panels of their own."""


def box_plots(rows: pd.DataFrame, datasets: list[str]) -> tuple[Figure, pd.DataFrame]:
    """Box plots of the test errors and of their differences to LR's, one row of panels per method (Figures 3 and 4).

    A box spans the quartiles over the splits with a line at the median, whiskers reach to the last error within 1.5
    times the box's height, and errors beyond are points. A difference is that of one split. Methods of the same group
    (`Method.group`) have the same colour. Data sets with a median above 10 % have panels of their own, and so has PI,
    whose errors are the largest: other panels of a column share their axes. Differences are on a scale that is
    logarithmic beyond one percentage point either way, since most are small and a few are large. If data sets have
    different numbers of splits, these are at their names.

    Parameters
    ----------
    rows
        Result rows (`wdrlr.paper.results.COLUMNS`), at least one.
    datasets
        The data sets to show, in this order; one without rows keeps its place.

    Returns
    -------
    The figure, and its data with one row per point: dataset, method, split, test_error_percent and less_LR_percent
    (nan without LR's error on the split).
    """
    data = rows[["dataset", "method", "split"]].assign(test_error_percent=100 * rows["test_error"])
    lr = data[data["method"] == "LR"].set_index(["dataset", "split"])["test_error_percent"].rename("LR")
    data = data.join(lr, on=["dataset", "split"])
    data["less_LR_percent"] = data["test_error_percent"] - data.pop("LR")
    methods = [name for name in METHODS if name in set(rows["method"])]
    apart = [name for name in methods if name == "PI"]
    high = data[~data["method"].isin(apart)].groupby(["dataset", "method"])["test_error_percent"].median()
    high = high.groupby("dataset").max()
    sets = {
        f"sets up to {LARGE_ERROR:g} %,\nPI apart": [name for name in datasets if not high.get(name, 0) > LARGE_ERROR],
        f"sets above {LARGE_ERROR:g} %": [name for name in datasets if high.get(name, 0) > LARGE_ERROR],
    }
    sets = {title: names for title, names in sets.items() if names}
    kinds = {"test_error_percent": "error in %"}
    if data.loc[data["method"] != "LR", "less_LR_percent"].notna().any():
        kinds["less_LR_percent"] = "error less LR's,\nin points"
    columns = list(product(kinds, sets.items()))
    n_splits = data.groupby("dataset")["split"].nunique()
    differ = n_splits.min() < n_splits.max()
    shown = {name: f"{name} ({n})" if differ else name for name, n in n_splits.items()}
    groups = list(dict.fromkeys(method.group for method in METHODS.values()))
    colors = dict(zip(groups, sns.color_palette("colorblind"), strict=False))
    with figure_style():
        figure, axes = plt.subplots(
            len(methods),
            len(columns),
            figsize=(TEXT_WIDTH, 1.3 + 0.74 * len(methods)),
            width_ratios=[1 + len(names) for _, (_, names) in columns],
            squeeze=False,
            layout="constrained",
        )
        for (row, name), (column, (value, (title, names))) in product(enumerate(methods), enumerate(columns)):
            axis, of_method = axes[row, column], data[data["method"] == name]
            if row == 0:
                axis.set_title(f"{kinds[value]},\n{title}", fontsize="medium")
            if value == "less_LR_percent" and name == "LR":  # all are 0: the place is the legend's
                axis.set_axis_off()
                if column == len(sets):
                    handles = [
                        Patch(facecolor=color, edgecolor="black", lw=0.5, label=g) for g, color in colors.items()
                    ]
                    legend = axis.legend(handles=handles, loc="center left", frameon=False, title="methods, by group")
                    legend.set_in_layout(False)
                continue
            if value == "less_LR_percent":
                axis.axhline(0.0, color="black", lw=0.6)
                axis.set_yscale("symlog", linthresh=1.0)
                axis.yaxis.set_major_locator(FixedLocator([-10, -1, 0, 1, 10]))
                axis.yaxis.set_major_formatter(lambda x, _: f"{x:+.0f}" if x else "0")
                axis.yaxis.set_minor_locator(NullLocator())
            else:
                axis.yaxis.set_major_locator(plt.MaxNLocator(4, integer=True))
            axis.boxplot(
                [of_method.loc[of_method["dataset"] == dataset, value].dropna() for dataset in names],
                positions=range(len(names)),
                widths=0.7,
                patch_artist=True,
                boxprops={"facecolor": colors[METHODS[name].group], "linewidth": 0.5},
                medianprops={"color": "black", "linewidth": 0.8},
                whiskerprops={"linewidth": 0.5},
                capprops={"linewidth": 0.5},
                flierprops={"marker": ".", "markersize": 1.5},
            )
            labels = [shown.get(name, name) for name in names]
            axis.set_xticks(range(len(names)), labels if row == len(methods) - 1 else [], rotation=90)
            if column == 0:
                axis.set_ylabel(METHODS[name].label, fontsize="small")
        for column, together in product(range(len(columns)), (set(methods) - set(apart), apart)):
            shared = [axes[row, column] for row, name in enumerate(methods) if name in together]
            shared = [axis for axis in shared if axis.axison]
            if shared:
                low, high = (pick(axis.get_ylim()[end] for axis in shared) for pick, end in ((min, 0), (max, 1)))
                for axis in shared:
                    axis.set_ylim(low, high)
        figure.align_ylabels()
    return figure, data.reset_index(drop=True)


def one_feature_plot(bands: pd.DataFrame, probabilities: pd.DataFrame) -> Figure:
    """Figure 1: estimates of beta against N (left), and worst-case distributions on a log scale (right).

    Parameters
    ----------
    bands
        The result of `wdrlr.paper.one_feature.bands`: lines are means, bands reach from the 15 % to the 85 % quantile.
    probabilities
        The result of `wdrlr.paper.one_feature.distributions`: a stem for each atom (z, y), side by side.
    """
    colors = dict(zip(["LR", "mixed", "continuous"], sns.color_palette("colorblind"), strict=False))
    with figure_style():
        figure, (left, right) = plt.subplots(
            1, 2, figsize=(TEXT_WIDTH, 2.5), width_ratios=[1, 1.6], layout="constrained"
        )
        above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 2, "frameon": False}
        above |= {"columnspacing": 1.0, "handletextpad": 0.4}
        for model, of_model in bands.groupby("model", sort=False):
            left.fill_between(of_model["N"], of_model["lower"], of_model["upper"], color=colors[model], alpha=0.2, lw=0)
            for edge in ("lower", "upper"):
                left.plot(of_model["N"], of_model[edge], color=colors[model], lw=0.6)
            left.plot(of_model["N"], of_model["mean"], color=colors[model], ls="--", label=model)
        left.axhline(1.0, color="black", lw=0.8)
        left.set_xscale("log")
        ticks = [N for N in (50, 100, 200, 500, 1000) if bands["N"].min() <= N <= bands["N"].max()]
        ticks = ticks or list(bands["N"].unique())
        left.set_xticks(ticks, [str(N) for N in ticks])
        left.minorticks_off()
        left.yaxis.set_major_locator(plt.MultipleLocator(0.25))
        left.set_xlabel("N")
        left.set_ylabel("estimate of beta; true value 1")
        left.legend(**above)

        places = sorted(set(zip(probabilities["z"], probabilities["y"], strict=True)))
        # Places with a long number get more room.
        place_at = dict(zip(places, np.cumsum([1.5 if abs(z) > 1 else 1.0 for z, _ in places]), strict=True))
        styles = {"empirical": ("LR", "o"), "mixed": ("mixed", "s"), "continuous": ("continuous", "^")}
        names = list(probabilities["distribution"].unique())
        lowest = probabilities["probability"].min() / 5
        for offset, name in zip(0.2 * (np.arange(len(names)) - (len(names) - 1) / 2), names, strict=True):
            color, marker = styles[name.partition(",")[0]]
            face = colors[color] if name != names[-1] else "white"  # the last is the continuous model's second one
            atoms = probabilities[probabilities["distribution"] == name]
            positions = [place_at[place] + offset for place in zip(atoms["z"], atoms["y"], strict=True)]
            right.vlines(positions, lowest, atoms["probability"], color=colors[color], lw=1.0)
            right.plot(positions, atoms["probability"], marker, color=colors[color], mfc=face, ms=3.5, label=name)
        plain_log_ticks(right, "y")
        right.set_yticks([100.0**k for k in range(-3, 1)])
        right.set_ylim(lowest, 2)
        right.set_xticks(list(place_at.values()), [f"{z:+,.0f}\n{y:+d}" for z, y in places])
        right.set_xlabel("z, and y below it")
        right.set_ylabel("probability")
        right.legend(**above)
    return figure


def runtime_panels(summary: pd.DataFrame, panels: dict[str, Panel], setting: Setting) -> Figure:
    """Seconds against sizes (Figure 2), for one label cost, which is at the top.

    Lines are medians, bands span 10 to 90 % of the runs; they end where the setting's budget of seconds and constraints
    does. A size whose median fit was not solved has a mark in the strip above the panel, which has no scale: a row for
    each solver, or in the panel of the schemes alone for each m. There the colour stands for m; full lines and filled
    marks are the paper's scheme.

    Parameters
    ----------
    summary
        From `wdrlr.paper.runtimes.summarise`.
    panels
        An entry of `wdrlr.paper.runtimes.GRIDS`.
    """
    colors = sns.color_palette("colorblind")
    solver_color = dict(zip(SOLVERS, (colors[3], colors[0], colors[1], colors[2]), strict=True))
    marks = {"memory guard": "s", "time limit": "^", "uncertified": "x", "failed": "x"}
    summary = summary.replace({"median": {np.inf: np.nan}})
    lowest = summary["low"].min()
    with figure_style():
        figure, axes = plt.subplots(4, 2, figsize=(TEXT_WIDTH, 5.4), height_ratios=[1, 5, 1, 5], layout="constrained")
        places = zip(axes[::2].flat, axes[1::2].flat, panels.items(), strict=True)
        for strip, axis, (name, panel) in places:
            of_panel = summary[summary["panel"] == name]
            ms = sorted(set(of_panel["m"]))
            shades = dict(zip(ms, sns.color_palette("flare", len(ms)), strict=True))
            by = ["solver", "m"] if name == "scheme" else ["solver"]
            lines = {key: line for key, line in of_panel.groupby(by, sort=False)}
            stopped = [key for key, line in lines.items() if line["missing"].isin(marks).any()]
            heights = list(dict.fromkeys(key[-1] for key in stopped))
            for (solver, *of_m), line in lines.items():
                color, style, shift = solver_color[solver], "-", 1.0
                if name == "scheme":
                    color, style = shades[of_m[0]], "-" if solver == SCHEMES[0] else "--"
                    shift = 0.95 if style == "-" else 1.05  # side by side
                axis.plot(line[panel.axis], line["median"], style, color=color, marker=".", markersize=4, lw=1)
                if style == "-":
                    band = line.dropna(subset="median")
                    high = band["high"].clip(upper=setting.time_limit)
                    axis.fill_between(band[panel.axis], band["low"], high, color=color, alpha=0.2, lw=0)
                for reason, mark in marks.items():
                    sizes = line.loc[line["missing"] == reason, panel.axis]
                    if len(sizes):
                        face = color if name == "scheme" and style == "-" else "none"
                        height = [heights.index((solver, *of_m)[-1])] * len(sizes)
                        strip.plot(sizes * shift, height, mark, color=color, mfc=face, markersize=4, mew=0.8)
            axis.axhline(setting.time_limit, color="0.4", lw=0.6, ls=":")
            plain_log_ticks(axis, "y")
            axis.set_ylim(lowest / 2, setting.time_limit * 1.5)
            axis.set(xlabel=panel.axis, ylabel="processor seconds of a fit")
            if panel.axis == "N":
                axis.set_xscale("log")
                strip.set_xscale("log")
            strip.set_xlim(axis.get_xlim())
            strip.set_ylim(-0.7, max(len(heights), 1) - 0.3)
            strip.set(title=panel.title, facecolor="0.95")
            strip.set_ylabel("not\nsolved", rotation="horizontal", ha="right", va="center", fontsize="small")
            strip.grid(visible=False)
            strip.set_xticks([], [])
            strip.set_yticks([], [])
            ticks = sorted(set(of_panel[panel.axis]))
            axis.set_xticks(ticks, [str(tick) for tick in ticks])
            for one in (axis, strip):
                one.xaxis.set_minor_locator(plt.NullLocator())
            if name == "scheme":
                entries = [Line2D([], [], color=shade, label=f"m = {m}") for m, shade in shades.items()]
                axis.legend(handles=entries, fontsize="x-small", borderpad=0.3, ncols=2, loc="lower right")
        entries = [Line2D([], [], color=color, label=SOLVERS[solver]) for solver, color in solver_color.items()]
        entries += [
            Line2D([], [], color="0.3", ls="", marker=marks[reason], mfc="none", markersize=4, label=label)
            for reason, label in (
                ("time limit", f"over {setting.time_limit:g} s (wall clock)"),
                ("memory guard", f"over {setting.max_constraints:,} constraints"),
                ("failed", "not certified"),
            )
            if reason in set(summary["missing"].replace("uncertified", "failed"))
        ]
        entries += [
            Line2D([], [], color="0.3", ls=ls, marker="^", mfc=face, markersize=4, label=f"{label} (bottom left)")
            for ls, face, label in (("-", "0.3", "as the paper's"), ("--", "none", "all violated"))
        ]
        entries.append(Line2D([], [], color="0.4", lw=0.6, ls=":", label=f"budget of a fit: {setting.time_limit:g} s"))
        figure.legend(handles=entries, loc="outside lower center", ncols=3, frameon=False)
        figure.suptitle(f"label cost κ = {' and '.join(summary['label_cost'].unique())}", fontsize="medium")
    return figure
