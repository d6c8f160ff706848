"""Writes ONNX nodes that compute with tensors of known shape, in the opset of the model they join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

_AXES_ARE_INPUT_FROM = {"ReduceMax": 18, "ReduceMin": 18}
"""The opset from which axes are an input and no longer an attribute; 13, the oldest that is lowered, for others."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A value of the graph: its name, static shape and ONNX element type."""

    name: str
    shape: tuple[int, ...]
    kind: int

    @property
    def dtype(self) -> Any:
        """Return numpy's type of the elements."""
        return onnx.helper.tensor_dtype_to_np_dtype(self.kind)


@dataclass(slots=True)
class Expressions:
    """Nodes written one after another in `nodes`; constants go to `graph`.

    `name` starts the nodes' names, `stem` those of values: an output of the node they replace, so that none is taken.
    """

    graph: Any
    opset: int
    name: str
    stem: str
    nodes: list[Any] = field(default_factory=list[Any])

    def node(
        self,
        operator: str,
        inputs: Sequence[Tensor],
        shape: Sequence[int],
        kind: int,
        word: str,
        *,
        output: str = "",
        **attributes: Any,
    ) -> Tensor:
        """Return the result of a new node; `output` names it where it replaces a value of the graph."""
        made = output or f"{self.stem}.{word}"
        names = [tensor.name for tensor in inputs]
        title = f"{self.name}.{word}"
        self.nodes.append(onnx.helper.make_node(operator, names, [made], name=title, **attributes))
        return Tensor(made, tuple(shape), kind)

    def cast(self, x: Tensor, kind: int, word: str, *, output: str = "") -> Tensor:
        """Return `x` as another element type; `x` itself where that changes nothing and no output is asked for."""
        if x.kind == kind and not output:
            return x
        return self.node("Cast", [x], x.shape, kind, word, output=output, to=kind)

    def constant(self, values: Any, name: str) -> Tensor:
        """Return a constant; one of a name that is there already is taken to be the same."""
        array = np.asarray(values)
        if all(tensor.name != name for tensor in self.graph.initializer):
            self.graph.initializer.append(numpy_helper.from_array(array, name))
        return Tensor(name, array.shape, onnx.helper.np_dtype_to_tensor_dtype(array.dtype))

    def scalar(self, value: Any, kind: int, word: str) -> Tensor:
        """Return a number as a tensor without dims."""
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
        return self.constant(np.array(value, dtype), f"{self.stem}.{word}")

    def elementwise(self, operator: str, inputs: Sequence[Tensor], kind: int, word: str) -> Tensor:
        """Return an elementwise operator of inputs that are broadcast to each other."""
        shape = np.broadcast_shapes(*(tensor.shape for tensor in inputs))
        return self.node(operator, inputs, shape, kind, word)

    def compare(self, operator: str, x: Tensor, y: Tensor, word: str) -> Tensor:
        """Return where a comparison (`Less`, `Greater`, `Equal`, or of truths `And`, `Or`) holds."""
        return self.elementwise(operator, [x, y], onnx.TensorProto.BOOL, word)

    def where(self, condition: Tensor, x: Tensor, y: Tensor, word: str) -> Tensor:
        """Return `x` where the condition holds, `y` elsewhere."""
        return self.elementwise("Where", [condition, x, y], x.kind, word)

    def unsqueeze(self, x: Tensor, axes: Sequence[int], word: str) -> Tensor:
        """Return `x` with dims of extent 1 at `axes` of the result; `x` itself where there are none."""
        if not axes:
            return x
        rest = iter(x.shape)
        shape = tuple(1 if axis in axes else next(rest) for axis in range(len(x.shape) + len(axes)))
        inputs, attributes = self._axes("Unsqueeze", x, axes)
        return self.node("Unsqueeze", inputs, shape, x.kind, word, **attributes)

    def squeeze(self, x: Tensor, axis: int, word: str) -> Tensor:
        """Return `x` without `axis`, which has extent 1."""
        inputs, attributes = self._axes("Squeeze", x, [axis])
        return self.node("Squeeze", inputs, x.shape[:axis] + x.shape[axis + 1 :], x.kind, word, **attributes)

    def reshape(self, x: Tensor, shape: Sequence[int], word: str) -> Tensor:
        """Return `x` with other extents, of the same product."""
        assert prod(shape) == prod(x.shape)
        if x.shape == tuple(shape):
            return x
        return self.node("Reshape", [x, self._extents(shape, word)], shape, x.kind, word)

    def pad(self, x: Tensor, axis: int, count: int, value: Any, word: str) -> Tensor:
        """Return `x` with `count` elements of `value` behind the others along `axis`."""
        if not count:
            return x
        after = [count if dim == axis else 0 for dim in range(len(x.shape))]
        shape = [extent + more for extent, more in zip(x.shape, after, strict=True)]
        tail = [count if dim == axis else extent for dim, extent in enumerate(x.shape)]
        filler = self.scalar(value, x.kind, f"{word}.value")
        wide = self.node("Expand", [filler, self._extents(tail, word)], tail, x.kind, f"{word}.tail")
        return self.node("Concat", [x, wide], shape, x.kind, word, axis=axis)

    def reduce(self, operator: str, x: Tensor, axis: int, word: str, *, keep: bool = False) -> Tensor:
        """Return `ReduceMax`, `ReduceMin` or `ReduceSum` along one axis, which stays as extent 1 if `keep`."""
        shape = [extent for dim, extent in enumerate(x.shape) if dim != axis or keep]
        shape = [1 if keep and dim == axis else extent for dim, extent in enumerate(shape)]
        inputs, attributes = self._axes(operator, x, [axis])
        return self.node(operator, inputs, shape, x.kind, word, keepdims=int(keep), **attributes)

    def _extents(self, shape: Sequence[int], word: str) -> Tensor:
        return self.constant(np.array(shape, np.int64), f"{self.stem}.{word}.shape")

    def _axes(self, operator: str, x: Tensor, axes: Sequence[int]) -> tuple[list[Tensor], dict[str, Any]]:
        """Return inputs and attributes that name axes: an attribute in old opsets, an input in later ones."""
        if self.opset < _AXES_ARE_INPUT_FROM.get(operator, 13):
            return [x], {"axes": list(axes)}
        listed = self.constant(np.array(axes, np.int64), f"t10.axes.{'_'.join(map(str, axes))}")
        return [x, listed], {}
