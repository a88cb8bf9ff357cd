"""How much of a test error the training part leaves open: the predictions on which optimal coefficients disagree.

A level without rows in the training part has a score that the objective does not see while it lies between those of
other levels; other directions are flat within the tolerance of a fit. See ``wdrlr.solvers.prediction_range``.
"""

from time import perf_counter

import numpy as np
import pandas as pd

from wdrlr.estimators.solving import Solving
from wdrlr.paper.cells import Rows, both_parts, predicted
from wdrlr.paper.methods import METHODS
from wdrlr.paper.protocols import PROTOCOLS
from wdrlr.solvers.prediction_range import prediction_range


def measure_open(rows: pd.DataFrame, *, seconds: float = np.inf, n_rows: int | None = None) -> pd.DataFrame:
    """What is open on the test parts of cells: each is fitted anew at its radius and gamma, and its test rows ranged.

    Parameters
    ----------
    rows
        Result rows, from `wdrlr.paper.cells.wanted_rows`.
    seconds
        When these have passed, no further test row is begun.
    n_rows
        Of each test part, how many rows to look at; they are in random order. None: all.

    Returns
    -------
    DataFrame with one row per cell that was reached
        dataset, protocol, method, split, constant (as in the result rows), n_rows (test rows reached); and, as shares
        of these: unseen (with a level that no row of the training part has), open (predicted as either class by
        coefficients within the tolerance of the cell), error, and its least and its largest value if every row is
        predicted by the coefficients that suit it best, or worst: error_low, error_high.

    Raises
    ------
    ValueError
        If a method finds its penalty itself, so that the result row does not tell it.
    """
    own = [name for name in rows["method"].unique() if METHODS[name].penalty is not None]
    if own:
        raise ValueError(f"the penalty of {', '.join(own)} is not in the result rows; leave it out.")
    deadline = perf_counter() + seconds
    measured = []
    for cell in rows.itertuples():
        left = deadline - perf_counter()
        if left <= 0:
            break
        method, protocol = METHODS[cell.method], PROTOCOLS[cell.protocol]
        training, testing = both_parts(cell.dataset, protocol, method, cell.split, cell.seed)
        testing = testing.part(np.arange(len(testing.y))[:n_rows])
        formulation = method.formulation(protocol)
        encoding, problem, stretch = formulation.fit(*training, np.ones(len(training.y)))
        problem = method.at(protocol, problem, cell.radius, cell.gamma)
        b = Solving(method.solver or cell.solver, tol=cell.tol).solve(problem).b
        asked = formulation.rows(encoding, testing.X)
        asked[:, 1:] *= stretch
        found = prediction_range(problem, b, asked, cell.tol, left)
        reached = ~np.isnan(found.low)
        if not reached.any():
            break
        f, low, high, y = (values[reached] for values in (asked @ b, found.low, found.high, testing.y))
        can_be_right = np.where(y > 0, high > 0, low <= 0)
        can_be_wrong = np.where(y > 0, low <= 0, high > 0)
        measured.append(
            {
                "dataset": cell.dataset,
                "protocol": cell.protocol,
                "method": cell.method,
                "split": cell.split,
                "constant": not b[1:].any(),
                "n_rows": int(reached.sum()),
                "unseen": float(np.mean(with_unseen_level(training, testing)[reached])),
                "open": float(np.mean(can_be_right & can_be_wrong)),
                "error": float(np.mean(predicted(f if b.any() else None, training.y) != y)),
                "error_low": float(np.mean(~can_be_right)),
                "error_high": float(np.mean(can_be_wrong)),
            }
        )
    return pd.DataFrame(measured)


def with_unseen_level(training: Rows, testing: Rows) -> np.ndarray:
    """Which test rows have a level that no row of the training part has; bool, one a row."""
    unseen = np.zeros(len(testing.y), dtype=bool)
    for name in training.X.select_dtypes("category"):
        unseen |= ~testing.X[name].isin(training.X[name].unique()).to_numpy()
    return unseen


def summarise_open(measured: pd.DataFrame) -> pd.DataFrame:
    """Means over the splits in per cent, and how many splits and test rows they are of: data sets and methods.

    Splits count by their test rows. ``constant`` is the share of splits whose fit has no slopes; if its intercept is
    near 0, too, every prediction is open.

    Parameters
    ----------
    measured
        From `measure_open`.
    """
    by = ["dataset", "method"]
    shares = ["unseen", "open", "error", "error_low", "error_high"]
    weighted = measured[shares].mul(measured["n_rows"], axis=0).assign(**measured[by])
    totals = measured.groupby(by, sort=False)["n_rows"].agg(splits="size", n_rows="sum")
    means = 100 * weighted.groupby(by, sort=False)[shares].sum().div(totals["n_rows"], axis=0)
    constant = 100 * measured.groupby(by, sort=False)["constant"].mean()
    return totals.join(means).join(constant)
