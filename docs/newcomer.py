"""A tour of wdrlr for people who have a table: fit, cross-validate, explain, plot, search, save, and go wrong.

    pip install '.[notebooks]'          # in a checkout; the extra is for the plots
    python docs/newcomer.py [folder]    # where plots and model go; without it, into a temporary one

Its table is made up, so it needs no data and no network. Read it from top to bottom, and replace ``applicants`` by a
table of your own. The last part does what goes wrong most often, and prints the message that belongs to it.
"""

import sys
import tempfile
import warnings
from importlib.util import find_spec
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import wdrlr
from wdrlr import WassersteinLogisticRegression, WassersteinLogisticRegressionCV, changed_mass, fit_path, radius_max
from wdrlr.plots import changes_plot, path_plot


def applicants(n_rows=300, seed=0):
    """Who repays a loan? A table as one gets it, and its labels."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "region": rng.choice(["north", "south", "west"], n_rows),
            "job": rng.choice(["office", "shop", "none", None], n_rows, p=[0.5, 0.3, 0.1, 0.1]),
            "rating": rng.choice(["poor", "fair", "good"], n_rows),
            "owner": rng.random(n_rows) < 0.4,
            "age": rng.integers(18, 80, n_rows),
            "income": rng.lognormal(8, 0.4, n_rows).round(),
        }
    )
    f = X["rating"].map({"poor": -1.5, "fair": 0.0, "good": 1.5}) + (X["region"] == "west") + X["owner"]
    f += 0.0005 * (X["income"] - 3000) + rng.logistic(size=n_rows)
    X.loc[rng.random(n_rows) < 0.05, "income"] = np.nan
    return X, np.where(f > 0.5, "repaid", "lost")


def declared(X):
    """The table with what a file does not say: which levels there are, and which of them have an order."""
    return X.assign(
        job=X["job"].astype("category").cat.add_categories("missing").fillna("missing"),
        rating=pd.Categorical(X["rating"], categories=["poor", "fair", "good"], ordered=True),
    )


def prepared():
    """A transformer: numbers filled in and scaled, categories as they are. There are no dummies."""
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        remainder="passthrough",
        verbose_feature_names_out=False,
    )
    return columns.set_output(transform="pandas")  # a table, in which categories stay categories


def tour(folder):
    """From the table to a model in a file."""
    X, y = applicants()
    X_train, X_test, y_train, y_test = train_test_split(declared(X), y, test_size=0.3, random_state=0, stratify=y)

    title("Fit")
    prepare = prepared()
    Z_train, Z_test = prepare.fit_transform(X_train), prepare.transform(X_test)
    model = WassersteinLogisticRegression(radius=0.05).fit(Z_train, y_train)
    print(model.summary())
    print(f"\nRight in {model.score(Z_test, y_test):.0%} of new rows")

    title("Choose the radius by cross-validation")
    chosen = WassersteinLogisticRegressionCV().fit(Z_train, y_train)
    print(chosen.cv_results_[["radius", "log_loss", "log_loss_se", "error"]].round(4).to_string(index=False))
    print(f"\nChosen: {chosen.radius_:.4f}; right in {chosen.score(Z_test, y_test):.0%} of new rows")

    title("Explain: the slopes, and what an adversary would change")
    print(chosen.coef_table().round(3).to_string(index=False))
    costs = {"rating": "ordinal", "owner": np.inf}  # ratings are off by a step; who owns a house is known
    careful = WassersteinLogisticRegression(0.1, feature_costs=costs).fit(Z_train, y_train)
    changed = changed_mass(careful.worst_case_distribution(Z_train, y_train), Z_train, y_train)
    print(f"\n{changed.round(3).to_string()}")
    print(f"\nLog-loss at worst, on new rows: {careful.worst_case_loss(Z_test, y_test):.3f}")

    title("Plot")
    radii = radius_max(Z_train, y_train) * np.geomspace(1e-3, 1, 10)
    path, _ = path_plot(fit_path(Z_train, y_train, radii), chosen.cv_results_)
    for name, figure in {"path.png": path, "changes.png": changes_plot(changed)}.items():
        figure.savefig(folder / name, dpi=200)
        print(folder / name)

    title("Search a grid, with the preparation in a pipeline")
    pipeline = make_pipeline(prepared(), WassersteinLogisticRegression())
    grid = {"radius": [0.01, 0.03, 0.1], "label_cost": [np.inf, "n_categorical"]}
    grid = {f"wassersteinlogisticregression__{name}": values for name, values in grid.items()}
    search = GridSearchCV(pipeline, grid, scoring="neg_log_loss").fit(X_train, y_train)
    print(search.best_params_)

    title("Save and load")
    joblib.dump(search.best_estimator_, folder / "model.joblib")
    loaded = joblib.load(folder / "model.joblib")
    assert (loaded.predict(X_test) == search.predict(X_test)).all()
    print(f"{folder / 'model.joblib'}: a pipeline that takes the table as it is, and predicts as before")


def mistakes():
    """What goes wrong most often: by a description, a word of the message that it should give, and the mistake."""
    X, y = applicants()
    X, raw = prepared().fit_transform(declared(X)), X
    model = WassersteinLogisticRegression().fit(X, y)

    def fit(X=X, y=y, **parameters):
        return WassersteinLogisticRegression(**parameters).fit(X, y)

    def after(*steps, **options):
        return make_pipeline(make_column_transformer(*steps, **options), WassersteinLogisticRegression()).fit(X, y)

    days = pd.Series(pd.date_range("2024-01-01", periods=len(X)), X.index)
    odd = np.arange(len(X)) % 2 == 1
    blank = X["region"].where(odd, "west ")
    text = ["region", "job", "rating"]
    found = {
        # the table
        "no rows": ("0 rows", lambda: fit(X[:0], y[:0])),
        "a missing number": ("'income'", lambda: fit(X.assign(income=raw["income"]))),
        "a missing category": ("missing values", lambda: fit(X.assign(job=raw["job"]))),
        "an infinite number": ("infinity", lambda: fit(X.assign(age=np.inf))),
        "lists in a column": ("list", lambda: fit(X.assign(job=[["office", "shop"]] * len(X)))),
        "text and numbers in a column": ("'job'", lambda: fit(X.assign(job=["office", 1] * (len(X) // 2)))),
        "dates": ("days since", lambda: fit(X.assign(start=days))),
        "dates as text": ("to_datetime", lambda: fit(X.assign(start=days.astype(str)))),
        "numbers as text": ("to_numeric", lambda: fit(X.assign(income=raw["age"].astype(str)))),
        "0 and 1 for no and yes": ("boolean", lambda: fit(X.assign(owner=X["owner"].astype(int)))),
        "an id": ("'id'", lambda: fit(X.assign(id=[f"customer {i}" for i in range(len(X))]))),
        "a row number": ("numbered", lambda: fit(X.assign(row=StandardScaler().fit_transform(raw.index.to_frame())))),
        "columns in other units": ("StandardScaler", lambda: fit(X.assign(income=raw["income"].fillna(0)))),
        "levels that differ in a blank": ("blanks", lambda: fit(X.assign(region=blank))),
        "a dict": ("DataFrame", lambda: fit(X.to_dict("list"))),
        # in place of the table
        "dummies": ("dummies", lambda: fit(pd.get_dummies(X, columns=["region"]))),
        "sparse dummies": ("Sparse", lambda: after((OneHotEncoder(), text), sparse_threshold=1.0)),
        "dense dummies": ("0 and 1", lambda: after((OneHotEncoder(), text), sparse_threshold=0.0)),
        "an array from a ColumnTransformer": ("set_output", lambda: after(("passthrough", text))),
        # the labels
        "three classes": ("OneVsRest", lambda: fit(y=np.where(X["age"] > 1, "late", y))),
        "one class": ("one class", lambda: fit(y=["repaid"] * len(X))),
        "a missing label": ("drop", lambda: fit(y=pd.Series(y).where(odd))),
        "a number to predict": ("continuous", lambda: fit(y=X["income"])),
        "fewer labels than rows": ("inconsistent", lambda: fit(y=y[:-1])),
        # the parameters
        "a negative radius": ("radius", lambda: fit(radius=-0.1)),
        "a radius in quotes": ("'0.1'", lambda: fit(radius="0.1")),
        "a negative cost": ("'age'", lambda: fit(feature_costs={"age": -1.0})),
        "a cost for no column": ("'aeg'", lambda: fit(feature_costs={"aeg": 2.0})),
        "an order of text": ("ordered", lambda: fit(feature_costs={"region": "ordinal"})),
        "a parameter that there is not": ("radii", lambda: fit(radii=[0.1])),
        "a norm that there is not": ("'linf'", lambda: fit(norm="euclidean")),
        "n_categorical without categories": ("0 here", lambda: fit(X[["age", "income"]], label_cost="n_categorical")),
        # the prediction
        "before the fit": ("not fitted", lambda: WassersteinLogisticRegression().predict(X)),
        "an unknown level": ("not seen in fit", lambda: model.predict(X.assign(region="east"))),
        "a column less": ("missing", lambda: model.predict(X.drop(columns="age"))),
        "columns in another order": ("order", lambda: model.predict(X[X.columns[::-1]])),
        "a row that is no table": ("iloc[[i]]", lambda: model.predict(X.iloc[0])),
    }
    if find_spec("polars"):
        import polars

        found["a LazyFrame"] = ("collect", lambda: fit(polars.LazyFrame({"age": X["age"].to_numpy()})))
    return found


def seen(mistake):
    """The error or else the warnings that somebody sees who makes a mistake; empty if there are none."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            mistake()
        except Exception as error:
            return [f"{type(error).__name__}: {error}"]
    return [f"{warning.category.__name__}: {warning.message}" for warning in caught]


def go_wrong(mistakes):
    """Make all mistakes, print a line about each, and stop with an error if one is not noticed."""
    missed = []
    for name, (word, mistake) in mistakes.items():
        messages = " ".join(" ".join(seen(mistake)).split())
        print(f"- {name}: {messages or 'nothing is said'}")
        if word not in messages:
            missed.append(name)
    if missed:
        sys.exit(f"{len(missed)} of {len(mistakes)} mistakes passed in silence, or with another message: {missed}")
    print(f"\nAll {len(mistakes)} mistakes were noticed.")


def title(text):
    print(f"\n{text}\n{'-' * len(text)}")


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    print(f"wdrlr {wdrlr.__version__} in {Path(wdrlr.__file__).parent}")
    tour(folder)
    title("Go wrong")
    go_wrong(mistakes())
