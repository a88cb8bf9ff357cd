"""The folders of the project; no other module knows where they are."""

import tomllib
from pathlib import Path

_HERE = Path(__file__).resolve().parent.parent


class NoProjectError(FileNotFoundError):
    """No folder was named, and there is no checkout whose folder it could be."""


def project_root() -> Path:
    """The checkout that this package is imported from, or else the one around the current folder.

    Jupyter runs a notebook in the notebook's own folder, papermill in that of the shell unless ``--cwd`` names another.

    Raises
    ------
    NoProjectError
        If there is neither.
    """
    here = Path.cwd()
    for folder in (_HERE.parent, here, *here.parents):
        if _is_project(folder):
            return folder
    raise NoProjectError(
        f"wdrlr is not imported from a checkout, and none is around {here}: name the folder, or run the notebook in "
        "its own folder of a checkout (papermill --cwd)"
    )


def _is_project(folder: Path) -> bool:
    try:
        return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"] == "wdrlr"
    except (OSError, ValueError, KeyError, TypeError):  # not there, not readable, or of another kind
        return False


def figures_folder(figures_dir: str = "") -> Path:
    """The folder for figures and tables, created if necessary; "" means the project's ``figures/``."""
    return _folder("figures_dir", figures_dir, "figures")


def results_folder(results_dir: str = "") -> Path:
    """The folder for result rows, created if necessary; "" means the project's ``figures/results/``."""
    return _folder("results_dir", results_dir, "figures/results")


def chosen_folder(given: str, default: str) -> Path:
    """The folder given, or for "" the project's of this name.

    Raises
    ------
    NoProjectError
        As `project_root`, if none is given.
    """
    return Path(given).expanduser().resolve() if given else project_root() / default


def _folder(parameter: str, given: str, default: str) -> Path:
    try:
        folder = chosen_folder(given, default)
    except NoProjectError as error:
        raise NoProjectError(f"{parameter}: {error}") from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise NotADirectoryError(f"{parameter}: {folder} is, or lies under, a file; name a folder.") from None
    return folder
