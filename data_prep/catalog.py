"""The catalogue of data sets: those of this package, and those of a folder that the user names.

Every module in `recipes/` is a data set. The environment variable `WDRLR_RECIPES` adds the data sets of another folder,
laid out like this one: `recipes/` with one module per data set, and `raw/` with `SHA256SUMS`, optionally
`TABLE_SHA256SUMS`, and the raw files, one subfolder per data set. The variable is read once, when this package is
imported.
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
    """Return the folder of the user's recipes, None if none is set.

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
            f"the variable {VARIABLE} is set to {folder}, which has no readable folder `recipes`: create it, "
            "correct the path, or leave the variable unset"
        )
    return folder


def find_recipes() -> dict[str, Recipe]:
    """Return the `RECIPE` of every module in `recipes/` by name, the user's last.

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
    by_name: dict[str, Recipe] = {}
    for path in [path for folder in folders for path in sorted(folder.glob("[!_]*.py"))]:
        module = import_module(f"{recipes.__name__}.{path.stem}")
        recipe = getattr(module, "RECIPE", None)
        if not isinstance(recipe, Recipe):
            raise TypeError(f"{path} has no RECIPE: define one (a `Recipe`) in it, or move it elsewhere")
        if recipe.name in by_name:
            raise ValueError(f"{path}: there is already a data set {recipe.name!r}; rename this one, and its file")
        by_name[recipe.name] = recipe
    return by_name


@cache
def recorded(file: str) -> dict[str, str]:
    """Return the hashes in `raw/<file>`, of this package and of the user's folder, by the name that they belong to."""
    paths = [folder / "raw" / file for folder in reversed(_folders())]  # this package's override the user's
    lines = [line for path in paths if path.exists() for line in path.read_text("utf-8").splitlines()]
    return {line[64:].lstrip(" *"): line[:64] for line in lines}


def _folders() -> list[Path]:
    user = user_recipes()
    return [PACKAGE] if user is None else [PACKAGE, user]
