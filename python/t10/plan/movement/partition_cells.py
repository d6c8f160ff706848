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
