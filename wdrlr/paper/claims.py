"""The paper's quantitative claims, each with a rule that turns our numbers into a verdict.

A claim is judged under both protocols if it is about test errors or the seconds behind them, and once if it is about
Figures 1 and 2 or Algorithm 1. A rule is a function from numbers to a `Finding`; what it says is its docstring. The
parts of a claim hold, fail or are undecided, and `verdict` combines them. Counts over data sets depend on the random
splits. The range in which they would lie for other random splits comes from `wdrlr.paper.redrawn`.

The words and numbers of the paper are in `CLAIMS`; everything else is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from wdrlr.paper.cells import plan_cells
from wdrlr.paper.differences import COMPARED_COLUMNS, FAR, by_holm, chance_of, judge_variants, p_of_change
from wdrlr.paper.growth import growth_numbers
from wdrlr.paper.methods import METHODS
from wdrlr.paper.printed import N_SPLITS, published_values
from wdrlr.paper.protocols import PROTOCOLS
from wdrlr.paper.redrawn import (
    NAMES,
    PROPOSED,
    Sample,
    Splits,
    count_group_wins,
    count_losses,
    count_margins,
    count_wins,
    far_by_chance,
    spread,
)
from wdrlr.paper.results import load_rows, other_versions, to_frame
from wdrlr.paper.significance import LEVEL
from wdrlr.paper.tables import label_of, select_datasets, summarise_errors, summarise_runtimes
from wdrlr.paper.variants import STANDARD, VARIANTS

FACTOR = 3.0
"""Two runtimes, as multiples of that of LR, are of the same size if neither is more than this many times the other."""

SIMILAR, EXPONENTIAL, GRACEFUL = 0.5, 1.5, 2.0
"""Powers of N are similar up to this difference; seconds are exponential in m if a feature costs at least this factor,
and grow gracefully in N and m up to this power."""

FEWEST_SIZES = 4
"""So many sizes say how seconds grow."""

HOLDS, IN_PART, FAILS, UNDECIDED, NOT_COMPUTED = "holds", "in part", "fails", "undecided", "not computed"

COLUMNS = (
    "claim place printed ours_code verdict_code sure_code ours_paper verdict_paper sure_paper notebook heading"
).split()


class Finding(NamedTuple):
    """What was found: our numbers, the verdict, and how sure it is."""

    ours: str
    verdict: str
    sure: str = ""


@dataclass(frozen=True)
class Claim:
    """One of the paper's claims.

    Parameters
    ----------
    text, place, printed
        What is claimed, where, and the printed values.
    evidence
        What the rule gets: "table1" or "table2" (`Splits`), or the stem of files in ``figures/`` (a DataFrame).
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


# Rules for parts


def reaches(ours: float, high: float, least: float) -> str:
    """A number that should be large holds from `least` on, and is undecided if other splits may reach that."""
    return HOLDS if ours >= least else UNDECIDED if high >= least else FAILS


def agrees(printed: float, low: float, high: float) -> str:
    """A printed number holds if it lies in the range of ours."""
    return HOLDS if low <= printed <= high else FAILS


def verdict(*parts: str) -> str:
    """All parts hold or all fail; some hold, if only in part: in part; none does, but some are undecided: undecided."""
    if HOLDS in parts or IN_PART in parts:
        return HOLDS if set(parts) == {HOLDS} else IN_PART
    return UNDECIDED if UNDECIDED in parts else FAILS


# Rules for claims on errors


def judge_wins(splits: Splits, tests: Sequence[int], least: int) -> Finding:
    """Holds from the printed number of data sets on; undecided if other random splits may reach it (within 95 %); else
    fails. A claim on significance has two parts: by the paper's t-test, and by that of Nadeau and Bengio."""
    ours, again = (values[..., list(tests)] for values in splits.tally(count_wins))
    _, high = spread(again)
    of = len(splits.samples)
    names = ("the paper's test", "the corrected one") if len(tests) > 1 else ("",)
    parts = [f"{one:.0f} of {of}{name and f' by {name}'}" for one, name in zip(ours, names, strict=True)]
    return Finding(
        "; ".join(parts),
        verdict(*(reaches(*pair, least) for pair in zip(ours, high, strict=True))),
        _sure(splits, again),
    )


