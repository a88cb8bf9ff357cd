import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from tests.test_plots import check_readable, legend_texts, ticks
from wdrlr.paper import theorems

SLOPES = [0.5, 1.0, 3.0]


def test_the_two_terms_are_equal_at_the_kink_and_it_is_one():
    b_0, b_N, b_C = SLOPES
    f = b_0 + b_N * theorems.kink(SLOPES)
    assert np.logaddexp(0, f + b_C) - np.logaddexp(0, f) == pytest.approx(b_N)
    losses = theorems.losses_by_x(SLOPES, radius=0.3)
    last = [*theorems.describe_losses(losses, SLOPES, 0.3)][-1]
    before, after = (float(last.split(word)[1].split()[0]) for word in ("worst_case_loss is", "and"))
    assert after > before + 0.1


@pytest.mark.parametrize("case", theorems.CASES)
def test_the_formula_is_what_the_separation_finds(case):
    losses = theorems.losses_by_x(SLOPES, radius=0.3)
    np.testing.assert_allclose(losses[f"worst_case_loss{case}"], losses[f"closed_form{case}"], rtol=0, atol=1e-12)


def test_a_guarantee_that_never_holds_is_reported():
    fits = theorems.guarantee_fits([20], n_features=2, n_runs=2, seed=0)
    assert fits["holds"].equals(fits["true"] <= fits["worst_case"] + 1e-9)
    shares = fits.assign(holds=0.0).groupby(["N", "radius"])[["holds", "constant", "true"]].mean().reset_index()
    (line,) = theorems.describe_guarantee(shares)
    assert line.startswith("N = 20: it holds in 95 % of the runs at none of the radii; ")


def test_the_losses_have_labels():
    figure = theorems.losses_plot(theorems.losses_by_x(SLOPES, radius=0.3), SLOPES)
    check_readable(figure)
    plt.close(figure)


def test_the_legend_of_the_guarantee_is_beside_its_panels():
    radius = np.tile(np.geomspace(1e-3, 1, 13), 4)
    shares = pd.DataFrame(
        {"N": np.repeat([25, 100, 400, 1600], 13), "radius": radius, "holds": radius, "constant": 0.0}
    )
    figure = theorems.guarantee_plot(shares.assign(true=0.6, worst_case=0.6 + radius / 10))
    check_readable(figure)
    assert legend_texts(figure) == ["N = 25", "N = 100", "N = 400", "N = 1600"]
    assert not any(axis.get_legend() for axis in figure.axes)
    assert [ticks(axis.xaxis) for axis in figure.axes] == [["0.001", "0.01", "0.1", "1"]] * 2
    plt.close(figure)


def test_constraints_are_counted_in_words():
    m = [2, 16, 30]
    counts = pd.DataFrame(
        {"m": m, "constraints": [100 * 2.0**k for k in m], "cuts": [100, 150, 200], "rounds": [1, 9, 90]}
    )
    figure = theorems.schemes_plot(pd.concat(counts.assign(scheme=name) for name in theorems.SCHEMES))
    check_readable(figure)
    assert [axis.get_ylabel() for axis in figure.axes] == ["constraints (log scale)", "rounds"]
    assert ticks(figure.axes[0].yaxis) == ["100", "10,000", "1 million", "100 million", "10 billion"]
    plt.close(figure)
