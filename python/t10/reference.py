"""The numbers to compare with: ONNX Runtime in single precision, or references from a file."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.arrays import Arrays, read_arrays
from t10.core.graph import Graph, TensorValue
from t10.core.guard import running_reference
from t10.core.trust.arrays import array_names
from t10.core.trust.files import MODEL_BYTES, UNDECODABLE, read_text
from t10.errors import InputError
from t10.narrow_ends import held, widen_ends
from t10.tolerances import loosest

_FED = {
    f"tensor({name})": np.dtype(kind)
    for name, kind in (("double", "f8"), ("float", "f4"), ("int64", "i8"), ("int32", "i4"), ("int16", "i2"),
                       ("int8", "i1"), ("uint64", "u8"), ("uint32", "u4"), ("uint16", "u2"), ("uint8", "u1"),
                       ("bool", "?"))
}  # fmt: skip
"""numpy types by the names that sessions have for their inputs' types."""

_UNREADABLE = "tensor(bfloat16)"
"""What sessions compute but do not return: numpy has no such type."""

_EXACT = ("session.x64quantprecision", "session.disable_quant_qdq")
"""Without these, products of uint8 and int8 saturate in 16 bits on processors without VNNI."""

_BY_THREADS = "DynamicQuantizeLSTM"
"""What several threads compute otherwise: they quantise each row of the state by itself."""

_SINGLE = 1
"""The accuracy level of MatMulNBits that is f32; 4 rounds what is multiplied to 8 bits."""

LARGEST_F16 = 65504.0

MOST_NAMED = 20
"""Names of a file that an error lists."""

INPUT_PREFIX = "in."
REFERENCE_PREFIX = "ref."


@dataclass(frozen=True, slots=True)
class Comparison:
    """One output against its reference: `error` = max|y - ref| / max|ref|, over the finite elements of `ref`.

    Infinite, when an element is not finite where the reference is, or is another infinity or NaN than there. `worst` is
    the index of the element that is furthest off, `found` and `expected` are what stands there. `note` says where
    another reference than ONNX Runtime counts.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    error: float
    tolerance: float
    worst: tuple[int, ...] = ()
    found: float | int | bool = 0
    expected: float | int | bool = 0
    note: str = ""

    @property
    def is_within(self) -> bool:
        """Return whether the error is at most the tolerance."""
        return self.error <= self.tolerance

    @property
    def worst_text(self) -> str:
        """Return the element that is furthest off: `y[3, 0] is 1.5, expected 2`."""
        place = f"[{', '.join(map(str, self.worst))}]" if self.worst else ""
        return f"{self.name}{place} is {self.found:.9g}, expected {self.expected:.9g}"


def default_tolerance(graph: Graph) -> float:
    """Return the tolerance for a model: that of the least precise floating-point type it holds."""
    dtypes = {value.dtype for value in (*graph.inputs, *graph.weights, *graph.views)}
    dtypes |= {operand.dtype for spec in graph.operators for operand in (*spec.operands, spec.output)}
    return loosest(dtypes | {"f32"})


def compare(
    outputs: Mapping[str, Any],
    references: Mapping[str, Any],
    tolerance: float,
    more: Mapping[str, float] | None = None,
) -> tuple[Comparison, ...]:
    """Return every output against its reference; integers and booleans must be equal.

    `more` is what outputs may be off by besides the tolerance.

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
        limit = tolerance + (more or {}).get(name, 0.0) if found.dtype.kind == "f" else 0.0
        error, worst = _furthest(found, reference)
        there = (found[worst].item(), reference[worst].item()) if found.size else (0, 0)
        result.append(Comparison(name, found.shape, str(found.dtype), error, limit, worst, *there))
    return tuple(result)


def relative_error(found: NDArray[Any], reference: NDArray[Any]) -> float:
    """Return max|found - reference| / max|reference|; 0 for empty arrays, see `Comparison`."""
    return _furthest(found, reference)[0]


