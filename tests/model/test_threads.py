"""One thread of BLAS inside, and as many as before outside."""

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from tests.instances import random_problem
from wdrlr.model.threads import on_one_thread
from wdrlr.solvers.interior_point import method
from wdrlr.solvers.interior_point.method import solve_tailored


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
