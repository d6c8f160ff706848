"""What docs/numerics.md decides where both references do something else, computed with numpy and nothing of T10."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.conformance.grid.cases import GridCase, numpy_type, type_of
from t10.conformance.grid.references import Arrays

Array = NDArray[Any]


def decided(case: GridCase, inputs: Mapping[str, Array], shape: Sequence[int]) -> Arrays | None:
    """Return the one output of a case, whose shape is given; None where nothing is decided."""
    rule = _RULES.get(case.structure.operator)
    if rule is None or case.structure.n_outputs != 1:
        return None
    with np.errstate(all="ignore"):
        given = [inputs.get(f"x{i}", _constant(case, i)) for i in range(len(case.structure.inputs))]
        found = rule(case, given, shape)
    return None if found is None else {"y0": found}


def _constant(case: GridCase, number: int) -> Array | None:
    """Return an input that is a constant of the model, None where it is left out."""
    given = case.structure.inputs[number]
    if given is None or given.value is None:
        return None
    return np.asarray(given.value).astype(numpy_type(type_of(case, given)))


def _larger(a: Array, b: Array) -> Array:
    """Return the maximum of IEEE 754-2019: NaN wins, +0 is above -0."""
    return np.where(a == b, np.where(np.signbit(a), b, a), np.maximum(a, b))


def _clip(case: GridCase, inputs: list[Array | None], shape: Sequence[int]) -> Array | None:
    """A maximum, then a minimum; a limit that is left out is the largest number."""
    del case, shape
    x, low, high = (*inputs, None, None)[:3]
    if x is None:
        return None
    limits = np.finfo(x.dtype)
    raised = _larger(x, np.asarray(limits.min if low is None else low))
    return -_larger(-raised, -np.asarray(limits.max if high is None else high))


def _largest(x: Array, axes: tuple[int, ...]) -> Array:
    """Return maxima over axes, which are kept."""
    best = np.max(x, axis=axes, keepdims=True)
    has_zero = ((x == 0) & ~np.signbit(x)).any(axis=axes, keepdims=True)
    return np.where(best == 0, np.where(has_zero, 0.0, -0.0).astype(x.dtype), best)


def _reduced_axes(inputs: list[Array | None], rank: int) -> tuple[int, ...]:
    """Return the axes of a reduction: all, where none is named."""
    axes = inputs[1] if len(inputs) > 1 else None
    return tuple(range(rank)) if axes is None or not axes.size else tuple(int(axis) % rank for axis in axes)


def _reduce_max(case: GridCase, inputs: list[Array | None], shape: Sequence[int]) -> Array | None:
    del case
    x = inputs[0]
    return None if x is None or not x.size else _largest(x, _reduced_axes(inputs, x.ndim)).reshape(shape)


def _reduce_min(case: GridCase, inputs: list[Array | None], shape: Sequence[int]) -> Array | None:
    del case
    x = inputs[0]
    return None if x is None or not x.size else -_largest(-x, _reduced_axes(inputs, x.ndim)).reshape(shape)


def _global_max_pool(case: GridCase, inputs: list[Array | None], shape: Sequence[int]) -> Array | None:
    del case, shape
    x = inputs[0]
    return None if x is None else _largest(x, tuple(range(2, x.ndim)))


def _max_pool(case: GridCase, inputs: list[Array | None], shape: Sequence[int]) -> Array | None:
    """Maxima of windows, from the number below all others on; padding is explicit."""
    x, attributes = inputs[0], case.structure.attributes
    kernel = attributes["kernel_shape"]
    n = len(kernel)
    if x is None or attributes.get("auto_pad", b"NOTSET") != b"NOTSET":
        return None
    strides, dilations = attributes.get("strides", [1] * n), attributes.get("dilations", [1] * n)
    before = attributes.get("pads", [0] * 2 * n)[:n]
    pads = [
        (b, max((o - 1) * s + (k - 1) * d + 1 - b - extent, 0))
        for b, o, s, k, d, extent in zip(
            before, shape[2:], strides, kernel, dilations, x.shape[2:], strict=True
        )
    ]
    padded = np.pad(x, [(0, 0), (0, 0), *pads], constant_values=-np.inf)
    seen = [
        padded[
            (
                ...,
                *(slice(p * d, p * d + (o - 1) * s + 1, s) for p, d, o, s in zip(place, dilations, shape[2:], strides,
                                                                                 strict=True)),
            )
        ]
        for place in np.ndindex(*kernel)
    ]  # fmt: skip
    return _largest(np.stack(seen), (0,))[0]


def _reduce_mean(case: GridCase, inputs: list[Array | None], shape: Sequence[int]) -> Array | None:
    """The sum modulo 2^64, divided towards 0."""
    del case
    x = inputs[0]
    if x is None or x.dtype != np.int64:
        return None
    axes = _reduced_axes(inputs, x.ndim)
    total = np.sum(x, axis=axes, dtype=np.int64).reshape(shape)
    n = math.prod(x.shape[axis] for axis in axes)
    return total // n + ((total < 0) & (total % n != 0))


def _gemm(case: GridCase, inputs: list[Array | None], shape: Sequence[int]) -> Array | None:
    """Sums of integers modulo 2^width; of whole factors only."""
    attributes = case.structure.attributes
    alpha, beta = float(attributes.get("alpha", 1)), float(attributes.get("beta", 1))
    a, b, c = (*inputs, None)[:3]
    if a is None or b is None or not (alpha.is_integer() and beta.is_integer()):
        return None
    a, b = a.T if attributes.get("transA") else a, b.T if attributes.get("transB") else b
    product = (a @ b) * a.dtype.type(alpha)
    return product if c is None else np.broadcast_to(product + c * a.dtype.type(beta), shape)


def _lrn(case: GridCase, inputs: list[Array | None], shape: Sequence[int]) -> Array | None:
    """Every channel with its own window, in double."""
    x, attributes = inputs[0], case.structure.attributes
    if x is None or x.ndim < 3:
        return None
    size, wide = int(attributes["size"]), x.astype(np.float64)
    channels = [
        np.square(wide[:, max(c - (size - 1) // 2, 0) : c + size // 2 + 1]).sum(axis=1)
        for c in range(shape[1])
    ]
    factor = attributes.get("bias", 1.0) + attributes.get("alpha", 1e-4) / size * np.stack(channels, axis=1)
    return wide / factor ** attributes.get("beta", 0.75)


def _erf(case: GridCase, inputs: list[Array | None], shape: Sequence[int]) -> Array | None:
    del case, shape
    return None if inputs[0] is None else np.vectorize(math.erf, otypes=[np.float64])(inputs[0])


def _prelu(case: GridCase, inputs: list[Array | None], shape: Sequence[int]) -> Array | None:
    """The text: x where x is 0 or more, of either sign."""
    del case
    x, slope = inputs[:2]
    if x is None or slope is None:
        return None
    return np.where(x < 0, slope.astype(np.float64) * x, x).reshape(shape)


_RULES: dict[str, Callable[[GridCase, list[Array | None], Sequence[int]], Array | None]] = {
    "Clip": _clip,
    "Erf": _erf,
    "Gemm": _gemm,
    "GlobalMaxPool": _global_max_pool,
    "LRN": _lrn,
    "MaxPool": _max_pool,
    "PRelu": _prelu,
    "ReduceMax": _reduce_max,
    "ReduceMean": _reduce_mean,
    "ReduceMin": _reduce_min,
}
