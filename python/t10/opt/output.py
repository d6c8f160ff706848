"""The output: all of it or nothing, so that a failed run never leaves half a file."""

from __future__ import annotations

import sys

from t10.core.atomic import write_bytes
from t10.core.streams import write_stdout


def write(path: str, data: str | bytes) -> None:
    """Write text or bytecode to a file (`-` is standard output); raises `InputError` if a file cannot be written."""
    raw = data if isinstance(data, bytes) else data.encode("utf-8")
    if path != "-":
        write_bytes(path, raw)
        return
    write_stdout(raw)


def is_terminal(path: str) -> bool:
    """Return whether the output goes to a terminal."""
    return path == "-" and sys.stdout.isatty()
