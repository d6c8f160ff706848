"""Random small models on chips with little memory: what compiles must run alike on every engine.

case = random_case(seed)

A seed is one model, its inputs and a chip of 4 to 64 cores whose memory is still to be chosen. One to four operators
meet rotation, partial sums, set-ups, views, convolutions, gathers and epilogues. Whole numbers, where all operators are
exact, have the same bits on every engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from t10.chip import ChipSpec, load_chip

Shape = tuple[int, ...]
Array = NDArray[Any]

MOST_ELEMENTS = 1 << 15
MOST_PRODUCTS = 1 << 23
SIZE = 1.5
MOST_SIGMAS = 8
LARGEST_HALF, LARGEST_EXACT = 60_000, 1 << 23
LEAST_RESULTS = 8
"""Elements that a reduction leaves at least: an error is relative to the largest of them."""

EXTENTS = (1, 2, 3, 4, 5, 7, 8, 12, 16, 20, 24, 32, 33, 48, 50, 64, 96, 100, 128, 192, 256, 512, 1024)
FLOATS = {"float16": TensorProto.FLOAT16, "float32": TensorProto.FLOAT}


@dataclass(frozen=True, slots=True, eq=False)
class FitCase:
    """A model, its inputs and a chip; `is_exact` says that all engines compute the same bits.

    `fill` draws the memory: None keeps that of the chip, else it is `fill` times the least that fits; where `is_full`
    it is then cut to what the plan takes.
    """

    name: str
    model: bytes
    inputs: Mapping[str, Array]
    chip: ChipSpec
    is_exact: bool = False
    fill: float | None = None
    is_full: bool = False


def random_case(seed: int) -> FitCase:
    """Return the case of a seed, always the same for one version of numpy's generators."""
    builder = _Builder(seed)
    model, inputs = builder.build()
    rng = builder.rng
    fill = 1.0 if rng.random() < 0.4 else 1.0 + float(rng.random())
    return FitCase(
        str(seed), model, inputs, _chip(rng), builder.is_exact, fill, is_full=bool(rng.random() < 0.5)
    )


def named_cases() -> tuple[FitCase, ...]:
    """Return shapes whose operands fill the memory: slow where they share memory elements, trapping at its end."""
    cases = [_product(64, 2048, columns, load_chip("test-16")) for columns in (1024, 1536, 2048)]
    cases.append(_product(256, 1024, 256, _with(load_chip("test-16"), sram_bytes=124_520)))
    return (*cases, *(_attention(_with(load_chip("test-16"), sram_bytes=size)) for size in (65_536, 61_440)))


def _product(rows: int, inner: int, columns: int, chip: ChipSpec) -> FitCase:
    builder = _Builder(rows * inner + columns, "float16", is_exact=False)
    x = builder.input((rows, inner))
    builder.emit("MatMul", [x, builder.scaled((inner, columns))], (rows, columns))
    name = f"MatMul {rows} x {inner} x {columns} f16 in {chip.sram_bytes:,} bytes"
    return FitCase(name, builder.bytes(), builder.inputs, chip)


def _attention(chip: ChipSpec) -> FitCase:
    builder = _Builder(0, "float16", is_exact=False)
    hidden = builder.emit("MatMul", [builder.input((128, 256)), builder.scaled((256, 256))], (128, 256))
    hidden = builder.emit("Relu", [hidden], (128, 256))
    logits = builder.emit("MatMul", [hidden, builder.scaled((256, 128))], (128, 128))
    builder.emit("Softmax", [logits], (128, 128))
    name = f"Softmax(Relu(x[128,256] W[256,256]) W[256,128]) f16 in {chip.sram_bytes:,} bytes"
    return FitCase(name, builder.bytes(), builder.inputs, chip)


