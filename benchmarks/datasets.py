"""The data sets: the paper's nineteen, and its synthetic ones. Each is a `Problem` with its equal rows not merged."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from wdrlr.datasets import load_dataset
from wdrlr.estimators.formulation import Formulation
from wdrlr.model.problem import Problem
from wdrlr.paper.cells import prepare_numbers, prepare_reference, split_rows
from wdrlr.paper.protocols import PROTOCOLS
from wdrlr.paper.synthetic import categorical_problem, synthetic_data


def uci(name: str, kappa: str, radius: float) -> Problem:
    """The training part of split 0 of one of the paper's data sets, with protocol "code"'s metric, coding and bound.

    ``kappa`` is "1" or "m".
    """
    return with_metric(uci_rows(name, "pm1", fold=False), kappa, radius, PROTOCOLS["code"].metric_scale)


@lru_cache(maxsize=1)
def uci_rows(name: str, coding: str, fold: bool) -> Problem:
    """The training part of split 0, or the part of it outside its first of five folds; with a bound for "pm1"."""
    protocol = {other.coding: other for other in PROTOCOLS.values()}[coding]
    data = load_dataset(name)
    train, _ = split_rows(len(data.y), name, 0, 0)
    X = prepare_numbers(data.X, train)
    if fold:
        train = train[len(np.array_split(train, 5)[0]) :]
    X = prepare_reference(X, coding).iloc[train]
    labels = np.asarray(data.y, dtype=float)[train]
    formulation = Formulation(0.0, coding=coding, coef_bound=protocol.coef_bound)
    return formulation.pose(formulation.encode(X), X, labels, np.ones(len(labels)), merge=False).problem


def synthetic(N: int, m: int, kappa: str, radius: float, seed: int = 0) -> Problem:
    """N samples with m binary features: Algorithm 3 of the paper (Appendix D), with the metric of Definition 2."""
    data = synthetic_data(N, (2,) * m, seed)
    return with_metric(categorical_problem(data.z, data.y, data.n_levels), kappa, radius)


def as_numbers(problem: Problem) -> Problem:
    """The same 0/1 data with every binary feature as a number, which the adversary may move anywhere on the line."""
    x, none = problem.z.astype(float), problem.z[:, :0]
    numbers = Formulation(problem.radius).problem(x, none, problem.y, problem.w, ())
    return replace(numbers, metric=replace(problem.metric, norm="l1"))


def some_rows(problem: Problem, n_each: int) -> Problem:
    """The first rows of each label: a small problem of the same kind."""
    rows = np.concatenate([np.flatnonzero(problem.y == label)[:n_each] for label in (1, -1)])
    w = np.full(len(rows), 1 / len(rows))
    return replace(problem, x=problem.x[rows], z=problem.z[rows], y=problem.y[rows], w=w)


def with_metric(problem: Problem, kappa: str, radius: float, metric_scale: str | None = None) -> Problem:
    """The problem with another ground metric and radius."""
    label_cost = "n_categorical" if kappa == "m" else float(kappa)
    metric = Formulation(label_cost=label_cost, metric_scale=metric_scale).metric(
        problem.n_numeric, problem.n_categorical
    )
    return replace(problem, metric=metric, radius=float(radius))
