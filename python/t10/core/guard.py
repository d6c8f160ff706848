"""What a command says when native code ends its process: one line and an exit code, as for any other error.

Parsers and inference of MLIR and ONNX take much for granted and can be brought to their knees by a file; the rules that
are checked before do not know all of it. Commands arm the guard; code that works for a library's users does not change
how their process ends.

    with ended_clearly("t10"):            # a command: what happens anywhere is a defect, exit code 70
        with reading("model.onnx"):       # what happens here is the fault of the file, exit code 2
            ...
"""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager

from t10.core import _guard
from t10.errors import EXIT_INTERNAL, InputError, printable

_DEFECT = (
    "{program}: internal error: SIGNAL in native code\n"
    "{program}: this is a defect of T10: please report it with the command, the model and what --debug prints\n"
)
_PARSING_SECONDS = 10
_PARSED_PER_SECOND = 1 << 18
_HINT = "the file breaks a rule that it takes for granted"


class _Armed:
    """The name of the command that runs, empty where none does."""

    program = ""


@contextmanager
def ended_clearly(program: str) -> Generator[None]:
    """Let errors in native code end the process with a message of the command `program` and exit code 70."""
    outer = _Armed.program
    _Armed.program = program
    _guard.arm(_DEFECT.format(program=program), EXIT_INTERNAL)
    try:
        yield
    finally:
        _Armed.program = outer
        if outer:
            _guard.arm(_DEFECT.format(program=outer), EXIT_INTERNAL)
        else:
            _guard.disarm()


def reading(source: str) -> AbstractContextManager[None]:
    """Let errors in native code be those of the file `source`: exit code 2 in a command, `InputError` where it can be.

    Raises `InputError` for what native code raises when it asks for more memory than there is, or has to tell of what
    is no text, and for what is nested too deep for Python.
    """
    return _giving_up(f"{source[:200]}: the native code of ONNX or MLIR that reads it gave up")


def running_reference(source: str) -> AbstractContextManager[None]:
    """Let errors in native code be those of ONNX Runtime, which runs the file `source`; otherwise as `reading`."""
    return _giving_up(f"{source[:200]}: ONNX Runtime, which runs it for comparison, gave up")


@contextmanager
def _giving_up(text: str) -> Generator[None]:
    program = _Armed.program
    if program:
        line = printable(" ".join(text.split()))
        _guard.arm(f"{program}: error: {line} (SIGNAL: {_HINT})\n", InputError.exit_code)
    try:
        yield
    except MemoryError as error:
        raise InputError(f"{text}: it found no memory", hint=_HINT) from error
    except RuntimeError as error:
        raise InputError(f"{text}: {' '.join(str(error).split())[:200]}", hint=_HINT) from error
    finally:
        if program:
            _guard.arm(_DEFECT.format(program=program), EXIT_INTERNAL)


@contextmanager
def parsing(data: bytes | str) -> Generator[None]:
    """Bound the time in which native code parses `data`, in a command, within `reading`.

    Bytecode of a few KiB, damaged, can take hours: types that name each other are read again and again.
    """
    is_timed = bool(_Armed.program) and hasattr(signal, "setitimer")
    if is_timed:
        signal.setitimer(signal.ITIMER_VIRTUAL, _PARSING_SECONDS + len(data) / _PARSED_PER_SECOND)
    try:
        yield
    finally:
        if is_timed:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
