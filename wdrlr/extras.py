"""Packages that only some options need: they are imported when they are used, and missed in one way."""

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def required(module: str, needed_by: str, extra: str) -> Any:
    """Import a module of a package that ``pip install wdrlr`` leaves out.

    Parameters
    ----------
    module : str
        Its name, such as "matplotlib.pyplot".
    needed_by : str
        The option that needs it, as a user writes it.
    extra : str
        The extra of pyproject.toml that brings it.

    Raises
    ------
    ImportError
        If the package is not installed: the message says what to install. One that is installed and does not work
        speaks for itself.
    """
    check_installed(module.partition(".")[0], needed_by, extra)
    return import_module(module)


def check_installed(package: str, needed_by: str, extra: str) -> None:
    """Raise the error of ``required`` if a package is not installed, without importing it."""
    if sys.modules.get(package) is None and find_spec(package) is None:
        raise ImportError(f"{needed_by} needs the package {package}: {installing(extra)}", name=package)


def installing(extra: str) -> str:
    """The command that installs an extra."""
    return f"pip install 'wdrlr[{extra}]' (in a checkout: pip install -e '.[{extra}]')"
