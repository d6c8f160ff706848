"""Differences that are known and not mended yet: reviewed, and none may stand there that is gone.

    grid/Neg/int32/* plan: computed in f32

A line holds a pattern of tests, an engine (`*` for all) and what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from t10.conformance.expectations import REPOSITORY_LIST, Expectations, surprises
from t10.conformance.grid.summary import Defect, defects
from t10.conformance.verdict import Verdict
from t10.errors import InputError

KNOWN = REPOSITORY_LIST.with_name("known.txt")
_LINE = re.compile(r"(\S+) (\S+): (.+)")


@dataclass(frozen=True, slots=True)
class Known:
    """A pattern of cases that an engine computes wrong, and how."""

    case: str
    engine: str
    what: str

    def covers(self, defect: Defect) -> bool:
        """Return whether it is one of these."""
        return fnmatchcase(defect.case, self.case) and fnmatchcase(defect.engine, self.engine)


def read_known(path: Path = KNOWN) -> tuple[Known, ...]:
    """Return the lines of a file; raises `InputError` for one that is none. A line of `#` is a comment."""
    if not path.is_file():
        return ()
    found: list[Known] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise InputError(f"{path}:{number}: expected `TEST ENGINE: what is wrong`")
        found.append(Known(*match.groups()))
    return tuple(found)


def unexpected(
    verdicts: Sequence[Verdict], expected: Expectations, known: Sequence[Known]
) -> tuple[str, ...]:
    """Return what is not expected (`surprises`) of tests that are not known to be wrong on some engine."""
    others = [each for each in verdicts if not defects([each]) or unknown(defects([each]), known)]
    return surprises(others, expected)


def unknown(found: Iterable[Defect], known: Sequence[Known]) -> tuple[Defect, ...]:
    """Return the defects that no line covers."""
    return tuple(each for each in found if not any(line.covers(each) for line in known))


def stale(found: Sequence[Defect], known: Sequence[Known]) -> tuple[Known, ...]:
    """Return the lines that cover none of all that was found."""
    return tuple(line for line in known if not any(line.covers(each) for each in found))
