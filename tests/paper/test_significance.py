import numpy as np
import pandas as pd
import pytest
from scipy import stats

from wdrlr.paper.methods import METHODS
from wdrlr.paper.printed import published_values
from wdrlr.paper.significance import assess_wins, count_claims, p_value, printed_marks


def make_rows(errors, dataset="spect", n_train=80, n_test=20):
    return pd.DataFrame(
        {
            "dataset": dataset,
            "method": method,
            "split": split,
            "test_error": error,
            "n_train": n_train,
            "n_test": n_test,
        }
        for method, values in errors.items()
        for split, error in enumerate(values)
    )


def noisy(mean, seed, J=100, sd=0.02):
    return np.random.default_rng(seed).normal(mean, sd, J)


# The tests


def test_the_paper_s_test_is_the_paired_t_test():
    a, b = noisy(0.10, 0), noisy(0.104, 1)
    expected = stats.ttest_rel(a, b, alternative="less").pvalue
    assert p_value(a - b) == pytest.approx(expected, rel=1e-12)


def test_the_corrected_test_by_hand():
    differences = np.array([-3.0, -1.0, -2.0, 0.0])  # mean -1.5, sample variance 5/3
    t = -1.5 / np.sqrt((1 / 4 + 1 / 4) * 5 / 3)
    assert p_value(differences, 20 / 80) == pytest.approx(stats.t.cdf(t, 3), rel=1e-12)
    assert p_value(differences, 0.25) > p_value(differences)


def test_differences_without_spread():
    assert [p_value(np.full(J, -0.1)) for J in (2, 5)] == [0.25, 1 / 32]  # two splits alike say little
    assert p_value(np.zeros(5)) == p_value(np.full(5, 0.1)) == 1.0


def test_one_split_is_no_test():
    with pytest.raises(ValueError, match="at least 2 splits, got 1"):
        p_value(np.array([-1.0]))


# Wins


def test_a_proposed_winner_is_compared_with_the_best_of_the_others():
    rows = make_rows(
        {
            "LR": noisy(0.2, 0),
            "DRO_kappa_1": noisy(0.101, 1),
            "DRO_kappa_m": noisy(0.1, 2) - 0.01,
            "r-LR": noisy(0.15, 3),
            "PI": noisy(0.12, 4),
        }
    )
    (win,) = assess_wins(rows, "mean").to_dict("records")
    assert (win["method"], win["second_best"], win["n_splits"]) == ("DRO_kappa_m", "PI", 100)
    assert win["proposed"] and not win["shared"]
    assert win["dagger"] and win["double_dagger"]
    errors = rows.pivot_table(index="split", columns="method", values="test_error")
    assert win["p_second_best"] == p_value(errors["DRO_kappa_m"] - errors["PI"])
    assert win["p_LR_corrected"] == p_value(errors["DRO_kappa_m"] - errors["LR"], 0.25)


def test_another_winner_is_compared_with_all():
    rows = make_rows({"LR": noisy(0.2, 0), "DRO_kappa_1": noisy(0.11, 1), "r-LR": noisy(0.1, 2)})
    (win,) = assess_wins(rows, "mean").to_dict("records")
    assert (win["method"], win["second_best"], win["proposed"], win["shared"]) == ("r-LR", "DRO_kappa_1", False, True)


def test_a_difference_can_be_significant_by_the_paper_s_test_only():
    rows = make_rows({"LR": noisy(0.105, 0), "DRO_kappa_1": noisy(0.098, 1)})
    (win,) = assess_wins(rows, "mean").to_dict("records")
    assert win["dagger"] and not win["dagger_corrected"]


def test_ties_at_two_decimals_share_the_win():
    rows = make_rows(
        {"LR": [0.1, 0.2], "DRO_kappa_1": [0.1, 0.20001], "r-DRO_kappa_1": [0.2, 0.1], "MT_kappa_1": [1, 1]}
    )
    wins = assess_wins(rows, "mean").set_index("method")
    assert list(wins.index) == ["LR", "DRO_kappa_1", "r-DRO_kappa_1"]
    assert wins["shared"].all()
    assert np.isnan(wins.loc["LR", "p_LR"]) and not wins.loc["LR", "dagger"]