def nearer(found: NDArray[Any], first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Return of two references, element by element, the one that a result is nearer to."""
    return np.where(_differences(found, first)[0] <= _differences(found, second)[0], first, second)


def _furthest(found: NDArray[Any], reference: NDArray[Any]) -> tuple[float, tuple[int, ...]]:
    """Return the error as `Comparison` defines it, and the index of the element that is furthest off."""
    if not reference.size:
        return 0.0, ()
    off, largest = _differences(found, reference)
    place = tuple(int(i) for i in np.unravel_index(int(np.argmax(off)), off.shape))
    worst = float(off[place])
    return (worst / largest if largest and np.isfinite(worst) else worst), place


def _differences(found: NDArray[Any], reference: NDArray[Any]) -> tuple[NDArray[np.float64], float]:
    """Return by how much every element is off, and the largest finite magnitude of the reference.

    Integers are subtracted as integers: a float holds not all of them. A finite number that f16 does not hold may be
    its largest there, or infinite.
    """
    if found.dtype.kind in "biu" and reference.dtype.kind in "biu":
        y, ref = found.astype(object), reference.astype(object)
        off = np.asarray(np.abs(y - ref)).astype(np.float64)
        return off, float(np.abs(reference.astype(np.float64)).max(initial=0.0))
    y, ref = found.astype(np.float64), reference.astype(np.float64)
    finite = np.isfinite(ref)
    if found.dtype == np.float16:
        y, ref = (np.where(finite, np.clip(each, -LARGEST_F16, LARGEST_F16), each) for each in (y, ref))
    with np.errstate(invalid="ignore"):
        off = np.where(
            finite, np.abs(y - ref), np.where((y == ref) | (np.isnan(y) & np.isnan(ref)), 0.0, np.inf)
        )
    return np.where(np.isnan(off), np.inf, off), float(np.abs(ref[finite]).max(initial=0.0))


def read_given(
    path: Path | str, inputs: Sequence[TensorValue], outputs: Collection[str] = ()
) -> tuple[Arrays, Arrays]:
    """Return inputs and references of a file: an input `x` is the array `x`, or `in.x`; its reference `y` is `ref.y`.

    Raises `InputError` for an array that is none of these, for an input of another shape, before it is unpacked, and
    for a reference that does not hold real numbers.
    """
    shapes = {value.name: value.shape for value in inputs}
    name_of = {INPUT_PREFIX + name: name for name in shapes} | {name: name for name in shapes}
    outputs_by = {REFERENCE_PREFIX + name: name for name in outputs if REFERENCE_PREFIX + name not in name_of}

    def shape_of(name: str) -> tuple[int, ...] | None:
        if name in outputs_by:
            return None
        if name not in name_of:
            names = array_names(path)
            unknown = [each for each in names if each not in name_of and each not in outputs_by]
            raise InputError(
                f"{path}: unknown inputs: {_listed(unknown)} (the model takes {', '.join(shapes) or 'none'}; the file "
                f"has {_listed(names)})"
            )
        return shapes[name_of[name]]

    arrays = read_arrays(path, shape_of)
    references = {outputs_by[name]: array for name, array in arrays.items() if name in outputs_by}
    for name, array in references.items():
        if array.dtype.kind not in "biuf":
            raise InputError(f"{path}: reference {name} has type {array.dtype}, expected real numbers")
    given: Arrays = {}
    for name, array in arrays.items():
        if name_of.get(name) in given:
            raise InputError(f"{path}: unknown inputs: {name} ({name_of[name]} is given twice)")
        if name in name_of:
            given[name_of[name]] = array
    return given, references


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_NAMED]) + (", ..." if len(names) > MOST_NAMED else "")


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
    return OnnxRuntime(load_onnx(path), path).outputs(inputs)


class OnnxRuntime:
    """A model as ONNX Runtime computes it, every f16 and bf16 in f32; what it is given and does not take is left out.

    Raises `InputError` for a model that ONNX Runtime cannot run, naming `path`.
    """

    def __init__(self, model: Any, path: Path, fixed: Mapping[str, NDArray[Any]] | None = None) -> None:
        """Keep the model, and inputs that are always the same (`fixed`)."""
        from t10.frontend.aligned_operands import BROADCASTING
        from t10.frontend.opsets import raise_opset

        self.path, self.fixed = path, dict(fixed or {})
        copied = type(model)()
        copied.CopyFrom(model)
        self.model = raise_opset(copied, BROADCASTING)  # ONNX Runtime has no older operators.
        _widen(self.model)
        _compute_in_single(self.model)
        self._holds = widen_ends(self.model)
        self._sessions: dict[bool, Any] = {}

    def outputs(self, inputs: Arrays) -> Arrays:
        """Return the outputs by name."""
        return self._run(inputs, with_inner=False)

    def values(self, inputs: Arrays) -> Arrays:
        """Return the outputs and tensors that nodes of the main graph give, by name, in the order of the nodes."""
        return self._run(inputs, with_inner=True)

    def held(self, inputs: Arrays) -> Arrays:
        """Return inputs with the nearest values that the model's own types have: those of float8 are few."""
        return held(inputs, self._holds)

    def feeds(self, inputs: Arrays) -> Arrays:
        """Return all inputs of the model, with the types that it has in f32."""
        self.outputs(inputs)
        return self._feeds(self._sessions[False], inputs)

    def _feeds(self, session: Any, inputs: Arrays) -> Arrays:
        given = {**self.fixed, **inputs}
        return {
            each.name: _fed(given[each.name], each.type, each.shape) if each.name in given else _unread(each)
            for each in session.get_inputs()
        }

    def _session(self, *, with_inner: bool) -> Any:
        onnxruntime: Any = importlib.import_module("onnxruntime")
        import onnx

        from t10.frontend.unsupported import any_node

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        for entry in _EXACT:
            options.add_session_config_entry(entry, "1")
        if any_node(self.model, lambda node: node.op_type == _BY_THREADS):
            options.intra_op_num_threads = 1
        model = self.model
        if with_inner:
            model = type(model)()
            model.CopyFrom(self.model)
            known = {value.name for value in model.graph.output}
            inner = [name for node in model.graph.node for name in node.output if name and name not in known]
            model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in inner)
        written, providers = model.SerializeToString(), ["CPUExecutionProvider"]
        try:
            return onnxruntime.InferenceSession(written, options, providers=providers)
        except (
            Exception
        ):  # a class of its own; its optimizer spoils some models, such as MatMul and Add of QDQ
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            return onnxruntime.InferenceSession(written, options, providers=providers)

    def _run(self, inputs: Arrays, *, with_inner: bool) -> Arrays:
        try:
            with running_reference(str(self.path)):
                if with_inner not in self._sessions:
                    self._sessions[with_inner] = self._session(with_inner=with_inner)
                session = self._sessions[with_inner]
                made = session.get_outputs()
                names = [value.name for value in made if _is_read(value.type, with_inner=with_inner)]
                results = session.run(names, self._feeds(session, inputs))
        except Exception as error:  # onnxruntime raises classes of its own without a common base
            if not type(error).__module__.startswith("onnxruntime"):
                raise
            raise InputError(f"ONNX Runtime cannot run {self.path}: {error}") from error
        pairs = zip(names, results, strict=True)
        return {
            name: np.asarray(each) for name, each in pairs if not isinstance(each, (list, dict, type(None)))
        }


