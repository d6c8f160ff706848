"""The numbers to compare with: ONNX Runtime in single precision, or references from a file."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.arrays import Arrays
from t10.core.graph import Graph
from t10.errors import InputError

TOLERANCE_F32 = 1e-4
TOLERANCE_F16 = 5e-3
"""Most error of a model that computes in f32, and of one with f16 anywhere, relative to the largest output."""

_FLOATS = {"tensor(double)": np.float64}

INPUT_PREFIX = "in."
REFERENCE_PREFIX = "ref."


@dataclass(frozen=True, slots=True)
class Comparison:
    """One output against its reference: `error` = max|y - ref| / max|ref|, over the finite elements of `ref`.

    Infinite, when an element is not finite where the reference is, or is another infinity or NaN than there.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    error: float
    tolerance: float

    @property
    def is_within(self) -> bool:
        """Return whether the error is at most the tolerance."""
        return self.error <= self.tolerance


def default_tolerance(graph: Graph) -> float:
    """Return the tolerance for a model: that of the least precise floating-point type it holds."""
    dtypes = {value.dtype for value in (*graph.inputs, *graph.weights, *graph.views)}
    dtypes |= {operand.dtype for spec in graph.operators for operand in (*spec.operands, spec.output)}
    return TOLERANCE_F16 if "f16" in dtypes else TOLERANCE_F32


def compare(
    outputs: Mapping[str, Any], references: Mapping[str, Any], tolerance: float
) -> tuple[Comparison, ...]:
    """Return every output against its reference; integers and booleans must be equal.

    Raises `InputError` for an output without reference or with one of another shape.
    """
    result: list[Comparison] = []
    for name, output in outputs.items():
        if name not in references:
            raise InputError(f"output {name} has no reference (found {', '.join(references) or 'none'})")
        reference = np.asarray(references[name])
        found: NDArray[Any] = np.asarray(output)
        if found.shape != reference.shape:
            raise InputError(f"output {name} has shape {found.shape}, its reference {reference.shape}")
        limit = tolerance if found.dtype.kind == "f" else 0.0
        result.append(
            Comparison(name, found.shape, str(found.dtype), relative_error(found, reference), limit)
        )
    return tuple(result)


def relative_error(found: NDArray[Any], reference: NDArray[Any]) -> float:
    """Return max|found - reference| / max|reference| in float64; 0 for empty arrays, see `Comparison`."""
    if not reference.size:
        return 0.0
    y, ref = found.astype(np.float64), reference.astype(np.float64)
    finite = np.isfinite(ref)
    if not np.isfinite(y[finite]).all() or not np.array_equal(y[~finite], ref[~finite], equal_nan=True):
        return float("inf")
    largest = float(np.abs(ref[finite]).max(initial=0.0))
    worst = float(np.abs(y[finite] - ref[finite]).max(initial=0.0))
    return worst / largest if largest else worst


def split_reference(arrays: Arrays) -> tuple[Arrays, Arrays]:
    """Return inputs and references of a file: keys `in.NAME` and `ref.NAME`, or plain names of inputs only."""
    inputs = {k.removeprefix(INPUT_PREFIX): v for k, v in arrays.items() if k.startswith(INPUT_PREFIX)}
    references = {
        k.removeprefix(REFERENCE_PREFIX): v for k, v in arrays.items() if k.startswith(REFERENCE_PREFIX)
    }
    return (inputs, references) if inputs or references else (arrays, {})


def run_onnx_runtime(path: Path, inputs: Arrays) -> Arrays:
    """Return the outputs of ONNX Runtime by name; f16 in the model is computed in f32.

    Raises `InputError` for a model that ONNX Runtime cannot run.
    """
    onnxruntime: Any = importlib.import_module("onnxruntime")
    model = _load(path)
    _widen(model)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        wanted = {value.name: value.type for value in session.get_inputs()}
        feeds = {
            name: array.astype(_FLOATS.get(wanted[name], np.float32)) if array.dtype == np.float16 else array
            for name, array in inputs.items()
            if name in wanted
        }
        names = [value.name for value in session.get_outputs()]
        results = session.run(names, feeds)
    except Exception as error:  # onnxruntime raises classes of its own without a common base
        if not type(error).__module__.startswith("onnxruntime"):
            raise
        raise InputError(f"ONNX Runtime cannot run {path}: {error}") from error
    return {name: np.asarray(result) for name, result in zip(names, results, strict=True)}


def _load(path: Path) -> Any:
    """Return the ONNX model of a file, its external data loaded; text of onnx-mlir is turned back into ONNX."""
    onnx: Any = importlib.import_module("onnx")
    from google.protobuf.message import DecodeError

    if path.suffix != ".onnx":
        return _from_text(path)
    try:
        return onnx.load(path)
    except (OSError, DecodeError, onnx.checker.ValidationError) as error:
        raise InputError(
            f"cannot read {path} with its weights: {error}",
            hint="a model without its external data can be compiled, but not verified",
        ) from error


def _from_text(path: Path) -> Any:
    """Return the ONNX model that text of onnx-mlir holds; raises `InputError` for any other MLIR."""
    from t10.dialect.mlir import ir, new_context
    from t10.frontend.onnx_dialect import to_onnx
    from t10.frontend.onnx_text import holds_onnx, normalize

    text = path.read_text(encoding="utf-8", errors="replace")
    if not holds_onnx(text):
        raise InputError(
            f"{path} holds no ONNX operators, so ONNX Runtime cannot run it",
            hint="give --inputs with references ref.NAME",
        )
    with new_context(allow_unregistered=True):
        return to_onnx(ir.Module.parse(normalize(text)))


def _widen(model: Any) -> None:
    """Turn every f16 in a model into f32: types, tensors, casts; the weights keep their f16 values."""
    import onnx
    from onnx import TensorProto, numpy_helper

    def tensor(t: Any) -> None:
        if t.data_type == TensorProto.FLOAT16:
            t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype(np.float32), t.name))

    def value(v: Any) -> None:
        if v.type.HasField("tensor_type") and v.type.tensor_type.elem_type == TensorProto.FLOAT16:
            v.type.tensor_type.elem_type = TensorProto.FLOAT

    for graph in _graphs(model.graph):
        for each in graph.initializer:
            tensor(each)
        for each in (*graph.input, *graph.output, *graph.value_info):
            value(each)
    for node in _nodes(model):
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                tensor(attribute.t)
            if attribute.name in ("to", "dtype") and attribute.i == TensorProto.FLOAT16:
                attribute.i = TensorProto.FLOAT


def _graphs(graph: Any) -> Iterator[Any]:
    """Yield a graph and those inside its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _graphs(attribute.g)


def _nodes(model: Any) -> Iterator[Any]:
    """Yield all nodes of a model, those of its functions and of graphs inside nodes included."""
    for graph in _graphs(model.graph):
        yield from graph.node
    for function in model.functions:
        yield from function.node
