"""Types of the native module `t10.core._guard` (source: `_guard.cpp`)."""

def arm(text: str, code: int) -> None:
    """From now on, some signals write `text` to standard error and exit with `code`.

    They are SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT and SIGVTALRM. `SIGNAL` in the text becomes the signal's name,
    `out of time` of the last. Armed again, the text and the code change.
    """

def disarm() -> None:
    """Put the handlers back that were there before; does nothing where none was armed."""

def allow_leaks() -> None:
    """Say nothing from now on where objects of native modules are alive when the interpreter ends."""
