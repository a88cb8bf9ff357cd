"""Where raw files come from, in this order, each file checked by its sha256 before use:

1. the folder that the user sets: the argument `data_dir`, else the environment variable `WDRLR_DATA`;
2. the files shipped in `data_prep/raw`;
3. the user's cache folder;
4. the UCI archive's zip, which fills the cache;
5. the table that the package `ucimlrepo` serves, checked by the hash of the prepared table.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
import zlib
from functools import cache
from pathlib import Path, PurePosixPath, PureWindowsPath

import pandas as pd
import pooch
import requests
from platformdirs import user_cache_path

from wdrlr.data_prep import served
from wdrlr.data_prep.recipe import ChecksumError, Recipe

UCI = "https://archive.ics.uci.edu/static/public"
TIMEOUT = 30.0  # seconds without a byte
RETRIES = 2
SHIPPED = Path(__file__).parent / "raw"
VARIABLE = "WDRLR_DATA"
SERVED = "ucimlrepo.csv"  # in the cache, the table that ucimlrepo served


class DataUnavailableError(OSError):
    """The raw files of a data set are in none of the places, or can't be read."""


class UnsafeArchiveError(ValueError):
    """A zip archive has a member whose path leads out of the folder it is unpacked in."""


@cache
def checksums() -> dict[str, str]:
    """Return the sha256 of every raw file of the 19 sets, by "<set>/<file>"."""
    pairs = (line.split(maxsplit=1) for line in (SHIPPED / "SHA256SUMS").read_text("ascii").splitlines())
    return {name: digest for digest, name in pairs}


def verify(content: bytes, expected: str, what: str) -> None:
    """Raise ChecksumError if the sha256 of `content` is not `expected`; `what` names it in the message."""
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise ChecksumError(f"{what} is not UCI's file: its sha256 is {found}, expected {expected}")


def write_atomically(path: Path, content: bytes) -> None:
    """Write `content` so that `path` is, at any moment, either absent, the old file or the whole new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def cache_folder() -> Path:
    """Return the folder with one subfolder of downloaded raw files a data set."""
    return user_cache_path("wdrlr") / "raw"


def raw_table(recipe: Recipe, data_dir: str | os.PathLike[str] | None = None) -> tuple[pd.DataFrame, str]:
    """Return the raw table of a data set, all values as text, and a phrase that says where it comes from.

    Raises
    ------
    DataUnavailableError
        If the folder set by the user does not exist, if it holds some of the set's files but not all, if a
        file can't be read, or if no place has the files. The message names the files, their checksums and
        where to put them.
    ChecksumError
        If a file in the user's folder, or a shipped one, is not UCI's.
    UnsafeArchiveError
        If the downloaded zip has a member with a path outside its folder.
    """
    user = user_folder(data_dir)
    if user is not None and _has_any(recipe, user / recipe.name):
        _check_user_files(recipe, user / recipe.name)
        setting = VARIABLE if data_dir is None else "data_dir"
        return recipe.read(recipe, user / recipe.name), f"the folder that {setting} sets"

    shipped = SHIPPED / recipe.name
    if _has_any(recipe, shipped):
        for name in recipe.files:
            _check_file(recipe, shipped / name, "reinstall wdrlr")
        return recipe.read(recipe, shipped), "the files shipped with wdrlr"

    cached = cache_folder() / recipe.name
    if _is_complete(recipe, cached):
        return recipe.read(recipe, cached), "the cache"
    table = _cached_table(recipe, cached / SERVED)
    if table is not None:
        return table, "ucimlrepo, by the cache"

    failures = []
    try:
        _download(recipe, cached)
        return recipe.read(recipe, cached), f"the UCI archive ({_url(recipe)})"
    except (requests.RequestException, zipfile.BadZipFile, ChecksumError, OSError) as error:
        failures.append(f"{_url(recipe)}: {_one_line(error)}")
    try:
        table = served.fetch_table(recipe, TIMEOUT, RETRIES)
        write_atomically(cached / SERVED, table.to_csv(index=False).encode())
        return table, "ucimlrepo"
    except (served.ServedTableError, ChecksumError, OSError) as error:
        failures.append(f"ucimlrepo: {_one_line(error)}")
    raise DataUnavailableError(_not_available(recipe, user, failures))


def user_folder(data_dir: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the data folder that the user sets, None if none is set.

    Raises
    ------
    DataUnavailableError
        If it is not a folder.
    """
    origin = f"data_dir={os.fspath(data_dir)!r}" if data_dir is not None else f"the variable {VARIABLE}"
    setting = data_dir if data_dir is not None else os.environ.get(VARIABLE)
    if not setting:
        return None
    folder = Path(setting).expanduser()
    if not folder.is_dir():
        raise DataUnavailableError(
            f"{origin} sets the data folder {folder}, which is not a folder: "
            "create it, correct the path, or leave it unset to use the shipped files and the UCI archive"
        )
    return folder


