from wdrlr.paper.baselines import dummies_as_numbers, profile_penalty
from wdrlr.paper.methods import METHODS
from wdrlr.paper.printed import published_values
from wdrlr.paper.protocols import PROTOCOLS, RADII

CODE = PROTOCOLS["code"]


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
        assert (code.coding, paper.coding) == ("pm1", "pm1" if name == "PI" else "onehot")
        robust = name not in ("LR", "r-LR", "PI")
        assert (code.coef_bound, paper.coef_bound) == (100.0 if robust else None, None)
        assert (code.penalize_intercept, paper.penalize_intercept) == (True, name == "PI")
        assert (code.change is paper.change is dummies_as_numbers) == name.startswith("MT")
        assert (METHODS[name].penalty is profile_penalty) == (name == "PI")
