"""Run the benchmarks: `python -m benchmarks.run [PART ...]`, from the project's folder.

Results are written to `benchmarks/results/` as they come, so an interrupted run resumes where it stopped; then
`benchmarks.report` writes the tables and the plot. `--quick` checks in a minute or two that all parts work.
"""

import argparse
import multiprocessing
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from benchmarks import report
from benchmarks.datasets import (
    KAPPAS,
    MIXED,
    as_numbers,
    label_cost,
    logistic_problem,
    logistic_table,
    synthetic,
    uci,
    uci_rows,
    with_metric,
)
from benchmarks.objective import TOL, race, timed, unmeasured
from benchmarks.solvers import OURS
from benchmarks.store import Store
from wdrlr.datasets import DATASETS
from wdrlr.estimators.classifier import WassersteinLogisticRegression, radius_max
from wdrlr.estimators.cross_validation import WassersteinLogisticRegressionCV
from wdrlr.estimators.path import fit_path
from wdrlr.model.problem import Problem
from wdrlr.model.threads import threads as in_threads
from wdrlr.paper.cells import run_cell
from wdrlr.paper.methods import METHODS
from wdrlr.paper.paths import project_root
from wdrlr.paper.printed import published_values
from wdrlr.paper.protocols import PROTOCOLS
from wdrlr.paper.runtimes import MAX_ITER
from wdrlr.solvers.closed_form import optimal_constant
from wdrlr.solvers.largest_radius import largest_useful_radius
from wdrlr.solvers.registry import SOLVERS, solve
from wdrlr.solvers.solution import Solution

LR_RADII = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
PENALTIES = (0.0, 0.5e-5, 0.5e-3, 0.5e-1, 0.5)
METRICS = (*(("raw", kappa) for kappa in ("0.1", "1", "m", "inf")), *(("unit", kappa) for kappa in ("0.1", "1", "m")))
"""Definition 2's metric and the one divided by n + m + kappa."""
SHARES = (0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99)
"""Radii of the window, in units of the largest useful one."""
NUMBER_SIZES = ((10_000, 200), (100_000, 50))
NUMBER_RADII = (0.001, 0.01, 0.05)
MANY_LEVELS = {
    "3,000 levels": (30_000, 5, (3000, 2, 3, 4, 5, 10)),
    "3 x 500 levels": (30_000, 5, (500, 500, 500, 2, 3, 4, 5, 10)),
}
"""N, n and the numbers of levels: one or three large features beside ten others."""
N_MIXED = 30_000
PATH_SHARES = np.geomspace(1e-3, 1.0, 20)
"""Radii of a path, in units of the largest useful one."""
SIZES = ((200, 10), (1000, 20), (2000, 50))
DRO_SIZES = ((1000, 50), (5000, 50), (10_000, 100))
SYNTHETIC_BALLS = (("1", 1e-2), ("m", 1e-2), ("m", 1e-1), ("m", 3e-1))
"""kappa and radius for synthetic data, in units of Definition 2's metric.

With kappa = 1 the adversary flips labels and hardly any feature, so that Algorithm 1 ends in its first rounds.
"""
TRACED_SYNTHETIC_BALLS = (("1", 1e-2), ("m", 1e-1))
TRACED_BALLS = (("1", 1e-3), ("m", 1e-2))
"""For the paper's data sets, in units of the metric divided by n + m + kappa."""
TRACED_SETS = ("breast-cancer", "lymphography", "house-votes-84")
ALGORITHM_1_SECONDS = 120.0
"""Algorithm 1 is run again only if twice the time of its last run is within this many seconds."""
GROWTH_SECONDS = 300.0
"""A fit of the parts growth and threads is ended after this many seconds."""
THREADS = (1, 2)
"""Of the part threads."""


