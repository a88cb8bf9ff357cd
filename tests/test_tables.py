import re

import numpy as np
import pandas as pd
import pytest

from wdrlr.paper import published_values
from wdrlr.tables import (
    describe_fits,
    save_table,
    select_datasets,
    summarise_errors,
    to_html,
    to_latex,
)

ERRORS = {
    ("tic-tac-toe", "LR"): [0.02, 0.04],
    ("tic-tac-toe", "DRO_kappa_1"): [0.01, 0.03],
    ("tic-tac-toe", "DRO_kappa_m"): [0.0200001, 0.0199999],  # the same two decimals as kappa = 1
    ("balance-scale", "LR"): [0.0, 0.0],
    ("balance-scale", "DRO_kappa_1"): [0.1, 0.2],
    ("balance-scale", "DRO_kappa_m"): [0.1, 0.3],
}


def make_rows(errors=ERRORS):
    return pd.DataFrame(
        {
            "dataset": dataset,
            "protocol": "code",
            "method": method,
            "split": split,
            "seed": 0,
            "tol": 1e-6,
            "test_error": error,
            "n_fits": 36,
            "n_uncertified": 0,
            "n_warnings": 0,
            "warning": "",
            "gap": 1e-7,
            "constant": False,
        }
        for (dataset, method), values in errors.items()
        for split, error in enumerate(values)
    )


@pytest.fixture
def summary():
    return summarise_errors(make_rows(), "table1")


def cell(summary, dataset, method):
    return summary.set_index(["dataset", "method"]).loc[(dataset, method)]


def test_mean_standard_error_and_difference(summary):
    lr = cell(summary, "tic-tac-toe", "LR")
    assert lr["mean"] == pytest.approx(3.0)
    assert lr["standard_error"] == pytest.approx(1.0)
    assert lr["paper"] == 1.92
    assert lr["difference"] == pytest.approx(1.08)
    assert lr["difference_in_se"] == pytest.approx(1.08)
    assert lr["n_splits"] == 2


def test_no_difference_in_standard_errors_where_there_is_none(summary):
    assert np.isnan(cell(summary, "balance-scale", "LR")["difference_in_se"])
    one = summarise_errors(make_rows({("spect", "LR"): [0.1]}), "table1").iloc[0]
    assert np.isnan(one["standard_error"]) and np.isnan(one["difference_in_se"])
    assert "nan" not in to_html(pd.DataFrame([one])) + to_latex(pd.DataFrame([one]), "table1")


def test_the_smallest_error_is_marked_and_ties_share_it(summary):
    best = summary.set_index(["dataset", "method"])["best_overall"]
    assert list(best["tic-tac-toe"]) == [False, True, True]
    assert list(best["balance-scale"]) == [True, False, False]
    assert (summary["best_overall"] == summary["best_in_group"]).all()  # one group so far


def test_nothing_is_marked_where_methods_have_different_splits():
    rows = make_rows().drop(index=0)
    best = summarise_errors(rows, "table1").groupby("dataset")["best_overall"].any()
    assert not best["tic-tac-toe"] and best["balance-scale"]


def test_the_paper_s_marks_are_its_own(summary):
    kappa_m = cell(summary, "tic-tac-toe", "DRO_kappa_m")
    assert kappa_m["paper_best_overall"] and kappa_m["paper_best_in_group"]
    assert not cell(summary, "balance-scale", "DRO_kappa_m")["paper_best_overall"]


def test_marks_follow_the_rule_that_the_paper_follows():
    """Put the printed values in: the marks at two decimals must be the printed ones."""
    printed = published_values("table1")
    printed = printed[printed["method"].isin(["LR", "DRO_kappa_1", "DRO_kappa_m"])]
    errors = {(row.dataset, row.method): [row.value / 100] for row in printed.itertuples()}
    summary = summarise_errors(make_rows(errors), "table1")
    assert len(summary) == 14 * 3
    assert (summary["best_in_group"] == summary["paper_best_in_group"]).all()


@pytest.mark.parametrize("column, value", [("protocol", "paper"), ("seed", 1), ("tol", 1e-3)])
def test_rows_of_several_runs_are_refused(column, value):
    rows = make_rows()
    rows.loc[0, column] = value
    with pytest.raises(ValueError, match=f"several values of {column}"):
        summarise_errors(rows, "table1")


def test_a_cell_with_two_rows_is_refused():
    rows = make_rows()
    with pytest.raises(ValueError, match="more than one row"):
        summarise_errors(pd.concat([rows, rows]), "table1")


def test_latex_is_a_booktabs_tabular(summary):
    text = to_latex(summary, "table1")
    assert text.startswith(r"\begin{tabular}{lrrrrrr}") and text.endswith("\\end{tabular}\n")
    lines = [line for line in text.splitlines() if "&" in line]
    assert all(line.count("&") == 6 and line.endswith(r"\\") for line in lines)
    assert len(lines) == 1 + 2 * 2
    assert [text.count(rule) for rule in ("toprule", "midrule", "bottomrule")] == [1, 1, 1]
    assert r"tic-tac-toe & 958 & 18 & 9 & 3.00\% (1.00) & \textbf{\textit{2.00\%}} (1.00)" in text
    assert r"\quad paper &  &  &  & 1.92\% & 1.69\% & \textbf{\textit{1.67\%}}" in text
    assert r"balance-scale$\star$" in text
    assert not re.search(r"(?<!\\)%", text)


def test_html_has_ours_the_paper_s_and_the_difference(summary):
    text = to_html(summary)
    assert "<td>3.00 % ± 1.00</td>" in text
    assert "<td><b><i>1.67 %</i></b></td>" in text
    assert "<td>+1.08 (+1.1 s.e.)</td>" in text


def test_saved_tables_are_whole_and_read_back(summary, tmp_path):
    paths = save_table(summary, "table1", tmp_path, "table1_all_code")
    assert [path.name for path in paths] == ["table1_all_code.csv", "table1_all_code.tex"]
    back = pd.read_csv(paths[0])
    pd.testing.assert_frame_equal(back, summary.reset_index(drop=True), check_dtype=False, rtol=1e-12)
    assert paths[1].read_text() == to_latex(summary, "table1")
    assert not list(tmp_path.glob("*.tmp"))


def test_fits_are_described_once_per_matter_and_data_set():
    rows = make_rows()
    assert describe_fits(rows) == []
    rows.loc[[0, 1, 2, 6], "n_warnings"] = 3
    rows.loc[[0, 1, 2, 6], "warning"] = "A: separable"
    rows.loc[2, "warning"] = "A: separable | B: far off"
    rows.loc[[2, 3], "n_uncertified"] = 2
    rows.loc[[2, 6], "constant"] = True
    assert describe_fits(rows) == [
        "tic-tac-toe (cells: LR 2, DRO_kappa_1 1), balance-scale (cells: LR 1). For example: A: separable",
        "tic-tac-toe (cells: DRO_kappa_1 1). For example: B: far off",
        "Gap above tol: tic-tac-toe (4 fits; largest gap of a final one 1.0e-07).",
        "The chosen fit is exactly 0 and predicts the majority class: tic-tac-toe (cells: DRO_kappa_1 1), "
        "balance-scale (cells: LR 1).",
    ]


def test_data_sets_of_a_table():
    assert len(select_datasets("table1", "all")) == 14
    assert select_datasets("table1", "spect") == ["spect"]
    for name in ("spekt", "hepatitis", ""):
        with pytest.raises(ValueError, match=f"unknown data set '{name}'; choose 'all' or one of .*spect"):
            select_datasets("table1", name)
