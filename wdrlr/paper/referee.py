"""The claims in words and as a table: what a referee would say, in ``figures/claims.md`` and in the README.

``python -m wdrlr.paper.referee`` writes the README's, and its table of errors, from what the notebooks `claims` and
`table1` have saved.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from wdrlr.files import replace_file
from wdrlr.paper.claims import counted
from wdrlr.paper.methods import METHODS
from wdrlr.paper.paths import figures_folder, project_root
from wdrlr.paper.printed import N_SPLITS
from wdrlr.paper.tables import label_of
from wdrlr.paper.verdicts import FAILS, HOLDS, IN_PART, NOT_COMPUTED, UNDECIDED

OTHERWISE = {IN_PART: "in part", FAILS: "fail", UNDECIDED: "undecided", NOT_COMPUTED: "not computed"}
IS = {HOLDS: "holds", IN_PART: "holds in part", FAILS: "fails", UNDECIDED: "is undecided"}


def describe(judged: pd.DataFrame, choices: pd.DataFrame) -> Iterator[str]:
    """What a referee would say of the claims, one sentence or list a line.

    Parameters
    ----------
    judged, choices
        The results of `judge_claims` and `judge_choices`.
    """
    headline = [
        f"“{row.claim}”, {row.printed} in the paper, {row.ours_code or row.verdict_code} here"
        for row in judged[judged["claim"].isin(counted())].itertuples()
    ]
    yield f"In short: {_listed(headline)}."
    for row in judged[judged["place"] == "Abstract"].itertuples():
        if row.sure_code:
            yield f"Mean errors over Table 1 (κ = 1 / κ = m): {row.ours_code}. In the paper: {row.printed}."
            yield f"{row.sure_code}."
    yield from count_verdicts(judged)
    of_tables = judged.drop_duplicates("place").set_index("place").loc[[f"Table {i}" for i in range(1, 5)]]
    numbers = {name: ", ".join(one or "none" for one in of_tables[f"splits_{name}"]) for name in ("code", "paper")}
    differ = numbers["code"] != numbers["paper"]
    yield (
        f"Random splits of a data set in Tables 1 to 4 (in the paper {N_SPLITS['table1']}, {N_SPLITS['table2']}, "
        f"{N_SPLITS['table2']} and {N_SPLITS['table1']}): {numbers['code']} as in the authors' code; "
        f"{numbers['paper']} as in the paper's text.{' Counts on different splits are not to be compared.' * differ}"
    )
    survives = judged.loc[
        (judged["verdict_code"] == HOLDS) & judged["verdict_paper"].isin(["", HOLDS, NOT_COMPUTED]), "claim"
    ]
    yield f"What survives, under both where both judge it: {_listed([f'“{claim}”' for claim in survives])}."
    turned = choices[choices["verdict"] != choices["verdict_before"]]
    hangs = [
        f"“{row.claim}” {IS[row.verdict]} if {row.reason}{_caveats(row.tried_on, int(row.against))}"
        for row in turned.itertuples()
    ]
    yield f"What hangs on a choice that the paper does not state: {_listed(hangs)}."
    yield from describe_counts(choices)


def _caveats(tried_on: str, against: int) -> str:
    means = f"{against} other mean{'s' if against > 1 else ''}"
    caveats = "; ".join(filter(None, [tried_on, f"which takes {means} away from the printed ones" if against else ""]))
    return f" ({caveats})" if caveats else ""


def describe_counts(choices: pd.DataFrame) -> Iterator[str]:
    """What the changes make of the first count of wins, one at a time: by significant changes of means, and by all.

    MT's flip cost is told, and the changes with the smallest and the largest count.
    """
    first, *_ = counted()
    known = choices[choices["claim"] == first].set_index("variant")
    if known.empty:
        return
    moved = [f"{row.ours} ({name})" for name, row in known.iterrows() if row["ours"] != row["before"]]
    counts = known["added"].str.extract(r"^(\d+)")[0].astype(int)
    told = dict.fromkeys([counts.idxmin(), counts.idxmax(), *(["half"] if "half" in known.index else [])])
    parts = [
        f"{row.added} if {row.reason} ({name}; {'; '.join(filter(None, [f'{row.n_splits} splits', row.tried_on]))})"
        for name, row in known.loc[list(told)].iterrows()
    ]
    count = f"the {known['before'].iloc[0]} of “{first}”"
    by_significant = f"turn {count} into {_listed(moved)}" if moved else f"leave {count} as they are"
    yield (
        f"One change at a time, the significant changes of means {by_significant}. With all changes of means, however "
        f"uncertain, the extremes and MT's flip cost give {_listed(parts)}."
    )


def count_verdicts(judged: pd.DataFrame) -> Iterator[str]:
    """How many of the claims hold under each protocol, one sentence a line."""
    for protocol, words in (("code", "As in the authors' code"), ("paper", "As in the paper's text")):
        verdicts = judged.loc[judged[f"verdict_{protocol}"] != "", f"verdict_{protocol}"]
        if (verdicts == NOT_COMPUTED).all():
            yield f"{words}, none of the {len(verdicts)} claims that depend on it is judged yet."
            continue
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
        "| claim | the paper | ours, as in the authors' code | ours, as in the paper's text "
        "| how sure, as in the authors' code | cell |",
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


def errors_to_markdown(table: pd.DataFrame) -> str:
    """Mean errors, the best in bold and the printed ones in brackets, for figures/table1_all_code.csv."""
    lines = [f"| test error in % (the paper) | {' | '.join(map(label_of, METHODS))} |", f"|---{'|---' * len(METHODS)}|"]
    for dataset, of_one in table.set_index("method").groupby("dataset", sort=False):
        best = of_one["ours"].round(2).min()
        cells = [
            f"{f'**{ours:.2f}**' if round(ours, 2) == best else f'{ours:.2f}'} ({paper:.2f})"
            for ours, paper in of_one.loc[list(METHODS), ["ours", "paper"]].to_numpy()
        ]
        n_splits = of_one["n_splits"].max()
        row = [str(dataset) if n_splits == N_SPLITS["table1"] else f"{dataset}, {n_splits} splits", *cells]
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join([*lines, ""])


def markers(part: str) -> tuple[str, str]:
    """What begins and what ends a part of the README that is written here."""
    return f"<!-- {part}: written by `make claims` -->\n", f"<!-- end of {part} -->"


def insert(text: str, markdown: str, part: str) -> str:
    """A page with what is between the two `markers` of a part replaced.

    Raises
    ------
    ValueError
        If the page does not have each marker once, in order.
    """
    start, end = markers(part)
    head, found, rest = text.partition(start)
    _, ended, tail = rest.partition(end)
    if not (found and ended) or start in tail or end in tail:
        raise ValueError(f"the page must have {start.strip()} and, after it, {end}, each once")
    return f"{head}{found}{markdown}{ended}{tail}"


def with_results(readme: str, folder: Path) -> str:
    """The README with its table of claims and that of errors as they follow from the files in ``figures/``."""
    claims = to_markdown(read_table(folder, "claims"), read_table(folder, "claims_choices"))
    errors = errors_to_markdown(pd.read_csv(folder / "table1_all_code.csv"))
    return insert(insert(readme, claims, "claims"), errors, "errors")


def read_table(folder: Path, stem: str) -> pd.DataFrame:
    """claims.csv or claims_choices.csv as saved: all text."""
    return pd.read_csv(folder / f"{stem}.csv", dtype=str, keep_default_na=False)


def save(judged: pd.DataFrame, choices: pd.DataFrame, folder: Path) -> None:
    """Write claims.csv, claims_choices.csv and claims.md, each replaced whole."""
    for stem, table in (("claims", judged), ("claims_choices", choices)):
        replace_file(folder / f"{stem}.csv", table.to_csv(index=False, lineterminator="\n"))
    replace_file(folder / "claims.md", to_markdown(judged, choices, "../notebooks"))


if __name__ == "__main__":  # the tables of the README, which the documentation includes, from figures/
    page = project_root() / "README.md"
    replace_file(page, with_results(page.read_text(encoding="utf-8"), figures_folder()))
