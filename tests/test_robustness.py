"""Tables, targets and weights as people have them: a right answer or an error that says what to do."""

import pickle
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from wdrlr import ColumnWarning, WassersteinLogisticRegression, WassersteinLogisticRegressionCV, load_dataset
from wdrlr.data_prep import sources
from wdrlr.model.encoding import look_alikes
from wdrlr.model.objective import worst_case_loss
from wdrlr.model.worst_case import changed_mass

N = 40
RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, N)
X = pd.DataFrame({"size": RNG.normal(size=N) + Y, "kind": RNG.choice(list("abc"), N)})
REFERENCE = WassersteinLogisticRegression().fit(X, Y)


def fit(X=X, y=Y, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return WassersteinLogisticRegression(**parameters).fit(X, y)


def levels(model):
    return [levels.tolist() for levels in model.categories_]


# Categories


@pytest.mark.parametrize("dtype", ["str", "object", "string", "category"])
def test_text_is_a_category_whatever_its_dtype(dtype):
    model = fit(X.astype({"kind": dtype}))
    assert levels(model) == [["a", "b", "c"]]
    assert model.coef_.tolist() == REFERENCE.coef_.tolist()
    other = "object" if dtype == "category" else "category"
    assert np.array_equal(model.decision_function(X.astype({"kind": other})), REFERENCE.decision_function(X))


def test_integers_named_as_categories_also_as_floats_in_predict():
    code = pd.Series(RNG.integers(0, 3, N))
    model = fit(X.assign(code=code), categorical_features=["kind", "code"])
    assert model.get_feature_names_out().tolist() == ["size", "kind_b", "kind_c", "code_1", "code_2"]
    f = model.decision_function(X.assign(code=code))
    assert np.array_equal(model.decision_function(X.assign(code=code.astype(float))), f)
    with pytest.raises(ValueError, match=r"'code' has levels .* fit: '0', '1', '2'; the levels are 0, 1, 2"):
        model.predict(X.assign(code=["0", "1", "2", "0"] * 10))


@pytest.mark.parametrize("dtype", ["bool", "boolean", "object"])
def test_booleans_are_categories(dtype):
    flag = pd.Series([True, False] * (N // 2))
    model = fit(X.assign(flag=flag.astype(dtype)))
    assert model.get_feature_names_out().tolist() == ["size", "kind_b", "kind_c", "flag_True"]
    assert len(model.predict(X.assign(flag=flag))) == N
    with pytest.raises(ValueError, match="the levels are False, True"):
        model.predict(X.assign(flag=flag.astype(int)))


def test_an_array_of_booleans_is_categories_as_a_frame_of_them_is():
    flags = RNG.random((N, 2)) < 0.5
    model, framed = fit(flags), fit(pd.DataFrame(flags))
    assert levels(model) == levels(framed) == [[False, True]] * 2
    assert model.coef_.tolist() == framed.coef_.tolist()
    assert np.array_equal(model.decision_function(flags), framed.decision_function(pd.DataFrame(flags)))


def test_a_level_that_no_row_has_is_part_of_the_support():
    """As the reference of a model without intercept it has the score 0, which is somewhere to go."""
    more = X.assign(kind=pd.Categorical(X["kind"], categories=["never", "a", "b", "c"]))
    model = fit(more, fit_intercept=False)
    assert levels(model) == [["never", "a", "b", "c"]]
    assert model.predict(X).tolist() == model.predict(more).tolist()
    assert np.allclose(model.decision_function(more.assign(kind="never")), model.coef_[0, 0] * X["size"])
    alone = fit(more[["kind"]], fit_intercept=False, label_cost=np.inf)
    problem = alone.formulation_.pose(alone.encoding_, more[["kind"]], 2.0 * Y - 1, np.ones(len(Y))).problem
    without = replace(problem, z=problem.z - 1, n_levels=(3,), level_matrix=problem.level_matrix[1:])
    b = np.array([0.0, 2.0, 2.0, 2.5])  # all seen levels are far from 0
    assert worst_case_loss(problem, b)[0] > worst_case_loss(without, b)[0] + 1e-3


def test_levels_named_like_nothing_are_levels():
    names = ["None", "NA", "nan", ""]
    model = fit(X.assign(kind=names * 10))
    assert levels(model) == [sorted(names)]
    assert model.get_feature_names_out().tolist() == ["size", "kind_NA", "kind_None", "kind_nan"]


@pytest.mark.parametrize("name", ["kind", "code", "flag"])
def test_missing_categories_are_refused_and_the_remedy_works(name):
    data = X.assign(code=pd.Categorical([1, 2] * 20), flag=pd.array([True, False] * 20, dtype="boolean"))
    data.loc[[3, 5], name] = None
    model = WassersteinLogisticRegression()
    with pytest.raises(ValueError, match=rf"the categorical column '{name}' has 2 missing values") as error:
        model.fit(data, Y)
    remedy = str(error.value).partition("a level: ")[2].removesuffix(".")
    data[name] = eval(remedy, {"X": data})
    model.fit(data, Y)
    assert model.categories_[["kind", "code", "flag"].index(name)][-1] == "missing"
    with pytest.raises(ValueError, match="missing values"):
        WassersteinLogisticRegression(handle_unknown="ignore").fit(X, Y).predict(X.assign(kind=None))


def test_levels_that_look_alike_are_told():
    with pytest.warns(ColumnWarning, match="'kind' has levels that differ only in blanks or a dot: 'a', 'a ' count as"):
        WassersteinLogisticRegression().fit(X.assign(kind=["a", "a ", "b", "b"] * 10), Y)
    with pytest.raises(ValueError, match=r"not seen in fit: 'a '; the levels are 'a', 'b', 'c'"):
        REFERENCE.predict(X.assign(kind="a "))


def test_levels_that_cannot_be_told_apart_or_sorted():
    with pytest.raises(ValueError, match="'kind' has levels that cannot be sorted or looked up"):
        fit(X.assign(kind=pd.Series(["a", 1] * 20, dtype=object)))
    with pytest.raises(ValueError, match="'kind' has levels that cannot be sorted or looked up"):
        fit(X.assign(kind=pd.Series([[1], [2]] * 20, dtype=object)))
    mixed = pd.Categorical(["a", 1] * 20, categories=["a", 1])
    assert levels(fit(X.assign(kind=mixed))) == [["a", 1]]


def test_numbers_of_dtype_object_must_say_what_they_are():
    data = X.assign(size=X["size"].astype(object))
    with pytest.raises(ValueError, match="'size' has the dtype object but holds only numbers"):
        fit(data)
    assert levels(fit(data, categorical_features=["kind"])) == levels(REFERENCE)


def test_one_level_and_constant_columns_change_nothing():
    model = fit(X.assign(one=1.0, same="s"))
    assert model.objective_ == pytest.approx(REFERENCE.objective_, abs=1e-6)
    assert fit(pd.DataFrame({"one": [1.0] * N, "same": ["s"] * N})).coef_.tolist() == [[0.0]]


# Numbers


@pytest.mark.parametrize("dtype", ["datetime64[ns]", "timedelta64[ns]", "complex"])
def test_what_is_no_number_is_refused(dtype):
    with pytest.raises(ValueError, match=r"'when' has the dtype .*, which is not a number; convert it"):
        fit(X.assign(when=pd.Series(range(N)).astype(dtype)))


@pytest.mark.parametrize(("value", "words"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_no_number_is_no_number(value, words):
    data = X.copy()
    data.loc[7, "size"] = value
    for model in (WassersteinLogisticRegression(), WassersteinLogisticRegressionCV(cv=2)):
        with pytest.raises(ValueError, match=f"contains {words} in the numeric column 'size'"):
            model.fit(data, Y)
    with pytest.raises(ValueError, match=f"contains {words} in the numeric column 'size'"):
        REFERENCE.predict(data)
    with pytest.raises(ValueError, match=f"contains {'NaN' if words == 'NaN' else 'infinity'}"):
        fit(data[["size"]].to_numpy())


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("exponent", [-14, -6, 6, 9])
def test_wildly_scaled_columns_are_fitted(norm, exponent):
    """In a unit that makes all numbers small moving them is free, which makes them useless."""
    model = fit(X.assign(size=X["size"] * 10.0**exponent), norm=norm)
    without = fit(X[["kind"]])
    assert model.gap_ <= 1e-6
    if exponent < 0:
        assert model.objective_ == pytest.approx(without.objective_, abs=1e-4)
    else:
        assert model.objective_ <= REFERENCE.objective_ + 1e-6 < without.objective_


@pytest.mark.parametrize("size", [1e-300, 1e-30, 1e30, 1e300])
def test_extreme_columns_are_refused(size):
    with pytest.raises(ValueError, match=r"numbers in column 'size' are of the size .*; rescale them"):
        fit(X.assign(size=X["size"] * size))


@pytest.mark.parametrize("options", [{}, {"radius": 0.0}, {"norm": "l2"}, {"l1_penalty": 0.01}])
@pytest.mark.parametrize("offset", [-1e4, 1.6e9])
def test_an_offset_changes_nothing(offset, options):
    moved = fit(X.assign(size=X["size"] + offset), **options)
    assert moved.objective_ == pytest.approx(fit(**options).objective_, abs=1e-6)


# Targets


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (Y > 0, [False, True]),
        (Y * 1.0, [0.0, 1.0]),
        (Y.astype(np.uint8), [0, 1]),
        (Y.tolist(), [0, 1]),
        (np.array(["n", "p"])[Y], ["n", "p"]),
        (np.array(["n", "p"], dtype=object)[Y], ["n", "p"]),
        (pd.Series(np.array(["n", "p"])[Y], dtype="string"), ["n", "p"]),
        (pd.Series(np.array(["n", "p"])[Y], dtype="str", index=range(5, N + 5)), ["n", "p"]),
        (pd.Series(pd.Categorical(np.array(["n", "p"])[Y], categories=["p", "n", "q"])), ["n", "p"]),
        (pd.Series(Y > 0, dtype="boolean"), [False, True]),
        (pd.Series(Y, dtype="Int64"), [0, 1]),
        (Y * 10**17 + 3, [3, 10**17 + 3]),
    ],
)
def test_two_classes_of_any_dtype(y, classes):
    model = fit(y=y)
    assert model.classes_.tolist() == classes
    assert [type(label) for label in model.classes_.tolist()] == [type(label) for label in classes]
    assert model.coef_.tolist() == REFERENCE.coef_.tolist()
    assert model.predict(X).tolist() == [classes[label] for label in REFERENCE.predict(X)]
    assert model.worst_case_loss(X, y) == REFERENCE.worst_case_loss(X, Y)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.arange(N) % 3, "^Only binary .* is multiclass. For more classes wrap .*OneVsRestClassifier"),
        (np.array(["no", "yes", "no.", "yes."])[np.arange(N) % 4], "multiclass.* blanks or a dot: 'no', 'no.'; clean"),
        (np.where(Y > 0, "yes", "yes "), "labels that differ only in blanks or a dot: 'yes', 'yes '; clean"),
        (Y + 0.5, "Unknown label type: continuous"),
        (np.zeros(N), "y has only one class, 0.0"),
        (["yes"] * N, "y has only one class, 'yes'"),
        (np.where(Y > 0, 1.0, np.inf), "Input y contains infinity"),
        (np.where(Y > 0, "yes", None), "Input y contains NaN or None"),
        (pd.Series([1, None] * 20, dtype="Int64"), "Input y contains NaN or None; drop"),
        (np.where(Y > 0, 1.0, np.nan), "Input y contains NaN or None; drop"),
        (np.array([0, "a"], dtype=object)[Y], "y mixes text with other labels"),
        (np.column_stack([Y, 1 - Y]), "y should be a 1d array"),
        (Y[:-1], r"inconsistent numbers of samples: \[40, 39\]"),
    ],
)
def test_other_targets_are_refused(y, words):
    for model in (WassersteinLogisticRegression(), WassersteinLogisticRegressionCV(cv=2)):
        with warnings.catch_warnings(), pytest.raises(ValueError, match=words):
            warnings.simplefilter("error")
            model.fit(X, y)


