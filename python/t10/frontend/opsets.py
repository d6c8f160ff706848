"""Models of old opsets, raised to the oldest that is lowered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import version_converter

from t10.frontend.aligned_operands import BROADCASTING, align_operands
from t10.frontend.coerced_rows import COERCED, flatten_rows
from t10.frontend.functions import expand_functions
from t10.frontend.protobuf_fields import all_nodes, replace_all
from t10.frontend.schemas import opset_versions
from t10.frontend.unsupported import STANDARD_DOMAINS

OLDEST = 13
"""The first opset in which axes and bounds are inputs and every operator broadcasts alike."""

_RESIZED = 11
"""The first opset in which a Resize says how it reads."""
_OLDEST_IR = 8

_onnx: Any = onnx  # some of its functions are typed in part only


def plain_domain(model: Any) -> None:
    """Write the domain of ONNX's operators as the empty text, in place: it has two names, and who lowers knows one."""
    versions = opset_versions(model)
    del model.opset_import[:]
    model.opset_import.extend(onnx.helper.make_opsetid(*each) for each in versions.items())
    for nodes in (model.graph.node, *(function.node for function in model.functions)):
        for node in all_nodes(nodes):
            if node.domain in STANDARD_DOMAINS:
                node.domain = ""


def raise_opset(model: Any, least: int = OLDEST) -> Any:
    """Return the model in an opset at least, and in an IR version in which constants are no inputs.

    A model that is raised has no functions: they are inlined. One that ONNX cannot convert keeps its opset: its
    operators may be lowered all the same.
    """
    model.ir_version = max(model.ir_version, _OLDEST_IR)
    version = _version(model)
    if version >= least:
        return model
    if version < BROADCASTING:
        align_operands(model)
    if model.functions:
        model = expand_functions(model, frozenset())
    converted = _converted(model, least)
    raised = model if converted is None else converted
    if version < OLDEST:
        # The converter leaves a Hardmax as it is, though its axis means another thing from opset 13 on.
        flatten_rows(raised.graph, COERCED if converted is None else ("Hardmax",))
    return raised


def _version(model: Any) -> int:
    return next((entry.version for entry in model.opset_import if entry.domain in STANDARD_DOMAINS), OLDEST)


def _converted(model: Any, least: int) -> Any | None:
    """Return the model as ONNX converts it; None where it cannot, or loses outputs or their types."""
    try:
        converted: Any = version_converter.convert_version(model, least)
        _check(converted)
    except (
        RuntimeError,
        ValueError,
        IndexError,
        onnx.checker.ValidationError,
        onnx.shape_inference.InferenceError,
        version_converter.ConvertError,
    ):
        return None
    before, after = (
        list(_scoped(onnx.shape_inference.infer_shapes(model).graph)),
        list(_scoped(converted.graph)),
    )
    if _version(model) < _RESIZED and not _keep_resizing(before, after):
        return None
    _keep_types(before, after)
    made = {name for node in converted.graph.node for name in node.output}
    made |= {value.name for value in (*converted.graph.input, *converted.graph.initializer)}
    is_whole = all(value.name in made for value in model.graph.output)
    return converted if is_whole and _has_signature(converted, model) else None


def _check(model: Any) -> None:
    """Run ONNX's checker without the outputs: it asks for their shapes, which need not be known yet.

    ONNX infers no shape behind operators of other domains.
    """
    checked = type(model)()
    checked.CopyFrom(model)
    del checked.graph.output[:]
    _onnx.checker.check_model(checked)


@dataclass(frozen=True, slots=True)
class _Scoped:
    """A node with the constants and the element types that are known where it stands."""

    node: Any
    constants: Mapping[str, Any]
    kinds: Mapping[str, int]


