"""Figures of a fit, the style of all figures, and saving a figure as pdf, png and data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from wdrlr.extras import required
from wdrlr.files import replace_file
from wdrlr.model.encoding import check_made_by

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

plt, sns = (required(module, "wdrlr.plots", "notebooks") for module in ("matplotlib.pyplot", "seaborn"))

TEXT_WIDTH = 5.5
"""Width of the text in the paper's style, in inches."""

SLOPE_DASHES = ((10, 0), (8, 2), (6, 4), (4, 6), (2, 8))
"""Dash and gap of each slope that a path plot names, in line widths: where they coincide, one shows in the next's gaps.

The other slopes are grey.
"""

MOST_TICKS = 6
"""Of more given ticks, every k-th is drawn."""

LogLocator: Any = plt.LogLocator


@contextmanager
def figure_style() -> Iterator[None]:
    """Draw in the project's style: seaborn's "paper" context, colour-blind palette, embedded fonts.

    With font type 42 the text in a pdf stays text, which can be searched and copied. Only the style ends with the
    block: a notebook's first figure makes its later ones show themselves, which ``plt.rc_context`` would undo.
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
    before = {name: plt.rcParams[name] for name in theme}
    plt.rcParams.update(theme)
    try:
        yield
    finally:
        plt.rcParams.update(before)


def plain_number(value: float) -> str:
    """A number of six digits without an exponent: 0.001, 1000, 25,600, 10 million."""
    rounded = float(f"{value:.6g}")
    for unit, word in ((1e9, "billion"), (1e6, "million")):
        if abs(rounded) >= unit:
            return f"{plain_number(rounded / unit)} {word}"
    return f"{rounded:,.6g}" if abs(rounded) >= 10_000 else np.format_float_positional(rounded, trim="-")


class RoomyLogLocator(LogLocator):
    """Ticks at powers of 10; where there is room, also at 3 times them, or at 2 and 5 times them."""

    def tick_values(self, vmin: float, vmax: float) -> np.ndarray:
        """The ticks between two positive limits; the factors are those that take three quarters of the room at most."""
        decades, room = abs(np.log10(vmax / vmin)), 0.75 * self.axis.get_tick_space()
        for factors in ((1, 2, 5), (1, 3), (1,)):
            if len(factors) * decades <= room:
                break
        self.set_params(subs=factors)
        return super().tick_values(vmin, vmax)


def plain_log_ticks(axes: Axes, which: Literal["x", "y"], at: Sequence[float] | None = None) -> None:
    """Put an axis on a log scale with plain numbers (`plain_number`), without ticks between them.

    Parameters
    ----------
    at
        Where the ticks are, at most `MOST_TICKS` of them; None: as `RoomyLogLocator` chooses.
    """
    axes.set(**{f"{which}scale": "log"})
    # The ticks depend on the size of their labels, which would otherwise be that of the style at the time of drawing.
    axes.tick_params(axis=which, labelsize=plt.rcParams[f"{which}tick.labelsize"])
    axis, gap = {"x": (axes.xaxis, "\n"), "y": (axes.yaxis, " ")}[which]  # numbers side by side are narrow
    axis.set_major_locator(RoomyLogLocator() if at is None else plt.FixedLocator(at, nbins=MOST_TICKS))
    axis.set_major_formatter(lambda value, _: plain_number(value).replace(" ", gap))
    axis.set_minor_locator(plt.NullLocator())


def path_plot(path: pd.DataFrame, cv_results: pd.DataFrame | None = None) -> tuple[Figure, pd.DataFrame]:
    """How the fit changes with the radius: slopes, multiplier, and worst-case and cross-validated loss.

    Parameters
    ----------
    path
        From ``wdrlr.fit_path``, with one label cost and one penalty. The radius is on a log axis, so radius 0 is left
        out. The legend marks levels without rows as far as ``path.attrs`` tells.
    cv_results
        ``cv_results_`` of a ``WassersteinLogisticRegressionCV`` with the same label cost. The log-loss on the held-out
        rows is shown for the path's penalty, with one standard error on either side.

    Returns
    -------
    The figure, and its data with one row per point: panel, name, radius, value and standard_error (nan if there is
    none).

    Raises
    ------
    ValueError
        If the path has several label costs or penalties or no positive radius, ``cv_results`` lacks its penalty, or
        one of them is another table.
    """
    check_made_by("fit_path", "path", path, ("label_cost", "l1_penalty", "radius", "transport_multiplier", "intercept"))
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
        used = ("l1_penalty", "radius", "log_loss", "log_loss_se")
        check_made_by("WassersteinLogisticRegressionCV.cv_results_", "cv_results", cv_results, used)
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
    largest = shown[slopes].abs().max().nlargest(len(SLOPE_DASHES)).index
    with figure_style():
        figure, axes = plt.subplots(1, 3, figsize=(TEXT_WIDTH, 2.8), layout="constrained")
        for name in slopes.difference(largest, sort=False):
            axes[0].plot(shown["radius"], shown[name], color="0.8", linewidth=0.5)
        for name, dashes in zip(largest, SLOPE_DASHES, strict=False):
            note = " (no rows)" if name in path.attrs.get("no_rows", ()) else ""
            axes[0].plot(shown["radius"], shown[name], linewidth=1.2, linestyle=(0, dashes), label=f"{name}{note}")
        axes[1].plot(shown["radius"], shown["transport_multiplier"])
        for panel, name, radius, value, error in curves:
            if panel == "loss":
                axes[2].plot(radius, value, label=name, marker="." if name == "held out" else None)
            if name == "held out":
                axes[2].fill_between(radius, value - error, value + error, alpha=0.2, color="C1", linewidth=0)
        for axis, value in zip(axes, ("slope", "multiplier", "log-loss"), strict=True):
            plain_log_ticks(axis, "x")
            axis.set(xlabel="radius", ylabel=value)
        small: dict[str, Any] = dict.fromkeys(("fontsize", "title_fontsize"), "x-small")
        # Below the panels, where no curve is.
        for axis, title, side, columns in ((axes[0], "slopes", "left", 2), (axes[2], "log-loss", "right", 1)):
            small["loc"] = f"outside lower {side}"
            lines, names = axis.get_legend_handles_labels()
            figure.legend(lines, names, title=title, ncols=columns, frameon=False, handlelength=2.6, **small)
    return figure, data


def changes_plot(changed: pd.DataFrame, at_most: int = 12) -> Figure:
    """Bars of the share of mass in which the worst-case distribution changes the label and each feature.

    A bar is dark up to the mass of its commonest change, which stands beside it.

    Parameters
    ----------
    changed
        What `wdrlr.model.worst_case.changed_mass` returns.
    at_most
        The largest number of bars; features without mass are left out.

    Raises
    ------
    ValueError
        If ``changed`` is another table.
    """
    check_made_by("changed_mass", "changed", changed, ("mass", "commonest", "commonest_mass"))
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


def save_figure(figure: Figure, data: pd.DataFrame, folder: Path, name: str) -> list[Path]:
    """Write ``<name>.pdf``, ``<name>.png`` and the data as ``<name>.csv``, each replaced whole; return their paths.

    The files contain no date and no version, so that equal figures give equal files.
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