def lr(store: Store, quick: bool) -> None:
    """Comparison with plain logistic regression, on all data sets, nine radii and both kappas."""
    for name in ("tic-tac-toe",) if quick else DATASETS:
        for kappa in KAPPAS:
            for radius in LR_RADII[:: 4 if quick else 1]:
                setting = {"data": name, "kappa": kappa, "radius": radius}
                if store.has(setting):
                    continue
                problem = uci(name, kappa, radius)
                rows = race(problem, [(OURS, TOL), ("logistic", 1e-4)], repeats=1 if quick else 3)
                sizes = {"N": problem.n_samples, "n": problem.n_numeric, "m": problem.n_categorical}
                sizes["k"] = problem.level_matrix.shape[1]
                closed = {"closed_form": optimal_constant(problem) is not None}
                store.add(setting, [row | sizes | closed for row in rows])


def window(store: Store, quick: bool) -> None:
    """Comparison with plain logistic regression at shares of the largest useful radius, on all data sets."""
    for name in ("tic-tac-toe",) if quick else DATASETS:
        for kappa in KAPPAS:
            for scale in ("raw", "unit"):
                balls = {
                    share: {"data": name, "kappa": kappa, "metric": scale, "share": share}
                    for share in SHARES[:: 4 if quick else 1]
                }
                missing = {share: ball for share, ball in balls.items() if not store.has(ball)}
                if not missing:
                    continue
                problem = with_metric(
                    uci_rows(name, "onehot", fold=False), kappa, 1.0, scale if scale == "unit" else None
                )
                largest = largest_useful_radius(problem.merged())
                for share, ball in missing.items():
                    posed = replace(problem, radius=share * largest)
                    rows = race(posed, [(OURS, TOL), ("logistic", 1e-4)], repeats=1 if quick else 3)
                    store.add(ball, [row | {"radius": posed.radius} for row in rows])


def numbers(store: Store, quick: bool) -> None:
    """Comparison with plain logistic regression on numbers alone, in three norms."""
    for N, n in ((200, 5),) if quick else NUMBER_SIZES:
        for norm in ("l1", "l2", "linf"):
            for kappa in ("1", "5", "inf"):
                for radius in NUMBER_RADII[:: 2 if quick else 1]:
                    setting = {"data": f"{N} x {n}", "norm": norm, "kappa": kappa, "radius": radius}
                    if not store.has(setting):
                        problem = logistic_problem(N, n, norm=norm, kappa=kappa, radius=radius)
                        store.add(setting, race(problem, [(OURS, TOL), ("logistic", 1e-4)], repeats=3))


def levels(store: Store, quick: bool) -> None:
    """Comparison with plain logistic regression on a sparse matrix, where features have hundreds of levels."""
    small = (60, 1, (10, 2))  # rows of thousands of levels would make a long warm-up
    for name, sizes in {"40 levels": (300, 1, (40, 2))}.items() if quick else MANY_LEVELS.items():
        for kappa in KAPPAS:
            for radius in (0.01, 0.1):
                setting = {"data": name, "kappa": kappa, "radius": radius}
                if not store.has(setting):
                    problem, few = (logistic_problem(*size, kappa=kappa, radius=radius) for size in (sizes, small))
                    store.add(setting, race(problem, [(OURS, TOL), ("logistic-sparse", 1e-4)], repeats=3, small=few))


def largest_radius(store: Store, quick: bool) -> None:
    """The largest useful radius, in fits at a tenth of it, on all data sets and on mixed rows."""
    N = 300 if quick else N_MIXED
    for name in [*(("tic-tac-toe",) if quick else DATASETS), f"{N} mixed"]:
        for kappa in KAPPAS:
            setting = {"data": name, "kappa": kappa}
            if store.has(setting):
                continue
            if name in DATASETS:
                problem = with_metric(uci_rows(name, "onehot", fold=False), kappa, 1.0)
            else:
                problem = logistic_problem(N, *MIXED, kappa=kappa, radius=1.0)
            (search,) = timed([lambda problem=problem: largest_useful_radius(problem.merged())], repeats=3)
            if search.note:
                fit = unmeasured(OURS, TOL, search.note)
            else:
                (fit,) = race(replace(problem, radius=0.1 * search.result), [(OURS, TOL)], repeats=3)
            row = {"solver": OURS, "seconds": search.seconds, "note": fit["note"], "fit_seconds": fit["seconds"]}
            largest = np.nan if search.note else search.result
            store.add(setting, [row | {"largest": largest, "gap": fit["upper"] - fit["lower"]}])


