"""What a described adversary costs: fits with costs of every kind beside those with the paper's metric.

    python -m benchmarks.costs --output benchmarks/results/costs.csv

Each row is one fit, the best of three, on the training part of split 0 of a data set: its seconds, those of the paper's
metric on the same problem in the same run, and the objectives of both. Costs are drawn at random from a fixed seed, but
"ordinal", which takes the levels in their order, and "fixed", where the feature with the largest range of scores in a
plain fit may not change.
"""

import argparse
import zlib
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from benchmarks.datasets import KAPPAS, uci_rows, with_metric
from benchmarks.objective import TOL, timed
from wdrlr.datasets import DATASETS
from wdrlr.model.metric import LevelCosts
from wdrlr.model.problem import Problem
from wdrlr.solvers.interior_point.method import solve_tailored
from wdrlr.solvers.solution import Solution

KINDS = ("features", "fixed", "ordinal", "matrices", "codes")
RADII = (1e-3, 1e-1)


def with_costs(problem: Problem, kind: str, seed: int, plain: Solution) -> Problem:
    """The problem with level costs of that kind around 1; "codes" is the adversary of the paper's public code."""
    if kind == "codes":
        return replace(problem, any_code=True)
    rng = np.random.default_rng(seed)
    costs: list[LevelCosts] = []
    for K in problem.n_levels:
        steps = np.abs(np.subtract.outer(np.arange(K), np.arange(K)))
        random = rng.uniform(0.5, 2.0, (K, K)) * (steps > 0)
        costs.append({"features": float(random.max()), "ordinal": steps * 1.0, "matrices": random}.get(kind, 1.0))
    if kind == "fixed":
        scores = problem.level_scores(plain.b)
        ranges = np.maximum.reduceat(scores, problem.offsets) - np.minimum.reduceat(scores, problem.offsets)
        costs[int(np.argmax(ranges))] = np.inf
    return replace(problem, metric=replace(problem.metric, level_costs=tuple(costs)))


def best_of_three(problem: Problem) -> tuple[Solution, float]:
    """The fit, and the least seconds of three."""
    (fit,) = timed([partial(solve_tailored, problem, tol=TOL)], repeats=3)
    return fit.result, fit.seconds


def rows_of(name: str) -> list[dict]:
    """The rows of one data set."""
    rows = []
    for kappa in KAPPAS:
        for radius in RADII:
            problem = with_metric(uci_rows(name, "onehot", fold=False), kappa, radius)
            coded = with_metric(uci_rows(name, "pm1", fold=False), kappa, radius)
            plain, least = best_of_three(problem)
            for kind in KINDS:
                posed = with_costs(coded if kind == "codes" else problem, kind, zlib.crc32(name.encode()), plain)
                solution, seconds = best_of_three(posed)
                rows.append(
                    {
                        "dataset": name,
                        "kappa": kappa,
                        "radius": radius,
                        "costs": kind,
                        "seconds": seconds,
                        "seconds_plain": least,
                        "ratio": seconds / least,
                        "objective": solution.upper,
                        "objective_plain": plain.upper,
                        "gap": solution.gap,
                        "steps": solution.n_rounds,
                    }
                )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="a csv file to write the table to")
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS))
    arguments = parser.parse_args()
    rows: list[dict] = []
    with threadpool_limits(1):
        for name in tqdm(arguments.datasets):
            rows += rows_of(name)
            if arguments.output:
                pd.DataFrame(rows).to_csv(arguments.output, index=False)
    table = pd.DataFrame(rows)
    print(table.groupby("costs")["ratio"].describe()[["min", "50%", "max"]].round(2).to_string())
    print(f"largest gap {table['gap'].max():.1e}")


if __name__ == "__main__":
    main()