def _chip(rng: np.random.Generator) -> ChipSpec:
    """Return a chip of 4 to 64 cores; its memory is that of an IPU Mk2, its other regions are drawn."""
    chip = load_chip("test-16")
    n_cores = int(rng.choice([4, 4, 5, 6, 7, 8, 8, 12, 16, 16, 16, 24, 31, 32, 48, 64, 64]))
    element = int(rng.choice([0x4000, 0x4000, 0x4000, 0x4000, 0x2000, 0x8000]))
    n_plain = (
        int(rng.integers(0x8000 // element, 0x40000 // element))
        if element != 0x4000 or rng.random() < 0.5
        else 13
    )
    return _with(
        chip,
        n_cores=n_cores,
        reserved_bytes=int(rng.choice([20480, 20480, 20480, 16384, 12288, 4096, 1024])),
        shift_buffer_bytes=int(rng.choice([8192, 8192, 8192, 4096, 1024, 256])),
        element_bytes=element,
        interleaved_base=chip.memory_base + max(n_plain, 1) * element,
    )


def _with(chip: ChipSpec, **changes: int) -> ChipSpec:
    """Return a validated chip with other numbers."""
    return ChipSpec.model_validate({**chip.model_dump(), **changes})


class _Builder:
    """Nodes, weights and inputs of one model, drawn step by step."""

    def __init__(self, seed: int, dtype: str = "", *, is_exact: bool | None = None) -> None:
        self.rng = np.random.default_rng(seed)
        self.dtype = dtype or str(self.rng.choice(["float16", "float16", "float32"]))
        self.is_exact = bool(self.rng.random() < 0.4) if is_exact is None else is_exact
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.inputs: dict[str, Array] = {}
        self.shapes: dict[str, Shape] = {}
        self.sizes: dict[str, float] = {}
        """How large the elements of a value are, about: nothing may overflow."""
        self.has_exp = False

    def build(self) -> tuple[bytes, dict[str, Array]]:
        """Return a model of one to four operators, views and epilogues not counted, and its inputs."""
        heads = [self.product, self.product, self.product, self.convolution, self.lookup, self.rows]
        heads[self.number(0, len(heads) - 1)](self.input(()))
        shared = [self.product, self.convolution, self.pick, self.reduce, self.reduce, self.square, self.pool]
        inexact = [self.softmax, self.mean, self.layer_norm]
        steps = shared if self.is_exact else [*shared, *inexact]
        for _ in range(self.number(0, 3)):
            self.decorate()
            steps[self.number(0, len(steps) - 1)](self.recent())
        self.decorate()
        if not self.nodes:
            self.emit("Relu", [self.recent()], self.shapes[self.recent()])
        return self.bytes(), self.inputs

    def bytes(self) -> bytes:
        """Return the model; its outputs are what nothing reads, and sometimes a value that is read."""
        read = {name for node in self.nodes for name in node.input}
        made = [node.output[0] for node in self.nodes]
        outputs = [name for name in made if name not in read]
        if len(made) > len(outputs) and self.rng.random() < 0.2:
            outputs.append(next(name for name in made if name in read))
        inputs = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in self.inputs.items()
            if name in read
        ]
        self.inputs = {name: array for name, array in self.inputs.items() if name in read}
        results = [
            helper.make_tensor_value_info(name, FLOATS[self.dtype], self.shapes[name]) for name in outputs
        ]
        graph = helper.make_graph(self.nodes, "fits", inputs, results, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        return bytes(model.SerializeToString())

    def number(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def extent(self, most: int) -> int:
        allowed = [extent for extent in EXTENTS if extent <= max(most, 1)]
        return allowed[self.number(0, len(allowed) - 1)]

    def recent(self) -> str:
        """Return one of the last values, most often the last."""
        names = [name for name in self.shapes if name not in self.inputs] or list(self.shapes)
        return names[-1] if self.rng.random() < 0.7 else names[self.number(0, len(names) - 1)]

    def emit(self, op: str, inputs: list[str], shape: Shape, size: float = 0, **attributes: Any) -> str:
        """Add a node and return its result, about as large as the first input unless `size` says more."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"n{len(self.nodes)}", **attributes))
        self.shapes[name] = shape
        self.sizes[name] = size or self.sizes.get(inputs[0], SIZE)
        return name

    def is_small(self, size: float) -> bool:
        """Return whether elements of about this size stay finite, and exact where they must be."""
        return MOST_SIGMAS * size < (LARGEST_HALF if self.dtype == "float16" else LARGEST_EXACT)

    def values(self, shape: Shape, least: int, most: int) -> Array:
        """Return whole numbers where the case is exact, else normal ones."""
        if self.is_exact:
            return self.rng.integers(least, most + 1, shape).astype(self.dtype)
        return self.rng.standard_normal(shape).astype(self.dtype)

    def input(self, shape: Shape) -> str:
        """Return a new input; without a shape, the operator that reads it makes one."""
        name = f"x{len(self.inputs)}"
        if shape:
            self.inputs[name] = self.values(shape, -2, 2)
            self.shapes[name] = shape
        return name

    def weight(self, array: Array) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def scaled(self, shape: Shape, inner: int = 0) -> str:
        """Return a weight that keeps the size of what it is multiplied with; `inner` elements are summed."""
        array = self.values(shape, -1, 1)
        if not self.is_exact:
            array = (array / np.sqrt(inner or shape[0])).astype(self.dtype)
        return self.weight(array)

    def shape(self, value: str, make: Callable[[], Shape]) -> Shape:
        """Return the shape of a value; what has none becomes an input of what `make` returns."""
        if value not in self.shapes:
            self.input(make())
        return self.shapes[value]

    def indices(self, *values: int) -> str:
        return self.weight(np.array(values, np.int64))

    def decorate(self) -> None:
        """Add up to two of what fuses: epilogues and views."""
        steps = [self.relu, self.bias, self.scale, self.add, self.transpose, self.split, self.merge]
        steps = steps if self.is_exact else [*steps, self.exp]
        for _ in range(self.number(0, 2)):
            steps[self.number(0, len(steps) - 1)](self.recent())

    def relu(self, value: str) -> None:
        self.emit("Relu", [value], self.shapes[value])

    def bias(self, value: str) -> None:
        shape = self.shapes[value]
        where = shape[-1:] if self.rng.random() < 0.7 or len(shape) < 2 else (shape[-2], 1)
        self.emit("Add", [value, self.weight(self.values(where, -2, 2))], shape, self.sizes[value] + SIZE)

    def scale(self, value: str) -> None:
        shape = self.shapes[value]
        self.emit("Mul", [value, self.weight(self.values(shape[-1:], -1, 1))], shape)

    def add(self, value: str) -> None:
        others = [
            name for name, shape in self.shapes.items() if shape == self.shapes[value] and name != value
        ]
        other = others[self.number(0, len(others) - 1)] if others else self.input(self.shapes[value])
        self.emit("Add", [value, other], self.shapes[value], self.sizes[value] + self.sizes.get(other, SIZE))

    def exp(self, value: str) -> None:
        if not self.has_exp:
            self.has_exp = True
            bounded = self.emit("Tanh", [value], self.shapes[value], 1)
            self.emit("Exp", [bounded], self.shapes[value], SIZE)

    def transpose(self, value: str) -> None:
        shape = self.shapes[value]
        order = [int(i) for i in self.rng.permutation(len(shape))]
        self.emit("Transpose", [value], tuple(shape[i] for i in order), perm=order)

    def split(self, value: str) -> None:
        shape = self.shapes[value]
        even = [dim for dim, extent in enumerate(shape) if extent % 2 == 0]
        if even and len(shape) < 5:
            dim = even[self.number(0, len(even) - 1)]
            long = (*shape[:dim], 2, shape[dim] // 2, *shape[dim + 1 :])
            self.emit("Reshape", [value, self.indices(*long)], long)

    def merge(self, value: str) -> None:
        shape = self.shapes[value]
        if len(shape) > 2:
            dim = self.number(0, len(shape) - 2)
            short = (*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :])
            self.emit("Reshape", [value, self.indices(*short)], short)

    def product(self, value: str) -> None:
        """Multiply with a weight or another input, along many or few inner elements."""
        shape = self.shape(value, self._matrices)
        rows = prod(shape[:-1])
        columns = self.extent(min(MOST_PRODUCTS // (rows * shape[-1]), MOST_ELEMENTS // rows, 1 << 18))
        right = (shape[-1], columns)
        size = self.sizes.get(value, SIZE) * (shape[-1] ** 0.5 if self.is_exact else 1) * SIZE
        if not self.is_small(size):
            return
        if not self.nodes and self.rng.random() < 0.25:
            other = self.input((shape[0], *right) if len(shape) == 3 else right)
            size = SIZE * SIZE * shape[-1] ** 0.5
        else:
            other = self.scaled(right)
        self.emit("MatMul", [value, other], (*shape[:-1], columns), size)

    def _matrices(self) -> Shape:
        inner = self.extent(1024)
        rows = self.extent(min(MOST_ELEMENTS // inner, 512))
        return (rows, inner) if self.rng.random() < 0.75 else (self.number(2, 6), -(-rows // 6), inner)

    def convolution(self, value: str) -> None:
        """Convolve with strides, dilation, padding and groups, where the value is a picture."""
        shape = self.shape(value, self._pictures)
        if len(shape) != 4:
            return
        n, channels, *picture = shape
        groups = (
            channels if self.rng.random() < 0.2 else 2 if channels % 2 == 0 and self.rng.random() < 0.2 else 1
        )
        out = groups * self.number(1, max(1, 16 // groups))
        size = [self.number(1, min(3, extent)) for extent in picture]
        strides = [self.number(1, 2) for _ in picture]
        pads = [self.number(0, each // 2) for each in size]
        spans = zip(picture, size, strides, pads, strict=True)
        result = [(extent + 2 * pad - k) // stride + 1 for extent, k, stride, pad in spans]
        inner = channels // groups * prod(size)
        large = self.sizes.get(value, SIZE) * (inner**0.5 if self.is_exact else 1) * SIZE
        if not self.is_small(large):
            return
        weight = self.scaled((out, channels // groups, *size), inner)
        self.emit(
            "Conv", [value, weight], (n, out, *result), large,
            kernel_shape=size, strides=strides, pads=[*pads, *pads], group=groups,
        )  # fmt: skip

    def _pictures(self) -> Shape:
        return (self.number(1, 2), self.number(1, 16), self.number(3, 18), self.number(3, 18))

    def pool(self, value: str) -> None:
        shape = self.shapes[value]
        if len(shape) == 4 and min(shape[2:]) > 2:
            self.emit("MaxPool", [value], shape, kernel_shape=[3, 3], pads=[1] * 4)

    def lookup(self, value: str) -> None:
        """Look up rows of a table, or of an input, by constants or by another input."""
        del value
        words, width = self.extent(256), self.extent(64)
        shape = (self.extent(64),) if self.rng.random() < 0.6 else (self.number(1, 4), self.number(1, 16))
        ids = self.rng.integers(0, words, shape).astype(np.int64)
        table = self.scaled((words, width), 1) if self.rng.random() < 0.7 else self.input((words, width))
        if self.rng.random() < 0.3:
            self.emit("Gather", [table, self.weight(ids)], (*shape, width))
            return
        self.inputs["ids"] = ids
        self.emit("Gather", [table, "ids"], (*shape, width))

    def pick(self, value: str) -> None:
        """Gather some elements of a dim by constant indices."""
        shape = self.shapes[value]
        axis = self.number(0, len(shape) - 1)
        n = self.number(1, min(shape[axis], 32))
        chosen = self.weight(self.rng.integers(0, shape[axis], n).astype(np.int64))
        self.emit("Gather", [value, chosen], (*shape[:axis], n, *shape[axis + 1 :]), axis=axis)

    def rows(self, value: str) -> None:
        """Begin with an input that epilogues and reductions read."""
        shape = self.shape(value, self._rows)
        self.emit("Add", [value, self.weight(self.values(shape[-1:], -2, 2))], shape)

    def _rows(self) -> Shape:
        inner = self.extent(1024)
        rows = self.extent(MOST_ELEMENTS // inner)
        return (rows, inner) if self.rng.random() < 0.6 else (self.number(1, 4), -(-rows // 4), inner)

    def square(self, value: str) -> None:
        """Multiply a value with its own transpose: one operand under two layouts."""
        shape = self.shapes[value]
        if (
            len(shape) < 2
            or prod(shape) * shape[-2] > MOST_PRODUCTS
            or prod(shape[:-1]) * shape[-2] > MOST_ELEMENTS
        ):
            return
        size = self.sizes[value] ** 2 * shape[-1]
        if not self.is_small(size):
            return
        order = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
        turned = self.emit("Transpose", [value], tuple(shape[i] for i in order), perm=order)
        self.emit("MatMul", [value, turned], (*shape[:-1], shape[-2]), size)

    def reduce(self, value: str) -> None:
        op = "ReduceSum" if self.rng.random() < 0.5 else "ReduceMax"
        self._reduced(op, value, self.number(0, len(self.shapes[value]) - 1), self.number(0, 1))

    def mean(self, value: str) -> None:
        self._reduced("ReduceMean", value, self.number(0, len(self.shapes[value]) - 1), 1)

    def _reduced(self, op: str, value: str, axis: int, keep: int) -> str | None:
        shape = self.shapes[value]
        size = self.sizes[value] * (shape[axis] if op == "ReduceSum" else 1)
        if prod(shape) // shape[axis] < LEAST_RESULTS or not self.is_small(size):
            return None
        small = (*shape[:axis], *((1,) if keep else ()), *shape[axis + 1 :])
        return self.emit(op, [value, self.indices(axis)], small, size, keepdims=keep)

    def softmax(self, value: str) -> None:
        self.emit("Softmax", [value], self.shapes[value], 1, axis=self.number(0, len(self.shapes[value]) - 1))

    def layer_norm(self, value: str) -> None:
        """Subtract the mean and divide by the deviation, in operators of their own."""
        shape = self.shapes[value]
        mean = self._reduced("ReduceMean", value, len(shape) - 1, 1)
        if mean is None or not self.is_small(self.sizes[value] ** 2):
            return
        centred = self.emit("Sub", [value, mean], shape)
        squares = self.emit("Mul", [centred, centred], shape, self.sizes[value] ** 2)
        variance = self._reduced("ReduceMean", squares, len(shape) - 1, 1)
        assert variance is not None
        small = self.shapes[variance]
        lifted = self.emit("Add", [variance, self.weight(np.full((1,), 0.1, self.dtype))], small)
        self.emit("Div", [centred, self.emit("Sqrt", [lifted], small)], shape, SIZE)
