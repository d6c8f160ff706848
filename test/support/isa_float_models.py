"""What floating-point instructions mean, with numpy's float16 and float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.isa_forms import Floats, Inputs, Model, Outputs, words

Array = NDArray[Any]
LARGEST = np.float16(65504)


def halves(x: NDArray[np.uint32]) -> Floats:
    """Return the f16 lanes of registers, widened."""
    return x.view(np.float16).astype(np.float32)


def to_half(x: Array) -> NDArray[np.uint32]:
    """Return numbers rounded to f16 as registers: NaN is 0x7e00, finite numbers too large become the largest."""
    with np.errstate(all="ignore"):
        h = x.astype(np.float16)
        largest = np.where(np.signbit(x), -LARGEST, LARGEST)
    h = np.where(np.isinf(h) & np.isfinite(x), largest, h)
    bits = np.where(np.isnan(h), np.uint16(0x7E00), h.view(np.uint16))
    return np.ascontiguousarray(bits).view(np.uint32)


def to_word(x: Array) -> NDArray[np.uint32]:
    """Return numbers rounded to f32 as registers, NaN as 0x7fc00000."""
    with np.errstate(all="ignore"):
        single = np.ascontiguousarray(x.astype(np.float32))
    return np.where(np.isnan(single), np.uint32(0x7FC00000), single.view(np.uint32))


def larger(x: Array, y: Array) -> Array:
    """Return the larger number: a number rather than NaN, +0 rather than -0."""
    zeros = np.where(np.signbit(x) & ~np.signbit(y), y, x)
    numbers = np.where(x == y, zeros, np.where(x < y, y, x))
    return np.where(np.isnan(x), y, np.where(np.isnan(y), x, numbers))


def smaller(x: Array, y: Array) -> Array:
    """Return the smaller number: a number rather than NaN, -0 rather than +0."""
    zeros = np.where(np.signbit(x), x, y)
    numbers = np.where(x == y, zeros, np.where(y < x, y, x))
    return np.where(np.isnan(x), y, np.where(np.isnan(y), x, numbers))


def _on_halves(f: Callable[..., Array], *names: str) -> Model:
    def model(i: Inputs) -> Outputs:
        with np.errstate(all="ignore"):
            return {"d": to_half(f(*(halves(i.words[name]) for name in names)))}

    return model


def _on_words(f: Callable[..., Array], *names: str) -> Model:
    def model(i: Inputs) -> Outputs:
        with np.errstate(all="ignore"):
            return {"d": to_word(f(*(i.words[name].view(np.float32) for name in names)))}

    return model


def _half_masks(f: Callable[[Array, Array], Array]) -> Model:
    def model(i: Inputs) -> Outputs:
        found = f(halves(i.words["x"]), halves(i.words["y"]))
        return {"d": np.where(found, np.uint16(0xFFFF), np.uint16(0)).view(np.uint32)}

    return model


def _word_masks(f: Callable[[Array, Array], Array]) -> Model:
    def model(i: Inputs) -> Outputs:
        found = f(i.words["x"].view(np.float32), i.words["y"].view(np.float32))
        return {"d": np.where(found, np.uint32(0xFFFFFFFF), np.uint32(0))}

    return model


def _neighbours(i: Inputs) -> Outputs:
    x = halves(i.words["x"])
    with np.errstate(all="ignore"):
        return {"d": to_word(x[0::2] + x[1::2])}


def _centred_halves(i: Inputs) -> Outputs:
    return {"d": to_half((i.words["x"].view(np.uint16).astype(np.float64) + 0.5) / 65536 - 0.5)}


def _centred_words(i: Inputs) -> Outputs:
    return {"d": to_word((i.words["x"].astype(np.float64) + 0.5) / 2**32 - 0.5)}


def _clamped_halves(x: Array, limits: Array) -> Array:
    return smaller(larger(x, np.broadcast_to(limits[0], x.shape)), np.broadcast_to(limits[1], x.shape))


def _integral(i: Inputs) -> Outputs:
    x = i.words["x"].view(np.float32)
    return {"d": to_word(np.floor(x) if i.number("rnd") == 2 else np.trunc(x))}


def _to_integer(low: float, high: float) -> Model:
    def model(i: Inputs) -> Outputs:
        x = i.words["x"].view(np.float32).astype(np.float64)
        rounded = np.where(np.isnan(x), 0, np.clip(np.rint(x), low, high))
        return {"d": words(int(rounded[0]))}

    return model


def sigmoid(x: Array) -> Array:
    """Return the logistic function."""
    return 1 / (1 + np.exp(-x))


def one_over(x: Array) -> Array:
    """Return reciprocals, computed in double precision."""
    return 1 / x.astype(np.float64)


def one_over_root(x: Array) -> Array:
    """Return reciprocals of square roots, computed in double precision."""
    return 1 / np.sqrt(x.astype(np.float64))


def _magnitudes_added(x: Array, y: Array) -> Array:
    return np.abs(x) + np.abs(y)


def _larger_magnitude(x: Array, y: Array) -> Array:
    return larger(np.abs(x), np.abs(y))


_ARITHMETIC: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": larger,
    "min": smaller,
    "absadd": _magnitudes_added,
    "absmax": _larger_magnitude,
}
_COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ge": np.greater_equal,
    "gt": np.greater,
    "le": np.less_equal,
    "lt": np.less,
    "ne": np.not_equal,
}
_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "ln": np.log,
    "log2": np.log2,
    "tanh": np.tanh,
    "sigm": sigmoid,
}


def _in_double(f: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return a function computed in double precision; what leaves the range of double is as large as can be."""

    def g(x: Array) -> Array:
        with np.errstate(all="ignore"):
            value = f(x.astype(np.float64))
        return np.where(np.isposinf(value) & np.isfinite(x), 1e300, value)

    return g