def _has_any(recipe: Recipe, folder: Path) -> bool:
    return any((folder / name).exists() for name in recipe.files)


def _check_user_files(recipe: Recipe, folder: Path) -> None:
    missing = [name for name in recipe.files if not (folder / name).exists()]
    if missing:
        raise DataUnavailableError(
            f"{recipe.name}: {folder} lacks {', '.join(missing)}. Add what is missing, or remove "
            f"the folder to use another source. Wanted (sha256, file):\n{_wanted(recipe)}"
        )
    for name in recipe.files:
        _check_file(recipe, folder / name, "replace it with UCI's file, or remove it to use another source")


def _check_file(recipe: Recipe, path: Path, remedy: str) -> None:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataUnavailableError(f"{recipe.name}: {path} can't be read ({error}): {remedy}") from error
    try:
        verify(content, checksums()[f"{recipe.name}/{path.name}"], str(path))
    except ChecksumError as error:
        raise ChecksumError(f"{recipe.name}: {error}: {remedy}") from None


def _is_complete(recipe: Recipe, folder: Path) -> bool:
    """Say whether the cache holds the set; a damaged or missing file there only means to download again."""
    try:
        for name in recipe.files:
            verify((folder / name).read_bytes(), checksums()[f"{recipe.name}/{name}"], name)
    except (OSError, ChecksumError):
        return False
    return True


def _cached_table(recipe: Recipe, path: Path) -> pd.DataFrame | None:
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError):  # not there, or not even a csv
        return None
    return table if served.is_prepared_table(recipe, table) else None


def _url(recipe: Recipe) -> str:
    return f"{UCI}/{recipe.uci_id}/{recipe.zip_name}"


def _download(recipe: Recipe, folder: Path) -> None:
    """Put the set's files from UCI's zip into `folder`, none of them before all are checked."""
    # The zip has no recorded hash (only its members matter), hence None in pooch's registry.
    with tempfile.TemporaryDirectory() as temporary:
        archive = pooch.create(
            path=temporary,
            base_url="",
            registry={recipe.zip_name: None},
            urls={recipe.zip_name: _url(recipe)},
            retry_if_failed=RETRIES,
        )
        downloader = pooch.HTTPDownloader(progressbar=True, timeout=TIMEOUT)
        members = read_members(Path(archive.fetch(recipe.zip_name, downloader=downloader)), recipe.files)
    for name, content in members.items():
        verify(content, checksums()[f"{recipe.name}/{name}"], f"the member {name}")
    for name, content in members.items():
        write_atomically(folder / name, content)


def read_members(archive: Path, names: tuple[str, ...]) -> dict[str, bytes]:
    """Return the content of the files called `names` in a zip archive, whatever folder they are in.

    Raises
    ------
    UnsafeArchiveError
        If any member, wanted or not, has an absolute path or one with "..".
    zipfile.BadZipFile
        If the archive is damaged, or a file is not in it.
    """
    with zipfile.ZipFile(archive) as opened:
        by_name = {}
        for member in opened.namelist():
            # Windows rules see every kind of path: drives, backslashes and slashes.
            path = PureWindowsPath(member)
            if path.anchor or ".." in path.parts:
                raise UnsafeArchiveError(
                    f"{archive.name} has a member {member!r} with a path outside its folder: not used"
                )
            by_name[PurePosixPath(member).name] = member
        missing = [name for name in names if name not in by_name]
        if missing:
            raise zipfile.BadZipFile(f"{archive.name} has no member {', '.join(missing)}")
        try:
            return {name: opened.read(by_name[name]) for name in names}
        except (zlib.error, EOFError, NotImplementedError, RuntimeError) as error:  # cut, garbled, encrypted
            raise zipfile.BadZipFile(f"{archive.name} can't be unpacked: {error}") from error


def _one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _wanted(recipe: Recipe) -> str:
    return "\n".join(f"  {checksums()[f'{recipe.name}/{name}']}  {name}" for name in recipe.files)


def _not_available(recipe: Recipe, user: Path | None, failures: list[str]) -> str:
    folder = user / recipe.name if user else f"<folder>/{recipe.name}, {VARIABLE} or data_dir being <folder>"
    tried = "\n".join(f"  {failure}" for failure in failures)
    return (
        f"{recipe.name}: the raw files are not on this machine, and the UCI archive did not give them.\n"
        f"Tried:\n{tried}\n"
        f"Wanted (sha256, file):\n{_wanted(recipe)}\n"
        f"They are in {recipe.zip_name} of https://archive.ics.uci.edu/dataset/{recipe.uci_id}; "
        f"put them, unchanged, into one of\n  {folder}\n  {cache_folder() / recipe.name}"
    )
