"""The classifier: Wasserstein distributionally robust logistic regression with the interface of scikit-learn."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, validate_data

from wdrlr.estimators import report
from wdrlr.model import encoding as enc
from wdrlr.model.certificate import worst_case_loss
from wdrlr.model.metric import NORMS, GroundMetric, ground_metric
from wdrlr.model.problem import Problem, level_offsets, merge_duplicates
from wdrlr.model.worst_case import atoms_table, worst_case_distribution
from wdrlr.solvers.conic import SETTINGS
from wdrlr.solvers.largest_radius import largest_useful_radius
from wdrlr.solvers.registry import SOLVERS, check_options, chosen_solver, solve
from wdrlr.solvers.solution import Solution, separated


class SeparableDataWarning(ConvergenceWarning):
    """The data are (quasi-)separable: plain logistic regression has no optimal coefficients, only a limit."""


class WassersteinLogisticRegression(ClassifierMixin, BaseEstimator):
    """Logistic regression that is robust to all distributions within a Wasserstein radius of the data.

        minimise over b:  sup { E_Q[log(1 + exp(-y f(x, z)))] : W(Q, P_N) <= radius }  +  l1_penalty |b|_1

    where f(x, z) = b_0 + b_N.x + (slopes of the levels in z), P_N is the (weighted) empirical distribution and W the
    type-1 Wasserstein distance with the ground metric

        d = ( ||x - x'|| + (number of features in which z and z' differ)^(1/p) + kappa [y != y'] ) / scale.

    Source: Selvi, Belbasi, Haugh and Wiesemann (NeurIPS 2022), problem (2), Definitions 1 and 2, Theorem 1.
    At radius 0 it is plain (or l1-penalised) logistic regression.

    Parameters
    ----------
    radius : float, default 0.01
        Wasserstein radius, in units of the ground metric.
    label_cost : float, "n_categorical" or inf, default 1.0
        kappa, what it costs to change a label; "n_categorical" is the paper's kappa = m and needs categories.
    p : float, default 1.0
        Exponent of the categorical distance.
    norm : {"l1", "l2", "linf"}, default "l1"
        Norm on the numeric features; ``wdrlr.model.metric.Norm`` says how to add others.
    metric_scale : None or "unit", default None
        "unit" divides the metric by n + m + kappa; needs a finite kappa.
    l1_penalty : float, default 0.0
        gamma.
    penalize_intercept : bool, default False
    categorical_features : "from_dtype", "all", None, mask, positions or names, default "from_dtype"
        "from_dtype": the columns of a DataFrame with dtype category, str, object or bool; integers that are names of
        levels must be named here or made a pandas categorical. Declared levels of a pandas categorical are kept, seen
        or not: they are where the adversary can move a row. Other columns have their observed levels, sorted.
    coding : {"onehot", "pm1"}, default "onehot"
        0/1 dummies with the first level as reference, or -1/+1 dummies with the last level's slope 0. The choice
        matters for penalties and bounds on the coefficients only.
    handle_unknown : {"error", "ignore"}, default "error"
        What a level not seen in fit does in predict; with "ignore" no level's slope is used for it.
    coef_bound : float or None, default None
        Bound on the size of every coefficient, the intercept included.
    fit_intercept : bool, default True
    solver : {"auto", "tailored", "column-constraint", "monolithic"}, default "auto"
        "tailored" is an interior-point method made for this problem with p = 1, "column-constraint" Algorithm 1 of
        the paper, "monolithic" Theorem 1's program whole, exponential in the number of categorical features. "auto"
        takes "tailored" where p = 1, else "column-constraint". ``wdrlr.solvers.registry.register`` adds others.
    solver_options : dict or None, default None
        For "column-constraint": ``all_violated``, ``easing``, ``form``, ``time_limit``; for "monolithic": ``form``,
        ``time_limit``, ``max_cuts``; see ``wdrlr.solvers.column_constraint``. By default all violated samples get a
        cut in each round, which gives the same solution as the paper's one cut a round, sooner.
    conic_solver : {"auto", "MOSEK", "CLARABEL", "SCS"}, default "auto"
        For the two conic ways. "auto": MOSEK if its licence can be checked out, else CLARABEL. SCS is stopped after 60
        s a program unless ``time_limit`` is given.
    tol : float, default 1e-6
        Certified absolute gap of the objective at which to stop.
    max_iter : int, default 1000
        Largest number of Newton systems ("tailored") or rounds ("column-constraint").
    warm_start : bool, default False
        Start from the coefficients of the last fit if there are as many now; with "tailored" only. The result is the
        same within ``tol``, sooner where radius, penalty or rows have changed a little.
    verbose : int, default 0
        Above 0, one line says what was done.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n + k)
        Slopes of the numeric columns, then of each categorical feature's levels but the reference, in order;
        ``get_feature_names_out`` names them.
    intercept_ : ndarray of shape (1,)
    classes_ : ndarray of shape (2,)
    n_features_in_, feature_names_in_ : as in scikit-learn
    categories_ : list of ndarray
        The levels of each categorical feature.
    n_iter_, n_cuts_ : int
        Newton systems or conic programs solved, and cuts in the last one.
    transport_multiplier_ : float
        lambda; nan at radius 0.
    objective_, lower_bound_, gap_ : float
        The objective at the coefficients, evaluated by Algorithm 2, a lower bound on the optimal value, and their
        difference, which allows for rounding; all from ``wdrlr.model.certificate``. At radius 0, for a coefficient
        without penalty and bound, the lower bound holds up to |b_j| max_i |x_ij - mean_j| <= 1e4 or twice what the fit
        has; where they are seen to be (quasi-)separable, to 1e-9 of their columns' sizes, ``fit`` and ``fit_path`` make
        it hold for all. inf: the lower bound came out above the objective, which must not happen, and was thrown away.
    solution_ : Solution
        All that is known about the fit, the bounds of every round and the seconds included.

    Warns
    -----
    ConvergenceWarning
        If the certified gap is above ``tol``.
    SeparableDataWarning
        If radius, penalty and bound are absent and the data are (quasi-)separable, so that there is no optimum.

    Examples
    --------
    >>> import pandas as pd
    >>> from wdrlr import WassersteinLogisticRegression
    >>> X = pd.DataFrame({"colour": ["red", "red", "blue", "blue", "red", "blue"], "size": [1.0, 2, 3, 2, 1, 3]})
    >>> y = [0, 0, 1, 1, 0, 1]
    >>> model = WassersteinLogisticRegression(radius=0.1).fit(X, y)
    >>> model.predict(X).tolist()
    [0, 0, 1, 1, 0, 1]
    >>> bool(model.gap_ <= 1e-6)
    True
    >>> model.get_feature_names_out().tolist()
    ['size', 'colour_red']
    """

    _solve = staticmethod(solve)

    _parameter_constraints: ClassVar[dict] = {  # keys() are views: they have what is registered later, too
        "radius": [Interval(Real, 0, None, closed="left")],
        "label_cost": [
            Interval(Real, 0, None, closed="neither"),
            Options(Real, {np.inf}),
            StrOptions({"n_categorical"}),
        ],
        "p": [Interval(Real, 0, None, closed="neither")],
        "norm": [StrOptions(NORMS.keys())],
        "metric_scale": [None, StrOptions({"unit"})],
        "l1_penalty": [Interval(Real, 0, None, closed="left")],
        "penalize_intercept": ["boolean"],
        "categorical_features": [None, StrOptions({"from_dtype", "all"}), "array-like"],
        "coding": [StrOptions({"onehot", "pm1"})],
        "handle_unknown": [StrOptions({"error", "ignore"})],
        "coef_bound": [None, Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "solver": [StrOptions({"auto"}), StrOptions(SOLVERS.keys())],
        "solver_options": [None, dict],
        "conic_solver": [StrOptions({"auto", *SETTINGS})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
    }

    categories_are_numbers: ClassVar[bool] = False  # what only MT does, see wdrlr.paper.baselines

    def __init__(
        self,
        radius: float = 0.01,
        label_cost: float | str = 1.0,
        p: float = 1.0,
        norm: str = "l1",
        metric_scale: str | None = None,
        l1_penalty: float = 0.0,
        penalize_intercept: bool = False,
        categorical_features: Any = "from_dtype",
        coding: str = "onehot",
        handle_unknown: str = "error",
        coef_bound: float | None = None,
        fit_intercept: bool = True,
        solver: str = "auto",
        solver_options: dict[str, Any] | None = None,
        conic_solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.radius = radius
        self.label_cost = label_cost
        self.p = p
        self.norm = norm
        self.metric_scale = metric_scale
        self.l1_penalty = l1_penalty
        self.penalize_intercept = penalize_intercept
        self.categorical_features = categorical_features
        self.coding = coding
        self.handle_unknown = handle_unknown
        self.coef_bound = coef_bound
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.solver_options = solver_options
        self.conic_solver = conic_solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "solution_")

    def _validate_params(self) -> None:
        super()._validate_params()
        check_options(chosen_solver(self.solver, self.p, self.norm), self.solver_options or {})

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> WassersteinLogisticRegression:
        """Fit the model.

        Parameters
        ----------
        X : DataFrame or array-like of shape (N, number of features)
            pandas, or what has a ``to_pandas`` (polars, pyarrow), or an array. Missing values must be filled, or in a
            category made a level of their own.
        y : array-like of shape (N,)
            Two classes of any dtype; the second one in sorted order is +1.
        sample_weight : array-like of shape (N,) or None
            With weights, 1/N becomes w_i / sum(w) everywhere.

        Raises
        ------
        ValueError
            If the data or the parameters make no problem; the message says what to change.
        ConicSolverError
            If the conic solver returns no point at all.
        """
        last = self.__dict__.pop("solution_", None)  # should this fit fail, nothing predicts with old coefficients
        problem = self._encode(X, y, sample_weight)
        options = dict(self.solver_options or {})
        warm_start = self.warm_start and chosen_solver(self.solver, self.p, self.norm).warm_start
        if warm_start and last and len(last.b) == problem.n_coefficients:
            options["start"] = last
        solution = self._solve(problem, self.solver, options, self.conic_solver, self.tol, self.max_iter)
        solution = without_minimiser(problem, solution, self.tol)
        self._take(solution)
        if self.verbose:
            print(f"wdrlr: {solution.report()}")
        warn_if_uncertified(solution, self.tol)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """f at every row; shape (N,). Above 0 means the second class."""
        check_is_fitted(self)
        table = self._table(X, reset=False)
        x = self.encoding_.numbers(table)
        z = self.encoding_.codes(table, self.handle_unknown)
        n, n_levels = x.shape[1], self.encoding_.n_levels
        slopes = self.coef_[0, n:]
        scores = enc.level_matrix(n_levels, self.coding) @ slopes
        unknown = enc.unknown_row(n_levels, self.coding) @ slopes
        level_scores = np.where(z >= 0, scores[np.maximum(z, 0) + level_offsets(n_levels)], unknown)
        return self.intercept_[0] + x @ self.coef_[0, :n] + level_scores.sum(axis=1)

    def predict(self, X: Any) -> np.ndarray:
        """The class of every row; shape (N,)."""
        f = self.decision_function(X)
        return self.classes_[(f > 0).astype(int)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of both classes; shape (N, 2)."""
        f = self.decision_function(X)
        return np.column_stack([expit(-f), expit(f)])

    def worst_case_loss(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The largest expected log-loss of this model over the Wasserstein ball around the given data.

        The coefficients are kept, lambda is minimised over again; the penalty is not included.

        Raises
        ------
        ValueError
            If X or y do not fit what was fitted, or X has an unknown level.
        """
        return worst_case_loss(self._pose(X, y, sample_weight), self._coefficients())[0]

    def worst_case_distribution(self, X: Any, y: Any, sample_weight: Any = None, eta: float = 1e-4) -> pd.DataFrame:
        """The distribution in the Wasserstein ball around the given data that is worst for this model.

        It has at most N + 1 atoms (Theorem 8), is exact where ``attained``, and is found without a solver;
        ``wdrlr.model.worst_case`` says how. To see what is worst for coefficients from elsewhere, put them into
        ``coef_`` and ``intercept_``. ``wdrlr.changed_mass`` and
        ``wdrlr.plots.changes_plot`` say which features are changed, how often.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``.
        eta : float, default 1e-4
            Used only where moving numbers pays best, so that the largest loss is approached and not attained: the
            share of one row's mass that is sent far away, as in Appendix B. The smaller, the closer (``gap``), and
            the farther the atom.

        Returns
        -------
        DataFrame, one row an atom
            ``mass``, ``source_row`` (the position in X of the row whose mass it is), ``label``, then the features as
            in X (categories as pandas categoricals with the levels of ``categories_``). The masses of a source row sum
            to 1/N, or to its share of the weights.

            In ``.attrs``: ``expected_loss`` and ``transport_cost`` of these atoms (the cost is at most the radius),
            ``worst_case_loss`` (the supremum), ``gap`` (supremum less expected loss), ``attained`` (False where mass
            escapes along the numbers), ``n_rows`` (of X).

        Raises
        ------
        ValueError
            If X or y do not fit what was fitted, X has an unknown level, eta is outside (0, 1], or a feature is named
            as one of the first three columns.
        """
        problem = self._pose(X, y, sample_weight, merge=False)
        worst = worst_case_distribution(problem, self._coefficients(), eta)
        return atoms_table(worst, self.classes_, self._features(worst.x, worst.z), problem.n_samples)

    def _coefficients(self) -> np.ndarray:
        """b, as the problem has it; shape (1 + n + k,)."""
        return np.concatenate([self.intercept_, self.coef_[0]])

    def _features(self, x: np.ndarray, z: np.ndarray) -> pd.DataFrame:
        """The problem's numbers and level codes as a table."""
        return self.encoding_.table(x, z)

    def _pose(self, X: Any, y: Any, sample_weight: Any, merge: bool = True) -> Problem:
        """The problem of this model on other data."""
        check_is_fitted(self)
        table = self._table(X, reset=False)
        y = _plain_labels(y)
        if len(y) != len(table):
            raise ValueError(f"X has {len(table)} rows, but y has {len(y)}.")
        if not np.isin(y, self.classes_).all():
            raise ValueError(f"y has labels that were not there in fit; the classes are {self.classes_.tolist()}.")
        return self._problem(table, np.where(y == self.classes_[1], 1.0, -1.0), sample_weight, merge)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the entries of ``coef_``; shape (n + k,)."""
        check_is_fitted(self, "encoding_")
        return enc.slope_names(self.encoding_, self.coding)

    def summary(self) -> str:
        """The fit in words: objective, certificate, multiplier, what pays for the adversary, the largest slopes.

        A notebook shows the same below the parameters. Which rows are changed, ``worst_case_distribution`` says.

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
          label cost   1.0
        <BLANKLINE>
        """
        check_is_fitted(self)
        return report.as_text(self)

    def _html_repr(self) -> str:
        """scikit-learn's diagram, and the report below it once there is a fit."""
        diagram = super()._html_repr()
        return diagram + report.as_html(self) if self.__sklearn_is_fitted__() else diagram

    def _take(self, solution: Solution) -> None:
        """Make a solution that of the model."""
        self.solution_ = solution
        self.coef_ = solution.b[None, 1:]
        self.intercept_ = solution.b[:1]
        self.transport_multiplier_ = solution.lam
        self.objective_, self.lower_bound_, self.gap_ = solution.upper, solution.lower, solution.gap
        self.n_iter_, self.n_cuts_ = max(solution.n_rounds, 1), solution.n_cuts

    def _encode(self, X: Any, y: Any, sample_weight: Any) -> Problem:
        """Learn classes and levels from the data, and pose the problem."""
        problem = self._problem(*self._learn(X, y), sample_weight)
        if np.unique(problem.y).size < 2:
            raise ValueError("the samples with a positive weight are of one class only; two classes are needed.")
        return problem

    def _learn(self, X: Any, y: Any) -> tuple[pd.DataFrame, np.ndarray]:
        """Learn classes and levels from the data; return X as a table, and the labels -1 and +1."""
        table = self._table(X, reset=True)
        labels = self._labels(y, len(table))
        self.encoding_ = enc.fit_encoding(table, self.categorical_features)
        self.categories_ = self.encoding_.categories
        return table, labels

    def _table(self, X: Any, reset: bool) -> pd.DataFrame:
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
                "sparse dummies, which would be taken for numbers; or use '.toarray()'."
            )
        # Only named columns can be categories in an array, so that an array of numbers is checked as one; but an array
        # of booleans is all categories, like a DataFrame of them.
        from_dtype = isinstance(self.categorical_features, str) and self.categorical_features == "from_dtype"
        numbers = self.categorical_features is None or (from_dtype and getattr(X, "dtype", None) != np.bool_)
        if numbers:
            enc.refuse_text(X)
        X = validate_data(self, X, reset=reset, dtype=np.float64 if numbers else None, ensure_all_finite=numbers)
        table = pd.DataFrame(X)
        names = getattr(self, "feature_names_in_", None)
        table.columns = [f"x{j}" for j in range(table.shape[1])] if names is None else names
        return table

    def _labels(self, y: Any, n_rows: int) -> np.ndarray:
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        y = _plain_labels(y)
        if len(y) != n_rows:
            raise ValueError(f"Found input variables with inconsistent numbers of samples: [{n_rows}, {len(y)}]")
        check_classification_targets(y)
        target = type_of_target(y, input_name="y", raise_unknown=True)
        classes = np.unique(y)
        pair = enc.look_alikes(classes)
        hint = f" y has labels that differ in blanks or a dot only: {enc.quoted(pair)}; clean them." if pair else ""
        if target != "binary":
            raise ValueError(f"Only binary classification is supported. The type of the target is {target}.{hint}")
        if hint:
            raise ValueError(hint.strip())
        if len(classes) < 2:
            raise ValueError(f"y has one class only, {enc.quoted(classes)}; two classes are needed.")
        self.classes_ = classes
        return np.where(y == self.classes_[1], 1.0, -1.0)

    def _problem(self, table: pd.DataFrame, labels: np.ndarray, sample_weight: Any, merge: bool = True) -> Problem:
        """The problem; unless ``merge``, its samples are the rows of the table one for one, in their order."""
        x = self.encoding_.numbers(table)
        z = self.encoding_.codes(table, "error")
        w = _check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
        kept = w > 0
        if not kept.any():
            raise ValueError("sample_weight must have at least one non-zero entry.")
        w = w / w.max()  # their sum may be too large for a float
        _refuse_extreme(x, [self.encoding_.names[j] for j in self.encoding_.numeric])
        n_levels = self.encoding_.n_levels
        matrix = enc.level_matrix(n_levels, self.coding)
        penalty = np.full(1 + x.shape[1] + matrix.shape[1], float(self.l1_penalty))
        penalty[0] *= self.penalize_intercept
        y = labels
        if merge:
            x, z, y, w = merge_duplicates(x[kept], z[kept], y[kept], w[kept])
        return Problem(
            x=x,
            z=z,
            y=y,
            w=w / w.sum(),
            n_levels=n_levels,
            level_matrix=matrix,
            metric=ground_metric(
                self.label_cost, x.shape[1], z.shape[1], p=self.p, norm=self.norm, metric_scale=self.metric_scale
            ),
            radius=float(self.radius),
            penalty=penalty,
            coef_bound=np.array(np.inf if self.coef_bound is None else self.coef_bound, dtype=float),
            fit_intercept=bool(self.fit_intercept),
        )


