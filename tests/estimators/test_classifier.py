import datetime
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.estimator_checks import parametrize_with_checks

from wdrlr import (
    SeparableDataWarning,
    WassersteinLogisticRegression,
    WassersteinLogisticRegressionCV,
    fit_path,
    load_dataset,
    radius_max,
)
from wdrlr.model.objective import worst_case_loss
from wdrlr.model.problem import Problem, merge_duplicates


@parametrize_with_checks([WassersteinLogisticRegression()])
def test_scikit_learn(estimator, check):
    check(estimator)


def mixed_data(N=60, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "size": rng.normal(size=N),
            "colour": pd.Categorical(
                rng.choice(["red", "blue", "green"], N), categories=["blue", "green", "red", "never"]
            ),
            "kind": rng.choice(["a", "b"], N),
        }
    )
    f = X["size"] + 1.5 * (X["colour"] == "red") - (X["kind"] == "b")
    y = np.where(rng.random(N) < 1 / (1 + np.exp(-2 * f)), "yes", "no")
    return X, y


OPTIONS = [
    {},
    {"label_cost": "n_categorical", "metric_scale": "unit", "radius": 0.005},
    {"label_cost": np.inf, "norm": "l2"},
    {"p": 2.0, "norm": "linf"},
    {"feature_costs": {"size": np.inf, "colour": 2.0}, "label_cost": 3.0},
    {"l1_penalty": 0.01, "penalize_intercept": True, "coding": "pm1"},
    {"coef_bound": 0.5},
    {"fit_intercept": False},
    {"solver": "column-constraint"},
    {"solver": "monolithic"},
    {"solver": "column-constraint", "solver_options": {"all_violated": False}, "radius": 0.05},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_fit_is_certified_and_does_not_depend_on_the_order_of_the_rows(options):
    X, y = mixed_data()
    model = WassersteinLogisticRegression(**options).fit(X, y)
    assert 0 <= model.gap_ <= 1e-6
    assert model.objective_ - model.lower_bound_ == pytest.approx(model.gap_)
    assert model.coef_.shape == (1, 1 + 3 + 1)
    penalty = model.l1_penalty * (np.abs(model.coef_).sum() + model.penalize_intercept * abs(model.intercept_[0]))
    again = model.worst_case_loss(X, y) + penalty  # with the best multiplier for these coefficients
    assert model.lower_bound_ - 1e-12 <= again <= model.objective_ + 1e-12
    order = np.random.default_rng(1).permutation(len(X))
    other = clone(model).fit(X.iloc[order], y[order])
    assert other.coef_.tolist() == model.coef_.tolist()


def test_the_documented_attributes():
    X, y = mixed_data()
    model = WassersteinLogisticRegression().fit(X, y)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.feature_names_in_.tolist() == ["size", "colour", "kind"]
    assert model.get_feature_names_out().tolist() == ["size", "colour_green", "colour_red", "colour_never", "kind_b"]
    assert [levels.tolist() for levels in model.categories_] == [["blue", "green", "red", "never"], ["a", "b"]]
    f = model.decision_function(X)
    assert np.allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-f)))
    assert (model.predict(X) == np.where(f > 0, "yes", "no")).all()
    expected = (
        model.intercept_[0]
        + model.coef_[0, 0] * X["size"]
        + np.select([X["colour"] == "green", X["colour"] == "red"], model.coef_[0, 1:3])
        + np.where(X["kind"] == "b", model.coef_[0, 4], 0.0)
    )
    assert np.allclose(f, expected)
    assert model.transport_multiplier_ > 0
    assert model.n_iter_ >= 1
    assert model.n_cuts_ >= len(X)


def test_radius_0_is_logistic_regression():
    X, y = mixed_data(200)
    model = WassersteinLogisticRegression(radius=0.0).fit(X, y)
    dummies = pd.get_dummies(X, drop_first=True).astype(float)
    other = LogisticRegression(C=np.inf, tol=1e-8, max_iter=10_000).fit(dummies, y)
    assert np.allclose(model.predict_proba(X), other.predict_proba(dummies), atol=1e-3)
    assert np.isnan(model.transport_multiplier_)


