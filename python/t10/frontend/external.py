"""Tensors whose data lies in a file beside the model: found by strict rules, mapped into memory instead of read.

A model file is not trusted: the location it states must be a plain file in the folder of the model, reached through no
link and no `..`, and must hold what the tensor's type and shape say.
"""

from __future__ import annotations

import os
import stat
from math import prod
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from t10.errors import InputError

_PACKED_BITS = {
    number: int(name.removeprefix("U").removeprefix("INT").removeprefix("FLOAT")[0])
    for name, number in onnx.TensorProto.DataType.items()
    if name.removeprefix("U") in ("INT2", "INT4") or name.startswith(("FLOAT4", "FLOAT6"))
}
_KEYS = frozenset({"location", "offset", "length", "checksum", "basepath"})


def external_file(folder: Path, location: str) -> Path | None:
    """Return the file of a location that a model states, None if there is none.

    Raises `InputError` if the location leaves the folder, goes through a link, or is no plain file.
    """
    path = PurePosixPath(location)
    if not location or "\0" in location or len(location) > 4096:
        raise InputError(f"external data has the location {location[:80]!r} (expected a file name)")
    if path.is_absolute() or PureWindowsPath(location).anchor or ".." in PureWindowsPath(location).parts:
        raise InputError(
            f"external data {location!r} would leave the folder of the model",
            hint="a model's data must lie in its folder; move it there and state the location relative to it",
        )
    file = folder
    for part in path.parts:
        file = file / part
        try:
            mode = os.lstat(file).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise InputError(f"external data {location!r} cannot be read: {error.strerror}") from error
        if stat.S_ISLNK(mode):
            raise InputError(
                f"external data {location!r} is reached through the symbolic link {str(file)!r}",
                hint="links are not followed, as they may lead anywhere; put the file itself beside the model",
            )
    if not stat.S_ISREG(os.lstat(file).st_mode):
        raise InputError(f"external data {location!r} is no plain file")
    return file


def mapped_array(tensor: Any, folder: Path, own: Path | None = None) -> NDArray[np.generic] | None:
    """Return the values of an external tensor, mapped into memory for reading; None if its file is absent.

    `own` is the model's own file, which may be anywhere: who gave it to T10 has chosen it. Raises `InputError` for a
    location that is refused, and for an offset, length or file that does not hold the tensor.
    """
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    unknown = sorted(entries.keys() - _KEYS)
    if unknown:
        raise InputError(
            f"external data of {tensor.name!r} has the entry {unknown[0]!r} (expected location, offset, length)"
        )
    file = own if own is not None and location == own.name else external_file(folder, location)
    if file is None:
        return None
    if tensor.data_type in _PACKED_BITS:
        raise InputError(
            f"external data of {tensor.name!r} has elements of less than a byte (expected whole bytes)"
        )
    dtype = element_dtype(tensor)
    shape = tuple(tensor.dims)
    expected = prod(shape) * dtype.itemsize
    offset = _number(entries.get("offset", "0"), tensor.name, "offset")
    size = file.stat().st_size
    length = _number(entries.get("length", str(expected)), tensor.name, "length")
    if length != expected or offset + expected > size:
        found = f"{max(0, min(length, size - offset))} bytes at offset {offset}"
        raise InputError(
            f"external data file {location!r} of {size} bytes holds {found} for {tensor.name!r} (expected {expected}: "
            f"{dtype}[{'x'.join(map(str, shape))}])"
        )
    if not expected:
        return np.zeros(shape, dtype)
    try:
        return np.memmap(file, dtype, mode="r", offset=offset, shape=shape)
    except (OSError, ValueError) as error:
        raise InputError(f"external data of {tensor.name!r} cannot be read: {error}") from error


def element_dtype(tensor: Any) -> np.dtype[Any]:
    """Return the numpy type of a tensor's elements as they lie in a file; raises `InputError` where there is none."""
    try:
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type))
    except (KeyError, ValueError, TypeError):
        dtype = np.dtype(object)
    if dtype.hasobject:
        raise InputError(f"tensor {tensor.name!r} has element type {tensor.data_type} (expected numbers)")
    return dtype


def bits_in_file(tensor: Any) -> int:
    """Return the bits of an element as it lies in a file: types of less than a byte are packed."""
    return _PACKED_BITS.get(tensor.data_type) or element_dtype(tensor).itemsize * 8


def _number(text: str, name: str, what: str) -> int:
    """Return an offset or a length, as a decimal number from 0 up to 2^63."""
    if not text.isascii() or not text.isdigit() or len(text) > 19:
        raise InputError(
            f"external data of {name!r} has the {what} {text[:40]!r} (expected a number of bytes)"
        )
    return int(text)
