"""Elementwise tasks beside poplibs' formulas (timing reference §5.2), which split elements over six workers.

`k / u` there are slots of a worker per loop of u elements; where operands may share memory elements, as here unless the
name says "apart", `least_cycles` is one slot per 8-byte load or store.
"""

from __future__ import annotations

from collections.abc import Sequence

from codelet_cases.case import Case
from t10.core.scalar import ScalarFunction, ScalarOp, identity
from t10.core.task import Task, TaskOperand

WORKERS = 6
PER_ACCESS = {"f16": 4, "f32": 2}
"""Elements of eight bytes."""
SUPERVISOR = 11
BINARY_START = {"f16": 26, "f32": 29}
Strides = tuple[int, ...]


def share(n: int) -> int:
    """Return the elements of one worker."""
    return -(-n // WORKERS)


def binary(n: int, dtype: str, slots: int, unit: int) -> float:
    """Return poplibs' cycles of an operation on two arrays."""
    return SUPERVISOR + WORKERS * (BINARY_START[dtype] + -(-share(n) // unit) * slots)


def unary(n: int, slots: int, unit: int, start: int = 17) -> float:
    """Return poplibs' cycles of an operation on one array."""
    return SUPERVISOR + 9 + WORKERS * (start + -(-share(n) // unit) * slots)


def by_rows(rows: int, columns: int, dtype: str, slots: int = 2) -> float:
    """Return poplibs' cycles of an array and one number per row."""
    return SUPERVISOR + WORKERS * (15 + -(-rows // WORKERS) * (7 + -(-columns // PER_ACCESS[dtype]) * slots))


def per_column(rows: int, columns: int, dtype: str) -> float:
    """Return poplibs' cycles of adding one vector to all rows."""
    return 13 + WORKERS * (19 + 3 + columns / PER_ACCESS[dtype] * (8 + 2 * share(rows)))


def cast(n: int) -> float:
    """Return poplibs' cycles of a cast between f16 and f32."""
    return 12 + WORKERS * (18 + 19 + share(n) / 2)


def accesses(n: int, dtypes: Sequence[str]) -> float:
    """Return the cycles of loads and stores, each on its own."""
    return WORKERS * sum(-(-share(n) // PER_ACCESS[dtype]) for dtype in dtypes)


def elementwise(
    opcode: str, extents: Strides, dtypes: Sequence[str], strides: Sequence[Strides], *, apart: bool = False,
    attribute: str = "", numbers: Sequence[float] = (),
) -> Task:  # fmt: skip
    """Return a task of one operation; `dtypes` and `strides` end with the output's; `numbers` are constant operands."""
    n = len(dtypes) - 1
    constants = tuple(ScalarOp("const", (), dtypes[-1], repr(float(number))) for number in numbers)
    operands = (*range(n, n + len(numbers)), *range(n)) if numbers else tuple(range(n))
    body = ScalarFunction(
        n, (*constants, ScalarOp(opcode, operands, dtypes[-1], attribute)), n + len(numbers)
    )
    pairs = (
        frozenset((i, j) for i in range(n + 1) for j in range(i + 1, n + 1))
        if apart
        else frozenset[tuple[int, int]]()
    )
    made = [TaskOperand(dtype, row, 8) for dtype, row in zip(dtypes, strides, strict=True)]
    return Task(extents, tuple(made[:-1]), made[-1], "none", body, apart=pairs)


BINARY = (
    ("arith.addf", {"f32": (3, 2), "f16": (3, 4)}),
    ("arith.mulf", {"f32": (3, 2), "f16": (3, 4)}),
    ("arith.divf", {"f32": (10, 2), "f16": (21, 4)}),
    ("arith.maxnumf", {"f32": (3, 2), "f16": (4, 4)}),
)
UNARY = (("math.exp", {"f32": (6, 2), "f16": (4, 4)}), ("math.log", {"f32": (12, 2), "f16": (4, 4)}),
         ("math.tanh", {"f32": (12, 2), "f16": (4, 4)}), ("math.sqrt", {"f32": (10, 2), "f16": (23, 4)}),
         ("math.rsqrt", {"f32": (8, 2), "f16": (19, 4)}), ("math.erf", {"f32": (41, 1), "f16": (13, 1)}),
         ("math.absf", {"f32": (5, 1), "f16": (5, 1)}))  # fmt: skip
SIZES = (96, 1024, 4096)


def cases() -> tuple[Case, ...]:
    """Return operations on one and two arrays, with numbers per row and column, casts, copies, model epilogues."""
    result: list[Case] = []
    for dtype in ("f16", "f32"):
        for opcode, formula in BINARY:
            for n in SIZES if opcode == "arith.addf" else SIZES[1:2]:
                task = elementwise(opcode, (n,), [dtype] * 3, [(1,)] * 3)
                name = f"{opcode[6:]} of {n} {dtype}"
                result.append(Case(name, task, binary(n, dtype, *formula[dtype]), accesses(n, [dtype] * 3)))
        task = elementwise("arith.addf", (4096,), [dtype] * 3, [(1,)] * 3, apart=True)
        result.append(Case(f"addf of 4096 {dtype} apart", task, binary(4096, dtype, 3, PER_ACCESS[dtype]),
                           accesses(4096, [dtype])))  # fmt: skip
        for opcode, formula in UNARY:
            task = elementwise(opcode, (1024,), [dtype] * 2, [(1,)] * 2)
            start = 33 if opcode == "math.exp" else 17
            result.append(Case(f"{opcode[5:]} of 1024 {dtype}", task, unary(1024, *formula[dtype], start),
                               accesses(1024, [dtype] * 2)))  # fmt: skip
        result += _broadcasts(dtype)
        copied = Task((4096,), (TaskOperand(dtype, (1,)),), TaskOperand(dtype, (1,)), "none", identity())
        result.append(Case(f"copy of 4096 {dtype}", copied, None, accesses(4096, [dtype] * 2)))
    for source, target, opcode in (("f16", "f32", "arith.extf"), ("f32", "f16", "arith.truncf")):
        for is_apart in (False, True):
            task = elementwise(opcode, (4096,), [source, target], [(1,)] * 2, apart=is_apart)
            least = accesses(4096, ["f32"] if is_apart else [source, target])
            result.append(
                Case(f"{opcode[6:]} of 4096{' apart' if is_apart else ''}", task, cast(4096), least)
            )
    return (*result, *_epilogues())


def _broadcasts(dtype: str) -> list[Case]:
    """Return operations with one number, one per row, one per column."""
    result: list[Case] = []
    v = PER_ACCESS[dtype]
    scaled = elementwise("arith.mulf", (1024,), [dtype] * 2, [(1,)] * 2, numbers=(0.3,))
    formula = SUPERVISOR + WORKERS * (20 + -(-share(1024) // v) * 2)
    result.append(Case(f"1024 {dtype} times a number", scaled, formula, accesses(1024, [dtype] * 2)))
    for rows, columns in ((12, 64), (64, 128), (6, 768)):
        n = rows * columns
        per_row = elementwise(
            "arith.mulf", (rows, columns), [dtype] * 3, [(columns, 1), (1, 0), (columns, 1)]
        )
        least = accesses(n, [dtype] * 2)
        result.append(
            Case(
                f"{rows} x {columns} {dtype} times a number per row",
                per_row,
                by_rows(rows, columns, dtype),
                least,
            )
        )
        bias = elementwise("arith.addf", (rows, columns), [dtype] * 3, [(columns, 1), (0, 1), (columns, 1)])
        result.append(Case(f"{rows} x {columns} {dtype} plus a row", bias, per_column(rows, columns, dtype),
                           accesses(n, [dtype] * 3)))  # fmt: skip
    return result


def _epilogues() -> list[Case]:
    """Return what models have after products: bias, GELU and the steps of softmax and layer norm, f32 to f16."""
    op = ScalarOp
    gelu = ScalarFunction(2, (
        op("arith.truncf", (0,), "f16"), op("arith.addf", (2, 1), "f16"), op("const", (), "f16", "1.4140625"),
        op("arith.divf", (3, 4), "f16"), op("math.erf", (5,), "f16"), op("const", (), "f16", "1.0"),
        op("arith.addf", (6, 7), "f16"), op("const", (), "f16", "0.5"), op("arith.mulf", (8, 9), "f16"),
        op("arith.mulf", (3, 10), "f16")), 11)  # fmt: skip
    softmax = ScalarFunction(3, (
        op("arith.extf", (0,), "f32"), op("arith.subf", (3, 1), "f32"), op("math.exp", (4,), "f32"),
        op("arith.divf", (5, 2), "f32"), op("arith.truncf", (6,), "f16")), 7)  # fmt: skip
    norm = ScalarFunction(5, (
        op("arith.extf", (0,), "f32"), op("arith.subf", (5, 1), "f32"), op("arith.mulf", (6, 2), "f32"),
        op("arith.truncf", (7,), "f16"), op("arith.mulf", (8, 3), "f16"), op("arith.addf", (9, 4), "f16"),
    ), 10)  # fmt: skip
    rows, columns = 24, 128
    n = rows * columns
    dense, once, down = (columns, 1), (0, 1), (1, 0)

    def case(
        name: str, body: ScalarFunction, dtypes: Sequence[str], strides: Sequence[Strides], formula: float
    ) -> Case:
        operands = tuple(TaskOperand(d, s) for d, s in zip(dtypes, strides, strict=True))
        task = Task((rows, columns), operands, TaskOperand("f16", dense), "none", body)
        dense_types = [d for d, s in zip(dtypes, strides, strict=True) if s[1]]
        return Case(f"{name}, {rows} x {columns}", task, formula, accesses(n, [*dense_types, "f16"]))

    return [
        case("cast, bias and GELU", gelu, ("f32", "f16"), (dense, once),
             cast(n) + per_column(rows, columns, "f16") + unary(n, 16, 1)),
        case("exponentials over their sums", softmax, ("f16", "f32", "f32"), (dense, down, down),
             by_rows(rows, columns, "f16") + cast(n) + unary(n, 6, 2, 33) + by_rows(rows, columns, "f32") + cast(n)),
        case("layer norm", norm, ("f16", "f32", "f32", "f16", "f16"), (dense, down, down, once, once),
             2 * by_rows(rows, columns, "f16") + 2 * per_column(rows, columns, "f16")),
    ]  # fmt: skip
