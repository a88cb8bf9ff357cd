"""The paper's tables: our errors and runtimes beside the printed ones, as csv, LaTeX and HTML."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import beta

from wdrlr.files import replace_file
from wdrlr.paper.counts import datasets_for
from wdrlr.paper.methods import METHODS
from wdrlr.paper.printed import published_values
from wdrlr.paper.significance import assess_wins

DATASET_COLUMNS = {
    "table1": ["N", "k", "m"],
    "table2": ["N", "n", "k", "m"],
    "table3": ["N", "n", "k", "m"],
    "table4": ["N", "k", "m"],
}
"""Sizes that the paper prints beside a data set's name."""

STATISTICS = {"table1": "mean", "table2": "median", "table3": "median", "table4": "mean"}
"""The statistic over the splits that the paper prints."""

SUMMARY_COLUMNS = (
    "dataset N n k m multiclass_source method n_splits statistic ours standard_error best_overall best_in_group dagger "
    "double_dagger paper paper_best_overall paper_best_in_group paper_dagger paper_double_dagger difference "
    "difference_in_se"
).split()

RUNTIME_COLUMNS = (
    "dataset N n k m multiclass_source method n_splits statistic seconds identification_seconds fit_seconds cv_seconds "
    "ratio_to_LR paper paper_identification_seconds paper_ratio_to_LR"
).split()

_SIZES = ["N", "n", "k", "m", "multiclass_source"]
_PRINTED_NAMES = {
    "value": "paper",
    "value_identification_s": "paper_identification_seconds",
    "best_overall_bold": "paper_best_overall",
    "best_in_group_italic": "paper_best_in_group",
    "dagger": "paper_dagger",
    "double_dagger": "paper_double_dagger",
}
_PRINTED_MARKS = ["paper_best_overall", "paper_best_in_group", "paper_dagger", "paper_double_dagger"]


def select_datasets(table: str, dataset: str) -> list[str]:
    """The data sets of one of the paper's tables: all of them for "all", in printed order, or the one named.

    A data set that is not in the paper can be named, too.

    Raises
    ------
    ValueError
        If there is no such data set, or if it is in another table of the paper.
    """
    if dataset == "all":
        return list(published_values(table)["dataset"].unique())
    if dataset not in (names := datasets_for(table)):
        raise ValueError(f"unknown data set {dataset!r}; choose 'all' or one of {', '.join(names)}")
    return [dataset]


def label_of(method: str) -> str:
    """A method's name for readers, in plain text; rows and csv files have `Method.name`."""
    return METHODS[method].label.replace("$", "").replace(r"\kappa", "κ")


def labelled(table: pd.DataFrame) -> pd.DataFrame:
    """The table with `label_of` its methods, wherever their names are: in cells, index or columns."""
    labels = {name: label_of(name) for name in METHODS}
    return table.replace(labels).rename(index=labels, columns=labels)


def labelled_text(text: str) -> str:
    """The text with `label_of` its methods; a name that begins with another one, as r-LR, keeps its beginning."""
    for name in METHODS:
        text = text.replace(name, label_of(name))
    return text


