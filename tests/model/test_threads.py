"""Blocks of rows, threads for them, and BLAS on one thread inside."""

import threading
import warnings

import numpy as np
import pandas as pd
import pytest
from joblib import Parallel, cpu_count, delayed, parallel_config
from threadpoolctl import threadpool_info, threadpool_limits

from tests.instances import random_problem
from wdrlr import WassersteinLogisticRegression, WassersteinLogisticRegressionCV, fit_path
from wdrlr.model import threads as module
from wdrlr.model.threads import ENTRIES_A_BLOCK, MOST_BLOCKS, blocks, in_blocks, on_one_thread, threads
from wdrlr.solvers.interior_point import method
from wdrlr.solvers.interior_point.method import solve_tailored


@pytest.mark.parametrize(
    ("n_rows", "width", "most", "count"),
    [
        (0, 5, MOST_BLOCKS, 1),
        (1, 10 * ENTRIES_A_BLOCK, MOST_BLOCKS, 1),
        (1000, 50, MOST_BLOCKS, 1),
        (2 * ENTRIES_A_BLOCK - 1, 1, MOST_BLOCKS, 1),
        (ENTRIES_A_BLOCK, 2, MOST_BLOCKS, 2),
        (ENTRIES_A_BLOCK + 5, 3, MOST_BLOCKS, 3),
        (ENTRIES_A_BLOCK, 3, 1, 1),
        (10**6, 50, MOST_BLOCKS, MOST_BLOCKS),
        (10**6, 50, 5, 5),
    ],
)
def test_blocks_are_all_rows_in_order(n_rows, width, most, count):
    found = blocks(n_rows, width, most)
    ends = [(rows.start, rows.stop) for rows in found]
    assert len(found) == count
    assert ends[0][0] == 0 and ends[-1][1] == n_rows
    assert [start for start, _ in ends[1:]] == [stop for _, stop in ends[:-1]]
    sizes = [stop - start for start, stop in ends]
    assert max(sizes) - min(sizes) <= 1


def seen_by_blocks(count, patience=10.0):
    """What ``in_blocks`` returns for so many blocks: their numbers, and the number of threads that took part."""
    together, names = threading.Barrier(count), set()

    def work(rows):
        together.wait(timeout=patience)  # all of them run at the same time, or none does
        names.add(threading.get_ident())
        return rows.start

    return in_blocks(work, [slice(k, k + 1) for k in range(count)]), len(names)


def test_blocks_run_at_a_time_and_are_put_together_in_order():
    with threads(3):
        assert seen_by_blocks(3) == ([0, 1, 2], 3)
        with threads(1), pytest.raises(threading.BrokenBarrierError):
            seen_by_blocks(2, patience=0.2)
        assert seen_by_blocks(2) == ([0, 1], 2)
    with pytest.raises(threading.BrokenBarrierError):
        seen_by_blocks(2, patience=0.2)


def n_threads(n_jobs=None):
    with threads(n_jobs):
        executor = module._threads.get()
        return 1 if executor is None else executor._max_workers


def test_n_jobs_means_what_it_means_in_joblib():
    assert (n_threads(), n_threads(1), n_threads(3)) == (1, 1, 3)
    assert n_threads(-1) == min(cpu_count(), MOST_BLOCKS)
    assert n_threads(10**6) == MOST_BLOCKS
    with parallel_config(n_jobs=2):
        assert (n_threads(), n_threads(3)) == (2, 3)
    for backend in ("loky", "threading"):
        assert Parallel(n_jobs=2, backend=backend)(delayed(n_threads)(n) for n in (None, 4, -1)) == [1, 1, 1]
    with pytest.raises(ValueError, match=r"n_jobs must not be 0; use 1 .* or -1"):
        n_threads(0)


def test_blocks_have_the_context_of_their_caller_and_blocks_of_their_own():
    def inner(rows):
        return float(np.divide(1.0, np.zeros(1))[0])

    def outer(rows):
        return in_blocks(inner, blocks(3, ENTRIES_A_BLOCK))

    with threads(2), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert in_blocks(outer, blocks(3, ENTRIES_A_BLOCK)) == [[np.inf] * 3] * 3
    with threads(2), np.errstate(all="raise"), pytest.raises(FloatingPointError):
        in_blocks(inner, blocks(3, ENTRIES_A_BLOCK))


