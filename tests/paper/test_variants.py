import pickle

import numpy as np
import pandas as pd
import pytest

from wdrlr.estimators.formulation import Formulation
from wdrlr.model.objective import objective
from wdrlr.paper.baselines import dummies_as_numbers
from wdrlr.paper.cells import run_cell
from wdrlr.paper.trials import VARIANTS_OF, plan_trials
from wdrlr.paper.variants import STOPS, VARIANTS, dummies_at_half_distance

RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": pd.Categorical(RNG.choice(list("pqr"), 60)), "b": pd.Categorical(RNG.choice(list("st"), 60))})
y = np.where((X["a"] == "p").to_numpy() ^ (RNG.random(60) < 0.2), 1, -1)
UNIT = {"coding": "pm1", "metric_scale": "unit", "coef_bound": 100.0}


def posed(X=X, y=y, **fields):
    return Formulation(**{"label_cost": 1.0} | fields).fit(X, y.astype(float), np.ones(len(y)))


@pytest.mark.parametrize("name", VARIANTS)
def test_a_change_changes_what_it_says_and_nothing_else(name):
    kind = next(kind for kind, names in VARIANTS_OF.items() if name in names)
    method = {"DRO": "DRO_kappa_m", "MT": "MT_kappa_m"}.get(kind, kind)
    (standard,) = [c for c in plan_trials("audiology", 1, 0)[0] if c.method.name == method]
    cell = pickle.loads(pickle.dumps(VARIANTS[name].of(standard)))
    assert cell.protocol.name == f"code-{name}"
    before, after = (
        vars(c.method.formulation(c.protocol)) | {"tol": c.tol, "solver": c.method.solver or c.solver}
        for c in (standard, cell)
    )
    expected = {
        "residue-primal": {"solver"},
        "residue-dual": {"solver"},
        "shared": {"solver"},
        "stopped": {"solver"},
        "levels": {"any_code"},
        "metric": {"metric_scale"},
        "box": {"coef_bound"},
        "intercept": {"penalize_intercept"},
        "coding": {"coding"},
        "half": {"change"},
        "PI-coding": {"coding"},
        "PI-intercept": {"penalize_intercept"},
        **{f"stop-{tol:g}": {"tol"} for tol in STOPS},
    }
    assert {key for key in after if before[key] != after[key]} == expected.get(name, set())
    assert (cell.method.grid(cell.protocol) != standard.method.grid(standard.protocol)) == (
        name in ("grid", "twice", "radius-0")
    )
    assert cell.protocol.bounded_at_0 == (name == "box-at-0")
    assert (cell.protocol.ties != standard.protocol.ties) == (name == "ties")
    assert cell.protocol.keep_order == (name == "folds")
    assert (cell.method.penalty is not standard.method.penalty) == (name == "PI-half")


def test_with_half_the_distance_mt_s_slopes_are_twice_as_bounded():
    """With |z - z'| / 2 = 1 for a flip, 2 |b_j| <= lam / scale instead of |b_j| <= lam / scale."""
    full, half = (
        posed(radius=0.05, coding="pm1", change=change).problem
        for change in (dummies_as_numbers, dummies_at_half_distance)
    )
    assert full.metric.dual_norm(np.array([1.0, 0.0, 0.0])) == pytest.approx(1.0)
    assert half.metric.dual_norm(np.array([1.0, 0.0, 0.0])) == pytest.approx(2.0)
    assert full.metric.label_change == half.metric.label_change == 1.0
    b = np.array([0.0, 1.0, 0.0, 0.0])
    assert objective(full, b)[1] >= 1.0 and objective(half, b)[1] >= 2.0


def test_a_variant_runs_as_a_cell():
    standard, variants = plan_trials("balance-scale", 1, 0)
    cells = {(c.method.name, c.protocol.name): c for c in variants}
    row = run_cell(*cells["PI", "code-PI-coding"])
    assert row["protocol"] == "code-PI-coding" and row["gap"] <= 1e-6
    (own,) = [c for c in standard if c.method.name == "PI"]
    assert run_cell(*own)["objective"] != row["objective"]
