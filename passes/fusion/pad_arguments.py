"""Inputs with zeros behind what products sum along, where their rows would begin in the middle of a word.

```
x[i, k] * w[j, k]        becomes        x'[i, k] * w'[j, k]        k < 64 instead of 63; the host appends the zeros
```

The engine reads words of 8 bytes, of which it multiplies 16 terms of 16 bits. An image of three channels has rows of
windows that begin anywhere: cores would copy them first, and messages would be of half words. The weights, which one
product alone reads, get zeros as well. What lies between an input and its products pads other dims or concatenates.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, prod
from typing import Any

from t10.core.dtypes import size_bytes
from t10.core.partials import Partials
from t10.core.products import BLOCK_BYTES, WORD_BYTES
from t10.core.scalar import parse_constant
from t10.dialect.mlir import ir
from t10.passes.bridge.affine import axis_dim, is_zero
from t10.passes.bridge.scalars import constant_value
from t10.passes.bridge.tree import Read, Scalar, reads
from t10.passes.fusion.arguments import TYPES, Entry, argument_entries, set_argument_entries, set_shape
from t10.passes.fusion.graph import (
    PARALLEL,
    REDUCTION,
    FusionGraph,
    Nest,
    Opaque,
    is_product,
    n_terms,
    with_leaves,
)
from t10.passes.fusion.pad_prices import PaddedSum, PadPrice
from t10.passes.read_graph import ORDER, PADDED, PARTS, SPLIT, WEIGHT

LEAST_TERMS = 4096
"""Multiplications from which on a product is padded: fewer take no time, and keep the extents that a reader expects."""
MOST_MORE, MOST_MORE_FOR_BLOCKS = 4 / 3, 1.2
"""How many times as long a dim may become to be of whole words, and of whole blocks; to words more where that pays."""


@dataclass(slots=True)
class _Found:
    """What is padded along with an input: dims by value, and the products before and after.

    All become longer by `more`; `weights` and `partials` are those that they may have.
    """

    more: int
    weights: Collection[int]
    partials: Partials
    dims: dict[int, int] = field(default_factory=dict[int, int])
    sums: list[PaddedSum] = field(default_factory=list[PaddedSum])
    needs: bool = False

    def shapes(self, graph: FusionGraph) -> dict[int, tuple[int, ...]]:
        """Return the shapes of values as they are padded."""
        dims = {**self.dims, **{value: dim for each in self.sums for value, dim in each.dims.items()}}
        return {value: longer(graph.shapes[value], dim, self.more) for value, dim in dims.items()}


def pad_arguments(function: Any, graph: FusionGraph, partials: Partials, price: PadPrice) -> None:
    """Pad the inputs of products along sums; `t10.padded` of the arguments says how many zeros the host appends.

    No sum gets more terms than `partials` allow in the type that it has. Where zeros are far more than what is there,
    `price` decides. Run again it changes nothing: what is padded is of whole words, what is stored has been decided on.
    """
    arguments = function.regions[0].blocks[0].arguments
    entries = argument_entries(function)
    free = free_arguments(arguments, graph)
    weights = own_weights(free, entries, graph)
    for number in sorted(free):
        if entries[number].keys() & {WEIGHT, PADDED, SPLIT, PARTS} or graph.types[number] not in TYPES:
            continue
        for dim in _by_length(graph.shapes[number]):
            extent = graph.shapes[number][dim]
            found = _Found(_padded(extent, graph.types[number]) - extent, weights, partials)
            if not found.more or not _follow(graph, number, dim, found) or not found.needs:
                continue
            shapes = found.shapes(graph)
            is_far = extent + found.more > MOST_MORE * extent
            if is_far and (ORDER in entries[number] or not price.pays(shapes, found.sums)):
                continue
            graph.shapes.update(shapes)
            padded = {number: dim}
            for each in found.sums:
                graph.add(each.after)
                padded |= {value: at for value, at in each.dims.items() if value in weights}
            for value, at in padded.items():
                pad_argument(arguments[value], entries[value], shapes[value], at, found.more)
            break
    set_argument_entries(function, entries)


def _by_length(shape: Sequence[int]) -> list[int]:
    """Return dims in their order, those of one element last and from the end: one channel stands behind one image."""
    units = [dim for dim, extent in enumerate(shape) if extent == 1]
    return [*(dim for dim in range(len(shape)) if dim not in units), *reversed(units)]


def free_arguments(arguments: Sequence[Any], graph: FusionGraph) -> set[int]:
    """Return the arguments that have no layout and are no results."""
    return {
        number
        for number, argument in enumerate(arguments)
        if isinstance(argument.type, ir.RankedTensorType)
        and argument.type.encoding is None
        and number not in graph.outputs
    }


def own_weights(free: Collection[int], entries: Sequence[Entry], graph: FusionGraph) -> set[int]:
    """Return the weights among arguments that one operation alone reads, and that the host has as one."""
    return {
        number
        for number in free
        if WEIGHT in entries[number]
        and not entries[number].keys() & {SPLIT, PARTS}
        and len(graph.users.get(number, ())) == 1
    }


def _padded(extent: int, dtype: str) -> int:
    """Return the extent of a dim padded to whole blocks of the engine, or to words where that is far more."""
    size = size_bytes(dtype)
    block, word = (-(-extent // unit) * unit for unit in (BLOCK_BYTES // size, WORD_BYTES // size))
    return block if block <= MOST_MORE_FOR_BLOCKS * extent else word


def _follow(graph: FusionGraph, value: int, dim: int, found: _Found) -> bool:
    """Return whether a value may be longer in a dim, which all its readers sum along; what that takes is added."""
    if value in graph.outputs or not graph.users[value]:
        return False
    found.dims[value] = dim
    for user in sorted(graph.users[value]):
        node = graph.owners[user]
        if isinstance(node, Opaque):
            if not (_pads_others(node, dim) or _ends_with(node, value, dim)):
                return False
            if not _follow(graph, node.results[0], dim, found):
                return False
        elif not isinstance(node, Nest) or not _is_summed(graph, node, value, dim, found):
            return False
    return True


def _pads_others(node: Opaque, dim: int) -> bool:
    """Return whether an operation pads other dims than this one, with a finite number: zeros times it are zeros."""
    if node.op.name != "tensor.pad" or node.order or len(node.op.operands) != 1:
        return False
    (filled,) = list(node.op.regions[0].blocks[0].operations)[-1].operation.operands
    text = constant_value(filled)
    if text is None or not isfinite(parse_constant(text)):
        return False
    low, high = (list(ir.DenseI64ArrayAttr(node.op.attributes[f"static_{side}"])) for side in ("low", "high"))
    return low[dim] == high[dim] == 0


def _ends_with(node: Opaque, value: int, dim: int) -> bool:
    """Return whether an operation concatenates along a dim, this value being the last and there once."""
    if node.op.name != "tensor.concat" or node.order:
        return False
    return (
        int(ir.IntegerAttr(node.op.attributes["dim"]).value) == dim
        and node.operands[-1] == value
        and node.operands.count(value) == 1
    )


def _is_summed(graph: FusionGraph, nest: Nest, value: int, dim: int, found: _Found) -> bool:
    """Return whether a product sums along a dim of a value, with weights that nothing else reads."""
    both = reads(nest.body) if is_product(nest) and nest.combine == "arith.addf" else []
    own, others = [r for r in both if r.value == value], [r for r in both if r.value in found.weights]
    if len(both) != 2 or len(own) != 1 or len(others) != 1:
        return False
    if nest.forced is not None or prod(nest.extents) < LEAST_TERMS:
        return False
    if any(n_reads(nest, each.value) > 1 for each in both):
        # What an epilogue reads as well would have to be cut again.
        return False
    (x,), (w,) = own, others
    axis, of_w = _axis_of_sum(graph, nest, x, w, dim)
    if of_w is None or graph.types[w.value] not in TYPES:
        return False
    dims = {value: dim, w.value: of_w}
    padded = _with_longer_sum(nest, axis, found.more, dims)
    if not found.partials.are_alike(n_terms(nest), n_terms(padded)):
        return False
    found.sums.append(PaddedSum(nest, padded, dims))
    found.needs |= _begins_anywhere(graph, nest, x, dim)
    return True


def _axis_of_sum(graph: FusionGraph, nest: Nest, x: Read, w: Read, dim: int) -> tuple[int, int | None]:
    """Return the axis that a product sums along in a dim of an operand, and the weights' dim; None where it sums none.

    The axis of the one channel of an image is none yet.
    """
    if is_zero(x.dims[dim]):
        units = [n for n, each in enumerate(w.dims) if is_zero(each) and graph.shapes[w.value][n] == 1]
        is_one = graph.shapes[x.value][dim] == 1 and _sums_windows_only(nest, x)
        return len(nest.extents), (dim if dim in units else units[-1]) if units and is_one else None
    if not x.dims[dim].is_simple:
        return 0, None
    axis = x.dims[dim].axes[0]
    is_sum = nest.kinds[axis] != PARALLEL and sum(axis in each.axes for each in x.dims) == 1
    of_w = [number for number, each in enumerate(w.dims) if axis in each.axes]
    if not is_sum or len(of_w) != 1 or not w.dims[of_w[0]].is_simple:
        return axis, None
    return axis, of_w[0] if nest.extents[axis] == graph.shapes[x.value][dim] else None


def _sums_windows_only(nest: Nest, x: Read) -> bool:
    """Return whether a product sums along windows of an operand, and along nothing else."""
    summed = [dim for dim in x.dims if any(nest.kinds[axis] != PARALLEL for axis in dim.axes)]
    return bool(summed) and all(len(dim.terms) > 1 for dim in summed)


def _with_longer_sum(nest: Nest, axis: int, more: int, dims: Mapping[int, int]) -> Nest:
    """Return a product with a longer axis of its sum; one that it has not yet is that of these dims, by value."""
    if axis < len(nest.extents):
        return replace(nest, extents=longer(nest.extents, axis, more))

    def leaf(scalar: Scalar) -> Scalar:
        if not isinstance(scalar, Read) or scalar.value not in dims:
            return scalar
        at = dims[scalar.value]
        return Read(scalar.value, (*scalar.dims[:at], axis_dim(axis), *scalar.dims[at + 1 :]))

    made = with_leaves(nest, leaf)
    return replace(made, extents=(*nest.extents, 1 + more), kinds=(*nest.kinds, REDUCTION))


def n_reads(nest: Nest, value: int) -> int:
    """Return how often a nest reads a value."""
    return sum(read.value == value for read in nest.all_reads)


def _begins_anywhere(graph: FusionGraph, nest: Nest, x: Read, dim: int) -> bool:
    """Return whether rows of an operand that is stored along a dim begin in the middle of a word, or end there.

    Windows along the dim before it are rows of a core with it: they need only be whole words together.
    """
    row = graph.shapes[x.value][dim] * size_bytes(graph.types[x.value])
    windows = [each for number, each in enumerate(x.dims) if number != dim and len(each.terms) > 1]
    if not windows:
        return row % WORD_BYTES != 0
    terms = windows[-1].terms
    window = [term for term in terms if nest.kinds[term.axis] != PARALLEL]
    if len(window) != 1 or window[0].coefficient != 1:
        return row % WORD_BYTES != 0
    steps = [term.coefficient for term in terms if nest.kinds[term.axis] == PARALLEL]
    return any(n * row % WORD_BYTES for n in (nest.extents[window[0].axis], *steps))


def longer(extents: tuple[int, ...], number: int, more: int) -> tuple[int, ...]:
    """Return extents with one of them longer."""
    return (*extents[:number], extents[number] + more, *extents[number + 1 :])


def pad_argument(argument: Any, entry: Entry, shape: tuple[int, ...], dim: int, more: int) -> None:
    """Give an argument its type, and say how many zeros end the host's dims."""
    set_shape(argument, shape)
    order = tuple(ir.DenseI64ArrayAttr(entry[ORDER])) if ORDER in entry else tuple(range(len(shape)))
    padding = list(ir.DenseI64ArrayAttr(entry[PADDED])) if PADDED in entry else [0] * len(shape)
    padding[order[dim]] += more
    entry[PADDED] = ir.DenseI64ArrayAttr.get(padding)
