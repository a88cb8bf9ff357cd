"""The tailored solver against the conic programs, the certificate and itself."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from tests.instances import COSTS, at, random_problem
from tests.solvers.test_column_constraint import SETTINGS
from wdrlr import WassersteinLogisticRegression
from wdrlr.datasets import DataUnavailableError, load_dataset
from wdrlr.estimators.formulation import Formulation
from wdrlr.model.certificate import dual_value
from wdrlr.model.cuts import initial_cuts
from wdrlr.model.objective import objective
from wdrlr.solvers.column_constraint import solve_column_constraint
from wdrlr.solvers.dual_repair import coefficient_bounds, dual_points, residual_charge
from wdrlr.solvers.interior_point.coordinates import Coordinates
from wdrlr.solvers.interior_point.method import minimise, solve_tailored
from wdrlr.solvers.interior_point.newton import Newton
from wdrlr.solvers.interior_point.settings import Settings


def agree(problem, tol=1e-6):
    """Certified, and within tolerance of the conic solver; bounds recomputed by the library's slow code."""
    fast = solve_tailored(problem, tol=tol)
    assert 0 <= fast.gap <= tol
    assert objective(problem, fast.b)[0] <= fast.upper + 1e-10
    assert (np.abs(fast.b) <= problem.coef_bound).all()
    assert fast.b[0] == 0 or problem.fit_intercept
    slow = solve_column_constraint(problem, all_violated=True)
    assert fast.lower <= slow.upper + 1e-10
    assert slow.lower <= fast.upper + 1e-10
    assert slow.gap <= 1e-4
    assert fast.upper == pytest.approx(slow.upper, abs=2e-6)
    return fast


@pytest.mark.parametrize("setting", [setting for setting in SETTINGS if setting.get("p", 1.0) == 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_the_conic_solver(setting, seed):
    agree(random_problem(seed, **setting))


@pytest.mark.parametrize(
    "seed, n_levels, label_cost, radius",
    [(43, (12, 4, 12), 4.0, 1e-4), (26, (5, 12), 0.05, 1e-5), (34, (7, 5), 1.0, 1e-6), (100, (7, 5), 1.0, 1e-6)],
)
def test_without_an_intercept_and_with_many_levels(seed, n_levels, label_cost, radius):
    problem = random_problem(
        seed,
        N=25,
        n=1 + seed % 3,
        n_levels=n_levels,
        radius=radius,
        label_cost=label_cost,
        norm="linf",
        fit_intercept=False,
    )
    fit = solve_tailored(problem, tol=1e-8, max_iter=200)
    assert 0 <= fit.gap <= 1e-8 and fit.b[0] == 0
    assert objective(problem, fit.b)[0] <= fit.upper + 1e-12
    with_intercept = solve_tailored(replace(problem, fit_intercept=True))
    assert with_intercept.b[0] != 0 and with_intercept.lower <= fit.upper
    again = solve_tailored(problem, start=with_intercept)
    assert again.gap <= 1e-6 and again.b[0] == 0
    assert objective(problem, again.b)[0] <= again.upper + 1e-12
    assert again.upper == pytest.approx(fit.upper, abs=1e-6)


@pytest.mark.parametrize("label_cost, radius", [(1.0, 0.03), (3.0, 0.2), (3.0, 0.3)])
@pytest.mark.parametrize("coding", ["onehot", "pm1"])
def test_features_with_a_hundred_levels(label_cost, radius, coding):
    """If tops made way for one level after the other, a step each, these would take 200 steps, or end uncertified."""
    rng = np.random.default_rng(5)
    z = np.minimum(rng.exponential(size=(1000, 3)) * 25, 99).astype(int)
    f = (0.7 * rng.normal(size=(100, 3)))[z, np.arange(3)].sum(axis=1)
    y = np.where(rng.random(1000) < expit(f), 1.0, -1.0)
    formulation = Formulation(radius=radius, label_cost=label_cost, coding=coding)
    problem = formulation.problem(np.zeros((1000, 0)), z, y, np.full(1000, 1e-3), (100, 100, 100))
    fit = solve_tailored(problem)
    assert fit.gap <= 1e-6
    assert 5 < fit.n_rounds < 50


@st.composite
def problems(draw):
    m = draw(st.integers(0, 4))
    n = draw(st.integers(0 if m else 1, 3))
    unit = draw(st.booleans())
    return random_problem(
        draw(st.integers(0, 10_000)),
        N=draw(st.integers(2, 40)),
        n=n,
        n_levels=tuple(draw(st.lists(st.integers(1, 4), min_size=m, max_size=m))),
        radius=draw(st.sampled_from([0.0, 1e-4, 1e-3, 1e-2, 0.05, 0.2, 0.5])),
        label_cost=draw(st.sampled_from([0.1, 1.0, max(m, 1.0)] + [np.inf] * (not unit))),
        norm=draw(st.sampled_from(["l1", "l2", "linf"])),
        metric_scale="unit" if unit else None,
        gamma=draw(st.sampled_from([0.0, 5e-6, 5e-4, 5e-2])),
        penalize_intercept=draw(st.booleans()),
        coef_bound=draw(st.sampled_from([np.inf, 100.0, 1.0])),
        fit_intercept=draw(st.booleans()),
        coding=draw(st.sampled_from(["onehot", "pm1"])),
        weighted=draw(st.booleans()),
    )


@settings(max_examples=150, deadline=None, derandomize=True)
@given(problems())
def test_agrees_with_the_conic_solver_on_any_instance(problem):
    agree(problem)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e6])
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("radius", [1e-3, 0.0])
def test_numbers_of_any_scale(scale, norm, radius):
    problem = random_problem(1, N=40, n=2, norm=norm, radius=radius)
    problem.x[:, 0] *= scale
    solution = solve_tailored(problem)
    assert 0 <= solution.gap <= 1e-6
    assert objective(problem, solution.b)[0] <= solution.upper + 1e-10


