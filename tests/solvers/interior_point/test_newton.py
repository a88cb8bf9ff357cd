"""The Newton step against the whole linear system of docs/interior_point.md, dense and without elimination."""

import numpy as np
import pytest
from scipy.special import expit

from tests.instances import random_problem
from wdrlr.solvers.interior_point import instance as instance_module
from wdrlr.solvers.interior_point import newton as module
from wdrlr.solvers.interior_point.bound import Bounds, bound_below
from wdrlr.solvers.interior_point.coordinates import Coordinates
from wdrlr.solvers.interior_point.instance import Instance
from wdrlr.solvers.interior_point.method import first_iterate, move
from wdrlr.solvers.interior_point.newton import linearise, predict_and_correct
from wdrlr.solvers.interior_point.search import search

SETTINGS = {
    "l1": {"N": 12, "n": 2, "n_levels": (2, 3, 2), "radius": 0.05},
    "tops, box, penalty and l2": {
        **{"N": 15, "n": 2, "n_levels": (2, 5, 3), "radius": 0.02, "norm": "l2"},
        **{"gamma": 0.01, "coef_bound": 0.8, "weighted": True},
    },
    "linf": {"N": 15, "n": 3, "n_levels": (4, 3), "radius": 0.02, "norm": "linf", "gamma": 0.01},
    "radius 0": {"N": 12, "n": 1, "n_levels": (2, 3), "radius": 0.0, "gamma": 0.02},
    "levels apart": {
        **{"N": 40, "n": 2, "n_levels": (3, 12, 7, 4), "radius": 0.02, "coef_bound": 0.8, "gamma": 0.01},
        **{"penalize_intercept": True, "weighted": True},
    },
    "levels apart, pm1": {"N": 40, "n": 0, "n_levels": (12, 7), "radius": 0.02, "coding": "pm1", "gamma": 0.01},
}


def dense_rows(rows, E):
    return np.array([rows.times(unit) for unit in np.eye(E)]).T.reshape(len(rows), E)


def whole_step(instance, at, newton, aims):
    """Changes of theta, s and u, and the multipliers after the step, from one linear system in all of them."""
    E, x, pool, penalties = instance.coordinates.E, instance.coordinates.data.x, at.pool, instance.penalties
    sample = np.repeat(np.arange(len(x)), at.pool.counts)
    R = np.zeros((len(sample), E))
    R[:, 0], R[:, 1 : 1 + x.shape[1]] = 1.0, x[sample]
    for c, i in enumerate(sample):
        levels = instance.coordinates.data.column[instance.coordinates.data.z[i]]
        levels[pool.feature[pool.ends[c] : pool.ends[c + 1]]] = pool.entry[pool.ends[c] : pool.ends[c + 1]]
        R[c, levels[levels >= 0]] += 1.0
    R *= pool.sign[:, None]
    t = expit(R @ at.theta)
    A = t[:, None] * R
    A[:, -1] -= pool.cost
    mult = at.cuts.multiplier
    H = R.T @ ((mult * t * (1 - t))[:, None] * R)
    H[np.diag_indices(instance.coordinates.n_scores)] += at.ridge * newton.n_pairs * at.tau
    if instance.curved and (slopes := instance.slopes(at.theta)).any():
        n, size, scale = x.shape[1], np.linalg.norm(slopes), instance.coordinates.x_scale
        second = (np.eye(n) - np.outer(slopes, slopes) / size**2) / size
        H[1 : 1 + n, 1 : 1 + n] += at.limits.multiplier[-1] * second / np.outer(scale, scale)
    S, Q, B = np.eye(len(x))[sample], dense_rows(at.rows, E) * newton.live[:, None], dense_rows(instance.penalised, E)
    families = [  # slacks change by the products with theta, s and u
        (at.cuts, aims[0] * at.cuts.slack, -A, S, 0 * S[:, :1] @ np.zeros((1, len(B)))),
        (at.limits, aims[1] * at.limits.slack, Q, np.zeros((len(Q), len(x))), np.zeros((len(Q), len(B)))),
        (at.above, aims[2] * at.above.slack, -B, np.zeros((len(B), len(x))), np.eye(len(B))),
        (at.below, aims[3] * at.below.slack, B, np.zeros((len(B), len(x))), np.eye(len(B))),
    ]
    G = np.vstack([np.hstack([to_theta, to_s, to_u]) for _, _, to_theta, to_s, to_u in families])
    slack, before = (np.concatenate([pairs[part] for pairs, *_ in families]) for part in (0, 1))
    n_primal = G.shape[1]
    K = np.zeros((n_primal + len(G),) * 2)
    K[:E, :E] = H
    K[:n_primal, n_primal:] = -G.T
    K[n_primal:, :n_primal], K[n_primal:, n_primal:] = before[:, None] * G, np.diag(slack)
    cost = np.zeros(E)
    cost[-1] = instance.problem.radius
    right = np.concatenate([-cost, -instance.coordinates.data.w, -penalties, *(target for _, target, *_ in families)])
    idle = np.flatnonzero(~newton.used)
    K[idle], K[:, idle], K[idle, idle], right[idle] = 0.0, 0.0, 1.0, 0.0
    scale = np.abs(K).max(axis=1)
    found = np.linalg.solve(K / scale[:, None], right / scale)
    return found[:E], (G @ found[:n_primal])[: len(sample)], found[n_primal:]


