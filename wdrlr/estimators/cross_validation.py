"""The classifier that chooses its radius and its l1 penalty by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from itertools import product
from numbers import Integral
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import _fit_context
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metadata_routing import (
    UNUSED,
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.validation import _check_method_params

from wdrlr.estimators import report
from wdrlr.estimators.base import RobustClassifier
from wdrlr.estimators.classifier import WassersteinLogisticRegression
from wdrlr.estimators.solving import at_point, shown, warn_if_uncertified
from wdrlr.model.encoding import FeatureEncoding
from wdrlr.model.problem import Problem, log_loss
from wdrlr.model.threads import threads
from wdrlr.solvers.largest_radius import largest_useful_radius
from wdrlr.solvers.solution import Solution

N_RADII, SMALLEST_SHARE = 10, 1e-3
"""How many radii "auto" stands for, and the smallest as a share of the largest; see docs/choosing.md."""

MEASURED = "criterion", "error", "log_loss"
"""What is measured on the rows held out: what the choice goes by, the share of misclassified rows, the log-loss."""


class WassersteinLogisticRegressionCV(RobustClassifier):
    """``WassersteinLogisticRegression`` with the radius and the l1 penalty chosen by cross-validation.

    Every pair of the grid is fitted on the rows outside each fold and evaluated on the fold; the pair with the smallest
    mean criterion, which ``scoring`` names, is then fitted on all rows. Ties go to the largest penalty, and then to the
    largest radius. With ``rule="one_standard_error"`` the candidates are all pairs whose mean criterion is within one
    standard error of the smallest, where the standard error is that of the pair with the smallest one over the folds,

        std(criterion of the folds, ddof=1) / sqrt(number of folds),

    so that the model is as robust and as sparse as the data allow (Hastie, Tibshirani and Friedman, The Elements of
    Statistical Learning, 2nd ed., Section 7.10).

    In every fold the levels of the categories are those of the whole table, so that the adversary can move a row to the
    same levels as in the final fit. The rows of a fold are encoded once for the whole grid. With p = 1 the solver's
    coordinates are shared, and each fit of a fold starts at that of the next larger radius; every fit is certified
    separately. The final fit is that of ``WassersteinLogisticRegression``.

    Parameters
    ----------
    radii : "auto", int or array-like of float, default "auto"
        Wasserstein radii to choose from, in units of the ground metric. Which radii are useful depends on the units of
        the data, so "auto" takes them from the data: ten radii, equally spaced on a log scale, from ``radius_max`` of
        the data without a penalty down to a thousandth of it. An int, at least 2, is another number of them. Where
        ``radius_max`` is inf, because no radius makes all slopes 0, the largest is what a change of a level costs, or
        moving a number by its range; where it is 0, because no feature is of any use, 0 is the only one.
    l1_penalties : array-like of float, default (0,)
    cv : int, splitter or iterable of (train, test), default 5
        As in scikit-learn; an int means stratified folds. For grouped rows use a splitter such as ``GroupKFold()`` and
        pass ``groups`` to ``fit``.
    scoring : str, callable or None, default "neg_log_loss"
        "neg_log_loss": the criterion is the mean log-loss. None: it is the error, the share of misclassified rows,
        which few rows and many ties make a worse guide, see "Which radius, label cost, norm, costs?" in the
        documentation. Otherwise a scikit-learn scorer, and the criterion is minus its score; if fit has weights, it
        must accept ``sample_weight``.
    rule : {"best", "one_standard_error"}, default "best"
    n_jobs : int or None, default None
        Processes for the folds, as in scikit-learn, each with one thread; then threads of the final fit, as in
        ``WassersteinLogisticRegression``.
    verbose : int, default 0
        Above 0, print a line about each fold; above 1, one about each fit.
    label_cost, p, norm, metric_scale, feature_costs, penalize_intercept, categorical_features, coding, \
