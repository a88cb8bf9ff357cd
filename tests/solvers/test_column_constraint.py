"""Theorem 1's program and Algorithm 1 against each other, against an independent program, and against closed forms."""

from dataclasses import replace
from itertools import pairwise, product

import cvxpy as cp
import numpy as np
import pytest

from tests.instances import (
    CODE_SETTINGS,
    COST_SETTINGS,
    COSTS,
    at,
    cost_by_hand,
    enumerated_points,
    f_by_hand,
    random_problem,
    worst_case_by_hand,
)
from wdrlr.model.certificate import check
from wdrlr.model.cuts import all_cuts
from wdrlr.model.objective import objective
from wdrlr.paper.runtimes import instance
from wdrlr.solvers import column_constraint
from wdrlr.solvers.closed_form import best_constant, constant_objective, optimal_constant
from wdrlr.solvers.column_constraint import Easing, solve_column_constraint, solve_monolithic
from wdrlr.solvers.conic import OutOfTime
from wdrlr.solvers.dual_repair import dual_points
from wdrlr.solvers.largest_radius import largest_useful_radius
from wdrlr.solvers.programs import ProgramSolution, solve_program
from wdrlr.solvers.solution import certified, separated

SETTINGS = [
    {},
    {"n": 0, "n_levels": (2, 2, 2, 2)},
    {"n": 2, "norm": "l2"},
    {"n": 2, "norm": "linf", "label_cost": 3.0},
    {"label_cost": np.inf},
    {"p": 2.0},
    {"p": 0.5},
    {"metric_scale": "unit", "radius": 0.01, "coding": "pm1", "coef_bound": 100.0},
    {"gamma": 0.01},
    {"gamma": 0.01, "penalize_intercept": True, "coding": "pm1"},
    {"coef_bound": 0.4},
    {"fit_intercept": False},
    {"weighted": True, "n_levels": (3, 1, 2)},
    {"radius": 1e-3},
    {"radius": 0.3},
]
OPTIONS = [
    {},
    {"form": "primal"},
    {"all_violated": True},
    {"all_violated": True, "form": "primal"},
    {"easing": Easing("every-200", "constant")},
    {"easing": Easing("geometric", "growing"), "all_violated": True},
]


def optimum_by_hand(problem):
    """The optimal value from a program written independently: one softplus constraint for each enumerated point."""
    n, n_b = problem.n_numeric, problem.n_coefficients
    b, lam, s = cp.Variable(n_b), cp.Variable(nonneg=True), cp.Variable(problem.n_samples)
    points = [(i, z, flip) for i in range(problem.n_samples) for z, flip in enumerated_points(problem)]
    paid = np.array([cost_by_hand(problem, i, z, flip) for i, z, flip in points])
    points = [point for point, cost in zip(points, paid, strict=True) if cost < np.inf]
    owner = [i for i, _, _ in points]
    rows = [[-flip * problem.y[i] * f_by_hand(problem, unit, i, z) for unit in np.eye(n_b)] for i, z, flip in points]
    constraints = [cp.logistic(np.array(rows) @ b) - lam * paid[paid < np.inf] <= s[owner]]
    costs = np.ones(n) if problem.metric.number_costs is None else problem.metric.number_costs
    slopes = [b[1 + j] / costs[j] for j in range(n) if np.isfinite(costs[j])]
    if slopes:
        dual = {"l1": cp.norm_inf, "l2": cp.norm2, "linf": cp.norm1}[problem.metric.norm]
        constraints.append(problem.metric.scale * dual(cp.hstack(slopes)) <= lam)
    if np.isfinite(problem.coef_bound).all():
        constraints.append(cp.abs(b) <= problem.coef_bound)
    if not problem.fit_intercept:
        constraints.append(b[0] == 0)
    objective = lam * problem.radius + problem.w @ s + problem.penalty @ cp.abs(b)
    return cp.Problem(cp.Minimize(objective), constraints).solve(solver="CLARABEL")


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # of the independent program
@pytest.mark.parametrize(
    "setting",
    [
        *SETTINGS,
        *COST_SETTINGS,
        *CODE_SETTINGS,
        *({"costs": kind, "gamma": 0.02, "n": 2, "N": 9} for kind in COSTS),
        {"costs": "mixed", "coef_bound": 0.4},
        {"costs": "matrices", "fit_intercept": False},
        CODE_SETTINGS[0] | {"gamma": 0.02},
        CODE_SETTINGS[1] | {"coef_bound": 0.3, "fit_intercept": False},
    ],
    ids=str,
)
def test_every_way_to_the_optimum_gives_the_same_value(setting):
    problem = random_problem(7, **setting)
    expected = optimum_by_hand(problem)
    solutions = [solve_monolithic(problem, form=form) for form in ("primal", "dual")]
    solutions += [solve_column_constraint(problem, **options) for options in OPTIONS]
    for solution in solutions:
        assert solution.upper == pytest.approx(expected, abs=1e-6)
        assert 0 <= solution.gap <= 1e-6
        # The upper bound is the enumerated objective at the coefficients, found without any of the library's code.
        by_hand = worst_case_by_hand(problem, solution.b) + problem.penalty @ np.abs(solution.b)
        assert solution.upper == pytest.approx(by_hand, abs=1e-8)
        assert (np.abs(solution.b) <= problem.coef_bound * (1 + 1e-9)).all()


