import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from wdrlr.paper.differences import (
    chance_of,
    compare_variants,
    describe_differences,
    explain_differences,
    format_changes,
    judge_variants,
    stored_comparison,
)
from wdrlr.paper.printed import published_values
from wdrlr.paper.results import COLUMNS, save_rows, versions
from wdrlr.paper.variants import VARIANTS

PAPER = published_values("table1").set_index(["dataset", "method"])["value"]


def rows_of(dataset, method, errors, protocol="code"):
    """Rows with the test errors given in per cent, one a split."""
    return pd.DataFrame(
        {
            "dataset": dataset,
            "method": method,
            "protocol": protocol,
            "split": range(len(errors)),
            "test_error": np.asarray(errors) / 100,
        }
    )


def around(mean, spread=1.0, n=20):
    """n errors with that mean; their standard deviation is about `spread`."""
    return mean + spread * np.resize([-1, 1], n)


@pytest.fixture
def tried():
    """PI is 4 % points off on lymphography, which "PI-coding" mends; on spect it is near, and the change leaves it."""
    far, near = PAPER["lymphography", "PI"], PAPER["spect", "PI"]
    rows = pd.concat([rows_of("lymphography", "PI", around(far + 4)), rows_of("spect", "PI", around(near + 0.1))])
    variants = pd.concat(
        [
            rows_of("lymphography", "PI", around(far + 0.2, 1.2), "code-PI-coding"),
            rows_of("lymphography", "PI", around(far + 4), "code-PI-intercept"),
            rows_of("spect", "PI", around(near + 0.1), "code-PI-coding"),
        ]
    )
    return rows, variants


def test_changes_are_paired_and_what_remains_follows(tried):
    compared = compare_variants(*tried).set_index(["dataset", "variant"])
    one = compared.loc["lymphography", "PI-coding"]
    se = np.std(around(0), ddof=1) / np.sqrt(20)
    change_se = np.std(around(0, 0.2), ddof=1) / np.sqrt(20)
    assert (one["n_splits"], one["paper"]) == (20, PAPER["lymphography", "PI"])
    assert one["difference"] == pytest.approx(4) and one["difference_in_se"] == pytest.approx(4 / se)
    assert one["change"] == pytest.approx(-3.8) and one["change_se"] == pytest.approx(change_se)
    assert one["remaining"] == pytest.approx(0.2)
    assert one["remaining_in_se"] == pytest.approx(0.2 / np.hypot(se, change_se))
    assert compared.loc["lymphography", "PI-intercept"]["change"] == pytest.approx(0, abs=1e-12)


def test_only_splits_that_both_have_are_paired(tried):
    rows, variants = tried
    few = variants[variants["split"] >= 17]
    assert set(compare_variants(rows, few)["n_splits"]) == {3}
    assert compare_variants(rows, variants[variants["split"] >= 19]).empty
    assert compare_variants(rows[:0], variants).empty
    assert judge_variants(compare_variants(rows[:0], variants)).empty


def on_all(change, methods=("PI",), name="code-PI-coding"):
    """Rows 4 % points above the printed means, 4.5 on the next data set and so on, and those with the change."""
    rows, variants = [], []
    for dataset, method in PAPER.index[PAPER.index.isin(methods, level="method")]:
        above = PAPER[dataset, method] + 4 + 0.5 * len(rows)
        rows.append(rows_of(dataset, method, around(above)))
        variants.append(rows_of(dataset, method, around(above + change, 1.2), name))
    return pd.concat(rows), pd.concat(variants)


def test_a_change_is_likely_if_it_closes_and_opens_nothing():
    judged = judge_variants(compare_variants(*on_all(-4)))
    coding = judged.loc["PI-coding"]
    assert list(coding[["likely", "datasets", "far", "closes", "near", "opens"]]) == [True, 14, 14, 1, 0, 0]
    assert coding["p"] == coding["p_corrected"] == pytest.approx(2.0**-14) and coding["power"] == 1
    assert coding["rms_after"] < coding["rms_before"]
    assert coding["reason"] == VARIANTS["PI-coding"].reason


