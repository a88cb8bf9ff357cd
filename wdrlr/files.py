"""The one way in which files are written."""

import os
from contextlib import suppress
from pathlib import Path


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
