"""The baselines that the paper compares with: MT and PI (LR and r-LR are the paper's problem at radius 0).

MT [1, 2] treats every dummy as a number: the adversary may move it continuously. PI [3] is l1-penalised logistic
regression with a penalty computed from the data without cross-validation. Both are special cases of
``wdrlr.model.problem.Problem``, so the same solvers and the same certificate serve them.

References
----------
[1] Shafieezadeh-Abadeh, Mohajerin Esfahani and Kuhn, "Distributionally robust logistic regression", NeurIPS 2015.
[2] Shafieezadeh-Abadeh, Kuhn and Mohajerin Esfahani, "Regularization via mass transportation", JMLR 20 (2019).
[3] Blanchet, Kang and Murthy, "Robust Wasserstein profile inference and applications to machine learning", Journal of
    Applied Probability 56 (2019).
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval

from wdrlr.estimators.base import RobustClassifier
from wdrlr.estimators.solving import at_point
from wdrlr.model.problem import Problem

N_SIMULATIONS = 10_000
"""Draws of Z for PI's quantile; with these its relative standard error is below 1 %."""


def dummy_values(problem: Problem) -> tuple[float, float]:
    """The two values of a dummy: 0 and 1, or with the coding "pm1" -1 and +1."""
    values = problem.level_matrix.data
    return float(values.min(initial=0.0)), float(values.max(initial=1.0))


def dummies_as_numbers(problem: Problem, flip_cost: float | None = None) -> tuple[Problem, np.ndarray]:
    """MT's problem of the same rows: every dummy is a number.

    It moves at the cost of the distance, so that a flip costs 1 with the coding "onehot" and 2 with "pm1". With a
    ``flip_cost``, it moves by c at the cost of 1, c the difference of its values over that. Multiplying both the costs
    and the scale by c leaves the metric the same, and the distance of a dummy is then simply how far it moves, so that
    the slopes of the dummies keep their meaning.

    Returns
    -------
    Problem
    stretch : ndarray of shape (n + k,)
        c for a number, 1 for a dummy: the columns are multiplied by it, and the slopes divided.
    """
    low, high = dummy_values(problem)
    c = 1.0 if flip_cost is None else (high - low) / flip_cost
    stretch = np.repeat([c, 1.0], [problem.n_numeric, problem.level_matrix.shape[1]])
    changed = replace(
        problem,
        x=problem.design(np.arange(problem.n_samples), problem.z)[:, 1:] * stretch,
        z=np.zeros((problem.n_samples, 0), dtype=problem.z.dtype),
        n_levels=(),
        level_matrix=np.zeros((0, 0)),
        metric=replace(problem.metric, label_cost=c * problem.metric.label_cost, scale=c * problem.metric.scale),
    )
    return changed, stretch


class ContinuousLogisticRegression(RobustClassifier):
    """MT: Wasserstein logistic regression in which every dummy is a number.

        minimise over b and lam:  lam radius + sum_i w_i s_i
        subject to  s_i >= L(-y_i f(x_i)),   s_i >= L(y_i f(x_i)) - lam kappa / scale,
                    |b_j| <= lam / scale

    where L(a) = log(1 + e^a), and f(x) = b_0 + b.x with x the numbers and the dummies. The ground metric is thus the l1
    norm over numbers and dummies, plus kappa for the label: a dummy's flip counts 1 with the coding "onehot" and 2 with
    "pm1". The reference level is at that distance from every other level, and two other levels are twice as far
    apart. Source: [1], Theorem 1; the paper does not say which norm and which weights of the dummies it used for MT.
    Its printed errors are nearer to those of a flip that counts 2 than to those of one that counts 1, as in the example
    of Section 2.2 (see the notebook ``differences``).

    Parameters
    ----------
    radius, label_cost, metric_scale, categorical_features, coding, solver, conic_solver, tol, max_iter, verbose
        As in ``WassersteinLogisticRegression``; "n_categorical" and "unit" count features, not dummies.
    coef_bound : float or None, default None
        Bound on the size of every coefficient.

    Attributes
    ----------
    coef_, intercept_, objective_, gap_, n_iter_, n_cuts_, ...
        As in ``WassersteinLogisticRegression``.

    Examples
    --------
    >>> import pandas as pd
    >>> from wdrlr.paper.baselines import ContinuousLogisticRegression
    >>> X = pd.DataFrame({"colour": ["red", "red", "blue", "blue", "red", "blue"], "size": [1.0, 2, 3, 2, 1, 3]})
    >>> model = ContinuousLogisticRegression(radius=0.1).fit(X, [0, 0, 1, 1, 0, 1])
    >>> bool(model.gap_ <= 1e-6)
    True
    """

    def __init__(
        self,
        radius: float = 0.01,
        label_cost: float | str = 1.0,
        metric_scale: str | None = None,
        categorical_features: Any = "from_dtype",
        coding: str = "onehot",
        coef_bound: float | None = None,
        solver: str = "auto",
        conic_solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        verbose: int = 0,
    ) -> None:
        self.radius = radius
        self.label_cost = label_cost
        self.metric_scale = metric_scale
        self.categorical_features = categorical_features
        self.coding = coding
        self.coef_bound = coef_bound
        self.solver = solver
        self.conic_solver = conic_solver
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ContinuousLogisticRegression:
        """Fit the model; as ``WassersteinLogisticRegression.fit``."""
        self._forget()
        formulation = self._formulation(change=dummies_as_numbers)
        return self._fit_posed(formulation, self._posed(formulation, X, y, sample_weight))


