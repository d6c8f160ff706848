"""The node a rule rewrites, what is known of its operands, and the nodes that take its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from t10.errors import UnsupportedOpError

KIND = onnx.TensorProto
"""Element types of ONNX by name."""

Shape = tuple[int, ...]

MOST_WRITTEN = 100_000
"""How many nodes may take the place of one: what a file asks for is bounded."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of values: static shapes, element types, constants; `read` are those that anything reads."""

    shapes: dict[str, Shape]
    kinds: dict[str, int]
    constants: dict[str, Any]
    read: frozenset[str]
    opset: int


@dataclass(slots=True)
class Site:
    """One node to rewrite. Operators are written as methods that return the name of what they make.

    Names that are made start with the node's first output, and are none of the model's.
    """

    node: Any
    graph: Any
    facts: Facts
    nodes: list[Any] = field(default_factory=list[Any])
    shapes: dict[str, Shape] = field(default_factory=dict[str, Shape])
    n_made: int = 0

    @property
    def stem(self) -> str:
        """Return the name that values made here start with."""
        return next((name for name in self.node.output if name), self.node.op_type)

    def input(self, place: int) -> str:
        """Return the name of an input, empty where the node has none there."""
        return self.node.input[place] if place < len(self.node.input) else ""

    def output(self, place: int) -> str:
        """Return the name of an output that anything reads, otherwise empty."""
        name = self.node.output[place] if place < len(self.node.output) else ""
        return name if name in self.facts.read else ""

    def shape(self, place: int) -> Shape | None:
        """Return the static shape of an input, None where it is not known or there is none."""
        return self.facts.shapes.get(self.input(place))

    def kind(self, place: int) -> int:
        """Return the element type of an input, 0 where it is not known."""
        return self.facts.kinds.get(self.input(place), 0)

    def dtype(self, place: int) -> np.dtype[Any]:
        """Return numpy's type of an input's elements."""
        return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(self.kind(place)))

    def constant_input(self, place: int) -> NDArray[Any] | None:
        """Return the values of an input that is constant, otherwise None."""
        tensor = self.facts.constants.get(self.input(place))
        return None if tensor is None else numpy_helper.to_array(tensor)

    def option(self, name: str, default: Any) -> Any:
        """Return an attribute; text as `str`."""
        for attribute in self.node.attribute:
            if attribute.name == name:
                value = onnx.helper.get_attribute_value(attribute)
                return value.decode() if isinstance(value, bytes) else value
        return default

    @property
    def options(self) -> dict[str, Any]:
        """Return all attributes of the node by name."""
        return {a.name: onnx.helper.get_attribute_value(a) for a in self.node.attribute}

    def op(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Write a node of one output and return its name; attributes that are None are left out."""
        return self.several(operator, inputs, (output,), **attributes)[0]

    def several(
        self, operator: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any
    ) -> tuple[str, ...]:
        """Write a node; outputs without a name get one."""
        if len(self.nodes) >= MOST_WRITTEN:
            raise UnsupportedOpError(
                f"{self.node.op_type} would be written as more than {MOST_WRITTEN} nodes",
                operator=self.node.name or self.stem,
                hint="shorter loops or smaller windows",
            )
        names = tuple(name or self.fresh(operator.lower()) for name in outputs)
        given = {key: value for key, value in attributes.items() if value is not None}
        title = f"{self.node.name or self.stem}.{operator.lower()}"
        self.nodes.append(onnx.helper.make_node(operator, list(inputs), list(names), name=title, **given))
        return names

    def fresh(self, word: str) -> str:
        """Return a name that is not taken."""
        while True:
            self.n_made += 1
            name = f"{self.stem}.{word}.{self.n_made}"
            if name not in self.facts.kinds and name not in self.facts.read:
                return name

    def constant(self, values: Any, dtype: Any = None) -> str:
        """Write a constant and return its name."""
        array = np.ascontiguousarray(np.asarray(values, dtype))
        name = self.fresh("constant")
        self.graph.initializer.append(numpy_helper.from_array(array.reshape(np.shape(values)), name))
        return name

    def scalar(self, value: Any, kind: int) -> str:
        """Write a number of an element type."""
        return self.constant(np.array(value, onnx.helper.tensor_dtype_to_np_dtype(kind)))

    def cast(self, x: str, kind: int, output: str = "") -> str:
        """Write a conversion of element types."""
        return self.op("Cast", x, output=output, to=kind)

    def reshape(self, x: str, shape: Sequence[int], output: str = "") -> str:
        """Write other extents of the same product."""
        return self.op("Reshape", x, self.constant(list(shape), np.int64), output=output)

    def transpose(self, x: str, order: Sequence[int], output: str = "") -> str:
        """Write another order of dims."""
        return self.op("Transpose", x, output=output, perm=list(order))

    def reduce(self, operator: str, x: str, axes: Sequence[int], *, keep: bool, output: str = "") -> str:
        """Write `ReduceSum`, `ReduceMax`, ... along axes."""
        if self.facts.opset < (13 if operator == "ReduceSum" else 18):
            return self.op(operator, x, output=output, axes=list(axes), keepdims=int(keep))
        return self.op(operator, x, self.constant(list(axes), np.int64), output=output, keepdims=int(keep))

    def slice(self, x: str, axis: int, start: int, end: int, step: int = 1, output: str = "") -> str:
        """Write a part along one axis; a step of -1 walks back from `start` to behind `end`."""
        bounds = [self.constant([value], np.int64) for value in (start, end, axis, step)]
        return self.op("Slice", x, *bounds, output=output)

    def concat(self, parts: Sequence[str], axis: int, output: str = "") -> str:
        """Write parts one after another along an axis."""
        return self.op("Concat", *parts, output=output, axis=axis)

    def give(self, x: str, place: int = 0) -> None:
        """Make `x` an output of the node, if anything reads that."""
        if self.output(place):
            self.op("Identity", x, output=self.output(place))


Rule = Callable[[Site], bool]
"""Writes what takes a node's place and returns True, or returns False and leaves it as it is."""