def test_codings_give_the_same_classifier_without_penalty_and_bound():
    X, y = mixed_data()
    models = [WassersteinLogisticRegression(coding=coding, tol=1e-8).fit(X, y) for coding in ("onehot", "pm1")]
    assert models[0].objective_ == pytest.approx(models[1].objective_, abs=1e-7)
    assert np.allclose(models[0].decision_function(X), models[1].decision_function(X), atol=1e-3)


def test_weights_are_repeated_rows():
    X, y = mixed_data(30)
    weights = np.random.default_rng(2).integers(0, 4, 30)
    weighted = WassersteinLogisticRegression().fit(X, y, sample_weight=weights)
    repeated = WassersteinLogisticRegression().fit(X.loc[X.index.repeat(weights)], np.repeat(y, weights))
    assert weighted.objective_ == pytest.approx(repeated.objective_, abs=1e-9)
    assert np.allclose(weighted.coef_, repeated.coef_, atol=1e-5)


CLASS_WEIGHT = {"no": 0.3, "yes": 2.5}


@pytest.mark.parametrize("options", OPTIONS)
def test_class_weights_are_sample_weights_to_the_bit(options):
    X, y = mixed_data()
    given = np.random.default_rng(2).random(len(y))
    for sample_weight in (None, given):
        meant = np.array([CLASS_WEIGHT[label] for label in y]) * (1.0 if sample_weight is None else sample_weight)
        by_class = WassersteinLogisticRegression(class_weight=CLASS_WEIGHT, **options).fit(X, y, sample_weight)
        by_sample = WassersteinLogisticRegression(**options).fit(X, y, meant)
        assert by_class.class_weight_.tolist() == [0.3, 2.5] and by_sample.class_weight_.tolist() == [1.0, 1.0]
        for name in ("coef_", "intercept_", "objective_", "lower_bound_"):
            assert np.array_equal(getattr(by_class, name), getattr(by_sample, name))
        assert by_class.worst_case_loss(X, y, sample_weight) == by_sample.worst_case_loss(X, y, meant)


def test_class_weights_in_paths_radii_and_reports_are_sample_weights():
    X, y = mixed_data()
    meant = np.array([CLASS_WEIGHT[label] for label in y])
    by_class, by_sample = (
        fit_path(X, y, [0.0, 0.01, 0.1], [0.0, 0.01], **options)
        for options in ({"class_weight": CLASS_WEIGHT}, {"sample_weight": meant})
    )
    pd.testing.assert_frame_equal(by_class, by_sample, check_exact=True)
    assert radius_max(X, y, class_weight=CLASS_WEIGHT) == radius_max(X, y, sample_weight=meant)
    by_class = WassersteinLogisticRegression(class_weight=CLASS_WEIGHT).fit(X, y)
    by_sample = WassersteinLogisticRegression().fit(X, y, meant)
    atoms = by_class.worst_case_distribution(X, y)
    pd.testing.assert_frame_equal(atoms, by_sample.worst_case_distribution(X, y, meant), check_exact=True)
    ranges = by_class.prediction_range(X[:2], X, y)
    pd.testing.assert_frame_equal(ranges, by_sample.prediction_range(X[:2], X, y, meant), check_exact=True)


def test_class_weights_of_other_data_are_those_of_the_fit():
    X, y = mixed_data()
    model = WassersteinLogisticRegression(class_weight="balanced").fit(X, y)
    loss = -model.predict_log_proba(X)[np.arange(len(y)), (y == "yes").astype(int)]
    few = np.concatenate([np.flatnonzero(y == "no"), np.flatnonzero(y == "yes")[:3]])
    weights = model.class_weight_[(y[few] == "yes").astype(int)]
    model.set_params(radius=0.0, class_weight=None)
    assert model.worst_case_loss(X.iloc[few], y[few]) == pytest.approx(np.average(loss[few], weights=weights))
    only = y == "yes"
    assert model.worst_case_loss(X[only], y[only]) == pytest.approx(loss[only].mean())


