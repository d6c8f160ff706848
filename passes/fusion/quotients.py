"""Division of a softmax behind the product that sums its rows, not for every element of a row.

```
s[i] = sum over j of exp(x[i, j] - m[i])                 e[i, j] = exp(x[i, j] - m[i])
p[i, j] = exp(x[i, j] - m[i]) / s[i]         becomes     s[i] = sum over j of e[i, j]
y[i, n] = sum over j of p[i, j] * v[j, n]                y[i, n] = (sum over j of e[i, j] * v[j, n]) / s[i]
```

The exponential is computed once. No `e` is above 1, as no `p` is, and `s` is the sum of what the product weighs with.
What is rounded to f16 is `e` instead of `p`: the difference is taken in f16, and the exponential, which is off by less
than half a unit of the largest `p` in the last place.

Where the product is summed in f16, `e` is divided by the power of two that is no less than the length of a row: no sum
is then larger than the largest `v`. What weights of a row of n elements lose below the least normal f16 is n^2 2^-25 of
their sum at most, 0.2 % of a row of 256; products of longer rows stay f32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

from t10.core.expression import AffineDim
from t10.passes.bridge.affine import ZERO, axis_dim
from t10.passes.bridge.tree import (
    Accumulated,
    Apply,
    Constant,
    Read,
    Scalar,
    reads,
    rewrite,
    spelled,
    substitute_axes,
)
from t10.passes.fusion.graph import PARALLEL, REDUCTION, FusionGraph, Nest, is_product, is_rounded
from t10.passes.fusion.views import axes_read

_MAXIMA = frozenset({"arith.maximumf", "arith.maxnumf"})
LONGEST_SCALED = 256
"""Elements of a row up to which exponentials are divided by a power of two."""


def drop_nans(graph: FusionGraph) -> None:
    """Let the maximum of a softmax's row drop NaNs, as instructions do: the sum of its exponentials is one anyway."""
    for nest in graph.nests():
        found = _softmax_of(graph, nest)
        if found is None:
            continue
        assert isinstance(found.power, Apply)
        (below,) = found.power.operands
        assert isinstance(below, Apply)
        value, read = below.operands
        assert isinstance(read, Read)
        largest = graph.owners[read.value]
        assert isinstance(largest, Nest)
        is_own = (
            graph.users[read.value] == {nest.result, found.total.result} and read.value not in graph.outputs
        )
        is_all = prod(largest.extents) == prod(nest.extents)
        if is_own and is_all and [r.value for r in reads(largest.body)] == [r.value for r in reads(value)]:
            graph.add(replace(largest, combine="arith.maxnumf"))


def defer_quotients(graph: FusionGraph, is_narrow: Callable[[Nest], bool]) -> None:
    """Divide behind the product that reads a softmax, where that takes no more divisions.

    `is_narrow` says of which products sums are kept in f16 in the engine, whatever the values.
    """
    for nest in graph.nests():
        product = graph.only_user(nest.result)
        if isinstance(product, Nest) and nest.epilogue is None:
            _defer(graph, nest, product, is_narrow)


@dataclass(frozen=True, slots=True)
class _Softmax:
    """A nest that divides exponentials by the sum of their row; `by_axis` are its axes by those of the sum."""

    power: Scalar
    divisor: Read
    total: Nest
    by_axis: list[AffineDim]


def _softmax_of(graph: FusionGraph, nest: Nest) -> _Softmax | None:
    """Return what an elementwise nest divides, perhaps rounding it, by what; None where it is no softmax."""
    quotient = nest.body.operands[0] if is_rounded(nest.body) else nest.body
    if not nest.is_elementwise or not isinstance(quotient, Apply) or quotient.opcode != "arith.divf":
        return None
    power, divisor = quotient.operands
    total = graph.owner(divisor.value) if isinstance(divisor, Read) else None
    if not isinstance(divisor, Read) or not isinstance(total, Nest) or not _is_below_one(graph, power):
        return None
    by_axis = _axes_of_sum(nest, total, divisor)
    if by_axis is None or spelled(substitute_axes(total.body, by_axis)) != spelled(power):
        return None
    return _Softmax(power, divisor, total, by_axis)


def _defer(graph: FusionGraph, nest: Nest, product: Nest, is_narrow: Callable[[Nest], bool]) -> None:
    found = _softmax_of(graph, nest)
    if found is None or not _may_divide(nest, product):
        return
    (read,) = (read for read in reads(product.body) if read.value == nest.result)
    divisor_there = substitute_axes(found.divisor, axes_read(nest, read.dims))
    if any(product.kinds[axis] != PARALLEL for dim in reads(divisor_there)[0].dims for axis in dim.axes):
        return
    n = found.total.extents[found.total.kinds.index(REDUCTION)]
    is_scaled = is_rounded(nest.body) and n <= LONGEST_SCALED and is_narrow(product)
    body = _in_half(found.power, n if is_scaled else 1) if is_rounded(nest.body) else found.power
    graph.add(replace(nest, body=body, rank=found.total.rank))
    graph.add(replace(found.total, body=_read_by(graph, nest, found.by_axis), rank=nest.rank))

    def leaf(scalar: Scalar) -> Scalar:
        if not isinstance(scalar, Accumulated):
            return scalar
        if is_scaled:
            scalar = Apply("arith.extf", (Apply("arith.truncf", (scalar,), "f16"),), product.acc_type)
        return Apply("arith.divf", (scalar, divisor_there), product.acc_type)

    graph.add(replace(product, epilogue=rewrite(product.epilogue or Accumulated(), leaf)))