def test_a_change_in_the_wrong_direction_or_of_few_data_sets_is_not_likely(tried):
    assert judge_variants(compare_variants(*on_all(+1))).loc["PI-coding", "p"] == 1
    judged = judge_variants(compare_variants(*tried))
    assert list(judged.loc["PI-coding", ["likely", "datasets", "closes", "p"]]) == [False, 1, 1, 0.5]
    assert list(judged.loc["PI-intercept", ["likely", "datasets", "p"]]) == [False, 0, 1]
    assert not judged["power"].any()


def test_p_values_are_corrected_for_the_number_of_changes():
    pi, dro = on_all(-4), on_all(-4, ("DRO_kappa_1",), "code-metric")
    first = dro[1]["dataset"].unique()[:3]
    compared = compare_variants(pd.concat([pi[0], dro[0]]), pd.concat([pi[1], dro[1][dro[1]["dataset"].isin(first)]]))
    judged = judge_variants(compared)
    assert judged.loc["PI-coding", "p_corrected"] == pytest.approx(2 * 2.0**-14)  # the smallest of two
    assert judged.loc["metric", "p_corrected"] == judged.loc["metric", "p"] == pytest.approx(2.0**-3)
    assert list(judged.loc[["PI-coding", "metric"], "likely"]) == [True, False]


def test_means_of_a_data_set_count_once():
    rows, variants = on_all(-4, ("MT_kappa_1", "MT_kappa_m"), "code-metric")
    assert judge_variants(compare_variants(rows, variants)).loc["metric", "datasets"] == 14


def test_the_splits_of_a_change_are_told(tried):
    compared = compare_variants(*tried)
    compared.loc[compared.index[0], "n_splits"] += 3
    n_splits = compared.groupby("variant")["n_splits"]
    judged = judge_variants(compared)
    assert judged["fewest"].equals(n_splits.min()[judged.index]) and judged["most"].equals(n_splits.max()[judged.index])
    assert (judged["most"] - judged["fewest"]).max() == 3


def test_a_change_that_moves_a_near_mean_away_is_not_likely(tried):
    rows, variants = tried
    moved = rows_of("spect", "PI", around(PAPER["spect", "PI"] + 5, 1.2), "code-PI-coding")
    compared = compare_variants(rows, pd.concat([variants[variants["dataset"] == "lymphography"], moved]))
    judged = judge_variants(compared)
    assert list(judged.loc["PI-coding", ["likely", "closes", "opens"]]) == [False, 1, 1]
    explained = explain_differences(summary_of(compared), compared).set_index("dataset")
    assert "but that makes 1 other difference far or farther" in explained.loc["lymphography", "reason"]


def test_a_mean_without_a_standard_error_is_neither_far_nor_near(tried):
    rows, variants = tried
    on_lymphography = variants[variants["dataset"] == "lymphography"]
    same = rows_of("spect", "PI", np.full(10, 25.0), "code")
    moved = rows_of("spect", "PI", np.full(10, 50.0), "code-PI-coding")
    without = compare_variants(rows, on_lymphography)
    compared = compare_variants(
        pd.concat([rows[rows["dataset"] != "spect"], same]), pd.concat([on_lymphography, moved])
    )
    assert len(compared) == len(without) + 1
    pd.testing.assert_frame_equal(judge_variants(compared), judge_variants(without))


def test_a_far_difference_can_get_worse(tried):
    rows, _ = tried
    worse = rows_of("lymphography", "PI", around(PAPER["lymphography", "PI"] + 6, 1.2), "code-PI-coding")
    judged = judge_variants(compare_variants(rows, worse))
    assert list(judged.loc["PI-coding", ["likely", "far", "closes", "worsens"]]) == [False, 1, 0, 1]


def summary_of(compared, **more):
    first = compared.drop_duplicates(["dataset", "method"])
    return first.rename(columns={"standard": "ours"}).assign(**more)


