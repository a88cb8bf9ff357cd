"""The paper's quantitative claims, each with the rule of `wdrlr.paper.verdicts` that judges it.

A claim is judged under both protocols if it is about test errors or the seconds behind them, and once if it is about
Figures 1 and 2 or Algorithm 1. The words and numbers of the paper are in `CLAIMS`; everything else is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from wdrlr.paper import verdicts
from wdrlr.paper.cells import plan_cells
from wdrlr.paper.differences import COMPARED_COLUMNS, FEWEST_SPLITS, by_holm, judge_variants, p_of_change
from wdrlr.paper.methods import METHODS
from wdrlr.paper.printed import N_SPLITS, published_values
from wdrlr.paper.protocols import PROTOCOLS
from wdrlr.paper.quiet_runtimes import timed_alone
from wdrlr.paper.redrawn import Splits, ends
from wdrlr.paper.results import load_rows, other_versions, to_frame
from wdrlr.paper.significance import LEVEL
from wdrlr.paper.tables import label_of, select_datasets, summarise_runtimes
from wdrlr.paper.variants import STANDARD, VARIANTS
from wdrlr.paper.verdicts import NOT_COMPUTED, UNDECIDED, Finding

COLUMNS = (
    "claim place printed ours_code verdict_code sure_code splits_code ours_paper verdict_paper sure_paper splits_paper "
    "notebook heading"
).split()

NO_NUMBER = "no number"
"""What stands for a printed value where the paper claims without one."""

ERRORS_OF = {"table3": "table2", "table4": "table1"}
"""The tables of seconds, each with that of the errors of the same fits."""


@dataclass(frozen=True)
class Claim:
    """One of the paper's claims.

    Parameters
    ----------
    text, place, printed
        What is claimed, where, and the printed values.
    evidence
        What the rule gets: "table1" or "table2" (`Splits`), "table3" or "table4" (the result of `summarise_runtimes`),
        or the stem of files in ``figures/`` (a DataFrame).
    rule
        Turns that into a `Finding`; its docstring says how.
    notebook, heading
        Where the numbers are shown: the notebook, and the heading above the cell.
    """

    text: str
    place: str
    printed: str
    evidence: str
    rule: Callable[[Any], Finding]
    notebook: str
    heading: str


# The claims


def _printed_largest(method: str) -> int:
    """On how many data sets of Table 1 a method has the largest printed error."""
    printed = published_values("table1").pivot_table("value", "dataset", "method")
    return int((printed[method] == printed.max(axis=1)).sum())


def _group_claim(text: str, printed: Mapping[str, int], shares: str) -> Claim:
    table = published_values("table1")
    marks = {name: int(table.loc[table["method"] == name, "best_in_group_italic"].sum()) for name in printed}
    numbers, in_table = (" / ".join(map(str, counts.values())) for counts in (printed, marks))
    return Claim(
        f"{' / '.join(map(label_of, printed))} {text}",
        "Section 4.2",
        f"{shares} % ({numbers} of 14{'' if in_table == numbers else f'; its table has {in_table}, which count here'})",
        "table1",
        partial(verdicts.judge_group, printed=marks),
        *("table1", "The table"),
    )


def _seconds_claim(whose: str, on: str, table: str, methods: Sequence[str]) -> Claim:
    printed = published_values(table).assign(
        seconds=lambda cells: cells["value"] + cells["value_identification_s"].fillna(0.0)
    )
    seconds = printed.pivot_table("seconds", "dataset", "method")
    ratios = seconds.div(seconds["LR"], axis=0).median()[list(methods)]
    return Claim(
        f"{whose} take the printed multiples of LR's seconds, {on}",
        f"Table {table[-1]}",
        verdicts.range_of(ratios),
        table,
        partial(verdicts.judge_seconds, methods=methods),
        *(table, "The table"),
    )


def _scheme_claim(on: str, table: str) -> Claim:
    printed = published_values(table).pivot_table("value", "dataset", "method")
    ratios = printed.div(printed["LR"], axis=0).median()[_proposed()]
    return Claim(
        f"Algorithm 1 takes the printed multiples of LR's seconds, {on}",
        f"Table {table[-1]}",
        verdicts.range_of(ratios),
        f"{table}_algorithm1",
        verdicts.judge_scheme_seconds,
        *(table, "The same fits by Algorithm 1"),
    )


def _proposed() -> list[str]:
    return [name for name, method in METHODS.items() if method.is_proposed]


def _printed_averages() -> str:
    return verdicts.averages(published_values("table1").groupby("method")["value"].mean())


CLAIMS = (
    *(
        Claim(
            text,
            "Section 4.2",
            f"{least} of 14",
            "table1",
            partial(verdicts.judge_wins, tests=tests, least=least),
            *where,
        )
        for text, tests, least, where in (
            ("A proposed method is best", (0,), 12, ("significance", "The claims")),
            ("A proposed method is best strictly, without a tie", (1,), 9, ("significance", "The claims")),
            (
                "A proposed method is significantly better than all others (‡: than the second best)",
                (2, 3),
                7,
                ("significance", "The winners"),
            ),
        )
    ),
    Claim(
        "Where none is best, one is second best and not significantly worse",
        "Section 4.2",
        "on the remaining 2",
        "table1",
        verdicts.judge_losses,
        *("significance", "By how much do the proposed methods win?"),
    ),
    _group_claim("best of the unregularized", {"LR": 3, "DRO_kappa_1": 5, "DRO_kappa_m": 11}, "21 / 36 / 79"),
    _group_claim("best of the regularized", {"r-LR": 2, "r-DRO_kappa_1": 8, "r-DRO_kappa_m": 8}, "14 / 57 / 57"),
    _group_claim("best of the numerical", {"MT_kappa_1": 6, "MT_kappa_m": 8, "PI": 2}, "42 / 57 / 14"),
    Claim(
        "PI is weak: it has the largest error of all nine",
        "Table 1",
        f"{_printed_largest('PI')} of 14",
        "table1",
        partial(verdicts.judge_largest, method="PI", least=_printed_largest("PI")),
        *("table1", "The table"),
    ),
    Claim(
        "DRO beats LR and r-DRO beats r-LR, in means over Table 1 (κ = 1 / κ = m)",
        "Abstract",
        _printed_averages(),
        "table1",
        verdicts.judge_averages,
        *("table1", "The table"),
    ),
    Claim(
        "The means of Table 1 are the printed ones, up to chance",
        "Table 1",
        "126",
        "table1",
        verdicts.judge_values,
        *("table1", "Which means differ from the paper's, and why"),
    ),
    Claim(
        "With numbers, too, a proposed method is best in each instance",
        "Appendix C",
        "5 of 5",
        "table2",
        partial(verdicts.judge_wins, tests=(0,), least=5),
        *("table2", "The table"),
    ),
    Claim(
        "With numbers, LR or r-LR is best in only two instances",
        "Appendix C",
        "2 of 5",
        "table2",
        partial(verdicts.judge_plain, most=2),
        *("table2", "The table"),
    ),
    Claim(
        "The medians of Table 2 are the printed ones, up to chance",
        "Table 2",
        "45",
        "table2",
        verdicts.judge_values,
        *("table2", "Which medians differ from the paper's, and why"),
    ),
    *(
        claim
        for on, table in (("numbers and categories", "table3"), ("categories alone", "table4"))
        for claim in (
            _seconds_claim("The proposed methods", on, table, _proposed()),
            _seconds_claim("Other methods", on, table, [name for name in METHODS if name not in ("LR", *_proposed())]),
            _scheme_claim(on, table),
        )
    ),
    Claim(
        "β = 1 lies outside the continuous model's band, whatever N",
        "Figure 1, left",
        "at every N",
        "figure1",
        verdicts.judge_band,
        *("figure1", "The paper's values beside ours"),
    ),
    Claim(
        "The continuous worst case has an atom far outside {-1, +1}, the mixed one none",
        "Figure 1, right",
        "15,312, mass 0.001 / 500",
        "figure1_distributions",
        partial(verdicts.judge_atoms, point=15_312, mass=1e-3 / 500),
        *("figure1", "The escaping mass"),
    ),
    *(
        Claim(text, place, printed, "figure2_full", rule, *("figure2", "Do the claims hold?"))
        for text, place, printed, rule in (
            (
                "Monolithic program and scheme scale similarly in N",
                "Figure 2, left",
                NO_NUMBER,
                verdicts.judge_in_samples,
            ),
            ("The monolithic program is exponential in m", "Figure 2, middle", NO_NUMBER, verdicts.judge_in_features),
            ("The scheme grows gracefully in N and m", "Figure 2, right", NO_NUMBER, verdicts.judge_scheme),
            (
                "The scheme is faster than the monolithic program",
                "Figure 2, middle",
                NO_NUMBER,
                verdicts.judge_monolithic,
            ),
        )
    ),
    Claim(
        "A worst case has at most N + 1 atoms, and attains the supremum",
        "Theorem 8",
        "N + 1",
        "theorems_worst_cases",
        verdicts.judge_worst_cases,
        *("theorems", "Theorem 8: worst-case distributions"),
    ),
    Claim(
        "Exponential cones drastically speed up the solution",
        "Appendix, Remark",
        NO_NUMBER,
        "theorems_cone",
        verdicts.judge_cones,
        *("theorems", "The remark on the exponential cone"),
    ),
)
"""The paper's quantitative claims."""


