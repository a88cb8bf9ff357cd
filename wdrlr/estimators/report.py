"""A fitted classifier in words: what was solved, how well, and what the adversary does; as text and as HTML."""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from wdrlr.estimators.feature_costs import by_position, in_words
from wdrlr.estimators.formulation import Formulation
from wdrlr.model.encoding import FeatureEncoding, level_scores, quoted, slope_names, without_rows
from wdrlr.model.metric import GroundMetric
from wdrlr.model.problem import level_offsets
from wdrlr.solvers.solution import Solution

N_LISTED = 10
"""How many slopes, or features, a report lists."""

UNIQUE = 0.01
"""Mean difference of probabilities up to which the optimum counts as unique."""


EXPLAINED = {
    "The fit": {
        "radius": "choosing.html",
        "label cost": "choosing.html",
        "chosen among": "choosing.html",
        "feature costs": "costs.html",
        "objective": "faq.html#why-is-my-worst-case-so-bad",
        "certificate": "faq.html#what-does-the-gap-mean",
        "uniqueness": "faq.html#can-other-coefficients-be-as-good",
    },
    "The adversary": {
        "multiplier": "faq.html#what-does-the-multiplier-mean",
        "price": "faq.html#what-does-the-multiplier-mean",
        "may pay": "faq.html#what-does-the-multiplier-mean",
    },
    "The largest slopes": {"intercept": "from_logistic_regression.html#what-the-slopes-mean"},
}
"""Where the documentation explains a row of a section."""

STYLE = """\
.wdrlr-report details { max-width: 60em; margin: 0.4em 0; border-radius: 0.25em;
  border: 1px solid color-mix(in srgb, currentColor 25%, transparent); }
.wdrlr-report summary { padding: 0.3em 0.6em; cursor: pointer; font-weight: bold;
  background: color-mix(in srgb, currentColor 8%, transparent); }
.wdrlr-report table { margin: 0.3em 0; border: none; border-collapse: collapse; }
.wdrlr-report :is(th, td) { padding: 0.15em 0.6em; border: none; text-align: left; vertical-align: top; }
.wdrlr-report th { font-weight: normal; white-space: nowrap; opacity: 0.75; }
.wdrlr-report td { font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
"""
"""How the report looks: in the colours of its surroundings, be they light or dark."""


class Fitted(NamedTuple):
    """What a report describes: attributes of a fitted classifier, without the trailing underscore."""

    name: str
    classes: np.ndarray
    formulation: Formulation
    encoding: FeatureEncoding
    coef: np.ndarray
    intercept: np.ndarray
    solution: Solution
    tol: float
    cv_results: pd.DataFrame | None  # None without cross-validation
    measure: str
    class_weight: np.ndarray


def measure_of(scoring: Any) -> str:
    """What a cross-validation with this ``scoring`` measures: "error", "log-loss" or "score"."""
    return "error" if scoring is None else "log-loss" if scoring == "neg_log_loss" else "score"


def measured(measure: str, criterion: float) -> str:
    """A cross-validated criterion in words."""
    return f"{measure} {-criterion if measure == 'score' else criterion:.4f}"


def as_text(model: Fitted) -> str:
    """The report of a fitted model as lines of text."""
    lines = [model.name]
    for title, rows in _sections(model):
        width = max(len(name) for name, _ in rows)
        lines += ["", title, *(f"  {name.ljust(width)}  {text}" for name, text in rows)]
    return "\n".join(lines)


def as_html(model: Fitted) -> str:
    """The report of a fitted model as HTML, one open table per section, linked if the documentation is published."""
    parts = []
    for title, rows in _sections(model):
        cells = "".join(f"<tr><th>{_explained(title, name)}</th><td>{escape(text)}</td></tr>" for name, text in rows)
        parts.append(f"<details open><summary>{escape(title)}</summary><table>{cells}</table></details>")
    return f'<div class="wdrlr-report"><style>{STYLE}</style>{"".join(parts)}</div>'


def _explained(title: str, name: str) -> str:
    """The name of a row, with a link to the page that explains it."""
    page = EXPLAINED[title].get(name)
    if not (page and documentation()):
        return escape(name)
    return f'<a href="{escape(documentation() + page)}" target="_blank" rel="noopener">{escape(name)}</a>'


