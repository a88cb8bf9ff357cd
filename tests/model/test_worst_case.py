"""The worst-case distribution: its constraints, its support and its value."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tests.estimators.test_classifier import mixed_data
from tests.instances import (
    CODE_SETTINGS,
    COST_SETTINGS,
    COSTS,
    at,
    cost_by_hand,
    random_coefficients,
    random_problem,
    worst_case_by_hand,
)
from tests.model.test_objective import SETTINGS, theorem_3_instance
from wdrlr import WassersteinLogisticRegression
from wdrlr.model.cuts import all_cuts
from wdrlr.model.objective import objective, worst_case_loss
from wdrlr.model.worst_case import changed_mass, worst_case_distribution
from wdrlr.paper.baselines import ContinuousLogisticRegression
from wdrlr.solvers.programs import solve_program

ORDERS = {"l1": 1, "l2": 2, "linf": np.inf}


def check(problem, b, worst, eta=1e-4):
    """Constraints, support and value, everything computed again from the atoms."""
    N, n = problem.n_samples, problem.n_numeric
    assert len(worst.mass) <= N + 1
    assert (worst.mass > 0).all()
    assert np.allclose(np.bincount(worst.sample, worst.mass, minlength=N), problem.w, rtol=0, atol=1e-14)
    assert (worst.z >= 0).all() and (worst.z < np.array(problem.n_levels, dtype=int)).all()
    assert np.isin(worst.y, [-1, 1]).all()
    loss = cost = 0.0
    for mass, i, x, z, y in zip(worst.mass, worst.sample, worst.x, worst.z, worst.y, strict=True):
        flip = y * problem.y[i]
        assert flip == 1 or np.isfinite(problem.metric.label_cost)
        shift = x - problem.x[i]
        if problem.metric.number_costs is not None:
            assert (shift[np.isinf(problem.metric.number_costs)] == 0).all()
            shift = np.multiply(shift, problem.metric.number_costs, out=np.zeros(n), where=shift != 0)
        numbers = np.linalg.norm(shift, ORDERS[problem.metric.norm]) if n else 0.0
        of_levels = cost_by_hand(problem, i, z, flip)
        assert np.isfinite(of_levels)
        cost += mass * (of_levels + numbers / problem.metric.scale)
        scores = problem.level_scores(b)[z + problem.offsets]
        loss += mass * np.logaddexp(0, -y * (b[0] + x @ b[1 : 1 + n] + scores.sum()))
    assert worst.transport_cost == pytest.approx(cost, abs=1e-9)
    assert cost <= problem.radius * (1 + 1e-9)
    assert worst.expected_loss == pytest.approx(loss, abs=1e-9)
    supremum = worst_case_by_hand(problem, b)
    assert worst.worst_case_loss == pytest.approx(supremum, abs=1e-8)
    if worst.attained:
        assert worst.expected_loss == pytest.approx(worst.worst_case_loss, abs=1e-12)
        assert (worst.x == problem.x[worst.sample]).all()
    else:
        assert cost == pytest.approx(problem.radius, rel=1e-9)
        assert (worst.x != problem.x[worst.sample]).any(axis=1).sum() == 1
        f = replace(problem, x=problem.x[worst.sample], z=worst.z, y=worst.y).decision(b)  # before anything escaped
        missing = eta * problem.w[worst.sample] * np.logaddexp(0, worst.y * f)
        assert -1e-12 <= worst.gap <= missing.min() + 1e-12


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("size", [0.3, 2.0])
def test_against_enumeration(setting, size):
    """All z of every sample, in nature's linear program, on 12 instances for each of 30 settings."""
    attained = []
    for seed in range(12):
        problem = random_problem(seed, N=7, **setting)
        # Where x is small, a move of it is large: in half of the instances moving numbers pays best.
        problem = replace(problem, x=problem.x * (0.1 if seed % 2 else 1.0))
        b = random_coefficients(problem, seed, size=size)
        b[1 : 1 + problem.n_numeric] *= 10.0 if seed % 2 else 1.0
        worst = worst_case_distribution(problem, b)
        check(problem, b, worst)
        attained.append(worst.attained)
    assert any(attained) == (problem.radius < 3)  # radius 3 pays for all changes, and leaves some for the numbers
    assert all(attained) == (problem.n_numeric == 0)  # both kinds are met