@pytest.mark.parametrize("size", [1.0, 1e307])
def test_balanced_classes_weigh_the_same_as_in_scikit_learn(size):
    X, y = mixed_data()
    counts = np.random.default_rng(0).integers(0, 4, len(y))
    model = WassersteinLogisticRegression(class_weight="balanced").fit(X, y, counts * size)
    expected = compute_class_weight("balanced", classes=model.classes_, y=y, sample_weight=counts)
    np.testing.assert_allclose(model.class_weight_, expected, rtol=1e-14)
    totals = [weight * counts[y == label].sum() for weight, label in zip(expected, model.classes_, strict=True)]
    assert totals[0] == pytest.approx(totals[1])
    as_dict = dict(zip(model.classes_, model.class_weight_, strict=True))
    assert clone(model).set_params(class_weight=as_dict).fit(X, y, counts * size).coef_.tolist() == model.coef_.tolist()


@pytest.mark.parametrize(
    ("class_weight", "words"),
    [
        ({"yes": 2.0, "No": 1.0}, "class_weight names 'No', but the classes are 'no', 'yes'"),
        ({"yes": -1.0}, "class_weight has -1.0; use numbers"),
        ({"yes": np.inf}, "class_weight has inf; use numbers"),
        ({"yes": "2"}, "class_weight has '2'; use numbers"),
        ({"yes": 0.0}, "positive weight are all of one class"),
        ("even", "'class_weight' parameter"),
        ({"yes": 1e308}, "sample_weight times class_weight is too large"),
    ],
)
def test_bad_class_weights_are_named(class_weight, words):
    X, y = mixed_data(20)
    for kind in (WassersteinLogisticRegression, WassersteinLogisticRegressionCV):
        with pytest.raises(ValueError, match=words):
            kind(class_weight=class_weight).fit(X, y, np.full(20, 10.0))


def test_a_class_without_weight_has_no_balance():
    X, y = mixed_data(20)
    with pytest.raises(ValueError, match="positive weight are all of one class"):
        WassersteinLogisticRegression(class_weight="balanced").fit(X, y, (y == "yes").astype(float))


def test_log_probabilities_do_not_underflow():
    X, y = mixed_data()
    model = WassersteinLogisticRegression().fit(X, y)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(model.predict_proba(X)), rtol=1e-12)
    far = X[:1].assign(size=1e4)
    assert model.predict_proba(far)[0, 0] == 0.0
    assert model.predict_log_proba(far)[0, 0] == pytest.approx(-model.decision_function(far)[0])


def test_merging_duplicates_keeps_the_objective():
    rng = np.random.default_rng(3)
    x, z = rng.integers(0, 2, (40, 1)).astype(float), rng.integers(0, 2, (40, 2))
    y, w = np.where(rng.random(40) < 0.5, -1.0, 1.0), rng.random(40)
    merged = merge_duplicates(x, z, y, w / w.sum())
    assert len(merged[2]) <= 16
    from wdrlr.model.encoding import level_matrix
    from wdrlr.model.metric import ground_metric

    def loss(x, z, y, w):
        matrix = level_matrix((2, 2), "onehot")
        problem = Problem(x, z, y, w, (2, 2), matrix, ground_metric(1.0, 1, 2), 0.1, np.zeros(4))
        return worst_case_loss(problem, np.array([0.1, 0.3, -0.5, 1.0]))[0]

    assert loss(*merged) == pytest.approx(loss(x, z, y, w / w.sum()), abs=1e-12)


