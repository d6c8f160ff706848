"""The errors this compiler raises on purpose, one class per cause, each with the exit code of the commands.

Anything that is not a `T10Error` is a defect of the compiler itself: the drivers turn it into exit code 70.
A message says what was found and what was expected; `operator`, `location` and `hint` say where and what would help.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, ClassVar
from unicodedata import category

EXIT_INTERNAL = 70
"""Exit code for a defect of the compiler (`EX_SOFTWARE` of sysexits.h)."""


def printable(text: str) -> str:
    """Return a text with `?` for what a terminal would obey or hide, not print: a name of a model may hold anything.

    Lines and columns stay.
    """
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in "\n\t" or category(each) == "Zs" else "?" for each in text
    )


class T10Error(Exception):
    """An error with a cause the user can act on, printed as one line: `location: operator 'x': message (hint)`.

    `details` are further lines for who wants to know more; the commands print them below, `t10-opt` as notes.
    """

    exit_code: ClassVar[int] = EXIT_INTERNAL

    def __init__(
        self,
        message: str,
        *,
        operator: str | None = None,
        location: str | None = None,
        hint: str | None = None,
        details: tuple[str, ...] = (),
    ) -> None:
        """Keep the message, where it applies (the operator's name, a source location), what would help, and details."""
        super().__init__(message)
        self.message = message
        self.operator = operator
        self.location = location
        self.hint = hint
        self.details = details

    def __str__(self) -> str:
        """Return one line: where, what, and what would help; line breaks of the parts become spaces."""
        where = [self.location] if self.location and self.location != self.operator else []
        if self.operator:
            where.append(f"operator '{self.operator}'")
        text = ": ".join([*where, self.message])
        if self.hint:
            text = f"{text} ({self.hint})"
        return printable(" ".join(text.split()))


class InputError(T10Error):
    """What the user gave cannot be used: a missing or malformed file, a wrong shape, an unknown option value."""

    exit_code: ClassVar[int] = 2


class UnsupportedOpError(T10Error):
    """The model is valid but holds an operator, type or form this compiler does not handle."""

    exit_code: ClassVar[int] = 3


class MissingConstantError(UnsupportedOpError):
    """Operators need constants where the model computes: fixing `inputs`, names of inputs of the model, would do."""

    def __init__(self, message: str, *, inputs: tuple[str, ...], **where: Any) -> None:
        """Keep what every error keeps (`T10Error`), and the inputs."""
        super().__init__(message, **where)
        self.inputs = inputs


class InfeasiblePlanError(T10Error):
    """No plan satisfies the constraints: the operator or the model does not fit the memory or the cores."""

    exit_code: ClassVar[int] = 4


class VerifyError(T10Error):
    """A checker found a plan, a layout or IR to be wrong; says which rule was broken, by what."""

    exit_code: ClassVar[int] = 5


class SimTrap(T10Error):
    """A simulator stopped: poisoned data was read, a memory overflowed, or an access was out of bounds."""

    exit_code: ClassVar[int] = 6


@contextmanager
def naming(operator: str) -> Generator[None]:
    """Give errors that name no operator this one."""
    try:
        yield
    except T10Error as error:
        error.operator = error.operator or operator
        raise
