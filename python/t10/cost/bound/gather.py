"""Lower bounds of look-ups of rows (`t10.codelets.gather`) whose indices all find their rows, as they are priced."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, reduce

import numpy as np

from t10.codelets.gather.family import GatherFamily
from t10.codelets.gather.generator import MISS
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.tile import N_WORKERS
from t10.cost.bound.columns import Boxes, Column, chosen, product
from t10.cost.bound.paths import LAUNCH_CYCLES, SLOT_CYCLES, least_slots, loop, own_lines
from t10.cost.bound.roles import LoopRoles, loop_roles
from t10.cost.work import sub_task

WORD, DOUBLE = 4, 8
ROWS, SELECTED, ACCESSES, ODD_ACCESSES = 24, 16, 12, 11
"""Extents of the boxes that the generator is asked about, and the accesses of a row."""
FEW_ROWS = 6
"""Of fewer rows workers share the pieces."""
PIECE = 6
"""Slots by which a piece of a row may take less than a row."""
SINGLE = 2
"""Slots by which a row of a single access may take less than others: it has no loop."""


@dataclass(frozen=True, slots=True)
class LookupCosts:
    """The least slots of a look-up once, of a row beside its accesses, and of an access.

    `alone` are those of a look-up of one row beside its accesses, `few` what it takes less once where no worker has
    more than one row.
    """

    start: int
    row: int
    access: int
    alone: int
    few: int


def gather_bound(spec: OperatorSpec, boxes: Boxes, *, is_whole: bool) -> tuple[Column, Column] | None:
    """Return where a task with selectors is a look-up of rows of words, and cycles that it does not fall below.

    None where it is none. With `is_whole` operands are as large as the box.
    """
    roles, size = loop_roles(spec), size_bytes(spec.acc_dtype)
    doubles, words = (_costs(spec, roles, n_bytes) for n_bytes in (DOUBLE, WORD))
    if doubles is None or words is None:
        return None
    run, rows = product(boxes, roles.run), product(boxes, roles.rows)
    is_double = run * size % DOUBLE == 0
    accesses = chosen(is_double, run * size // DOUBLE, run * size // WORD)
    start, row, access, alone, few = (
        chosen(is_double, getattr(doubles, name), getattr(words, name))
        for name in ("start", "row", "access", "alone", "few")
    )
    start = start - chosen(rows <= N_WORKERS, few, 0)
    whole = start + -(-rows // N_WORKERS) * (row + access * accesses - chosen(accesses == 1, SINGLE, 0))
    pieces = chosen(accesses % 3 == 0, 3, 1) * chosen(accesses % 2 == 0, 2, 1)
    share = -(-(rows * pieces) // N_WORKERS)
    cut = alone + share * access * (accesses // pieces) + (share - 1) * (row - PIECE)
    cut = cut - chosen(accesses // pieces == 1, share * SINGLE, 0)
    # Rows of several axes may be one loop or more.
    longest = reduce(np.maximum, [boxes[:, axis] for axis in roles.rows])
    least = chosen(np.minimum(longest, rows) < FEW_ROWS, np.minimum(whole, cut), whole)
    if len(roles.run) > 1 and not is_whole:
        # In longer windows rows may be shorter, and more.
        loose = np.minimum(start, alone) + -(-(rows * accesses) // N_WORKERS) * access
        least = np.minimum(least, loose)
    return run * size % WORD == 0, LAUNCH_CYCLES + SLOT_CYCLES * least


@lru_cache(maxsize=1024)
def _costs(spec: OperatorSpec, roles: LoopRoles, access_bytes: int) -> LookupCosts | None:
    """Return what the code of a look-up takes, None where it is none."""
    if not roles.run or not roles.rows:
        return None
    many = _code(spec, roles, ROWS, ACCESSES * DOUBLE + access_bytes % DOUBLE)
    few = _code(spec, roles, N_WORKERS, ACCESSES * DOUBLE + access_bytes % DOUBLE)
    one = _code(spec, roles, 1, ODD_ACCESSES * access_bytes)
    if many is None or few is None or one is None:
        return None
    first, last = loop(many, ".LOut0")
    # Loads and stores that share a bundle take the last one outside.
    row = least_slots(many, first, last, MISS)
    start = least_slots(many, 0, first, ".LEnd") + least_slots(many, last, many.index(".LEnd:")) + 1
    alone = least_slots(one, 0, one.index(".LEnd:"), MISS, ".LEnd") + 1
    access = 1 if _is_paced(many) and _is_paced(one) else 2
    less = start + row - least_slots(few, 0, few.index(".LEnd:"), MISS, ".LEnd") - 1
    return LookupCosts(start, row - _is_paced(many), access, alone - _is_paced(one), max(less, 0))


def _is_paced(lines: list[str]) -> bool:
    return any("pace" in line for line in lines)


def _code(spec: OperatorSpec, roles: LoopRoles, n_rows: int, n_bytes: int) -> list[str] | None:
    """Return the lines of a look-up of rows of so many bytes."""
    extents = dict.fromkeys(range(len(spec.axes)), 1)
    extents |= dict.fromkeys(roles.selected, SELECTED)
    extents |= {roles.run[-1]: n_bytes // size_bytes(spec.acc_dtype), roles.rows[-1]: n_rows}
    compiled = GatherFamily().compile(sub_task(spec, tuple(extents.values()), simplify=False))
    return None if compiled is None else own_lines(compiled.codelet)
