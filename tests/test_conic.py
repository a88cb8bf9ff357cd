import logging
import sys
from time import perf_counter
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest

from tests.instances import random_problem
from wdrlr import column_constraint, conic
from wdrlr.column_constraint import solve_column_constraint
from wdrlr.cuts import all_cuts
from wdrlr.dual_repair import dual_points
from wdrlr.programs import solve_program
from wdrlr.solution import certified


@pytest.fixture(autouse=True)
def fresh_probe():
    conic.mosek_licence.cache_clear()
    conic.choose_conic_solver.cache_clear()
    yield
    conic.mosek_licence.cache_clear()
    conic.choose_conic_solver.cache_clear()


def fake_mosek(monkeypatch, licensed):
    class Error(Exception):
        pass

    class Env:
        checked_out = 0

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def checkoutlicense(self, feature):
            Env.checked_out += 1
            assert feature == "PTON"
            if not licensed:
                raise Error("(1008) \nLicense cannot be located.")

    module = SimpleNamespace(Env=Env, Error=Error, feature=SimpleNamespace(pton="PTON"))
    monkeypatch.setitem(sys.modules, "mosek", module)
    return Env


def test_mosek_is_used_when_its_licence_can_be_checked_out(monkeypatch, caplog):
    env = fake_mosek(monkeypatch, licensed=True)
    with caplog.at_level(logging.INFO, logger="wdrlr"):
        assert [conic.choose_conic_solver() for _ in range(3)] == ["MOSEK"] * 3
    assert env.checked_out == 1
    assert caplog.messages == ["conic solver: MOSEK"]
    assert conic.choose_conic_solver("mosek") == "MOSEK"


def test_without_a_licence_clarabel_is_used_and_the_reason_said_once(monkeypatch, caplog):
    env = fake_mosek(monkeypatch, licensed=False)
    with caplog.at_level(logging.INFO, logger="wdrlr"):
        assert [conic.choose_conic_solver() for _ in range(3)] == ["CLARABEL"] * 3
    assert env.checked_out == 1
    assert caplog.messages == ["conic solver: CLARABEL (MOSEK: no licence: (1008) License cannot be located.)"]
    with pytest.raises(ValueError, match="License cannot be located"):
        conic.choose_conic_solver("MOSEK")


def test_without_the_package_clarabel_is_used(monkeypatch):
    monkeypatch.setitem(sys.modules, "mosek", None)
    assert conic.choose_conic_solver() == "CLARABEL"
    assert conic.mosek_licence() == "the package mosek is not installed"


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match=r"CLARABEL, MOSEK, SCS, not 'GUROBI'"):
        conic.choose_conic_solver("GUROBI")


@pytest.mark.parametrize("form", ["primal", "dual"])
def test_scs_can_be_selected(form):
    problem = random_problem(1, N=8)
    solution = solve_column_constraint(problem, all_violated=True, conic_solver="SCS", form=form, tol=1e-3)
    assert solution.gap <= 1e-3
    exact = solve_column_constraint(problem, all_violated=True)
    assert solution.upper == pytest.approx(exact.upper, abs=1e-3)


@pytest.mark.parametrize("form", ["primal", "dual"])
@pytest.mark.parametrize(
    "setting",
    [
        {},
        {"n": 2, "norm": "l2", "weighted": True},
        {"n": 2, "norm": "linf", "label_cost": 3.0},
        {"n": 0},
        {"radius": 0.0, "N": 40},
        {"gamma": 0.01, "coef_bound": 0.4},
        {"fit_intercept": False, "p": 2.0},
    ],
)
def test_clarabel_with_the_matrices_and_by_way_of_cvxpy_is_the_same(monkeypatch, setting, form):
    problem = random_problem(3, **setting)
    cuts = all_cuts(problem, 1000)
    direct = solve_program(problem, cuts, form, "CLARABEL")
    monkeypatch.setattr(conic, "_with_clarabel", conic._with_cvxpy)
    modelled = solve_program(problem, cuts, form, "CLARABEL")
    assert direct.value == pytest.approx(modelled.value, abs=1e-7)
    np.testing.assert_allclose(direct.b, modelled.b, atol=1e-4)
    np.testing.assert_allclose(direct.s, modelled.s, atol=1e-4)
    np.testing.assert_allclose(direct.lam, modelled.lam, atol=1e-4)
    np.testing.assert_allclose(direct.mass, modelled.mass, atol=1e-4)


@pytest.mark.parametrize("conic_solver", ["CLARABEL", "SCS"])
def test_a_deadline_stops_the_solver(conic_solver):
    problem = random_problem(3, N=30, n=0, n_levels=(2,) * 7)
    cuts = all_cuts(problem, 10_000)
    with pytest.raises(conic.OutOfTime, match="no time is left"):
        solve_program(problem, cuts, "dual", conic_solver, perf_counter() - 1.0)
    if conic_solver == "CLARABEL":
        with pytest.raises(conic.OutOfTime, match="CLARABEL was stopped"):
            solve_program(problem, cuts, "dual", conic_solver, perf_counter() + 0.05)
    else:  # it returns where it is
        stopped = solve_program(problem, cuts, "dual", conic_solver, perf_counter() + 0.1)
        points = dual_points(problem, cuts, stopped.mass, stopped.b, 1e-6)
        assert certified(problem, stopped.b, points, 1e-6).gap > 1e-4


def test_an_infeasible_program_is_an_error_not_a_number():
    x = cp.Variable()
    with pytest.raises(conic.ConicSolverError, match="infeasible"):
        conic.solve(cp.Problem(cp.Minimize(x), [x >= 1, x <= 0]), "CLARABEL")


def test_where_one_form_fails_the_other_is_tried(monkeypatch):
    tried = []

    def fails_on_dual(problem, cuts, form, *others):
        tried.append(form)
        if form == "dual":
            raise conic.ConicSolverError("no")
        return solve_program(problem, cuts, form, *others)

    monkeypatch.setattr(column_constraint, "solve_program", fails_on_dual)
    assert solve_column_constraint(random_problem(1), all_violated=True).gap <= 1e-6
    assert tried[:2] == ["dual", "primal"]


def test_when_a_later_program_fails_the_best_so_far_is_returned_with_its_true_gap(monkeypatch):
    calls = []

    def fails_later(problem, cuts, form, *others):
        calls.append(form)
        if len(calls) > 1:
            raise conic.ConicSolverError("no")
        return solve_program(problem, cuts, form, *others)

    monkeypatch.setattr(column_constraint, "solve_program", fails_later)
    problem = random_problem(11, N=30, n=0, n_levels=(2,) * 6, label_cost=6.0, radius=0.2)
    solution = solve_column_constraint(problem, all_violated=True)
    assert np.isfinite(solution.upper)
    assert solution.gap > 1e-3
