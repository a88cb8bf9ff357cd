"""The data sets: the paper's nineteen, its synthetic ones, and larger ones of numbers and categories.

A `Problem` has its equal rows not merged.
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pandas as pd
from scipy.special import expit

from wdrlr.datasets import load_dataset
from wdrlr.estimators.formulation import Formulation
from wdrlr.model.problem import Problem, level_offsets
from wdrlr.paper.cells import prepare_numbers, prepare_reference, split_rows
from wdrlr.paper.protocols import N_FOLDS, PROTOCOLS
from wdrlr.paper.synthetic import categorical_problem, synthetic_data

KAPPAS = ("1", "m")
"""Costs of a label: 1, and the number of features with categories."""

MIXED = (8, (2, 3, 4, 5, 10, 15, 20, 40))
"""Eight numbers, and the levels of eight categories, 99 in all."""


def uci(name: str, kappa: str, radius: float) -> Problem:
    """The training part of split 0 of one of the paper's data sets, with protocol "code"'s metric, coding and bound.

    ``kappa`` is "1" or "m".
    """
    return with_metric(uci_rows(name, "pm1", fold=False), kappa, radius, PROTOCOLS["code"].metric_scale)


@lru_cache(maxsize=1)
def uci_rows(name: str, coding: str, fold: bool) -> Problem:
    """The training part of split 0, or the part of it outside its first fold; with a bound for "pm1"."""
    protocol = {other.coding: other for other in PROTOCOLS.values()}[coding]
    data = load_dataset(name)
    train, _ = split_rows(len(data.y), name, 0, 0)
    X = prepare_numbers(data.X, train)
    if fold:
        train = train[len(np.array_split(train, N_FOLDS)[0]) :]
    X = prepare_reference(X, coding).iloc[train]
    labels = np.asarray(data.y, dtype=float)[train]
    formulation = Formulation(0.0, coding=coding, coef_bound=protocol.coef_bound)
    return formulation.pose(formulation.encode(X), X, labels, np.ones(len(labels)), merge=False).problem


def synthetic(N: int, m: int, kappa: str, radius: float, seed: int = 0) -> Problem:
    """N samples with m binary features: Algorithm 3 of the paper (Appendix D), with the metric of Definition 2."""
    data = synthetic_data(N, (2,) * m, seed)
    return with_metric(categorical_problem(data.z, data.y, data.n_levels), kappa, radius)


def logistic_rows(
    N: int, n: int, n_levels: tuple[int, ...] = (), seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, z, y: Gaussian numbers, uniform levels, and labels from a logistic model.

    The n + m terms of its f, the product of a number with its slope or the score of a level, have variance 1 / (n + m).
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, n))
    z = rng.integers(0, np.array(n_levels, dtype=np.int64), (N, len(n_levels)))
    b = rng.normal(size=n + sum(n_levels)) / np.sqrt(n + len(n_levels))
    f = x @ b[:n] + b[n:][z + level_offsets(n_levels)].sum(axis=1)
    return x, z, np.where(rng.random(N) < expit(f), 1.0, -1.0)


def logistic_problem(
    N: int, n: int, n_levels: tuple[int, ...] = (), *, kappa: str, radius: float, norm: str = "l1"
) -> Problem:
    """The problem of `logistic_rows` with Definition 2's metric."""
    x, z, y = logistic_rows(N, n, n_levels)
    return Formulation(radius, label_cost(kappa), norm=norm).problem(x, z, y, np.full(N, 1 / N), n_levels)


def logistic_table(N: int, n: int, n_levels: tuple[int, ...]) -> tuple[pd.DataFrame, np.ndarray]:
    """`logistic_rows` as a user has them: a table with categorical columns, and labels."""
    x, z, y = logistic_rows(N, n, n_levels)
    columns = {f"x{i}": pd.Series(column) for i, column in enumerate(x.T)}
    columns |= {
        f"z{j}": pd.Series(pd.Categorical.from_codes(codes, [f"v{v}" for v in range(n_levels[j])]))
        for j, codes in enumerate(z.T)
    }
    return pd.DataFrame(columns), y


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
    formulation = Formulation(label_cost=label_cost(kappa), metric_scale=metric_scale)
    metric = formulation.metric(problem.n_numeric, problem.n_categorical)
    return replace(problem, metric=metric, radius=float(radius))


def label_cost(kappa: str) -> float | str:
    """The classifier's parameter for kappa, "m" or a number."""
    return "n_categorical" if kappa == "m" else float(kappa)