def _sure(splits: Splits, again: np.ndarray) -> str:
    (close,), _ = splits.tally(count_margins)
    return f"other splits: {_ranges(again)}; {close:.0f} of {len(splits.samples)} margins within two standard errors"


def _ranges(again: np.ndarray) -> str:
    return " / ".join(f"{low:.0f} to {high:.0f}" for low, high in zip(*spread(again), strict=True))


def judge_losses(splits: Splits) -> Finding:
    """Three parts, on the data sets where no proposed method is best: one is second best on all; on none is it
    significantly worse, by the paper's t-test; on none by that of Nadeau and Bengio."""
    (lost, second, worse, corrected), again = splits.tally(count_losses)
    states = [HOLDS if second == lost else FAILS, *(HOLDS if n == 0 else FAILS for n in (worse, corrected))]
    return Finding(
        f"second best on {second:.0f} of {lost:.0f}; significantly worse on {worse:.0f} by the paper's test, on "
        f"{corrected:.0f} by the corrected one",
        verdict(*states),
        f"other splits: {_ranges(again[:, 1:2])} second best of {_ranges(again[:, :1])}",
    )


def judge_group(splits: Splits, printed: Mapping[str, int]) -> Finding:
    """One part a method: the printed number lies in the range of ours for other random splits (95 %). One more: those
    that are best most often in the paper are so here, too; undecided if other random splits may make them so."""
    columns = [NAMES.index(name) for name in printed]
    ours, again = (values[..., columns] for values in splits.tally(count_group_wins))
    numbers = np.array([*printed.values()])
    first = numbers == numbers.max()
    lead = [values[..., first].max(axis=-1) - values[..., ~first].max(axis=-1) for values in (ours, again)]
    parts = [agrees(number, *ends) for number, *ends in zip(numbers, *spread(again), strict=True)]
    most = reaches(lead[0], float(spread(lead[1])[1]), 1)
    return Finding(
        f"{' / '.join(f'{n:.0f}' for n in ours)} of {len(splits.samples)}",
        verdict(*parts, most),
        f"other splits: {_ranges(again)}",
    )


def judge_largest(splits: Splits, method: str) -> Finding:
    """Holds from the printed number of data sets on; undecided if other random splits may reach it (within 95 %); else
    fails."""

    def largest(sample: Sample) -> np.ndarray:
        rounded = sample.levels().round(2)
        return (rounded[:, NAMES.index(method)] == rounded.max(axis=1))[:, None]

    (ours,), again = splits.tally(largest)
    return Finding(
        f"{ours:.0f} of {len(splits.samples)}",
        reaches(ours, spread(again)[1][0], printed_largest(splits.table, method)),
        f"other splits: {_ranges(again)}",
    )


def judge_averages(splits: Splits) -> Finding:
    """Two parts, on averages over the data sets: the better DRO is below LR, and the better r-DRO below r-LR. A part is
    undecided if only other random splits may make it so (within 95 %)."""
    ours, again = (values / len(splits.samples) for values in splits.tally(Sample.levels))
    states, ranges = [], []
    for plain in ("LR", "r-LR"):
        lead, leads = (_lead_over(plain, values) for values in (ours, again))
        low, high = map(float, spread(leads))
        states.append(reaches(float(lead), high, 0.0))
        ranges.append(f"{low:+.2f} to {high:+.2f}")
    best, second = ours.argsort()[:2]
    return Finding(
        _averages(dict(zip(NAMES, ours, strict=True))),
        verdict(*states),
        f"{label_of(NAMES[best])} has the lowest mean error over all {len(splits.samples)}, "
        f"{label_of(NAMES[second])} {ours[second] - ours[best]:.2f} points more; with other splits it is the lowest in "
        f"{100 * (again.argmin(axis=1) == best).mean():.0f} % of the draws; DRO's lead over LR is then {ranges[0]} "
        f"points, r-DRO's over r-LR {ranges[1]}; {_without_the_weightiest(splits)}",
    )


