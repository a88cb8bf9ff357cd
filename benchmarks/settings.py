"""What each constant of the interior-point method is worth: steps and failures with it divided and multiplied by 3.

    python -m benchmarks.settings --output benchmarks/results/settings.csv

Each row is one constant at one value: the total of Newton steps on a fixed set of fits over that with the values as
they are, and the number of fits that were not certified to the tolerance. Steps do not depend on the machine's speed.
"""

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from benchmarks.datasets import uci, uci_rows, with_metric
from wdrlr.model.problem import Problem
from wdrlr.solvers.interior_point.coordinates import Coordinates
from wdrlr.solvers.interior_point.method import minimise
from wdrlr.solvers.interior_point.settings import SETTINGS, Settings

DATASETS = (
    *("hayes-roth", "balance-scale", "lymphography", "primary-tumor", "house-votes-84", "breast-cancer"),
    *("tic-tac-toe", "contraceptive", "credit-approval"),
)
KAPPAS = ("1", "m")
RADII = (1e-4, 1e-2, 0.1)
TOL = 1e-7
FACTOR = 3.0


def problems() -> Iterator[Problem]:
    """Each set boxed, -1/+1, at a part of the radii, and free, 0/1, at others, without and with a penalty."""
    for at, name in enumerate(DATASETS):
        for turn, kappa in enumerate(KAPPAS):
            for radius in RADII:
                yield uci(name, kappa, radius * 0.3)
            free = with_metric(uci_rows(name, "onehot", fold=False), kappa, RADII[(at + turn) % len(RADII)])
            yield free
            yield replace(free, penalty=np.where(np.arange(free.n_coefficients) > 0, 0.003, 0.0))


def tried(value: float) -> list[float]:
    """The values to try in place of one: a third and three times it; a share less than 1 stays below 1."""
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
            solution, _ = minimise(problem, Coordinates(problem), TOL, 1000, settings=settings)
            steps += solution.n_rounds
            failed += not solution.gap <= TOL
    return steps, failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="a csv file to write the table to")
    arguments = parser.parse_args()
    steps, failed = run(SETTINGS)
    rows = [("as they are", np.nan, 1.0, failed)]
    print(f"{sum(1 for _ in problems())} fits, {steps} steps, {failed} not certified")
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
