"""Conversions to types of few bits, written with operators on wider ones.

    float8, float4     x rounded to the nearest value that the type has, ties to even; beyond its largest that, or NaN
    int4, int2, ...    x cut off to an integer, of which the lowest bits count

Rounding to few bits of a mantissa is Veltkamp's: in f32, `g = x * (2^s + 1)`, then `(x - g) + g` has `24 - s` bits. A
product of so few bits is exact where x lies halfway, so that ties go to the even neighbour. Below the least normal
number, where all numbers are as far apart, it is `(x + m) - m`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from t10.errors import UnsupportedOpError

_T = onnx.TensorProto
_BITS_OF_F32 = 24


@dataclass(frozen=True, slots=True)
class Float:
    """A type of floating point: bits behind the point, exponent of the least normal number, the largest.

    `is_unsigned_zero` says that it has no -0, `beyond` what is made of larger numbers unless they saturate.
    """

    n_bits: int
    least_exponent: int
    largest: float
    beyond: float
    is_unsigned_zero: bool = False

    @property
    def next(self) -> float:
        """Return the number that would follow the largest."""
        return self.largest + float(2.0 ** (np.floor(np.log2(self.largest)) - self.n_bits))


_FLOATS = {
    "FLOAT4E2M1": Float(1, 0, 6.0, 6.0),
    "FLOAT8E4M3FN": Float(3, -6, 448.0, np.nan),
    "FLOAT8E4M3FNUZ": Float(3, -7, 240.0, np.nan, is_unsigned_zero=True),
    "FLOAT8E5M2": Float(2, -14, 57344.0, np.inf),
    "FLOAT8E5M2FNUZ": Float(2, -15, 57344.0, np.nan, is_unsigned_zero=True),
}
_INTEGERS = {"INT2": (-2, 1), "INT4": (-8, 7), "UINT2": (0, 3), "UINT4": (0, 15)}
FLOATS: dict[int, Float] = {number: _FLOATS[name] for name, number in _T.DataType.items() if name in _FLOATS}
INTEGERS: dict[int, tuple[int, int]] = {
    number: _INTEGERS[name] for name, number in _T.DataType.items() if name in _INTEGERS
}
"""Least and greatest values of integers of few bits."""


@dataclass(slots=True)
class Writer:
    """Writes what takes the place of a node; `kinds` and `shapes` are those of all values."""

    node: Any
    kinds: dict[str, int]
    shapes: dict[str, Any]
    nodes: list[Any] = field(default_factory=list[Any])

    def cast(self, kind: int, wider: int, *, saturate: bool) -> list[Any]:
        """Return the nodes of a conversion to a type of few bits, kept in a wider one."""
        source = self.node.input[0]
        self._check(kind)
        if kind in INTEGERS:
            self._op("Cast", self._wrapped(source, *INTEGERS[kind]), output=self.node.output[0], to=wider)
        else:
            x = source if self.kinds.get(source) == _T.FLOAT else self._op("Cast", source, to=_T.FLOAT)
            self._give_rounded(x, FLOATS[kind], wider, saturate=saturate)
        return self.nodes

    def quantized(self, kind: int, wider: int) -> list[Any]:
        """Return the nodes of a QuantizeLinear to a type of few bits."""
        node = self.node
        self._check(kind)
        if kind in INTEGERS:
            low, high = (self._number(value, wider) for value in INTEGERS[kind])
            made = type(node)()
            made.CopyFrom(node)
            made.output[0] = f"{node.output[0]}.byte"
            for attribute in made.attribute:
                if attribute.name == "output_dtype":
                    attribute.i = wider
            self.nodes.append(made)
            self._op("Min", self._op("Max", made.output[0], low), high, output=node.output[0])
            return self.nodes
        options = {attribute.name: attribute.i for attribute in node.attribute}
        x, scale = node.input[0], node.input[1]
        of_scale = self.kinds.get(scale) or _T.FLOAT
        if self.kinds.get(x) != of_scale:
            x = self._op("Cast", x, to=of_scale)
        quotient = self._op("Div", x, self._spread(scale, options.get("axis", 1)))
        if of_scale != _T.FLOAT:
            quotient = self._op("Cast", quotient, to=_T.FLOAT)
        self._give_rounded(quotient, FLOATS[kind], wider, saturate=bool(options.get("saturate", 1)))
        return self.nodes

    def _check(self, kind: int) -> None:
        """Raise `UnsupportedOpError` for a type that is read but not made."""
        if kind not in FLOATS and kind not in INTEGERS:
            name = _T.DataType.Name(kind).lower()
            raise UnsupportedOpError(
                f"{self.node.op_type} makes {self.node.output[0]!r} of {name} (expected another float8)",
                operator=self.node.name or self.node.output[0],
                hint="values of this type are read only: make them before the export",
            )

    def _spread(self, scale: str, axis: int) -> str:
        """Return a scale in extents that broadcast with what it scales: one, or a row along an axis."""
        of_scale, of_x = self.shapes.get(scale), self.shapes.get(self.node.input[0])
        n_dims = len(of_scale.dim) if of_scale is not None else 1
        if n_dims == 0 or (n_dims == 1 and of_scale is not None and of_scale.dim[0].dim_value == 1):
            return scale
        if n_dims > 1 or of_x is None or not of_x.dim:
            raise UnsupportedOpError(
                f"QuantizeLinear makes {self.node.output[0]!r} of float8 in blocks (expected a scale or a row of them)",
                operator=self.node.name or self.node.output[0],
                hint="quantise with one scale per tensor or axis",
            )
        behind = len(of_x.dim) - 1 - axis % len(of_x.dim)
        shape = self._constant(np.array([-1, *([1] * behind)], np.int64))
        return self._op("Reshape", scale, shape)

    def _give_rounded(self, x: str, to: Float, wider: int, *, saturate: bool) -> None:
        """Write f32 as the nearest values of a type, kept in a wider one, as the output of the node."""
        limit = to.largest if saturate else to.next
        near = self._between(x, limit, limit)
        rounded = self._rounded(near, to)
        if not saturate and to.beyond != to.largest:
            rounded = self._between(rounded, to.largest, to.beyond)
        if np.isfinite(to.beyond):  # the type has no NaN
            rounded = self._op("Where", self._op("IsNaN", x), self._number(0), rounded)
        self._op("Cast", rounded, output=self.node.output[0], to=wider)

    def _between(self, x: str, largest: float, beyond: float) -> str:
        """Write numbers beyond the largest as another; NaN stays."""
        low, high = self._number(-largest), self._number(largest)
        x = self._op("Where", self._op("Greater", x, high), self._number(beyond), x)
        return self._op("Where", self._op("Less", x, low), self._number(-beyond), x)

    def _rounded(self, x: str, to: Float) -> str:
        least = 2.0**to.least_exponent
        scaled = self._op("Mul", x, self._number(2.0 ** (_BITS_OF_F32 - 1 - to.n_bits) + 1))
        normal = self._op("Add", self._op("Sub", x, scaled), scaled)
        magic = self._number(1.5 * 2.0 ** (_BITS_OF_F32 - 1 - to.n_bits) * least)
        small = self._op("Sub", self._op("Add", x, magic), magic)
        is_small = self._op("Less", self._op("Abs", x), self._number(least))
        rounded = self._op("Where", is_small, small, normal)
        if to.is_unsigned_zero:
            return rounded
        zero = self._op("Mul", x, self._number(0))
        return self._op("Where", self._op("Equal", rounded, self._number(0)), zero, rounded)

    def _wrapped(self, x: str, low: int, high: int) -> str:
        """Write numbers as integers of which the lowest bits count: int4 has -8 for 8."""
        whole = self._op("Cast", x, to=_T.INT32)
        moved = self._op("Sub", whole, self._number(low, _T.INT32)) if low else whole
        bits = self._op("Mod", moved, self._number(high - low + 1, _T.INT32))
        return self._op("Add", bits, self._number(low, _T.INT32)) if low else bits

    def _op(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        name = output or f"{self.node.output[0]}.{operator.lower()}.{len(self.nodes)}"
        title = self.node.name or self.node.output[0]
        made = onnx.helper.make_node(
            operator, list(inputs), [name], name=f"{title}.{operator.lower()}", **attributes
        )
        made.metadata_props.extend(self.node.metadata_props)
        self.nodes.append(made)
        return name

    def _number(self, value: float, kind: int = _T.FLOAT) -> str:
        return self._constant(np.array(value, onnx.helper.tensor_dtype_to_np_dtype(kind)))

    def _constant(self, values: Any) -> str:
        return self._op("Constant", value=numpy_helper.from_array(values, "value"))
