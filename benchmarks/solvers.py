"""The solvers. As in benchopt, each is set up with a problem, timed while it runs, and asked for its result afterwards.

Only `run` is timed. This includes merging equal rows, but not making a matrix for a solver that needs one.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from wdrlr.model.problem import Problem
from wdrlr.paper.runtimes import MAX_ITER, WAYS
from wdrlr.solvers.registry import solve


class Answer(NamedTuple):
    """Coefficients, a lower bound on the optimal value, rounds made, and rounds expected until the end."""

    b: np.ndarray
    lower: float = -np.inf
    rounds: int = 0
    expected_rounds: float = np.nan


class Registered:
    """A solver of this package: merges equal rows, then solves to the gap `stop`. Conic programs are Clarabel's."""

    def __init__(self, problem: Problem, name: str):
        self.problem, self.name = problem, name

    def run(self, stop: float, max_iter: int = MAX_ITER) -> None:
        self.solution = solve(self.problem.merged(), *WAYS[self.name], "CLARABEL", stop, max_iter)

    def result(self) -> Answer:
        return Answer(self.solution.b, self.solution.lower, self.solution.n_rounds)


class Algorithm1(Registered):
    """Algorithm 1 as the paper has it, one cut per label and round; ends at a gap of 1e-6 or after `stop` rounds."""

    def run(self, stop: float) -> None:
        super().run(1e-6, int(stop))

    def result(self) -> Answer:
        return super().result()._replace(expected_rounds=expected_rounds(self.solution.bounds))


class Logistic:
    """scikit-learn's plain logistic regression on the matrix of numbers and 0/1 dummies (no radius, no bound)."""

    def __init__(self, problem: Problem, sparse: bool = False):
        self.problem = problem
        n_all, (N, m) = sum(problem.n_levels), problem.z.shape
        self.kept = np.delete(np.arange(n_all), problem.offsets)  # the first level of a feature has no dummy
        ends = m * np.arange(N + 1)
        levels = sp.csr_array((np.ones(N * m), (problem.z + problem.offsets).ravel(), ends), shape=(N, n_all))
        X = sp.hstack([sp.csr_array(problem.x), levels[:, self.kept]], format="csr")
        self.X = X if sparse else X.toarray()

    def run(self, stop: float) -> None:
        self.model = LogisticRegression(C=np.inf, solver="lbfgs", tol=stop, max_iter=2000).fit(self.X, self.problem.y)

    def result(self) -> Answer:
        problem, coef = self.problem, self.model.coef_[0]
        scores = np.zeros(sum(problem.n_levels))
        scores[self.kept] = coef[problem.n_numeric :]
        # The problem's coding gives the same scores up to a constant per feature.
        intercept, slopes = self.model.intercept_[0], [coef[: problem.n_numeric]]
        for j in range(problem.n_categorical):
            shift, of_feature = problem.slopes_of_scores(j, scores[problem.levels(j)])
            intercept += shift
            slopes.append(of_feature)
        return Answer(np.concatenate([[intercept], *slopes]), rounds=int(self.model.n_iter_[0]))


class Dro:
    """The package `dro`, which takes only numbers, with its defaults (Clarabel)."""

    def __init__(self, problem: Problem):
        from dro.linear_model.wasserstein_dro import WassersteinDRO

        if problem.n_categorical or problem.metric.norm != "l1" or problem.metric.scale != 1.0:
            raise ValueError("dro solves problems with only numbers, here with the l1 norm and the unscaled metric.")
        self.problem = problem
        self.model = WassersteinDRO(problem.n_numeric, model_type="logistic")
        self.model.update({"eps": problem.radius, "p": 1, "kappa": problem.metric.label_cost})

    def run(self, stop: float) -> None:
        self.model.fit(self.problem.x, self.problem.y)

    def result(self) -> Answer:
        return Answer(np.concatenate([[float(self.model.b)], np.ravel(self.model.theta)]))


OURS = "tailored"
"""The solver with which the others are compared."""

SOLVERS = {
    OURS: partial(Registered, name=OURS),
    "all-violated": partial(Registered, name="all-violated"),
    "algorithm1": partial(Algorithm1, name="algorithm1"),
    "logistic": Logistic,
    "logistic-sparse": partial(Logistic, sparse=True),
    "dro": Dro,
}


def expected_rounds(bounds: tuple[tuple[float, float], ...], gap: float = 1e-3) -> float:
    """Rounds that Algorithm 1 needs to reach a small gap, extrapolated from those that it has made.

    A line is fitted to the logarithm of UB - LB over the last half of the rounds; the result is where it meets `gap`.
    That is not the final 1e-6: from about 1e-3 on the gap closes abruptly, so the result tends to be too low. It is nan
    if there are fewer than 10 rounds or the gap does not fall.
    """
    if len(bounds) < 10:
        return np.nan
    lower, upper = np.array(bounds).T
    late = np.arange(len(bounds) // 2, len(bounds))
    gaps = np.maximum(upper - lower, 1e-12)[late]
    if not gaps[-1] < gaps[0]:
        return np.nan
    slope, start = np.polyfit(late + 1, np.log(gaps), 1)
    return max(float(len(bounds)), float(np.log(gap) - start) / slope)
