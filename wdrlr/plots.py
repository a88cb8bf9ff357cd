"""Figures: one style for all, the box plots of Figures 3 and 4, and the files of a figure (pdf, png and its data)."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from wdrlr.methods import METHODS
from wdrlr.paths import replace_file
from wdrlr.runtimes import SOLVERS, Panel

TEXT_WIDTH = 5.5
"""Width of the text in the paper's style, in inches."""

N_NAMED_SLOPES = 5
"""How many slopes a path plot names; the others are grey."""


@contextmanager
def figure_style() -> Iterator[None]:
    """Everything drawn inside has the project's style: seaborn's "paper" context, colour-blind palette, embedded fonts.

    With font type 42 the text of a pdf is text, which can be searched and copied.
    """
    theme = {
        **sns.axes_style("whitegrid"),
        **sns.plotting_context("paper", font_scale=0.8),
        "axes.prop_cycle": plt.cycler(color=sns.color_palette("colorblind")),
        "axes.grid.axis": "y",
        "axes.linewidth": 0.6,
        "grid.linewidth": 0.5,
        "pdf.fonttype": 42,
        "ps.fonttype": 42,
    }
    with plt.rc_context(theme):
        yield


def path_plot(path: pd.DataFrame, cv_results: pd.DataFrame | None = None) -> tuple[Figure, pd.DataFrame]:
    """How the fit changes with the radius: slopes, multiplier, and worst-case and cross-validated loss.

    Parameters
    ----------
    path
        From ``wdrlr.fit_path``, with one label cost and one penalty. The radius is on a log axis, so that radius 0 is
        left out.
    cv_results
        ``cv_results_`` of a ``WassersteinLogisticRegressionCV`` with the same label cost: its rows with the path's
        penalty are shown, the log-loss on the rows held out with one standard error up and down.

    Returns
    -------
    The figure, and its data: panel, name, radius, value and standard_error (nan where there is none), one row a point.

    Raises
    ------
    ValueError
        If the path has several label costs or penalties or no positive radius, or ``cv_results`` lacks its penalty.
    """
    for column in ("label_cost", "l1_penalty"):
        if len(path[column].unique()) != 1:
            raise ValueError(f"the path must have one value of {column}, not {path[column].unique().tolist()}.")
    shown = path[path["radius"] > 0].sort_values("radius")
    if shown.empty:
        raise ValueError("the path has no positive radius to show.")
    slopes = shown.columns[list(shown.columns).index("intercept") + 1 :]
    curves = [("slopes", name, shown["radius"], shown[name], np.nan) for name in slopes]
    curves.append(("multiplier", "multiplier", shown["radius"], shown["transport_multiplier"], np.nan))
    curves.append(("loss", "worst case", shown["radius"], shown["objective"], np.nan))
    if cv_results is not None:
        penalty = shown["l1_penalty"].iloc[0]
        held_out = cv_results[(cv_results["l1_penalty"] == penalty) & (cv_results["radius"] > 0)]
        if held_out.empty:
            raise ValueError(f"cv_results has no positive radius with the path's l1_penalty {penalty}.")
        held_out = held_out.sort_values("radius")
        curves.append(("loss", "held out", held_out["radius"], held_out["log_loss"], held_out["log_loss_se"]))
    data = pd.concat(
        [
            pd.DataFrame({"panel": panel, "name": name, "radius": radius, "value": value, "standard_error": error})
            for panel, name, radius, value, error in curves
        ],
        ignore_index=True,
    )
    largest = shown[slopes].abs().max().nlargest(N_NAMED_SLOPES).index
    with figure_style():
        figure, axes = plt.subplots(1, 3, figsize=(TEXT_WIDTH, 2.2), layout="constrained")
        for name in slopes.difference(largest, sort=False):
            axes[0].plot(shown["radius"], shown[name], color="0.8", linewidth=0.5)
        for name in largest:
            axes[0].plot(shown["radius"], shown[name], linewidth=0.9, label=name)
        axes[1].plot(shown["radius"], shown["transport_multiplier"])
        for panel, name, radius, value, error in curves:
            if panel == "loss":
                axes[2].plot(radius, value, label=name, marker="." if name == "held out" else None)
            if name == "held out":
                axes[2].fill_between(radius, value - error, value + error, alpha=0.2, color="C1", linewidth=0)
        for axis, title in zip(axes, ("slopes", "multiplier", "log-loss"), strict=True):
            axis.set_xscale("log")
            axis.set_xlabel("radius")
            axis.set_title(title)
        for axis in axes[[0, 2]]:
            axis.legend(fontsize="x-small", frameon=False, handlelength=1.2)
    return figure, data


