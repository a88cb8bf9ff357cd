"""One fit, and a grid of them."""

import logging

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from tests.estimators.test_classifier import mixed_data
from tests.instances import random_problem
from tests.solvers.test_column_constraint import let_programs_take_a_second
from wdrlr import SeparableDataWarning, WassersteinLogisticRegression, fit_path, radius_max
from wdrlr.estimators.solving import Solving, at_point, shown
from wdrlr.solvers import column_constraint


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_a_grid_is_its_points(p):
    unit = random_problem(3, p=p, gamma=1.0, penalize_intercept=True)
    solving, grid = Solving(tol=1e-7), [(0.0, 0.01), (0.05, 0.0), (0.05, 0.01)]
    for point, found in zip(grid, solving.solve_all([at_point(unit, *point) for point in grid]), strict=True):
        problem = at_point(unit, *point)
        assert problem.radius == point[0] and (problem.penalty == point[1]).all()
        np.testing.assert_array_equal(found.b, solving.solve(problem).b)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_a_path_is_certified_whatever_its_order_and_takes_fewer_steps(norm):
    unit = random_problem(3, N=200, n=3, n_levels=(2, 5, 3), norm=norm, gamma=1.0, coef_bound=1.0)
    solving = Solving()
    problems = [
        at_point(unit, radius, penalty) for penalty in (0.0, 1e-3) for radius in (0.0, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2)
    ]
    found, alone = solving.solve_path(problems), solving.solve_all(problems)
    for solution, other in zip(found, alone, strict=True):
        assert 0 <= solution.gap <= solving.tol
        assert solution.upper == pytest.approx(other.upper, abs=solving.tol)
    assert sum(solution.n_rounds for solution in found) < 0.9 * sum(solution.n_rounds for solution in alone)
    np.testing.assert_array_equal(found[0].b, alone[0].b)  # radius 0
    for solution, other in zip(solving.solve_path(problems[::-1])[::-1], found, strict=True):
        np.testing.assert_array_equal(solution.b, other.b)


def test_a_path_of_a_solver_that_takes_no_start_is_its_fits():
    unit = random_problem(3, gamma=1.0, p=2.0)
    problems = [at_point(unit, radius, 0.01) for radius in (0.02, 0.05)]
    for found, alone in zip(Solving().solve_path(problems), Solving().solve_all(problems), strict=True):
        np.testing.assert_array_equal(found.b, alone.b)


def test_out_of_time_the_remedy_is_time_and_not_max_iter(monkeypatch):
    problem = random_problem(11, N=30, n=0, n_levels=(2,) * 6, label_cost=6.0, radius=0.2)
    let_programs_take_a_second(monkeypatch)
    with pytest.warns(ConvergenceWarning, match="raise the time_limit in solver_options") as caught:
        Solving("column-constraint", {"time_limit": 4.0, "all_violated": False}).fit(problem)
    assert "max_iter" not in str(caught[0].message)
    with pytest.warns(ConvergenceWarning, match="Raise max_iter") as caught:
        Solving("column-constraint", {"all_violated": False}, max_iter=4).fit(problem)
    assert "time" not in str(caught[0].message)


def test_a_start_of_another_length_is_none():
    solving, problem = Solving(), random_problem(3, radius=0.02)
    other = solving.solve(random_problem(3, n=3, radius=0.02))
    np.testing.assert_array_equal(solving.fit(problem, start=other).b, solving.fit(problem).b)
    warm = solving.fit(problem, start=solving.fit(problem))
    assert warm.n_rounds < solving.fit(problem).n_rounds and warm.gap <= 1e-6


def said(verbose, capfd):
    """What is printed of a message of each level, and the level of the logger afterwards."""
    logger = logging.getLogger("wdrlr")
    with shown(verbose):
        for level in ("debug", "info", "warning"):
            getattr(logger, level)("a message of level %s", level)
    return [line.split()[-1] for line in capfd.readouterr().out.splitlines()]


