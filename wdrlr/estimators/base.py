"""A fitted classifier and what follows from the fit: predictions, worst cases, the report."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import update_wrapper
from numbers import Integral, Real
from types import MethodType
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from scipy.special import expit, log_expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import assert_all_finite
from sklearn.utils._param_validation import Interval, InvalidParameterError, Options, StrOptions
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, validate_data

from wdrlr.estimators import report, slopes
from wdrlr.estimators.column_checks import warn_of_columns
from wdrlr.estimators.formulation import Formulation, Posed
from wdrlr.estimators.frames import depth_of_user
from wdrlr.estimators.solving import Solving
from wdrlr.model import encoding as enc
from wdrlr.model.metric import NORMS
from wdrlr.model.objective import objective, worst_case_loss
from wdrlr.model.threads import threads
from wdrlr.model.worst_case import atoms_table, worst_case_distribution
from wdrlr.solvers.conic import SETTINGS
from wdrlr.solvers.prediction_range import prediction_range
from wdrlr.solvers.registry import SOLVERS, check_options, chosen_solver
from wdrlr.solvers.solution import Solution

SAME_OBJECTIVE = 1e-9
"""Objectives closer than this are the same but for rounding."""

SELECTORS, DIAGRAMS = "sklearn.feature_selection", "sklearn.utils._repr_html"
"""The parts of scikit-learn that take slopes for columns: for a linear model's importances, for what it puts out."""


def _asked_by(package: str) -> bool:
    """Whether it is a module of this package that asks the caller of this function for an attribute."""
    return str(sys._getframe(2).f_globals.get("__name__")).startswith(package)


class _HiddenFrom:
    """A method that one package of scikit-learn, which would misread it, is told does not exist."""

    def __init__(self, package: str) -> None:
        self.package = package

    def __call__(self, method: Callable) -> Self:
        self.method = method
        update_wrapper(self, method)
        return self

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self.method
        if _asked_by(self.package):
            raise AttributeError(f"{self.method.__name__} is none of the methods that {self.package} looks for")
        return MethodType(self.method, instance)


