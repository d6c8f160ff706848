"""Looking for cyclic garbage less often while many values are made that hold none.

Planning makes millions of frozen values that live on and are no parts of cycles; going through all of them again and
again takes a tenth of its time.
"""

from __future__ import annotations

import atexit
import gc
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock

from t10.core import _guard

RARE = (10_000, 20, 1_000)
"""Thresholds as `gc.set_threshold` takes them: new objects per collection, and collections per one of older objects."""

_lock = Lock()
_before: list[tuple[int, int, int]] = []
"""The thresholds as they were, once per block that is running; the first are those to go back to."""


@contextmanager
def rare_collections() -> Generator[None]:
    """Collect cyclic garbage rarely in the block; where blocks overlap, the last to end restores the thresholds."""
    with _lock:
        _before.append(_before[0] if _before else gc.get_threshold())
        gc.set_threshold(*RARE)
    try:
        yield
    finally:
        with _lock:
            thresholds = _before.pop()
            if not _before:
                gc.set_threshold(*thresholds)


def end_without_collection() -> None:
    """Look for no cyclic garbage when the interpreter ends: the end of the process frees all memory at once.

    What a large model leaves takes more than a second to go through.
    """
    atexit.register(_leave)


def _leave() -> None:
    _guard.allow_leaks()
    gc.freeze()
