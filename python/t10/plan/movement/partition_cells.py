"""How operands and layouts lie, in the native form that `t10.plan.movement._moves` counts with.

Cells say which indices every core holds and in which slots, in runs; the same closed forms as `core.geometry`, whose
arrays over all slots they replace.
"""

from __future__ import annotations

from collections.abc import Sequence

from t10.core import geometry
from t10.core.chunks import Box, chunk_slots
from t10.core.expression import OperatorSpec
from t10.core.movement import operand_of
from t10.core.plan import OperatorPlan, final_positions
from t10.plan.movement._moves import PartitionCells


def operand_cells(
    spec: OperatorSpec, plan: OperatorPlan, number: int, chunks: Sequence[Sequence[Box]] = ()
) -> PartitionCells:
    """Return how operand `number` lies: inputs before the first step, epilogue inputs and output after the last.

    With `chunks`, what of that arrives (`core.arriving`).
    """
    operand = operand_of(spec, number)
    n_inputs = len(spec.inputs)
    slot = min(number, n_inputs)
    positions = (0,) * len(plan.f_op) if number < n_inputs else final_positions(plan)
    return PartitionCells(
        dims=[
            (extent, dim.offset, [(term.axis, term.coefficient) for term in dim.terms])
            for dim, extent in zip(operand.dims, operand.shape, strict=True)
        ],
        f_op=plan.f_op,
        lengths=plan.lengths,
        windows=geometry.window_lengths(plan, slot),
        core_order=plan.core_order,
        phases=[
            [
                (
                    term.sharer_axes,
                    term.divisor,
                    -term.modulus if term.is_folded else term.modulus,
                    term.stride,
                )
                for term in terms
            ]
            for terms in plan.phases
        ],
        shift=[position * rp for position, rp in zip(positions, plan.rp, strict=True)],
        rotates=[t > 1 for t in plan.ft[slot]],
        chunks=chunks,
    )


def lying_alike(spec: OperatorSpec, plan: OperatorPlan, number: int) -> object | None:
    """Return what is equal for operands with equal cells, of whatever operators, None for a plan that rotates.

    Axes are numbered as the operand has them, then those that only copies differ in; where a core's number does not
    depend on an axis, its place in the order of cores is nothing to cells.
    """
    if any(plan.phases) or any(t > 1 for row in plan.ft for t in row):
        return None
    operand = operand_of(spec, number)
    own = list(dict.fromkeys(term.axis for dim in operand.dims for term in dim.terms))
    cut = [axis for axis in plan.core_order if plan.f_op[axis] > 1]
    axes = [*own, *(axis for axis in cut if axis not in own)]
    return (
        tuple(
            (extent, dim.offset, tuple((axes.index(term.axis), term.coefficient) for term in dim.terms))
            for dim, extent in zip(operand.dims, operand.shape, strict=True)
            if dim.terms or extent > 1 or dim.offset
        ),
        tuple(plan.f_op[axis] for axis in axes),
        tuple(plan.lengths[axis] for axis in own),
        tuple(axes.index(axis) for axis in cut),
    )


def linear_cells(n_elements: int, n_cores: int) -> PartitionCells:
    """Return how `n_elements` lie that are spread evenly over `n_cores` cores: a chunk each, in order."""
    chunk = chunk_slots(n_elements, n_cores)
    return PartitionCells(
        dims=[(n_elements, 0, [(0, 1)])],
        f_op=(-(-n_elements // chunk),),
        lengths=(chunk,),
        windows=(chunk,),
        core_order=(0,),
        phases=[[]],
        shift=(0,),
        rotates=(False,),
    )