@pytest.mark.parametrize("options", [{}, {"all_violated": True}, {"easing": Easing()}, {"first_cuts": "none"}])
def test_bounds_are_monotone_and_enclose_the_optimum(options):
    for setting in (
        {"N": 20},
        {"N": 20, "label_cost": 3.0, "radius": 0.1},
        {"n": 0, "n_levels": (2,) * 6, "label_cost": 6.0},
    ):
        problem = random_problem(11, **setting)
        optimum = solve_monolithic(problem)
        solution = solve_column_constraint(problem, **options)
        lower, upper = np.array(solution.bounds).T
        assert len(lower) == solution.n_rounds
        assert (np.diff(lower) >= -1e-7).all()
        assert (np.diff(upper) <= 0).all()
        assert (lower <= optimum.upper + 1e-7).all()
        assert (upper >= optimum.lower - 1e-7).all()
        assert upper[-1] - lower[-1] <= 1e-6
    assert solution.n_rounds >= 3


@pytest.mark.parametrize("form", ["primal", "dual"])
@pytest.mark.parametrize("kind", [None, *COSTS])
def test_the_first_program_may_have_no_cuts(kind, form):
    """It is then 0, which s >= 0 says; the end is the same."""
    problem = random_problem(4, N=9, costs=kind, label_cost=2.0, gamma=0.01)
    for radius in (0.0, 0.05):
        posed = replace(problem, radius=radius)
        empty = solve_column_constraint(posed, first_cuts="none", form=form)
        full = solve_column_constraint(posed, form=form)
        assert empty.upper == pytest.approx(full.upper, abs=1e-6) and 0 <= empty.gap <= 1e-6
        if radius > 0:
            assert empty.bounds[0][0] == pytest.approx(0.0, abs=1e-6) and empty.n_rounds > full.n_rounds


def test_easing_deletes_cuts_with_slack_at_most_once_and_reaches_the_same_optimum(monkeypatch):
    problem = random_problem(11, N=30, n=0, n_levels=(2,) * 6, label_cost=6.0, radius=0.2)
    plain = solve_column_constraint(problem)
    monkeypatch.setattr(Easing, "is_due", lambda self, n_rounds: n_rounds % 3 == 0)
    sizes, seen = [], []

    def spy(problem, cuts, form, *others):
        sizes.append(len(cuts))
        seen.append(set(cuts.keys()))
        return solve_program(problem, cuts, form, *others)

    monkeypatch.setattr(column_constraint, "solve_program", spy)
    eased = solve_column_constraint(problem, easing=Easing())
    assert min(np.diff(sizes)) < -10
    assert eased.n_cuts < plain.n_cuts
    assert eased.upper == pytest.approx(plain.upper, abs=1e-6)
    deletions = [key for before, after in pairwise(seen) for key in before - after]
    assert len(deletions) == len(set(deletions)) > 10