def test_each_far_difference_gets_its_reason(tried):
    compared = compare_variants(*tried)
    summary = summary_of(compared)
    explained = explain_differences(summary, compared)
    assert explained["dataset"].tolist() == ["lymphography"]
    assert explained["reason"].tolist() == [f"PI-coding: {VARIANTS['PI-coding'].reason}"]
    without = explain_differences(summary, compared[compared["variant"] == "PI-intercept"])
    assert without["reason"].tolist() == ["unexplained; ruled out: PI-intercept"]
    noisy = compared.assign(change_se=100.0, remaining_in_se=0.0)
    left_open = explain_differences(summary, noisy)["reason"].tolist()
    assert left_open == ["unexplained; ruled out: PI-intercept; open: PI-coding"]
    assert explain_differences(summary, compared[:0])["reason"].tolist() == ["not tested"]


def test_the_sentence_counts_and_says_what_chance_does():
    summary = pd.DataFrame({"difference_in_se": [3.0, -2.5, 0.0, 1.0, np.nan], "n_splits": 100})
    assert describe_differences(summary, "table1") == (
        "2 of 4 are more than 2 of our standard errors from the paper's. Chance alone makes 0.6 so in the mean, as the "
        "printed ones are from 100 random splits themselves, and several at a time, as the methods share their splits."
    )  # 4 times P(|N(0, 2)| > 2)
    assert describe_differences(summary[4:], "table1").startswith("Nothing to compare")


@pytest.mark.parametrize("n, expected", [(100, 1 / np.sqrt(2)), (10**7, 0.0), (60, 1 / np.sqrt(1.6))])
def test_the_chance_of_a_difference_takes_account_of_both_sets_of_splits(n, expected):
    """Drawn: the difference of two means with equal spread, in the first one's standard errors."""
    rng = np.random.default_rng(0)
    ours, printed = rng.standard_normal((2, 200_000)) / np.sqrt([[n], [100]])
    drawn = np.mean(np.abs(ours - printed) * np.sqrt(n) > 2)
    assert chance_of(2.0, pd.Series([n]), "table1")[0] == pytest.approx(drawn, abs=0.01)
    assert chance_of(2.0, pd.Series([n]), "table1")[0] == pytest.approx(2 * norm.sf(2 * expected), abs=0.01)


def test_few_splits_leave_more_to_chance():
    assert chance_of(2.0, pd.Series([5]), "table1")[0] == pytest.approx(0.1237, abs=1e-3)  # Student's, 4 degrees


def test_changes_as_text(tried):
    tables = format_changes(compare_variants(*tried))
    assert list(tables) == ["PI"]
    assert tables["PI"].loc[("lymphography", "PI")].iloc[0]["PI-coding"].startswith("-3.80 ± 0.05* → +0.")
    assert "*" not in tables["PI"].loc[("spect", "PI")].iloc[0]["PI-coding"]


def test_what_is_stored_is_compared_under_the_varied_protocol_only(tmp_path, capsys):
    blank = {name: {str: "", int: 0, float: 0.0, bool: False}[kind] for name, kind in COLUMNS.items()}
    blank |= {"dataset": "monks-3", "method": "PI", "solver": "tailored", "tol": 1e-6}
    blank["versions"] = versions().replace("wdrlr=", "wdrlr=0+")
    for protocol, errors in (("code", (0.2, 0.3)), ("code-PI-coding", (0.1, 0.3))):
        save_rows(
            tmp_path,
            [blank | {"protocol": protocol, "split": s, "test_error": error} for s, error in enumerate(errors)],
        )
    compared = stored_comparison(tmp_path, "code", 0)
    assert capsys.readouterr().out.startswith("4 of these 4 rows were computed by other versions (wdrlr 0+")
    assert compared[["dataset", "variant", "n_splits"]].to_numpy().tolist() == [["monks-3", "PI-coding", 2]]
    assert compared["change"].iloc[0] == pytest.approx(-5)
    assert stored_comparison(tmp_path, "paper", 0).empty