def test_large_radius_gives_the_constant_classifier():
    X, y = mixed_data()
    model = WassersteinLogisticRegression(radius=10.0, label_cost=1.0).fit(X, y)
    assert not model.coef_.any()
    assert model.intercept_[0] == 0
    assert model.objective_ == pytest.approx(np.log(2))
    assert set(model.predict(X)) == {"no"}


def test_unknown_levels_in_predict():
    X, y = mixed_data()
    new = X.assign(kind="c")
    model = WassersteinLogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match="'kind' has levels that were not seen in fit: 'c'"):
        model.predict(new)


@pytest.mark.parametrize("options", [{}, {"l1_penalty": 0.01}, {"fit_intercept": False}, {"coding": "pm1"}])
def test_an_unknown_level_has_the_mean_score_of_the_training_rows(options):
    X, y = mixed_data()
    weights = np.arange(len(y)) % 3.0
    model = WassersteinLogisticRegression(handle_unknown="ignore", **options).fit(X, y, weights)
    for _ in range(2):
        mean = sum(w * model.decision_function(X.assign(kind=kind)) for w, kind in zip(weights, X["kind"], strict=True))
        np.testing.assert_allclose(model.decision_function(X.assign(kind="?")), mean / weights.sum(), atol=1e-12)
        model.coef_ = 2 * model.coef_ + 1  # the mean is that of the coefficients as they are


def test_names_order_and_coding_of_levels_do_not_matter_to_an_unknown_or_unseen_one():
    X, y = mixed_data()
    levels = ["a", "b", "z", "never"]
    found = []
    for order in (levels, levels[::-1], ["never", "b", "a", "z"]):
        for coding in ("onehot", "pm1"):
            table = X.assign(kind=pd.Categorical(X["kind"], categories=order))
            model = WassersteinLogisticRegression(coding=coding, handle_unknown="ignore", tol=1e-9).fit(table, y)
            rows = [X.assign(kind=kind) for kind in [*levels, "?"]]
            found.append([model.predict_proba(row)[:, 1] for row in rows])
            np.testing.assert_allclose(found[-1][-1], found[-1][levels.index("never")], atol=1e-12)
    for others in found[1:]:
        np.testing.assert_allclose(others, found[0], atol=1e-5)


def test_separable_data_at_radius_0_warn_and_robust_fits_do_not():
    X = pd.DataFrame({"a": pd.Categorical(["u", "u", "v", "v"])})
    y = [0, 0, 1, 1]
    with pytest.warns(SeparableDataWarning, match="no minimiser"):
        WassersteinLogisticRegression(radius=0.0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        WassersteinLogisticRegression(radius=0.01).fit(X, y)
        WassersteinLogisticRegression(radius=0.0, l1_penalty=0.01).fit(X, y)
        WassersteinLogisticRegression(radius=0.0, coef_bound=5.0).fit(X, y)


def test_without_a_minimiser_the_gap_is_to_the_infimum():
    """Two clusters a millionth apart: the infimum 0 is far beyond the coefficients that a solver reaches."""
    X = np.array([[1.0], [1.0 + 1e-6], [-1.0], [1.0 + 2e-6], [1.0 + 3e-6], [3.0]])
    y = [0, 0, 0, 1, 1, 1]
    with pytest.warns(SeparableDataWarning):
        model = WassersteinLogisticRegression(radius=0.0).fit(X, y)
    assert model.gap_ == pytest.approx(model.objective_, abs=1e-6)
    with pytest.warns(SeparableDataWarning):
        path = fit_path(X, y, [0.0, 0.1], label_costs=[1.0, 2.0])
    assert path["gap"].tolist()[0] == path["gap"].tolist()[2] == pytest.approx(model.gap_, abs=1e-12)
    assert max(path["gap"].tolist()[1::2]) <= 1e-6


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_quasi_separable_data_have_the_infimum_of_the_other_rows(p):
    X = pd.DataFrame({"a": ["u"] * 10 + ["v"] * 10 + ["w"] * 5})
    y = [0] * 7 + [1] * 3 + [0] * 2 + [1] * 8 + [1] * 5
    with pytest.warns(SeparableDataWarning):
        model = WassersteinLogisticRegression(radius=0.0, p=p).fit(X, y)
    infimum = -(7 * np.log(0.7) + 3 * np.log(0.3) + 2 * np.log(0.2) + 8 * np.log(0.8)) / 25
    assert model.lower_bound_ <= infimum <= model.objective_
    assert model.gap_ <= 1e-6


@pytest.mark.parametrize(("shift", "refused"), [(1e6, False), (1e9, False), (1e12, True), (9e14, True)])
def test_columns_far_from_0(shift, refused):
    """What rounding leaves of the numbers is certified, or they are refused with the remedy."""
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 10, 60).astype(float)
    y = numbers + rng.normal(0, 4, 60) > 4.5
    X = pd.DataFrame({"time": numbers + shift, "other": rng.normal(size=60)})
    model = WassersteinLogisticRegression(radius=0.05)
    if refused:
        with pytest.raises(ValueError, match=r"'time' are of the size .* differ by .*; subtract"):
            model.fit(X, y)
    else:
        model.fit(X, y)
        assert model.gap_ <= 1e-6
        near = WassersteinLogisticRegression(radius=0.05, tol=1e-9).fit(X - [shift, 0.0], y)
        assert abs(model.objective_ - near.objective_) <= model.gap_ + near.gap_