def path(store: Store, quick: bool) -> None:
    """Cross-validation and a path, against as many separate fits, on mixed rows."""
    N = 300 if quick else N_MIXED
    X, y = logistic_table(N, *MIXED)
    for kappa in KAPPAS:
        for task, compare in (("cross-validation", _cross_validation), ("path", _path)):
            setting = {"data": f"{N} mixed", "kappa": kappa, "task": task}
            if not store.has(setting):
                model = WassersteinLogisticRegression(label_cost=label_cost(kappa), tol=TOL)
                _one_by_one(model, X, y, [(0.01, np.arange(60))])  # a warm-up, as in `race`
                store.add(setting, [{"solver": OURS} | compare(model, X, y, repeats=1 if quick else 3)])


Outcome = tuple[np.ndarray, float]
"""Objectives of fits, and the largest gap."""


def _cross_validation(model: WassersteinLogisticRegression, X: pd.DataFrame, y: np.ndarray, repeats: int) -> dict:
    folds = list(StratifiedKFold().split(X, y))
    chooser = WassersteinLogisticRegressionCV(radii="auto", cv=folds, label_cost=model.label_cost, tol=TOL)

    def together() -> Outcome:
        chooser.fit(X, y)
        return np.array([chooser.objective_]), max(chooser.cv_results_["gap"].max(), chooser.gap_)

    def separate() -> Outcome:
        in_folds = [(radius, train) for train, _ in folds for radius in chooser.radii_]
        return _one_by_one(model, X, y, [*in_folds, (chooser.radius_, np.arange(len(y)))])

    return _compared(together, separate, repeats)


def _path(model: WassersteinLogisticRegression, X: pd.DataFrame, y: np.ndarray, repeats: int) -> dict:
    radii = radius_max(X, y, label_cost=model.label_cost) * PATH_SHARES

    def together() -> Outcome:
        fits = fit_path(X, y, radii, label_costs=[model.label_cost], tol=TOL)
        return fits["objective"].to_numpy(), fits["gap"].max()

    points = [(radius, np.arange(len(y))) for radius in radii]
    return _compared(together, partial(_one_by_one, model, X, y, points), repeats)


def _one_by_one(
    model: WassersteinLogisticRegression, X: pd.DataFrame, y: np.ndarray, points: Iterable[tuple[float, np.ndarray]]
) -> Outcome:
    """A fit for every pair of a radius and the numbers of the rows."""
    fits = [clone(model).set_params(radius=radius).fit(X.iloc[rows], y[rows]) for radius, rows in points]
    return np.array([fit.objective_ for fit in fits]), max(fit.gap_ for fit in fits)


def _compared(together: Callable[[], Outcome], separate: Callable[[], Outcome], repeats: int) -> dict:
    """A row; objectives of `together` are those of the last separate fits."""
    one, many = timed([together, separate], repeats)
    row = {"seconds": one.seconds, "separate_seconds": many.seconds, "note": one.note or many.note}
    if row["note"]:
        return row | {"fits": 0, "gap": np.nan, "difference": np.nan}
    (objectives, gap), (separately, largest) = one.result, many.result
    difference = np.abs(objectives - separately[-len(objectives) :]).max()
    return row | {"fits": len(separately), "gap": max(gap, largest), "difference": difference}


def algorithm1(store: Store, quick: bool) -> None:
    """Comparison with Algorithm 1 as in the paper: the solvers at several gaps, Algorithm 1 at 1, 2, 4, ... rounds."""
    for setting in _traced(quick):
        if store.has(setting):
            continue
        problem = _problem(**setting)
        gaps = (1e-2, TOL) if quick else (1e-2, 1e-3, 1e-4, 1e-5, TOL)
        rows = race(problem, [(OURS, gap) for gap in gaps], repeats=3)
        rows += race(problem, [("all-violated", gap) for gap in gaps])
        limit = 1.0 if quick else ALGORITHM_1_SECONDS
        rounds, seconds = 1, 0.0
        while 2 * seconds <= limit:
            start = perf_counter()
            (row,) = race(problem, [("algorithm1", rounds)])
            seconds = perf_counter() - start
            rows.append(row)
            if row["note"] or row["rounds"] < rounds:  # it ended by itself
                break
            rounds *= 2
        store.add(setting, rows)


