"""The code that finds a worker's share of what all six do."""

from __future__ import annotations

from t10.codelets.matrix.code import WorkerCode
from t10.codelets.matrix.shape import Structure


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