def summarise_errors(rows: pd.DataFrame, table: str) -> pd.DataFrame:
    """Mean or median test errors in per cent, beside those that the paper prints; one row per data set and method.

    Parameters
    ----------
    rows
        Result rows (`wdrlr.paper.results.COLUMNS`) of one protocol, seed and tolerance.
    table
        "table1" (means) or "table2" (medians): the table of the paper to compare with.

    Returns
    -------
    DataFrame in the paper's order with the columns dataset; N, n, k, m (the paper's); multiclass_source;
    method; n_splits; statistic ("mean" or "median"); ours and its standard_error (in %; too small, as splits overlap;
    for a mean the sample standard deviation over the root of the number of splits, for a median see
    `median_standard_error`; nan for one split); best_overall and best_in_group (smallest of the data set and of the
    method's group at two decimals, ties included; False unless all methods have the same splits); dagger and
    double_dagger (the method wins, and is significantly better than LR or than the second best, see
    `significance.assess_wins`); paper and paper_best_overall, ..., paper_double_dagger (as printed); difference
    (ours minus the paper's, in percentage points) and difference_in_se (in our standard errors; nan where that is 0).
    Data sets that are not in the paper come last, with nan or False in the paper's columns.

    Raises
    ------
    ValueError
        If rows of several protocols, seeds or tolerances are mixed, or a cell occurs twice.
    """
    _check_rows(rows)
    statistic = STATISTICS[table]
    ours = rows.groupby(["dataset", "method"], as_index=False).agg(
        n_splits=("test_error", "size"),
        ours=("test_error", statistic),
        standard_error=("test_error", "sem" if statistic == "mean" else median_standard_error),
    )
    ours[["ours", "standard_error"]] *= 100
    ours["statistic"] = statistic
    summary = _beside_printed(ours, table)

    shown = summary["ours"].round(2)
    splits = rows.groupby(["dataset", "method"])["split"].agg(frozenset).groupby("dataset").nunique()
    paired = summary["dataset"].map(splits) == 1
    by_dataset, by_group = [summary["dataset"]], [summary["dataset"], summary["method"].map(_groups())]
    summary["best_overall"] = paired & (shown == shown.groupby(by_dataset).transform("min"))
    summary["best_in_group"] = paired & (shown == shown.groupby(by_group).transform("min"))
    wins = assess_wins(rows, statistic).set_index(["dataset", "method"])[["dagger", "double_dagger"]]
    summary = summary.join(wins.astype(bool), on=["dataset", "method"])
    for dagger in ("dagger", "double_dagger"):
        summary[dagger] = summary[dagger].eq(True)
    summary["difference"] = summary["ours"] - summary["paper"]
    error = summary["standard_error"]
    summary["difference_in_se"] = summary["difference"] / error.where(error > 0)
    return summary[SUMMARY_COLUMNS]


def summarise_runtimes(rows: pd.DataFrame, table: str) -> pd.DataFrame:
    """Mean or median seconds of fits, beside those that the paper prints.

    Parameters
    ----------
    rows
        As in `summarise_errors`.
    table
        "table3" (medians, mixed data sets) or "table4" (means, categorical ones).

    Returns
    -------
    DataFrame in the paper's order with the columns dataset; N, n, k, m; multiclass_source; method; n_splits; statistic;
    seconds (what the paper counts: the solver's, of the fit on the whole training part at the chosen point);
    identification_seconds (PI's simulation; nan for other methods); fit_seconds (wall clock of that fit, encoding of
    the features and the check for separable data included); cv_seconds (wall clock of the cross-validation before it);
    ratio_to_LR (seconds and identification_seconds over LR's on the same data set; nan without LR's); paper,
    paper_identification_seconds and paper_ratio_to_LR (the same of the printed numbers).

    Raises
    ------
    ValueError
        As `summarise_errors`.
    """
    _check_rows(rows)
    statistic = STATISTICS[table]
    ours = rows.groupby(["dataset", "method"], as_index=False).agg(
        n_splits=("split", "size"),
        seconds=("solver_seconds", statistic),
        identification_seconds=("identification_seconds", statistic),
        fit_seconds=("seconds", statistic),
        cv_seconds=("cv_seconds", statistic),
    )
    ours["statistic"] = statistic
    summary = _beside_printed(ours, table)
    for ratio, seconds, identification in (
        ("ratio_to_LR", "seconds", "identification_seconds"),
        ("paper_ratio_to_LR", "paper", "paper_identification_seconds"),
    ):
        total = summary[seconds] + summary[identification].fillna(0.0)
        lr = summary["dataset"].map(total[summary["method"] == "LR"].set_axis(_datasets_of(summary, "LR")))
        summary[ratio] = total / lr
    return summary[RUNTIME_COLUMNS]


def median_standard_error(values: pd.Series | np.ndarray, axis: int = -1) -> np.ndarray:
    """The standard error of sample medians by Maritz and Jarrett (Biometrika 65, 1978); nan for one value.

    With x_(1) <= ... <= x_(n) along the axis, and W_i the probability of ((i - 1) / n, i / n] under
    Beta((n + 1) / 2, (n + 1) / 2), it is the root of the variance of x under W: the limit of a bootstrap of the median,
    without simulation.
    """
    x = np.sort(np.moveaxis(np.asarray(values, dtype=float), axis, -1), axis=-1)
    x = x - x[..., :1]  # exactly 0 where all are equal
    n = x.shape[-1]
    if n < 2:
        return np.full(x.shape[:-1], np.nan)
    weights = np.diff(beta.cdf(np.arange(n + 1) / n, (n + 1) / 2, (n + 1) / 2))
    return np.sqrt((x - (x @ weights)[..., None]) ** 2 @ weights)


