"""The plan of an operator, in small numbers from which the page finds who holds what at any step."""

from __future__ import annotations

from typing import Any

from t10.core import geometry
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.plan import OperatorPlan


def rotation_record(spec: OperatorSpec, plan: OperatorPlan) -> dict[str, Any]:
    """Return a plan as JSON values; fields as in `OperatorPlan`, tensors are the rotatable operands."""
    tensors = [
        {
            "name": operand.name,
            "axes": sorted(operand.axes),
            "partition": list(geometry.partition_shape(operand, geometry.window_lengths(plan, slot))),
            "itemBytes": size_bytes(spec.acc_dtype if slot == len(spec.inputs) else operand.dtype),
            "ft": list(plan.ft[slot]),
        }
        for slot, operand in enumerate(spec.rotatable)
    ]
    return {
        "axes": [axis.name for axis in spec.axes],
        "extents": [axis.extent for axis in spec.axes],
        "fOp": list(plan.f_op),
        "lengths": list(plan.lengths),
        "rp": list(plan.rp),
        "steps": list(plan.steps),
        "loopOrder": list(plan.loop_order),
        "coreOrder": list(plan.core_order),
        "phases": [
            [[list(term.sharer_axes), term.divisor, term.modulus, term.stride] for term in terms]
            for terms in plan.phases
        ],
        "reduce": plan.reduce,
        "tensors": tensors,
    }
