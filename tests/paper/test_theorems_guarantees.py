import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from tests.test_plots import check_readable, legend_texts, ticks
from wdrlr.paper import theorems_guarantees as guarantees


def test_the_radius_needed_is_where_the_losses_cross_last():
    radii = np.array([0.01, 0.1, 1.0])
    fits = pd.DataFrame({"N": 9, "run": 0, "radius": radii, "worst_case": [0.0, 0.4, 1.0], "true": 0.5})
    (needed,) = guarantees.radii_needed(fits.assign(holds=fits["true"] <= fits["worst_case"]))["radius"]
    assert needed == pytest.approx(10 ** (-1 + 1 / 6))
    assert guarantees.radii_needed(fits.assign(holds=False))["radius"].isna().all()


def test_a_rate_slower_than_the_theorems_is_reported():
    rng = np.random.default_rng(0)
    N = np.repeat([100, 400, 1600], 30)
    for power, verdict in ((-0.5, "Theorem 6 holds"), (-0.05, "Theorem 6 does not hold")):
        noise = np.exp(0.01 * rng.standard_normal(len(N)))
        needed = pd.DataFrame({"N": N, "run": np.tile(np.arange(30), 3), "radius": N**power * noise})
        assert guarantees.fitted_rate(needed, 0.95, 0)[1] == pytest.approx(power, abs=0.02)
        assert verdict in [*guarantees.describe_rate(needed, 5, 0.95, 0)][-1]


def test_fits_come_closer_to_the_truth():
    fits = guarantees.consistency_fits([100, 6400], 0.5, 3, 4, seed=0)
    assert (fits["true"] >= 0).all() and fits["gap"].max() <= 1e-6
    assert "conclusion holds" in [*guarantees.describe_consistency(fits, 0.5)][-1]
    assert "is not seen" in [*guarantees.describe_consistency(fits.assign(distance=1.0), 0.5)][-1]


def test_worst_cases_have_one_atom_more_and_are_attained_unless_numbers_pay_more():
    atoms = guarantees.worst_case_atoms(3, seed=0)
    assert (atoms["atoms"] <= atoms["N"] + 1).all()
    assert atoms.loc[atoms["n"] == 0, "attained"].all() and not atoms["attained"].all()
    assert (atoms["excess_cost"] <= 1e-9).all() and (atoms["short"] <= atoms["allowed"] + 1e-9).all()
    assert atoms.loc[~atoms["attained"], "slack"].max() <= 1e-6


def test_a_shift_gains_less_than_the_supremum_and_only_a_linear_bound_holds():
    growth = guarantees.growth_of_loss(np.geomspace(1, 1e8, 9))
    assert (growth["missing"] > 0).all()
    assert growth["linear"].max() < 1 < growth["sublinear"].iloc[-1] / 5


def test_radii_at_the_smallest_are_hollow_triangles():
    needed = pd.DataFrame({"N": np.repeat([25, 100, 400, 1600], 3), "run": [0, 1, 2] * 4})
    needed["radius"] = np.exp(np.log(1e-3)) * np.array([90, 99, 100, 30, 40, 50, 1, 20, 30, 1, 1, 9])
    figure = guarantees.rate_plot(needed, 0.95, 0, smallest=1e-3)
    check_readable(figure)
    (axis,) = figure.axes
    found, censored = axis.lines[:2]
    assert len(found.get_xdata()) == 9 and censored.get_xdata().tolist() == [400, 1600, 1600]
    assert censored.get_marker() == "v" and censored.get_markerfacecolor() == "none"
    assert legend_texts(figure)[:3] == ["one run", "one run, 0.001 or less", "95 % quantile"]
    assert ticks(axis.xaxis) == ["25", "100", "400", "1600"]
    assert ticks(axis.yaxis)[0] == "0.001" and axis.get_ylim()[0] > 5e-4
    plt.close(figure)


def test_consistency_has_its_sizes_as_ticks():
    N = [100, 400, 1600, 6400, 25600]
    fits = pd.DataFrame({"N": N, "worst_case": np.geomspace(0.03, 0.004, 5), "true": np.geomspace(0.02, 3e-4, 5)})
    figure = guarantees.consistency_plot(fits.assign(distance=np.geomspace(0.8, 0.1, 5)))
    check_readable(figure)
    assert [ticks(axis.xaxis) for axis in figure.axes] == [["100", "400", "1600", "6400", "25,600"]] * 2
    assert ticks(figure.axes[1].yaxis) == ["0.1", "0.2", "0.5"]
    plt.close(figure)


def test_distances_of_shifts_are_counted_in_words():
    figure = guarantees.growth_plot(guarantees.growth_of_loss(np.geomspace(1, 1e8, 17)))
    check_readable(figure)
    assert [ticks(axis.xaxis)[-1] for axis in figure.axes] == ["100\nmillion"] * 2
    assert ticks(figure.axes[0].yaxis)[-1] == "0.01"
    plt.close(figure)
