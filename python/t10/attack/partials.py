"""What a model's outputs may be off by because sums are kept in f16 (docs/numerics.md, "Partials").

Every sum that is kept in f16 is off by at most the bound of `t10.core.partials`. The reference is computed again with
each of these sums off by that much, up or down at random: outputs may be off by what they change then, besides the
tolerance that all models have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from t10.arrays import Arrays
from t10.core.expression import OperatorSpec
from t10.errors import InputError
from t10.reference import LARGEST_F16, OnnxRuntime, relative_error

LINEAR = frozenset(
    (
        "AveragePool", "Conv", "ConvTranspose", "Einsum", "Gemm", "GlobalAveragePool", "MatMul", "ReduceL1",
        "ReduceMean", "ReduceSum", "ReduceSumSquare",
    )
)  # fmt: skip
"""Operators that give the sum of their terms' squares, or more, of the squares of their operands."""
LEAST_NORMAL_F16 = 2.0**-14
"""Below it, a rounding is one of this number."""
SPREAD = 4.0
"""How many roots of squares a sum may be from 0 on the way."""
N_DRAWS = 2
_RAW, _OFF, _SIZE, _SQUARE, _LEAST = "t10.raw.", "t10.off.", "t10.size.", "t10.square.", "t10.least"


class Allowance:
    """A model whose sums in f16 are off by their bounds."""

    def __init__(self, model: OnnxRuntime, operators: Iterable[tuple[OperatorSpec, float]]) -> None:
        """Keep the model, and the bounds (`allowed_errors`) of its operators by the nodes that they come from."""
        self._model = model
        self._errors, self._elsewhere = errors_by_node(model.model, operators)
        self._changed: OnnxRuntime | None = None
        self._known: list[tuple[Arrays, dict[str, float]]] = []

    @property
    def is_needed(self) -> bool:
        """Return whether any sum is kept in f16."""
        return bool(self._errors) or self._elsewhere > 0

    def of(self, inputs: Arrays) -> Mapping[str, float]:
        """Return by output what its largest error may be, relative to its largest magnitude."""
        if not self.is_needed:
            return {}
        for known, found in self._known:
            if known is inputs:
                return found
        exact = self._model.outputs(inputs)
        more = dict.fromkeys(exact, self._elsewhere)
        for off in self._outputs(inputs):
            for name, array in exact.items():
                error = relative_error(off[name], array) if array.dtype.kind == "f" else 0.0
                if not np.isfinite(error):
                    raise InputError(
                        f"what sums in f16 may change of {name} is not known: it is not finite",
                        hint="give --tolerance",
                    )
                more[name] = max(more[name], error + self._elsewhere)
        self._known.append((inputs, more))
        return more

    def overflows(self, inputs: Arrays) -> bool:
        """Return whether a sum may be beyond f16 on the way."""
        if not self._errors:
            return False
        offs = self._offs(self._model.values(inputs), 1, np.random.default_rng(0))
        values = self._with_errors(inputs).values({**inputs, **offs})
        sizes = [array for name, array in values.items() if name.startswith(_SIZE)]
        return any(not (SPREAD * array <= LARGEST_F16).all() for array in sizes)

    def _outputs(self, inputs: Arrays) -> Iterator[Arrays]:
        """Yield the outputs with sums off at random, and the other way."""
        if not self._errors:
            return
        changed, values = self._with_errors(inputs), self._model.values(inputs)
        for draw in range(N_DRAWS):
            for sign in (-1, 1):
                offs = self._offs(values, sign, np.random.default_rng(draw))
                yield changed.outputs({**inputs, **offs})

    def _offs(self, values: Arrays, sign: int, generator: np.random.Generator) -> Arrays:
        """Return by how much every sum is off, as a part of its size."""
        return {
            _OFF + name: (sign * error * generator.choice([-1, 1], values[name].shape)).astype(np.float32)
            for name, error in self._errors.items()
        }

    def _with_errors(self, inputs: Arrays) -> OnnxRuntime:
        if self._changed is None:
            values = {**inputs, **self._model.values(inputs)}
            changed = _Changed(self._model.model, values).off(self._errors)
            self._changed = OnnxRuntime(changed, self._model.path, self._model.fixed)
        return self._changed


