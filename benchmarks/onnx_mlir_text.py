"""Write ONNX models as `onnx-mlir --EmitONNXBasic` would, where there is no onnx-mlir.

Held against what onnx-mlir 0.4.2 wrote of tests of the onnx package (`test/unit/test_onnx_mlir_text.py`): operators,
their names by opset, operands, attributes and the types of a function are alike; types in between are those that ONNX's
shape inference finds. Operators that its dialect does not have are inlined if they are functions, otherwise Custom.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper, inliner, numpy_helper

ELEMENTS = {
    "FLOAT": "f32", "FLOAT16": "f16", "DOUBLE": "f64", "BFLOAT16": "bf16", "BOOL": "i1", "INT8": "i8", "INT16": "i16",
    "INT32": "i32", "INT64": "i64", "INT4": "i4", "UINT8": "ui8", "UINT16": "ui16", "UINT32": "ui32", "UINT64": "ui64",
    "UINT4": "ui4", "FLOAT8E4M3FN": "f8E4M3FN", "FLOAT8E4M3FNUZ": "f8E4M3FNUZ", "FLOAT8E5M2": "f8E5M2",
    "FLOAT8E5M2FNUZ": "f8E5M2FNUZ", "COMPLEX64": "complex<f32>", "COMPLEX128": "complex<f64>", "STRING": "!onnx.String",
}  # fmt: skip
"""Element types by their names in ONNX; onnx-mlir refuses models with others."""

VERSIONS = {
    "Clip": (13, 12, 11, 6), "DFT": (20, 17), "GridSample": (22, 16), "GroupNormalization": (21, 18),
    "Pad": (21, 18, 13, 11, 2), "ReduceL1": (18, 13), "ReduceL2": (18, 13), "ReduceLogSum": (18, 13),
    "ReduceLogSumExp": (18, 13), "ReduceMax": (20, 18, 13), "ReduceMean": (18, 13), "ReduceMin": (20, 18, 13),
    "ReduceProd": (18, 13), "ReduceSum": (13, 11), "ReduceSumSquare": (18, 13), "Resize": (19, 18, 13, 11, 10),
    "Softmax": (13, 11), "Split": (18, 13, 11), "Squeeze": (21, 11), "Unsqueeze": (21, 11), "Upsample": (10, 7),
}  # fmt: skip
"""The opsets whose forms of an operator onnx-mlir tells apart, by operator, newest first."""

ABSENT = frozenset(
    {
        "AffineGrid", "BitCast", "CausalConvWithState", "CumProd", "FlexAttention", "ImageDecoder", "LinearAttention",
        "RMSNormalization", "RegexFullMatch", "RotaryEmbedding", "StringConcat", "StringSplit", "SwiGLU", "Swish",
        "TensorScatter", "TreeEnsemble",
    }
)  # fmt: skip
"""Operators of ONNX that the onnx dialect does not have."""
_ONE_RESULT = {"MaxPool": "MaxPoolSingleOut", "BatchNormalization": "BatchNormalizationInferenceMode"}

_onnx: Any = onnx  # some of its functions are typed in part only


class NotWritten(Exception):
    """A model that onnx-mlir refuses."""


def emitted(model: Any, name: str) -> str:
    """Return the text of a model; raises `NotWritten` for one that onnx-mlir does not read."""
    model = _inlined(_inferred(model))
    writer = _Writer(model)
    lines = writer.function()
    head = f'module attributes {{"onnx-mlir.symbol-postfix" = "{name.lower()}"}} {{'
    return "\n".join([head, *lines, '  "onnx.EntryPoint"() <{func = @main_graph}> : () -> ()', "}", ""])


def _inferred(model: Any) -> Any:
    try:
        return _onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception:  # a model whose types do not fit together is written as far as it goes
        return model


def _inlined(model: Any) -> Any:
    """Return the model with functions of its own, and operators that the dialect does not have, expanded."""
    if model.functions:
        model = _inferred(inliner.inline_local_functions(model))
    present = {(node.domain, node.op_type) for node in model.graph.node}
    versions = {entry.domain: entry.version for entry in model.opset_import}
    chosen = [each for each in sorted(present) if each[1] in ABSENT and _is_function(*each, versions)]
    if not chosen:
        return model
    for node in model.graph.node:
        if (node.domain, node.op_type) in chosen:
            _state_defaults(node, versions)
    try:
        return _inferred(inliner.inline_selected_functions(model, chosen, inline_schema_functions=True))
    except RuntimeError:  # types that its body asks for are not known
        return model


def _state_defaults(node: Any, versions: dict[str, int]) -> None:
    """State attributes that a node leaves at their defaults: the inliner forgets some of these."""
    given = {attribute.name for attribute in node.attribute}
    schema = onnx.defs.get_schema(node.op_type, versions.get(node.domain, 1), node.domain)
    for name, attribute in schema.attributes.items():
        if name not in given and attribute.default_value.type:
            node.attribute.append(attribute.default_value)


def _is_function(domain: str, kind: str, versions: dict[str, int]) -> bool:
    version = versions.get(domain, 1)
    if not onnx.defs.has(kind, version, domain):
        return False
    schema: Any = onnx.defs.get_schema(kind, version, domain)
    return bool(schema.has_function or schema.has_context_dependent_function)


def tensor_text(elem_type: int, dims: str) -> str:
    """Return a tensor type; raises `NotWritten` for element types that onnx-mlir does not have."""
    name = onnx.TensorProto.DataType.Name(elem_type)
    if name not in ELEMENTS:
        raise NotWritten(f"element type {name}")
    return f"tensor<{dims}{ELEMENTS[name]}>"


def type_text(kind: Any) -> str:
    """Return a type of ONNX in MLIR's spelling; an extent of 0 is not told from one that is not known."""
    if kind.HasField("tensor_type"):
        tensor = kind.tensor_type
        if not tensor.HasField("shape"):
            return tensor_text(tensor.elem_type, "*x")
        return tensor_text(
            tensor.elem_type, "".join(f"{d.dim_value if d.dim_value > 0 else '?'}x" for d in tensor.shape.dim)
        )
    if kind.HasField("sequence_type"):
        return f"!onnx.Seq<{type_text(kind.sequence_type.elem_type)}>"
    if kind.HasField("optional_type"):
        return f"!onnx.Opt<{type_text(kind.optional_type.elem_type)}>"
    raise NotWritten(f"type {kind.WhichOneof('value')}")


