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


def runtime_panels(summary: pd.DataFrame, panels: dict[str, Panel], time_limit: float) -> tuple[Figure, pd.DataFrame]:
    """Seconds against sizes (Figure 2), for one label cost.

    Lines are medians, bands reach from 10 to 90 % of the runs. A size whose median fit was not solved has a marker on
    the dotted line of the time limit instead. In the panel of the schemes alone the colour is m.

    Parameters
    ----------
    summary
        From `wdrlr.runtimes.summarise`.
    panels
        An entry of `wdrlr.runtimes.GRIDS`.

    Returns
    -------
    The figure, and its data.
    """
    colors = sns.color_palette("colorblind")
    solver_color = dict(zip(SOLVERS, (colors[3], colors[0], colors[1], colors[2]), strict=True))
    marks = {"memory guard": "s", "time limit": "^", "uncertified": "x", "failed": "x"}
    with figure_style():
        figure, axes = plt.subplots(2, 2, figsize=(TEXT_WIDTH, 4.6), sharey=True, layout="constrained")
        for axis, (name, panel) in zip(axes.flat, panels.items(), strict=True):
            shades = sns.color_palette("viridis", len({size[2] for size in panel.sizes}))
            of_panel = summary[summary["panel"] == name]
            by = ["solver", "m"] if name == "scheme" else ["solver"]
            for solver, line in of_panel.groupby(by, sort=False):
                color, style = solver_color[solver[0]], "-"
                if name == "scheme":
                    ms = sorted(set(of_panel["m"]))
                    color, style = shades[ms.index(solver[1])], "-" if solver[0] == "algorithm1" else "--"
                solved = line.replace(np.inf, np.nan).assign(high=line["high"].clip(upper=time_limit))
                axis.plot(solved[panel.axis], solved["median"], style, color=color, marker=".", markersize=4, lw=1)
                if style == "-":
                    band = solved.dropna(subset="median")
                    axis.fill_between(band[panel.axis], band["low"], band["high"], color=color, alpha=0.2, lw=0)
                for reason, mark in marks.items():
                    at = line.loc[line["missing"] == reason, panel.axis]
                    axis.plot(at, [time_limit] * len(at), mark, color=color, mfc="none", markersize=5, mew=0.9)
            axis.axhline(time_limit, color="0.4", lw=0.6, ls=":")
            axis.set(title=panel.title, yscale="log", xlabel=panel.axis)
            if panel.axis == "N":
                axis.set_xscale("log")
            ticks = sorted(set(of_panel[panel.axis]))
            axis.set_xticks(ticks, [str(tick) for tick in ticks])
            axis.minorticks_off()
            if axis in axes[:, 0]:
                axis.set_ylabel("seconds of a fit")
            if name == "scheme":
                entries = [Line2D([], [], color=shade, label=f"m = {m}") for shade, m in zip(shades, ms, strict=True)]
                axis.legend(handles=entries, fontsize="x-small", borderpad=0.3, ncols=2, loc="lower right")
        entries = [Line2D([], [], color=color, label=SOLVERS[solver]) for solver, color in solver_color.items()]
        entries += [
            Line2D([], [], color="0.3", ls="", marker=marks[reason], mfc="none", label=label)
            for reason, label in (
                ("time limit", f"median over {time_limit:g} s"),
                ("memory guard", "too large to build"),
                ("failed", "not certified"),
            )
            if reason in set(summary["missing"].replace("uncertified", "failed"))
        ]
        entries.append(Line2D([], [], color="0.3", ls="--", label="all violated (bottom left)"))
        figure.legend(handles=entries, loc="outside lower center", ncols=3, frameon=False)
    return figure, summary


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