@pytest.mark.parametrize("solver", ["tailored", "column-constraint"])
def test_stopping_early_warns_with_the_bounds(solver):
    X, y = mixed_data()
    model = WassersteinLogisticRegression(radius=0.1, label_cost=3.0, max_iter=1, solver=solver)
    with pytest.warns(ConvergenceWarning, match="certified to .* the lower bound"):
        model.fit(X, y)
    assert model.gap_ > model.tol


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"radius": -1.0}, "'radius' parameter"),
        ({"label_cost": "m"}, "'label_cost' parameter"),
        ({"label_cost": np.inf, "metric_scale": "unit"}, "finite label_cost"),
        ({"conic_solver": "ECOS"}, "'conic_solver' parameter"),
        ({"norm": "l3"}, "'norm' parameter"),
        ({"radius": np.inf}, "'radius' parameter"),
    ],
)
def test_bad_parameters_are_named(options, words):
    X, y = mixed_data(20)
    with pytest.raises(ValueError, match=words):
        WassersteinLogisticRegression(**options).fit(X, y)


def test_bad_targets_and_weights_are_named():
    X, y = mixed_data(20)
    model = WassersteinLogisticRegression()
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        model.fit(X, np.arange(20) % 3)
    with pytest.raises(ValueError, match="only one class"):
        model.fit(X, np.zeros(20))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, y[:-1])
    with pytest.raises(ValueError, match="at least one non-zero"):
        model.fit(X, y, sample_weight=np.zeros(20))
    with pytest.raises(ValueError, match="positive weight are all of one class"):
        clone(model).fit(X, y, sample_weight=(y == "yes").astype(float))


def test_works_with_scikit_learn_tools():
    X, y = mixed_data()
    model = WassersteinLogisticRegression()
    assert cross_val_score(model, X, y, cv=3).mean() > 0.6
    copy = pickle.loads(pickle.dumps(model.fit(X, y)))
    assert copy.predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("l1_penalty", [0.0, 1e-3])
