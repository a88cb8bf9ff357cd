from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import expit

from tests.instances import COSTS, random_coefficients, random_costs
from wdrlr.model.encoding import level_matrix
from wdrlr.model.metric import ground_metric
from wdrlr.model.objective import Objective, objective
from wdrlr.model.problem import Problem
from wdrlr.solvers.column_constraint import solve_column_constraint
from wdrlr.solvers.interior_point.method import solve_tailored
from wdrlr.solvers.open_slopes import interval, settle
from wdrlr.solvers.solution import certified


def problem_with_open_slopes(seed, N=150, coding="onehot", costs=None, gamma=0.0, coef_bound=np.inf, any_code=False):
    """A random problem of 1 to 3 categories, with levels and often references that have no rows, and of 0 to 2 numbers,
    which can be the same in all rows, though not without an intercept, unless they are 0."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(0, 3)), int(rng.integers(1, 4))
    n_levels = tuple(rng.integers(1, 6, m).tolist())
    present = [rng.choice(levels, int(rng.integers(1, levels + 1)), replace=False) for levels in n_levels]
    z = np.column_stack([rng.choice(levels, N) for levels in present])
    fit_intercept = bool(rng.random() < 0.7)
    x = rng.normal(size=(N, n))
    constant = rng.random(n) < 0.3
    x[:, constant] = rng.choice([0.0, 1.0, -2.5], constant.sum()) * fit_intercept
    f = rng.normal() / 2 + x @ rng.normal(size=n)
    f += sum(rng.normal(size=levels)[z[:, j]] for j, levels in enumerate(n_levels))
    y = np.where(rng.random(N) < expit(f), 1.0, -1.0)
    y[:2] = -1.0, 1.0
    w = rng.random(N) + 0.1
    kappa, norm = float(rng.choice([1.0, m, np.inf])), str(rng.choice(["l1", "l2", "linf"]))
    metric = ground_metric(kappa, n, m, norm=norm)
    if costs is not None:
        metric = replace(metric, **random_costs(costs, seed, n, n_levels, norm))
    matrix = level_matrix(n_levels, coding)
    penalty = np.full(1 + n + matrix.shape[1], gamma)
    penalty[0] = 0.0
    return Problem(
        x=x,
        z=z,
        y=y,
        w=w / w.sum(),
        n_levels=n_levels,
        level_matrix=matrix,
        metric=metric,
        radius=float(rng.choice([0.0, 1e-4, 1e-3, 0.01, 0.03, 0.1, 1.0])),
        penalty=penalty,
        coef_bound=coef_bound,
        fit_intercept=fit_intercept,
        any_code=any_code,
    )


def probabilities(problem, b):
    """At all levels, with rows or without."""
    z = np.array(list(product(*map(range, problem.n_levels))))
    return expit(replace(problem, x=problem.x[: len(z)], z=z).decision(b))


def small(seed, **options):
    """The same with few rows, for coefficients that are not optimal."""
    problem = problem_with_open_slopes(seed, N=12, **options)
    b = random_coefficients(problem, seed) * (np.random.default_rng(seed).random(problem.n_coefficients) < 0.5)
    return problem, problem.feasible(b)


@pytest.mark.parametrize("block", range(8))
def test_probabilities_do_not_depend_on_solver_start_or_coding(block):
    """The largest difference over 700 such problems is 4e-4, the median 1e-6."""
    for seed in range(20 * block, 20 * (block + 1)):
        problem = problem_with_open_slopes(seed)
        best = solve_tailored(problem, tol=1e-8)
        elsewhere = replace(best, b=random_coefficients(problem, seed))
        fits = [
            (problem, solve_column_constraint(problem, tol=1e-8, all_violated=True)),
            (problem, solve_tailored(problem, tol=1e-8, start=elsewhere)),
            (problem, solve_tailored(problem, tol=1e-8, start=solve_tailored(replace(problem, radius=0.02)))),
        ]
        if problem.fit_intercept:
            other = replace(problem, level_matrix=level_matrix(problem.n_levels, "pm1"))
            fits.append((other, solve_tailored(other, tol=1e-8)))
        for posed, fit in fits:
            assert fit.gap <= 1e-8
            np.testing.assert_allclose(probabilities(posed, fit.b), probabilities(problem, best.b), atol=1e-3)


@pytest.mark.parametrize("costs", COSTS)
def test_nor_where_changes_differ_in_cost(costs):
    for seed in range(20):
        problem = problem_with_open_slopes(seed, costs=costs)
        if problem.fit_intercept:
            best = solve_tailored(problem, tol=1e-8)
            other = replace(problem, level_matrix=level_matrix(problem.n_levels, "pm1"))
            elsewhere = replace(best, b=random_coefficients(problem, seed))
            for posed, fit in [
                (problem, solve_column_constraint(problem, tol=1e-8, all_violated=True)),
                (problem, solve_tailored(problem, tol=1e-8, start=elsewhere)),
                (other, solve_tailored(other, tol=1e-8)),
            ]:
                np.testing.assert_allclose(probabilities(posed, fit.b), probabilities(problem, best.b), atol=1e-3)


@pytest.mark.parametrize("coding", ["onehot", "pm1"])
def test_levels_without_rows_have_the_mean_score_and_constant_columns_no_slope(coding):
    n_moved = 0
    for seed in range(200):
        problem, b = small(seed, coding=coding)
        if not problem.fit_intercept:
            continue
        moved = settle(problem, b)[0]
        n_moved += (moved != b).any()
        np.testing.assert_allclose(problem.decision(moved), problem.decision(b), atol=1e-12)
        scores, weights = problem.level_scores(moved), problem.level_weights
        for start, levels in zip(problem.offsets, problem.n_levels, strict=True):
            of_feature, share = scores[start : start + levels], weights[start : start + levels]
            np.testing.assert_allclose(of_feature[share == 0], share @ of_feature, atol=1e-12)
            if (share > 0).sum() == 1:
                np.testing.assert_allclose(of_feature, 0.0, atol=1e-12)
        assert not problem.numeric(moved)[np.ptp(problem.x, axis=0) == 0].any()
        np.testing.assert_allclose(settle(problem, moved)[0], moved, atol=1e-12)
    assert n_moved > 100


@pytest.mark.parametrize("coding", ["onehot", "pm1"])
@pytest.mark.parametrize(
    "limits", [{}, {"gamma": 0.05}, {"coef_bound": 0.7}, *({"costs": kind} for kind in COSTS), {"any_code": True}]
)
def test_the_objective_is_never_raised(coding, limits):
    stayed = 0
    for seed in range(200):
        problem, b = small(seed, coding=coding, **limits)
        if problem.any_code and coding == "onehot":
            continue
        moved, found = settle(problem, b)
        for value in (0.0, found.value, 10.0):  # what a solver says of the objective saves evaluations at most
            again, evaluated = settle(problem, b, Objective(value, 0.0, 1.0))
            assert (again == moved).all() and evaluated.value == pytest.approx(found.value, rel=1e-12)
        assert objective(problem, moved)[0] <= objective(problem, b)[0] + 1e-14
        assert (problem.feasible(moved) == moved).all()
        np.testing.assert_allclose(problem.decision(moved), problem.decision(b), atol=1e-12)
        stayed += moved is b and not problem.level_weights.all()
    if {"gamma", "coef_bound"} & set(limits):
        assert stayed > 2


def test_a_penalty_keeps_levels_without_rows_where_it_wants_them():
    """A solver's slope 0 for them is the only optimum."""
    for seed in range(40):
        problem = problem_with_open_slopes(seed, gamma=0.02)
        b = solve_tailored(problem, tol=1e-8).b
        reference = np.repeat(problem.level_weights[problem.offsets] > 0, np.array(problem.n_levels) - 1)
        slopes = b[1 + problem.n_numeric :]
        without_rows = np.delete(problem.level_weights, problem.offsets) == 0
        assert np.abs(slopes[without_rows & reference]).max(initial=0.0) < 1e-3