def test_one_row_and_two():
    with pytest.raises(ValueError, match="y has only one class, 1"):
        fit(X[:1], [1])
    assert fit(X[:2], ["a", "b"]).predict(X[:2]).tolist() == ["a", "b"]
    assert REFERENCE.predict(X[:1]).shape == (1,)
    for empty in (X[:0], X[[]]):
        with pytest.raises(ValueError, match="at least 1 of each"):
            fit(empty, Y[: len(empty)])


@pytest.mark.parametrize("size", [1e308, 1e-320])
def test_only_the_proportions_of_weights_count(size):
    model = WassersteinLogisticRegression().fit(X, Y, sample_weight=np.full(N, size))
    assert model.coef_.tolist() == REFERENCE.coef_.tolist()


# Containers


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (X.to_dict("list"), "dict"),
        (X.to_dict("records"), "list"),
        (X.iloc[0], "Series"),
        (X["kind"], "Series"),
        ("table.csv", "str"),
        (load_dataset("car"), "Dataset"),
    ],
)
def test_what_is_no_table_is_told_from_one(given, kind):
    words = rf"X is a {kind}, which has no rows and columns; .*pandas.DataFrame\(X\).*X.iloc\[\[i\]\]"
    for use in (REFERENCE.predict, fit):
        with pytest.raises(ValueError, match=words):
            use(given)
    assert len(REFERENCE.predict(pd.DataFrame(X.to_dict("records")))) == N
    assert REFERENCE.predict(X.iloc[[0]]) == REFERENCE.predict(X)[:1]


