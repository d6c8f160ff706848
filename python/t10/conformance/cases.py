"""Test cases of the onnx package: a model, its inputs, what must come out, and how near."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper
from onnx.backend.test import loader

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "light")
"""Kinds of tests that come with the onnx package; `light` are whole networks whose weights are made on the spot."""

CHIPS = ("test-4", "test-64", "ipu-mk2")
"""Where a model is tried in turn, until it fits."""
NETWORK_CHIPS = ("ipu-mk2",)

Shape = tuple[int, ...]

_onnx: Any = onnx  # some of its functions are typed in part only
_DATA = Path(loader.DATA_DIR)


@dataclass(frozen=True, slots=True)
class DataSet:
    """Inputs in the order of the graph's inputs, and outputs; what is no tensor is None.

    Without outputs the reference is what ONNX Runtime computes.
    """

    inputs: tuple[NDArray[Any] | None, ...]
    outputs: tuple[NDArray[Any] | None, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One test: `name` starts with its kind; an output y of a reference r may differ by `atol + rtol * |r|`.

    It is compiled for the first of `chips` that holds it.
    """

    name: str
    model: Any = field(repr=False)
    data_sets: tuple[DataSet, ...] = field(repr=False)
    rtol: float
    atol: float
    chips: tuple[str, ...] = CHIPS
    shapes: Mapping[str, Shape] = field(default_factory=dict[str, Shape])
    """Extents by name of an input that the model leaves open."""

    @property
    def kind(self) -> str:
        """Return which of `KINDS` it is."""
        return self.name.partition("/")[0]

    @property
    def operator(self) -> str:
        """Return operator and opset of a model of one node, like `Add-14`; empty for others."""
        nodes = self.model.graph.node
        if len(nodes) != 1 or self.kind != "node":
            return ""
        domain = nodes[0].domain if nodes[0].domain != "ai.onnx" else ""
        version = next((o.version for o in self.model.opset_import if o.domain == domain), 0)
        prefix = f"{domain}." if domain else ""
        return f"{prefix}{nodes[0].op_type}-{version}"


def load_cases(kinds: Sequence[str] = KINDS) -> tuple[Case, ...]:
    """Return the cases of some kinds, ordered by name."""
    cases: list[Case] = []
    for kind in kinds:
        if kind == "light":
            cases.extend(_light_cases())
        else:
            cases.extend(_cases(kind))
    return tuple(sorted(cases, key=lambda case: case.name))


def _cases(kind: str) -> Iterator[Case]:
    with warnings.catch_warnings():
        # Node tests compute their references as they are loaded: overflow there is meant.
        warnings.simplefilter("ignore")
        found = loader.load_model_tests(kind=kind)
    for test in found:
        if test.model_dir is None:
            model, sets = test.model, [_data_set(*each) for each in test.data_sets or ()]
        else:
            folder = Path(test.model_dir)
            model = _onnx.load(str(folder / "model.onnx"))
            sets = [_stored(each, model) for each in sorted(folder.glob("test_data_set*"))]
        yield Case(f"{kind}/{test.name}", model, tuple(sets), test.rtol, test.atol)


def _light_cases() -> Iterator[Case]:
    """Yield the networks; their input is 0, 1/n, 2/n, ... as the onnx package's runner feeds it.

    Their weights are all alike, so that scores of classes are equal and as large as 1e21: what a softmax makes of them
    is decided by rounding. They are compared before it.
    """
    for path in sorted((_DATA / "light").glob("*.onnx")):
        model = _without_softmax(_onnx.load(str(path)))
        constants = {tensor.name for tensor in model.graph.initializer}
        inputs = tuple(_ramp(value) for value in model.graph.input if value.name not in constants)
        yield Case(
            f"light/{path.stem.removeprefix('light_')}",
            model,
            (DataSet(inputs, ()),),
            1e-3,
            1e-7,
            NETWORK_CHIPS,
        )


def _without_softmax(model: Any) -> Any:
    graph = model.graph
    output, last = graph.output[0], graph.node[-1]
    if last.op_type == "Softmax" and list(last.output) == [output.name]:
        output.name = last.input[0]
        del graph.node[-1]
    return model


def _ramp(value: Any) -> NDArray[Any]:
    shape = tuple(dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim)
    n = int(np.prod(shape))
    return (np.arange(n).reshape(shape) / n).astype(np.float32)


def _data_set(inputs: Sequence[Any], outputs: Sequence[Any]) -> DataSet:
    return DataSet(tuple(map(_array, inputs)), tuple(map(_array, outputs)))


def _array(value: Any) -> NDArray[Any] | None:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    is_array = isinstance(value, np.ndarray | np.generic)
    array: Any = value
    return np.asarray(array) if is_array else None


def _stored(folder: Path, model: Any) -> DataSet:
    """Return a data set of files `input_0.pb`, ...; a sequence or an optional is None."""

    def read(word: str, values: Any) -> tuple[NDArray[Any] | None, ...]:
        files = [folder / f"{word}_{i}.pb" for i in range(len(list(folder.glob(f"{word}_*.pb"))))]
        return tuple(
            _tensor(file) if value.type.HasField("tensor_type") else None
            for file, value in zip(files, values, strict=False)
        )

    return DataSet(read("input", model.graph.input), read("output", model.graph.output))


def _tensor(file: Path) -> NDArray[Any]:
    return numpy_helper.to_array(onnx.TensorProto.FromString(file.read_bytes()))
