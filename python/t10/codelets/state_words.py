"""Which words of a vertex's state code reads, and how to have it read others."""

from __future__ import annotations

import re
from collections.abc import Mapping

LOAD = re.compile(r"(\bld32 +\$\w+, *\$mvertex_base, *(?:\$mzero, *)?)(0x[0-9a-fA-F]+|\d+)\b")
TABLE = re.compile(r"\bldz16 +\$\w+, *\$mvertex_base, *\$m\d+, *\d+")
"""The load of a number that a worker finds by its own number."""


def is_read_by_word(code: str) -> bool:
    """Return whether the state is used in no other way."""
    return "$mvertex_base" not in LOAD.sub("", code)


def renumbered(code: str, numbers: Mapping[int, int]) -> str:
    """Return code that loads word `numbers[n]` instead of n; words without a number stay."""
    return LOAD.sub(lambda found: f"{found[1]}{numbers.get(int(found[2], 0), int(found[2], 0))}", code)
