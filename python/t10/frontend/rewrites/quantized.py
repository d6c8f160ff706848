"""Quantised operators as what they mean: q stands for (q - zero_point) * scale.

    DequantizeLinear   y = (x - z) * s
    QuantizeLinear     y = saturate(round(x / s) + z), halves to the even neighbour
    QLinearMatMul      y = saturate(round(sum of (a - za) * (b - zb) * (sa * sb / sy)) + z)

Scales and zero points are numbers, rows along an axis, or blocks along it. Integers of 8 and 16 bits are exact in f32,
and so are sums of their products up to 2^24: longer ones are added up in int32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from t10.frontend.read_names import names_read_by
from t10.frontend.rewrites.site import KIND, Rule, Shape, Site

RANGES: dict[int, tuple[int, int]] = {
    KIND.UINT8: (0, 255),
    KIND.INT8: (-128, 127),
    KIND.INT16: (-32768, 32767),
    KIND.UINT16: (0, 65535),
}
"""Least and greatest value of the types that are quantised to."""
_MOVING = frozenset(
    {
        *("Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Transpose"),
        "Unsqueeze",
    }
)
"""Operators that move values of their first input, of whatever type."""
_WORDS = (KIND.INT16, KIND.UINT16)


def _spread(site: Site, name: str, shape: Shape, of: Shape, axis: int, block: int) -> str:
    """Return a scale or zero point in extents that broadcast with a tensor of shape `of`."""
    if prod(shape) == 1:
        return name if not shape else site.reshape(name, ())
    if len(shape) == 1:
        return site.reshape(name, [shape[0] if dim == axis else 1 for dim in range(len(of))])
    if len(shape) != len(of) or not block:
        return name
    blocks = site.reshape(name, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
    wide = site.op("Expand", blocks, site.constant([*shape[: axis + 1], block, *shape[axis + 1 :]], np.int64))
    joined = site.reshape(wide, (*shape[:axis], shape[axis] * block, *shape[axis + 1 :]))
    return site.slice(joined, axis, 0, of[axis]) if shape[axis] * block > of[axis] else joined


def block_of(site: Site, shape: Shape, of: Shape, axis: int) -> int:
    """Return how many elements along an axis have a scale in common, 0 for a scale without blocks."""
    size = int(site.option("block_size", 0))
    return size or (-(-of[axis] // shape[axis]) if len(shape) == len(of) and len(of) > axis else 0)


def axis_of(site: Site, rank: int) -> int:
    """Return the axis that a row of scales belongs to."""
    return int(site.option("axis", 1)) % rank if rank else 0


def _parameter(site: Site, place: int, of: Shape, kind: int) -> str | None:
    """Return an operand that is a scale or zero point, spread and converted; None where its shape is not known."""
    shape = site.shape(place)
    if shape is None:
        return None
    axis = axis_of(site, len(of))
    spread = _spread(site, site.input(place), shape, of, axis, block_of(site, shape, of, axis))
    return spread if site.kind(place) == kind else site.cast(spread, kind)


def _dequantize(site: Site) -> bool:
    shape = site.shape(0)
    # Floats are those that float8 was widened to.
    if (
        shape is None
        or site.kind(0) not in (*RANGES, KIND.INT32, KIND.FLOAT16, KIND.FLOAT)
        or not site.kind(1)
    ):
        return False
    made = int(site.option("output_dtype", 0)) or site.kind(1)
    scale = _parameter(site, 1, shape, KIND.FLOAT)
    zero = _parameter(site, 2, shape, KIND.FLOAT) if site.input(2) else ""
    if scale is None or zero is None:
        return False
    x = site.cast(site.input(0), KIND.FLOAT)
    centred = site.op("Sub", x, zero) if zero else x
    _converted(site, site.op("Mul", centred, scale), made)
    return True


def _quantize(site: Site) -> bool:
    shape = site.shape(0)
    kind = site.kind(2) or int(site.option("output_dtype", 0)) or KIND.UINT8
    if shape is None or kind not in RANGES or site.kind(0) not in (KIND.FLOAT, KIND.FLOAT16, KIND.INT32):
        return False
    if kind in _WORDS and any(site.node.output[0] in names_read_by([each]) for each in _control(site)):
        return False  # once what bodies do is written out, it is known who reads it
    scale = _parameter(site, 1, shape, KIND.FLOAT)
    zero = _parameter(site, 2, shape, KIND.FLOAT) if site.input(2) else ""
    if scale is None or zero is None:
        return False
    x = site.input(0) if site.kind(0) == KIND.FLOAT else site.cast(site.input(0), KIND.FLOAT)
    quotient = site.op("Div", x, scale)
    if KIND.FLOAT16 in (site.kind(0), site.kind(1)) and site.kind(0) == site.kind(1):
        # The quotient is an f16 where both are: it may round to a half that the exact one is not.
        quotient = site.cast(site.cast(quotient, KIND.FLOAT16), KIND.FLOAT)
    _saturated(site, quotient, zero, kind, site.node.output[0])
    return True


def _saturated(site: Site, quotient: str, zero: str, kind: int, output: str) -> None:
    """Write a rounded quotient, moved by a zero point, as an integer of a type that it may be out of the range of."""
    rounded = site.op("Round", quotient)
    moved = site.op("Add", rounded, zero) if zero else rounded
    low, high = RANGES[kind]
    bounded = site.op("Max", moved, site.scalar(low, KIND.FLOAT))
    bounded = site.op("Min", bounded, site.scalar(high, KIND.FLOAT))
    if kind in _WORDS and _is_dequantized(site, output):
        # What nothing else reads need not be narrow.
        site.cast(bounded, KIND.INT32, output=output)
        return
    # A float out of a signed byte's range has no meaning as one: the way there leads over i32.
    site.cast(site.cast(bounded, KIND.INT32), kind, output=output)


def _control(site: Site) -> list[Any]:
    """Return the nodes that have bodies."""
    return [node for node in site.graph.node if node.op_type in ("If", "Loop", "Scan")]


def _is_dequantized(site: Site, name: str) -> bool:
    """Return whether nothing but DequantizeLinear reads a value, as it is or moved; that takes any type.

    It begins with a Cast where it is written out already.
    """
    if any(name == value.name for value in site.graph.output):
        return False
    for node in site.graph.node:
        if name not in node.input or (node.op_type == "DequantizeLinear" and name == node.input[0]):
            continue
        if node.op_type == "Cast" and any(
            each.name == "to" and each.i == KIND.FLOAT for each in node.attribute
        ):
            continue
        moves = node.op_type in _MOVING and name == node.input[0] and list(node.input).count(name) == 1
        if not moves or not all(_is_dequantized(site, each) for each in node.output if each):
            return False
    return True


def _converted(site: Site, value: str, kind: int) -> None:
    if kind == KIND.FLOAT:
        site.give(value)
    else:
        site.cast(value, kind, output=site.node.output[0])


def _dynamic_quantize(site: Site) -> bool:
    """Write scale = (max(0, x) - min(0, x)) / 255, zero point = saturate(round(-min / scale)).

    The scale of zeros alone is 1, as ONNX Runtime has it: ONNX would divide by 0.
    """
    shape = site.shape(0)
    if shape is None:
        return False
    axes = list(range(len(shape)))
    zero, high = site.scalar(0, KIND.FLOAT), site.scalar(255, KIND.FLOAT)
    x = site.input(0)
    least = site.op("Min", site.reduce("ReduceMin", x, axes, keep=False) if axes else x, zero)
    most = site.op("Max", site.reduce("ReduceMax", x, axes, keep=False) if axes else x, zero)
    span = site.op("Sub", most, least)
    is_zero = site.op("Equal", span, zero)
    scale = site.op("Where", is_zero, site.scalar(1, KIND.FLOAT), site.op("Div", span, high))
    level = site.op("Div", site.op("Sub", zero, least), scale)
    bounded = site.op("Min", site.op("Max", site.op("Round", level), zero), high)
    _saturated(site, site.op("Div", x, scale), bounded, KIND.UINT8, site.node.output[0])
    site.give(scale, 1)
    if site.output(2):
        site.cast(site.cast(bounded, KIND.INT32), KIND.UINT8, output=site.output(2))
    return True


@dataclass(frozen=True, slots=True)
class _Factor:
    """An integer operand of a product: places of its values and zero points, and the axis along which those differ."""

    place: int
    zero: int
    axis: int

    def centred(self, site: Site) -> str:
        """Write it as f32, its zero point taken off."""
        x = site.cast(site.input(self.place), KIND.FLOAT)
        if not site.input(self.zero):
            return x
        return site.op("Sub", x, self.spread(site, self.zero))

    def spread(self, site: Site, place: int) -> str:
        """Write a scale or zero point of it as f32, in extents that broadcast with it."""
        shape = site.shape(self.place) or ()
        spread = _spread(site, site.input(place), site.shape(place) or (), shape, self.axis % len(shape), 0)
        return site.cast(spread, KIND.FLOAT)

    def largest(self, site: Site) -> int:
        """Return the largest magnitude that it may have without its zero point."""
        low, high = RANGES[site.kind(self.place)]
        zero = site.constant_input(self.zero) if site.input(self.zero) else np.zeros(1)
        if zero is None:
            return high - low
        return max(high - int(zero.min()), int(zero.max()) - low)


_EXACT = 2**24
"""Integers up to here are exact in f32, and so are their sums and products."""


def _sum_of(site: Site, products: Sequence[str]) -> str:
    """Write the sum of exact products in f32 as int32."""
    made = site.cast(products[0], KIND.INT32)
    for product in products[1:]:
        made = site.op("Add", made, site.cast(product, KIND.INT32))
    return made


def _exact_terms(site: Site, x: _Factor, y: _Factor) -> int:
    """Return how many products of two operands may be added up in f32 without rounding."""
    return _EXACT // (x.largest(site) * y.largest(site))


def _cuts(n: int, most: int) -> list[tuple[int, int]]:
    return [(first, min(first + most, n)) for first in range(0, n, most)]


def _integer_matmul(site: Site, x: _Factor, y: _Factor) -> str | None:
    """Write the matrix product of integers as int32, in parts whose sums f32 holds."""
    of_x, of_y = site.shape(x.place), site.shape(y.place)
    if not of_x or not of_y or site.kind(x.place) not in RANGES or site.kind(y.place) not in RANGES:
        return None
    most = _exact_terms(site, x, y)
    if most == 0:
        return None
    a, b, cuts = x.centred(site), y.centred(site), _cuts(of_x[-1], most)
    if len(cuts) == 1:
        return _sum_of(site, [site.op("MatMul", a, b)])
    rows = max(len(of_y) - 2, 0)
    parts = [(site.slice(a, len(of_x) - 1, *cut), site.slice(b, rows, *cut)) for cut in cuts]
    return _sum_of(site, [site.op("MatMul", *part) for part in parts])


def _integer_conv(site: Site, x: _Factor, w: _Factor) -> str | None:
    """Write the convolution of integers as int32, in parts of its channels whose sums f32 holds."""
    of_x, of_w = site.shape(x.place), site.shape(w.place)
    if not of_x or not of_w or site.kind(x.place) not in RANGES or site.kind(w.place) not in RANGES:
        return None
    channels, window = of_w[1], prod(of_w[2:])
    most = _exact_terms(site, x, w) // window
    cuts = _cuts(channels, max(most, 1))
    if most == 0 or (len(cuts) > 1 and int(site.option("group", 1)) != 1):
        return None
    a, b, options = x.centred(site), w.centred(site), _window(site)
    if len(cuts) == 1:
        return _sum_of(site, [site.op("Conv", a, b, **options)])
    parts = [(site.slice(a, 1, *cut), site.slice(b, 1, *cut)) for cut in cuts]
    return _sum_of(site, [site.op("Conv", *part, **options) for part in parts])


def _rescaled(site: Site, total: str, scales: tuple[str, str], made: tuple[int, int]) -> bool:
    """Write an integer sum as the quantised result: times the quotient of the scales, rounded once."""
    kind = site.kind(made[1])
    if kind not in RANGES:
        return False
    scale = site.cast(_single(site, made[0]), KIND.FLOAT)
    factor = site.op("Div", site.op("Mul", *scales), scale)
    zero = site.cast(_single(site, made[1]), KIND.FLOAT)
    moved = site.op("Mul", site.cast(total, KIND.FLOAT), factor)
    _saturated(site, moved, zero, kind, site.node.output[0])
    return True


def _qlinear_matmul(site: Site) -> bool:
    x, y = _Factor(0, 2, -2 if len(site.shape(0) or ()) > 1 else -1), _Factor(3, 5, -1)
    total = _integer_matmul(site, x, y)
    if total is None:
        return False
    return _rescaled(site, total, (x.spread(site, 1), y.spread(site, 4)), (6, 7))


def _single(site: Site, place: int) -> str:
    shape = site.shape(place) or ()
    return site.reshape(site.input(place), ()) if prod(shape) == 1 and shape else site.input(place)


def _qlinear_conv(site: Site) -> bool:
    x, w = _Factor(0, 2, 0), _Factor(3, 5, 0)
    total = _integer_conv(site, x, w)
    if total is None:
        return False
    channels = [-1] + [1] * (len(site.shape(0) or ()) - 2)
    if site.input(8):
        total = site.op("Add", total, site.reshape(site.input(8), channels))
    of_weights = site.cast(site.reshape(site.input(4), channels), KIND.FLOAT)
    return _rescaled(site, total, (site.cast(_single(site, 1), KIND.FLOAT), of_weights), (6, 7))


def _window(site: Site) -> dict[str, Any]:
    names = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    return {name: site.option(name, None) for name in names}


def _matmul_integer(site: Site) -> bool:
    total = _integer_matmul(
        site, _Factor(0, 2, -2 if len(site.shape(0) or ()) > 1 else -1), _Factor(1, 3, -1)
    )
    if total is not None:
        site.give(total)
    return total is not None


def _conv_integer(site: Site) -> bool:
    total = _integer_conv(site, _Factor(0, 2, 0), _Factor(1, 3, 0))
    if total is not None:
        site.give(total)
    return total is not None


RULES: dict[str, Rule] = {
    "ConvInteger": _conv_integer,
    "DequantizeLinear": _dequantize,
    "DynamicQuantizeLinear": _dynamic_quantize,
    "MatMulInteger": _matmul_integer,
    "QLinearConv": _qlinear_conv,
    "QLinearMatMul": _qlinear_matmul,
    "QuantizeLinear": _quantize,
}
