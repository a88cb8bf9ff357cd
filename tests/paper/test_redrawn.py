import numpy as np
import pandas as pd
import pytest

from wdrlr.paper.differences import chance_of
from wdrlr.paper.methods import METHODS
from wdrlr.paper.printed import published_values
from wdrlr.paper.redrawn import (
    N_REDRAWS,
    NAMES,
    Sample,
    Splits,
    count_group_wins,
    count_losses,
    count_margins,
    count_wins,
    far_by_chance,
    spread,
)
from wdrlr.paper.significance import assess_wins, count_claims
from wdrlr.paper.tables import count_best, summarise_errors


def made_up(means, J=20, sd=0.0, seed=0):
    """Rows of table 1: {data set: {method: mean in per cent}}, the other methods at 50 %; sd of each error, too."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        [
            {
                "dataset": dataset,
                "method": method,
                "split": split,
                "test_error": (own.get(method, 50.0) + sd * rng.standard_normal()) / 100,
                "n_train": 80,
                "n_test": 20,
                "protocol": "code",
                "seed": 0,
                "tol": 1e-6,
                "seconds": 1.0,
                "solver_seconds": 1.0,
                "cv_seconds": 1.0,
                "identification_seconds": np.nan,
            }
            for dataset, own in means.items()
            for method in METHODS
            for split in range(J)
        ]
    )


def printed_rows(J=2, sd=0.0):
    """Rows whose means are the printed ones."""
    table = published_values("table1").groupby("dataset", sort=False)
    return made_up({name: dict(zip(of["method"], of["value"], strict=True)) for name, of in table}, J, sd)


@pytest.mark.parametrize("sd", [0.0, 2.0])
def test_counts_are_those_of_the_other_modules(sd):
    rows = printed_rows(J=30, sd=sd)
    splits = Splits.of(rows, "table1")
    ours, again = splits.tally(count_wins)
    counts = count_claims(assess_wins(rows, "mean"), "table1")
    assert ours.tolist() == [*counts["ours"], counts["ours_corrected"].iloc[-1]]
    assert again.shape == (N_REDRAWS, 4)
    in_group, _ = splits.tally(count_group_wins)
    assert in_group.tolist() == count_best(summarise_errors(rows, "table1"))["in_group"].tolist()


def test_without_noise_redrawn_splits_change_nothing():
    splits = Splits.of(printed_rows(), "table1")
    assert splits.complete
    for count in (count_wins, count_losses, count_group_wins, count_margins):
        ours, again = splits.tally(count)
        assert (again == ours).all()
    ours, _ = Splits.of(printed_rows(J=8), "table1").tally(count_losses)
    assert ours.tolist() == [2, 2, 2, 2]  # without noise any difference is significant


def test_redrawn_means_spread_as_the_difference_of_two_independent_ones():
    for J in (3, 100):
        errors = np.random.default_rng(1).normal(10.0, 3.0, size=(1, J, len(NAMES)))
        sample = Sample(errors, "mean", 0.25)
        again = sample.redraw(8000, np.random.default_rng(0)).levels()
        # of the second draw, (J - 1) / J is missing from what the first one left
        expected = np.sqrt((1 + (J - 1) / J) / J) * errors[0].std(axis=0, ddof=1)
        np.testing.assert_allclose(again.std(axis=0), expected, rtol=0.04)
        np.testing.assert_allclose(again.mean(axis=0), sample.levels()[0], atol=0.1)


def test_the_methods_stay_paired_when_redrawn():
    common = np.random.default_rng(0).normal(10.0, 3.0, size=50)
    errors = np.stack([common + k for k in range(len(NAMES))], axis=1)[None]
    again = Sample(errors, "median", 0.25).redraw(20, np.random.default_rng(0)).levels()
    np.testing.assert_allclose(np.diff(again, axis=1), 1.0)


def test_what_chance_makes_far_counts_all_methods_of_a_data_set_together():
    """Independent data sets, whose methods are all alike: as many are far in the mean, and all of a set at once."""
    draw = np.random.default_rng(2)
    common = {name: draw.normal(10.0, 3.0, size=(60, 1)) for name in ("spect", "car", "hiv")}
    samples = {name: Sample((one + np.zeros(len(NAMES)))[None], "mean", 0.25) for name, one in common.items()}
    counts = far_by_chance(Splits("table1", pd.DataFrame(), samples, {}), 100)
    assert set(counts) <= {0, 9, 18, 27} and {0, 9} <= set(counts)
    expected = chance_of(2.0, pd.Series([60]), "table1")[0]
    assert counts.mean() / 27 == pytest.approx(expected, abs=0.02)
    means = {name: {"LR": 10.0} for name in ("spect", "car")}
    assert far_by_chance(Splits.of(made_up(means, J=20, sd=0.0), "table2"), 20).max() == 0  # no standard error


def test_the_standard_errors_are_those_of_the_table():
    rows = made_up({"spect": {"LR": 10.0}}, J=20, sd=3.0)
    for table in ("table1", "table2"):
        shown = summarise_errors(rows, table).set_index("method").loc[NAMES, "standard_error"]
        (errors,) = Splits.of(rows, table).samples["spect"].standard_errors()
        np.testing.assert_allclose(errors, shown)


def test_losses_are_second_best_and_significant():
    means = {
        "spect": {"LR": 10, "DRO_kappa_1": 11, "PI": 12},  # second best
        "monks-3": {"LR": 10, "PI": 11, "DRO_kappa_1": 12},  # third
        "car": {"LR": 10, "DRO_kappa_1": 10},  # a tie is no loss
    }
    ours, _ = Splits.of(made_up(means), "table1").tally(count_losses)
    assert ours.tolist() == [2, 1, 2, 2]
    noisy, _ = Splits.of(made_up(means, J=100, sd=4.0), "table1").tally(count_losses)
    assert noisy[2] > noisy[3]  # the corrected test finds less


def test_margins_within_two_standard_errors():
    means = {"spect": {"LR": 10, "DRO_kappa_1": 10.1}, "car": {"LR": 10, "DRO_kappa_1": 15}}
    (ours,), _ = Splits.of(made_up(means, J=100, sd=3.0), "table1").tally(count_margins)
    assert ours == 1
    (tied,), _ = Splits.of(made_up({"car": {"LR": 10, "PI": 10, "DRO_kappa_1": 10}}), "table1").tally(count_margins)
    assert tied == 1  # a tie on every split is no margin


def test_the_fewest_splits_are_known():
    many, few = made_up({"spect": {}}, J=20), made_up({"car": {}}, J=3)
    splits = Splits.of(pd.concat([many, few]), "table1")
    assert (splits.n_splits(), splits.few) == ("3 to 20", True)
    splits = Splits.of(many, "table1")
    assert (splits.n_splits(), splits.few) == ("20", False)
    assert Splits.of(many[:0], "table1").n_splits() == "0"


def test_incomplete_data_sets_do_not_count():
    rows = printed_rows()
    fewer = rows[~((rows["dataset"] == "spect") & (rows["method"] == "PI") & (rows["split"] == 1))]
    splits = Splits.of(fewer, "table1")
    assert "spect" not in splits.samples and len(splits.samples) == 13 and not splits.complete
    assert Splits.of(rows[:0], "table1").samples == {}


def test_a_change_is_added_where_it_was_tried():
    splits = Splits.of(printed_rows(), "table1")
    compared = pd.DataFrame({"dataset": ["spect", "elsewhere"], "method": ["LR", "PI"], "change": [-5.0, 1.0]})
    changed = splits.changed(compared)
    moved = {name: changed.samples[name].levels() - splits.samples[name].levels() for name in splits.samples}
    assert moved["spect"][0, NAMES.index("LR")] == pytest.approx(-5.0)
    assert sum(np.abs(one).sum() for one in moved.values()) == pytest.approx(5.0)
    assert splits.tally(count_wins)[0][0] == 12 and changed.tally(count_wins)[0][0] == 11


def test_a_spread_has_95_per_cent_in_it():
    low, high = spread(np.arange(1001)[:, None])
    assert (low[0], high[0]) == (25, 975)
