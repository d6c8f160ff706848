"""Where the two references disagree: which is right, operator by operator, and why. Reviewed like source.

    ReduceMax/*float*/* extreme: reference: NaN wins, as in Max

A line holds patterns of a case (operator, types, shape) and of the class of values, the side and the reason; the first
that fits counts. `decided` takes what `t10.conformance.grid.decided` computes and neither reference, `either` takes
both, `skip` none: what every side computes is no more than an artefact.
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

Side = Literal["reference", "runtime", "decided", "either", "skip"]
CHOICES = REPOSITORY_LIST.with_name("choices.txt")
_LINE = re.compile(r"(\S+) (\S+): (reference|runtime|decided|either|skip): (.+)")


@dataclass(frozen=True, slots=True)
class Choice:
    """Which reference counts where they disagree, for what fits both patterns."""

    case: str
    values: str
    side: Side
    why: str

    def fits(self, case: str, values: str) -> bool:
        """Return whether the patterns match."""
        return fnmatchcase(case, self.case) and fnmatchcase(values, self.values)


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
                f"{path}:{number}: expected `OPERATOR/TYPES/SHAPE VALUES: reference|runtime|decided|either|skip: why`"
            )
        case, values, side, why = match.groups()
        found.append(Choice(case, values, cast("Side", side), why))
    return tuple(found)


def choice_for(case: str, values: str) -> Choice | None:
    """Return the first choice that fits `Operator/types/shape` and a class of values, if any."""
    return next((each for each in read_choices() if each.fits(case, values)), None)
