"""Where the two references disagree: which is right, operator by operator, and why. Reviewed like source.

    Max *float* extreme: runtime: IEEE 754-2019 maximum, NaN wins

A line holds patterns of operator, types and class of values, the choice and the reason. The first that fits counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Literal, cast

from t10.conformance.expectations import REPOSITORY_LIST
from t10.errors import InputError

Side = Literal["reference", "runtime", "either"]
CHOICES = REPOSITORY_LIST.with_name("choices.txt")
_LINE = re.compile(r"(\S+) (\S+) (\S+): (reference|runtime|either): (.+)")


@dataclass(frozen=True, slots=True)
class Choice:
    """Which reference counts where they disagree, for what fits three patterns."""

    operator: str
    types: str
    values: str
    side: Side
    why: str

    def fits(self, operator: str, types: str, values: str) -> bool:
        """Return whether the patterns match."""
        pairs = ((operator, self.operator), (types, self.types), (values, self.values))
        return all(fnmatchcase(text, pattern) for text, pattern in pairs)


@cache
def read_choices(path: Path = CHOICES) -> tuple[Choice, ...]:
    """Return the choices of a file; raises `InputError` for a line that is none. A line of `#` is a comment."""
    if not path.is_file():
        return ()
    found: list[Choice] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise InputError(
                f"{path}:{number}: expected `OPERATOR TYPES VALUES: reference|runtime|either: why`"
            )
        operator, types, values, side, why = match.groups()
        found.append(Choice(operator, types, values, cast("Side", side), why))
    return tuple(found)


def choice_for(operator: str, types: str, values: str) -> Choice | None:
    """Return the first choice that fits, if any."""
    return next((each for each in read_choices() if each.fits(operator, types, values)), None)
