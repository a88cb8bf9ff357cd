"""The steps that notebooks share: from parameters to rows, and from rows to what is shown beside the paper's values.

All result rows that a notebook shows are fetched here. Tables and figures are shown, saved, and the names of their
files printed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import HTML, display
from matplotlib.figure import Figure

from wdrlr.files import replace_file
from wdrlr.paper.cells import describe_missing, plan_cells, wanted_rows
from wdrlr.paper.differences import describe_differences, explain_differences, stored_comparison
from wdrlr.paper.paths import figures_folder, results_folder
from wdrlr.paper.printed import N_SPLITS
from wdrlr.paper.quiet_runtimes import timed_alone
from wdrlr.paper.scheme_runtimes import describe_ratios, scheme_rows, summarise_scheme
from wdrlr.paper.tables import (
    labelled,
    labelled_text,
    save_table,
    select_datasets,
    summarise_errors,
    summarise_runtimes,
    to_html,
)
from wdrlr.paper.trials import plan_trials
from wdrlr.paper.variants import STANDARD
from wdrlr.paper.verdicts import FAILS, HOLDS, IN_PART, UNDECIDED
from wdrlr.plots import save_figure

_VERBS = {
    HOLDS: ("holds", "hold"),
    IN_PART: ("holds in part", "hold in part"),
    FAILS: ("does not hold", "do not hold"),
    UNDECIDED: ("is undecided", "are undecided"),
}


@dataclass(frozen=True)
class Experiment:
    """The rows behind one of the paper's tables.

    Parameters
    ----------
    table
        "table1", ..., "table4".
    dataset, protocol, seed
        As the notebook's parameters.
    datasets
        The data sets wanted, in printed order.
    rows
        Their result rows (`wdrlr.paper.results.COLUMNS`; after `time_alone` also "machine").
    n_failed
        How many cells were to be computed and have no row.
    results, figures
        Folder of the rows, and the one for tables and figures.
    """

    table: str
    dataset: str
    protocol: str
    seed: int
    datasets: list[str]
    rows: pd.DataFrame
    n_failed: int
    results: Path
    figures: Path

    def require_all(self) -> None:
        """Raise a RuntimeError if cells that were to be computed have no row."""
        if self.n_failed:
            raise RuntimeError(f"{self.n_failed} cell(s) failed: see the warning above, and run again to retry them.")

    def file_stem(self, what: str) -> str:
        """Name of the files for this figure or table, without a suffix."""
        return f"{what}_{self.dataset}_{self.protocol}"


def run_experiment(
    table: str,
    *,
    dataset: str,
    n_splits: int,
    first_split: int,
    seed: int,
    protocol: str,
    compute_missing: bool,
    n_jobs: int,
    backend: str,
    scheduler: str,
    results_dir: str,
    figures_dir: str,
    tol: float,
    solver: str,
    methods: Sequence[str] = ("all",),
) -> Experiment:
    """Compute or read the rows that a notebook's parameters ask for, and print how many are done and what is missing.

    Raises
    ------
    ValueError, ImportError, ConnectionError, RuntimeError
        As `wdrlr.paper.cells.wanted_rows`.
    """
    datasets = select_datasets(table, dataset)
    cells = plan_cells(
        datasets,
        methods,
        n_splits=n_splits,
        first_split=first_split,
        seed=seed,
        protocol=protocol,
        tol=tol,
        solver=solver,
    )
    figures, results = figures_folder(figures_dir), results_folder(results_dir)
    print(f"{len(cells)} cells: {len(datasets)} data set(s), {n_splits} split(s)")
    rows = wanted_rows(
        cells, results, compute_missing=compute_missing, n_jobs=n_jobs, backend=backend, scheduler=scheduler
    )
    print(*map(labelled_text, describe_missing(cells, rows)), sep="\n")
    n_failed = len(cells) - len(rows) if compute_missing else 0
    return Experiment(table, dataset, protocol, seed, datasets, rows, n_failed, results, figures)


def run_trials(
    *,
    dataset: str,
    n_splits: int,
    seed: int,
    compute_missing: bool,
    n_jobs: int,
    backend: str,
    scheduler: str,
    results_dir: str,
    figures_dir: str,
) -> tuple[Experiment, pd.DataFrame]:
    """Compute or read the rows of the standard setting and those of its variants, and print how many are done.

    Returns
    -------
    Everything stored for Table 1 in the standard setting, and the rows of the variants.

    Raises
    ------
    ValueError, ImportError, ConnectionError, RuntimeError
        As `wdrlr.paper.cells.wanted_rows`.
    """
    standard, variants = plan_trials(dataset, n_splits, seed)
    figures, results = figures_folder(figures_dir), results_folder(results_dir)
    print(f"{len(standard)} cells of the standard setting, {len(variants)} of its variants")
    n_failed = 0
    if compute_missing:
        computed = wanted_rows(
            [*standard, *variants],
            results,
            compute_missing=True,
            n_jobs=n_jobs,
            backend=backend,
            scheduler=scheduler,
        )
        n_failed = len(standard) + len(variants) - len(computed)
    datasets = select_datasets("table1", "all")
    every = plan_cells(datasets, ["all"], n_splits=N_SPLITS["table1"], seed=seed, protocol=STANDARD)
    stored = wanted_rows([*every, *standard, *variants], results, compute_missing=False)
    changed = stored[stored["protocol"] != STANDARD]
    print(f"{len(changed)} of {len(variants)} cells of the variants done.")
    rows = stored[stored["protocol"] == STANDARD]
    return Experiment("table1", dataset, STANDARD, seed, datasets, rows, n_failed, results, figures), changed


def time_alone(experiment: Experiment, *, compute_missing: bool) -> Experiment:
    """The experiment with the rows and seconds of the fits that were timed alone, and print how many these are.

    They are made in this process, whatever the backend; a fit that fails ends the notebook.

    Raises
    ------
    RuntimeError
        If there are none.
    OSError
        As `wdrlr.paper.quiet_runtimes.timed_alone`.
    """
    rows = timed_alone(experiment.rows, experiment.results, compute_missing=compute_missing)
    of = f"of these {len(experiment.rows)} fits"
    if rows.empty:
        remedy = "set compute_missing to True, or name another results_dir"
        raise RuntimeError(f"none {of} has been timed alone in {experiment.results.name}: {remedy}.")
    print(f"{len(rows)} {of} were timed one after the other, on {rows['machine'].iloc[0]}.")
    return replace(experiment, rows=rows)


def show_table(experiment: Experiment) -> pd.DataFrame:
    """Show and save the table, and return it as `summarise_errors` or `summarise_runtimes` does."""
    table = experiment.table
    summarise = summarise_errors if table in ("table1", "table2") else summarise_runtimes
    summary = summarise(experiment.rows, table)
    _print_names(save_table(summary, table, experiment.figures, experiment.file_stem(table)))
    display(HTML(to_html(summary, table)))
    return summary


def show_scheme(experiment: Experiment, *, time_limit: float, compute_missing: bool) -> dict[str, pd.DataFrame]:
    """Show and save what Algorithm 1 takes for the fits of DRO and r-DRO on the first split of each data set.

    Returns
    -------
    The saved table by its name in `wdrlr.paper.claims`, if there is one.
    """
    rows = scheme_rows(experiment.rows, experiment.results, time_limit=time_limit, compute_missing=compute_missing)
    if rows.empty:
        print("No fit by Algorithm 1 is stored; compute_missing makes them.")
        return {}
    summary = summarise_scheme(rows, experiment.table)
    print(*describe_ratios(summary, time_limit), f"They were made on {'; '.join(rows['machine'].unique())}.", sep="\n")
    save_data(summary, experiment.figures, experiment.file_stem(f"{experiment.table}_algorithm1"))
    shown = {"tailored_seconds": "tailored, s", "seconds": "Algorithm 1, s", "ratio": "ratio", "paper": "paper, s"}
    cells = summary.assign(
        seconds=[f"{row.seconds:.3g}" if row.status == "done" else row.status for row in summary.itertuples()],
        ratio=[
            "" if pd.isna(row.ratio) else f"{'' if row.status == 'done' else '> '}{row.ratio:,.0f}"
            for row in summary.itertuples()
        ],
    )
    with pd.option_context("display.max_rows", None):
        display(labelled(cells.set_index(["dataset", "method"])[["rounds", *shown]].rename(columns=shown).round(4)))
    return {f"{experiment.table}_algorithm1": summary}


def show_differences(experiment: Experiment, summary: pd.DataFrame) -> None:
    """Show where our errors agree with the paper's and where they do not, and what would explain it, if looked for."""
    print(describe_differences(summary, experiment.table))
    display(labelled(differences_in_se(summary)))
    compared = stored_comparison(experiment.results, experiment.protocol, experiment.seed)
    table = explained(summary, compared)
    if not compared["dataset"].isin(summary["dataset"]).any():
        table = table.drop(columns="what would explain it")
    with pd.option_context("display.max_colwidth", None):
        display(labelled(table))


