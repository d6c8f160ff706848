"""Random inputs of a model: reproducible, and within the ranges that the model accepts.

random_inputs(graph, seed)                      # floats are standard normal, integers small
random_inputs(graph, seed, reach=LARGE[0])      # as large as their types allow
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from t10.arrays import Arrays
from t10.core.dtypes import numpy_dtype
from t10.core.graph import Graph
from t10.input_coordinates import coordinate_inputs
from t10.input_uses import Use, input_uses

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Reach:
    """How far inputs reach: floats and integers that nothing bounds.

    `normal` floats are standard normal; `mixed` ones spread over `2 ** -span` to `2 ** span`, with zeros, ones and
    halves among them; `large` ones over `-span` to `span`. Integers are then within 1,000; of all sizes up to 31 bits;
    and anywhere. `small` integers are 0 or 1, indices not negative, floats standard normal.
    """

    kind: Literal["small", "normal", "mixed", "large"]
    span: float = 1.0

    def __str__(self) -> str:
        """Return what floats are drawn from, in words."""
        if self.kind in ("small", "normal"):
            return (
                "standard normal"
                if self.kind == "normal"
                else "standard normal, integers 0 or 1, no negative indices"
            )
        if self.kind == "mixed":
            return f"scales 2^-{self.span:.0f} to 2^{self.span:.0f}"
        return f"magnitudes up to {self.span:.0e}"


SMALL, NORMAL = Reach("small"), Reach("normal")
MIXED = tuple(Reach("mixed", span) for span in (40, 20, 8, 3))
LARGE = tuple(Reach("large", span) for span in (1e18, 1e9, 6e4, 1e3, 30))
"""Wildest first: what a model's own numbers leave room for is tried in this order."""

_SIMPLE = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5])
_SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-42, -6e-8])
_MOST = float(np.finfo(np.float32).max)
_ONE_OF = 16
MOST_COORDINATE = 4.0
"""Float inputs that tell places stay within this: which element a place far outside stands for, a last bit decides."""
MOST_INTEGER = 2**40
"""Integers of 64 bits stay within this: ONNX Runtime adds them up as f64, which holds sums of 2 ** 13 of these."""


def random_inputs(
    graph: Graph,
    seed: int,
    reach: Reach = NORMAL,
    *,
    specials: bool = False,
    weights: Mapping[str, NDArray[Any]] = MappingProxyType({}),
) -> Arrays:
    """Return one array per input of a graph; the same arguments give the same arrays.

    Integers that are indices, lengths, masks, divisors, shifts or exponents stay what they are used as
    (`t10.input_uses`), floats that tell places near these (`t10.input_coordinates`; some are found by the values of
    `weights`); of what is a mask the first along the last dim is 1, so that no row is empty. What nothing reads is 0.
    `specials` puts NaN, infinities and denormals among the floats, and the largest number where nothing is added up:
    there, the order decides what overflows. The rest is as it is without.
    """
    generator = np.random.default_rng(seed)
    uses, coordinates = input_uses(graph), coordinate_inputs(graph, weights)
    drawn: Arrays = {}
    read = {operand.name for spec in graph.operators for operand in spec.operands}
    sources = {s for name in (*read, *(o.value for o in graph.outputs)) for s in graph.sources_of(name)}
    for value in graph.signature[0]:
        dtype = numpy_dtype(value.dtype)
        if value.name not in sources:
            drawn[value.name] = np.zeros(value.shape, dtype)
        elif dtype.kind == "f":
            most = MOST_COORDINATE if value.name in coordinates else np.inf
            drawn[value.name] = _floats(value.shape, dtype, reach, most, generator)
        else:
            use = uses.get(value.name, Use(is_mask=True))
            drawn[value.name] = _integers(value.shape, dtype, use, reach, generator)
    if not specials:
        return drawn
    is_summing = any(spec.combine in ("sum", "prod") for spec in graph.operators)
    special = _SPECIAL if is_summing else np.append(_SPECIAL, _MOST)
    strewing = np.random.default_rng((seed, 1))
    return {name: _strewn(array, special, strewing) for name, array in drawn.items()}


