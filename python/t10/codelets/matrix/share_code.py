"""The code that finds a worker's share of what all six do."""

from __future__ import annotations

from t10.codelets.matrix.code import WorkerCode
from t10.codelets.matrix.engine import WORD_BYTES
from t10.codelets.matrix.shape import ROUNDING_SHARE_WORDS, Structure
from t10.codelets.matrix.share import RECIPROCAL_BITS

X_FIRST, OUT_FIRST, ROWS, FIRST_ROWS, X_NEXT, OUT_NEXT, SUMS_FIRST = range(ROUNDING_SHARE_WORDS)
"""A worker's share of segments, in the supervisor's frame; three as the words that begin at `segment_rows`, the last
where sums have room of their own."""


def share_code(code: WorkerCode, structure: Structure, share: str = "share", rest: str = "rest") -> None:
    """Add the worker's share of the units of rows: how many to $m2, the first to $m4; $m8 holds the vertex's words."""
    code.op("get $m6, $WSR")
    code.op("and $m6, $m6, 7")
    code.op(f"ld32 $m4, $m8, $mzero, {structure.word(share)}")
    code.op(f"ld32 $m5, $m8, $mzero, {structure.word(rest)}")
    code.op("cmpult $m2, $m6, $m5")
    code.op("add $m2, $m4, $m2")
    code.op("min $m5, $m6, $m5")
    code.op("mul $m4, $m6, $m4")
    code.op("add $m4, $m4, $m5")


def segments_code(code: WorkerCode, structure: Structure) -> None:
    """Add what finds the worker's share: rows and the way from its first segment to the next, kept in the frame.

    $m8 holds the vertex's words; $m9 is the frame moved on to the share from then on.
    """
    op, word, first = code.op, structure.word, structure.first_share
    share_code(code, structure)
    op(f"ld32 $m7, $m8, $mzero, {word('unit')}")
    op("mul $m2, $m2, $m7")
    op("mul $m4, $m4, $m7")
    op(f"ld32 $m7, $m8, $mzero, {word('reciprocal')}")
    op("mul $m7, $m4, $m7")
    op(f"shr $m7, $m7, {RECIPROCAL_BITS}")
    op(f"ld32 $m5, $m8, $mzero, {word('segment_rows')}")
    if structure.engine.rounding:
        op(f"mul $m11, $m4, {WORD_BYTES * structure.kit.stores}")
        op(f"ld32 $m10, $m8, $mzero, {word('sums')}")
        op("add $m11, $m11, $m10")
    op("mul $m10, $m7, $m5")
    op("sub $m4, $m4, $m10")
    op("sub $m5, $m5, $m4")
    op("min $m5, $m5, $m2")
    op(f"mul $m9, $m6, {4 * structure.share_words}")
    op("add $m9, $m9, $mvertex_base")
    op(f"st32 $m2, $m9, $mzero, {first + ROWS}")
    op(f"st32 $m5, $m9, $mzero, {first + FIRST_ROWS}")
    if structure.engine.rounding:
        op(f"st32 $m11, $m9, $mzero, {first + SUMS_FIRST}")
    for name, start, next_one in (("x", X_FIRST, X_NEXT), ("out", OUT_FIRST, OUT_NEXT)):
        op(f"ld32 $m0, $m8, $mzero, {word(f'{name}_row')}")
        op("mul $m1, $m4, $m0")
        op(f"ld32 $m0, $m8, $mzero, {word(f'{name}_segment')}")
        op("mul $m10, $m7, $m0")
        op("add $m10, $m10, $m1")
        op(f"st32 $m10, $m9, $mzero, {first + start}")
        op("sub $m10, $m0, $m1")
        op(f"st32 $m10, $m9, $mzero, {first + next_one}")


def next_segment_code(code: WorkerCode, structure: Structure, *, moves_output: bool = True) -> None:
    """Add the way to the next segment: the first time as the share says, then from segment to segment.

    $m6, $m7 are addresses of input and output, $m2 becomes the next segment's rows, $m0 of which are to come at most.
    """
    first = structure.first_share
    words = structure.word("segment_rows") - (first + FIRST_ROWS)
    code.op(f"ld32 $m4, $m10, $mzero, {first + X_NEXT}")
    if moves_output:
        code.op(f"ld32 $m5, $m10, $mzero, {first + OUT_NEXT}")
    code.op(f"add $m10, $m8, {4 * words}")
    code.op("add $m6, $m6, $m4")
    if moves_output:
        code.op("add $m7, $m7, $m5")
    code.op(f"ld32 $m2, $m10, $mzero, {first + FIRST_ROWS}")
    code.op("min $m2, $m2, $m0")
