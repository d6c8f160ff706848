"""Biases as first partials: sums of products that begin with a row of numbers, which then nothing has to add.

The matrix engine begins every sum with partials, zeros where there is nothing else. Where a core has the whole sum and
computes it in one step, it begins with the bias that the epilogue would add first: `begun` is the operator that cores
then compute. Its plan says so (`begins_with_bias`); the operator that is planned stays what it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from t10.core.arrays import Bools, Ints
from t10.core.dtypes import size_bytes
from t10.core.expression import AxisSizes, Operand, OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.products import WORD_BYTES, hands_on_rounded, is_product, with_unread
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.core.task import Task, TaskOperand
from t10.core.task_nest import axis_strides, simplified

LEAST_ROWS, MOST_COLUMNS = 16, 2048
"""Rows from which on the engine takes less time than the vector unit, and columns whose partials have room."""
BLOCK_COLUMNS, BLOCK_TERMS, PAIR = 8, 16, 2
"""Columns and terms of a block of the engine with sums in f32, and the inputs of a product."""
NARROW_COLUMNS, MOST_NARROW_TERMS = 16, 128
"""Columns of a block with sums in f16, and the most terms of a sum that may begin with a bias there.

Each of 8 blocks may lose half a unit of a bias that is larger than all else: 8 x 2^-11 of it, below any tolerance for
f16 (`t10.tolerances`).
"""
KEPT_OPERATORS = 4096
Counts = Any
"""A number, or numbers as an array."""


def begun(spec: OperatorSpec) -> OperatorSpec:
    """Return an operator whose sums begin with its bias; itself where it has none that they could begin with."""
    number = bias_number(spec)
    if number is None or spec.epilogue is None:
        return spec
    inputs, rest = spec.epilogue_inputs, _without_bias(spec.epilogue, number)
    return replace(
        spec,
        epilogue=rest if rest.ops else None,
        epilogue_inputs=(*inputs[:number], *inputs[number + 1 :]),
        first=inputs[number],
    )


def begins_with_bias(spec: OperatorSpec, plan: OperatorPlan) -> bool:
    """Return whether the cores of a plan begin sums with the bias: each has whole ones, in one step."""
    if prod(plan.steps) > 1 or any(plan.f_op[axis] > 1 for axis in spec.reduction_axes):
        return False
    return may_begin(spec, plan.lengths)


def may_begin(spec: OperatorSpec, lengths: AxisSizes) -> bool:
    """Return whether one step over parts of these lengths, which are whole along sums, may begin with the bias."""
    if bias_number(spec) is None:
        return False
    matrix = _matrix(spec, lengths)
    return matrix is not None and bool(_is_long(spec, *matrix))


def may_begin_many(spec: OperatorSpec, lengths: Ints) -> Bools:
    """Return `may_begin` of parts of lengths (n, axes)."""
    found, number = np.zeros(len(lengths), np.bool_), bias_number(spec)
    if number is None:
        return found
    if not _is_plain(spec):
        found[:] = [may_begin(spec, tuple(row)) for row in lengths.tolist()]
        return found
    # Which loops there are, and what they walk over, follows from which axes are longer than one point.
    first, kinds = np.unique(lengths > 1, axis=0, return_index=True, return_inverse=True)[1:]
    (column_axis,) = spec.epilogue_inputs[number].axes
    for kind, row in enumerate(first.tolist()):
        if _matrix(spec, tuple(lengths[row].tolist())) is not None:
            rows = np.flatnonzero(kinds.reshape(-1) == kind)
            n, k = lengths[rows, column_axis], lengths[rows][:, sorted(spec.reduction_axes)].prod(axis=1)
            found[rows] = _is_long(spec, lengths[rows].prod(axis=1) // (n * k), n, k, n)
    return found


def split_arrivals(
    run: OperatorSpec, spec: OperatorSpec, names: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of first partials and of epilogue inputs where cores compute `run`.

    `names` are those of all operands of the operator that is planned, `spec`.
    """
    epilogue, number = tuple(names[len(spec.inputs) :]), bias_number(spec)
    if run.first is None or number is None:
        return (), epilogue
    return epilogue[number : number + 1], (*epilogue[:number], *epilogue[number + 1 :])


@lru_cache(maxsize=KEPT_OPERATORS)
def bias_number(spec: OperatorSpec) -> int | None:
    """Return the number, among an operator's epilogue inputs, of the bias that its sums may begin with.

    Long sums that grow in f16 begin with none: a large bias would swallow too much of what is added to it.
    """
    n_terms = prod(spec.axes[axis].extent for axis in spec.reduction_axes)
    may_grow = spec.acc_dtype in ("f32", "f16") and (not _is_narrow(spec) or n_terms <= MOST_NARROW_TERMS)
    is_sum = spec.combine == "sum" and not spec.selectors and may_grow and spec.first is None
    if not is_sum or len(spec.inputs) != PAIR or spec.epilogue is None or not is_product(spec.body):
        return None
    number = _added_first(spec.epilogue, may_be_all=spec.acc_dtype == spec.output.dtype)
    if number is None or {spec.epilogue_inputs[number].dtype, *(o.dtype for o in spec.inputs)} != {"f16"}:
        return None
    bias = spec.epilogue_inputs[number]
    return number if len(bias.axes) == 1 and sum(bias.axes <= o.axes for o in spec.inputs) == 1 else None


