import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit, cross_validate
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.estimators.test_classifier import mixed_data
from wdrlr import SeparableDataWarning, WassersteinLogisticRegression, WassersteinLogisticRegressionCV, radius_max
from wdrlr.estimators import cross_validation
from wdrlr.estimators.cross_validation import choose_point

RADII, PENALTIES = [1e-3, 1e-2, 0.1], [0.0, 0.01]


@parametrize_with_checks([WassersteinLogisticRegressionCV()])
def test_scikit_learn(estimator, check):
    check(estimator)


def categorical_data(N=60):
    X, y = mixed_data(N)
    return X.astype({"kind": "category"}), y


@pytest.mark.parametrize("options", [{}, {"label_cost": "n_categorical", "metric_scale": "unit"}, {"p": 2.0}])
def test_it_is_a_grid_search(options):
    X, y = categorical_data()
    model = WassersteinLogisticRegressionCV(RADII, PENALTIES, cv=4, scoring=None, **options).fit(X, y)
    grid = {"radius": RADII, "l1_penalty": PENALTIES}
    search = GridSearchCV(WassersteinLogisticRegression(**options), grid, cv=4).fit(X, y)
    expected = pd.DataFrame(search.cv_results_).sort_values(["param_radius", "param_l1_penalty"])
    results = model.cv_results_
    assert results["radius"].tolist() == expected["param_radius"].tolist()
    assert np.allclose(results["error"], 1 - expected["mean_test_score"])
    for fold in range(4):
        assert np.allclose(results[f"criterion_fold{fold}"], 1 - expected[f"split{fold}_test_score"])
    assert np.allclose(results["criterion_se"], expected["std_test_score"] * np.sqrt(4 / 3) / 2)  # ddof 0 to 1
    assert model.cv_criterion_.shape == (3, 2)
    assert model.cv_criterion_.ravel().tolist() == results["criterion"].tolist() == results["error"].tolist()
    assert (results["gap"] <= 1e-6).all() and (results["gap"] >= 0).all()


def test_the_final_fit_is_that_of_the_plain_classifier_at_the_chosen_point():
    X, y = categorical_data()
    model = WassersteinLogisticRegressionCV(RADII, PENALTIES).fit(X, y)
    plain = WassersteinLogisticRegression(radius=model.radius_, l1_penalty=model.l1_penalty_).fit(X, y)
    assert model.coef_.tolist() == plain.coef_.tolist()
    assert model.objective_ == plain.objective_
    assert model.predict(X).tolist() == plain.predict(X).tolist()
    assert model.worst_case_loss(X, y) == plain.worst_case_loss(X, y)
    assert model.worst_case_loss(X, y) > log_loss(y, model.predict_proba(X))  # at the chosen radius, not at 0


def test_the_error_of_ties_goes_to_the_largest_penalty_and_then_to_the_largest_radius():
    X, y = categorical_data()
    model = WassersteinLogisticRegressionCV(RADII, PENALTIES, scoring=None).fit(X, y)
    best = model.cv_results_[model.cv_results_["error"] <= model.cv_results_["error"].min() + 1e-12]
    chosen = best.sort_values(["l1_penalty", "radius"]).iloc[-1]
    assert (model.radius_, model.l1_penalty_) == (chosen["radius"], chosen["l1_penalty"])


def test_one_standard_error_rule():
    grid = [(0.0, 0.0), (0.1, 0.0), (1.0, 0.0)]
    assert choose_point(grid, np.array([0.20, 0.22, 0.3])) == (0.0, 0.0)
    assert choose_point(grid, np.array([0.20, 0.22, 0.3]), allowance=0.02) == (0.1, 0.0)
    X, y = categorical_data()
    best = WassersteinLogisticRegressionCV(RADII, label_cost=1.0).fit(X, y)
    careful = clone(best).set_params(rule="one_standard_error").fit(X, y)
    results = best.cv_results_
    at = results["criterion"].idxmin()
    assert best.radius_ == results["radius"][at]
    within = results["criterion"] <= results["criterion"][at] + results["criterion_se"][at]
    assert careful.radius_ == results["radius"][within].max() > best.radius_
    with pytest.raises(ValueError, match="needs at least two folds"):
        careful.set_params(cv=[(np.arange(0, 60, 2), np.arange(1, 60, 2))]).fit(X, y)


