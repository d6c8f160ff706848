"""Operators that compute every element alone, or every element and one number of its row."""

from __future__ import annotations

import math
from functools import reduce
from string import ascii_letters
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.errors import UnsupportedOpError
from t10.frontend.rewrites.site import KIND, Rule, Site

_SELU_ALPHA, _SELU_GAMMA = 1.6732631921768188, 1.0507010221481323


def _cast_like(site: Site) -> bool:
    """Only the type of the second input counts: it may well have no elements."""
    if not site.kind(1):
        return False
    site.cast(site.input(0), site.kind(1), output=site.node.output[0])
    return True


def _gelu(site: Site) -> bool:
    """Write the tanh form as `x / (1 + exp(-2u))`: `1 + tanh(u)` would cancel where u is far below zero."""
    kind = site.kind(0)
    if site.option("approximate", "none") != "tanh" or not kind:
        return False
    x = site.input(0)
    wide = site.cast(x, KIND.FLOAT) if kind == KIND.FLOAT16 else x
    inner = KIND.FLOAT if kind == KIND.FLOAT16 else kind
    cube = site.op("Mul", site.op("Mul", wide, wide), wide)
    sum_ = site.op("Add", wide, site.op("Mul", cube, site.scalar(0.044715, inner)))
    negative = site.op("Mul", sum_, site.scalar(-2 * math.sqrt(2 / math.pi), inner))
    below = site.op("Add", site.op("Exp", negative), site.scalar(1, inner))
    site.cast(site.op("Div", wide, below), kind, output=site.node.output[0])
    return True


def _leaky_relu(site: Site) -> bool:
    """Select by the sign, as ONNX says it: x is handed through from -0 on; the slope is not rounded to f16."""
    kind = site.kind(0)
    if kind not in _FLOATS:
        return False
    x, zero = site.input(0), site.scalar(0, kind)
    inner = KIND.FLOAT if kind == KIND.FLOAT16 else kind
    product = site.op("Mul", site.cast(x, inner), site.scalar(site.option("alpha", 0.01), inner))
    below = site.cast(product, kind)
    site.op("Where", site.op("Less", x, zero), below, x, output=site.node.output[0])
    return True


def _lp_normalization(site: Site) -> bool:
    """Return x / |x|_p along an axis; 0 where the norm is 0."""
    shape, kind = site.shape(0), site.kind(0)
    if shape is None or not kind:
        return False
    axis, p = site.option("axis", -1) % len(shape), site.option("p", 2)
    x = site.input(0)
    powers = site.op("Abs", x) if p == 1 else site.op("Mul", x, x)
    total = site.reduce("ReduceSum", powers, [axis], keep=True)
    norm = total if p == 1 else site.op("Sqrt", total)
    zero = site.scalar(0, kind)
    is_zero = site.op("Equal", norm, zero)
    safe = site.op("Where", is_zero, site.scalar(1, kind), norm)
    site.op("Where", is_zero, zero, site.op("Div", x, safe), output=site.node.output[0])
    return True


def _dropout(site: Site) -> bool:
    """Hand the input through, as at inference; the mask is all true. In training mode it stays, to be refused."""
    training = site.constant_input(2)
    is_training = bool(site.input(2)) and (training is None or bool(training))
    ratio = site.constant_input(1)
    if is_training and (ratio is None or float(ratio) != 0.0):
        return False
    shape = site.shape(0)
    if site.output(1):
        if shape is None:
            return False
        site.op(
            "Expand",
            site.scalar(True, KIND.BOOL),
            site.constant(list(shape), np.int64),
            output=site.output(1),
        )
    site.give(site.input(0))
    return True


def _cast(site: Site) -> bool:
    """Go from floats to uint8 over i32: 128 and more have no place in a byte with a sign, which is what there is."""
    if site.option("to", 0) != KIND.UINT8 or site.kind(0) not in _FLOATS:
        return False
    site.cast(site.cast(site.input(0), KIND.INT32), KIND.UINT8, output=site.node.output[0])
    return True


def _bit_cast(site: Site) -> bool:
    """Between integers of as many bits, bits stay where they are in a conversion, too; 0 and 1 of bool are a byte's."""
    to, found = int(site.option("to", 0)), site.kind(0)
    if (found, to) not in _SAME_BITS:
        return False
    site.cast(site.input(0), to, output=site.node.output[0])
    return True


