from dataclasses import asdict

from wdrlr.paper.protocols import GAMMAS, PROTOCOLS, RADII


def test_grids_are_those_of_appendix_c():
    assert RADII == (0.0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    assert GAMMAS == (0.0, 0.5e-5, 0.5e-4, 0.5e-3, 0.5e-2, 0.5e-1, 0.5)


def test_a_reading_is_found_by_its_name_and_searches_points_of_the_paper_s_grids():
    for name, protocol in PROTOCOLS.items():
        assert protocol.name == name
        assert (protocol.radii, protocol.gammas) == (RADII, GAMMAS)
        assert set(protocol.joint_radii) <= set(RADII) and set(protocol.joint_gammas) <= set(GAMMAS)


def test_where_the_two_readings_differ():
    code, paper = (asdict(PROTOCOLS[name]) for name in ("code", "paper"))
    differ = {field: (code[field], paper[field]) for field in code if code[field] != paper[field]}
    assert differ == {
        "name": ("code", "paper"),
        "metric_scale": ("unit", None),
        "coding": ("pm1", "onehot"),
        "any_code": (True, False),
        "coef_bound": (100.0, None),
        "penalize_intercept": (True, False),
        "joint_radii": ((0.0, 1e-5, 1e-3, 1e-1, 1.0), RADII),
        "joint_gammas": ((0.0, 0.5e-5, 0.5e-3, 0.5e-1, 0.5), GAMMAS),
    }
