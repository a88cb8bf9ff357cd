"""The claims in words and as a table: what a referee would say, in ``figures/claims.md`` and in the README.

``python -m wdrlr.paper.referee`` writes the README's from the files that the notebook `claims` has saved.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from wdrlr.files import replace_file
from wdrlr.paper.claims import (
    FAILS,
    HOLDS,
    IN_PART,
    NOT_COMPUTED,
    UNDECIDED,
    counted,
)
from wdrlr.paper.paths import figures_folder, project_root

OTHERWISE = {IN_PART: "in part", FAILS: "fail", UNDECIDED: "are undecided", NOT_COMPUTED: "are not computed"}


def describe(judged: pd.DataFrame, choices: pd.DataFrame) -> Iterator[str]:
    """What a referee would say of the claims, one sentence or list a line.

    Parameters
    ----------
    judged, choices
        The results of `judge_claims` and `judge_choices`.
    """
    yield from count_verdicts(judged)
    of_code = judged.set_index("claim")
    survives = of_code.index[of_code["verdict_code"] == HOLDS]
    yield f"What survives: {_listed(survives)}."
    turned = choices[choices["verdict"] != choices["verdict_before"]]
    hangs = [f"{claim} ({', '.join(dict.fromkeys(of['reason']))})" for claim, of in turned.groupby("claim", sort=False)]
    yield f"What hangs on a choice that the paper does not state: {_listed(hangs)}."
    moved = choices[(choices["variant"] == "half") & choices["claim"].isin(counted())]
    for reason, of_reason in moved.groupby("reason"):
        changes = [f"“{row.claim}” from {row.before} to {row.ours}" for row in of_reason.itertuples()]
        yield f"MT's flip cost alone ({reason}) moves {', '.join(changes)}."
    for row in judged[judged["place"] == "Abstract"].itertuples():
        if row.sure_code:
            yield f"{row.sure_code[0].upper()}{row.sure_code[1:]}."


def count_verdicts(judged: pd.DataFrame) -> Iterator[str]:
    """How many of the claims hold under each protocol, one sentence a line."""
    for protocol, words in (("code", "As in the authors' code"), ("paper", "As in the paper's text")):
        verdicts = judged.loc[judged[f"verdict_{protocol}"] != "", f"verdict_{protocol}"]
        others = [f", {n} {verb}" for one, verb in OTHERWISE.items() if (n := (verdicts == one).sum())]
        yield f"{words}, {(verdicts == HOLDS).sum()} of {len(verdicts)} claims hold{''.join(others)}."


def _listed(texts: Sequence[str]) -> str:
    return "; ".join(texts) or "nothing"


def anchor(heading: str) -> str:
    """The anchor of a heading, as the documentation and the usual viewers make it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def to_markdown(judged: pd.DataFrame, choices: pd.DataFrame, notebooks: str = "notebooks") -> str:
    """The sentences and the table for a page from which the notebooks are in the folder ``notebooks``."""
    lines = [
        "| claim | the paper | ours, as in the authors' code | ours, as in the paper's text | how sure | cell |",
        "|---|---|---|---|---|---|",
    ]
    for row in judged.itertuples():
        cells = [
            f"{row.claim} ({row.place})",
            row.printed,
            _found(row.ours_code, row.verdict_code),
            _found(row.ours_paper, row.verdict_paper),
            row.sure_code,
            f"[{row.notebook}]({notebooks}/{row.notebook}.ipynb#{anchor(row.heading)})",
        ]
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    sentences = [f"- {sentence}" for sentence in describe(judged, choices)]
    return "\n".join([*sentences, "", *lines, ""])


def _found(ours: str, of: str) -> str:
    return f"**{of}**{ours and f': {ours}'}" if of else "–"


MARKERS = ("<!-- claims: written by `make claims` -->\n", "<!-- end of claims -->")


def insert(text: str, markdown: str) -> str:
    """A page with what is between its two `MARKERS` replaced.

    Raises
    ------
    ValueError
        If the page does not have each marker once, in order.
    """
    head, found, rest = text.partition(MARKERS[0])
    _, ended, tail = rest.partition(MARKERS[1])
    if not (found and ended) or any(marker in tail for marker in MARKERS):
        raise ValueError(f"the page must have {MARKERS[0].strip()} and, after it, {MARKERS[1]}, each once")
    return f"{head}{found}{markdown}{ended}{tail}"


def read_table(folder: Path, stem: str) -> pd.DataFrame:
    """claims.csv or claims_choices.csv as saved: all text."""
    return pd.read_csv(folder / f"{stem}.csv", dtype=str, keep_default_na=False)


def save(judged: pd.DataFrame, choices: pd.DataFrame, folder: Path) -> None:
    """Write claims.csv, claims_choices.csv and claims.md, each replaced whole."""
    for stem, table in (("claims", judged), ("claims_choices", choices)):
        replace_file(folder / f"{stem}.csv", table.to_csv(index=False, lineterminator="\n"))
    replace_file(folder / "claims.md", to_markdown(judged, choices, "../notebooks"))


if __name__ == "__main__":  # the first table of the README, which the documentation includes, from figures/
    page, folder = project_root() / "README.md", figures_folder()
    markdown = to_markdown(read_table(folder, "claims"), read_table(folder, "claims_choices"))
    replace_file(page, insert(page.read_text(encoding="utf-8"), markdown))
