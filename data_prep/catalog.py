"""Which data sets there are: those of this package, and those of a folder that the user names.

Every module in `recipes/` is a data set. The environment variable `WDRLR_RECIPES` adds the data sets of another folder,
laid out like this one: `recipes/` with one module a data set, and `raw/` with `SHA256SUMS`, if wanted
`TABLE_SHA256SUMS`, and the raw files, one subfolder a data set. It is read once, when this package is imported.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from pathlib import Path

from wdrlr.data_prep import recipes
from wdrlr.data_prep.recipe import Recipe

VARIABLE = "WDRLR_RECIPES"
PACKAGE = Path(__file__).parent


@cache
def user_recipes() -> Path | None:
    """Return the folder that the user's recipes are in, None if none is set.

    Raises
    ------
    NotADirectoryError
        If it has no folder `recipes`.
    """
    if not (setting := os.environ.get(VARIABLE)):
        return None
    folder = Path(setting).expanduser().resolve()
    if not (folder / "recipes").is_dir():
        raise NotADirectoryError(
            f"the variable {VARIABLE} sets {folder}, where there is no folder `recipes` that can be read: make it, "
            "correct the path, or leave the variable unset"
        )
    return folder


def find_recipes() -> dict[str, Recipe]:
    """Return the `RECIPE` of every module in `recipes/`, the user's last, by its name.

    Raises
    ------
    NotADirectoryError
        If the user's folder has no folder `recipes`.
    TypeError
        If a module has no `RECIPE`.
    ValueError
        If a data set, or its module, has the name of another one.
    """
    folders = [folder / "recipes" for folder in _folders()]
    recipes.__path__ = [str(folder) for folder in folders]
    found: dict[str, Recipe] = {}
    for path in [path for folder in folders for path in sorted(folder.glob("[!_]*.py"))]:
        module = import_module(f"{recipes.__name__}.{path.stem}")
        recipe = getattr(module, "RECIPE", None)
        if not isinstance(recipe, Recipe):
            raise TypeError(f"{path} has no RECIPE: let it define one (a `Recipe`), or move it elsewhere")
        if recipe.name in found:
            raise ValueError(f"{path}: there is a data set {recipe.name!r} already; rename this one, and its file")
        found[recipe.name] = recipe
    return found


@cache
def recorded(file: str) -> dict[str, str]:
    """Return the hashes that `raw/<file>` holds, of this package and of the user's folder, by what they are of."""
    paths = [folder / "raw" / file for folder in reversed(_folders())]  # this package's count
    lines = [line for path in paths if path.exists() for line in path.read_text("utf-8").splitlines()]
    return {line[64:].lstrip(" *"): line[:64] for line in lines}


def _folders() -> list[Path]:
    user = user_recipes()
    return [PACKAGE] if user is None else [PACKAGE, user]
