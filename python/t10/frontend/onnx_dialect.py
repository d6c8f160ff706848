"""The onnx dialect, as onnx-mlir leaves it, turned back into an ONNX model: it then takes the road of .onnx files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import onnx
from onnx import helper

from t10.dialect.mlir import ir
from t10.errors import InputError, UnsupportedOpError
from t10.frontend.onnx_attributes import attribute_value, constant_tensor, element_type
from t10.frontend.onnx_versions import NodeParts, to_latest
from t10.frontend.unsupported import LOCATION_KEY

OPSET = 22
"""The opset the model is written in: unversioned operations of onnx-mlir mean the newest form of an operator."""

_RETURNS = ("func.return", "onnx.Return")
_NAME_KEYS = ("t10.name", "onnx.name")


def to_onnx(module: Any) -> Any:
    """Return the `onnx.ModelProto` of a module of the onnx dialect (unregistered operations, generic form).

    Raises `InputError` without exactly one entry point, `UnsupportedOpError` naming operations that have no ONNX form.
    """
    function = _entry_point(module)
    writer = _Writer(function)
    graph = writer.graph()
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="onnx-mlir"
    )
    model.ir_version = 10
    return model


def _entry_point(module: Any) -> Any:
    """Return the function that `onnx.EntryPoint` names, or the only one."""
    functions: dict[str, Any] = {}
    wanted = ""
    for op in module.body.operations:
        operation = op.operation
        if operation.name == "func.func" and len(operation.regions[0].blocks):
            functions[ir.StringAttr(operation.attributes["sym_name"]).value] = operation
        elif operation.name == "onnx.EntryPoint":
            wanted = ir.FlatSymbolRefAttr(operation.attributes["func"]).value
    if wanted in functions:
        return functions[wanted]
    if len(functions) != 1:
        raise InputError(
            f"module has {len(functions)} functions with a body (expected one, or an onnx.EntryPoint)"
        )
    return next(iter(functions.values()))


class _Writer:
    """Writes the operations of one function as ONNX nodes."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.name_of: dict[Any, str] = {}
        self.taken: set[str] = set()
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []

    def graph(self) -> Any:
        block = self.function.regions[0].blocks[0]
        inputs = self._arguments(block)
        results: list[Any] = []
        for op in block.operations:
            operation = op.operation
            if operation.name in _RETURNS:
                results = list(operation.operands)
            else:
                self._operation(operation)
        outputs = self._outputs(results)
        name = ir.StringAttr(self.function.attributes["sym_name"]).value
        return helper.make_graph(self.nodes, name, inputs, outputs, initializer=self.initializers)

    def _arguments(self, block: Any) -> list[Any]:
        rows = _dictionaries(self.function, "arg_attrs", len(block.arguments))
        infos: list[Any] = []
        for i, (argument, row) in enumerate(zip(block.arguments, rows, strict=True)):
            name = self._unique(_name(row) or f"arg{i}")
            self.name_of[argument] = name
            infos.append(_value_info(name, argument.type, _dim_params(row)))
        return infos

    def _outputs(self, results: list[Any]) -> list[Any]:
        rows = _dictionaries(self.function, "res_attrs", len(results))
        infos: list[Any] = []
        for i, (value, row) in enumerate(zip(results, rows, strict=True)):
            name = self._unique(_name(row) or f"result{i}")
            self.nodes.append(helper.make_node("Identity", [self.name_of[value]], [name], name=name))
            infos.append(_value_info(name, value.type, _dim_params(row)))
        return infos

    def _operation(self, op: Any) -> None:
        if op.name == "onnx.NoValue":
            self.name_of[op.results[0]] = ""
            return
        if not op.name.startswith("onnx."):
            raise UnsupportedOpError(
                f"operation {op.name} among onnx operations (expected onnx.* and func.return)",
                location=_location(op),
            )
        kind = op.name.removeprefix("onnx.")
        if kind == "Constant":
            name = self._unique("constant")
            self.initializers.append(constant_tensor(op, name))
            self.name_of[op.results[0]] = name
            return
        if len(op.regions):
            raise UnsupportedOpError(
                f"operation {op.name} with {len(op.regions)} regions: control flow cannot be planned",
                operator=_node_name(op),
                location=_location(op),
            )
        self._node(op, kind)

    def _node(self, op: Any, kind: str) -> None:
        name = _node_name(op) or self._unique(kind)
        outputs = [self._result(value, name, i) for i, value in enumerate(op.results)]
        parts = NodeParts(
            kind=kind,
            name=name,
            inputs=[self.name_of[value] for value in op.operands],
            outputs=outputs,
            attributes=_attributes(op),
            input_shapes=[_shape(value.type) for value in op.operands],
            location=_location(op),
        )
        known = to_latest(parts, self._new_constant)
        schema = onnx.defs.get_schema(known.kind, OPSET, "") if onnx.defs.has(known.kind, "") else None
        if schema is None:
            raise UnsupportedOpError(
                f"operation {op.name} has no ONNX operator of its own", operator=name, location=_location(op)
            )
        attributes = {key: value for key, value in known.attributes.items() if key in schema.attributes}
        for names in (known.inputs, known.outputs):
            while len(names) > 1 and not names[-1]:
                names.pop()
        node = helper.make_node(known.kind, known.inputs, known.outputs, name=name, **attributes)
        node.metadata_props.add(key=LOCATION_KEY, value=parts.location)
        self.nodes.append(node)

    def _result(self, value: Any, name: str, i: int) -> str:
        if not isinstance(value.type, ir.ShapedType) and str(value.type) == "none":
            return ""
        made = self._unique(name if i == 0 else f"{name}.{i}")
        self.name_of[value] = made
        return made

    def _new_constant(self, array: Any) -> str:
        name = self._unique("constant")
        self.initializers.append(onnx.numpy_helper.from_array(array, name))
        return name

    def _unique(self, stem: str) -> str:
        name, number = stem, 1
        while name in self.taken:
            name, number = f"{stem}_{number}", number + 1
        self.taken.add(name)
        return name


