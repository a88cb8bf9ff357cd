"""Rows come back as they were saved, whatever happens meanwhile to the process, the file or the folder."""

import errno
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.paper.test_results import make_row
from wdrlr.paper import results, store
from wdrlr.paper.results import COLUMNS, load_rows, save_rows, to_frame, versions
from wdrlr.paper.store import Table, check_writable, heading, locked


def key(row):
    return tuple(row[name] for name in results.KEY)


FILE = "toy_code_LR_seed0.csv"


def test_rows_come_back_as_they_were(tmp_path):
    row = make_row(test_error=1 / 3, warning='commas, "quotes"', constant=True, gap=1e-300)
    save_rows(tmp_path, [row])
    assert load_rows(tmp_path, [key(row)]) == {key(row): row}
    assert list(to_frame([row]).columns) == list(COLUMNS)


def test_nan_comes_back_as_nan(tmp_path):
    row = make_row(cv_error=float("nan"))
    save_rows(tmp_path, [row])
    assert load_rows(tmp_path, [key(row)])[key(row)]["cv_error"] != row["cv_error"]


def test_only_the_cells_asked_for_are_loaded_in_their_order(tmp_path):
    rows = [make_row(split=s, tol=tol) for s in range(3) for tol in (1e-6, 1e-4)]
    save_rows(tmp_path, rows)
    wanted = [key(make_row(split=s)) for s in (2, 7, 0)]
    assert list(load_rows(tmp_path, wanted)) == [wanted[0], wanted[2]]


@pytest.mark.parametrize("name, value", [("protocol", "paper"), ("seed", 1), ("tol", 1e-3), ("method", "DRO")])
def test_rows_of_another_run_are_not_mixed_in(tmp_path, name, value):
    save_rows(tmp_path, [make_row(), make_row(**{name: value}, test_error=0.9)])
    (row,) = load_rows(tmp_path, [key(make_row())]).values()
    assert row["test_error"] == make_row()["test_error"]


