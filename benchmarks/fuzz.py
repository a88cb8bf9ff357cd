"""Random problems through the public interface, each fit checked: `python -m benchmarks.fuzz --minutes 60`.

Only public names of the package are used. What a fit reports is compared with the objective

    F(b) = min over lam of  lam radius + sum_i w_i max_{z, y} [ log(1 + exp(-y f(x_i, z))) - lam d ]  + penalty,

with lam >= scale * dual_norm(b_N), z over all combinations of levels and y over both labels, which is enumerated here
in extended precision and minimised over all breakpoints in lam.

Each instance is made from one integer; `python -m benchmarks.fuzz --instance 123` shows it in full. Kinds of outcome:

    wrong          the objective is not F at the coefficients; or a certified lower bound is above F at other feasible
                   coefficients; or gap, objective and lower bound are inconsistent; or certified and above log 2;
                   or infeasible coefficients; or a path that differs from its fits; or a worst-case loss or largest
                   radius that F contradicts
    exception      any error other than a refusal, a RuntimeWarning, or a call that does not end within a minute
    nan            coefficients or bounds that are not numbers
    silent         a gap above the tolerance without a ConvergenceWarning
    contradiction  a lower bound above the objective, which the library reports by an infinite gap and a warning
    uncertified    a gap above the tolerance, with the warning
    stopped        the same, but with a small max_iter
    unsolved       a conic solver returned no point (ConicSolverError, documented)
    refused        a ValueError
    slow           certified, but in more than 100 times the median seconds of its solver and number of rows
    certified      a gap within the tolerance, and no other fault

The command fails (exit code 1) if any of the first five occurs.
"""

import argparse
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.optimize import minimize_scalar
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from wdrlr import WassersteinLogisticRegression, fit_path, radius_max

FAILURES = ("wrong", "exception", "nan", "silent", "contradiction")
SECONDS = 60.0
"""Calls that take longer are abandoned."""
SLOW = 100.0
"""A call is slow at this many times the median seconds of the same solver and number of rows."""
FINE = 1e-9
"""The tolerance of the fit whose coefficients test the lower bounds of the others."""
LARGEST_SCORE = 1e3
"""At radius 0 without a bound, a lower bound holds for coefficients of limited size; larger ones prove nothing."""
UNIT = 2.0**-53
Real = np.longdouble
"""Extended precision, if the machine has it; the allowance for rounding takes its precision into account."""


# The instances


@dataclass(frozen=True, eq=False)
class Instance:
    """A table, its labels and weights, and all parameters of its fits.

    Attributes
    ----------
    seed : int
    x, z, y : ndarrays of shapes (N, n), (N, m), (N,)
        Numbers, level codes and labels -1, +1, as the table has them.
    w : ndarray of shape (N,) or None
        Sample weights, not normalised.
    n_levels : tuple of m int
        Declared or, where nothing is declared, observed levels.
    table, target : DataFrame or ndarray, ndarray of shape (N,)
        What is passed to the package.
    size : float
        Magnitude of the numbers; 1 if there are none.
    size_class : str
        Rows and numbers in words.
    problem : dict
        The parameters that describe the problem, except for the radius.
    fit : dict
        tol, max_iter, solver, solver_options.
    radius, other_radius : float or (float,)
        In a tuple it is relative to ``radius_max``. A warm start comes from a fit at the other radius.
    route : {"fit", "warm", "path"}
    start_unit : float
        Factor on the numbers in the fit that a warm start comes from.
    check_with : str or None
        Another solver, whose coefficients test the lower bounds.
    """

    seed: int
    x: np.ndarray
    z: np.ndarray
    y: np.ndarray
    w: np.ndarray | None
    n_levels: tuple[int, ...]
    table: Any
    target: np.ndarray
    size: float
    size_class: str
    problem: dict
    fit: dict
    radius: float | tuple[float]
    other_radius: float | tuple[float]
    route: str
    start_unit: float
    check_with: str | None

    @property
    def tailored(self) -> bool:
        return self.fit["solver"] == "tailored" or (self.fit["solver"] == "auto" and self.problem["p"] == 1)


