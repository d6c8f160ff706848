"""Which words of a vertex's state code reads, `ld32 $r, $mvertex_base, $mzero, NUMBER`, and how to have it read others."""

from __future__ import annotations

import re
from collections.abc import Mapping

LOAD = re.compile(r"(\bld32 \$\w+, \$mvertex_base, \$mzero, )(\d+)\b")


def words_read(code: str) -> frozenset[int]:
    """Return the numbers of the words that are loaded one by one."""
    return frozenset(int(number) for _, number in LOAD.findall(code))


def is_read_by_word(code: str) -> bool:
    """Return whether nothing else of the state is used."""
    return "$mvertex_base" not in LOAD.sub("", code)


def renumbered(code: str, numbers: Mapping[int, int]) -> str:
    """Return code that loads word `numbers[n]` instead of n; words without a number stay."""
    return LOAD.sub(lambda found: f"{found[1]}{numbers.get(int(found[2]), int(found[2]))}", code)
