import re
from email.message import Message
from importlib.metadata import metadata

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline

from tests.estimators.test_classifier import mixed_data
from wdrlr import WassersteinLogisticRegression, WassersteinLogisticRegressionCV
from wdrlr.estimators import report
from wdrlr.estimators.report import as_html
from wdrlr.model.separation import most_violated
from wdrlr.paper.baselines import ContinuousLogisticRegression

X, Y = mixed_data(80)


def told(model):
    """The lines of the summary by their name."""
    lines = [line.strip().partition("  ") for line in model.summary().splitlines() if line.startswith("  ")]
    return {name: text.strip() for name, _, text in lines}


def test_what_was_solved_and_how_well():
    model = WassersteinLogisticRegression(radius=0.05, label_cost=1.0, l1_penalty=0.01).fit(X, Y)
    lines = told(model)
    assert lines["classes"] == "'no', 'yes'; the second one is where f > 0"
    assert lines["features"] == "1 numeric, 2 categorical with 6 levels"
    assert (lines["radius"], lines["label cost"], lines["l1 penalty"]) == ("0.05", "1.0", "0.01")
    assert lines["objective"] == f"{model.objective_:.7f}, worst-case log-loss and penalty"
    assert lines["certificate"] == f"at most {model.gap_:.1e} above the optimum: certified to tol=1e-06"
    assert lines["multiplier"].startswith(f"{model.transport_multiplier_:.4g}: ")
    assert f"{model.n_cuts_} active cuts" in lines["work"]
    largest = np.abs(model.coef_[0]).argmax()
    assert lines[model.get_feature_names_out()[largest]] == f"{model.coef_[0, largest]:+.4f}"


def test_class_weights_are_told_where_there_are_some():
    model = WassersteinLogisticRegression(class_weight={"yes": 2.5}).fit(X, Y)
    assert told(model)["class weights"] == "'no' 1, 'yes' 2.5"
    assert "class weights" not in told(WassersteinLogisticRegression().fit(X, Y))


def test_an_uncertified_fit_says_so():
    with pytest.warns(ConvergenceWarning):
        model = WassersteinLogisticRegression(radius=0.1, label_cost=3.0, max_iter=1).fit(X, Y)
    assert "NOT certified" in told(model)["certificate"]


