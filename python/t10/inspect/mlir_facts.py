"""The facts of MLIR text or bytecode: onnx-mlir's, or linalg on tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from t10.core.guard import parsing, reading
from t10.core.trust.files import MODEL_BYTES, decoding, read_bytes
from t10.dialect.location import location_name
from t10.dialect.mlir import ir, new_context, signature_attributes
from t10.errors import InputError
from t10.frontend.mlir_text import mlir_text
from t10.frontend.onnx_text import holds_onnx, normalize
from t10.inspect.dtypes import bytes_of
from t10.inspect.facts import GraphFacts, ModelFacts, NodeFacts, Port, WeightFacts

_NAME_KEYS = ("t10.name", "onnx.name")
_CONSTANTS = frozenset({"onnx.Constant", "arith.constant"})
_MAX_TEXT = 40
_MAX_BODY_DEPTH = 50


def mlir_facts(file: Path) -> ModelFacts:
    """Return the facts of the function that is the model; raises `InputError` if the file cannot be parsed."""
    data = read_bytes(file, MODEL_BYTES)
    text = mlir_text(data, str(file))
    is_onnx = holds_onnx(text)
    with new_context(allow_unregistered=True):
        try:
            with reading(str(file)), parsing(data):
                module = ir.Module.parse(normalize(text) if is_onnx else data)
        except ir.MLIRError as error:
            raise InputError(f"{file} cannot be parsed: {error}") from error
        with reading(str(file)), decoding(file):
            return _facts(module, str(file), is_onnx)


def _facts(module: Any, source: str, is_onnx: bool) -> ModelFacts:
    """Return the facts of a module, in its context."""
    functions = [
        op.operation
        for op in module.body.operations
        if op.operation.name == "func.func" and len(op.operation.regions[0].blocks)
    ]
    if not functions:
        raise InputError(f"{source} has no function with a body")
    model = next((each for each in functions if _symbol(each) == "main_graph"), functions[0])
    others = [each for each in functions if each != model]
    return _Reader(model).facts(module, others, source, is_onnx)


class _Reader:
    """Names the values of one function and reads its operations."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.name_of: dict[Any, str] = {}
        self.values: dict[str, Port] = {}
        self.weights: dict[str, Port] = {}

    def facts(self, module: Any, others: list[Any], source: str, is_onnx: bool) -> ModelFacts:
        """Return what the module holds."""
        block = self.function.regions[0].blocks[0]
        rows = signature_attributes(self.function, "arg_attrs", len(block.arguments))
        inputs: list[Port] = []
        for i, (argument, row) in enumerate(zip(block.arguments, rows, strict=True)):
            port = self._name(argument, _text(row) or f"arg{i}")
            if "t10.weight" in row:
                self.weights[port.name] = port
            else:
                inputs.append(port)
        graph = GraphFacts(_symbol(self.function), self._nodes(block, 0))
        operations = list(block.operations)
        results = list(operations[-1].operation.operands) if operations else []
        names = signature_attributes(self.function, "res_attrs", len(results))
        outputs = [
            _port(_text(row) or f"result{i}", value.type)
            for i, (value, row) in enumerate(zip(results, names, strict=True))
        ]
        attributes = module.operation.attributes
        return ModelFacts(
            source=source,
            form="onnx-mlir" if is_onnx else "MLIR",
            properties=(
                ("function", _symbol(self.function)),
                *((name, str(attributes[name])[:_MAX_TEXT]) for name in attributes),
            ),
            functions=tuple((_symbol(f), len(list(f.regions[0].blocks[0].operations))) for f in others),
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            weights=_weights(self.weights),
            graph=graph,
            values=self.values,
            weight_names=frozenset(self.weights),
        )

    def _name(self, value: Any, name: str) -> Port:
        port = _port(name, value.type)
        self.name_of[value] = name
        self.values[name] = port
        return port

    def _nodes(self, block: Any, depth: int) -> tuple[NodeFacts, ...]:
        nodes: list[NodeFacts] = []
        for each in block.operations:
            op = each.operation
            stem = _node_name(op) or f"v{len(self.name_of)}"
            outputs = [
                self._name(result, stem if i == 0 else f"{stem}.{i}").name
                for i, result in enumerate(op.results)
            ]
            if op.name in _CONSTANTS and outputs:
                self.weights[outputs[0]] = self.values[outputs[0]]
            if op.name in ("func.return", "onnx.Return") or op.name in _CONSTANTS:
                continue
            nodes.append(
                NodeFacts(
                    name=_node_name(op),
                    kind=op.name.removeprefix("onnx."),
                    inputs=tuple(self.name_of.get(value, "") for value in op.operands),
                    outputs=tuple(outputs),
                    bodies=self._bodies(op, depth),
                )
            )
        return tuple(nodes)

    def _bodies(self, op: Any, depth: int) -> tuple[GraphFacts, ...]:
        """Return the regions of control flow; those of linalg operations say what is done per element."""
        if depth >= _MAX_BODY_DEPTH or op.name.startswith("linalg."):
            return ()
        return tuple(
            GraphFacts(f"region {i}", self._nodes(block, depth + 1))
            for i, region in enumerate(op.regions)
            for block in region.blocks
        )


def _port(name: str, kind: Any) -> Port:
    if not isinstance(kind, ir.RankedTensorType):
        return Port(name, str(kind)[:_MAX_TEXT], None)
    tensor = ir.RankedTensorType(kind)
    dims = tuple("?" if tensor.is_dynamic_dim(i) else tensor.get_dim_size(i) for i in range(tensor.rank))
    return Port(name, str(tensor.element_type), dims)


def _weights(weights: dict[str, Port]) -> WeightFacts:
    by_dtype: dict[str, int] = {}
    for port in weights.values():
        n_bytes = bytes_of(port.dtype, port.n_elements or 0)
        by_dtype[port.dtype] = by_dtype.get(port.dtype, 0) + n_bytes
    return WeightFacts(
        n_tensors=len(weights),
        n_parameters=sum(port.n_elements or 0 for port in weights.values()),
        n_bytes=sum(by_dtype.values()),
        bytes_by_dtype=tuple(sorted(by_dtype.items())),
    )


def _node_name(op: Any) -> str:
    if "onnx_node_name" in op.attributes and isinstance(op.attributes["onnx_node_name"], ir.StringAttr):
        return str(ir.StringAttr(op.attributes["onnx_node_name"]).value)
    return location_name(op.location) or ""


def _symbol(function: Any) -> str:
    return str(ir.StringAttr(function.attributes["sym_name"]).value)


def _text(row: dict[str, Any]) -> str:
    found = (row[key] for key in _NAME_KEYS if key in row)
    return next((str(each.value) for each in found if isinstance(each, ir.StringAttr)), "")