def test_text_in_an_array_needs_names():
    rows = X.to_numpy(dtype=object)
    for given in (rows, rows.astype(str), rows.tolist()):
        with pytest.raises(ValueError, match="X is an array with text"):
            fit(given)
    model = fit(rows, categorical_features=[1])
    assert model.coef_.tolist() == REFERENCE.coef_.tolist()
    assert levels(fit(rows[:, 1:].astype(str), categorical_features="all")) == [["a", "b", "c"]]


@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_dummies_are_refused_with_the_remedy(container):
    dummies = container(OneHotEncoder().fit_transform(X[["kind"]]))
    with pytest.raises(TypeError, match=r"Sparse data .* Pass the categories themselves"):
        fit(dummies)
    with pytest.raises(TypeError, match="Sparse data"):
        fit(np.eye(N), categorical_features=None).predict(dummies)


def test_frames_of_polars_and_pyarrow():
    polars = pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    frame = polars.DataFrame({"size": X["size"].to_numpy(), "kind": X["kind"].tolist()})
    for table in (frame, pyarrow.table({"size": X["size"].to_numpy(), "kind": X["kind"].tolist()})):
        model = fit(table)
        assert model.coef_.tolist() == REFERENCE.coef_.tolist()
        assert model.predict(frame).tolist() == REFERENCE.predict(X).tolist()
    with pytest.raises(TypeError, match=r"X is a LazyFrame, whose rows are not computed yet; pass X.collect\(\)"):
        fit(frame.lazy())
    declared = frame.with_columns(polars.col("kind").cast(polars.Enum(["never", "a", "b", "c"])))
    assert levels(fit(declared, polars.Series(Y))) == [["never", "a", "b", "c"]]
    changed = changed_mass(REFERENCE.worst_case_distribution(frame, Y), frame, Y)
    pd.testing.assert_frame_equal(changed, changed_mass(REFERENCE.worst_case_distribution(X, Y), X, Y))
    chosen = WassersteinLogisticRegressionCV([0.01, 0.1], cv=3, scoring="accuracy").fit(frame, Y)
    assert chosen.feature_names_in_.tolist() == ["size", "kind"]