def box_plots(rows: pd.DataFrame, datasets: list[str]) -> tuple[Figure, pd.DataFrame]:
    """Box plots of the test errors, one panel a method, the data sets on the horizontal axis (Figures 3 and 4).

    A box spans the quartiles over the splits with a line at the median, whiskers reach to the last error within 1.5
    times the box's height, and errors beyond are points. Panels of one group (`wdrlr.methods.Method.group`) have one
    colour. All panels share their axes.

    Parameters
    ----------
    rows
        Result rows (`wdrlr.results.COLUMNS`), at least one.
    datasets
        The data sets to show, in this order; one without rows keeps its place.

    Returns
    -------
    The figure, and its data: dataset, method, split and test_error_percent, one row a point.
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
        What `wdrlr.one_feature.bands` returns: lines are means, bands reach from the 15 % to the 85 % quantile.
    probabilities
        What `wdrlr.one_feature.distributions` returns: one stem an atom (z, y), a place on the axis for each (z, y).
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
        # Those with a long number get more room.
        place_at = dict(zip(places, np.cumsum([1.5 if abs(z) > 1 else 1.0 for z, _ in places]), strict=True))
        styles = {"empirical": ("LR", "o"), "mixed": ("mixed", "s"), "continuous": ("continuous", "^")}
        names = list(probabilities["distribution"].unique())
        lowest = probabilities["probability"].min() / 5
        for offset, name in zip(0.2 * (np.arange(len(names)) - (len(names) - 1) / 2), names, strict=True):
            color, marker = styles[name.partition(",")[0]]
            face = colors[color] if name != names[-1] else "white"  # the last is the continuous model's second one
            own = probabilities[probabilities["distribution"] == name]
            at = [place_at[place] + offset for place in zip(own["z"], own["y"], strict=True)]
            right.vlines(at, lowest, own["probability"], color=colors[color], lw=1.0)
            right.plot(at, own["probability"], marker, color=colors[color], mfc=face, ms=3.5, label=name)
        right.set_yscale("log")
        right.set_ylim(lowest, 2)
        right.set_yticks([10.0**k for k in range(-6, 1)])
        right.minorticks_off()
        right.set_xticks(list(place_at.values()), [f"{z:+,.0f}\n{y:+d}" for z, y in places])
        right.set_xlabel("z, and y below it")
        right.set_ylabel("probability")
        right.legend(**above)
    return figure


def changes_plot(changed: pd.DataFrame, at_most: int = 12) -> Figure:
    """Bars of the share of mass in which the worst-case distribution changes the label and each feature.

    A bar is dark up to the mass of its commonest change, which stands beside it.

    Parameters
    ----------
    changed
        What `wdrlr.worst_case.changed_mass` returns.
    at_most
        Only that many bars, the largest; those without mass are left out.
    """
    shown = changed[changed["mass"] > 0].head(at_most)
    color = sns.color_palette("colorblind")[0]
    with figure_style():
        figure, axis = plt.subplots(figsize=(TEXT_WIDTH, 0.8 + 0.22 * max(len(shown), 2)), layout="constrained")
        axis.barh(shown.index, 100 * shown["mass"], color=[0.5 + 0.5 * part for part in color])
        axis.barh(shown.index, 100 * shown["commonest_mass"], color=color)
        for place, (mass, text) in enumerate(zip(shown["mass"], shown["commonest"], strict=True)):
            axis.annotate(text, (100 * mass, place), (3, 0), textcoords="offset points", va="center", fontsize="small")
        axis.grid(axis="y", visible=False)
        axis.grid(axis="x", visible=True)
        axis.invert_yaxis()
        axis.margins(x=0.35)  # room for the text
        axis.set_xlim(left=0)
        axis.set_xlabel("mass changed by the worst case (%)")
        if shown.empty:
            axis.set_title("nothing is changed")
    return figure


def runtime_panels(summary: pd.DataFrame, panels: dict[str, Panel], time_limit: float) -> Figure:
    """Seconds against sizes (Figure 2), for one label cost.

    Lines are medians, bands reach from 10 to 90 % of the runs. A size whose median fit was not solved has a marker on
    the dotted line of the time limit instead. In the panel of the schemes alone the colour is m, and the markers stand
    above the line, one over the other, filled ones for the paper's scheme.

    Parameters
    ----------
    summary
        From `wdrlr.runtimes.summarise`.
    panels
        An entry of `wdrlr.runtimes.GRIDS`.
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
                    at = line.loc[line["missing"] == reason, panel.axis]
                    filled = color if name == "scheme" and style == "-" else "none"
                    axis.plot(at * shift, [height] * len(at), mark, color=color, mfc=filled, markersize=5, mew=0.9)
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


def save_figure(figure: Figure, data: pd.DataFrame, folder: Path, name: str) -> list[Path]:
    """Write ``<name>.pdf``, ``<name>.png`` and the data as ``<name>.csv``, each replaced whole; return their paths.

    No date and no version is written into the files, so that equal figures give equal files.
    """
    contents = {folder / f"{name}.csv": data.to_csv(index=False, lineterminator="\n")}
    for kind, without in (("pdf", {"CreationDate": None}), ("png", {"Software": None})):
        buffer = BytesIO()
        with figure_style():
            figure.savefig(buffer, format=kind, dpi=200, metadata=without)
        contents[folder / f"{name}.{kind}"] = buffer.getvalue()
    for path, content in contents.items():
        replace_file(path, content)
    return list(contents)
