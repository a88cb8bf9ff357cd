"""Formulations without a classifier."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from tests.estimators.test_classifier import mixed_data
from wdrlr.estimators.formulation import Formulation
from wdrlr.estimators.solving import Solving
from wdrlr.model.objective import objective
from wdrlr.paper.baselines import dummies_as_numbers

X, Y = mixed_data(40)
LABELS = np.where(Y == "yes", 1.0, -1.0)
WEIGHTS = np.random.default_rng(0).random(40)


@pytest.mark.parametrize("change", [None, dummies_as_numbers])
@pytest.mark.parametrize("coding", ["onehot", "pm1"])
def test_a_solution_read_decides_as_its_problem_does(coding, change):
    formulation = Formulation(0.02, "n_categorical", metric_scale="unit", coding=coding, change=change)
    encoding, problem, stretch = posed = formulation.fit(X, LABELS, WEIGHTS)
    b = Solving().solve(problem).b
    coef, intercept = posed.read(b)
    assert coef.shape == (1, 5) and intercept.shape == (1,)
    np.testing.assert_array_equal(posed.coefficients(coef, intercept), b)
    for column, levels, weights in zip(("colour", "kind"), encoding.categories, encoding.category_weights, strict=True):
        expected = [WEIGHTS[X[column] == level].sum() / WEIGHTS.sum() for level in levels]
        np.testing.assert_allclose(weights, expected, atol=1e-14)
    rows = formulation.pose(encoding, X, LABELS, WEIGHTS, merge=False)
    np.testing.assert_array_equal(rows.problem.y, LABELS)
    np.testing.assert_array_equal(rows.stretch, stretch)
    decided = formulation.decision(encoding, coef, intercept, X)
    np.testing.assert_allclose(decided, rows.problem.decision(b), atol=1e-12)
    np.testing.assert_allclose(formulation.rows(encoding, X) @ np.append(intercept, coef), decided, atol=1e-12)
    assert objective(rows.problem, b)[0] == pytest.approx(objective(problem, b)[0], abs=1e-12)
    assert formulation.metric(1, 2).label_change == pytest.approx(problem.metric.label_change)


def test_a_formulation_needs_no_scikit_learn():
    code = "import sys, wdrlr.estimators.formulation; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(
    "wrong, message", [({"weights": 0 * WEIGHTS}, "non-zero"), ({"labels": 1.0 + 0 * LABELS}, "one class")]
)
def test_rows_that_make_no_problem_are_refused(wrong, message):
    rows = {"table": X, "labels": LABELS, "weights": WEIGHTS}
    with pytest.raises(ValueError, match=message):
        Formulation().fit(**rows | wrong)
    with pytest.raises(ValueError, match="finite label_cost"):
        replace(Formulation(), label_cost=np.inf, metric_scale="unit").fit(**rows)