def test_the_lower_bound_is_reached_by_other_means():
    """Multipliers from the conic solver give the same lower bound through the independent code."""
    problem = random_problem(2, N=40, radius=0.01)
    fast = solve_tailored(problem, tol=1e-8)
    assert fast.gap <= 1e-8
    slow = solve_column_constraint(problem, all_violated=True, tol=1e-8)
    assert fast.lower == pytest.approx(slow.lower, abs=2e-8)
    # From hardly any information the bound is weak, but a bound.
    cuts = initial_cuts(problem)
    (some, _) = dual_points(problem, cuts, np.ones(len(cuts)), fast.b, 1e-8)
    assert dual_value(problem, some, fast.upper, fast.b) <= fast.upper


@pytest.mark.parametrize(
    "setting",
    [
        {"N": 1, "n_levels": (2, 2)},
        {"N": 2, "n": 0, "n_levels": (2,)},
        {"n_levels": (1, 1)},
        {"n_levels": (1, 3)},
        {"n": 0, "n_levels": (6,)},
        {"label_cost": 1e-3},
        {"label_cost": 1e4},
    ],
)
def test_odd_shapes(setting):
    problem = random_problem(3, **setting) if setting.get("N") != 1 else one_sample(**setting)
    solution = solve_tailored(problem)
    assert np.isfinite(solution.b).all()
    assert 0 <= solution.gap <= 1e-6


def one_sample(**setting):
    problem = random_problem(3, **{**setting, "N": 2})
    return replace(problem, x=problem.x[:1], z=problem.z[:1], y=problem.y[:1], w=np.ones(1))


def test_constant_columns_and_duplicated_rows():
    problem = random_problem(4, N=30, n=2)
    problem.x[:, 1] = 5.0
    problem.z[:, 0] = 1
    doubled = {name: np.concatenate([getattr(problem, name)] * 2) for name in ("x", "z", "y")}
    twice = replace(problem, **doubled, w=np.concatenate([problem.w] * 2) / 2)
    assert solve_tailored(twice).upper == pytest.approx(agree(problem).upper, abs=2e-6)


def test_is_deterministic_and_independent_of_the_order_of_rows_and_features():
    problem = random_problem(5, N=30, n=2, n_levels=(2, 3, 4))
    first, second = solve_tailored(problem), solve_tailored(problem)
    assert first.b.tolist() == second.b.tolist()
    order = np.random.default_rng(0).permutation(30)
    shuffled = {name: getattr(problem, name)[order] for name in ("z", "y", "w")}
    other = replace(problem, **shuffled, x=problem.x[order, ::-1])
    assert solve_tailored(other).upper == pytest.approx(first.upper, abs=2e-6)


def test_coordinates_can_be_shared_between_radii_and_penalties():
    problem = random_problem(6, N=30)
    shared = Coordinates(problem)
    for radius in (0.0, 1e-3, 0.1):
        alone = solve_tailored(at(problem, radius))
        assert solve_tailored(at(problem, radius), coordinates=shared).b.tolist() == alone.b.tolist()


