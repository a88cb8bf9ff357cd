"""Wasserstein logistic regression with mixed features (Selvi, Belbasi, Haugh and Wiesemann, NeurIPS 2022)."""

from wdrlr.estimator import SeparableDataWarning, WassersteinLogisticRegression

__all__ = ["SeparableDataWarning", "WassersteinLogisticRegression"]
