"""The classifiers are no more than a shell on a formulation and a solver."""

from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import clone

from tests.estimators.test_formulation import LABELS, WEIGHTS, X, Y
from wdrlr import WassersteinLogisticRegression, WassersteinLogisticRegressionCV
from wdrlr.estimators.base import RobustClassifier
from wdrlr.estimators.formulation import Formulation
from wdrlr.estimators.solving import Solving
from wdrlr.paper.baselines import ContinuousLogisticRegression, ProfileInferenceLogisticRegression

CLASSIFIERS = [
    WassersteinLogisticRegression,
    WassersteinLogisticRegressionCV,
    ContinuousLogisticRegression,
    ProfileInferenceLogisticRegression,
]


def test_the_classifier_is_its_formulation_and_solver():
    model = WassersteinLogisticRegression(0.03, 1.0, coding="pm1", l1_penalty=1e-3).fit(X, Y, WEIGHTS)
    posed = Formulation(0.03, 1.0, coding="pm1", l1_penalty=1e-3).fit(X, LABELS, WEIGHTS)
    np.testing.assert_array_equal(model.solution_.b, Solving().solve(posed.problem).b)
    # What nature may do follows the parameters as they are now, how a table is read those of the fit.
    before, decided = model.worst_case_loss(X, Y), model.decision_function(X)
    model.set_params(radius=0.3, categorical_features=None)
    assert model.worst_case_loss(X, Y) > before
    np.testing.assert_array_equal(model.decision_function(X), decided)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_parameters_are_those_of_init_and_nothing_is_overridden(kind):
    model = kind()
    assert set(vars(model)) == set(model.get_params())
    found = {"radius", "l1_penalty"} if kind is WassersteinLogisticRegressionCV else set()  # by fit
    assert {one.name for one in fields(Formulation)} & set(dir(kind)) == found
    shared = {name for name in vars(RobustClassifier) if not name.startswith("__")}
    own = {name for name in vars(kind) if not name.endswith("_request")}  # scikit-learn writes these into every class
    assert shared & own <= {"_parameter_constraints"}
    changed = model.set_params(tol=1e-3, max_iter=7)
    assert clone(changed).get_params() == changed.get_params()


def test_the_worst_case_reads_coefficients_as_they_were_fitted():
    """Radius and label cost may be changed afterwards; the coding is that of ``coef_``."""
    model = WassersteinLogisticRegression(radius=0.1).fit(X, Y)
    before = model.worst_case_loss(X, Y)
    assert model.set_params(coding="pm1").worst_case_loss(X, Y) == before
    assert model.set_params(radius=0.2).worst_case_loss(X, Y) > before


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("coding", ["onehot", "pm1"])
def test_the_prediction_is_in_its_range(kind, coding):
    model = kind()
    if "coding" in model.get_params():
        model.set_params(coding=coding)
    model.fit(X, Y)
    asked = X.iloc[[3, 0, 3, 7]]
    ranges = model.prediction_range(asked, X, Y)
    f = model.decision_function(asked)
    assert list(ranges) == ["low", "high", "least", "most", "proba_low", "proba_high"]
    assert list(ranges.index) == [3, 0, 3, 7]
    assert (ranges["least"] <= ranges["low"]).all() and (ranges["high"] <= ranges["most"]).all()
    assert (ranges["low"] <= f + 1e-9).all() and (f - 1e-9 <= ranges["high"]).all()
    np.testing.assert_array_equal(ranges["proba_high"], expit(ranges["high"]))
    assert ranges.attrs == {"tol": model.tol, "budget": pytest.approx(model.objective_ + model.tol, abs=1e-9)}


def test_the_range_follows_tol_and_weights():
    model = WassersteinLogisticRegression(0.01, tol=1e-9).fit(X, Y, WEIGHTS)
    narrow, wide = (model.prediction_range(X[:1], X, Y, WEIGHTS, tol=tol) for tol in (1e-6, 1e-4))
    assert 5 < (wide["high"] - wide["low"])[0] / (narrow["high"] - narrow["low"])[0] < 20
    assert wide.attrs["tol"] == 1e-4


def test_an_unknown_level_is_refused_or_has_a_range_as_it_has_a_prediction():
    model = WassersteinLogisticRegression(0.01, handle_unknown="ignore").fit(X, Y)
    name = X.select_dtypes("category").columns[0]
    strange = X[:1].assign(**{name: pd.Categorical(["strange"])})
    ranges, f = model.prediction_range(strange, X, Y), model.decision_function(strange)[0]
    assert ranges["low"][0] <= f <= ranges["high"][0]
    with pytest.raises(ValueError, match="not seen in fit: 'strange'"):
        model.set_params(handle_unknown="error").prediction_range(strange, X, Y)


def test_other_data_or_parameters_than_those_of_the_fit_are_refused():
    model = WassersteinLogisticRegression(0.01).fit(X, Y)
    for data in ((X[:30], Y[:30]), (X, Y, WEIGHTS), (X, Y[::-1])):
        with pytest.raises(ValueError, match="pass the data and weights of the fit"):
            model.prediction_range(X[:1], *data)
    with pytest.raises(ValueError, match="leave parameters and coef_ as they were, or fit again"):
        model.set_params(radius=0.02).prediction_range(X[:1], X, Y)
    for name in ("tol", "time_limit"):
        with pytest.raises(ValueError, match=f"{name} must be a number above 0"):
            model.prediction_range(X[:1], X, Y, **{name: 0.0})
    squared = WassersteinLogisticRegression(0.01, p=2.0).fit(X, Y)
    with pytest.raises(ValueError, match="needs p = 1, not 2"):
        squared.prediction_range(X[:1], X, Y)


def test_rows_out_of_time_are_nan_with_a_warning():
    model = WassersteinLogisticRegression(0.01).fit(X, Y)
    with pytest.warns(UserWarning, match="40 of 40 rows were not reached within time_limit=1e-09.*Raise time_limit"):
        ranges = model.prediction_range(X, X, Y, time_limit=1e-9)
    assert ranges.isna().all(axis=None)