def _lead_over(plain: str, means: np.ndarray) -> np.ndarray:
    """By how much the better of its two robust models, which come after it in the last axis, is below LR or r-LR."""
    column = NAMES.index(plain)
    return means[..., column] - means[..., [column + 1, column + 2]].min(axis=-1)


def _without_the_weightiest(splits: Splits) -> str:
    """DRO's lead over LR, and the best mean, without the data set on which that lead depends most."""
    levels = {name: sample.levels()[0] for name, sample in splits.samples.items()}
    total = np.sum([*levels.values()], axis=0)
    means = {name: (total - of_one) / (len(levels) - 1) for name, of_one in levels.items()}
    leads = {name: float(_lead_over("LR", mean)) for name, mean in means.items()}
    whole = _lead_over("LR", total / len(levels))
    name = max(leads, key=lambda name: abs(leads[name] - whole))
    best = means[name].argmin()
    return f"without {name}, DRO leads by {leads[name]:.2f}, and {label_of(NAMES[best])} is best"


def _averages(means: Mapping[str, float]) -> str:
    return "; ".join(
        f"{plain} {means[plain]:.2f}, {plain[:-2]}DRO {means[f'{plain[:-2]}DRO_kappa_1']:.2f} / "
        f"{means[f'{plain[:-2]}DRO_kappa_m']:.2f} %"
        for plain in ("LR", "r-LR")
    )


def judge_plain(splits: Splits, most: int) -> Finding:
    """Holds up to the printed number of data sets; undecided if other random splits may give so few (within 95 %)."""
    plain = [NAMES.index(name) for name in ("LR", "r-LR")]

    def count(sample: Sample) -> np.ndarray:
        rounded = sample.levels().round(2)
        return (rounded[:, plain].min(axis=1) == rounded.min(axis=1))[:, None]

    (ours,), again = splits.tally(count)
    return Finding(
        f"{ours:.0f} of {len(splits.samples)}",
        reaches(-ours, -spread(again)[0][0], -most),
        f"other splits: {_ranges(again)}",
    )


def judge_values(splits: Splits) -> Finding:
    """Two parts: no more values are farther than two of our standard errors from the printed ones than chance makes so
    in 97.5 % of the draws of `redrawn.far_by_chance` (in part if no more than half are); and none is so far that chance
    makes one of all so far in 2.5 % of the cases or less."""
    summary = summarise_errors(splits.rows, splits.table).dropna(subset="difference_in_se")
    if summary.empty:
        return Finding("no value has a standard error", UNDECIDED)
    n, n_far = len(summary), int((summary["difference_in_se"].abs() > FAR).sum())
    by_chance = far_by_chance(splits, N_SPLITS[splits.table])
    most = int(np.quantile(by_chance, 0.975, method="higher"))
    chances = chance_of(summary["difference_in_se"], summary["n_splits"], splits.table)
    least = summary.loc[chances.idxmin()]
    return Finding(
        f"{n - n_far} of {n} within two standard errors",
        verdict(judge_far(n_far, n, most), HOLDS if n * chances.min() > 0.025 else FAILS),
        f"{n - by_chance.mean():.0f} would be by chance, and {n - most} or more in 97.5 %; least likely: "
        f"{least['dataset']}, {label_of(least['method'])}, {least['difference_in_se']:+.1f} standard errors on "
        f"{least['n_splits']} splits",
    )


def judge_far(n_far: int, n: int, most: int) -> str:
    """The verdict on n values of which n_far are `FAR` from the printed ones, and chance makes so many so at most."""
    return HOLDS if n_far <= most else IN_PART if 2 * n_far <= n else FAILS


def judge_seconds(splits: Splits, table: str) -> Finding:
    """One part a method: its seconds as a multiple of LR's (median over the data sets) are of the printed size, up to a
    factor of 3."""
    ratios = (
        summarise_runtimes(splits.rows, table)
        .groupby("method", sort=False)[["seconds", "paper", "ratio_to_LR", "paper_ratio_to_LR"]]
        .median()
        .drop(index="LR")
    )
    seconds = ratios.loc[[name for name in ratios.index if METHODS[name].is_proposed], "seconds"]
    return Finding(
        _multiples(ratios["ratio_to_LR"]),
        _of_the_printed_size(ratios["ratio_to_LR"], ratios["paper_ratio_to_LR"]),
        f"another solver and machine: the proposed take {seconds.min():.2g} to {seconds.max():.2g} s",
    )