def test_nothing_to_compare_with():
    (win,) = assess_wins(make_rows({"DRO_kappa_1": [0.1, 0.2]}), "mean").to_dict("records")
    assert win["second_best"] == "" and np.isnan(win["p_second_best"]) and not win["double_dagger"]


def test_data_sets_without_equal_splits_are_left_out():
    rows = make_rows({"LR": [0.1, 0.2], "PI": [0.3, 0.2]}).drop(index=0)
    assert assess_wins(rows, "mean").empty
    assert assess_wins(make_rows({"LR": [0.1], "PI": [0.3]}), "mean").empty
    assert list(assess_wins(rows, "mean").columns) == list(assess_wins(make_rows({"LR": [0, 1]}), "mean").columns)


def test_the_median_decides_where_it_is_printed():
    rows = make_rows({"LR": [0.1, 0.1, 0.9], "PI": [0.2, 0.2, 0.2]})
    assert assess_wins(rows, "median")["method"].tolist() == ["LR"]
    assert assess_wins(rows, "mean")["method"].tolist() == ["PI"]


def test_a_winner_by_the_median_is_not_better_than_a_method_with_the_same_median():
    lr, dro = [0.2] * 5 + [0.4] * 4, [0.2] * 5 + [0.1] * 4  # the mean of dro is significantly smaller
    tied = assess_wins(make_rows({"LR": lr, "DRO_kappa_1": dro}), "median").set_index("method")
    assert list(tied.index) == ["LR", "DRO_kappa_1"] and tied.loc["DRO_kappa_1", "p_LR"] < 0.05
    assert not tied[["dagger", "double_dagger"]].any(axis=None)
    (won,) = assess_wins(make_rows({"LR": np.array(lr) + 0.01, "DRO_kappa_1": dro}), "median").to_dict("records")
    assert won["method"] == "DRO_kappa_1" and won["dagger"] and won["double_dagger"]


# The claims


def test_the_printed_marks_give_the_claims_of_the_paper():
    """12, 9 and 7 of 14, as its text says."""
    marks = printed_marks("table1")
    as_ours = marks.assign(dagger_corrected=marks["dagger"], double_dagger_corrected=False)
    counts = count_claims(as_ours, "table1")
    assert counts["of"].tolist() == [14, 14, 14]
    assert counts["paper"].tolist() == counts["ours"].tolist() == [12, 9, 7]
    assert counts["ours_corrected"].tolist() == [12, 9, 0]


def test_the_printed_means_have_the_printed_winners():
    printed = published_values("table1")
    rows = pd.concat(
        make_rows({cell.method: [cell.value / 100] * 2 for cell in cells.itertuples()}, dataset)
        for dataset, cells in printed.groupby("dataset", sort=False)
    )
    assert set(rows["method"]) == set(METHODS)
    ours = set(assess_wins(rows, "mean")[["dataset", "method"]].itertuples(index=False, name=None))
    assert ours == set(printed_marks("table1")[["dataset", "method"]].itertuples(index=False, name=None))


def test_claims_count_the_assessed_data_sets_only():
    rows = pd.concat(
        [
            make_rows({"LR": noisy(0.2, 0), "DRO_kappa_1": noisy(0.1, 1), "PI": noisy(0.3, 2)}, "spect"),
            make_rows({"LR": noisy(0.1, 0), "DRO_kappa_1": noisy(0.2, 1), "PI": noisy(0.3, 2)}, "monks-3"),
        ]
    )
    counts = count_claims(assess_wins(rows, "mean"), "table1")
    assert counts["of"].tolist() == [2, 2, 2]
    assert counts["ours"].tolist() == counts["ours_corrected"].tolist() == [1, 1, 1]
    assert counts["paper"].tolist() == [1, 1, 1]  # spect by r-DRO, monks-3 by LR