def explained(summary: pd.DataFrame, compared: pd.DataFrame) -> pd.DataFrame:
    """`explain_differences` for readers: data sets and methods in the index, headings in words."""
    headings = {"difference_in_se": "difference (s.e.)", "reason": "what would explain it"}
    table = explain_differences(summary, compared).set_index(["dataset", "method"])
    return table.rename(columns=headings).round(2)


def conclude(claims: Mapping[str, str | bool], whose: str = "The paper's") -> None:
    """Print which claims hold, a notebook's last word: from the verdict on each, or from whether it holds."""
    by_verdict: dict[str, list[str]] = {verdict: [] for verdict in _VERBS}
    for claim, found in claims.items():
        by_verdict[found if isinstance(found, str) else HOLDS if found else FAILS].append(claim)
    known = {verdict: of_one for verdict, of_one in by_verdict.items() if of_one}
    if not claims:
        print("Whether the claim holds cannot be said from these rows.")
    for verdict, of_one in known.items():
        one, several = _VERBS[verdict]
        if len(claims) == 1:
            print(f"{whose} claim {one}: {of_one[0]}.")
        elif len(known) == 1:
            print(f"{whose} claims {several}: {'; '.join(of_one)}.")
        else:
            count = f"{len(of_one)} of {whose.lower()} {len(claims)} claims"
            print(f"{count} {one if len(of_one) == 1 else several}: {'; '.join(of_one)}.")


def differences_in_se(summary: pd.DataFrame) -> pd.DataFrame:
    """Our errors less the printed ones, in units of our standard errors; data sets by methods."""
    return summary.pivot_table(index="dataset", columns="method", values="difference_in_se", sort=False).round(1)


def show_figure(figure: Figure, data: pd.DataFrame, folder: Path, stem: str) -> None:
    """Show the figure, and save it and its data as `wdrlr.plots.save_figure` does."""
    _print_names(save_figure(figure, data, folder, stem))
    display(figure)
    plt.close(figure)


def save_data(data: pd.DataFrame, folder: Path, stem: str) -> None:
    """Save ``<stem>.csv``, replaced whole."""
    path = folder / f"{stem}.csv"
    replace_file(path, data.to_csv(index=False, lineterminator="\n"))
    _print_names([path])


def _print_names(paths: Sequence[Path]) -> None:
    print(*(path.name for path in paths), sep="\n")