def let_programs_take_a_second(monkeypatch):
    """By a clock of their own, at which a deadline can pass."""
    clock = [0.0]
    monkeypatch.setattr(column_constraint, "perf_counter", lambda: clock[0])

    def a_second_each(problem, cuts, form, conic_solver, deadline):
        if clock[0] >= deadline:
            raise OutOfTime("no time is left")
        clock[0] += 1.0
        return solve_program(problem, cuts, form, conic_solver)

    monkeypatch.setattr(column_constraint, "solve_program", a_second_each)


def test_a_time_limit_returns_the_last_round_with_its_true_gap(monkeypatch):
    problem = random_problem(11, N=30, n=0, n_levels=(2,) * 6, label_cost=6.0, radius=0.2)
    let_programs_take_a_second(monkeypatch)
    stopped = solve_column_constraint(problem, time_limit=4.0)
    assert stopped.n_rounds == 4
    assert stopped.gap > 1e-6
    with pytest.raises(OutOfTime):
        solve_column_constraint(problem, time_limit=0.0)
    with pytest.raises(OutOfTime):
        solve_monolithic(problem, time_limit=0.0)


def test_a_violation_whose_exponential_overflows_has_a_finite_bound():
    problem = random_problem(11, N=5)
    wild = ProgramSolution(0.0, np.full(problem.n_coefficients, 1e4), 0.0, np.zeros(5), np.zeros(10))
    _, excess = column_constraint._violated(problem, wild, 1e-6, False)
    assert 1e3 < excess < np.inf


def test_easing_schedules_and_thresholds():
    every, geometric = Easing("every-200", "constant"), Easing("geometric", "growing")
    assert [r for r in range(1, 700) if every.is_due(r)] == [200, 400, 600]
    assert [r for r in range(1, 700) if geometric.is_due(r)] == [100, 150, 225, 337, 506]
    assert [every.slack(k) for k in range(3)] == [0.05, 0.05, 0.05]
    assert np.allclose([geometric.slack(k) for k in range(3)], [0.02, 0.04, 0.06])
    with pytest.raises(ValueError, match="schedule"):
        Easing("never")
    with pytest.raises(ValueError, match="threshold"):
        Easing("geometric", "none")


def test_the_dual_program_is_the_worst_case_distribution():
    problem = random_problem(13, n=0)
    cuts = all_cuts(problem, 10_000)
    program = solve_program(problem, cuts, "dual", "CLARABEL")
    assert np.allclose(np.bincount(cuts.sample, program.mass), problem.w, atol=1e-7)
    assert program.mass @ cuts.costs(problem) <= problem.radius + 1e-7
    expected_loss = program.mass @ np.logaddexp(0, cuts.rows(problem) @ program.b)
    assert expected_loss == pytest.approx(objective(problem, program.b)[0], abs=1e-6)


def test_stopping_early_is_visible_in_the_gap():
    problem = random_problem(11, N=30, n=0, n_levels=(2,) * 6, label_cost=6.0, radius=0.2)
    solution = solve_column_constraint(problem, max_rounds=2)
    assert solution.n_rounds == 2
    assert solution.gap > 1e-3
    assert solution.lower <= solve_column_constraint(problem, all_violated=True).lower + 1e-7


def test_too_large_a_monolithic_program_is_refused():
    with pytest.raises(ValueError, match="column-constraint"):
        solve_monolithic(random_problem(0, n=0, n_levels=(2,) * 20))


@pytest.mark.parametrize("gamma", [0.0, 0.02])
def test_radius_0_is_logistic_regression(gamma):
    problem = random_problem(14, N=60, radius=0.0, gamma=gamma)
    assert not separated(problem).any()
    b = cp.Variable(problem.n_coefficients)
    rows = np.array([problem.design(np.array([i]), problem.z[[i]])[0] for i in range(60)])
    loss = problem.w @ cp.logistic(cp.multiply(-problem.y, rows @ b)) + gamma * cp.norm1(b[1:])
    expected = cp.Problem(cp.Minimize(loss)).solve(solver="CLARABEL")
    solution = solve_column_constraint(problem)
    assert solution.upper == pytest.approx(expected, abs=1e-7)
    assert solution.gap <= 1e-6
    assert np.isnan(solution.lam)


