"""`onnx.Im2Col` of onnx-mlir: with the MatMul or Gemm that reads its columns a convolution again, otherwise computed.

onnx-mlir writes a convolution as columns and a product, its batch taken away where it is 1:

```
%c = Im2Col(%x)        : (1, C, H, W)      -> (1, C·KH·KW, OH·OW)      %y = Conv(%x, %w, %bias)
%r = Reshape(%c)       : (1, K, P)         -> (K, P)                =>
%m = Gemm(%w, %r, %b)  : (M, K) (K, P)     -> (M, P)
%y = Reshape(%m)       : (M, P)            -> (1, M, OH, OW)
```

Planned as it stands, the columns would lie in memory, KH·KW times the size of `%x`. Row `(c·KH + kh)·KW + kw` of the
columns, column `oh·OW + ow`, holds `x[c, oh·stride + kh·dilation - pad, ow·stride + kw·dilation - pad]`, 0 outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from t10.frontend.functions import expand_functions
from t10.frontend.protobuf_fields import replace_all
from t10.frontend.shapes import infer_shapes
from t10.frontend.unsupported import LOCATION_KEY

OPERATOR = "Im2Col"
DOMAIN = "onnx-mlir"
_ATTRIBUTES = ("kernel_shape", "strides", "dilations", "pads")
_END = 2**63 - 1
_MOST_KNOWN = 64
"""Most elements of a constant that shapes may be computed from."""

Shape = tuple[int, ...]


def define_columns(model: Any, opset: int) -> None:
    """Add to a model, in place, functions that compute its Im2Cols, one for each set of attributes."""
    names: dict[tuple[Shape, ...], str] = {}
    waiting = [model.graph.node]
    while waiting:
        for node in waiting.pop():
            waiting.extend(a.g.node for a in node.attribute if a.HasField("g"))
            if (node.domain, node.op_type) != (DOMAIN, OPERATOR):
                continue
            key = tuple(_window(node).values())
            if key not in names:
                names[key] = f"{OPERATOR}_{len(names)}"
                model.functions.append(_function(names[key], key, opset))
            node.op_type = names[key]


def _window(node: Any) -> dict[str, Shape]:
    found = {a.name: tuple(a.ints) for a in node.attribute}
    return {name: found.get(name, ()) for name in _ATTRIBUTES}


def _function(name: str, window: tuple[Shape, ...], opset: int) -> Any:
    """Return the function: padded, a slice per place of the kernel along each axis, side by side, then flattened."""
    kernel, strides, dilations, pads = window
    nodes: list[Any] = []
    rank = len(kernel)

    def constant(values: Sequence[int]) -> str:
        made = f"constant{len(nodes)}"
        tensor = numpy_helper.from_array(np.array(values, np.int64))
        nodes.append(helper.make_node("Constant", [], [made], domain="", value=tensor))
        return made

    def add(operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        made = output or f"value{len(nodes)}"
        nodes.append(helper.make_node(operator, list(inputs), [made], domain="", **attributes))
        return made

    x = "x"
    if any(pads):
        x = add("Pad", x, constant([0, 0, *pads[:rank], 0, 0, *pads[rank:]]))
    for i in range(rank):
        axis, reach = 2 + 2 * i, (kernel[i] - 1) * dilations[i]
        parts: list[str] = []
        for start in range(0, reach + 1, dilations[i]):
            bounds = ([start], [start - reach or _END], [axis], [strides[i]])
            part = add("Slice", x, *map(constant, bounds))
            parts.append(add("Unsqueeze", part, constant([2 + i])))
        x = add("Concat", *parts, axis=2 + i)
    channels = add("Shape", "x", start=1, end=2)
    rows = add("Mul", channels, constant([prod(kernel)]))
    shape = add("Concat", constant([0]), rows, constant([-1]), axis=0)
    add("Reshape", x, shape, output="columns")
    return helper.make_function(
        DOMAIN, name, ["x"], ["columns"], nodes, [helper.make_opsetid("", opset)], list(_ATTRIBUTES)
    )


def use_convolutions(model: Any, source: str) -> None:
    """Write, in place, every product with columns as a convolution; other Im2Cols are left to their functions.

    Raises `InputError` where shapes do not fit together.
    """
    functions = {f.name: f for f in model.functions if f.domain == DOMAIN and f.name.startswith(OPERATOR)}
    by_value = {
        node.output[0]: node
        for node in model.graph.node
        if node.domain == DOMAIN and _is_ours(node, functions.get(node.op_type))
    }
    if not by_value:
        return
    graph = _Graph(model, _shapes(model, source))
    unread = _unread(model.graph)
    written: list[Any] = []
    for node in model.graph.node:
        if node.output and node.output[0] in graph.replaced:
            continue
        made = graph.convolution(node, by_value) if node.op_type in ("MatMul", "Gemm") else None
        written += [node] if made is None else made
    replace_all(model.graph.node, written)
    gone = _unread(model.graph) - unread
    replace_all(model.graph.node, [node for node in model.graph.node if gone.isdisjoint(node.output)])


def _is_ours(node: Any, function: Any) -> bool:
    """Return whether a function is the one that `define_columns` makes for a node: any file may have a namesake."""
    if function is None or not function.opset_import:
        return False
    window = tuple(_window(node).values())
    rank = len(window[0])
    if not rank or [len(values) for values in window] != [rank, rank, rank, 2 * rank]:
        return False
    return bool(function == _function(function.name, window, function.opset_import[0].version))


@dataclass(frozen=True, slots=True)
class _Product:
    """A product with columns: `weight` times the columns that `columns` makes, plus `bias`, given as `output`."""

    columns: Any
    weight: str
    bias: str
    output: str


class _Graph:
    """The nodes of a graph by what they make and read, and the static shapes of its values."""

    def __init__(self, model: Any, shapes: dict[str, Shape]) -> None:
        graph = model.graph
        self.graph = graph
        self.maker = {name: node for node in graph.node for name in node.output if name}
        self.constants = {tensor.name: tensor for tensor in graph.initializer}
        self.shapes = shapes
        self.readers: dict[str, list[Any]] = {}
        for node in graph.node:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)
        self.read_elsewhere = {value.name for value in graph.output} | _names_in_bodies(graph)
        self.replaced: set[str] = set()
        self.n_made = 0

    def convolution(self, node: Any, columns: dict[str, Any]) -> list[Any] | None:
        """Return the nodes in place of a product with columns; None if `node` is no such product."""
        product = self._product(node, columns)
        if product is None:
            return None
        image, window = self.shapes.get(product.columns.input[0]), _window(product.columns)
        weight, made = self.shapes.get(product.weight), self.shapes.get(product.output)
        if image is None or weight is None or made is None:
            return None
        out = _extents(image[2:], window)
        if len(weight) != 2 or weight[1] != image[1] * prod(window["kernel_shape"]):
            return None
        shape = (image[0], weight[0], *out)
        if prod(shape) != prod(made) or made[-1] != prod(out):
            return None
        bias, last = self._bias(product)
        nodes: list[Any] = []
        kernel = self._kernel(product.weight, (weight[0], image[1], *window["kernel_shape"]), nodes)
        inputs = [product.columns.input[0], kernel]
        if bias:
            inputs.append(self._reshaped(bias, (weight[0],), nodes))
        result = self._shaped(last, shape)
        output = result or self._fresh(last)
        options: dict[str, Any] = {name: list(values) for name, values in window.items()}
        nodes.append(helper.make_node("Conv", inputs, [output], name=node.name, **options))
        if not result:
            target = self._constant(self.shapes.get(last, made))
            nodes.append(helper.make_node("Reshape", [output, target], [last], name=node.name))
        for each in nodes:
            each.metadata_props.extend(entry for entry in node.metadata_props if entry.key == LOCATION_KEY)
        return nodes

    def _product(self, node: Any, columns: dict[str, Any]) -> _Product | None:
        """Return what a MatMul or Gemm multiplies, None where its second operand holds no columns."""
        found = columns.get(node.input[1])
        reshaped = self.maker.get(node.input[1])
        if found is None and reshaped is not None and reshaped.op_type == "Reshape":
            found = columns.get(reshaped.input[0])
            image = None if found is None else self.shapes.get(found.input[0])
            flat = self.shapes.get(node.input[1])
            if image is None or flat is None or image[0] != 1 or len(flat) != 2:
                return None
            if flat[0] != image[1] * prod(_window(found)["kernel_shape"]):
                return None
        if found is None:
            return None
        options = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        if options.get("transA", 0) or options.get("transB", 0) or options.get("alpha", 1) != 1:
            return None
        bias = node.input[2] if node.op_type == "Gemm" and len(node.input) > 2 else ""
        if bias and (options.get("beta", 1) != 1 or not self._is_per_row(bias, node.output[0])):
            return None
        return _Product(found, node.input[0], bias, node.output[0])

    def _is_per_row(self, bias: str, product: str) -> bool:
        """Return whether a value adds one number to each row of a product: `(M, 1)`, or with more dims of extent 1."""
        shape, made = self.shapes.get(bias), self.shapes.get(product)
        if shape is None or made is None or len(shape) < 2 or len(shape) > len(made):
            return False
        return shape[-2:] == (made[-2], 1) and prod(shape[:-2]) == 1

    def _bias(self, product: _Product) -> tuple[str, str]:
        """Return the bias of a product and the value behind it; that may be added by an Add of its own."""
        if product.bias:
            return product.bias, product.output
        readers = self._only_reader(product.output)
        if readers is None or readers.op_type != "Add":
            return "", product.output
        other = readers.input[1] if readers.input[0] == product.output else readers.input[0]
        is_bias = other != product.output and self._is_per_row(other, product.output)
        if not is_bias or other not in {*self.constants, *(value.name for value in self.graph.input)}:
            return "", product.output
        self.replaced.add(readers.output[0])
        return other, readers.output[0]

    def _shaped(self, value: str, shape: Shape) -> str:
        """Return the value that the only reader makes of `value` by giving it `shape`; empty if there is none."""
        reader = self._only_reader(value)
        if reader is None or reader.op_type != "Reshape" or reader.input[0] != value:
            return ""
        if self.shapes.get(reader.output[0]) != shape:
            return ""
        self.replaced.add(reader.output[0])
        return str(reader.output[0])

    def _only_reader(self, value: str) -> Any:
        readers = self.readers.get(value, [])
        return readers[0] if len(readers) == 1 and value not in self.read_elsewhere else None

    def _kernel(self, weight: str, shape: Shape, nodes: list[Any]) -> str:
        """Return the weight with the dims of a kernel: as it was before a Reshape, or reshaped."""
        maker = self.maker.get(weight)
        if maker is not None and maker.op_type == "Reshape" and self.shapes.get(maker.input[0]) == shape:
            return str(maker.input[0])
        return self._reshaped(weight, shape, nodes)

    def _reshaped(self, value: str, shape: Shape, nodes: list[Any]) -> str:
        """Return a value in another shape: a constant that nothing else reads is written so."""
        tensor = self.constants.get(value)
        if tensor is not None and self._only_reader(value) is not None:
            replace_all(tensor.dims, shape)
            self.shapes[value] = shape
            return value
        made = self._fresh(value)
        nodes.append(helper.make_node("Reshape", [value, self._constant(shape)], [made], name=made))
        return made

    def _constant(self, values: Sequence[int]) -> str:
        name = self._fresh("t10.im2col")
        self.graph.initializer.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def _fresh(self, stem: str) -> str:
        self.n_made += 1
        return f"{stem}.conv{self.n_made}"


def _extents(spatial: Shape, window: dict[str, Shape]) -> Shape:
    """Return the extents of what a window makes of an image."""
    rank = len(spatial)
    rows = zip(
        spatial,
        window["kernel_shape"],
        window["strides"],
        window["dilations"],
        window["pads"][:rank],
        window["pads"][rank:],
        strict=True,
    )
    return tuple((n + low + high - (k - 1) * d - 1) // s + 1 for n, k, s, d, low, high in rows)


def _shapes(model: Any, source: str) -> dict[str, Shape]:
    """Return the static shapes of a model's values; weights are looked at as inputs, so that no data is copied."""
    bare = onnx.ModelProto(ir_version=model.ir_version)
    bare.opset_import.extend(model.opset_import)
    bare.functions.extend(model.functions)
    bare.graph.name = model.graph.name
    bare.graph.node.extend(model.graph.node)
    bare.graph.input.extend(model.graph.input)
    bare.graph.output.extend(model.graph.output)
    for tensor in model.graph.initializer:
        if prod(tensor.dims) <= _MOST_KNOWN:
            bare.graph.initializer.append(tensor)
        else:
            info = helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
            bare.graph.input.append(info)
    graph = infer_shapes(expand_functions(bare, frozenset()), source).graph
    shapes: dict[str, Shape] = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        kind = value.type.tensor_type
        if kind.HasField("shape") and all(dim.HasField("dim_value") for dim in kind.shape.dim):
            shapes[value.name] = tuple(dim.dim_value for dim in kind.shape.dim)
    return shapes


def _names_in_bodies(graph: Any) -> set[str]:
    """Return the names that bodies of control flow read."""
    found: set[str] = set()
    waiting = [a.g for node in graph.node for a in node.attribute if a.HasField("g")]
    while waiting:
        body = waiting.pop()
        found |= {value.name for value in body.output}
        for node in body.node:
            found.update(node.input)
            waiting.extend(a.g for a in node.attribute if a.HasField("g"))
    return found


def _unread(graph: Any) -> set[str]:
    """Return the values made by nodes of which no output of the graph depends."""
    read = {value.name for value in graph.output} | _names_in_bodies(graph)
    unread: set[str] = set()
    for node in reversed(graph.node):
        if read.isdisjoint(node.output):
            unread.update(node.output)
        else:
            read.update(node.input)
    return unread
