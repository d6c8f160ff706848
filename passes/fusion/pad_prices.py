"""Whether products that sum over appended zeros take less time on a chip, where these are far more than what was there.

One channel of an image becomes four: the engine then multiplies words, but all cores hold four times as much.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from math import prod

from t10.core.dtypes import size_bytes
from t10.core.orders import given_order, moved_last
from t10.passes.bridge.affine import is_zero
from t10.passes.bridge.tree import reads
from t10.passes.fusion.demands import axes_of, channels_of, counted_product
from t10.passes.fusion.graph import PARALLEL, FusionGraph, Nest
from t10.passes.fusion.narrow import widened
from t10.passes.fusion.product_prices import Target
from t10.plan.memory.storage import ProductOrders

LESS, LESS_OF_GROUPS = 0.9, 0.55
"""Part of the time that padded products may take: what is counted is few boxes, and padding takes memory.

Where both operands have an axis of results (groups), plans take up to half of what is counted without zeros.
"""
MOST_MEMORY = 1 / 16
"""Part of all cores' memory that a padded input may take."""


@dataclass(frozen=True, slots=True)
class PaddedSum:
    """A product before and after an axis of its sum became longer, and the dim of each operand along it."""

    before: Nest
    after: Nest
    dims: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class PadPrice:
    """Says of products of a graph whether padding pays on a target."""

    graph: FusionGraph
    target: Target

    def pays(self, shapes: Mapping[int, tuple[int, ...]], sums: Sequence[PaddedSum]) -> bool:
        """Return whether products take less time together if values have these shapes, which memory can hold.

        Not for depthwise convolutions that the short-window engine computes as they are.
        """
        chip, types = self.target.chip, self.graph.types
        room = MOST_MEMORY * chip.n_cores * chip.tile_memory.end
        if sum(prod(shape) * size_bytes(types[value]) for value, shape in shapes.items()) > room:
            return False
        if any(channels_of(self.graph, each.before) for each in sums):
            return False
        padded = copy(self.graph)
        padded.shapes = {**self.graph.shapes, **shapes}
        before = sum(self._price(self.graph, each.before, each.dims) for each in sums)
        part = LESS_OF_GROUPS if any(_has_groups(each.before) for each in sums) else LESS
        return sum(self._price(padded, each.after, each.dims) for each in sums) < part * before

    def _price(self, graph: FusionGraph, nest: Nest, dims: Mapping[int, int]) -> int:
        """Return the bytes of a link while a product is computed, in the best of the storage orders it may have."""
        wide = widened(nest) if nest.acc_type == "f16" else None
        products = [counted_product(graph, each, self.target) for each in (nest, wide) if each is not None]
        orders = list(_orders(nest, dims, is_output=nest.result in graph.outputs))
        return min(product.link_bytes(each) for product in products for each in orders)


def _has_groups(nest: Nest) -> bool:
    """Return whether both operands of a product are walked along an axis of its results."""
    first, second = ({axis for dim in read.dims for axis in dim.axes} for read in reads(nest.body))
    return any(nest.kinds[axis] == PARALLEL and nest.extents[axis] > 1 for axis in first & second)


def _orders(nest: Nest, dims: Mapping[int, int], *, is_output: bool) -> Iterator[ProductOrders]:
    """Return orders of operands and result: as given, and with the summed dim and the columns of weights last.

    An output of the model stays as given where nothing but windows is summed along: there is no product to turn it.
    """
    first, second = reads(nest.body)
    one, other = (given_order(len(read.dims)) for read in (first, second))
    out = given_order(len(nest.out_dims))
    yield one, other, out
    has_inner = not any(is_zero(read.dims[dims[read.value]]) for read in (first, second))
    if is_output and not has_inner:
        return
    weights = min((first, second), key=lambda read: max(len(dim.terms) for dim in read.dims))
    axes = {axis for dim in weights.dims for axis in dim.axes}
    turned = moved_last(out, [n for n, axis in enumerate(axes_of(nest, nest.out_dims)) if axis in axes])
    yield one, other, turned
    if has_inner:
        one, other = moved_last(one, (dims[first.value],)), moved_last(other, (dims[second.value],))
        yield one, other, out
        yield one, other, turned
