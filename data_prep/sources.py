"""Where raw files come from, in this order, each file checked by its sha256 before use:

1. the folder that the user sets: the argument `data_dir`, else the environment variable `WDRLR_DATA`;
2. the folder `raw` beside the user's own recipes, if there are any;
3. the files shipped in `data_prep/raw`;
4. the user's cache folder;
5. for a set of the UCI archive, UCI's zip, which fills the cache;
6. the table that the package `ucimlrepo` serves, checked by the hash of the prepared table.
"""

from __future__ import annotations

import hashlib
import io
import os
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import pandas as pd
from platformdirs import user_cache_path

from wdrlr.data_prep import catalog, served
from wdrlr.data_prep.recipe import ChecksumError, Recipe
from wdrlr.extras import required
from wdrlr.files import replace_file

UCI = "https://archive.ics.uci.edu/static/public"
TIMEOUT = 30.0  # seconds without a byte
RETRIES = 2
LARGEST = 2**24  # bytes of an archive and of a file in it, fifty times what any recipe reads
SHIPPED = catalog.PACKAGE / "raw"
VARIABLE = "WDRLR_DATA"
SERVED = "ucimlrepo.csv"  # name in the cache of the table that ucimlrepo served


class DataUnavailableError(OSError):
    """The raw files of a data set are not in any of the places, or can't be read."""


class UnsafeArchiveError(ValueError):
    """A zip archive has a member whose path leads out of the folder it is unpacked in."""


def checksums() -> dict[str, str]:
    """Return the sha256 of every raw file of the data sets, by "<set>/<file>"."""
    return catalog.recorded("SHA256SUMS")


def verify(content: bytes, expected: str, what: str) -> None:
    """Raise ChecksumError if the sha256 of `content` is not `expected`; `what` names it in the message."""
    actual = hashlib.sha256(content).hexdigest()
    if actual != expected:
        raise ChecksumError(f"{what} is not the original file: its sha256 is {actual}, expected {expected}")


def cache_folder() -> Path:
    """Return the folder of downloaded raw files, which has one subfolder per data set."""
    return user_cache_path("wdrlr") / "raw"


def raw_table(recipe: Recipe, data_dir: str | os.PathLike[str] | None = None) -> tuple[pd.DataFrame, str]:
    """Return the raw table of a data set, all values as text, and a phrase that says where it comes from.

    Raises
    ------
    DataUnavailableError
        If the folder set by the user does not exist, if it holds only part of the set's files, if a file
        can't be read, or if no place has the files. The message names the files, their checksums and
        where to put them, and what a download lacks.
    ChecksumError
        If no checksum of a file is recorded, or if that of a file in the user's folder, or of a shipped file, differs.
    UnsafeArchiveError
        If the downloaded zip has a member with a path outside its folder.

    Warns
    -----
    UserWarning
        If downloaded files are used but cannot be kept in the cache.
    """
    _check_recorded(recipe)
    user, beside = user_folder(data_dir), catalog.user_recipes()
    places = [(user, VARIABLE if data_dir is None else "data_dir"), (beside and beside / "raw", catalog.VARIABLE)]
    for folder, setting in places:
        if folder is not None and _has_any(recipe, folder / recipe.name):
            return recipe.read(recipe, _user_files(recipe, folder / recipe.name)), f"the folder that {setting} sets"

    shipped = SHIPPED / recipe.name
    if _has_any(recipe, shipped):
        contents = {name: _checked_file(recipe, shipped / name, "reinstall wdrlr") for name in recipe.files}
        return recipe.read(recipe, contents), "the files shipped with wdrlr"

    cached = cache_folder() / recipe.name
    if (kept := _cached_files(recipe, cached)) is not None:
        return recipe.read(recipe, kept), "the cache"
    if (table := _cached_table(recipe, cached / SERVED)) is not None:
        return table, "ucimlrepo, by the cache"

    failures: list[str] = []
    if recipe.uci_id is None:
        raise DataUnavailableError(_not_available(recipe, user, failures))
    try:
        contents = _download(recipe)
    except (zipfile.BadZipFile, ChecksumError, OSError, ImportError) as error:
        failures.append(f"{_url(recipe)}: {_one_line(error)}")
    else:
        _keep(cached, contents)
        return recipe.read(recipe, contents), f"the UCI archive ({_url(recipe)})"
    try:
        table = served.fetch_table(recipe, TIMEOUT, RETRIES)
    except (ChecksumError, OSError, ImportError) as error:
        failures.append(f"ucimlrepo: {_one_line(error)}")
    else:
        _keep(cached, {SERVED: table.to_csv(index=False).encode()})
        return table, "ucimlrepo"
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
    folder = Path(os.path.expanduser(setting))
    if not os.path.isdir(folder):
        raise DataUnavailableError(
            f"{origin} sets the data folder {folder}, which is not a readable folder: "
            "create it, correct the path, or leave it unset to use the shipped files and the UCI archive"
        )
    return folder


def _check_recorded(recipe: Recipe) -> None:
    lacking = [name for name in (f"{recipe.name}/{file}" for file in recipe.files) if name not in checksums()]
    if lacking:
        folder = (catalog.user_recipes() or catalog.PACKAGE) / "raw"
        raise ChecksumError(
            f"{recipe.name}: {folder / 'SHA256SUMS'} has no line for {', '.join(lacking)}: add what "
            f"`sha256sum {' '.join(lacking)}` prints in {folder}"
        )


def _has_any(recipe: Recipe, folder: Path) -> bool:
    return any(_is_there(folder / name) for name in recipe.files)


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # reading the file will report the error
        pass
    return True