@pytest.mark.parametrize("setting", COST_SETTINGS, ids=str)
def test_against_enumeration_with_costs(setting):
    """Of each kind; no atom makes a forbidden change, and changes that cost nothing come first."""
    attained = []
    for seed in range(20):
        problem = random_problem(seed, N=6, **setting)
        problem = replace(problem, x=problem.x * (0.1 if seed % 2 else 1.0))
        b = random_coefficients(problem, seed, size=[0.3, 2.0][seed % 3 == 0])
        b[1 : 1 + problem.n_numeric] *= 10.0 if seed % 2 else 1.0
        if seed % 5 == 0:
            b = np.round(b)  # ties
        for eta in (1e-4, 1.0):
            worst = worst_case_distribution(problem, b, eta)
            check(problem, b, worst, eta)
        attained.append(worst.attained)
    assert any(attained) == (problem.radius < 3 or problem.metric.number_costs is not None)
    assert all(attained) == (problem.n_numeric == 0)


@pytest.mark.parametrize("kind", COSTS)
def test_at_radius_0_nothing_is_changed_even_for_nothing(kind):
    for seed in range(8):
        problem = random_problem(seed, costs=kind, radius=0.0)
        worst = worst_case_distribution(problem, random_coefficients(problem, seed))
        assert (worst.z == problem.z).all() and worst.transport_cost == 0
        assert worst.expected_loss == pytest.approx(worst.worst_case_loss, abs=1e-14)


def test_a_free_change_is_made_by_everybody():
    costs = np.array([[0.0, 0.0, 1.0], [np.inf, 0.0, 1.0], [1.0, 1.0, 0.0]])
    problem = random_problem(0, n=0, n_levels=(3, 2), radius=1e-9, label_cost=np.inf)
    problem.y[:] = -1.0  # which high scores hurt
    problem = replace(problem, metric=replace(problem.metric, level_costs=(costs, 0.0)))
    worst = worst_case_distribution(problem, np.array([0.0, 1.0, -2.0, 0.5]))
    whole, first = worst.mass > 1e-6, problem.z[worst.sample, 0]
    assert (worst.z[:, 0] == np.where(first == 0, 1, first))[whole].all()
    assert (worst.z[:, 1] == 1).all()
    check(problem, np.array([0.0, 1.0, -2.0, 0.5]), worst)


def test_numbers_that_cost_most_move_least():
    """The escaping mass takes the number of the largest slope over cost, and its way costs what is left."""
    problem = random_problem(1, n=3, n_levels=(), label_cost=np.inf, radius=0.2)
    problem = replace(problem, metric=replace(problem.metric, number_costs=np.array([np.inf, 4.0, 1.0])))
    worst = worst_case_distribution(problem, np.array([0.1, 9.0, 3.0, -1.0]), eta=0.5)
    shift = (worst.x - problem.x[worst.sample])[(worst.x != problem.x[worst.sample]).any(axis=1)]
    assert shift.shape == (1, 3)
    assert shift[0, :2].tolist() == [0.0, 0.0]
    assert abs(shift[0, 2]) == pytest.approx(0.2 / (0.5 / problem.n_samples))
    check(problem, np.array([0.1, 9.0, 3.0, -1.0]), worst, 0.5)


def test_codes_are_no_atoms():
    problem = random_problem(0, **CODE_SETTINGS[0])
    with pytest.raises(ValueError, match="needs any_code=False"):
        worst_case_distribution(problem, np.zeros(problem.n_coefficients))
    binary = random_problem(0, any_code=True, coding="pm1", n_levels=(2, 2))  # whose codes are its levels
    check(binary, np.ones(4), worst_case_distribution(binary, np.ones(4)))


@pytest.mark.parametrize("radius", [0.0, 1e-3, 0.02, 0.1, 0.5, 5.0])
@pytest.mark.parametrize("n, n_levels", [(0, (2, 2, 2, 2)), (2, (1, 4)), (1, ()), (0, (1,))])
def test_from_radius_0_to_where_all_is_changed(radius, n, n_levels):
    problem = random_problem(3, N=10, n=n, n_levels=n_levels, radius=radius, weighted=True)
    b = random_coefficients(problem)
    worst = worst_case_distribution(problem, b)
    check(problem, b, worst)
    if radius == 0:
        assert (worst.sample == np.arange(10)).all()
        assert (worst.z == problem.z).all() and (worst.y == problem.y).all()
        assert (worst.mass == problem.w).all() and worst.transport_cost == 0
    if radius == 5 and n == 0:
        assert worst.transport_cost < 5  # nothing is left that pays


