"""Where the numbers of a chip come from: the comments of its file, and `sources` for files that have no comments.

```
# What is said of the whole chip.         notes, before the first field
clock_hz: 1.33 GHz  # profile print-outs  the source of clock_hz
# of T10                                  the source of levels, as are comments within it
levels: ...
```

A file without comments has `notes`, a list of lines, and `sources`, texts by field.

Fields that a file does not have are those of the chip that it is `based_on`, and so are their sources.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import yaml

from t10.chip.off_chip import BANDWIDTH_KEY, MEMORY_KEY
from t10.core.trust.tree import Place, yaml_lines

SOURCES_KEY, NOTES_KEY = "sources", "notes"
DEFAULT, NOT_STATED, CHANGED = "default", "not stated", "changed here"
_COMMENT = re.compile(r"\s*#\s?(.*)")


@dataclass(frozen=True, slots=True)
class Sources:
    """Notes on a chip, line by line, and the sources of its fields by name; of a level or engine `levels[0]`.

    `given` are the fields that its file, or the one it is based on, has.
    """

    notes: tuple[str, ...] = ()
    by_field: tuple[tuple[str, str], ...] = ()
    given: frozenset[str] = frozenset()

    def of(self, field: str) -> str:
        """Return the source of a field, of an item of a list its own and that of the whole list."""
        known = dict(self.by_field)
        names = dict.fromkeys((field, field.partition("[")[0]))
        return "; ".join(known[name] for name in names if name in known) or (
            NOT_STATED if field.partition("[")[0] in self.given else DEFAULT
        )

    def on(self, base: Sources, fields: Mapping[str, Any]) -> Sources:
        """Return these of a file with such `fields`, what it does not have as in its `base`."""
        own = {_known(field) for field in fields}
        inherited = [(field, text) for field, text in base.by_field if field.partition("[")[0] not in own]
        notes = (*self.notes, *base.notes)
        return Sources(notes, (*self.by_field, *inherited), self.given | base.given)

    def changed(self, fields: Mapping[str, Any]) -> Sources:
        """Return those of a chip of which these fields are changed."""
        names = {_known(field.partition(".")[0]) for field in fields}
        kept = [(field, text) for field, text in self.by_field if field.partition("[")[0] not in names]
        changed = [(name, CHANGED) for name in sorted(names)]
        return Sources(self.notes, (*kept, *changed), self.given)


def sources_in(text: str, stated: object = None, notes: Sequence[str] = ()) -> Sources:
    """Return what the comments of a file say, what it `stated` as sources by field, and its further `notes`."""
    comments = _comments(text)
    begins: dict[int, Place] = {}
    for place, line in sorted(yaml_lines(text).items(), key=lambda each: len(each[0])):
        begins.setdefault(line, place)
    first = min(begins, default=0)
    before = [comment for line, (comment, is_alone) in comments.items() if is_alone and line < first]
    found: dict[str, list[str]] = {}
    for line, (comment, is_alone) in comments.items():
        if is_alone and line < first:
            continue
        lines = (
            [each for each in begins if each > line]
            if is_alone
            else [each for each in begins if each <= line]
        )
        if lines:
            found.setdefault(_field(begins[min(lines) if is_alone else max(lines)]), []).append(comment)
    texts = {field: " ".join(comments) for field, comments in found.items()}
    if isinstance(stated, dict):
        texts |= {
            _known(str(field)): str(source) for field, source in cast("dict[object, object]", stated).items()
        }
    given = frozenset(_known(str(place[0])) for place in begins.values())
    return Sources((*before, *notes), tuple(texts.items()), given)


def _field(place: Place) -> str:
    """Return the field of a chip, or the item of a list, in which a place lies."""
    name = _known(str(place[0]))
    return f"{name}[{place[1]}]" if len(place) > 1 and isinstance(place[1], int) else name


def _known(field: str) -> str:
    """Return the field of a chip that a key of its file is, or is short for."""
    return MEMORY_KEY if field == BANDWIDTH_KEY else field


def _comments(text: str) -> dict[int, tuple[str, bool]]:
    """Return the comment of every line that has one, counted from 1, and whether the line has nothing else."""
    ends: dict[int, int] = {}
    inside: set[int] = set()
    scan = cast("Callable[..., Iterable[Any]]", getattr(yaml, "scan"))  # noqa: B009 -- PyYAML has no types
    for token in scan(text, yaml.SafeLoader):
        start, end = token.start_mark, token.end_mark
        if isinstance(token, yaml.ScalarToken):
            inside |= set(range(start.line, end.line + (end.column > 0)))
        if end.column:
            ends[end.line] = max(ends.get(end.line, 0), end.column)
    found: dict[int, tuple[str, bool]] = {}
    for number, line in enumerate(text.splitlines()):
        comment = _COMMENT.fullmatch(line, ends.get(number, 0))
        if comment is not None and (number in ends or number not in inside):
            found[number + 1] = comment[1].strip(), number not in ends
    return found
