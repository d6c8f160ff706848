"""The first k of a row and where they stand, as comparisons and reductions over a row of known length.

rank[i]  = number of j with x[j] > x[i], or x[j] = x[i] and j < i
value[r] = max over i of (x[i] where rank[i] = r)
place[r] = max over i of (i where rank[i] = r)
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
        if k == 1:
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
        """Return the first place, or the last, that holds the extreme.

        No comparison with a NaN holds, and so nothing is beaten by it: what comes out is a place of the row anyway.
        """
        made = self.made
        places = self._places(x, self.axis, self.n, self.n, "places")
        beaten = made.compare("Less" if self.is_largest else "Greater", x, extreme, "beaten")
        other = made.scalar(0 if is_last else self.n - 1, places.kind, "other")
        chosen = made.where(beaten, other, places, "candidate")
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
            left.value, axis, n_chunks * size - extent, self._worst(left.value), f"{stage}padded"
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
        made, extent = self.made, given.value.shape[axis]
        row = made.unsqueeze(given.value, [axis], f"{stage}row")
        column = made.unsqueeze(given.value, [axis + 1], f"{stage}column")
        slots = self._places(row, axis + 1, extent, extent, f"{stage}slots")
        own = self._places(column, axis, extent, extent, f"{stage}own")
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
        value = made.where(here, row, worst, f"{stage}value")
        place = made.where(here, place, zero, f"{stage}place")
        return Candidates(
            made.reduce(largest, value, axis + 1, f"{stage}values"),
            made.reduce("ReduceMax", place, axis + 1, f"{stage}indices"),
        )

    def _worst(self, x: Tensor) -> Any:
        """Return what comes after every other value."""
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
