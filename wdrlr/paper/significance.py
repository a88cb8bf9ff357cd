"""Which wins are significant: the paper's t-test, a corrected one, and the paper's claims under each.

The tests compare the errors of two methods on the same J random splits, through the differences d_1, ..., d_J with mean
d and sample variance s^2. They are one-sided, by Student's distribution with J - 1 degrees of freedom, at the 5 %
level.

    the paper (Appendix D)             t = d / sqrt( s^2 / J )
    Nadeau and Bengio (2003)           t = d / sqrt( s^2 (1 / J + n_test / n_train) )

The first treats the splits as independent. They are not, since they share rows, so it is too optimistic, as the paper
itself says; the second corrects for this (C. Nadeau and Y. Bengio, "Inference for the generalization error", Machine
Learning 52, 2003, Section 3).
"""

import numpy as np
import pandas as pd
from scipy.stats import t as student

from wdrlr.paper.methods import METHODS
from wdrlr.paper.printed import published_values

LEVEL = 0.05

ASSESSMENT_COLUMNS = (
    "dataset n_splits method proposed shared second_best p_LR p_second_best dagger double_dagger "
    "p_LR_corrected p_second_best_corrected dagger_corrected double_dagger_corrected"
).split()

CLAIMS = {
    "one of the proposed methods wins": lambda marks: marks["proposed"],
    "it wins strictly (no tie with another method)": lambda marks: marks["proposed"] & ~marks["shared"],
    "it wins significantly over all others": lambda marks: marks["proposed"] & marks["double_dagger"],
}
"""The paper's claims about 12, 9 and 7 of its 14 categorical data sets, as conditions on a winner's marks."""


def p_value(differences: np.ndarray, test_to_train: float = 0.0) -> float:
    """p-value of the one-sided test that the mean difference is below 0.

    If all differences are the same, they have no variance; then it is that of the sign test, 2^-J or 1.

    Parameters
    ----------
    differences
        Errors of one method less those of the other, shape (J,), J >= 2.
    test_to_train
        n_test / n_train for the test of Nadeau and Bengio, 0 for the paper's.

    Raises
    ------
    ValueError
        If there are fewer than two differences.
    """
    J = np.size(differences)
    if J < 2:
        raise ValueError(f"a t-test needs at least 2 splits, got {J}")
    return float(p_values(np.asarray(differences, dtype=float), test_to_train))


def p_values(differences: np.ndarray, test_to_train: float = 0.0) -> np.ndarray:
    """`p_value` along the last axis of an array of shape (..., J)."""
    J = differences.shape[-1]
    mean, variance = differences.mean(axis=-1), differences.var(axis=-1, ddof=1)
    spread = np.ptp(differences, axis=-1) > 0
    t = mean / np.sqrt(np.where(spread, variance, 1.0) * (1 / J + test_to_train))
    return np.where(spread, student.cdf(t, J - 1), np.where(mean < 0, 0.5**J, 1.0))


def assess_wins(rows: pd.DataFrame, statistic: str) -> pd.DataFrame:
    """The winners of every data set with their p-values and daggers.

    Winners have the smallest `statistic` of the test errors in per cent at two decimals, as printed. As in the paper,
    the second best to a proposed method is the best of the methods that are not proposed; for any other winner it is
    the best of all other methods. The tests are on means, as the paper's; whatever the p-value, there is no dagger
    where the winner's statistic is not below the other method's at two decimals.

    Parameters
    ----------
    rows
        Result rows (`wdrlr.paper.results.COLUMNS`) of one protocol, seed and tolerance.
    statistic
        "mean" or "median".

    Returns
    -------
    DataFrame with the columns dataset, n_splits, method (the winner; one row each if several tie), proposed (whether it
    is one of the paper's: DRO or r-DRO), shared (whether a method that is not proposed wins too), second_best, p_LR and
    p_second_best with dagger and double_dagger by the paper's test, and the same with the suffix _corrected by the test
    of Nadeau and Bengio. A p-value is nan, and its dagger False, if there is nothing to compare with. Data sets whose
    methods do not all have the same splits, or have fewer than two, are left out.
    """
    assessed = []
    for dataset, cells in rows.groupby("dataset", sort=False):
        errors = cells.pivot_table(index="split", columns="method", values="test_error")
        errors = errors[[name for name in METHODS if name in errors]]
        if errors.isna().any(axis=None) or len(errors) < 2:
            continue
        ratio = (cells["n_test"] / cells["n_train"]).iloc[0]
        level = 100 * errors.agg(statistic)
        shown = level.round(2)
        winners = level.index[shown == shown.min()]
        shared = not all(METHODS[name].is_proposed for name in winners)
        for winner in winners:
            rivals = [
                name
                for name in errors
                if name != winner and not (METHODS[winner].is_proposed and METHODS[name].is_proposed)
            ]
            second_best = level[rivals].idxmin() if rivals else ""
            row = {
                "dataset": dataset,
                "n_splits": len(errors),
                "method": winner,
                "proposed": METHODS[winner].is_proposed,
                "shared": shared,
                "second_best": second_best,
            }
            for suffix, test_to_train in (("", 0.0), ("_corrected", ratio)):
                for column, rival, dagger in (("LR", "LR", "dagger"), ("second_best", second_best, "double_dagger")):
                    comparable = rival in errors and rival != winner
                    p = p_value(errors[winner] - errors[rival], test_to_train) if comparable else np.nan
                    row[f"p_{column}{suffix}"] = p
                    row[f"{dagger}{suffix}"] = p < LEVEL and shown[winner] < shown[rival]
            assessed.append(row)
    return pd.DataFrame(assessed, columns=ASSESSMENT_COLUMNS)


def printed_marks(table: str) -> pd.DataFrame:
    """The winners, which the paper prints in bold: dataset, method, proposed, shared and both daggers."""
    printed = published_values(table)
    bold = printed[printed["best_overall_bold"] == 1].astype({"dagger": bool, "double_dagger": bool})
    proposed = bold["method"].map(lambda name: METHODS[name].is_proposed).astype(bool)
    marks = bold[["dataset", "method", "dagger", "double_dagger"]].assign(proposed=proposed)
    marks["shared"] = ~marks.groupby("dataset")["proposed"].transform("all")
    return marks.reset_index(drop=True)


def count_claims(assessed: pd.DataFrame, table: str) -> pd.DataFrame:
    """On how many of the assessed data sets the paper's claims hold.

    Returns
    -------
    DataFrame indexed by claim (`CLAIMS`) with the columns of (the number of data sets), paper (by its printed marks on
    the same data sets), ours (by the paper's test) and ours_corrected (by the test of Nadeau and Bengio).
    """
    corrected = assessed.assign(dagger=assessed["dagger_corrected"], double_dagger=assessed["double_dagger_corrected"])
    printed = printed_marks(table)
    sources = {
        "paper": printed[printed["dataset"].isin(assessed["dataset"])],
        "ours": assessed,
        "ours_corrected": corrected,
    }
    counts = pd.DataFrame(
        {
            name: [marks.loc[holds(marks).astype(bool), "dataset"].nunique() for holds in CLAIMS.values()]
            for name, marks in sources.items()
        },
        index=pd.Index(CLAIMS, name="claim"),
    )
    counts.insert(0, "of", assessed["dataset"].nunique())
    return counts
