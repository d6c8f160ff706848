"""Look-ups beside poplibs' multi-slice and multi-update (timing reference §5.4); every index is in range."""

from __future__ import annotations

from codelet_cases.case import Case
from t10.core.expression import Selector
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.core.task import Task, TaskOperand

WORKERS = 6


def cases() -> tuple[Case, ...]:
    """Return look-ups of rows, copied and added, with operands apart and not."""
    result: list[Case] = []
    index = ScalarFunction(2, (ScalarOp("arith.index_cast", (0,), "index"),), 2)
    for dtype, per_vector in (("f16", 4), ("f32", 2)):
        for rows, width in ((12, 64), (48, 128), (128, 32)):
            for initial, is_apart in ((True, False), (True, True), (False, False)):
                inputs = (TaskOperand("i32", (1, 0, 0), 8), TaskOperand(dtype, (0, width, 1), 8))
                output = TaskOperand(dtype, (width, 0, 1), 8)
                apart = frozenset({(1, 2)}) if is_apart else frozenset[tuple[int, int]]()
                task = Task((rows, 200, width), inputs, output, "sum", ScalarFunction(2, (), 1), (1,), initial,
                            (Selector(1, index),), (0, -100, 0), apart)  # fmt: skip
                per_worker, vectors = -(-rows // WORKERS), width / per_vector
                copied, added = 30 + per_worker * (19 + 2 * vectors), 33 + per_worker * (12 + 3 * vectors)
                verb = "copied" if initial else "added"
                name = f"{rows} rows of {width} {dtype} {verb}{', apart' if is_apart else ''}"
                result.append(Case(name, task, WORKERS * (copied if initial else added)))
    return tuple(result)