PROBLEMS = {
    "mixed": {"n": 2},
    "categories": {"n": 0, "n_levels": (2, 3, 5, 2)},
    "wide features": {"n": 1, "n_levels": (9, 2, 8)},
    "numbers, l2": {"n": 3, "n_levels": (), "norm": "l2"},
    "linf, fixed labels": {"n": 3, "norm": "linf", "label_cost": np.inf},
    "costs": {"n": 1, "n_levels": (3, 4, 2, 5), "costs": "mixed"},
    "codes": {"n": 1, "n_levels": (3, 4), "coding": "pm1", "any_code": True},
    "penalty, bound, no intercept": {"gamma": 1e-3, "coef_bound": 0.5, "fit_intercept": False},
    "radius 0": {"radius": 0.0, "coef_bound": 1.0},
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_solution_depends_on_blocks_by_rounding_and_not_at_all_on_threads(monkeypatch, name):
    problem = random_problem(3, N=60, **({"weighted": True} | PROBLEMS[name]))
    whole = solve_tailored(problem, tol=1e-8)
    monkeypatch.setattr(module, "ENTRIES_A_BLOCK", 25)
    assert len(blocks(*problem.shape)) > 3
    solutions = []
    for n_jobs in (1, 2, 3):
        with threads(n_jobs):
            solutions.append(solve_tailored(problem, tol=1e-8))
    first = solutions[0]
    assert first.gap <= 1e-8 and first.n_rounds > 0
    assert abs(first.upper - whole.upper) <= 1e-8
    for other in solutions[1:]:
        assert other.b.tobytes() == first.b.tobytes()
        for field in ("lam", "upper", "lower", "n_rounds", "n_cuts", "ambiguity"):
            np.testing.assert_equal(getattr(other, field), getattr(first, field), err_msg=field)


@pytest.fixture(scope="module")
def large():
    """So many rows that there are blocks."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({f"z{j}": pd.Categorical.from_codes(rng.integers(0, 2, 60_000), ["a", "b"]) for j in range(8)})
    X["u"] = rng.random(60_000)
    return X, (X["z0"] == "a").to_numpy() ^ (rng.random(60_000) < 0.3)


def test_fits_are_the_same_whatever_n_jobs(large):
    assert len(blocks(*large[0].shape)) > 1
    fits = [WassersteinLogisticRegression(0.05, n_jobs=n_jobs).fit(*large) for n_jobs in (1, 2, 3)]
    for fit in fits[1:]:
        assert fit.solution_.b.tobytes() == fits[0].solution_.b.tobytes()
        assert (fit.objective_, fit.lower_bound_) == (fits[0].objective_, fits[0].lower_bound_)


def test_n_jobs_reaches_fits_paths_and_folds(monkeypatch, large):
    X, y = large[0].head(200), large[1][:200]
    seen, minimise = [], method.minimise

    def spy(*args, **options):
        executor = module._threads.get()
        seen.append(1 if executor is None else executor._max_workers)
        return minimise(*args, **options)

    monkeypatch.setattr(method, "minimise", spy)
    model = WassersteinLogisticRegression(0.01, n_jobs=2).fit(X, y)
    assert seen == [2]
    fit_path(X, y, [0.01, 0.02], n_jobs=3)
    assert seen[1:] == [3, 3]
    seen.clear()
    with parallel_config(backend="threading"):
        WassersteinLogisticRegressionCV([0.01, 0.02], cv=2, n_jobs=2).fit(X, y)
    assert seen == [1, 1, 1, 1, 2]
    with pytest.raises(ValueError, match="n_jobs must not be 0"):
        model.set_params(n_jobs=0).fit(X, y)


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@on_one_thread
def inside(fails=False):
    if fails:
        raise ZeroDivisionError
    return blas_threads()


def test_one_thread_inside_and_as_many_as_before_outside():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        assert inside() == {1}
        with pytest.raises(ZeroDivisionError):
            inside(fails=True)
        assert blas_threads() == before


def test_the_solver_runs_on_one_thread(monkeypatch):
    seen, linearise = [], method.linearise

    def spy(*args):
        seen.append(blas_threads())
        return linearise(*args)

    monkeypatch.setattr(method, "linearise", spy)
    with threadpool_limits(2, user_api="blas"):
        solve_tailored(random_problem(0, N=20))
    assert seen and all(threads == {1} for threads in seen)
