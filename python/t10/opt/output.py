"""The output: all of it or nothing, so that a failed run never leaves half a file."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from t10.errors import InputError


def write(path: str, data: str | bytes) -> None:
    """Write text or bytecode to a file (`-` is standard output).

    A file appears under its name only when it is complete; raises `InputError` if it cannot be written.
    """
    raw = data if isinstance(data, bytes) else data.encode("utf-8")
    if path == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(raw)
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(raw)  # a device or a pipe cannot be renamed onto
            return
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(raw)
            os.chmod(temporary, _default_mode())
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None


def is_terminal(path: str) -> bool:
    """Return whether the output goes to a terminal."""
    return path == "-" and sys.stdout.isatty()


def _default_mode() -> int:
    """Return the mode of a newly made file (temporary files are private)."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
