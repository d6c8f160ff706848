"""Reductions beside poplibs' formulas (timing reference §5.3), which count the slots of one worker of six.

Rows are its "all regions continuous", columns its "strided" reductions; sums of partials are its ReduceAdd.
"""

from __future__ import annotations

from math import ceil

from codelet_cases.case import Case
from t10.core.scalar import ScalarFunction, ScalarOp, identity
from t10.core.task import Task, TaskOperand

WORKERS = 6
ACCESS_BYTES = {"f16": 4, "f32": 2}
"""Elements of eight bytes."""
POST = 4
"""The least of what poplibs counts for writing a vector of results."""


def operand(dtype: str, *strides: int) -> TaskOperand:
    """Return an operand aligned to eight bytes."""
    return TaskOperand(dtype, strides, 8)


def continuous(rows: int, length: int, dtype: str) -> float:
    """Return poplibs' cycles for rows of one length."""
    outs = -(-rows // WORKERS)
    return WORKERS * (17 + outs * (12 + length // ACCESS_BYTES[dtype]) + 2 * (length % 2))


def strided(columns: int, length: int, dtype: str, outer: int = 1) -> float:
    """Return poplibs' cycles for columns of one length."""
    vectors = ceil(ceil(columns / ACCESS_BYTES[dtype]) / WORKERS)
    return WORKERS * (16 + vectors * (3 + POST + outer * (3 + length - 1)))


def reduce_add(columns: int, partials: int, dtype: str) -> float:
    """Return poplibs' cycles for the sum of partials from other tiles."""
    a = 2 * ACCESS_BYTES[dtype]
    return 33 + WORKERS * (20 + -(-(columns // a) // WORKERS) * (2 * partials + 7))


def pooling(pixels: int, channels: int, window: int) -> float:
    """Return poplibs' cycles for windows of f16: per pixel 20, per group of four channels 2 + 4 + 3n + 1."""
    items = -(-pixels // WORKERS)
    return WORKERS * (35 + 13 + items * (20 + channels / 4 * (2 + 2 + 4 + 3 * window + 1)))


def cases() -> tuple[Case, ...]:
    """Return rows, columns, partial sums, and the windows of a pool."""
    result: list[Case] = []
    widened = ScalarFunction(1, (ScalarOp("arith.extf", (0,), "f32"),), 1)
    for dtype in ("f16", "f32"):
        for combine in ("sum", "max"):
            for rows, length in ((12, 64), (24, 128), (48, 512), (96, 768)):
                body = widened if dtype == "f16" and combine == "sum" else identity()
                target = "f32" if combine == "sum" else dtype
                task = Task(
                    (rows, length), (operand(dtype, length, 1),), operand(target, 1, 0), combine, body, (1,)
                )
                name = f"{combine} of {rows} rows of {length} {dtype}"
                result.append(Case(name, task, continuous(rows, length, dtype)))
        for columns, length in ((48, 16), (192, 64), (768, 16)):
            task = Task(
                (length, columns),
                (operand(dtype, columns, 1),),
                operand(dtype, 0, 1),
                "sum",
                identity(),
                (0,),
            )
            result.append(
                Case(f"sum of {columns} columns of {length} {dtype}", task, strided(columns, length, dtype))
            )
        for columns, partials in ((96, 4), (480, 8), (1536, 3)):
            x, out = operand(dtype, columns, 1), operand(dtype, 0, 1)
            task = Task((partials, columns), (x,), out, "sum", identity(), (0,), initial=False)
            name = f"{partials} partials of {columns} {dtype}"
            result.append(Case(name, task, reduce_add(columns, partials, dtype)))
    for pixels, channels in ((6, 64), (8, 16)):
        row, plane = channels * (2 * pixels + 1), channels * (2 * pixels + 1) * (2 * pixels + 1)
        x = operand("f16", plane, 2 * row, 2 * channels, row, channels, 1)
        out = operand("f16", pixels * pixels * channels, pixels * channels, channels, 0, 0, 1)
        task = Task((1, pixels, pixels, 3, 3, channels), (x,), out, "max", identity(), (3, 4))
        name = f"3 x 3 pool to {pixels} x {pixels} x {channels} f16"
        result.append(Case(name, task, pooling(pixels * pixels, channels, 9)))
    return tuple(result)