def _is_narrow(spec: OperatorSpec) -> bool:
    """Return whether sums are f16 while they grow."""
    return spec.acc_dtype == "f16" and not hands_on_rounded(spec)


def _added_first(function: ScalarFunction, *, may_be_all: bool) -> int | None:
    """Return the number of the epilogue input that is added to the accumulated value before all else is done.

    Unless it `may_be_all`, something else must be done.
    """
    uses = Counter(value for op in function.ops for value in op.operands)
    users = [op for op in function.ops if 0 in op.operands]
    if len(users) != 1 or users[0].opcode != "arith.addf" or function.result < function.n_inputs:
        return None
    (other,) = [value for value in users[0].operands if value] or [0]
    source = other
    if other >= function.n_inputs:
        widening = function.ops[other - function.n_inputs]
        source = widening.operands[0] if widening.opcode == "arith.extf" and uses[other] == 1 else 0
    is_last = function.ops[function.result - function.n_inputs] is users[0]
    is_bias = 0 < source < function.n_inputs and uses[source] == 1
    return source - 1 if is_bias and (may_be_all or not is_last) else None


def _without_bias(function: ScalarFunction, number: int) -> ScalarFunction:
    """Return an epilogue that takes the sum of the accumulated value and an input in the place of the value."""
    source = number + 1
    places: dict[int, int] = {v: v - (v > source) for v in range(function.n_inputs) if v != source}
    ops: list[ScalarOp] = []
    for value, op in enumerate(function.ops, function.n_inputs):
        if 0 in op.operands:
            places[value] = 0
            continue
        if source in op.operands:
            continue
        places[value] = function.n_inputs - 1 + len(ops)
        ops.append(replace(op, operands=tuple(places[v] for v in op.operands)))
    return ScalarFunction(function.n_inputs - 1, tuple(ops), places[function.result])


def _is_plain(spec: OperatorSpec) -> bool:
    """Return whether operands are dense arrays of axes: no windows, no diagonals."""
    dims_by_operand = [[dim for dim in operand.dims if dim.terms] for operand in spec.operands]
    return all(
        all(dim.is_simple for dim in dims) and len(dims) == len(operand.axes)
        for dims, operand in zip(dims_by_operand, spec.operands, strict=True)
    )


@lru_cache(maxsize=KEPT_OPERATORS)
def _matrix(spec: OperatorSpec, lengths: AxisSizes) -> tuple[int, int, int, int] | None:
    """Return rows, columns, terms, and slots from row to row of the sums, of the product of two matrices.

    None where code for parts of these lengths computes something else.
    """
    first = begun(spec).first
    assert first is not None

    def operand(each: Operand, dtype: str) -> TaskOperand:
        return TaskOperand(dtype, axis_strides(each, lengths))

    inputs = (*(operand(each, each.dtype) for each in spec.inputs), operand(first, first.dtype))
    task = simplified(
        Task(
            lengths,
            inputs,
            operand(spec.output, spec.acc_dtype),
            spec.combine,
            with_unread(spec.body, 1),
            spec.reduction_axes,
            first=PAIR,
        )
    )
    if task.reduction_axes not in ((2,), (2, 3)) or len(task.extents) != PAIR + len(task.reduction_axes):
        return None
    (m, n, *inner), rows = task.extents, [operand.strides for operand in task.operands]
    x, w = sorted(rows[:PAIR], key=lambda strides: strides[0] == 0)
    # The weights of a block of terms may lie together: the inner of two loops is a block then.
    along = (1,) if len(inner) == 1 else (inner[1], 1)
    none = (0,) * len(inner)
    is_matrix = x[1:] == (0, *along) and w[0] == 0 and w[-1] == 1
    is_matrix = is_matrix and rows[2] == (0, 1, *none) and rows[3][1:] == (1, *none)
    return (m, n, prod(inner), rows[3][0]) if is_matrix else None


def _is_long(spec: OperatorSpec, m: Counts, n: Counts, k: Counts, stride: Counts) -> Counts:
    """Return whether the engine begins products of matrices of these sizes with a bias; see `_matrix`."""
    terms = prod(spec.axes[axis].extent for axis in spec.reduction_axes)
    columns = NARROW_COLUMNS if _is_narrow(spec) else BLOCK_COLUMNS
    is_whole = (n % columns == 0) & (n <= MOST_COLUMNS)
    is_whole = is_whole & (stride * size_bytes(spec.acc_dtype) % WORD_BYTES == 0)
    # Rounded sums begin so where they are of several blocks, all of them alike.
    is_deep = (k >= BLOCK_TERMS) & (terms >= BLOCK_TERMS)
    if hands_on_rounded(spec):
        is_deep = (k > BLOCK_TERMS) & (k % (WORD_BYTES // 2) == 0)
    return is_whole & is_deep & (m >= LEAST_ROWS)
