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

from wdrlr.methods import METHODS
from wdrlr.paths import replace_file

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
        held_out = cv_results[(cv_results["l1_penalty"] == shown["l1_penalty"].iloc[0]) & (cv_results["radius"] > 0)]
        if held_out.empty:
            raise ValueError(f"cv_results has no positive radius with the path's l1_penalty {path['l1_penalty'][0]}.")
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
