"""Sums that begin with a row of partials: brought into scratch memory, once, before the first block."""

from __future__ import annotations

from t10.codelets.matrix.code import WorkerCode
from t10.codelets.matrix.engine import WORD_BYTES
from t10.codelets.matrix.shape import FRAME_STATE, Structure
from t10.codelets.matrix.share_code import share_code

QUAD = 4
"""First partials that are brought together."""
LOAD = ("ld64step $a0:1, $mzero, $m0+=, 1", "fnop")
COPY = (LOAD, ("st64step $a0:1, $mzero, $m1+=, 1", "fnop"))
WIDEN = (
    LOAD,
    ("nop", "f16v2tof32 $a2:3, $a0"),
    ("st64step $a2:3, $mzero, $m1+=, 1", "f16v2tof32 $a4:5, $a1"),
    ("st64step $a4:5, $mzero, $m1+=, 1", "fnop"),
)


def first_code(structure: Structure) -> WorkerCode:
    """Return the code of the entry `.Lpartials`: first partials of 16 bits into scratch memory, as wide as sums."""
    code, engine = WorkerCode(), structure.engine
    code.label(".Lpartials")
    code.op(f"ld32 $m8, $mvertex_base, $mzero, {FRAME_STATE}")
    share_code(code, structure, "first_share", "first_rest")
    for pointer, name, quad in (("$m0", "first", WORD_BYTES), ("$m1", "first_room", QUAD * engine.sum_bytes)):
        code.op(f"ld32 {pointer}, $m8, $mzero, {structure.word(name)}")
        code.op(f"shl $m5, $m4, {quad.bit_length() - 1}")
        code.op(f"add {pointer}, {pointer}, $m5")
    code.repeat("$m2", COPY if engine.sum_bytes == engine.in_bytes else WIDEN)
    code.op("exitz $mzero")
    return code
