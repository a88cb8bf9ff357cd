"""A norm from outside: every solver that handles it fits it, and certificate, worst case and radius_max know it."""

from dataclasses import replace

import numpy as np
import pytest

from tests.instances import WeightedL1, random_coefficients, random_problem
from wdrlr import WassersteinLogisticRegression, radius_max
from wdrlr.model.metric import L1, L2, NORMS, LInf, Norm
from wdrlr.model.objective import worst_case_loss
from wdrlr.model.worst_case import worst_case_distribution
from wdrlr.solvers.column_constraint import solve_column_constraint, solve_monolithic
from wdrlr.solvers.interior_point.method import solve_tailored
from wdrlr.solvers.largest_radius import largest_useful_radius

WEIGHTS = np.array([0.5, 3.0, 1.25])


@pytest.fixture(autouse=True)
def norms(monkeypatch):
    monkeypatch.setitem(NORMS, "weighted", WeightedL1(WEIGHTS))
    monkeypatch.setitem(NORMS, "half", WeightedL1(np.array([0.5])))


def posed_both_ways(seed, **setting):
    """With the weighted norm, and with l1 on numbers that are multiplied by the weights."""
    problem = random_problem(seed, n=3, N=25, norm="weighted", **setting)
    factor = np.ones(problem.n_coefficients)
    factor[1:4] = WEIGHTS
    metric = replace(problem.metric, norm="l1")
    other = replace(problem, x=problem.x * WEIGHTS, metric=metric, penalty=problem.penalty * factor)
    return problem, other, factor


@pytest.mark.parametrize("solver", [solve_column_constraint, solve_monolithic])
@pytest.mark.parametrize("form", ["primal", "dual"])
@pytest.mark.parametrize("setting", [{}, {"gamma": 0.01, "radius": 0.02, "p": 2.0}, {"label_cost": np.inf}])
def test_the_conic_solvers_fit_it(solver, form, setting):
    problem, other, factor = posed_both_ways(1, **setting)
    ours, theirs = solver(problem, form=form), solver(other, form=form)
    assert 0 <= ours.gap <= 1e-6
    assert ours.upper == pytest.approx(theirs.upper, abs=2e-6)
    assert ours.b[1:4].any()
    assert worst_case_loss(other, ours.b / factor)[0] == pytest.approx(worst_case_loss(problem, ours.b)[0], rel=1e-12)


class WeightedLInf(Norm):
    """The largest weights_j |v_j|."""

    def value(self, v):
        return float(np.max(WEIGHTS * np.abs(v)))

    def dual(self, b):
        return float(np.sum(np.abs(b) / WEIGHTS))

    def steepest(self, b, length=1.0):
        return length * np.sign(b) / WEIGHTS


@pytest.mark.parametrize("setting", [{}, {"gamma": 0.01, "radius": 0.02}, {"label_cost": np.inf}, {"coef_bound": 0.5}])
@pytest.mark.parametrize("name, norm", [("l1", WeightedL1(WEIGHTS)), ("linf", WeightedLInf())])
def test_the_interior_point_method_fits_it(monkeypatch, name, norm, setting):
    monkeypatch.setitem(NORMS, "weighted", norm)
    for seed in range(4):
        problem, other, factor = posed_both_ways(seed, **setting)
        bound = np.broadcast_to(problem.coef_bound, problem.n_coefficients) / factor
        other = replace(other, metric=replace(other.metric, norm=name), coef_bound=bound)
        ours, theirs = solve_tailored(problem), solve_tailored(other)
        assert 0 <= ours.gap <= 1e-6 and theirs.gap <= 1e-6
        assert ours.upper == pytest.approx(theirs.upper, abs=2e-6)


@pytest.mark.parametrize("base", [L1, L2, LInf])
def test_a_subclass_of_a_norm_of_the_package_has_its_own_values(monkeypatch, base):
    """Which the interior-point method takes from its methods, not from what it knows of the base."""

    class Heavier(base):
        def value(self, v):
            return base().value(WEIGHTS * v)

        def dual(self, b):
            return base().dual(b / WEIGHTS)

        def steepest(self, b, length=1.0):
            return base().steepest(b / WEIGHTS, length) / WEIGHTS

    monkeypatch.setitem(NORMS, "weighted", Heavier())
    name = {L1: "l1", L2: "l2", LInf: "linf"}[base]
    for seed in range(4):
        problem, other, _ = posed_both_ways(seed, radius=0.05)
        other = replace(other, metric=replace(other.metric, norm=name))
        ours, theirs = solve_tailored(problem), solve_tailored(other)
        assert 0 <= ours.gap <= 1e-6 and theirs.gap <= 1e-6
        assert ours.upper == pytest.approx(theirs.upper, abs=2e-6)


@pytest.mark.parametrize("setting", [{}, {"gamma": 0.01}, {"label_cost": np.inf}, {"p": 2.0}])
def test_the_largest_useful_radius(setting):
    for seed in range(4):
        problem, other, _ = posed_both_ways(seed, **setting)
        assert largest_useful_radius(problem) == pytest.approx(largest_useful_radius(other), rel=1e-6)


def test_the_worst_case():
    problem, _, _ = posed_both_ways(2, radius=0.2)
    worst = worst_case_distribution(problem, random_coefficients(problem, 2, size=5.0), eta=1e-7)
    assert not worst.attained
    assert worst.transport_cost == pytest.approx(0.2, rel=1e-9)
    assert worst.expected_loss == pytest.approx(worst.worst_case_loss, abs=1e-5)


def test_the_classifier_has_it_by_name():
    """Half of the norm is the norm of half the numbers, whose slopes are twice as large."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1))
    y = X[:, 0] + rng.normal(size=40) > 0
    model = WassersteinLogisticRegression(0.05, norm="half").fit(X, y)
    halved = WassersteinLogisticRegression(0.05).fit(X / 2, y)
    assert 0 <= model.gap_ <= 1e-6
    assert model.objective_ == pytest.approx(halved.objective_, abs=2e-6)
    assert radius_max(X, y, norm="half") == pytest.approx(radius_max(X / 2, y), rel=1e-8)
    assert WassersteinLogisticRegression(0.05, norm="half", solver="column-constraint").fit(X, y).gap_ <= 1e-6


def test_a_norm_without_forms_says_what_it_lacks(monkeypatch):
    class Bare(WeightedL1):
        form, dual_form = Norm.form, Norm.dual_form

    monkeypatch.setitem(NORMS, "bare", Bare(WEIGHTS))
    problem = random_problem(0, n=3, norm="bare")
    assert largest_useful_radius(problem) > 0
    assert solve_tailored(problem).gap <= 1e-6
    for form in ("primal", "dual"):
        with pytest.raises(NotImplementedError, match="Bare has no form; conic programs need"):
            solve_column_constraint(problem, form=form)