def test_coefficients_that_change_nothing():
    problem = random_problem(0, n=2)
    worst = worst_case_distribution(problem, np.zeros(problem.n_coefficients))
    assert worst.attained and worst.transport_cost == 0
    assert worst.expected_loss == pytest.approx(np.log(2))


def test_many_atoms_are_never_needed_where_steps_tie():
    """Equal rows and equal slopes: every step is as steep as every other."""
    problem = random_problem(0, N=9, n=0, n_levels=(3, 3), radius=0.31)
    problem = replace(problem, z=np.zeros_like(problem.z), y=np.ones(9))
    worst = worst_case_distribution(problem, np.array([0.4, -1.0, -1.0, -1.0, -1.0]))
    check(problem, np.array([0.4, -1.0, -1.0, -1.0, -1.0]), worst)
    assert len(worst.mass) == 10


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("label_cost", [1.0, np.inf])
def test_escaping_mass_approaches_the_supremum(norm, label_cost):
    """The gap falls in proportion to eta, the cost stays the radius, the atom goes off as 1 / eta."""
    problem = random_problem(2, n=3, n_levels=(2, 2), norm=norm, label_cost=label_cost, radius=0.2)
    problem = replace(problem, x=problem.x * 0.1)
    b = random_coefficients(problem)
    b[1:4] *= 4.0
    sequence = [worst_case_distribution(problem, b, eta) for eta in (1.0, 0.1, 1e-2, 1e-3, 1e-4)]
    for eta, worst in zip((1.0, 0.1, 1e-2, 1e-3, 1e-4), sequence, strict=True):
        assert not worst.attained
        check(problem, b, worst, eta)
        assert len(worst.mass) == problem.n_samples + (eta < 1)
    gaps = np.array([worst.gap for worst in sequence])
    assert (np.diff(gaps) < 0).all()
    assert gaps[-1] == pytest.approx(gaps[-2] / 10, rel=1e-3)
    distance = [np.linalg.norm(worst.x - problem.x[worst.sample], ORDERS[norm], axis=1).max() for worst in sequence]
    assert distance[-1] == pytest.approx(10 * distance[-2], rel=1e-9)


@pytest.mark.parametrize("radius", [0.2, 0.9])
def test_theorem_3_s_example(radius):
    """One sample with z = 0, labels fixed: the share radius of its mass goes to z = 1, or off along x."""
    problem = theorem_3_instance(0.5, radius)
    worst = worst_case_distribution(problem, np.array([0.1, 0.2, 1.5]))
    assert worst.attained
    assert worst.mass.tolist() == pytest.approx([1 - radius, radius])
    assert worst.z.ravel().tolist() == [0, 1]
    steep = worst_case_distribution(problem, np.array([0.1, 2.0, 1.5]), eta=0.5)
    assert steep.mass.tolist() == [0.5, 0.5] and steep.z.ravel().tolist() == [0, 0]
    assert steep.x.ravel().tolist() == pytest.approx([0.5, 0.5 + radius / 0.5])


@pytest.mark.parametrize(
    "setting", [{"n": 0}, {}, {"label_cost": 3.0, "p": 2.0}, {"n": 2, "norm": "l2", "radius": 0.2}]
)
def test_at_the_optimum_it_has_the_value_of_the_conic_dual(setting):
    problem = random_problem(13, **setting)
    dual = solve_program(problem, all_cuts(problem, 10_000), "dual", "CLARABEL")
    worst = worst_case_distribution(problem, dual.b, eta=1e-7)
    check(problem, dual.b, worst, eta=1e-7)
    assert worst.expected_loss == pytest.approx(dual.value, abs=2e-6)
    assert worst.worst_case_loss == pytest.approx(objective(problem, dual.b)[0], abs=1e-12)


def test_many_rows():
    """Beyond what can be enumerated: 2^25 values of z, weights, 3,000 samples."""
    problem = random_problem(5, N=3000, n=2, n_levels=(2,) * 25, label_cost=25.0, radius=0.7, weighted=True)
    b = random_coefficients(problem, size=0.3)
    for posed in (problem, at(problem, 6.0), replace(problem, metric=replace(problem.metric, p=0.7))):
        worst = worst_case_distribution(posed, b, eta=1e-6)
        assert len(worst.mass) <= 3001
        assert worst.transport_cost <= posed.radius * (1 + 1e-9)
        assert worst.expected_loss == pytest.approx(
            worst_case_loss(posed, b)[0], abs=1e-6 if not worst.attained else 1e-10
        )
        assert np.allclose(np.bincount(worst.sample, worst.mass), posed.w, rtol=1e-12)


