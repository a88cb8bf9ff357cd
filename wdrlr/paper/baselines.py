"""The peers that the paper compares with: MT and PI (LR and r-LR are the paper's problem at radius 0).

MT [1, 2] treats every dummy as a number: the adversary may move it continuously. PI [3] is l1-penalised logistic
regression with a penalty that follows from the data without cross-validation. Both are special cases of
``wdrlr.model.problem.Problem``, so the same solvers minimise and certify them.

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
import pandas as pd
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _check_sample_weight, _num_samples

from wdrlr.estimators.classifier import WassersteinLogisticRegression
from wdrlr.model.metric import GroundMetric
from wdrlr.model.problem import Problem

N_SIMULATIONS = 10_000
"""Draws of Z behind the quantile of PI: its relative standard error is then below 1 %."""


class ContinuousLogisticRegression(WassersteinLogisticRegression):
    """MT: Wasserstein logistic regression in which every dummy is a number.

        minimise over b and lam:  lam radius + sum_i w_i s_i
        subject to  s_i >= L(-y_i f(x_i)),   s_i >= L(y_i f(x_i)) - lam kappa / scale,
                    |b_j| <= lam / scale for a number,   c |b_j| <= lam / scale for a dummy

    where L(a) = log(1 + e^a), f(x) = b_0 + b.x with x the numbers and the dummies, and c is how far a dummy moves when
    it flips: 1 with the coding "onehot", 2 with "pm1". The ground metric is thus the l1 norm over numbers and dummies,
    a flip counting 1 as in Section 2.2 of the paper, plus kappa for the label. The reference level is at distance 1
    from every other level, and two levels that are both not the reference are 2 apart. Source: [1], Theorem 1; the
    paper does not say which norm and which weights of the dummies it took for MT.

    Parameters
    ----------
    radius, label_cost, metric_scale, categorical_features, coding, solver, conic_solver, tol, max_iter, verbose
        As in ``WassersteinLogisticRegression``; "n_categorical" and "unit" count features, not dummies.
    coef_bound : float or None, default None
        Bound on the size of every coefficient. With the coding "pm1", a number's slope is bounded by twice this.

    Attributes
    ----------
    coef_, intercept_, objective_, gap_, n_iter_, n_cuts_, ...
        As there, except that ``solution_`` has the slopes of numbers halved with the coding "pm1".

    Examples
    --------
    >>> import pandas as pd
    >>> from wdrlr.paper.baselines import ContinuousLogisticRegression
    >>> X = pd.DataFrame({"colour": ["red", "red", "blue", "blue", "red", "blue"], "size": [1.0, 2, 3, 2, 1, 3]})
    >>> model = ContinuousLogisticRegression(radius=0.1).fit(X, [0, 0, 1, 1, 0, 1])
    >>> bool(model.gap_ <= 1e-6)
    True
    """

    flip_cost = 1.0  # what a dummy's flip costs; 2 is |z - z'| between -1 and +1

    # What the base class reads and what is fixed here.
    p, norm, l1_penalty, penalize_intercept, fit_intercept = 1.0, "l1", 0.0, False, True
    handle_unknown, solver_options, warm_start = "error", None, False
    categories_are_numbers = True

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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ContinuousLogisticRegression:
        """Fit the model; as ``WassersteinLogisticRegression.fit``."""
        super().fit(X, y, sample_weight)
        self.coef_ = self.coef_ * self._stretch()
        return self

    def _coefficients(self) -> np.ndarray:
        return np.concatenate([self.intercept_, self.coef_[0] / self._stretch()])

    def _features(self, x: np.ndarray, z: np.ndarray) -> pd.DataFrame:
        # Its worst case leaves the levels, so dummies are what there is to show.
        return pd.DataFrame(x / self._stretch(), columns=self.get_feature_names_out())

    def _problem(self, table: pd.DataFrame, labels: np.ndarray, sample_weight: Any, merge: bool = True) -> Problem:
        # A dummy moves by c for the cost of 1. The metric with c times its costs, over c times its scale, is the same,
        # and in it every dummy counts as it moves, so that all slopes of dummies keep their meaning.
        mixed = super()._problem(table, labels, sample_weight, merge)
        everything = mixed.design(np.arange(mixed.n_samples), mixed.z)[:, 1:]
        c = self._move()
        return replace(
            mixed,
            x=everything * self._stretch(),
            z=np.zeros((mixed.n_samples, 0), dtype=mixed.z.dtype),
            n_levels=(),
            level_matrix=np.zeros((0, 0)),
            metric=GroundMetric(c * mixed.metric.label_cost, scale=c * mixed.metric.scale),
        )

    def _move(self) -> float:
        """c, how far a dummy moves for the cost of 1."""
        return (2.0 if self.coding == "pm1" else 1.0) / self.flip_cost

    def _stretch(self) -> np.ndarray:
        """c for a number, 1 for a dummy: by what the columns are multiplied, and the slopes divided; shape (n + k,)."""
        n, k = len(self.encoding_.numeric), sum(self.encoding_.n_levels) - len(self.encoding_.n_levels)
        return np.repeat([self._move(), 1.0], [n, k])


class ProfileInferenceLogisticRegression(WassersteinLogisticRegression):
    """PI: l1-penalised logistic regression whose penalty is a quantile, without cross-validation.

        minimise over b:  sum_i w_i L(-y_i f(x_i)) + penalty ||b||_1,     penalty = eta / sqrt(N),

    where eta is the (1 - alpha) quantile of ||Z||_inf, Z normal with mean 0 and covariance E[x x'], and x holds a
    constant, the numbers and the dummies (-1/+1, the last level dropped). The intercept is penalised too. Source: [3],
    whose limit law for the logistic loss has the covariance E[x x' / (1 + exp(y f(x)))^2]; the one taken here is
    larger, and free of the unknown b. eta is found by simulation of ``N_SIMULATIONS`` draws.

    N is the number of rows or, with sample weights, their sum. Weights are thus counts: the penalty depends on how many
    rows there are, and only so is a row of weight 3 the same as three rows. Scale other weights to the sum of rows that
    they are worth, for example (sum w)^2 / sum w^2.

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
        What its simulation took.
    coef_, intercept_, objective_, gap_, n_iter_, n_cuts_, ...
        As there.

    Examples
    --------
    >>> import pandas as pd
    >>> from wdrlr.paper.baselines import ProfileInferenceLogisticRegression
    >>> X = pd.DataFrame({"colour": ["red", "blue"] * 50})
    >>> model = ProfileInferenceLogisticRegression().fit(X, [0, 1] * 50)
    >>> round(model.penalty_, 2)  # both columns of x have the variance 1, and they are uncorrelated
    0.22
    """

    radius, label_cost, p, norm, metric_scale, coef_bound = 0.0, 1.0, 1.0, "l1", None, None
    l1_penalty, penalize_intercept, fit_intercept = 0.0, True, True
    categorical_features, coding, handle_unknown = "from_dtype", "pm1", "error"
    solver_options, warm_start = None, False

    _parameter_constraints: ClassVar[dict] = {
        **WassersteinLogisticRegression._parameter_constraints,
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

    def _encode(self, X: Any, y: Any, sample_weight: Any) -> Problem:
        problem = super()._encode(X, y, sample_weight)
        start = perf_counter()
        n_rows = _check_sample_weight(sample_weight, np.empty((_num_samples(y), 0)), dtype=np.float64).sum()
        if n_rows < 2:
            raise ValueError(
                f"sample_weight sums to {n_rows:.3g}, but it counts rows here, and two classes need at least 2; scale "
                "it so that its sum is the number of rows that it stands for."
            )
        rows = problem.design(np.arange(problem.n_samples), problem.z)
        second_moments = rows.T @ (problem.w[:, None] * rows)
        eta = quantile_of_largest(second_moments, self.alpha, np.random.default_rng(self.random_state))
        self.penalty_ = float(eta / np.sqrt(n_rows))
        self.identification_seconds_ = perf_counter() - start
        penalty = np.full(problem.n_coefficients, self.penalty_)
        penalty[0] *= self.penalize_intercept
        return replace(problem, penalty=penalty)


def quantile_of_largest(covariance: np.ndarray, alpha: float, rng: np.random.Generator) -> float:
    """The (1 - alpha) quantile of max_j |Z_j|, Z normal with mean 0 and the given covariance (p, p), by simulation."""
    values, vectors = np.linalg.eigh(covariance)
    # The covariance can be singular: a Cholesky factor need not exist.
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    Z = rng.standard_normal((N_SIMULATIONS, len(values))) @ root.T
    return float(np.quantile(np.abs(Z).max(axis=1), 1.0 - alpha))
