"""What is open on a shipped data set, from rows that are computed on the way."""

from pathlib import Path

import pandas as pd
import papermill

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "open_predictions.ipynb"


def test_it_counts_unseen_levels_and_open_predictions(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = {"datasets": ["hayes-roth", "lymphography"], "ranged": ["hayes-roth"], "n_splits": 2, "n_rows": 3}
    given = {"methods": ["DRO_kappa_1"], "compute_missing": True, "results_dir": "rows", "figures_dir": "out"}
    papermill.execute_notebook(NOTEBOOK, "out.ipynb", small | given, progress_bar=False)
    unseen = pd.read_csv(tmp_path / "out" / "unseen_levels.csv").set_index("dataset")
    assert (
        unseen.loc["hayes-roth", "max"] == 0 and unseen.loc["lymphography", "max"] >= unseen.loc["lymphography", "mean"]
    )
    (measured,) = pd.read_csv(tmp_path / "out" / "open_predictions_code.csv").to_dict("records")
    assert measured["splits"] == 2 and measured["n_rows"] == 6 and measured["paper"] == 16.31
    assert measured["error_low"] <= measured["error"] <= measured["error_high"]
