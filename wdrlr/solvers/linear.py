"""Linear programs by HiGHS, with a limit on iterations: left alone, it can go on for ever, past any time limit."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import OptimizeResult, linprog

ITERATIONS = 100
"""For each row and column of a program; then the method has lost its way."""


def minimise_linear(
    q: np.ndarray,
    *,
    bounds: np.ndarray,
    A: np.ndarray | sp.sparray,
    limit: np.ndarray,
    E: np.ndarray | sp.sparray | None = None,
    method: str = "highs",
    **options: Any,
) -> OptimizeResult:
    """min q.x subject to A x <= limit, E x = 0 and bounds.

    Parameters
    ----------
    q : ndarray of shape (n,)
        The costs.
    bounds : ndarray of shape (n, 2)
        Least and largest value of each variable, -inf and inf included.
    A, limit : array of shape (m, n), ndarray of shape (m,)
        The inequalities.
    E : array of shape (., n)
        The equations, whose right-hand side is 0.
    method
        As in scipy's linprog.
    options
        Those of the method, such as its tolerances.

    Returns
    -------
    scipy's result: ``status`` is 0 at an optimum, 1 where the iterations ran out.
    """
    equations = {} if E is None else {"A_eq": E, "b_eq": np.zeros(E.shape[0])}
    limits = {"maxiter": ITERATIONS * sum(A.shape)}
    return linprog(q, A_ub=A, b_ub=limit, **equations, bounds=bounds, method=method, options=limits | options)
