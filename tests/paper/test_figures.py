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
    figure, data = box_plots(make_rows(METHODS), ["spect", "monks-3", "car"])
    yield figure, data
    plt.close(figure)


def test_one_panel_a_method_with_the_data_sets_on_the_axis(drawn):
    figure, data = drawn
    assert [axis.get_title() for axis in figure.axes] == [method.label for method in METHODS.values()]
    assert [label.get_text() for label in figure.axes[-1].get_xticklabels()] == ["spect", "monks-3", "car"]
    assert figure.get_size_inches()[0] == TEXT_WIDTH
    assert len(data) == 9 * 2 * 4
    assert data["test_error_percent"].max() == pytest.approx(30)


def test_a_box_has_the_quartiles(drawn):
    figure, _ = drawn
    first = figure.axes[0].patches[0].get_path().vertices[:, 1]
    assert (first.min(), first.max()) == pytest.approx((7.5, 22.5))


def test_few_methods_and_panels_that_stay_empty():
    figure, _ = box_plots(make_rows(list(METHODS)[:4]), ["spect", "car"])
    assert [axis.get_visible() for axis in figure.axes] == [True] * 4 + [False] * 2
    figure.canvas.draw()
    labelled = [any(label.get_visible() for label in axis.get_xticklabels()) for axis in figure.axes[:4]]
    assert labelled == [False, True, True, True]
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
    figure = runtime_panels(of_cost, panels, 60.0)
    for axis, (name, panel) in zip(figure.axes, panels.items(), strict=True):
        assert axis.get_yscale() == "log" and axis.get_xlabel() == panel.axis
        lines = [line for line in axis.get_lines() if len(line.get_xdata()) and line.get_linestyle() in ("-", "--")]
        markers = [line for line in axis.get_lines() if line.get_marker() == "s" and len(line.get_xdata())]
        points = sum(np.isfinite(line.get_ydata()).sum() for line in lines)
        assert points == (of_cost["panel"].eq(name) & solved).sum()
        assert len(markers) == (0 if name == "scheme" else 1)
        assert all(list(line.get_ydata()) == [60.0] * 3 for line in markers)
    plt.close(figure)