MODELS: dict[str, Model] = {
    **{f"f16v{n}{op}": _on_halves(f, "x", "y") for n in (2, 4) for op, f in _ARITHMETIC.items()},
    **{f"f16v{n}cmp{op}": _half_masks(f) for n in (2, 4) for op, f in _COMPARISONS.items()},
    **{f"f16v{n}clamp": _on_halves(_clamped_halves, "x", "lim") for n in (2, 4)},
    **{f"f16v{n}sufromui": _centred_halves for n in (2, 4)},
    **{f"f16v2{op}": _on_halves(_in_double(f), "x") for op, f in _FUNCTIONS.items()},
    **{f"f16v{n}sum": _neighbours for n in (2, 4)},
    **{f"f32{v}{op}": _on_words(f, "x", "y") for v in ("", "v2") for op, f in _ARITHMETIC.items()},
    **{f"f32{v}cmp{op}": _word_masks(f) for v in ("", "v2") for op, f in _COMPARISONS.items()},
    **{f"f32{v}clamp": _on_words(_clamped_halves, "x", "lim") for v in ("", "v2")},
    **{f"f32{v}sufromui": _centred_words for v in ("", "v2")},
    "f32div": _on_words(np.divide, "x", "y"),
    **{f"f32{op}": _on_words(_in_double(f), "x") for op, f in _FUNCTIONS.items()},
    "f32oox": _on_words(one_over, "x"),
    "f32oorx": _on_words(one_over_root, "x"),
    "f32sqrt": _on_words(np.sqrt, "x"),
    "f32int": _integral,
    "f16tof32": lambda i: {"d": to_word(halves(i.words["x"])[:1])},
    "f16v2tof32": lambda i: {"d": to_word(halves(i.words["x"]))},
    "f32tof16": lambda i: {"d": to_half(np.repeat(i.words["x"].view(np.float32), 2))},
    "f32v2tof16": lambda i: {"d": to_half(i.words["x"].view(np.float32))},
    "f32v4tof16": lambda i: {"d": to_half(i.words["x"].view(np.float32))},
    "f32fromi32": lambda i: {"d": to_word(i.words["x"].view(np.int32))},
    "f32fromui32": lambda i: {"d": to_word(i.words["x"])},
    "f32toi32": _to_integer(-(2**31), 2**31 - 1),
    "f32toui32": _to_integer(0, 2**32 - 1),
}
