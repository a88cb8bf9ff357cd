"""The solvers. As in benchopt, each is set up with a problem, timed while it runs, and asked for its result afterwards.

Only `run` is timed. This includes merging equal rows, but not making a matrix for a solver that needs one.
"""

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression

from wdrlr.model.problem import Problem, merge_duplicates
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
        x, z, y, w = merge_duplicates(self.problem.x, self.problem.z, self.problem.y, self.problem.w)
        merged = replace(self.problem, x=x, z=z, y=y, w=w)
        self.solution = solve(merged, *WAYS[self.name], "CLARABEL", stop, max_iter)

    def result(self) -> Answer:
        return Answer(self.solution.b, self.solution.lower, self.solution.n_rounds)


class Algorithm1(Registered):
    """Algorithm 1 as the paper has it, one cut per label and round; ends at a gap of 1e-6 or after `stop` rounds."""

    def run(self, stop: float) -> None:
        super().run(1e-6, int(stop))

    def result(self) -> Answer:
        return super().result()._replace(expected_rounds=expected_rounds(self.solution.bounds))


class Logistic:
    """scikit-learn's plain logistic regression on the dense matrix of numbers and 0/1 dummies (no radius, no bound)."""

    def __init__(self, problem: Problem):
        self.problem = problem
        levels = np.cumsum([0, *problem.n_levels])[:-1]
        self.kept = np.delete(np.arange(sum(problem.n_levels)), levels)  # the first level of a feature has no dummy
        dummies = np.zeros((problem.n_samples, sum(problem.n_levels)))
        np.put_along_axis(dummies, problem.z + problem.offsets, 1.0, axis=1)
        self.X = np.ascontiguousarray(np.hstack([problem.x, dummies[:, self.kept]]))

    def run(self, stop: float) -> None:
        self.model = LogisticRegression(C=np.inf, solver="lbfgs", tol=stop, max_iter=2000).fit(self.X, self.problem.y)

    def result(self) -> Answer:
        problem, coef = self.problem, self.model.coef_[0]
        scores = np.zeros(sum(problem.n_levels))
        scores[self.kept] = coef[problem.n_numeric :]
        # The problem's coding gives the same scores up to a constant per feature.
        constants = np.repeat(np.eye(problem.n_categorical), problem.n_levels, axis=0)
        solution = np.linalg.lstsq(np.hstack([problem.level_matrix, constants]), scores)[0]
        slopes, shift = np.split(solution, [problem.level_matrix.shape[1]])
        intercept = self.model.intercept_[0] + shift.sum()
        return Answer(
            np.concatenate([[intercept], coef[: problem.n_numeric], slopes]), rounds=int(self.model.n_iter_[0])
        )


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