def _traced(quick: bool) -> list[dict]:
    sizes = ((60, 4),) if quick else SIZES
    settings = [_setting(N, m, kappa, radius) for kappa, radius in TRACED_SYNTHETIC_BALLS for N, m in sizes]
    if not quick:
        settings += [
            {"data": name, "kappa": kappa, "radius": radius} for kappa, radius in TRACED_BALLS for name in TRACED_SETS
        ]
    return settings


def _setting(N: int, m: int, kappa: str, radius: float) -> dict:
    return {"data": f"{N} x {m}", "kappa": kappa, "radius": radius}


def _problem(data: str, kappa: str, radius: float) -> Problem:
    """The problem of a setting: N x m is synthetic, anything else a name."""
    N, times, m = data.partition(" x ")
    return synthetic(int(N), int(m), kappa, radius) if times else uci(data, kappa, radius)


def all_violated(store: Store, quick: bool) -> None:
    """Comparison with the variant with all violated cuts, on synthetic data."""
    for N, m in ((60, 4),) if quick else SIZES:
        for kappa, radius in SYNTHETIC_BALLS:
            setting = _setting(N, m, kappa, radius)
            if not store.has(setting):
                store.add(setting, race(_problem(**setting), [(OURS, TOL), ("all-violated", TOL)], repeats=3))


def dro(store: Store, quick: bool) -> None:
    """Comparison with the package `dro`: 0/1 data as numbers, which both solve, and as categories, which only we do."""
    if find_spec("dro") is None:
        print("dro: skipped, since the package `dro` cannot be imported here.")
        return
    for N, m in ((60, 4),) if quick else DRO_SIZES:
        for radius in (1e-3, 1e-2):
            setting = _setting(N, m, "1", radius)
            if store.has(setting):
                continue
            problem = _problem(**setting)
            numbers = race(as_numbers(problem), [(OURS, TOL), ("dro", 0.0)], repeats=3)
            categories = race(problem, [(OURS, TOL)], repeats=3)
            rows = [row | {"features": "numbers"} for row in numbers]
            rows += [row | {"features": "categories"} for row in categories]
            store.add(setting, rows)


def growth(store: Store, quick: bool) -> None:
    """Seconds and memory as N and m grow, each fit in a separate process."""
    in_n = [(100, 5), (300, 5)] if quick else [(10**3, 50), (10**4, 50), (10**5, 50), (10**6, 50)]
    in_m = [] if quick else [(1000, m) for m in (10, 100, 300, 1000)]
    for N, m in in_n + in_m:
        for kappa, radius in TRACED_SYNTHETIC_BALLS:
            setting = _setting(N, m, kappa, radius)
            if not store.has(setting):
                store.add(setting, [{"N": N, "m": m} | _in_own_process(setting)])


def threads(store: Store, quick: bool) -> None:
    """Seconds on a million rows by the number of threads, each fit in a separate process."""
    N, m = (300, 5) if quick else (10**6, 50)
    for kappa, radius in TRACED_SYNTHETIC_BALLS:
        for count in THREADS:
            setting = _setting(N, m, kappa, radius)
            if not store.has(setting | {"threads": count}):
                store.add(setting | {"threads": count}, [{"N": N, "m": m} | _in_own_process(setting, count)])


def _in_own_process(setting: dict, n_threads: int = 1) -> dict:
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_grow, args=(sender, setting, n_threads))
    process.start()
    sender.close()
    try:
        if receiver.poll(GROWTH_SECONDS):
            return receiver.recv()
        note = f"not finished in {GROWTH_SECONDS:g} s"
    except EOFError:
        note = "the process died"
    finally:
        process.kill()
        process.join()
    return unmeasured(OURS, TOL, note)


def _grow(sender, setting: dict, n_threads: int) -> None:
    with in_threads(n_threads):
        sender.send(race(_problem(**setting), [(OURS, TOL)], repeats=3)[0])


