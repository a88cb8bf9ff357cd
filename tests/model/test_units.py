"""The same problem in other units has the same solution."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.instances import in_other_units, random_problem
from wdrlr import WassersteinLogisticRegression
from wdrlr.model.objective import objective
from wdrlr.model.units import power_of_two, with_distance_unit, with_number_unit
from wdrlr.solvers.column_constraint import solve_column_constraint, solve_monolithic
from wdrlr.solvers.interior_point.method import solve_tailored

SETTINGS = [
    {},
    {"norm": "l2"},
    {"norm": "linf", "label_cost": 3.0},
    {"gamma": 0.01, "penalize_intercept": True},
    {"coef_bound": 0.4},
    {"label_cost": np.inf},
    {"fit_intercept": False},
    {"n_levels": ()},
    {"n_levels": (4, 5), "coding": "pm1"},
    {"radius": 0.0},
    {"radius": 1e-4, "weighted": True},
    {"radius": 3.0},
]


def same(solution, other):
    """Bit for bit, but for what the certificate takes off its lower bound for rounding."""
    assert solution.lower == pytest.approx(other.lower, abs=1e-13)
    return (solution.upper, solution.n_rounds) == (other.upper, other.n_rounds)


@pytest.mark.parametrize("setting", SETTINGS)
def test_powers_of_two_change_nothing(setting):
    problem = random_problem(3, **{"N": 30, "n": 2, **setting})
    fast, slow = solve_tailored(problem), solve_column_constraint(problem, all_violated=True)
    for exponent in (-30, -7, 1, 13, 30):
        other = in_other_units(problem, 2.0**exponent)
        assert same(solve_tailored(other), fast)
        assert same(solve_column_constraint(other, all_violated=True), slow)


def test_powers_of_two_change_nothing_for_the_monolithic_program():
    problem = random_problem(3, N=10, n=2)
    assert same(solve_monolithic(in_other_units(problem, 2.0**20)), solve_monolithic(problem))


@pytest.mark.parametrize("setting", SETTINGS)
def test_any_factor_changes_nothing_within_the_gaps(setting):
    problem = random_problem(4, **{"N": 30, "n": 2, **setting})
    fast = solve_tailored(problem, tol=1e-9)
    assert fast.gap <= 1e-9
    for c in (1e-9, 3e-4, 7.3, 1e6, 1e9):
        solution = solve_tailored(in_other_units(problem, c), tol=1e-9)
        assert solution.gap <= 1e-9
        assert abs(solution.upper - fast.upper) <= solution.gap + fast.gap


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    exponent=st.floats(-9, 9),
    norm=st.sampled_from(["l1", "l2", "linf"]),
    label_cost=st.sampled_from([0.01, 1.0, 30.0, np.inf]),
    radius=st.floats(-4, 1),
)
def test_tables_of_numbers_in_any_unit(seed, exponent, norm, label_cost, radius):
    """The classifier: x, radius and label cost times c."""
    rng = np.random.default_rng(seed)
    X, c = rng.normal(size=(25, 2)), 10.0**exponent
    y = X[:, 0] + rng.normal(size=25) > 0
    fits = []
    for unit in (1.0, c, power_of_two(c)):
        model = WassersteinLogisticRegression(10.0**radius * unit, label_cost * unit, norm=norm, tol=1e-9)
        fits.append(model.fit(X * unit, y))
        assert fits[-1].gap_ <= 1e-9
        assert fits[-1].worst_case_loss(X * unit, y) == pytest.approx(fits[-1].objective_, abs=1e-12)
    assert abs(fits[0].objective_ - fits[1].objective_) <= fits[0].gap_ + fits[1].gap_
    assert fits[0].objective_ == fits[2].objective_


@pytest.mark.parametrize("label_cost", [1.0, np.inf])
def test_units_leave_the_objective_as_it_is(label_cost):
    problem = random_problem(5, n=2, label_cost=label_cost, gamma=0.01, coef_bound=3.0)
    b = np.linspace(-1, 1, problem.n_coefficients)
    value, lam = objective(problem, b)
    in_units = with_number_unit(problem, 8.0)
    factor = np.where(np.isin(np.arange(len(b)), [1, 2]), 8.0, 1.0)
    assert objective(in_units, b * factor) == (value, lam)
    assert (in_units.coef_bound == 3.0 * factor).all()
    by_distance = with_distance_unit(replace(problem, radius=50.0), 1.0)
    assert by_distance.radius == 50.0 / 64
    value, lam = objective(replace(problem, radius=50.0), b)
    assert objective(by_distance, b) == (value, 64 * lam)


def test_numbers_of_a_million_are_certified_for_what_they_are():
    """The solver once took slacks of 1 / radius for rounding and its own bound for a certificate: 0.5132, gap 0."""
    X = np.array([[-3e6], [-2e6], [-1e6], [1e6], [2e6], [3e6]])
    y = [0, 0, 1, 0, 1, 1]
    model = WassersteinLogisticRegression(radius=1e6, label_cost=np.inf).fit(X, y)
    assert model.gap_ <= 1e-6
    assert model.objective_ == pytest.approx(model.worst_case_loss(X, y), abs=1e-12)
    assert model.objective_ <= np.log(2) + 1e-12


@pytest.mark.parametrize("radius", [1000.0, 3690.0, 10_000.0])
def test_incomes(radius):
    rng = np.random.default_rng(0)
    X = rng.normal(50_000, 20_000, size=(200, 1))
    y = X[:, 0] + rng.normal(0, 80_000, 200) > 50_000
    model = WassersteinLogisticRegression(radius=radius, label_cost=np.inf).fit(X, y)
    assert model.gap_ <= 1e-6
    assert model.objective_ == pytest.approx(model.worst_case_loss(X, y), abs=1e-12)
    finer = WassersteinLogisticRegression(radius=radius / 1e5, label_cost=np.inf, tol=1e-10).fit(X / 1e5, y)
    assert abs(model.objective_ - finer.objective_) <= model.gap_ + finer.gap_
