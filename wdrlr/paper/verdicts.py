"""Rules that turn our numbers into verdicts on the paper's claims: functions from numbers to a `Finding`.

What a rule says is its docstring. The parts of a claim hold, fail or are undecided, and `verdict` combines them. Counts
over data sets depend on the random splits. The range in which they would lie for other random splits comes from
`wdrlr.paper.redrawn`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from wdrlr.paper.differences import FAR, chance_of
from wdrlr.paper.growth import growth_numbers
from wdrlr.paper.printed import N_SPLITS
from wdrlr.paper.redrawn import (
    NAMES,
    Sample,
    Splits,
    count_group_wins,
    count_losses,
    count_margins,
    count_wins,
    ends,
    far_by_chance,
    spread,
)
from wdrlr.paper.tables import label_of, summarise_errors

FACTOR = 3.0
"""Two runtimes, as multiples of that of LR, are of the same size if neither is more than this many times the other."""

SIMILAR, EXPONENTIAL, GRACEFUL = 0.5, 1.5, 2.0
"""Powers of N are similar up to this difference; seconds are exponential in m if a feature costs at least this factor,
and grow gracefully in N and m up to this power."""

BEYOND_CHANCE = 0.025
"""A value is beyond chance if chance makes one of all values so far in this share of the cases, at most."""

ENOUGH_SPLITS = 50
"""Values are said to be the printed ones from so many random splits on, or from as many as in the paper."""

FEWEST_SIZES = 4
"""So many sizes say how seconds grow."""

HOLDS, IN_PART, FAILS, UNDECIDED, NOT_COMPUTED = "holds", "in part", "fails", "undecided", "not computed"


class Finding(NamedTuple):
    """What was found: our numbers, the verdict, and how sure it is."""

    ours: str
    verdict: str
    sure: str = ""


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


def verdict_of(parts: Iterable[bool]) -> str:
    """The verdict on parts that hold or fail."""
    return verdict(*(HOLDS if one else FAILS for one in parts))


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
    within = f"on {close:.0f} of {len(splits.samples)} the margin is within two standard errors"
    return f"other splits: {_ranges(again)}; {within}"


def _ranges(again: np.ndarray) -> str:
    return " / ".join(ends(bounds, ".0f") for bounds in zip(*spread(again), strict=True))


def judge_losses(splits: Splits) -> Finding:
    """Three parts, on the data sets where no proposed method is best: one is second best on all; on none is it
    significantly worse, by the paper's t-test; on none by that of Nadeau and Bengio. A part is undecided if only other
    random splits may make it so (within 95 %)."""
    (lost, second, worse, corrected), again = splits.tally(count_losses)
    exceptions = np.stack([again[:, 0] - again[:, 1], again[:, 2], again[:, 3]], axis=1)
    fewest = spread(exceptions)[0]
    states = [reaches(-n, -low, 0) for n, low in zip((lost - second, worse, corrected), fewest, strict=True)]
    return Finding(
        f"second best on {second:.0f} of {lost:.0f}; significantly worse on {worse:.0f} by the paper's test, on "
        f"{corrected:.0f} by the corrected one",
        verdict(*states),
        f"other splits: {_ranges(again[:, 1:2])} second best of {_ranges(again[:, :1])}",
    )


def judge_group(splits: Splits, printed: Mapping[str, int]) -> Finding:
    """One part a method: our number of marks is that of the printed table; undecided if that lies in the range of ours
    for other random splits (95 %). One more: those that are best most often in the paper are so here, too; undecided
    if other random splits may make them so."""
    columns = [NAMES.index(name) for name in printed]
    ours, again = (values[..., columns] for values in splits.tally(count_group_wins))
    numbers = np.array([*printed.values()])
    first = numbers == numbers.max()
    lead = [values[..., first].max(axis=-1) - values[..., ~first].max(axis=-1) for values in (ours, again)]
    parts = [
        HOLDS if own == number else UNDECIDED if low <= number <= high else FAILS
        for own, number, low, high in zip(ours, numbers, *spread(again), strict=True)
    ]
    most = reaches(lead[0], float(spread(lead[1])[1]), 1)
    return Finding(
        f"{' / '.join(f'{n:.0f}' for n in ours)} of {len(splits.samples)}",
        verdict(*parts, most),
        f"other splits: {_ranges(again)}",
    )


def judge_largest(splits: Splits, method: str, least: int) -> Finding:
    """Holds from the printed number of data sets on; undecided if other random splits may reach it (within 95 %); else
    fails."""

    def largest(sample: Sample) -> np.ndarray:
        rounded = sample.levels().round(2)
        return (rounded[:, NAMES.index(method)] == rounded.max(axis=1))[:, None]

    (ours,), again = splits.tally(largest)
    return Finding(
        f"{ours:.0f} of {len(splits.samples)}",
        reaches(ours, spread(again)[1][0], least),
        f"other splits: {_ranges(again)}",
    )


def judge_averages(splits: Splits) -> Finding:
    """Four parts, on averages over the data sets, for both κ: DRO is below LR, and r-DRO below r-LR. A part holds if it
    does in 97.5 % of the draws of other splits, fails if it does in 2.5 % or less, and else is undecided."""
    ours, again = (values / len(splits.samples) for values in splits.tally(Sample.levels))
    states, ranges = [], []
    for plain in ("LR", "r-LR"):
        bounds = list(zip(*spread(_leads_over(plain, again)), strict=True))
        states += [HOLDS if low > 0 else UNDECIDED if high > 0 else FAILS for low, high in bounds]
        ranges.append(" / ".join(ends(pair, "+.2f") for pair in bounds))
    best, second = ours.argsort()[:2]
    return Finding(
        averages(dict(zip(NAMES, ours, strict=True))),
        verdict(*states),
        f"{label_of(NAMES[best])} has the lowest mean error over all {len(splits.samples)}, "
        f"{label_of(NAMES[second])} {_more(ours[second] - ours[best])}; with other splits {label_of(NAMES[best])} has "
        f"it in {100 * (again.argmin(axis=1) == best).mean():.0f} % of the draws, LR less DRO is {ranges[0]} points, "
        f"and r-LR less r-DRO {ranges[1]} (κ = 1 / κ = m); {_without_the_weightiest(splits)}",
    )


def _more(points: float) -> str:
    return f"{points:.2f} points more" if points >= 0.005 else "the same up to 0.01 points"


def _leads_over(plain: str, means: np.ndarray) -> np.ndarray:
    """By how much its two robust models, which come after it in the last axis, are below LR or r-LR."""
    column = NAMES.index(plain)
    return means[..., [column]] - means[..., [column + 1, column + 2]]


def _without_the_weightiest(splits: Splits) -> str:
    """The better DRO's lead over LR, and the best mean, without the data set on which that lead depends most."""
    levels = {name: sample.levels()[0] for name, sample in splits.samples.items()}
    total = np.sum([*levels.values()], axis=0)
    means = {name: (total - of_one) / (len(levels) - 1) for name, of_one in levels.items()}
    leads = {name: _leads_over("LR", mean).max() for name, mean in means.items()}
    whole = _leads_over("LR", total / len(levels)).max()
    name = max(leads, key=lambda name: abs(leads[name] - whole))
    best = means[name].argmin()
    return f"without {name}, the better DRO leads by {leads[name]:.2f}, and {label_of(NAMES[best])} is best"


