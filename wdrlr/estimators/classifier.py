"""The classifier: Wasserstein distributionally robust logistic regression with the interface of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import _fit_context

from wdrlr.estimators.base import RobustClassifier
from wdrlr.estimators.column_checks import warn_of_no_use
from wdrlr.estimators.solving import shown
from wdrlr.model.threads import threads
from wdrlr.solvers.largest_radius import largest_useful_radius


class WassersteinLogisticRegression(RobustClassifier):
    """Logistic regression that is robust to all distributions within a Wasserstein radius of the data.

        minimise over b:  sup { E_Q[log(1 + exp(-y f(x, z)))] : W(Q, P_N) <= radius }  +  l1_penalty |b|_1

    where f(x, z) = b_0 + b_N.x + (slopes of the levels in z), P_N is the (weighted) empirical distribution and W the
    type-1 Wasserstein distance with the ground metric

        d = ( ||x - x'|| + (number of features in which z and z' differ)^(1/p) + kappa [y != y'] ) / scale

    or, with ``feature_costs`` (and p = 1), costs c_r of the numbers and D_j of changes of levels,

        d = ( ||(c_1 (x_1 - x_1'), ...)|| + sum_j D_j(z_j, z_j') + kappa [y != y'] ) / scale.

    Source: Selvi, Belbasi, Haugh and Wiesemann (NeurIPS 2022), problem (2), Definitions 1 and 2, Theorem 1.
    At radius 0 it is plain (or l1-penalised) logistic regression.

    Parameters
    ----------
    radius : float, default 0.01
        Wasserstein radius, in units of the ground metric.
    label_cost : float, "n_categorical" or inf, default inf
        kappa, what it costs to change a label: with inf they may not change; "n_categorical" is the paper's kappa = m
        and needs categories. With 1, as cheap as one category, the adversary does little but change labels; see
        "Which radius, label cost, norm, costs?" in the documentation.
    p : float, default 1.0
        Exponent of the categorical distance.
    norm : {"l1", "l2", "linf"}, default "l1"
        Norm on the numeric features; ``wdrlr.model.metric.Norm`` says how to add others.
    metric_scale : None or "unit", default None
        "unit" divides the metric by n + m + kappa; needs a finite ``label_cost``. With ``feature_costs``, n and m
        become the sums of the numbers' and of the categorical features' largest finite costs.
    feature_costs : mapping or None, default None
        What it costs to change a feature, by the name or the position of its column; 1 for those not named. Needs
        p = 1. Each cost is

        - a positive number: what a change into any other level costs, or a move of a number by 1;
        - inf: the feature may not change;
        - "ordinal", or ("ordinal", cost of a step): as many steps as the levels are apart in the order of
          ``categories_``, which must be that of an ordered pandas categorical, or of numbers or times;
        - a DataFrame with the cost of a change from the level in its index to that in its columns: at least 0, inf for
          a change that may not happen, 0 on the diagonal. It need not be symmetric.

        A number takes one of the first two; with a norm other than "l1" all numbers must have the same. See "Which
        costs?" in the documentation.
    l1_penalty : float, default 0.0
        gamma.
    penalize_intercept : bool, default False
    categorical_features : "from_dtype", "all", None, mask, positions or names, default "from_dtype"
        "from_dtype": the columns of a DataFrame with dtype category, str, object or bool; integers that are names of
        levels must be named here or made a pandas categorical. Declared levels of a pandas categorical are kept, even
        if they do not occur: the adversary can move a row to them. Other columns have their observed levels, sorted.
    coding : {"onehot", "pm1"}, default "onehot"
        0/1 dummies with the first level as reference, or -1/+1 dummies with the last level's slope 0. The choice
        matters only for penalties and bounds on the coefficients.
    handle_unknown : {"error", "ignore"}, default "error"
        How predict treats a level not seen in fit; with "ignore" it has the mean score of the training rows' levels.
    coef_bound : float or None, default None
        Bound on the size of every coefficient, the intercept included.
    fit_intercept : bool, default True
    class_weight : dict, "balanced" or None, default None
        As in scikit-learn: factors of the sample weights by class, those not in the dict 1; "balanced" gives both
        classes the same total weight.
    check_columns : bool, default True
        Warn of columns that the model probably takes for something else than they are.
    solver : {"auto", "tailored", "column-constraint", "monolithic"}, default "auto"
        "tailored" is an interior-point method made for this problem with p = 1, "column-constraint" Algorithm 1 of
        the paper, "monolithic" the whole program of Theorem 1, exponential in the number of categorical features.
        "auto" is "tailored" if p = 1, else "column-constraint". ``wdrlr.solvers.registry.register`` adds others.
    solver_options : dict or None, default None
        For "column-constraint": ``all_violated``, ``first_cuts``, ``easing``, ``form``, ``time_limit``; for
        "monolithic": ``form``, ``time_limit``, ``max_cuts``; see ``wdrlr.solvers.column_constraint``. By default all
        violated samples get a cut in each round, which reaches the same solution sooner than the paper's one cut per
        round.
    conic_solver : {"auto", "MOSEK", "CLARABEL", "SCS"}, default "auto"
        For the solvers "column-constraint" and "monolithic". "auto": MOSEK if its licence can be checked out, else
        CLARABEL. SCS is stopped after 60 s per program unless ``time_limit`` is given.
    tol : float, default 1e-6
        Certified absolute gap of the objective at which to stop.
    max_iter : int, default 1000
        Largest number of Newton systems ("tailored") or rounds ("column-constraint").
    warm_start : bool, default False
        Start from the coefficients of the last fit if the new problem has as many; only with "tailored". The result is
        the same within ``tol``, and is reached sooner if radius, penalty or rows have changed little.
    n_jobs : int or None, default None
        Threads for data with half a million entries or more, where rows are worked on in blocks. As in scikit-learn,
        None means 1 unless ``joblib.parallel_config`` says otherwise, and -1 all processors; in a worker of joblib it
        is 1 in any case. The results are the same to the last bit, whatever the number.
    verbose : int, default 0
        Above 0, print a line about each fit and, meanwhile, what the conic solvers are at, about once a second; above
        1, every round of them and Clarabel's own iterations.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n + k)
        Slopes of the numeric columns, then of the levels of each categorical feature except the reference, in order;
        ``get_feature_names_out`` names them.
    intercept_ : ndarray of shape (1,)
    classes_ : ndarray of shape (2,)
    class_weight_ : ndarray of shape (2,)
        The weights of the classes; all 1 without ``class_weight``.
    feature_importances_ : ndarray of shape (number of columns,)
        By how much a change of each column can change f; see the notes.
    n_features_in_, feature_names_in_ : as in scikit-learn
    categories_ : list of ndarray
        The levels of each categorical feature.
    n_iter_, n_cuts_ : int
        Newton systems or conic programs solved, and cuts in the last one.
    transport_multiplier_ : float
        lambda; nan at radius 0.
    objective_, lower_bound_, gap_ : float
        The objective at the coefficients, evaluated by Algorithm 2, a lower bound on the optimal value, and their
        difference, which allows for rounding; all from ``wdrlr.model.certificate``. At radius 0, or of a feature that
        may not change, for a coefficient without penalty and bound, the lower bound holds as long as
        |b_j| max_i |x_ij - mean_j| is at most 1e4 or twice its value at the fit; if the data are found to be
        (quasi-)separable, to 1e-9 of the sizes of the columns, ``fit`` and ``fit_path`` make the bound hold for all
        coefficients. A gap of inf means that the lower bound came out above the objective, which should never happen,
        and was discarded.
    solution_ : Solution
        Everything known about the fit, including the bounds of every round and the seconds.

    Warns
    -----
    ColumnWarning
        Once for each of these: numbers that are only 0 and 1, flags or dummies; dummies that are features of their own;
        a category with nearly a level a row; numbers that count the rows; numbers as text; dates as text; columns
        under one norm with scales that differ by a factor of 100 or more; levels that differ only in blanks or a dot;
        a radius so large that all slopes are 0 (``fit`` alone).
        ``check_columns=False`` turns all of them off.
    ConvergenceWarning
        If the certified gap is above ``tol``.
    SeparableDataWarning
        If there is no optimum: there is no radius, penalty or bound and the data are (quasi-)separable; or features
        that may not change separate them, there is no penalty or bound, and labels cannot be changed (label_cost=inf).

    Notes
    -----
    Tables with text in scikit-learn's tools: Pipeline, ColumnTransformer (after ``.set_output(transform="pandas")``),
    GridSearchCV, cross_validate, OneVsRestClassifier and CalibratedClassifierCV take them as they are, and so does
    SelectFromModel, which selects columns by ``feature_importances_``: one for each column, in the table's order,
    unlike ``coef_``, which is hidden from scikit-learn's selectors where there are categories.

    BaggingClassifier makes arrays of tables, and refuses text before scikit-learn 1.9: give the positions of the
    categories in ``categorical_features``, and leave ``max_features`` at 1.0. OneVsOneClassifier, RFE and
    SequentialFeatureSelector read all columns as numbers, and refuse text before they ask the classifier: use
    OneVsRestClassifier and SelectFromModel, or make codes of the text first (OrdinalEncoder), and name these in
    ``categorical_features``: by position for OneVsOneClassifier, which keeps the columns in place, and only as "all"
    for the other two, which do not. Where a fit sees a part of the rows, as in BaggingClassifier and
    OneVsOneClassifier, use ``handle_unknown="ignore"``.

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

    def __init__(
        self,
        radius: float = 0.01,
        label_cost: float | str = np.inf,
        p: float = 1.0,
        norm: str = "l1",
        metric_scale: str | None = None,
        feature_costs: Mapping[Any, Any] | None = None,
        l1_penalty: float = 0.0,
        penalize_intercept: bool = False,
        categorical_features: Any = "from_dtype",
        coding: str = "onehot",
        handle_unknown: str = "error",
        coef_bound: float | None = None,
        fit_intercept: bool = True,
        class_weight: Mapping[Any, float] | str | None = None,
        check_columns: bool = True,
        solver: str = "auto",
        solver_options: dict[str, Any] | None = None,
        conic_solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.radius = radius
        self.label_cost = label_cost
        self.p = p
        self.norm = norm
        self.metric_scale = metric_scale
        self.feature_costs = feature_costs
        self.l1_penalty = l1_penalty
        self.penalize_intercept = penalize_intercept
        self.categorical_features = categorical_features
        self.coding = coding
        self.handle_unknown = handle_unknown
        self.coef_bound = coef_bound
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.check_columns = check_columns
        self.solver = solver
        self.solver_options = solver_options
        self.conic_solver = conic_solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> WassersteinLogisticRegression:
        """Fit the model.

        Parameters
        ----------
        X : DataFrame or array-like of shape (N, number of features)
            A pandas DataFrame, a table with a method ``to_pandas`` (polars, pyarrow), or an array. Missing values must
            be filled in; in a categorical column they can also be made a level.
        y : array-like of shape (N,)
            Two classes of any dtype; the second one in sorted order is +1.
        sample_weight : array-like of shape (N,) or None
            With weights, 1/N becomes w_i / sum(w) everywhere; w_i is the sample weight times that of the class.

        Raises
        ------
        ValueError
            If the data or the parameters make no problem; the message says what to change.
        ConicSolverError
            If the conic solver returns no point.
        """
        last = self._forget()
        formulation = self._formulation()
        with threads(self.n_jobs):
            posed = self._posed(formulation, X, y, sample_weight)
            self._fit_posed(formulation, posed, start=last if self.warm_start else None)
        if self.check_columns:
            warn_of_no_use(posed.problem, self.solution_.b)
        return self


def radius_max(X: Any, y: Any, *, sample_weight: Any = None, **parameters: Any) -> float:
    """The smallest radius from which on all slopes of the robust logistic regression are 0 at the optimum.

    This is the counterpart of the Lasso's largest penalty: a grid of radii need not go beyond it. It is exact to a
    relative 1e-7, see ``wdrlr.solvers.largest_radius``. It is inf if no radius makes all slopes 0, which can happen
    only if labels cannot be changed (label_cost=inf): where features that may not change help to predict them, or where
    the intercept is absent or bounded and slopes can stand in for it.

    Parameters
    ----------
    X, y, sample_weight
        As in ``WassersteinLogisticRegression.fit``.
    **parameters
        Parameters of ``WassersteinLogisticRegression`` that describe the problem: label_cost, p, norm, metric_scale,
        feature_costs, l1_penalty, ...; with ``verbose`` above 0, progress is printed, and ``n_jobs`` is as there.

    Raises
    ------
    ValueError
        As ``fit``, or if there is a radius among the parameters.

    Examples
    --------
    >>> from wdrlr import radius_max
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> round(radius_max(X, [0, 0, 1, 1], label_cost=2.0), 6)
    0.5
    """
    if "radius" in parameters:
        raise ValueError("radius_max finds the radius; leave out radius.")
    model = WassersteinLogisticRegression(**parameters)
    model._validate_params()
    with threads(model.n_jobs), shown(model.verbose):
        return largest_useful_radius(model._posed(model._formulation(), X, y, sample_weight).problem)
