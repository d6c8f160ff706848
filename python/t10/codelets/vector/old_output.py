"""Accumulation into what an output holds, as a function of one more input."""

from __future__ import annotations

from dataclasses import replace

from t10.core.dtypes import is_float
from t10.core.expression import Combine
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.core.task import Task

FLOAT_COMBINES: dict[Combine, str] = {"sum": "arith.addf", "prod": "arith.mulf", "max": "arith.maximumf",
                                      "min": "arith.minimumf", "maxnum": "arith.maxnumf",
                                      "minnum": "arith.minnumf"}  # fmt: skip
INTEGER_COMBINES: dict[Combine, str] = {"sum": "arith.addi", "prod": "arith.muli", "max": "arith.maxsi",
                                        "min": "arith.minsi", "and": "arith.andi", "or": "arith.ori"}  # fmt: skip
TRUTH_COMBINES: dict[Combine, str] = {"sum": "arith.ori", "prod": "arith.andi", "max": "arith.ori",
                                      "min": "arith.andi", "and": "arith.andi", "or": "arith.ori"}  # fmt: skip


def with_old_output(task: Task) -> tuple[ScalarFunction, tuple[int, ...]] | None:
    """Return the function of one point and the operand number of each of its inputs; None where there is none.

    Accumulation into what is there is a function of one more input, the output itself.
    """
    inputs = tuple(range(len(task.inputs)))
    if task.combine == "none":
        return task.body, inputs
    dtype = task.output.dtype
    table = FLOAT_COMBINES if is_float(dtype) else TRUTH_COMBINES if dtype == "i1" else INTEGER_COMBINES
    opcode = table.get(task.combine)
    if opcode is None:
        return None
    if opcode in ("arith.maxsi", "arith.minsi") and dtype.startswith("u"):
        opcode = opcode.replace("si", "ui")
    n = len(inputs)

    def moved(value: int) -> int:
        return value if value < n else value + 1

    ops = tuple(replace(op, operands=tuple(map(moved, op.operands))) for op in task.body.ops)
    last = ScalarOp(opcode, (n, moved(task.body.result)), dtype)
    return ScalarFunction(n + 1, (*ops, last), n + 1 + len(ops)), (*inputs, n)