def test_columns_must_be_those_of_fit():
    with pytest.raises(ValueError, match="feature names should match"):
        REFERENCE.predict(X[["kind", "size"]])
    with pytest.raises(ValueError, match="feature names should match"):
        REFERENCE.predict(X[["size"]])
    with pytest.raises(ValueError, match="X has 1 features"):
        fit(X[["size"]].to_numpy().repeat(2, axis=1)).predict(X[["size"]].to_numpy())


# scikit-learn's tools


def test_in_a_pipeline_with_a_column_transformer():
    numbers = make_pipeline(SimpleImputer(), MinMaxScaler())
    prepare = make_column_transformer((numbers, ["size"]), remainder="passthrough", verbose_feature_names_out=False)
    pipeline = make_pipeline(prepare.set_output(transform="pandas"), WassersteinLogisticRegression())
    data = X.copy()
    data.loc[3, "size"] = np.nan
    assert pipeline.fit(data, Y).score(data, Y) > 0.6
    assert pipeline[-1].get_feature_names_out().tolist() == ["size", "kind_b", "kind_c"]
    search = GridSearchCV(pipeline, {"wassersteinlogisticregression__radius": [0.001, 0.1]}, cv=3, scoring="roc_auc")
    assert search.fit(data, Y).best_score_ > 0.6


