"""What slopes mean is what happens to the decision when one column is changed."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.feature_selection._base import _get_feature_importances as importances
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.utils.fixes import parse_version

from wdrlr import WassersteinLogisticRegression, WassersteinLogisticRegressionCV

N = 80
RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "kind": pd.Categorical(RNG.choice(list("abc"), N), categories=["a", "b", "c", "never"]),
        "size": RNG.normal(size=N),
        "flag": RNG.random(N) < 0.5,
        "other": RNG.normal(size=N),
    }
)
Y = np.where((X["kind"] == "b") + 0.6 * X["flag"] + 0.3 * RNG.normal(size=N) > 0.5, "yes", "no")


@pytest.mark.parametrize("coding", ["onehot", "pm1"])
def test_the_table_says_what_a_change_does_to_the_odds(coding):
    weights = RNG.integers(0, 3, N)
    model = WassersteinLogisticRegression(coding=coding).fit(X, Y, weights)
    table = model.coef_table()
    assert list(table) == ["feature", "level", "reference", "rows", "slope", "odds_ratio"]
    assert table["slope"].tolist() == model.coef_[0].tolist()
    kept = X[weights > 0]
    row = X[:1]
    for one in table.itertuples():
        if one.level is None:
            assert one.reference is None and one.rows == len(kept)
            assert model.get_feature_names_out()[one.Index] == one.feature
            new, old = row.assign(**{one.feature: 1.5}), row.assign(**{one.feature: 0.5})
        else:
            assert one.rows == (kept[one.feature] == one.level).sum()
            assert model.get_feature_names_out()[one.Index] == f"{one.feature}_{one.level}"
            first, last = {"kind": ("a", "never"), "flag": (False, True)}[one.feature]
            assert one.reference == (first if coding == "onehot" else last)
            new, old = row.assign(**{one.feature: one.level}), row.assign(**{one.feature: one.reference})
        change = model.decision_function(new)[0] - model.decision_function(old)[0]
        assert one.odds_ratio == pytest.approx(np.exp(change), rel=1e-9)
    assert table.loc[table["level"] == "never", "rows"].tolist() == ([0] if coding == "onehot" else [])


def test_the_table_of_numbers_alone_and_of_features_without_slopes():
    numbers = WassersteinLogisticRegression().fit(X[["size", "other"]], Y).coef_table()
    assert numbers[["feature", "rows"]].to_numpy().tolist() == [["size", N], ["other", N]]
    constant = WassersteinLogisticRegression().fit(pd.DataFrame({"same": ["s"] * N}), Y).coef_table()
    assert constant.shape == (0, 6) and constant["odds_ratio"].dtype == float
    model = WassersteinLogisticRegressionCV([0.01, 0.1], cv=2).fit(X, Y)
    assert model.coef_table()["rows"].sum() == 2 * N + (X["kind"] != "a").sum() + X["flag"].sum()
    model.coef_ = 1e4 + 0 * model.coef_
    assert (model.coef_table()["odds_ratio"] == np.inf).all()


@pytest.mark.parametrize("coding", ["onehot", "pm1"])
def test_an_importance_is_the_most_that_a_column_can_change(coding):
    model = WassersteinLogisticRegression(coding=coding).fit(X, Y)
    expected = []
    for name in X:
        values = X[name].cat.categories if name == "kind" else [False, True] if name == "flag" else [0.0, 1.0]
        f = [model.decision_function(X[:1].assign(**{name: value}))[0] for value in values]
        expected.append(max(f) - min(f))
    np.testing.assert_allclose(model.feature_importances_, expected, atol=1e-9)


def test_a_selection_keeps_the_columns_that_matter_whatever_their_order():
    """``coef_`` has numbers first and, with two levels each, as many entries as there are columns."""
    two = X[["flag", "size", "other"]].assign(kind=np.where(X["kind"] == "b", "b", "a"))
    for order in (["kind", "size", "flag", "other"], ["size", "flag", "other", "kind"]):
        for table in (two[order], X[order]):
            select = SelectFromModel(WassersteinLogisticRegression(), max_features=2, threshold=-np.inf).fit(table, Y)
            assert set(select.get_feature_names_out()) == {"kind", "flag"}
            kept = make_pipeline(select.set_output(transform="pandas"), WassersteinLogisticRegression()).fit(table, Y)
            assert kept.score(table, Y) > 0.8
    prefit = SelectFromModel(WassersteinLogisticRegression().fit(X, Y), prefit=True)
    assert set(prefit.fit(X, Y).get_feature_names_out()) == {"kind", "flag"}


def test_selectors_of_numbers_alone_use_coef():
    numbers = X[["size", "other"]].assign(copy=(Y == "yes") + 0.1 * X["size"])
    model = WassersteinLogisticRegression()
    assert RFE(model, n_features_to_select=1).fit(numbers, Y).support_.tolist() == [False, False, True]
    assert importances(model.fit(numbers, Y), "auto").tolist() == model.coef_.tolist()
    assert importances(model.fit(X, Y), "auto").tolist() == model.feature_importances_.tolist()
    assert not hasattr(WassersteinLogisticRegression(), "feature_importances_")


def test_meta_estimators_as_the_notes_say():
    three = np.where(X["kind"] == "b", "b", np.where(X["size"] > 0, "more", "less"))
    text = X.assign(kind=X["kind"].astype(str))
    assert OneVsRestClassifier(WassersteinLogisticRegression()).fit(text, three).score(text, three) > 0.9
    assert CalibratedClassifierCV(WassersteinLogisticRegression(), cv=2).fit(text, Y).score(text, Y) > 0.8
    for tool in (OneVsOneClassifier(WassersteinLogisticRegression()), RFE(WassersteinLogisticRegression())):
        with pytest.raises(ValueError, match="could not convert string to float"):  # by scikit-learn, on its own
            tool.fit(text, Y)
    named = {"categorical_features": [0, 2], "handle_unknown": "ignore"}
    by_code = make_pipeline(OrdinalEncoder(), OneVsOneClassifier(WassersteinLogisticRegression(**named)))
    assert by_code.fit(text[["kind", "size", "flag"]], three).score(text[["kind", "size", "flag"]], three) > 0.9
    codes = OrdinalEncoder().fit_transform(text[["kind", "flag"]])
    all_categories = WassersteinLogisticRegression(categorical_features="all")
    assert RFE(all_categories, n_features_to_select=1).fit(codes, three == "b").support_.tolist() == [True, False]


@pytest.mark.skipif(parse_version(sklearn.__version__) < parse_version("1.9"), reason="it refused text itself")
def test_bagging_as_the_notes_say():
    text = X.assign(kind=X["kind"].astype(str))
    with pytest.raises(ValueError, match=r"BaggingClassifier, give the positions .* in categorical_features"):
        BaggingClassifier(WassersteinLogisticRegression()).fit(text, Y)
    with pytest.raises(ValueError, match=r"does not have: \['kind'\].*; .*no names, give positions"):
        BaggingClassifier(WassersteinLogisticRegression(categorical_features=["kind"])).fit(text, Y)
    bagged = BaggingClassifier(
        WassersteinLogisticRegression(categorical_features=[0, 2], handle_unknown="ignore"), random_state=0
    ).fit(text, Y)
    assert bagged.score(text, Y) > 0.8


def test_a_diagram_says_nothing_of_features_that_leave_the_classifier():
    model = WassersteinLogisticRegression().fit(X, Y)
    assert model.get_feature_names_out().size == 6
    for shown in (model, make_pipeline(model)):
        assert "6 features" not in shown._repr_mimebundle_()["text/html"]
