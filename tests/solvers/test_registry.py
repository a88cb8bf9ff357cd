"""The registry: the package's own solvers, and one that is registered from outside."""

from inspect import signature

import numpy as np
import pytest

from tests.instances import random_problem
from wdrlr import WassersteinLogisticRegression, WassersteinLogisticRegressionCV, fit_path
from wdrlr.solvers.closed_form import optimal_constant
from wdrlr.solvers.column_constraint import Easing, solve_column_constraint, solve_monolithic
from wdrlr.solvers.interior_point.method import solve_tailored
from wdrlr.solvers.registry import SOLVERS, Solver, chosen_solver, register, solve
from wdrlr.solvers.solution import certified

X = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]
Y = [0, 1, 0, 0, 1, 1]
LARGE = 0.5  # half the label cost: there the constant model is optimal


@pytest.fixture
def calls():
    """Registers a solver that knows the constant model only; what it is called with."""
    called = []

    def best_constant_only(problem, *, tol, max_iter, conic_solver, **options):
        called.append({"tol": tol, "max_iter": max_iter, "conic_solver": conic_solver, **options})
        b, dual_point = optimal_constant(problem)
        return certified(problem, b, [dual_point], tol, n_cuts=len(dual_point.mass))

    def shared(problem):
        return {"table": problem.n_samples}

    known = dict(SOLVERS)
    options = {"depth": (1, 2), "note": None}
    register(Solver("mine", best_constant_only, options, lambda p, norm: p >= 1, warm_start=True, shared=shared))
    yield called
    SOLVERS.clear()
    SOLVERS.update(known)


def test_a_solver_from_outside_fits_and_is_certified(calls):
    options = {"depth": 2, "note": "any"}
    model = WassersteinLogisticRegression(
        LARGE, 1.0, p=2.0, solver="mine", solver_options=options, tol=1e-7, max_iter=5
    )
    model.fit(X, Y)
    assert 0 <= model.gap_ <= 1e-7
    assert model.objective_ == pytest.approx(np.log(2))
    assert model.n_cuts_ == 12
    assert calls == [{"tol": 1e-7, "max_iter": 5, "conic_solver": "auto", **options}]


def test_a_solver_from_outside_warm_starts_and_shares(calls):
    model = WassersteinLogisticRegression(LARGE, 1.0, solver="mine", warm_start=True).fit(X, Y)
    first = model.solution_
    model.fit(X, Y)
    assert ["start" in call for call in calls] == [False, True] and calls[1]["start"] is first
    calls.clear()
    path = fit_path(X, Y, [LARGE, 2 * LARGE], label_costs=[1.0], solver="mine")
    assert path["gap"].max() <= 1e-6
    assert [call["table"] for call in calls] == [6, 6]
    chosen = WassersteinLogisticRegressionCV(radii=[LARGE, 2 * LARGE], cv=2, label_cost=1.0, solver="mine").fit(X, Y)
    assert chosen.gap_ <= 1e-6


def test_a_solver_that_is_no_name_must_handle_the_problem_too():
    tailored = SOLVERS["tailored"]
    assert chosen_solver(tailored, 1.0, "l1") is tailored
    with pytest.raises(ValueError, match=r"'tailored' does not handle p = 2.0 with the norm 'l1'; use another"):
        chosen_solver(tailored, 2.0, "l1")


@pytest.mark.parametrize(
    "wrong, message, remedy",
    [
        ({"solver_options": {"dept": 1}}, "'dept', but the solver 'mine' takes depth, note", {"solver_options": None}),
        ({"solver_options": {"depth": 3}}, "depth in solver_options must be 1 or 2", {"solver_options": {"depth": 2}}),
        (
            {"p": 0.5},
            "'mine' does not handle p = 0.5 .*; use 'column-constraint'",
            {"solver": "column-constraint"},
        ),
        ({"solver": "mine "}, "must be a str among .*'mine'.*Got 'mine ' instead", {"solver": "mine"}),
    ],
)
def test_errors_name_the_remedy(calls, wrong, message, remedy):
    parameters = {"radius": LARGE, "label_cost": 1.0, "solver": "mine", **wrong}
    with pytest.raises(ValueError, match=message):
        WassersteinLogisticRegression(**parameters).fit(X, Y)
    assert not calls
    assert WassersteinLogisticRegression(**{**parameters, **remedy}).fit(X, Y).gap_ <= 1e-6