@cache
def documentation() -> str:
    """The address of the published documentation, as the metadata of the package have it; empty if there is none."""
    try:
        urls = metadata("wdrlr").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    return dict(line.split(", ", 1) for line in urls).get("Documentation", "")


def _sections(model: Fitted) -> list[tuple[str, list[tuple[str, str]]]]:
    return [("The fit", _fit(model)), ("The adversary", _adversary(model)), ("The largest slopes", _slopes(model))]


def _fit(model: Fitted) -> list[tuple[str, str]]:
    n, n_levels = len(model.encoding.numeric), model.encoding.n_levels
    radius, penalty, solution = model.formulation.radius, model.formulation.l1_penalty, model.solution
    rows = [
        ("classes", f"{quoted(model.classes)}; the second one is where f > 0"),
        ("features", f"{n} numeric, {len(n_levels)} categorical with {sum(n_levels)} levels"),
        ("radius", f"{radius:g}"),
        ("label cost", f"{model.formulation.label_cost}"),
    ]
    if (model.class_weight != 1).any():
        weights = [
            f"{label!r} {weight:.4g}" for label, weight in zip(model.classes.tolist(), model.class_weight, strict=True)
        ]
        rows.append(("class weights", ", ".join(weights)))
    if model.formulation.feature_costs:
        costs = by_position(model.formulation.feature_costs, model.encoding.names)
        named = [f"{model.encoding.names[j]} {in_words(value)}" for j, value in costs.items()]
        others = "" if len(costs) == len(model.encoding.names) else "; others 1"
        rows.append(("feature costs", _listed(named, "; ") + others))
    if penalty:
        rows.append(("l1 penalty", f"{penalty:g}"))
    if (results := model.cv_results) is not None:
        chosen = results[(results["radius"] == radius) & (results["l1_penalty"] == penalty)].iloc[0]
        judged = f"{measured(model.measure, chosen['criterion'])} (standard error {chosen['criterion_se']:.4f})"
        rows.append(("chosen among", f"{len(results)} pairs of radius and penalty: cross-validated {judged}"))
    certified = "certified" if solution.gap <= model.tol else "NOT certified"
    return [
        *rows,
        ("objective", f"{solution.upper:.7f}, worst-case log-loss{' and penalty' if penalty else ''}"),
        ("certificate", f"at most {solution.gap:.1e} above the optimum: {certified} to tol={model.tol:g}"),
        ("uniqueness", _uniqueness(solution)),
        ("work", f"{max(solution.n_rounds, 1)} steps, {solution.n_cuts} active cuts, {solution.solver_seconds:.2f} s"),
    ]


def _uniqueness(solution: Solution) -> str:
    """What is proved of other coefficients that are as good; see ``certificate.ambiguity``."""
    unique = "the optimum is as good as unique" if solution.ambiguity <= UNIQUE else "not shown"
    return f"{unique}: others as good differ by at most {solution.ambiguity:.1g} on average in the rows' probabilities"


