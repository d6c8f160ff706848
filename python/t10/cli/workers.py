"""Processes that work for a command side by side, and end with it, however it ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Generator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from threading import Thread
from types import FrameType
from typing import Any, NoReturn

GRACE_SECONDS = 2.0
"""How long a worker has to remove what it was writing when its command has ended."""


@contextmanager
def workers(n_jobs: int) -> Generator[Executor | None]:
    """Yield an executor of so many processes, None for one job; where the block raises, they end soon."""
    if n_jobs == 1:
        yield None
        return
    context = multiprocessing.get_context("spawn")
    theirs, ours = context.Pipe(duplex=False)
    with theirs, ours, ProcessPoolExecutor(n_jobs, context, _end_with_command, (theirs,)) as pool:
        try:
            yield pool
        except BaseException:
            # Before the pool waits for its processes.
            ours.close()
            raise


def _end_with_command(connection: Any) -> None:
    """Prepare a worker: it ends when the command closes the pipe, which the system does where it kills the command."""
    # Ctrl-C reaches all processes of a terminal; the command decides what follows from it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _leave)
    Thread(target=_watch, args=(connection,), daemon=True).start()


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    """End the call that is running."""
    del number, frame
    sys.exit(1)


def _watch(connection: Any) -> None:
    """Wait for the end of the command, then end this process."""
    connection.poll(None)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    # The pool would begin another call, and a long native one is still running.
    os._exit(1)