@pytest.mark.parametrize(
    "radius, given, expected",
    [
        # The references have 0. The rows' scores are (1, 3) + c and (-1) - c; (2 + c)^2 + (-1 - c)^2 is least at -1.5.
        (0.0, [1.0, 3.0, -1.0, -1.0], [-0.5, 1.5, 0.5, 0.5]),
        # (-0.1, 3) + c and (-0.1, 1) - c: least at c = -0.5; from -0.1 on the second reference is the lowest level.
        (0.0, [-0.1, 3.0, -0.1, 1.0], [-0.6, 2.5, 0.4, 1.5]),
        (2.0, [-0.1, 3.0, -0.1, 1.0], [-0.2, 2.9, 0.0, 1.1]),
    ],
)
def test_without_an_intercept_references_without_rows_share_what_is_missing(radius, given, expected):
    problem = Problem(
        x=np.zeros((2, 0)),
        z=np.array([[1, 1], [2, 2]]),
        y=np.array([-1.0, 1.0]),
        w=np.array([0.5, 0.5]),
        n_levels=(3, 3),
        level_matrix=level_matrix((3, 3), "onehot"),
        metric=ground_metric(np.inf, 0, 2),
        radius=radius,
        penalty=np.zeros(5),
        fit_intercept=False,
    )
    np.testing.assert_allclose(settle(problem, np.array([0.0, *given]))[0], [0.0, *expected], atol=1e-12)


@pytest.mark.parametrize("costs", [None, *COSTS])
def test_the_objective_sees_no_level_without_rows_in_its_interval(costs):
    """With the references' score 0; all others are put at either end, in turn, and beyond."""
    ends, beyond = 0, 0
    for seed in range(150):
        problem, b = small(seed, costs=costs)
        b = settle(problem, b)[0]
        value, lam = objective(problem, b)
        weights = problem.level_weights
        if not problem.fit_intercept or (weights[problem.offsets] == 0).any():
            continue
        for j, start in enumerate(problem.offsets.tolist()):
            for level in np.flatnonzero(weights[problem.levels(j)] == 0).tolist():
                for end, further in zip(interval(problem, b, lam, j, level), (-1.0, 1.0), strict=True):
                    at_end = b.copy()
                    slope = 1 + problem.n_numeric + start - j + level - 1
                    at_end[slope] = np.clip(end, -9.0, 9.0)
                    assert objective(problem, at_end)[0] == pytest.approx(value, abs=1e-13)
                    at_end[slope] += 0.01 * further
                    ends += np.isfinite(end)
                    beyond += objective(problem, at_end)[0] > value + 1e-9
    assert beyond > ends / 20 > 1


def test_nothing_is_touched_where_nothing_is_open_or_the_residue_is_asked_for():
    for seed in range(100):
        problem, b = small(seed)
        nothing_open = problem.level_weights.all() and np.ptp(problem.x, axis=0).all()
        if nothing_open:
            assert settle(problem, b)[0] is b
        assert np.array_equal(certified(problem, b, [], 1e-6, keep_residue=True).b, b)