def _mod(site: Site) -> bool:
    """Write fmod of floats as the remainder of magnitudes, which is exact; quotients that are rounded lose it."""
    kind = site.kind(0)
    if kind not in _FLOATS or any(entry.key == _SIGNED for entry in site.node.metadata_props):
        return False
    x, y, zero = site.input(0), site.input(1), site.scalar(0, kind)
    if not site.option("fmod", 0):
        # What is left over is between 0 and y; where it is a zero, it has the sign of y.
        rest = _remainder(site, x, y)
        nothing = site.op("Where", site.op("Less", y, zero), site.scalar(-0.0, kind), zero)
        site.op("Where", site.op("Equal", rest, zero), nothing, rest, output=site.node.output[0])
        return True
    rest = _remainder(site, site.op("Abs", x), site.op("Abs", y))
    is_left = site.op("Less", x, zero)
    signed = site.op("Where", is_left, site.op("Neg", rest), rest)
    # A remainder of zeros, whose sign no comparison sees: x has it.
    is_zero = site.op("And", site.op("Equal", x, zero), site.op("Equal", rest, zero))
    site.op("Where", is_zero, x, signed, output=site.node.output[0])
    return True


def _remainder(site: Site, x: str, y: str) -> str:
    """Write a remainder of which signs of zeros do not count."""
    rest = site.op("Mod", x, y, fmod=0)
    site.nodes[-1].metadata_props.add(key=_SIGNED)
    return rest


def _clip(site: Site) -> bool:
    """Say the limits that are left out: the least and the largest finite number, as ONNX does."""
    kind = site.kind(0)
    if kind not in _FLOATS or (site.input(1) and site.input(2)):
        return False
    limits = np.finfo(site.dtype(0))
    low, high = site.input(1) or site.scalar(limits.min, kind), site.input(2) or site.scalar(limits.max, kind)
    site.op("Clip", site.input(0), low, high, output=site.node.output[0])
    return True


def _sign(site: Site) -> bool:
    """Keep the sign of a NaN a NaN: what is neither above nor below 0 is handed out, -0 as 0."""
    kind = site.kind(0)
    if kind not in _FLOATS:
        return False
    x, zero = site.input(0), site.scalar(0, kind)
    rest = site.op("Where", site.op("Less", x, zero), site.scalar(-1, kind), site.op("Add", x, zero))
    site.op("Where", site.op("Greater", x, zero), site.scalar(1, kind), rest, output=site.node.output[0])
    return True


_SIGNED = "t10.signed"
"""Metadata of a remainder that is written, with what gives zeros their signs behind it."""
_FLOATS = (KIND.FLOAT, KIND.FLOAT16, KIND.DOUBLE)
_WIDTHS: dict[int, int] = {KIND.FLOAT16: 16, KIND.FLOAT: 32, KIND.DOUBLE: 64}
_SAME_BITS = frozenset(
    {
        *((KIND.INT8, KIND.UINT8), (KIND.UINT8, KIND.INT8), (KIND.UINT32, KIND.INT32)),
        *((KIND.BOOL, KIND.UINT8), (KIND.BOOL, KIND.INT8)),
    }
)


def _cut_power(site: Site) -> bool:
    """Cut the power of an integer by a float, as ONNX converts it: torch-mlir rounds. f64 holds powers of 53 bits."""
    kind = site.kind(0)
    if kind not in (KIND.INT32, KIND.INT64) or site.kind(1) not in _FLOATS:
        return False
    power = site.op("Pow", *(site.cast(site.input(place), KIND.DOUBLE) for place in (0, 1)))
    site.cast(power, kind, output=site.node.output[0])
    return True


def _mixed_power(site: Site) -> bool:
    """Compute the power of a float by a wider one in that type: torch-mlir rounds the exponent first."""
    kind, own, given = site.kind(0), site.kind(1), site.constant_input(1)
    if own == KIND.DOUBLE and given is not None and _is_alike(given):
        own = KIND.FLOAT
    if kind not in _WIDTHS or _WIDTHS.get(own, 0) <= _WIDTHS[kind]:
        return False
    power = site.op("Pow", *(site.cast(site.input(place), own) for place in (0, 1)))
    site.cast(power, kind, output=site.node.output[0])
    return True


def _is_alike(exponents: NDArray[Any]) -> bool:
    """Return whether exponents are as finite, zero, whole and even in f32 as they are."""
    with np.errstate(over="ignore"):
        narrow = exponents.astype(np.float32).astype(np.float64)
    if not (np.isfinite(exponents) & np.isfinite(narrow) & ((exponents == 0) == (narrow == 0))).all():
        return False
    wide, rounded = (np.where(x == np.trunc(x), np.fmod(x, 2), 0.5) for x in (exponents, narrow))
    return bool((wide == rounded).all())


