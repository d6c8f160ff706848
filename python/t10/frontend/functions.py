"""Operators that ONNX defines by others, and functions of the model, replaced by their bodies."""

from __future__ import annotations

from typing import Any

import onnx
from onnx import inliner

from t10.errors import InputError
from t10.frontend.protobuf_fields import all_nodes, replace_all
from t10.frontend.shapes import one_line

EXPANDED = frozenset(
    {
        "Attention", "CausalConvWithState", "CenterCropPad", "GreaterOrEqual", "GroupNormalization",
        "LessOrEqual", "LinearAttention", "MeanVarianceNormalization", "RMSNormalization",
        "ReduceLogSum", "RotaryEmbedding", "SwiGLU", "Swish",
    }
)  # fmt: skip
"""ONNX function operators that the lowering does not know, or lowers worse than their bodies."""
_INTEGERS = frozenset(
    onnx.TensorProto.DataType.Value(name)
    for name in ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64")
)
PREVIEWED = ("ai.onnx.preview", "FlexAttention")
"""The operator of ONNX's preview domain that is a function; its opset says what domain its body is written in."""


def expand_functions(model: Any, operators: frozenset[str] = EXPANDED) -> Any:
    """Return the model with its own functions and the ONNX functions among `operators` inlined.

    Raises `InputError` if a body cannot be made, for example of a function that calls itself.
    """
    try:
        if model.functions:
            _state_declared_defaults(model)
            model = inliner.inline_local_functions(model)
        model = _inlined(model, operators)
        if _present(model, operators):
            # A body may hold such an operator in turn; it is expanded once the types in it are known.
            model = _inlined(onnx.shape_inference.infer_shapes(model), operators)
    except (RuntimeError, ValueError, onnx.checker.ValidationError) as error:
        raise InputError(f"functions of the model cannot be expanded: {one_line(error)}") from error
    _name_nodes(model)
    return model


def _inlined(model: Any, operators: frozenset[str]) -> Any:
    present = _present(model, operators)
    if not present:
        return model
    _type_constants(model)
    _state_defaults(model, present)
    _convert_masks(model)
    model = inliner.inline_selected_functions(model, present, inline_schema_functions=True)
    _forget_absent(model)
    return model


def _present(model: Any, operators: frozenset[str]) -> list[tuple[str, str]]:
    """Return domain and name of the `operators`, and the previewed one, that the model has, in order of name."""
    found = {(_domain(node), node.op_type) for node in model.graph.node}
    return sorted(found & {*(("", name) for name in operators), PREVIEWED})


def _domain(node: Any) -> str:
    return "" if node.domain == "ai.onnx" else node.domain


def _type_constants(model: Any) -> None:
    """State the types of the initializers among the values: the inliner looks nowhere else."""
    known = {value.name for value in (*model.graph.value_info, *model.graph.input)}
    for tensor in model.graph.initializer:
        if tensor.name not in known:
            info = onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
            model.graph.value_info.append(info)
    # It asks for the type of an operand that is left out, too, and makes no use of it.
    model.graph.value_info.append(onnx.helper.make_tensor_value_info("", onnx.TensorProto.FLOAT, []))


def _convert_masks(model: Any) -> None:
    """Convert masks of integers that Attention adds: its body makes integers of -infinity, whose sums wrap."""
    kinds = {
        value.name: value.type.tensor_type.elem_type
        for value in (*model.graph.input, *model.graph.value_info)
    }
    nodes: list[Any] = []
    for node in model.graph.node:
        mask = node.input[3] if node.op_type == "Attention" and len(node.input) > 3 else ""
        if kinds.get(mask) in _INTEGERS and kinds.get(node.input[0]):
            node.input[3] = f"{next(name for name in node.output if name)}.mask"
            to = kinds[node.input[0]]
            nodes.append(onnx.helper.make_node("Cast", [mask], [node.input[3]], name=node.input[3], to=to))
            known = next(v for v in (*model.graph.input, *model.graph.value_info) if v.name == mask)
            model.graph.value_info.add().CopyFrom(known)
            model.graph.value_info[-1].name = node.input[3]
            model.graph.value_info[-1].type.tensor_type.elem_type = to
        nodes.append(node)
    replace_all(model.graph.node, nodes)


def _forget_absent(model: Any) -> None:
    """Take out the type of what is left out."""
    kept = [value for value in model.graph.value_info if value.name]
    replace_all(model.graph.value_info, kept)


def _state_defaults(model: Any, present: list[tuple[str, str]]) -> None:
    """State attributes that nodes leave at their defaults: the inliner forgets some of these."""
    versions = {_domain(entry): entry.version for entry in model.opset_import}
    for node in model.graph.node:
        domain = _domain(node)
        if (domain, node.op_type) not in present:
            continue
        given = {attribute.name for attribute in node.attribute}
        schema = onnx.defs.get_schema(node.op_type, versions.get(domain, 1), domain)
        for name, attribute in schema.attributes.items():
            if name not in given and attribute.default_value.type:
                node.attribute.append(attribute.default_value)


def _state_declared_defaults(model: Any) -> None:
    """State attributes that calls of the model's functions leave at the defaults that these declare.

    A function that is called without an attribute that has no default is copied without what refers to it: there,
    other defaults count.
    """
    functions = {_called(function, function.name): function for function in model.functions}
    waiting = [model.graph.node, *(function.node for function in model.functions)]
    while waiting:
        for node in all_nodes(waiting.pop()):
            function = functions.get(_called(node, node.op_type))
            if function is None:
                continue
            given = {attribute.name for attribute in node.attribute}
            node.attribute.extend(each for each in function.attribute_proto if each.name not in given)
            missing = sorted(set(function.attribute) - given)
            if missing:
                node.op_type = f"{node.op_type}.without.{'.'.join(missing)}"
                if _called(node, node.op_type) not in functions:
                    copy = _without(model.functions.add(), function, node.op_type, missing)
                    functions[_called(node, node.op_type)] = copy
                    waiting.append(copy.node)


def _without(copy: Any, function: Any, name: str, missing: list[str]) -> Any:
    """Make a copy of a function that nothing gives some attributes."""
    copy.CopyFrom(function)
    copy.name = name
    replace_all(copy.attribute, [each for each in copy.attribute if each not in missing])
    for node in all_nodes(copy.node):
        replace_all(node.attribute, [each for each in node.attribute if each.ref_attr_name not in missing])
    return copy


def _called(one: Any, name: str) -> tuple[str, str, str]:
    """Return what tells a function from others, of it or of a call of it."""
    return _domain(one), name, one.overload


def _name_nodes(model: Any) -> None:
    """Give nodes without a name their first output's name: names become locations, and those reach the reports."""
    for node in model.graph.node:
        if not node.name:
            node.name = next((name for name in node.output if name), node.op_type)