def judge_scheme_seconds(summary: pd.DataFrame) -> Finding:
    """One part a proposed method: its seconds by Algorithm 1 as a multiple of LR's by the tailored solver (median over
    the data sets; a fit that did not end counts as longer than any other) are of the printed size, up to a factor of 3.
    """
    by_method = summary.groupby("method", sort=False)[["ratio_to_LR", "paper_ratio_to_LR"]].median()
    done = summary[summary["status"] == "done"]
    return Finding(
        _range_of(by_method["ratio_to_LR"]),
        _of_the_printed_size(by_method["ratio_to_LR"], by_method["paper_ratio_to_LR"]),
        f"with Clarabel, one split, {len(done)} of {len(summary)} fits ended; "
        f"{_times(done['ratio'].median())} times as long as the tailored solver",
    )


def _of_the_printed_size(ours: pd.Series, printed: pd.Series) -> str:
    """One part a method: its multiple of LR's seconds is the printed one, up to `FACTOR`."""
    off = np.abs(np.log(ours.clip(lower=1e-9) / printed))
    return verdict(*(HOLDS if one <= np.log(FACTOR) else FAILS for one in off))


def _multiples(ratios: pd.Series) -> str:
    kinds = {"proposed": ratios[PROPOSED[1:]], "others": ratios[~PROPOSED[1:]]}
    return "; ".join(f"{kind} {_range_of(one)}" for kind, one in kinds.items())


def _range_of(ratios: pd.Series) -> str:
    return f"{_times(ratios.min())} to {_times(ratios.max())} times LR"


def _times(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2g}"


# Rules for claims on figures


def judge_band(bands: pd.DataFrame) -> Finding:
    """One part for each N of figure1.csv: beta = 1 lies outside the continuous model's band."""
    outside = ((bands["lower"] > 1) | (bands["upper"] < 1)).groupby(bands["model"]).agg(["sum", "size"])
    missed, of = outside.loc["continuous"]
    of_mixed = bands[bands["model"] == "mixed"]
    return Finding(
        f"at {missed} of {of}",
        verdict(*[HOLDS] * missed, *[FAILS] * (of - missed)),
        f"the mixed model's band misses it, too, at {outside.loc['mixed', 'sum']} of {of}, if barely: its upper end is "
        f"{of_mixed['upper'].min():.3f} to {of_mixed['upper'].max():.3f}",
    )


def judge_atoms(atoms: pd.DataFrame, point: float, mass: float) -> Finding:
    """Four parts: the continuous worst case has an atom at the printed point (to a unit), with |z - z'| and with the
    distance of Section 2.2, half of that; its mass is the printed one (to a thousandth of it); the mixed worst case
    keeps to -1 and +1."""
    farthest = {
        name: of.loc[of["z"].abs().idxmax()] for name, of in atoms.groupby("distribution") if name != "empirical"
    }
    full, half = farthest["continuous, |z - z'|"], farthest["continuous, |z - z'| / 2"]
    states = [
        *(agrees(point, abs(one["z"]) - 1, abs(one["z"]) + 1) for one in (full, half)),
        agrees(mass, 0.999 * full["probability"], 1.001 * full["probability"]),
        HOLDS if (atoms.loc[atoms["distribution"] == "mixed", "z"].abs() == 1).all() else FAILS,
    ]
    return Finding(
        f"{abs(full['z']):,.0f} with |z - z'|, {abs(half['z']):,.0f} with Section 2.2's distance; mass "
        f"{full['probability']:.2g}; mixed: {abs(farthest['mixed']['z']):.0f}",
        verdict(*states),
        "exact: no sampling is involved but that of the one data set",
    )


