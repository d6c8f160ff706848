"""Weights in forms of their own, written as plain ones when a model is read.

    bits in bytes of MatMulNBits      -> int8, uint8         [columns, blocks, bytes] as [rows, columns]
    int32 that is dequantised         -> f32                 biases of quantised networks: what they stand for

What is computed from them, a product or a scale, is written as DequantizeLinear says it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from math import prod
from typing import Any, NoReturn

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from t10.errors import InputError
from t10.frontend.names import fresh, value_names
from t10.frontend.protobuf_fields import replace_all
from t10.frontend.reading import reading
from t10.frontend.rewrites.contributed import DOMAIN
from t10.frontend.unsupported import title_of
from t10.frontend.weights import Weights

_T = onnx.TensorProto
_BITS = (2, 4, 8)
_LEAST_BLOCK = 16
"""Fewest numbers in a block of ONNX Runtime's operators."""

Array = NDArray[Any]


def has_packed(model: Any) -> bool:
    """Return whether a model reads numbers that are packed in bytes."""
    return any(node.domain == DOMAIN and (DOMAIN, node.op_type) in _WRITERS for node in model.graph.node)


def widen_weights(model: Any, weights: Weights) -> None:
    """Replace, in place, nodes that read bits packed in bytes, and biases that are dequantised."""
    store = _Store(model.graph, weights, {*weights.names, *value_names(model.graph)})
    nodes: list[Any] = []
    for node in model.graph.node:
        write = _WRITERS.get((node.domain, node.op_type))
        written = None
        if write is not None:
            with reading(node):
                written = write(node, store)
        nodes.extend(written or [node])
    replace_all(model.graph.node, nodes)
    store.commit()


@dataclass(slots=True)
class _Store:
    """The constants of a graph, as values where there are any, and those that are made of them."""

    graph: Any
    weights: Weights
    taken: set[str]
    made: list[Any] = field(default_factory=list[Any])
    by_key: dict[tuple[Hashable, ...], str] = field(default_factory=dict[tuple[Hashable, ...], str])

    def is_constant(self, name: str) -> bool:
        """Return whether a value is a constant or a weight."""
        return name in self.weights.names or any(tensor.name == name for tensor in self.graph.initializer)

    def kind(self, name: str) -> int:
        """Return the element type of a constant."""
        for value in self.graph.input:
            if value.name == name:
                return int(value.type.tensor_type.elem_type)
        return next((int(t.data_type) for t in self.graph.initializer if t.name == name), 0)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the extents of a constant."""
        for value in self.graph.input:
            if value.name == name:
                return tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
        return next(tuple(t.dims) for t in self.graph.initializer if t.name == name)

    def values(self, name: str) -> Array | None:
        """Return the values of a constant, None where it came without them."""
        small = next((t for t in self.graph.initializer if t.name == name), None)
        return numpy_helper.to_array(small) if small is not None else self.weights.values.get(name)

    def fresh(self, name: str) -> str:
        """Return a name that nothing has."""
        return fresh(name, self.taken)

    def derived(
        self, name: str, word: str, change: Callable[[Array], Array], *key: Hashable, bits: int = 8
    ) -> str:
        """Return the name of a constant made of another; one without values makes one without.

        `key` is all on which the change depends: what is derived by the same is shared.
        """
        own = (name, word, bits, *key)
        if own in self.by_key:
            return self.by_key[own]
        values = self.values(name)
        dtype = onnx.helper.tensor_dtype_to_np_dtype(self.kind(name))
        result = change(np.zeros(self.shape(name), dtype) if values is None else values)
        made = self.by_key[own] = self.fresh(f"{name}.{word}")
        if bits < 8:
            self.weights.bits[made] = bits
        kind = onnx.helper.np_dtype_to_tensor_dtype(result.dtype)
        self.made.append(onnx.helper.make_tensor_value_info(made, kind, result.shape))
        self.weights.names.append(made)
        if values is not None:
            self.weights.values[made] = np.ascontiguousarray(result)
        return made

    def commit(self) -> None:
        """Make what was derived inputs of the graph, as weights are."""
        self.graph.input.extend(self.made)


def unpacked(packed: Array, bits: int, n: int) -> Array:
    """Return the first `n` numbers of the last axis of bytes: the lowest bits of a byte are its first number."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    numbers = (packed[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    return numbers.reshape(*packed.shape[:-1], -1)[..., :n]


