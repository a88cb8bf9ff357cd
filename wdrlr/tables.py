"""Tables of test errors: means and standard errors beside the printed values, as csv, LaTeX and HTML."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from wdrlr.methods import METHODS
from wdrlr.paper import published_values
from wdrlr.paths import replace_file

DATASET_COLUMNS = {"table1": ["N", "k", "m"], "table2": ["N", "n", "k", "m"]}
"""Sizes that the paper prints beside a data set's name."""

SUMMARY_COLUMNS = (
    "dataset N n k m multiclass_source method n_splits mean standard_error best_overall best_in_group "
    "paper paper_best_overall paper_best_in_group difference difference_in_se"
).split()


def select_datasets(table: str, dataset: str) -> list[str]:
    """The data sets of one of the paper's tables: all of them for "all", in printed order, or the one named.

    Raises
    ------
    ValueError
        If the table has no such data set.
    """
    names = list(published_values(table)["dataset"].unique())
    if dataset == "all":
        return names
    if dataset not in names:
        raise ValueError(f"unknown data set {dataset!r}; choose 'all' or one of {', '.join(names)}")
    return [dataset]


def summarise_errors(rows: pd.DataFrame, table: str) -> pd.DataFrame:
    """Mean test errors in per cent, beside those that the paper prints; one row per data set and method.

    Parameters
    ----------
    rows
        Result rows (`wdrlr.results.COLUMNS`) of one protocol, seed and tolerance.
    table
        "table1": the table of the paper to compare with.

    Returns
    -------
    DataFrame in the paper's order with the columns dataset; N, n, k, m (the paper's); multiclass_source;
    method; n_splits; mean and standard_error (in %; the sample standard deviation over the splits divided by
    the root of their number: too small, as splits overlap; nan for one split); best_overall and best_in_group
    (smallest mean of the data set and of the method's group at two decimals, ties included; False unless all
    methods have the same splits); paper, paper_best_overall and paper_best_in_group (as printed); difference
    (ours minus the paper's, in % points) and difference_in_se (in our standard errors; nan where that is 0).

    Raises
    ------
    ValueError
        If rows of several protocols, seeds or tolerances are mixed, or a cell is there twice.
    """
    for column in ("protocol", "seed", "tol"):
        values = rows[column].unique()
        if len(values) > 1:
            raise ValueError(f"rows of several values of {column} are mixed: {sorted(values)}")
    if rows.duplicated(["dataset", "method", "split"]).any():
        raise ValueError("a cell (dataset, method, split) has more than one row")

    ours = rows.groupby(["dataset", "method"], as_index=False).agg(
        n_splits=("test_error", "size"), mean=("test_error", "mean"), standard_error=("test_error", "sem")
    )
    ours[["mean", "standard_error"]] *= 100
    printed = published_values(table).rename(
        columns={
            "value": "paper",
            "best_overall_bold": "paper_best_overall",
            "best_in_group_italic": "paper_best_in_group",
        }
    )
    printed = printed.astype({"paper_best_overall": bool, "paper_best_in_group": bool})
    # The left side's order is the paper's; a method or data set that the paper does not print is not
    # compared.
    summary = printed.merge(ours, on=["dataset", "method"])

    shown = summary["mean"].round(2)
    group = summary["method"].map({name: method.group for name, method in METHODS.items()})
    splits = rows.groupby(["dataset", "method"])["split"].agg(frozenset).groupby("dataset").nunique()
    paired = summary["dataset"].map(splits) == 1
    by_dataset, by_group = [summary["dataset"]], [summary["dataset"], group]
    summary["best_overall"] = paired & (shown == shown.groupby(by_dataset).transform("min"))
    summary["best_in_group"] = paired & (shown == shown.groupby(by_group).transform("min"))
    summary["difference"] = summary["mean"] - summary["paper"]
    error = summary["standard_error"]
    summary["difference_in_se"] = summary["difference"] / error.where(error > 0)
    return summary[SUMMARY_COLUMNS]


def to_latex(summary: pd.DataFrame, table: str) -> str:
    """A tabular (booktabs) to include: two lines a data set, ours with standard errors and the paper's.

    Bold is the smallest error of the data set, italic that of the group, as the paper prints them.
    """
    methods = _methods(summary)
    sizes = DATASET_COLUMNS[table]
    header = ["Data set", *(f"${size}$" for size in sizes), *(METHODS[name].label for name in methods)]
    blocks = []
    for dataset, cells in summary.groupby("dataset", sort=False):
        star = r"$\star$" if cells["multiclass_source"].any() else ""
        numbers = [f"{cells[size].iloc[0]:,}".replace(",", "{,}") for size in sizes]
        ours = [f"{dataset}{star}", *numbers, *_column_cells(cells, methods, _latex_ours)]
        paper = [r"\quad paper", *[""] * len(sizes), *_column_cells(cells, methods, _latex_paper)]
        blocks.append(_latex_line(ours) + _latex_line(paper))
    return (
        rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}"
        + "\n\\toprule\n"
        + _latex_line(header)
        + "\\midrule\n"
        + "\\addlinespace\n".join(blocks)
        + "\\bottomrule\n\\end{tabular}\n"
    )