@pytest.mark.parametrize(
    "other",
    [
        {"coef_bound": np.inf, "radius": 1e-6},  # coefficients far outside the box
        {"radius": 0.0},  # no lam to start from, and large slopes of the numbers
        {"norm": "linf", "radius": 1e-6},  # lam below the other norm
    ],
)
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_a_start_that_is_not_feasible_is_made_so(other, norm):
    setting = {"N": 30, "n": 2, "n_levels": (2, 3), "radius": 1e-4, "coef_bound": 0.3, "norm": norm}
    problem = random_problem(8, **setting)
    start = solve_tailored(random_problem(8, **{**setting, "coef_bound": 50.0, **other}))
    solution = solve_tailored(problem, start=start)
    assert 0 <= solution.gap <= 1e-6
    assert objective(problem, solution.b)[0] <= solution.upper + 1e-10


def test_a_start_that_is_worse_than_0_is_not_used():
    problem = random_problem(9, N=30, radius=0.05)
    start = replace(solve_tailored(problem), b=np.full(problem.n_coefficients, 50.0))
    assert solve_tailored(problem, start=start).b.tolist() == solve_tailored(problem).b.tolist()


def test_a_box_bounds_the_coefficients_at_radius_0_too():
    """Whatever the scale of the numbers."""
    problem = random_problem(0, n=1, radius=0.0, coef_bound=7.0)
    problem.x[:] *= 1e6
    assert (coefficient_bounds(problem, np.log(2))[0] == 7.0).all()


def test_stopping_early_is_visible_in_the_gap():
    solution = solve_tailored(random_problem(7, N=30), max_iter=2)
    assert solution.n_rounds == 2
    assert solution.gap > 1e-3


def test_p_other_than_1_is_refused():
    with pytest.raises(ValueError, match=r"needs p = 1, not 2\.0"):
        solve_tailored(random_problem(0, p=2.0))


@pytest.mark.parametrize("seed", range(4))
def test_separable_data_with_many_levels_at_a_tiny_radius(seed):
    """Coefficients grow until slacks drown in rounding."""
    problem = random_problem(
        seed, N=60, n=0, n_levels=(4, 5, 4, 6, 4, 4), radius=1e-6, label_cost=6.0, gamma=5e-6 * (seed % 2)
    )
    solution = solve_tailored(problem)
    assert np.isfinite(solution.b).all()
    assert 0 <= solution.gap <= 1e-6


@pytest.mark.parametrize(("label_cost", "radius"), [(np.inf, 1e-6), (np.inf, 1e-5), (25.0, 1e-5), (25.0, 1e-4)])
def test_directions_that_the_data_hardly_determine(label_cost, radius):
    """annealing, 0/1 dummies, nothing that bounds the coefficients: they are near 180 at the optimum."""
    data = load_dataset("annealing")
    _, problem, _ = Formulation(radius, label_cost).fit(data.X, np.asarray(data.y, float), np.ones(len(data.y)))
    solution = solve_tailored(problem)
    assert 0 <= solution.gap <= 1e-6
    assert objective(problem, solution.b)[0] <= solution.upper + 1e-10


@pytest.mark.parametrize("radius", [1.5, 1.89])
def test_cuts_that_left_do_not_return_for_ever(radius):
    """audiology, whose cuts tie: with loose limits on what leaves, it took 229 and 314 steps."""
    try:
        data = load_dataset("audiology")
    except DataUnavailableError:
        pytest.skip("audiology is not shipped: set WDRLR_DATA to a folder with UCI's raw files")
    _, problem, _ = Formulation(radius, "n_categorical").fit(data.X, np.asarray(data.y, float), np.ones(len(data.y)))
    loose = replace(Settings(), prune_mass=1e-3, prune_slack=50.0)
    solution, _ = minimise(problem, Coordinates(problem), 1e-6, 400, settings=loose)
    assert 0 <= solution.gap <= 1e-6
    assert solution.n_rounds < 180


@pytest.mark.parametrize("what", ["r", "spent"])
def test_what_is_not_finite_gives_no_bound(what):
    problem = random_problem(0)
    bounds = coefficient_bounds(problem, np.log(2))
    r, spent = np.zeros(problem.n_coefficients), 0.0
    assert residual_charge(problem, bounds, problem.penalty, r, r, spent, problem.radius, np.log(2))[0] == 0.0
    if what == "r":
        r[-1] = np.nan
    else:
        spent = np.nan
    assert residual_charge(problem, bounds, problem.penalty, r, 0 * r, spent, problem.radius, np.log(2))[0] == np.inf


