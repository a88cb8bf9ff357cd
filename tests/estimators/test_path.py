import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from tests.estimators.test_classifier import mixed_data
from wdrlr import SeparableDataWarning, WassersteinLogisticRegression, fit_path


@pytest.mark.parametrize("options", [{}, {"coding": "pm1", "metric_scale": "unit"}, {"p": 2.0}])
def test_a_path_is_its_fits(options):
    X, y = mixed_data(40)
    path = fit_path(X, y, [0.0, 1e-3, 0.1], [0.0, 0.01], [1.0, "n_categorical"], **options)
    assert len(path) == 12
    assert (path["gap"] <= 1e-6).all()
    for row in path.itertuples(index=False):
        model = WassersteinLogisticRegression(
            radius=row.radius, l1_penalty=row.l1_penalty, label_cost=row.label_cost, **options
        ).fit(X, y)
        assert row.objective == pytest.approx(model.objective_, abs=1e-6)
        assert [row.intercept, *row[8:]] == pytest.approx([model.intercept_[0], *model.coef_[0]], abs=0.02)
    assert path.columns[8:].tolist() == model.get_feature_names_out().tolist()


def test_a_path_warns_once_of_each_matter():
    X, y = mixed_data(40)
    with pytest.warns(ConvergenceWarning, match="certified to") as caught:
        fit_path(X, y, [0.01, 0.1], max_iter=1)
    assert len(caught) == 1
    with pytest.warns(SeparableDataWarning) as caught:
        fit_path(X, X["kind"], [0.0, 0.1], label_costs=[1.0, 2.0])
    assert len(caught) == 1


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"radii": [0.1], "label_cost": 5.0}, "a list label_costs in place of label_cost"),
        ({"radii": [0.1], "l1_penalty": 5.0}, "a list l1_penalties in place of l1_penalty"),
        ({"radii": 0.1}, "radii must be a list, not 0.1"),
        ({"radii": (one for one in [0.1])}, "radii must be a list"),
        ({"radii": [0.1], "label_costs": "n_categorical"}, "label_costs must be a list, not 'n_categorical'"),
    ],
)
def test_a_grid_of_another_shape_is_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        fit_path(*mixed_data(), **parameters)


def test_verbose_prints_a_line_a_fit(capsys):
    path = fit_path(*mixed_data(40), [0.01, 0.1], [0.0, 0.02], verbose=1)
    lines = capsys.readouterr().out.splitlines()
    told = {line.partition(": objective")[0] for line in lines}
    assert len(lines) == len(path) == 4
    assert told == {
        f"wdrlr: radius {radius}{penalty}" for radius in (0.01, 0.1) for penalty in ("", ", l1 penalty 0.02")
    }
    fit_path(*mixed_data(40), [0.01])
    assert capsys.readouterr().out == ""


def test_features_named_like_columns_of_the_path_are_refused():
    X, y = mixed_data()
    with pytest.raises(ValueError, match="two columns gap, radius; rename"):
        fit_path(X.assign(radius=1.0 * np.arange(len(X)), gap=0.5), y, radii=[0.1])


def test_a_bad_point_is_refused_before_any_fit():
    X, y = mixed_data(20)
    with pytest.raises(ValueError, match="'radius' parameter"):
        fit_path(X, y, [0.1, -1.0])
    with pytest.raises(ValueError, match="at least one value each"):
        fit_path(X, y, [])
    with pytest.raises(ValueError, match="finite label_cost"):
        fit_path(X, y, [0.1], label_costs=[1.0, np.inf], metric_scale="unit")