@pytest.mark.parametrize(
    "b, eta, words",
    [
        (np.zeros(3), 0.1, "b must be 6 finite coefficients"),
        (np.full(6, np.nan), 0.1, "finite"),
        (np.ones(6), 0.0, "eta"),
        (np.ones(6), 1.5, "eta"),
        (np.ones(6), "0.1", "eta"),
    ],
)
def test_bad_arguments_are_named(b, eta, words):
    with pytest.raises(ValueError, match=words):
        worst_case_distribution(random_problem(), b, eta)


# The classifier's method


def loss_of_table(model, table):
    """The expected log-loss by the classifier's own decision function."""
    features = table.drop(columns=["mass", "source_row", "label"])
    f = model.decision_function(features)
    y = np.where(table["label"] == model.classes_[1], 1, -1)
    return float(table["mass"] @ np.logaddexp(0, -y * f))


OPTIONS = [
    {"radius": 0.05},
    {"radius": 0.05, "label_cost": np.inf, "norm": "l2"},
    {"radius": 0.02, "label_cost": "n_categorical", "metric_scale": "unit", "coding": "pm1"},
    {"radius": 0.0},
    {"radius": 0.05, "p": 2.0, "label_cost": 2.0, "l1_penalty": 0.01, "norm": "linf"},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_classifier_s_table(options, weighted):
    X, y = mixed_data()
    X, y = pd.concat([X, X.iloc[:20]]), np.concatenate([y, y[:20]])  # with duplicates, and an index that repeats
    w = np.random.default_rng(0).integers(0, 4, 80).astype(float) if weighted else None
    model = WassersteinLogisticRegression(**options).fit(X, y, sample_weight=w)
    table = model.worst_case_distribution(X, y, sample_weight=w)
    shares = np.full(80, 1 / 80) if w is None else w / w.sum()
    assert table.columns.tolist() == ["mass", "source_row", "label", "size", "colour", "kind"]
    assert len(table) <= np.count_nonzero(shares) + 1
    assert (table["mass"] > 0).all()
    by_row = table.groupby("source_row")["mass"].sum().reindex(range(80), fill_value=0.0)
    assert np.allclose(by_row, shares, atol=1e-14)
    assert table["colour"].cat.categories.tolist() == ["blue", "green", "red", "never"]
    assert set(table["label"]) <= {"no", "yes"}
    found = table.attrs
    assert loss_of_table(model, table) == pytest.approx(found["expected_loss"], abs=1e-10)
    assert found["worst_case_loss"] == pytest.approx(model.worst_case_loss(X, y, w), abs=1e-12)
    assert found["worst_case_loss"] - found["expected_loss"] == pytest.approx(found["gap"], abs=1e-15)
    assert -1e-12 <= found["gap"] <= (1e-12 if found["attained"] else 1e-5)
    assert found["transport_cost"] <= model.radius * (1 + 1e-9)
    # The cost once more, from the table alone.
    source = X.iloc[table["source_row"]].reset_index(drop=True)
    changes = sum((table[name].astype(str) != source[name].astype(str)).to_numpy(int) for name in ("colour", "kind"))
    flips = (table["label"].to_numpy() != y[table["source_row"]]).astype(int)
    kappa = 2.0 if model.label_cost == "n_categorical" else model.label_cost
    costs = np.abs(table["size"] - source["size"]) + changes ** (1 / model.p) + np.where(flips, kappa, 0.0)
    scale = 1 + 2 + kappa if model.metric_scale == "unit" else 1.0
    assert table["mass"] @ costs / scale == pytest.approx(found["transport_cost"], abs=1e-9)


def test_other_coefficients_and_other_data():
    X, y = mixed_data()
    model = WassersteinLogisticRegression(radius=0.1, label_cost=np.inf).fit(X, y)
    model.coef_, model.intercept_ = np.array([[0.0, 0.5, 1.0, 3.0, 0.0]]), np.zeros(1)
    table = model.worst_case_distribution(X.iloc[:10], y[:10])
    # From a row with the label "no", a tenth of the mass goes to the level with the largest slope.
    assert table["mass"].sum() == pytest.approx(1)
    assert table.attrs["transport_cost"] == pytest.approx(0.1)
    moved = changed_mass(table, X.iloc[:10], y[:10])
    assert moved.index[0] == "colour" and moved["mass"].iloc[0] == pytest.approx(0.1)
    assert moved["commonest"].iloc[0].endswith("→ never")  # a declared level that no row has


def test_an_array_of_numbers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = (X[:, 0] + rng.normal(size=30) > 0).astype(int)
    model = WassersteinLogisticRegression(radius=0.1, label_cost=np.inf).fit(X, y)
    table = model.worst_case_distribution(X, y, eta=0.01)
    assert table.columns.tolist() == ["mass", "source_row", "label", "x0", "x1"]
    assert not table.attrs["attained"]
    moved = changed_mass(table, X, y)
    assert moved["mass"].tolist() == pytest.approx([0.01 / 30, 0, 0])
    distance = 0.1 / (0.01 / 30)
    assert abs(float(moved["commonest"].iloc[0].replace(",", ""))) == pytest.approx(distance)


def test_the_continuous_model_leaves_the_levels():
    X, y = mixed_data()
    for coding in ("onehot", "pm1"):
        model = ContinuousLogisticRegression(radius=0.05, label_cost=5.0, coding=coding).fit(X, y)
        table = model.worst_case_distribution(X, y, eta=0.01)
        assert table.columns.tolist()[3:] == model.get_feature_names_out().tolist()
        f = model.intercept_[0] + table.iloc[:, 3:].to_numpy() @ model.coef_[0]
        signs = np.where(table["label"] == "yes", 1, -1)
        assert table["mass"] @ np.logaddexp(0, -signs * f) == pytest.approx(table.attrs["expected_loss"], abs=1e-10)
        assert table.attrs["worst_case_loss"] == pytest.approx(model.worst_case_loss(X, y), abs=1e-12)
        assert not table.attrs["attained"]
        assert np.abs(table.iloc[:, 3:]).to_numpy().max() > 100
        with pytest.raises(ValueError, match="X has the columns"):
            changed_mass(table, X, y)


def test_errors_of_the_classifier_s_method():
    X, y = mixed_data()
    model = WassersteinLogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match="'kind' has levels that were not seen in fit"):
        model.worst_case_distribution(X.assign(kind="c"), y)
    with pytest.raises(ValueError, match="60 rows, but y has 59"):
        model.worst_case_distribution(X, y[1:])
    with pytest.raises(ValueError, match="eta"):
        model.worst_case_distribution(X, y, eta=2)
    named = X.rename(columns={"size": "mass"})
    with pytest.raises(ValueError, match="rename these features"):
        WassersteinLogisticRegression().fit(named, y).worst_case_distribution(named, y)