def _plain_labels(y: Any) -> np.ndarray:
    """y as a numpy array of its own dtype; shape (N,)."""
    # scikit-learn makes floats of pandas' nullable integers and booleans.
    plain = getattr(getattr(y, "dtype", None), "numpy_dtype", None)
    if plain is not None and plain.kind in "biu" and not y.isna().any():
        y = y.to_numpy(dtype=plain)
    y = column_or_1d(y, warn=True)
    if y.dtype == object:
        if pd.isna(y).any():
            raise ValueError("Input y contains NaN or None; drop those rows.")
        if len({str if isinstance(label, str) else float for label in y}) > 1:
            raise ValueError("y mixes text with other labels; convert all of them to text.")
    return y


LEAST_SIZE, LARGEST_SIZE = 1e-15, 1e15
"""Of the numbers in a column, beyond which the rounding of sums over columns is all that is left of others."""

LARGEST_OFFSET = 1e10
"""How many times its range a column may be away from 0: the intercept is rounded to as many digits fewer."""


def _refuse_extreme(x: np.ndarray, names: list[str]) -> None:
    for column, name in zip(x.T, names, strict=True):
        size, extent = np.abs(column).max(initial=0.0), np.ptp(column) if len(column) else 0.0
        if size > LARGEST_SIZE or 0 < size < LEAST_SIZE:
            raise ValueError(f"the numbers in column {name!r} are of the size {size:.0e}; rescale them.")
        if 0 < extent < size / LARGEST_OFFSET:
            raise ValueError(
                f"the numbers in column {name!r} are of the size {size:.0e} and differ by {extent:.0e} at most, which "
                f"rounding would blur; subtract {column[0]:.17g} from them."
            )


