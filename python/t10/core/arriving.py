"""What of an operand arrives: all of its partition, or what the epilogue reads after a reduce-scatter.

Of several cores that have sums of one window of the result, the one of rank k ends with chunk k, and its epilogue reads
of its inputs only what belongs to that. An input that has an element for every one of the result's is not copied whole
to each of these cores: a core receives, at the places that they have in its partition, the elements that it reads. The
other slots hold nothing.
"""

from __future__ import annotations

from itertools import starmap

import numpy as np

from t10.core import geometry
from t10.core.arrays import Ints
from t10.core.chunks import Box, chunk_boxes, window_chunk
from t10.core.expression import Operand, OperatorSpec
from t10.core.movement import is_padded, operand_elements, operand_of, operand_parts
from t10.core.plan import OperatorPlan


def is_read_in_chunks(spec: OperatorSpec, plan: OperatorPlan, number: int) -> bool:
    """Return whether every core reads no more of operand `number` than belongs to its chunk of the result.

    Where the result rotates, or the operand has fewer elements than it or padding, all of its partition is copied.
    """
    slot = len(spec.inputs)
    if (
        not slot <= number < len(spec.operands)
        or plan.reduce != "scatter"
        or any(t > 1 for t in plan.ft[slot])
    ):
        return False
    operand = operand_of(spec, number)
    own = [dim.terms[0].axis for dim in operand.dims if dim.terms]
    return (
        all(dim.is_simple for dim in operand.dims if dim.terms)
        and len(own) == len(set(own))
        and {axis for axis in spec.output.axes if spec.axes[axis].extent > 1} <= set(own)
        and not is_padded(spec, operand, plan)
    )


def arriving_boxes(spec: OperatorSpec, plan: OperatorPlan, number: int) -> list[list[Box]]:
    """Return, per rank among the cores of one window, the slots of operand `number` that are copied, as boxes per dim.

    Empty where all of the partition is.
    """
    if not is_read_in_chunks(spec, plan, number):
        return []
    operand, slot = operand_of(spec, number), len(spec.inputs)
    shape = geometry.partition_shape(spec.output, plan.lengths)
    n_members, n_slots = geometry.n_replicas(spec, plan, slot), int(np.prod(shape, dtype=np.int64))
    chunk = window_chunk(n_slots, n_members)
    return [
        [
            _seen(spec.output, operand, box)
            for box in chunk_boxes(shape, rank * chunk, min(chunk, n_slots - rank * chunk))
        ]
        for rank in range(n_members)
    ]


def _seen(output: Operand, operand: Operand, box: Box) -> Box:
    """Return a box of the result's slots as one of an operand's."""
    where = {
        dim.terms[0].axis: (first, size)
        for dim, first, size in zip(output.dims, *box, strict=True)
        if dim.terms
    }
    pairs = [where.get(dim.terms[0].axis, (0, 1)) if dim.terms else (0, 1) for dim in operand.dims]
    return tuple(first for first, _ in pairs), tuple(size for _, size in pairs)


def arriving_elements(
    spec: OperatorSpec, plan: OperatorPlan, number: int
) -> np.ndarray[tuple[int, int], np.dtype[np.int32]]:
    """Return the element that arrives in every slot of an operand's partition, (cores, slots); -1 where none does."""
    elements = operand_elements(spec, plan, number)
    boxes = arriving_boxes(spec, plan, number)
    if not boxes:
        return elements.reshape(plan.n_cores, -1)
    is_read = np.zeros((len(boxes), *elements.shape[1:]), np.bool_)
    for rank, own in enumerate(boxes):
        for first, size in own:
            is_read[(rank, *starmap(slice, ((f, f + n) for f, n in zip(first, size, strict=True))))] = True
    ranks: Ints = geometry.replica_ranks(spec.output, plan, len(spec.inputs))
    return np.where(is_read[ranks], elements, np.int32(-1)).reshape(plan.n_cores, -1)


def arriving_parts(spec: OperatorSpec, plan: OperatorPlan, number: int) -> tuple[Ints, ...]:
    """Return the same dim by dim, as `geometry.element_parts`; in one where that is not a sum over dims."""
    if not is_read_in_chunks(spec, plan, number):
        return operand_parts(spec, plan, number)
    return (arriving_elements(spec, plan, number).astype(np.int64),)