# From files to the table


def read_splits(results: Path, protocol: str, seed: int, tol: float) -> dict[str, Splits]:
    """What is stored of Tables 1 and 2 under a protocol."""
    found = {}
    for table, n_splits in N_SPLITS.items():
        cells = plan_cells(
            select_datasets(table, "all"), ["all"], n_splits=n_splits, seed=seed, protocol=protocol, tol=tol
        )
        rows = to_frame(load_rows(results, [cell.key for cell in cells]).values())
        if message := other_versions(rows):
            print(f'{table}, protocol "{protocol}": {message}')
        found[table] = Splits.of(rows, table)
    return found


def read_seconds(results: Path, splits: Mapping[str, Splits]) -> dict[str, pd.DataFrame]:
    """Tables 3 and 4 under a protocol, of the stored rows whose fits were timed alone.

    Parameters
    ----------
    results
        The folder of the rows.
    splits
        The result of `read_splits` for it.
    """
    found: dict[str, pd.DataFrame] = {}
    for table, of_errors in ERRORS_OF.items():
        found |= seconds_of(timed_alone(splits[of_errors].rows, results, compute_missing=False), table)
    return found


def seconds_of(rows: pd.DataFrame, table: str) -> dict[str, pd.DataFrame]:
    """The evidence on seconds: the result of `summarise_runtimes` by the table's name, on the splits that all methods
    have; {} if a data set has none."""
    methods_of = rows.groupby(["dataset", "split"])["method"].transform("nunique")
    paired = rows[methods_of == len(METHODS)]
    cells = paired[["dataset", "method"]].drop_duplicates()
    return {table: summarise_runtimes(paired, table)} if len(cells) == len(published_values(table)) else {}


