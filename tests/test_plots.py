from itertools import pairwise

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from tests.estimators.test_classifier import mixed_data
from wdrlr import WassersteinLogisticRegressionCV, fit_path
from wdrlr.plots import (
    MOST_TICKS,
    SLOPE_DASHES,
    changes_plot,
    figure_style,
    path_plot,
    plain_log_ticks,
    plain_number,
    save_figure,
)


def tick_labels(axis):
    """The labels that are seen of a drawn axis."""
    low, high = axis.get_view_interval()
    return [
        label
        for place, label in zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True)
        if low <= place * (1 + 1e-9) and place <= high * (1 + 1e-9) and label.get_visible()
    ]


def ticks(axis):
    return [label.get_text() for label in tick_labels(axis)]


def legend_texts(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def check_readable(figure):
    """Every panel has both labels, plain ticks that do not overlap, and no legend of the figure over it or cut off."""
    figure.canvas.draw()
    for axes in figure.axes:
        assert axes.get_xlabel() and axes.get_ylabel()
        for axis in (axes.xaxis, axes.yaxis):
            assert len(tick_labels(axis)) > 1 and not any("$" in text for text in ticks(axis))
            boxes = [label.get_window_extent() for label in tick_labels(axis)]
            assert not any(one.overlaps(other) for one, other in pairwise(boxes))
    for box in (legend.get_window_extent() for legend in figure.legends):
        assert not any(box.overlaps(axes.get_tightbbox()) for axes in figure.axes)
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.x1


def test_bars_of_what_the_worst_case_changes():
    columns = {"mass": [0.3, 0.1, 0.0], "commonest": ["u → v", "1 → 0", ""], "commonest_mass": [0.2, 0.1, 0.0]}
    changed = pd.DataFrame(columns, index=["a", "label", "b"])
    figure = changes_plot(changed)
    (axis,) = figure.axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["a", "label"]
    assert [bar.get_width() for bar in axis.patches] == pytest.approx([30, 10, 20, 10])
    assert [text.get_text() for text in axis.texts] == ["u → v", "1 → 0"]
    plt.close(figure)
    figure = changes_plot(changed.iloc[2:])
    assert figure.axes[0].get_title() == "nothing is changed"
    plt.close(figure)


def test_files_of_a_figure(tmp_path):
    data = pd.DataFrame({"x": [0.0, 1.0, 2.0], "y": [1.0, 3.0, 2.0]})
    with figure_style():
        figure, axis = plt.subplots(figsize=(2, 1.5))
        axis.plot(data["x"], data["y"], color="red")
    paths = save_figure(figure, data, tmp_path, "lines")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in paths)
    csv, pdf, png = (tmp_path / f"lines.{kind}" for kind in ("csv", "pdf", "png"))
    pd.testing.assert_frame_equal(pd.read_csv(csv), data)
    assert b"/FontType 42" in pdf.read_bytes() or b"/CIDFontType2" in pdf.read_bytes()
    assert b"/Type3" not in pdf.read_bytes() and b"CreationDate" not in pdf.read_bytes()
    image = plt.imread(png)[::-1, :, :3]  # rows from below, as on the canvas
    for x, y in [(0.5, 2.0), (1.0, 3.0), (1.5, 2.5)]:  # of the line
        column, row = axis.transData.transform((x, y)) * 200 / figure.dpi
        around = image[int(row) - 3 : int(row) + 4, int(column) - 3 : int(column) + 4]
        assert (np.abs(around - [1, 0, 0]) < 0.01).all(axis=-1).any()
    plt.close(figure)


def test_the_style_ends_with_its_block():
    before = dict(matplotlib.rcParams)
    with figure_style():
        assert matplotlib.rcParams["pdf.fonttype"] == 42
    assert dict(matplotlib.rcParams) == before


def test_only_the_style_ends_with_its_block():
    """The first figure of a notebook, made in such a block, switches on that figures show themselves."""
    assert not matplotlib.is_interactive()
    try:
        with figure_style():
            matplotlib.interactive(True)
        assert matplotlib.is_interactive()
    finally:
        matplotlib.interactive(False)


def test_a_path_plot_shows_the_path():
    X, y = mixed_data(40)
    radii = np.geomspace(1e-3, 0.3, 6)
    path = fit_path(X, y, [0.0, *radii])
    model = WassersteinLogisticRegressionCV(radii, [0.0, 0.01], cv=3).fit(X, y)
    figure, data = path_plot(path, model.cv_results_)
    assert [axis.get_ylabel() for axis in figure.axes] == ["slope", "multiplier", "log-loss"]
    assert [len(axis.lines) for axis in figure.axes] == [5, 1, 2]
    slopes = data[data["panel"] == "slopes"].pivot_table("value", "radius", "name")
    assert np.array_equal(slopes[path.columns[8:]], path.iloc[1:, 8:])  # radius 0 is left out
    held_out = data[data["name"] == "held out"]
    expected = model.cv_results_[model.cv_results_["l1_penalty"] == 0.0]
    assert held_out["value"].tolist() == expected["log_loss"].tolist()
    assert held_out["standard_error"].tolist() == expected["log_loss_se"].tolist()
    assert figure.axes[2].lines[0].get_ydata().tolist() == path["objective"].tolist()[1:]
    assert path.attrs["no_rows"] == ["colour_never"]
    legend = {text.get_text() for text in figure.legends[0].get_texts()}
    assert legend == {"size", "colour_green", "colour_red", "colour_never (no rows)", "kind_b"}
    alone, without = path_plot(path)
    assert set(without["name"]) == set(data["name"]) - {"held out"}
    plt.close(figure)
    plt.close(alone)