def constant_text(tensor: Any) -> str:
    """Return a tensor as MLIR writes one."""
    name = onnx.TensorProto.DataType.Name(tensor.data_type)
    kind = tensor_text(tensor.data_type, "".join(f"{n}x" for n in tensor.dims))
    if name == "STRING":
        return (
            f"dense<{_nested([_quoted(s.decode()) for s in tensor.string_data], list(tensor.dims))}> : {kind}"
        )
    array = numpy_helper.to_array(tensor)
    if array.size == 0:
        return f"dense<> : {kind}"
    if array.size > 100 and array.dtype.itemsize * 8 == np.dtype(array.dtype).itemsize * 8 and name != "BOOL":
        return f'dense<"0x{np.ascontiguousarray(array).tobytes().hex().upper()}"> : {kind}'
    values = [_number(each, name) for each in array.reshape(-1)]
    return f"dense<{_nested(values, list(array.shape))}> : {kind}"


def _nested(values: list[str], shape: list[int]) -> str:
    if not shape:
        return values[0]
    step = len(values) // shape[0] if shape[0] else 0
    parts = [_nested(values[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]
    return f"[{', '.join(parts)}]"


def _number(value: Any, name: str) -> str:
    if name == "BOOL":
        return "true" if value else "false"
    if name.startswith("COMPLEX"):
        return f"({_real(value.real)},{_real(value.imag)})"
    return str(int(value)) if "INT" in name else _real(value)


def _real(value: Any) -> str:
    if np.isfinite(value):
        return f"{float(value):.17e}" if np.asarray(value).dtype.itemsize == 8 else f"{float(value):.9e}"
    array = np.asarray(value)
    return f"0x{int(array.view(f'u{array.dtype.itemsize}')):0{2 * array.dtype.itemsize}X}"


def _quoted(text: str) -> str:
    escaped = "".join(c if c.isprintable() and c not in '"\\' and ord(c) < 128 else _bytes(c) for c in text)
    return f'"{escaped}"'


def _bytes(character: str) -> str:
    return "".join(f"\\{byte:02X}" for byte in character.encode())


class _Writer:
    """Writes a graph, and the graphs in it, line by line."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.versions = {entry.domain or "ai.onnx": entry.version for entry in model.opset_import}
        self.value_of: dict[str, str] = {}
        self.type_of: dict[str, str] = {}
        self.n_values = 0

    def function(self) -> list[str]:
        graph = self.model.graph
        self._learn(graph)
        constants = {tensor.name for tensor in graph.initializer}
        arguments: list[str] = []
        for value in graph.input:
            if value.name not in constants:
                name = f"%arg{len(arguments)}"
                self.value_of[value.name] = name
                self.type_of[value.name] = type_text(value.type)
                arguments.append(f"{name}: {type_text(value.type)} {{{self._signature(value)}}}")
        results = ", ".join(f"{type_text(v.type)} {{{self._signature(v)}}}" for v in graph.output)
        lines = [f"  func.func @main_graph({', '.join(arguments)}) -> ({results}) {{"]
        lines += self._body(graph, "    ")
        return [*lines, f"    {self._terminator('onnx.Return', graph)}", "  }"]

    def _learn(self, graph: Any) -> None:
        for value in (*graph.input, *graph.value_info, *graph.output):
            if value.type.WhichOneof("value") and value.name not in self.type_of:
                self.type_of[value.name] = type_text(value.type)

    def _signature(self, value: Any) -> str:
        dims = value.type.tensor_type.shape.dim
        params = ",".join(f"{i}:{dim.dim_param}" for i, dim in enumerate(dims) if dim.dim_param)
        named = f"onnx.name = {_quoted(value.name)}"
        return f"onnx.dim_params = {_quoted(params)}, {named}" if params else named

    def _terminator(self, name: str, graph: Any) -> str:
        values = ", ".join(self.value_of[value.name] for value in graph.output)
        types = ", ".join(self.type_of[value.name] for value in graph.output)
        return f"{name} {values} : {types}" if values else name

    def _body(self, graph: Any, indent: str) -> list[str]:
        lines: list[str] = []
        for tensor in graph.initializer:
            lines.append(f"{indent}{self._constant(tensor, tensor.name)}")
        for node in graph.node:
            lines += self._node(node, indent)
        return lines

    def _constant(self, tensor: Any, name: str) -> str:
        self.value_of[name] = self._fresh()
        self.type_of[name] = tensor_text(tensor.data_type, "".join(f"{n}x" for n in tensor.dims))
        return f"{self.value_of[name]} = onnx.Constant {constant_text(tensor)}"

    def _fresh(self) -> str:
        self.n_values += 1
        return f"%{self.n_values - 1}"

    def _node(self, node: Any, indent: str) -> list[str]:
        if node.op_type == "Constant" and node.domain in ("", "ai.onnx"):
            found = self._constant_node(node)
            if found is not None:
                return [f"{indent}{found}"]
        schema = self._schema(node)
        operands, lines = self._operands(node, schema, indent)
        results = self._results(node, schema)
        regions: list[str] = []
        for attribute in node.attribute:
            if attribute.HasField("g"):
                regions.append(self._region(attribute.g, indent))
        kind, properties, further = self._attributes(node, schema)
        text = f'"onnx.{kind}"({", ".join(name for name, _ in operands)})'
        text += f" <{{{properties}}}>" if properties else ""
        text += f" ({', '.join(regions)})" if regions else ""
        text += f" {{{further}}}" if further else ""
        types = [each for _, each in results]
        made = types[0] if len(types) == 1 else f"({', '.join(types)})"
        text += f" : ({', '.join(each for _, each in operands)}) -> {made}"
        names = ", ".join(name for name, _ in results)
        return [*lines, f"{indent}{names} = {text}" if names else f"{indent}{text}"]

    def _constant_node(self, node: Any) -> str | None:
        """Return a Constant; None where it holds what ONNX's importer leaves as attributes."""
        for attribute in node.attribute:
            if attribute.name == "value":
                return self._constant(attribute.t, node.output[0])
            if attribute.name.startswith("value_") and "string" not in attribute.name:
                dtype = np.int64 if "int" in attribute.name else np.float32
                array = np.array(helper.get_attribute_value(attribute), dtype)
                return self._constant(numpy_helper.from_array(array), node.output[0])
        return None

    def _schema(self, node: Any) -> Any:
        version = self.versions.get(node.domain or "ai.onnx", 1)
        known = node.op_type not in ABSENT and onnx.defs.has(node.op_type, version, node.domain)
        return onnx.defs.get_schema(node.op_type, version, node.domain) if known else None

    def _operands(self, node: Any, schema: Any, indent: str) -> tuple[list[tuple[str, str]], list[str]]:
        names = list(node.input)
        if schema is not None and not any(f.option.name == "Variadic" for f in schema.inputs):
            names += [""] * (len(schema.inputs) - len(names))
        operands: list[tuple[str, str]] = []
        lines: list[str] = []
        for name in names:
            if name:
                operands.append((self.value_of[name], self.type_of[name]))
                continue
            operands.append((self._fresh(), "none"))
            lines.append(f'{indent}{operands[-1][0]} = "onnx.NoValue"() <{{value}}> : () -> none')
        return operands, lines

    def _results(self, node: Any, schema: Any) -> list[tuple[str, str]]:
        names = list(node.output)
        formal = [] if schema is None or node.op_type in _ONE_RESULT else list[Any](schema.outputs)
        if not any(each.option.name == "Variadic" for each in formal):
            names += [""] * (len(formal) - len(names))
        results: list[tuple[str, str]] = []
        for name in names:
            made = self._fresh()
            if name:
                self.value_of[name] = made
                # onnx-mlir takes the element type of the first operand where it knows nothing better.
                self.type_of.setdefault(name, "tensor<*xf32>")
            results.append((made, self.type_of[name] if name else "none"))
        return results

    def _region(self, graph: Any, indent: str) -> str:
        outer_values, outer_types = dict(self.value_of), dict(self.type_of)
        self._learn(graph)
        arguments: list[str] = []
        for value in graph.input:
            self.value_of[value.name] = f"%arg{self.n_values}"
            self.n_values += 1
            if not value.type.WhichOneof("value"):
                self.type_of[value.name] = "tensor<*xf32>"
            arguments.append(f"{self.value_of[value.name]}: {self.type_of[value.name]}")
        lines = [f"{indent}^bb0({', '.join(arguments)}):"] if arguments else []
        lines += self._body(graph, f"{indent}  ")
        lines.append(f"{indent}  {self._terminator('onnx.Yield', graph)}")
        self.value_of, self.type_of = outer_values, outer_types
        return "{\n" + "\n".join(lines) + f"\n{indent}}}"

    def _attributes(self, node: Any, schema: Any) -> tuple[str, str, str]:
        """Return the operation's name, its properties and its further attributes."""
        given = {a.name: a for a in node.attribute if not a.HasField("g")}
        named = [f"onnx_node_name = {_quoted(node.name)}"] if node.name else []
        if schema is None:
            texts = [f"domain_name = {_quoted(node.domain)}"]
            texts += [f"{key} = {self._value(a, '')}" for key, a in sorted(given.items())]
            return "Custom", f"function_name = {_quoted(node.op_type)}", ", ".join([*texts, *named])
        for key, known in schema.attributes.items():
            if key not in given and known.default_value.type:
                given[key] = known.default_value
        kind = self._kind(node, schema)
        if kind == "BatchNormalizationInferenceMode":
            given.pop("training_mode", None)
        texts = [f"{key} = {self._value(a, node.op_type)}" for key, a in sorted(given.items())]
        graphs = [f"{a.name}" for a in node.attribute if a.HasField("g")]
        extra = [*named, *([f"output_names = [{self._names(node)}]"] if graphs else [])]
        return kind, ", ".join(texts), ", ".join(extra)

    def _names(self, node: Any) -> str:
        return ", ".join(
            _quoted(value.name) for a in node.attribute if a.HasField("g") for value in a.g.output
        )

    def _kind(self, node: Any, schema: Any) -> str:
        if node.op_type in _ONE_RESULT and len([name for name in node.output if name]) == 1:
            training = [a.i for a in node.attribute if a.name == "training_mode"]
            return node.op_type if any(training) else _ONE_RESULT[node.op_type]
        versions = VERSIONS.get(node.op_type, ())
        chosen = min((v for v in versions if v >= schema.since_version), default=max(versions, default=0))
        return node.op_type if not versions or chosen == versions[0] else f"{node.op_type}V{chosen}"

    def _value(self, attribute: Any, kind: str) -> str:
        value = helper.get_attribute_value(attribute)
        types = onnx.AttributeProto
        if attribute.type == types.INT:
            is_type = kind == "Cast" and attribute.name == "to"
            return tensor_text(value, "").removeprefix("tensor<")[:-1] if is_type else f"{value} : si64"
        if attribute.type == types.FLOAT:
            return f"{_real(np.float32(value))} : f32"
        if attribute.type == types.STRING:
            return _quoted(value.decode())
        if attribute.type == types.INTS:
            return f"[{', '.join(map(str, value))}]"
        if attribute.type == types.FLOATS:
            return f"[{', '.join(f'{_real(np.float32(each))} : f32' for each in value)}]"
        if attribute.type == types.STRINGS:
            return f"[{', '.join(_quoted(each.decode()) for each in value)}]"
        if attribute.type == types.TENSOR:
            return constant_text(value)
        raise NotWritten(f"attribute {attribute.name} of type {types.AttributeType.Name(attribute.type)}")
