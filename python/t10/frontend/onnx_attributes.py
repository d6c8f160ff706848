"""MLIR attributes as what ONNX's helpers take."""

from __future__ import annotations

import re
from math import prod
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from t10.dialect.elements import resource_bytes
from t10.dialect.location import location_text
from t10.dialect.mlir import ir
from t10.errors import InputError, UnsupportedOpError
from t10.frontend.onnx_types import element_type, known_element_type

ELIDED = "__elided__"
"""Where the data of a constant lies that onnx-mlir left out of its text."""

_STRING = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)
_NUMBER = re.compile(r"0x[0-9A-Fa-f]+|[-+]?\d[\d.]*(?:[eE][-+]?\d+)?")
_DISPOSABLE = re.compile(r'#onnx\.dense_disposable<#?\d+\s*:\s*"0x([0-9A-Fa-f]*)"> : (.*)', re.DOTALL)
_ELIDED = re.compile(r"(?:dense_resource<__elided__>|#onnx\.dense_disposable<[^\">]*>) : (.*)", re.DOTALL)
_INTEGERS = frozenset({onnx.TensorProto.INT64, onnx.TensorProto.INT32, onnx.TensorProto.BOOL})
_PACKED = frozenset(
    {onnx.TensorProto.INT4, onnx.TensorProto.UINT4, onnx.TensorProto.FLOAT4E2M1, onnx.TensorProto.STRING}
)
_ARRAYS: dict[str, Any] = {
    "value_int": np.int64,
    "value_ints": np.int64,
    "value_float": np.float32,
    "value_floats": np.float32,
}


def attribute_value(attribute: Any) -> Any:
    """Return an attribute as Python value (number, text, list, or TensorProto); None for what has no ONNX form."""
    if isinstance(attribute, ir.IntegerAttr):
        return int(ir.IntegerAttr(attribute).value)
    if isinstance(attribute, ir.FloatAttr):
        return float(ir.FloatAttr(attribute).value)
    if isinstance(attribute, ir.StringAttr):
        return ir.StringAttr(attribute).value_bytes.decode(errors="replace")
    if isinstance(attribute, ir.ArrayAttr):
        values = [attribute_value(each) for each in ir.ArrayAttr(attribute)]
        return None if any(value is None for value in values) else values
    if isinstance(attribute, ir.TypeAttr):
        return known_element_type(ir.TypeAttr(attribute).value)
    if isinstance(attribute, ir.DenseElementsAttr):
        return dense_tensor(attribute, "")
    return None


def dense_tensor(attribute: Any, name: str) -> Any:
    """Return a dense attribute as TensorProto."""
    elements = ir.DenseElementsAttr(attribute)
    kind = ir.RankedTensorType(elements.type)
    number = element_type(kind.element_type)
    dtype = helper.tensor_dtype_to_np_dtype(number)
    if 0 in kind.shape:
        return numpy_helper.from_array(np.zeros(list(kind.shape), dtype), name)
    values: NDArray[Any] = np.array(elements)
    if values.dtype == object:  # numpy has no such element type
        return _written_out(str(attribute), list(kind.shape), number, name)
    return _tensor(values if values.dtype == dtype else values.astype(dtype), kind, name)


def _tensor(values: NDArray[Any], kind: Any, name: str) -> Any:
    return numpy_helper.from_array(np.broadcast_to(values, tuple(kind.shape)).copy(), name)


def _written_out(text: str, shape: list[int], number: int, name: str) -> Any:
    """Return the TensorProto of a dense attribute from its text: small floats, 4-bit integers."""
    body = text.removeprefix("dense<").rpartition("> :")[0]
    blob = re.fullmatch(r'"0x([0-9A-Fa-f]*)"', body)
    if blob is not None:
        return helper.make_tensor(name, number, shape, bytes.fromhex(blob[1]), raw=True)
    numbers = [_bits_or_float(each, number) for each in _NUMBER.findall(body)]
    values = numbers * prod(shape) if len(numbers) == 1 else numbers
    return helper.make_tensor(name, number, shape, values)


def _bits_or_float(text: str, number: int) -> float:
    """Return a number; one written in hexadecimal is the bits of a float that is not finite."""
    if not text.startswith("0x"):
        return float(text)
    dtype: Any = helper.tensor_dtype_to_np_dtype(number)
    bits = np.array([int(text, 16)], f"u{dtype.itemsize}")
    return float(bits.view(dtype)[0])


