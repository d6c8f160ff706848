"""The onnx dialect, as onnx-mlir leaves it, converted back to an ONNX model, which is imported like a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import onnx
from onnx import helper

from t10.dialect.location import location_name, location_text
from t10.dialect.mlir import ir, signature_attributes
from t10.errors import InputError, UnsupportedOpError
from t10.frontend.im2col import define_columns
from t10.frontend.onnx_attributes import attribute_value, constant_tensor
from t10.frontend.onnx_entry import body_of_call, entry_and_called, reading
from t10.frontend.onnx_extras import ANNOTATIONS, INLINED, known_properties, schema_name, to_operators
from t10.frontend.onnx_types import is_none, rank, static_shape, type_name, value_info
from t10.frontend.onnx_versions import Fresh, NodeParts
from t10.frontend.unsupported import LOCATION_KEY
from t10.frontend.written_size import CALL

OPSET = 22
"""The opset a model is written in: unversioned operations of onnx-mlir mean this form of an operator.

Operators that came later take it to the opset that has them, and no further: ONNX Runtime, the reference, lags behind.
"""
_NEWEST = onnx.defs.onnx_opset_version()

_FURTHER_DOMAINS = {"ai.onnx.ml": 5, "ai.onnx.preview.training": 1}
"""Domains whose operators are operations of the onnx dialect, too, and their opsets."""

_TERMINATORS = ("func.return", "onnx.Return", "onnx.Yield")
_GRAPHS = {"If": ("then_branch", "else_branch")}
_OWN_DOMAIN = "onnx-mlir"
_INITIALIZER = "Initializer_"
_NAME_KEYS = ("t10.name", "onnx.name")


def to_onnx(module: Any) -> Any:
    """Return the `onnx.ModelProto` of a module of the onnx dialect (unregistered operations, generic form).

    Calls are inlined. Raises `InputError` without exactly one entry point, `UnsupportedOpError` naming operations that
    have no ONNX form.
    """
    function, called = entry_and_called(module)
    writer = _Writer(function, called)
    graph = writer.graph()
    opsets = [
        helper.make_opsetid("", writer.opset),
        *(helper.make_opsetid(name, _FURTHER_DOMAINS.get(name, 1)) for name in sorted(writer.domains)),
    ]
    model = helper.make_model(graph, opset_imports=opsets, producer_name="onnx-mlir")
    model.ir_version = 10
    define_columns(model, writer.opset)
    return model


class _Writer:
    """Writes the operations of one function as ONNX nodes."""

    def __init__(self, function: Any, called: Mapping[str, Any]) -> None:
        self.function, self.called = function, called
        self.name_of: dict[Any, str] = {}
        self.taken: set[str] = set()
        self.next_number: dict[str, int] = {}
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.domains: set[str] = set()
        self.types: dict[str, str] = {}
        self.opset = OPSET
        self.fresh = Fresh(constant=self._new_constant, value=self._unique)

    def graph(self) -> Any:
        block = self.function.regions[0].blocks[0]
        with reading(self.function):
            inputs = self._arguments(block)
        results = self._body(block)
        with reading(self.function):
            outputs = self._outputs(results)
        name = ir.StringAttr(self.function.attributes["sym_name"]).value
        return helper.make_graph(self.nodes, name, inputs, outputs, initializer=self.initializers)

    def _arguments(self, block: Any) -> list[Any]:
        rows = signature_attributes(self.function, "arg_attrs", len(block.arguments))
        infos: list[Any] = []
        for i, (argument, row) in enumerate(zip(block.arguments, rows, strict=True)):
            name = self._unique(_name(row) or f"arg{i}")
            self.name_of[argument] = name
            self.types[name] = type_name(argument.type)
            infos.append(value_info(name, argument.type, _dim_params(row)))
            infos[-1].metadata_props.add(key=LOCATION_KEY, value=location_text(argument.location))
        return infos

    def _outputs(self, results: list[Any]) -> list[Any]:
        rows = signature_attributes(self.function, "res_attrs", len(results))
        infos: list[Any] = []
        for i, (value, row) in enumerate(zip(results, rows, strict=True)):
            name = self._unique(_name(row) or f"result{i}")
            infos.append(self._output(name, value, _dim_params(row)))
        return infos

    def _output(self, name: str, value: Any, params: dict[int, str]) -> Any:
        """Hand a value on under the name of a graph's output."""
        if not self.name_of[value]:
            raise UnsupportedOpError(
                f"output {name!r} has no value: onnx-mlir found that nothing computes it",
                location=_location(self.function),
                hint="export the model without this output",
            )
        self.nodes.append(helper.make_node("Identity", [self.name_of[value]], [name], name=name))
        return value_info(name, value.type, params)

    def _body(self, block: Any) -> list[Any]:
        """Write the operations of a block; return what its terminator hands on."""
        for op in block.operations:
            operation = op.operation
            if operation.name in _TERMINATORS:
                return list(operation.operands)
            with reading(operation):
                self._operation(operation)
        return []

    def _operation(self, op: Any) -> None:
        if op.name == CALL:
            self._inline(op, body_of_call(op, self.called))
            return
        if not op.name.startswith("onnx."):
            raise UnsupportedOpError(
                f"operation {op.name} among onnx operations (expected onnx.*, func.call and func.return)",
                location=_location(op),
            )
        kind = op.name.removeprefix("onnx.")
        if kind == "NoValue":
            self.name_of[op.results[0]] = ""
        elif kind == "Constant":
            name = self._unique(_constant_name(op))
            self.initializers.append(constant_tensor(op, name))
            self.name_of[op.results[0]] = name
        elif kind in INLINED:
            self._inline(op, op.regions[0].blocks[0])
        elif kind not in ANNOTATIONS:
            self._node(op, kind)

    def _inline(self, op: Any, block: Any) -> None:
        """Write what an operation groups or calls in place of it."""
        operands = [value for value in op.operands if not is_none(value.type)]
        given = operands if len(operands) == len(block.arguments) else list(op.operands)
        for argument, value in zip(block.arguments, given, strict=False):
            self.name_of[argument] = self.name_of[value]
        for result, value in zip(op.results, self._body(block), strict=True):
            self.name_of[result] = self.name_of[value]

    def _node(self, op: Any, kind: str) -> None:
        name = _node_name(op) or self._unique(kind)
        inputs = [self.name_of[value] for value in op.operands]
        parts = NodeParts(
            kind=kind,
            name=name,
            inputs=inputs,
            outputs=[self._result(value, name, i) for i, value in enumerate(op.results)],
            attributes=_attributes(op) | self._subgraphs(op, kind, name),
            input_shapes=[static_shape(value.type) for value in op.operands],
            location=_location(op),
            input_ranks=tuple(rank(value.type) for value in op.operands),
        )
        for each in to_operators(parts, self.fresh):
            self.nodes.append(self._written(each))

    def _written(self, parts: NodeParts) -> Any:
        """Return the node of its parts; an operator that ONNX does not have gets the domain of onnx-mlir."""
        domain, attributes = parts.domain, parts.attributes
        types = [self.types.get(name, "") for name in parts.inputs]
        opset = 0 if domain else _opset(parts.kind, types)
        if opset:
            self.opset = max(self.opset, opset)
            known = onnx.defs.get_schema(parts.kind, opset, "").attributes
            attributes = {key: value for key, value in attributes.items() if key in known}
        elif not domain:
            found = (name for name, v in _FURTHER_DOMAINS.items() if onnx.defs.has(parts.kind, v, name))
            domain = next(found, _OWN_DOMAIN)
            if domain == _OWN_DOMAIN:
                _check_operands(parts)
        if domain:
            self.domains.add(domain)
            attributes = {key: value for key, value in attributes.items() if value != []}
        for names in (parts.inputs, parts.outputs):
            while len(names) > 1 and not names[-1]:
                names.pop()
        node = helper.make_node(
            parts.kind, parts.inputs, parts.outputs, name=parts.name, domain=domain, **attributes
        )
        node.metadata_props.add(key=LOCATION_KEY, value=parts.location)
        return node

    def _subgraphs(self, op: Any, kind: str, name: str) -> dict[str, Any]:
        """Return the regions of an operation as graphs, by the attribute that holds them in ONNX."""
        keys = _GRAPHS.get(kind, ("body",))
        if len(op.regions) > len(keys):
            raise UnsupportedOpError(
                f"operation {op.name} with {len(op.regions)} regions (expected at most {len(keys)})",
                operator=name,
                location=_location(op),
            )
        return {
            key: self._subgraph(region, f"{name}.{key}")
            for key, region in zip(keys, op.regions, strict=False)
        }

    def _subgraph(self, region: Any, stem: str) -> Any:
        """Return a region as a graph: it reads outer values by name, and constants are the outermost graph's."""
        outer, self.nodes = self.nodes, []
        block = region.blocks[0]
        inputs: list[Any] = []
        for i, argument in enumerate(block.arguments):
            self.name_of[argument] = self._unique(f"{stem}.arg{i}")
            inputs.append(value_info(self.name_of[argument], argument.type, {}))
        yielded = self._body(block)
        outputs = [self._output(self._unique(f"{stem}.out{i}"), value, {}) for i, value in enumerate(yielded)]
        graph = helper.make_graph(self.nodes, stem, inputs, outputs)
        self.nodes = outer
        return graph

    def _result(self, value: Any, name: str, i: int) -> str:
        made = "" if is_none(value.type) else self._unique(name if i == 0 else f"{name}.{i}")
        self.name_of[value] = made
        self.types[made] = type_name(value.type)
        return made

    def _new_constant(self, array: Any) -> str:
        name = self._unique("constant")
        self.initializers.append(onnx.numpy_helper.from_array(array, name))
        return name

    def _unique(self, stem: str) -> str:
        name, number = stem, self.next_number.get(stem, 1)
        while name in self.taken:
            name, number = f"{stem}_{number}", number + 1
        self.next_number[stem] = number
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