def test_what_is_logged_is_shown_once(capfd, caplog):
    logger = logging.getLogger("wdrlr")
    for verbose, printed in ((0, []), (1, ["info"]), (2, ["debug", "info"]), (3, ["debug", "info"])):
        assert said(verbose, capfd) == printed
        assert caplog.messages == ["a message of level warning"]
        assert logger.level == logging.NOTSET and not logger.filters
        caplog.clear()
    with caplog.at_level(logging.INFO, logger="wdrlr"):  # one who has turned it on sees it there, not twice
        assert said(1, capfd) == []
        assert len(caplog.messages) == 2
    with pytest.raises(ZeroDivisionError), shown(1):
        1 / 0  # noqa: B018
    assert logger.level == logging.NOTSET and not logger.filters


def test_conic_solvers_tell_their_rounds_about_once_a_second_or_all_of_them(capfd, monkeypatch):
    problem = random_problem(3, N=20, radius=0.2, n_levels=(3, 3))
    options = {"solver": "column-constraint", "solver_options": {"first_cuts": "none"}, "conic_solver": "CLARABEL"}
    rounds = Solving(**options).solve(problem).n_rounds
    assert capfd.readouterr().out == "" and rounds > 1
    for verbose, seconds, expected in ((1, 1e9, 0), (1, 0.0, rounds), (2, 1e9, rounds)):
        monkeypatch.setattr(column_constraint, "SECONDS_BETWEEN_LINES", seconds)
        Solving(**options, verbose=verbose).solve(problem)
        out = capfd.readouterr().out
        assert out.count("wdrlr: round ") == expected
        assert ("Clarabel.rs" in out) == (verbose > 1)
    Solving("monolithic", conic_solver="CLARABEL", verbose=1).solve(problem)
    assert "wdrlr: one program with" in capfd.readouterr().out


def test_the_largest_radius_tells_its_rounds(capsys):
    X, y = mixed_data(40)
    value = radius_max(X, y)
    assert capsys.readouterr().out == ""
    assert radius_max(X, y, verbose=1) == value
    assert capsys.readouterr().out.startswith("wdrlr: largest useful radius: ")


@pytest.mark.parametrize(
    ("X", "y", "names"),
    [
        ({"a": list("uuvvww"), "b": list("pppppp")}, [0, 1, 0, 1, 1, 1], "'a'"),  # w is all of one class
        ({"a": list("ppqqpq"), "b": list("pqqqqp"), "x": [1.0, 2, 3, 4, 5, 6]}, [0, 0, 0, 1, 1, 1], "'x'"),
        ({f"a{j}": np.where(np.arange(14) // 2 == j, "u", "v") for j in range(7)}, [0, 0] + [1, 1] * 6, "'a0'"),
        (
            {f"a{j}": np.where(np.arange(14) // 2 == j, "u", "v") for j in range(7)},
            [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0],
            "'a3', 'a4', 'a5'",
        ),
    ],
)
def test_the_features_that_separate_the_data_are_named(X, y, names):
    with pytest.warns(SeparableDataWarning, match=rf"separated by {names}\.$"):
        WassersteinLogisticRegression(0.0).fit(pd.DataFrame(X), y)


def test_of_many_features_that_separate_the_data_a_few_are_named():
    X = pd.DataFrame({f"a{j}": np.where(np.arange(20) // 2 == j, "u", "v") for j in range(9)})
    y = [0, 1] + [0, 0, 1, 1] * 4 + [0, 1]
    with pytest.warns(SeparableDataWarning, match=r"separated by 'a1', 'a2', 'a3', 'a4', 'a5', \.\.\.\.$"):
        WassersteinLogisticRegression(0.0).fit(X, y)
    with pytest.warns(SeparableDataWarning, match=r"'a5', \.\.\.\.$"):
        fit_path(X, y, [0.0])
