"""Which radius, label cost and norm predict best: the defaults against logistic regression with a ridge penalty.

    python -m benchmarks.choosing             # all data sets; resumes where it was stopped
    python -m benchmarks.choosing --datasets iris --folds 2 --output choosing.csv
    python -m benchmarks.choosing --report    # writes the tables of docs/choosing.md anew

Each row is one way to choose a model, on the training part of one of five folds of a data set, with its log-loss and
its share of errors on the held-out part. Within a fold, one cross-validation over a fine grid of radii serves all ways
to read it: which score, with or without the one-standard-error rule, how many radii, how far down.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.report import markdown
from wdrlr import WassersteinLogisticRegression, WassersteinLogisticRegressionCV, load_dataset, radius_max
from wdrlr.datasets import DATASETS
from wdrlr.estimators.cross_validation import choose_point
from wdrlr.files import replace_file
from wdrlr.paper.paths import project_root

RESULTS = project_root() / "benchmarks" / "results" / "choosing.csv"
PAGE = project_root() / "docs" / "choosing.md"
MARK = "<!-- written by benchmarks.choosing; what is below is overwritten -->"

SEED, N_FOLDS, N_FOLDS_OF_NORMS, MOST_ROWS = 0, 5, 2, 1000
"""Larger data sets are cut down to so many rows, drawn at random within the classes."""

SHARES = np.geomspace(1e-4, 1.0, 9)
"""The radii of the cross-validations, as shares of ``radius_max``: two a decade."""

GRIDS = {"9 from 1e-4": slice(0, None), "7 from 1e-3": slice(2, None), "5 from 1e-2": slice(4, None)}
GRIDS |= {"5 from 1e-4": slice(0, None, 2), "4 from 1e-3": slice(2, None, 2)}
"""The parts of these radii that are tried as grids: how many, and from which share."""

TOL = 1e-4
"""Of the fits with cross-validation; log-losses of models worth choosing hardly depend on it."""

GRID = "7 from 1e-3"
"""The grid of the tables, the one nearest to that of ``radii="auto"``."""

MEASURED = ("fold", "radius", "log_loss", "error")

FIXED_GRID = (0.0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
FIXED = (0.001, 0.003, 0.01, 0.03, 0.1)
BY_ROWS = (0.03, 0.1, 0.3, 1.0)
"""Radii without cross-validation: these, and these over sqrt(N)."""

TWO_CLASSES: dict[str, tuple[Callable, Callable]] = {
    "breast_cancer (sklearn)": (load_breast_cancer, lambda y: y == 1),
    "wine": (load_wine, lambda y: y == 1),
    "iris": (load_iris, lambda y: y == 2),
    "digits": (load_digits, lambda y: y >= 5),
}
"""scikit-learn's data sets, and which of their classes are the second one here."""


class Part(NamedTuple):
    """One fold of a data set: the rows to fit on, and those held out."""

    X: pd.DataFrame
    y: np.ndarray
    X_test: pd.DataFrame
    y_test: np.ndarray

    def judged(self, model: Any) -> dict[str, float]:
        """The log-loss and the share of errors of a fitted model on the rows held out."""
        proba = model.predict_proba(self.X_test)
        error = float(np.mean(model.predict(self.X_test) != self.y_test))
        return {"log_loss": log_loss(self.y_test, proba, labels=model.classes_), "error": error}


