"""A model whose results are off by what engines may differ by: where its outputs change, a comparison says nothing.

Inputs keep their bits, which every engine and the reference are given alike: the sine of a huge input has one right
value. Off by a last bit are results of functions, and operands of sums and of operators of several steps, which is as
if their sums were taken in another order. In f16, which the reference computes in f32, every result is rounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.arrays import Arrays
from t10.reference import LARGEST_F16, OnnxRuntime
from t10.tolerances import tolerance_of

_RESULT, _OPERAND, _RAW = "t10.result.", "t10.operand.", "t10.raw."
_LAST_BIT = 2.0**-23


class Shaken:
    """A model, its values multiplied by factors near 1."""

    def __init__(self, model: OnnxRuntime, values: Arrays, *, is_half: bool) -> None:
        """Put a factor on what may differ; `values` are what inputs and nodes give, `is_half` says that f16 does."""
        from onnx import helper

        self._is_half = is_half
        self._inexact: set[str] = set()
        changed = type(model.model)()
        changed.CopyFrom(model.model)
        graph = changed.graph
        floats = {name: array.dtype for name, array in values.items() if array.dtype.kind == "f"}
        read = {name for node in graph.node for name in node.input}
        nodes: list[Any] = []
        factors: dict[str, np.dtype[Any]] = {}
        for node in graph.node:
            kind = tolerance_of(node.op_type).kind
            if kind in ("summed", "composed"):
                for place, name in enumerate(node.input):
                    if name not in floats:
                        continue
                    if _OPERAND + name not in factors:
                        factors[_OPERAND + name] = floats[name]
                        self._inexact.add(_OPERAND + name)
                        nodes.append(
                            helper.make_node("Mul", [name, _OPERAND + name], [_OPERAND + name + "."])
                        )
                    node.input[place] = _OPERAND + name + "."
            nodes.append(node)
            for place, name in enumerate(node.output):
                if name in floats and name in read and (is_half or kind != "exact"):
                    factors[_RESULT + name] = floats[name]
                    if kind != "exact":
                        self._inexact.add(_RESULT + name)
                    node.output[place] = _RAW + name
                    nodes.append(helper.make_node("Mul", [_RAW + name, _RESULT + name], [name]))
        copied = helper.make_graph(nodes, graph.name, [], []).node
        del graph.node[:]
        graph.node.extend(copied)
        graph.input.extend(
            # Extents are left out: those that ONNX infers of a pool with `ceil_mode` may be wrong.
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(dtype), [None] * values[_value(name)].ndim
            )
            for name, dtype in factors.items()
        )
        self._factors = tuple(factors)
        self._model = OnnxRuntime(changed, model.path, model.fixed)

    def outputs(self, inputs: Arrays, values: Arrays) -> Iterator[Arrays]:
        """Yield the outputs for some inputs, last bits up or down at random, and the other way; `values` are exact."""
        for sign in (-1, 1):
            generator = np.random.default_rng(0)
            factors = {
                name: self._factor(name, values[_value(name)], sign, generator) for name in self._factors
            }
            yield self._model.outputs({**inputs, **factors})

    def _factor(
        self, name: str, value: NDArray[Any], sign: int, generator: np.random.Generator
    ) -> NDArray[Any]:
        """Return by what a value is multiplied: rounded to f16, and a last bit off, as far as it may differ so."""
        factor = np.ones(value.shape)
        if self._is_half and name.startswith(_RESULT):
            is_held = (value != 0) & (np.abs(value) <= LARGEST_F16)
            safe = np.where(is_held, value, 1)
            factor = safe.astype(np.float16) / safe.astype(np.float64)
        if name in self._inexact:
            factor = factor * (1 + sign * _LAST_BIT * generator.choice([-1, 1], value.shape))
        return np.asarray(factor).astype(value.dtype)


def _value(factor: str) -> str:
    """Return the value that a factor is for."""
    return factor.removeprefix(_RESULT).removeprefix(_OPERAND)
