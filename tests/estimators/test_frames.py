"""Warnings name the user's line, however deep they arise."""

import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from wdrlr import WassersteinLogisticRegression, WassersteinLogisticRegressionCV, fit_path
from wdrlr.estimators.solving import SeparableDataWarning


@pytest.mark.parametrize(
    ("category", "call"),
    [
        (ConvergenceWarning, lambda X, y: WassersteinLogisticRegression(0.01, max_iter=1).fit(X, y)),
        (ConvergenceWarning, lambda X, y: WassersteinLogisticRegressionCV([0.01], cv=2, max_iter=1).fit(X, y)),
        (ConvergenceWarning, lambda X, y: fit_path(X, y, [0.01], max_iter=1)),
        (SeparableDataWarning, lambda X, y: WassersteinLogisticRegression(0.0).fit(X, y)),
    ],
)
def test_warnings_point_at_the_line_of_the_user(category, call):
    X, y = pd.DataFrame({"x": [1.0, 2, 3, 4, 2.5, 3.5], "z": list("aabbab")}), [0, 0, 1, 1, 1, 1]
    with pytest.warns(category) as caught:
        call(X, y)
    assert {warning.filename for warning in caught if issubclass(warning.category, category)} == {__file__}
