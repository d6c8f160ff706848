"""Weights of 2 and 4 bits that are dequantised: several numbers in a byte of the chip, taken apart where they are used.

    w: int8 [k, n]                           p: int8 [k, n / 2, 1]
    y = DequantizeLinear(w, s)               y = (float(int32(p) & [15, -16]) * [1, 1 / 16] - [8, 0]) * s

The numbers of a byte are neighbours along an axis that the reader does not sum over: rows of a product stay rows. The
uppermost is stored with a sign, so that a byte that is loaded is masked and nothing else; all of this is exact in f32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from t10.frontend.rewrites.apply import rewrite_by
from t10.frontend.rewrites.quantized import axis_of, block_of
from t10.frontend.rewrites.site import KIND, Shape, Site
from t10.frontend.weights import Weights

OPSET = 18
"""The first opset that masks integers; in older ones weights stay a number per byte."""

Array = NDArray[Any]
Readers = dict[str, list[tuple[Any, int]]]


def pack_weights(model: Any, weights: Weights) -> bool:
    """Store weights of few bits that one DequantizeLinear reads as bytes of several; return whether there were any.

    Changes the model, whose shapes are inferred, in place.
    """
    if not weights.bits:
        return False
    readers: Readers = {}
    gathers = {node.output[0]: node for node in model.graph.node if is_rows(node)}
    for node in model.graph.node:
        for place, name in enumerate(node.input):
            readers.setdefault(name, []).append((node, place))
    return rewrite_by(model, {"DequantizeLinear": partial(_dequantized, weights, readers, gathers)})


def is_rows(node: Any) -> bool:
    """Return whether a node selects rows of a table."""
    return node.op_type == "Gather" and not any(a.name == "axis" and a.i for a in node.attribute)


def packed(values: Array, bits: int, axis: int) -> Array:
    """Return bytes of integers that are neighbours along an axis: the first in the lowest bits."""
    n = 8 // bits
    shape = (*values.shape[:axis], values.shape[axis] // n, n, *values.shape[axis + 1 :])
    low = 0 if values.dtype.kind == "u" else 1 << (bits - 1)
    numbers = (values.astype(np.int16) + low).astype(np.uint8).reshape(shape)
    shifts = np.arange(0, 8, bits, dtype=np.uint8).reshape(n, *([1] * (len(shape) - axis - 2)))
    found = np.bitwise_or.reduce(numbers << shifts, axis + 1, keepdims=True)
    return (found ^ np.uint8(128)).view(np.int8)


@dataclass(frozen=True, slots=True)
class _Dims:
    """The dims of a weight with neighbours (`n` along `axis`) and blocks (along `blocked`) as dims of their own."""

    shape: Shape
    n: int
    axis: int
    blocked: int
    block: int

    def apart(self, extents: Shape | None = None) -> list[int]:
        """Return the extents of the weight, or of what has as many dims and broadcasts with it by blocks."""
        found: list[int] = []
        for dim, extent in enumerate(self.shape if extents is None else extents):
            is_blocked, is_packed = dim == self.blocked, dim == self.axis
            if extent != self.shape[dim]:  # one number, or one of a block
                found += [extent, *([1] * (is_blocked + is_packed))]
                continue
            outer, inner = (extent // self.block, self.block) if is_blocked else (1, extent)
            found += [*([outer] * is_blocked), *((inner // self.n, self.n) if is_packed else (inner,))]
        return found

    def extents(self, site: Site, place: int) -> list[int]:
        """Return the extents in which a scale or zero point broadcasts with the weight taken apart."""
        shape, rank = site.shape(place) or (), len(self.shape)
        if prod(shape) == 1:
            return []
        if len(shape) > 1:
            return self.apart(shape)
        axis = axis_of(site, rank)
        return self.apart(tuple(prod(shape) if dim == axis else 1 for dim in range(rank)))

    def row(self, site: Site, numbers: Sequence[float], dtype: Any) -> str:
        """Write a number for each place in a byte."""
        return site.constant(np.array(numbers, dtype).reshape(self.n, *([1] * self.n_behind)))

    @property
    def place(self) -> int:
        """Return the dim of neighbours."""
        return len(self.apart()) - 1 - self.n_behind

    @property
    def n_behind(self) -> int:
        """Return how many dims follow that of the neighbours."""
        return len(self.shape) - 1 - self.axis + (self.blocked > self.axis)


def _dims(site: Site, n: int, readers: Readers, *, is_table: bool) -> _Dims | None:
    """Return how a weight, or rows of a table, are taken apart; None where extents do not allow it."""
    shape, scale = site.shape(0), site.shape(1)
    if shape is None or scale is None or not shape:
        return None
    axis = axis_of(site, len(shape))
    block = block_of(site, scale, shape, axis) if len(scale) == len(shape) and prod(scale) > 1 else 0
    if block and (scale[axis] * block != shape[axis] or block == 1):
        return None
    blocked = axis if block else -1
    last = len(shape) - 1
    kept = _kept_axis(site.node.output[0], len(shape), readers)
    for dim in (last,) if is_table else (kept, *range(last, -1, -1)):
        if (block if dim == blocked else shape[dim]) % n == 0:
            return _Dims(shape, n, dim, blocked, block)
    return None


def _kept_axis(name: str, rank: int, readers: Readers) -> int:
    """Return the axis of a value that stays one in what its first reader makes of it; the last if that is unknown."""
    if name not in readers:
        return rank - 1
    node, place = readers[name][0]
    kind, options = node.op_type, {a.name: a for a in node.attribute}
    if kind == "Transpose":
        order = list(options["perm"].ints) if "perm" in options else list(range(rank - 1, -1, -1))
        return order[_kept_axis(node.output[0], rank, readers)]
    if kind == "Gemm":
        return int(("transA", "transB")[place] in options and options[("transA", "transB")[place]].i) ^ place
    if kind == "MatMul" and place == 0 and rank > 1:
        return rank - 2
    return {"Conv": 0, "ConvTranspose": 1}.get(kind, rank - 1)


def _dequantized(weights: Weights, readers: Readers, gathers: Mapping[str, Any], site: Site) -> bool:
    """Write what bytes of several numbers stand for."""
    rows = gathers.get(site.input(0))
    name = site.input(0) if rows is None else rows.input[0]
    bits = weights.bits.get(name, 0)
    is_read_once = len(readers[name]) == len(readers[site.input(0)]) == 1
    dims = _dims(site, 8 // bits, readers, is_table=rows is not None) if bits and is_read_once else None
    if dims is None or site.facts.opset < OPSET:
        return False
    units = [1 << (bits * place) for place in range(dims.n)]
    middle = 1 << (bits - 1)
    low = 0 if site.kind(0) == KIND.UINT8 else -middle
    masks = [*(unit * (2 * middle - 1) for unit in units[:-1]), -units[-1]]
    made = _bytes(weights, site, bits, dims, rows)
    word = site.op("BitwiseAnd", site.cast(made, KIND.INT32), dims.row(site, masks, np.int32))
    factors = dims.row(site, [1 / unit for unit in units], np.float32)
    value = site.op("Mul", site.cast(word, KIND.FLOAT), factors)
    value = _centred(weights, site, dims, value, [*([-low] * (dims.n - 1)), -low - middle])
    value = site.op("Mul", value, _float(site, _spread(site, 1, dims), 1))
    kind = int(site.option("output_dtype", 0)) or site.kind(1)
    if kind != KIND.FLOAT:
        value = site.cast(value, kind)
    site.reshape(value, dims.shape, output=site.node.output[0])
    return True


def _bytes(weights: Weights, site: Site, bits: int, dims: _Dims, rows: Any) -> str:
    """Write the bytes of the weight, or of the `rows` of a table, in extents that broadcast with their numbers."""
    extents = dims.apart()
    extents[dims.place] = 1
    if rows is None:
        return _stored(weights, site, site.input(0), extents, partial(packed, bits=bits, axis=dims.axis))
    table = site.facts.shapes[rows.input[0]]
    flat = [*table[:-1], table[-1] // dims.n]
    made = _stored(weights, site, rows.input[0], flat, partial(packed, bits=bits, axis=len(table) - 1))
    return site.reshape(site.op("Gather", made, rows.input[1], axis=0), extents)


def _centred(weights: Weights, site: Site, dims: _Dims, value: str, levels: list[int]) -> str:
    """Write numbers without their zero point, and without what each place of a byte has beside its number."""
    zero = site.input(2)
    is_known = zero in weights.names or zero in site.facts.constants
    if not zero or not is_known or site.kind(2) not in (KIND.INT8, KIND.UINT8):
        value = site.op("Sub", value, dims.row(site, levels, np.float32))
        return site.op("Sub", value, _float(site, _spread(site, 2, dims), 2)) if zero else value
    extents = dims.extents(site, 2)
    row = np.array(levels, np.int16).reshape(dims.n, *([1] * dims.n_behind))
    shape = np.broadcast_shapes(tuple(extents), row.shape)

    def change(values: Array) -> Array:
        return (values.astype(np.int16).reshape(extents) + row).astype(np.int8)

    return site.op("Sub", value, site.cast(_stored(weights, site, zero, shape, change), KIND.FLOAT))


def _spread(site: Site, place: int, dims: _Dims) -> str:
    """Return a scale or zero point that broadcasts with the weight taken apart."""
    return site.reshape(site.input(place), dims.extents(site, place))


def _float(site: Site, value: str, place: int) -> str:
    """Return what is made of an input as f32."""
    return value if site.kind(place) == KIND.FLOAT else site.cast(value, KIND.FLOAT)


def _stored(
    weights: Weights, site: Site, name: str, extents: Sequence[int], change: Callable[[Array], Array]
) -> str:
    """Return the name of a weight of bytes that is made of a constant; one without values makes one without."""
    made = f"{site.stem}.{name}"
    constant = site.facts.constants.get(name)
    values = weights.values.get(name) if constant is None else numpy_helper.to_array(constant)
    weights.names.append(made)
    if values is not None:
        weights.values[made] = np.ascontiguousarray(change(values).reshape(tuple(extents)))
    site.graph.input.append(onnx.helper.make_tensor_value_info(made, KIND.INT8, list(extents)))
    return made
