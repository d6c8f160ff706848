"""The first k of a row and where they stand, as comparisons and reductions over a row of known length.

rank[i]  = number of j with x[j] > x[i], or x[j] = x[i] and j < i
value[r] = max over i of (x[i] where rank[i] = r)
place[r] = max over i of (i where rank[i] = r)

A NaN is above all numbers, as ONNX Runtime ranks it: it is compared as an infinity that stands before all others of the
row if the largest come first, and behind all others if the smallest do. As an extreme (ArgMax and ArgMin) it wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import onnx

from t10.frontend.expressions import Expressions, Tensor
from t10.frontend.tournament import stages

_FLOAT, _INT32, _INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT32, onnx.TensorProto.INT64

_EXACT = 2**24
"""Up to here every integer is an f32: places are f32 beside floats, as vector code takes operands of one type."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Elements of a row or of its chunks, and their places in the row; `place` may have extent 1 along other axes."""

    value: Tensor
    place: Tensor


@dataclass(frozen=True, slots=True)
class Ranks:
    """Writes selections along `axis` of rows of `n` elements: the largest, or the smallest."""

    made: Expressions
    axis: int
    n: int
    is_largest: bool

    def first(self, x: Tensor, k: int) -> Candidates:
        """Return the first `k` of every row, in order; equal elements by place, the smaller first."""
        if k == 1 and (self.is_largest or x.kind != _FLOAT):
            value = self.extreme(x)
            return Candidates(value, self.place_of(x, value, is_last=False))
        sizes = stages(self.n, k, prod(x.shape) // self.n)
        left = Candidates(x, self._places(x, self.axis, self.n, self.n, "places"))
        for number, size in enumerate(sizes[:-1]):
            left = self._chunk_winners(left, size, k, f"stage{number}.")
        return self._ranked(left, self.axis, k, "")

    def extreme(self, x: Tensor) -> Tensor:
        """Return the first element of every row by value."""
        operator, word = ("ReduceMax", "max") if self.is_largest else ("ReduceMin", "min")
        return self.made.reduce(operator, x, self.axis, word, keep=True)

    def place_of(self, x: Tensor, extreme: Tensor, *, is_last: bool) -> Tensor:
        """Return the first place, or the last, that holds the extreme, which is a NaN where there is one."""
        made = self.made
        places = self._places(x, self.axis, self.n, self.n, "places")
        is_extreme = made.compare("Equal", x, extreme, "is_extreme")
        if x.kind == _FLOAT:
            is_extreme = made.compare("Or", is_extreme, self._is_nan(x, "is_nan"), "is_extreme.or.nan")
        other = made.scalar(0 if is_last else self.n - 1, places.kind, "other")
        chosen = made.where(is_extreme, places, other, "candidate")
        return made.reduce("ReduceMax" if is_last else "ReduceMin", chosen, self.axis, "index", keep=True)

    def is_first(self, x: Tensor) -> Tensor:
        """Return whether an element is the first extreme of its row."""
        place = self.place_of(x, self.extreme(x), is_last=False)
        places = self._places(x, self.axis, self.n, self.n, "own.places")
        return self.made.compare("Equal", places, place, "is_first")

    def _chunk_winners(self, left: Candidates, size: int, k: int, stage: str) -> Candidates:
        """Return the first `k` of every chunk: rows of fewer candidates, in which equals still stand by place."""
        made, axis = self.made, self.axis
        extent = left.value.shape[axis]
        n_chunks = -(-extent // size)
        value = made.pad(
            left.value, axis, n_chunks * size - extent, self._behind_all(left.value), f"{stage}padded"
        )
        if extent == self.n:
            place = self._places(value, axis, n_chunks * size, self.n, f"{stage}places")
        else:
            place = made.pad(left.place, axis, n_chunks * size - extent, self.n - 1, f"{stage}padded.places")
        split = Candidates(
            self._reshaped(value, axis, 1, (n_chunks, size), f"{stage}chunks"),
            self._reshaped(place, axis, 1, (n_chunks, size), f"{stage}chunks.places"),
        )
        won = self._ranked(split, axis + 1, k, stage)
        return Candidates(
            self._reshaped(won.value, axis, 2, (n_chunks * k,), f"{stage}left"),
            self._reshaped(won.place, axis, 2, (n_chunks * k,), f"{stage}left.places"),
        )

    def _ranked(self, given: Candidates, axis: int, k: int, stage: str) -> Candidates:
        """Return the first `k` along an axis: pairs are compared, ranks counted, and each rank picks its element."""
        made = self.made
        value, order = self._ordered(given.value, axis, stage)
        row = made.unsqueeze(value, [axis], f"{stage}row")
        column = made.unsqueeze(value, [axis + 1], f"{stage}column")
        slots = made.unsqueeze(order, [axis], f"{stage}slots")
        own = made.unsqueeze(order, [axis + 1], f"{stage}own")
        wins = made.compare("Greater" if self.is_largest else "Less", row, column, f"{stage}wins")
        ties = made.compare("Equal", row, column, f"{stage}ties")
        earlier = made.compare("Less", slots, own, f"{stage}earlier")
        ahead = made.compare("Or", wins, made.compare("And", ties, earlier, f"{stage}first"), f"{stage}ahead")
        zero, one = made.scalar(0, slots.kind, "zero"), made.scalar(1, slots.kind, "one")
        rank = made.reduce(
            "ReduceSum", made.where(ahead, one, zero, f"{stage}count"), axis + 1, f"{stage}rank"
        )
        ranks = made.unsqueeze(rank, [axis], f"{stage}rank.row")
        wanted = self._places(column, axis, k, k, f"{stage}wanted")
        here = made.compare("Equal", ranks, wanted, f"{stage}here")
        place = made.unsqueeze(given.place, [axis], f"{stage}place.row")
        worst = made.scalar(self._worst(row), row.kind, "worst")
        largest = "ReduceMax" if self.is_largest else "ReduceMin"
        picked = made.unsqueeze(given.value, [axis], f"{stage}picked")
        value = made.where(here, picked, worst, f"{stage}value")
        place = made.where(here, place, zero, f"{stage}place")
        return Candidates(
            made.reduce(largest, value, axis + 1, f"{stage}values"),
            made.reduce("ReduceMax", place, axis + 1, f"{stage}indices"),
        )

    def _ordered(self, x: Tensor, axis: int, stage: str) -> tuple[Tensor, Tensor]:
        """Return what is compared, and what says who comes first among equals: a NaN is an outermost infinity."""
        made, extent = self.made, x.shape[axis]
        order = self._places(x, axis, extent, extent, f"{stage}order")
        if x.kind != _FLOAT:
            return x, order
        is_nan = self._is_nan(x, f"{stage}is_nan")
        moved = made.scalar(-extent if self.is_largest else extent, order.kind, f"{stage}outermost")
        outer = made.elementwise("Add", [order, moved], order.kind, f"{stage}outer")
        infinity = made.scalar(np.inf, _FLOAT, "infinity")
        return made.where(is_nan, infinity, x, f"{stage}key"), made.where(
            is_nan, outer, order, f"{stage}rank.key"
        )

    def _is_nan(self, x: Tensor, word: str) -> Tensor:
        return self.made.elementwise("IsNaN", [x], onnx.TensorProto.BOOL, word)

    def _behind_all(self, x: Tensor) -> Any:
        """Return what comes after every other value, the smallest of which come before NaN."""
        return np.nan if x.kind == _FLOAT and not self.is_largest else self._worst(x)

    def _worst(self, x: Tensor) -> Any:
        """Return what changes no extreme."""
        if x.kind == _FLOAT:
            return -np.inf if self.is_largest else np.inf
        limits = np.iinfo(x.dtype)
        return limits.min if self.is_largest else limits.max

    def _places(self, like: Tensor, axis: int, extent: int, end: int, word: str) -> Tensor:
        """Return 0, 1, ... along an axis, at most `end - 1`, of extent 1 along the other axes of `like`."""
        kind = _FLOAT if like.kind == _FLOAT and self.n <= _EXACT else _INT32
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
        values = np.minimum(np.arange(extent), end - 1).astype(dtype)
        name = f"t10.places.{dtype}.{extent}" + (f".{end}" if end < extent else "")
        flat = self.made.constant(values, name)
        return self.made.unsqueeze(flat, [dim for dim in range(len(like.shape)) if dim != axis], word)

    def _reshaped(self, x: Tensor, axis: int, count: int, extents: tuple[int, ...], word: str) -> Tensor:
        """Return `x` with `count` axes from `axis` on in other extents."""
        shape = (*x.shape[:axis], *extents, *x.shape[axis + count :])
        return self.made.reshape(x, shape, word)
