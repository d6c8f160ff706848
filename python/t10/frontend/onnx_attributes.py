"""MLIR attributes and element types as what ONNX's helpers take."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from t10.dialect.location import location_text
from t10.dialect.mlir import ir
from t10.errors import UnsupportedOpError

_TYPES = {
    "f32": onnx.TensorProto.FLOAT, "f16": onnx.TensorProto.FLOAT16, "f64": onnx.TensorProto.DOUBLE,
    "bf16": onnx.TensorProto.BFLOAT16, "i1": onnx.TensorProto.BOOL,
    "i8": onnx.TensorProto.INT8, "si8": onnx.TensorProto.INT8, "ui8": onnx.TensorProto.UINT8,
    "i16": onnx.TensorProto.INT16, "si16": onnx.TensorProto.INT16, "ui16": onnx.TensorProto.UINT16,
    "i32": onnx.TensorProto.INT32, "si32": onnx.TensorProto.INT32, "ui32": onnx.TensorProto.UINT32,
    "i64": onnx.TensorProto.INT64, "si64": onnx.TensorProto.INT64, "ui64": onnx.TensorProto.UINT64,
}  # fmt: skip


def element_type(kind: Any) -> int:
    """Return ONNX's number of an MLIR element type; raises `UnsupportedOpError` for types that are not planned."""
    found = _TYPES.get(str(kind))
    if found is None:
        raise UnsupportedOpError(f"element type {kind} (expected one of {', '.join(sorted(_TYPES))})")
    return int(found)


def attribute_value(attribute: Any) -> Any:
    """Return an attribute as Python value (number, text, list, or TensorProto); None for what has no ONNX form."""
    if isinstance(attribute, ir.IntegerAttr):
        return int(ir.IntegerAttr(attribute).value)
    if isinstance(attribute, ir.FloatAttr):
        return float(ir.FloatAttr(attribute).value)
    if isinstance(attribute, ir.StringAttr):
        return ir.StringAttr(attribute).value
    if isinstance(attribute, ir.ArrayAttr):
        values = [attribute_value(each) for each in ir.ArrayAttr(attribute)]
        return None if any(value is None for value in values) else values
    if isinstance(attribute, ir.TypeAttr):
        return _TYPES.get(str(ir.TypeAttr(attribute).value))
    if isinstance(attribute, ir.DenseElementsAttr):
        return dense_tensor(attribute, "")
    return None


def dense_tensor(attribute: Any, name: str) -> Any:
    """Return a dense attribute as TensorProto."""
    elements = ir.DenseElementsAttr(attribute)
    kind = ir.RankedTensorType(elements.type)
    shape = list(kind.shape)
    number = element_type(kind.element_type)
    dtype = helper.tensor_dtype_to_np_dtype(number)
    if 0 in shape:
        return numpy_helper.from_array(np.zeros(shape, dtype), name)
    if str(kind.element_type) == "bf16":
        bits = ir.DenseElementsAttr.get_splat_value if elements.is_splat else None
        raise UnsupportedOpError(
            f"bf16 constant {name!r} ({'splat' if bits else 'dense'}) cannot be read back"
        )
    values = np.array(elements)
    if values.dtype != dtype:
        values = values.astype(dtype)
    return numpy_helper.from_array(np.ascontiguousarray(np.broadcast_to(values, shape)), name)


def constant_tensor(op: Any, name: str) -> Any:
    """Return the TensorProto of an `onnx.Constant` operation; raises `UnsupportedOpError` for text and sparse ones."""
    where = location_text(op.location)
    if "value" in op.attributes:
        attribute = op.attributes["value"]
        if isinstance(attribute, ir.DenseElementsAttr):
            return dense_tensor(attribute, name)
        if "__elided__" in str(attribute)[:80]:
            raise UnsupportedOpError(
                "onnx.Constant has elided data",
                location=where,
                hint="use the .onnx.mlir file, not the .tmp file",
            )
        raise UnsupportedOpError(
            f"onnx.Constant holds {str(attribute)[:60]} (expected dense<...>)", location=where
        )
    arrays: dict[str, Any] = {
        "value_int": np.int64,
        "value_ints": np.int64,
        "value_float": np.float32,
        "value_floats": np.float32,
    }
    for key, dtype in arrays.items():
        if key in op.attributes:
            return numpy_helper.from_array(np.array(attribute_value(op.attributes[key]), dtype), name)
    found = ", ".join(op.attributes) or "nothing"
    raise UnsupportedOpError(
        f"onnx.Constant holds {found} (expected value, value_int(s) or value_float(s))", location=where
    )