def _adversary(model: Fitted) -> list[tuple[str, str]]:
    """What pays for the adversary, by prices alone: a change can pay only if it raises the loss by more than its price.

    The log-loss has slopes between 0 and 1. So changing a feature pays only if the scores of two of its levels differ
    by more than the price lam (c_d - c_(d-1)) of a change for some d, where c_d is the cost of d changes; with costs of
    the features' own, by more than the price lam D_j of that change. Changing only the label of a row raises the loss
    by y f, for the price lam kappa. Moving numbers never pays, since dual_norm(b_N) <= lam; where the two are equal it
    costs nothing in the limit (Lemma 2). All costs are divided by the metric's scale.
    """
    formulation = model.formulation
    if formulation.radius == 0:
        penalised = ", with a penalty" if formulation.l1_penalty else ""
        return [("none", f"the radius is 0: logistic regression on the data as they are{penalised}")]
    lam = model.solution.lam
    n, n_levels = len(model.encoding.numeric), model.encoding.n_levels
    metric = formulation.metric(n, len(n_levels), formulation.costs(model.encoding))
    rows = [("multiplier", f"{lam:.4g}: what a unit of radius adds to the worst-case loss")]
    if not model.coef.any():
        why = "the radius and the penalty leave" if formulation.l1_penalty else "the radius leaves"
        rows.append(("slopes", f"all are 0: {why} no feature of use (see radius_max)"))
        return rows
    if not metric.flips:
        rows.append(("labels", "cannot be changed"))
    else:
        rows.append(
            ("labels", f"changed where a row is on the right side by more than {lam * metric.label_change:.4g}")
        )
    may_move = metric.movable(n)
    if may_move.any():
        norm = metric.dual_norm(model.coef[0, :n])
        at_limit = norm >= lam * (1 - 1e-6)
        moved = "in the limit a little mass is moved very far" if at_limit else "moving them does not pay"
        rows.append(("numbers", f"dual norm of the slopes {norm:.4g} of {lam:.4g}: {moved}"))
    if n_levels and formulation.change is not None:  # MT
        rows.append(("categories", "taken for numbers, as are their dummies"))
    elif n_levels:
        rows += _categories(model, metric)
    costs = metric.level_costs or (1.0,) * len(n_levels)
    may_change = [*may_move, *(np.min(cost) < np.inf for cost in costs)]
    columns = [*model.encoding.numeric, *model.encoding.categorical]
    fixed = [model.encoding.names[j] for j, may in zip(columns, may_change, strict=True) if not may]
    if fixed:
        rows.append(("may not change", _listed(fixed)))
    return rows


def _categories(model: Fitted, metric: GroundMetric) -> list[tuple[str, str]]:
    """What a change of a category costs, and for which features the best change may be worth it."""
    encoding, lam, own = model.encoding, model.solution.lam, metric.level_costs
    m, unit = len(encoding.n_levels), lam * metric.level_cost / metric.scale
    if own is None:
        price = lam * np.diff(metric.level_changes(m)).min()
        said, prices = f"{price:.4g} for changing a category", [price] * m
    else:
        said = f"{unit:.4g} times its cost for changing a category"
        prices = [
            np.multiply(unit, costs, out=np.full(np.shape(costs), np.inf), where=np.isfinite(costs)) for costs in own
        ]
    scores = level_scores(model.coef[0, len(encoding.numeric) :], encoding.n_levels, model.formulation.coding)
    worth = []
    for j, of_levels, price in zip(
        encoding.categorical, np.split(scores, level_offsets(encoding.n_levels)[1:]), prices, strict=True
    ):
        gain = np.abs(of_levels[:, None] - of_levels)
        excess = gain - price
        best = np.unravel_index(np.argmax(excess), gain.shape)
        of_own = "" if own is None else f" for {np.broadcast_to(price, gain.shape)[best]:.3g}"
        worth.append((excess[best], f"{encoding.names[j]} ({gain[best]:.3g}{of_own})"))
    pays = [text for excess, text in sorted(worth, key=lambda pair: -pair[0]) if excess > 0]
    told = f"{len(pays)} of {m}: {_listed(pays)}"
    return [("price", said), ("may pay", told if pays else "no category: the scores of its levels differ by less")]


def _listed(texts: list[str], separator: str = ", ") -> str:
    return separator.join([*texts[:N_LISTED], "..."] if len(texts) > N_LISTED else texts)


def _slopes(model: Fitted) -> list[tuple[str, str]]:
    names, slopes = slope_names(model.encoding, model.formulation.coding), model.coef[0]
    order = np.argsort(-np.abs(slopes), kind="stable")
    notes = np.where(without_rows(model.encoding, model.formulation.coding), ", no rows", "")
    shown = [(str(names[j]), f"{slopes[j]:+.4f}{notes[j]}") for j in order[:N_LISTED] if slopes[j]]
    rest = int(np.count_nonzero(slopes)) - len(shown)
    rows = [("intercept", f"{model.intercept[0]:+.4f}"), *shown]
    if rest:
        rows.append(("...", f"{rest} more that are not 0"))
    if not slopes.all():
        rows.append(("0", f"{int((slopes == 0).sum())} of {len(slopes)} slopes"))
    return rows