def constant_tensor(op: Any, name: str) -> Any:
    """Return the TensorProto of an `onnx.Constant` operation.

    Data that onnx-mlir elided becomes external data in an absent file: such a weight can be planned. Raises
    `UnsupportedOpError` for elided shapes and indices, and for sparse constants.
    """
    if "value" in op.attributes:
        return _value(op, op.attributes["value"], name)
    for key, dtype in _ARRAYS.items():
        if key in op.attributes:
            return numpy_helper.from_array(np.array(attribute_value(op.attributes[key]), dtype), name)
    for key in ("value_string", "value_strings"):
        if key in op.attributes:
            return _strings(str(op.attributes[key]), op, name)
    keys = ("sparse_value", *op.attributes)
    found = ", ".join(key for key in keys if key in op.attributes) or "nothing"
    raise UnsupportedOpError(
        f"onnx.Constant holds {found} (expected value, value_int(s), value_float(s) or value_string(s))",
        location=location_text(op.location),
    )


def _value(op: Any, attribute: Any, name: str) -> Any:
    if isinstance(attribute, ir.DenseElementsAttr):
        return dense_tensor(attribute, name)
    text = str(attribute)
    if text.startswith("dense<") and text.endswith("!onnx.String>"):
        return _strings(text.rpartition("> :")[0], op, name)
    found = _DISPOSABLE.fullmatch(text)
    if found is not None:
        return _disposable(bytes.fromhex(found[1]), ir.RankedTensorType(ir.Type.parse(found[2])), name)
    found = _ELIDED.fullmatch(text)
    if found is not None:
        return _elided(ir.RankedTensorType(ir.Type.parse(found[1])), op, name)
    if text.startswith("dense_resource<"):
        return _resource(op, attribute, text, name)
    raise UnsupportedOpError(
        f"onnx.Constant holds {text[:60]} (expected dense<...>)", location=location_text(op.location)
    )


def _resource(op: Any, attribute: Any, text: str, name: str) -> Any:
    """Return the tensor of a resource, whose bytes stand at the end of the text."""
    kind = ir.RankedTensorType(attribute.type)
    number = element_type(kind.element_type)
    data, expected = resource_bytes(attribute), None
    if number not in _PACKED:
        expected = prod(kind.shape) * helper.tensor_dtype_to_np_dtype(number).itemsize
    if data is not None and len(data) == expected:
        return _disposable(data, kind, name)
    found = "no data" if data is None else f"{len(data)} bytes"
    wanted = f"elements of whole bytes, found {kind}" if expected is None else f"{expected} bytes of {kind}"
    raise InputError(
        f"onnx.Constant: {text.partition(' :')[0][:60]} has {found} (expected {wanted})",
        location=location_text(op.location),
        hint='resources stand in {-# dialect_resources: {builtin: {NAME: "0x..."}} #-} at the end of the text',
    )


def _strings(text: str, op: Any, name: str) -> Any:
    """Return a tensor of the strings in a text; one string fills the shape of the operation's result."""
    found = [_ESCAPE.sub(_unescaped, each.encode()) for each in _STRING.findall(text)]
    shape = list(ir.RankedTensorType(op.results[0].type).shape)
    values = found * prod(shape) if len(found) == 1 else found
    return onnx.TensorProto(name=name, data_type=onnx.TensorProto.STRING, dims=shape, string_data=values)


def _unescaped(match: re.Match[bytes]) -> bytes:
    short = {b"n": b"\n", b"t": b"\t"}
    return bytes.fromhex(match[1].decode()) if len(match[1]) == 2 else short.get(match[1], match[1])


def _disposable(data: bytes, kind: Any, name: str) -> Any:
    """Return the tensor of onnx-mlir's own constants; the bytes of one element fill the shape."""
    dtype = helper.tensor_dtype_to_np_dtype(element_type(kind.element_type))
    return _tensor(
        np.frombuffer(data, dtype).reshape(() if len(data) == dtype.itemsize else tuple(kind.shape)),
        kind,
        name,
    )


def _elided(kind: Any, op: Any, name: str) -> Any:
    number = element_type(kind.element_type)
    if number in _INTEGERS:
        raise UnsupportedOpError(
            f"onnx.Constant of type {kind} has elided data",
            location=location_text(op.location),
            hint="use the .onnx.mlir file, not the .tmp file: weights may be absent, but shapes and indices may not",
        )
    tensor = onnx.TensorProto(name=name, data_type=number, dims=list(kind.shape))
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=ELIDED)
    return tensor
