import builtins
import logging
import sys
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest

from tests.instances import random_problem
from wdrlr.model.cuts import all_cuts
from wdrlr.solvers import column_constraint, conic
from wdrlr.solvers.column_constraint import solve_column_constraint, solve_monolithic
from wdrlr.solvers.dual_repair import dual_points
from wdrlr.solvers.programs import solve_program
from wdrlr.solvers.solution import certified


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
                raise Error("(1008)")

        def Task(self):
            return Task()

    class Task:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def optimize(self):
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


@pytest.mark.parametrize("licence", [None, "27000@licences"])
def test_mosek_without_a_licence_says_where_it_was_looked_for(monkeypatch, tmp_path, licence):
    fake_mosek(monkeypatch, licensed=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("MOSEKLM_LICENSE_FILE", raising=False)
    if licence:
        monkeypatch.setenv("MOSEKLM_LICENSE_FILE", licence)
    with pytest.raises(ValueError, match=r"\(1008\) License cannot be located") as refused:
        conic.choose_conic_solver("MOSEK")
    message = str(refused.value)
    assert f"MOSEKLM_LICENSE_FILE is {licence!r}" in message if licence else "LICENSE_FILE is not set" in message
    assert f"{tmp_path / 'mosek' / 'mosek.lic'} does not exist" in message
    assert 'conic_solver="CLARABEL" needs no licence' in message


@pytest.mark.parametrize(
    "error", [OSError("libmosek64.so: cannot open"), ImportError("wrong ELF class"), RuntimeError("no")]
)
def test_a_mosek_that_cannot_be_imported_is_no_reason_to_stop(monkeypatch, error):
    imported = builtins.__import__

    def fails(name, *others):
        if name == "mosek":
            raise error
        return imported(name, *others)

    monkeypatch.delitem(sys.modules, "mosek", raising=False)
    monkeypatch.setattr(builtins, "__import__", fails)
    assert conic.choose_conic_solver() == "CLARABEL"
    with pytest.raises(ValueError, match=f"does not work here: {type(error).__name__}: {error}"):
        conic.choose_conic_solver("MOSEK")


def test_a_module_that_is_not_mosek_is_no_reason_to_stop(monkeypatch):
    monkeypatch.setitem(sys.modules, "mosek", SimpleNamespace())
    assert conic.choose_conic_solver() == "CLARABEL"
    with pytest.raises(ValueError, match="does not work here: AttributeError"):
        conic.choose_conic_solver("MOSEK")


def test_a_licence_that_cannot_be_checked_out_for_other_reasons_is_no_reason_to_stop(monkeypatch):
    env = fake_mosek(monkeypatch, licensed=True)
    monkeypatch.setattr(env, "checkoutlicense", lambda *_: 1 / 0)
    assert conic.choose_conic_solver() == "CLARABEL"
    assert "ZeroDivisionError" in conic.mosek_licence()


def test_without_the_package_clarabel_is_used(monkeypatch):
    monkeypatch.setitem(sys.modules, "mosek", None)
    assert conic.choose_conic_solver() == "CLARABEL"
    assert conic.mosek_licence().startswith("it needs the package mosek: pip install 'wdrlr[mosek]'")
    with pytest.raises(ValueError, match='conic_solver="MOSEK" cannot be used: it needs the package mosek: pip'):
        conic.choose_conic_solver("MOSEK")


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
def test_a_deadline_stops_the_solver(monkeypatch, conic_solver):
    """The clock stands still until the solver has its limit, a time in which no machine solves this program."""
    monkeypatch.setattr(conic, "perf_counter", lambda: 5.0)
    problem = random_problem(3, N=30, n=0, n_levels=(2,) * 7)
    cuts = all_cuts(problem, 10_000)
    with pytest.raises(conic.OutOfTime, match=r'no time is left.*solver_options=\{"time_limit": seconds\}'):
        solve_program(problem, cuts, "dual", conic_solver, 5.0)
    deadline = 5.0 + 2**-20
    if conic_solver == "CLARABEL":
        with pytest.raises(conic.OutOfTime, match=r'CLARABEL was stopped after 9.54e-07 s.*"time_limit"'):
            solve_program(problem, cuts, "dual", conic_solver, deadline)
    else:  # it returns where it is
        stopped = solve_program(problem, cuts, "dual", conic_solver, deadline)
        points = dual_points(problem, cuts, stopped.mass, stopped.b, 1e-6)
        assert certified(problem, stopped.b, points, 1e-6).gap > 1e-4


def test_scs_ends_without_a_limit_of_the_user(monkeypatch):
    """A first-order method: on programs of many cones its tolerances can be hours away."""
    problem = random_problem(1, N=60, n=3, norm="l2", n_levels=(2, 3, 2))
    assert conic.SETTINGS["SCS"]["time_limit_secs"] <= 60
    monkeypatch.setitem(conic.SETTINGS["SCS"], "time_limit_secs", 1e-6)
    solution = solve_monolithic(problem, conic_solver="SCS", tol=1e-8)
    assert 1e-8 < solution.gap < 1


def test_an_infeasible_program_is_an_error_not_a_number():
    x = cp.Variable()
    with pytest.raises(conic.ConicSolverError, match=r"infeasible.*Rescale or centre columns.*another conic_solver"):
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
