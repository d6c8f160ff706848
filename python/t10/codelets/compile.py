"""From a task to code: the first family that can compute it."""

from __future__ import annotations

from functools import lru_cache

from t10.codelets.family import CodeletFamily
from t10.codelets.loops.family import LoopFamily
from t10.codelets.matrix.family import MatrixFamily
from t10.core.codelet import Compiled
from t10.core.task import Task
from t10.errors import UnsupportedOpError

COMPILED_TASKS = 65536


def families() -> tuple[CodeletFamily, ...]:
    """Return all families, the best for what it can do first."""
    return (MatrixFamily(), LoopFamily())


@lru_cache(maxsize=COMPILED_TASKS)
def compile_task(task: Task) -> Compiled:
    """Return a task as code; raises `UnsupportedOpError` where no family can compute it."""
    for family in families():
        compiled = family.compile(task)
        if compiled is not None:
            return compiled
    types = ", ".join(operand.dtype for operand in task.operands)
    opcodes = ", ".join(sorted({op.opcode for op in task.body.ops})) or "a copy"
    raise UnsupportedOpError(
        f"no codelet computes {opcodes} on {types} with strides {[o.strides for o in task.operands]}"
    )
