"""The numbers on the page of errata, from the printed tables and from the formulas."""

from pathlib import Path

import numpy as np
import pytest

from wdrlr.paper.one_feature import far_point, radius_at
from wdrlr.paper.printed import published_counts, published_values

ERRATA = Path(__file__).parents[2] / "docs" / "errata.md"
TABLE_1 = published_values("table1")
UNREGULARISED = ("LR", "DRO_kappa_1", "DRO_kappa_m")
NUMERICAL = ("MT_kappa_1", "MT_kappa_m", "PI")


def line(start):
    (found,) = [row for row in ERRATA.read_text(encoding="utf-8").splitlines() if row.startswith(f"| {start}")]
    return found


def times_lowest(method, group):
    errors = TABLE_1.pivot(index="dataset", columns="method", values="value")[list(group)]
    return int((errors[method] == errors.min(axis=1)).sum()), len(errors)


def test_how_often_each_method_of_a_group_has_the_lowest_error():
    lowest, sets = times_lowest("DRO_kappa_m", UNREGULARISED)
    printed = line("Section 4.2 | DRO")
    assert f"{lowest} of the {sets} rows" in printed and f"{100 * lowest / sets:.0f} %: in" in printed
    assert "79 %" in printed and f"{100 * lowest / sets:.0f} %" != "79 %"
    lowest, sets = times_lowest("MT_kappa_1", NUMERICAL)
    in_italics = int(TABLE_1.loc[TABLE_1["method"] == "MT_kappa_1", "best_in_group_italic"].sum())
    printed = line("Section 4.2 | MT")
    assert f"{lowest} of {sets}, {100 * lowest / sets:.0f} %" in printed
    assert f"{in_italics} of {sets} entries are in italics, which is {100 * in_italics / sets:.0f} %" in printed


@pytest.mark.parametrize(
    ("start", "factor", "distance"),
    [("Appendix B", 1, 1.0), ("Appendix B", 2, 1.0), ("Section 2.2, Appendix B", 1, 0.5)],
)
def test_where_appendix_b_puts_the_far_atom(start, factor, distance):
    at = far_point(250, 1e-3, factor * radius_at(250), distance)
    assert f"{at:,.0f}" in line(start)


def test_the_annealing_row_and_the_sizes_of_splice_are_printed_so():
    seconds = published_values("table3").set_index(["dataset", "method"])["value"].loc["annealing"]
    shifted = [f"{seconds[method]:.2f}" for method in ("r-LR", "r-DRO_kappa_1", "r-DRO_kappa_m")]
    printed = line("Table 3, annealing")
    assert all(f"{value} s" in printed for value in shifted)
    assert f"({shifted[2]}, {shifted[0]}, {shifted[1]} would fit" in printed
    assert "N = {N:,}, k = {k}".format(**published_counts().loc["splice"]) in line("Tables 1 and 4, splice")


@pytest.mark.parametrize(("order", "factor"), [(1, lambda n: 1), (2, np.sqrt), (np.inf, lambda n: n)])
def test_lemma_1_needs_the_dimension_factor(order, factor):
    n, M = 3, 1.0
    x = np.ones(n) * 1e3 if order > 1 else np.eye(n)[0] * 1e3
    worst = np.logaddexp(0, M + M * np.abs(x).sum())
    size = np.linalg.norm(x, order)
    assert worst <= (np.log(2) + M * factor(n)) * (1 + size)
    assert (worst <= (np.log(2) + M) * (1 + size)) == (factor(n) < np.log(2) + M)