def averages(means: Mapping[str, float]) -> str:
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
    """Fails if more values are farther than two of our standard errors from the printed ones than chance makes so in
    97.5 % of the draws of `redrawn.far_by_chance`, or if one is so far that chance makes one of all so far in 2.5 % of
    the cases or less. Otherwise it holds; but as chance explains more the fewer the splits, it is undecided while some
    data set has fewer than 50 splits and fewer than the paper has."""
    summary = summarise_errors(splits.rows, splits.table).dropna(subset="difference_in_se")
    if summary.empty:
        return Finding("no value has a standard error", UNDECIDED)
    n, n_far = len(summary), int((summary["difference_in_se"].abs() > FAR).sum())
    by_chance = far_by_chance(splits, N_SPLITS[splits.table])
    most = int(np.quantile(by_chance, 0.975, method="higher"))
    chances = chance_of(summary["difference_in_se"], summary["n_splits"], splits.table)
    beyond = [
        f"{cell.dataset}, {label_of(cell.method)} ({cell.difference_in_se:+.1f})"
        for cell in summary[n * chances <= BEYOND_CHANCE].itertuples()
    ]
    enough = summary["n_splits"].min() >= min(ENOUGH_SPLITS, N_SPLITS[splits.table])
    return Finding(
        f"{n - n_far} of {n} within two standard errors",
        FAILS if beyond or n_far > most else HOLDS if enough else UNDECIDED,
        f"by chance alone {n - by_chance.mean():.0f} would be, and at least {n - most} in 97.5 % of the cases; too far "
        f"off to be chance: {'; '.join(beyond) or 'none'}",
    )