def closed_form(problem):
    """The solution that is known without a solver, if its certificate agrees."""
    known = optimal_constant(problem)
    solution = known and certified(problem, known[0], [known[1]], 1e-9)
    return solution if solution and solution.gap <= 1e-9 else None


@pytest.mark.parametrize("metric_scale", [None, "unit"])
@pytest.mark.parametrize("factor", [1.0, 5.0])
def test_from_half_the_label_cost_on_the_answer_is_zero(metric_scale, factor):
    scale = 1.0 if metric_scale is None else 1 + 3 + 2.0
    problem = random_problem(15, label_cost=2.0, metric_scale=metric_scale, radius=factor * 1.0 / scale)
    known = closed_form(problem)
    for solution in (known, solve_column_constraint(problem, all_violated=True)):
        assert not solution.b.any()
        assert solution.upper == pytest.approx(np.log(2), abs=1e-12)
        assert solution.gap <= 1e-6
    assert known.gap <= 1e-13


@pytest.mark.parametrize(
    "setting",
    [
        {},
        {"n": 0, "label_cost": 5.0},
        {"n": 3, "norm": "l2"},
        {"p": 2.0},
        {"label_cost": np.inf},
        {"label_cost": np.inf, "n": 2, "norm": "linf", "weighted": True},
        {"label_cost": np.inf, "n": 0, "gamma": 0.01, "penalize_intercept": True, "coding": "pm1"},
    ],
)
def test_the_closed_form_applies_where_zero_is_optimal_and_only_there(setting):
    for seed in range(4):
        problem = random_problem(seed, **setting)
        needed = largest_useful_radius(problem)
        largest = problem.metric.label_change if np.isfinite(problem.metric.label_change) else 5.0
        applies = [r for r in np.linspace(0.01, 1.0, 60) * largest if closed_form(at(problem, r))]
        assert applies
        assert min(applies) >= needed - 1e-9
        known = closed_form(at(problem, min(applies)))
        assert known.upper == pytest.approx(objective(at(problem, min(applies)), known.b)[0], abs=1e-12)
        slow = solve_column_constraint(at(problem, min(applies)), all_violated=True)
        assert slow.lower >= known.upper - 1e-6
        assert closed_form(at(problem, 0.0)) is None


@pytest.mark.parametrize("label_cost", [8.0, np.inf])
@pytest.mark.parametrize(
    "setting",
    [
        *({"costs": kind} for kind in COSTS),
        {"costs": "matrices", "n": 0, "metric_scale": "unit"},
        {"any_code": True, "coding": "pm1"},
        {"any_code": True, "coding": "pm1", "costs": "features", "n": 0},
    ],
    ids=str,
)
def test_the_closed_form_with_costs(setting, label_cost):
    """Where it applies, no solver finds better; it does below kappa / 2, if the classes can meet."""
    n_met = 0
    for seed in range(5):
        scale = {} if np.isfinite(label_cost) else {"metric_scale": None}
        problem = random_problem(seed, **(setting | scale), label_cost=label_cost)
        half = problem.metric.label_change / 2 if np.isfinite(label_cost) else 8.0
        applies = [r for r in np.geomspace(0.02, 0.99, 25) * half if closed_form(at(problem, r))]
        if applies:
            least = at(problem, min(applies))
            known = closed_form(least)
            assert known.upper == pytest.approx(worst_case_by_hand(least, known.b), abs=1e-9)
            assert solve_column_constraint(least, all_violated=True).lower >= known.upper - 1e-6
            n_met += 1
    assert n_met > 0


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_without_categories_and_label_changes_it_is_a_regularised_regression(norm):
    """The remark after Theorem 3's proof: LR + radius * dual norm."""
    problem = random_problem(16, N=40, n=3, n_levels=(), label_cost=np.inf, norm=norm, radius=0.03)
    b_0, b_N = cp.Variable(), cp.Variable(3)
    dual = {"l1": cp.norm_inf, "l2": cp.norm2, "linf": cp.norm1}[norm](b_N)
    loss = problem.w @ cp.logistic(cp.multiply(-problem.y, problem.x @ b_N + b_0)) + 0.03 * dual
    expected = cp.Problem(cp.Minimize(loss)).solve(solver="CLARABEL")
    assert solve_column_constraint(problem).upper == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("label_cost", [np.inf, 3.0])
