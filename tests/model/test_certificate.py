from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from tests.instances import (
    CODE_SETTINGS,
    COST_SETTINGS,
    COSTS,
    random_coefficients,
    random_problem,
    worst_case_by_hand,
)
from tests.model.test_objective import SETTINGS
from wdrlr import WassersteinLogisticRegression
from wdrlr.model.certificate import LARGEST_SCORE, DualPoint, _bounds, ambiguity, check, dual_value
from wdrlr.model.cuts import Cuts, all_cuts, data_cuts, join
from wdrlr.model.objective import objective, worst_case_loss
from wdrlr.model.problem import codes
from wdrlr.solvers.column_constraint import solve_monolithic
from wdrlr.solvers.dual_repair import cut_dual_point, dual_points
from wdrlr.solvers.interior_point.coordinates import Coordinates
from wdrlr.solvers.interior_point.method import minimise, solve_tailored
from wdrlr.solvers.programs import solve_program
from wdrlr.solvers.solution import Tilt, certified

OF_EVERY_KIND = [
    *SETTINGS,
    *COST_SETTINGS,
    *CODE_SETTINGS,
    *({"gamma": 0.02, **others} for others in ({}, {"costs": "fixed"}, CODE_SETTINGS[0])),
    *({"coef_bound": 0.2, **others} for others in ({}, {"costs": "mixed"}, CODE_SETTINGS[1])),
    *({"fit_intercept": False, **others} for others in ({}, {"costs": "matrices"}, CODE_SETTINGS[2])),
]


@pytest.mark.parametrize("setting", OF_EVERY_KIND, ids=str)
@pytest.mark.parametrize("seed", [2, 3, 4])
def test_no_dual_point_passes_any_objective(setting, seed):
    """Whatever masses and coefficients it starts from, the lower bound is below the objective at every b.

    Nor does it if nothing is made to fit: random cuts, masses, slopes, mixtures and walls, or those of the optimum and
    some changes more.
    """
    problem = random_problem(seed, N=8, **setting)
    cuts = all_cuts(problem, 20_000)
    rng = np.random.default_rng(seed)
    optimum = solve_monolithic(problem)
    assert 0 <= optimum.gap <= 1e-6
    program = solve_program(problem, cuts, "dual", "CLARABEL")
    for attempt in range(8):
        mass = rng.random(len(cuts)) ** 8 * problem.w[cuts.sample]
        if attempt % 2:
            mass = program.mass * (1 + 0.1 * rng.normal(size=len(cuts)))
        b = problem.feasible(random_coefficients(problem, attempt) if attempt % 3 else program.b)
        for dual in dual_points(problem, cuts, mass, b, 1e-6):
            for forged in (dual, with_more_changes(problem, dual, rng)):
                assert check(problem, b, forged).lower <= optimum.upper + 1e-12
    for _ in range(40):
        dual = random_dual_point(problem, rng)
        assert check(problem, optimum.b, dual).lower <= optimum.upper + 1e-12


@pytest.mark.parametrize("setting", OF_EVERY_KIND, ids=str)
def test_a_slope_that_was_kept_at_0_is_charged(setting):
    """A dual point that proves the best value with one coefficient at 0 says nothing about the others."""
    problem = random_problem(3, N=12, **setting)
    optimum, rng = solve_monolithic(problem), np.random.default_rng(3)
    for j in rng.permutation(problem.n_coefficients)[:4]:
        kept = replace(problem, coef_bound=np.where(np.arange(problem.n_coefficients) == j, 0.0, problem.coef_bound))
        cuts = all_cuts(kept, 20_000)
        program = solve_program(kept, cuts, "dual", "CLARABEL")
        for dual in dual_points(kept, cuts, program.mass, program.b, 1e-6):
            assert check(problem, kept.feasible(program.b), dual).lower <= optimum.upper + 1e-12


@pytest.mark.parametrize("label_cost", [1.0, np.inf])
def test_what_may_not_change_has_no_bound_but_the_claim(label_cost):
    problem = random_problem(5, n=2, n_levels=(2, 3, 2), label_cost=label_cost)
    matrix = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, np.inf], [1.0, 1.0, 0.0]])
    costs = replace(problem.metric, level_costs=(0.5, matrix, np.inf), number_costs=np.array([1.0, np.inf]))
    problem = replace(problem, metric=costs)
    center, bounds, _ = _bounds(problem, np.log(2), np.zeros(problem.n_coefficients))
    extent = np.abs(problem.x - center).max(axis=0)
    for constant, per_lam in bounds:
        claimed = [0, 2, 4, 5, 6]  # intercept, second number, both slopes of the matrix, slope of the last
        assert constant[claimed] == pytest.approx(LARGEST_SCORE / np.array([1, extent[1], 1, 1, 1]))
        assert not per_lam[claimed].any()
    first = bounds[0][1][3]  # one change of the first feature, where labels can be changed, too
    assert (first == pytest.approx(2 * (0.5 + 1.0))) if np.isfinite(label_cost) else first == 0.0