def _einsum(site: Site) -> bool:
    """Write an Einsum of at most two operands that have letters, times numbers; state its output.

    A lowering of many operands sums a letter with the first two that have it, also where a third one does; none takes
    dims of extent 1 that another operand has more of, nor numbers. What an ellipsis stands for gets letters.
    """
    equation = "".join(str(site.option("equation", "")).split())
    inputs = [site.input(place) for place in range(len(site.node.input))]
    read, arrow, out = equation.partition("->")
    if read.count(",") + 1 != len(inputs):
        return False  # ONNX's inference says so
    terms, out = _in_letters(site, read.split(","), out if arrow else _implicit_output(read))
    terms = _without_single_dims(site, terms, inputs)
    if arrow and len(inputs) <= 2 and ",".join(terms) == read and all(terms):
        return False
    factors = [name for name, term in zip(inputs, terms, strict=True) if not term]
    left = [(name, term) for name, term in zip(inputs, terms, strict=True) if term]
    while len(left) > 2:
        (one, a), (other, b), *rest = left
        needed = {*_letters("".join(term for _, term in rest)), *_letters(out)}
        kept = "".join(letter for letter in _letters(a + b) if letter in needed)
        made = site.op("Einsum", one, other, equation=f"{a},{b}->{kept}")
        left = [(made, kept), *rest] if kept else rest
        factors += [] if kept else [made]
    if left:
        names, terms = zip(*left, strict=True)
        factors.append(site.op("Einsum", *names, equation=f"{','.join(terms)}->{out}"))
    site.give(reduce(lambda one, other: site.op("Mul", one, other), factors))
    return True


def _in_letters(site: Site, terms: list[str], out: str) -> tuple[list[str], str]:
    """Return terms and the output with letters for the dims that `...` stands for, the last of them the same in all."""
    shapes = [site.shape(place) for place in range(len(terms))]
    lengths = [
        len(shape or ()) - sum(map(str.isalpha, term)) if "..." in term else 0
        for shape, term in zip(shapes, terms, strict=True)
    ]
    free = "".join(c for c in ascii_letters if c not in "".join((*terms, out)))
    if None in shapes or min(lengths) < 0 or max(lengths) > len(free):
        return terms, out
    names = free[: max(lengths)]
    filled = [term.replace("...", names[len(names) - n :]) for term, n in zip(terms, lengths, strict=True)]
    return filled, out.replace("...", names)


def _without_single_dims(site: Site, terms: list[str], inputs: list[str]) -> list[str]:
    """Return terms without letters of extent 1 that are longer elsewhere, and squeeze these dims of `inputs`."""
    shapes = [site.shape(place) for place in range(len(inputs))]
    if any(s is None or "..." in t or len(s) != len(t) for s, t in zip(shapes, terms, strict=True)):
        return terms
    extents = [list(zip(term, shape or (), strict=True)) for term, shape in zip(terms, shapes, strict=True)]
    longer = {letter for each in extents for letter, extent in each if extent > 1}
    for number, each in enumerate(extents):
        axes = [axis for axis, (letter, extent) in enumerate(each) if extent == 1 and letter in longer]
        if axes:
            inputs[number] = site.op("Squeeze", inputs[number], site.constant(axes, np.int64))
    return ["".join(c for c, extent in each if extent > 1 or c not in longer) for each in extents]


def _letters(text: str) -> list[str]:
    """Return the letters of terms, each once, and the ellipsis in front of them."""
    return [
        *(["..."] if "..." in text else []),
        *dict.fromkeys(letter for letter in text if letter.isalpha()),
    ]


def _implicit_output(terms: str) -> str:
    """Return the output of an equation that has none: the ellipsis, then letters that occur once, sorted."""
    return "".join(
        sorted(letter for letter in _letters(terms) if letter == "..." or terms.count(letter) == 1)
    )


def _neg(site: Site) -> bool:
    """Subtract integers from zero: they wrap, while a lowering over floats rounds and saturates."""
    kind = site.kind(0)
    if kind not in (KIND.INT8, KIND.INT16, KIND.INT32, KIND.INT64):
        return False
    site.op("Sub", site.scalar(0, kind), site.input(0), output=site.node.output[0])
    return True


_WHOLE: dict[int, int] = {
    **dict.fromkeys((KIND.INT8, KIND.UINT8, KIND.INT16, KIND.UINT16, KIND.INT32), KIND.INT32),
    KIND.INT64: KIND.INT64,
}
"""Integers that have powers, and the type that these are multiplied in."""
_MOST_EXPONENT = 63
"""Powers of 2 and more with larger exponents are beyond every integer; those of 0, 1 and -1 repeat."""