def test_weights_reach_every_fold_by_metadata_routing():
    weights = RNG.integers(0, 3, N).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        model = WassersteinLogisticRegression().set_fit_request(sample_weight=True)
        scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
        pipeline = make_pipeline(make_column_transformer(
            (StandardScaler().set_fit_request(sample_weight=False), ["size"]),
            remainder="passthrough", verbose_feature_names_out=False,
        ).set_output(transform="pandas"), model)  # fmt: skip
        options = {"params": {"sample_weight": weights}, "scoring": scorer, "error_score": "raise"}
        found = cross_validate(pipeline, X, Y, cv=3, return_estimator=True, return_indices=True, **options)
        chosen = WassersteinLogisticRegressionCV([0.01, 0.1], cv=2).set_fit_request(sample_weight=True)
        searched = cross_validate(chosen, X, Y, cv=2, **options)
    assert len(searched["test_score"]) == 2
    for fitted, train, test, score in zip(
        found["estimator"], found["indices"]["train"], found["indices"]["test"], found["test_score"], strict=True
    ):
        table = fitted[:-1].transform(X.iloc[train])
        alone = WassersteinLogisticRegression().fit(table, Y[train], sample_weight=weights[train])
        assert alone.coef_.tolist() == fitted[-1].coef_.tolist()
        right = fitted.predict(X.iloc[test]) == Y[test]
        assert score == pytest.approx(np.average(right, weights=weights[test]))


def test_a_fitted_model_goes_to_another_process(tmp_path):
    for name, model in (("plain", REFERENCE), ("cv", WassersteinLogisticRegressionCV([0.01, 0.1], cv=2).fit(X, Y))):
        (tmp_path / name).write_bytes(pickle.dumps((model, X)))
        code = (
            f"import pickle; model, X = pickle.loads(open({str(tmp_path / name)!r}, 'rb').read()); "
            "print(model.predict(X).tolist(), model.radius)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == f"{model.predict(X).tolist()} {model.radius}"


def test_a_clone_is_unfitted_and_equal():
    model = WassersteinLogisticRegressionCV(radii=np.array([0.1, 1.0]), label_cost="n_categorical")
    copy = clone(model.fit(X, Y))
    assert not hasattr(copy, "coef_")
    assert copy.get_params()["radii"].tolist() == [0.1, 1.0]
    assert copy.fit(X, Y).coef_.tolist() == model.coef_.tolist()


def test_a_failed_fit_says_so_by_a_warning_only():
    with pytest.warns(ConvergenceWarning, match="certified to"):
        WassersteinLogisticRegression(radius=0.05, max_iter=1).fit(X, Y)


@pytest.mark.parametrize("name", sorted(path.name for path in sources.SHIPPED.iterdir() if path.is_dir()))
def test_no_shipped_data_set_has_levels_that_look_alike(name):
    categories = load_dataset(name).X.select_dtypes("category")
    assert categories.shape[1] > 0
    for column in categories:
        assert look_alikes(categories[column].cat.categories) is None
