"""The experiments of Tables 1 to 4: splits, cross-validation and the cells they are made of.

A cell is one method on one random split of one data set. It depends only on its own description, so cells can be
computed in any order, by any number of workers, and always give the same numbers (except for the seconds).
"""

import os
import threading
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from functools import cache, lru_cache
from multiprocessing import parent_process
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from wdrlr.datasets import load_dataset
from wdrlr.estimators.cross_validation import choose_point
from wdrlr.estimators.formulation import Formulation, Posed
from wdrlr.estimators.solving import Solving
from wdrlr.extras import required
from wdrlr.paper.methods import METHODS, Method
from wdrlr.paper.protocols import N_FOLDS, PROTOCOLS, TEST_SHARE, Protocol
from wdrlr.paper.results import load_rows, other_versions, save_rows, to_frame, versions
from wdrlr.paper.store import Row, check_writable
from wdrlr.solvers.conic import choose_conic_solver
from wdrlr.solvers.registry import SOLVERS
from wdrlr.solvers.solution import Solution

BACKENDS = ("loky", "sequential", "dask")

# A dask worker can have several threads, but a cell's settings of warnings and BLAS threads are for the whole process.
_ONE_CELL_AT_A_TIME = threading.Lock()


class Cell(NamedTuple):
    """One method on one split of one data set."""

    dataset: str
    protocol: Protocol
    method: Method
    split: int
    seed: int
    tol: float
    solver: str

    @property
    def key(self) -> tuple:
        """The cell's key in the results store, in the order of `wdrlr.paper.results.KEY`."""
        return (self.dataset, self.protocol.name, self.method.name, self.seed, self.tol, self.solver, self.split)


Outcome = tuple[Cell, Row | None, str]
"""A cell with its row, or with None and the traceback of its failure."""


def plan_cells(
    datasets: Sequence[str],
    methods: Sequence[str],
    *,
    n_splits: int,
    first_split: int = 0,
    seed: int = 0,
    protocol: str = "code",
    tol: float = 1e-6,
    solver: str = "tailored",
) -> list[Cell]:
    """The cells of a table: every method on the splits first_split, ..., first_split + n_splits - 1.

    All methods of one split come before the next split, so that an unfinished run can compare methods on equal splits.
    ``["all"]`` stands for all methods.

    Raises
    ------
    ValueError
        If a method or the protocol is unknown, a method is named twice, or a number is out of range.
    """
    if list(methods) == ["all"]:
        methods = list(METHODS)
    if not methods:
        raise ValueError(f"methods is empty; choose from {', '.join(METHODS)}")
    for i, name in enumerate(methods):
        if name not in METHODS:
            raise ValueError(f"unknown method {name!r}; choose from {', '.join(METHODS)}")
        if name in methods[:i]:
            raise ValueError(f"method {name!r} is named twice")
    if protocol not in PROTOCOLS:
        raise ValueError(f"unknown protocol {protocol!r}; choose from {', '.join(PROTOCOLS)}")
    for name, value, least in (("n_splits", n_splits, 1), ("first_split", first_split, 0), ("seed", seed, 0)):
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}")
    if not 0 < tol < np.inf:
        raise ValueError(f"tol must be a positive number, got {tol}")
    if solver not in SOLVERS:
        raise ValueError(f"unknown solver {solver!r}; choose from {', '.join(SOLVERS)}")
    return [
        Cell(dataset, PROTOCOLS[protocol], METHODS[method], split, seed, float(tol), solver)
        for dataset in datasets
        for split in range(first_split, first_split + n_splits)
        for method in methods
    ]