def _power(site: Site) -> bool:
    """Write the power of an integer as products, which are exact and wrap: a power of floats does neither."""
    kind, given, shape = site.kind(0), site.constant_input(1), site.shape(0)
    if kind in _WHOLE and given is not None and not _are_whole(given):
        raise UnsupportedOpError(
            f"Pow of {site.dtype(0)} takes integer exponents only",
            operator=site.node.name or site.stem,
            hint="cast the base to a float before it",
        )
    if kind not in _WHOLE or (given is None and site.kind(1) not in _WHOLE):
        return _cut_power(site) or _mixed_power(site)
    inner = _WHOLE[kind]
    x = site.cast(site.input(0), inner)
    if given is not None and given.size == 1 and shape is not None and given.ndim <= len(shape):
        power = _power_of(site, x, int(given.item()), inner)
    else:
        own = _WHOLE.get(site.kind(1), KIND.INT64)
        power = _powers_of(site, x, site.cast(site.input(1), own), inner, own)
    site.cast(power, kind, output=site.node.output[0])
    return True


def _are_whole(values: NDArray[Any]) -> bool:
    """Return whether constants are integers, of whatever type, that int64 holds."""
    return bool((np.abs(values) < 2**62).all() and (values == np.trunc(values)).all())


def _power_of(site: Site, x: str, exponent: int, kind: int) -> str:
    """Write a power by squaring."""
    made, square, n = "", x, abs(exponent)
    while n:
        if n & 1:
            made = site.op("Mul", made, square) if made else square
        n >>= 1
        square = site.op("Mul", square, square) if n else square
    made = made or site.op("Add", site.op("Mul", x, site.scalar(0, kind)), site.scalar(1, kind))
    return _inverse(site, x, made, kind) if exponent < 0 else made


def _powers_of(site: Site, x: str, exponents: str, kind: int, own: int) -> str:
    """Write powers by squaring, a bit of the exponents after the other; these are of type `own`."""
    is_negative = site.op("Less", exponents, site.scalar(0, own))
    parity = site.op("Mod", exponents, site.scalar(2, own))
    n = site.op("Where", is_negative, site.op("Neg", exponents), exponents)
    n = site.op("Min", n, site.op("Add", parity, site.scalar(_MOST_EXPONENT - 1, own)))
    made, square = site.scalar(1, kind), x
    squares = [x]
    for _ in range(5):
        square = site.op("Mul", square, square)
        squares.append(square)
    for bit, square in reversed(list(enumerate(squares))):
        is_below = site.op("Less", n, site.scalar(1 << bit, own))
        made = site.op("Where", is_below, made, site.op("Mul", made, square))
        n = site.op("Where", is_below, n, site.op("Sub", n, site.scalar(1 << bit, own)))
    return site.op("Where", is_negative, _inverse(site, x, made, kind), made)


def _inverse(site: Site, x: str, power: str, kind: int) -> str:
    """Write 1 / power, cut: that of 1 and -1 is itself, of larger numbers 0; of 0 it is undefined."""
    is_one = site.op("Equal", site.op("Abs", x), site.scalar(1, kind))
    return site.op("Where", is_one, power, site.scalar(0, kind))


def _selu(site: Site) -> bool:
    """Say the constants of ONNX: torch-mlir's own have five digits."""
    alpha, gamma = site.option("alpha", _SELU_ALPHA), site.option("gamma", _SELU_GAMMA)
    if {"alpha", "gamma"} <= site.options.keys():
        return False
    site.op("Selu", site.input(0), alpha=alpha, gamma=gamma, output=site.node.output[0])
    return True


def _softsign(site: Site) -> bool:
    """Return x / (1 + |x|)."""
    kind = site.kind(0)
    if kind not in _FLOATS:
        return False
    x = site.input(0)
    below = site.op("Add", site.op("Abs", x), site.scalar(1, kind))
    site.op("Div", x, below, output=site.node.output[0])
    return True


RULES: dict[str, Rule] = {
    "BitCast": _bit_cast,
    "Cast": _cast,
    "CastLike": _cast_like,
    "Clip": _clip,
    "Dropout": _dropout,
    "Einsum": _einsum,
    "Gelu": _gelu,
    "LeakyRelu": _leaky_relu,
    "LpNormalization": _lp_normalization,
    "Mod": _mod,
    "Neg": _neg,
    "Pow": _power,
    "Selu": _selu,
    "Sign": _sign,
    "Softsign": _softsign,
}