def test_a_row_with_the_same_key_is_replaced(tmp_path):
    save_rows(tmp_path, [make_row(), make_row(split=1)])
    save_rows(tmp_path, [make_row(test_error=0.5)])
    rows = load_rows(tmp_path, [key(make_row(split=s)) for s in range(2)])
    assert [row["test_error"] for row in rows.values()] == [0.5, make_row()["test_error"]]


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"split": 0.0}, "column split .* expected int"),
        ({"constant": 1}, "constant"),
        ({"x": 1}, "columns"),
        ({"test_error": 1.5}, "not a share"),
    ],
)
def test_a_wrong_row_is_refused_and_nothing_is_written(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        save_rows(tmp_path, [make_row(), make_row(split=1) | changes])
    assert not list(tmp_path.glob("*.csv*"))


def with_field(name, value):
    return lambda text: _edit(text, name, value)


def _edit(text, name, value):
    header, *lines = text.splitlines()
    fields = lines[0].split(",")
    fields[list(COLUMNS).index(name)] = value
    return "\n".join([header, ",".join(fields), *lines[1:], ""])


DAMAGES = {
    "cut off in a number": (lambda text: text[:-20], "last line is cut off"),
    "cut off after a line feed": (lambda text: "\n".join(text.splitlines()[:-1]) + "\n1,2\n", "2 fields"),
    "empty": (lambda text: "", "cut off"),
    "another header": (lambda text: text.replace("gamma", "penalty"), "its columns are"),
    "text for a number": (with_field("objective", "low"), "column objective: 'low' is not of type float"),
    "text for a truth value": (with_field("constant", "maybe"), "column constant"),
    "an impossible error": (with_field("test_error", "7.5"), "not a share"),
    "another data set": (with_field("dataset", "spect"), "a row of dataset spect"),
    "a split twice": (with_field("split", "1"), "split 1 is in it more than once"),
    "fields without a value": (lambda text: text + "," * (len(COLUMNS) - 1) + "\n", "line 4, column split"),
    "versions cut off": (with_field("versions", versions().rpartition(" ")[0]), "line 2: its versions are cut off"),
    "no text": (lambda text: text[:50] + "\udc80" + text[50:], "codec can't decode"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_named_and_set_aside(tmp_path, damage):
    spoil, reason = DAMAGES[damage]
    rows = [make_row(split=s, warning="") for s in range(2)] + [make_row(seed=5)]
    save_rows(tmp_path, rows)
    path = tmp_path / FILE
    for n in (1, 2):  # a second damaged file does not overwrite the first
        path.write_bytes(spoil(path.read_text()).encode("utf-8", "surrogateescape"))
        damaged = path.read_bytes()
        with pytest.warns(UserWarning, match=f"(?s){FILE}: .*{reason}.*damaged-{n}"):
            found = load_rows(tmp_path, [key(row) for row in rows])
        assert list(found) == [key(rows[2])]
        assert (tmp_path / f"{FILE}.damaged-{n}").read_bytes() == damaged
        save_rows(tmp_path, rows)
        assert len(load_rows(tmp_path, [key(row) for row in rows])) == 3


@pytest.mark.parametrize("blank", ["\n", "\r\n", "  \n", "\n\n"])
@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_blank_lines_are_no_damage(tmp_path, recwarn, blank, at):
    rows = [make_row(split=s) for s in range(2)]
    save_rows(tmp_path, rows)
    path = tmp_path / FILE
    lines = path.read_text().splitlines(keepends=True)
    path.write_bytes("".join([*lines[:at], blank, *lines[at:]]).encode())
    assert list(load_rows(tmp_path, map(key, rows)).values()) == rows
    assert not len(recwarn)
    path.write_bytes(path.read_bytes() + b"1,2\n")
    with pytest.warns(UserWarning, match=f"line {4 + blank.count(chr(10))} has 2 fields"):
        load_rows(tmp_path, map(key, rows))


def test_saving_does_not_drop_a_damaged_file(tmp_path):
    (tmp_path / FILE).write_text("rubbish\n")
    with pytest.warns(UserWarning, match="damaged"):
        save_rows(tmp_path, [make_row()])
    assert (tmp_path / f"{FILE}.damaged-1").read_text() == "rubbish\n"


def _save_some(folder, first):
    for split in range(first, first + 20):
        save_rows(folder, [make_row(split=split)])


@pytest.mark.skipif(os.name == "nt", reason="needs fork")
def test_processes_share_a_file_without_losing_rows(tmp_path):
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_save_some, args=(tmp_path, 20 * i)) for i in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert len(load_rows(tmp_path, [key(make_row(split=s)) for s in range(60)])) == 60


HOLD_AND_WAIT = """
import sys, time, pathlib
from wdrlr.paper import paths
from wdrlr.paper import results, store
sys.path.insert(0, {root!r})
from tests.paper.test_results import make_row
def stuck(path, text):
    path.with_name(path.name + ".tmp").write_text(text[:100])
    print("writing", flush=True)
    time.sleep(60)
store.replace_file = stuck
results.save_rows(pathlib.Path(sys.argv[1]), [make_row(split=9)])
"""


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_writer_killed_while_writing_leaves_the_old_file_and_no_lock(tmp_path, monkeypatch):
    save_rows(tmp_path, [make_row()])
    code = HOLD_AND_WAIT.format(root=str(Path(__file__).parents[2]))
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout.readline() == "writing\n"
        writer.send_signal(signal.SIGKILL)
    assert list(load_rows(tmp_path, [key(make_row(split=s)) for s in (0, 9)])) == [key(make_row())]
    monkeypatch.setattr(store, "_LOCK_SECONDS", 0)
    save_rows(tmp_path, [make_row(split=1)])
    assert sorted(path.name for path in tmp_path.glob("*.csv*")) == [FILE]


def test_a_held_lock_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "_LOCK_SECONDS", 0.1)
    with locked(tmp_path), pytest.raises(TimeoutError, match=f"cannot lock {tmp_path}: .*another run"):
        save_rows(tmp_path, [make_row()])


def test_what_is_in_the_lock_file_does_not_matter(tmp_path):
    (tmp_path / ".lock.tmp").write_bytes(b"SQLite format 3\x00 and then rubbish")
    check_writable(tmp_path)
    save_rows(tmp_path, [make_row()])
    assert load_rows(tmp_path, [key(make_row())])


@pytest.mark.skipif(os.name == "nt", reason="these locks are not Windows'")
@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_locks_is_reported_at_once(tmp_path, monkeypatch, code):
    import fcntl

    tries = []

    def refuse(*_):
        tries.append(code)
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    for act in (check_writable, lambda folder: save_rows(folder, [make_row()])):
        with pytest.raises(OSError, match=rf"on a file system with locks.*{tmp_path}") as caught:
            act(tmp_path)
        assert caught.value.errno == code
    assert len(tries) == 2


@pytest.mark.parametrize("spoil", [Path.touch, lambda path: path.parent.joinpath("other").touch()])
def test_a_folder_that_takes_no_files_is_named_before_any_work(tmp_path, spoil):
    folder = tmp_path / "rows"  # a file, or not there
    spoil(folder)
    with pytest.raises(OSError, match=rf"existing folder that you may write to.*{folder}"):
        check_writable(folder)


def test_a_folder_whose_lock_cannot_be_opened_is_named(tmp_path):
    (tmp_path / ".lock.tmp").mkdir()
    with pytest.raises(OSError, match=rf"results_dir.*{tmp_path}.*\.lock\.tmp"):
        check_writable(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="needs paths of 4,095 characters")
def test_a_folder_with_a_long_path_is_as_good_as_others(tmp_path):
    folder = tmp_path
    while len(str(folder)) < 3900:
        folder /= "long" * 24
    folder.mkdir(parents=True)
    check_writable(folder)
    save_rows(folder, [make_row()])
    assert load_rows(folder, [key(make_row())])


def _try_to_lock_as(user, folder, answers):
    os.setgroups([])
    os.setgid(0)  # the group of the lock file
    os.setuid(user)
    store._LOCK_SECONDS = 0.1
    try:
        with locked(folder):
            answers.put("locked")
    except OSError as error:
        answers.put(f"{type(error).__name__}: {error}")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root can act for other users")
@pytest.mark.parametrize(
    "rights, while_held, later", [(0o755, "PermissionError", "PermissionError"), (0o775, "TimeoutError", "locked")]
)
def test_one_user_at_a_time_has_the_lock_and_whoever_may_write_gets_it(rights, while_held, later):
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as name:  # what pytest makes is closed to other users
        folder = Path(name)
        folder.chmod(rights)
        answers = context.SimpleQueue()

        def try_as_other():
            other = context.Process(target=_try_to_lock_as, args=(65534, folder, answers))
            other.start()
            other.join()
            return answers.get()

        with locked(folder):
            said = try_as_other()
        assert said.startswith(while_held) and name in said
        assert try_as_other().startswith(later)


def test_a_full_disk_is_reported_with_the_file(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=FILE):
        save_rows(tmp_path, [make_row()])
    assert not list(tmp_path.glob("*.csv*"))


def test_a_file_can_have_a_heading_empty_numbers_and_the_order_of_its_rows(tmp_path):
    table = Table(
        {"part": str, "name": str, "n": int, "seconds": float},
        ("part", "name"),
        "{part}.csv",
        optional=("seconds",),
        heading='two cores, "one" thread',
        sort=False,
    )
    path = tmp_path / "a.csv"
    path.write_text("# another machine\npart,name,n,seconds\na,z,1,0.5\na,y,2,\n")
    assert heading(path) == "another machine"
    rows = table.read(path)
    assert [row["name"] for row in rows] == ["z", "y"] and rows[0]["seconds"] == 0.5 and math.isnan(rows[1]["seconds"])
    table.save(tmp_path, [{"part": "a", "name": "b", "n": 3, "seconds": math.nan}])
    assert path.read_text() == ('# two cores, "one" thread\npart,name,n,seconds\na,z,1,0.5\na,y,2,nan\na,b,3,nan\n')
    assert heading(path) == table.heading
    path.write_text("part,name,n,seconds\na,z,,1\n")
    assert heading(path) == ""
    with pytest.warns(UserWarning, match="line 2, column n: '' is not of type int"):
        assert table.read(path) == []
