"""Sums of products: which operators are, and along which axes padding with zeros does what leaving it out would."""

from __future__ import annotations

from t10.core.expression import OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.scalar import ScalarFunction

CASTS = frozenset({"arith.extf", "arith.truncf"})


def is_product(body: ScalarFunction) -> bool:
    """Return whether a body is the product of its two inputs, casts between float types aside."""
    values: list[frozenset[int]] = [frozenset((i,)) for i in range(body.n_inputs)]
    n_products = 0
    for op in body.ops:
        if op.opcode == "arith.mulf":
            n_products += 1
        elif op.opcode not in CASTS:
            return False
        values.append(frozenset(v for i in op.operands for v in values[i]))
    return body.n_inputs == 2 and n_products == 1 and values[body.result] == frozenset((0, 1))


def zero_padded_axes(spec: OperatorSpec, plan: OperatorPlan) -> frozenset[int]:
    """Return the summed axes of a product that a plan pads, where zeros in the padding add nothing.

    Both inputs must walk the axis by itself. Code then runs over whole parts, which end at whole words.
    """
    return frozenset(
        axis
        for axis in zero_addable_axes(spec)
        if plan.f_op[axis] * plan.lengths[axis] > spec.axes[axis].extent
    )


def zero_addable_axes(spec: OperatorSpec) -> frozenset[int]:
    """Return the summed axes of a product along which zeros may follow both inputs: they add nothing."""
    if spec.combine != "sum" or spec.selectors or not is_product(spec.body):
        return frozenset()
    if any(operand.pad_value not in ("", "0", "0.0") for operand in spec.inputs):
        return frozenset()
    return frozenset(
        axis for axis in spec.reduction_axes if all(axis in operand.simple_axes for operand in spec.inputs)
    )
