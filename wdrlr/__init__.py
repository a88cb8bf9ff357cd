"""Wasserstein logistic regression with mixed features (Selvi, Belbasi, Haugh and Wiesemann, NeurIPS 2022)."""

from wdrlr.cross_validation import WassersteinLogisticRegressionCV
from wdrlr.datasets import DATASETS, load_dataset
from wdrlr.estimator import SeparableDataWarning, WassersteinLogisticRegression, radius_max
from wdrlr.path import fit_path

__all__ = [
    "DATASETS",
    "SeparableDataWarning",
    "WassersteinLogisticRegression",
    "WassersteinLogisticRegressionCV",
    "fit_path",
    "load_dataset",
    "radius_max",
]