def table(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """A data set's features and its label 0 or 1, in random order."""
    if name in TWO_CLASSES:
        load, second = TWO_CLASSES[name]
        data = load(as_frame=True)
        X, y = data.data.astype(float), second(data.target).to_numpy().astype(int)
    else:
        data = load_dataset(name)
        X, y = data.X, (data.y == 1).astype(int)
    rows = np.random.default_rng(SEED).permutation(len(y))
    if len(rows) > MOST_ROWS:
        rows = train_test_split(rows, train_size=MOST_ROWS, stratify=y[rows], random_state=SEED)[0]
    return X.iloc[rows].reset_index(drop=True), y[rows]


def parts(X: pd.DataFrame, y: np.ndarray, standardise: bool) -> Iterator[Part]:
    """The folds, with missing numbers filled in by the rows to fit on, and with numbers standardised by them if asked.

    A column without two values in these rows is left out.
    """
    steps = [SimpleImputer(strategy="median"), *([StandardScaler()] if standardise else [])]
    for train, test in StratifiedKFold(N_FOLDS, shuffle=True, random_state=SEED).split(X, y):
        prepare = make_column_transformer(
            (make_pipeline(*steps), make_column_selector(dtype_include="number")),
            remainder="passthrough",
            verbose_feature_names_out=False,
        ).set_output(transform="pandas")
        prepare.fit(X.iloc[train])
        kept, held_out = prepare.transform(X.iloc[train]), prepare.transform(X.iloc[test])
        yield Part(kept, y[train], held_out, y[test])


def chosen_by_cross_validation(part: Part, label_cost: Any, norm: str) -> Iterator[dict]:
    """Every way to read one cross-validation over ``SHARES``, and each of these radii without one."""
    radii = radius_max(part.X, part.y, label_cost=label_cost, norm=norm) * SHARES
    plain = WassersteinLogisticRegression(label_cost=label_cost, norm=norm, tol=TOL, warm_start=True)
    at = {radius: part.judged(plain.set_params(radius=radius).fit(part.X, part.y)) for radius in radii[::-1]}
    chooser = WassersteinLogisticRegressionCV(radii, scoring=None, label_cost=label_cost, norm=norm, tol=TOL)
    results = chooser.fit(part.X, part.y).cv_results_
    for share, radius in zip(SHARES, radii, strict=True):
        yield {"model": "one share", "grid": f"{share:.2g}", "radius": radius} | at[radius]
    for grid, chosen in GRIDS.items():
        tried = results.iloc[chosen]
        for score in ("error", "log_loss"):
            for rule in ("best", "one_standard_error"):
                radius = _chosen(tried, score, rule)
                yield {"model": "CV", "grid": grid, "score": score, "rule": rule, "radius": radius} | at[radius]


def on_the_fixed_grid(part: Part, label_cost: Any) -> Iterator[dict]:
    """Cross-validation over radii that do not depend on the data."""
    model = WassersteinLogisticRegressionCV(FIXED_GRID, scoring=None, label_cost=label_cost, tol=TOL)
    results = model.fit(part.X, part.y).cv_results_
    for score in ("error", "log_loss"):
        radius = _chosen(results, score, "best")
        plain = WassersteinLogisticRegression(radius=radius, label_cost=label_cost).fit(part.X, part.y)
        yield {"model": "CV", "grid": "fixed", "score": score, "rule": "best", "radius": radius} | part.judged(plain)


def _chosen(results: pd.DataFrame, score: str, rule: str) -> float:
    """The radius that ``WassersteinLogisticRegressionCV`` would choose by this score and rule."""
    values = results[score].to_numpy()
    allowance = 0.0 if rule == "best" else float(results[f"{score}_se"].to_numpy()[np.argmin(values)])
    points = list(zip(results["radius"], results["l1_penalty"], strict=True))
    return choose_point(points, values, allowance=allowance)[0]


def without_cross_validation(part: Part, label_cost: Any) -> Iterator[dict]:
    """Radii that are given, and radii that shrink with the number of rows."""
    radii = {f"{radius:g}": radius for radius in FIXED}
    radii |= {f"{factor:g} / sqrt(N)": factor / np.sqrt(len(part.y)) for factor in BY_ROWS}
    for grid, radius in radii.items():
        model = WassersteinLogisticRegression(radius=radius, label_cost=label_cost).fit(part.X, part.y)
        yield {"model": "one radius", "grid": grid, "radius": radius} | part.judged(model)


def scikit_learn(part: Part) -> Iterator[dict]:
    """Logistic regression on dummies: with the ridge that cross-validation chooses, and with the default one."""
    levels = [column.cat.categories.to_numpy() for _, column in part.X.select_dtypes("category").items()]
    dummies = OneHotEncoder(categories=levels, sparse_output=False)
    encode = make_column_transformer((dummies, make_column_selector(dtype_include="category")), remainder="passthrough")
    # The last two are the defaults of versions to come.
    chosen = LogisticRegressionCV(scoring="neg_log_loss", max_iter=5000, l1_ratios=(0.0,), use_legacy_attributes=False)
    for model, estimator in (("ridge CV", chosen), ("ridge C=1", LogisticRegression(max_iter=5000))):
        yield {"model": model} | part.judged(make_pipeline(encode, estimator).fit(part.X, part.y))


def runs(n: int, m: int, numbers: str, fold: int) -> Iterator[tuple[dict, Callable[[Part], Iterator[dict]]]]:
    """What is tried on a fold of a data set with n numbers and m categories, and the columns that say so."""
    standardised = numbers == "standardised"
    if standardised:
        yield {}, scikit_learn
    settings = [(label_cost, "l1") for label_cost in (1.0, *(["n_categorical"] if m else []), np.inf)]
    if n and standardised and fold < N_FOLDS_OF_NORMS:
        settings += [(np.inf, "l2"), (np.inf, "linf")]
    for label_cost, norm in settings if standardised else [(np.inf, "l1")]:
        run = partial(chosen_by_cross_validation, label_cost=label_cost, norm=norm)
        yield {"label_cost": label_cost, "norm": norm}, run
    for label_cost in (1.0, np.inf):
        yield {"label_cost": label_cost, "norm": "l1"}, partial(without_cross_validation, label_cost=label_cost)
    for label_cost in (1.0,) if standardised else (1.0, np.inf):
        yield {"label_cost": label_cost, "norm": "l1"}, partial(on_the_fixed_grid, label_cost=label_cost)


def rows_of(name: str, n_folds: int) -> list[dict]:
    """The rows of one data set."""
    X, y = table(name)
    n = X.select_dtypes("number").shape[1]
    m = X.shape[1] - n
    rows: list[dict] = []
    for numbers in ("standardised", *(["raw"] if n else [])):
        for fold, part in zip(range(n_folds), parts(X, y, numbers == "standardised"), strict=False):
            for setting, run in runs(n, m, numbers, fold):
                where = {"data": name, "N": len(y), "n": n, "m": m, "fold": fold, "numbers": numbers, **setting}
                rows += [where | row for row in run(part)]
    return rows


class Way(NamedTuple):
    """A way to choose a model: its name in the tables, and the values by which its rows are found."""

    name: str
    rows: dict[str, Any]


def cross_validated(label_cost: Any, score: str, rule: str = "best", grid: str = GRID, norm: str = "l1") -> Way:
    """A cross-validation, named by what differs from the usual."""
    words = [f"label cost {_cost(label_cost)}", f"by {score.replace('_', '-')}"]
    words += ["one standard error"] * (rule != "best") + [f"{grid} radii"] * (grid != GRID) + [norm] * (norm != "l1")
    values = {"model": "CV", "label_cost": label_cost, "score": score, "rule": rule, "grid": grid, "norm": norm}
    return Way(", ".join(words), values)


def one_radius(label_cost: Any, grid: str, model: str = "one radius") -> Way:
    """A radius without a cross-validation."""
    of = " of radius_max" if model == "one share" else ""
    values = {"model": model, "label_cost": label_cost, "norm": "l1", "grid": grid}
    return Way(f"radius {grid}{of}, label cost {_cost(label_cost)}", values)


def _cost(label_cost: Any) -> str:
    return "m" if label_cost == "n_categorical" else f"{label_cost:g}"


RIDGE, RIDGE_1 = Way("ridge, tuned", {"model": "ridge CV"}), Way("ridge, C = 1", {"model": "ridge C=1"})
LABEL_COSTS = (1.0, "n_categorical", np.inf)


def means(rows: pd.DataFrame, way: Way, numbers: str = "standardised", folds: int = N_FOLDS) -> pd.DataFrame:
    """Log-loss and error of one way, means over the folds of each data set; index data."""
    wanted = {"numbers": numbers} | way.rows
    found = rows[np.logical_and.reduce([rows[column] == str(value) for column, value in wanted.items()])]
    return found[found["fold"] < folds].groupby("data", sort=False)[["log_loss", "error"]].mean()


def against_ridge(rows: pd.DataFrame, ways: list[Way], numbers: str = "standardised", folds: int = N_FOLDS) -> str:
    """A table of ways: how their log-loss and error differ from those of the tuned ridge on the same rows."""
    ridge, table = means(rows, RIDGE, folds=folds), []
    for way in ways:
        found = means(rows, way, numbers, folds)
        if found.empty:  # no data set of those asked for has numbers, or categories
            continue
        difference = (found - ridge.loc[found.index])["log_loss"]
        table.append(
            {
                "": way.name,
                "data sets": len(found),
                "log-loss": f"{found['log_loss'].mean():.3f}",
                "minus ridge's: mean": f"{difference.mean():+.3f}",
                "median": f"{difference.median():+.3f}",
                "worst": f"{difference.max():+.3f} ({difference.idxmax()})",
                "sets where better": int((difference < 0).sum()),
                "error": f"{100 * found['error'].mean():.1f} %",
                "minus ridge's": f"{100 * (found - ridge.loc[found.index])['error'].mean():+.1f} %",
            }
        )
    return markdown(table)


def by_data_set(rows: pd.DataFrame, ways: list[Way]) -> str:
    """The log-loss of each way on each data set, the smallest in bold."""
    columns = {way.name: means(rows, way)["log_loss"] for way in ways}
    table = []
    for name, group in rows.groupby("data", sort=False):
        values = {way: f"{column[name]:.3f}" for way, column in columns.items() if name in column.index}
        least = min(values.values())
        marked = {way: f"**{value}**" if value == least else value for way, value in values.items()}
        sizes = {column: group[column].iloc[0] for column in ("N", "n", "m")}
        table.append({"data set": name, **sizes, **{way.name: marked.get(way.name, "") for way in ways}})
    return markdown(table)


def report(rows: pd.DataFrame) -> str:
    """The tables of docs/choosing.md."""
    rows = rows.assign(**{column: rows[column].astype(str) for column in rows.columns.difference(MEASURED)})
    by_cost = [cross_validated(cost, "log_loss") for cost in LABEL_COSTS]
    before = Way("the paper's radii, label cost 1, by error", cross_validated(1.0, "error", grid="fixed").rows)
    scores = [
        cross_validated(cost, score, rule)
        for cost in LABEL_COSTS
        for score in ("error", "log_loss")
        for rule in ("best", "one_standard_error")
    ]
    grids = [cross_validated(np.inf, "log_loss", grid=grid) for grid in GRIDS]
    norms = [cross_validated(np.inf, "log_loss", norm=norm) for norm in ("l1", "l2", "linf")]
    radii = [f"{radius:g}" for radius in FIXED] + [f"{factor:g} / sqrt(N)" for factor in BY_ROWS]
    ones_now = [one_radius(cost, "0.01") for cost in (np.inf, 1.0)]
    ones = [one_radius(cost, radius) for cost in (1.0, np.inf) for radius in radii]
    shares = [one_radius(cost, f"{share:.2g}", "one share") for cost in LABEL_COSTS for share in SHARES[3:8]]
    raw = [cross_validated(np.inf, "log_loss"), cross_validated(np.inf, "log_loss", grid="fixed")]
    sections = {
        "Log-loss by data set": by_data_set(rows, [RIDGE, RIDGE_1, *by_cost, before, *ones_now]),
        "Which score, which label cost": against_ridge(rows, [RIDGE_1, before, *scores]),
        "How many radii, and how far down": against_ridge(rows, grids),
        f"Which norm (sets with numbers, {N_FOLDS_OF_NORMS} folds)": against_ridge(
            rows[rows["n"] != "0"], norms, folds=N_FOLDS_OF_NORMS
        ),
        "Numbers as they are, not standardised": against_ridge(rows, raw, "raw"),
        "One radius, without cross-validation": against_ridge(rows, [RIDGE_1, *ones, *shares]),
    }
    return "\n\n".join(f"### {title}\n\n{section}" for title, section in sections.items())


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=RESULTS, help=f"the csv file, by default {RESULTS.name}")
    parser.add_argument("--datasets", nargs="+", default=[*DATASETS, *TWO_CLASSES])
    parser.add_argument("--report", action="store_true", help=f"only write the tables of {PAGE.name} anew")
    parser.add_argument("--folds", type=int, default=N_FOLDS, help="how many of the folds")
    options = parser.parse_args(arguments)
    rows = (
        pd.read_csv(options.output, dtype={"grid": str, "label_cost": str})
        if options.output.is_file()
        else pd.DataFrame(columns=["data"])
    )
    for name in () if options.report else options.datasets:
        if name in set(rows["data"]):
            continue
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # of radii at which separable data have no optimum
            start = process_time()
            new = pd.DataFrame(rows_of(name, options.folds))
        rows = new if rows.empty else pd.concat([rows, new])
        replace_file(options.output, rows.to_csv(index=False, float_format="%.6g"))
        print(f"{name}: {len(new)} rows, {process_time() - start:.0f} s", flush=True)
    if options.output == RESULTS:
        replace_file(PAGE, PAGE.read_text(encoding="utf-8").partition(MARK)[0] + MARK + "\n\n" + report(rows) + "\n")
    else:
        print(report(rows))


if __name__ == "__main__":
    main()
