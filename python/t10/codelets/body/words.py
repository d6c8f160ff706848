"""Which tasks compute integers of 64 bits exactly with one word per value."""

from __future__ import annotations

from t10.codelets.body.expand import expand
from t10.core.intervals import WIDE_DTYPES, fits_words, index_limit
from t10.core.task import Task


def is_in_words(task: Task) -> bool:
    """Return whether the body of a task is exact on low words, and its result fits in one."""
    if WIDE_DTYPES.isdisjoint(each.dtype for each in (*task.operands, *task.body.ops)):
        return True
    dtypes = tuple(operand.dtype for operand in task.inputs)
    return fits_words(expand(task.body, dtypes), dtypes, index_limit(task.origin, task.extents))
