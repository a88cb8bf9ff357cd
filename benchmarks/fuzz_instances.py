"""The random instances of the fuzz: tables, weights, and parameters over all that the interface allows."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd


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
    number_costs, level_costs : ndarray of shape (n,), tuple of m ndarrays of shape (K, K)
        What ``feature_costs`` of ``problem`` says, or 1: the cost of a move by 1, and of each change of a level.
    any_code : bool
        Whether the adversary can also give a feature any -1/+1 code of its dummies, as in the paper's public code.
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
    number_costs: np.ndarray
    level_costs: tuple[np.ndarray, ...]
    any_code: bool
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

    @property
    def adversary(self) -> str:
        """What the adversary may do, in words."""
        costs = "the paper's" if self.problem["feature_costs"] is None else "own"
        return f"{costs} costs, {'any code' if self.any_code else 'levels'}"

    @property
    def kappa(self) -> float:
        """What it costs to change a label."""
        cost = self.problem["label_cost"]
        return float(self.z.shape[1] if cost == "n_categorical" else cost)

    @property
    def scale(self) -> float:
        """What the metric is divided by: 1, or the largest distance where numbers are in [0, 1]."""
        if self.problem["metric_scale"] is None:
            return 1.0
        changes = [costs if len(costs) > 1 else np.ones(1) for costs in self.level_costs]
        parts = (*self.number_costs, *changes, self.kappa)
        return float(sum(np.max(costs, where=np.isfinite(costs), initial=0.0) for costs in parts))


def make_instance(seed: int) -> Instance:
    """The instance of a seed."""
    rng = np.random.default_rng(seed)
    large = rng.random() < 0.03
    N = int(rng.integers(41, 301)) if large else int(min(40, 2 + rng.geometric(rng.choice([0.08, 0.25]))))
    n, m = int(rng.choice([0, 1, 1, 2, 3])), int(rng.choice([0, 1, 2, 2, 3, 4]))
    m = max(m, int(n == 0))
    any_code = rng.random() < 0.25
    n_levels = rng.integers(1, 7, m)
    while (2 ** (n_levels - 1) if any_code else n_levels).prod() > (200 if large else 1296):
        n_levels = rng.integers(1, 7, m)
    size = float(10 ** rng.uniform(-9, 9)) if n and rng.random() < 0.5 else 1.0
    x, words = _numbers(rng, N, n, size)
    z = np.column_stack([rng.integers(0, levels, N) for levels in n_levels]) if m else np.zeros((N, 0), int)
    if rng.random() < 0.3:  # only a few distinct rows
        copied = rng.integers(0, max(2, N // 3), N)
        x, z = x[copied], z[copied]
    y = _labels(rng, x, z)
    w = _weights(rng, y)
    table, codes, levels, ordered = _table(rng, x, z, n_levels)
    labels = [np.array([-1, 1]), np.array([0, 1]), np.array(["no", "yes"])][rng.integers(3)]
    target = labels[(y > 0).astype(int)]
    unit = float(rng.choice([size, 1.0])) if n and m else size
    problem = _problem_parameters(rng, n, m, size, unit)
    if any_code:
        problem["coding"] = "pm1"
    number_costs, level_costs = np.ones(n), [1.0 - np.eye(len(known)) for known in levels]
    if problem["p"] == 1 and rng.random() < 0.5:
        number_costs = _number_costs(rng, n, unit / size, problem["norm"])
        problem["feature_costs"] = said = {f"x{j}": cost for j, cost in enumerate(number_costs)}
        for j, known in enumerate(levels):
            if len(known) > 1 and rng.random() < 0.8:
                one_cost = any_code or rng.random() < 0.3
                level_costs[j], cost = _level_costs(rng, pd.Index(known), unit, ordered[j], one_cost)
                said[f"z{j}" if rng.random() < 0.7 else list(table).index(f"z{j}")] = cost
    fit = _fit_parameters(rng, problem["p"], large)
    drawn = Instance(
        seed=seed,
        x=x,
        z=codes,
        y=y,
        w=w,
        n_levels=tuple(map(len, levels)),
        number_costs=number_costs,
        level_costs=tuple(level_costs),
        any_code=any_code,
        table=table,
        target=target,
        size=size,
        size_class=f"{'N > 40' if large else 'N <= 40'}, {words}",
        problem=problem,
        fit=fit,
        radius=np.nan,
        other_radius=np.nan,
        route=str(rng.choice(["fit", "warm", "path"], p=[0.7, 0.2, 0.1])),
        start_unit=float(10 ** rng.uniform(-6, 6)) if rng.random() < 0.3 else 1.0,
        check_with="column-constraint" if not large and rng.random() < 0.03 else None,
    )
    unit /= drawn.scale
    return replace(drawn, radius=_radius(rng, unit), other_radius=_radius(rng, unit))


def _table(
    rng: np.random.Generator, x: np.ndarray, z: np.ndarray, n_levels: np.ndarray
) -> tuple[Any, np.ndarray, list[np.ndarray], np.ndarray]:
    """The table, its level codes (N, m), the names of the levels of each feature, and whether these have an order."""
    n, m = x.shape[1], z.shape[1]
    columns: dict[str, Any] = {f"x{j}": x[:, j] for j in range(n)}
    codes, levels = z.copy(), [np.array([f"level {v}" for v in range(K)]) for K in n_levels]
    ordered = rng.random(m) < 0.4
    for j in range(m):
        columns[f"z{j}"] = pd.Categorical.from_codes(z[:, j], categories=levels[j], ordered=ordered[j])
        if rng.random() < 0.3:  # text has only its observed levels
            columns[f"z{j}"], ordered[j] = levels[j][z[:, j]], False
            levels[j], codes[:, j] = np.unique(columns[f"z{j}"], return_inverse=True)
    # Numbers keep their relative order, and so do categories, whichever come first.
    keys = sorted(columns) if rng.random() < 0.5 else [*list(columns)[n:], *list(columns)[:n]]
    table = pd.DataFrame({key: columns[key] for key in keys}) if m or rng.random() < 0.5 else x
    return table, codes, levels, ordered


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


def _number_costs(rng: np.random.Generator, n: int, unit: float, norm: str) -> np.ndarray:
    """Costs of the numbers, the same for all where the norm wants that; shape (n,)."""
    costs = 10 ** rng.uniform(-2, 2, n) * rng.choice([1.0, unit])
    costs[rng.random(n) < 0.3] = 1.0
    costs[rng.random(n) < 0.15] = np.inf
    return costs if norm == "l1" else np.full(n, costs[:1].sum())


def _level_costs(
    rng: np.random.Generator, levels: pd.Index, unit: float, ordered: bool, one_cost: bool
) -> tuple[np.ndarray, Any]:
    """Costs between K levels over up to eight orders of magnitude, (K, K), and how ``feature_costs`` says them."""
    K, spread = len(levels), rng.choice([0.3, 1.0, 4.0])
    steps = np.abs(np.subtract.outer(np.arange(K), np.arange(K)))
    cost = float(np.clip(10 ** rng.uniform(-spread, spread) * rng.choice([1.0, unit]), 1e-8, 1e7))
    if one_cost:
        cost = np.inf if rng.random() < 0.25 else cost
        return np.where(steps > 0, cost, 0.0), cost
    costs = steps * cost
    if rng.random() < 0.3:
        if ordered or K == 2:
            return costs, ("ordinal", cost)
    else:
        costs = np.clip(cost * 10 ** rng.uniform(-spread, spread, (K, K)), 1e-8, 1e8)
        costs[rng.random((K, K)) < rng.choice([0.0, 0.3])] = 0.0
        costs[rng.random((K, K)) < rng.choice([0.0, 0.3])] = np.inf
        costs[0, 1] = costs[0, 1] or cost  # what could be changed for nothing is refused
        np.fill_diagonal(costs, 0.0)
    frame = pd.DataFrame(costs, levels, levels)
    return costs, frame.sample(frac=1, random_state=rng).sample(frac=1, axis=1, random_state=rng)


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
        "feature_costs": None,
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
    elif (p != 1 and draw < 0.3) or (draw < 0.02 and not large):
        solver = "monolithic"
    elif draw < 0.05 and not large:
        solver = "column-constraint"
    elif p == 1 and draw < 0.2:
        solver = "auto"
    conic = solver in ("monolithic", "column-constraint") or (solver == "auto" and p != 1)
    return {
        "tol": float(rng.choice([1e-4, 1e-5, 1e-6, 1e-6, 1e-7, 1e-8, 1e-9, 1e-9, 1e-9, 1e-10])),
        "max_iter": 1000 if rng.random() < 0.93 else int(rng.integers(1, 30)),
        "solver": solver,
        "solver_options": {"time_limit": 10.0} if conic else None,
    }


def _radius(rng: np.random.Generator, unit: float) -> float | tuple[float]:
    """A radius in the units of the table, or relative to the largest useful radius."""
    kind = rng.random()
    if kind < 0.08:
        return 0.0
    if kind < 0.45:
        return (float(rng.choice([0.5, 0.9, 0.99, 0.999, 0.999999, 1.000001, 1.01])),)
    return float(10 ** (rng.uniform(-4, 0) if kind < 0.7 else rng.uniform(-12, 3)) * unit)