@cache
def _schema_attributes(kind: str) -> tuple[str, ...]:
    """Return the attribute names of an operator over all its versions."""
    base = schema_name(kind)
    names: dict[str, None] = dict.fromkeys(("axis", "axes", *known_properties(kind)))
    for version in range(1, _NEWEST + 1):
        if onnx.defs.has(base, version, ""):
            names |= dict.fromkeys(onnx.defs.get_schema(base, version, "").attributes)
    for domain, version in _FURTHER_DOMAINS.items():
        if onnx.defs.has(base, version, domain):
            names |= dict.fromkeys(onnx.defs.get_schema(base, version, domain).attributes)
    return tuple(names)


def _opset(kind: str, types: list[str]) -> int:
    """Return the first opset from ours on that has an operator with so many inputs, 0 if ONNX has no such operator.

    If there is one that takes values of these types, as ONNX names them, it is the first of those.
    """
    found = 0
    for version in range(OPSET, _NEWEST + 1):
        if not onnx.defs.has(kind, version, ""):
            continue
        schema = onnx.defs.get_schema(kind, version, "")
        is_variadic = any("Variadic" in str(each.option) for each in schema.inputs)
        if len(types) > len(schema.inputs) and not is_variadic:
            continue
        if _takes(schema, types):
            return version
        found = found or version
    return found