def read_figures(folder: Path) -> dict[str, pd.DataFrame]:
    """What the notebooks of figures, Tables 3 and 4 and the theorems have saved; what lacks a file is left out."""
    wanted = {
        "figure1": ["figure1"],
        "figure1_distributions": ["figure1_distributions"],
        "figure2_full": ["figure2_full_kappa_1", "figure2_full_kappa_m"],
        "theorems_cone": ["theorems_cone"],
        "theorems_worst_cases": ["theorems_worst_cases"],
        **{f"{table}_algorithm1": [f"{table}_algorithm1_all_{STANDARD}"] for table in ("table3", "table4")},
    }
    types = {"label_cost": str, "levels": str, "missing": str}
    return {
        name: pd.concat(pd.read_csv(folder / f"{stem}.csv", dtype=types).fillna({"missing": ""}) for stem in stems)
        for name, stems in wanted.items()
        if all((folder / f"{stem}.csv").is_file() for stem in stems)
    }


def read_changes(folder: Path) -> pd.DataFrame:
    """What the notebook `differences` has saved (`wdrlr.paper.differences.compare_variants`); empty if it has not."""
    path = folder / "differences_all.csv"
    return pd.read_csv(path) if path.is_file() else pd.DataFrame(columns=list(COMPARED_COLUMNS))


