"""Counts over data sets, such as wins, as our splits give them and as other random splits may.

The errors of all methods on the splits of a data set are a `Sample`, redrawn many times by `Sample.redraw`. A count is
a function of a sample that works on all draws at once; `Splits.tally` sums it over the data sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from wdrlr.paper.differences import FAR, FEWEST_SPLITS
from wdrlr.paper.methods import METHODS
from wdrlr.paper.significance import LEVEL, p_values
from wdrlr.paper.tables import STATISTICS, median_standard_error, select_datasets

N_REDRAWS = 2000
"""Draws of new splits behind a range."""

ROUNDING = 1e-9
"""Percentage points that are rounding."""

NAMES = list(METHODS)
"""The methods in the order of the columns of a sample."""

PROPOSED = np.array([METHODS[name].is_proposed for name in NAMES])
"""Which of them the paper proposes."""


@dataclass(frozen=True)
class Sample:
    """The errors in per cent of all methods on the splits of one data set, several times if redrawn.

    Parameters
    ----------
    errors
        Shape (draws, J, methods); the methods in the order of `METHODS`.
    statistic
        "mean" or "median" over the splits.
    test_to_train
        n_test / n_train.
    """

    errors: np.ndarray
    statistic: str
    test_to_train: float

    def levels(self) -> np.ndarray:
        """The statistic, shape (draws, methods)."""
        return getattr(np, self.statistic)(self.errors, axis=1)

    def standard_errors(self) -> np.ndarray:
        """Those of the statistic, as `summarise_errors` has them, shape (draws, methods)."""
        if self.statistic == "median":
            return median_standard_error(self.errors, axis=1)
        return self.errors.std(axis=1, ddof=1) / np.sqrt(self.errors.shape[1])

    def redraw(self, n: int, rng: np.random.Generator) -> Sample:
        """What other random splits may give, n times, from the only draw that there is.

        Splits are drawn with replacement twice, one draw from the other: for our means, which are those of random
        splits, and for the means of other ones. Each draw's variance is (J - 1) / J of that of the errors, which is
        made up for.
        """
        (errors,) = self.errors
        J = len(errors)
        drawn = np.take_along_axis(rng.integers(J, size=(n, J)), rng.integers(J, size=(n, J)), axis=1)
        centre = self.levels()
        return replace(self, errors=centre + (errors[drawn] - centre) * np.sqrt(J / (J - 1)))


@dataclass(frozen=True)
class Splits:
    """The rows behind one of the paper's tables of errors, with the errors by data set, as computed and redrawn."""

    table: str
    rows: pd.DataFrame
    samples: dict[str, Sample]
    redrawn: dict[str, Sample]

    @classmethod
    def of(cls, rows: pd.DataFrame, table: str) -> Splits:
        """From result rows (`wdrlr.paper.results.COLUMNS`) of one protocol, seed and tolerance.

        Data sets count if all methods have the same splits, two or more.
        """
        samples = {}
        for dataset, cells in rows.groupby("dataset", sort=False):
            errors = 100 * cells.pivot_table(index="split", columns="method", values="test_error").reindex(
                columns=NAMES
            )
            if len(errors) > 1 and not errors.isna().any(axis=None):
                ratio = (cells["n_test"] / cells["n_train"]).iloc[0]
                samples[str(dataset)] = Sample(errors.to_numpy()[None], STATISTICS[table], ratio)
        rng = np.random.default_rng(0)
        redrawn = {dataset: sample.redraw(N_REDRAWS, rng) for dataset, sample in samples.items()}
        return cls(table, rows, samples, redrawn)

    @property
    def complete(self) -> bool:
        """Whether all of the paper's data sets count."""
        return len(self.samples) == len(select_datasets(self.table, "all"))

    def describe(self) -> str:
        """How many of the paper's data sets are there."""
        return f"{len(self.samples)} of {len(select_datasets(self.table, 'all'))} data sets done"

    @property
    def few(self) -> bool:
        """Whether a data set has fewer than `FEWEST_SPLITS`."""
        return any(sample.errors.shape[1] < FEWEST_SPLITS for sample in self.samples.values())

    def n_splits(self) -> str:
        """The fewest and the most splits of a data set, as text."""
        return ends([sample.errors.shape[1] for sample in self.samples.values()])

    def tally(self, count: Callable[[Sample], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Sums over the data sets of ``count``, an array (draws, k): of our splits (k,), and of the redrawn ones."""
        ours, again = (
            np.sum([count(sample) for sample in samples.values()], axis=0) for samples in (self.samples, self.redrawn)
        )
        return ours[0], again

    def changed(self, compared: pd.DataFrame) -> Splits:
        """With the mean changes of a variant (rows of `wdrlr.paper.differences.compare_variants`) added to all errors.

        Errors of a data set and method on which it was not tried stay as they are.
        """
        shifts = {name: np.zeros(len(NAMES)) for name in self.samples}
        for cell in compared.itertuples():
            if cell.dataset in shifts:
                shifts[cell.dataset][NAMES.index(cell.method)] = cell.change
        samples, redrawn = (
            {name: replace(one, errors=one.errors + shifts[name]) for name, one in all_of_them.items()}
            for all_of_them in (self.samples, self.redrawn)
        )
        return replace(self, samples=samples, redrawn=redrawn)


def ends(numbers: Iterable[float], form: str = "d") -> str:
    """The smallest and the largest of some numbers as text, such as "2 to 20", one of them if they look alike; "0" for
    none."""
    known = [*numbers] or [0]
    return " to ".join(dict.fromkeys(format(one, form) for one in (min(known), max(known))))


def far_by_chance(splits: Splits, n_printed: int) -> np.ndarray:
    """How many values of a table chance makes `FAR` from those of another one, in each draw, shape (draws,).

    Both tables are of random splits, drawn from ours with replacement, the other one of ``n_printed``. All methods of
    a data set share their splits, here as in the tables: where chance makes one far, it does so to others.
    """
    rng = np.random.default_rng(0)
    counts = np.zeros(N_REDRAWS, dtype=int)
    for sample in splits.samples.values():
        (errors,) = sample.errors
        ours, printed = (
            replace(sample, errors=errors[rng.integers(len(errors), size=(N_REDRAWS, n))])
            for n in (len(errors), n_printed)
        )
        se = ours.standard_errors()
        counts += ((np.abs(ours.levels() - printed.levels()) > FAR * se) & (se > ROUNDING)).sum(axis=1)
    return counts


def spread(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ends of the central 95 % of the draws."""
    low, high = np.quantile(draws, [0.025, 0.975], axis=0, method="nearest")
    return low, high


def count_wins(sample: Sample) -> np.ndarray:
    """Whether a proposed method is best, ties included; best alone; significantly so by the paper's test, by the other.

    As `wdrlr.paper.significance.assess_wins`; levels are compared at two decimals, as printed.
    """
    ahead, level = _difference(sample)
    proposed, other = _best(level.round(2))
    wins = proposed <= other
    return np.stack([wins, proposed < other, *(wins & (p < LEVEL) for p in _p_values(sample, ahead))], axis=1)


def count_losses(sample: Sample) -> np.ndarray:
    """Whether no proposed method is best; whether then one is second best; and significantly worse, by both tests."""
    ahead, level = _difference(sample)
    rounded = level.round(2)
    proposed, other = _best(rounded)
    lost = proposed > other
    second = (rounded[:, ~PROPOSED] < proposed[:, None]).sum(axis=1) == 1
    return np.stack([lost, lost & second, *(lost & (p < LEVEL) for p in _p_values(sample, -ahead))], axis=1)


def count_group_wins(sample: Sample) -> np.ndarray:
    """Whether each method has the smallest error of its group, ties included."""
    rounded = sample.levels().round(2)
    groups = np.array([METHODS[name].group for name in NAMES])
    best = np.stack([rounded[:, groups == group].min(axis=1) for group in groups], axis=1)
    return rounded == best


def count_margins(sample: Sample) -> np.ndarray:
    """Whether the best proposed method and the best other one are within two standard errors of each other."""
    ahead, _ = _difference(sample)
    errors = ahead.std(axis=1, ddof=1) / np.sqrt(ahead.shape[1])
    return (np.abs(ahead.mean(axis=1)) <= FAR * errors + ROUNDING)[:, None]


def _difference(sample: Sample) -> tuple[np.ndarray, np.ndarray]:
    """Errors of the best proposed method less those of the best other one, shape (draws, J), and all levels."""
    level = sample.levels()
    of_proposed, of_other = (
        np.take_along_axis(sample.errors, np.where(which, level, np.inf).argmin(axis=1)[:, None, None], axis=2)[..., 0]
        for which in (PROPOSED, ~PROPOSED)
    )
    return of_proposed - of_other, level


def _best(levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return levels[:, PROPOSED].min(axis=1), levels[:, ~PROPOSED].min(axis=1)


def _p_values(sample: Sample, differences: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return p_values(differences), p_values(differences, sample.test_to_train)
