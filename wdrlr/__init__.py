"""Wasserstein logistic regression with mixed features (Selvi, Belbasi, Haugh and Wiesemann, NeurIPS 2022)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wdrlr.datasets import DATASETS as DATASETS
    from wdrlr.datasets import load_dataset as load_dataset
    from wdrlr.estimators.classifier import SeparableDataWarning as SeparableDataWarning
    from wdrlr.estimators.classifier import WassersteinLogisticRegression as WassersteinLogisticRegression
    from wdrlr.estimators.classifier import radius_max as radius_max
    from wdrlr.estimators.cross_validation import WassersteinLogisticRegressionCV as WassersteinLogisticRegressionCV
    from wdrlr.estimators.path import fit_path as fit_path
    from wdrlr.model.worst_case import changed_mass as changed_mass

# Where each public name is defined. It is imported when it is first asked for, since scikit-learn, pandas and numba
# take most of a second.
_HOME = {
    "DATASETS": "datasets",
    "SeparableDataWarning": "estimators.classifier",
    "WassersteinLogisticRegression": "estimators.classifier",
    "WassersteinLogisticRegressionCV": "estimators.cross_validation",
    "changed_mass": "model.worst_case",
    "fit_path": "estimators.path",
    "load_dataset": "datasets",
    "radius_max": "estimators.classifier",
}

__all__ = [*_HOME, "__version__"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("wdrlr")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"wdrlr.{_HOME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
