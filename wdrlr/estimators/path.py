"""Fits over a whole grid of radii, penalties and label costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from wdrlr.estimators.classifier import WassersteinLogisticRegression, warn_if_uncertified, without_minimiser
from wdrlr.model.metric import ground_metric
from wdrlr.model.problem import Problem
from wdrlr.solvers.registry import chosen_solver
from wdrlr.solvers.solution import Solution


def fit_path(
    X: Any,
    y: Any,
    radii: Sequence[float],
    l1_penalties: Sequence[float] = (0.0,),
    label_costs: Sequence[float | str] = (1.0,),
    *,
    sample_weight: Any = None,
    **parameters: Any,
) -> pd.DataFrame:
    """Fit the robust logistic regression for every label cost, penalty and radius of a grid.

    The table is encoded and merged once, and with p = 1 the solver's coordinates are shared; each fit is certified on
    its own and equals the one that ``WassersteinLogisticRegression`` makes alone.

    Parameters
    ----------
    X, y, sample_weight
        As in ``WassersteinLogisticRegression.fit``.
    radii, l1_penalties, label_costs
        The grid; a label cost is a float, "n_categorical" or inf.
    **parameters
        The other parameters of ``WassersteinLogisticRegression``; warm_start and verbose have no effect.

    Returns
    -------
    DataFrame, one row a fit, in the order label cost, penalty, radius
        label_cost, l1_penalty, radius, objective, lower_bound, gap, transport_multiplier, intercept, then one column
        for every slope, named as in ``get_feature_names_out``.

    Raises
    ------
    ValueError
        As ``WassersteinLogisticRegression.fit``, for any point of the grid, before any fit; also if a parameter of the
        grid is given by its name there, or if two columns would have the same name.

    Warns
    -----
    ConvergenceWarning, SeparableDataWarning
        As ``WassersteinLogisticRegression.fit``, once for the whole path.

    Examples
    --------
    >>> from wdrlr import fit_path
    >>> X = [[0.0], [1.0], [2.0], [3.0], [1.5]]
    >>> path = fit_path(X, [0, 0, 1, 1, 1], radii=[0.01, 0.1, 1.0])
    >>> path["x0"].round(3).tolist()[-1]
    0.0
    >>> bool((path["gap"] <= 1e-6).all())
    True
    """
    for one, many, values in (
        ("radius", "radii", radii),
        ("l1_penalty", "l1_penalties", l1_penalties),
        ("label_cost", "label_costs", label_costs),
    ):
        if one in parameters:
            raise ValueError(f"fit_path takes a list {many} in place of {one}.")
        if isinstance(values, str) or np.ndim(values) != 1:
            raise ValueError(f"{many} must be a list, not {values!r}.")
    model = WassersteinLogisticRegression(**parameters)
    grid = list(product(label_costs, l1_penalties, radii))
    if not grid:
        raise ValueError("radii, l1_penalties and label_costs need at least one value each.")
    for label_cost, penalty, radius in grid:
        model.set_params(label_cost=label_cost, l1_penalty=penalty, radius=radius)._validate_params()
    unit = model.set_params(l1_penalty=1.0)._encode(X, y, sample_weight)
    columns = ["label_cost", "l1_penalty", "radius", "objective", "lower_bound", "gap", "transport_multiplier"]
    columns += ["intercept", *model.get_feature_names_out()]
    repeated = sorted(name for name, times in Counter(columns).items() if times > 1)
    if repeated:
        raise ValueError(f"the path would have two columns {', '.join(repeated)}; rename these features.")
    metrics = [
        ground_metric(
            cost, unit.n_numeric, unit.n_categorical, p=model.p, norm=model.norm, metric_scale=model.metric_scale
        )
        for cost in label_costs
    ]
    points = [(radius, penalty) for penalty, radius in product(l1_penalties, radii)]
    solutions = [found for metric in metrics for found in solve_grid(model, replace(unit, metric=metric), points)]
    plain = [
        i for i, (_, penalty, radius) in enumerate(grid) if penalty == radius == 0
    ]  # one problem, whatever the cost
    if plain:
        problem = replace(unit, radius=0.0, penalty=0.0 * unit.penalty)
        bound = without_minimiser(problem, solutions[plain[0]], model.tol).lower
        for i in plain:
            solutions[i] = replace(solutions[i], lower=min(solutions[i].lower, bound))
    warn_if_uncertified(max(solutions, key=lambda solution: solution.gap), model.tol)
    rows = [
        [*point, found.upper, found.lower, found.gap, found.lam, *found.b]
        for point, found in zip(grid, solutions, strict=True)
    ]
    return pd.DataFrame(rows, columns=columns)


def solve_grid(
    model: WassersteinLogisticRegression, unit: Problem, grid: Sequence[tuple[float, float]]
) -> list[Solution]:
    """Solve a problem at every (radius, l1 penalty) of a grid, each as the model's ``fit`` would.

    Parameters
    ----------
    model
        Says which solver to use, and how.
    unit
        The problem with l1_penalty = 1: its penalty says which coefficients are penalised, its radius plays no role.
    grid
        The problems differ in these only, and share what the solver can.
    """
    options = {**(model.solver_options or {}), **chosen_solver(model.solver, model.p, model.norm).shared(unit)}
    return [
        model._solve(
            replace(unit, radius=float(radius), penalty=penalty * unit.penalty),
            model.solver,
            options,
            model.conic_solver,
            model.tol,
            model.max_iter,
        )
        for radius, penalty in grid
    ]