def run_cells(
    cells: Sequence[Cell], results_dir: Path, *, n_jobs: int = 1, backend: str = "loky", scheduler: str = ""
) -> pd.DataFrame:
    """Compute the cells that `results_dir` does not hold yet, and return the rows of all of them.

    Each finished cell is saved at once, by this process. A cell that fails, or whose worker process is killed (out of
    memory, say) even when it runs alone, does not stop the others: a warning at the end names it, and its row is
    missing from the result. Another call tries it again.

    Parameters
    ----------
    cells
        The cells wanted, see `plan_cells`.
    results_dir
        An existing folder.
    n_jobs
        Cells computed at a time, one thread each; -1 for one per core, or with dask for as many as its workers take.
    backend
        "loky" (processes of this machine) or "sequential", by joblib; or "dask": the workers of a running scheduler,
        on any number of machines. They need this package, and the raw data that are not shipped.
    scheduler
        For "dask": its address, such as "tcp://host:8786"; "" takes the one that dask is configured with, for
        example by the environment variable DASK_SCHEDULER_ADDRESS.

    Raises
    ------
    ValueError
        If `n_jobs`, `backend` or `scheduler` is invalid, or a data set is unknown or unreadable.
    ImportError
        If dask is wanted and not installed, or a package of the extra "notebooks" is not.
    ConnectionError
        If no scheduler answers or it has no workers, before any work; or if it goes away. Finished cells are saved.
    RuntimeError
        If a worker has other versions of the packages.
    OSError
        If rows cannot be stored in `results_dir`, before any work.
    """
    if backend not in BACKENDS:
        raise ValueError(f"unknown backend {backend!r}; choose from {', '.join(BACKENDS)}")
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; use 1 for one worker or -1 for one per core")
    if scheduler and backend != "dask":
        raise ValueError(f"scheduler {scheduler!r} is for backend 'dask', not {backend!r}")
    tqdm = required("tqdm.auto", "run_cells", "notebooks").tqdm
    for dataset in dict.fromkeys(cell.dataset for cell in cells):
        load_dataset(dataset)  # raises before any work if it cannot be read

    keys = [cell.key for cell in cells]
    rows = load_rows(results_dir, keys)
    missing = [cell for cell in cells if cell.key not in rows]
    if missing:
        check_writable(results_dir)
    failures = []
    with (
        _outcomes(missing, n_jobs, backend, scheduler) as outcomes,
        tqdm(total=len(cells), initial=len(rows), unit="cell") as progress,
    ):
        for cell, row, error in outcomes:
            if row is None:
                failures.append((cell, error))
            else:
                save_rows(results_dir, [row])
                rows[cell.key] = row
                progress.update()
    if failures:
        names = "; ".join(f"{c.dataset}, {c.method.name}, split {c.split}" for c, _ in failures)
        warnings.warn(
            f"{len(failures)} of {len(missing)} cells failed: {names}. The others are saved; run again to "
            f"redo these. The first failed with:\n{failures[0][1]}",
            stacklevel=2,
        )
    return to_frame(rows[key] for key in keys if key in rows)


@contextmanager
def _outcomes(cells: Sequence[Cell], n_jobs: int, backend: str, scheduler: str) -> Iterator[Iterator[Outcome]]:
    """The outcomes of the cells, in the order in which they finish."""
    if backend == "dask" and cells:
        from wdrlr.paper.dask_workers import connected, outcomes_by_dask  # an extra

        with connected(scheduler) as client:
            yield outcomes_by_dask(client, _attempt, cells, n_jobs)
    else:
        with closing(_outcomes_by_joblib(cells, n_jobs, backend if cells else "sequential")) as outcomes:
            yield outcomes