def _attributes(op: Any) -> dict[str, Any]:
    """Return an operation's attributes as Python values, by ONNX name; properties are looked up by the schema."""
    names: Iterable[str] = dict.fromkeys((*_schema_attributes(op.name.removeprefix("onnx.")), *op.attributes))
    found: dict[str, Any] = {}
    for name in names:
        if name != "onnx_node_name" and name in op.attributes:
            found[name] = attribute_value(op.attributes[name])
    return {name: value for name, value in found.items() if value is not None}


def _schema_attributes(kind: str) -> list[str]:
    """Return the attribute names of an operator over all its versions."""
    base = kind.split("V")[0] if kind[-1].isdigit() else kind
    base = {"MaxPoolSingleOut": "MaxPool", "BatchNormalizationInferenceMode": "BatchNormalization"}.get(
        base, base
    )
    names: dict[str, None] = {"axis": None, "axes": None}
    for version in range(1, OPSET + 2):
        if onnx.defs.has(base, version, ""):
            names |= dict.fromkeys(onnx.defs.get_schema(base, version, "").attributes)
    return list(names)


def _value_info(name: str, kind: Any, params: dict[int, str]) -> Any:
    if not isinstance(kind, ir.RankedTensorType):
        raise UnsupportedOpError(f"value {name!r} has type {kind} (expected a ranked tensor)")
    tensor = ir.RankedTensorType(kind)
    shape = [
        params.get(i) if tensor.is_dynamic_dim(i) else tensor.get_dim_size(i) for i in range(tensor.rank)
    ]
    return helper.make_tensor_value_info(name, element_type(tensor.element_type), shape)


def _shape(kind: Any) -> tuple[int, ...] | None:
    """Return the static shape of a type, None if it has none."""
    if not isinstance(kind, ir.RankedTensorType) or not ir.RankedTensorType(kind).has_static_shape:
        return None
    return tuple(ir.RankedTensorType(kind).shape)


def _dim_params(row: dict[str, Any]) -> dict[int, str]:
    """Return the symbolic dims of an argument (`onnx.dim_params = "0:batch,1:seq"`) by dim."""
    if "onnx.dim_params" not in row:
        return {}
    pairs = (
        entry.split(":", 1)
        for entry in ir.StringAttr(row["onnx.dim_params"]).value.split(",")
        if ":" in entry
    )
    return {int(dim): name for dim, name in pairs}


def _name(row: dict[str, Any]) -> str:
    return next((ir.StringAttr(row[key]).value for key in _NAME_KEYS if key in row), "")


def _dictionaries(function: Any, key: str, count: int) -> list[dict[str, Any]]:
    if key not in function.attributes:
        return [{} for _ in range(count)]
    return [{e.name: e.attr for e in ir.DictAttr(row)} for row in ir.ArrayAttr(function.attributes[key])]


def _node_name(op: Any) -> str:
    return ir.StringAttr(op.attributes["onnx_node_name"]).value if "onnx_node_name" in op.attributes else ""


def _location(op: Any) -> str:
    from t10.dialect.location import location_text

    return location_text(op.location)