handle_unknown, coef_bound, fit_intercept, class_weight, check_columns, solver, solver_options, conic_solver, tol, \
max_iter
        As in ``WassersteinLogisticRegression``.

    Attributes
    ----------
    radius_, l1_penalty_ : float
        The chosen pair.
    radii_ : ndarray of shape (number of radii,)
        Those to choose from.
    cv_criterion_ : ndarray of shape (number of radii, number of penalties)
        The mean criterion over the folds.
    cv_results_ : DataFrame with one row per pair, radii outermost
        radius, l1_penalty, criterion and criterion_se (what the choice goes by: mean over the folds and its standard
        error), error and error_se, log_loss and log_loss_se (the same for the share of misclassified rows and for the
        log-loss, whatever the choice goes by), gap (the largest certified gap of the pair's fits), and the criterion of
        each fold: criterion_fold0, criterion_fold1, ...
    coef_, intercept_, classes_, objective_, gap_, ... : as in ``WassersteinLogisticRegression``
        Those of the final fit.

    Sample weights are used in the fits and in what is measured on the held-out rows. Class weights are used in the fits
    alone, as in scikit-learn's LogisticRegressionCV and GridSearchCV; ``scoring="balanced_accuracy"`` judges both
    classes alike. "balanced" goes by the classes' shares in all rows, also in the folds.

    Examples
    --------
    >>> import pandas as pd
    >>> from wdrlr import WassersteinLogisticRegressionCV
    >>> X = pd.DataFrame({"colour": ["red", "blue"] * 20, "shape": ["round", "round", "square", "square"] * 10})
    >>> y = X["colour"]
    >>> model = WassersteinLogisticRegressionCV(radii=[0.01, 0.1, 10]).fit(X, y)
    >>> model.radius_  # 10 makes all coefficients 0
    0.01
    >>> model.cv_criterion_.ravel().round(2).tolist()  # log-losses
    [0.01, 0.11, 0.69]
    """

    _parameter_constraints: ClassVar[dict] = {
        **RobustClassifier._parameter_constraints,
        "radii": [StrOptions({"auto"}), Interval(Integral, 2, None, closed="left"), "array-like"],
        "l1_penalties": ["array-like"],
        "cv": ["cv_object"],
        "scoring": [None, StrOptions(set(get_scorer_names())), callable],
        "rule": [StrOptions({"best", "one_standard_error"})],
    }

    def __init__(
        self,
        radii: Sequence[float] | np.ndarray | int | str = "auto",
        l1_penalties: Sequence[float] | np.ndarray = (0.0,),
        cv: Any = 5,
        scoring: str | Callable[..., float] | None = "neg_log_loss",
        rule: str = "best",
        n_jobs: int | None = None,
        label_cost: float | str = np.inf,
        p: float = 1.0,
        norm: str = "l1",
        metric_scale: str | None = None,
        feature_costs: Mapping[Any, Any] | None = None,
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
        verbose: int = 0,
    ) -> None:
        self.radii = radii
        self.l1_penalties = l1_penalties
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.n_jobs = n_jobs
        self.label_cost = label_cost
        self.p = p
        self.norm = norm
        self.metric_scale = metric_scale
        self.feature_costs = feature_costs
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
        self.verbose = verbose

    @property
    def radius(self) -> float:
        """The chosen radius."""
        return self.radius_

    @property
    def l1_penalty(self) -> float:
        """The chosen penalty."""
        return self.l1_penalty_

    __metadata_request__fit: ClassVar = {"groups": UNUSED}  # it is the splitter that requests them

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, **params: Any
    ) -> WassersteinLogisticRegressionCV:
        """Choose radius and penalty, and fit them on all rows.

        Parameters
        ----------
        X, y, sample_weight
            As in ``WassersteinLogisticRegression.fit``.
        groups : array-like of shape (N,) or None
            For a splitter that keeps groups of rows together.
        **params
            Further metadata for the splitter and the scorer, by scikit-learn's metadata routing. With this switched on,
            both get what they request, sample weights and groups included; without it, the scorer gets the sample
            weights and the splitter the groups.

        Raises
        ------
        ValueError
            As in ``WassersteinLogisticRegression.fit``; also if the grid is empty or has a negative number, if a fold
            has no weight or leaves only one class to fit on, if the scorer returns nan, or if there are ``params`` but
            no routing.

        Warns
        -----
        ConvergenceWarning
            If the gap of a fit of the cross-validation, or of the final fit, is above ``tol``.
        SeparableDataWarning
            If there is no optimum at the chosen radius and penalty, see ``WassersteinLogisticRegression``.
        """
        self._forget()
        asked = N_RADII if isinstance(self.radii, str) else self.radii
        radii = [] if isinstance(asked, Integral) else _grid("radii", asked)
        penalties = _grid("l1_penalties", self.l1_penalties)
        model = self._at(0.0, 1.0)
        table, labels, weights = model._learn(X, y, sample_weight, self.categorical_features)
        weighted = model._by_class(labels, weights)
        posed = model._formulation().fit(table, labels, weighted)
        model._warn_of_columns(table, model._formulation(), posed)
        if isinstance(asked, Integral):
            with shown(self.verbose):
                radii = radii_for(at_point(posed.problem, 0.0, 0.0), int(asked))
        grid = list(product(radii, penalties))
        measure = report.measure_of(self.scoring)
        scorer = check_scoring(model, scoring=self.scoring) if measure == "score" else None
        metadata = {"sample_weight": sample_weight, "groups": groups} | params
        to_split, to_score = self._routed({name: one for name, one in metadata.items() if one is not None})
        if "sample_weight" in to_score and scorer is not None and not _takes_weights(scorer):
            raise ValueError(
                "scoring must accept sample_weight if fit has weights; sklearn.metrics.make_scorer makes such a scorer."
            )
        splits = list(check_cv(self.cv, labels, classifier=True).split(table, labels, **to_split))
        if self.rule == "one_standard_error" and len(splits) < 2:
            raise ValueError('rule="one_standard_error" needs at least two folds, but cv gives only one.')
        tasks = (
            delayed(_fit_fold)(
                model,
                posed.encoding,
                grid,
                _Fold(number, table.iloc[train], labels[train], weighted[train]),
                _Fold(number, table.iloc[test], labels[test], weights[test]),
                measure,
                scorer and (scorer, _safe_indexing(X, test), _check_method_params(X, to_score, indices=test)),
            )
            for number, (train, test) in enumerate(splits)
        )
        folds = self._judged(tasks, len(splits), grid, measure)
        results = _summary(grid, folds)
        criterion = results["criterion"].to_numpy()
        one_se = float(results["criterion_se"].to_numpy()[np.argmin(criterion)])
        chosen = choose_point(grid, criterion, allowance=one_se if self.rule == "one_standard_error" else 0.0)
        best = model.set_params(radius=chosen[0], l1_penalty=chosen[1])
        with threads(self.n_jobs):
            best._fit_posed(best._formulation(), posed._replace(problem=at_point(posed.problem, *chosen)))
        worst = max((solution for fold, _ in folds for solution in fold), key=lambda solution: solution.gap)
        warn_if_uncertified(worst, self.tol)
        for name in vars(best).keys() - best.get_params().keys():
            setattr(self, name, getattr(best, name))
        self.radius_, self.l1_penalty_ = chosen
        self.radii_ = np.array(radii)
        self.cv_results_ = results
        self.cv_criterion_ = criterion.reshape(-1, len(self.l1_penalties))
        return self

    def _judged(
        self, tasks: Iterable[Any], n_folds: int, grid: list[tuple[float, float]], measure: str
    ) -> list[tuple[list[Solution], np.ndarray]]:
        """What ``_fit_fold`` returns for every fold, with a line for each if ``verbose`` asks for it."""
        folds, start = [], perf_counter()
        for fold, judged in Parallel(n_jobs=self.n_jobs, return_as="generator")(tasks):
            folds.append((fold, judged))
            if self.verbose:
                best = int(np.argmin(judged[:, 0]))
                print(
                    f"wdrlr: fold {len(folds)} of {n_folds}: {len(grid)} fits, {perf_counter() - start:.1f} s so "
                    f"far, best {report.measured(measure, judged[best, 0])} at radius {grid[best][0]:g}",
                    flush=True,
                )
        return folds

    def get_metadata_routing(self) -> MetadataRouter:
        """Which metadata ``fit`` takes and hands on to the splitter and the scorer; as in scikit-learn."""
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        if report.measure_of(self.scoring) == "score":
            scorer = check_scoring(self, scoring=self.scoring)
            router.add(scorer=scorer, method_mapping=MethodMapping().add(caller="fit", callee="score"))
        return router

    def _routed(self, metadata: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """What of the metadata goes to the splitter, and what to the scorer."""
        if not _routing_enabled():
            known: dict[str, dict[str, Any]] = {"groups": {}, "sample_weight": {}}
            for name in known.keys() & metadata.keys():
                known[name][name] = metadata.pop(name)
            _raise_for_params(metadata, self, "fit")
            return known["groups"], known["sample_weight"]
        routed = process_routing(self, "fit", **metadata)
        return routed.splitter.split, routed.scorer.score if "scorer" in routed else {}

    def _at(self, radius: float, l1_penalty: float) -> WassersteinLogisticRegression:
        """The plain estimator at one point of the grid."""
        parameters = self.get_params(deep=False)
        shared = {name: parameters[name] for name in WassersteinLogisticRegression().get_params() if name in parameters}
        return WassersteinLogisticRegression(radius=radius, l1_penalty=l1_penalty, **shared)


class _Fold(NamedTuple):
    """The rows that a fold leaves for fitting, or those that it holds out."""

    number: int
    table: pd.DataFrame
    labels: np.ndarray  # -1 or +1
    weights: np.ndarray


def radii_for(problem: Problem, number: int) -> list[float]:
    """So many radii that suit a problem."""
    largest = largest_useful_radius(problem)
    if np.isinf(largest):
        metric, units = problem.metric, problem.metric.number_norm.of_units(problem.n_numeric)
        movable = metric.movable(problem.n_numeric)
        moves = (np.ptp(problem.x, axis=0)[movable] * units[movable] / metric.scale).max(initial=0.0)
        largest = metric.typical_change(problem.n_categorical) or float(moves)
    return (largest * np.geomspace(SMALLEST_SHARE, 1.0, number)).tolist() if largest > 0 else [0.0]


def _grid(name: str, values: Any) -> list[float]:
    try:
        values = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a list of numbers, not {values!r}.") from None
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all() or values.min() < 0:
        raise ValueError(f"{name} must be a non-empty list of finite numbers, none below 0, not {values.tolist()}.")
    return values.tolist()


def _fit_fold(
    model: WassersteinLogisticRegression,
    encoding: FeatureEncoding,
    grid: Sequence[tuple[float, float]],
    kept: _Fold,
    held_out: _Fold,
    measure: str,
    scoring: Any,
) -> tuple[list[Solution], np.ndarray]:
    """The solutions at all points of the grid, and ``MEASURED`` on the rows held out; shape (points, 3).

    The criterion is what ``measure`` names, see ``report.measure_of``. ``scoring`` is None, or a scorer,
    the held-out rows as the user passed them, and their metadata.
    """
    for what, part in (("the rows outside", kept), ("the rows of", held_out)):
        if not part.weights.any():
            raise ValueError(f"{what} fold {part.number} of the cross-validation have no weight.")
    if np.unique(kept.labels[kept.weights > 0]).size < 2:
        raise ValueError(
            f"the rows outside fold {kept.number} of the cross-validation are all of one class; use fewer or "
            "stratified folds."
        )
    formulation = model._formulation()
    posed = formulation.pose(encoding, *kept[1:])
    solving = replace(model._solving(), verbose=max(model.verbose - 1, 0))
    solutions = solving.solve_path([at_point(posed.problem, *point) for point in grid])
    problem = formulation.pose(encoding, *held_out[1:]).problem
    judged = np.empty((len(grid), len(MEASURED)))
    for point, solution in enumerate(solutions):
        margin = problem.y * problem.decision(solution.b)
        # As in ``predict``, 0 stands for the first class.
        wrong = np.where(problem.y > 0, margin <= 0, margin < 0)
        error, loss = problem.w @ wrong, problem.w @ log_loss(-margin)
        criterion = error if measure == "error" else loss
        if scoring is not None:
            model._keep(formulation, posed, solution)
            criterion = -_score(model, held_out, *scoring)
        judged[point] = criterion, error, loss
    return solutions, judged


def _takes_weights(scorer: Callable) -> bool:
    parameters = signature(scorer).parameters.values()
    return any(parameter.name == "sample_weight" or parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)


def _score(
    model: WassersteinLogisticRegression, held_out: _Fold, scorer: Callable, X: Any, metadata: dict[str, Any]
) -> float:
    y = model.classes_[(held_out.labels > 0).astype(int)]
    score = float(scorer(model, X, y, **metadata))
    if np.isnan(score):
        raise ValueError(f"scoring returns nan on fold {held_out.number} of the cross-validation; use another scorer.")
    return score


def _summary(grid: Sequence[tuple[float, float]], folds: list[tuple[list[Solution], np.ndarray]]) -> pd.DataFrame:
    judged = np.stack([judged for _, judged in folds])  # (folds, points, 3)
    results = pd.DataFrame(grid, columns=["radius", "l1_penalty"])
    for column, name in enumerate(MEASURED):
        values = judged[:, :, column]
        results[name] = values.mean(axis=0)
        # With one fold there is no standard error.
        results[f"{name}_se"] = values.std(axis=0, ddof=1) / np.sqrt(len(folds)) if len(folds) > 1 else np.nan
    results["gap"] = np.max([[solution.gap for solution in solutions] for solutions, _ in folds], axis=0)
    for number in range(len(folds)):
        results[f"criterion_fold{number}"] = judged[number, :, 0]
    return results


def choose_point(
    grid: Sequence[tuple[float, float]], errors: np.ndarray, ties: str = "largest", allowance: float = 0.0
) -> tuple[float, float]:
    """The pair (radius, gamma) with the smallest error, shape (len(grid),), or one within ``allowance`` of it.

    With `ties` = "largest", ties go to the largest penalty gamma and then to the largest radius; with "smallest", to
    the smallest.
    """
    # Equal errors can differ in the last bit, as sums of fractions; different errors differ by far more than this.
    limit = np.min(errors) + allowance + 1e-12
    tied = [point for point, error in zip(grid, errors, strict=True) if error <= limit]
    pick = max if ties == "largest" else min
    return pick(tied, key=lambda point: (point[1], point[0]))