def _is_read(kind: str, *, with_inner: bool) -> bool:
    """Return whether a session gives arrays of a type; of values inside a model, what an optional holds is none."""
    return kind != _UNREADABLE and not (with_inner and kind.startswith("optional("))


def _unread(value: Any) -> NDArray[Any]:
    """Return zeros for an input that is not given: a compiled model takes no inputs that it does not read."""
    shape = [extent if isinstance(extent, int) else 1 for extent in value.shape]
    return np.zeros(shape, _FED.get(value.type, np.float32))


def _fed(array: NDArray[Any], kind: str, shape: Sequence[Any] | None = None) -> NDArray[Any]:
    """Return an input with the type that a session takes, where that differs in size only; one element has any rank."""
    wanted = _FED.get(kind, array.dtype)
    if shape is not None and array.size == 1 and array.ndim != len(shape):
        array = array.reshape([1] * len(shape))
    return array.astype(wanted) if wanted.kind == array.dtype.kind else array


def load_onnx(path: Path) -> Any:
    """Return the ONNX model of a file, its external data loaded; text of onnx-mlir is turned back into ONNX.

    ONNX and ONNX Runtime read it next: its form is checked first, as that of a model to compile is.
    """
    onnx: Any = importlib.import_module("onnx")
    from google.protobuf.message import DecodeError

    from t10.frontend.onnx_file import read_onnx
    from t10.frontend.rules import check_rules

    if path.suffix != ".onnx":
        return _from_text(path)
    check_rules(read_onnx(path), str(path))
    try:
        return onnx.load(path)
    except (OSError, DecodeError, onnx.checker.ValidationError, *UNDECODABLE) as error:
        raise InputError(
            f"cannot read {path} with its weights: {error}",
            hint="a model without its external data can be compiled, but not verified",
        ) from error


def _from_text(path: Path) -> Any:
    """Return the ONNX model that text of onnx-mlir holds; raises `InputError` for any other MLIR."""
    from t10.dialect.mlir import ir, new_context
    from t10.frontend.onnx_dialect import to_onnx
    from t10.frontend.onnx_text import holds_onnx, normalize

    text = read_text(path, MODEL_BYTES)
    if not holds_onnx(text):
        raise InputError(
            f"{path} holds no ONNX operators, so ONNX Runtime cannot run it",
            hint="give --inputs with references ref.NAME",
        )
    with new_context(allow_unregistered=True):
        return to_onnx(ir.Module.parse(normalize(text)))


def _compute_in_single(model: Any) -> None:
    """Let products with packed weights be those of f32 where their accuracy level allows less."""
    for node in _nodes(model):
        for attribute in node.attribute:
            if attribute.name == "accuracy_level":
                attribute.i = _SINGLE


def _widen(model: Any) -> None:
    """Turn every f16 and bf16 in a model into f32: types, tensors, casts; the weights keep their values."""
    import onnx
    from onnx import TensorProto, numpy_helper

    narrow = (TensorProto.FLOAT16, TensorProto.BFLOAT16)

    def tensor(t: Any) -> None:
        if t.data_type in narrow:
            t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype(np.float32), t.name))

    def value(v: Any) -> None:
        if v.type.HasField("tensor_type") and v.type.tensor_type.elem_type in narrow:
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
            if attribute.name in ("to", "dtype") and attribute.i in narrow:
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
