"""The largest loop nest of an epilogue that does the last additions of a reduction, as a task."""

from __future__ import annotations

from math import prod

from t10.core.dtypes import size_bytes
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.fused_ends import fused_chunks
from t10.core.task import Task
from t10.core.tile import WIDE_BYTES
from t10.core.vertex_nest import Lie, tasks
from t10.errors import UnsupportedOpError

MEMBERS = (2, -2, 3, -4, 8, -16)
"""How many cores have sums of one window: each makes results of a chunk of it, of all of it where negative."""
FIRST_MEMBERS = 4


def members_of(box: AxisSizes, *, is_first: bool) -> int:
    """Return how many cores have the sums of a box, `FIRST_MEMBERS` or one of `MEMBERS`: the same for the same box."""
    return FIRST_MEMBERS if is_first else MEMBERS[sum(box) % len(MEMBERS)]


def fused_task(spec: OperatorSpec, box: AxisSizes, n_members: int) -> Task:
    """Return the task of a box whose sums `n_members` cores have; operands lie as well as they can.

    The shift buffer has room for what all of them send at once, so that one round brings it.
    """
    windows = tuple(n if axis in spec.output.axes else 1 for axis, n in enumerate(box))
    room = (prod(box) * abs(n_members) + WIDE_BYTES) * size_bytes(spec.acc_dtype)
    found = fused_chunks(spec, windows, "all" if n_members < 0 else "scatter", abs(n_members), room)
    if found is None:
        raise UnsupportedOpError(
            "the epilogue does not do the additions of its reduction", operator=spec.name
        )
    made = (tasks(nest, work, Lie.best(len(nest.operands))) for nest, work in found[1])
    return max((task for each in made for _, task in each), key=lambda task: prod(task.extents))
