"""The same problem in other units: solvers choose their own units, so that those of the data do not matter.

Units are powers of two, so a change of units changes no digit: data that differ by such a factor give the same problem
to the last bit.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from wdrlr.model.metric import GroundMetric
from wdrlr.model.problem import Problem


def power_of_two(size: float) -> float:
    """The power of two nearest to a size; 1 for the size 0."""
    return 2.0 ** float(np.round(np.log2(size))) if size > 0 else 1.0


def with_number_unit(problem: Problem, unit: float) -> Problem:
    """The problem with its numbers in ``unit``: x / unit and b_N unit in place of x and b_N. f and lam are the same."""
    factor = np.ones(problem.n_coefficients)
    factor[1 : 1 + problem.n_numeric] = unit
    metric = replace(
        problem.metric,
        label_cost=problem.metric.label_cost / unit,
        level_cost=problem.metric.level_cost / unit,
        scale=problem.metric.scale / unit,
    )
    penalty, bound = problem.penalty / factor, problem.coef_bound * factor
    return replace(problem, x=problem.x / unit, metric=metric, penalty=penalty, coef_bound=bound)


def with_distance_unit(problem: Problem, smallest_column: float) -> Problem:
    """The problem with transport costs in a unit near the cost of changing one level, or the radius if that is larger.

    Without categories, the cost of moving a number by ``smallest_column`` takes the place of the cost of a level. At
    radius 0, where there is no transport, all costs are 1.
    """
    metric = problem.metric
    if problem.radius == 0:
        return replace(problem, metric=GroundMetric(np.inf, norm=metric.norm))
    cost = metric.typical_change(problem.n_categorical) or smallest_column / metric.scale
    unit = power_of_two(max(cost, problem.radius))
    return replace(problem, metric=replace(metric, scale=metric.scale * unit), radius=problem.radius / unit)