def table1(store: Store, quick: bool) -> None:
    """One split of Table 1 for every data set and method, cross-validation included, with our solver."""
    names = ["tic-tac-toe"] if quick else list(dict.fromkeys(published_values("table1")["dataset"]))
    for name in names:
        for method in (METHODS["LR"], METHODS["PI"]) if quick else METHODS.values():
            setting = {"data": name, "method": method.name}
            if store.has(setting):
                continue
            start = perf_counter()
            cell = run_cell(name, PROTOCOLS["code"], method, split=0, seed=0, tol=TOL, solver=OURS)
            seconds = perf_counter() - start
            columns = ("solver", "n_fits", "n_uncertified")
            store.add(setting, [{"seconds": seconds} | {column: cell[column] for column in columns}])


def certify(store: Store, quick: bool) -> None:
    """Whether every fit is certified: all data sets, nine radii, seven metrics, five penalties, two codings."""
    for name in ("tic-tac-toe",) if quick else DATASETS:
        for coding in ("pm1", "onehot"):
            for rows in ("training part", "four folds of it"):
                problem = uci_rows(name, coding, fold=rows != "training part")
                shared = SOLVERS[OURS].shared(problem)
                for scale, kappa in METRICS[:: 4 if quick else 1]:
                    setting = {"data": name, "coding": coding, "rows": rows, "metric": scale, "kappa": kappa}
                    if not store.has(setting):
                        fits = _fits(problem, shared, scale, kappa, quick)
                        store.add(setting, [_summary(*fits)])


def _fits(problem: Problem, shared: dict, scale: str, kappa: str, quick: bool) -> tuple[list[Solution], float]:
    """The solutions for all radii and penalties, and the seconds they took."""
    start, solutions = perf_counter(), []
    for radius in LR_RADII[:: 4 if quick else 1]:
        posed = with_metric(problem, kappa, radius, "unit" if scale == "unit" else None)
        for gamma in PENALTIES[:: 4 if quick else 1]:
            penalty = np.full(problem.n_coefficients, gamma)
            solutions.append(solve(replace(posed, penalty=penalty), OURS, shared, "CLARABEL", TOL, MAX_ITER))
    return solutions, perf_counter() - start


def _summary(solutions: list[Solution], seconds: float) -> dict:
    gaps, rounds = [solution.gap for solution in solutions], [solution.n_rounds for solution in solutions]
    return {
        "solver": OURS,
        "seconds": seconds,
        "fits": len(solutions),
        "certified": sum(gap <= TOL for gap in gaps),
        "largest_gap": max(gaps),
        "closed_form": rounds.count(0),
        "median_rounds": np.median(rounds),
        "largest_rounds": max(rounds),
    }


PARTS: dict[str, Callable[[Store, bool], None]] = {
    "lr": lr,
    "window": window,
    "numbers": numbers,
    "levels": levels,
    "radius-max": largest_radius,
    "path": path,
    "algorithm1": algorithm1,
    "all-violated": all_violated,
    "dro": dro,
    "growth": growth,
    "threads": threads,
    "table1": table1,
    "certify": certify,
}


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__.partition("\n")[0])
    parser.add_argument("part", nargs="*", help=f"any of {', '.join(PARTS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="tiny data; results go to a temporary folder by default")
    parser.add_argument("--results-dir", type=Path, help="default: benchmarks/results")
    options = parser.parse_args(arguments)
    unknown = [part for part in options.part if part not in PARTS]
    if unknown:
        parser.error(f"unknown part {unknown[0]!r}; choose from {', '.join(PARTS)}")
    folder = options.results_dir or (
        Path(tempfile.mkdtemp(prefix="benchmarks-")) if options.quick else project_root() / "benchmarks" / "results"
    )
    folder.mkdir(parents=True, exist_ok=True)
    for part in options.part or PARTS:
        print(part, "-", PARTS[part].__doc__.splitlines()[0], flush=True)
        PARTS[part](Store(folder, part), options.quick)
    print(f"report: {report.write(folder)}")


if __name__ == "__main__":
    main()
