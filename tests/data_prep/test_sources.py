"""Where raw files come from: the order, the checks, and what each failure says and leaves behind."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
import shutil
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from wdrlr.data_prep import RECIPES, served, sources
from wdrlr.data_prep.recipe import ChecksumError
from wdrlr.data_prep.sources import DataUnavailableError, UnsafeArchiveError, raw_table

SHIPPED = sources.SHIPPED
NAMES = sorted(path.name for path in SHIPPED.iterdir() if path.is_dir())
HAYES = RECIPES["hayes-roth"]
FILES = {name: (SHIPPED / "hayes-roth" / name).read_bytes() for name in HAYES.files}


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def left_behind(folder) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A machine without a data folder, shipped files, a filled cache, a network or waiting."""
    sources.checksums()
    (tmp_path / "shipped").mkdir()
    monkeypatch.delenv("WDRLR_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(sources, "SHIPPED", tmp_path / "shipped")
    monkeypatch.setattr(sources, "user_cache_path", lambda name: tmp_path / "cache" / name)
    monkeypatch.setattr(sources, "UCI", "http://127.0.0.1:9")  # the discard port: refused
    monkeypatch.setattr("time.sleep", lambda seconds: None)

    def not_reached(recipe, timeout, retries):
        raise served.ServedTableError("ConnectionError: Error connecting to server")

    monkeypatch.setattr(served, "fetch_table", not_reached)
    return tmp_path


@pytest.fixture
def uci(bare, monkeypatch):
    """A local stand-in for the UCI archive: it answers as the list `replies` says, one reply a request."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            server.paths.append(self.path)
            status, content, missing_bytes = server.replies.pop(0) if server.replies else (502, b"", 0)
            if status == "hang":
                server.released.wait(5)
                return
            self.send_response(status)
            self.send_header("Content-Length", str(len(content) + missing_bytes))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.paths, server.replies, server.released = [], [], threading.Event()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setattr(sources, "UCI", f"http://127.0.0.1:{server.server_port}")
    yield server
    server.released.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("name", NAMES)
def test_shipped_files_are_byte_identical_to_ucis(name):
    for path in (SHIPPED / name).iterdir():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == sources.checksums()[f"{name}/{path.name}"]
    assert {path.name for path in (SHIPPED / name).iterdir()} >= set(RECIPES[name].files)


def test_what_is_shipped_and_what_is_pinned():
    not_shipped = {"spect", "splice", "hiv", "audiology", "hepatitis", "cylinder-bands"}
    assert set(NAMES) <= set(RECIPES) - not_shipped
    wanted = {f"{name}/{file}" for name, recipe in RECIPES.items() for file in recipe.files}
    assert set(sources.checksums()) == wanted | {"annealing/anneal.test"}
    attribution = (SHIPPED / "ATTRIBUTION.md").read_text(encoding="utf-8")
    for name in NAMES:
        assert f"| {name} |" in attribution
        if RECIPES[name].uci_id is not None:
            assert f"https://archive.ics.uci.edu/dataset/{RECIPES[name].uci_id} |" in attribution


def test_parameter_wins_over_variable_wins_over_shipped(bare, monkeypatch):
    for place in ("parameter", "variable", "shipped"):
        shutil.copytree(SHIPPED / "car", bare / place / "car")
    monkeypatch.setenv("WDRLR_DATA", str(bare / "variable"))
    car = RECIPES["car"]
    assert raw_table(car, bare / "parameter")[1] == "the folder that data_dir sets"
    assert raw_table(car)[1] == "the folder that WDRLR_DATA sets"
    monkeypatch.delenv("WDRLR_DATA")
    assert raw_table(car)[1] == "the files shipped with wdrlr"


def test_a_set_that_the_users_folder_lacks_comes_from_the_next_place(bare):
    shutil.copytree(SHIPPED / "car", bare / "shipped" / "car")
    (bare / "mine").mkdir()
    assert raw_table(RECIPES["car"], bare / "mine")[1] == "the files shipped with wdrlr"


@pytest.mark.parametrize("variable", [True, False])
def test_users_folder_that_does_not_exist(bare, monkeypatch, variable):
    if variable:
        monkeypatch.setenv("WDRLR_DATA", str(bare / "nowhere"))
    with pytest.raises(DataUnavailableError, match="WDRLR_DATA" if variable else "data_dir=") as caught:
        raw_table(HAYES, None if variable else bare / "nowhere")
    assert str(bare / "nowhere") in str(caught.value)


def test_users_folder_with_a_changed_file(bare):
    shutil.copytree(SHIPPED / "hayes-roth", bare / "mine" / "hayes-roth")
    changed = FILES["hayes-roth.test"].replace(b"\n", b"\r\n")
    (bare / "mine/hayes-roth/hayes-roth.test").write_bytes(changed)
    with pytest.raises(ChecksumError) as caught:
        raw_table(HAYES, bare / "mine")
    message = str(caught.value)
    assert str(bare / "mine/hayes-roth/hayes-roth.test") in message
    assert hashlib.sha256(changed).hexdigest() in message
    assert sources.checksums()["hayes-roth/hayes-roth.test"] in message
    assert "replace it" in message


def test_users_folder_with_half_a_set(bare):
    (bare / "mine/hayes-roth").mkdir(parents=True)
    (bare / "mine/hayes-roth/hayes-roth.data").write_bytes(FILES["hayes-roth.data"])
    with pytest.raises(DataUnavailableError, match=r"lacks hayes-roth\.test"):
        raw_table(HAYES, bare / "mine")


def test_users_folder_with_an_unreadable_file(bare):
    (bare / "mine/car/car.data").mkdir(parents=True)
    with pytest.raises(DataUnavailableError, match=re.escape(str(bare / "mine/car/car.data"))):
        raw_table(RECIPES["car"], bare / "mine")


def test_damaged_shipped_file(bare):
    (bare / "shipped/car").mkdir()
    (bare / "shipped/car/car.data").write_bytes(b"vhigh,vhigh")
    with pytest.raises(ChecksumError, match="reinstall"):
        raw_table(RECIPES["car"])


def test_download_fills_the_cache_and_is_not_repeated(bare, uci, capfd):
    uci.replies = [(200, zipped({"inner/hayes-roth.data": FILES["hayes-roth.data"], "Index": b""} | FILES), 0)]
    first, origin = raw_table(HAYES)
    assert "UCI archive" in origin
    assert uci.paths == ["/44/hayes+roth.zip"]
    assert "100%" in capfd.readouterr().err  # the progress bar
    assert left_behind(bare / "cache") == [f"wdrlr/raw/hayes-roth/{name}" for name in sorted(FILES)]
    second, origin = raw_table(HAYES)
    assert "cache" in origin
    assert len(uci.paths) == 1
    assert first.equals(second)


def test_damaged_cache_is_downloaded_again(bare, uci):
    folder = bare / "cache/wdrlr/raw/hayes-roth"
    folder.mkdir(parents=True)
    for name in FILES:
        (folder / name).write_bytes(b"cut off")
    uci.replies = [(200, zipped(FILES), 0)]
    assert len(raw_table(HAYES)[0]) == 160
    assert {name: (folder / name).read_bytes() for name in FILES} == FILES


def test_a_failed_download_is_tried_again(bare, uci):
    whole = zipped(FILES)
    uci.replies = [(502, b"", 0), (200, whole[:100], len(whole) - 100), (200, whole, 0)]
    assert len(raw_table(HAYES)[0]) == 160
    assert len(uci.paths) == 3


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        ((502, b"Bad Gateway", 0), "502"),
        ((404, b"", 0), "404"),
        ((200, zipped(FILES)[:200], 0), "BadZipFile"),
        ((200, zipped(FILES)[:200], 999), "IncompleteRead"),
        ((200, zipped(FILES).replace(zipped(FILES)[60:90], b"\xff" * 30), 0), "can't be unpacked"),
        ((200, b"<html>maintenance</html>", 0), "BadZipFile"),
        ((200, zipped({"hayes-roth.data": FILES["hayes-roth.data"]}), 0), "no member hayes-roth.test"),
        (
            (200, zipped(FILES | {"hayes-roth.test": b"edited"}), 0),
            "member hayes-roth.test is not the original",
        ),
        (("hang", b"", 0), "timed out"),
    ],
    ids=["502", "404", "cut zip", "truncated", "garbled", "no zip", "member missing", "member edited", "time-out"],
)
def test_failures_name_set_files_checksums_and_places_and_leave_nothing(bare, uci, monkeypatch, reply, says):
    monkeypatch.setattr(sources, "TIMEOUT", 0.1)
    uci.replies = [reply] * 3
    with pytest.raises(DataUnavailableError) as caught:
        raw_table(HAYES)
    message = str(caught.value)
    assert message.startswith("hayes-roth: ")
    assert says in message
    for name in HAYES.files:
        assert f"{sources.checksums()[f'hayes-roth/{name}']}  {name}" in message
    assert "WDRLR_DATA" in message
    assert str(bare / "cache/wdrlr/raw/hayes-roth") in message
    assert "ucimlrepo: ServedTableError" in message
    assert left_behind(bare) == []


def test_offline(bare):
    (bare / "mine").mkdir()
    with pytest.raises(DataUnavailableError, match="hiv: the raw files are not on this machine") as caught:
        raw_table(RECIPES["hiv"], bare / "mine")
    assert str(bare / "mine/hiv") in str(caught.value)
    assert "1625Data.txt" in str(caught.value)


@pytest.mark.parametrize("member", ["../evil.txt", "/etc/evil", "a/../../evil", "..\\evil", "C:\\evil", "C:evil"])
def test_zip_member_outside_the_folder_is_refused(bare, uci, member):
    uci.replies = [(200, zipped(FILES | {member: b"evil"}), 0)]
    with pytest.raises(UnsafeArchiveError, match="outside"):
        raw_table(HAYES)
    assert left_behind(bare) == []


def test_ucimlrepo_is_the_last_resort_and_is_cached(bare, uci, monkeypatch):
    table = HAYES.read(HAYES, FILES)
    monkeypatch.setattr(served, "fetch_table", lambda recipe, timeout, retries: table)
    first, origin = raw_table(HAYES)
    assert origin == "ucimlrepo"
    asked = len(uci.paths)
    second, origin = raw_table(HAYES)
    assert "ucimlrepo, by the cache" in origin
    assert len(uci.paths) == asked
    assert first.equals(second)

    cached = bare / "cache/wdrlr/raw/hayes-roth" / sources.SERVED
    cached.write_text(cached.read_text().replace("3", "2", 1))
    assert raw_table(HAYES)[1] == "ucimlrepo"


def test_a_cached_table_without_rows_is_fetched_again(bare, monkeypatch):
    table = HAYES.read(HAYES, FILES)
    monkeypatch.setattr(served, "fetch_table", lambda recipe, timeout, retries: table)
    cached = bare / "cache/wdrlr/raw/hayes-roth" / sources.SERVED
    cached.parent.mkdir(parents=True)
    cached.write_text(",".join(HAYES.columns) + "\n")
    assert raw_table(HAYES)[1] == "ucimlrepo"


def full_disk(*arguments):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture(params=["full", "a file in its place"])
def no_cache(request, bare, monkeypatch):
    """The words for a cache that cannot be written."""
    if request.param == "full":
        monkeypatch.setattr(os, "fsync", full_disk)
        return "No space left on device"
    (bare / "cache").touch()
    return "Not a directory"


@pytest.mark.parametrize("origin", ["the UCI archive", "ucimlrepo"])
def test_what_cannot_be_kept_is_used_with_a_warning(bare, uci, monkeypatch, no_cache, origin):
    if origin == "ucimlrepo":
        table = HAYES.read(HAYES, FILES)
        monkeypatch.setattr(served, "fetch_table", lambda recipe, timeout, retries: table)
    else:
        uci.replies = [(200, zipped(FILES), 0)]
    with pytest.warns(UserWarning, match="hayes-roth: the downloaded files are used, but can't be kept") as caught:
        table, said = raw_table(HAYES)
    assert said.startswith(origin)
    assert table.equals(HAYES.read(HAYES, FILES))
    (message,) = {str(warning.message) for warning in caught}
    assert no_cache in message
    assert str(bare / "cache/wdrlr/raw/hayes-roth") in message
    assert "WDRLR_DATA" in message
    assert set(left_behind(bare)) <= {"cache"}


def test_a_file_that_another_process_has_just_kept_is_no_failure(bare, uci, monkeypatch, recwarn):
    replace = os.replace

    def by_the_other(source, target):
        replace(source, target)
        raise FileNotFoundError(source)

    monkeypatch.setattr(os, "replace", by_the_other)
    sources._keep(bare / "hayes-roth", {"hayes-roth.data": b"1"})
    assert not recwarn.list
    assert left_behind(bare) == ["hayes-roth/hayes-roth.data"]


@pytest.mark.parametrize("folder", ["~nobody-of-this-name/raw", "file/below"])
def test_users_folder_that_leads_nowhere(bare, folder, monkeypatch):
    monkeypatch.chdir(bare)
    (bare / "file").touch()
    with pytest.raises(DataUnavailableError, match=f"{folder}, which is not a readable folder"):
        raw_table(HAYES, folder)


def test_nothing_is_unpacked_beyond_a_bound(bare, uci, monkeypatch):
    """The bound holds for what comes out, whatever the archive says of it, and for the archive itself."""
    monkeypatch.setattr(sources, "LARGEST", 10_000)
    large = FILES | {"hayes-roth.test": bytes(10_001)}
    honest = zipped(large)
    assert len(honest) < 10_000
    says_less = honest.replace((10_001).to_bytes(4, "little"), (100).to_bytes(4, "little"))
    assert says_less != honest
    long = zipped(FILES | {"hayes-roth.test": os.urandom(10_001)})
    for archive, says in [(honest, "more than 10,000 bytes"), (says_less, "BadZipFile"), (long, "the server sends")]:
        uci.replies = [(200, archive, 0)]
        with pytest.raises(DataUnavailableError, match=says):
            raw_table(HAYES)
    assert len(uci.paths) == 3


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_unpack_without_a_bound_are_refused(method):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr("car.data", b"x")
    with pytest.raises(zipfile.BadZipFile, match=r"car\.data is packed by a method"):
        sources.read_members(buffer.getvalue(), "car.zip", ("car.data",))


def test_a_garbled_archive_is_a_bad_zip_file():
    """Whatever bytes are wrong; zipfile itself raises many kinds of errors."""
    rng = np.random.default_rng(0)
    whole = np.frombuffer(zipped(FILES), np.uint8)
    outcomes = set()
    for _ in range(2000):
        garbled = whole.copy()
        garbled[rng.integers(len(whole) - 200, len(whole), 5)] = rng.integers(0, 256, 5)
        try:
            outcomes.add(sources.read_members(garbled.tobytes(), "hayes.zip", HAYES.files) == FILES)
        except (zipfile.BadZipFile, UnsafeArchiveError) as error:
            outcomes.add(type(error))
    assert outcomes >= {True, zipfile.BadZipFile}
