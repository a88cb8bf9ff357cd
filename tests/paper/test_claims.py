import pandas as pd

from tests.paper.test_redrawn import printed_rows
from tests.paper.test_verdicts import runtimes, splits_of
from wdrlr.paper import claims, verdicts
from wdrlr.paper.claims import CLAIMS, find
from wdrlr.paper.printed import published_values
from wdrlr.paper.verdicts import FAILS, HOLDS, IN_PART, NOT_COMPUTED, UNDECIDED


def test_the_printed_means_support_what_the_text_counts_from_them():
    splits = splits_of(printed_rows(J=5))
    found = {claim.text: find(claim, {"table1": splits}) for claim in CLAIMS if claim.evidence == "table1"}
    assert [found[text].verdict for text in list(found)[:2]] == [HOLDS, HOLDS]
    assert [found[text].ours for text in list(found)[:2]] == ["12 of 14", "9 of 14"]
    assert found["PI is weak: it has the largest error of all nine"].ours == "11 of 14"
    unregularized = found["LR / DRO (κ = 1) / DRO (κ = m) best of the unregularized"]
    assert unregularized == ("3 / 5 / 9 of 14", HOLDS, "other splits: 3 / 5 / 9")  # 9, not 79 %
    assert found["r-LR / r-DRO (κ = 1) / r-DRO (κ = m) best of the regularized"].verdict == HOLDS


def test_figure_2_ends_with_its_claims_and_their_verdicts():
    good, bad = runtimes(power=1.0, factor=2.0, scheme_power=1.2), runtimes(power=1.0, factor=1.1, scheme_power=3.0)
    both = pd.concat([good[good["label_cost"] == "1"], bad[bad["label_cost"] == "m"]])
    for summary, expected in ((good, [HOLDS] * 4), (bad, [FAILS, FAILS, IN_PART, FAILS]), (both, [IN_PART] * 4)):
        judged = claims.of_notebooks(["figure2"], {"figure2_full": summary})
        assert list(judged.values()) == expected
    (exponential,) = [text for text in judged if text.startswith("The monolithic program is exponential in m (")]
    assert "κ = 1: a feature multiplies the seconds by 2.00; κ = m: a feature" in exponential


def test_missing_or_incomplete_evidence_is_not_computed():
    (first, *_) = CLAIMS
    assert find(first, {}) == ("", NOT_COMPUTED, "")
    some = printed_rows()
    some = some[some["dataset"].isin(["spect", "car"])]
    assert find(first, {"table1": splits_of(some)}) == ("2 of 14 data sets done", NOT_COMPUTED, "")


def test_few_splits_leave_claims_on_errors_undecided():
    for J, expected in ((4, UNDECIDED), (5, HOLDS)):
        assert find(CLAIMS[0], {"table1": splits_of(printed_rows(J=J))})[:2] == ("12 of 14", expected)


def seconds_rows(table):
    """Five splits with the printed seconds."""
    rows = published_values(table).assign(protocol="code", seed=0, tol=1e-6, seconds=1.0, cv_seconds=1.0)
    rows = rows.assign(solver_seconds=rows["value"], identification_seconds=rows["value_identification_s"])
    return pd.concat([rows.assign(split=split) for split in range(5)])


def test_all_claims_under_both_protocols():
    code, nothing = splits_of(printed_rows()), splits_of(printed_rows()[:0])
    splits = {"code": {"table1": code}, "paper": {"table1": nothing}}
    of_code = seconds_rows("table3")
    seconds = {
        "code": claims.seconds_of(of_code, "table3"),
        "paper": claims.seconds_of(of_code.drop(index=0), "table3"),
    }
    judged = claims.judge_claims({name: {"table2": nothing} | of for name, of in splits.items()}, seconds, {})
    assert list(judged.columns) == claims.COLUMNS
    assert judged["claim"].is_unique and not judged["claim"].str.contains("_kappa").any()
    of_errors = judged["claim"].isin([claim.text for claim in CLAIMS if claim.evidence == "table1"])
    assert not (judged.loc[of_errors, "verdict_code"] == NOT_COMPUTED).any()
    assert (judged.loc[of_errors, "ours_paper"] == "0 of 14 data sets done").all()
    figures = judged["place"].str.startswith("Figure")
    assert (judged.loc[figures, "verdict_paper"] == "").all() and figures.any()
    of_proposed = "The proposed methods take the printed multiples of LR's seconds, numbers and categories"
    (of_seconds,) = judged[judged["claim"] == of_proposed].itertuples()
    assert (of_seconds.verdict_code, of_seconds.splits_code) == (HOLDS, "5")
    assert (of_seconds.verdict_paper, of_seconds.splits_paper) == (NOT_COMPUTED, "")