def judge_in_samples(summary: pd.DataFrame) -> Finding:
    """One part a kappa: the powers of N of the two medians, over the N at which both ended in time, differ by 0.5 at
    most; undecided if there are fewer than four such N."""

    def judge(of_cost: pd.DataFrame) -> tuple[str, str]:
        numbers = growth_numbers(of_cost)
        a, b = numbers["power of N, monolithic program"], numbers["power of N, scheme, at the same N"]
        known = a - b if numbers["sizes in N that both ended"] >= FEWEST_SIZES else np.nan
        text = f"the monolithic program's seconds grow as N^{a:.2f}, the scheme's as N^{b:.2f}"
        sizes = f"over the {numbers['sizes in N that both ended']} N at which both end"
        return f"{text} {sizes}", _if_known(known, abs(a - b) <= SIMILAR)

    return _by_kappa(summary, judge)


def judge_in_features(summary: pd.DataFrame) -> Finding:
    """One part a kappa: each further feature multiplies the median seconds of the monolithic program by 1.5 or more."""

    def judge(of_cost: pd.DataFrame) -> tuple[str, str]:
        factor = growth_numbers(of_cost)["factor of a feature, monolithic program"]
        return f"a feature multiplies the seconds by {factor:.2f}", _if_known(factor, factor >= EXPONENTIAL)

    return _by_kappa(summary, judge)


def judge_scheme(summary: pd.DataFrame) -> Finding:
    """Three parts a kappa: the power of N and that of m in the scheme's seconds are 2 at most; and the median fit of
    every size ended in time."""

    def judge(of_cost: pd.DataFrame) -> tuple[str, ...]:
        numbers = growth_numbers(of_cost)
        N, m = numbers["power of N, scheme, at all N"], numbers["power of m, scheme"]
        in_time, sizes = numbers["sizes whose median ended in time, scheme"], numbers["sizes, scheme"]
        text = f"seconds grow as N^{N:.2f} and m^{m:.2f}; {in_time} of {sizes} sizes in time"
        powers = (_if_known(power, power <= GRACEFUL) for power in (N, m))
        return text, *powers, HOLDS if in_time == sizes else FAILS

    return _by_kappa(summary, judge)


def judge_monolithic(summary: pd.DataFrame) -> Finding:
    """One part a kappa: at the largest m that both solved in time, the scheme takes less than the monolithic
    program."""

    def judge(of_cost: pd.DataFrame) -> tuple[str, str]:
        ratio = _last_ratio(of_cost, "monolithic", "algorithm1")
        return f"{_times(ratio)} times as fast", _if_known(ratio, ratio > 1)

    return _by_kappa(summary, judge)


def judge_cones(compared: pd.DataFrame) -> Finding:
    """Fails if linear programs in the place of the cone are as fast, at the largest m of theorems_cone.csv; else
    undecided, as the remark is about MOSEK, which needs a licence."""
    largest = compared[compared["m"] == compared["m"].max()]
    ratio = (largest["tangents_seconds"] / largest["cone_seconds"]).median()
    found = f"linear programs (HiGHS) take {_times(ratio)} times as long as the cone (Clarabel)"
    return Finding(
        f"{found}, m = {largest['m'].iloc[0]}",
        FAILS if ratio <= 1 else UNDECIDED,
        "the remark is about MOSEK, which needs a licence",
    )


def _by_kappa(summary: pd.DataFrame, judge: Callable[[pd.DataFrame], tuple[str, ...]]) -> Finding:
    """One finding from those of each label cost: a text and the verdicts on its parts."""
    found = {str(label_cost): judge(of_cost) for label_cost, of_cost in summary.groupby("label_cost")}
    return Finding(
        "; ".join(f"κ = {label_cost}: {text}" for label_cost, (text, *_) in found.items()),
        verdict(*(part for _, *parts in found.values() for part in parts)),
        f"medians over {summary['tried'].max()} runs, with Clarabel instead of MOSEK",
    )


def _if_known(value: float, holds: bool) -> str:
    return UNDECIDED if np.isnan(value) else HOLDS if holds else FAILS


def _last_ratio(of_cost: pd.DataFrame, solver: str, other: str) -> float:
    """How many times as long a solver takes as the other, at the largest m that both solved in time; nan for none."""
    ended = of_cost[(of_cost["panel"] == "m") & (of_cost["missing"] == "")]
    both = ended.pivot_table("median", "m", "solver").reindex(columns=[solver, other]).dropna()
    return float(both[solver].iloc[-1] / both[other].iloc[-1]) if len(both) else np.nan