def numbers_of_a_thousandth():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3)) * 1e-3
    return X, X[:, 0] + 1e-3 * rng.normal(size=30) > 0


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize(("radius", "label_cost"), [(600.00016792, 1e4), (5e-10, 1e4), (5e-10, 1.0)])
def test_radii_far_from_the_size_of_the_numbers(norm, radius, label_cost):
    """The first one divided by 0 in compiled code."""
    X, y = numbers_of_a_thousandth()
    for unit in (1.0, 1e3):
        model = WassersteinLogisticRegression(radius, label_cost, norm=norm).fit(X * unit, y)
        assert model.gap_ <= 1e-6
        assert model.objective_ == pytest.approx(model.worst_case_loss(X * unit, y), abs=1e-12)


@pytest.mark.parametrize("light", [1e-200, 1e-20, 1e-12, 1e-8])
def test_weights_over_many_orders(light):
    """As a kernel gives them. The light samples are left out by the solver, but not by the certificate."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.normal(size=150), "b": rng.choice(list("uvw"), 150)})
    y = X["a"] + (X["b"] == "u") + rng.normal(size=150) > 0.3
    weights = np.ones(150)
    weights[:75] = light
    for radius in (0.0, 1e-3, 0.1):
        model = WassersteinLogisticRegression(radius).fit(X, y, weights)
        assert model.gap_ <= 1e-6
        alone = WassersteinLogisticRegression(radius).fit(X[75:], y[75:])
        assert model.objective_ == pytest.approx(alone.objective_, abs=3e-6)


def test_a_step_that_is_not_finite_ends_the_method(monkeypatch):
    """The best point so far, with its true gap and a warning."""
    steps = []

    def broken(self, g):
        steps.append(1)
        return np.full_like(g, np.nan) if len(steps) > 8 else solve(self, g)

    solve = Newton.solve_freely
    monkeypatch.setattr(Newton, "solve_freely", broken)
    X, y = numbers_of_a_thousandth()
    with pytest.warns(ConvergenceWarning, match="certified to"):
        model = WassersteinLogisticRegression(radius=1e-4, label_cost=1e-3).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.objective_ == pytest.approx(model.worst_case_loss(X, y), abs=1e-12)
    assert 1e-6 < model.gap_ < np.log(2)


def test_an_early_stop_tells_the_objective_of_its_coefficients():
    X, y = numbers_of_a_thousandth()
    for max_iter in (1, 2, 3):
        with pytest.warns(ConvergenceWarning):
            model = WassersteinLogisticRegression(1e-5, 1e-3, max_iter=max_iter).fit(X, y)
        assert model.objective_ == pytest.approx(model.worst_case_loss(X, y), abs=1e-12)


@pytest.mark.parametrize("kind", [*COSTS, "codes"])
def test_costs_of_all_kinds_are_certified(kind):
    """Random sizes, label costs, norms, penalties, boxes, codings and weights, with and without an intercept."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        codes = kind == "codes"
        problem = random_problem(
            seed,
            N=int(rng.integers(6, 60)),
            n=int(rng.integers(0, 4)),
            n_levels=tuple(rng.integers(1, 7, rng.integers(1, 6)).tolist()),
            radius=float(10 ** rng.uniform(-3, 0)),
            label_cost=[0.3, 1.0, 4.0, np.inf][seed % 4],
            norm=["l1", "l2", "linf"][seed % 3],
            gamma=[0.0, 0.0, 0.01][seed % 3],
            coef_bound=[np.inf, np.inf, 2.0][seed // 3 % 3],
            fit_intercept=seed % 5 != 0,
            coding="pm1" if codes or seed % 2 else "onehot",
            weighted=seed % 2 == 0,
            costs=["features", None][seed % 2] if codes else kind,
            any_code=codes,
        )
        assert 0 <= solve_tailored(problem, tol=1e-6).gap <= 1e-6


@pytest.mark.parametrize("kind", ["features", "ordinal", "matrices", "codes"])
@pytest.mark.parametrize("seed", range(4))
def test_costs_agree_with_the_conic_solver(kind, seed):
    costs = {"any_code": True, "coding": "pm1"} if kind == "codes" else {"costs": kind}
    agree(random_problem(seed, N=15, n_levels=(3, 4, 2), label_cost=[0.5, 4.0][seed % 2], radius=0.05, **costs))


def test_the_authors_support_costs_more():
    """On levels alone the objective is smaller; on features with two levels it is the same."""
    problem = random_problem(1, N=40, n=0, n_levels=(5, 3), coding="pm1", label_cost=2.0, any_code=True)
    of_codes, of_levels = solve_tailored(problem), solve_tailored(replace(problem, any_code=False))
    assert of_codes.lower > of_levels.upper
    binary = random_problem(1, N=40, n=0, n_levels=(2, 2, 2), coding="pm1", label_cost=2.0, any_code=True)
    assert np.array_equal(solve_tailored(binary).b, solve_tailored(replace(binary, any_code=False)).b)