def test_where_all_slopes_are_0_the_constant_model_is_returned_exactly(label_cost):
    problem = random_problem(17, N=21, label_cost=label_cost, radius=1.2 if np.isfinite(label_cost) else 50.0)
    solution = solve_column_constraint(problem, all_violated=True)
    assert not solution.b[1:].any()
    assert solution.gap <= 1e-6
    constant = best_constant(problem)
    assert constant[0] == solution.b[0]
    for b_0 in np.linspace(-2, 2, 81):
        other = np.zeros(problem.n_coefficients)
        other[0] = b_0
        assert objective(problem, constant)[0] <= objective(problem, other)[0] + 1e-9
    if np.isinf(label_cost):
        positive = problem.w[problem.y > 0].sum()
        assert solution.b[0] == pytest.approx(np.log(positive / (1 - positive)), abs=1e-12)


def test_the_best_constant_where_all_labels_are_the_same():
    problem = random_problem(17, radius=0.1, label_cost=1.5)
    problem.y[:] = -1.0
    constant = best_constant(problem)
    assert constant[0] < 0
    for b_0 in np.linspace(-6, 2, 81):
        other = np.zeros(problem.n_coefficients)
        other[0] = b_0
        assert objective(problem, constant)[0] <= objective(problem, other)[0] + 1e-9
    assert not best_constant(at(problem, 0.0)).any()  # the more extreme the better: there is no best


def test_separability():
    separable = random_problem(18, N=3, n=3, radius=0.0)
    assert separated(separable).all()
    assert not separated(random_problem(18, N=80, n=1, radius=0.0)).any()
    # One level that occurs with one label only makes the data quasi-separable: its rows are separated, no others.
    quasi = random_problem(18, N=80, n=0, n_levels=(3, 2), radius=0.0)
    quasi.y[quasi.z[:, 0] == 2] = 1.0
    assert separated(quasi).tolist() == (quasi.z[:, 0] == 2).tolist()


def test_separability_in_steps():
    """The first direction leaves samples at 0 that only a second one separates."""
    problem = random_problem(0, N=6, n=2, n_levels=(), radius=0.0)
    problem.x[:] = [[1, 0], [1, 5], [-1, 3], [0, 1], [0, 1], [0, -1]]
    problem.y[:] = [1, 1, -1, 1, 1, -1]
    assert separated(problem).all()
    problem.y[4] = -1.0
    assert separated(problem).tolist() == [True, True, True, False, False, True]


@pytest.mark.parametrize("seed", range(4))
def test_the_column_of_a_slope_at_0_may_be_that_of_another(seed):
    """Where each cut with mass has the same level. Held where they were, both together, gaps were up to 1e-5."""
    problem = random_problem(seed, N=8, coding="pm1", n_levels=(2, 4, 3), gamma=0.02)
    for solve in (solve_monolithic, solve_column_constraint):
        assert solve(problem).gap <= 1e-7


@pytest.mark.parametrize("kind", COSTS)
def test_algorithm_1_and_the_monolithic_program_agree_and_are_certified(kind):
    for seed in range(5):
        for setting in ({"n": 3}, {"weighted": True, "radius": 1e-3}, {"radius": 0.5, "label_cost": 0.7}):
            problem = random_problem(seed, costs=kind, **setting)
            first, second = solve_column_constraint(problem, all_violated=True), solve_monolithic(problem)
            assert 0 <= first.gap <= 1e-6 and 0 <= second.gap <= 1e-6
            assert first.upper == pytest.approx(second.upper, abs=1e-6)


def test_all_cuts_enumerates_every_point_once():
    problem = random_problem(19, N=2, n_levels=(2, 3))
    keys = all_cuts(problem, 100).keys()
    assert len(keys) == len(set(keys)) == 2 * 6 * 2
    assert {key[2] for key in keys} == {np.array(z).tobytes() for z in product(range(2), range(3))}


