"""Sums of products: which operators are, and along which axes padding with zeros does what leaving it out would."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from t10.core.arrays import Bools, Ints
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.scalar import ScalarFunction

CASTS = frozenset({"arith.extf", "arith.truncf"})
BLOCK_ELEMENTS = 16
"""Elements of a sum in a block of the matrix engine, of the types that have the longest."""
WORD_BYTES, BLOCK_BYTES = 8, 32
"""Bytes that the matrix engine loads and stores at once, and those of a column in one of its blocks, of all types."""

SUMS_BYTES = 8192
"""The part of the shift buffer in which a sub-task may keep sums in f32 that it rounds in the end."""


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
    return n_products == 1 and values[body.result] == frozenset((0, 1))


def block_axis(spec: OperatorSpec) -> int | None:
    """Return the axis along one block of the matrix engine, where weights are stored block by block; None elsewhere.

    It is the last one of both inputs, one stored so has the columns before it, and the other one the axis over blocks.
    """
    axes = _block_axes(spec)
    return None if axes is None else axes[1]


def _block_axes(spec: OperatorSpec) -> tuple[int, int] | None:
    """Return the axis over blocks of the matrix engine and the one along a block, see `block_axis`."""
    if len(spec.inputs) != 2 or spec.combine != "sum" or spec.selectors or not is_product(spec.body):
        return None
    ends = [[dim.axes for dim in operand.dims[-2:] if dim.is_simple] for operand in spec.inputs]
    if any(len(end) < 2 for end in ends) or ends[0][1] != ends[1][1]:
        return None
    ((over,), (axis,)), ((column,), _) = sorted(ends, key=lambda end: spec.axes[end[0][0]].kind == "parallel")
    n_bytes = spec.axes[axis].extent * size_bytes(spec.inputs[0].dtype)
    is_block = n_bytes == BLOCK_BYTES and spec.axes[axis].kind == "reduction"
    is_cut = spec.axes[over].kind == "reduction" and spec.axes[column].kind == "parallel"
    others = [operand.axes for operand in spec.inputs if column in operand.axes]
    return (over, axis) if is_block and is_cut and len(others) == 1 and over in others[0] else None


def hands_on_rounded(spec: OperatorSpec) -> bool:
    """Return whether a core sums products in f32 in each of its steps, and keeps and hands on what it rounds to f16.

    Its body says so: the product of what both inputs are widened to, rounded to the type of accumulators.
    """
    body = spec.body
    rounding = body.ops[-1] if body.ops and body.result == body.n_inputs + len(body.ops) - 1 else None
    if spec.acc_dtype != "f16" or rounding is None or rounding.opcode != "arith.truncf":
        return False
    is_sum = spec.combine == "sum" and not spec.selectors and len(spec.inputs) == 2
    is_wide = _type_of(spec, rounding.operands[0]) == "f32"
    return is_sum and is_wide and is_product(body) and all(each.dtype == "f16" for each in spec.inputs)


def _type_of(spec: OperatorSpec, value: int) -> str:
    n_inputs = spec.body.n_inputs
    return spec.inputs[value].dtype if value < n_inputs else spec.body.ops[value - n_inputs].dtype


def summed(body: ScalarFunction, n_unread: int = 0) -> ScalarFunction:
    """Return a body without its last rounding, behind whose inputs come so many that it does not read."""
    return with_unread(ScalarFunction(body.n_inputs, body.ops[:-1], body.ops[-1].operands[0]), n_unread)


def with_unread(body: ScalarFunction, n_unread: int) -> ScalarFunction:
    """Return a body behind whose inputs come so many that it does not read."""
    ops = tuple(
        replace(op, operands=tuple(v + n_unread * (v >= body.n_inputs) for v in op.operands))
        for op in body.ops
    )
    return ScalarFunction(
        body.n_inputs + n_unread, ops, body.result + n_unread * (body.result >= body.n_inputs)
    )


def n_nest_operands(spec: OperatorSpec) -> int:
    """Return how many operands a sub-task has: inputs, first partials or sums in the shift buffer, accumulators."""
    return len(spec.rotatable) + (spec.first is not None) + hands_on_rounded(spec)


def zero_padded_axes(spec: OperatorSpec, plan: OperatorPlan) -> frozenset[int]:
    """Return the summed axes of a product that a plan pads with zeros, which add nothing.

    Both inputs must walk the axis by itself. Code then runs over whole parts, which end at whole words. What would end
    with whole blocks of the matrix engine anyway is not padded: the last core has fewer of them, and nothing to fill.
    """
    return frozenset(
        axis
        for axis in zero_addable_axes(spec)
        if plan.f_op[axis] * plan.lengths[axis] > spec.axes[axis].extent
        and not (plan.steps[axis] == 1 and _is_last_short(spec, plan, axis))
    )


def _is_last_short(spec: OperatorSpec, plan: OperatorPlan, axis: int) -> bool:
    """Return whether the last part along an axis, and no other, is shorter, by whole blocks."""
    is_last = (plan.f_op[axis] - 1) * plan.lengths[axis] < spec.axes[axis].extent
    return is_last and bool(end_with_block(spec, np.array(plan.lengths))[axis])


def end_with_block(spec: OperatorSpec, lengths: Ints) -> Bools:
    """Return, for lengths (..., axes) of parts, where the last part ends with a whole block of the matrix engine.

    Along an axis over blocks all do. Sums that are rounded in the end may have other code where they are shorter: there
    the answer is no.
    """
    axes = _block_axes(spec)
    blocks = np.full(len(spec.axes), BLOCK_ELEMENTS)
    if axes is not None:
        blocks[axes[0]] = 1
    return (np.array(spec.extents) % lengths % blocks == 0) & (not hands_on_rounded(spec))


def zero_addable_axes(spec: OperatorSpec) -> frozenset[int]:
    """Return the summed axes of a product along which zeros may follow both inputs: they add nothing."""
    if spec.combine != "sum" or spec.selectors or not is_product(spec.body):
        return frozenset()
    if any(operand.pad_value not in ("", "0", "0.0") for operand in spec.inputs):
        return frozenset()
    return frozenset(
        axis for axis in spec.reduction_axes if all(axis in operand.simple_axes for operand in spec.inputs)
    )


def cut_axes(spec: OperatorSpec, *, has_zeros: bool = True) -> frozenset[int]:
    """Return the axes along which steps end with the tensor, as what lies behind it would change what is computed.

    Results behind it are nobody's, unless indices are looked up there. Zeros add nothing, where there are zeros.
    """
    padded = frozenset[int]() if spec.selectors else spec.output.axes
    zeros = zero_addable_axes(spec) if has_zeros else frozenset[int]()
    return frozenset(range(len(spec.axes))) - padded - zeros