def test_scoring_and_log_loss():
    X, y = categorical_data()
    plain = WassersteinLogisticRegressionCV(RADII, cv=3, scoring=None).fit(X, y)
    by_scorer = clone(plain).set_params(scoring="neg_log_loss").fit(X, y)
    assert np.allclose(by_scorer.cv_results_["criterion"], plain.cv_results_["log_loss"])
    assert np.allclose(by_scorer.cv_results_["criterion_se"], plain.cv_results_["log_loss_se"])
    of_scikit_learn = clone(plain).set_params(scoring=make_scorer(log_loss, response_method="predict_proba"))
    assert np.allclose(-of_scikit_learn.fit(X, y).cv_results_["criterion"], plain.cv_results_["log_loss"])
    accuracy = clone(plain).set_params(scoring="accuracy").fit(X, y)
    for other in (by_scorer, of_scikit_learn, accuracy):  # whatever the choice goes by, an error is one
        for name in ("error", "error_se", "log_loss", "log_loss_se"):
            assert np.allclose(other.cv_results_[name], plain.cv_results_[name]), name
    assert np.allclose(1 + accuracy.cv_results_["criterion"], plain.cv_results_["error"])
    as_array = clone(plain).set_params(scoring=lambda model, X, y: -np.mean(model.predict(X) != y))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of feature names, if the scorer saw another kind of table
        numbers = X[["size"]].to_numpy()
        assert np.allclose(as_array.fit(numbers, y).cv_criterion_, clone(plain).fit(numbers, y).cv_criterion_)
    with pytest.raises(ValueError, match="scoring returns nan on fold 0"):
        clone(plain).set_params(scoring=lambda model, X, y: np.nan).fit(X, y)


def test_a_scorer_without_weights_is_refused_where_there_are_some():
    X, y = mixed_data()
    model = WassersteinLogisticRegressionCV(radii=[0.1, 1.0], scoring=lambda model, X, y: model.score(X, y))
    assert model.fit(X, y).cv_criterion_.max() < 0
    assert "cross-validated score 0." in model.summary()
    with pytest.raises(ValueError, match="scoring must accept sample_weight"):
        model.fit(X, y, sample_weight=np.ones(len(y)))


def test_weights_count_in_fits_and_errors():
    X, y = categorical_data(30)
    weights = np.random.default_rng(0).integers(0, 4, 30)
    folds = [(np.flatnonzero(np.arange(30) % 3 != k), np.flatnonzero(np.arange(30) % 3 == k)) for k in range(3)]
    origin = np.repeat(np.arange(30), weights)
    repeated = [(np.flatnonzero(np.isin(origin, a)), np.flatnonzero(np.isin(origin, b))) for a, b in folds]
    for scoring in (None, "neg_log_loss"):
        a = WassersteinLogisticRegressionCV(RADII, cv=folds, scoring=scoring).fit(X, y, sample_weight=weights)
        b = WassersteinLogisticRegressionCV(RADII, cv=repeated, scoring=scoring).fit(X.iloc[origin], y[origin])
        assert np.allclose(a.cv_criterion_, b.cv_criterion_, atol=1e-4)
        assert a.objective_ == pytest.approx(b.objective_, abs=1e-9)