def _strewn(array: NDArray[Any], special: Floats, generator: np.random.Generator) -> NDArray[Any]:
    """Return floats with special ones among them."""
    if array.dtype.kind != "f":
        return array
    place = generator.integers(0, _ONE_OF, array.shape) == 0
    with np.errstate(over="ignore"):
        return np.where(place, generator.choice(special, array.shape).astype(array.dtype), array)


def _floats(
    shape: tuple[int, ...], dtype: np.dtype[Any], reach: Reach, most: float, generator: np.random.Generator
) -> NDArray[Any]:
    """Return floats of magnitudes up to `most`."""
    drawn: Floats = np.asarray(generator.standard_normal(shape))
    largest = min(most, float(np.finfo(dtype).max))
    if reach.kind == "mixed":
        drawn = drawn * np.exp2(generator.uniform(-reach.span, reach.span, shape))
        drawn = np.where(generator.integers(0, _ONE_OF, shape) == 0, generator.choice(_SIMPLE, shape), drawn)
    elif reach.kind == "large":
        span = min(reach.span, largest)
        drawn = np.asarray(generator.uniform(-span, span, shape))
    return np.asarray(np.clip(drawn, -largest, largest)).astype(dtype)


def _integers(
    shape: tuple[int, ...], dtype: np.dtype[Any], use: Use, reach: Reach, generator: np.random.Generator
) -> NDArray[Any]:
    if dtype.kind == "b" or use.is_mask or (reach.kind == "small" and use.low is None):
        drawn = np.asarray(generator.integers(0, 2, shape)).astype(dtype)
        if shape:
            drawn[..., 0] = 1
        return drawn
    least, most = max(int(np.iinfo(dtype).min), -MOST_INTEGER), min(int(np.iinfo(dtype).max), MOST_INTEGER)
    longest = use.longest
    if use.low is not None and use.high is not None:
        low, high = max(use.low, 0 if reach.kind == "small" else least), min(use.high, most)
        return _bounded(shape, low, max(low, high), use, generator).astype(dtype)
    if longest is not None:
        return np.asarray(generator.integers(1, longest + 1, shape)).astype(dtype)
    if use.is_divisor:
        drawn = np.asarray(generator.integers(1, 101, shape))
        signs = np.where(generator.integers(0, 2, shape) == 0, 1, -1) if least < 0 else 1
        return np.asarray(np.where(drawn > 1, drawn * signs, drawn)).astype(dtype)
    drawn = _any_integers(shape, least, most, reach, generator)
    points = [p + d for p in sorted(use.points) for d in (-1, 0, 1) if least <= p + d <= most]
    if points:
        is_near = generator.integers(0, 2, shape) == 0
        drawn = np.where(is_near, generator.choice(points, shape), drawn)
    return np.asarray(drawn).astype(dtype)


def _bounded(
    shape: tuple[int, ...], low: int, high: int, use: Use, generator: np.random.Generator
) -> NDArray[Any]:
    """Return integers from `low` to `high`; of places no two are the same, or none along any dim if there are more."""
    if not use.is_place:
        return np.asarray(generator.integers(low, high + 1, shape))
    extent = high + 1 if low < 0 else high - low + 1
    order = generator.permutation(extent)
    n = int(np.prod(shape))
    steps = np.arange(n).reshape(shape) if n <= extent else np.asarray(np.indices(shape).sum(axis=0))
    places = np.asarray(order[steps % extent])
    if low < 0:
        return np.where(generator.integers(0, 2, shape) == 0, places, places - extent)
    return places + low


def _any_integers(
    shape: tuple[int, ...], least: int, most: int, reach: Reach, generator: np.random.Generator
) -> NDArray[Any]:
    """Return integers of a type that ranges from `least` to `most`, both ends among them where all are wanted."""
    if reach.kind == "mixed":
        sizes = np.floor(np.exp2(generator.uniform(0, 31, shape))).astype(np.int64)
        signs = generator.choice([-1, 1], shape) if least < 0 else 1
        return np.clip(sizes * signs, least, most)
    if reach.kind == "normal":
        return np.asarray(generator.integers(max(least, -1000), min(most, 1000), shape, endpoint=True))
    drawn = np.asarray(generator.integers(least, most, shape, endpoint=True))
    if drawn.size > 1:
        drawn.flat[0], drawn.flat[-1] = most, least
    return drawn