@pytest.mark.parametrize("name", SETTINGS)
def test_both_steps_solve_the_whole_system(monkeypatch, name):
    made = []

    def spy(instance, at, newton, *aims):
        made.append(([aim.copy() for aim in aims], eliminated(instance, at, newton, *aims)))
        return made[-1][1]

    eliminated = module._newton_step
    monkeypatch.setattr(module, "_newton_step", spy)
    monkeypatch.setattr(instance_module, "LEAST_APART", 10)
    problem = random_problem(1, **SETTINGS[name])
    instance = Instance(problem, Coordinates(problem), 1e-7)
    assert (instance.fold.n_core < instance.coordinates.E) == ("apart" in name)
    at = first_iterate(instance, None)
    bounds = Bounds(np.inf, at.theta)
    for _ in range(5):
        newton = linearise(instance, at)
        made.clear()
        step = predict_and_correct(instance, at, newton, bounds.upper)
        assert len(made) == 2 and made[1][1].theta is step.theta
        for aims, found in made:
            theta, slack, multipliers = whole_step(instance, at, newton, aims)
            np.testing.assert_allclose(found.theta * newton.used, theta, atol=1e-8 * np.abs(theta).max())
            several = newton.several
            np.testing.assert_allclose(found.cuts.slack[several], slack[several], atol=1e-8 * np.abs(slack).max())
            assert not found.cuts.slack[~several].any()
            told = np.concatenate([part.multiplier for part in (found.cuts, found.limits, found.above, found.below)])
            np.testing.assert_allclose(told, multipliers, atol=1e-8 * np.abs(multipliers).max())
        bounds = bound_below(instance, at, newton, step, bounds)
        trial, bounds = search(instance, at, newton, step, bounds)
        at = move(instance, at, newton, step, trial, False)


@pytest.mark.parametrize("least_apart", [8, 30])
def test_without_an_intercept_steps_leave_it_0(monkeypatch, least_apart):
    monkeypatch.setattr(instance_module, "LEAST_APART", least_apart)
    problem = random_problem(4, N=12, n=1, n_levels=(2, 9), radius=0.05, fit_intercept=False)
    instance = Instance(problem, Coordinates(problem), 1e-7)
    at = first_iterate(instance, None)
    step = predict_and_correct(instance, at, linearise(instance, at), np.inf)
    assert step.theta.any()
    assert abs(instance.intercept_row @ step.theta) < 1e-12 * np.abs(step.theta).max()


@pytest.mark.parametrize(
    ("is_apart", "setting"),
    [
        (True, {}),
        (True, {"coef_bound": 1.0, "gamma": 0.1, "penalize_intercept": True}),
        (True, {"coding": "pm1"}),
        (False, {"coding": "pm1", "any_code": True}),
        (False, {"costs": "matrices"}),
        (False, {"coding": "pm1", "coef_bound": 1.0}),
        (False, {"n_levels": (3, 3)}),
    ],
    ids=str,
)
def test_levels_are_eliminated_where_none_meet(monkeypatch, is_apart, setting):
    """Codes, costs of pairs and bounds on an intercept that is made of all slopes bring them together."""
    monkeypatch.setattr(instance_module, "LEAST_APART", 8)
    problem = random_problem(2, **{"N": 30, "n_levels": (3, 12), "radius": 0.02} | setting)
    instance = Instance(problem, Coordinates(problem), 1e-7)
    assert (instance.fold.n_core < instance.coordinates.E) == is_apart