# The claims


def printed_largest(table: str, method: str) -> int:
    """On how many data sets a method has the largest printed error."""
    printed = published_values(table).pivot_table("value", "dataset", "method")
    return int((printed[method] == printed.max(axis=1)).sum())


def _group_claim(text: str, printed: Mapping[str, int], shares: str) -> Claim:
    table = published_values("table1")
    marks = [table.loc[table["method"] == name, "best_in_group_italic"].sum() for name in printed]
    numbers = " / ".join(map(str, printed.values()))
    in_table = " / ".join(map(str, marks))
    return Claim(
        f"{' / '.join(map(label_of, printed))} {text}",
        "Section 4.2",
        f"{shares} % ({numbers} of 14{'' if in_table == numbers else f'; marks in its table: {in_table}'})",
        "table1",
        partial(judge_group, printed=printed),
        *("table1", "The table"),
    )


def _seconds_claim(text: str, table: str, of: str) -> Claim:
    printed = published_values(table).assign(
        seconds=lambda cells: cells["value"] + cells["value_identification_s"].fillna(0.0)
    )
    seconds = printed.pivot_table("seconds", "dataset", "method")
    ratios = seconds.div(seconds["LR"], axis=0).median().reindex(NAMES[1:])
    return Claim(
        text,
        f"Table {table[-1]}",
        _multiples(ratios),
        of,
        partial(judge_seconds, table=table),
        *(table, "The table"),
    )


def _scheme_claim(text: str, table: str) -> Claim:
    printed = published_values(table).pivot_table("value", "dataset", "method")
    ratios = printed.div(printed["LR"], axis=0).median()[[name for name in NAMES if METHODS[name].is_proposed]]
    return Claim(
        text,
        f"Table {table[-1]}",
        _range_of(ratios),
        f"{table}_algorithm1",
        judge_scheme_seconds,
        *(table, "The same fits by Algorithm 1"),
    )


def _printed_averages() -> str:
    return _averages(published_values("table1").groupby("method")["value"].mean())


