"""The weights of a program: weights.bin, every one in row-major order, and its index weights.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import to_json

from t10.core.device import HostTensor
from t10.core.dtypes import NUMPY_BY_DTYPE, numpy_dtype
from t10.core.trust.schema import explain
from t10.core.trust.tree import read_json_value
from t10.errors import InputError

WEIGHTS_FILE = "weights.bin"
INDEX_FILE = "weights.json"
ALIGNMENT = 64

Size = Annotated[int, Field(ge=0, lt=2**62)]


class _Entry(BaseModel):
    """One weight: its bytes begin at `offset` of weights.bin."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str
    dtype: str
    shape: tuple[Size, ...]
    offset: Size

    @property
    def end(self) -> int:
        """Return where its bytes end."""
        return self.offset + prod(self.shape) * numpy_dtype(self.dtype).itemsize


_INDEX = TypeAdapter(tuple[_Entry, ...])


def write_weights(
    tensors: tuple[HostTensor, ...], weights: Mapping[str, NDArray[Any]], folder: Path
) -> dict[str, int]:
    """Write both files and return where each weight begins; weights without values are left out.

    Raises `InputError` where a weight has another shape than the program expects.
    """
    index: dict[str, _Entry] = {}
    with (folder / WEIGHTS_FILE).open("wb") as file:
        for tensor in tensors:
            values = weights.get(tensor.name)
            if values is None or tensor.name in index:
                continue
            if values.shape != tensor.shape:
                raise InputError(
                    f"weight {tensor.name} has shape {values.shape} (expected {tensor.shape}, as in the program)"
                )
            file.write(b"\0" * (-file.tell() % ALIGNMENT))
            index[tensor.name] = _Entry(
                name=tensor.name, dtype=tensor.dtype, shape=tensor.shape, offset=file.tell()
            )
            of_type = numpy_dtype(tensor.dtype).newbyteorder("<")
            file.write(np.ascontiguousarray(values, of_type).reshape(-1).view(np.uint8).data)
    lines = ",\n  ".join(json.dumps(entry.model_dump()) for entry in index.values())
    (folder / INDEX_FILE).write_text(f"[\n  {lines}\n]\n" if index else "[]\n", encoding="utf-8")
    return {name: entry.offset for name, entry in index.items()}


def read_weights(tensors: tuple[HostTensor, ...], folder: Path) -> dict[str, NDArray[Any]]:
    """Return the values of a program's weights by name, mapped from the file.

    Raises `InputError` where the files are not what is written for these tensors, or have no values for one.
    """
    entries, path = check_weights(folder), folder / WEIGHTS_FILE
    mapped = np.memmap(path, np.uint8, "r") if path.stat().st_size else np.zeros(0, np.uint8)
    found: dict[str, NDArray[Any]] = {}
    for tensor in tensors:
        entry = entries.get(tensor.name)
        if entry is None or (entry.dtype, entry.shape) != (tensor.dtype, tensor.shape):
            has = "nothing" if entry is None else f"{entry.dtype} of shape {entry.shape}"
            raise InputError(
                f"{folder / INDEX_FILE}: weight {tensor.name}: found {has}, "
                f"the program needs {tensor.dtype} of shape {tensor.shape}"
            )
        of_type = numpy_dtype(entry.dtype).newbyteorder("<")
        found[entry.name] = mapped[entry.offset : entry.end].view(of_type).reshape(entry.shape)
    return found


def check_weights(folder: Path) -> dict[str, _Entry]:
    """Return the index of the weights by name.

    Raises `InputError` unless it lists them in the order and at the places where they are written, to the end of
    weights.bin: program.cpp has these places too, and does not read the index.
    """
    index, path = folder / INDEX_FILE, folder / WEIGHTS_FILE
    try:
        entries = _INDEX.validate_json(to_json(read_json_value(index)))
        n_bytes = path.stat().st_size
    except OSError as error:
        raise InputError(f"cannot read {error.filename}: {error.strerror}") from error
    except ValidationError as error:
        raise InputError(f"{index}: {explain(error)}") from None
    found, end = dict[str, _Entry](), 0
    for entry in entries:
        begin = end + -end % ALIGNMENT
        if entry.dtype not in NUMPY_BY_DTYPE:
            raise InputError(f"{index}: weight {entry.name} is of the unknown type {entry.dtype!r}")
        if entry.name in found:
            raise InputError(f"{index}: weight {entry.name} is listed twice")
        if entry.offset != begin:
            raise InputError(
                f"{index}: weight {entry.name} begins at byte {entry.offset:,} (expected {begin:,})"
            )
        found[entry.name], end = entry, entry.end
        if end > n_bytes:
            raise InputError(f"{path} ends before weight {entry.name} does ({n_bytes:,} of {end:,} bytes)")
    if n_bytes > end:
        raise InputError(f"{path} has {n_bytes:,} bytes (expected {end:,}, as {INDEX_FILE} has it)")
    return found