def multiply_by_reciprocals(graph: FusionGraph) -> None:
    """Divide 1 by the sum of each row of a softmax, and multiply its elements by that: a division per row is left.

    Sums are between 1 and the length of a row, so that no reciprocal overflows or vanishes. Only where nothing else
    reads the sums, and of f32: what is rounded to f16 is divided in about the time of a product.
    """
    for nest in graph.nests():
        found = None if is_rounded(nest.body) else _softmax_of(graph, nest)
        if found is None or graph.only_user(found.total.result) is not nest:
            continue
        one = Constant("1.0", "f32")
        graph.add(replace(nest, body=Apply("arith.mulf", (found.power, found.divisor), "f32")))
        graph.add(replace(found.total, epilogue=Apply("arith.divf", (one, Accumulated()), "f32")))


def _may_divide(nest: Nest, product: Nest) -> bool:
    """Return whether a product in f32 reads a nest once, and has no more results than that has elements."""
    is_sum = product.combine == "arith.addf" and product.acc_type == "f32" and is_product(product)
    n_results = prod(n for n, kind in zip(product.extents, product.kinds, strict=True) if kind == PARALLEL)
    n_reads = sum(read.value == nest.result for read in product.all_reads)
    return is_sum and n_reads == 1 and n_results <= prod(nest.extents)


def _is_below_one(graph: FusionGraph, power: Scalar) -> bool:
    """Return whether a scalar is an exponential of what elements are below the largest of a row."""
    if not isinstance(power, Apply) or power.opcode != "math.exp":
        return False
    below = power.operands[0]
    if (
        not isinstance(below, Apply)
        or below.opcode != "arith.subf"
        or not isinstance(below.operands[1], Read)
    ):
        return False
    largest = graph.owner(below.operands[1].value)
    return isinstance(largest, Nest) and largest.combine in _MAXIMA and largest.epilogue is None


def _axes_of_sum(nest: Nest, total: Nest, divisor: Read) -> list[AffineDim] | None:
    """Return, per axis of a sum in f32, the axis of the nest that divides by it; None where it sums several."""
    is_sum = total.combine == "arith.addf" and total.acc_type == "f32" and total.epilogue is None
    if not is_sum or total.kinds.count(REDUCTION) != 1:
        return None
    by_axis: list[AffineDim] = [ZERO] * len(total.extents)
    for mine, theirs in zip(total.out_dims, divisor.dims, strict=True):
        if mine.terms:
            by_axis[mine.terms[0].axis] = theirs
    rest = set(range(len(nest.extents))) - {axis for dim in divisor.dims for axis in dim.axes}
    summed = total.kinds.index(REDUCTION)
    if len(rest) != 1 or any(not dim.is_simple for axis, dim in enumerate(by_axis) if axis != summed):
        return None
    (axis,) = rest
    by_axis[summed] = axis_dim(axis)
    is_whole = all(
        n == nest.extents[dim.terms[0].axis] for n, dim in zip(total.extents, by_axis, strict=True)
    )
    return by_axis if is_whole else None


def _read_by(graph: FusionGraph, nest: Nest, by_axis: list[AffineDim]) -> Scalar:
    """Return what a nest makes, widened, over the axes of the sum: `by_axis` are the nest's by those."""
    back = {dim.terms[0].axis: axis for axis, dim in enumerate(by_axis)}
    dims = tuple(axis_dim(back[dim.terms[0].axis]) if dim.terms else ZERO for dim in nest.out_dims)
    made = Read(nest.result, dims)
    return made if graph.types[nest.result] == "f32" else Apply("arith.extf", (made,), "f32")


def _in_half(power: Scalar, n: int) -> Scalar:
    """Return the exponential of a difference rounded to f16: of two f16 computed as f16.

    It is divided by the least power of two that is no less than `n`.
    """
    assert isinstance(power, Apply)
    (below,) = power.operands
    assert isinstance(below, Apply)
    value, largest = below.operands
    if not isinstance(value, Apply) or value.opcode != "arith.extf":
        return Apply("arith.truncf", (_divided(power, n),), "f16")
    difference = Apply("arith.subf", (value.operands[0], Apply("arith.truncf", (largest,), "f16")), "f16")
    return _divided(Apply("math.exp", (difference,), "f16"), n)


def _divided(power: Apply, n: int) -> Scalar:
    if n == 1:
        return power
    part = Constant(repr(2.0 ** -(n - 1).bit_length()), power.dtype)
    return Apply("arith.mulf", (power, part), power.dtype)