@pytest.mark.parametrize(
    ("solver", "name", "wrong", "right", "words"),
    [
        (
            "column-constraint",
            "time_limit",
            [0, -1.0, np.nan, "60", None, True],
            [60, 60.5, np.inf, np.float32(9)],
            "sec",
        ),
        (
            "monolithic",
            "time_limit",
            [0, -1.0, np.nan, "60", None, True],
            [60, np.int64(60)],
            "a positive number of sec",
        ),
        ("monolithic", "max_cuts", [0, -5, 1e5, "9", None, True], [10**5, np.int64(10**5)], "a positive integer"),
        (
            "column-constraint",
            "easing",
            ["geometric", True, Easing],
            [None, Easing("geometric")],
            r'None or .*Easing\("geo',
        ),
        ("column-constraint", "all_violated", ["no", None], [True, np.False_], "False or True"),
        ("monolithic", "form", ["duall", None], ["primal"], "'primal' or 'dual'"),
    ],
)
def test_values_of_options_are_checked_before_any_work(solver, name, wrong, right, words):
    for value in wrong:
        model = WassersteinLogisticRegression(solver=solver, solver_options={name: value})
        with pytest.raises(ValueError, match=rf"the {name} in solver_options must be .*{words}.*, not {value!r}\."):
            model.fit(None, None)
        with pytest.raises(ValueError, match=f"the {name} in solver_options"):
            fit_path(None, None, [0.1], solver=solver, solver_options={name: value})
    for value in right:
        assert WassersteinLogisticRegression(solver=solver, solver_options={name: value}).fit(X, Y).gap_ <= 1e-6


def test_a_solver_that_is_not_registered_is_unknown():
    with pytest.raises(ValueError, match="Got 'mine' instead"):
        WassersteinLogisticRegression(solver="mine").fit(X, Y)
    with pytest.raises(ValueError, match="no solver 'mine'; use 'tailored' or 'column-constraint'"):
        solve(random_problem(), "mine", {}, "auto", 1e-6, 10)


@pytest.mark.parametrize("name", ["auto", "tailored"])
def test_a_name_is_given_once(name):
    before = dict(SOLVERS)
    with pytest.raises(ValueError, match=f"a solver '{name}' already"):
        register(Solver(name, solve_tailored))
    assert before == SOLVERS


@pytest.mark.parametrize(("p", "name"), [(1.0, "tailored"), (0.5, "column-constraint"), (2.0, "column-constraint")])
def test_auto_is_the_first_that_handles_p(calls, p, name):
    assert chosen_solver("auto", p, "l1").name == name


@pytest.mark.parametrize(
    ("name", "function"), [("column-constraint", solve_column_constraint), ("monolithic", solve_monolithic)]
)
def test_options_are_those_of_the_function(name, function):
    """All of its keywords but those that the registry passes, and one that experiments alone need."""
    passed = {"problem", "tol", "max_rounds", "conic_solver", "keep_residue"}
    assert set(SOLVERS[name].options) == set(signature(function).parameters) - passed


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_all_that_handle_p_agree(p):
    problem = random_problem(3, p=p)
    values = [
        solve(problem, name, {}, "CLARABEL", 1e-7, 500).upper for name, one in SOLVERS.items() if one.handles(p, "l1")
    ]
    assert len(values) >= (3 if p == 1 else 2)
    assert np.ptp(values) <= 1e-7
