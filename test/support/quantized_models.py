"""Small quantised networks: residual convolutions and a transformer block, as QDQ pairs or with QLinear operators.

    Kind("uint8", "int8", per_channel=True)       activations of uint8, weights of int8, a scale per output channel

With `is_exact` all scales are powers of two: then sums of products are exact in f32 whatever their order, and every
implementation must agree bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[Any]
OPSET, IR_VERSION = 18, 9


@dataclass(frozen=True, slots=True)
class Kind:
    """Integer types of activations and weights, and whether weights have a scale per output channel."""

    activations: str
    weights: str
    per_channel: bool
    is_exact: bool = True

    def __str__(self) -> str:
        """Return a name for a test."""
        parts = (self.activations, self.weights, "channel" if self.per_channel else "tensor")
        return "-".join((*parts, *(() if self.is_exact else ("rounded",))))


KINDS = (
    Kind("uint8", "uint8", per_channel=False),
    Kind("uint8", "int8", per_channel=True),
    Kind("int8", "int8", per_channel=False),
    Kind("int8", "int8", per_channel=True, is_exact=False),
    Kind("uint8", "int8", per_channel=False, is_exact=False),
)


@dataclass(slots=True)
class Network:
    """A model in the making. A quantised value is the name of its integers; `scales` knows what they stand for."""

    kind: Kind
    with_operators: bool
    random: np.random.Generator
    nodes: list[Any] = field(default_factory=list[Any])
    constants: dict[str, Array] = field(default_factory=dict[str, Array])
    parameters: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])

    def op(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node of one output; return its name."""
        output = f"{operator.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [output], name=output, **attributes))
        return output

    def constant(self, value: Any, dtype: Any) -> str:
        """Add a constant; return its name."""
        name = f"constant{len(self.constants)}"
        self.constants[name] = np.asarray(value, dtype)
        return name

    def quantum(self, log2: int) -> float:
        """Return a scale near a power of two."""
        return float(2.0**log2 * (1 if self.kind.is_exact else self.random.uniform(0.8, 1.2)))

    def scale_and_zero(self, log2: int) -> tuple[str, str]:
        """Return constants for a quantised activation."""
        zero = (
            int(self.random.integers(100, 150))
            if self.kind.activations == "uint8"
            else int(self.random.integers(-20, 20))
        )
        return self.constant(self.quantum(log2), np.float32), self.constant(zero, self.kind.activations)

    def quantize(self, x: str, log2: int) -> str:
        """Add the integers that stand for a float."""
        scale, zero = self.scale_and_zero(log2)
        made = self.op("QuantizeLinear", x, scale, zero)
        self.parameters[made] = scale, zero
        return made

    def float(self, q: str) -> str:
        """Add the float that integers stand for."""
        return self.op("DequantizeLinear", q, *self.parameters[q])

    def weight(self, *shape: int, axis: int, log2: int) -> tuple[str, str, str]:
        """Add a weight, its scale and its zero point."""
        limits = np.iinfo(self.kind.weights)
        values = self.random.integers(limits.min, limits.max, shape, self.kind.weights, endpoint=True)
        n = shape[axis] if self.kind.per_channel else 0
        steps = [self.quantum(log2 - i % 2) for i in range(max(n, 1))]
        zero = 128 if self.kind.weights == "uint8" else 0
        return (
            self.constant(values, self.kind.weights),
            self.constant(steps if n else steps[0], np.float32),
            self.constant([zero] * n if n else zero, self.kind.weights),
        )

    def product(self, x: str, log2: int, operator: str, shape: tuple[int, ...], **attributes: Any) -> str:
        """Add a convolution or matrix product of a quantised value with a weight; return its quantised result."""
        axis = 0 if operator == "Conv" else 1
        weight = self.weight(*shape, axis=axis, log2=-6)
        bias = self.random.integers(-900, 900, shape[0]).astype(np.int32) if operator == "Conv" else None
        scale, zero = self.scale_and_zero(log2)
        if self.with_operators:
            extra = [] if bias is None else [self.constant(bias, np.int32)]
            given = (x, *self.parameters[x], *weight, scale, zero, *extra)
            made = self.op(f"QLinear{operator}", *given, **attributes)
        else:
            dense = self.op("DequantizeLinear", *weight, **({"axis": axis} if self.kind.per_channel else {}))
            made = self.op(operator, self.float(x), dense, **attributes)
            if bias is not None:
                steps = self.constants[self.parameters[x][0]] * self.constants[weight[1]]
                of_bias = self.constant((bias * steps).reshape(-1, 1, 1), np.float32)
                made = self.op("Add", made, of_bias)
            made = self.op("QuantizeLinear", made, scale, zero)
        self.parameters[made] = scale, zero
        return made

    def product_of(self, x: str, y: str, log2: int) -> str:
        """Add the matrix product of two quantised values; return its quantised result."""
        scale, zero = self.scale_and_zero(log2)
        if self.with_operators:
            made = self.op("QLinearMatMul", x, *self.parameters[x], y, *self.parameters[y], scale, zero)
        else:
            made = self.op("QuantizeLinear", self.op("MatMul", self.float(x), self.float(y)), scale, zero)
        self.parameters[made] = scale, zero
        return made

    def model(self, shape: tuple[int, ...], outputs: dict[str, tuple[int, ...]]) -> Any:
        """Return the model of a float input `x`; `outputs` are quantised values and their shapes."""
        element = helper.np_dtype_to_tensor_dtype(np.dtype(self.kind.activations))
        graph = helper.make_graph(
            self.nodes,
            "network",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(name, element, extents) for name, extents in outputs.items()],
            [numpy_helper.from_array(value, name) for name, value in self.constants.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


IMAGE = (1, 3, 8, 8)


def residual_network(kind: Kind, *, with_operators: bool) -> Any:
    """Return a stem, a residual block, a pool of integers, an average and a classifier."""
    n = Network(kind, with_operators, np.random.default_rng(1))
    same = {"pads": [1, 1, 1, 1]}
    stem = n.product(n.quantize("x", -5), 0, "Conv", (8, 3, 3, 3), **same)
    inner = n.quantize(n.op("Relu", n.float(n.product(stem, 2, "Conv", (8, 8, 3, 3), **same))), 2)
    outer = n.product(inner, 4, "Conv", (8, 8, 3, 3), **same)
    summed = n.quantize(n.op("Relu", n.op("Add", n.float(outer), n.float(stem))), 4)
    pooled = n.op("MaxPool", summed, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    n.parameters[pooled] = n.parameters[summed]
    mean = n.op("Flatten", n.op("GlobalAveragePool", n.float(pooled)))
    classes = n.product(n.quantize(mean, 3), 6, "MatMul", (8, 10))
    return n.model(IMAGE, {inner: (1, 8, 8, 8), pooled: (1, 8, 4, 4), classes: (1, 10)})


TOKENS, WIDTH = 6, 16


def transformer_block(kind: Kind, *, with_operators: bool) -> Any:
    """Return attention of one head, a residual sum, a normalization and a feed-forward layer."""
    n = Network(kind, with_operators, np.random.default_rng(2))
    x = n.quantize("x", -5)
    query, key, value = (n.product(x, -3, "MatMul", (WIDTH, WIDTH)) for _ in range(3))
    turned = n.op("Transpose", key, perm=[1, 0])
    n.parameters[turned] = n.parameters[key]
    scores = n.product_of(query, turned, 0)
    chosen = n.quantize(n.op("Softmax", n.float(scores), axis=-1), -8)
    attended = n.product(n.product_of(chosen, value, -3), -1, "MatMul", (WIDTH, WIDTH))
    summed = n.op("Add", n.float(attended), n.float(x))
    scale, shift = n.constant(np.ones(WIDTH), np.float32), n.constant(np.zeros(WIDTH), np.float32)
    normal = n.quantize(n.op("LayerNormalization", summed, scale, shift), -5)
    wide = n.float(n.product(normal, -2, "MatMul", (WIDTH, 2 * WIDTH)))
    erf = n.op("Erf", n.op("Mul", wide, n.constant(0.5**0.5, np.float32)))
    gelu = n.op("Mul", wide, n.op("Add", erf, n.constant(1, np.float32)))
    made = n.product(n.quantize(gelu, -1), 1, "MatMul", (2 * WIDTH, WIDTH))
    return n.model((TOKENS, WIDTH), {query: (TOKENS, WIDTH), scores: (TOKENS, TOKENS), made: (TOKENS, WIDTH)})
