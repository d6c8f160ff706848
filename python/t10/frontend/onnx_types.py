"""Types of the onnx dialect as ONNX types: tensors of every element type, sequences, optionals."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import onnx

from t10.dialect.mlir import ir
from t10.errors import UnsupportedOpError

_ELEMENTS = {
    "f32": "FLOAT", "f16": "FLOAT16", "f64": "DOUBLE", "bf16": "BFLOAT16", "i1": "BOOL",
    "i8": "INT8", "i16": "INT16", "i32": "INT32", "i64": "INT64", "i4": "INT4",
    "si8": "INT8", "si16": "INT16", "si32": "INT32", "si64": "INT64", "si4": "INT4",
    "ui8": "UINT8", "ui16": "UINT16", "ui32": "UINT32", "ui64": "UINT64", "ui4": "UINT4",
    "f8E4M3FN": "FLOAT8E4M3FN", "f8E4M3FNUZ": "FLOAT8E4M3FNUZ", "f8E5M2": "FLOAT8E5M2", "f8E5M2FNUZ": "FLOAT8E5M2FNUZ",
    "f4E2M1FN": "FLOAT4E2M1", "complex<f32>": "COMPLEX64", "complex<f64>": "COMPLEX128", "!onnx.String": "STRING",
}  # fmt: skip

_HOLDER = re.compile(r"(Seq|Opt)<(.*)>", re.DOTALL)


def known_element_type(kind: Any) -> int | None:
    """Return ONNX's number of an MLIR element type, None if it has none."""
    name = _ELEMENTS.get(str(kind))
    return None if name is None else int(onnx.TensorProto.DataType.Value(name))


def element_type(kind: Any) -> int:
    """Return ONNX's number of an MLIR element type; raises `UnsupportedOpError` for a type that ONNX does not have."""
    found = known_element_type(kind)
    if found is None:
        raise UnsupportedOpError(f"element type {kind} (expected one of {', '.join(sorted(_ELEMENTS))})")
    return found


def type_name(kind: Any) -> str:
    """Return the type of a tensor as ONNX's definitions of operators name it, `tensor(float)`; empty for others."""
    for tensor in (ir.RankedTensorType, ir.UnrankedTensorType):
        if isinstance(kind, tensor):
            element: Any = tensor(kind).element_type
            return f"tensor({_ELEMENTS[str(element)].lower()})" if str(element) in _ELEMENTS else ""
    return ""


def static_shape(kind: Any) -> tuple[int, ...] | None:
    """Return the static shape of a type, None if it has none."""
    if not isinstance(kind, ir.RankedTensorType) or not ir.RankedTensorType(kind).has_static_shape:
        return None
    return tuple(ir.RankedTensorType(kind).shape)


def rank(kind: Any) -> int | None:
    """Return the number of dims of a type, None if it has none."""
    return ir.RankedTensorType(kind).rank if isinstance(kind, ir.RankedTensorType) else None


def is_none(kind: Any) -> bool:
    """Return whether a type is that of absent values."""
    return str(kind) == "none"


def value_info(name: str, kind: Any, params: Mapping[int, str]) -> Any:
    """Return the `ValueInfoProto` of a value; `params` names its dynamic dims, by position.

    Raises `UnsupportedOpError` for a type that is no type of ONNX.
    """
    return onnx.helper.make_value_info(name, _type_proto(name, kind, params))


def _type_proto(name: str, kind: Any, params: Mapping[int, str]) -> Any:
    if isinstance(kind, ir.RankedTensorType):
        tensor = ir.RankedTensorType(kind)
        dims = range(tensor.rank)
        shape = [params.get(i) if tensor.is_dynamic_dim(i) else tensor.get_dim_size(i) for i in dims]
        return onnx.helper.make_tensor_type_proto(element_type(tensor.element_type), shape)
    if isinstance(kind, ir.UnrankedTensorType):
        return onnx.helper.make_tensor_type_proto(
            element_type(ir.UnrankedTensorType(kind).element_type), None
        )
    holder = _HOLDER.fullmatch(str(kind).removeprefix("!onnx."))
    if holder is not None:
        held = _type_proto(name, ir.Type.parse(holder[2]), {})
        made = (
            onnx.helper.make_sequence_type_proto
            if holder[1] == "Seq"
            else onnx.helper.make_optional_type_proto
        )
        return made(held)
    raise UnsupportedOpError(f"value {name!r} has type {kind} (expected a tensor, a sequence or an optional)")
