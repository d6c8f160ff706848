"""Reductions that pick what they combine by the place along a short axis: one after another over the same input.

```
out[i, 0] = combine of x[i, :]               partial[j, i, c] = combine of piece c, a body for each j
out[i, 1] = combine of x[i, :] * x[i, :]     out[i, j] = combine of partial[j, i, :]
```

Each place has a code without the test. Workers do their shares of all of them in one launch: whole rows, or
pieces whose results are combined in a second launch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from t10.codelets.body.picks import picked, picking_axes
from t10.codelets.nest import indexed_axes
from t10.codelets.reduce.pieces import SplitReduction, cuts
from t10.codelets.reduce.shape import least_slots
from t10.core.dtypes import size_bytes
from t10.core.task import Task, TaskOperand
from t10.core.tile import N_WORKERS

MOST_PLACES = 4
WORD_BYTES, ALIGNED_BYTES = 4, 8


@dataclass(frozen=True, slots=True)
class PickedReduction:
    """`partials` of all places, and `final`, which combines what they leave in `n_bytes` of scratch memory each."""

    partials: tuple[Task, ...]
    final: Task
    n_bytes: int


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


def first_worker(parts: tuple[Task, ...], place: int) -> int:
    """Return the worker with which the part of a place begins: an idle one where there is one for every result."""
    n_results = prod(parts[0].extents[axis] for axis in parts[0].parallel_axes)
    return place * n_results if len(parts) * n_results <= N_WORKERS else 0


def in_pieces(parts: tuple[Task, ...], step: int) -> PickedReduction | None:
    """Return the tasks of all places in pieces that workers share, None where they cannot be cut.

    Results lie `step` elements one behind another.
    """
    best: tuple[int, tuple[SplitReduction, ...]] | None = None
    for splits in zip(*map(cuts, parts), strict=True):
        slots = sum(least_slots(split.partial) for split in splits) + least_slots(splits[0].final)
        if best is None or slots < best[0]:
            best = slots, splits
    if best is None:
        return None
    partials, final = tuple([split.partial for split in best[1]]), best[1][0].final
    n_bytes = -(-best[1][0].n_bytes // ALIGNED_BYTES) * ALIGNED_BYTES
    (bridge,) = final.inputs

    def along(operand: TaskOperand, stride: int) -> TaskOperand:
        return replace(operand, strides=(stride, *operand.strides))

    final = replace(
        final,
        extents=(len(parts), *final.extents),
        inputs=(along(bridge, n_bytes // size_bytes(bridge.dtype)),),
        output=along(final.output, step),
        reduction_axes=tuple([each + 1 for each in final.reduction_axes]),
    )
    return PickedReduction(partials, final, n_bytes)
