"""The folders of the project; no other module knows where they are."""

from pathlib import Path

_HERE = Path(__file__).resolve().parent.parent


def project_root() -> Path:
    """The checkout that this package is imported from, or else the current directory."""
    root = _HERE.parent
    return root if (root / "pyproject.toml").is_file() else Path.cwd()


def figures_folder(figures_dir: str = "") -> Path:
    """The folder for figures and tables, created if necessary; "" means the project's ``figures/``."""
    return _folder("figures_dir", figures_dir, project_root() / "figures")


def results_folder(results_dir: str = "") -> Path:
    """The folder for result rows, created if necessary; "" means the project's ``figures/results/``."""
    return _folder("results_dir", results_dir, project_root() / "figures" / "results")


def _folder(parameter: str, given: str, default: Path) -> Path:
    folder = Path(given).expanduser().resolve() if given else default
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise NotADirectoryError(f"{parameter}: {folder} is, or lies under, a file; name a folder.") from None
    return folder
