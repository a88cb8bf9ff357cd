from pathlib import Path

import nbformat
import pandas as pd
import pytest

from wdrlr.paper import referee
from wdrlr.paper.claims import CLAIMS, COLUMNS
from wdrlr.paper.methods import METHODS
from wdrlr.paper.printed import published_values
from wdrlr.paper.verdicts import FAILS, HOLDS, NOT_COMPUTED

ROOT = Path(__file__).parents[2]
SPLITS = {"table1": ("7 to 80", "2 to 10"), "table2": ("20", "3"), "table3": ("20", ""), "table4": ("20", "10")}
STORED = [referee.read_table(ROOT / "figures", stem) for stem in ("claims", "claims_choices")]


def judged(**cells):
    """All claims: the first fails, the others hold; nothing is computed for the paper's text."""
    rows = [
        dict.fromkeys(COLUMNS, "")
        | {"claim": claim.text, "place": claim.place, "printed": claim.printed, "verdict_code": HOLDS}
        | dict(zip(("splits_code", "splits_paper"), SPLITS.get(claim.evidence, ("", "")), strict=True))
        for claim in CLAIMS
    ]
    rows[0] |= {"verdict_code": FAILS, "ours_code": "5 of 14", "verdict_paper": NOT_COMPUTED} | cells
    return pd.DataFrame(rows)


def choices(**cells):
    row = {"claim": CLAIMS[0].text, "variant": "half", "reason": "a flip costs 1", "ours": "7 of 14"}
    row |= {"verdict": FAILS, "before": "5 of 14", "verdict_before": FAILS, "n_splits": "5 to 20", "against": "0"}
    row |= {"added": "7 of 14", "tried_on": ""}
    return pd.DataFrame([row | cells])


def test_the_sentences_follow_the_verdicts():
    said = list(referee.describe(judged(), choices()))
    n = len(CLAIMS)
    assert said[0].startswith(
        f"In short: “{CLAIMS[0].text}”, 12 of 14 in the paper, 5 of 14 here; “{CLAIMS[1].text}”, "
    )
    assert said[1] == f"As in the authors' code, {n - 1} of {n} claims hold, 1 fail."
    assert said[2] == "As in the paper's text, none of the 1 claims that depend on it is judged yet."
    assert said[3] == (
        "Random splits of a data set in Tables 1 to 4 (in the paper 100, 20, 20 and 100): 7 to 80, 20, 20, 20 as in "
        "the authors' code; 2 to 10, 3, none, 10 as in the paper's text. Counts on different splits are not to be "
        "compared."
    )
    assert said[4].startswith(f"What survives, under both where both judge it: “{CLAIMS[1].text}”; ")
    assert f"“{CLAIMS[0].text}”" not in said[4]
    assert said[5] == "What hangs on a choice that the paper does not state: nothing."
    assert len(said) == 7
    in_one = judged()
    in_one.loc[1, "verdict_paper"] = FAILS
    assert f"“{CLAIMS[1].text}”" not in list(referee.describe(in_one, choices()))[4]


def test_the_counts_with_each_change_are_told():
    known = [("half", "7 of 14", "7 of 14"), ("folds", "5 of 14", "11 of 14"), ("grid", "5 of 14", "4 of 14")]
    of_all = pd.concat(
        [choices(variant=name, reason=name.upper(), ours=ours, added=added) for name, ours, added in known]
    )
    of_all.loc[of_all["variant"] == "folds", "tried_on"] = "not tried on hiv"
    (said,) = referee.describe_counts(of_all)
    assert said == (
        f"One change at a time, the significant changes of means turn the 5 of 14 of “{CLAIMS[0].text}” into 7 of 14 "
        "(half). With all changes of means, however uncertain, the extremes and MT's flip cost give 4 of 14 if GRID "
        "(grid; 5 to 20 splits); 11 of 14 if FOLDS (folds; 5 to 20 splits; not tried on hiv); 7 of 14 if HALF (half; "
        "5 to 20 splits)."
    )
    assert list(referee.describe_counts(of_all[:0])) == []
    (alone,) = referee.describe_counts(choices(ours="5 of 14"))
    assert "leave the 5 of 14 of" in alone and alone.count("(half;") == 1


def test_claims_judged_under_a_protocol_are_counted():
    of_all = judged()
    of_all.loc[1:2, "verdict_paper"] = [HOLDS, FAILS]
    assert list(referee.count_verdicts(of_all))[1] == (
        "As in the paper's text, 1 of 3 claims hold, 1 fail, 1 not computed."
    )


