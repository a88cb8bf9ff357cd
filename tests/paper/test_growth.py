import numpy as np
import pandas as pd
import pytest

from wdrlr.paper import growth
from wdrlr.paper.runtimes import GRIDS, SOLVERS


@pytest.fixture
def summary():
    """Medians that are a power of N, and exponential in m but for the tailored solver; one size has no median."""
    seconds = {
        "monolithic": lambda N, m: 0.01 * N**1.5 * 2.0**m,
        "algorithm1": lambda N, m: 0.01 * N * 1.1**m,
        "all-violated": lambda N, m: 0.01 * N * 1.1**m,
        "tailored": lambda N, m: 0.001 * N,
    }
    rows = [
        {"label_cost": "m", "panel": panel, "solver": solver, "levels": "2", "N": N, "m": m}
        | {"median": seconds[solver](N, m), "missing": "", "tried": 3, "solved": 3}
        for panel, sizes in (("N", [(10, 4), (20, 4), (50, 4)]), ("m", [(20, 2), (20, 4), (20, 6)]))
        for solver in SOLVERS
        for N, m in sizes
    ]
    rows += [
        {"label_cost": "m", "panel": "scheme", "solver": "algorithm1", "levels": "2", "N": N, "m": m}
        | {"median": 0.01 * N**0.5 * m**1.5, "missing": "", "tried": 3, "solved": 3}
        for N, m in ((50, 10), (100, 10), (100, 50), (200, 20))
    ]
    rows = pd.DataFrame(rows)
    stopped = (rows["solver"] == "monolithic") & (rows["N"] == 50)
    rows.loc[stopped, ["median", "missing", "solved"]] = [np.inf, "time limit", 1]
    return rows


def test_powers_and_factors_are_those_of_the_medians_that_are_known(summary):
    verdict = growth.growth_table(summary, ["m"])["kappa = m"]
    assert verdict["power of N, monolithic program"] == "1.50"
    assert verdict["power of N, scheme, at the same N"] == "1.00"
    assert verdict["power of N, scheme, alone"] == "0.50"
    assert verdict["power of m, scheme, alone"] == "1.50"
    assert verdict["factor of a feature, monolithic program"] == "2.00"
    assert verdict["factor of a feature, scheme"] == "1.10"
    assert verdict["sizes whose median ended in time, scheme"] == verdict["sizes, scheme"] == "4"


def test_one_size_alone_has_no_power(summary):
    verdict = growth.growth_table(summary[summary["N"] == 20], ["m"])["kappa = m"]
    assert verdict["power of N, monolithic program"] == verdict["power of N, scheme, alone"] == "nan"


def test_growth_is_from_the_smallest_to_the_largest_size_that_all_solved(summary):
    lines = list(growth.describe_growth(summary, GRIDS["quick"], "m"))
    assert lines[0].endswith("from N = 10 to 20:") and lines[5].endswith("from m = 2 to 6:")
    assert f"{2**1.5:7.1f} times as long as at the smallest" in lines[1]
    assert f"the monolithic program takes {20**0.5 * 2**4 / 0.1:7.1f} times as long" in lines[4]


def test_a_size_given_up_says_why(summary):
    counts = growth.count_solved(summary)
    assert counts.loc[("m", "2", 50, 4), "monolithic program"] == "1/3 time limit"
    assert counts.loc[("m", "2", 20, 4), "monolithic program"] == "3/3"


def test_a_label_cost_without_rows_is_named_with_the_remedy(summary):
    growth.require_label_costs(summary, ["m"], "rows")
    with pytest.raises(RuntimeError, match=r"rows has no rows .* kappa = 1: set compute_missing to True"):
        growth.require_label_costs(summary, ["m", "1"], "rows")
