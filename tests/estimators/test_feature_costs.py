"""Costs of a feature's own: what they mean, that scikit-learn's tools take them, and what is refused."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from tests.estimators.test_classifier import mixed_data
from tests.estimators.test_report import told
from tests.instances import worst_case_by_hand
from wdrlr import (
    SeparableDataWarning,
    WassersteinLogisticRegression,
    WassersteinLogisticRegressionCV,
    changed_mass,
    fit_path,
    radius_max,
)
from wdrlr.estimators.column_checks import ColumnWarning
from wdrlr.estimators.feature_costs import costs_of
from wdrlr.estimators.formulation import Formulation
from wdrlr.model.encoding import fit_encoding
from wdrlr.plots import changes_plot, path_plot

AGES = ["young", "middle", "old"]
X, Y = mixed_data(80)
X = X.assign(
    age=pd.Categorical(np.random.default_rng(1).choice(AGES, 80), categories=AGES, ordered=True),
    weight=np.random.default_rng(2).normal(size=80),
)
"""size and weight are numbers; colour, kind and age are categories."""

COLOURS = ["red", "never", "blue", "green"]  # not in the order of the levels
MATRIX = pd.DataFrame(
    [[0, 1, 2, np.inf], [1, 0, 0.5, 0.2], [0.3, 0.1, 0, 0], [1, 1, 1, 0]], index=COLOURS, columns=COLOURS[::-1]
)
MATRIX = MATRIX[COLOURS].where(~np.eye(4, dtype=bool), 0.0)
COSTS = {"size": 2.0, "kind": np.inf, 3: ("ordinal", 0.25), "colour": MATRIX}


def fit(X=X, y=Y, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return WassersteinLogisticRegression(**parameters).fit(X, y)


def costs(feature_costs, table=X, norm="l1", **encoding):
    return costs_of(feature_costs, fit_encoding(table, encoding.get("categorical_features", "from_dtype")), norm)


# What they mean


def test_each_kind_of_cost_by_name_and_by_position():
    levels, numbers = costs(COSTS)
    assert numbers.tolist() == [2.0, 1.0]
    by_name = MATRIX.loc[["blue", "green", "red", "never"], ["blue", "green", "red", "never"]]
    assert levels[0].tolist() == by_name.to_numpy().tolist()
    assert levels[0][2, 0] == MATRIX.loc["red", "blue"]  # from the row's level into the column's
    assert levels[1] == np.inf
    assert levels[2].tolist() == [[0, 0.25, 0.5], [0.25, 0, 0.25], [0.5, 0.25, 0]]
    positions = {list(X).index(key) if isinstance(key, str) else key: value for key, value in COSTS.items()}
    assert all(map(np.array_equal, costs(positions)[0], levels))


def test_a_matrix_of_one_cost_is_that_cost_and_costs_of_1_are_none():
    one = pd.DataFrame(1.0 - np.eye(4), index=COLOURS, columns=COLOURS)
    assert costs({"colour": 0.5 * one + one, "kind": "ordinal"}) == ((1.5, 1.0, 1.0), None)
    assert costs({"colour": one.replace(1.0, np.inf)})[0] == (np.inf, 1.0, 1.0)
    assert costs({"colour": one, "kind": "ordinal", "size": 1, 4: 1.0}) == (None, None) == costs({}) == costs(None)


@pytest.mark.parametrize("column", [[3, 1, 2], [True, False, True], pd.to_datetime(["2020", "2018", "2019"])])
def test_numbers_and_times_have_an_order(column):
    table = pd.DataFrame({"a": column})
    (matrix,), _ = costs({"a": ("ordinal", 2.0)}, table, categorical_features=["a"])
    n_levels = table["a"].nunique()
    assert matrix == 2.0 if n_levels == 2 else matrix[0].tolist() == [0.0, 2.0, 4.0]


@pytest.mark.parametrize("solver", ["tailored", "column-constraint"])
@pytest.mark.parametrize(("metric_scale", "scale"), [(None, 1.0), ("unit", 2 + 1 + 2 + 0 + 0.5 + 1.0)])
def test_the_fit_is_certified_and_robust_to_these_changes_only(metric_scale, scale, solver):
    radius = 0.03 / scale
    options = {"label_cost": 1.0, "metric_scale": metric_scale, "solver": solver}
    model = fit(radius=radius, feature_costs=COSTS, **options)
    assert model.gap_ <= 1e-6
    problem = model.formulation_.pose(model.encoding_, X, np.where(Y == "yes", 1.0, -1.0), np.ones(80)).problem
    assert problem.metric.scale == scale
    b = np.concatenate([model.intercept_, model.coef_[0]])
    assert worst_case_by_hand(problem, b) == pytest.approx(model.objective_, abs=1e-7)
    atoms = model.worst_case_distribution(X, Y)
    assert atoms.attrs["transport_cost"] == pytest.approx(radius)
    assert atoms.attrs["expected_loss"] == pytest.approx(model.objective_, abs=1e-6)
    mass = changed_mass(atoms, X, Y)["mass"]
    assert mass["kind"] == 0.0 < mass["colour"]


def test_a_number_of_its_own_scale_is_a_rescaled_column():
    model = fit(radius=0.03, feature_costs={"size": 4.0, "weight": 0.5}, tol=1e-8)
    rescaled = fit(X.assign(size=4.0 * X["size"], weight=0.5 * X["weight"]), radius=0.03, tol=1e-8)
    assert model.objective_ == pytest.approx(rescaled.objective_, abs=2e-8)
    np.testing.assert_allclose(model.coef_[0, :2], rescaled.coef_[0, :2] * [4.0, 0.5], atol=1e-3)


def test_features_that_may_not_change_are_as_in_plain_regression_within_their_values():
    """If nothing may change, the adversary can do nothing, whatever the radius."""
    fixed = dict.fromkeys(X, np.inf)
    model = fit(radius=0.5, label_cost=np.inf, feature_costs=fixed, tol=1e-8)
    plain = fit(radius=0.0, tol=1e-8)
    assert model.objective_ == pytest.approx(plain.objective_, abs=2e-8)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=2e-3)
    assert (model.worst_case_distribution(X, Y)["kind"] == X["kind"]).all()


def test_costs_of_1_change_nothing_and_dear_changes_make_the_fit_less_robust():
    model = fit(radius=0.03)
    same = fit(radius=0.03, feature_costs=dict.fromkeys(X, 1))
    assert same.coef_.tolist() == model.coef_.tolist() and same.objective_ == model.objective_
    options = {"radius": 0.03, "label_cost": np.inf}
    for name in ("size", "colour"):
        assert fit(**options, feature_costs={name: 3.0}).objective_ < fit(**options).objective_ - 1e-3


def test_other_data_have_the_costs_of_the_levels_seen_in_fit():
    model = fit(radius=0.03, label_cost=np.inf, feature_costs=COSTS)
    rows = X[X["colour"] != "red"].iloc[:30]
    few = rows.assign(colour=rows["colour"].astype(str), age=rows["age"].cat.remove_unused_categories().astype(str))
    assert model.worst_case_loss(few, Y[rows.index]) == model.worst_case_loss(rows, Y[rows.index])
    cheaper = {**COSTS, "colour": 0.1 * MATRIX, 3: ("ordinal", 0.01)}
    dear = model.worst_case_loss(rows, Y[rows.index])
    assert model.set_params(feature_costs=cheaper).worst_case_loss(rows, Y[rows.index]) > dear + 1e-3


# Around the classifier


def test_scikit_learn_clones_searches_and_pickles():
    model = WassersteinLogisticRegression(radius=0.03, feature_costs=COSTS)
    assert clone(model).get_params()["feature_costs"]["colour"].equals(MATRIX)
    copy = pickle.loads(pickle.dumps(clone(model).fit(X, Y)))
    assert copy.worst_case_loss(X, Y) == copy.objective_
    grid = {"feature_costs": [None, COSTS, {"kind": np.inf}, {"colour": MATRIX}]}
    search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(X, Y)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_estimator_.feature_costs is None or set(search.best_estimator_.feature_costs) <= set(COSTS)


def test_a_large_matrix_does_not_flood_the_repr():
    names = [f"level {v}" for v in range(60)]
    matrix = pd.DataFrame(1.5, index=names, columns=names)
    model = WassersteinLogisticRegression(feature_costs={0: 2.0, "kind": matrix, "colour": np.inf})
    assert len(repr(model)) < 800 and repr(model).count("\n") < 15
    assert model._repr_mimebundle_()["text/html"].count("level ") < 40


def test_paths_cross_validation_and_plots():
    path = fit_path(X, Y, [0.01, 0.05], label_costs=[1.0, 2.0], feature_costs=COSTS)
    assert path["gap"].max() <= 1e-6
    model = fit(radius=0.05, label_cost=2.0, feature_costs=COSTS)
    assert path["objective"].iloc[-1] == pytest.approx(model.objective_, abs=1e-12)
    path_plot(path[path["label_cost"] == 1.0])
    changes_plot(changed_mass(model.worst_case_distribution(X, Y), X, Y))
    chosen = WassersteinLogisticRegressionCV([0.01, 0.05], cv=3, feature_costs=COSTS).fit(X, Y)
    assert chosen.objective_ == fit(radius=chosen.radius_, feature_costs=COSTS).objective_
    assert chosen.cv_results_["gap"].max() <= 1e-6


def test_the_radius_beyond_which_no_feature_is_of_use():
    options = {"label_cost": 1.0, "feature_costs": {"kind": 2.0, "size": np.inf}}
    limit = radius_max(X, Y, **options)
    assert np.isfinite(limit)
    with pytest.warns(ColumnWarning, match="All slopes are 0"):
        slopes = WassersteinLogisticRegression(limit * 1.001, **options).fit(X, Y).coef_
    assert not slopes.any()


def test_the_report_names_prices_and_what_may_not_change():
    model = fit(radius=0.03, label_cost=1.0, feature_costs=COSTS)
    lines = told(model)
    assert lines["feature costs"] == (
        "size 2; colour by a matrix; kind may not change; age ordinal, 0.25 a step; others 1"
    )
    assert lines["may not change"] == "kind"
    lam = model.transport_multiplier_
    assert lines["price"] == f"{lam:.4g} times its cost for changing a category"
    changed = changed_mass(model.worst_case_distribution(X, Y), X, Y)["mass"]
    changed = set(changed.index[changed > 0]) - {"label"}
    said = {entry.partition(" ")[0] for entry in lines["may pay"].partition(": ")[2].split(", ")}
    assert changed and changed <= said and "kind" not in said
    fixed = told(fit(radius=0.03, feature_costs={"size": np.inf, "weight": np.inf, "colour": np.inf}))
    assert fixed["may not change"] == "size, weight, colour" and "numbers" not in fixed
    assert "may not change" not in told(fit(radius=0.03)) and "feature costs" not in told(fit(radius=0.03))


def test_the_report_lists_the_first_features_only():
    table = pd.DataFrame({f"x{j}": X["size"] * (j % 3) for j in range(15)}).assign(kind=X["kind"])
    lines = told(fit(table, feature_costs=dict.fromkeys(list(table)[:12], np.inf)))
    assert lines["feature costs"].count("may not change") == 10 and lines["feature costs"].endswith("...; others 1")
    assert lines["may not change"] == ", ".join([f"x{j}" for j in range(10)] + ["..."])


def test_any_code_is_for_pm1_coding_and_one_cost_a_feature():
    labels, weights = np.where(Y == "yes", 1.0, -1.0), np.ones(80)
    formulation = Formulation(0.02, coding="pm1", any_code=True, feature_costs={"colour": 2.0})
    problem = formulation.fit(X, labels, weights).problem
    assert problem.any_code and problem.coded.tolist() == [0, 2]
    assert problem.metric.level_costs == (2.0, 1.0, 1.0)
    with pytest.raises(ValueError, match='any_code needs coding="pm1"'):
        replace(formulation, coding="onehot").fit(X, labels, weights)
    with pytest.raises(ValueError, match="any_code needs features with one cost each"):
        replace(formulation, feature_costs=COSTS).fit(X, labels, weights)


# Without a minimiser

PARTS = pd.DataFrame({"a": ["u"] * 10 + ["v"] * 10 + ["w"] * 5, "b": list("pqqpp") * 5})
PARTS_Y = np.array([0] * 7 + [1] * 3 + [0] * 2 + [1] * 8 + [1] * 5)
"""Level w of a has one class only."""


@pytest.mark.parametrize("solver", ["tailored", "column-constraint"])
@pytest.mark.parametrize("radius", [0.01, 0.05])
def test_features_that_may_not_change_can_leave_no_minimiser(radius, solver):
    options = {"radius": radius, "label_cost": np.inf, "feature_costs": {"a": np.inf}, "solver": solver}
    with pytest.warns(
        SeparableDataWarning, match="features that may not change separate the data, or a part"
    ) as caught:
        model = WassersteinLogisticRegression(**options).fit(PARTS, PARTS_Y)
    assert len(caught) == 1
    # The infimum is that of the other rows, of which the radius has to do for a larger share.
    rest = fit(PARTS[:20], PARTS_Y[:20], **{**options, "radius": radius * 25 / 20}, tol=1e-9)
    assert (
        model.lower_bound_ <= rest.objective_ * 20 / 25 + 1e-9 and model.objective_ >= rest.objective_ * 20 / 25 - 1e-9
    )
    assert model.gap_ <= 1e-6
    fit(PARTS, PARTS_Y, **options, coef_bound=5.0)
    fit(PARTS, PARTS_Y, **options, l1_penalty=0.01)
    fit(PARTS, PARTS_Y, **{**options, "label_cost": 5.0})
    fit(PARTS, PARTS_Y, **{**options, "feature_costs": {"b": np.inf}})


def test_the_lower_bound_holds_beyond_what_a_solver_reaches():
    """Numbers that may not move, two clusters a millionth apart: the infimum 0 is far beyond the coefficients."""
    numbers = pd.DataFrame({"x": [1.0, 1.0 + 1e-6, -1.0, 1.0 + 2e-6, 1.0 + 3e-6, 3.0], "b": list("pqqppq")})
    y = [0, 0, 0, 1, 1, 1]
    options = {"label_cost": np.inf, "feature_costs": {"x": np.inf}, "max_iter": 100}
    with pytest.warns(SeparableDataWarning), pytest.warns(ConvergenceWarning, match="only certified to"):
        model = WassersteinLogisticRegression(radius=0.1, **options).fit(numbers, y)
    assert model.lower_bound_ <= 0.0 < model.gap_ == pytest.approx(model.objective_, abs=1e-6)
    with pytest.warns(SeparableDataWarning) as caught, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("always", SeparableDataWarning)
        path = fit_path(numbers, y, [0.1, 0.2], label_costs=[1.0, np.inf], feature_costs={"x": np.inf}, max_iter=100)
    assert len(caught) == 1
    assert (path["lower_bound"] <= 0.0).tolist() == [False, False, True, True]


@pytest.mark.parametrize("coding", ["onehot", "pm1"])
@pytest.mark.parametrize(("joined", "warns"), [(("u", "v"), True), (("v", "w"), False)])
def test_levels_between_which_a_feature_may_change_do_not_separate(joined, warns, coding):
    matrix = pd.DataFrame(np.inf, index=list("uvw"), columns=list("uvw"))
    for levels in (joined, joined[::-1]):
        matrix.loc[levels] = 1.0
    for level in "uvw":
        matrix.loc[level, level] = 0.0
    options = {"radius": 0.05, "label_cost": np.inf, "feature_costs": {"a": matrix}, "coding": coding}
    if warns:
        with pytest.warns(SeparableDataWarning):
            WassersteinLogisticRegression(**options).fit(PARTS, PARTS_Y)
    else:
        fit(PARTS, PARTS_Y, **options)


# What is refused


def matrix_with(value, row="red", column="green"):
    changed = MATRIX.copy()
    changed.loc[row, column] = value
    return changed


@pytest.mark.parametrize(
    ("feature_costs", "words"),
    [
        (
            {"sizes": 2.0},
            "names the column 'sizes', but the columns of X are 'size', 'colour', 'kind', 'age', 'weight'",
        ),
        ({5: 2.0}, "has the position 5, but those of X are 0 to 4"),
        ({-1: 2.0}, "has the position -1"),
        ({1.0: 2.0}, "has the key 1.0; use the name of a column, or its position"),
        ({True: 2.0}, "has the key True; use the name"),
        ({"kind": 2.0, 2: 2.0}, "has the column 'kind' twice, by name and by position; drop one"),
        ({"size": 0.0}, "gives 'size', a column of numbers, the cost 0.0; use a positive number"),
        ({"size": -1}, "'size', a column of numbers, the cost -1"),
        ({"size": np.nan}, "'size', a column of numbers, the cost nan"),
        ({"size": True}, "'size', a column of numbers, the cost True"),
        ({"size": "ordinal"}, "'size', a column of numbers, the cost 'ordinal'; .* or name the column in categorical"),
        ({"size": MATRIX}, "'size', a column of numbers, the cost a DataFrame"),
        ({"kind": 0}, "the categorical column 'kind' the cost 0; use .* change for nothing is better dropped"),
        ({"kind": np.nan}, "the categorical column 'kind' the cost nan; use a positive number, inf"),
        ({"kind": "ordinary"}, "the categorical column 'kind' the cost 'ordinary'"),
        ({"colour": MATRIX.to_numpy()}, "the categorical column 'colour' the cost a ndarray; .* a DataFrame over its"),
        (
            {"kind": 1e9},
            r"a change of 'kind' costs 1e\+09 .*; use inf for what may not change, and else costs from 1e-08 to",
        ),
        ({"age": ("ordinal", 1e-9)}, "a change of 'age' costs 1e-09 by feature_costs, which rounding would blur"),
        ({"colour": matrix_with(1e-300)}, "a change of 'colour' costs 1e-300 by feature_costs"),
        (
            {"size": 1e12},
            r"'size', of the size 2e\+00, cost 1e\+12 a unit by feature_costs, .*; use inf if they may not",
        ),
        ({"size": 1e-300}, "'size', of the size .* cost 1e-300 a unit by feature_costs"),
        ({"age": ("ordinal", 0.0)}, "gives 'age' a step of 0.0; use a positive, finite number"),
        ({"age": ("ordinal", np.inf)}, "gives 'age' a step of inf"),
        ({"age": ("ordinal", "2")}, "gives 'age' a step of '2'"),
        ({"colour": "ordinal"}, "calls 'colour' \"ordinal\", but the order of its levels is not declared"),
        ({"colour": matrix_with(-1.0)}, "has -1 for 'colour' from 'red' to 'green'; .* be at least 0, or inf"),
        ({"colour": matrix_with(np.nan)}, "has nan for 'colour' from 'red' to 'green'"),
        ({"colour": matrix_with(None)}, "has nan for 'colour' from 'red' to 'green'"),
        ({"colour": matrix_with(0.1, "blue", "blue")}, "has 0.1 for 'colour' from 'blue' to 'blue'; .* must be 0"),
        ({"colour": matrix_with(np.inf, "blue", "blue")}, "has inf for 'colour' from 'blue' to 'blue'; .* must be 0"),
        (
            {"colour": MATRIX.astype(object).replace(2.0, "x")},
            "a DataFrame for 'colour' with values that are not numbers",
        ),
        (
            {"colour": MATRIX.drop(index="never")},
            "the index .* for 'colour' lacks the levels 'never'; it has 'red', 'blue'",
        ),
        ({"colour": MATRIX.drop(columns="never")}, "the columns .* for 'colour' lacks the levels 'never'"),
        (
            {"colour": MATRIX.reset_index(drop=True)},
            "the index .* for 'colour' lacks the levels 'blue', .* it has 0, 1",
        ),
        ({"colour": MATRIX.iloc[[0, 0, 1, 2, 3]]}, "the index .* for 'colour' has 'red' more than once"),
        ({"colour": 0.0 * MATRIX.replace(np.inf, 1)}, "all changes of 'colour' would cost nothing"),
        ([("size", 2.0)], "The 'feature_costs' parameter .* must be None or a dict {column: cost}. Got"),
    ],
)
def test_wrong_costs_are_refused_by_all_who_take_them(feature_costs, words):
    for call in (
        WassersteinLogisticRegression(feature_costs=feature_costs).fit,
        WassersteinLogisticRegressionCV(cv=2, feature_costs=feature_costs).fit,
        lambda X, y: fit_path(X, y, [0.1], feature_costs=feature_costs),
        lambda X, y: radius_max(X, y, feature_costs=feature_costs),
    ):
        with pytest.raises(ValueError, match=words):
            call(X, Y)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        (
            {"norm": "l2"},
            r"with norm='l2' .* same cost, but they cost 'size' 2, 'weight' 1 \(1 unless named\); use norm",
        ),
        ({"norm": "linf"}, "with norm='linf' feature_costs must give all columns of numbers the same cost"),
        ({"p": 2.0}, "feature_costs need p = 1, not 2.0"),
    ],
)
def test_costs_that_the_metric_does_not_allow_are_refused(parameters, words):
    with pytest.raises(ValueError, match=words):
        fit(feature_costs={"size": 2.0}, **parameters)
    one_number = fit(X.drop(columns="weight"), feature_costs={"size": 2.0}, norm="l2")
    both = fit(feature_costs={"size": 2.0, "weight": 2.0}, norm="l2")
    assert max(one_number.gap_, both.gap_) <= 1e-6


def test_a_name_that_two_columns_have_needs_positions():
    twice = X[["size", "weight"]].set_axis(["x", "x"], axis=1)
    with pytest.raises(
        ValueError, match="feature_costs names 'x', but X has several such columns; use their positions"
    ):
        costs({"x": 2.0}, twice)
    assert costs({1: 2.0}, twice).number_costs.tolist() == [1.0, 2.0]


def test_an_alphabetical_order_is_refused_and_the_remedy_works():
    for ages in (X["age"].astype(str), X["age"].astype(str).astype("category")):
        data = X.assign(age=ages)
        with pytest.raises(ValueError, match="the order of its levels is not declared; make it an ordered") as error:
            fit(data, feature_costs={"age": "ordinal"})
        remedy = str(error.value).partition("highest: ")[2].removesuffix(".")
        data["age"] = eval(
            remedy.replace("'middle', 'old', 'young'", "'young', 'middle', 'old'"), {"X": data, "pd": pd}
        )
        assert (
            fit(data, feature_costs={"age": "ordinal"}).objective_ == fit(feature_costs={"age": "ordinal"}).objective_
        )
    assert costs({"kind": "ordinal", "size": 2.0}).level_costs is None  # two levels need no order


def test_labels_that_are_no_levels_are_refused_and_the_remedy_works():
    seen = X.assign(colour=X["colour"].astype(str))
    with pytest.raises(ValueError, match=r"the index .* 'colour' has 'never', which are no levels of that") as error:
        fit(seen, feature_costs={"colour": MATRIX})
    remedy = str(error.value).partition("declare them: ")[2].partition("; else")[0]
    seen["colour"] = eval(remedy, {"X": seen, "pd": pd})
    model = fit(seen, feature_costs={"colour": MATRIX}, radius=0.03)
    assert model.objective_ == pytest.approx(fit(feature_costs={"colour": MATRIX}, radius=0.03).objective_, abs=1e-6)


@pytest.mark.parametrize("label_cost", [1.0, np.inf])
@pytest.mark.parametrize("cost", [1e-8, 1e8])
def test_costs_within_the_limits_are_certified(cost, label_cost):
    for feature_costs in ({"kind": cost}, {"age": ("ordinal", cost / 2)} if cost > 1 else {"age": ("ordinal", cost)}):
        assert fit(radius=0.03, label_cost=label_cost, feature_costs=feature_costs).gap_ <= 1e-6
    for scale in (1e-6, 1e6):  # a column in another unit
        moved = X.assign(size=X["size"] * scale)
        same = fit(moved, radius=0.03, label_cost=label_cost, feature_costs={"size": 1 / scale})
        assert same.objective_ == pytest.approx(fit(radius=0.03, label_cost=label_cost).objective_, abs=2e-6)