def test_class_weights_count_in_every_fit_and_in_no_error():
    X, y = categorical_data()
    weight = {"no": 1.0, "yes": 4.0}
    for options in ({}, {"p": 2.0}):
        model = WassersteinLogisticRegressionCV(
            RADII, PENALTIES, cv=4, scoring=None, class_weight=weight, **options
        ).fit(X, y)
        plain = WassersteinLogisticRegression(class_weight=weight, **options)
        search = GridSearchCV(plain, {"radius": RADII, "l1_penalty": PENALTIES}, cv=4).fit(X, y)
        expected = pd.DataFrame(search.cv_results_).sort_values(["param_radius", "param_l1_penalty"])
        assert np.allclose(model.cv_results_["error"], 1 - expected["mean_test_score"])
        plain.set_params(radius=model.radius_, l1_penalty=model.l1_penalty_).fit(X, y)
        assert model.coef_.tolist() == plain.coef_.tolist() and model.class_weight_.tolist() == [1.0, 4.0]
    meant = np.where(y == "yes", 4.0, 1.0)
    one = [0.03]
    by_class, by_sample = (
        WassersteinLogisticRegressionCV(one, scoring=None, class_weight=given).fit(X, y, weights)
        for given, weights in ((weight, None), (None, meant))
    )
    assert by_class.coef_.tolist() == by_sample.coef_.tolist()
    assert by_class.cv_results_["gap"].tolist() == by_sample.cv_results_["gap"].tolist()
    assert by_class.cv_criterion_ != by_sample.cv_criterion_
    by_scorer = clone(by_class).set_params(scoring=lambda model, X, y: model.score(X, y) - 1).fit(X, y)
    assert np.allclose(by_scorer.cv_criterion_, by_class.cv_criterion_)


def grouped_data():
    X, y = categorical_data()
    return X, y, np.arange(len(y)) // 4