# What is changed


def test_changed_mass_wants_the_rows_of_the_distribution():
    X, y = mixed_data(40)
    model = WassersteinLogisticRegression(radius=0.1).fit(X, y)
    part = model.worst_case_distribution(X[10:20], y[10:20])
    assert changed_mass(part, X[10:20], y[10:20])["mass"].max() > 0
    with pytest.raises(ValueError, match="is of 10 rows, but X has 40 rows"):
        changed_mass(part, X, y)


def test_changed_mass_counts_by_hand():
    X = pd.DataFrame({"a": ["u", "u", "v"], "number": [1.0, 2.0, 3.0]})
    y = np.array([0, 1, 1])
    atoms = {"mass": [0.3, 0.4, 0.1, 0.2], "source_row": [0, 1, 2, 2], "label": [1, 1, 0, 1]}
    table = pd.DataFrame(atoms | {"a": ["v", "v", "v", "u"], "number": [1.0, 2.0, 3.0, 1503.0]})
    moved = changed_mass(table, X, y)
    assert moved.index.tolist() == ["a", "label", "number"]
    assert moved["mass"].tolist() == pytest.approx([0.9, 0.4, 0.2])
    assert moved["commonest"].tolist() == ["u → v", "0 → 1", "+1,500"]
    assert moved["commonest_mass"].tolist() == pytest.approx([0.7, 0.3, 0.2])
    with pytest.raises(ValueError, match="is of 3 rows, but X has 2 rows"):
        changed_mass(table, X.iloc[:2], y[:2])
    with pytest.raises(ValueError, match="X has the columns"):
        changed_mass(table, X[["number", "a"]], y)
    with pytest.raises(ValueError, match="X is a ndarray, which is no table; pass the distribution, X and y in"):
        changed_mass(table, y, X)
    with pytest.raises(ValueError, match=r"must be the table of worst_case_distribution, .*'source_row'"):
        changed_mass(X, table, y)
