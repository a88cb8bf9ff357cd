from dataclasses import replace

import numpy as np
import pytest

from wdrlr.datasets import load_dataset
from wdrlr.estimators.solving import Solving
from wdrlr.model.objective import objective
from wdrlr.paper.baselines import dummies_as_numbers, profile_penalty
from wdrlr.paper.cells import prepare_reference, split_rows
from wdrlr.paper.methods import METHODS
from wdrlr.paper.printed import published_values
from wdrlr.paper.protocols import PROTOCOLS, RADII

CODE = PROTOCOLS["code"]


def hayes_roth(split, protocol=CODE):
    """The problem of DRO with kappa = m on the training part of a split."""
    data, method = load_dataset("hayes-roth"), METHODS["DRO_kappa_m"]
    train, _ = split_rows(len(data.y), "hayes-roth", 0, split)
    X = prepare_reference(data.X, protocol.coding).iloc[train]
    unit = method.formulation(protocol).fit(X, np.asarray(data.y, float)[train], np.ones(len(train))).problem
    return lambda radius, gamma=0.0: method.at(protocol, unit, radius, gamma)


def test_the_adversary_of_the_authors_code_can_choose_codes_that_are_no_levels():
    """Their code's optimal values, found with other software: 0.5455 in the mean, and 0.5044 on levels."""
    for protocol, expected in ((CODE, 0.5455), (replace(CODE, any_code=False), 0.5044)):
        values = [Solving().fit(hayes_roth(split, protocol)(0.01)).upper for split in range(6)]
        assert np.mean(values) == pytest.approx(expected, abs=1e-4)


def test_at_radius_0_the_authors_code_is_plain_logistic_regression():
    at = hayes_roth(0)
    assert np.isinf(at(0.0).coef_bound).all() and (at(1e-5).coef_bound == 100.0).all()
    b = np.ones(at(0.0).n_coefficients)
    assert objective(at(0.0, 0.01), b)[0] == objective(replace(at(0.0, 0.01), any_code=False), b)[0]
    assert (hayes_roth(0, replace(CODE, bounded_at_0=True))(0.0).coef_bound == 100.0).all()


def test_the_methods_are_the_nine_columns_of_the_tables():
    assert list(METHODS) == list(published_values("table1")["method"].unique())
    groups = [method.group for method in METHODS.values()]
    assert groups == ["unregularized"] * 3 + ["regularized"] * 3 + ["numerical"] * 3
    proposed = [name for name, method in METHODS.items() if method.is_proposed]
    assert proposed == ["DRO_kappa_1", "DRO_kappa_m", "r-DRO_kappa_1", "r-DRO_kappa_m"]


def test_grids_are_those_of_the_paper_and_of_its_code():
    paper = PROTOCOLS["paper"]
    gammas = [0, 0.5e-5, 0.5e-4, 0.5e-3, 0.5e-2, 0.5e-1, 0.5]
    assert RADII == (0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1)
    for protocol in (CODE, paper):
        assert METHODS["LR"].grid(protocol) == METHODS["PI"].grid(protocol) == [(0.0, 0.0)]
        for name in ("DRO_kappa_1", "DRO_kappa_m", "MT_kappa_1", "MT_kappa_m"):
            assert METHODS[name].grid(protocol) == [(radius, 0.0) for radius in RADII]
        assert METHODS["r-LR"].grid(protocol) == [(0.0, gamma) for gamma in gammas]
    for name in ("r-DRO_kappa_1", "r-DRO_kappa_m"):
        assert METHODS[name].grid(paper) == [(radius, gamma) for radius in RADII for gamma in gammas]
        assert METHODS[name].grid(CODE) == [
            (radius, gamma) for radius in (0, 1e-5, 1e-3, 1e-1, 1) for gamma in (0, 0.5e-5, 0.5e-3, 0.5e-1, 0.5)
        ]


def test_formulations_follow_the_protocol():
    for name in METHODS:
        code, paper = (METHODS[name].formulation(PROTOCOLS[protocol]) for protocol in ("code", "paper"))
        assert code.label_cost == paper.label_cost == ("n_categorical" if name.endswith("_m") else 1.0)
        assert (code.metric_scale, paper.metric_scale) == ("unit", None)
        assert (code.any_code, paper.any_code) == (METHODS[name].is_proposed, False)
        assert (code.coding, paper.coding) == ("pm1", "pm1" if name == "PI" else "onehot")
        robust = name not in ("LR", "r-LR", "PI")
        assert (code.coef_bound, paper.coef_bound) == (100.0 if robust else None, None)
        assert (code.penalize_intercept, paper.penalize_intercept) == (True, name == "PI")
        assert (code.change is paper.change is dummies_as_numbers) == name.startswith("MT")
        assert (METHODS[name].penalty is profile_penalty) == (name == "PI")