def with_more_changes(problem, dual, rng):
    """The same masses, but some of their features somewhere else, forbidden or not."""
    if not len(dual.level):
        return dual
    level = rng.integers(0, np.array(problem.n_levels)[dual.feature])
    return replace(dual, level=np.where(rng.random(len(level)) < rng.choice([0.1, 1.0]), level, dual.level))


def random_dual_point(problem, rng):
    C, m, p = 30, problem.n_categorical, problem.n_coefficients
    changed = rng.random((C, m)) < rng.random()
    feature = np.nonzero(changed)[1]
    levels = np.array(problem.n_levels, dtype=int)
    mass = rng.random(C) * rng.choice([0.01, 0.1, 1.0])
    return DualPoint(
        sample=np.sort(rng.integers(0, problem.n_samples, C)),
        flipped=rng.random(C) < 0.3,
        mass=mass,
        v=mass * rng.random(C),
        start=np.concatenate([[0], np.cumsum(changed.sum(axis=1))]),
        feature=feature,
        level=rng.integers(-2, levels[feature]) if m else feature,
        mixtures=rng.random((2, levels.sum())) * rng.choice([-1, 0, 1], size=(2, levels.sum()), p=[0.1, 0.4, 0.5]),
        wall=rng.normal(size=p) * rng.choice([0.0, 0.1]),
    )


def test_bounds_hold_on_the_level_set():
    """Where |b_j|, or |f| at the means, passes its bound, the objective passes the level."""
    settings = ({}, {"label_cost": np.inf}, {"coding": "pm1"}, {"n": 0}, {"p": 2.0}, {"weighted": True}, {"n": 2})
    settings += ({"costs": "features"}, {"costs": "ordinal", "n": 0}, {"any_code": True, "coding": "pm1"})
    for setting in settings:
        problem = random_problem(4, radius=0.1, **setting)
        n = problem.n_numeric
        center, bounds, _ = _bounds(problem, np.log(2), np.zeros(problem.n_coefficients))
        assert len(bounds) == (1 if np.isinf(problem.metric.label_change) else 2)
        for (constant, per_lam), j in product(bounds, range(problem.n_coefficients)):
            largest = constant + per_lam * np.log(2) / problem.radius
            toll = problem.metric.number_norm.of_units(n) / problem.metric.scale
            largest[1 : 1 + n] = np.log(2) / problem.radius * toll
            assert np.isfinite(largest).all()
            for seed in range(5):
                b = random_coefficients(problem, seed)
                b[j] = 1.001 * largest[j] - (center @ b[1 : 1 + n] if j == 0 else 0.0)
                assert objective(problem, b)[0] > np.log(2)


@pytest.fixture(params=[{}, {"gamma": 0.005}, {"coef_bound": 0.3}, {"n_levels": (5, 4)}, {"n": 0}], ids=str)
def honest(request):
    """A problem, its certified coefficients, and the dual point behind them."""
    problem = random_problem(2, N=40, radius=0.02, **request.param)
    solution, (dual,) = minimise(problem, Coordinates(problem), 1e-7, 100)
    assert solution.gap <= 1e-7
    assert check(problem, solution.b, dual).lower == solution.lower
    return problem, solution, dual


def test_wrong_coefficients_are_seen(honest):
    problem, solution, dual = honest
    wrong = problem.feasible(solution.b + 0.1)
    found = check(problem, wrong, dual)
    by_hand = worst_case_by_hand(problem, wrong) + problem.penalty @ np.abs(wrong)
    assert found.upper == pytest.approx(by_hand, abs=1e-8)
    assert found.upper - found.lower > 1e-5


def test_lam_is_never_below_the_norm(honest):
    problem, solution, _ = honest
    steep = problem.feasible(solution.b * 50)
    loss, lam = worst_case_loss(problem, steep)
    assert lam >= problem.metric.dual_norm(problem.numeric(steep))
    assert loss == pytest.approx(worst_case_by_hand(problem, steep), abs=1e-8)


