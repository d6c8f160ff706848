"""Discrete Fourier transforms as products with constant matrices, real and imaginary parts side by side."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from t10.errors import UnsupportedOpError
from t10.frontend.rewrites.site import KIND, Rule, Site
from t10.frontend.unsupported import title_of

MOST_TABLE_BYTES = 1 << 28
"""Largest matrix of a transform: that of 4,096 complex numbers in f32."""


def _dft(site: Site) -> bool:
    shape = site.shape(0)
    length, axis_input = site.constant_input(1), site.constant_input(2)
    if shape is None or len(shape) < 2 or site.kind(0) not in (KIND.FLOAT, KIND.FLOAT16):
        return False
    if (site.input(1) and length is None) or (site.input(2) and axis_input is None):
        return False
    default = 1 if site.facts.opset < 20 else -2
    axis = int(axis_input.reshape(())) if axis_input is not None else int(site.option("axis", default))
    axis %= len(shape)
    is_inverse, is_onesided = bool(site.option("inverse", 0)), bool(site.option("onesided", 0))
    n_in, n_parts = shape[axis], shape[-1]
    n = int(length.reshape(())) if length is not None else n_in
    if is_inverse and is_onesided and length is None:
        n = 2 * (n_in - 1)
    used = min(n_in, n // 2 + 1 if is_inverse and is_onesided else n)
    x = site.slice(site.input(0), axis, 0, used) if used < n_in else site.input(0)
    _check_size(site, n, used, n_parts, is_onesided=is_onesided)
    matrix = _matrix(n, used, n_parts, is_inverse=is_inverse, is_onesided=is_onesided)
    site.give(_transformed(site, x, (*shape[:axis], used, *shape[axis + 1 :]), axis, matrix))
    return True


def _check_size(site: Site, n: int, n_in: int, n_parts: int, *, is_onesided: bool) -> None:
    """Refuse a transform whose matrix would be larger than a weight may well be."""
    n_bytes = 4 * n_in * n_parts * (n // 2 + 1 if is_onesided else n) * 2
    if n_bytes > MOST_TABLE_BYTES:
        raise _too_large(site, f"{n_in:,} elements of length {n:,}", n_bytes)


def _too_large(site: Site, what: str, n_bytes: int) -> UnsupportedOpError:
    return UnsupportedOpError(
        f"{site.node.op_type} of {what} needs a table of {n_bytes:,} bytes (expected at most {MOST_TABLE_BYTES:,})",
        operator=title_of(site.node),
        hint="it is computed as a product with a matrix: shorter transforms, or compute it on the host",
    )


def _matrix(n: int, n_in: int, n_parts: int, *, is_inverse: bool, is_onesided: bool) -> NDArray[np.float32]:
    """Return (n_in, parts in, n_out, parts out): a transform of length `n` of `n_in` inputs, zeros behind them."""
    is_real = is_inverse and is_onesided
    n_out = n // 2 + 1 if is_onesided and not is_inverse else n
    angle = 2 * np.pi * np.outer(np.arange(n_in), np.arange(n_out)) / n * (1 if is_inverse else -1)
    weight = np.full((n_in, 1), 1 / n if is_inverse else 1.0)
    if is_real:
        # The other half is conjugate: it doubles what is neither the constant part nor, of even n, the last.
        is_single = (np.arange(n_in) == 0) | (2 * np.arange(n_in) == n)
        weight[~is_single] *= 2
    cos, sin = weight * np.cos(angle), weight * np.sin(angle)
    matrix = np.zeros((n_in, 2, n_out, 2), np.float64)
    matrix[:, 0, :, 0], matrix[:, 0, :, 1] = cos, sin
    matrix[:, 1, :, 0], matrix[:, 1, :, 1] = -sin, cos
    return matrix[:, :n_parts, :, : 1 if is_real else 2].astype(np.float32)


def _transformed(site: Site, x: str, shape: tuple[int, ...], axis: int, matrix: NDArray[np.float32]) -> str:
    """Return the product along `axis` and the parts, which are the last dim."""
    n_in, parts_in, n_out, parts_out = matrix.shape
    rank = len(shape)
    order = [*(dim for dim in range(rank - 1) if dim != axis), axis, rank - 1]
    outer = [shape[dim] for dim in order[:-2]]
    moved = site.reshape(site.transpose(x, order), (*outer, n_in * parts_in))
    table = site.constant(
        matrix.reshape(n_in * parts_in, n_out * parts_out),
        np.float16 if site.kind(0) == KIND.FLOAT16 else None,
    )
    product = site.reshape(site.op("MatMul", moved, table), (*outer, n_out, parts_out))
    return site.transpose(product, np.argsort(order).tolist())


def _stft(site: Site) -> bool:
    """Write frames as a gather at constant places, times the window, transformed."""
    shape, step, length = site.shape(0), site.constant_input(1), site.constant_input(3)
    window = site.shape(2) if site.input(2) else None
    if shape is None or len(shape) not in (2, 3) or step is None or site.kind(0) != KIND.FLOAT:
        return False
    if length is None and window is None:
        return False
    n = int(length.reshape(())) if length is not None else (window or (0,))[0]
    n_parts = shape[2] if len(shape) == 3 else 1
    every = int(step.reshape(()))
    n_frames = 1 + (shape[1] - n) // every
    is_onesided = bool(site.option("onesided", 1)) and n_parts == 1
    _check_size(site, n, n, n_parts, is_onesided=is_onesided)
    if n_frames * n > MOST_TABLE_BYTES // 8:
        raise _too_large(site, f"{n_frames:,} frames of {n:,} elements", 8 * n_frames * n)
    places = np.arange(n_frames)[:, None] * every + np.arange(n)[None, :]
    x = site.input(0) if len(shape) == 3 else site.reshape(site.input(0), (*shape, 1))
    frames = site.op("Gather", x, site.constant(places.astype(np.int64)), axis=1)
    if site.input(2):
        frames = site.op("Mul", frames, site.reshape(site.input(2), (n, 1)))
    matrix = _matrix(n, n, n_parts, is_inverse=False, is_onesided=is_onesided)
    site.give(_transformed(site, frames, (shape[0], n_frames, n, n_parts), 2, matrix))
    return True


RULES: dict[str, Rule] = {"DFT": _dft, "STFT": _stft}
