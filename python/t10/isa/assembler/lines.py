"""Lines of source with where they came from, and the errors found in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from t10.errors import InputError

MOST_ERRORS = 20
"""Errors reported before the assembler gives up on a file."""


class Line(NamedTuple):
    """One logical line: `text` after the C preprocessor, `raw` as written (comments blanked, so that columns agree).

    `number` counts from 1 in `file`. `outer` is the line whose macro, repetition or `#include` brought this one in,
    None for lines of the file given; `how` says in which of these ways.
    """

    text: str
    raw: str
    file: str
    number: int
    outer: Line | None = None
    how: str = ""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error: where (column from 1), what, and the source line; `trail` names the macros it happened in."""

    file: str
    line: int
    column: int
    message: str
    source: str = ""
    trail: tuple[str, ...] = ()

    @property
    def head(self) -> str:
        """Return `file:line:column: error: message`."""
        return f"{self.file}:{self.line}:{self.column}: error: {self.message}"

    def text(self) -> str:
        """Return the error with the source line, a caret under the column, and the macros it happened in."""
        lines = [self.head]
        if self.source.strip():
            lines += [f"  {self.source}", f"  {' ' * (self.column - 1)}^"]
        lines += [f"  {note}" for note in self.trail]
        return "\n".join(lines)


class AssemblyError(InputError):
    """Assembly text is wrong; `diagnostics` holds every error found, up to `MOST_ERRORS`."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        """Show the first error as the message, the rest as details."""
        first, *rest = (diagnostic.text() for diagnostic in diagnostics)
        head, *below = first.split("\n")
        super().__init__(head, details=(*below, *(line for text in rest for line in text.split("\n"))))
        self.diagnostics = diagnostics


class Problem(Exception):
    """An error at `column` (from 0) of the text of a line; None where it concerns the whole line."""

    def __init__(self, message: str, column: int | None = None) -> None:
        """Keep what is wrong and where in the text."""
        super().__init__(message)
        self.message = message
        self.column = column


class TooManyErrors(Exception):
    """The limit of errors is reached, or going on makes no sense."""


class Reporter:
    """Collects errors of one assembly."""

    def __init__(self) -> None:
        """Begin without errors."""
        self.diagnostics: list[Diagnostic] = []
        self._seen: set[tuple[str, int, str]] = set()

    def report(self, line: Line, message: str, column: int | None = None) -> None:
        """Keep an error; raises TooManyErrors at the limit. The same error of one line is kept once."""
        key = (line.file, line.number, message)
        if key in self._seen:
            return
        self._seen.add(key)
        self.diagnostics.append(_diagnostic(line, message, column))
        if len(self.diagnostics) >= MOST_ERRORS:
            raise TooManyErrors

    def fatal(self, line: Line, message: str, column: int | None = None) -> NoReturn:
        """Keep an error and stop."""
        self.report(line, message, column)
        raise TooManyErrors

    def raise_if_any(self) -> None:
        """Raise AssemblyError where an error was reported."""
        if self.diagnostics:
            raise AssemblyError(tuple(self.diagnostics))


def _diagnostic(line: Line, message: str, column: int | None) -> Diagnostic:
    """Return an error with its column in the source as written, and the trail of macros above it."""
    trail: list[str] = []
    where = column
    if line.text != line.raw:
        where = _column_in_raw(line, column)
        if line.text.strip() != line.raw.strip():
            trail.append(f"expanded: {' '.join(line.text.split())}")
    if where is None or where > len(line.raw):
        where = len(line.raw) - len(line.raw.lstrip())
    outer, how = line.outer, line.how
    while outer is not None and len(trail) < 8:
        trail.append(f"{how} at {outer.file}:{outer.number}")
        outer, how = outer.outer, outer.how
    return Diagnostic(line.file, line.number, where + 1, message, line.raw.expandtabs(1), tuple(trail))


def _column_in_raw(line: Line, column: int | None) -> int | None:
    """Return where the word at `column` of an expanded line stands in the line as written, None where it does not."""
    if column is None:
        return None
    if line.raw.startswith(line.text[: column + 1]):
        return column
    words = line.text[column:].split()
    found = line.raw.find(words[0]) if words else -1
    return found if found >= 0 else None
