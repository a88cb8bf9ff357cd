"""The classifiers are no more than a shell on a formulation and a solver."""

from dataclasses import fields

import numpy as np
import pytest
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
    model = WassersteinLogisticRegression(0.03, coding="pm1", l1_penalty=1e-3).fit(X, Y, WEIGHTS)
    posed = Formulation(0.03, coding="pm1", l1_penalty=1e-3).fit(X, LABELS, WEIGHTS)
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