def test_a_notebook_ends_with_the_claims_on_its_table():
    judged = claims.of_rows(printed_rows(J=5), "table1")
    wins = f"{CLAIMS[0].text} (printed: 12 of 14; here: 12 of 14)"
    assert judged[wins] == HOLDS and not any("seconds" in text for text in judged)
    assert [found for text, found in judged.items() if "best of the unregularized (" in text] == [HOLDS]
    assert len(judged) == sum(claim.evidence == "table1" for claim in CLAIMS)
    some = printed_rows()
    assert claims.of_rows(some[some["dataset"] != "spect"], "table1") == {}


def test_a_table_of_runtimes_ends_with_the_claims_on_seconds():
    judged = claims.of_rows(seconds_rows("table3"), "table3")
    take = "take the printed multiples of LR's seconds, numbers and categories"
    assert [text.split(" (")[0] for text in judged] == [f"The proposed methods {take}", f"Other methods {take}"]
    assert set(judged.values()) == {HOLDS}
    rows = seconds_rows("table3")
    few = rows[(rows["dataset"] != "hepatitis") | (rows["method"] != "PI") | (rows["split"] < 4)]  # the others count
    assert set(claims.of_rows(few, "table3").values()) == {UNDECIDED}
    some = rows[rows["dataset"] != "hepatitis"]
    assert claims.of_rows(some, "table3", {"table3_algorithm1": pd.DataFrame()}) == {}


def test_the_effort_is_that_of_the_rows():
    rows = printed_rows(J=2).assign(seconds=1.0, cv_seconds=2.0, versions="wdrlr=1")
    few = rows[(rows["dataset"] != "spect") | (rows["split"] == 0)]
    splits = {"table1": splits_of(few), "table2": splits_of(rows[:0])}
    first, second, third, fourth = claims.describe_effort(splits)
    hours = f"{3 * len(few) / 3600:.1f} hours on one core, {3 * 126} seconds a split of every data set"
    assert first == f"table1: {len(few)} cells, {hours}, by wdrlr=1."
    assert second.startswith("  Splits, of 100 in the paper: 2: breast-cancer, monks-3") and second.endswith(
        "; 1: spect."
    )
    of_each = 9 * 3 / 3600  # nine methods, three seconds a cell
    assert third == (
        f"  The others would take {of_each * (13 * 98 + 99):.1f} more hours on one core; most of all spect "
        f"{of_each * 99:.1f}, breast-cancer {of_each * 98:.1f}, monks-3 {of_each * 98:.1f}."
    )
    assert fourth == "table2: nothing is stored."


def test_a_choice_that_turns_a_verdict_is_listed():
    splits = splits_of(printed_rows())
    changes = [("half", "spect", "MT_kappa_1", -10.0, 1.0), ("ties", "car", "PI", 0.0, 0.0)]
    compared = pd.DataFrame(changes, columns=["variant", "dataset", "method", "change", "change_se"])
    compared = compared.assign(n_splits=10, se=1.0, difference=0.0, difference_in_se=0.0)
    compared = compared.assign(remaining=compared["change"], remaining_in_se=compared["change"])
    by_chance = claims.judge_choices(splits, compared.assign(change_se=6.0))
    assert (by_chance["before"] == by_chance["ours"]).all()
    choices = claims.judge_choices(splits, compared)
    first = choices[choices["claim"] == CLAIMS[0].text].to_dict("records")
    assert [row["variant"] for row in first] == ["half", "ties"] and first[0]["n_splits"] == "10"
    assert (first[1]["before"], first[1]["ours"]) == ("12 of 14", "12 of 14")
    assert (first[0]["before"], first[0]["ours"]) == ("12 of 14", "11 of 14")
    assert (first[0]["verdict_before"], first[0]["verdict"]) == (HOLDS, FAILS)
    assert first[0]["reason"] == "a dummy's flip costs 1 in MT's distance, not 2" and first[0]["against"] == 1
    assert [row["added"] for row in first] == ["11 of 14", "12 of 14"]
    assert [row["tried_on"] for row in first] == ["tried on spect only", "tried on car only"]
    assert by_chance.loc[by_chance["variant"] == "half", "added"].iloc[0] == "11 of 14"  # significant or not
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
    assert verdicts.judge_scheme(figures["figure2_full"]).verdict == HOLDS