def _check_operands(parts: NodeParts) -> None:
    """Refuse an operator of ONNX with more operands than it takes in any opset."""
    versions = [version for version in range(OPSET, _NEWEST + 1) if onnx.defs.has(parts.kind, version, "")]
    if not versions:
        return
    most = max(len(onnx.defs.get_schema(parts.kind, version, "").inputs) for version in versions)
    if len(parts.inputs) > most:
        raise InputError(
            f"{parts.kind} has {len(parts.inputs)} operands (expected at most {most})",
            operator=parts.name,
            location=parts.location,
        )


def _takes(schema: Any, types: list[str]) -> bool:
    """Return whether an operator takes inputs of these types; of what is not known nothing is asked."""
    allowed = {each.type_param_str: each.allowed_type_strs for each in schema.type_constraints}
    formals = (
        [schema.inputs[min(i, len(schema.inputs) - 1)] for i in range(len(types))] if schema.inputs else []
    )
    pairs = zip(types, formals, strict=False)
    return all(not given or given in allowed.get(formal.type_str, (given,)) for given, formal in pairs)


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


def _node_name(op: Any) -> str:
    return ir.StringAttr(op.attributes["onnx_node_name"]).value if "onnx_node_name" in op.attributes else ""


def _constant_name(op: Any) -> str:
    """Return the initializer that a constant was, as onnx-mlir keeps it with `--preserveLocations`."""
    name = location_name(op.location) or ""
    return name.removeprefix(_INITIALIZER) if name.startswith(_INITIALIZER) else "constant"


def _location(op: Any) -> str:
    return location_text(op.location)
