"""The paper's figures: Figure 1, the panels of Figure 2, the box plots of Figures 3 and 4."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from wdrlr.paper.methods import METHODS
from wdrlr.paper.runtimes import SOLVERS, Panel
from wdrlr.plots import TEXT_WIDTH, figure_style


def box_plots(rows: pd.DataFrame, datasets: list[str]) -> tuple[Figure, pd.DataFrame]:
    """Box plots of the test errors, one panel per method, the data sets on the horizontal axis (Figures 3 and 4).

    A box spans the quartiles over the splits with a line at the median, whiskers reach to the last error within 1.5
    times the box's height, and errors beyond are points. Panels of the same group (`Method.group`) have the same
    colour. All panels share their axes.

    Parameters
    ----------
    rows
        Result rows (`wdrlr.paper.results.COLUMNS`), at least one.
    datasets
        The data sets to show, in this order; one without rows keeps its place.

    Returns
    -------
    The figure, and its data with one row per point: dataset, method, split and test_error_percent.
    """
    data = rows[["dataset", "method", "split"]].assign(test_error_percent=100 * rows["test_error"])
    methods = [name for name in METHODS if name in set(rows["method"])]
    groups = list(dict.fromkeys(method.group for method in METHODS.values()))
    colors = dict(zip(groups, sns.color_palette("colorblind"), strict=False))
    n_columns = min(3, len(methods))
    n_rows = -(-len(methods) // n_columns)
    with figure_style():
        figure, axes = plt.subplots(
            n_rows,
            n_columns,
            figsize=(TEXT_WIDTH, 1.0 + 1.35 * n_rows),
            sharex=True,
            sharey=True,
            squeeze=False,
            layout="constrained",
        )
        for axis, name in zip(axes.flat, methods, strict=False):
            of_method = data[data["method"] == name]
            axis.boxplot(
                [of_method.loc[of_method["dataset"] == dataset, "test_error_percent"] for dataset in datasets],
                positions=range(len(datasets)),
                widths=0.7,
                patch_artist=True,
                boxprops={"facecolor": colors[METHODS[name].group], "linewidth": 0.6},
                medianprops={"color": "black", "linewidth": 0.8},
                whiskerprops={"linewidth": 0.6},
                capprops={"linewidth": 0.6},
                flierprops={"marker": ".", "markersize": 1.5},
            )
            axis.set_xticks(range(len(datasets)), datasets)
            axis.set_title(METHODS[name].label)
            axis.set_ylabel("test error (%)" if axis in axes[:, 0] else "")
            axis.tick_params(axis="x", rotation=90)
        for axis in axes.flat[len(methods) :]:
            axis.set_visible(False)
        for axis in axes.flat[max(len(methods) - n_columns, 0) : len(methods)]:  # the lowest visible of each column
            axis.tick_params(axis="x", labelbottom=True)
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
            1, 2, figsize=(TEXT_WIDTH, 2.5), width_ratios=[1, 1.4], layout="constrained"
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
        left.set_ylabel("estimate of beta = 1")
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
        right.set_yscale("log")
        right.set_ylim(lowest, 2)
        right.set_yticks([10.0**k for k in range(-6, 1)])
        right.minorticks_off()
        right.set_xticks(list(place_at.values()), [f"{z:+,.0f}\n{y:+d}" for z, y in places])
        right.set_xlabel("z, and y below it")
        right.set_ylabel("probability")
        right.legend(**above)
    return figure


def runtime_panels(summary: pd.DataFrame, panels: dict[str, Panel], time_limit: float) -> Figure:
    """Seconds against sizes (Figure 2), for one label cost.

    Lines are medians, bands span 10 to 90 % of the runs. A size whose median fit was not solved has a marker on the
    dotted line of the time limit instead. In the panel of the schemes alone the colour stands for m, and the markers
    are stacked above the line; filled markers are the paper's scheme.

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
    with figure_style():
        figure, axes = plt.subplots(2, 2, figsize=(TEXT_WIDTH, 4.6), sharey=True, layout="constrained")
        for axis, (name, panel) in zip(axes.flat, panels.items(), strict=True):
            shades = sns.color_palette("flare", len({size[2] for size in panel.sizes}))
            of_panel = summary[summary["panel"] == name]
            by = ["solver", "m"] if name == "scheme" else ["solver"]
            for solver, line in of_panel.groupby(by, sort=False):
                color, style, height, shift = solver_color[solver[0]], "-", time_limit, 1.0
                if name == "scheme":
                    ms = sorted(set(of_panel["m"]))
                    color, style = shades[ms.index(solver[1])], "-" if solver[0] == "algorithm1" else "--"
                    height *= 1.9 ** ms.index(solver[1])  # one above the other, and side by side
                    shift = 0.95 if style == "-" else 1.05
                solved = line.replace(np.inf, np.nan).assign(high=line["high"].clip(upper=time_limit))
                axis.plot(solved[panel.axis], solved["median"], style, color=color, marker=".", markersize=4, lw=1)
                if style == "-":
                    band = solved.dropna(subset="median")
                    axis.fill_between(band[panel.axis], band["low"], band["high"], color=color, alpha=0.2, lw=0)
                for reason, mark in marks.items():
                    sizes = line.loc[line["missing"] == reason, panel.axis]
                    face = color if name == "scheme" and style == "-" else "none"
                    axis.plot(sizes * shift, [height] * len(sizes), mark, color=color, mfc=face, markersize=5, mew=0.9)
            axis.axhline(time_limit, color="0.4", lw=0.6, ls=":")
            axis.set(title=panel.title, yscale="log", xlabel=panel.axis)
            if panel.axis == "N":
                axis.set_xscale("log")
            ticks = sorted(set(of_panel[panel.axis]))
            axis.set_xticks(ticks, [str(tick) for tick in ticks])
            axis.minorticks_off()
            if axis in axes[:, 0]:
                axis.set_ylabel("processor seconds of a fit")
            if name == "scheme":
                entries = [Line2D([], [], color=shade, label=f"m = {m}") for shade, m in zip(shades, ms, strict=True)]
                axis.legend(handles=entries, fontsize="x-small", borderpad=0.3, ncols=2, loc="lower right")
        entries = [Line2D([], [], color=color, label=SOLVERS[solver]) for solver, color in solver_color.items()]
        entries += [
            Line2D([], [], color="0.3", ls="", marker=marks[reason], mfc="none", label=label)
            for reason, label in (
                ("time limit", f"median over {time_limit:g} s (wall clock)"),
                ("memory guard", "too large to build"),
                ("failed", "not certified"),
            )
            if reason in set(summary["missing"].replace("uncertified", "failed"))
        ]
        entries.append(Line2D([], [], color="0.3", ls="--", label="all violated (bottom left)"))
        figure.legend(handles=entries, loc="outside lower center", ncols=3, frameon=False)
    return figure
