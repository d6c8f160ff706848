"""Types of the native module `t10.core._guard` (source: `_guard.cpp`)."""

def arm(text: str, code: int) -> None:
    """From now on, SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT write `text` to standard error and exit with `code`.

    `SIGNAL` in the text becomes the signal's name. Armed again, the text and the code change.
    """

def disarm() -> None:
    """Put the handlers back that were there before; does nothing where none was armed."""