def test_no_legend_of_a_path_plot_is_on_a_curve_or_cut():
    X, y = mixed_data(40)
    radii = np.geomspace(1e-3, 0.3, 6)
    long_names = X.rename(columns={"colour": "colour of the larger one"})
    model = WassersteinLogisticRegressionCV(radii, cv=3).fit(long_names, y)
    figure, _ = path_plot(fit_path(long_names, y, radii), model.cv_results_)
    check_readable(figure)
    left, right = (legend.get_window_extent() for legend in figure.legends)
    assert left.x1 < right.x0
    plt.close(figure)


def test_each_named_slope_of_a_path_plot_is_seen_where_all_are_equal():
    X, y = mixed_data(40)
    path = fit_path(X, y, np.geomspace(1e-3, 0.3, 6))
    slopes = path.columns[8:]
    assert len(slopes) == len(SLOPE_DASHES)
    path[slopes] = path[["size"] * len(slopes)].to_numpy()
    figure, _ = path_plot(path)
    figure.set_dpi(200)
    figure.canvas.draw()
    axes = figure.axes[0]
    box = axes.get_window_extent()
    pixels = np.asarray(figure.canvas.buffer_rgba())[::-1][int(box.y0) : int(box.y1), int(box.x0) : int(box.x1), :3]
    for line in axes.lines:
        color = 255 * np.array(matplotlib.colors.to_rgb(line.get_color()))
        assert (np.abs(pixels - color) < 3).all(axis=-1).sum() > 50, line.get_label()
    plt.close(figure)


def test_a_path_plot_needs_one_path():
    X, y = mixed_data(30)
    with pytest.raises(ValueError, match=r"one value of l1_penalty, not \[0.0, 0.1\]"):
        path_plot(fit_path(X, y, [0.1], l1_penalties=[0.0, 0.1]))
    with pytest.raises(ValueError, match="no positive radius"):
        path_plot(fit_path(X, y, [0.0]))
    with pytest.raises(ValueError, match="the path's l1_penalty"):
        path_plot(fit_path(X, y, [0.1], [1.0]), WassersteinLogisticRegressionCV([0.1], cv=2).fit(X, y).cv_results_)


def test_other_tables_are_told_from_those_that_are_drawn():
    X, y = mixed_data(40)
    chosen = WassersteinLogisticRegressionCV([0.1], cv=2).fit(X, y)
    path = fit_path(X, y, [0.1, 0.2])
    with pytest.raises(ValueError, match="path must be the table of fit_path, with the columns 'label_cost', "):
        path_plot(chosen)
    with pytest.raises(ValueError, match=r"cv_results must be the table of .*CV\.cv_results_"):
        path_plot(path, chosen)
    with pytest.raises(ValueError, match="changed must be the table of changed_mass, with the columns 'mass', "):
        changes_plot(chosen.worst_case_distribution(X, y))


def test_ticks_of_a_log_axis_are_plain_numbers():
    figure, axes = plt.subplots()
    plain_log_ticks(axes, "y")
    formatter = axes.yaxis.get_major_formatter()
    powers = [10.0**k for k in range(-6, 4)] + [0.000009999999999999999]
    assert [formatter(value, 0) for value in powers] == [
        *("0.000001", "0.00001", "0.0001", "0.001", "0.01", "0.1", "1", "10", "100", "1000", "0.00001")
    ]
    assert axes.get_xscale() == "linear" and axes.get_yscale() == "log"
    axes.xaxis.set_major_formatter(formatter)
    plain_log_ticks(axes, "x")
    assert [axis.get_major_formatter()(1e7, 0) for axis in (axes.xaxis, axes.yaxis)] == ["10\nmillion", "10 million"]
    plt.close(figure)


def test_a_plain_number_has_no_exponent():
    numbers = [1e-9, 0.30000000000000004, 1600, 25600, 1e5 - 1e-9, 1e6, 2.5e8, 1e10]
    words = ["0.000000001", "0.3", "1600", "25,600", "100,000", "1 million", "250 million", "10 billion"]
    assert [plain_number(number) for number in numbers] == words


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ((0.21, 0.39), ["0.225", "0.25", "0.275", "0.3", "0.325", "0.35", "0.375"]),
        ((0.009, 0.3), ["0.01", "0.02", "0.05", "0.1", "0.2"]),
        ((0.009, 2), ["0.01", "0.03", "0.1", "0.3", "1"]),
        ((0.009, 2e3), ["0.01", "0.1", "1", "10", "100", "1000"]),
    ],
)
def test_a_short_log_axis_has_ticks_between_powers_of_10(limits, expected):
    with figure_style():
        figure, axes = plt.subplots(figsize=(2.75, 1.8), layout="constrained")
        axes.set_ylim(limits)
        plain_log_ticks(axes, "y")
        figure.canvas.draw()
        assert ticks(axes.yaxis) == expected
    figure.canvas.draw()
    assert ticks(axes.yaxis) == expected  # in another style, too
    plt.close(figure)


def test_given_ticks_are_drawn_unless_they_are_many():
    figure, axes = plt.subplots()
    sizes = np.array([25, 100, 400, 1600])
    axes.plot(sizes, sizes)
    plain_log_ticks(axes, "x", sizes)
    figure.canvas.draw()
    assert ticks(axes.xaxis) == ["25", "100", "400", "1600"] and not axes.xaxis.get_minorticklocs().size
    plain_log_ticks(axes, "x", np.geomspace(25, 1600, 13))
    figure.canvas.draw()
    assert 1 < len(ticks(axes.xaxis)) <= MOST_TICKS
    plt.close(figure)
