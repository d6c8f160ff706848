"""Inputs with zeros behind what products sum along, where their rows would begin in the middle of a word.

```
x[i, k] * w[j, k]        becomes        x'[i, k] * w'[j, k]        k < 64 instead of 63; the host appends the zeros
```

The engine reads words of 8 bytes, of which it multiplies 16 terms of 16 bits. An image of three channels has rows of
windows that begin anywhere: cores would copy them first, and messages would be of half words. The weights, which one
product alone reads, get zeros as well. What lies between an input and its products pads other dims or concatenates.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, prod
from typing import Any

from t10.core.dtypes import size_bytes
from t10.core.partials import Partials
from t10.core.products import BLOCK_BYTES, WORD_BYTES
from t10.core.scalar import parse_constant
from t10.dialect.mlir import ir
from t10.passes.bridge.scalars import constant_value
from t10.passes.bridge.tree import Read, reads
from t10.passes.fusion.arguments import Entry, argument_entries, set_argument_entries, set_shape
from t10.passes.fusion.graph import PARALLEL, FusionGraph, Nest, Opaque, is_product, n_terms
from t10.passes.read_graph import ORDER, PADDED, PARTS, SPLIT, WEIGHT

TYPES = frozenset({"f16", "f32"})
LEAST_TERMS = 4096
"""Multiplications from which on a product is padded: fewer take no time, and keep the extents that a reader expects."""
MOST_MORE, MOST_MORE_FOR_BLOCKS = 4 / 3, 1.2
"""How many times as long a dim may become to be of whole words, and of whole blocks."""


@dataclass(slots=True)
class _Found:
    """What is padded along with an input: dims by value, and the products with their summed axis and weights' dim.

    All become longer by `more`; `weights` and `partials` are those that they may have.
    """

    more: int
    weights: Collection[int]
    partials: Partials
    dims: dict[int, int] = field(default_factory=dict[int, int])
    products: list[tuple[Nest, int, int, int]] = field(default_factory=list[tuple[Nest, int, int, int]])
    needs: bool = False


def pad_arguments(function: Any, graph: FusionGraph, partials: Partials) -> None:
    """Pad the inputs of products along sums; `t10.padded` of the arguments says how many zeros the host appends.

    No sum gets more terms than `partials` allow in the type that it has. Run again it changes nothing: what is padded
    is of whole words.
    """
    arguments = function.regions[0].blocks[0].arguments
    entries = argument_entries(function)
    free = free_arguments(arguments, graph)
    weights = own_weights(free, entries, graph)
    for number in sorted(free):
        if entries[number].keys() & {WEIGHT, PADDED, SPLIT, PARTS} or graph.types[number] not in TYPES:
            continue
        for dim, extent in enumerate(graph.shapes[number]):
            found = _Found(_padded(extent, graph.types[number]) - extent, weights, partials)
            if found.more and _follow(graph, number, dim, found) and found.needs:
                _rewrite(graph, found)
                for value, padded in {number: dim, **{w: d for _, _, w, d in found.products}}.items():
                    pad_argument(arguments[value], entries[value], graph.shapes[value], padded, found.more)
                break
    set_argument_entries(function, entries)


def free_arguments(arguments: Sequence[Any], graph: FusionGraph) -> set[int]:
    """Return the arguments that have no layout and are no results."""
    return {
        number
        for number, argument in enumerate(arguments)
        if ir.RankedTensorType(argument.type).encoding is None and number not in graph.outputs
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
    """Return the extent of a dim padded to whole blocks of the engine, or to words; itself where that is far more."""
    size = size_bytes(dtype)
    block, word = (-(-extent // unit) * unit for unit in (BLOCK_BYTES // size, WORD_BYTES // size))
    if block <= MOST_MORE_FOR_BLOCKS * extent:
        return block
    return word if word <= MOST_MORE * extent else extent


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
    if len(both) != 2 or len(own) != 1 or len(others) != 1 or not own[0].dims[dim].is_simple:
        return False
    if nest.forced is not None or prod(nest.extents) < LEAST_TERMS:
        return False
    if any(n_reads(nest, each.value) > 1 for each in both):
        # What an epilogue reads as well would have to be cut again.
        return False
    (x,), (w,) = own, others
    axis = x.dims[dim].axes[0]
    is_sum = nest.kinds[axis] != PARALLEL and sum(axis in each.axes for each in x.dims) == 1
    of_w = [number for number, each in enumerate(w.dims) if axis in each.axes]
    if not is_sum or len(of_w) != 1 or not w.dims[of_w[0]].is_simple:
        return False
    if nest.extents[axis] != graph.shapes[value][dim] or graph.types[w.value] not in TYPES:
        return False
    longest = n_terms(replace(nest, extents=longer(nest.extents, axis, found.more)))
    if not found.partials.are_alike(n_terms(nest), longest):
        return False
    found.products.append((nest, axis, w.value, of_w[0]))
    found.needs |= _begins_anywhere(graph, nest, x, dim)
    return True


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


def _rewrite(graph: FusionGraph, found: _Found) -> None:
    """Make values longer in their dims, and products sum over what is appended."""
    dims = {**found.dims, **{w: dim for _, _, w, dim in found.products}}
    for value, dim in dims.items():
        graph.shapes[value] = longer(graph.shapes[value], dim, found.more)
    for nest, axis, _, _ in found.products:
        graph.add(replace(nest, extents=longer(nest.extents, axis, found.more)))


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