def to_html(summary: pd.DataFrame) -> str:
    """The table for a notebook: our mean ± standard error, the paper's value, and the difference.

    Plain tags, since viewers of notebooks strip style sheets.
    """
    methods = _methods(summary)
    head = "".join(f"<th>{name}</th>" for name in ["data set", "splits", "", *methods])
    body = ""
    for dataset, cells in summary.groupby("dataset", sort=False):
        splits = "/".join(str(n) for n in sorted(cells["n_splits"].unique()))
        for i, (label, show) in enumerate(_HTML_LINES.items()):
            columns = [dataset if i == 0 else "", splits if i == 0 else "", label]
            columns += _column_cells(cells, methods, show)
            body += "<tr>" + "".join(f"<td>{column}</td>" for column in columns) + "</tr>\n"
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>"


def describe_fits(rows: pd.DataFrame) -> list[str]:
    """What a reader should know about the fits behind the errors: one sentence a matter, naming its data sets."""
    sentences = []
    warned = rows[rows["n_warnings"] > 0]
    warned = warned.assign(warning=warned["warning"].str.split(" | ", regex=False)).explode("warning")
    category = warned["warning"].map(lambda text: text.partition(":")[0])
    for _, cells in warned.groupby(category, sort=False):
        where = _by_dataset(cells, lambda c: f"cells: {_count_by_method(c)}")
        sentences.append(f"{where}. For example: {cells['warning'].iloc[0]}")
    uncertified = rows[rows["n_uncertified"] > 0]
    if len(uncertified):
        where = _by_dataset(
            uncertified, lambda c: f"{c['n_uncertified'].sum()} fits; largest gap of a final one {c['gap'].max():.1e}"
        )
        sentences.append(f"Gap above tol: {where}.")
    constant = rows[rows["constant"]]
    if len(constant):
        where = _by_dataset(constant, lambda c: f"cells: {_count_by_method(c)}")
        sentences.append(f"The chosen fit is exactly 0 and predicts the majority class: {where}.")
    return sentences


def _by_dataset(cells: pd.DataFrame, describe: Callable[[pd.DataFrame], str]) -> str:
    return ", ".join(f"{dataset} ({describe(group)})" for dataset, group in cells.groupby("dataset", sort=False))


def _count_by_method(cells: pd.DataFrame) -> str:
    return ", ".join(f"{method} {len(group)}" for method, group in cells.groupby("method", sort=False))


def save_table(summary: pd.DataFrame, table: str, folder: Path, name: str) -> list[Path]:
    """Write ``<name>.csv`` and ``<name>.tex`` into `folder`, each replaced whole, and return their paths."""
    contents = {
        folder / f"{name}.csv": summary.to_csv(index=False, lineterminator="\n"),
        folder / f"{name}.tex": to_latex(summary, table),
    }
    for path, text in contents.items():
        replace_file(path, text)
    return list(contents)


def _methods(summary: pd.DataFrame) -> list[str]:
    present = set(summary["method"])
    return [name for name in METHODS if name in present]


def _column_cells(cells: pd.DataFrame, methods: Sequence[str], show: Callable) -> list[str]:
    by_method = {cell.method: cell for cell in cells.itertuples()}
    return [show(by_method[name]) if name in by_method else "" for name in methods]


def _latex_line(columns: Sequence[str]) -> str:
    return " & ".join(columns) + " \\\\\n"


def _latex_ours(cell) -> str:
    error = "" if pd.isna(cell.standard_error) else f" ({cell.standard_error:.2f})"
    return _latex_marked(f"{cell.mean:.2f}", cell.best_overall, cell.best_in_group) + error


def _latex_paper(cell) -> str:
    return _latex_marked(f"{cell.paper:.2f}", cell.paper_best_overall, cell.paper_best_in_group)


def _latex_marked(number: str, bold: bool, italic: bool) -> str:
    text = number + r"\%"
    if italic:
        text = rf"\textit{{{text}}}"
    return rf"\textbf{{{text}}}" if bold else text


def _html_ours(cell) -> str:
    error = "" if pd.isna(cell.standard_error) else f" ± {cell.standard_error:.2f}"
    return _html_marked(f"{cell.mean:.2f} %", cell.best_overall, cell.best_in_group) + error


def _html_paper(cell) -> str:
    return _html_marked(f"{cell.paper:.2f} %", cell.paper_best_overall, cell.paper_best_in_group)


def _html_difference(cell) -> str:
    in_se = "" if pd.isna(cell.difference_in_se) else f" ({cell.difference_in_se:+.1f} s.e.)"
    return f"{cell.difference:+.2f}{in_se}"


def _html_marked(text: str, bold: bool, italic: bool) -> str:
    if italic:
        text = f"<i>{text}</i>"
    return f"<b>{text}</b>" if bold else text


_HTML_LINES = {"ours": _html_ours, "the paper": _html_paper, "difference": _html_difference}
