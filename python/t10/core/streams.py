"""Standard streams, and what ends them: a reader that left, a full disk, a shell that closed them (`>&-`)."""

from __future__ import annotations

import errno
import os
import sys

EXIT_BROKEN_PIPE = 141
"""What a shell reports for a process that a closed pipe ended."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
EXIT_FULL = 2
_STREAMS = (("stdin", "r", os.O_WRONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY))
"""Name and mode of each standard stream, by descriptor, and how its stand-in is opened: what is asked of it fails."""


def hold_closed_streams() -> None:
    """Give standard streams that are closed a stand-in, which Python does not have and the next open file would be.

    Reading and writing it fails, as the stream would; what goes to standard error is lost. Commands begin with this.
    """
    for name, mode, access in _STREAMS:
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, access)  # the lowest that is free: that of the closed stream
            os.set_inheritable(descriptor, True)
            stream = open(descriptor, mode, encoding="utf-8", closefd=False)  # noqa: SIM115 - lives with the process
            setattr(sys, name, stream)


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