def _outcomes_by_joblib(cells: Sequence[Cell], n_jobs: int, backend: str) -> Generator[Outcome, None, None]:
    """The outcomes of the cells, in the order in which they finish, even if worker processes are killed.

    A dead worker breaks the whole pool, without telling which cell it was computing. All cells that may have been
    running are run again, one after the other in a new pool; a cell that breaks the pool when alone is an outcome
    without a row.
    """
    left = {cell.key: cell for cell in cells}

    def finished(cells: Sequence[Cell], n_jobs: int) -> Iterator[Outcome]:
        # Batches of one: a cell is saved when it is done, not when its batch is. Cells start in order, each only when
        # a worker is free.
        pool = Parallel(n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs")
        with closing(pool(delayed(_attempt)(cell) for cell in cells)) as outcomes:
            for outcome in outcomes:
                del left[outcome[0].key]
                yield outcome

    with parallel_config(backend=backend, **({"initializer": _end_with_parent} if backend == "loky" else {})):
        while left:
            try:
                yield from finished(list(left.values()), n_jobs)
            except BrokenProcessPool:
                for cell in list(left.values())[: effective_n_jobs(n_jobs)]:
                    try:
                        yield from finished([cell], 2)  # a pool of one is this process
                    except BrokenProcessPool:
                        del left[cell.key]
                        yield cell, None, traceback.format_exc()


def _end_with_parent() -> None:
    """End this worker process soon after its parent, however the parent ended."""
    parent = parent_process()
    if parent is None or os.name == "nt":  # Windows keeps the parent's process id after its end
        return

    def watch() -> None:
        while os.getppid() == parent.pid:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def wanted_rows(
    cells: Sequence[Cell],
    results_dir: Path,
    *,
    compute_missing: bool,
    n_jobs: int = 1,
    backend: str = "loky",
    scheduler: str = "",
) -> pd.DataFrame:
    """The rows of the cells: those that `results_dir` lacks are computed, or left out without `compute_missing`.

    Prints `other_versions`, if there are any.

    Raises
    ------
    ValueError, ImportError, ConnectionError
        As `run_cells`, if anything is to be computed.
    RuntimeError
        If there is no row at all.
    """
    if compute_missing:
        rows = run_cells(cells, results_dir, n_jobs=n_jobs, backend=backend, scheduler=scheduler)
    else:
        rows = to_frame(load_rows(results_dir, [cell.key for cell in cells]).values())
    if rows.empty:
        remedy = (
            "see the warning above" if compute_missing else "set compute_missing to True, or name another results_dir"
        )
        raise RuntimeError(f"none of the {len(cells)} cells wanted has a row in {results_dir.name}: {remedy}.")
    if message := other_versions(rows):
        print(message)
    return rows


def describe_missing(cells: Sequence[Cell], rows: pd.DataFrame) -> list[str]:
    """How many of the wanted cells are done: in total, and by method for each incomplete data set."""
    wanted = Counter((cell.dataset, cell.method.name) for cell in cells)
    done = Counter(zip(rows["dataset"], rows["method"], strict=True))
    lines = [f"{len(rows)} of {len(cells)} cells done."]
    for dataset in dict.fromkeys(cell.dataset for cell in cells):
        short = {
            method: f"{done[dataset, method]} of {n}"
            for (name, method), n in wanted.items()
            if name == dataset and done[dataset, method] < n
        }
        if short:
            # Often all methods have the same number of splits: then state it once.
            same = len(set(short.values())) == 1 and len(short) == sum(name == dataset for name, _ in wanted)
            counts = {"each method": next(iter(short.values()))} if same else short
            lines.append(f"{dataset}: splits of " + ", ".join(f"{m} {count}" for m, count in counts.items()))
    return lines


def _attempt(cell: Cell) -> Outcome:
    try:
        with _ONE_CELL_AT_A_TIME:
            return cell, run_cell(*cell), ""
    except Exception:
        return cell, None, traceback.format_exc()


def run_cell(dataset: str, protocol: Protocol, method: Method, split: int, seed: int, tol: float, solver: str) -> Row:
    """Choose by cross-validation, fit on the training part, and count the errors on the test part.

    `seconds` is the wall clock of the final fit alone, from a cold start, including the encoding of the features but,
    for PI, without `identification_seconds`, the simulation of its penalty. `solver_seconds` is the solver's share of
    it, which is what the paper counts. `cv_seconds` is the wall clock of the whole cross-validation. Convergence
    warnings are counted in the row, not shown.
    """
    training, testing = both_parts(dataset, protocol, method, split, seed)
    solving = Solving(method.solver or solver, tol=tol)
    random_state = int(_generator(dataset, seed, 2, split).integers(2**32))
    with _collected_warnings():
        _warm_up(protocol, method, solving.solver)
    with threadpool_limits(1), _collected_warnings() as caught:
        start = time.perf_counter()
        radius, gamma, cv_error, fits = _choose(training, protocol, method, solving)
        cv_seconds = time.perf_counter() - start
        start = time.perf_counter()
        final = fit_method(training, (radius, gamma), method, protocol, solving, random_state)
        seconds = time.perf_counter() - start
    solution = final.solution
    constant = not np.any(solution.b[1:])
    gaps = [*(fit.gap for fit in fits), solution.gap]
    return {
        "dataset": dataset,
        "protocol": protocol.name,
        "method": method.name,
        "split": split,
        "seed": seed,
        "tol": tol,
        "solver": solver,
        "n_train": len(training.y),
        "n_test": len(testing.y),
        "radius": radius,
        "gamma": gamma,
        "cv_error": cv_error,
        "test_error": _error(final, training, testing),
        "constant": constant,
        "n_constant": sum(fit.constant for fit in fits) + constant,
        "objective": float(solution.upper),
        "gap": float(solution.gap),
        "n_iter": max(solution.n_rounds, 1),
        "n_cuts": solution.n_cuts,
        "conic_solver": choose_conic_solver(solving.conic_solver) if solving.chosen(final.posed.problem).conic else "",
        "n_fits": len(gaps),
        "n_uncertified": sum(not gap <= tol for gap in gaps),  # a nan is not certified either
        "n_warnings": len(caught),
        "warning": _examples(caught),
        "seconds": seconds - float(np.nan_to_num(final.identification_seconds)),
        "solver_seconds": solution.separation_seconds + solution.solver_seconds,
        "identification_seconds": final.identification_seconds,
        "cv_seconds": cv_seconds,
        "versions": versions(),
    }


_load = lru_cache(maxsize=2)(load_dataset)


def split_rows(
    n_rows: int, dataset: str, seed: int, split: int, *, keep_order: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of the training part and of the test part, both in random order.

    The rows are permuted once per data set (from `seed` and the name), and again for every split (from
    `seed`, the name and `split`); the first floor(0.2 N) are the test part. All methods and protocols see the
    same splits. With `keep_order` the training part is in the order of the first permutation.
    """
    shuffled = _generator(dataset, seed, 0).permutation(n_rows)
    order = _generator(dataset, seed, 1, split).permutation(n_rows)
    n_test = int(TEST_SHARE * n_rows)
    train = order[n_test:]
    return shuffled[np.sort(train) if keep_order else train], shuffled[order[:n_test]]


def _generator(dataset: str, seed: int, *stream: int) -> np.random.Generator:
    # crc32, since Python's hash of a string differs from process to process.
    entropy = [seed, zlib.crc32(dataset.encode())]
    return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=stream))


def prepare_numbers(X: pd.DataFrame, train: np.ndarray) -> pd.DataFrame:
    """Fill and scale the numeric columns by the training part; categorical columns stay as they are.

    A missing number becomes the median of the training part. Then the range of the training part is mapped to [0, 1];
    a test row can lie outside. A column without two different values in the training part becomes 0. The folds of the
    cross-validation, too, use the medians and ranges of the whole training part.
    """
    X = X.copy()
    for name in X.select_dtypes("number"):
        column = X[name].fillna(X[name].iloc[train].median())
        low, high = column.iloc[train].min(), column.iloc[train].max()
        X[name] = (column - low) / (high - low) if high > low else 0.0
    return X


def prepare_reference(X: pd.DataFrame, coding: str) -> pd.DataFrame:
    """Order the levels so that the reference level of every feature occurs in the data.

    breast-cancer and lymphography declare levels that do not occur. Such a level changes nothing, unless it is the
    reference, whose slope is fixed: the first level with the coding "onehot", the last with "pm1".
    """
    X = X.copy()
    for name in X.select_dtypes("category"):
        column = X[name].cat
        seen = column.categories.isin(X[name].unique())
        if not seen.all():
            parts = [column.categories[seen], column.categories[~seen]]
            X[name] = column.reorder_categories(np.concatenate(parts if coding == "onehot" else parts[::-1]))
    return X


class Rows(NamedTuple):
    """Rows for fitting, or for counting errors."""

    X: pd.DataFrame
    y: np.ndarray  # -1.0 or +1.0

    def part(self, rows: np.ndarray) -> "Rows":
        return Rows(self.X.iloc[rows], self.y[rows])


def both_parts(dataset: str, protocol: Protocol, method: Method, split: int, seed: int) -> tuple[Rows, Rows]:
    """The training part and the test part of a cell, prepared."""
    data = _load(dataset)
    train, test = split_rows(len(data.y), dataset, seed, split, keep_order=protocol.keep_order)
    X = prepare_reference(prepare_numbers(data.X, train), method.formulation(protocol).coding)
    rows = Rows(X, np.asarray(data.y, dtype=float))
    return rows.part(train), rows.part(test)


class FoldFit(NamedTuple):
    """The facts kept about a fit of the cross-validation."""

    error: float  # share of the held-out rows that it misclassifies
    gap: float
    constant: bool  # all slopes are exactly 0


def _choose(
    rows: Rows, protocol: Protocol, method: Method, solving: Solving
) -> tuple[float, float, float, list[FoldFit]]:
    """The chosen radius and gamma, their mean error over the folds, and all fits made."""
    grid = method.grid(protocol)
    if len(grid) == 1:
        return *grid[0], np.nan, []
    folds = []
    everyone = np.arange(len(rows.y))
    for held_out in np.array_split(everyone, N_FOLDS):
        kept = np.delete(everyone, held_out)
        folds.append(fit_fold(rows.part(kept), rows.part(held_out), grid, method, protocol, solving))
    mean_errors = np.mean([[fit.error for fit in fits] for fits in folds], axis=0)
    radius, gamma = choose_point(grid, mean_errors, protocol.ties)
    return radius, gamma, float(mean_errors.min()), [fit for fits in folds for fit in fits]


def fit_fold(
    kept: Rows,
    held_out: Rows,
    grid: Sequence[tuple[float, float]],
    method: Method,
    protocol: Protocol,
    solving: Solving,
) -> list[FoldFit]:
    """Fit every point of the grid on the rows kept, and count the errors on the held-out rows.

    The results are those of `fit_method` at each point, but the rows are encoded only once: the problems differ only in
    radius, penalty and bound, and share whatever the solver can share.
    """
    formulation = method.formulation(protocol)
    encoding, unit, _ = formulation.fit(*kept, np.ones(len(kept.y)))
    others = formulation.pose(encoding, *held_out, np.ones(len(held_out.y))).problem
    fits = []
    for solution in solving.solve_all([method.at(protocol, unit, *point) for point in grid]):
        f = others.decision(solution.b) if np.any(solution.b) else None
        error = float(others.w[predicted(f, kept.y) != others.y].sum())
        fits.append(FoldFit(error, solution.gap, not np.any(solution.b[1:])))
    return fits


class Fit(NamedTuple):
    """A method fitted on a whole training part."""

    formulation: Formulation
    posed: Posed
    solution: Solution
    identification_seconds: float  # nan if the method does not find its penalty itself


def fit_method(
    rows: Rows, point: tuple[float, float], method: Method, protocol: Protocol, solving: Solving, random_state: int
) -> Fit:
    """Fit a method at one (radius, gamma), from a cold start."""
    formulation = method.formulation(protocol)
    posed = formulation.fit(*rows, np.ones(len(rows.y)))
    radius, penalty = point
    seconds = np.nan
    if method.penalty is not None:
        start = time.perf_counter()
        penalty = method.penalty(posed.problem, len(rows.y), random_state)
        seconds = time.perf_counter() - start
    return Fit(formulation, posed, solving.fit(method.at(protocol, posed.problem, radius, penalty)), seconds)


def _error(fit: Fit, fitted: Rows, others: Rows) -> float:
    """Share of the other rows that `fit` misclassifies.

    If all coefficients are exactly 0, the model says nothing about a row, and the majority class of the fitted labels
    is predicted.
    """
    coef, intercept = fit.posed.read(fit.solution.b)
    says_nothing = not (np.any(coef) or np.any(intercept))
    f = None if says_nothing else fit.formulation.decision(fit.posed.encoding, coef, intercept, others.X)
    return float(np.mean(predicted(f, fitted.y) != others.y))


def predicted(f: np.ndarray | None, y_fitted: np.ndarray) -> np.ndarray:
    """The labels, -1 or +1, at f; if f is None, the label of most of the fitted rows, +1 in a tie."""
    return np.where(f > 0 if f is not None else np.sum(y_fitted) >= 0, 1, -1)


@cache
def _warm_up(protocol: Protocol, method: Method, solver: str) -> None:
    """Trigger imports and compilation, once per process, before anything is timed."""
    X = pd.DataFrame({"z": pd.Categorical(["a", "a", "b", "b", "b"])})
    grid = method.grid(protocol)
    rows = Rows(X, np.array([1.0, -1.0, 1.0, -1.0, -1.0]))
    fit_method(rows, grid[len(grid) // 2], method, protocol, Solving(solver, tol=1e-3), 0)


def _examples(caught: Sequence[Warning | str]) -> str:
    """The first line of the first warning of each category."""
    first = {type(message).__name__: str(message).partition("\n")[0] for message in reversed(caught)}
    return " | ".join(f"{category}: {first[category]}" for category in sorted(first))


@contextmanager
def _collected_warnings() -> Iterator[list[Warning | str]]:
    """The convergence warnings (separable data included) raised in the block; other warnings are passed on."""
    collected: list[Warning | str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        yield collected
    for entry in caught:
        if issubclass(entry.category, ConvergenceWarning):
            collected.append(entry.message)
        else:
            warnings.warn_explicit(entry.message, entry.category, entry.filename, entry.lineno)