def describe_effort(splits: Mapping[str, Splits]) -> Iterator[str]:
    """What the rows of a protocol are: cells, hours, splits by data set and versions, and the hours that the missing
    splits would take; one sentence a line. Data sets without any row are left out.

    Parameters
    ----------
    splits
        The result of `read_splits`.
    """
    for table, found in splits.items():
        rows = found.rows
        if rows.empty:
            yield f"{table}: nothing is stored."
            continue
        seconds = rows["seconds"] + rows["cv_seconds"]
        of_split = seconds.groupby([rows["dataset"], rows["method"]]).mean().sum()
        n_splits = rows.groupby("dataset", sort=False)["split"].nunique()
        by_number = n_splits.groupby(n_splits).groups
        listed = "; ".join(f"{n}: {', '.join(map(str, names))}" for n, names in sorted(by_number.items(), reverse=True))
        made_by = "; ".join(rows["versions"].unique())
        hours = f"{seconds.sum() / 3600:.1f} hours on one core, {of_split:.0f} seconds a split of every data set"
        yield f"{table}: {len(rows)} cells, {hours}, by {made_by}."
        yield f"  Splits, of {N_SPLITS[table]} in the paper: {listed}."
        of_each = seconds.groupby(rows["dataset"], sort=False).sum() / n_splits
        missing = (of_each * (N_SPLITS[table] - n_splits) / 3600).sort_values(ascending=False)
        if missing.sum() > 0:
            dearest = ", ".join(f"{name} {needed:.1f}" for name, needed in missing[missing > 0].head(3).items())
            yield f"  The others would take {missing.sum():.1f} more hours on one core; most of all {dearest}."


def find(claim: Claim, evidence: Mapping[str, Any]) -> Finding:
    """The finding on a claim; "not computed" if its evidence is missing or incomplete.

    A claim on Tables 1 to 4 is undecided if a data set has fewer splits than `FEWEST_SPLITS`.
    """
    found = evidence.get(claim.evidence)
    if found is None:
        return Finding("", NOT_COMPUTED)
    if isinstance(found, Splits) and not found.complete:
        return Finding(found.describe(), NOT_COMPUTED)
    finding = claim.rule(found)
    if isinstance(found, Splits):
        few = found.few
    else:
        few = claim.evidence in ERRORS_OF and found["n_splits"].min() < FEWEST_SPLITS
    return finding._replace(verdict=UNDECIDED) if few else finding


def judge_claims(
    splits: Mapping[str, Mapping[str, Splits]],
    seconds: Mapping[str, Mapping[str, pd.DataFrame]],
    figures: Mapping[str, pd.DataFrame],
) -> pd.DataFrame:
    """All claims with the verdicts.

    Parameters
    ----------
    splits, seconds
        For each protocol the results of `read_splits` and `read_seconds`.
    figures
        The result of `read_figures`.

    Returns
    -------
    DataFrame of text with the columns claim, place, printed; ours_code, verdict_code, sure_code, splits_code,
    ours_paper, verdict_paper, sure_paper, splits_paper (under both protocols; claims on Figures 1 and 2 have no
    protocol, and "" in the last four and in splits_code, the number of splits of a data set); notebook, heading.
    """
    evidence = {protocol: {**splits[protocol], **seconds[protocol], **figures} for protocol in PROTOCOLS}
    return pd.DataFrame([judge_row(claim, evidence) for claim in CLAIMS], columns=COLUMNS)


