"""Wasserstein logistic regression with mixed features (Selvi, Belbasi, Haugh and Wiesemann, NeurIPS 2022)."""

import lazy_loader

__version__ = "0.1.0"

# __init__.pyi says where each public name is defined, to type checkers too. It is imported when it is first asked for,
# since scikit-learn, pandas and numba take most of a second.
__getattr__, _, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
