"""Random ONNX models of few nodes and small, mostly odd extents: operators with fewer elements than a chip has cores.

model, inputs = small_model(seed)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from support.random_models import MAX_ELEMENTS, RandomModel, Shape

Value = TypeVar("Value")

EXTENTS = (1, 1, 2, 3, 3, 4, 5, 5, 6, 7, 7, 8, 9, 10, 11, 11, 12, 13, 13, 17, 31, 64, 127)
CHIPS = (
    "test-4", "test-16", "test-64", "test-64:n_cores=61", "test-16:n_cores=13", "test-64:n_cores=37",
)  # fmt: skip
ACTIVATIONS = ("Tanh", "Relu", "Sigmoid")
REDUCTIONS = ("ReduceSum", "ReduceMax", "ReduceMean")


def small_model(seed: int) -> tuple[Any, dict[str, NDArray[np.float32]]]:
    """Return a model in f32 of one to seven nodes and inputs for it, always the same for a seed."""
    return _SmallModel(seed).build()


def chip_of(seed: int) -> str:
    """Return the chip that a model is compiled for."""
    return CHIPS[seed % len(CHIPS)]


class _SmallModel(RandomModel):
    nodes_drawn = (1, 7)

    def steps(self) -> list[Callable[[str, Shape], None]]:
        return [
            self.product, self.product, self.square, self.square, self.softmax, self.softmax, self.norm, self.reduce,
            self.reduce, self.convolution, self.add, self.bias, self.gather, self.transpose, self.split, self.merge,
            self.activate,
        ]  # fmt: skip

    def input_shape(self) -> Shape:
        while True:
            shape = tuple(self.extent() for _ in range(self.pick((2, 2, 3, 3, 4))))
            if prod(shape) <= MAX_ELEMENTS:
                return shape

    def extent(self) -> int:
        return self.pick(EXTENTS)

    def pick(self, values: Sequence[Value]) -> Value:
        return values[self.number(0, len(values) - 1)]

    def product(self, value: str, shape: Shape) -> None:
        columns = self.extent()
        self.emit("MatMul", [value, self.weight(self.normal((shape[-1], columns)))], (*shape[:-1], columns))

    def square(self, value: str, shape: Shape) -> None:
        if len(shape) > 1:
            super().square(value, shape)

    def split(self, value: str, shape: Shape) -> None:
        cuts = [
            (dim, factor) for dim, extent in enumerate(shape) for factor in (2, 3, 5) if extent % factor == 0
        ]
        if cuts and len(shape) < 5:
            dim, factor = self.pick(cuts)
            long = (*shape[:dim], factor, shape[dim] // factor, *shape[dim + 1 :])
            self.emit("Reshape", [value, self.indices(*long)], long)

    def norm(self, value: str, shape: Shape) -> None:
        factors = [self.weight(self.normal(shape[-1:])) for _ in range(2)]
        self.emit("LayerNormalization", [value, *factors], shape, axis=-1)

    def reduce(self, value: str, shape: Shape) -> None:
        if len(shape) == 1:
            return
        axis, is_kept = self.number(0, len(shape) - 1), self.number(0, 1)
        rest = (*shape[:axis], *(1,) * is_kept, *shape[axis + 1 :])
        self.emit(self.pick(REDUCTIONS), [value, self.indices(axis)], rest, keepdims=is_kept)

    def gather(self, value: str, shape: Shape) -> None:
        axis, n_rows = self.number(0, len(shape) - 1), self.extent()
        rows = self.indices(*(self.number(0, shape[axis] - 1) for _ in range(n_rows)))
        self.emit("Gather", [value, rows], (*shape[:axis], n_rows, *shape[axis + 1 :]), axis=axis)

    def activate(self, value: str, shape: Shape) -> None:
        self.emit(self.pick(ACTIVATIONS), [value], shape)
