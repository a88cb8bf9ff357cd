"""Hashes of the coefficients of a fixed set of fits, to check that a change of the code moves no digit.

    python -m benchmarks.fingerprint --output before.csv
    python -m benchmarks.fingerprint --against before.csv      # after the change; exit code 1 if a fit differs

Digits depend on the machine and on the versions of NumPy and SciPy, so hashes from one machine are no use on another.
Sets that are neither shipped nor in WDRLR_DATA are left out.
"""

import argparse
import sys
import warnings
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd
from threadpoolctl import threadpool_limits

from wdrlr import WassersteinLogisticRegression, load_dataset
from wdrlr.datasets import DATASETS, DataUnavailableError
from wdrlr.paper.baselines import ContinuousLogisticRegression, ProfileInferenceLogisticRegression

RADII = (0.0, 1e-6, 1e-4, 1e-2, 0.1, 1.0)
VARIATIONS: tuple[dict[str, Any], ...] = (
    {},
    {"coding": "pm1", "metric_scale": "unit", "coef_bound": 100.0},
    {"l1_penalty": 1e-3},
    {"l1_penalty": 0.01, "penalize_intercept": True, "coding": "pm1"},
    {"coef_bound": 0.5},
    {"fit_intercept": False},
    {"norm": "l2"},
    {"norm": "linf"},
)
"""Each data set is fitted with each of these at two of the radii, in turn."""
SMALL_SET = "hayes-roth"
OTHERS: dict[str, Any] = {
    "Algorithm 1": WassersteinLogisticRegression(0.01, 1.0, solver="column-constraint"),
    "monolithic": WassersteinLogisticRegression(0.01, 1.0, solver="monolithic"),
    "p = 2": WassersteinLogisticRegression(0.01, 1.0, p=2.0),
    "p = 1/2": WassersteinLogisticRegression(0.1, float("inf"), p=0.5),
    "MT": ContinuousLogisticRegression(0.01, coding="pm1", metric_scale="unit"),
    "MT, kappa = m": ContinuousLogisticRegression(0.1, "n_categorical"),
    "PI": ProfileInferenceLogisticRegression(),
}
"""Other solvers and methods, on one small set."""


def fits(names: list[str]) -> Iterator[tuple[str, Any, Any, Any, Any]]:
    """Name, model, X, y and weights of every fit."""
    for index, name in enumerate(names):
        try:
            data = load_dataset(name)
        except DataUnavailableError:
            continue
        X = data.X.fillna(data.X.median(numeric_only=True))  # no category is missing
        weights = [1.0 + row % 3 for row in range(len(data.y))]
        for turn, options in enumerate(VARIATIONS):
            for kappa in (1.0, "n_categorical"):
                radius = RADII[(index + turn + (kappa != 1.0)) % len(RADII)]
                weighted = (index + turn) % 3 == 0
                described = f"{name} kappa={kappa} radius={radius:g} {options}{' weighted' if weighted else ''}"
                model = WassersteinLogisticRegression(radius, kappa, **options)
                yield described, model, X, data.y, weights if weighted else None
        if name == SMALL_SET:
            for described, model in OTHERS.items():
                yield f"{name} {described}", model, X, data.y, None


def fingerprints(names: list[str]) -> pd.DataFrame:
    """One row per fit: name, hash of the coefficients, objective, gap and number of steps."""
    rows = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, model, X, y, weights in fits(names):
            model.fit(X, y, weights)
            digest = sha256(model.solution_.b.tobytes()).hexdigest()[:16]
            rows.append((name, digest, model.objective_, model.gap_, model.n_iter_))
    return pd.DataFrame(rows, columns=["fit", "hash", "objective", "gap", "steps"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="a csv file to write the hashes to")
    parser.add_argument("--against", type=Path, help="an earlier file to compare with")
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=list(DATASETS), help="only these data sets")
    arguments = parser.parse_args()
    now = fingerprints(arguments.datasets)
    print(f"{len(now)} fits, together {sha256(''.join(now['hash']).encode()).hexdigest()[:16]}")
    if arguments.output:
        now.to_csv(arguments.output, index=False)
    if arguments.against:
        both = pd.read_csv(arguments.against).merge(now, on="fit", how="outer", suffixes=("_before", ""))
        moved = both[both["hash"] != both["hash_before"]]
        print(f"{len(moved)} of {len(both)} differ" if len(moved) else "no digit has moved")
        if len(moved):
            print(moved.to_string(index=False))
            sys.exit(1)


if __name__ == "__main__":
    main()
