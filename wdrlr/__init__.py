"""Wasserstein logistic regression with mixed features (Selvi, Belbasi, Haugh and Wiesemann, NeurIPS 2022)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wdrlr.cross_validation import WassersteinLogisticRegressionCV as WassersteinLogisticRegressionCV
    from wdrlr.datasets import DATASETS as DATASETS
    from wdrlr.datasets import load_dataset as load_dataset
    from wdrlr.estimator import SeparableDataWarning as SeparableDataWarning
    from wdrlr.estimator import WassersteinLogisticRegression as WassersteinLogisticRegression
    from wdrlr.estimator import radius_max as radius_max
    from wdrlr.path import fit_path as fit_path

# Where each public name is defined. It is imported when it is first asked for, since scikit-learn, pandas and numba
# take most of a second.
_HOME = {
    "DATASETS": "datasets",
    "SeparableDataWarning": "estimator",
    "WassersteinLogisticRegression": "estimator",
    "WassersteinLogisticRegressionCV": "cross_validation",
    "fit_path": "path",
    "load_dataset": "datasets",
    "radius_max": "estimator",
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
