"""Inputs of a model that are fixed: given as constants, or without elements, so that there is nothing to give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike, NDArray
from onnx import numpy_helper

from t10.errors import InputError
from t10.frontend.shapes import set_shapes


def fix_inputs(model: Any, constants: Mapping[str, ArrayLike]) -> None:
    """Turn inputs into initializers, in place: those of `constants`, and those of static shape without elements.

    Raises `InputError` for names that are no inputs, and for values of a shape or type that does not fit.
    """
    graph = model.graph
    stored = {tensor.name for tensor in graph.initializer}
    values = {value.name: value for value in graph.input}
    unknown = [name for name in constants if name not in values]
    if unknown:
        raise InputError(
            f"--constant {unknown[0]}: the model has no such input (inputs: {', '.join(values) or 'none'})"
        )
    fixed = {name: _fitting(name, given, values[name]) for name, given in constants.items()}
    empty = _without_elements(values.values())
    fixed |= {name: array for name, array in empty.items() if name not in fixed and name not in stored}
    if not fixed:
        return
    kept = [value for value in graph.input if value.name not in fixed]
    tensors = [tensor for tensor in graph.initializer if tensor.name not in fixed]
    del graph.input[:], graph.initializer[:]
    graph.input.extend(kept)
    graph.initializer.extend(tensors)
    graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in fixed.items())


def empty_inputs(model: Any, shapes: Mapping[str, Sequence[int] | int]) -> dict[str, NDArray[Any]]:
    """Return the inputs that have no elements if they have these extents (see `set_shapes`), as arrays.

    Names that the model does not have are left out.
    """
    known = onnx.ModelProto()
    known.graph.input.extend(model.graph.input)
    dims = [dim for value in known.graph.input for dim in _kind(value).shape.dim]
    names = {*(value.name for value in known.graph.input), *(dim.dim_param for dim in dims)}
    set_shapes(known, {name: wanted for name, wanted in shapes.items() if name in names})
    return _without_elements(known.graph.input)


def _without_elements(values: Iterable[Any]) -> dict[str, NDArray[Any]]:
    shapes = {value.name: (_static_shape(value), _kind(value).elem_type) for value in values}
    return {
        name: np.zeros(shape, onnx.helper.tensor_dtype_to_np_dtype(kind))
        for name, (shape, kind) in shapes.items()
        if shape is not None and 0 in shape
    }


def _fitting(name: str, given: ArrayLike, value: Any) -> NDArray[Any]:
    """Return the values of an input in the type it has."""
    kind = _kind(value)
    array: NDArray[Any] = np.asarray(given)
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
    if not np.can_cast(array.dtype, dtype, "same_kind"):
        raise InputError(f"--constant {name} is of type {array.dtype}, expected {dtype}")
    shape = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]
    if (
        array.size == 1
        and array.ndim < 2
        and kind.HasField("shape")
        and all(extent in (1, None) for extent in shape)
    ):
        array = array.reshape([1] * len(shape))  # `6` and `6,` are written alike
    if kind.HasField("shape") and (
        len(shape) != array.ndim
        or any(extent not in (None, found) for extent, found in zip(shape, array.shape, strict=True))
    ):
        wanted = "x".join("?" if extent is None else str(extent) for extent in shape)
        raise InputError(f"--constant {name} has shape {list(array.shape)}, expected {wanted or 'a number'}")
    narrow = array.astype(dtype)
    if not np.array_equal(narrow.astype(array.dtype), array, equal_nan=array.dtype.kind in "fc"):
        raise InputError(f"--constant {name}: {dtype} does not hold its values")
    return narrow


def _kind(value: Any) -> Any:
    return value.type.tensor_type


def _static_shape(value: Any) -> tuple[int, ...] | None:
    kind = _kind(value)
    if not kind.elem_type or not kind.HasField("shape"):
        return None
    dims = kind.shape.dim
    return tuple(dim.dim_value for dim in dims) if all(dim.HasField("dim_value") for dim in dims) else None