class ProfileInferenceLogisticRegression(RobustClassifier):
    """PI: l1-penalised logistic regression whose penalty is a quantile, without cross-validation.

        minimise over b:  sum_i w_i L(-y_i f(x_i)) + penalty ||b||_1,     penalty = eta / sqrt(N),

    where eta is the (1 - alpha) quantile of ||Z||_inf, Z is normal with mean 0 and covariance E[x x'], and x holds a
    constant, the numbers and the dummies (-1/+1, the last level dropped). The intercept is penalised too. Source: [3],
    whose limit law for the logistic loss has the covariance E[x x' / (1 + exp(y f(x)))^2]; the covariance used here is
    larger, and does not depend on the unknown b. eta is found by simulation, from ``N_SIMULATIONS`` draws.

    N is the number of rows or, with sample weights, the sum of the weights. Weights are thus counts: the penalty
    depends on the number of rows, so a row of weight 3 must count as three rows. Scale other weights so that their sum
    is the number of rows that they are worth, for example (sum w)^2 / sum w^2.

    Parameters
    ----------
    alpha : float, default 0.05
    random_state : int, default 0
        Seed of the simulation.
    solver, conic_solver, tol, max_iter, verbose
        As in ``WassersteinLogisticRegression``.

    Attributes
    ----------
    penalty_ : float
        eta / sqrt(N), N the sum of the sample weights.
    identification_seconds_ : float
        Seconds of the simulation.
    coef_, intercept_, objective_, gap_, n_iter_, n_cuts_, ...
        As in ``WassersteinLogisticRegression``.

    Examples
    --------
    >>> import pandas as pd
    >>> from wdrlr.paper.baselines import ProfileInferenceLogisticRegression
    >>> X = pd.DataFrame({"colour": ["red", "blue"] * 50})
    >>> model = ProfileInferenceLogisticRegression().fit(X, [0, 1] * 50)
    >>> round(model.penalty_, 2)  # both columns of x have the variance 1, and they are uncorrelated
    0.22
    """

    _parameter_constraints: ClassVar[dict] = {
        **RobustClassifier._parameter_constraints,
        "alpha": [Interval(Real, 0, 1, closed="neither")],
        "random_state": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        alpha: float = 0.05,
        random_state: int = 0,
        solver: str = "auto",
        conic_solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.random_state = random_state
        self.solver = solver
        self.conic_solver = conic_solver
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ProfileInferenceLogisticRegression:
        """Find the penalty and fit the model; as ``WassersteinLogisticRegression.fit``."""
        self._forget()
        unit = self._formulation(radius=0.0, l1_penalty=1.0, penalize_intercept=True, coding="pm1")
        rows = self._learn(X, y, sample_weight, unit.categorical_features)
        posed = unit.fit(*rows)
        start = perf_counter()
        self.penalty_ = profile_penalty(posed.problem, rows[2].sum(), self.random_state, self.alpha)
        self.identification_seconds_ = perf_counter() - start
        posed = posed._replace(problem=at_point(posed.problem, 0.0, self.penalty_))
        return self._fit_posed(replace(unit, l1_penalty=self.penalty_), posed)


def profile_penalty(problem: Problem, n_rows: float, random_state: int, alpha: float = 0.05) -> float:
    """The penalty of PI, eta / sqrt(n_rows); see ``ProfileInferenceLogisticRegression``.

    Raises
    ------
    ValueError
        If there are fewer than 2 rows.
    """
    if n_rows < 2:
        raise ValueError(
            f"sample_weight sums to {n_rows:.3g}, but it counts rows here, and two classes need at least 2; scale "
            "it so that its sum is the number of rows that it represents."
        )
    rows = problem.design(np.arange(problem.n_samples), problem.z)
    second_moments = rows.T @ (problem.w[:, None] * rows)
    return float(quantile_of_largest(second_moments, alpha, np.random.default_rng(random_state)) / np.sqrt(n_rows))


def quantile_of_largest(covariance: np.ndarray, alpha: float, rng: np.random.Generator) -> float:
    """The (1 - alpha) quantile of max_j |Z_j|, Z normal with mean 0 and the given covariance (p, p), by simulation."""
    values, vectors = np.linalg.eigh(covariance)
    # The covariance can be singular: a Cholesky factor need not exist.
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    Z = rng.standard_normal((N_SIMULATIONS, len(values))) @ root.T
    return float(np.quantile(np.abs(Z).max(axis=1), 1.0 - alpha))
