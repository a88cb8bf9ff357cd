import errno
import os

import pytest

from wdrlr.files import replace_file


def test_text_is_utf_8_with_its_line_ends_and_bytes_are_bytes(tmp_path):
    path = tmp_path / "file"
    for content, written in [("κ\n", b"\xce\xba\n"), ("a\r\n", b"a\r\n"), (b"\x00\xff", b"\x00\xff"), ("", b"")]:
        replace_file(path, content)
        assert path.read_bytes() == written


def test_what_a_killed_writer_left_does_not_matter(tmp_path):
    (tmp_path / "file.tmp").write_text("half of a lon")
    replace_file(tmp_path / "file", "whole")
    assert [(left.name, left.read_text()) for left in tmp_path.iterdir()] == [("file", "whole")]


def test_text_that_cannot_be_encoded_leaves_the_old_file(tmp_path):
    path = tmp_path / "table.csv"
    replace_file(path, "old\n")
    with pytest.raises(UnicodeEncodeError):
        replace_file(path, "new\udc80\n")
    assert path.read_text() == "old\n"


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    def full_disk(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "file"
    replace_file(path, b"old")
    for step in ("fsync", "replace"):
        with monkeypatch.context() as patched, pytest.raises(OSError, match=r"No space.*file"):
            patched.setattr(os, step, full_disk)
            replace_file(path, b"new")
        assert path.read_bytes() == b"old"
        assert [left.name for left in tmp_path.iterdir()] == ["file"]