def count_best(summary: pd.DataFrame) -> pd.DataFrame:
    """On how many data sets each method is the best of its group and the best overall, ties included.

    Only data sets on which all methods of the summary have the same splits are counted.

    Parameters
    ----------
    summary
        The result of `summarise_errors`.

    Returns
    -------
    DataFrame indexed by method with the columns group, of (the number of data sets), in_group, paper_in_group, overall
    and paper_overall (the paper's on the same data sets, by its printed marks).
    """
    cells = _complete(summary)
    marks = {
        "in_group": "best_in_group",
        "paper_in_group": "paper_best_in_group",
        "overall": "best_overall",
        "paper_overall": "paper_best_overall",
    }
    counts = cells.groupby("method")[list(marks.values())].sum().reindex(_methods(summary), fill_value=0)
    counts = counts.rename(columns={mark: name for name, mark in marks.items()})
    counts.insert(0, "group", counts.index.map(_groups()))
    counts.insert(1, "of", cells["dataset"].nunique())
    return counts


def judge_best(summary: pd.DataFrame) -> dict[str, bool]:
    """The claims of Tables 1 and 2 about wins, each with the numbers behind it, and whether it holds for our errors.

    It holds if ours are at least as favourable to the proposed methods as the paper's own marks. As in `count_best`,
    data sets count whose methods all have the same splits; they must be in the paper.

    Parameters
    ----------
    summary
        The result of `summarise_errors`.
    """
    cells = _complete(summary[summary["paper"].notna()])
    n = cells["dataset"].nunique()
    claims = {}
    for who, kind, favourable in (
        ("a proposed method (DRO, r-DRO) has the smallest error on", _is_proposed(cells), np.greater_equal),
        ("LR or r-LR has the smallest error on only", cells["method"].isin(["LR", "r-LR"]), np.less_equal),
    ):
        marks = "best_overall", "paper_best_overall"
        ours, paper = (cells.loc[kind & cells[mark], "dataset"].nunique() for mark in marks)
        claims[f"{who} {paper} of {n} data sets (here: {ours})"] = bool(favourable(ours, paper))
    return claims if n else {}


def to_latex(summary: pd.DataFrame, table: str) -> str:
    """A booktabs tabular to include: two lines per data set, ours (errors with standard errors) and the paper's.

    As in the paper, the smallest error of the data set is bold and that of the group italic. A dagger marks a winner
    significantly better than LR, a double dagger one significantly better than the second best.
    """
    methods = _methods(summary)
    sizes = DATASET_COLUMNS[table]
    header = ["Data set", *(f"${size}$" for size in sizes), *(METHODS[name].label for name in methods)]
    ours, paper = list(_lines(table).values())[:2]
    rows: list[list[str]] = []
    for dataset, cells in summary.groupby("dataset", sort=False):
        space = "\\addlinespace\n" if rows else ""
        star = r"$\star$" if cells["multiclass_source"].any() else ""
        numbers = [f"{size:,}".replace(",", "{,}") if pd.notna(size) else "" for size in cells[sizes].iloc[0]]
        rows.append([f"{space}{dataset}{star}", *numbers, *_column_cells(cells, methods, ours, _LATEX)])
        rows.append([r"\quad paper", *[""] * len(sizes), *_column_cells(cells, methods, paper, _LATEX)])
    shown = pd.DataFrame(rows, columns=header).style.hide(axis="index")
    return shown.to_latex(hrules=True, column_format="l" + "r" * (len(header) - 1))