def _scoped(
    graph: Any, constants: Mapping[str, Any] | None = None, kinds: Mapping[str, int] | None = None
) -> Iterator[_Scoped]:
    """Yield the nodes of a graph in order, those of a node's own graphs behind it."""
    made = {node.output[0]: node.attribute[0].t for node in graph.node if _is_tensor(node)}
    known = {**(constants or {}), **{tensor.name: tensor for tensor in graph.initializer}, **made}
    values = (*graph.input, *graph.value_info, *graph.output)
    types = {**(kinds or {}), **{name: tensor.data_type for name, tensor in known.items()}}
    types |= {value.name: value.type.tensor_type.elem_type for value in values}
    for node in graph.node:
        yield _Scoped(node, known, types)
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _scoped(inner, known, types)


def _is_tensor(node: Any) -> bool:
    return node.op_type == "Constant" and bool(node.attribute) and bool(node.attribute[0].HasField("t"))


def _of_kind(nodes: list[_Scoped], *kinds: str) -> list[_Scoped]:
    return [each for each in nodes if each.node.op_type in kinds]


def _keep_resizing(before: list[_Scoped], after: list[_Scoped]) -> bool:
    """Say, in place, how an Upsample and a Resize of opset 10 read: the converter leaves them later defaults.

    They read at `i / scale`; where that is between two elements, nearest means the one before if there become more, and
    the one behind if there become fewer (the example of Resize-10). Return whether each is found: the converter names
    results anew, but keeps the order of nodes.
    """
    old, new = _of_kind(before, "Upsample", "Resize"), _of_kind(after, "Resize")
    for was, now in zip(old, new, strict=False):
        scales = was.constants.get(was.node.input[1]) if len(was.node.input) > 1 else None
        shrinks = scales is not None and bool((onnx.numpy_helper.to_array(scales) < 1).any())
        kept = [a for a in now.node.attribute if a.name == "mode"]
        attributes = {
            "coordinate_transformation_mode": "asymmetric",
            "nearest_mode": "ceil" if shrinks else "floor",
        }
        kept += [onnx.helper.make_attribute(*each) for each in attributes.items()]
        replace_all(now.node.attribute, kept)
    return len(old) == len(new)


def _keep_types(before: list[_Scoped], after: list[_Scoped]) -> None:
    """Give bounds and padding that were attributes the type of what they are for, in place: they are made f32."""
    for operator, first in (("Clip", 1), ("Pad", 2)):
        for was, now in zip(_of_kind(before, operator), _of_kind(after, operator), strict=False):
            kind = was.kinds.get(was.node.input[0], 0)
            if not kind or len(was.node.input) > first:
                continue
            for name in now.node.input[first:]:
                tensor = now.constants.get(name)
                if tensor is not None and tensor.data_type != kind:
                    number = onnx.numpy_helper.to_array(tensor)
                    with np.errstate(over="ignore"):
                        number = number.astype(_onnx.helper.tensor_dtype_to_np_dtype(kind))
                    tensor.CopyFrom(onnx.numpy_helper.from_array(number, tensor.name))


def _has_signature(converted: Any, model: Any) -> bool:
    """Return whether inputs and outputs are the model's, apart from dims that only one of the two states as numbers.

    The converter changes those of a Scan that had a batch, and infers dims of outputs.
    """
    after = (*converted.graph.input, *converted.graph.output)
    before = (*model.graph.input, *model.graph.output)
    return len(after) == len(before) and all(map(_may_be_same, after, before))


def _may_be_same(one: Any, other: Any) -> bool:
    kinds = one.type.tensor_type, other.type.tensor_type
    if one.name != other.name or kinds[0].elem_type != kinds[1].elem_type:
        return False
    if not all(kind.HasField("shape") for kind in kinds):
        return one.type.WhichOneof("value") == other.type.WhichOneof("value")
    dims = [[dim.dim_value for dim in kind.shape.dim] for kind in kinds]
    return len(dims[0]) == len(dims[1]) and all(a == b or not a or not b for a, b in zip(*dims, strict=True))
