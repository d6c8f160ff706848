"""Native calls that take a while and that Ctrl-C ends.

Python handles a signal in the main thread, between two of its own instructions. A long native call there would put the
interruption off until it returns.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")

STOP_SECONDS = 0.05
"""Between two attempts to stop a call: one that comes before the call has begun stops nothing."""


def interruptible(call: Callable[[], T], stop: Callable[[], object]) -> T:
    """Return what the call returns; if the caller is interrupted, `stop` the call, wait for its end, and raise."""
    running: Future[T] = Future()
    thread = Thread(target=_run, args=(call, running), name="t10-native", daemon=True)
    try:
        thread.start()
        return running.result()
    except BaseException:
        while thread.is_alive() and not running.done():
            stop()
            thread.join(STOP_SECONDS)
        raise


def _run(call: Callable[[], T], running: Future[T]) -> None:
    """Make the call and keep what it returns or raises."""
    try:
        running.set_result(call())
    except BaseException as error:
        running.set_exception(error)