def radius_max(X: Any, y: Any, *, sample_weight: Any = None, **parameters: Any) -> float:
    """The smallest radius from which on all slopes of the robust logistic regression are 0 at the optimum.

    The counterpart of the Lasso's largest penalty: a grid of radii need not go beyond it. It is found by linear
    programming (a cone program for norm="l2" and several numbers), see ``wdrlr.solvers.largest_radius``. inf if no
    radius makes all slopes 0, which takes labels that cannot be changed, an intercept that is absent or bounded, and
    slopes that can stand in for it.

    Parameters
    ----------
    X, y, sample_weight
        As in ``WassersteinLogisticRegression.fit``.
    **parameters
        Those of ``WassersteinLogisticRegression`` that describe the problem: label_cost, p, norm, metric_scale,
        l1_penalty, ...

    Raises
    ------
    ValueError
        As ``fit``.

    Examples
    --------
    >>> from wdrlr import radius_max
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> round(radius_max(X, [0, 0, 1, 1], label_cost=2.0), 6)
    0.5
    """
    model = WassersteinLogisticRegression(**parameters)
    model._validate_params()
    return largest_useful_radius(model._encode(X, y, sample_weight))


def without_minimiser(problem: Problem, solution: Solution, tol: float) -> Solution:
    """The solution, its lower bound made to hold for all coefficients where plain logistic regression has no minimiser.

    The infimum is then that of the samples which no direction separates, as far as ``separated`` sees it. Warns of such
    data.
    """
    unbounded = problem.radius == 0 and np.isinf(problem.coef_bound).all() and not problem.penalty[1:].any()
    gone = separated(problem) if unbounded else np.zeros(1, dtype=bool)
    if not gone.any():
        return solution
    warnings.warn(
        "the data are separable or quasi-separable: without a radius, a penalty or a bound the objective has no "
        "minimiser, and the coefficients are merely where the tolerance was reached.",
        SeparableDataWarning,
        stacklevel=3,
    )
    infimum = 0.0
    if not gone.all():
        x, z, y, w = (values[~gone] for values in (problem.x, problem.z, problem.y, problem.w))
        # At radius 0 the metric plays no role: this one has the p and the norm that the default solver handles.
        rest = replace(problem, x=x, z=z, y=y, w=w / w.sum(), metric=GroundMetric(np.inf))
        bound = solve(rest, "auto", {}, "auto", tol / 100, 500).lower
        infimum = float(w.sum()) * max(bound, 0.0)
    return replace(solution, lower=min(solution.lower, infimum))


def warn_if_uncertified(solution: Solution, tol: float) -> None:
    """Warn where the certified gap is above ``tol``, or where the lower bound was thrown away."""
    if np.isinf(solution.gap):
        warnings.warn(
            f"the lower bound of this fit came out above the objective, {solution.upper:.9f}, so that one of them is "
            "wrong; the gap is infinite. Please report it with the data; rescaling columns of numbers can help.",
            ConvergenceWarning,
            stacklevel=3,
        )
    elif not solution.gap <= tol:
        warnings.warn(
            f"the objective is certified to {solution.gap:.1e} only, not to tol={tol:.1e}: it is "
            f"{solution.upper:.9f}, the lower bound {solution.lower:.9f}, after {solution.n_rounds} rounds. "
            "Raise max_iter, and rescale columns of very large numbers.",
            ConvergenceWarning,
            stacklevel=3,
        )
