import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from wdrlr.paper.figures import box_plots, one_feature_plot, runtime_panels
from wdrlr.paper.methods import METHODS
from wdrlr.paper.runtimes import COLUMNS, GRIDS, Setting, summarise
from wdrlr.plots import TEXT_WIDTH


def make_rows(methods, datasets=("spect", "car")):
    return pd.DataFrame(
        {"dataset": dataset, "method": method, "split": split, "test_error": 0.1 * split}
        for dataset in datasets
        for method in methods
        for split in range(4)
    )


@pytest.fixture
def drawn():
    rows = make_rows(METHODS)
    rows.loc[rows["dataset"] == "car", "test_error"] /= 10
    rows.loc[rows["method"] == "PI", "test_error"] += 0.5
    figure, data = box_plots(rows, ["spect", "monks-3", "car"])
    yield figure, data, np.array(figure.axes).reshape(len(METHODS), 4)
    plt.close(figure)


def test_one_row_a_method_and_small_errors_apart_from_large_ones(drawn):
    figure, data, axes = drawn
    labels = [axis.get_ylabel() for axis in axes[:, 0]]
    assert labels == [method.label for method in METHODS.values()]
    assert {axis.get_ylabel() for axis in axes[:, 1:].flat} == {""}
    kinds = [axis.get_title() for axis in axes[0]]
    assert kinds[:2] == ["error in %,\nsets up to 10 %,\nPI apart", "error in %,\nsets above 10 %"]
    of_lr = "error less LR's,\nin points,\n"
    assert kinds[2:] == [f"{of_lr}sets up to 10 %,\nPI apart", f"{of_lr}sets above 10 %"]
    named = [[label.get_text() for label in axis.get_xticklabels()] for axis in axes[-1]]
    assert named == [["monks-3", "car"], ["spect"]] * 2
    assert figure.get_size_inches()[0] == TEXT_WIDTH
    assert len(data) == 9 * 2 * 4


def test_a_box_has_the_quartiles_of_the_errors_and_of_the_differences_to_lr(drawn):
    _, data, axes = drawn
    for axis, quartiles in ((axes[0, 1], (7.5, 22.5)), (axes[-1, 1], (57.5, 72.5)), (axes[-1, 3], (50, 50))):
        box = axis.patches[0].get_path().vertices[:, 1]
        assert (box.min(), box.max()) == pytest.approx(quartiles)
    assert data.groupby("method")["less_LR_percent"].max().eq(0).sum() == 8
    assert not any(axis.axison for axis in axes[0, 2:]) and axes[0, 2].get_legend()


def test_small_differences_can_be_seen_beside_large_ones(drawn):
    figure, _, axes = drawn
    figure.canvas.draw()
    assert {axis.get_yscale() for axis in axes[1:, 2:].flat} == {"symlog"} and axes[1, 0].get_yscale() == "linear"
    ticks = {label.get_text() for axis in axes[1:, 2:].flat for label in axis.get_yticklabels()}
    assert ticks == {"-10", "-1", "0", "+1", "+10"}


def test_data_sets_with_different_numbers_of_splits_say_so():
    rows = make_rows(METHODS, ("spect", "car"))
    figure, _ = box_plots(rows[(rows["dataset"] == "spect") | (rows["split"] < 3)], ["spect", "car"])
    named = {label.get_text() for axis in figure.axes if axis.axison for label in axis.get_xticklabels()}
    assert {"spect (4)", "car (3)"} <= named and not {"spect", "car"} & named
    plt.close(figure)


def test_pi_has_axes_of_its_own_and_the_others_share_theirs(drawn):
    *_, axes = drawn
    for column in axes.T:
        limits = [axis.get_ylim() for axis in column if axis.axison]
        assert len(set(limits[:-1])) == 1 and limits[-1] != limits[0]


def test_without_lr_there_are_no_differences():
    figure, data = box_plots(make_rows(list(METHODS)[1:4]), ["spect", "car"])
    assert len(figure.axes) == 3 and data["less_LR_percent"].isna().all()
    plt.close(figure)


def test_figure_1_has_its_bands_and_a_stem_for_every_atom():
    models = ["LR", "mixed", "continuous"]
    bands = pd.DataFrame(
        {"N": N, "model": model, "mean": 0.9 - k / 5, "lower": 0.8 - k / 5, "upper": 1.0 - k / 5}
        for N in (50, 250)
        for k, model in enumerate(models)
    )
    atoms = [("empirical", 1, 1, 0.7), ("empirical", 1, -1, 0.3), ("mixed", 1, 1, 0.6), ("mixed", -1, 1, 0.4)]
    atoms += [("continuous, |z - z'|", 1, 1, 1 - 2e-6), ("continuous, |z - z'|", 15312.4, -1, 2e-6)]
    figure = one_feature_plot(bands, pd.DataFrame(atoms, columns=["distribution", "z", "y", "probability"]))
    left, right = figure.axes
    assert figure.get_size_inches()[0] == TEXT_WIDTH
    assert [text.get_text() for text in left.get_legend().get_texts()] == models
    assert [label.get_text() for label in left.get_xticklabels()] == ["50", "100", "200"]
    assert [label.get_text() for label in right.get_xticklabels()] == ["-1\n+1", "+1\n-1", "+1\n+1", "+15,312\n-1"]
    assert right.get_yscale() == "log" and right.get_ylim()[0] < 2e-6
    figure.canvas.draw()
    assert [label.get_text() for label in right.get_yticklabels()] == ["0.000001", "0.0001", "0.01", "1"]
    assert left.get_ylabel() == "estimate of beta; true value 1"
    stems = [path.vertices for lines in right.collections for path in lines.get_paths()]
    assert sorted(stem[1, 1] for stem in stems) == pytest.approx(sorted(atom[3] for atom in atoms))
    plt.close(figure)


def test_runtimes_have_a_point_or_a_marker_at_every_size(tmp_path):
    panels = GRIDS["quick"]
    of_cost = summarise(pd.DataFrame(columns=list(COLUMNS)), panels, ["m"], Setting())
    solved = of_cost["solver"] != "monolithic"
    of_cost.loc[solved, ["low", "median", "high"]] = [0.5, 1.0, 2.0]
    of_cost.loc[solved, "missing"] = ""
    of_cost.loc[~solved, "missing"] = "memory guard"
    figure = runtime_panels(of_cost, panels, Setting(time_limit=60.0))
    axes = np.array(figure.axes).reshape(4, 2)
    for strip, axis, (name, panel) in zip(axes[::2].flat, axes[1::2].flat, panels.items(), strict=True):
        assert axis.get_yscale() == "log" and axis.get_xlabel() == panel.axis and axis.get_ylabel()
        lines = [line for line in axis.get_lines() if len(line.get_xdata()) and line.get_linestyle() in ("-", "--")]
        points = sum(np.isfinite(line.get_ydata()).sum() for line in lines)
        assert points == (of_cost["panel"].eq(name) & solved).sum()
        assert not any(line.get_marker() == "s" for line in axis.get_lines())  # it would be read as a time
        assert [len(line.get_xdata()) for line in strip.get_lines()] == ([] if name == "scheme" else [3])
        assert strip.get_xlim() == axis.get_xlim() and strip.get_xscale() == axis.get_xscale()
        assert len(strip.get_yticks()) == 0
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "over 500,000 constraints" in legend and "budget of a fit: 60 s" in legend
    figure.canvas.draw()
    assert {label.get_text() for label in axes[1, 0].get_yticklabels()} >= {"0.1", "1", "10"}
    plt.close(figure)