def judge_row(claim: Claim, evidence: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """One row of `judge_claims`, by the evidence under each protocol."""
    row = {"claim": claim.text, "place": claim.place, "printed": claim.printed}
    of_protocol = claim.evidence in (*N_SPLITS, *ERRORS_OF)
    for protocol, known in evidence.items():
        finding = find(claim, known) if of_protocol or protocol == STANDARD else Finding("", "")
        row |= {f"{name}_{protocol}": text for name, text in finding._asdict().items()}
        row[f"splits_{protocol}"] = _n_splits(known.get(claim.evidence)) if of_protocol else ""
    return row | {"notebook": claim.notebook, "heading": claim.heading}


def _n_splits(found: Splits | pd.DataFrame | None) -> str:
    """The fewest and the most splits of a data set behind errors or seconds, as text."""
    if found is None:
        return ""
    return found.n_splits() if isinstance(found, Splits) else ends(found["n_splits"])


def of_notebooks(names: Collection[str], evidence: Mapping[str, Any]) -> dict[str, str]:
    """The claims that notebooks show, with the printed numbers and ours, and the verdicts; without those not computed.

    Parameters
    ----------
    names
        The notebooks.
    evidence
        What the rules get, see `Claim`.
    """
    found = [(claim, find(claim, evidence)) for claim in CLAIMS if claim.notebook in names]
    return {
        f"{claim.text} ({'' if claim.printed == NO_NUMBER else f'printed: {claim.printed}; '}here: {finding.ours})": (
            finding.verdict
        )
        for claim, finding in found
        if finding.verdict != NOT_COMPUTED
    }


def of_rows(rows: pd.DataFrame, table: str, figures: Mapping[str, pd.DataFrame] | None = None) -> dict[str, str]:
    """The claims on one of the paper's tables, as `of_notebooks`: none unless the rows have all data sets of the table.

    Parameters
    ----------
    rows
        Result rows (`wdrlr.paper.results.COLUMNS`) of one protocol, seed and tolerance.
    table
        "table1", ..., "table4".
    figures
        More evidence, as from `read_figures`.
    """
    if table in ERRORS_OF:
        seconds = seconds_of(rows, table)
        return of_notebooks((table,), {**seconds, **(figures or {})} if seconds else {})
    shown_in = ("table1", "significance") if table == "table1" else (table,)
    return of_notebooks(shown_in, {table: Splits.of(rows, table), **(figures or {})})


def judge_choices(splits: Splits, compared: pd.DataFrame) -> pd.DataFrame:
    """What each change of `wdrlr.paper.variants`, alone, makes of the claims on Table 1.

    A mean moves where its change is significant: by the t-test on paired splits, corrected for the number of changes
    and means that were tried.

    Parameters
    ----------
    splits
        Those of Table 1 under the protocol that is varied.
    compared
        The result of `wdrlr.paper.differences.compare_variants`.

    Returns
    -------
    DataFrame with the columns claim, variant, reason, ours, verdict, before, verdict_before (text): the findings whose
    numbers differ, and those of `counted` claims anyway; added, our numbers if all its mean changes are added to the
    errors, significant or not ("" but for `counted` claims); n_splits, on which the change was tried, and tried_on,
    which data sets, if not all (text); and against, how many other means it opens or worsens (`judge_variants`).
    """
    columns = "claim variant reason ours verdict before verdict_before added n_splits tried_on against".split()
    if not splits.complete:
        return pd.DataFrame(columns=columns)
    claims = [claim for claim in CLAIMS if claim.evidence == "table1" and _is_of_errors(claim)]
    against = judge_variants(compared)[["opens", "worsens"]].sum(axis=1)
    significant = by_holm(p_of_change(compared)) <= LEVEL
    before = {claim.text: claim.rule(splits) for claim in claims}
    always, moved = counted(), []
    for variant, of_variant in compared.groupby("variant", sort=False):
        moves = of_variant[significant[of_variant.index]]
        changed = splits.changed(moves)
        with_all = splits.changed(of_variant)
        reason = VARIANTS[str(variant)].reason if variant in VARIANTS else str(variant)
        tried_on = _tried_on(set(of_variant["dataset"]), splits.samples)
        for claim in claims:
            old = before[claim.text]
            new = old if moves.empty else claim.rule(changed)
            if old.ours != new.ours or claim.text in always:
                added = claim.rule(with_all).ours if claim.text in always else ""
                found = (new.ours, new.verdict, old.ours, old.verdict, added)
                about = (ends(of_variant["n_splits"]), tried_on, against[variant])
                moved.append((claim.text, variant, reason, *found, *about))
    return pd.DataFrame(moved, columns=columns)


def _tried_on(tried: Collection[str], datasets: Collection[str]) -> str:
    """On which data sets a change was tried, in words; "" if on all."""
    on, off = ([name for name in datasets if (name in tried) == one] for one in (True, False))
    if not off:
        return ""
    return f"tried on {', '.join(on)} only" if len(on) <= len(off) else f"not tried on {', '.join(off)}"


def _is_of_errors(claim: Claim) -> bool:
    """Whether the rule reads the errors of `Splits`, which `Splits.changed` changes, and not its rows."""
    return function_of(claim.rule) is not verdicts.judge_values


def function_of(rule: Callable) -> Callable:
    return rule.func if isinstance(rule, partial) else rule


def counted() -> list[str]:
    """The claims that count wins on Table 1."""
    of_table = [claim for claim in CLAIMS if claim.evidence == "table1"]
    return [claim.text for claim in of_table if function_of(claim.rule) is verdicts.judge_wins]


def rules() -> pd.DataFrame:
    """What each claim's rule says."""
    texts = {claim.text: " ".join((function_of(claim.rule).__doc__ or "").split()) for claim in CLAIMS}
    return pd.Series(texts, name="rule").rename_axis("claim").to_frame()