def test_groups_stay_together():
    X, y, groups = grouped_data()
    splits = list(GroupKFold(3).split(X, y, groups))
    listed = WassersteinLogisticRegressionCV(RADII, cv=splits).fit(X, y)
    for routing in (False, True):
        with sklearn.config_context(enable_metadata_routing=routing):
            for given in (groups, groups.tolist(), pd.Series(groups)):
                model = WassersteinLogisticRegressionCV(RADII, cv=GroupKFold(3)).fit(X, y, groups=given)
                pd.testing.assert_frame_equal(model.cv_results_, listed.cv_results_)
    with pytest.raises(ValueError, match="groups"):
        WassersteinLogisticRegressionCV(RADII, cv=GroupKFold(3)).fit(X, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        WassersteinLogisticRegressionCV(RADII, cv=GroupKFold(3)).fit(X, y, groups=groups[1:])
    with pytest.warns(UserWarning, match="groups parameter is ignored by StratifiedKFold"):
        WassersteinLogisticRegressionCV(RADII).fit(X, y, groups=groups)


def test_metadata_go_where_they_are_requested():
    X, y, groups = grouped_data()
    weights = np.random.default_rng(0).random(len(y))
    seen = []

    def cost(y, predicted, price=None, sample_weight=None):
        seen.append((price, sample_weight))
        return -np.mean(np.where(y != predicted, price, 0.0))

    scorer = make_scorer(cost)
    price = np.random.default_rng(1).random(len(y))
    splits = list(GroupKFold(3).split(X, y, groups))
    with pytest.raises(ValueError, match="enable_metadata_routing=True"):
        WassersteinLogisticRegressionCV(RADII, cv=splits, scoring=scorer).fit(X, y, price=price)
    with sklearn.config_context(enable_metadata_routing=True):
        model = WassersteinLogisticRegressionCV(RADII, cv=GroupKFold(3), scoring=scorer)
        with pytest.raises((TypeError, ValueError), match=r"price.* (not explicitly set as requested|not routed)"):
            model.fit(X, y, groups=groups, price=price)
        for with_weights in (False, True):
            seen.clear()
            scorer.set_score_request(price=True, sample_weight=with_weights)
            model.fit(X, y, weights, groups=groups, price=price)
            for number, (_, test) in enumerate(splits):
                for price_of, weights_of in seen[number * len(RADII) : (number + 1) * len(RADII)]:
                    np.testing.assert_array_equal(price_of, price[test])
                    assert (weights_of is None) is not with_weights
                    assert weights_of is None or weights_of.tolist() == weights[test].tolist()
        with pytest.raises(TypeError, match="unexpected argument"):
            model.fit(X, y, groups=groups, price=price, prize=price)


def test_groups_reach_a_cross_validation_within_another():
    X, y, groups = grouped_data()
    with sklearn.config_context(enable_metadata_routing=True):
        inner = WassersteinLogisticRegressionCV(RADII, cv=GroupKFold(3)).set_fit_request(sample_weight=False)
        found = cross_validate(
            inner, X, y, cv=GroupKFold(2), params={"groups": groups}, return_estimator=True, error_score="raise"
        )
    for (train, _), model in zip(GroupKFold(2).split(X, y, groups), found["estimator"], strict=True):
        alone = clone(inner).fit(X.iloc[train], y[train], groups=groups[train])
        pd.testing.assert_frame_equal(model.cv_results_, alone.cv_results_)


def test_levels_are_those_of_the_whole_table_in_every_fold():
    """A level that only one fold has is no unknown level, also where the column declares none."""
    X, y = mixed_data(40)
    X.loc[3, "kind"] = "rare"
    model = WassersteinLogisticRegressionCV(RADII).fit(X, y)
    assert model.categories_[1].tolist() == ["a", "b", "rare"]
    with pytest.raises(ValueError, match="not seen in fit: 'rare'"):
        GridSearchCV(WassersteinLogisticRegression(), {"radius": RADII}, error_score="raise").fit(X, y)


def test_processes_change_nothing():
    X, y = categorical_data()
    one, two = (WassersteinLogisticRegressionCV(RADII, n_jobs=n, cv=2).fit(X, y) for n in (1, 2))
    pd.testing.assert_frame_equal(one.cv_results_, two.cv_results_)


def test_inside_another_cross_validation():
    X, y = categorical_data()
    scores = cross_validate(WassersteinLogisticRegressionCV([0.01, 0.1], cv=KFold(3)), X, y, cv=2)["test_score"]
    assert scores.mean() > 0.6


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_verbose_prints_a_line_a_fold_and_more_of_it_a_line_a_fit(n_jobs, capfd):
    X, y = categorical_data()
    model = WassersteinLogisticRegressionCV(RADII, cv=3, n_jobs=n_jobs)
    model.fit(X, y)
    assert capfd.readouterr().out == ""
    lines = model.set_params(verbose=1).fit(X, y) and capfd.readouterr().out.splitlines()
    assert [line[:26] for line in lines[:3]] == [f"wdrlr: fold {k} of 3: 3 fits" for k in (1, 2, 3)]
    best = model.cv_results_.loc[model.cv_results_["criterion_fold0"].idxmin()]
    assert lines[0].endswith(f"best log-loss {best['criterion_fold0']:.4f} at radius {best['radius']:g}")
    assert lines[3:] == [f"wdrlr: {model.solution_.report()}"]
    # Processes that were started earlier print where that test did.
    lines = model.set_params(verbose=2, n_jobs=None).fit(X, y) and capfd.readouterr().out.splitlines()
    for radius in RADII:
        assert sum(line.startswith(f"wdrlr: radius {radius:g}: objective") for line in lines) == 3


def test_warnings_come_once():
    X, y = categorical_data()
    with pytest.warns(ConvergenceWarning, match="certified to") as caught:
        WassersteinLogisticRegressionCV([0.05, 0.1], max_iter=1, label_cost=3.0).fit(X, y)
    assert len(caught) == 2  # one for the cross-validation, one for the final fit
    with pytest.warns(SeparableDataWarning) as caught:
        WassersteinLogisticRegressionCV([0.0], cv=2).fit(X, X["kind"])
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        WassersteinLogisticRegressionCV([0.0, 0.01], cv=2, scoring=None).fit(X, X["kind"])  # 0 is not chosen


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"radii": []}, "radii must be a non-empty list"),
        ({"radii": [0.1, -1.0]}, "radii must be .* none below 0"),
        ({"radii": [np.inf]}, "radii must be .* finite"),
        ({"radii": 0.1}, "'radii' parameter"),
        ({"radii": 1}, "'radii' parameter"),
        ({"radii": ["much"]}, "radii must be a list of numbers"),
        ({"l1_penalties": [np.nan]}, "l1_penalties must be"),
        ({"rule": "two"}, "'rule' parameter"),
        ({"scoring": "goodness"}, "'scoring' parameter"),
        ({"cv": 1}, "'cv' parameter"),
        ({"cv": [(np.arange(4), np.arange(4, 20))]}, "rows outside fold 0 .* all of one class"),
    ],
)
def test_bad_parameters_are_named(options, words):
    X, y = categorical_data(20)
    y = np.array(["no"] * 10 + ["yes"] * 10)
    with pytest.raises(ValueError, match=words):
        WassersteinLogisticRegressionCV(**options).fit(X, y)


