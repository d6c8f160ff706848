"""TopK, ArgMax, ArgMin and Hardmax as comparisons and reductions, which are partitioned like any other operator.

    ArgMax   m = max x;  index = min over i of (i where not x[i] < m)
    Hardmax  1 at that index, 0 elsewhere
    TopK     ranks by counting who is ahead, see `t10.frontend.ranks`

Among equals the smaller index comes first, as ONNX demands. Fusing computes what a reduction reads inside it, so that
nothing with an element per pair is stored. Ranks take operations per pair: a long axis is cut into chunks, and the
first k of each go on to the next stage (`t10.frontend.tournament`).
"""

from __future__ import annotations

from typing import Any

import onnx
from onnx import numpy_helper

from t10.errors import InputError, UnsupportedOpError
from t10.frontend.expressions import Expressions, Tensor
from t10.frontend.protobuf_fields import replace_all
from t10.frontend.ranks import Ranks
from t10.frontend.read_names import names_read

_KIND = onnx.TensorProto
_COMPARED_AS: dict[int, int] = {
    _KIND.FLOAT: _KIND.FLOAT,
    _KIND.FLOAT16: _KIND.FLOAT,
    _KIND.INT8: _KIND.INT32,
    _KIND.UINT8: _KIND.INT32,
    _KIND.INT16: _KIND.INT32,
    _KIND.UINT16: _KIND.INT32,
    _KIND.INT32: _KIND.INT32,
    _KIND.INT64: _KIND.INT64,
}
"""The type that holds every value of a type and is compared as quickly as any."""

_DEFAULT_AXIS = {"TopK": -1, "ArgMax": 0, "ArgMin": 0, "Hardmax": -1}


MOST_EXTENT = 1 << 26
"""Places along an axis are a constant: longer axes are refused."""


def expand_selections(model: Any) -> None:
    """Rewrite, in place, every TopK of constant k, ArgMax, ArgMin and Hardmax over a static axis; others stay."""
    graph = model.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    values = (*graph.input, *graph.value_info, *graph.output)
    types = {value.name: value.type.tensor_type for value in values}
    opset = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 1)
    read = names_read(graph)
    nodes: list[Any] = []
    for node in graph.node:
        x = _selected_from(node, types)
        k = selected_count(node, constants) if x is not None else None
        if x is None or k is None:
            nodes.append(node)
            continue
        stem = next(name for name in node.output if name)
        if max(x.shape, default=0) > MOST_EXTENT:
            raise UnsupportedOpError(
                f"{node.op_type} selects from {max(x.shape):,} elements (expected at most {MOST_EXTENT:,})",
                operator=node.name or stem,
                hint="select from parts of them, then from what was selected",
            )
        made = Expressions(graph, opset, node.name or stem, stem)
        _select(made, node, x, k, read)
        nodes.extend(made.nodes)
    replace_all(graph.node, nodes)


def selected_count(node: Any, constants: dict[str, Any]) -> int | None:
    """Return the k of a TopK (1 of others), None if it is known only when the model runs."""
    if node.op_type != "TopK":
        return 1
    if len(node.input) > 1:
        found = constants.get(node.input[1])
        return None if found is None else int(numpy_helper.to_array(found).reshape(()))
    return next((int(attribute.i) for attribute in node.attribute if attribute.name == "k"), None)


def _selected_from(node: Any, types: dict[str, Any]) -> Tensor | None:
    """Return what a selection selects from; None for other nodes, dynamic shapes, and types that are not compared."""
    if node.op_type not in _DEFAULT_AXIS or node.domain not in ("", "ai.onnx"):
        return None
    kind = types.get(node.input[0])
    if kind is None or not kind.HasField("shape") or kind.elem_type not in _COMPARED_AS:
        return None
    shape = tuple(dim.dim_value for dim in kind.shape.dim)
    is_static = bool(shape) and all(shape)
    return Tensor(node.input[0], shape, kind.elem_type) if is_static else None


def _select(made: Expressions, node: Any, given: Tensor, k: int, read: set[str]) -> None:
    """Write a selection, with the outputs of it that anything reads; raises `InputError` where there is no such one."""
    options = {attribute.name: int(attribute.i) for attribute in node.attribute}
    axis, rank = options.get("axis", _DEFAULT_AXIS[node.op_type]), len(given.shape)
    if not -rank <= axis < rank or not 1 <= k <= given.shape[axis]:
        raise InputError(
            f"{node.op_type} takes {k} elements along axis {axis} of shape {list(given.shape)} "
            f"(expected an axis from {-rank} to {rank - 1}, and at least one element but no more than it has)",
            operator=node.name,
        )
    x = made.cast(given, _COMPARED_AS[given.kind], "wide")
    is_largest = bool(options.get("largest", 1)) and node.op_type != "ArgMin"
    ranks = Ranks(made, axis % rank, given.shape[axis], is_largest)
    if node.op_type == "Hardmax":
        made.cast(ranks.is_first(x), given.kind, "cast", output=node.output[0])
        return
    if node.op_type != "TopK":
        place = ranks.place_of(x, ranks.extreme(x), is_last=bool(options.get("select_last_index", 0)))
        if not options.get("keepdims", 1):
            place = made.squeeze(place, axis % rank, "flat")
        made.cast(place, _KIND.INT64, "cast", output=node.output[0])
        return
    found = ranks.first(x, k)
    values, indices = (*node.output, "")[:2]
    if values in read:
        made.cast(found.value, given.kind, "cast.values", output=values)
    if indices in read:
        made.cast(found.place, _KIND.INT64, "cast.indices", output=indices)
