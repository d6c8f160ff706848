"""A process that makes calls for this one, which its interpreter's lock leaves a core for.

It is started by a command, not forked, runs nothing of the calling program, and ends with it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from socket import socketpair
from threading import Event, Lock
from typing import Any

from t10.core.garbage import rare_collections
from t10.cost.counts import learn, note_counts
from t10.cost.kept import current, current_store
from t10.plan.fronts.cache import PlanCache

POLL_SECONDS = 0.1
PROGRAM = """
import sys
descriptor, parent, most, folder, *sys.path = sys.argv[1:]
from t10.plan.fronts.helper import serve
serve(int(descriptor), int(parent), int(most), folder)
"""
"""What a helper runs; it finds modules where this process does, not where it happens to be."""


class HelperFailedError(Exception):
    """A helper did not return a result: make the call here."""


@dataclass(frozen=True, slots=True)
class Helper:
    """A process that makes one call at a time."""

    process: subprocess.Popen[bytes]
    connection: Connection[Any, Any]

    def call(self, function: Callable[..., Any], arguments: Sequence[Any], stop: Event) -> Any:
        """Return what a function of a module returns; raises `HelperFailedError`, also soon after `stop` is set."""
        try:
            self.connection.send((function, tuple(arguments)))
            while not self.connection.poll(POLL_SECONDS):
                if stop.is_set():
                    raise HelperFailedError
            is_result, result, counts = self.connection.recv()
        # Whatever cannot be sent or read back, and an end of the process.
        except Exception as error:
            raise HelperFailedError from error
        if not is_result:
            raise HelperFailedError
        learn(counts)
        return result

    def end(self) -> None:
        """End the process, whatever it does."""
        self.connection.close()
        self.process.kill()
        self.process.wait()


_lock = Lock()
_idle: list[Helper] = []
_blocks: list[None] = []
"""Helpers that wait for calls, and a mark for each block they wait in."""


@contextmanager
def kept_helpers() -> Generator[None]:
    """Let helpers that were started in the block wait for further calls, until the last of all such blocks ends."""
    with _lock:
        _blocks.append(None)
    try:
        yield
    finally:
        with _lock:
            _blocks.pop()
            left = [] if _blocks else [_idle.pop() for _ in list(_idle)]
        for helper in left:
            helper.end()


def are_waiting() -> bool:
    """Return whether a helper waits for calls."""
    return bool(_idle)


def taken() -> Helper | None:
    """Return a helper that waits, or else a new one, None where none can be started (`started`)."""
    with _lock:
        if _idle:
            return _idle.pop()
    return started()


def leave(helper: Helper) -> None:
    """Let a helper that has nothing to do wait, or end it where no block keeps it (`kept_helpers`)."""
    with _lock:
        is_kept = bool(_blocks)
        if is_kept:
            _idle.append(helper)
    if not is_kept:
        helper.end()


def started() -> Helper | None:
    """Return a new helper, None where this process is no plain Python interpreter or none can be started."""
    if not Path(sys.executable or "").name.startswith("python"):
        return None
    ours, theirs = (Connection(end.detach()) for end in socketpair())
    paths = [path for path in sys.path if path]
    store = current_store()
    kept = (str(store.max_bytes), str(store.folder)) if isinstance(store, PlanCache) else ("0", "")
    command = [sys.executable, "-c", PROGRAM, str(theirs.fileno()), str(os.getpid()), *kept, *paths]
    try:
        # Its errors are found again where the call is made here.
        nothing = subprocess.DEVNULL
        process = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], stdin=nothing, stdout=nothing, stderr=nothing
        )
    except OSError:
        ours.close()
        return None
    finally:
        theirs.close()
    return Helper(process, ours)


@dataclass(frozen=True, slots=True)
class _Orphaned:
    """Says, as an event does, whether the process of this number is no longer the one that started this one."""

    parent: int

    def is_set(self) -> bool:
        return os.getppid() != self.parent


def serve(descriptor: int, parent: int, max_bytes: int, folder: str) -> None:
    """Make the calls that come over a pipe until it is closed; interruptions are left to the `parent`.

    Counts are read from the plan cache in `folder`, formulas are kept there too, unless `folder` is empty.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection, stop, counts = Connection(descriptor), _Orphaned(parent), note_counts()
    store = current(PlanCache(Path(folder), max_bytes, _ignored)) if folder else nullcontext()
    with rare_collections(), store, suppress(EOFError, OSError):
        while not stop.is_set():
            function, arguments = connection.recv()
            try:
                answer = (True, function(*arguments, stop=stop))
            except Exception:  # it is raised again where the call is made by the one that asked
                answer = (False, None)
            connection.send((*answer, counts))
            counts.clear()


def _ignored(message: str) -> None:
    """Say nothing: the process that asked says it."""
    del message