def errors_by_node(
    model: Any, operators: Iterable[tuple[OperatorSpec, float]]
) -> tuple[dict[str, float], float]:
    """Return the largest bound by the first output of the node that operators come from, and that of all others."""
    outputs = {node.name or node.output[0]: node.output[0] for node in model.graph.node}
    errors: dict[str, float] = {}
    elsewhere = 0.0
    for spec, error in operators:
        if not error:
            continue
        name = _node_of(spec.location, outputs)
        if name is None:
            elsewhere = max(elsewhere, error)
        else:
            errors[outputs[name]] = max(errors.get(outputs[name], 0.0), error)
    return errors, elsewhere


def _node_of(location: str, names: Mapping[str, str]) -> str | None:
    """Return the node that an operator comes from: what a node is written with has a longer name."""
    while location and location not in names:
        location = location.rpartition(".")[0]
    return location or None


@dataclass(slots=True)
class _Changed:
    """A model that is written anew: `nodes` so far; `values` are what inputs and nodes give."""

    model: Any
    values: Arrays
    nodes: list[Any] = field(default_factory=list[Any])
    squares: set[str] = field(default_factory=set[str])

    def off(self, errors: Mapping[str, float]) -> Any:
        """Return the model in which every value of `errors` is off by its size times an input of the model."""
        from onnx import TensorProto, helper, numpy_helper

        changed = type(self.model)()
        changed.CopyFrom(self.model)
        graph = changed.graph
        for node in graph.node:
            if node.output[0] in errors:
                self._add_off(node)
            else:
                self.nodes.append(node)
        copied = helper.make_graph(self.nodes, graph.name, [], []).node
        del graph.node[:]
        graph.node.extend(copied)
        graph.initializer.append(numpy_helper.from_array(np.array(LEAST_NORMAL_F16, np.float32), _LEAST))
        graph.input.extend(
            helper.make_tensor_value_info(_OFF + name, TensorProto.FLOAT, [None] * self.values[name].ndim)
            for name in errors
        )
        return changed

    def _add_off(self, node: Any) -> None:
        """Add a node, the size of its sums (|sum| + root of the terms' squares), and what makes it off."""
        name = node.output[0]
        raw, squares = _RAW + name, f"{_SQUARE}{_SIZE}{name}"
        if node.op_type in LINEAR:
            self._add_squares(node, squares)
        node.output[0] = raw
        self.nodes.append(node)
        if node.op_type not in LINEAR:
            # Of an operator of several steps, as if every result had the size of the largest.
            self._add("Mul", [raw, raw], f"{squares}.")
            self._add("ReduceMax", [f"{squares}."], squares, keepdims=0)
        self._add("Sqrt", [squares], f"{_RAW}{squares}")
        self._add("Abs", [raw], f"{_RAW}{raw}")
        self._add("Add", [f"{_RAW}{raw}", f"{_RAW}{squares}"], f"{_RAW}{_SIZE}{name}")
        self._add("Max", [f"{_RAW}{_SIZE}{name}", _LEAST], _SIZE + name)
        self._add("Mul", [_SIZE + name, _OFF + name], f"{_OFF}{name}.")
        self._add("Add", [raw, f"{_OFF}{name}."], name)

    def _add_squares(self, node: Any, result: str) -> None:
        """Add the node once more, of the squares of what it is given."""
        terms = type(node)()
        terms.CopyFrom(node)
        terms.name = ""
        del terms.input[:], terms.output[:]
        terms.input.extend([self._squared(each) for each in node.input])
        terms.output.append(result)
        for attribute in terms.attribute:
            if attribute.name in ("alpha", "beta"):
                attribute.f *= attribute.f
        self.nodes.append(terms)

    def _squared(self, name: str) -> str:
        if not self._is_float(name):
            return name
        if name not in self.squares:
            self.squares.add(name)
            self._add("Mul", [name, name], _SQUARE + name)
        return _SQUARE + name

    def _is_float(self, name: str) -> bool:
        from onnx import TensorProto

        if name in self.values:
            # Inputs may be f16, which the model takes as f32.
            return self.values[name].dtype.kind == "f"
        given = {each.name: each.data_type for each in self.model.graph.initializer}
        return given.get(name) == TensorProto.FLOAT

    def _add(self, operator: str, inputs: list[str], result: str, **attributes: Any) -> None:
        from onnx import helper

        self.nodes.append(helper.make_node(operator, inputs, [result], **attributes))
