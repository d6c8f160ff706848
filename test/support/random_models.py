"""Random ONNX models of what storage orders meet: products, convolutions, and everything that renames or moves dims.

model, inputs = random_model(seed)
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Shape = tuple[int, ...]

MAX_ELEMENTS = 4000


def random_model(seed: int) -> tuple[Any, dict[str, NDArray[np.float32]]]:
    """Return a model in f32 of up to a dozen nodes and inputs for it, always the same for a seed."""
    return RandomModel(seed).build()


class RandomModel:
    """Draws a model node by node; what is drawn is a method per kind of node."""

    nodes_drawn = (4, 13)
    """Fewest and most."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.shapes: dict[str, Shape] = {}

    def build(self) -> tuple[Any, dict[str, NDArray[np.float32]]]:
        for i in range(self.number(1, 3)):
            self.shapes[f"x{i}"] = self.input_shape()
        inputs = dict(self.shapes)
        steps = self.steps()
        for _ in range(self.number(*self.nodes_drawn)):
            recent = list(self.shapes)[-4:]
            value = recent[self.number(0, len(recent) - 1)]
            steps[self.number(0, len(steps) - 1)](value, self.shapes[value])
            if prod(list(self.shapes.values())[-1]) > MAX_ELEMENTS:
                break
        read = {name for node in self.nodes for name in node.input}
        outputs = [name for name in self.shapes if name not in read and name not in inputs]
        if not outputs:
            first = next(iter(inputs))
            self.emit("Tanh", [first], inputs[first])
            outputs = [list(self.shapes)[-1]]
        graph = helper.make_graph(
            self.nodes,
            "random",
            _infos(inputs),
            _infos({o: self.shapes[o] for o in outputs}),
            self.initializers,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        return model, {name: self.normal(shape) for name, shape in inputs.items()}

    def steps(self) -> list[Callable[[str, Shape], None]]:
        return [
            self.product, self.product, self.square, self.transpose, self.split, self.merge, self.add, self.bias,
            self.convolution, self.convolution, self.pool, self.concat, self.cut, self.pad, self.softmax, self.mean,
        ]  # fmt: skip

    def input_shape(self) -> Shape:
        return tuple(self.number(1, 8) for _ in range(int(self.rng.choice([2, 3, 4, 4]))))

    def number(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def normal(self, shape: Shape) -> NDArray[np.float32]:
        return self.rng.standard_normal(shape).astype(np.float32)

    def emit(self, op: str, inputs: list[str], shape: Shape, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"n{len(self.nodes)}", **attributes))
        self.shapes[name] = shape
        return name

    def weight(self, array: NDArray[Any]) -> str:
        name = f"w{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def indices(self, *values: int) -> str:
        return self.weight(np.array(values, np.int64))

    def product(self, value: str, shape: Shape) -> None:
        columns = self.number(1, 9)
        self.emit("MatMul", [value, self.weight(self.normal((shape[-1], columns)))], (*shape[:-1], columns))

    def square(self, value: str, shape: Shape) -> None:
        order = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
        turned = self.emit("Transpose", [value], tuple(shape[i] for i in order), perm=order)
        if self.rng.random() < 0.5:
            self.emit("MatMul", [value, turned], (*shape[:-1], shape[-2]))
        else:
            self.emit("MatMul", [turned, value], (*shape[:-2], shape[-1], shape[-1]))

    def transpose(self, value: str, shape: Shape) -> None:
        order = [int(i) for i in self.rng.permutation(len(shape))]
        self.emit("Transpose", [value], tuple(shape[i] for i in order), perm=order)

    def split(self, value: str, shape: Shape) -> None:
        even = [dim for dim, extent in enumerate(shape) if extent in (4, 6, 8)]
        if even and len(shape) < 5:
            dim = even[self.number(0, len(even) - 1)]
            long = (*shape[:dim], 2, shape[dim] // 2, *shape[dim + 1 :])
            self.emit("Reshape", [value, self.indices(*long)], long)

    def merge(self, value: str, shape: Shape) -> None:
        if len(shape) > 2:
            dim = self.number(0, len(shape) - 2)
            short = (*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :])
            self.emit("Reshape", [value, self.indices(*short)], short)

    def add(self, value: str, shape: Shape) -> None:
        others = [name for name, each in self.shapes.items() if each == shape and name != value]
        other = others[self.number(0, len(others) - 1)] if others else self.weight(self.normal(shape))
        self.emit("Add", [value, other], shape)

    def bias(self, value: str, shape: Shape) -> None:
        self.emit("Add", [value, self.weight(self.normal(shape[-1:]))], shape)

    def convolution(self, value: str, shape: Shape) -> None:
        if len(shape) != 4:
            return
        is_depthwise = bool(self.rng.random() < 0.25)
        size = 3 if min(shape[2:]) > 1 and self.rng.random() < 0.7 else 1
        channels = shape[1] if is_depthwise else self.number(1, 6)
        weight = self.weight(self.normal((channels, 1 if is_depthwise else shape[1], size, size)) / 3)
        self.emit(
            "Conv", [value, weight], (shape[0], channels, *shape[2:]),
            kernel_shape=[size, size], pads=[size // 2] * 4, group=shape[1] if is_depthwise else 1,
        )  # fmt: skip

    def pool(self, value: str, shape: Shape) -> None:
        if len(shape) == 4 and min(shape[2:]) > 1:
            self.emit("MaxPool", [value], shape, kernel_shape=[3, 3], pads=[1] * 4)

    def concat(self, value: str, shape: Shape) -> None:
        axis = self.number(0, len(shape) - 1)
        self.emit("Concat", [value, value], (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :]), axis=axis)

    def cut(self, value: str, shape: Shape) -> None:
        axis = self.number(0, len(shape) - 1)
        if shape[axis] > 1:
            bounds = [self.indices(1), self.indices(shape[axis]), self.indices(axis)]
            self.emit("Slice", [value, *bounds], (*shape[:axis], shape[axis] - 1, *shape[axis + 1 :]))

    def pad(self, value: str, shape: Shape) -> None:
        low = [self.number(0, 1) for _ in shape]
        pads = self.indices(*low, *(0 for _ in shape))
        self.emit("Pad", [value, pads], tuple(a + b for a, b in zip(shape, low, strict=True)))

    def softmax(self, value: str, shape: Shape) -> None:
        self.emit("Softmax", [value], shape, axis=self.number(0, len(shape) - 1))

    def mean(self, value: str, shape: Shape) -> None:
        axis = self.number(0, len(shape) - 1)
        small = (*shape[:axis], 1, *shape[axis + 1 :])
        self.emit("ReduceMean", [value, self.indices(axis)], small, keepdims=1)


def _infos(shapes: dict[str, Shape]) -> list[Any]:
    return [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