def _user_files(recipe: Recipe, folder: Path) -> dict[str, bytes]:
    missing = [name for name in recipe.files if not _is_there(folder / name)]
    if missing:
        raise DataUnavailableError(
            f"{recipe.name}: {folder} lacks {', '.join(missing)}. Add what is missing, or remove "
            f"the folder to use another source. Wanted (sha256, file):\n{_wanted(recipe)}"
        )
    remedy = "replace it with the original, or remove it to use another source"
    return {name: _checked_file(recipe, folder / name, remedy) for name in recipe.files}


def _checked_file(recipe: Recipe, path: Path, remedy: str) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataUnavailableError(f"{recipe.name}: {path} can't be read ({error}): {remedy}") from error
    try:
        verify(content, checksums()[f"{recipe.name}/{path.name}"], str(path))
    except ChecksumError as error:
        raise ChecksumError(f"{recipe.name}: {error}: {remedy}") from None
    return content


def _cached_files(recipe: Recipe, folder: Path) -> dict[str, bytes] | None:
    """The set's files, if the cache holds them all undamaged; otherwise they are downloaded again."""
    contents = {}
    try:
        for name in recipe.files:
            contents[name] = (folder / name).read_bytes()
            verify(contents[name], checksums()[f"{recipe.name}/{name}"], name)
    except (OSError, ChecksumError):
        return None
    return contents


def _cached_table(recipe: Recipe, path: Path) -> pd.DataFrame | None:
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError):  # not there, or not even a csv
        return None
    return table if served.is_prepared_table(recipe, table) else None


def _url(recipe: Recipe) -> str:
    return f"{UCI}/{recipe.uci_id}/{recipe.zip_name}"


def _download(recipe: Recipe) -> dict[str, bytes]:
    """The set's files from UCI's zip, all of them checked."""
    archive = served.retry(lambda: _fetch(_url(recipe)), RETRIES, OSError)  # as all errors of requests are
    members = read_members(archive, recipe.zip_name, recipe.files)
    for name, content in members.items():
        verify(content, checksums()[f"{recipe.name}/{name}"], f"the member {name}")
    return members


class _Received(io.BytesIO):
    def write(self, chunk: Any) -> int:
        if self.tell() + len(chunk) > LARGEST:
            raise zipfile.BadZipFile(f"the server sends more than {LARGEST:,} bytes, so it is not UCI's archive")
        return super().write(chunk)


def _fetch(url: str) -> bytes:
    received = _Received()  # in memory, so that no disk can be full and no file left behind
    pooch = required("pooch", "a download", "data")
    pooch.HTTPDownloader(progressbar=True, timeout=TIMEOUT)(url, received, None)
    return received.getvalue()


def _keep(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Put downloaded files into their folder of the cache, or warn that this failed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            replace_file(folder / name, content)
    except OSError as error:
        if all(_is_same(folder / name, content) for name, content in contents.items()):
            return  # another process was faster
        warnings.warn(
            f"{folder.name}: the downloaded files are used, but can't be kept in {folder} ({_one_line(error)}), so "
            f"they are downloaded each time: make room or give access there, or set {VARIABLE} to a folder with them",
            stacklevel=4,
        )


def _is_same(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:
        return False


def read_members(archive: bytes, zip_name: str, names: tuple[str, ...]) -> dict[str, bytes]:
    """Return the content of the files called `names` in a zip archive, whatever folder they are in.

    Raises
    ------
    UnsafeArchiveError
        If any member, wanted or not, has an absolute path or one with "..".
    zipfile.BadZipFile
        If the archive is damaged, or a file is missing from it or has more than `LARGEST` bytes.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            by_name = {}
            for member in opened.infolist():
                # Windows' rules recognise every kind of path: drives, backslashes and slashes.
                path = PureWindowsPath(member.filename)
                if path.anchor or ".." in path.parts:
                    raise UnsafeArchiveError(
                        f"{zip_name} has a member {member.filename!r} with a path outside its folder, so it is not used"
                    )
                by_name[PurePosixPath(member.filename).name] = member
            missing = [name for name in names if name not in by_name]
            if missing:
                raise zipfile.BadZipFile(f"{zip_name} has no member {', '.join(missing)}")
            return {name: _unpacked(opened, by_name[name]) for name in names}
    except UnsafeArchiveError:
        raise
    except (zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:  # cut, garbled, encrypted
        raise zipfile.BadZipFile(f"{zip_name} can't be unpacked: {error}") from error


def _unpacked(opened: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        # Other methods unpack everything, however little is asked for.
        raise zipfile.BadZipFile(f"the member {member.filename} is packed by a method that UCI does not use")
    with opened.open(member) as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise zipfile.BadZipFile(f"the member {member.filename} has more than {LARGEST:,} bytes, unlike UCI's")
    return content


def _one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _wanted(recipe: Recipe) -> str:
    return "\n".join(f"  {checksums()[f'{recipe.name}/{name}']}  {name}" for name in recipe.files)


def _not_available(recipe: Recipe, user: Path | None, failures: list[str]) -> str:
    folder = user / recipe.name if user else f"<folder>/{recipe.name}, {VARIABLE} or data_dir being <folder>"
    tried = "\n".join(f"  {failure}" for failure in failures)
    if recipe.uci_id is None:
        why, origin = "its recipe names no place to download them from.", "Put them"
    else:
        why = f"the UCI archive did not provide them.\nTried:\n{tried}"
        origin = f"They are in {recipe.zip_name} of https://archive.ics.uci.edu/dataset/{recipe.uci_id}; put them"
    return (
        f"{recipe.name}: the raw files are not on this machine, and {why}\n"
        f"Wanted (sha256, file):\n{_wanted(recipe)}\n"
        f"{origin}, unchanged, into one of\n  {folder}\n  {cache_folder() / recipe.name}"
    )