def test_a_warm_start_ends_where_a_cold_one_does(l1_penalty):
    data = load_dataset("lymphography")
    warm = WassersteinLogisticRegression(label_cost=1.0, warm_start=True, l1_penalty=l1_penalty)
    warm_steps, cold_steps = 0, 0
    for radius in (1e-3, 1.1e-3, 0.0, 1e-2, 1.1e-2, 1e3, 1.2e-2):
        warm.set_params(radius=radius).fit(data.X, data.y)
        cold = WassersteinLogisticRegression(radius, 1.0, l1_penalty=l1_penalty).fit(data.X, data.y)
        assert warm.gap_ <= 1e-6
        assert warm.objective_ == pytest.approx(cold.objective_, abs=2e-6)
        warm_steps, cold_steps = warm_steps + warm.n_iter_, cold_steps + cold.n_iter_
    assert warm_steps < cold_steps
    warm.fit(data.X.iloc[:, :5], data.y)  # other columns: a cold start
    assert warm.coef_.tolist() == clone(warm).fit(data.X.iloc[:, :5], data.y).coef_.tolist()


def test_after_a_failed_refit_nothing_predicts_with_old_coefficients():
    X, y = mixed_data()
    for model in (WassersteinLogisticRegression(), WassersteinLogisticRegressionCV(radii=[0.1, 1.0])):
        model.fit(X, y)
        with pytest.raises(ValueError, match="infinity"):
            model.fit(X.assign(size=np.inf), y)
        with pytest.raises(NotFittedError):
            model.predict(X)
        assert "multiplier" not in model._repr_mimebundle_()["text/html"]


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"solver_options": {"form": "dual"}}, "'form', but the solver 'tailored' takes no options"),
        (
            {"p": 2.0, "solver_options": {"from": "dual"}},
            "'column-constraint' takes all_violated, first_cuts, easing, form",
        ),
        ({"solver": "monolithic", "solver_options": {"easing": None}}, "'monolithic' takes form"),
        ({"solver": "monolithic", "solver_options": {"form": "duall"}}, "must be 'primal' or 'dual', not 'duall'"),
    ],
)
def test_options_that_the_solver_does_not_take_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        WassersteinLogisticRegression(**parameters).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(
    "rows",
    [
        np.array([[0.5, "1"], [1.5, "2"]] * 5, dtype=object),
        np.array([["1"], ["2"]] * 5),
        [[0.5, "1"], [1.5, "2"]] * 5,
        np.array([["2020-01-01"], ["2020-01-02"]] * 5, dtype="datetime64[D]"),
        np.array([[1], [2]] * 5, dtype="timedelta64[D]"),
        [[datetime.date(2020, 1, 1)], [datetime.date(2020, 1, 2)]] * 5,
    ],
    ids=["objects", "text", "lists", "datetime64", "timedelta64", "dates"],
)
def test_arrays_whose_text_or_times_would_read_as_numbers_are_refused(rows):
    """An array of objects is what a ColumnTransformer returns that passes categories through."""
    with pytest.raises(ValueError, match=r"X is an array with (text|times); .*set_output\(transform=\"pandas\"\)"):
        WassersteinLogisticRegression().fit(rows, [0, 1] * 5)
    last = np.asarray(rows).shape[1] - 1
    assert WassersteinLogisticRegression(categorical_features=[last]).fit(rows, [0, 1] * 5).categories_[0].size == 2


def test_a_column_transformer_passes_categories_as_a_table():
    table = pd.DataFrame({"size": [0.5, 1.5] * 5, "code": ["1", "2", "1", "3", "2"] * 2})
    scaled = ColumnTransformer([("scale", StandardScaler(), ["size"])], remainder="passthrough")
    model = make_pipeline(scaled, WassersteinLogisticRegression())
    with pytest.raises(ValueError, match="X is an array with text"):
        model.fit(table, [0, 1] * 5)
    model.set_output(transform="pandas").fit(table, [0, 1] * 5)
    assert [levels.tolist() for levels in model[-1].categories_] == [["1", "2", "3"]]


def test_radius_max_takes_no_radius_and_checks_n_jobs():
    with pytest.raises(ValueError, match="radius_max finds the radius; leave out radius"):
        radius_max([[0.0], [1.0]], [0, 1], radius=7.0)
    with pytest.raises(ValueError, match="n_jobs must not be 0"):
        radius_max([[0.0], [1.0]], [0, 1], n_jobs=0)