def judge_seconds(summary: pd.DataFrame, methods: Sequence[str]) -> Finding:
    """One part a method: its seconds as a multiple of LR's (median over the data sets) are of the printed size, up to a
    factor of 3."""
    seconds = summary["seconds"] + summary["identification_seconds"].fillna(0.0)
    by_method = summary.assign(seconds=seconds).groupby("method", sort=False)
    ratios = by_method[["seconds", "ratio_to_LR", "paper_ratio_to_LR"]].median().loc[list(methods)]
    sized = _of_the_printed_size(ratios["ratio_to_LR"], ratios["paper_ratio_to_LR"])
    return Finding(
        range_of(ratios["ratio_to_LR"]),
        verdict_of(sized),
        f"another solver and machine: {ratios['seconds'].min():.2g} to {ratios['seconds'].max():.2g} s; of the printed "
        f"size: {sized.sum()} of {len(sized)} methods",
    )


def judge_scheme_seconds(summary: pd.DataFrame) -> Finding:
    """One part a proposed method: its seconds by Algorithm 1 as a multiple of LR's by the tailored solver (median over
    the data sets; a fit that did not end counts as longer than any other) are of the printed size, up to a factor of 3.
    """
    by_method = summary.groupby("method", sort=False)[["ratio_to_LR", "paper_ratio_to_LR"]].median()
    done = summary[summary["status"] == "done"]
    sized = _of_the_printed_size(by_method["ratio_to_LR"], by_method["paper_ratio_to_LR"])
    below = ~sized & (by_method["ratio_to_LR"] < by_method["paper_ratio_to_LR"])
    return Finding(
        range_of(by_method["ratio_to_LR"]),
        verdict_of(sized),
        f"with Clarabel, one split, {len(done)} of {len(summary)} fits ended; of the printed size: {sized.sum()} of "
        f"{len(sized)} methods, below it: {below.sum()}; "
        f"{_times(done['ratio'].median())} times as long as the tailored solver",
    )


def _of_the_printed_size(ours: pd.Series, printed: pd.Series) -> pd.Series:
    """Whether each method's multiple of LR's seconds is the printed one, up to `FACTOR`."""
    return np.abs(np.log(ours.clip(lower=1e-9) / printed)) <= np.log(FACTOR)


def range_of(ratios: pd.Series) -> str:
    return f"{_times(ratios.min())} to {_times(ratios.max())} times LR"


def _times(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}" if ratio >= 1 else f"{ratio:.2f}"


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
    """Three parts a kappa: on the sizes of the paper's right panel, the powers of N and m in the scheme's seconds are 2
    at most; and the median fit of every size ended in time."""

    def judge(of_cost: pd.DataFrame) -> tuple[str, ...]:
        numbers = growth_numbers(of_cost)
        N, m = numbers["power of N, scheme, alone"], numbers["power of m, scheme, alone"]
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


def judge_worst_cases(atoms: pd.DataFrame) -> Finding:
    """Three parts, over the optimal fits of theorems_worst_cases.csv: their worst cases have at most N + 1 atoms; they
    attain the supremum if there are no numbers, and if there are."""
    more = int((atoms["atoms"] - atoms["N"]).max())
    attained = atoms.groupby(atoms["n"] > 0)["attained"].agg(["sum", "size"])
    counts = {numbers: f"{row['sum']} of {row['size']}" for numbers, row in attained.iterrows()}
    return Finding(
        f"N + {more}; attained without numbers in {counts[False]} fits, with numbers in {counts[True]}",
        verdict_of([more <= 1, *(attained["sum"] == attained["size"])]),
        "the existence theorem that the proof cites needs a loss that grows more slowly than the distance",
    )


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
    done = summary[(summary["solver"] == "algorithm1") & (summary["missing"] == "")].drop_duplicates(
        ["label_cost", "levels", "N", "m"]
    )
    at_once = (done["rounds"] <= 1).groupby(done["label_cost"]).mean()
    rounds = ", ".join(f"{100 * share:.0f} % with κ = {label_cost}" for label_cost, share in at_once.items())
    found = {str(label_cost): judge(of_cost) for label_cost, of_cost in summary.groupby("label_cost")}
    return Finding(
        "; ".join(f"κ = {label_cost}: {text}" for label_cost, (text, *_) in found.items()),
        verdict(*(part for _, *parts in found.values() for part in parts)),
        f"medians over up to {summary['tried'].max()} runs, with Clarabel instead of MOSEK; of the sizes that the "
        f"scheme ends in time, it needs one round on {rounds}",
    )


def _if_known(value: float, holds: bool) -> str:
    return UNDECIDED if np.isnan(value) else HOLDS if holds else FAILS


def _last_ratio(of_cost: pd.DataFrame, solver: str, other: str) -> float:
    """How many times as long a solver takes as the other, at the largest m that both solved in time; nan for none."""
    ended = of_cost[(of_cost["panel"] == "m") & (of_cost["missing"] == "")]
    both = ended.pivot_table("median", "m", "solver").reindex(columns=[solver, other]).dropna()
    return float(both[solver].iloc[-1] / both[other].iloc[-1]) if len(both) else np.nan
