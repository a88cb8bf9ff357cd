"""The data sets: the paper's nineteen, and its synthetic ones. Each is a `Problem` whose equal rows are not merged."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from wdrlr.datasets import load_dataset
from wdrlr.model.encoding import fit_encoding, level_matrix
from wdrlr.model.metric import ground_metric
from wdrlr.model.problem import Problem
from wdrlr.paper.cells import prepare_numbers, prepare_reference, split_rows
from wdrlr.paper.protocols import PROTOCOLS
from wdrlr.paper.synthetic import categorical_problem, synthetic_data


def uci(name: str, kappa: str, radius: float) -> Problem:
    """The training part of split 0 of one of the paper's data sets, under the protocol "code".

    ``kappa`` is "1" or "m".
    """
    return with_metric(uci_rows(name, "pm1", fold=False), kappa, radius, PROTOCOLS["code"].metric_scale)


@lru_cache(maxsize=1)
def uci_rows(name: str, coding: str, fold: bool) -> Problem:
    """The training part of split 0, or what the first of its five folds leaves of it; with a bound for "pm1"."""
    protocol = {other.coding: other for other in PROTOCOLS.values()}[coding]
    data = load_dataset(name)
    train, _ = split_rows(len(data.y), name, 0, 0)
    X = prepare_numbers(data.X, train)
    if fold:
        train = train[len(np.array_split(train, 5)[0]) :]
    X = prepare_reference(X, coding).iloc[train]
    encoding = fit_encoding(X, "from_dtype")
    return _problem(
        encoding.numbers(X),
        encoding.codes(X, "error"),
        np.asarray(data.y, dtype=float)[train],
        encoding.n_levels,
        coding,
        np.inf if protocol.coef_bound is None else protocol.coef_bound,
    )


def synthetic(N: int, m: int, kappa: str, radius: float, seed: int = 0) -> Problem:
    """N samples with m binary features: Algorithm 3 of the paper (Appendix D), with the metric of Definition 2."""
    data = synthetic_data(N, (2,) * m, seed)
    return with_metric(categorical_problem(data.z, data.y, data.n_levels), kappa, radius)


def as_numbers(problem: Problem) -> Problem:
    """The same 0/1 data with every binary feature as a number, which the adversary may move anywhere on the line."""
    numbers = _problem(problem.z.astype(float), problem.z[:, :0], problem.y, (), "onehot", np.inf)
    metric = replace(problem.metric, norm="l1")
    return replace(numbers, metric=metric, radius=problem.radius)


def some_rows(problem: Problem, n_each: int) -> Problem:
    """The first rows of each label: a small problem of the same kind."""
    rows = np.concatenate([np.flatnonzero(problem.y == label)[:n_each] for label in (1, -1)])
    w = np.full(len(rows), 1 / len(rows))
    return replace(problem, x=problem.x[rows], z=problem.z[rows], y=problem.y[rows], w=w)


def with_metric(problem: Problem, kappa: str, radius: float, metric_scale: str | None = None) -> Problem:
    """The problem with another ground metric and radius."""
    label_cost = "n_categorical" if kappa == "m" else float(kappa)
    metric = ground_metric(label_cost, problem.n_numeric, problem.n_categorical, metric_scale=metric_scale)
    return replace(problem, metric=metric, radius=float(radius))


def _problem(x, z, y, n_levels, coding: str, coef_bound: float) -> Problem:
    """A problem without penalty whose metric and radius are still to be set."""
    matrix = level_matrix(n_levels, coding)
    return Problem(
        x=x,
        z=z,
        y=y,
        w=np.full(len(y), 1 / len(y)),
        n_levels=n_levels,
        level_matrix=matrix,
        metric=ground_metric(1.0, x.shape[1], z.shape[1]),
        radius=0.0,
        penalty=np.zeros(1 + x.shape[1] + matrix.shape[1]),
        coef_bound=coef_bound,
    )
