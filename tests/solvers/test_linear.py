import numpy as np
import pytest

from wdrlr.solvers import linear
from wdrlr.solvers.linear import minimise_linear


@pytest.fixture
def program():
    """max q.x over a simplex cut by random half-spaces, which no presolve ends."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(40, 12))
    return {"q": -rng.uniform(size=12), "bounds": np.tile([-1.0, 1.0], (12, 1)), "A": A, "limit": np.ones(40)}


@pytest.mark.parametrize("method", ["highs", "highs-ipm", "highs-ds"])
def test_an_optimum_keeps_its_limits_and_has_the_value_of_its_dual(program, method):
    found = minimise_linear(**program, E=np.ones((1, 12)), method=method, dual_feasibility_tolerance=1e-9)
    assert found.status == 0
    assert (program["A"] @ found.x <= 1 + 1e-7).all()
    assert abs(found.x.sum()) < 1e-7
    assert (np.abs(found.x) <= 1 + 1e-7).all()
    bounds = found.upper.marginals.sum() - found.lower.marginals.sum()
    assert found.fun == pytest.approx(found.ineqlin.marginals.sum() + bounds, abs=1e-7)
    assert found.fun < -0.1


@pytest.mark.parametrize("method", ["highs", "highs-ipm", "highs-ds"])
def test_iterations_are_limited(program, method, monkeypatch):
    monkeypatch.setattr(linear, "ITERATIONS", 0)
    assert minimise_linear(**program, method=method).status == 1
