"""The slopes of a fit, read as a table of levels and as importances of columns."""

from __future__ import annotations

import numpy as np
import pandas as pd

from wdrlr.model.encoding import FeatureEncoding, level_scores
from wdrlr.model.problem import level_offsets


def table(encoding: FeatureEncoding, coding: str, coef: np.ndarray) -> pd.DataFrame:
    """One row per slope; see ``WassersteinLogisticRegression.coef_table``. ``coef`` has the shape (n + k,)."""
    n, reference = len(encoding.numeric), 0 if coding == "onehot" else -1
    rows: list[tuple] = [(encoding.names[j], None, None, encoding.n_rows) for j in encoding.numeric]
    effects = [coef[:n]]  # what is added to f
    for j, levels, counts, scores in zip(
        encoding.categorical, encoding.categories, encoding.category_rows, _scores(encoding, coding, coef), strict=True
    ):
        others = np.delete(np.arange(len(levels)), reference)
        rows += [(encoding.names[j], levels[u], levels[reference], counts[u]) for u in others]
        effects.append(scores[others] - scores[reference])
    found = pd.DataFrame(rows, columns=["feature", "level", "reference", "rows"], dtype=object)
    with np.errstate(over="ignore"):
        odds_ratio = np.exp(np.concatenate(effects))
    return found.assign(rows=found["rows"].astype(int), slope=coef, odds_ratio=odds_ratio)


def importances(encoding: FeatureEncoding, coding: str, coef: np.ndarray) -> np.ndarray:
    """By how much each column can change f; shape (number of columns,). ``coef`` has the shape (n + k,)."""
    found = np.empty(len(encoding.names))
    found[encoding.numeric] = np.abs(coef[: len(encoding.numeric)])
    found[encoding.categorical] = [np.ptp(scores) for scores in _scores(encoding, coding, coef)]
    return found


def _scores(encoding: FeatureEncoding, coding: str, coef: np.ndarray) -> list[np.ndarray]:
    """The scores of the levels of each categorical feature."""
    n_levels = encoding.n_levels
    scores = level_scores(coef[len(encoding.numeric) :], n_levels, coding)
    return np.split(scores, level_offsets(n_levels)[1:])[: len(n_levels)]
