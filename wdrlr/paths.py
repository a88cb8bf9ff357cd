"""Where things lie: the one module that knows folders, and the one way in which files are written."""

import os
from contextlib import suppress
from pathlib import Path

_HERE = Path(__file__).resolve().parent


def project_root() -> Path:
    """The checkout that this package is imported from, or else the current directory."""
    root = _HERE.parent
    return root if (root / "pyproject.toml").is_file() else Path.cwd()


def figures_folder(figures_dir: str = "") -> Path:
    """The folder for figures and tables; "" means the project's ``figures/``. Made when it is not there."""
    return _folder("figures_dir", figures_dir, project_root() / "figures")


def results_folder(results_dir: str = "") -> Path:
    """The folder for result rows; "" means the project's ``figures/results/``. Made when it is not there."""
    return _folder("results_dir", results_dir, project_root() / "figures" / "results")


def _folder(parameter: str, given: str, default: Path) -> Path:
    folder = Path(given).expanduser().resolve() if given else default
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise NotADirectoryError(f"{parameter}: {folder} is, or lies under, a file; name a folder.") from None
    return folder


def replace_file(path: Path, content: str | bytes) -> None:
    """Write text (as UTF-8) or bytes to `path` so that at every moment the old file or the new one is there, whole.

    The temporary file lies in the same folder, since only a rename inside one file system is atomic. It is removed if
    it cannot be written, and has the same name at every call, so that what a killed process leaves is overwritten by
    the next.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    temporary = path.with_name(path.name + ".tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        if isinstance(error, OSError) and error.filename is None:  # a full disk has none
            error.filename = str(path)
        with suppress(OSError):
            temporary.unlink()
        raise
