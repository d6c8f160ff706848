r"""`--verify-diagnostics`: the input says in comments what must be reported, as in mlir-opt.

```
// expected-error @+1 {{does not divide}}
// expected-note-re @below 2 {{rp[{{[0-9]}}]}}
```

Places: none (this line), `@+n`, `@-n`, `@above` and `@below` (the nearest line without such a comment), `@unknown`.
A number before the text says how often. The text must occur in the message; with `-re`, parts in `{{}}` are regular
expressions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from t10.opt.diagnostics import Diagnostic

_DESIGNATOR = re.compile(
    r"expected-(error|warning|remark|note)(-re)?\s*(?:@([+-]\d+|above|below|unknown))?\s*(\d+)?\s*\{\{(.*)\}\}"
)
_OPERATION_NOTE = "see current operation"


@dataclass(frozen=True, slots=True)
class Expected:
    """One diagnostic that must be reported at `line` (0: anywhere unknown); `source_line` is where that is written."""

    severity: str
    is_regex: bool
    line: int
    text: str
    source_line: int

    def matches(self, found: Diagnostic) -> bool:
        """Return whether a diagnostic is this one."""
        if found.severity != self.severity or found.line != self.line:
            return False
        if not self.is_regex:
            return self.text in found.message
        return re.search(_expression(self.text), found.message) is not None


def compare(text: str, name: str, found: Sequence[Diagnostic], *, only_expected: bool) -> list[str]:
    """Return one line per diagnostic that is missing or (unless `only_expected`) not expected; empty if all is well."""
    missing = list(expectations(text))
    problems: list[str] = []
    for diagnostic in found:
        match = next((each for each in missing if each.matches(diagnostic)), None)
        if match is not None:
            missing.remove(match)
            continue
        is_noise = diagnostic.severity == "note" and diagnostic.message.startswith(_OPERATION_NOTE)
        if not only_expected and not is_noise:
            where = f"{diagnostic.file}:{diagnostic.line}:{diagnostic.column}: " if diagnostic.line else ""
            problems.append(f"{where}error: unexpected {diagnostic.severity}: {diagnostic.message}")
    for each in missing:
        problems.append(
            f'{name}:{each.source_line}: error: expected {each.severity} "{each.text}" was not produced'
        )
    return problems


def expectations(text: str) -> Iterator[Expected]:
    """Yield what the comments of `text` expect."""
    lines = text.split("\n")
    has_designator = [_DESIGNATOR.search(line) is not None for line in lines]
    for i, line in enumerate(lines):
        match = _DESIGNATOR.search(line)
        if match is None:
            continue
        severity, regex, place, count, message = match.groups()
        target = _target(place, i, has_designator)
        for _ in range(int(count or 1)):
            yield Expected(severity, bool(regex), target, message, i + 1)


def _target(place: str | None, i: int, has_designator: list[bool]) -> int:
    """Return the line (from 1) a designator on line index `i` points at; 0 for an unknown location."""
    if place is None:
        return i + 1
    if place == "unknown":
        return 0
    if place[0] in "+-":
        return i + 1 + int(place)
    step = 1 if place == "below" else -1
    i += step
    while 0 <= i < len(has_designator) and has_designator[i]:
        i += step
    return i + 1


def _expression(text: str) -> str:
    """Return the regular expression of a `-re` text: literal outside of `{{}}`."""
    parts = re.split(r"\{\{|\}\}", text)
    return "".join(part if i % 2 else re.escape(part) for i, part in enumerate(parts))
