"""Why means differ from the paper's: the effect of each of `wdrlr.paper.variants` on them, on the same splits."""

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import norm, wilcoxon
from scipy.stats import t as student

from wdrlr.paper.printed import N_SPLITS, published_values
from wdrlr.paper.results import load_rows, other_versions, to_frame
from wdrlr.paper.significance import LEVEL
from wdrlr.paper.trials import kind_of, plan_trials
from wdrlr.paper.variants import STANDARD, VARIANTS

FAR = 2.0
"""A mean is far from the paper's if they differ by more than this many of our standard errors."""

FEWEST_SPLITS = 5
"""On fewer splits a change says nothing, and no claim on errors is judged."""

N_TRIALS = 300
"""Simulated trials behind a power; its standard error is at most 3 %."""

COMPARED_COLUMNS = (
    "dataset method variant n_splits paper standard se difference difference_in_se change change_se remaining "
    "remaining_in_se"
).split()


def chance_of(difference_in_se: float | pd.Series, n_splits: pd.Series, table: str) -> pd.Series:
    """How likely chance makes a mean or median of ours differ so much from the printed one, or more.

    Both are from random splits, n and n_printed: with equal spread of the errors, the difference has a standard
    deviation of sqrt(1 + n / n_printed) of our standard errors; these have n - 1 degrees of freedom (Student's
    distribution, two-sided).
    """
    in_units = np.abs(difference_in_se) / np.sqrt(1 + n_splits / N_SPLITS[table])
    return pd.Series(2 * student.sf(in_units, n_splits - 1), index=n_splits.index)


def compare_variants(rows: pd.DataFrame, variants: pd.DataFrame) -> pd.DataFrame:
    """The effect of each change on the mean test error, on the splits that both have, and the difference that remains.

    Parameters
    ----------
    rows
        Result rows (`wdrlr.paper.results.COLUMNS`) of the standard setting.
    variants
        Result rows of the variants, as planned by `plan_trials`.

    Returns
    -------
    DataFrame with the columns dataset, method, variant; n_splits (that both have; variants with fewer than two are left
    out); paper (as printed); standard (our mean over all rows) and se, its standard error; difference (ours minus the
    paper's) and difference_in_se; change (mean of the variant's errors less the standard ones, split by split) and
    change_se, its standard error; remaining (difference + change) and remaining_in_se (in units of the root of the sum
    of both squared standard errors). All are in per cent of the test part. A standard error is the sample standard
    deviation over the root of the number of splits; a difference in units of a standard error of 0 is nan.
    """
    printed = published_values("table1").set_index(["dataset", "method"])["value"]
    errors = {key: cells.set_index("split")["test_error"] * 100 for key, cells in rows.groupby(["dataset", "method"])}
    compared = []
    for (dataset, method, protocol), cells in variants.groupby(["dataset", "method", "protocol"], sort=False):
        standard = errors.get((dataset, method), pd.Series(dtype=float))
        changes = (cells.set_index("split")["test_error"] * 100 - standard).dropna()
        if len(changes) < 2:
            continue
        paper = printed[dataset, method]
        difference, se = standard.mean() - paper, standard.sem()
        change, change_se = changes.mean(), changes.sem()
        remaining, remaining_se = difference + change, np.hypot(se, change_se)
        name = protocol.removeprefix(f"{STANDARD}-")
        before = (paper, standard.mean(), se, difference, _ratio(difference, se))
        after = (change, change_se, remaining, _ratio(remaining, remaining_se))
        compared.append((dataset, method, name, len(changes), *before, *after))
    return pd.DataFrame(compared, columns=COMPARED_COLUMNS)


def _ratio(value: float, unit: float) -> float:
    return value / unit if unit > 0 else np.nan


def p_of_change(compared: pd.DataFrame) -> pd.Series:
    """p-values of the changes in a mean, by the two-sided t-test on paired splits.

    A change that is the same on all splits has no variance: the sign test's is 2^(1 - n), or 1 for a change of 0. On
    fewer than `FEWEST_SPLITS` it is 1.
    """
    change, se, n_splits = (compared[name].astype(float) for name in ("change", "change_se", "n_splits"))
    p = pd.Series(2 * student.sf(change.abs() / se.where(se > 0), n_splits - 1), index=compared.index)
    by_sign = (0.5 ** (n_splits - 1)).where(change != 0, 1.0)
    return p.where(se > 0, by_sign).where(n_splits >= FEWEST_SPLITS, 1.0)


def _is_clear(compared: pd.DataFrame) -> pd.Series:
    """Which changes are significant, each for itself."""
    return p_of_change(compared) <= LEVEL


def _is_ruled_out(compared: pd.DataFrame) -> pd.Series:
    """Which changes leave a mean far, as sure as two standard errors are with many splits (Student's distribution)."""
    n_splits = compared["n_splits"]
    far = compared["remaining_in_se"].abs() > student.isf(norm.sf(FAR), n_splits - 1)
    return (n_splits >= FEWEST_SPLITS) & (far | (compared["change"] == 0))


