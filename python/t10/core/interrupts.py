"""Ctrl-C and SIGTERM: they raise KeyboardInterrupt, in an import at its end.

In the middle of an import the exception would be swallowed, taken for a broken installation, as NumPy takes it, or end
the process in native code that begins.
"""

from __future__ import annotations

import signal
from types import FrameType

EXIT_INTERRUPTED = 130
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_UNTOUCHED = (signal.SIG_DFL, signal.default_int_handler)
_RETRY_SECONDS = 0.02


def raise_when_interrupted() -> None:
    """Let signals raise KeyboardInterrupt, unless they are ignored, as those of a background job are."""
    for number in _SIGNALS:
        if signal.getsignal(number) in _UNTOUCHED:
            signal.signal(number, _interrupt)


def raise_what_waits() -> None:
    """Raise KeyboardInterrupt where a signal came in an import that is over."""
    if signal.getitimer(signal.ITIMER_REAL)[0] > 0:
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise KeyboardInterrupt


def end_when_interrupted() -> None:
    """Let signals end the process without a word: nothing is left to do."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number in _SIGNALS:
        if signal.getsignal(number) is _interrupt:
            signal.signal(number, signal.SIG_DFL)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, or try again a little later."""
    del number
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            signal.signal(signal.SIGALRM, _interrupt)
            signal.setitimer(signal.ITIMER_REAL, _RETRY_SECONDS)
            return
        frame = frame.f_back
    raise KeyboardInterrupt
