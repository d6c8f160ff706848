"""Reductions that pick what they combine by the place along a short axis: one after another over the same input.

```
out[i, 0] = combine of x[i, :]               partial[j, i, c] = combine of piece c, a body for each j
out[i, 1] = combine of x[i, :] * x[i, :]     out[i, j] = combine of partial[j, i, :]
```

Each place has a code without the test. Workers do their shares of all of them in one launch: whole rows, or
pieces whose results are combined in a second launch.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from t10.codelets.body.picks import picked, picking_axes
from t10.codelets.nest import indexed_axes
from t10.codelets.reduce.pieces import Pieces, SplitReduction, cuts
from t10.codelets.reduce.shape import least_slots
from t10.core.dtypes import size_bytes
from t10.core.task import Task, TaskOperand
from t10.core.tile import N_WORKERS

MOST_PLACES = 4
WORD_BYTES, ALIGNED_BYTES = 4, 8


def picking_axis(task: Task) -> int | None:
    """Return the axis by whose places a reduction picks, if there is one and it names no other; inputs are the same."""
    found = picking_axes(task.body)
    if len(found) != 1 or task.selectors or task.epilogue is not None or task.first is not None:
        return None
    (axis,) = found
    is_one = set(indexed_axes(task)) == {axis} and axis not in task.reduction_axes
    is_short = task.extents[axis] <= MOST_PLACES and size_bytes(task.output.dtype) == WORD_BYTES
    return axis if is_one and is_short and not any(each.strides[axis] for each in task.inputs) else None


def at_places(task: Task, axis: int) -> tuple[Task, ...]:
    """Return the tasks of all places along an axis; each writes where the first one does."""
    return tuple([_at(task, axis, place) for place in range(task.extents[axis])])


def _at(task: Task, axis: int, place: int) -> Task:
    first = task.origin[axis] if task.origin else 0
    extents = tuple([1 if each == axis else extent for each, extent in enumerate(task.extents)])
    return replace(task, extents=extents, body=picked(task.body, axis, first + place), origin=())


def as_parts(tasks: tuple[Task, ...], n_bytes: int) -> tuple[Pieces, ...]:
    """Return tasks of one nest as parts whose results begin so many bytes one behind another.

    Workers begin with different ones if there is one for every result.
    """
    n_results = prod(tasks[0].extents[axis] for axis in tasks[0].parallel_axes)
    step = n_results if len(tasks) * n_results <= N_WORKERS else 0
    begins = (0,) * len(tasks[0].inputs)
    return tuple([Pieces(task, begins, place * step, place * n_bytes) for place, task in enumerate(tasks)])


def in_pieces(tasks: tuple[Task, ...], step: int) -> SplitReduction | None:
    """Return the tasks of all places in pieces that workers share, None where they cannot be cut.

    Results lie `step` elements one behind another.
    """
    best: tuple[int, tuple[SplitReduction, ...]] | None = None
    for splits in zip(*map(cuts, tasks), strict=True):
        slots = sum(split.slots for split in splits) + least_slots(splits[0].final)
        if best is None or slots < best[0]:
            best = slots, splits
    if best is None:
        return None
    splits = best[1]
    n_bytes = -(-splits[0].n_bytes // ALIGNED_BYTES) * ALIGNED_BYTES
    final = splits[0].final
    (bridge,) = final.inputs

    def along(operand: TaskOperand, stride: int) -> TaskOperand:
        return replace(operand, strides=(stride, *operand.strides))

    final = replace(
        final,
        extents=(len(tasks), *final.extents),
        inputs=(along(bridge, n_bytes // size_bytes(bridge.dtype)),),
        output=along(final.output, step),
        reduction_axes=tuple([each + 1 for each in final.reduction_axes]),
    )
    partials = as_parts(tuple([split.partials[0].task for split in splits]), n_bytes)
    return SplitReduction(partials, final, len(tasks) * n_bytes)
