"""Maps: elementwise tasks and epilogues as functions at every point, and their tasks over boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from t10.codelets.nest import copied_as_words
from t10.core.dtypes import size_bytes
from t10.core.expression import AxisSizes, Combine, Operand, OperatorSpec
from t10.core.scalar import ScalarFunction, identity
from t10.core.task import Task, TaskOperand
from t10.core.task_nest import axis_strides
from t10.core.tile import WIDE_BYTES
from t10.cost.bound.walks import axis_order, chains_of
from t10.cost.work import apart

QUAD, PAIR = 4, 2
NO_AXIS = [-1]
"""The axes of a map at a single point."""
ROW_POINTS, OUTER_POINTS = 48, 12
"""Extents of the boxes that the generator is asked about: rows of whole vectors at multiples of 16 bytes."""


@dataclass(frozen=True, slots=True)
class Map:
    """A function of some operands at every point of axes of such extents, the last one the output.

    Operands have no names, and extents are 1 or 2, for more: code depends on nothing else of them.
    What it gives replaces what the output holds, or is combined with it. `is_in_place`: the output is the first input.
    `accessed`: the pairs of operands that one instruction may access, all that lie apart where None.
    """

    function: ScalarFunction
    operands: tuple[Operand, ...]
    extents: AxisSizes
    combine: Combine = "none"
    is_in_place: bool = False
    accessed: frozenset[tuple[int, int]] | None = None

    @classmethod
    def of_sub_task(cls, spec: OperatorSpec) -> Map:
        """Return what sub-tasks of one point per output compute."""
        return cls.of(spec.body, (*spec.inputs, replace(spec.output, dtype=spec.acc_dtype)), spec.extents)

    @classmethod
    def of_epilogue(cls, spec: OperatorSpec) -> Map:
        """Return what an epilogue computes, a copy where there is none."""
        accumulator = replace(spec.output, dtype=spec.acc_dtype)
        operands = (accumulator, *spec.epilogue_inputs, spec.output)
        return cls.of(spec.epilogue or identity(), operands, spec.extents)

    @classmethod
    def of(
        cls,
        function: ScalarFunction,
        operands: Sequence[Operand],
        extents: AxisSizes,
        combine: Combine = "none",
    ) -> Map:
        """Return a map that is the same for operators which differ in names and sizes only."""
        nameless = tuple(
            [Operand("", "activation", each.dtype, (1,) * len(each.shape), each.dims) for each in operands]
        )
        return cls(function, nameless, tuple([min(extent, 2) for extent in extents]), combine)

    @property
    def chains(self) -> list[list[int]]:
        """Return the axes of more than one point in chains that all operands walk evenly, outermost first."""
        order = [axis for axis in axis_order(self.operands[-1]) if self.extents[axis] > 1]
        return chains_of(order, self.operands) or [NO_AXIS]

    def within(self, axis: int) -> Map:
        """Return the same of boxes of one point along an axis."""
        extents = tuple(1 if a == axis else n for a, n in enumerate(self.extents))
        return replace(self, extents=extents)

    @property
    def out_bytes(self) -> int:
        """Return the bytes of an element of the output."""
        return size_bytes(self.operands[-1].dtype)

    @property
    def lanes(self) -> int:
        """Return the points of a turn where several are computed at once."""
        return QUAD if any(size_bytes(operand.dtype) < QUAD for operand in self.operands) else PAIR

    @property
    def is_simple(self) -> bool:
        """Return whether operands are indexed by single axes: then rows lie in all of them as in the output."""
        return all(dim.is_simple or not dim.terms for operand in self.operands for dim in operand.dims)

    def may_stride(self, axis: int) -> bool:
        """Return whether an operand may have other elements between neighbours along an axis."""
        last = [[dim for dim in o.dims if dim.terms][-1] for o in self.operands if axis in o.axes]
        return any(not dim.is_simple or axis not in dim.axes for dim in last)


def box_of(
    one: Map, axis: int, left: int = 0, outer: AxisSizes = (), n_outer: int = OUTER_POINTS
) -> AxisSizes:
    """Return a box of a row, `left` points longer than whole vectors, within loops of `n_outer` over `outer`."""
    return tuple(
        ROW_POINTS + left if a == axis else n_outer if a in outer else 1 for a in range(len(one.extents))
    )


def task_of(one: Map, box: AxisSizes, *, is_wide: bool = False, apart_operand: int | None = None) -> Task:
    """Return the task of a map over a box, its operands in windows as large or twice as large.

    The elements of `apart_operand` are no neighbours, as in a window that is longer along an inner axis.
    """
    window = tuple(2 * n for n in box) if is_wide else box
    operands = tuple(
        TaskOperand(
            each.dtype,
            tuple((1 + (number == apart_operand)) * stride for stride in axis_strides(each, window)),
            WIDE_BYTES,
            is_interleaved=True,
        )
        for number, each in enumerate(one.operands)
    )
    inputs, output = operands[:-1], operands[-1]
    is_new = one.combine == "none"
    task = apart(Task(box, inputs, output, one.combine, one.function, initial=is_new, origin=(0,) * len(box)))
    if one.accessed is not None:
        task = replace(task, apart=one.accessed)
    if one.is_in_place:
        task = replace(task, apart=task.apart - {(0, len(inputs))})
    return copied_as_words(task)
