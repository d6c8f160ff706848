"""Sums of products as matrix products on all cores at once, and which bodies they can stand for.

A body that multiplies a function of some operands with a function of the others is evaluated factor by factor, each
over its own axes only; the sum over the reduction axes is then one batched matrix product per group of cores.
Products of f16 are exact in f32 and summed in f32 within a sub-task, as the AMP does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from t10.core.arrays import Array
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.products import hands_on_rounded, summed
from t10.core.scalar import ScalarFunction, ScalarOp

EXACT_DOUBLE = float(1 << 53)
PRODUCTS = frozenset({"arith.mulf", "arith.muli"})


@dataclass(frozen=True, slots=True)
class Factors:
    """A body as `first * second`; `reads` are the operand numbers of each, `axes` the axes each depends on."""

    functions: tuple[ScalarFunction, ScalarFunction]
    reads: tuple[frozenset[int], frozenset[int]]
    axes: tuple[frozenset[int], frozenset[int]]


def factors_of(spec: OperatorSpec) -> Factors | None:
    """Return the body's two factors if it is a sum of products of functions of disjoint operands, else None.

    None as well where a reduction axis occurs in one factor only: nothing is gained then.
    """
    if spec.combine != "sum" or spec.selectors or spec.acc_dtype == "i1":
        return None
    # What a core hands on is rounded, not each product.
    body = summed(spec.body) if hands_on_rounded(spec) else spec.body
    root = _product_root(body)
    if root is None:
        return None
    functions = tuple(_sub_function(body, value) for value in root.operands)
    reads = tuple(inputs_read(function) for function in functions)
    if reads[0] & reads[1] or not reads[0] or not reads[1]:
        return None
    axes = tuple(
        frozenset(axis for number in read for axis in spec.inputs[number].axes) | _index_axes(function)
        for read, function in zip(reads, functions, strict=True)
    )
    if not set(spec.reduction_axes) <= axes[0] & axes[1]:
        return None
    return Factors((functions[0], functions[1]), (reads[0], reads[1]), (axes[0], axes[1]))


def _product_root(body: ScalarFunction) -> ScalarOp | None:
    """Return the multiplication a body ends in; widening its result is part of it (the AMP does not round products)."""
    value = body.result
    while value >= body.n_inputs:
        op = body.ops[value - body.n_inputs]
        if op.opcode in PRODUCTS:
            return op
        if op.opcode != "arith.extf":
            return None
        value = op.operands[0]
    return None


def _sub_function(body: ScalarFunction, value: int) -> ScalarFunction:
    """Return the function that yields one value of a body, with the same inputs and only the operations it needs."""
    needed = {value}
    for number in range(len(body.ops) - 1, -1, -1):
        if body.n_inputs + number in needed:
            needed.update(body.ops[number].operands)
    kept = [i for i in range(len(body.ops)) if body.n_inputs + i in needed]
    renamed = {i: i for i in range(body.n_inputs)}
    renamed |= {body.n_inputs + old: body.n_inputs + new for new, old in enumerate(kept)}
    ops = tuple(
        ScalarOp(op.opcode, tuple(renamed[v] for v in op.operands), op.dtype, op.attribute)
        for op in (body.ops[i] for i in kept)
    )
    return ScalarFunction(body.n_inputs, ops, renamed[value])


def inputs_read(function: ScalarFunction) -> frozenset[int]:
    """Return the numbers of the inputs that a function reads."""
    used = {v for op in function.ops for v in op.operands if v < function.n_inputs}
    return frozenset(used | ({function.result} if function.result < function.n_inputs else set()))


def _index_axes(function: ScalarFunction) -> frozenset[int]:
    return frozenset(int(op.attribute) for op in function.ops if op.opcode == "index")


def sum_of_products(first: Array, second: Array, reduction: AxisSizes) -> Array:
    """Return the sum over `reduction` of first * second; reduced axes keep extent 1.

    Both have shape (cores, *axes) with extent 1 for axes they do not depend on; both depend on every reduction axis.
    Floats of 16 bits are summed in f32; integers exactly.
    """
    n_axes = first.ndim - 1
    axes = range(1, n_axes + 1)
    inner = [a + 1 for a in reduction]
    batch = [a for a in axes if a not in inner and first.shape[a] > 1 and second.shape[a] > 1]
    rows = [a for a in axes if a not in inner and first.shape[a] > 1 and second.shape[a] == 1]
    columns = [a for a in axes if a not in inner and a not in batch and a not in rows]
    n_cores = max(len(first), len(second))
    sizes = [max(first.shape[a], second.shape[a]) for a in range(n_axes + 1)]

    def volume(chosen: list[int]) -> int:
        return int(np.prod([sizes[a] for a in chosen], dtype=np.int64))

    def matrices(array: Array, outer: list[int], last: list[int]) -> Array:
        """Return the array as (cores, batch, outer, last); its remaining axes have extent 1."""
        rest = [a for a in axes if a not in (*batch, *outer, *last)]
        moved = array.transpose([0, *batch, *outer, *last, *rest])
        return moved.reshape(len(array), volume(batch), volume(outer), volume(last))

    left = matrices(first, rows, inner)
    right = matrices(second, inner, columns)
    product = _multiply(left, right)
    shape = [n_cores, *(sizes[a] for a in (*batch, *rows, *columns)), *(1 for _ in inner)]
    order = [0, *batch, *rows, *columns, *inner]
    back = np.argsort(order)
    return product.reshape(shape).transpose(back)


def _multiply(left: Array, right: Array) -> Array:
    """Return the batched matrix product: f16 and f32 in f32, f64 in f64, integers exactly."""
    kind = np.result_type(left, right)
    if kind.kind == "f":
        wide = np.float64 if kind.itemsize == 8 else np.float32
        return np.matmul(left.astype(wide, copy=False), right.astype(wide, copy=False))
    largest = [float(max(abs(int(m.max(initial=0))), abs(int(m.min(initial=0))))) for m in (left, right)]
    if largest[0] * largest[1] * left.shape[-1] < EXACT_DOUBLE:
        exact = np.rint(np.matmul(left.astype(np.float64), right.astype(np.float64)))
        return exact.astype(np.int64).astype(kind)
    return np.matmul(left, right)
