"""Fits over a whole grid of radii, penalties and label costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from wdrlr.estimators.classifier import WassersteinLogisticRegression
from wdrlr.estimators.solving import Infimum, at_point, infimum, lowered, warn_if_uncertified, warn_of_no_minimiser
from wdrlr.model.encoding import features_of_slopes, slope_names, without_rows
from wdrlr.model.problem import Problem
from wdrlr.model.threads import threads


def fit_path(
    X: Any,
    y: Any,
    radii: Sequence[float],
    l1_penalties: Sequence[float] = (0.0,),
    label_costs: Sequence[float | str] = (np.inf,),
    *,
    sample_weight: Any = None,
    **parameters: Any,
) -> pd.DataFrame:
    """Fit the robust logistic regression for every label cost, penalty and radius of a grid.

    The table is encoded and merged once. With p = 1 the solver's coordinates are shared, and each fit starts at that of
    the next larger radius. Each is certified separately; within its gap it is that of
    ``WassersteinLogisticRegression``.

    Parameters
    ----------
    X, y, sample_weight
        As in ``WassersteinLogisticRegression.fit``.
    radii, l1_penalties, label_costs
        The grid; a label cost is a float, "n_categorical" or inf.
    **parameters
        The other parameters of ``WassersteinLogisticRegression``; warm_start has no effect. With ``verbose`` above 0 a
        line about each fit is printed.

    Returns
    -------
    DataFrame with one row per fit, in the order label cost, penalty, radius
        label_cost, l1_penalty, radius, objective, lower_bound, gap, transport_multiplier, intercept, then one column
        for every slope, named as in ``get_feature_names_out``. ``.attrs["no_rows"]`` lists the columns of those levels
        that no row has.

    Raises
    ------
    ValueError
        As ``WassersteinLogisticRegression.fit``, for any point of the grid, before any fit; also if a parameter of the
        grid is passed by its singular name, or if two columns would have the same name.

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
    for singular, plural, values in (
        ("radius", "radii", radii),
        ("l1_penalty", "l1_penalties", l1_penalties),
        ("label_cost", "label_costs", label_costs),
    ):
        if singular in parameters:
            raise ValueError(f"fit_path takes a list {plural} in place of {singular}.")
        if isinstance(values, str) or np.ndim(values) != 1:
            raise ValueError(f"{plural} must be a list, not {values!r}.")
    model = WassersteinLogisticRegression(**parameters)
    grid = list(product(label_costs, l1_penalties, radii))
    if not grid:
        raise ValueError("radii, l1_penalties and label_costs need at least one value each.")
    for label_cost, penalty, radius in grid:
        model.set_params(label_cost=label_cost, l1_penalty=penalty, radius=radius)._validate_params()
    formulation, solving = model.set_params(l1_penalty=1.0)._formulation(), model._solving()
    with threads(model.n_jobs):
        encoding, unit, _ = model._posed(formulation, X, y, sample_weight)
    columns = ["label_cost", "l1_penalty", "radius", "objective", "lower_bound", "gap", "transport_multiplier"]
    names = slope_names(encoding, model.coding)
    columns += ["intercept", *names]
    repeated = sorted(name for name, times in Counter(columns).items() if times > 1)
    if repeated:
        raise ValueError(f"the path would have two columns {', '.join(repeated)}; rename these features.")
    shape = unit.n_numeric, unit.n_categorical
    costs = formulation.costs(encoding)
    metrics = [replace(formulation, label_cost=cost).metric(*shape, costs) for cost in label_costs]
    points = [(radius, penalty) for penalty, radius in product(l1_penalties, radii)]
    with threads(model.n_jobs):
        solutions = [
            fit
            for metric in metrics
            for fit in solving.solve_path([at_point(replace(unit, metric=metric), *point) for point in points])
        ]
    infima: dict[tuple, Infimum | None] = {}
    unattained: dict[bool, tuple[Problem, Infimum]] = {}  # the first one at radius 0, and above
    for i, (label_cost, penalty, radius) in enumerate(grid):
        if penalty == 0:
            point = (radius, label_cost if radius > 0 else None)  # at radius 0 no metric plays a role
            if point not in infima:
                problem = at_point(replace(unit, metric=metrics[i // len(points)]), radius, 0.0)
                infima[point] = found = infimum(problem, model.tol)
                if found is not None:
                    unattained.setdefault(radius > 0, (problem, found))
            solutions[i] = lowered(solutions[i], infima[point])
    for one in unattained.values():
        warn_of_no_minimiser(*one, features_of_slopes(encoding))
    warn_if_uncertified(max(solutions, key=lambda solution: solution.gap), model.tol)
    rows = [
        [*point, fit.upper, fit.lower, fit.gap, fit.lam, *fit.b] for point, fit in zip(grid, solutions, strict=True)
    ]
    path = pd.DataFrame(rows, columns=columns)
    path.attrs["no_rows"] = names[without_rows(encoding, model.coding)].tolist()
    return path
