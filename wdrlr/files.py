"""The only place where files are written."""

import os
from contextlib import suppress
from pathlib import Path


def replace_file(path: Path, content: str | bytes) -> None:
    """Write text (as UTF-8) or bytes to `path` so that at every moment the file is the old one or the new, whole.

    The temporary file lies in the same folder, since only a rename within one file system is atomic. It is removed if
    it cannot be written, and has the same name at every call, so that the next call overwrites what a killed process
    leaves.
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
        if isinstance(error, OSError) and error.filename is None:  # as when the disk is full
            error.filename = str(path)
        with suppress(OSError):
            temporary.unlink()
        raise
