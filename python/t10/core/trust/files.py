"""Bytes and text of a file, no more than a budget of them: a name may stand for anything, `/dev/zero` has no end.

A pipe that nobody writes to is an error: opening it would wait for ever.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from t10.errors import EXIT_INTERNAL, InputError, T10Error

STANDARD_INPUT = "-"
MODEL_BYTES = 2 << 30
"""Models in one piece of memory: what protocol buffers hold; large weights of ONNX files are mapped, not read."""
DOCUMENT_BYTES = 256 << 20
"""JSON that T10 writes (plan.json, program.json, manifest.json), and texts beside it."""
SOURCE_BYTES = 16 << 20
"""What people write: assembly, C++ references, cost models, declarations, lists."""
ENDLESS_BYTES = 512 << 20
"""Of what is no file and has no size: pipes and devices."""
WRITER_SECONDS = 5
"""How long a named pipe may be without anyone who has it open to write."""
_FIRST_BYTES = 1 << 16

UNDECODABLE = (
    TypeError,
    AttributeError,
    LookupError,
    ValueError,
    ArithmeticError,
    RuntimeError,  # of nanobind
    MemoryError,
)
"""What goes wrong with data of another form than the code that decodes it takes for granted."""


def read_bytes(path: Path | str, most: int, *, what: str = "", hint: str | None = None) -> bytes:
    """Return the bytes of a file, `-` is standard input. Raises `InputError` where it cannot be read or holds more.

    `what` says in the message what it should be, like "chip file".
    """
    is_stream = str(path) == STANDARD_INPUT
    shown = " ".join(filter(None, (what, "standard input" if is_stream else str(path))))
    try:
        if is_stream:
            return _taken(sys.stdin.buffer, min(most, ENDLESS_BYTES), shown)
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            found = os.fstat(file.fileno())
            if stat.S_ISREG(found.st_mode):
                _check_size(found.st_size, most, shown)
                return _taken(file, most, shown)
            first = _first_written(file.fileno()) if stat.S_ISFIFO(found.st_mode) else b""
            os.set_blocking(file.fileno(), True)
            return _taken(file, min(most, ENDLESS_BYTES), shown, first)
    except (OSError, ValueError) as error:  # a name with a NUL is a ValueError
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise InputError(f"cannot read {shown}: {reason}", hint=hint) from error


def read_text(path: Path | str, most: int, *, what: str = "", hint: str | None = None) -> str:
    """Return the text of a file, with plain line ends. Raises `InputError` as `read_bytes` does, and for no UTF-8."""
    data = read_bytes(path, most, what=what, hint=hint)
    try:
        return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        shown = " ".join(filter(None, (what, str(path))))
        raise InputError(
            f"cannot read {shown}: line {line}: found byte {data[error.start]:#04x}, expected UTF-8 text",
            hint=hint,
        ) from None


def read_entry(path: Path, most: int) -> bytes | None:
    """Return the bytes of a regular file, None of anything else and of more bytes; a pipe must not make us wait.

    Raises `OSError`: what is read so is a cache, which can do without.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > most:
            return None
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(most)
    finally:
        os.close(descriptor)


@contextmanager
def decoding(source: Path | str, *, hint: str | None = None) -> Generator[None]:
    """Turn what goes wrong while data of `source` becomes values into an `InputError` that names it.

    The schema and the verifiers say more exactly what is wrong; this is for what they do not know. Only code that
    decodes stands in the block: elsewhere such an error is a defect.
    """
    try:
        yield
    except T10Error as error:
        if error.exit_code != EXIT_INTERNAL:
            raise
        raise InputError(
            f"{source}: it contradicts itself: {error.message}",
            operator=error.operator,
            location=error.location,
            hint=error.hint or hint,
        ) from error
    except UNDECODABLE as error:
        found = " ".join(str(error).split())[:200]
        raise InputError(
            f"{source}: it contradicts itself, or is of another form than T10 writes: {type(error).__name__}: {found}",
            hint=hint,
        ) from error


def _first_written(pipe: int) -> bytes:
    """Return what is in a pipe that is read without waiting, nothing once there is a writer or was one.

    Raises `OSError` where no writer comes.
    """
    waiting, end = select.poll(), time.monotonic() + WRITER_SECONDS
    waiting.register(pipe, 0)  # tells that the last writer is gone
    while time.monotonic() < end:
        try:
            first = os.read(pipe, _FIRST_BYTES)
        except BlockingIOError:
            return b""
        if first or waiting.poll(20):
            return first
        time.sleep(0.02)
    raise OSError(errno.EAGAIN, f"it is a pipe that nobody writes to (waited {WRITER_SECONDS} s)")


def _taken(file: IO[bytes], most: int, shown: str, first: bytes = b"") -> bytes:
    data = first + file.read(max(0, most + 1 - len(first)))
    _check_size(len(data), most, shown)
    return data


def _check_size(found: int, most: int, shown: str) -> None:
    if found > most:
        raise InputError(f"{shown}: found more than {most:,} bytes, expected at most that")