def make_instance(seed: int) -> Instance:
    """The instance of a seed."""
    rng = np.random.default_rng(seed)
    large = rng.random() < 0.03
    N = int(rng.integers(41, 301)) if large else int(min(40, 2 + rng.geometric(rng.choice([0.08, 0.25]))))
    n, m = int(rng.choice([0, 1, 1, 2, 3])), int(rng.choice([0, 1, 2, 2, 3, 4]))
    m = max(m, int(n == 0))
    n_levels = rng.integers(1, 7, m)
    while n_levels.prod() > (200 if large else 1296):
        n_levels = rng.integers(1, 7, m)
    size = float(10 ** rng.uniform(-9, 9)) if n and rng.random() < 0.5 else 1.0
    x, words = _numbers(rng, N, n, size)
    z = np.column_stack([rng.integers(0, levels, N) for levels in n_levels]) if m else np.zeros((N, 0), int)
    if rng.random() < 0.3:  # only a few distinct rows
        copied = rng.integers(0, max(2, N // 3), N)
        x, z = x[copied], z[copied]
    y = _labels(rng, x, z)
    w = _weights(rng, y)
    columns, codes, counts = {}, z.copy(), list(map(int, n_levels))
    for j in range(n):
        columns[f"x{j}"] = x[:, j]
    for j in range(m):
        names = np.array([f"level {v}" for v in range(n_levels[j])])
        columns[f"z{j}"] = pd.Categorical.from_codes(z[:, j], categories=names)
        if rng.random() < 0.3:  # text has only its observed levels
            columns[f"z{j}"] = names[z[:, j]]
            observed, codes[:, j] = np.unique(z[:, j], return_inverse=True)
            counts[j] = len(observed)
    # Numbers keep their relative order, and so do categories, whichever come first.
    keys = sorted(columns) if rng.random() < 0.5 else [*list(columns)[n:], *list(columns)[:n]]
    table = pd.DataFrame({key: columns[key] for key in keys}) if m or rng.random() < 0.5 else x
    labels = [np.array([-1, 1]), np.array([0, 1]), np.array(["no", "yes"])][rng.integers(3)]
    target = labels[(y > 0).astype(int)]
    unit = float(rng.choice([size, 1.0])) if n and m else size
    problem = _problem_parameters(rng, n, m, size, unit)
    fit = _fit_parameters(rng, problem["p"], large)
    if problem["metric_scale"] == "unit":
        unit /= n + m + (m if problem["label_cost"] == "n_categorical" else problem["label_cost"])
    return Instance(
        seed=seed,
        x=x,
        z=codes,
        y=y,
        w=w,
        n_levels=tuple(counts),
        table=table,
        target=target,
        size=size,
        size_class=f"{'N > 40' if large else 'N <= 40'}, {words}",
        problem=problem,
        fit=fit,
        radius=_radius(rng, unit),
        other_radius=_radius(rng, unit),
        route=str(rng.choice(["fit", "warm", "path"], p=[0.7, 0.2, 0.1])),
        start_unit=float(10 ** rng.uniform(-6, 6)) if rng.random() < 0.3 else 1.0,
        check_with="column-constraint" if not large and rng.random() < 0.03 else None,
    )


def _numbers(rng: np.random.Generator, N: int, n: int, size: float) -> tuple[np.ndarray, str]:
    """Numbers of a given size, and a description of them; shape (N, n)."""
    x = rng.normal(size=(N, n))
    for j in range(n):
        kind = rng.choice(
            ["normal", "binary", "integers", "heavy", "constant", "copy"], p=[0.5, 0.1, 0.15, 0.15, 0.05, 0.05]
        )
        if kind == "binary":
            x[:, j] = rng.integers(0, 2, N)
        elif kind == "integers":
            x[:, j] = rng.integers(-3, 4, N)
        elif kind == "heavy":
            x[:, j] **= 5
        elif kind == "constant":
            x[:, j] = 1.0
        elif kind == "copy":
            x[:, j] = x[:, 0] * rng.choice([1.0, -2.0])
    x *= size
    if n == 0:
        return x, "no numbers"
    words = "tiny numbers" if size < 1e-3 else "huge numbers" if size > 1e3 else "plain numbers"
    if n > 1 and rng.random() < 0.1:
        x *= 10 ** rng.uniform(-6, 6, n)
        words = "mixed sizes"
    if rng.random() < 0.15:
        x += size * 10 ** rng.uniform(0, 7, n) * rng.choice([-1, 1], n) * (rng.random(n) < 0.7)
        words = "far from 0"
    return x, words


def _labels(rng: np.random.Generator, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Labels at random, by a noisy rule, or separable; both classes occur. Shape (N,)."""
    N = len(x)
    noise = rng.choice([0.0, 0.5, 2.0, np.inf])
    spread = np.ptp(x, axis=0)
    scores = ((x - x.mean(axis=0)) / np.where(spread > 0, spread, 1.0)) @ rng.normal(size=x.shape[1]) * 3
    scores += sum((rng.normal(size=6)[z[:, j]] for j in range(z.shape[1])), np.zeros(N))
    scores -= np.median(scores) if rng.random() < 0.5 else 0.0
    draw = rng.normal(size=N)
    y = np.where((draw if np.isinf(noise) else scores + noise * draw) > 0, 1.0, -1.0)
    if np.unique(y).size < 2:
        y[rng.integers(N)] *= -1
    return y


def _weights(rng: np.random.Generator, y: np.ndarray) -> np.ndarray | None:
    """None, alike, over 12 orders of magnitude, or with zeros; almost always with both classes. Shape (N,)."""
    N = len(y)
    kind = rng.choice(["none", "alike", "wild", "counts"], p=[0.5, 0.2, 0.15, 0.15])
    if kind == "none":
        return None
    w = {"alike": rng.random(N) + 0.1, "wild": 10 ** rng.uniform(-12, 0, N), "counts": rng.integers(0, 4, N)}[kind]
    w = w * (rng.random(N) > 0.1) * 10 ** rng.choice([0.0, 0.0, rng.uniform(-9, 9)])
    if rng.random() < 0.98:
        for label in (-1, 1):
            if not w[y == label].any():
                w[np.flatnonzero(y == label)[0]] = max(w.max(), 1.0)
    return w


def _problem_parameters(rng: np.random.Generator, n: int, m: int, size: float, unit: float) -> dict:
    """The parameters of the problem except the radius; penalties and bounds are scaled to the coefficients."""
    label_cost: float | str = 1.0
    kind = rng.random()
    if kind < 0.6:
        label_cost = float(10 ** rng.uniform(-3, 5) * unit)
    elif kind < 0.75:
        label_cost = np.inf
    elif kind < 0.85 and m:
        label_cost = "n_categorical"
    slope = 1.0 / size if n and rng.random() < 0.5 else 1.0
    return {
        "label_cost": label_cost,
        "p": float(rng.choice([0.5, 2.0, 3.0])) if rng.random() < 0.04 else 1.0,
        "norm": str(rng.choice(["l1", "l2", "linf"])),
        "metric_scale": "unit" if rng.random() < 0.25 and label_cost != np.inf else None,
        "l1_penalty": float(10 ** rng.uniform(-8, 0) / slope) if rng.random() < 0.3 else 0.0,
        "penalize_intercept": bool(rng.random() < 0.3),
        "coding": str(rng.choice(["onehot", "pm1"])),
        "coef_bound": float(10 ** rng.uniform(-3, 3) * slope) if rng.random() < 0.25 else None,
        "fit_intercept": bool(rng.random() < 0.8),
    }


def _fit_parameters(rng: np.random.Generator, p: float, large: bool) -> dict:
    """The solver and its stopping rule."""
    solver, draw = "tailored" if p == 1 else "auto", rng.random()
    if p != 1 and draw < 0.05:
        solver = "tailored"  # to be refused
    elif (p != 1 and draw < 0.3) or (draw < 0.01 and not large):
        solver = "monolithic"
    elif draw < 0.03 and not large:
        solver = "column-constraint"
    elif p == 1 and draw < 0.2:
        solver = "auto"
    conic = solver in ("monolithic", "column-constraint") or (solver == "auto" and p != 1)
    return {
        "tol": float(rng.choice([1e-4, 1e-5, 1e-6, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10])),
        "max_iter": 1000 if rng.random() < 0.93 else int(rng.integers(1, 30)),
        "solver": solver,
        "solver_options": {"time_limit": 10.0} if conic else None,
    }


def _radius(rng: np.random.Generator, unit: float) -> float | tuple[float]:
    """A radius in the units of the table, or relative to the largest useful radius."""
    kind = rng.random()
    if kind < 0.08:
        return 0.0
    if kind < 0.33:
        return (float(rng.choice([0.5, 0.9, 0.99, 0.999999, 1.000001, 1.01])),)
    return float(10 ** (rng.uniform(-4, 0) if kind < 0.6 else rng.uniform(-12, 3)) * unit)


# The judge


class Value(NamedTuple):
    """F, and how far a careful evaluation in double precision can be from it."""

    F: float
    allowance: float


class Judge:
    """F for the table of an instance, by enumeration.

    Rounding. With u = 2^-53, an f computed in double precision is off by at most u times its number of operations times
    S_i, the sum of the sizes of its terms, and the log-loss does not amplify this (its slope is at most 1). A relative
    error of u in the multiplier moves F by u lam |slope|, where lam times the cost of a change is at most its loss,
    again at most S_i + 1. Weighting and summing N losses adds N u F, and the minimisation over lam may stop
    1e-14 (F + 1) above the minimum. Altogether

        allowance = u [ (operations + 10) sum_i w_i S_i  +  (N + 100) (F + 1) ].
    """

    def __init__(self, instance: Instance):
        self.problem = instance.problem
        self.x, self.y, self.n_levels = instance.x.astype(Real), instance.y, instance.n_levels
        self.w = np.ones(len(instance.y), Real) if instance.w is None else instance.w.astype(Real)
        n, m = instance.x.shape[1], instance.z.shape[1]
        kappa = m if self.problem["label_cost"] == "n_categorical" else self.problem["label_cost"]
        self.kappa = Real(kappa)
        self.scale = n + m + self.kappa if self.problem["metric_scale"] == "unit" else Real(1)
        # All combinations of levels, for each different row of codes in the order of their number of changes.
        self.combinations = np.array(list(product(*map(range, instance.n_levels))), int).reshape(
            np.prod(instance.n_levels, dtype=int), m
        )
        distinct, self.group = np.unique(instance.z, axis=0, return_inverse=True)
        self.group = self.group.reshape(-1)
        changes = (distinct[:, None, :] != self.combinations[None]).sum(axis=2)
        self.order = np.argsort(changes, axis=1, kind="stable")
        # How many combinations differ in 0, 1, ... features is the same for every row.
        self.changes, self.start = np.unique(np.sort(changes[0]), return_index=True)
        self.n_coefficients = 1 + n + sum(instance.n_levels) - m
        self.operations = n + m + max(instance.n_levels, default=0) + 2

    @cached_property
    def sizes(self) -> np.ndarray:
        """The largest |x_ij|, and 1 for the intercept and the levels; shape (1 + n + k,)."""
        sizes = np.ones(self.n_coefficients)
        sizes[1 : 1 + self.x.shape[1]] = np.abs(self.x).max(axis=0)
        return sizes

    def feasible(self, b: np.ndarray) -> bool:
        """Whether the coefficients are within the bound and, without an intercept, b_0 is 0."""
        bound = self.problem["coef_bound"]
        inside = bound is None or bool((np.abs(b) <= bound).all())
        return inside and (self.problem["fit_intercept"] or b[0] == 0)

    def objective(self, b: np.ndarray, radius: float) -> Value:
        """F at the coefficients; shape (1 + n + k,)."""
        loss = self.worst_case_loss(b, radius, self.w)
        penalised = b if self.problem["penalize_intercept"] else b[1:]
        penalty = float(Real(self.problem["l1_penalty"]) * np.abs(penalised.astype(Real)).sum())
        return Value(loss.F + penalty, loss.allowance + (len(b) + 2) * UNIT * penalty)

    def worst_case_loss(self, b: np.ndarray, radius: float, w: np.ndarray) -> Value:
        """F without the penalty, for weights of shape (N,)."""
        b, n = b.astype(Real), self.x.shape[1]
        w = w / w.sum()
        scores, size_of_scores = self._scores(b[1 + n :])
        total = sum(
            (scores[j][self.combinations[:, j]] for j in range(len(scores))), np.zeros(len(self.combinations), Real)
        )
        ordered = total[self.order]
        f = b[0] + self.x @ b[1 : 1 + n]
        high = f[:, None] + np.maximum.reduceat(ordered, self.start, axis=1)[self.group]
        low = f[:, None] + np.minimum.reduceat(ordered, self.start, axis=1)[self.group]
        positive = self.y[:, None] > 0
        losses = _log_loss(np.where(positive, -low, high))
        costs = self.changes.astype(Real) ** (1 / Real(self.problem["p"])) / self.scale
        if radius == 0:
            F = w @ losses[:, 0]
        else:
            if np.isfinite(self.kappa):
                losses = np.hstack([losses, _log_loss(np.where(positive, high, -low))])
                costs = np.concatenate([costs, costs + self.kappa / self.scale])
            F = _least(losses, costs, w, Real(radius), self.scale * _dual_norm(b[1 : 1 + n], self.problem["norm"]))
        sizes = np.abs(b[0]) + np.abs(self.x) @ np.abs(b[1 : 1 + n]) + size_of_scores
        rounding = UNIT * (1 + np.finfo(Real).eps / np.finfo(float).eps)
        allowance = rounding * ((self.operations + 10) * (w @ sizes) + (len(w) + 100) * (F + 1))
        return Value(float(F), float(allowance))

    def _scores(self, slopes: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """What each level of each feature adds to f, and the largest sum of the sizes of the terms."""
        scores, size, start = [], Real(0), 0
        for levels in self.n_levels:
            of_feature = slopes[start : start + levels - 1]
            zero = np.zeros(1, Real)
            if self.problem["coding"] == "onehot":
                scores.append(np.concatenate([zero, of_feature]))
                size += np.abs(of_feature).max(initial=0)
            else:
                scores.append(2 * np.concatenate([of_feature, zero]) - of_feature.sum())
                size += np.abs(of_feature).sum()
            start += levels - 1
        return scores, size

    def best_constant(self, radius: float) -> np.ndarray:
        """A near-optimal model whose slopes are 0; shape (1 + n + k,)."""
        b = np.zeros(self.n_coefficients)
        if self.problem["fit_intercept"]:
            largest = min(40.0, self.problem["coef_bound"] or np.inf)

            def value(intercept: float) -> float:
                return self.objective(np.r_[intercept, b[1:]], radius).F

            minimum = minimize_scalar(value, bounds=(-largest, largest), method="bounded", options={"xatol": 1e-9})
            b[0] = minimum.x
        return b


def _log_loss(a: np.ndarray) -> np.ndarray:
    return np.maximum(a, 0) + np.log1p(np.exp(-np.abs(a)))


def _dual_norm(b: np.ndarray, norm: str) -> Any:
    if b.size == 0:
        return Real(0)
    size = np.abs(b)
    if norm == "l2":
        largest = size.max()
        return largest * np.sqrt(((size / largest) ** 2).sum()) if largest > 0 else Real(0)
    return size.max() if norm == "l1" else size.sum()


def _least(losses: np.ndarray, costs: np.ndarray, w: np.ndarray, radius: Any, least_lam: Any) -> Any:
    """min over lam >= least_lam of lam radius + sum_i w_i max_c (loss_ic - lam cost_c); losses of shape (N, C).

    The function is convex and piecewise linear, and its breakpoints are where two lines of the same row meet: they are
    sorted, and the one where the slope changes its sign is found by bisection.
    """
    first, second = np.triu_indices(len(costs), 1)
    apart = costs[second] - costs[first]
    meet = (losses[:, second] - losses[:, first])[:, apart != 0] / apart[apart != 0]
    lams = np.concatenate([[least_lam], np.unique(meet[meet > least_lam])])
    everyone = np.arange(len(w))

    def value_and_slope(lam: Any) -> tuple[Any, Any]:
        reduced = losses - lam * costs
        worst = reduced.argmax(axis=1)
        return lam * radius + w @ reduced[everyone, worst], radius - w @ costs[worst]

    low, high = 0, len(lams) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if value_and_slope(lams[middle])[1] < 0:
            low = middle
        else:
            high = middle
    # Rounding can decide ties at a breakpoint either way.
    return min(value_and_slope(lam)[0] for lam in lams[max(0, low - 2) : high + 3])


# The fits


@dataclass(eq=False)
class Outcome:
    """The result of one call, or its failure, and the verdict on it.

    Attributes
    ----------
    call : str
        "fit", "refit", "other units", "other solver", "start" and "warm" (of a warm start), "path", "radius_max",
        "worst_case_loss".
    b : ndarray of shape (1 + n + k,), or None
        The coefficients; None if the call returned none.
    value : float
        What ``radius_max`` or ``worst_case_loss`` returned.
    warned : bool
        Whether there was a ConvergenceWarning (other than one for separable data).
    kind, detail : str
        See the module's docstring.
    """

    call: str
    solver: str
    tol: float = np.nan
    radius: float = np.nan
    b: np.ndarray | None = None
    objective: float = np.nan
    lower: float = np.nan
    gap: float = np.nan
    value: float = np.nan
    warned: bool = False
    seconds: float = np.nan
    F: float = np.nan
    allowance: float = np.nan
    kind: str = ""
    detail: str = ""


class _TooLong(Exception):
    """A call was abandoned."""


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def give_up(*_: Any) -> None:
        raise _TooLong(f"not finished in {seconds:g} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _called(outcome: Outcome, work: Callable[[], Any]) -> Any:
    """What the work returns, None if it fails; warnings, seconds and errors are noted in the outcome (in place)."""
    result = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = perf_counter()
        try:
            with _time_limit(SECONDS):
                result = work()
        except ValueError as error:
            outcome.kind, outcome.detail = "refused", _in_short(error)
        except Exception as error:  # any error is a finding
            unsolved = type(error).__name__ in ("ConicSolverError", "OutOfTime")
            outcome.kind, outcome.detail = "unsolved" if unsolved else "exception", _in_short(error)
        outcome.seconds = perf_counter() - start
    outcome.warned = any(warning.category is ConvergenceWarning for warning in caught)
    for warning in caught:
        if issubclass(warning.category, RuntimeWarning) and not outcome.kind:
            outcome.kind, outcome.detail = "exception", f"RuntimeWarning: {warning.message}"
    return result


def _in_short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0][:300]


def _fitted(outcome: Outcome, model: Any, instance: Instance) -> bool:
    """Fit a model, note the result in the outcome (in place), and return whether there are coefficients."""
    if _called(outcome, lambda: model.fit(instance.table, instance.target, sample_weight=instance.w)) is None:
        return False
    outcome.b = np.concatenate([model.intercept_, model.coef_[0]])
    outcome.objective, outcome.lower, outcome.gap = model.objective_, model.lower_bound_, model.gap_
    return True


def with_numbers(instance: Instance, x: np.ndarray) -> Instance:
    """The instance with other numbers, of shape (N, n)."""
    if not isinstance(instance.table, pd.DataFrame):
        return replace(instance, x=x, table=x)
    return replace(instance, x=x, table=instance.table.assign(**{f"x{j}": x[:, j] for j in range(x.shape[1])}))


def _in_other_units(instance: Instance, radius: float, estimator: type) -> list[Outcome]:
    """The fit of the same problem with its numbers near 0 and of size 1, if they can be brought there.

    Columns can be centred if the intercept is neither penalised nor bounded, and the unit of length can be changed if
    there are no categories, penalties or bounds. The coefficients are converted to the instance's units.
    """
    x, problem = instance.x, instance.problem
    if problem["coef_bound"] is not None or not x.size:
        return []
    center, unit = np.zeros(x.shape[1]), 1.0
    if problem["fit_intercept"] and not (problem["penalize_intercept"] and problem["l1_penalty"]):
        center = x[0]
    spread = np.abs(x - center).max()
    if spread > 0 and not (instance.z.shape[1] or problem["l1_penalty"] or problem["metric_scale"]):
        unit = spread
        problem = problem | {"label_cost": problem["label_cost"] / unit}
    if 0.01 < unit < 100 and np.abs(center).max() < 100 * spread:
        return []
    posed = with_numbers(instance, (x - center) / unit)
    outcome = Outcome("other units", instance.fit["solver"], tol=FINE, radius=radius)
    model = estimator(radius=radius / unit, **problem, **instance.fit | {"tol": FINE, "max_iter": 1000})
    if _fitted(outcome, model, posed):
        assert outcome.b is not None
        slopes = slice(1, 1 + x.shape[1])
        outcome.b[slopes] /= unit
        outcome.b[0] -= center @ outcome.b[slopes]
    return [outcome]


@cache
def _compile(solver: str) -> None:
    """Trigger imports and compilation, so that they do not count in the seconds of a fit."""
    table = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0, 4.0], "z": pd.Categorical(list("abcde"))})
    for about in ({"l1_penalty": 0.01, "norm": "l2"}, {"coef_bound": 1.0, "label_cost": np.inf}, {"norm": "linf"}):
        WassersteinLogisticRegression(solver=solver, **{"radius": 0.03, "tol": 1e-4} | about).fit(
            table, [0, 1, 0, 1, 1]
        )


def outcomes(instance: Instance, estimator: type = WassersteinLogisticRegression) -> list[Outcome]:
    """Make the calls of an instance; only those that fail have a verdict yet."""
    made: list[Outcome] = []
    solver = instance.fit["solver"]
    tol, problem = instance.fit["tol"], instance.problem

    def new(call: str, **about: Any) -> Outcome:
        made.append(Outcome(call, **({"solver": solver, "tol": tol} | about)))
        return made[-1]

    radii = []
    for radius in (instance.radius, instance.other_radius):
        if isinstance(radius, tuple):
            outcome = new("radius_max")
            found = _called(
                outcome, lambda: radius_max(instance.table, instance.target, sample_weight=instance.w, **problem)
            )
            outcome.value = np.nan if found is None else found
            # If it fails, the fits use a radius in the unit of the table.
            radius = radius[0] * found if found is not None and np.isfinite(found) else 0.1 * instance.size
        radii.append(float(radius))
    radius, other = radii
    model = estimator(radius=radius, **problem, **instance.fit)
    _compile(solver if instance.tailored or problem["p"] == 1 else "column-constraint")
    if not _fitted(new("fit", radius=radius), model, instance) and made[-1].kind == "refused":
        return made
    if made[-1].b is not None:
        unweighted = new("worst_case_loss", radius=radius, b=made[-1].b)
        found = _called(unweighted, lambda: model.worst_case_loss(instance.table, instance.target))
        unweighted.value = np.nan if found is None else found
    if instance.tailored:
        fine = estimator(radius=radius, **problem, **{**instance.fit, "tol": FINE, "max_iter": 1000})
        _fitted(new("refit", radius=radius, tol=FINE), fine, instance)
    if instance.tailored:
        made.extend(_in_other_units(instance, radius, estimator))
    if instance.check_with:
        _compile(instance.check_with)
        options = {"solver": instance.check_with, "solver_options": {"time_limit": 10.0}, "tol": 1e-7}
        another = estimator(radius=radius, **problem, **options)
        _fitted(new("other solver", radius=radius, solver=instance.check_with, tol=1e-7), another, instance)
    if instance.route == "warm" and instance.tailored:
        model = estimator(radius=other, **problem, **instance.fit, warm_start=True)
        if instance.start_unit == 1:
            _fitted(new("start", radius=other), model, instance)
        else:
            _fitted(Outcome("start", solver), model, with_numbers(instance, instance.x * instance.start_unit))
        _fitted(new("warm", radius=radius), model.set_params(radius=radius), instance)
    if instance.route == "path":
        about = {name: value for name, value in problem.items() if name not in ("label_cost", "l1_penalty")}
        grid = ([radius, other], [problem["l1_penalty"]], [problem["label_cost"]])
        outcome = new("path", radius=radius)
        path = _called(
            outcome,
            lambda: fit_path(instance.table, instance.target, *grid, sample_weight=instance.w, **about, **instance.fit),
        )
        if path is not None:
            # One warning stands for the whole path.
            made.pop()
            numbers = path[["radius", "objective", "lower_bound", "gap"]].to_numpy(dtype=float).tolist()
            slopes = path.iloc[:, path.columns.get_loc("intercept") :].to_numpy(dtype=float)
            for (row_radius, objective, lower, gap), b in zip(numbers, slopes, strict=True):
                about_row = {"radius": row_radius, "objective": objective, "lower": lower, "gap": gap}
                made.append(replace(outcome, b=b, seconds=outcome.seconds / len(path), **about_row))
    return made


# The verdict


def examine(instance: Instance, estimator: type = WassersteinLogisticRegression) -> list[Outcome]:
    """Make the calls of an instance, and judge them."""
    try:
        with threadpool_limits(1):
            made = outcomes(instance, estimator)
            give_verdicts(instance, made)
    except Exception as error:
        error.add_note(f"The fuzz itself failed at --instance {instance.seed}.")
        raise
    return made


def give_verdicts(instance: Instance, made: Sequence[Outcome]) -> None:
    """Set kind and detail of the outcomes that do not have them yet (in place)."""
    judge = Judge(instance)
    fits = [
        outcome for outcome in made if outcome.call not in ("radius_max", "worst_case_loss") and outcome.b is not None
    ]
    known = [outcome.b for outcome in fits if np.isfinite(outcome.b).all() and judge.feasible(outcome.b)]
    rivals = {}
    for radius in dict.fromkeys(outcome.radius for outcome in fits):
        pool = [np.zeros(judge.n_coefficients), judge.best_constant(radius), *known]
        if radius == fits[0].radius:
            pool.append(_improved(judge, min(pool, key=lambda b: judge.objective(b, radius).F), radius))
        if radius == 0 and instance.problem["coef_bound"] is None:
            pool = [b for b in pool if (np.abs(b) * judge.sizes).max() <= LARGEST_SCORE]
        rivals[radius] = [judge.objective(b, radius) for b in pool]
    for outcome in made:
        if outcome.kind:
            continue
        if outcome.call == "radius_max":
            outcome.kind, outcome.detail = _verdict_on_radius_max(judge, outcome.value, rivals)
        elif outcome.call == "worst_case_loss":
            outcome.kind, outcome.detail = _verdict_on_loss(judge, outcome)
        else:
            outcome.kind, outcome.detail = _verdict_on_fit(
                judge, outcome, rivals[outcome.radius], instance.fit["max_iter"]
            )
            same = outcome.call == "path" and fits[0].call == "fit" and outcome.radius == fits[0].radius
            if same and instance.tailored and outcome.kind not in FAILURES and not np.array_equal(outcome.b, fits[0].b):
                outcome.kind, outcome.detail = "wrong", "the path has other coefficients than the fit alone"


def _verdict_on_fit(judge: Judge, outcome: Outcome, rivals: list[Value], max_iter: int) -> tuple[str, str]:
    """Kind and detail of a fit; F is noted in the outcome."""
    assert outcome.b is not None
    if not np.isfinite([*outcome.b, outcome.objective]).all() or np.isnan([outcome.lower, outcome.gap]).any():
        return "nan", "coefficients, objective or bounds are not finite"
    outcome.F, outcome.allowance = judge.objective(outcome.b, outcome.radius)
    certified = outcome.gap <= outcome.tol
    if not judge.feasible(outcome.b):
        return "wrong", "the coefficients are outside their bounds"
    if not abs(outcome.objective - outcome.F) <= outcome.allowance:
        return (
            "wrong",
            f"the objective is off by {outcome.objective - outcome.F:.1e}, rounding explains {outcome.allowance:.1e}",
        )
    if not outcome.gap == outcome.objective - outcome.lower:
        return (
            "wrong",
            f"the gap is {outcome.gap:.3e}, objective less lower bound {outcome.objective - outcome.lower:.3e}",
        )
    if outcome.gap < 0:
        return "wrong", f"the lower bound is above the objective by {-outcome.gap:.1e}"
    excess, allowed = max((outcome.lower - rival.F - rival.allowance, rival.allowance) for rival in rivals)
    if excess > 0:
        return "wrong", f"the lower bound is {excess + allowed:.1e} above an attained value, rounding: {allowed:.1e}"
    if certified and outcome.objective > np.log(2) + outcome.allowance:
        return "wrong", f"certified, but above log 2 by {outcome.objective - np.log(2):.1e}"
    if certified:
        return "certified", ""
    if not outcome.warned:
        return "silent", f"gap {outcome.gap:.1e} and no warning"
    if np.isinf(outcome.gap):
        return "contradiction", "the lower bound was above the objective"
    with_default_max_iter = outcome.call in ("refit", "other units", "other solver")
    return "stopped" if max_iter < 1000 and not with_default_max_iter else "uncertified", f"gap {outcome.gap:.1e}"


def _verdict_on_loss(judge: Judge, outcome: Outcome) -> tuple[str, str]:
    """Kind and detail of a worst-case loss of unweighted rows."""
    assert outcome.b is not None
    if not np.isfinite(outcome.value):
        return "nan", f"the worst-case loss is {outcome.value}"
    outcome.F, outcome.allowance = judge.worst_case_loss(outcome.b, outcome.radius, np.ones(len(judge.y), Real))
    if not abs(outcome.value - outcome.F) <= outcome.allowance:
        return (
            "wrong",
            f"the worst-case loss is off by {outcome.value - outcome.F:.1e}, rounding explains {outcome.allowance:.1e}",
        )
    return "certified", ""


def _verdict_on_radius_max(judge: Judge, value: float, rivals: dict[float, list[Value]]) -> tuple[str, str]:
    """Kind and detail of a largest useful radius: above it nothing is better than the best constant model.

    The first two rivals are constant models. Only clear cases count: radii a thousandth larger, and values that are
    better by more than the accuracy of the best constant.
    """
    if np.isnan(value) or (np.isinf(value) and np.isfinite(judge.kappa)):
        return "nan", f"radius_max is {value}"
    if value < 0:
        return "wrong", f"radius_max is {value}"
    for radius, (zero, constant, *others) in rivals.items():
        if radius > 1.001 * value:
            best = min((other.F + other.allowance for other in others), default=np.inf)
            better = min(zero.F - zero.allowance, constant.F - constant.allowance) - best
            if better > 1e-8:
                return "wrong", f"it is {value:.6g}, but at {radius:.6g} the slopes are worth {better:.1e}"
    return "certified", ""


def _improved(judge: Judge, b: np.ndarray, radius: float) -> np.ndarray:
    """Better coefficients, if a few steps along the axes or along b lead to any."""
    best, b = judge.objective(b, radius).F, b.copy()
    if not np.isfinite(best):
        return b
    for share in (0.1, 0.01, 0.001):
        steps = [
            np.r_[0.0, b[1:]] * share,
            *np.diag(share * np.maximum(np.abs(b), 0.1 / np.maximum(judge.sizes, 1e-300))),
        ]
        for step in steps:
            for trial in (b + step, b - step):
                if judge.feasible(trial) and (value := judge.objective(trial, radius).F) < best:
                    best, b = value, trial
                    break
    return b


# The command


def rows_of(instance: Instance, made: Sequence[Outcome]) -> list[dict]:
    """One row per outcome, for the table and the file."""
    about = {
        "seed": instance.seed,
        "size_class": instance.size_class,
        "N": len(instance.y),
        "n": instance.x.shape[1],
        "m": instance.z.shape[1],
        "size": instance.size,
        "p": instance.problem["p"],
        "label_cost": instance.problem["label_cost"],
        "max_iter": instance.fit["max_iter"],
    }
    names = ("call", "solver", "tol", "radius", "kind", "detail", "objective", "F", "lower", "gap", "value", "seconds")
    return [about | {name: getattr(outcome, name) for name in names} for outcome in made]


def _rows(seed: int) -> list[dict]:
    instance = make_instance(seed)
    return rows_of(instance, examine(instance))


def run(seeds: Iterable[int], jobs: int = 1, output: Path | None = None) -> pd.DataFrame:
    """Examine the instances of these seeds; print the failures as they come, and append all rows to a csv file."""
    tables = []
    for rows in Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(_rows)(seed) for seed in seeds):
        tables.append(pd.DataFrame(rows))
        if output is not None:
            tables[-1].to_csv(output, mode="a", header=not output.exists(), index=False, lineterminator="\n")
        for row in rows:
            if row["kind"] in FAILURES:
                print(_line(row), flush=True)
    if not tables:
        raise SystemExit("no instance was examined; set more --minutes or a --count of at least 1.")
    return with_slow(pd.concat(tables, ignore_index=True))


def _line(row: Any) -> str:
    what = f"{row['call']}, {row['solver']}, p {row['p']:g}, tol {row['tol']:.0e}, kappa {row['label_cost']}"
    table = f"N {row['N']}, n {row['n']}, m {row['m']}, {row['size_class']} of {row['size']:.0e}"
    return f"{row['kind']}: {what}, {table}: {row['detail']}\n    python -m benchmarks.fuzz --instance {row['seed']}"


def with_slow(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with kind "slow" where a certified call took far longer than others of its solver and number of rows."""
    alike = [rows["call"], rows["solver"], rows["N"] > 40]
    slow = (rows["kind"] == "certified") & (rows["seconds"] > SLOW * rows.groupby(alike)["seconds"].transform("median"))
    return rows.assign(kind=rows["kind"].mask(slow, "slow"))


def summary(rows: pd.DataFrame) -> str:
    """The number of fits of each kind, by solver, tolerance, size and p."""
    fits = rows[~rows["call"].isin(["radius_max", "worst_case_loss"])]
    tables = [
        _counts(fits.assign(tol=fits["tol"].map("{:.0e}".format)), ["solver", "p", "tol"]),
        _counts(fits, ["solver", "p", "size_class"]),
        _counts(rows, ["call"]),
    ]
    refused = rows[rows["kind"].isin(["refused", "unsolved"])]
    reasons = refused["detail"].str.replace(r"[-+]?\d[\d.e+-]*|'[^']*'", "#", regex=True).value_counts()
    tables += [f"{times:6d}  {reason}" for reason, times in reasons.items()]
    return "\n\n".join(map(str, tables[:3])) + "\n" + "\n".join(["", *tables[3:], ""]) + f"{len(fits)} fits."


def _counts(rows: pd.DataFrame, by: list[str]) -> str:
    counts = pd.crosstab([rows[name] for name in by], rows["kind"])
    order = [*FAILURES, *sorted(set(counts) - set(FAILURES))]
    return counts.reindex(columns=[kind for kind in order if kind in counts]).to_string()


def show(seed: int) -> list[Outcome]:
    """Print an instance in full; return its outcomes."""
    instance = make_instance(seed)
    made = examine(instance)
    with pd.option_context("display.max_rows", None, "display.max_columns", None, "display.width", 200):
        about = pd.DataFrame(instance.table).assign(
            target=instance.target, weight=1.0 if instance.w is None else instance.w
        )
        print(about.to_string(float_format="{:.17g}".format))
    print(f"\nlevels {instance.n_levels}, {instance.size_class} of {instance.size:g}, route {instance.route}")
    for name, value in {**instance.problem, **instance.fit}.items():
        print(f"    {name} = {value!r}")
    for outcome in made:
        verdict = f"{outcome.kind}  {outcome.detail}"
        print(f"\n{outcome.call}, {outcome.solver}, radius {outcome.radius!r}, tol {outcome.tol:g}: {verdict}")
        if outcome.b is not None:
            print(f"    b          {outcome.b.tolist()}")
        if outcome.call in ("radius_max", "worst_case_loss"):
            print(f"    value      {outcome.value!r}")
        else:
            print(f"    objective  {outcome.objective!r}")
            print(
                f"    lower      {outcome.lower!r}, gap {outcome.gap!r}{', with a warning' if outcome.warned else ''}"
            )
        print(f"    F          {outcome.F!r}, allowance {outcome.allowance:.1e}; {outcome.seconds:.3f} s")
    return made


def main(arguments: list[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__.partition("\n")[0])
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--minutes", type=float, help="how long to run; default: 1 minute")
    length.add_argument("--count", type=int, help="how many instances to examine")
    length.add_argument("--instance", type=int, metavar="SEED", help="examine only this instance, in full detail")
    parser.add_argument("--seed", type=int, help="seed of the run, which determines the instances; default: random")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes, with one thread each; default: 1")
    parser.add_argument("--output", type=Path, help="a csv file to append a row to for every call")
    chosen = parser.parse_args(arguments)
    if chosen.instance is not None:
        return int(any(outcome.kind in FAILURES for outcome in show(chosen.instance)))
    seed = int(np.random.default_rng().integers(10**6)) if chosen.seed is None else chosen.seed
    print(f"seed {seed}", flush=True)
    rows = run(instance_seeds(seed, chosen.count, chosen.minutes), chosen.jobs, chosen.output)
    print(f"\n{summary(rows)}")
    for row in rows[rows["kind"] == "slow"].to_dict("records"):
        print(_line(row | {"detail": f"{row['seconds']:.1f} s"}))
    return int(rows["kind"].isin(FAILURES).any())


def instance_seeds(seed: int, count: int | None = None, minutes: float | None = None) -> Iterator[int]:
    """The seeds of a run's instances: ``count`` of them, or as many as are requested within the minutes."""
    until = np.inf if count is not None else monotonic() + 60 * (1.0 if minutes is None else minutes)
    done = 0
    while (count is None or done < count) and monotonic() < until:
        yield seed * 10**6 + done
        done += 1


if __name__ == "__main__":
    # Import the module under its real name, so that joblib's processes can import it, too.
    from benchmarks import fuzz

    sys.exit(fuzz.main())
