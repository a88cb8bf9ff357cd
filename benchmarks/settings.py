"""How sensitive the interior-point method is to its constants: steps and failures with each divided or multiplied by 3.

    python -m benchmarks.settings --output benchmarks/results/settings.csv

Each row is one constant at one value: the total number of Newton steps on a fixed set of fits, as a ratio to that with
the current values, and the number of fits not certified to the tolerance. Steps do not depend on the machine's speed.
"""

import argparse
import warnings
from dataclasses import fields, replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from benchmarks.datasets import KAPPAS, uci_rows, with_metric
from wdrlr.model.metric import NORMS
from wdrlr.model.problem import Problem
from wdrlr.solvers.interior_point.coordinates import Coordinates
from wdrlr.solvers.interior_point.method import minimise
from wdrlr.solvers.interior_point.settings import SETTINGS, Settings
from wdrlr.solvers.largest_radius import largest_useful_radius

DATASETS = (
    *("hayes-roth", "balance-scale", "lymphography", "primary-tumor", "house-votes-84", "breast-cancer"),
    *("tic-tac-toe", "contraceptive", "credit-approval"),
)
SHARES = (0.003, 0.1, 0.9)
"""The radii, as shares of the largest useful radius."""
DEAR = (("audiology", 0.1), ("audiology", 0.7))
"""Data sets and shares, kappa = m: fits whose steps a small change can multiply."""
TIGHT = 1e-9
"""The gap that these fits are certified to."""
FACTOR = 3.0


@cache
def problems() -> list[Problem]:
    """The data sets with a tight box and, without a box, with norms in turn, with a penalty at radius 0, and above."""
    posed = []
    for index, name in enumerate(DATASETS):
        for turn, kappa in enumerate(KAPPAS):
            free = with_metric(uci_rows(name, "onehot", fold=False), kappa, 0.0)
            penalised = replace(free, penalty=np.where(np.arange(free.n_coefficients) > 0, 0.003, 0.0))
            largest = largest_useful_radius(free)
            norm = list(NORMS)[(index + turn) % 3]
            metric = replace(free.metric, norm=norm)
            for share in SHARES:
                posed.append(replace(free, radius=share * largest, metric=metric))
                posed.append(replace(free, radius=share * largest, coef_bound=np.full(free.n_coefficients, 0.3)))
            posed.append(replace(penalised, radius=SHARES[(index + turn) % 3] * largest))
            posed.append(penalised)
    for name, share in DEAR:
        free = with_metric(uci_rows(name, "onehot", fold=False), "m", 0.0)
        posed.append(replace(free, radius=share * largest_useful_radius(free)))
    return posed


def tried(value: float) -> list[float]:
    """The values to try in place of a given one: a third of it and three times it, but a share stays below 1."""
    if isinstance(value, int):
        return [max(1, round(value / FACTOR)), round(value * FACTOR)]
    larger = value * FACTOR
    return [value / FACTOR, min(larger, (1 + value) / 2) if value < 1 else larger]


def run(settings: Settings) -> tuple[int, int]:
    """Steps in total, and fits that are not certified."""
    steps, failed = 0, 0
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for problem in problems():
            coordinates, start = Coordinates(problem), None
            for radius in (problem.radius, 0.7 * problem.radius):  # the second starts from the solution of the first
                posed = replace(problem, radius=radius)
                start, _ = minimise(posed, coordinates, TIGHT, 1000, start, settings)
                steps += start.n_rounds
                failed += not start.gap <= TIGHT
    return steps, failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="a csv file to write the table to")
    arguments = parser.parse_args()
    steps, failed = run(SETTINGS)
    rows = [("as they are", np.nan, 1.0, failed)]
    print(f"{2 * len(problems())} fits, {steps} steps, {failed} not certified")
    for field in tqdm(fields(Settings)):
        for value in tried(getattr(SETTINGS, field.name)):
            now, failed = run(replace(SETTINGS, **{field.name: value}))
            rows.append((field.name, value, now / steps, failed))
        table = pd.DataFrame(rows, columns=["constant", "value", "steps", "not_certified"])
        if arguments.output:
            table.to_csv(arguments.output, index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
