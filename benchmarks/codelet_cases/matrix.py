"""Products on the matrix engine beside poplibs' formula of its 1x1 convolution vertex (timing reference §5.1).

The formula takes weights that lie block by block; ours are loaded from rows as they lie.
"""

from __future__ import annotations

from codelet_cases.case import Case
from t10.codelets.counter import cycles_where_it_lies
from t10.codelets.matrix.engine import Engine, engine_for
from t10.codelets.matrix.family import compiled, ways
from t10.codelets.matrix.stream import Access, Registers, Stream
from t10.codelets.matrix.windows import pieces_of
from t10.codelets.matrix.windows_code import CHANNELS
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.core.task import Task, TaskOperand

TYPES = (("f16", "f16"), ("f16", "f32"), ("f32", "f32"))
SIZES = ((16, 64, 16), (64, 64, 64), (64, 64, 128), (128, 64, 64), (256, 64, 64), (96, 96, 16), (24, 128, 32))
WINDOWS = ((14, 14, 4, 3), (14, 14, 4, 7), (7, 7, 16, 3), (7, 14, 8, 5))
EVERYWHERE_APART = frozenset({(0, 1), (0, 2), (1, 2)})
WORKERS = 6


def product_body(in_dtype: str, out_dtype: str) -> ScalarFunction:
    """Return the product of two inputs, in the output's type."""
    if in_dtype == out_dtype:
        return ScalarFunction(2, (ScalarOp("arith.mulf", (0, 1), out_dtype),), 2)
    casts = tuple(ScalarOp("arith.extf", (i,), out_dtype) for i in (0, 1))
    return ScalarFunction(2, (*casts, ScalarOp("arith.mulf", (2, 3), out_dtype)), 4)


def matmul(rows: int, columns: int, depth: int, in_dtype: str, out_dtype: str) -> Task:
    """Return C[m, n] = A[m, k] B[n, k], operands interleaved and apart."""
    strides = ((depth, 0, 1), (0, depth, 1), (columns, 1, 0))
    dtypes = (in_dtype, in_dtype, out_dtype)
    a, b, c = (TaskOperand(t, s, 16, True) for t, s in zip(dtypes, strides, strict=True))
    body = product_body(in_dtype, out_dtype)
    return Task((rows, columns, depth), (a, b), c, "sum", body, (2,), apart=EVERYWHERE_APART)


def worker_slots(engine: Engine, rows: int, *, begins: bool) -> int:
    """Return poplibs' slots of a worker for its rows of a block."""
    if engine.in_dtype == "f32":
        slots = {0: 24, 1: 47, 2: 46}.get(rows, 46 + 8 * (rows - 3))
        return slots + (2 + 8 * rows if begins else 2) - 7
    slots = {0: 20, 1: 31, 2: 40}.get(rows, 36 + 4 * (rows - 3))
    return slots + (1 if begins else 2) - 7


def formula(engine: Engine, rows: int, columns: int, depth: int) -> float:
    """Return poplibs' cycles for the whole vertex, weights loaded 16 bytes at a time."""
    in_groups, out_groups = -(-depth // engine.depth), -(-columns // engine.columns)
    most, least = -(-rows // WORKERS), rows // WORKERS
    add, begin = (
        max(
            WORKERS * worker_slots(engine, most, begins=first),
            WORKERS * worker_slots(engine, least, begins=first) + 14,
        )
        for first in (False, True)
    )
    load = engine.units * 2
    if engine.name == "f16_f16":
        return 116 + (in_groups - 1) * (33 + out_groups * (57 + add)) + out_groups * (57 + begin)
    further = (in_groups - 1) * (15 + out_groups * (19 + 6 + load + add))
    return 50 + 13 + further + 11 + out_groups * (18 + 7 + load + begin)


def inner_share(task: Task) -> float | None:
    """Return the least share of the engine's peak that a row loop of the task's codelet reaches."""
    found = min(ways(task), key=lambda way: cycles_where_it_lies(task, compiled(way)), default=None)
    if found is None:
        return None
    structure = found.structure
    loops: tuple[tuple[Access | None, bool], ...] = ((structure.begin, False), (structure.add, True))
    registers = Registers("$m6", "$m10", "$m4", "$m1", "$m7", "$m4:5", "$m3", "$m11")
    engine, kit = structure.engine, structure.kit
    return min(
        engine.phases / Stream(engine, kit, adds, access, registers).row_bundles
        for access, adds in loops
        if access is not None
    )


def depthwise(rows: int, columns: int, channels: int, taps: int, out_dtype: str) -> Task:
    """Return O[h, w, c] = sum X[h + p, w + q, c] W[p, q, c], operands interleaved and apart."""
    line = (columns + taps - 1) * channels
    strides = (
        (line, channels, 1, line, channels),
        (0, 0, 1, taps * channels, channels),
        (columns * channels, channels, 1, 0, 0),
    )
    dtypes = ("f16", "f16", out_dtype)
    x, w, out = (TaskOperand(t, s, 16, True) for t, s in zip(dtypes, strides, strict=True))
    extents = (rows, columns, channels, taps, taps)
    return Task(extents, (x, w), out, "sum", product_body("f16", out_dtype), (3, 4), apart=EVERYWHERE_APART)


def depthwise_cases() -> list[Case]:
    """Return depthwise convolutions.

    The short-window engine takes a step for every position and piece, and for two sums in f32 or four in f16.
    """
    result: list[Case] = []
    for out_dtype, halves in (("f32", 2), ("f16", 1)):
        for rows, columns, channels, taps in WINDOWS:
            pieces = pieces_of(taps)
            assert pieces is not None
            steps = rows * columns * channels // CHANNELS * taps * len(pieces) * halves
            name = f"{rows} x {columns} x {channels}, {taps} x {taps} depthwise f16 -> {out_dtype}"
            result.append(Case(name, depthwise(rows, columns, channels, taps, out_dtype), least_cycles=steps))
    return result


def cases() -> tuple[Case, ...]:
    """Return matrix products of several sizes in all types, and depthwise convolutions."""
    result = depthwise_cases()
    for in_dtype, out_dtype in TYPES:
        engine = engine_for(in_dtype, out_dtype)
        assert engine is not None
        for rows, columns, depth in SIZES:
            steps = rows * -(-columns // engine.columns) * -(-depth // engine.depth) * engine.phases
            result.append(
                Case(
                    f"{rows} x {columns} x {depth} {in_dtype} -> {out_dtype}",
                    matmul(rows, columns, depth, in_dtype, out_dtype),
                    formula(engine, rows, columns, depth),
                    least_cycles=steps,
                    inner=inner_share(matmul(rows, columns, depth, in_dtype, out_dtype)),
                )
            )
    return tuple(result)