LIES = {
    "masses that sum to more": lambda dual: {"mass": 1.5 * dual.mass, "v": 1.5 * dual.v},
    "one sample with twice its mass": lambda dual: {
        name: np.where(dual.sample == 0, 2.0, 1.0) * getattr(dual, name) for name in ("mass", "v")
    },
    "masses below 0": lambda dual: {"mass": dual.mass - 0.01},
    "slopes above 1": lambda dual: {"v": 3.0 * dual.mass},
    "slopes below 0": lambda dual: {"v": -dual.v},
    "slopes of 1/2": lambda dual: {"v": dual.mass / 2},
    "an unbalanced dual": lambda dual: {"v": np.where(dual.flipped, dual.v / 2, dual.v)},
    "too much transport": lambda dual: {"flipped": np.ones(len(dual.flipped), bool)},
    "changes that are kept quiet": lambda dual: {
        "start": np.zeros_like(dual.start),
        "feature": dual.feature[:0],
        "level": dual.level[:0],
    },
    "a wall without a box": lambda dual: {"wall": dual.wall + 100.0},
    "mixtures that sum to nothing": lambda dual: {"mixtures": -dual.mixtures},
    "mixtures that sum to more": lambda dual: {"mixtures": 1e3 * dual.mixtures + 1.0},
    "mixtures that overflow": lambda dual: {"mixtures": np.full(dual.mixtures.shape, 1e308)},
    "a feature changed twice": lambda dual: {
        "start": 2 * dual.start,
        "feature": dual.feature.repeat(2),
        "level": dual.level.repeat(2),
    },
    "levels of the next feature": lambda dual: {"level": dual.level + 5},
    "features before the first": lambda dual: {"feature": dual.feature - 1},
    "features that do not exist": lambda dual: {"feature": dual.feature + 3},
    "NaN in masses": lambda dual: {"mass": np.where(np.arange(len(dual.mass)) < 3, np.nan, dual.mass)},
    "NaN in v": lambda dual: {"v": np.full(len(dual.v), np.nan)},
    "infinite masses": lambda dual: {"mass": np.full(len(dual.mass), np.inf)},
    "NaN in the wall": lambda dual: {"wall": np.full(len(dual.wall), np.nan)},
    "NaN in mixtures": lambda dual: {"mixtures": np.full(dual.mixtures.shape, np.nan)},
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_cannot_raise_the_lower_bound(honest, lie):
    problem, solution, dual = honest
    found = check(problem, solution.b, replace(dual, **LIES[lie](dual)))
    assert np.isfinite(found.lower)
    assert found.lower <= solution.upper
    # The honest point leaves nearly nothing to be gained.
    assert found.lower <= solution.lower + 1e-7


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_cannot_raise_the_bound_of_a_tilted_objective(honest, lie):
    problem, fit, _ = honest
    linear = 0.003 * random_coefficients(problem, 3)
    tilt = Tilt(linear, fit.upper + 0.01, -np.inf)
    solution, (dual,) = minimise(problem, Coordinates(problem), 1e-7, 100, tilt=tilt)
    assert objective(problem, solution.b)[0] <= tilt.budget and solution.gap <= 1e-7
    lower = dual_value(problem, replace(dual, **LIES[lie](dual)), tilt.budget, solution.b, linear)
    assert lower <= solution.lower + 1e-7
    assert lower == -np.inf or np.isfinite(lower)


@pytest.mark.parametrize("setting", [*SETTINGS, {"gamma": 0.02}, {"coef_bound": 0.2}, {"fit_intercept": False}])
def test_no_random_dual_point_passes_a_tilted_objective_within_the_budget(setting):
    problem = random_problem(2, N=8, **setting)
    rng = np.random.default_rng(1)
    budget = np.log(2) + 0.1
    within = []
    for seed in range(20):
        b = problem.feasible(random_coefficients(problem, seed))
        while objective(problem, b)[0] > budget:
            b = 0.9 * b
        within.append(b)
    for attempt in range(40):
        linear = random_coefficients(problem, 50 + attempt, size=rng.choice([1e-3, 0.1]))
        lower = dual_value(problem, random_dual_point(problem, rng), budget, within[0], linear)
        assert all(lower <= objective(problem, b)[0] + linear @ b + 1e-12 for b in within)


@pytest.mark.parametrize("lie", ["slopes of 1/2", "an unbalanced dual", "too much transport"])
def test_most_lies_cost_their_teller_the_bound(lie):
    problem = random_problem(2, N=40, radius=0.02)
    (dual,) = _interior_point_of(problem)
    b = np.zeros(problem.n_coefficients)
    told = check(problem, b, replace(dual, **LIES[lie](dual)))
    assert told.lower < 0.5 * check(problem, b, dual).lower


def _interior_point_of(problem):
    return minimise(problem, Coordinates(problem), 1e-7, 100)[1]


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_a_forged_change_is_no_point(p):
    """One feature changed twice has a score that no level has, and a level code can run into the next feature."""
    problem = random_problem(0, N=2, n=0, n_levels=(2, 2), label_cost=np.inf, p=p, radius=0.2)
    problem.z[:], problem.y[:] = [[0, 0], [1, 0]], [-1.0, 1.0]
    optimum = solve_monolithic(problem)
    honest = DualPoint(
        sample=np.array([0, 1, 0, 1]),
        flipped=np.zeros(4, bool),
        mass=np.array([0.3, 0.3, 0.2, 0.2]),
        v=np.array([0.15, 0.15, 0.1, 0.1]),
        start=np.array([0, 0, 0, 2, 4]),
        feature=np.array([0, 0, 0, 0]),
        level=np.array([1, 1, 0, 0]),
        mixtures=np.zeros((2, 4)),
        wall=np.zeros(problem.n_coefficients),
    )
    for change in ({}, {"feature": np.array([0, 1, 0, 1]), "level": np.array([3, 1, 2, 1])}):
        found = check(problem, optimum.b, replace(honest, **change))
        assert found.lower <= optimum.upper


def test_coefficients_that_break_a_constraint_do_not_bound_the_optimum():
    problem = replace(random_problem(0, N=4, n=1, n_levels=(), label_cost=1e6, fit_intercept=False), y=np.ones(4))
    for b in ([50.0, 0.0], [-3.0, 0.2]):
        optimum = solve_monolithic(problem)
        dual = _interior_point_of(problem)
        for point in dual:
            assert check(problem, np.array(b), point).lower <= optimum.upper + 1e-12


def test_a_solver_that_lies_gets_an_infinite_gap(monkeypatch):
    """Should a lower bound ever be above the objective, it is thrown away, and the user is warned."""
    monkeypatch.setattr("wdrlr.model.certificate.dual_value", lambda *_: 0.75)
    problem = random_problem(2, N=40, radius=0.02)
    solution = certified(problem, np.zeros(problem.n_coefficients), _interior_point_of(problem), 1e-6)
    assert solution.lower == -np.inf
    assert solution.gap == np.inf
    X, y = problem.x, problem.y
    with pytest.warns(ConvergenceWarning, match="lower bound .* above the objective"):
        model = WassersteinLogisticRegression(radius=0.02).fit(X, y)
    assert model.gap_ == np.inf


@pytest.mark.parametrize("setting", [*({"costs": kind} for kind in COSTS), *CODE_SETTINGS], ids=str)
def test_a_mixture_is_worth_no_more_than_mass_at_each_of_its_levels(setting):
    """And as much where they cost the same; with a box, residuals are cheap, and every bound proves something."""
    n_equal = 0
    for seed in range(20):
        problem = random_problem(seed, **(setting | {"radius": 0.6, "coef_bound": 0.05}))
        rng = np.random.default_rng(seed)
        everyone, zeros = np.arange(problem.n_samples), np.zeros(problem.n_coefficients)
        j = int(rng.integers(problem.n_categorical))
        K = problem.n_levels[j]
        numbers = np.arange(2 ** (K - 1)) if j in problem.coded else np.arange(K)
        share = rng.dirichlet(np.ones(len(numbers))) * (rng.random(len(numbers)) < 0.7)
        share = share / share.sum() if share.any() else np.full(len(numbers), 1 / len(numbers))
        mixtures = np.zeros((1, sum(problem.n_levels)))
        if j in problem.coded:
            mixtures[0, problem.levels(j)] = [*(share @ codes(numbers, K - 1)), np.nan]
        else:
            mixtures[0, problem.levels(j)] = share
        half = np.tile(problem.w / 2, 2)
        start = np.concatenate([np.zeros(len(everyone), int), everyone, [len(everyone)]])
        own_label = np.zeros(2 * len(everyone), bool)
        those, last = np.full(len(everyone), j), np.full(len(everyone), -1)
        mixed = DualPoint(np.tile(everyone, 2), own_label, half, half / 2, start, those, last, mixtures, zeros)
        several, masses = [data_cuts(problem, False)], [problem.w / 2]
        for number, part in zip(numbers, share, strict=True):
            z = problem.z.copy()
            z[:, j] = number + (K if j in problem.coded else 0)
            several.append(Cuts(everyone, z, own_label[: len(everyone)]))
            masses.append(part * problem.w / 2)
        mass = np.concatenate(masses)
        apart = cut_dual_point(problem, join(*several), mass, mass / 2, zeros)
        values = [dual_value(problem, dual, np.log(2), zeros) for dual in (mixed, apart)]
        assert values[0] <= values[1] + 1e-12
        costs = problem.metric.level_costs[j] if problem.metric.level_costs else 1.0
        if np.isfinite(costs).all() and (isinstance(costs, np.ndarray) or j in problem.coded):
            assert values[0] == pytest.approx(values[1], abs=1e-12)
            n_equal += values[0] > 0
    assert n_equal or setting["costs"] in ("features", "fixed")


def test_changes_that_cost_nothing_prove_nothing_at_radius_0():
    """There the problem is plain logistic regression; any radius above allows them, and they raise the value."""
    problem = random_problem(4, N=30, n=0, n_levels=(3, 2), radius=1e-9, label_cost=np.inf, fit_intercept=False)
    problem = replace(problem, metric=replace(problem.metric, level_costs=(0.0, np.zeros((2, 2)))))
    optimum, plain = solve_monolithic(problem), solve_monolithic(replace(problem, radius=0.0))
    assert plain.upper < optimum.upper - 1e-3
    cuts = all_cuts(problem, 1000)
    mass = solve_program(problem, cuts, "dual", "CLARABEL").mass
    for dual in dual_points(problem, cuts, mass, optimum.b, 1e-6):
        assert check(problem, optimum.b, dual).lower > optimum.upper - 1e-6
        assert check(replace(problem, radius=0.0), plain.b, dual).lower <= plain.upper


def test_a_constant_column_has_no_range_to_divide_by():
    """Its rounded mean is not its value; 1e4 over the difference was the bound on its slope, and the charge 6e-6."""
    problem = random_problem(0, N=7, n=1, n_levels=(3,), radius=0.0)
    problem.x[:] = -1.569602
    _, ((constant, _),), _ = _bounds(problem, np.log(2), np.zeros(problem.n_coefficients))
    assert constant[1] == pytest.approx(1e4)


@pytest.mark.parametrize("kind", [None, *COSTS])
def test_others_that_are_as_good_are_within_the_ambiguity(kind):
    """The probabilities of better coefficients, and of those on the way there, against what loose fits tell."""
    told = []
    for seed in range(25):
        problem = random_problem(
            seed,
            N=[8, 40][seed % 2],
            costs=kind,
            weighted=seed % 3 == 0,
            gamma=[0.0, 0.01][seed % 2],
            radius=[0.01, 0.1][seed % 2],
            label_cost=[1.0, 4.0, np.inf][seed % 3],
        )
        loose, tight = solve_tailored(problem, tol=10.0 ** -(1 + seed % 4)), solve_tailored(problem, tol=1e-9)
        for share in (0.0, 0.5, 0.9):
            other = share * loose.b + (1 - share) * tight.b
            assert objective(problem, other)[0] <= loose.upper + 1e-12
            apart = expit(problem.decision(other)) - expit(problem.decision(loose.b))
            assert problem.w @ np.abs(apart) <= loose.ambiguity + 1e-12
        told.append(loose.ambiguity)
    assert min(told) < 0.1
    assert tight.ambiguity < loose.ambiguity


def test_nothing_is_told_where_all_mass_is_elsewhere():
    problem = random_problem(0, N=6, n=0, n_levels=(2, 2))
    solution = solve_tailored(problem)
    nothing = DualPoint(
        *(np.zeros(0, dtype=kind) for kind in (int, bool, float, float)),
        start=np.zeros(1, dtype=int),
        feature=np.zeros(0, dtype=int),
        level=np.zeros(0, dtype=int),
        mixtures=np.zeros((0, 4)),
        wall=np.zeros(3),
    )
    assert solution.ambiguity < 0.5
    assert ambiguity(problem, solution.b, solution.gap, nothing) == pytest.approx(1.0)