def test_a_turned_verdict_and_the_best_mean_are_said():
    of_all = judged()
    of_all.loc[of_all["place"] == "Abstract", ["ours_code", "sure_code"]] = ["LR 9", "r-LR has the lowest mean"]
    of_ties = pd.concat([choices(ours="5 of 14"), choices(verdict=HOLDS, variant="ties")])
    said = list(referee.describe(of_all, of_ties))
    hangs = f"What hangs on a choice that the paper does not state: “{CLAIMS[0].text}” holds if a flip costs 1"
    assert said[-2] == f"{hangs}."
    rejected = list(
        referee.describe(of_all, choices(verdict=HOLDS, variant="ties", against="3", tried_on="tried on car only"))
    )
    assert rejected[-2] == f"{hangs} (tried on car only; which takes 3 other means away from the printed ones)."
    assert said[1].startswith("Mean errors over Table 1 (κ = 1 / κ = m): LR 9. In the paper: LR ")
    assert said[2] == "r-LR has the lowest mean."


def test_the_table_has_a_line_for_each_claim():
    text = referee.to_markdown(judged(ours_code="|z|", notebook="table1", heading="Is it so?"), choices(), "x")
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == len(CLAIMS) + 2 and {line.replace("\\|", "").count("|") for line in lines} == {7}
    assert "**fails**: \\|z\\| | **not computed** |" in lines[2] and "[table1](x/table1.ipynb#is-it-so)" in lines[2]


def test_the_table_of_errors_names_fewer_splits():
    table = published_values("table1").rename(columns={"value": "paper"}).assign(n_splits=100)
    table = table.assign(ours=table["paper"] + 0.25)
    table.loc[table["dataset"] == "car", "n_splits"] = 20
    lines = referee.errors_to_markdown(table).splitlines()
    assert lines[0].startswith("| test error in % (the paper) | LR | DRO (κ = 1) |") and len(lines) == 2 + 14
    assert lines[2].startswith("| breast-cancer | 29.81 (29.56) | 29.40 (29.15) | **28.80** (28.55) |")
    assert {line.count("|") for line in lines} == {11} and sum(
        line.startswith("| car, 20 splits |") for line in lines
    ) == 1


def test_a_page_is_replaced_between_its_markers_only():
    start, end = referee.markers("claims")
    page = f"before\n{start}old\n{end}\nafter"
    assert referee.insert(page, "new\n", "claims") == f"before\n{start}new\n{end}\nafter"
    for broken in ("", start, f"{end}{start}", f"{page}{page}"):
        with pytest.raises(ValueError, match="must have <!-- claims"):
            referee.insert(broken, "new", "claims")


def test_saved_tables_are_read_as_they_were(tmp_path):
    referee.save(judged(), choices(), tmp_path)
    pd.testing.assert_frame_equal(referee.read_table(tmp_path, "claims"), judged(), check_dtype=False)
    text = (tmp_path / "claims.md").read_text(encoding="utf-8")
    assert text == referee.to_markdown(judged(), choices(), "../notebooks")


# What is in the project


def test_the_tables_of_the_readme_and_of_the_site_are_those_of_the_results():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert referee.with_results(readme, ROOT / "figures") == readme, "run make claims"
    start, end = (marker.strip() for marker in referee.markers("claims"))
    assert readme.index(start) < min(readme.find(f"\n{mark}") for mark in ("![", "| test error"))
    page = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    heading = "## Do the paper's claims hold?"
    assert f'```{{include}} ../README.md\n:start-after: "{heading}"\n:end-before: "{end}"\n' in page
    assert readme.index(heading) < readme.index(start)
    assert page.index("{include}") < page.index("{toctree}")
    assert (ROOT / "figures" / "claims.md").read_text(encoding="utf-8") == referee.to_markdown(*STORED, "../notebooks")


def test_the_words_of_the_claims_are_those_in_the_code():
    columns = ["claim", "place", "printed", "notebook", "heading"]
    expected = [(claim.text, claim.place, claim.printed, claim.notebook, claim.heading) for claim in CLAIMS]
    assert STORED[0][columns].to_records(index=False).tolist() == expected
    assert not any(f"{name} " in referee.to_markdown(*STORED) for name in METHODS if "_" in name)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.text)
def test_the_heading_is_in_the_notebook(claim):
    cells = nbformat.read(ROOT / "notebooks" / f"{claim.notebook}.ipynb", as_version=4).cells
    assert [
        cell for cell in cells if cell.cell_type == "markdown" and f"## {claim.heading}" in cell.source.splitlines()
    ]
