"""Diagnostics: collected from MLIR and from our passes, shown with a caret under the offending line."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from t10.dialect.location import file_line_column, location_text
from t10.errors import T10Error, printable

MOST_COLUMNS = 400
"""Of a line of the input that is shown."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message: severity (error, warning, remark, note), place (line and column from 1; 0: unknown) and text."""

    severity: str
    file: str
    line: int
    column: int
    message: str


class Diagnostics:
    """The diagnostics of one piece of input. `buffer` is the file name MLIR uses for it, `name` the one to show."""

    def __init__(self, name: str, text: str | None, buffer: str = "-") -> None:
        """Start empty; `text` (None for bytecode) is where carets point into."""
        self.items: list[Diagnostic] = []
        self.name = name
        self._buffer = buffer
        self._text = text

    def add(self, diagnostic: Any) -> bool:
        """Take a diagnostic and its notes from MLIR; the handler to attach to a context."""
        severity = str(diagnostic.severity).rsplit(".", 1)[-1].lower()
        self._add(severity, diagnostic.location, diagnostic.message)
        for note in diagnostic.notes:
            self._add("note", note.location, note.message)
        return True

    def add_exception(self, error: Any) -> None:
        """Take the diagnostics that an `MLIRError` carries instead of having reported them.

        Of damaged bytecode there may be none: what the error itself says is then taken.
        """
        for diagnostic in error.error_diagnostics:
            self.add(diagnostic)
        if not any(item.severity == "error" for item in self.items):
            self.items.append(Diagnostic("error", self.name, 0, 0, str(error)))

    def add_error(self, error: T10Error) -> None:
        """Take an error of ours, at its location if it has one."""
        file, line, column = _split_location(error.location or "")
        text = error.message
        if error.location in (self._buffer, self.name) or text.startswith(f"{self.name}: "):
            file, text = self.name, text.removeprefix(f"{self.name}: ")
        location = None if file else error.location
        message = T10Error(text, operator=error.operator, location=location, hint=error.hint)
        self.items.append(Diagnostic("error", self._shown(file), line, column, str(message)))
        self.items.extend(self._note(detail) for detail in error.details)

    def add_message(self, severity: str, location: Any, message: str) -> None:
        """Take a warning or remark of a pass."""
        self._add(severity, location, message)

    def show(self) -> None:
        """Print all to standard error in the order they came."""
        for item in self.items:
            print(printable(self.render(item)), file=sys.stderr)

    def render(self, item: Diagnostic) -> str:
        """Return a diagnostic as `file:line:column: severity: message`, then the source line and a caret."""
        if not item.line:
            where = f"{item.file}: " if item.file else ""
            return f"{where}{item.severity}: {item.message}"
        head = f"{item.file}:{item.line}:{item.column}: {item.severity}: {item.message}"
        if item.file != self.name or item.line > len(self._lines):
            return head
        start = max(item.column - 1 - MOST_COLUMNS // 2, 0) if item.column > MOST_COLUMNS else 0
        line = self._lines[item.line - 1][start : start + MOST_COLUMNS]
        pad = "".join("\t" if c == "\t" else " " for c in line[: max(item.column - 1 - start, 0)])
        return f"{head}\n{line}\n{pad}^"

    @cached_property
    def _lines(self) -> list[str]:
        """The lines of the input: a copy of it, made for who shows one."""
        return [] if self._text is None else self._text.split("\n")

    def _add(self, severity: str, location: Any, message: str) -> None:
        """Append a message at an MLIR location."""
        found = file_line_column(location)
        if found is None:
            name = location_text(location)
            self.items.append(Diagnostic(severity, "" if name == "unknown location" else name, 0, 0, message))
            return
        file, line, column = found
        self.items.append(Diagnostic(severity, self._shown(file), line, column, message))

    def _note(self, text: str) -> Diagnostic:
        """Return a detail of an error as a note, at the place in this input that it begins with if it does."""
        found = re.match(rf"{re.escape(self.name)}:(\d+):(\d+): (.*)", text, re.DOTALL)
        if found is None:
            return Diagnostic("note", "", 0, 0, text)
        return Diagnostic("note", self.name, int(found[1]), int(found[2]), found[3])

    def _shown(self, file: str) -> str:
        """Return the name to show for a buffer."""
        return self.name if file == self._buffer else file


def _split_location(text: str) -> tuple[str, int, int]:
    """Return file, line and column of `file:line:column`; the line is 0 if it is not of that form."""
    parts = text.rsplit(":", 2)
    if len(parts) == 3 and parts[1].isdigit() and parts[2].isdigit():
        return parts[0], int(parts[1]), int(parts[2])
    return "", 0, 0
