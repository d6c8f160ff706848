"""Cycles of compute steps by the constants published with T10 (see `data/t10-paper.yaml`; formulas in the docs).

A step reads operands and writes its result in 64-bit accesses, one per cycle; one arithmetic operation on as many
elements issues beside each. Published elementwise costs are exactly those accesses, so arithmetic takes time only
where there is more of it than accesses.
"""

from __future__ import annotations

from functools import lru_cache, reduce
from itertools import pairwise

import numpy as np

from t10.core.arrays import Bools, Ints
from t10.core.dtypes import is_float, size_bytes
from t10.core.expression import OperatorSpec
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.cost.matrix import MatrixAxes
from t10.cost.paper_constants import PaperConstants

CASTS = frozenset({"arith.extf", "arith.truncf", "arith.fpext"})
FREE = frozenset({"const", "arith.bitcast"})
PLAIN_MATH = frozenset({"math.absf", "math.absi", "math.copysign", "math.fma"})
COMPARISONS = frozenset({"arith.cmpf", "arith.cmpi"})
NOTHING = frozenset[int]()
MOST_OUTPUTS = 1 << 32
"""Reductions of more outputs are not padded any more."""


def ceil_div(a: Ints, b: int) -> Ints:
    """Return a / b rounded up."""
    return -(-a // b)


def chosen_of(condition: Bools, a: Ints, b: Ints) -> Ints:
    """Return `a` where the condition holds, else `b`."""
    return np.where(condition, a, b)


def streamed(constants: PaperConstants, n_elements: Ints, access_bytes: int) -> Ints:
    """Return the cycles of `access_bytes` of accesses per element."""
    return ceil_div(n_elements * access_bytes, constants.bytes_per_access_cycle)


def start_cycles(constants: PaperConstants, n_operands: int) -> int:
    """Return the fixed cycles of a step that reads so many operands."""
    return constants.start_cycles + constants.operand_cycles * max(n_operands, 1)


# --- arithmetic of functions ---------------------------------------------------------------------------------------


def value_dtypes(function: ScalarFunction, inputs: tuple[str, ...]) -> tuple[str, ...]:
    """Return the element type of every value of a function."""
    return (*inputs, *(op.dtype for op in function.ops))


@lru_cache(maxsize=4096)
def arithmetic_bytes(
    function: ScalarFunction, inputs: tuple[str, ...], free: frozenset[int], plain_slots: int
) -> int:
    """Return the issue slots of a function on one element, as bytes of accesses that they could hide behind.

    Operations number `free` are not counted, nor a comparison of the two values that a choice is between: the two are
    one maximum or minimum.
    """
    dtypes = value_dtypes(function, inputs)
    skipped = free | _compared_only(function)
    total = 0
    for number, op in enumerate(function.ops):
        if number not in skipped and op.opcode not in FREE:
            widest = max(size_bytes(dtypes[v]) for v in (*op.operands, function.n_inputs + number))
            total += widest * _slots(op, plain_slots)
    return total


def _slots(op: ScalarOp, plain_slots: int) -> int:
    dialect, _, name = op.opcode.partition(".")
    is_function = dialect == "math" and op.opcode not in PLAIN_MATH
    if is_function or name.startswith(("div", "rem", "ceildiv", "floordiv")):
        return len(op.operands) + 1
    return plain_slots


def _compared_only(function: ScalarFunction) -> frozenset[int]:
    """Return the comparisons that serve nothing but a choice between what they compare."""
    n_inputs = function.n_inputs
    users: dict[int, list[ScalarOp]] = {}
    for op in function.ops:
        for value in op.operands:
            users.setdefault(value, []).append(op)
    return frozenset(
        number
        for number, op in enumerate(function.ops)
        if op.opcode in COMPARISONS
        and all(
            user.opcode == "arith.select"
            and user.operands[0] == n_inputs + number
            and set(user.operands[1:]) == set(op.operands)
            for user in users.get(n_inputs + number, ())
        )
    )


def widening(spec: OperatorSpec) -> frozenset[int]:
    """Return the body's last operation where it only widens to the accumulator: the published sums do that as well."""
    last = len(spec.body.ops) - 1
    is_last = last >= 0 and spec.body.result == spec.body.n_inputs + last
    is_cast = is_last and spec.combine != "none" and spec.body.ops[last].opcode in CASTS
    return frozenset({last} if is_cast else ())


def narrowing(spec: OperatorSpec) -> frozenset[int]:
    """Return the epilogue's narrowing of the accumulator: published products and sums of f16 end in f16."""
    ops = spec.epilogue.ops if spec.epilogue is not None else ()
    return frozenset(number for number, op in enumerate(ops) if op.opcode in CASTS and op.operands == (0,))


# --- compute steps -------------------------------------------------------------------------------------------------


def elementwise_cycles(constants: PaperConstants, spec: OperatorSpec, boxes: Ints) -> Ints:
    """Return the cycles of boxes of an operator that combines nothing."""
    dtypes = tuple(operand.dtype for operand in spec.inputs)
    accesses = sum(size_bytes(dtype) for dtype in (*dtypes, spec.acc_dtype))
    arithmetic = arithmetic_bytes(spec.body, dtypes, NOTHING, constants.plain_slots)
    return start_cycles(constants, len(spec.inputs)) + streamed(
        constants, boxes.prod(axis=1), max(accesses, arithmetic)
    )


def reduction_cycles(constants: PaperConstants, spec: OperatorSpec, boxes: Ints) -> Ints:
    """Return the cycles of boxes of an operator that combines, without the matrix engine."""
    dtypes = tuple(operand.dtype for operand in spec.inputs)
    loads = sum(size_bytes(dtype) for dtype in dtypes)
    combined = constants.plain_slots * min(size_bytes(dtype) for dtype in (*dtypes, spec.acc_dtype))
    arithmetic = arithmetic_bytes(spec.body, dtypes, widening(spec), constants.plain_slots) + combined
    reduced = boxes[:, list(spec.reduction_axes)].prod(axis=1)
    outputs = padded_outputs(constants, boxes.prod(axis=1) // np.maximum(reduced, 1))
    extra = constants.operand_cycles * (len(spec.inputs) - 1)
    return constants.reduction_cycles + extra + streamed(constants, outputs * reduced, max(loads, arithmetic))


def padded_outputs(constants: PaperConstants, n_outputs: Ints) -> Ints:
    """Return the number of outputs that a reduction computes for so many."""
    sizes = list(constants.reduction_outputs)
    while sizes[-1] < MOST_OUTPUTS:
        sizes.append(2 * sizes[-1])
    padded = np.full_like(n_outputs, sizes[0])
    for size, following in pairwise(sizes):
        padded = padded + (following - size) * (n_outputs > size)
    return np.maximum(padded, n_outputs)


def product_cycles(constants: PaperConstants, spec: OperatorSpec, axes: MatrixAxes, boxes: Ints) -> Ints:
    """Return the cycles of boxes of a matrix product of two f16 or f32 operands.

    The longer of rows and columns is streamed, unless both fit a block.
    """
    groups, rows, columns, inner = (
        boxes[:, list(chosen)].prod(axis=1) for chosen in (axes.groups, axes.rows, axes.columns, axes.inner)
    )
    longer, shorter = np.maximum(rows, columns), np.minimum(rows, columns)
    is_long = longer > constants.product_streamed_above
    moving = chosen_of(is_long, longer, shorter)
    resident = chosen_of(is_long, shorter, longer)
    factor = _f32_factor(constants, spec)
    weight_cycles = constants.product_weight_cycles * (1 if factor == 1 else 2)
    n_columns = ceil_div(resident, constants.product_block)
    n_inner = ceil_div(inner, constants.product_block)
    row_cycles = factor * constants.product_block_cycles * ceil_div(moving, constants.product_rows)
    per_column = constants.product_column_cycles + n_inner * (weight_cycles + row_cycles)
    return groups * (constants.product_cycles + n_columns * per_column)


def convolution_cycles(constants: PaperConstants, spec: OperatorSpec, axes: MatrixAxes, boxes: Ints) -> Ints:
    """Return the cycles of boxes of a convolution; without window positions it is a product, if that is faster."""
    block = constants.product_block
    n_points = boxes[:, [*axes.groups, *axes.rows, *axes.positions]].prod(axis=1)
    inner, columns = (ceil_div(boxes[:, list(a)].prod(axis=1), block) for a in (axes.inner, axes.columns))
    macs = n_points * inner * columns * (block * block * _f32_factor(constants, spec))
    cycles = constants.convolution_cycles + ceil_div(macs, constants.macs_per_convolution_cycle)
    if not axes.inner:  # a channel of its own each (depthwise): nothing for the matrix engine to sum
        return np.minimum(cycles, reduction_cycles(constants, spec, boxes))
    if any(spec.axes[axis].extent > 1 for axis in axes.positions):
        return cycles
    return np.minimum(cycles, product_cycles(constants, spec, axes, boxes))


def pooling_cycles(constants: PaperConstants, spec: OperatorSpec, boxes: Ints) -> Ints:
    """Return the cycles of boxes of a pooling operator: linear in the points of all windows."""
    widths = max(1, size_bytes(spec.inputs[0].dtype) // size_bytes("f16"))
    millicycles = constants.pooling_millicycles_per_point * widths * boxes.prod(axis=1)
    return constants.pooling_cycles + ceil_div(millicycles, 1000)


def gather_cycles(constants: PaperConstants, spec: OperatorSpec, boxes: Ints) -> Ints:
    """Return the cycles of boxes of a gather: every index is read, every slice it finds here is copied.

    Indices are taken to be spread evenly over the selected axis.
    """
    selected = [selector.axis for selector in spec.selectors]
    others = [axis for axis in range(len(spec.axes)) if axis not in selected]
    lookups = [operand for operand in spec.inputs if not operand.axes & set(selected)]
    index_axes = sorted(frozenset[int]().union(*(operand.axes for operand in lookups)))
    n_indices = boxes[:, index_axes].prod(axis=1)
    slice_points = boxes[:, others].prod(axis=1) // np.maximum(n_indices, 1)
    n_selected = reduce(lambda n, axis: n * spec.axes[axis].extent, selected, 1)
    hits = ceil_div(n_indices * boxes[:, selected].prod(axis=1), n_selected)
    hits = np.minimum(np.maximum(hits, 1), n_indices)
    index_bytes = sum(size_bytes(operand.dtype) for operand in lookups)
    copied = streamed(constants, hits * slice_points, 2 * size_bytes(spec.acc_dtype))
    return constants.gather_cycles + streamed(constants, n_indices, index_bytes) + copied


def _f32_factor(constants: PaperConstants, spec: OperatorSpec) -> int:
    return 1 if spec.inputs[0].dtype == "f16" else constants.product_f32_factor


def uses_engine(spec: OperatorSpec) -> bool:
    """Return whether both operands are of one type that the matrix engine multiplies."""
    dtypes = {operand.dtype for operand in spec.inputs}
    return len(dtypes) == 1 and dtypes <= {"f16", "f32"} and is_float(spec.acc_dtype)


# --- epilogues -----------------------------------------------------------------------------------------------------


def epilogue_cycles(
    constants: PaperConstants, spec: OperatorSpec, n_slots: Ints, *, hides_arithmetic: bool
) -> Ints:
    """Return the cycles of the epilogue on `n_slots` elements per core, as part of the loop that stores the result.

    The accumulator comes from the engine or the last addition, and its store is paid there. What is new are the loads
    of further operands, and arithmetic beyond what issues beside these loads and the store.
    """
    if spec.epilogue is None:
        return np.zeros_like(n_slots)
    extra = tuple(operand.dtype for operand in spec.epilogue_inputs)
    loads = sum(size_bytes(dtype) for dtype in extra)
    arithmetic = arithmetic_bytes(
        spec.epilogue, (spec.acc_dtype, *extra), narrowing(spec), constants.plain_slots
    )
    hidden = loads + size_bytes(spec.output.dtype) if hides_arithmetic else 0
    per_element = loads + max(0, arithmetic - hidden)
    return constants.operand_cycles * len(extra) + streamed(constants, n_slots, per_element)
