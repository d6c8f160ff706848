"""Quantised operators as what they mean: q stands for (q - zero_point) * scale.

    DequantizeLinear   y = (x - z) * s
    QuantizeLinear     y = saturate(round(x / s) + z), halves to the even neighbour
    QLinearMatMul      dequantise, multiply in f32, quantise

Scales and zero points are numbers, rows along an axis, or blocks along it. Integers of 8 and 16 bits are exact in f32.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from t10.frontend.rewrites.site import KIND, Rule, Shape, Site

RANGES: dict[int, tuple[int, int]] = {
    KIND.UINT8: (0, 255),
    KIND.INT8: (-128, 127),
    KIND.INT16: (-32768, 32767),
    KIND.UINT16: (0, 65535),
}
"""Least and greatest value of the types that are quantised to."""


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


def _block(site: Site, shape: Shape, of: Shape, axis: int) -> int:
    size = int(site.option("block_size", 0))
    return size or (-(-of[axis] // shape[axis]) if len(shape) == len(of) and len(of) > axis else 0)


def _axis(site: Site, rank: int) -> int:
    return int(site.option("axis", 1)) % rank if rank else 0


def _parameter(site: Site, place: int, of: Shape, kind: int) -> str | None:
    """Return an operand that is a scale or zero point, spread and converted; None where its shape is not known."""
    shape = site.shape(place)
    if shape is None:
        return None
    axis = _axis(site, len(of))
    spread = _spread(site, site.input(place), shape, of, axis, _block(site, shape, of, axis))
    return spread if site.kind(place) == kind else site.cast(spread, kind)


def _dequantize(site: Site) -> bool:
    shape = site.shape(0)
    if shape is None or site.kind(0) not in (*RANGES, KIND.INT32) or not site.kind(1):
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
    # A float out of a signed byte's range has no meaning as one: the way there leads over i32.
    site.cast(site.cast(bounded, KIND.INT32), kind, output=output)


def _converted(site: Site, value: str, kind: int) -> None:
    if kind == KIND.FLOAT:
        site.give(value)
    else:
        site.cast(value, kind, output=site.node.output[0])


def _dynamic_quantize(site: Site) -> bool:
    """Write scale = (max(0, x) - min(0, x)) / 255, zero point = saturate(round(-min / scale))."""
    shape = site.shape(0)
    if shape is None:
        return False
    axes = list(range(len(shape)))
    zero, high = site.scalar(0, KIND.FLOAT), site.scalar(255, KIND.FLOAT)
    x = site.input(0)
    least = site.op("Min", site.reduce("ReduceMin", x, axes, keep=False) if axes else x, zero)
    most = site.op("Max", site.reduce("ReduceMax", x, axes, keep=False) if axes else x, zero)
    scale = site.op("Div", site.op("Sub", most, least), high)
    level = site.op("Div", site.op("Sub", zero, least), scale)
    bounded = site.op("Min", site.op("Max", site.op("Round", level), zero), high)
    _saturated(site, site.op("Div", x, scale), bounded, KIND.UINT8, site.node.output[0])
    site.give(scale, 1)
    if site.output(2):
        site.cast(site.cast(bounded, KIND.INT32), KIND.UINT8, output=site.output(2))
    return True


def _operand(site: Site, place: int, *, rows: bool) -> str | None:
    """Return a factor of a quantised product as f32: its scale and zero point stand behind it; per row or column."""
    shape, scale = site.shape(place), site.shape(place + 1)
    if shape is None or scale is None:
        return None
    axis = len(shape) - 2 if rows and len(shape) > 1 else len(shape) - 1
    names: list[str] = []
    for behind in (1, 2):
        spread = _spread(site, site.input(place + behind), site.shape(place + behind) or (), shape, axis, 0)
        names.append(site.cast(spread, KIND.FLOAT))
    return site.op("Mul", site.op("Sub", site.cast(site.input(place), KIND.FLOAT), names[1]), names[0])


def _qlinear_matmul(site: Site) -> bool:
    a, b = _operand(site, 0, rows=True), _operand(site, 3, rows=False)
    kind = site.kind(7)
    if a is None or b is None or kind not in RANGES or site.shape(6) is None:
        return False
    scale = site.cast(_single(site, 6), KIND.FLOAT)
    zero = site.cast(_single(site, 7), KIND.FLOAT)
    _saturated(site, site.op("Div", site.op("MatMul", a, b), scale), zero, kind, site.node.output[0])
    return True


def _single(site: Site, place: int) -> str:
    shape = site.shape(place) or ()
    return site.reshape(site.input(place), ()) if prod(shape) == 1 and shape else site.input(place)


def _qlinear_conv(site: Site) -> bool:
    shape, kernel = site.shape(0), site.shape(3)
    kind = site.kind(7)
    if shape is None or kernel is None or kind not in RANGES:
        return False
    factors: list[str] = []
    for place, of in ((0, shape), (3, kernel)):
        scale, zero = (
            site.cast(_spread(site, site.input(place + k), site.shape(place + k) or (), of, 0, 0), KIND.FLOAT)
            for k in (1, 2)
        )
        centred = site.op("Sub", site.cast(site.input(place), KIND.FLOAT), zero)
        factors.append(site.op("Mul", centred, scale))
    made = site.op("Conv", *factors, **_window(site))
    if site.input(8):
        both = site.op(
            "Mul",
            site.cast(_single(site, 1), KIND.FLOAT),
            site.cast(_single(site, 4), KIND.FLOAT),
        )
        bias = site.op("Mul", site.cast(site.input(8), KIND.FLOAT), both)
        made = site.op("Add", made, site.reshape(bias, [-1] + [1] * (len(shape) - 2)))
    scale = site.cast(_single(site, 6), KIND.FLOAT)
    zero = site.cast(_single(site, 7), KIND.FLOAT)
    _saturated(site, site.op("Div", made, scale), zero, kind, site.node.output[0])
    return True


def _window(site: Site) -> dict[str, Any]:
    names = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    return {name: site.option(name, None) for name in names}


def _centred(site: Site, place: int, zero: int, axis: int) -> str | None:
    """Return an operand of an integer product as f32, its zero point taken off."""
    shape = site.shape(place)
    if shape is None:
        return None
    x = site.cast(site.input(place), KIND.FLOAT)
    if not site.input(zero):
        return x
    spread = _spread(site, site.input(zero), site.shape(zero) or (), shape, axis % len(shape), 0)
    return site.op("Sub", x, site.cast(spread, KIND.FLOAT))


_EXACT_TERMS = 2**24 // (255 * 255)
"""Sums of so many products of bytes are exact in f32."""


def _matmul_integer(site: Site) -> bool:
    shape = site.shape(0)
    if shape is None or shape[-1] > _EXACT_TERMS:
        return False
    a, b = _centred(site, 0, 2, -2), _centred(site, 1, 3, -1)
    if a is None or b is None:
        return False
    site.cast(site.op("MatMul", a, b), KIND.INT32, output=site.node.output[0])
    return True


def _conv_integer(site: Site) -> bool:
    kernel = site.shape(1)
    if kernel is None or prod(kernel[1:]) > _EXACT_TERMS:
        return False
    x, w = _centred(site, 0, 2, 0), _centred(site, 1, 3, 0)
    if x is None or w is None:
        return False
    site.cast(site.op("Conv", x, w, **_window(site)), KIND.INT32, output=site.node.output[0])
    return True


RULES: dict[str, Rule] = {
    "ConvInteger": _conv_integer,
    "DequantizeLinear": _dequantize,
    "DynamicQuantizeLinear": _dynamic_quantize,
    "MatMulInteger": _matmul_integer,
    "QLinearConv": _qlinear_conv,
    "QLinearMatMul": _qlinear_matmul,
    "QuantizeLinear": _quantize,
}
