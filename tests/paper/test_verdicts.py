"""Every rule with made-up numbers, both ways."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from tests.paper.test_redrawn import made_up, printed_rows
from wdrlr.paper import verdicts
from wdrlr.paper.printed import published_values
from wdrlr.paper.redrawn import Splits
from wdrlr.paper.tables import summarise_runtimes
from wdrlr.paper.verdicts import FAILS, HOLDS, IN_PART, UNDECIDED, verdict


def splits_of(rows, table="table1"):
    return Splits.of(rows, table)


def one_way(best, J=20, sd=0.0):
    """Fourteen data sets, each with the same best method."""
    datasets = published_values("table1")["dataset"].unique()
    return splits_of(made_up({name: {best: 10.0} for name in datasets}, J, sd))


# Parts


@pytest.mark.parametrize(
    "parts, expected",
    [
        ([HOLDS, HOLDS], HOLDS),
        ([FAILS, FAILS], FAILS),
        ([HOLDS, FAILS], IN_PART),
        ([HOLDS, UNDECIDED], IN_PART),
        ([UNDECIDED, FAILS], UNDECIDED),
        ([IN_PART, FAILS], IN_PART),
        ([IN_PART, HOLDS], IN_PART),
    ],
)
def test_parts_make_a_verdict(parts, expected):
    assert verdict(*parts) == verdict(*reversed(parts)) == expected


def test_reaching_and_agreeing():
    assert [verdicts.reaches(ours, 12, 12) for ours in (13, 12, 11)] == [HOLDS, HOLDS, UNDECIDED]
    assert verdicts.reaches(10, 11, 12) == FAILS
    found = [verdicts.agrees(5, low, high) for low, high in ((5, 5), (3, 6), (6, 9), (1, 4))]
    assert found == [HOLDS, HOLDS, FAILS, FAILS]


# Errors


def test_wins():
    judge = partial(verdicts.judge_wins, tests=(0,), least=12)
    assert judge(one_way("DRO_kappa_1"))[:2] == ("14 of 14", HOLDS)
    assert judge(one_way("LR"))[:2] == ("0 of 14", FAILS)
    even = made_up({name: {"LR": 10.0, "DRO_kappa_1": 10.0} for name in published_values("table1")["dataset"]}, 50, 4.0)
    undecided = verdicts.judge_wins(splits_of(even), tests=(1,), least=9)
    assert undecided.verdict in (UNDECIDED, HOLDS) and "other splits: " in undecided.sure
    assert verdicts.judge_wins(splits_of(even), tests=(1,), least=14).verdict == FAILS


def test_significant_wins_have_two_tests():
    judge = partial(verdicts.judge_wins, tests=(2, 3), least=7)
    assert judge(one_way("r-DRO_kappa_m", sd=1.0)).verdict == HOLDS
    assert judge(one_way("PI", sd=1.0)).verdict == FAILS
    datasets = published_values("table1")["dataset"].unique()
    little = made_up({name: {"DRO_kappa_1": 10.0, "LR": 13.0} for name in datasets}, 100, 8.0)
    found = judge(splits_of(little))
    assert found.verdict == IN_PART and "by the paper's test; " in found.ours and "by the corrected one" in found.ours


def test_losses():
    datasets = published_values("table1")["dataset"].unique()
    close = made_up({name: {"LR": 10.0, "DRO_kappa_1": 10.05, "PI": 12} for name in datasets}, 60, 0.2)
    assert verdicts.judge_losses(one_way("DRO_kappa_1")).verdict == HOLDS  # there are none
    assert verdicts.judge_losses(splits_of(close)).verdict == IN_PART
    third = {name: {"LR": 10.0, "PI": 11.0, "DRO_kappa_1": 12.0} for name in datasets}
    assert verdicts.judge_losses(splits_of(made_up(third))).verdict == FAILS


def test_the_best_of_a_group():
    printed = {"LR": 0, "DRO_kappa_1": 0, "DRO_kappa_m": 14}
    assert verdicts.judge_group(one_way("DRO_kappa_m"), printed).verdict == HOLDS
    assert verdicts.judge_group(one_way("LR"), printed).verdict == IN_PART  # one of the three numbers is right
    assert verdicts.judge_group(one_way("LR"), {"LR": 1, "DRO_kappa_1": 2, "DRO_kappa_m": 11}).verdict == FAILS


def test_averages():
    datasets = published_values("table1")["dataset"].unique()
    good = {"LR": 12, "r-LR": 12, "DRO_kappa_1": 20, "DRO_kappa_m": 11, "r-DRO_kappa_1": 11}
    found = verdicts.judge_averages(splits_of(made_up({name: good for name in datasets})))
    assert found.verdict == IN_PART and "LR 12.00, DRO 20.00 / 11.00 %" in found.ours
    assert ", LR less DRO is -8.00 / +1.00 points, and r-LR less r-DRO +1.00 / " in found.sure
    for_both = good | {"DRO_kappa_1": 11.5, "r-DRO_kappa_m": 11.5}
    assert verdicts.judge_averages(splits_of(made_up({name: for_both for name in datasets}))).verdict == HOLDS
    bad = good | {"r-LR": 10}
    found = verdicts.judge_averages(splits_of(made_up({name: bad for name in datasets})))
    assert found.verdict == IN_PART and found.sure.startswith(
        "r-LR has the lowest mean error over all 14, DRO (κ = m) 1.00 points more; with other splits r-LR has it in "
        "100 % of the draws, "
    )
    assert verdicts.judge_averages(splits_of(made_up({name: bad | {"LR": 10} for name in datasets}))).verdict == FAILS
    one = {name: bad | ({"LR": 40} if name == "spect" else {"LR": 11.5}) for name in datasets}
    found = verdicts.judge_averages(splits_of(made_up(one)))
    assert found.sure.endswith("; without spect, the better DRO leads by 0.50, and r-LR is best")
    equal = {name: {"LR": 12, "r-LR": 11, "r-DRO_kappa_1": 11} for name in datasets}
    found = verdicts.judge_averages(splits_of(made_up(equal)))
    assert ", r-DRO (κ = 1) the same up to 0.01 points; " in found.sure


def test_worst_cases():
    atoms = pd.DataFrame({"n": [0, 0, 1, 2], "N": 20, "atoms": [20, 21, 21, 20], "attained": True})
    assert verdicts.judge_worst_cases(atoms).verdict == HOLDS
    missed = verdicts.judge_worst_cases(atoms.assign(attained=[True, True, False, True]))
    assert missed.verdict == IN_PART
    assert missed.ours == "N + 1; attained without numbers in 2 of 2 fits, with numbers in 1 of 2"
    many = atoms.assign(atoms=22, attained=False)
    assert verdicts.judge_worst_cases(many).verdict == FAILS


def test_what_other_splits_may_turn_is_undecided():
    rows = printed_rows(J=10, sd=3.0)
    found = verdicts.judge_group(splits_of(rows), {"LR": 4, "DRO_kappa_1": 6, "DRO_kappa_m": 8})
    assert found.verdict == UNDECIDED
    assert verdicts.judge_group(splits_of(rows), {"LR": 14, "DRO_kappa_1": 0, "DRO_kappa_m": 0}).verdict == FAILS
    level = made_up({name: {"LR": 12, "r-LR": 12} for name in published_values("table1")["dataset"]}, J=10, sd=0.0)
    noise = np.random.default_rng(0).normal(0, 0.05, len(level))
    level["test_error"] = 0.12 + noise
    assert verdicts.judge_averages(splits_of(level)).verdict == UNDECIDED


def test_pi_and_plain_methods():
    weak = made_up({name: {"PI": 60.0} for name in published_values("table1")["dataset"]})
    assert verdicts.judge_largest(splits_of(weak), "PI", 11).verdict == HOLDS
    assert verdicts.judge_largest(one_way("PI"), "PI", 11).verdict == FAILS
    assert verdicts.judge_plain(one_way("DRO_kappa_1"), 2).verdict == HOLDS
    assert verdicts.judge_plain(one_way("r-LR"), 2).verdict == FAILS


def test_values():
    assert verdicts.judge_values(splits_of(printed_rows(J=50, sd=3.0))).verdict == HOLDS
    assert verdicts.judge_values(one_way("LR", sd=1.0)).verdict == FAILS
    one_far = printed_rows(J=50, sd=3.0)
    first = (one_far["dataset"] == "audiology") & (one_far["method"] == "DRO_kappa_m")
    one_far.loc[first, "test_error"] += 0.05
    found = verdicts.judge_values(splits_of(one_far))
    assert found.verdict == FAILS and "too far off to be chance: audiology, DRO (κ = m) (+" in found.sure
    few = printed_rows(J=20, sd=3.0)
    assert verdicts.judge_values(splits_of(few)).verdict == UNDECIDED
    few.loc[(few["dataset"] == "audiology") & (few["method"] == "DRO_kappa_m"), "test_error"] += 0.2
    assert verdicts.judge_values(splits_of(few)).verdict == FAILS
    assert verdicts.judge_values(splits_of(made_up({"spect": {}}, J=20, sd=0.0))).verdict == UNDECIDED


@pytest.mark.parametrize("factor, expected", [(1.0, HOLDS), (2.9, HOLDS), (3.1, FAILS), (0.3, FAILS)])
def test_seconds(factor, expected):
    printed = published_values("table4").assign(
        protocol="code", seed=0, tol=1e-6, split=0, seconds=1.0, cv_seconds=1.0, identification_seconds=np.nan
    )
    total = printed["value"] + printed["value_identification_s"].fillna(0.0)
    rows = printed.assign(solver_seconds=total * np.where(printed["method"] == "LR", 1.0, factor))
    names = ["DRO_kappa_1", "r-LR", "PI"]
    assert verdicts.judge_seconds(summarise_runtimes(rows, "table4"), names).verdict == expected
    mixed = rows.assign(solver_seconds=rows["solver_seconds"] / np.where(rows["method"] == "PI", 100.0, 1.0))
    found = verdicts.judge_seconds(summarise_runtimes(mixed, "table4"), names)
    assert found.verdict == (IN_PART if expected == HOLDS else FAILS)
    assert found.sure.endswith(f"of the printed size: {2 if expected == HOLDS else 0} of 3 methods")


@pytest.mark.parametrize(
    "factor, stopped, expected", [(2.0, 0, HOLDS), (2.0, 9, FAILS), (4.0, 0, FAILS), (0.3, 0, FAILS)]
)
def test_seconds_by_algorithm_1(factor, stopped, expected):
    fits = pd.DataFrame({"method": ["DRO_kappa_1", "DRO_kappa_m"] * 8, "paper_ratio_to_LR": [100.0, 300.0] * 8})
    fits = fits.assign(ratio_to_LR=factor * fits["paper_ratio_to_LR"], status="done", ratio=50.0)
    fits.loc[fits.index[:stopped], ["ratio_to_LR", "status"]] = [np.inf, "time limit"]
    found = verdicts.judge_scheme_seconds(fits)
    assert found.verdict == expected
    sized, faster = (2 if expected == HOLDS else 0), (2 if factor < 1 else 0)
    assert f"{16 - stopped} of 16 fits ended; of the printed size: {sized} of 2 methods" in found.sure
    assert f"below it: {faster}; 50 times as long as the tailored solver" in found.sure


# Figures


@pytest.mark.parametrize("upper, expected", [([0.9, 0.99], HOLDS), ([0.9, 1.1], IN_PART), ([1.1, 1.2], FAILS)])
def test_the_band(upper, expected):
    bands = pd.DataFrame({"N": [50, 100], "model": "continuous", "lower": 0.5, "upper": upper})
    mixed = bands.assign(model="mixed", upper=[0.98, 1.02])
    found = verdicts.judge_band(pd.concat([bands, mixed]))
    assert found.verdict == expected and "too, at 1 of 2" in found.sure and "0.980 to 1.020" in found.sure


def atoms(full, half, mass=2e-6, mixed=1.0):
    names = ["continuous, |z - z'|", "continuous, |z - z'| / 2", "mixed"]
    return pd.DataFrame({"distribution": names, "z": [full, half, mixed], "probability": [mass, mass, 0.3]})


def test_the_worst_case():
    judge = partial(verdicts.judge_atoms, point=15_312, mass=2e-6)
    assert judge(atoms(15_312.4, -15_312.0)).verdict == HOLDS
    assert judge(atoms(15_312.4, 30_623.8)).verdict == IN_PART
    assert judge(atoms(10.0, 20.0, mass=1e-3, mixed=3.0)).verdict == FAILS


def runtimes(power, factor, scheme_power, missing=""):
    """Made-up medians: monolithic N^power factor^m, scheme (N m)^scheme_power; the tailored solver a tenth of it."""
    panels = {
        "N": [(N, 10) for N in (10, 20, 50, 100)],
        "m": [(50, m) for m in (2, 4, 8)],
        "scheme": [(N, m) for N in (50, 100) for m in (10, 20)],
    }
    rows = []
    for label_cost in "1m":
        for panel, sizes in panels.items():
            for N, m in sizes:
                scheme = 1e-3 * float(N * m) ** scheme_power
                medians = {"algorithm1": scheme}
                if panel != "scheme":
                    medians |= {"monolithic": 1e-3 * N**power * factor**m, "tailored": scheme / 10}
                rows += [
                    (label_cost, panel, solver, "2", N, m, 50, seconds, 1, missing if solver == "algorithm1" else "")
                    for solver, seconds in medians.items()
                ]
    columns = "label_cost panel solver levels N m tried median rounds missing".split()
    return pd.DataFrame(rows, columns=columns)


def test_growth():
    good = runtimes(power=1.0, factor=2.0, scheme_power=1.2)
    bad = runtimes(power=1.0, factor=1.1, scheme_power=3.0)
    of_figure_2 = ("judge_in_samples", "judge_in_features", "judge_scheme", "judge_monolithic")
    for name in of_figure_2:
        assert getattr(verdicts, name)(good).verdict == HOLDS, name
    assert verdicts.judge_in_samples(bad).verdict == verdicts.judge_in_features(bad).verdict == FAILS
    assert verdicts.judge_scheme(bad).verdict == IN_PART  # all sizes in time
    assert verdicts.judge_monolithic(bad).verdict == FAILS
    stopped = runtimes(power=1.0, factor=2.0, scheme_power=1.2, missing="time limit")
    assert verdicts.judge_monolithic(stopped).verdict == verdicts.judge_in_samples(stopped).verdict == UNDECIDED
    half = pd.concat([good[good["label_cost"] == "1"], bad[bad["label_cost"] == "m"]])
    assert verdicts.judge_in_features(half).verdict == IN_PART
    assert (
        "κ = 1: a feature multiplies the seconds by 2.00; κ = m: a feature multiplies the seconds by 1.10"
        == verdicts.judge_in_features(half).ours
    )


@pytest.mark.parametrize("tangents, expected", [(4.0, UNDECIDED), (1.0, FAILS)])
def test_cones_are_undecided_unless_they_are_no_faster(tangents, expected):
    rows = pd.DataFrame({"m": [2, 6, 6], "cone_seconds": [9.0, 2.0, 2.0], "tangents_seconds": [1.0, *[tangents] * 2]})
    found = verdicts.judge_cones(rows)
    assert found.verdict == expected and f"take {tangents / 2:.{1 if tangents > 2 else 2}f} times as long" in found.ours
    assert found.ours.endswith(", m = 6")


def test_few_sizes_do_not_say_how_seconds_grow():
    rows = runtimes(power=1.0, factor=2.0, scheme_power=3.0)
    assert verdicts.judge_in_samples(rows).verdict == FAILS
    sizes = sorted(rows.loc[rows["panel"] == "N", "N"].unique())
    few = rows[(rows["panel"] != "N") | rows["N"].isin(sizes[: verdicts.FEWEST_SIZES - 1])]
    assert verdicts.judge_in_samples(few).verdict == UNDECIDED
