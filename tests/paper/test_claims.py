"""Every rule with made-up numbers, both ways."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from tests.paper.test_redrawn import made_up, printed_rows
from wdrlr.paper import claims
from wdrlr.paper.claims import CLAIMS, FAILS, HOLDS, IN_PART, NOT_COMPUTED, UNDECIDED, find, verdict
from wdrlr.paper.methods import METHODS
from wdrlr.paper.printed import published_values
from wdrlr.paper.redrawn import Splits


def splits_of(rows, table="table1"):
    return Splits.of(rows, table)


def one_way(best, J=20, sd=0.0):
    """Fourteen data sets, each with the same best method."""
    datasets = published_values("table1")["dataset"].unique()
    return splits_of(made_up({name: {best: 10.0} for name in datasets}, J, sd))


# Parts


@pytest.mark.parametrize(
    "parts, expected",
    [
        ([HOLDS, HOLDS], HOLDS),
        ([FAILS, FAILS], FAILS),
        ([HOLDS, FAILS], IN_PART),
        ([HOLDS, UNDECIDED], IN_PART),
        ([UNDECIDED, FAILS], UNDECIDED),
        ([IN_PART, FAILS], IN_PART),
        ([IN_PART, HOLDS], IN_PART),
    ],
)
def test_parts_make_a_verdict(parts, expected):
    assert verdict(*parts) == verdict(*reversed(parts)) == expected


def test_reaching_and_agreeing():
    assert [claims.reaches(ours, 12, 12) for ours in (13, 12, 11)] == [HOLDS, HOLDS, UNDECIDED]
    assert claims.reaches(10, 11, 12) == FAILS
    assert [claims.agrees(5, low, high) for low, high in ((5, 5), (3, 6), (6, 9), (1, 4))] == [HOLDS] * 2 + [FAILS] * 2


# Errors


def test_the_printed_means_support_what_the_text_counts_from_them():
    splits = splits_of(printed_rows())
    found = {claim.text: find(claim, {"table1": splits}) for claim in CLAIMS if claim.evidence == "table1"}
    assert [found[text].verdict for text in list(found)[:2]] == [HOLDS, HOLDS]
    assert [found[text].ours for text in list(found)[:2]] == ["12 of 14", "9 of 14"]
    assert found["PI is weak: it has the largest error of all nine"].ours == "11 of 14"
    unregularized = found["LR / DRO (κ = 1) / DRO (κ = m) best of the unregularized"]
    assert unregularized == ("3 / 5 / 9 of 14", IN_PART, "other splits: 3 to 3 / 5 to 5 / 9 to 9")  # 79 % are 11
    assert found["r-LR / r-DRO (κ = 1) / r-DRO (κ = m) best of the regularized"].verdict == HOLDS


def test_wins():
    judge = partial(claims.judge_wins, tests=(0,), least=12)
    assert judge(one_way("DRO_kappa_1"))[:2] == ("14 of 14", HOLDS)
    assert judge(one_way("LR"))[:2] == ("0 of 14", FAILS)
    even = made_up({name: {"LR": 10.0, "DRO_kappa_1": 10.0} for name in published_values("table1")["dataset"]}, 50, 4.0)
    undecided = claims.judge_wins(splits_of(even), tests=(1,), least=9)
    assert undecided.verdict in (UNDECIDED, HOLDS) and "other splits: " in undecided.sure
    assert claims.judge_wins(splits_of(even), tests=(1,), least=14).verdict == FAILS


def test_significant_wins_have_two_tests():
    judge = partial(claims.judge_wins, tests=(2, 3), least=7)
    assert judge(one_way("r-DRO_kappa_m", sd=1.0)).verdict == HOLDS
    assert judge(one_way("PI", sd=1.0)).verdict == FAILS
    datasets = published_values("table1")["dataset"].unique()
    little = made_up({name: {"DRO_kappa_1": 10.0, "LR": 13.0} for name in datasets}, 100, 8.0)
    found = judge(splits_of(little))
    assert found.verdict == IN_PART and "by the paper's test; " in found.ours and "by the corrected one" in found.ours


def test_losses():
    datasets = published_values("table1")["dataset"].unique()
    close = made_up({name: {"LR": 10.0, "DRO_kappa_1": 10.05, "PI": 12} for name in datasets}, 60, 0.2)
    assert claims.judge_losses(one_way("DRO_kappa_1")).verdict == HOLDS  # there are none
    assert claims.judge_losses(splits_of(close)).verdict == IN_PART
    third = {name: {"LR": 10.0, "PI": 11.0, "DRO_kappa_1": 12.0} for name in datasets}
    assert claims.judge_losses(splits_of(made_up(third))).verdict == FAILS


def test_the_best_of_a_group():
    printed = {"LR": 0, "DRO_kappa_1": 0, "DRO_kappa_m": 14}
    assert claims.judge_group(one_way("DRO_kappa_m"), printed).verdict == HOLDS
    assert claims.judge_group(one_way("LR"), printed).verdict == IN_PART  # one of the three numbers is right
    assert claims.judge_group(one_way("LR"), {"LR": 1, "DRO_kappa_1": 2, "DRO_kappa_m": 11}).verdict == FAILS


def test_averages():
    datasets = published_values("table1")["dataset"].unique()
    good = {"LR": 12, "r-LR": 12, "DRO_kappa_1": 20, "DRO_kappa_m": 11, "r-DRO_kappa_1": 11}
    found = claims.judge_averages(splits_of(made_up({name: good for name in datasets})))
    assert found.verdict == HOLDS and "LR 12.00, DRO 20.00 / 11.00 %" in found.ours
    bad = good | {"r-LR": 10}
    found = claims.judge_averages(splits_of(made_up({name: bad for name in datasets})))
    assert found.verdict == IN_PART and found.sure.startswith(
        "r-LR has the lowest mean error over all 14, DRO (κ = m) 1.00 points more; with other splits it is the "
        "lowest in 100 % of the draws; "
    )
    assert claims.judge_averages(splits_of(made_up({name: bad | {"LR": 10} for name in datasets}))).verdict == FAILS
    one = {name: bad | ({"LR": 40} if name == "spect" else {"LR": 11.5}) for name in datasets}
    found = claims.judge_averages(splits_of(made_up(one)))
    assert found.sure.endswith("; without spect, DRO leads by 0.50, and r-LR is best")


def test_pi_and_plain_methods():
    weak = made_up({name: {"PI": 60.0} for name in published_values("table1")["dataset"]})
    assert claims.judge_largest(splits_of(weak), "PI").verdict == HOLDS
    assert claims.judge_largest(one_way("PI"), "PI").verdict == FAILS
    assert claims.judge_plain(one_way("DRO_kappa_1"), 2).verdict == HOLDS
    assert claims.judge_plain(one_way("r-LR"), 2).verdict == FAILS


def test_values():
    assert claims.judge_values(splits_of(printed_rows(J=50, sd=3.0))).verdict == HOLDS
    assert claims.judge_values(one_way("LR", sd=1.0)).verdict == FAILS
    one_far = printed_rows(J=50, sd=3.0)
    first = (one_far["dataset"] == "audiology") & (one_far["method"] == "DRO_kappa_m")
    one_far.loc[first, "test_error"] += 0.05
    found = claims.judge_values(splits_of(one_far))
    assert found.verdict == IN_PART and "least likely: audiology, DRO (κ = m), +" in found.sure
    assert [claims.judge_far(n, 126, 20) for n in (0, 20, 21, 63, 64)] == [HOLDS, HOLDS, IN_PART, IN_PART, FAILS]
    assert claims.judge_values(splits_of(made_up({"spect": {}}, J=20, sd=0.0))).verdict == UNDECIDED


@pytest.mark.parametrize("factor, expected", [(1.0, HOLDS), (2.9, HOLDS), (3.1, FAILS), (0.3, FAILS)])
def test_seconds(factor, expected):
    printed = published_values("table4").assign(
        protocol="code", seed=0, tol=1e-6, split=0, seconds=1.0, cv_seconds=1.0, identification_seconds=np.nan
    )
    total = printed["value"] + printed["value_identification_s"].fillna(0.0)
    rows = printed.assign(solver_seconds=total * np.where(printed["method"] == "LR", 1.0, factor))
    splits = Splits("table4", rows, {}, {})
    assert claims.judge_seconds(splits, "table4").verdict == expected
    proposed = rows["method"].map(lambda name: METHODS[name].is_proposed)
    mixed = rows.assign(solver_seconds=rows["solver_seconds"] / np.where(proposed, 100.0, 1.0))
    assert claims.judge_seconds(Splits("table4", mixed, {}, {}), "table4").verdict == (
        IN_PART if expected == HOLDS else FAILS
    )


@pytest.mark.parametrize(
    "factor, stopped, expected", [(2.0, 0, HOLDS), (2.0, 9, FAILS), (4.0, 0, FAILS), (0.3, 0, FAILS)]
)
def test_seconds_by_algorithm_1(factor, stopped, expected):
    fits = pd.DataFrame({"method": ["DRO_kappa_1", "DRO_kappa_m"] * 8, "paper_ratio_to_LR": [100.0, 300.0] * 8})
    fits = fits.assign(ratio_to_LR=factor * fits["paper_ratio_to_LR"], status="done", ratio=50.0)
    fits.loc[fits.index[:stopped], ["ratio_to_LR", "status"]] = [np.inf, "time limit"]
    found = claims.judge_scheme_seconds(fits)
    assert found.verdict == expected
    assert f"{16 - stopped} of 16 fits ended; 50 times as long as the tailored solver" in found.sure


# Figures


@pytest.mark.parametrize("upper, expected", [([0.9, 0.99], HOLDS), ([0.9, 1.1], IN_PART), ([1.1, 1.2], FAILS)])
def test_the_band(upper, expected):
    bands = pd.DataFrame({"N": [50, 100], "model": "continuous", "lower": 0.5, "upper": upper})
    mixed = bands.assign(model="mixed", upper=[0.98, 1.02])
    found = claims.judge_band(pd.concat([bands, mixed]))
    assert found.verdict == expected and "too, at 1 of 2" in found.sure and "0.980 to 1.020" in found.sure


def atoms(full, half, mass=2e-6, mixed=1.0):
    names = ["continuous, |z - z'|", "continuous, |z - z'| / 2", "mixed"]
    return pd.DataFrame({"distribution": names, "z": [full, half, mixed], "probability": [mass, mass, 0.3]})


def test_the_worst_case():
    judge = partial(claims.judge_atoms, point=15_312, mass=2e-6)
    assert judge(atoms(15_312.4, -15_312.0)).verdict == HOLDS
    assert judge(atoms(15_312.4, 30_623.8)).verdict == IN_PART
    assert judge(atoms(10.0, 20.0, mass=1e-3, mixed=3.0)).verdict == FAILS


def runtimes(power, factor, scheme_power, missing=""):
    """Made-up medians: monolithic N^power factor^m, scheme (N m)^scheme_power; the tailored solver a tenth of it."""
    rows = []
    for label_cost in "1m":
        for panel, sizes in (("N", [(N, 10) for N in (10, 20, 50, 100)]), ("m", [(50, m) for m in (2, 4, 8)])):
            for N, m in sizes:
                scheme = 1e-3 * float(N * m) ** scheme_power
                medians = {"monolithic": 1e-3 * N**power * factor**m, "algorithm1": scheme, "tailored": scheme / 10}
                rows += [
                    (label_cost, panel, solver, "2", N, m, 50, seconds, missing if solver == "algorithm1" else "")
                    for solver, seconds in medians.items()
                ]
    columns = "label_cost panel solver levels N m tried median missing".split()
    return pd.DataFrame(rows, columns=columns)


def test_growth():
    good = runtimes(power=1.0, factor=2.0, scheme_power=1.2)
    bad = runtimes(power=1.0, factor=1.1, scheme_power=3.0)
    for rule in (claims.judge_in_samples, claims.judge_in_features, claims.judge_scheme, claims.judge_monolithic):
        assert rule(good).verdict == HOLDS, rule
    assert claims.judge_in_samples(bad).verdict == claims.judge_in_features(bad).verdict == FAILS
    assert claims.judge_scheme(bad).verdict == IN_PART  # all sizes in time
    assert claims.judge_monolithic(bad).verdict == FAILS
    stopped = runtimes(power=1.0, factor=2.0, scheme_power=1.2, missing="time limit")
    assert claims.judge_monolithic(stopped).verdict == claims.judge_in_samples(stopped).verdict == UNDECIDED
    half = pd.concat([good[good["label_cost"] == "1"], bad[bad["label_cost"] == "m"]])
    assert claims.judge_in_features(half).verdict == IN_PART
    assert (
        "κ = 1: a feature multiplies the seconds by 2.00; κ = m: a feature multiplies the seconds by 1.10"
        == claims.judge_in_features(half).ours
    )


def test_figure_2_ends_with_the_claims_for_each_label_cost_but_for_those_undecided():
    good, bad = runtimes(power=1.0, factor=2.0, scheme_power=1.2), runtimes(power=1.0, factor=1.1, scheme_power=3.0)
    judged = claims.of_runtimes(pd.concat([good[good["label_cost"] == "1"], bad[bad["label_cost"] == "m"]]))
    assert list(judged.values()) == [True] * 4 + [False] * 4  # without the cones, which are undecided
    assert judged["the monolithic program is exponential in m (κ = 1: a feature multiplies the seconds by 2.00)"]
    assert not judged["the monolithic program is exponential in m (κ = m: a feature multiplies the seconds by 1.10)"]


@pytest.mark.parametrize("tangents, expected", [(4.0, UNDECIDED), (1.0, FAILS)])
def test_cones_are_undecided_unless_they_are_no_faster(tangents, expected):
    rows = pd.DataFrame({"m": [2, 6, 6], "cone_seconds": [9.0, 2.0, 2.0], "tangents_seconds": [1.0, *[tangents] * 2]})
    found = claims.judge_cones(rows)
    assert found.verdict == expected and f"take {tangents / 2:.2g} times as long" in found.ours
    assert found.ours.endswith(", m = 6")


def test_few_sizes_do_not_say_how_seconds_grow():
    rows = runtimes(power=1.0, factor=2.0, scheme_power=3.0)
    assert claims.judge_in_samples(rows).verdict == FAILS
    sizes = sorted(rows.loc[rows["panel"] == "N", "N"].unique())
    few = rows[(rows["panel"] != "N") | rows["N"].isin(sizes[: claims.FEWEST_SIZES - 1])]
    assert claims.judge_in_samples(few).verdict == UNDECIDED


# The whole


def test_missing_or_incomplete_evidence_is_not_computed():
    (first, *_) = CLAIMS
    assert find(first, {}) == ("", NOT_COMPUTED, "")
    some = printed_rows()
    some = some[some["dataset"].isin(["spect", "car"])]
    assert find(first, {"table1": splits_of(some)}) == ("2 of 14 data sets done", NOT_COMPUTED, "")


def test_all_claims_under_both_protocols():
    code, nothing = splits_of(printed_rows()), splits_of(printed_rows()[:0])
    splits = {"code": {"table1": code}, "paper": {"table1": nothing}}
    judged = claims.judge_claims({name: {"table2": nothing} | of for name, of in splits.items()}, {})
    assert list(judged.columns) == claims.COLUMNS
    assert judged["claim"].is_unique and not judged["claim"].str.contains("_kappa").any()
    of_errors = judged["claim"].isin([claim.text for claim in CLAIMS if claim.evidence == "table1"])
    assert not (judged.loc[of_errors, "verdict_code"] == NOT_COMPUTED).any()
    assert (judged.loc[of_errors, "ours_paper"] == "0 of 14 data sets done").all()
    figures = judged["place"].str.startswith("Figure")
    assert (judged.loc[figures, "verdict_paper"] == "").all() and figures.any()


def test_a_notebook_ends_with_the_claims_on_its_table():
    judged = claims.of_rows(printed_rows(), "table1")
    wins = f"{CLAIMS[0].text} (printed: 12 of 14; here: 12 of 14)"
    assert judged[wins] and not any("Seconds" in text for text in judged)
    unregularized = [holds for text, holds in judged.items() if "unregularized (" in text and ", in part: " in text]
    assert unregularized == [False]
    some = printed_rows()
    assert claims.of_rows(some[some["dataset"] != "spect"], "table1") == {}


def test_a_table_of_runtimes_ends_with_the_claims_on_seconds():
    printed = published_values("table3")
    rows = printed.assign(protocol="code", seed=0, tol=1e-6, split=0, cv_seconds=1.0, seconds=1.0, test_error=0.1)
    rows = rows.assign(solver_seconds=rows["value"], identification_seconds=rows["value_identification_s"], n_test=1)
    rows = pd.concat([rows.assign(n_train=4), rows.assign(n_train=4, split=1)])
    judged = claims.of_rows(rows, "table3")
    assert [text.split(" (")[0] for text in judged] == ["Seconds as multiples of LR's, numbers and categories"]
    assert all(judged.values())


def test_the_effort_is_that_of_the_rows():
    rows = printed_rows(J=2).assign(seconds=1.0, cv_seconds=2.0, versions="wdrlr=1")
    few = rows[(rows["dataset"] != "spect") | (rows["split"] == 0)]
    splits = {"table1": splits_of(few), "table2": splits_of(rows[:0])}
    first, second, third = claims.describe_effort(splits)
    assert first == f"table1: {len(few)} cells, {3 * len(few) / 3600:.1f} hours of processor time, by wdrlr=1."
    assert second.startswith("  Splits, of 100 in the paper: 2: breast-cancer, monks-3") and second.endswith(
        "; 1: spect."
    )
    assert third == "table2: nothing is stored."


def test_a_choice_that_turns_a_verdict_is_listed():
    splits = splits_of(printed_rows())
    changes = [("half", "spect", "MT_kappa_1", -10.0, 1.0), ("ties", "car", "PI", 0.0, 0.0)]
    compared = pd.DataFrame(changes, columns=["variant", "dataset", "method", "change", "change_se"])
    compared = compared.assign(n_splits=10, se=1.0, difference=0.0, difference_in_se=0.0)
    compared = compared.assign(remaining=compared["change"], remaining_in_se=compared["change"])
    assert claims.judge_choices(splits, compared.assign(change_se=6.0)).empty  # it may be chance
    choices = claims.judge_choices(splits, compared)
    first = choices[choices["claim"] == CLAIMS[0].text].to_dict("records")
    assert len(first) == 1 and set(choices["variant"]) == {"half"}
    assert (first[0]["before"], first[0]["ours"]) == ("12 of 14", "11 of 14")
    assert (first[0]["verdict_before"], first[0]["verdict"]) == (HOLDS, FAILS)
    assert first[0]["reason"] == "a dummy's flip costs 1 in MT's distance, not 2" and first[0]["against"] == 1
    assert claims.judge_choices(splits_of(printed_rows()[:0]), compared).empty


def test_every_claim_has_a_rule_in_words():
    assert claims.rules()["rule"].str.len().min() > 40
    assert list(claims.rules().index) == [claim.text for claim in CLAIMS]


def test_figures_are_read_where_they_are_there(tmp_path):
    assert claims.read_figures(tmp_path) == {}
    for label_cost in "1m":
        of_cost = runtimes(1.0, 2.0, 1.2)
        of_cost[of_cost["label_cost"] == label_cost].to_csv(tmp_path / f"figure2_full_kappa_{label_cost}.csv")
    pd.DataFrame({"ratio": [1.0]}).to_csv(tmp_path / "table4_algorithm1_all_code.csv")
    figures = claims.read_figures(tmp_path)
    assert list(figures) == ["figure2_full", "table4_algorithm1"] and set(figures["figure2_full"]["missing"]) == {""}
    assert claims.judge_scheme(figures["figure2_full"]).verdict == HOLDS