def format_changes(compared: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The result of `compare_variants` as text: for each kind of method a table of data sets and methods by variants.

    An entry "+1.20 ± 0.30* → -0.9" is the change, its standard error, and the remaining difference in standard
    errors; the star marks a change that is significant at the 5 % level, for itself (`p_of_change`).
    """
    text = [
        f"{row.change:+.2f} ± {row.change_se:.2f}{'*' if clear else ''} → {row.remaining_in_se:+.1f}"
        for row, clear in zip(compared.itertuples(), _is_clear(compared), strict=True)
    ]
    shown = compared.assign(
        text=text,
        kind=compared["method"].map(kind_of),
        **{"difference in s.e.": compared["difference_in_se"].map("{:+.1f}".format)},
    )
    index = ["dataset", "method", "difference in s.e."]
    return {
        kind: of_kind.pivot_table(index=index, columns="variant", values="text", aggfunc="first", sort=False)
        for kind, of_kind in shown.groupby("kind", sort=False)
    }


def judge_variants(compared: pd.DataFrame) -> pd.DataFrame:
    """The effect of each change on the means that are `FAR` from the paper's, and on those that are not.

    A change counts only if it is significant for itself (`p_of_change`). It closes a far difference if at most `FAR`
    standard errors remain, worsens it if more percentage points remain than before, and opens a near one if more than
    `FAR` standard errors remain.

    Whether it is likely is a test over all means that it touches, far or near: their mean squared difference, in
    standard errors, must fall, on more data sets and by more than chance explains. It is a one-sided Wilcoxon
    signed-rank test, with one value a data set, as the means of a data set share their splits. The p-values are
    corrected for the number of changes by the method of Holm (1979). The test can miss a change: on D data sets p is at
    least 2^-D, and a change known from few splits is mostly chance. Its power is how often it would pass if the change
    were how the printed numbers are made, by `N_TRIALS` simulated ones.

    Returns
    -------
    DataFrame indexed by variant with the columns reason; likely (whether it may be part of how the printed numbers were
    made: p_corrected is at most 5 %, and it opens no difference); power (at the level of the smallest p-value, 5 % over
    the number of changes); datasets (how many it touches); fewest, most (splits of a data set on which it was tried); p
    and p_corrected; far (the number of far means that it was tried on), closes, worsens, near, opens; rms_before and
    rms_after: the root mean square of all differences, in the standard errors of our means; rms_after leaves out the
    variance of the changes themselves, and is nan where that explains all of it.
    """
    compared = compared[compared["se"] > 0]  # without a standard error nothing is far or near
    moved = _is_clear(compared)
    before, after = compared["difference_in_se"].abs(), compared["remaining_in_se"].abs()
    far = before > FAR
    squares_before, squares_after = _squares(compared, compared["difference"], compared["remaining"])
    marks = pd.DataFrame(
        {
            "variant": compared["variant"],
            "dataset": compared["dataset"],
            "far": far,
            "closes": far & moved & (after <= FAR),
            "worsens": far & moved & (compared["remaining"].abs() > compared["difference"].abs()),
            "near": ~far,
            "opens": ~far & moved & (after > FAR),
            "rms_before": squares_before,
            "rms_after": squares_after,
        }
    )
    by_variant = marks.groupby("variant", sort=False)
    judged = (
        by_variant[["far", "closes", "worsens", "near", "opens"]]
        .sum()
        .join(by_variant[["rms_before", "rms_after"]].mean())
    )
    squares = judged[["rms_before", "rms_after"]]
    judged[["rms_before", "rms_after"]] = np.sqrt(squares.where(squares >= 0))
    touching = {name: of_one[of_one["change"] != 0] for name, of_one in compared.groupby("variant", sort=False)}
    p = pd.Series(
        {
            name: float(_p_of_gain(of_one, of_one["difference"], of_one["remaining"]))
            for name, of_one in touching.items()
        }
    )
    corrected = by_holm(p)
    n_splits = compared.groupby("variant", sort=False)["n_splits"]
    tests = {
        "reason": [VARIANTS[name].reason for name in judged.index],
        "likely": (corrected <= LEVEL) & (judged["opens"] == 0),
        "power": {name: _power(of_one, LEVEL / len(touching)) for name, of_one in touching.items()},
        "datasets": {name: of_one["dataset"].nunique() for name, of_one in touching.items()},
        "fewest": n_splits.min(),
        "most": n_splits.max(),
        "p": p,
        "p_corrected": corrected,
    }
    return pd.concat([pd.DataFrame(tests, index=judged.index), judged], axis=1)


def _squares(compared: pd.DataFrame, difference: ArrayLike, remaining: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """The squared differences before and after a change, in standard errors, without the variance of the change."""
    change_se, se = compared["change_se"].to_numpy(), compared["se"].to_numpy()
    return np.square(np.asarray(difference) / se), (np.square(remaining) - change_se**2) / se**2


def _p_of_gain(touching: pd.DataFrame, difference: ArrayLike, remaining: ArrayLike) -> np.ndarray:
    """p-values of the test that a change's gains, one a data set, are no larger than losses; 1 if it touches none.

    The gain on a mean is what its squared difference falls by (`_squares`). The last axis of the arrays is that of the
    rows.
    """
    if touching.empty:
        return np.array(1.0)
    before, after = _squares(touching, difference, remaining)
    of_dataset = pd.get_dummies(touching["dataset"]).to_numpy(dtype=float)
    return wilcoxon((before - after) @ (of_dataset / of_dataset.sum(axis=0)), axis=-1, alternative="greater").pvalue


def _power(touching: pd.DataFrame, level: float) -> float:
    """How often `_p_of_gain` would be at most the level if the printed means were made with the change.

    The change is taken to be as large as it was found, and the printed means to be as uncertain as ours; what is found
    of the change, and of the difference, is drawn anew.
    """
    if touching.empty:
        return 0.0
    rng, shape = np.random.default_rng(0), (N_TRIALS, len(touching))
    difference = rng.normal(-touching["change"], np.sqrt(2) * touching["se"], shape)
    remaining = difference + rng.normal(touching["change"], touching["change_se"], shape)
    return float((_p_of_gain(touching, difference, remaining) <= level).mean())


def by_holm(p: pd.Series) -> pd.Series:
    """p-values corrected for their number: S. Holm, Scandinavian Journal of Statistics 6, 1979."""
    ranked = p.sort_values()
    factors = np.arange(len(ranked), 0, -1)
    return (ranked * factors).cummax().clip(upper=1.0).reindex(p.index)


def explain_differences(summary: pd.DataFrame, compared: pd.DataFrame) -> pd.DataFrame:
    """The means or medians that are `FAR` from the paper's, with what would explain them.

    Parameters
    ----------
    summary
        The result of `wdrlr.paper.tables.summarise_errors`.
    compared
        The result of `compare_variants`; it may be empty.

    Returns
    -------
    DataFrame with the columns dataset, method, ours, paper, difference_in_se and reason: of the changes that
    close the difference, the one that leaves the least, with a caveat if it opens or worsens others. Where none closes
    it, it is unexplained; a change is ruled out if it leaves it far or is 0, and open if it does not, but may be chance
    itself, as one on fewer than `FEWEST_SPLITS` always may.
    """
    far = summary[summary["difference_in_se"].abs() > FAR]
    judged = judge_variants(compared)
    reasons = []
    for cell in far.itertuples():
        tried = compared[(compared["dataset"] == cell.dataset) & (compared["method"] == cell.method)]
        closing = tried[_is_clear(tried) & (tried["remaining_in_se"].abs() <= FAR)].sort_values("remaining", key=abs)
        if tried.empty:
            reasons.append("not tested")
        elif closing.empty:
            out = _is_ruled_out(tried)
            named = {"ruled out": tried.loc[out, "variant"], "open": tried.loc[~out, "variant"]}
            parts = [f"{kind}: {', '.join(names)}" for kind, names in named.items() if len(names)]
            reasons.append(f"unexplained; {'; '.join(parts)}")
        else:
            best = closing.iloc[0]
            opens, worsens = judged.loc[best["variant"], ["opens", "worsens"]]
            n = opens + worsens
            caveat = f"; but that makes {n} other difference{'s' if n > 1 else ''} far or farther" if n else ""
            reasons.append(f"{best['variant']}: {VARIANTS[best['variant']].reason}{caveat}")
    return far[["dataset", "method", "ours", "paper", "difference_in_se"]].assign(reason=reasons)


def describe_differences(summary: pd.DataFrame, table: str) -> str:
    """How many of the means or medians are `FAR` from the paper's, and how many would be by chance alone."""
    compared = summary.dropna(subset="difference_in_se")
    if compared.empty:
        return "Nothing to compare: no mean or median has both a standard error and a printed value."
    n, n_far = len(compared), int((compared["difference_in_se"].abs() > FAR).sum())
    by_chance = chance_of(FAR, compared["n_splits"], table).sum()
    return (
        f"{n_far} of {n} are more than {FAR:g} of our standard errors from the paper's. Chance alone makes "
        f"{by_chance:.1f} so in the mean, as the printed ones are from {N_SPLITS[table]} random splits themselves, and "
        "several at a time, as the methods share their splits."
    )


def stored_comparison(results_dir: Path, protocol: str, seed: int) -> pd.DataFrame:
    """`compare_variants` for the rows that `results_dir` holds; empty unless the protocol is the one varied.

    Prints `other_versions`, if there are any.
    """
    standard, variants = plan_trials("all", N_SPLITS["table1"], seed)
    if protocol != STANDARD:
        standard, variants = [], []
    rows = load_rows(results_dir, [cell.key for cell in [*standard, *variants]])
    if message := other_versions(to_frame(rows.values())):
        print(message)
    return compare_variants(
        to_frame(rows[cell.key] for cell in standard if cell.key in rows),
        to_frame(rows[cell.key] for cell in variants if cell.key in rows),
    )