CLAIMS = (
    *(
        Claim(text, "Section 4.2", f"{least} of 14", "table1", partial(judge_wins, tests=tests, least=least), *where)
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
        judge_losses,
        *("significance", "By how much do the proposed methods win?"),
    ),
    _group_claim("best of the unregularized", {"LR": 3, "DRO_kappa_1": 5, "DRO_kappa_m": 11}, "21 / 36 / 79"),
    _group_claim("best of the regularized", {"r-LR": 2, "r-DRO_kappa_1": 8, "r-DRO_kappa_m": 8}, "14 / 57 / 57"),
    _group_claim("best of the numerical", {"MT_kappa_1": 6, "MT_kappa_m": 8, "PI": 2}, "42 / 57 / 14"),
    Claim(
        "PI is weak: it has the largest error of all nine",
        "Table 1",
        f"{printed_largest('table1', 'PI')} of 14",
        "table1",
        partial(judge_largest, method="PI"),
        *("table1", "The table"),
    ),
    Claim(
        "DRO beats LR and r-DRO beats r-LR, in means over Table 1 (κ = 1 / κ = m)",
        "Abstract",
        _printed_averages(),
        "table1",
        judge_averages,
        *("table1", "The table"),
    ),
    Claim(
        "The means of Table 1 are the printed ones",
        "Table 1",
        "126",
        "table1",
        judge_values,
        *("table1", "Which means differ from the paper's, and why"),
    ),
    Claim(
        "With numbers, too, a proposed method is best in each instance",
        "Appendix C",
        "5 of 5",
        "table2",
        partial(judge_wins, tests=(0,), least=5),
        *("table2", "The table"),
    ),
    Claim(
        "With numbers, LR or r-LR is best in only two instances",
        "Appendix C",
        "2 of 5",
        "table2",
        partial(judge_plain, most=2),
        *("table2", "The table"),
    ),
    Claim(
        "The medians of Table 2 are the printed ones",
        "Table 2",
        "45",
        "table2",
        judge_values,
        *("table2", "Which medians differ from the paper's, and why"),
    ),
    _seconds_claim("Seconds as multiples of LR's, numbers and categories", "table3", "table2"),
    _scheme_claim("Algorithm 1's seconds as multiples of LR's, numbers and categories", "table3"),
    _seconds_claim("Seconds as multiples of LR's, categories alone", "table4", "table1"),
    _scheme_claim("Algorithm 1's seconds as multiples of LR's, categories alone", "table4"),
    Claim(
        "β = 1 lies outside the continuous model's band, whatever N",
        "Figure 1, left",
        "at every N",
        "figure1",
        judge_band,
        *("figure1", "The paper's values beside ours"),
    ),
    Claim(
        "The continuous worst case has an atom far outside {-1, +1}, the mixed one none",
        "Figure 1, right",
        "15,312, mass 0.001 / 500",
        "figure1_distributions",
        partial(judge_atoms, point=15_312, mass=1e-3 / 500),
        *("figure1", "The escaping mass"),
    ),
    *(
        Claim(text, place, printed, "figure2_full", rule, *("figure2", "Do the claims hold?"))
        for text, place, printed, rule in (
            ("Monolithic program and scheme scale similarly in N", "Figure 2, left", "no number", judge_in_samples),
            ("The monolithic program is exponential in m", "Figure 2, middle", "no number", judge_in_features),
            ("The scheme grows gracefully in N and m", "Figure 2, right", "no number", judge_scheme),
            ("The scheme is faster than the monolithic program", "Figure 2, middle", "no number", judge_monolithic),
        )
    ),
    Claim(
        "Exponential cones drastically speed up the solution",
        "Appendix, Remark",
        "no number",
        "theorems_cone",
        judge_cones,
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


def read_figures(folder: Path) -> dict[str, pd.DataFrame]:
    """What the notebooks of figures, Tables 3 and 4 and the theorems have saved; what lacks a file is left out."""
    wanted = {
        "figure1": ["figure1"],
        "figure1_distributions": ["figure1_distributions"],
        "figure2_full": ["figure2_full_kappa_1", "figure2_full_kappa_m"],
        "theorems_cone": ["theorems_cone"],
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
    """What the rows of a protocol are: cells, processor hours, splits by data set and versions; one sentence a line.

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
        hours = rows[["seconds", "cv_seconds"]].sum(axis=None) / 3600
        n_splits = rows.groupby("dataset", sort=False)["split"].nunique()
        by_number = n_splits.groupby(n_splits).groups
        listed = "; ".join(f"{n}: {', '.join(map(str, names))}" for n, names in sorted(by_number.items(), reverse=True))
        made_by = "; ".join(rows["versions"].unique())
        yield f"{table}: {len(rows)} cells, {hours:.1f} hours of processor time, by {made_by}."
        yield f"  Splits, of {N_SPLITS[table]} in the paper: {listed}."


def find(claim: Claim, evidence: Mapping[str, Any]) -> Finding:
    """The finding on a claim; "not computed" if its evidence is missing or incomplete."""
    found = evidence.get(claim.evidence)
    if found is None:
        return Finding("", NOT_COMPUTED)
    if isinstance(found, Splits) and not found.complete:
        return Finding(found.describe(), NOT_COMPUTED)
    return claim.rule(found)


def judge_claims(splits: Mapping[str, Mapping[str, Splits]], figures: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """All claims with the verdicts.

    Parameters
    ----------
    splits
        For each protocol the result of `read_splits`.
    figures
        The result of `read_figures`.

    Returns
    -------
    DataFrame of text with the columns claim, place, printed; ours_code, verdict_code, sure_code, ours_paper,
    verdict_paper, sure_paper (under both protocols; claims on Figures 1 and 2 have no protocol, and "" in the last
    three); notebook, heading.
    """
    return pd.DataFrame([judge_row(claim, splits, figures) for claim in CLAIMS], columns=COLUMNS)


def judge_row(
    claim: Claim, splits: Mapping[str, Mapping[str, Splits]], figures: Mapping[str, pd.DataFrame]
) -> dict[str, str]:
    """One row of `judge_claims`."""
    row = {"claim": claim.text, "place": claim.place, "printed": claim.printed}
    for protocol in PROTOCOLS:
        judged = claim.evidence in N_SPLITS or protocol == STANDARD
        finding = find(claim, {**splits[protocol], **figures}) if judged else Finding("", "")
        row |= {f"{name}_{protocol}": text for name, text in finding._asdict().items()}
    return row | {"notebook": claim.notebook, "heading": claim.heading}


def of_runtimes(summary: pd.DataFrame) -> dict[str, bool]:
    """The claims on Figure 2 for each label cost, with our numbers, and whether they hold; without those undecided.

    Parameters
    ----------
    summary
        From `wdrlr.paper.runtimes.summarise`.
    """
    judged = {}
    for _, of_cost in summary.groupby("label_cost"):
        for claim in CLAIMS:
            if claim.evidence == "figure2_full" and (found := claim.rule(of_cost)).verdict != UNDECIDED:
                judged[f"{claim.text[0].lower()}{claim.text[1:]} ({found.ours})"] = found.verdict == HOLDS
    return judged


def of_rows(rows: pd.DataFrame, table: str, figures: Mapping[str, pd.DataFrame] | None = None) -> dict[str, bool]:
    """The claims on one of the paper's tables, with the printed numbers and ours, and whether they hold.

    Those undecided are left out, and all of them unless the rows have all data sets of the table.

    Parameters
    ----------
    rows
        Result rows (`wdrlr.paper.results.COLUMNS`) of one protocol, seed and tolerance.
    table
        "table1", ..., "table4".
    figures
        More evidence, as from `read_figures`.
    """
    of_errors = {"table3": "table2", "table4": "table1"}.get(table, table)
    evidence = {of_errors: Splits.of(rows, of_errors), **(figures or {})}
    shown_in = ("table1", "significance") if table == "table1" else (table,)
    judged = {}
    for claim in CLAIMS:
        found = find(claim, evidence)
        if claim.notebook in shown_in and found.verdict not in (UNDECIDED, NOT_COMPUTED):
            part = f", {IN_PART}" if found.verdict == IN_PART else ""
            text = f"{claim.text} (printed: {claim.printed}; here{part}: {found.ours})"
            judged[text] = found.verdict == HOLDS
    return judged


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
    numbers differ; and against, how many other means the change opens or worsens (`judge_variants`).
    """
    columns = "claim variant reason ours verdict before verdict_before against".split()
    if not splits.complete:
        return pd.DataFrame(columns=columns)
    claims = [claim for claim in CLAIMS if claim.evidence == "table1" and _is_of_errors(claim)]
    against = judge_variants(compared)[["opens", "worsens"]].sum(axis=1)
    compared = compared[by_holm(p_of_change(compared)) <= LEVEL]
    before = {claim.text: claim.rule(splits) for claim in claims}
    moved = []
    for variant, of_variant in compared.groupby("variant", sort=False):
        changed = splits.changed(of_variant)
        reason = VARIANTS[str(variant)].reason if variant in VARIANTS else str(variant)
        for claim in claims:
            old, new = before[claim.text], claim.rule(changed)
            if old.ours != new.ours:
                found = (new.ours, new.verdict, old.ours, old.verdict, against[variant])
                moved.append((claim.text, variant, reason, *found))
    return pd.DataFrame(moved, columns=columns)


def _is_of_errors(claim: Claim) -> bool:
    """Whether the rule reads the errors of `Splits`, which `Splits.changed` changes, and not its rows."""
    return function_of(claim.rule) not in (judge_values, judge_seconds)


def function_of(rule: Callable) -> Callable:
    return rule.func if isinstance(rule, partial) else rule


def counted() -> list[str]:
    """The claims that count wins on Table 1."""
    return [claim.text for claim in CLAIMS if claim.evidence == "table1" and function_of(claim.rule) is judge_wins]


def rules() -> pd.DataFrame:
    """What each claim's rule says."""
    texts = {claim.text: " ".join((function_of(claim.rule).__doc__ or "").split()) for claim in CLAIMS}
    return pd.Series(texts, name="rule").rename_axis("claim").to_frame()
