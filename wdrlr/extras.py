"""Packages that only some options need: they are imported when they are used, and missed in one way."""

from importlib import import_module
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
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):  # but what it imports
            raise
        raise ImportError(f"{needed_by} needs the package {package}: {installing(extra)}", name=package) from error


def installing(extra: str) -> str:
    """The command that installs an extra."""
    return f"pip install 'wdrlr[{extra}]' (in a checkout: pip install -e '.[{extra}]')"