def to_html(summary: pd.DataFrame, table: str) -> str:
    """The table for a notebook, several lines per data set.

    For errors: ours ± standard error, the paper's, and the difference. For runtimes: ours, the paper's, and both as
    multiples of LR's. It has only plain tags, since notebook viewers strip style sheets.
    """
    methods = _methods(summary)
    rows = []
    for dataset, cells in summary.groupby("dataset", sort=False):
        star = " ⋆" if cells["multiclass_source"].any() else ""
        splits = "/".join(str(n) for n in sorted(cells["n_splits"].unique()))
        first = [f"{dataset}{star}", splits]
        for label, show in _lines(table).items():
            rows.append([*first, label, *_column_cells(cells, methods, show, _HTML)])
            first = ["", ""]
    shown = pd.DataFrame(rows, columns=["data set", "splits", "", *map(label_of, methods)])
    return shown.style.hide(axis="index").to_html(exclude_styles=True)


def describe_fits(rows: pd.DataFrame) -> list[str]:
    """What a reader should know about the fits behind the errors: one sentence per issue, naming its data sets."""
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
        sentences.append(f"All slopes of the chosen fit are exactly 0, so it predicts the majority class: {where}.")
    n_constant, n_fits = rows["n_constant"].sum(), rows["n_fits"].sum()
    if n_constant:
        where = _by_dataset(rows[rows["n_constant"] > 0], lambda c: str(c["n_constant"].sum()))
        sentences.append(
            f"Of all {n_fits} fits, cross-validation included, {n_constant} have slopes that are all 0: {where}."
        )
    return sentences


def _by_dataset(cells: pd.DataFrame, describe: Callable[[pd.DataFrame], str]) -> str:
    return ", ".join(f"{dataset} ({describe(group)})" for dataset, group in cells.groupby("dataset", sort=False))


def _count_by_method(cells: pd.DataFrame) -> str:
    counts = cells["method"].value_counts()
    return ", ".join(f"{label_of(method)} {counts[method]}" for method in METHODS if method in counts)


def save_table(summary: pd.DataFrame, table: str, folder: Path, name: str) -> list[Path]:
    """Write ``<name>.csv``, ``.tex`` and ``.html`` into `folder`, each replaced whole, and return their paths."""
    note = _HTML_NOTE if _is_of_errors(table) else ""
    title = f"{table.capitalize()[:-1]} {table[-1]}: {'test errors' if _is_of_errors(table) else 'runtimes'}"
    contents = {
        folder / f"{name}.csv": summary.to_csv(index=False, lineterminator="\n"),
        folder / f"{name}.tex": to_latex(summary, table),
        folder / f"{name}.html": _HTML_PAGE.format(title=title, table=to_html(summary, table), note=note),
    }
    for path, text in contents.items():
        replace_file(path, text)
    return list(contents)


def _complete(summary: pd.DataFrame) -> pd.DataFrame:
    """The cells of data sets on which all methods of the summary have the same splits."""
    by_dataset = summary.groupby("dataset")
    n_methods = by_dataset["method"].transform("size")
    return summary[by_dataset["best_overall"].transform("any") & (n_methods == summary["method"].nunique())]


def _is_proposed(cells: pd.DataFrame) -> pd.Series:
    return cells["method"].map({name: method.is_proposed for name, method in METHODS.items()}).astype(bool)


def _groups() -> dict[str, str]:
    return {name: method.group for name, method in METHODS.items()}


def _check_rows(rows: pd.DataFrame) -> None:
    for column in ("protocol", "seed", "tol"):
        values = rows[column].unique()
        if len(values) > 1:
            raise ValueError(f"rows with different values of {column} are mixed: {sorted(values)}; select one")
    if rows.duplicated(["dataset", "method", "split"]).any():
        raise ValueError("a cell (dataset, method, split) has more than one row; select one solver")


def _beside_printed(ours: pd.DataFrame, table: str) -> pd.DataFrame:
    """Our cells beside the paper's printed values, if any: its data sets first, in its order, then the others."""
    printed = published_values(table).rename(columns=_PRINTED_NAMES).astype(dict.fromkeys(_SIZES, "Int64"))
    sizes = printed.drop_duplicates("dataset").set_index("dataset")[_SIZES]
    summary = ours.merge(printed.drop(columns=_SIZES), how="left", on=["dataset", "method"]).join(sizes, on="dataset")
    summary[_PRINTED_MARKS] = summary[_PRINTED_MARKS].eq(True)
    place = {name: i for i, name in enumerate(dict.fromkeys([*sizes.index, *ours["dataset"], *METHODS]))}
    return summary.sort_values(["dataset", "method"], key=lambda names: names.map(place), ignore_index=True)