def test_programs_on_which_clarabel_would_stop_early_by_default():
    """With its default limits on short steps it returned no point for the first, and the second had a gap of 0.01."""
    monolithic = solve_monolithic(instance("m", "2", 50, 6, 23, 0.01, 0))
    assert monolithic.gap <= 1e-6
    scheme = solve_column_constraint(instance("m", "2", 500, 20, 43, 0.01, 0), all_violated=True)
    assert scheme.gap <= 1e-6


@pytest.mark.parametrize("label_cost", [0.4, 3.0, np.inf])
@pytest.mark.parametrize("coef_bound", [np.inf, 0.2])
def test_the_objective_of_the_best_constant_by_its_formula(label_cost, coef_bound):
    for seed, radius in enumerate([0.0, 0.02, 0.1, 5.0]):
        problem = random_problem(
            seed, N=21, label_cost=label_cost, radius=radius, gamma=0.01, penalize_intercept=True, coef_bound=coef_bound
        )
        constant = best_constant(problem)
        assert constant_objective(problem, constant) == pytest.approx(objective(problem, constant)[0], abs=1e-12)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_a_box_that_binds_beside_a_penalty_and_the_norm(norm, p):
    """The force of the box is what the other two do not carry; charged with all of r, gaps were near 1e-2."""
    setting = {"N": 50, "n": 2, "label_cost": np.inf, "gamma": 0.01, "penalize_intercept": True, "coef_bound": 0.1}
    for seed in range(4):
        problem = random_problem(seed, **setting, norm=norm, p=p, radius=0.001)
        assert solve_column_constraint(problem, all_violated=True).gap <= 1e-6


@pytest.mark.parametrize("radius", [0.003, 0.1])
def test_numbers_that_may_not_move_leave_the_radius_to_the_others(radius):
    """Their residuals cost infinitely much, which kept the others from paying for theirs: gaps were up to 0.28."""
    for seed in range(12):
        setting = {"N": 15, "n": 3, "n_levels": (2,), "radius": radius}
        problem = random_problem(seed, costs="fixed", label_cost=np.inf, fit_intercept=seed % 2 == 0, **setting)
        assert solve_monolithic(problem).gap <= 1e-6


@pytest.mark.parametrize("seed", [0, 10, 11])
def test_numbers_at_their_bound_take_what_the_others_leave_of_the_radius(seed):
    """In proportion to what the balance asks for, gaps were up to 7e-3; with costs, some at lam are there."""
    setting = {"N": 15, "n": 3, "n_levels": (2,), "coef_bound": 0.3, "radius": 0.1, "fit_intercept": seed % 2 == 0}
    problem = random_problem(seed, costs="fixed", label_cost=np.inf, **setting)
    assert solve_monolithic(problem).gap <= 1e-6


@pytest.mark.parametrize("shift", [1e3, 1e6, 1e8])
def test_numbers_far_from_0(shift):
    problem = random_problem(6, N=40, n=2, radius=0.02)
    far = replace(problem, x=problem.x + np.array([shift, 0.0]))
    near = solve_column_constraint(problem, all_violated=True)
    solution = solve_column_constraint(far, all_violated=True)
    assert solution.gap <= 1e-6
    assert abs(solution.upper - near.upper) <= solution.gap + near.gap


def test_masses_that_carry_no_curvature_break_nothing():
    """Slopes of 1 leave a matrix of 1e-300, and its inverse overflowed."""
    problem = random_problem(0, N=4, n=1, n_levels=(2,), radius=1e-6)
    b = np.full(problem.n_coefficients, 1e4)
    cuts = all_cuts(problem, 100)
    for dual in dual_points(problem, cuts, np.full(len(cuts), 1e-200), b, 1e-6):
        assert np.isfinite(check(problem, b, dual).lower)


@pytest.mark.parametrize("value", [1.0, -2.5, 0.1])
def test_the_mean_of_a_constant_column_leaves_no_slope_to_rounding(value):
    """Without a radius nothing else would bound that slope: it was 1e15, and the gap 1e-3."""
    problem = random_problem(1, N=150, n=1, n_levels=(3,), radius=0.0, weighted=True)
    problem = replace(problem, x=np.full((150, 1), value))
    assert solve_column_constraint(problem, tol=1e-8, all_violated=True).gap <= 1e-8