def test_folds_without_weight_are_named():
    X, y = categorical_data(20)
    with pytest.raises(ValueError, match=r"the rows of fold 3 .* have no weight"):
        WassersteinLogisticRegressionCV(cv=KFold(4)).fit(X, y, sample_weight=np.repeat([1.0, 0.0], [15, 5]))


def test_before_fit_there_is_no_radius():
    model = WassersteinLogisticRegressionCV()
    assert not hasattr(model, "radius")
    assert "radius" not in model.get_params()


def test_auto_is_a_grid_from_the_largest_useful_radius_down():
    X, y = mixed_data(60)
    model = WassersteinLogisticRegressionCV(l1_penalties=[0.0, 0.01], label_cost=3.0, cv=3).fit(X, y)
    largest = radius_max(X, y, label_cost=3.0)
    np.testing.assert_allclose(model.radii_, largest * np.logspace(-3, 0, 10))
    assert model.cv_criterion_.shape == (10, 2) and model.radius_ in model.radii_
    fewer = clone(model).set_params(radii=4, l1_penalties=[0.0]).fit(X, y)
    np.testing.assert_allclose(fewer.radii_, model.radii_[::3])
    in_other_units = WassersteinLogisticRegressionCV(
        radii="auto", l1_penalties=[0.0, 0.01], label_cost=3000.0, feature_costs=dict.fromkeys(X.columns, 1000.0), cv=3
    )
    np.testing.assert_allclose(in_other_units.fit(X, y).radii_, 1000.0 * model.radii_)


def test_auto_where_no_radius_makes_all_slopes_0_or_every_one_does():
    X, y = mixed_data(60)
    names = list(X.columns)
    numbers = X.select_dtypes("number").columns
    fixed = WassersteinLogisticRegressionCV(radii="auto", label_cost=np.inf, cv=3)
    costs = {names[-1]: np.inf}
    assert radius_max(X, y, label_cost=np.inf, feature_costs=costs) == np.inf
    assert fixed.set_params(feature_costs=costs).fit(X, y).radii_[-1] == 1.0
    only_numbers = X[numbers].assign(one=1.0)
    extent = np.ptp(only_numbers[numbers[0]])
    costs = {name: np.inf for name in numbers[1:]} | {numbers[0]: 2.0}
    with_fixed = only_numbers.assign(fixed=(np.asarray(y) == y[0]) + 0.1 * np.arange(60))
    fixed.set_params(feature_costs=costs | {"fixed": np.inf, "one": 5.0}).fit(with_fixed, y)
    assert fixed.radii_[-1] == pytest.approx(2.0 * extent)
    none = WassersteinLogisticRegressionCV(radii="auto", cv=3)
    assert none.fit(pd.DataFrame({"a": ["u", "v"] * 20}), [0, 0, 1, 1] * 10).radii_.tolist() == [0.0]
    with pytest.raises(ValueError, match=r"radii.*must be.*'auto'"):
        none.set_params(radii="lasso").fit(X, y)


def test_the_rule_that_needs_several_folds_says_so_before_any_fit(monkeypatch):
    monkeypatch.setattr(cross_validation, "_fit_fold", None)
    model = WassersteinLogisticRegressionCV(radii=[0.1, 0.2], cv=ShuffleSplit(1), rule="one_standard_error")
    with pytest.raises(ValueError, match="needs at least two folds, but cv gives only one"):
        model.fit([[0.0], [1.0], [2.0], [3.0]] * 5, [0, 1, 0, 1] * 5)