OPTIONS = [
    {"label_cost": "n_categorical", "metric_scale": "unit"},
    {"label_cost": 5.0, "p": 2.0},
    {"label_cost": 5.0, "p": 0.5},
    {"label_cost": 5.0, "coding": "pm1"},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("radius", [0.02, 0.08])
def test_categories_that_are_changed_are_among_those_said_to_be_worth_it(radius, options):
    rng = np.random.default_rng(1)
    table = pd.DataFrame({f"c{j}": pd.Categorical(rng.choice(list("abc"), 80)) for j in range(4)})
    y = np.where(rng.random(80) < 0.85, table["c0"] == "a", table["c1"] == "b").astype(int)
    model = WassersteinLogisticRegression(radius=radius, **options).fit(table, y)
    problem = model.formulation_.pose(model.encoding_, table, 2.0 * y - 1, np.ones(len(y))).problem
    b = np.concatenate([model.intercept_, model.coef_[0]])
    moved = set()
    for flipped in problem.label_flips:
        worst = most_violated(problem, b, model.transport_multiplier_, flipped)
        moved |= set(table.columns[(worst.z != problem.z).any(axis=0)])
    text = told(model)["may pay"]
    said = {entry.partition(" ")[0] for entry in text.partition(": ")[2].split(", ")} - {""}
    said = set() if text.startswith("no category") else said
    assert moved <= said
    assert moved


def test_labels_are_changed_where_the_report_says():
    numbers = X[["size"]]
    model = WassersteinLogisticRegression(radius=0.1, label_cost=1.0).fit(numbers, Y)
    margin = np.where(Y == "yes", 1, -1) * model.decision_function(numbers)
    limit = float(told(model)["labels"].rpartition(" ")[2])
    gain = np.logaddexp(0, margin) - np.logaddexp(0, -margin) - model.transport_multiplier_ * model.label_cost
    clear = np.abs(gain) > 1e-2
    assert (gain[clear] > 0).tolist() == (margin[clear] > limit).tolist()
    assert told(model)["numbers"].startswith("dual norm of the slopes")


def test_no_adversary_and_no_slopes():
    assert "logistic regression" in told(WassersteinLogisticRegression(radius=0.0).fit(X, Y))["none"]
    assert "all are 0" in told(WassersteinLogisticRegression(radius=10.0).fit(X, Y))["slopes"]
    assert told(WassersteinLogisticRegression(label_cost=np.inf).fit(X, Y))["labels"] == "cannot be changed"
    mt = told(ContinuousLogisticRegression().fit(X, Y))
    assert mt["categories"].startswith("taken for numbers") and "price" not in mt
    with pytest.raises(NotFittedError):
        WassersteinLogisticRegression().summary()


@pytest.mark.parametrize("coding", ["onehot", "pm1"])
def test_slopes_of_levels_without_rows_are_marked(coding):
    model = WassersteinLogisticRegression(radius=0.01, coding=coding)
    weights = (X["colour"] != "green").astype(float)
    lines = told(
        model.fit(X.assign(colour=X["colour"].cat.reorder_categories(["red", "never", "green", "blue"])), Y, weights)
    )
    marked = {name for name, text in lines.items() if text.endswith(", no rows")}
    assert marked == {"colour_never", "colour_green"}
    assert not any("no rows" in text for text in told(WassersteinLogisticRegression().fit(X[["kind"]], Y)).values())


def test_what_cross_validation_chose():
    model = WassersteinLogisticRegressionCV([0.01, 0.1], [0.0, 0.01], cv=3).fit(X, Y)
    lines = told(model)
    assert lines["chosen among"].startswith(
        f"4 pairs of radius and penalty: cross-validated log-loss {model.cv_criterion_.min():.4f}"
    )
    assert lines["radius"] == f"{model.radius_:g}"
    model.set_params(scoring=None).fit(X, Y)
    assert f"cross-validated error {model.cv_criterion_.min():.4f}" in told(model)["chosen among"]


def test_html_is_scikit_learns_with_the_report_below():
    model = WassersteinLogisticRegression()
    unfitted = model._repr_mimebundle_()["text/html"]
    assert "sk-container" in unfitted and "multiplier" not in unfitted
    model.fit(X.assign(kind=np.where(X["kind"] == "a", "<a>", "b & c")), Y)
    html = model._repr_mimebundle_()["text/html"]
    assert "sk-container" in html and "multiplier" in html
    assert "kind_b &amp; c" in html or "kind_&lt;a&gt;" in html
    told_in_html = as_html(model._fitted())
    assert html.endswith(told_in_html) and model._repr_html_().endswith(told_in_html)
    assert told_in_html.count("<table>") == told_in_html.count("</table>") == 3
    assert "sk-container" in make_pipeline(clone(model))._repr_html_()
    with sklearn.config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()


def test_html_is_open_and_styled_in_the_colours_of_its_surroundings():
    told_in_html = as_html(WassersteinLogisticRegression().fit(X, Y)._fitted())
    assert told_in_html.count("<details open>") == told_in_html.count("<details") == 3
    assert told_in_html.count("<style>") == 1 and ".wdrlr-report table" in told_in_html
    assert "currentColor" in told_in_html and not re.search(r"#[0-9a-f]{3}|rgb\(", told_in_html)


def test_html_links_to_the_documentation_that_is_published(monkeypatch):
    model = WassersteinLogisticRegression().fit(X, Y)
    address = "https://some.one.example/robust/"
    monkeypatch.setattr(report, "documentation", lambda: "")
    assert "href" not in as_html(model._fitted()) and model._get_doc_link() == ""
    monkeypatch.setattr(report, "documentation", lambda: address)
    assert model._get_doc_link() == f"{address}api.html" and f'href="{address}api.html"' in model._repr_html_()
    linked = dict(re.findall(r'<th><a href="([^"]*)"[^>]*>([^<]*)</a></th>', as_html(model._fitted())))
    assert linked[f"{address}faq.html#what-does-the-gap-mean"] == "certificate"
    named = X.rename(columns={"size": "certificate"})  # a slope of that name is no certificate
    html = as_html(WassersteinLogisticRegression().fit(named, Y)._fitted())
    assert html.count("certificate</a>") == 1 and "<th>certificate</th>" in html


def test_the_address_of_the_documentation_is_in_the_metadata(monkeypatch):
    urls = Message()
    monkeypatch.setattr(report, "metadata", lambda name: urls)
    assert report.documentation.__wrapped__() == ""
    urls["Project-URL"] = "Issues, https://one.example/issues"
    assert report.documentation.__wrapped__() == ""
    urls["Project-URL"] = "Documentation, https://one.example/"
    assert report.documentation.__wrapped__() == "https://one.example/"
    monkeypatch.undo()
    monkeypatch.setattr(report, "metadata", lambda name: metadata("not-installed"))
    assert report.documentation.__wrapped__() == ""


def test_rows_that_are_explained_exist():
    model = WassersteinLogisticRegressionCV([0.01], cv=3, feature_costs={"kind": 2.0}).fit(X, Y)
    sections = dict(report._sections(model._fitted()))
    assert {title: set(rows) - {name for name, _ in sections[title]} for title, rows in report.EXPLAINED.items()} == {
        title: set() for title in sections
    }
