"""Standard output, and what ends it: a reader that left, a full disk."""

from __future__ import annotations

import errno
import os
import sys

EXIT_BROKEN_PIPE = 141
"""What a shell reports for a process that a closed pipe ended."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
EXIT_FULL = 2


def write_stdout(data: bytes) -> None:
    """Write all of the data to standard output, which may be unbuffered and take a part at a time."""
    sys.stdout.flush()
    rest = memoryview(data)
    while rest:
        rest = rest[sys.stdout.buffer.write(rest) :]
    sys.stdout.buffer.flush()


def exit_code_of_output(error: Exception, program: str) -> int | None:
    """Return the exit code for an error of writing standard output, None for other errors; a full disk is named.

    What is still buffered is dropped: it would fail again when Python flushes it at exit.
    """
    is_broken = isinstance(error, BrokenPipeError)
    if not isinstance(error, OSError) or not (is_broken or error.errno in FULL):
        return None
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if is_broken:
        return EXIT_BROKEN_PIPE
    print(
        f"{program}: error: cannot write {error.filename or 'standard output'}: {error.strerror}",
        file=sys.stderr,
    )
    return EXIT_FULL