def _options(node: Any) -> dict[str, int]:
    """Return the attributes of a node, all of which should be integers."""
    for attribute in node.attribute:
        if attribute.type != onnx.AttributeProto.INT:
            kind = onnx.AttributeProto.AttributeType.Name(attribute.type)
            _refuse(node, f"attribute {attribute.name} of {node.op_type} is of type {kind}", "INT")
    return {attribute.name: int(attribute.i) for attribute in node.attribute}


def _refuse(node: Any, found: str, expected: str) -> NoReturn:
    raise InputError(f"{found} (expected {expected})", operator=title_of(node))


def _check_block(node: Any, block: int) -> None:
    if block < _LEAST_BLOCK or block & (block - 1):
        _refuse(
            node, f"block_size of {node.op_type} is {block}", f"a power of two of at least {_LEAST_BLOCK}"
        )


def _check_product(node: Any, store: _Store, extents: tuple[int, int, int, int]) -> None:
    """Refuse a product whose constants do not have the numbers that its attributes state."""
    _, packed, scales, zeros = [*node.input, ""][:4]
    rows, columns, bits, block = extents
    for name, extent in (("K", rows), ("N", columns)):
        if extent < 1:
            _refuse(node, f"{name} of MatMulNBits is {extent}", "at least 1")
    _check_block(node, block)
    blocks = -(-rows // block)
    due = {packed: ("weights", blocks * block * bits // 8), scales: ("scales", blocks)}
    if zeros:
        is_packed = store.kind(zeros) == _T.UINT8
        due[zeros] = ("zero points", -(-blocks * bits // 8) if is_packed else blocks)
    for name, (word, per_column) in due.items():
        if prod(store.shape(name)) != per_column * columns:
            _refuse(
                node,
                f"MatMulNBits reads {prod(store.shape(name))} elements of {word} {name!r}",
                f"{per_column * columns} of K={rows}, N={columns}, bits={bits} and block_size={block}",
            )


def _check_table(node: Any, store: _Store, extents: tuple[int, int, bool]) -> None:
    """Refuse a table whose scales and zero points do not have the extents that its attributes state."""
    data, _, scales, zeros = [*node.input, ""][:4]
    bits, block, is_packed = extents
    _check_block(node, block)
    *outer, width = store.shape(data)
    blocks = -(-(width * 8 // bits if is_packed else width) // block)
    due = {scales: ("scales", (*outer, blocks))}
    if zeros:
        due[zeros] = ("zero points", (*outer, -(-blocks * bits // 8) if is_packed else blocks))
    for name, (word, shape) in due.items():
        if store.shape(name) != shape:
            _refuse(
                node,
                f"GatherBlockQuantized reads {word} {name!r} of shape {list(store.shape(name))}",
                f"{list(shape)} of bits={bits} and block_size={block}",
            )


def _matmul(node: Any, store: _Store) -> list[Any] | None:
    """Write a product with packed weights as one with weights of a number per byte, scaled block by block."""
    a, packed, scales, zeros, groups, bias = [*node.input, "", "", ""][:6]
    options = _options(node)
    bits, block = options.get("bits", 4), options.get("block_size", 0)
    rows, columns = options.get("K", 0), options.get("N", 0)
    constants = [name for name in (packed, scales, zeros) if name]
    is_odd = groups or options.get("weight_prepacked", 0) or bits not in _BITS
    if is_odd or not all(map(store.is_constant, constants)) or store.kind(packed) != _T.UINT8:
        return None
    _check_product(node, store, (rows, columns, bits, block))
    blocks = -(-rows // block)

    def values(array: Array) -> Array:
        numbers = unpacked(array.reshape(columns, blocks, -1), bits, block).reshape(columns, -1)[:, :rows].T
        return numbers if zeros else (numbers.astype(np.int16) - (1 << (bits - 1))).astype(np.int8)

    def levels(array: Array) -> Array:
        if array.dtype != np.uint8:
            return array.reshape(columns, blocks).T
        return unpacked(array.reshape(columns, -1), bits, blocks).T

    stem = node.output[0]
    name = node.name or stem
    inputs = [
        store.derived(packed, f"{columns}x{rows}", values, block, bool(zeros), bits=bits),
        store.derived(scales, f"by_{columns}", lambda array: array.reshape(columns, blocks).T, blocks),
    ]
    if zeros:
        inputs.append(store.derived(zeros, f"zeros_of_{columns}", levels, blocks, bits))
    wide = store.fresh(f"{stem}.weights")
    product = store.fresh(f"{stem}.product") if bias else stem
    make = onnx.helper.make_node
    nodes = [
        make("DequantizeLinear", inputs, [wide], name=f"{name}.weights", axis=0, block_size=block),
        make("MatMul", [a, wide], [product], name=name),
    ]
    if bias:
        nodes.append(make("Add", [product, bias], [stem], name=f"{name}.bias"))
    return nodes


def _gather(node: Any, store: _Store) -> list[Any] | None:
    """Write rows of a quantised table as rows of its numbers and of its scales, and what these stand for."""
    data, places, scales, zeros = [*node.input, ""][:4]
    options = _options(node)
    axis, along = options.get("gather_axis", 0), options.get("quantize_axis", 1)
    bits, block = options.get("bits", 4), options.get("block_size", 128)
    constants = [name for name in (data, scales, zeros) if name]
    is_odd = axis != 0 or bits not in _BITS or not all(map(store.is_constant, constants))
    if is_odd or along not in (-1, len(store.shape(data)) - 1):
        return None
    stem = node.output[0]
    name = node.name or stem
    is_packed = store.kind(data) == _T.UINT8 and "bits" in options and data not in store.weights.bits
    _check_table(node, store, (bits, block, is_packed))
    if is_packed:
        middle = 0 if zeros else 1 << (bits - 1)
        n_blocks = store.shape(scales)[-1]

        def values(array: Array) -> Array:
            numbers = unpacked(array, bits, array.shape[-1] * 8 // bits)
            return numbers if zeros else (numbers.astype(np.int16) - middle).astype(np.int8)

        data = store.derived(data, "values", values, bool(zeros), bits=bits)
        if zeros and bits < 8:
            zeros = store.derived(
                zeros, "zeros", lambda array: unpacked(array, bits, n_blocks), bits, n_blocks
            )
    make = onnx.helper.make_node
    nodes: list[Any] = []
    for word, source in (("values", data), ("scales", scales), ("zeros", zeros)):
        if source:
            made = store.fresh(f"{stem}.{word}")
            nodes.append(make("Gather", [source, places], [made], name=f"{name}.{word}", axis=0))
    inputs = [node.output[0] for node in nodes]
    nodes.append(make("DequantizeLinear", inputs, [stem], name=name, axis=-1, block_size=block))
    return nodes


def _bias(node: Any, store: _Store) -> list[Any] | None:
    """Write what integers of 32 bits stand for as a constant of as many bytes: it is rounded as on the chip."""
    bias, scale, zero = [*node.input, ""][:3]
    axis = next((int(a.i) for a in node.attribute if a.name == "axis"), 1)
    is_plain = all(a.name == "axis" for a in node.attribute) and all(map(store.is_constant, (bias, scale)))
    level = store.values(zero) if zero else None
    is_moved = bool(zero) and (level is None or bool(level.any()))
    if is_moved or not is_plain or store.kind(bias) != _T.INT32 or store.kind(scale) != _T.FLOAT:
        return None
    factor, shape = store.values(scale), store.shape(bias)
    if factor is None or store.values(bias) is None or factor.ndim > 1 or not shape:
        return None
    extents = [-1 if place == axis % len(shape) else 1 for place in range(len(shape))]
    spread = factor.reshape(extents) if factor.size > 1 else factor.reshape(())
    made = store.derived(
        bias, f"times.{scale}", lambda array: array.astype(np.float32) * spread, spread.shape
    )
    return [onnx.helper.make_node("Identity", [made], [node.output[0]], name=node.name)]


_WRITERS: dict[tuple[str, str], Callable[[Any, _Store], list[Any] | None]] = {
    (DOMAIN, "GatherBlockQuantized"): _gather,
    (DOMAIN, "MatMulNBits"): _matmul,
    ("", "DequantizeLinear"): _bias,
}