class RobustClassifier(ClassifierMixin, BaseEstimator):
    """The base of the classifiers; ``WassersteinLogisticRegression`` documents the attributes.

    A subclass adds an ``__init__`` and a ``fit`` that ends with ``_fit_posed``, and overrides nothing of this class.
    """

    _parameter_constraints: ClassVar[dict] = {  # keys() are views, so they include what is registered later
        "radius": [Interval(Real, 0, None, closed="left")],
        "label_cost": [
            Interval(Real, 0, None, closed="neither"),
            Options(Real, {np.inf}),
            StrOptions({"n_categorical"}),
        ],
        "p": [Interval(Real, 0, None, closed="neither")],
        "norm": [StrOptions(NORMS.keys())],
        "metric_scale": [None, StrOptions({"unit"})],
        "feature_costs": [None, Mapping],
        "l1_penalty": [Interval(Real, 0, None, closed="left")],
        "penalize_intercept": ["boolean"],
        "categorical_features": [None, StrOptions({"from_dtype", "all"}), "array-like"],
        "coding": [StrOptions({"onehot", "pm1"})],
        "handle_unknown": [StrOptions({"error", "ignore"})],
        "coef_bound": [None, Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "class_weight": [None, StrOptions({"balanced"}), dict],
        "check_columns": ["boolean"],
        "solver": [StrOptions({"auto"}), StrOptions(SOLVERS.keys())],
        "solver_options": [None, dict],
        "conic_solver": [StrOptions({"auto", *SETTINGS})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "solution_")

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        with pd.option_context("display.max_rows", 4, "display.max_columns", 4):  # of matrices in feature_costs
            return super().__repr__(N_CHAR_MAX)

    def _validate_params(self) -> None:
        parameters = self.get_params(deep=False)
        costs = parameters.get("feature_costs")
        if not (costs is None or isinstance(costs, Mapping)):  # scikit-learn would name collections.abc.Mapping
            raise InvalidParameterError(
                f"The 'feature_costs' parameter of {type(self).__name__} must be None or a dict {{column: cost}}. "
                f"Got {costs!r} instead."
            )
        super()._validate_params()
        chosen = chosen_solver(self.solver, parameters.get("p", 1.0), parameters.get("norm", "l1"))
        check_options(chosen, parameters.get("solver_options") or {})

    def decision_function(self, X: Any) -> np.ndarray:
        """f at every row; shape (N,). Above 0 means the second class."""
        check_is_fitted(self)
        table = self._table(X, self.formulation_.categorical_features, reset=False)
        handle_unknown = self.get_params(deep=False).get("handle_unknown", "error")
        return self.formulation_.decision(self.encoding_, self.coef_, self.intercept_, table, handle_unknown)

    def predict(self, X: Any) -> np.ndarray:
        """The class of every row; shape (N,)."""
        f = self.decision_function(X)
        return self.classes_[(f > 0).astype(int)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of both classes; shape (N, 2)."""
        f = self.decision_function(X)
        return np.column_stack([expit(-f), expit(f)])

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the probabilities of both classes, exact also where these round to 0; shape (N, 2)."""
        f = self.decision_function(X)
        return np.column_stack([log_expit(-f), log_expit(f)])

    def worst_case_loss(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The largest expected log-loss of this model over the Wasserstein ball around the given data.

        The coefficients are kept and lambda is minimised over anew; the penalty is not included. Class weights are a
        part of the loss, so they are those of the fit, ``class_weight_``, whatever the classes' shares in the given
        data: a row weighs its sample weight times ``class_weight_`` of its label, divided by the sum over all rows.
        So it is with all that takes X and y of other data.

        Raises
        ------
        ValueError
            If X or y do not match the fitted data, or X has an unknown level.
        """
        posed = self._pose(X, y, sample_weight)
        return worst_case_loss(posed.problem, posed.coefficients(self.coef_, self.intercept_))[0]

    def worst_case_distribution(self, X: Any, y: Any, sample_weight: Any = None, eta: float = 1e-4) -> pd.DataFrame:
        """The distribution in the Wasserstein ball around the given data that is worst for this model.

        The distribution has at most N + 1 atoms (Theorem 8), is exact where ``attained``, and is found without a
        solver, as ``wdrlr.model.worst_case`` explains. To see the worst case for other coefficients, assign them to
        ``coef_`` and ``intercept_``. ``wdrlr.changed_mass`` and ``wdrlr.plots.changes_plot`` show which features are
        changed, and how often.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``.
        eta : float, default 1e-4
            Used only where moving numbers pays best, so that the largest loss is approached but not attained: the
            share of one row's mass that is sent far away, as in Appendix B. The smaller eta is, the smaller the ``gap``
            and the farther away the atom.

        Returns
        -------
        DataFrame with one row per atom
            ``mass``, ``source_row`` (the position in X of the row that the mass comes from), ``label``, then the
            features as in X (categories as pandas categoricals with the levels of ``categories_``). The masses of a
            source row sum to 1/N, or to its share of the weights.

            In ``.attrs``: ``expected_loss`` and ``transport_cost`` of these atoms (the cost is at most the radius),
            ``worst_case_loss`` (the supremum), ``gap`` (supremum less expected loss), ``attained`` (False where mass
            escapes along the numbers), ``n_rows`` (of X).

        Raises
        ------
        ValueError
            If X or y do not match the fitted data, X has an unknown level, eta is outside (0, 1], or a feature has the
            name of one of the first three columns.
        """
        posed = self._pose(X, y, sample_weight, merge=False)
        worst = worst_case_distribution(posed.problem, posed.coefficients(self.coef_, self.intercept_), eta)
        if self.formulation_.change is None:
            features = self.encoding_.table(worst.x, worst.z)
        else:  # points of the changed problem need not be levels, so show the dummies
            rows = replace(posed.problem, x=worst.x).design(np.arange(len(worst.x)), worst.z)[:, 1:]
            features = pd.DataFrame(rows / posed.stretch, columns=self.get_feature_names_out())
        return atoms_table(worst, self.classes_, features, posed.problem.n_samples)

    def prediction_range(
        self,
        X: Any,
        X_train: Any,
        y_train: Any,
        sample_weight: Any = None,
        *,
        tol: float | None = None,
        time_limit: float | None = None,
    ) -> pd.DataFrame:
        """What the data leave open: the range of f at every row over all coefficients that are optimal within ``tol``.

        Coefficients count as optimal if their objective is at most ``objective_ + tol``; every fit of these data that
        is certified to ``tol``, by whatever solver, is among them. Where the range has 0 inside, the data do not decide
        the class of the row. That happens above all for levels without rows in the training data, whose slopes the
        objective does not see between those of other levels: there the prediction follows a rule.

        The fit does not keep the data, so pass them again, as they were passed to ``fit``. A row takes as long as about
        five fits; equal rows are solved once.

        Parameters
        ----------
        X
            The rows asked for, as in ``decision_function``; its ``handle_unknown`` applies.
        X_train, y_train, sample_weight
            As in ``fit``.
        tol : float, optional
            Above 0; by default the parameter ``tol``. If it is smaller than the gap of the fit, it is the fit's
            neighbourhood that is described, not the optimum's.
        time_limit : float, optional
            Seconds; rows that are not reached by then are nan.

        Returns
        -------
        DataFrame with one row per row of X, and its index
            ``low`` and ``high``: the range of f, from inside; coefficients within the tolerance, as checked by
            Algorithm 2, attain both. ``least`` and ``most``: the same from outside; a certificate, independent of the
            solver, proves that none go beyond. The two are mostly within 2 % of the distance from the fit. Where f is
            not bounded (at radius 0 on separable data, say) both are -inf or inf; where nothing is proved, ``least`` or
            ``most`` is. As for ``lower_bound_``, proofs at radius 0 without ``coef_bound`` are for scores up to 10,000.
            ``proba_low`` and ``proba_high``: the probabilities of the second class at low and high.

            In ``.attrs``: ``tol`` and ``budget``, the largest objective allowed.

        Raises
        ------
        ValueError
            If the training data or the parameters are not those of the fit, X does not match them or has an unknown
            level, p is not 1, or tol or time_limit is not above 0.

        Warns
        -----
        UserWarning
            If the time limit was reached.

        Examples
        --------
        >>> import pandas as pd
        >>> from wdrlr import WassersteinLogisticRegression
        >>> X = pd.DataFrame({"colour": pd.Categorical(list("aaabbb"), categories=list("abc"))})
        >>> y = [0, 0, 1, 0, 1, 1]
        >>> model = WassersteinLogisticRegression(radius=0.01).fit(X, y)
        >>> asked = pd.DataFrame({"colour": pd.Categorical(list("ac"), categories=list("abc"))})
        >>> ranges = model.prediction_range(asked, X, y)
        >>> ((ranges["low"] < 0) & (ranges["high"] > 0)).tolist()  # whose class is open: that of the level without rows
        [False, True]
        """
        for name, value in (("tol", tol), ("time_limit", time_limit)):
            if value is not None and not (isinstance(value, Real) and value > 0):
                raise ValueError(f"{name} must be a number above 0, or None, not {value!r}.")
        posed = self._pose(X_train, y_train, sample_weight)
        problem, b = posed.problem, posed.coefficients(self.coef_, self.intercept_)
        if problem.metric.p != 1:
            raise ValueError(f"prediction_range needs p = 1, not {problem.metric.p}: it uses the tailored solver.")
        value = objective(problem, b)[0]
        if not abs(value - self.objective_) <= SAME_OBJECTIVE:
            raise ValueError(
                f"the objective of this model on X_train and y_train is {value:.9f}, but that of its fit is "
                f"{self.objective_:.9f}; pass the data and weights of the fit, and leave parameters and coef_ as they "
                "were, or fit again."
            )
        table = self._table(X, self.formulation_.categorical_features, reset=False)
        handle_unknown = self.get_params(deep=False).get("handle_unknown", "error")
        rows = self.formulation_.rows(self.encoding_, table, handle_unknown)
        rows[:, 1:] *= posed.stretch
        tol = float(self.tol if tol is None else tol)
        with threads(self.get_params(deep=False).get("n_jobs", 1)):
            found = prediction_range(problem, b, rows, tol, np.inf if time_limit is None else time_limit)
        missed = int(np.isnan(found.low).sum())
        if missed:
            warnings.warn(
                f"{missed} of {len(table)} rows were not reached within time_limit={time_limit}: their ranges are nan. "
                "Raise time_limit, or ask for fewer rows.",
                stacklevel=depth_of_user(),
            )
        ranges = pd.DataFrame(found._asdict(), index=table.index)
        ranges = ranges.assign(proba_low=expit(found.low), proba_high=expit(found.high))
        ranges.attrs.update(tol=tol, budget=value + tol)
        return ranges

    @property
    def coef_(self) -> np.ndarray:
        """The slopes; shape (1, n + k)."""
        # Selectors of scikit-learn take coef_ for one slope a column, in the table's order, and keep wrong columns
        # where it is not. Without it they ask for feature_importances_.
        if "coef_" not in self.__dict__ or (_asked_by(SELECTORS) and self.encoding_.categorical):
            raise AttributeError(f"this {type(self).__name__} has no coef_")
        return self.__dict__["coef_"]

    @coef_.setter
    def coef_(self, coef: np.ndarray) -> None:
        self.__dict__["coef_"] = coef

    @property
    def feature_importances_(self) -> np.ndarray:
        """By how much a change of one column can change f, in the order of the columns; shape (n_features_in_,).

        Of a number it is the size of its slope, what a move by 1 changes; of a category the largest difference between
        the scores of two of its levels.
        """
        check_is_fitted(self)
        return slopes.importances(self.encoding_, self.formulation_.coding, self.coef_[0])

    def coef_table(self) -> pd.DataFrame:
        """The slopes, each with what it means.

        Returns
        -------
        DataFrame with one row per entry of ``coef_``, in its order
            ``feature``, the name of the column; ``level`` and ``reference``, the level that the slope belongs to and
            the one that it is compared with, None for a number; ``rows``, how many rows of the fit have that level (for
            a number, how many there are), not counting those with weight 0; ``slope``; ``odds_ratio``, the factor by
            which the odds of the second class change from the reference to the level, or if the number grows by 1.

        Examples
        --------
        >>> from wdrlr import WassersteinLogisticRegression
        >>> X = pd.DataFrame({"colour": ["red", "red", "blue", "blue", "red", "blue"], "size": [1.0, 2, 3, 2, 1, 3]})
        >>> model = WassersteinLogisticRegression(radius=0.1).fit(X, [0, 0, 1, 1, 0, 1])
        >>> model.coef_table()[["feature", "level", "reference", "rows"]].to_numpy(dtype=object).tolist()
        [['size', None, None, 6], ['colour', 'red', 'blue', 3]]
        """
        check_is_fitted(self)
        return slopes.table(self.encoding_, self.formulation_.coding, self.coef_[0])

    @_HiddenFrom(DIAGRAMS)
    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the entries of ``coef_``; shape (n + k,)."""
        check_is_fitted(self)
        return enc.slope_names(self.encoding_, self.formulation_.coding)

    def summary(self) -> str:
        """The fit in words: objective, certificate, multiplier, what pays for the adversary, the largest slopes.

        A notebook shows the same below the parameters. ``worst_case_distribution`` tells which rows are changed.

        Examples
        --------
        >>> from wdrlr import WassersteinLogisticRegression
        >>> model = WassersteinLogisticRegression(radius=0.1).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
        >>> print(model.summary().partition("objective")[0])
        WassersteinLogisticRegression
        <BLANKLINE>
        The fit
          classes      0, 1; the second one is where f > 0
          features     1 numeric, 0 categorical with 0 levels
          radius       0.1
          label cost   inf
        <BLANKLINE>
        """
        return report.as_text(self._fitted())

    _doc_link_module = "wdrlr"

    @property
    def _doc_link_template(self) -> str:
        """Where scikit-learn's diagram links to; empty for no link."""
        return report.documentation() and f"{report.documentation()}api.html"

    def _html_repr(self) -> str:
        """scikit-learn's diagram, and the report below it once there is a fit."""
        diagram = super()._html_repr()
        return diagram + report.as_html(self._fitted()) if self.__sklearn_is_fitted__() else diagram

    def _fitted(self) -> report.Fitted:
        """The attributes that the report describes."""
        check_is_fitted(self)
        described = self.classes_, self.formulation_, self.encoding_, self.coef_, self.intercept_, self.solution_
        measure = report.measure_of(getattr(self, "scoring", None))
        cross_validated = getattr(self, "cv_results_", None), measure
        return report.Fitted(type(self).__name__, *described, self.tol, *cross_validated, self.class_weight_)

    def _formulation(self, **others: Any) -> Formulation:
        """The formulation that the parameters describe, with further fields from ``others``."""
        return Formulation(**self._parameters_of(Formulation), **others)

    def _solving(self) -> Solving:
        return Solving(**self._parameters_of(Solving))

    def _parameters_of(self, kind: type[Formulation | Solving]) -> dict[str, Any]:
        return {name: value for name, value in self.get_params(deep=False).items() if name in kind.__dataclass_fields__}

    def _posed(self, formulation: Formulation, X: Any, y: Any, sample_weight: Any) -> Posed:
        """The problem of the data to be fitted."""
        table, labels, weights = self._learn(X, y, sample_weight, formulation.categorical_features)
        posed = formulation.fit(table, labels, self._by_class(labels, weights))
        self._warn_of_columns(table, formulation, posed)
        return posed

    def _warn_of_columns(self, table: pd.DataFrame, formulation: Formulation, posed: Posed) -> None:
        """Warn of columns that the model may take for something else than they are, unless that is switched off."""
        if self.get_params(deep=False).get("check_columns"):
            warn_of_columns(table, formulation, posed)

    def _fit_posed(self, formulation: Formulation, posed: Posed, start: Solution | None = None) -> Self:
        """Solve the problem, warn if necessary, and keep the solution."""
        self._keep(
            formulation, posed, self._solving().fit(posed.problem, start, enc.features_of_slopes(posed.encoding))
        )
        if self.verbose:
            print(f"wdrlr: {self.solution_.report()}")
        return self

    def _keep(self, formulation: Formulation, posed: Posed, solution: Solution) -> None:
        """Store a solution in the attributes of the model."""
        self.formulation_, self.encoding_, self.categories_ = formulation, posed.encoding, posed.encoding.categories
        self.solution_ = solution
        self.coef_, self.intercept_ = posed.read(solution.b)
        self.transport_multiplier_ = solution.lam
        self.objective_, self.lower_bound_, self.gap_ = solution.upper, solution.lower, solution.gap
        self.n_iter_, self.n_cuts_ = max(solution.n_rounds, 1), solution.n_cuts

    def _forget(self) -> Solution | None:
        """Discard the last fit, so that none is left if the new one fails, and return its solution."""
        return self.__dict__.pop("solution_", None)

    def _learn(
        self, X: Any, y: Any, sample_weight: Any, categorical_features: Any
    ) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
        """Learn names, classes and their weights; return X as a table, the labels -1 and +1, and the sample weights."""
        table = self._table(X, categorical_features, reset=True)
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        y = _plain_labels(y)
        if len(y) != len(table):
            raise ValueError(f"Found input variables with inconsistent numbers of samples: [{len(table)}, {len(y)}]")
        self.classes_ = _two_classes(y)
        labels = np.where(y == self.classes_[1], 1.0, -1.0)
        weights = _weights(sample_weight, labels)
        self.class_weight_ = _class_weights(
            self.get_params(deep=False).get("class_weight"), self.classes_, labels, weights
        )
        return table, labels, weights

    def _by_class(self, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The sample weights times those of their classes; shape (N,)."""
        with np.errstate(over="ignore"):
            weights = weights * self.class_weight_[(labels > 0).astype(int)]
        if not np.isfinite(weights).all():
            raise ValueError("sample_weight times class_weight is too large for a float; divide one by its maximum.")
        return weights

    def _pose(self, X: Any, y: Any, sample_weight: Any, merge: bool = True) -> Posed:
        """The problem of this model on other data, with its parameters as they are now but for those of ``coef_``."""
        check_is_fitted(self)
        table = self._table(X, self.formulation_.categorical_features, reset=False)
        y = _plain_labels(y)
        if len(y) != len(table):
            raise ValueError(f"X has {len(table)} rows, but y has {len(y)}; pass the labels of these rows.")
        if not np.isin(y, self.classes_).all():
            seen = self.classes_.tolist()
            raise ValueError(f"y has labels that were not seen in fit, {seen}; drop their rows, or fit with them.")
        labels = np.where(y == self.classes_[1], 1.0, -1.0)
        fitted = {name: getattr(self.formulation_, name) for name in ("coding", "fit_intercept")}
        formulation = replace(self.formulation_, **(self._parameters_of(Formulation) | fitted))
        weights = self._by_class(labels, _weights(sample_weight, labels))
        return formulation.pose(self.encoding_, table, labels, weights, merge)

    def _table(self, X: Any, categorical_features: Any, reset: bool) -> pd.DataFrame:
        """X as a DataFrame, after scikit-learn's checks of shape and names."""
        X = enc.as_pandas(X)
        if isinstance(X, pd.DataFrame):
            validate_data(self, X, reset=reset, skip_check_array=True)
            if X.shape[0] == 0 or X.shape[1] == 0:
                raise ValueError(f"X has {X.shape[0]} rows and {X.shape[1]} columns; at least 1 of each is needed.")
            return X
        if issparse(X):
            raise TypeError(
                "Sparse data was passed for X, but dense data is required. Pass the categories themselves rather than "
                "sparse dummies, which would be taken for numbers: a ColumnTransformer hands them on as a table, with "
                '"passthrough" and .set_output(transform="pandas"). Or use \'.toarray()\'.'
            )
        # Only columns named by the user can be categories in an array, so other arrays are checked as numbers; but the
        # columns of a boolean array are all categories, like those of a boolean DataFrame.
        from_dtype = isinstance(categorical_features, str) and categorical_features == "from_dtype"
        numbers = categorical_features is None or (from_dtype and getattr(X, "dtype", None) != np.bool_)
        if numbers:
            enc.refuse_text(X)
        X = validate_data(self, X, reset=reset, dtype=np.float64 if numbers else None, ensure_all_finite=numbers)
        table = pd.DataFrame(X)
        names = getattr(self, "feature_names_in_", None)
        table.columns = [f"x{j}" for j in range(table.shape[1])] if names is None else names
        return table


def _weights(sample_weight: Any, labels: np.ndarray) -> np.ndarray:
    return _check_sample_weight(sample_weight, labels, dtype=np.float64, ensure_non_negative=True)


def _class_weights(class_weight: Any, classes: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weights of both classes; shape (2,)."""
    if isinstance(class_weight, dict):
        strange = [key for key in class_weight if key not in classes.tolist()]
        if strange:
            raise ValueError(f"class_weight names {enc.quoted(strange)}, but the classes are {enc.quoted(classes)}.")
        values = [class_weight.get(label, 1.0) for label in classes.tolist()]
        wrong = [value for value in values if not (isinstance(value, Real) and 0 <= float(value) < np.inf)]
        if wrong:
            raise ValueError(f"class_weight has {wrong[0]!r}; use numbers that are finite and not below 0.")
        return np.array(values, dtype=float)
    present = np.unique(labels[weights > 0])
    if class_weight is None or len(present) < 2:  # of one class only, which is refused later
        return np.ones(2)
    # Divided, as their sum may be too large for a float.
    return compute_class_weight(class_weight, classes=present, y=labels, sample_weight=weights / weights.max())


def _plain_labels(y: Any) -> np.ndarray:
    """y as a numpy array of its own dtype; shape (N,)."""
    # scikit-learn would turn pandas' nullable integers and booleans into floats.
    plain = getattr(getattr(y, "dtype", None), "numpy_dtype", None)
    if plain is not None and plain.kind in "biu" and not y.isna().any():
        y = y.to_numpy(dtype=plain)
    y = column_or_1d(y, warn=True)
    if pd.isna(y).any():
        raise ValueError("Input y contains NaN or None; drop those rows.")
    if y.dtype == object and len({str if isinstance(label, str) else float for label in y}) > 1:
        raise ValueError("y mixes text with other labels; convert all of them to text.")
    return y


def _two_classes(y: np.ndarray) -> np.ndarray:
    """The two classes of y, sorted; shape (2,)."""
    assert_all_finite(y, input_name="y")  # else scikit-learn warns of a cast before it says so
    check_classification_targets(y)
    target = type_of_target(y, input_name="y", raise_unknown=True)
    classes = np.unique(y)
    pair = enc.look_alikes(classes)
    hint = f" y has labels that differ only in blanks or a dot: {enc.quoted(pair)}; clean them." if pair else ""
    if target != "binary":
        wrapped = " For more classes wrap this one: sklearn.multiclass.OneVsRestClassifier fits one per class."
        raise ValueError(
            f"Only binary classification is supported. The type of the target is {target}.{hint or wrapped}"
        )
    if hint:
        raise ValueError(hint.strip())
    if len(classes) < 2:
        raise ValueError(f"y has only one class, {enc.quoted(classes)}; two classes are needed.")
    return classes