def _datasets_of(summary: pd.DataFrame, method: str) -> pd.Series:
    return summary.loc[summary["method"] == method, "dataset"]


def _is_of_errors(table: str) -> bool:
    return table in ("table1", "table2")


def _methods(summary: pd.DataFrame) -> list[str]:
    present = set(summary["method"])
    return [name for name in METHODS if name in present]


class _Marks(NamedTuple):
    """How a kind of file formats an error and its marks."""

    number: str
    italic: str
    bold: str
    daggers: tuple[str, str]
    after_daggers: str
    standard_error: str


_LATEX = _Marks(r"{:.2f}\%", r"\textit{{{}}}", r"\textbf{{{}}}", (r"\dag", r"\ddag"), "{}", " ({:.2f})")
_HTML = _Marks("{:.2f} %", "<i>{}</i>", "<b>{}</b>", ("†", "‡"), "", " ± {:.2f}")


def _column_cells(cells: pd.DataFrame, methods: Sequence[str], show: Callable, marks: _Marks) -> list[str]:
    by_method = {cell["method"]: cell for _, cell in cells.iterrows()}
    return [show(by_method[name], marks) if name in by_method else "" for name in methods]


def _ours(cell: pd.Series, marks: _Marks) -> str:
    error = "" if pd.isna(cell["standard_error"]) else marks.standard_error.format(cell["standard_error"])
    return _marked(cell, "ours", "", marks) + error


def _paper(cell: pd.Series, marks: _Marks) -> str:
    return _marked(cell, "paper", "paper_", marks)


def _marked(cell: pd.Series, column: str, prefix: str, marks: _Marks) -> str:
    if pd.isna(cell[column]):
        return ""
    text = marks.number.format(cell[column])
    text = marks.italic.format(text) if cell[f"{prefix}best_in_group"] else text
    text = marks.bold.format(text) if cell[f"{prefix}best_overall"] else text
    dagger, double_dagger = marks.daggers
    daggers = dagger * cell[f"{prefix}dagger"] + double_dagger * cell[f"{prefix}double_dagger"]
    return text + daggers + (marks.after_daggers if daggers else "")


def _difference(cell: pd.Series, marks: _Marks) -> str:
    in_se = "" if pd.isna(cell["difference_in_se"]) else f" ({cell['difference_in_se']:+.1f} s.e.)"
    return "" if pd.isna(cell["difference"]) else f"{cell['difference']:+.2f}{in_se}"


def _sum(shape: str, *numbers: float) -> str:
    return " + ".join(shape.format(number) for number in numbers if not pd.isna(number))


def _lines(table: str) -> dict[str, Callable[[pd.Series, _Marks], str]]:
    """The lines of a data set: a label, and the text of a cell."""
    if _is_of_errors(table):
        return {"ours": _ours, "the paper": _paper, "difference": _difference}
    return {
        "ours (s)": lambda cell, _: _sum("{:.4f}", cell["seconds"], cell["identification_seconds"]),
        "the paper (s)": lambda cell, _: _sum("{:.2f}", cell["paper"], cell["paper_identification_seconds"]),
        "ours / our LR": lambda cell, _: _sum("{:.2g}", cell["ratio_to_LR"]),
        "the paper / its LR": lambda cell, _: _sum("{:.2g}", cell["paper_ratio_to_LR"]),
    }


_HTML_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ font: 14px/1.4 sans-serif; margin: 1.5em; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th, td {{ padding: 0.1em 0.6em; text-align: right; white-space: nowrap; }}
th:first-child, td:first-child {{ text-align: left; }}
thead th {{ border-top: 1.5px solid; border-bottom: 1px solid; }}
tbody {{ border-bottom: 1.5px solid; }}
</style>
</head>
<body>
<h1>{title}</h1>
{table}
{note}
</body>
</html>
"""

_HTML_NOTE = """<p>Bold: the smallest of the data set; italic: of the group (LR, DRO; r-LR, r-DRO; MT, PI).
† a winner significantly better than LR, ‡ than the second best, by a t-test on means; none where both are equal at two
decimals. A star: more than two classes in the source.</p>"""
