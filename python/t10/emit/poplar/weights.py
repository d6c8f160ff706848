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
from t10.core.dtypes import numpy_dtype
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
    index, path = folder / INDEX_FILE, folder / WEIGHTS_FILE
    try:
        loaded = read_json_value(index)
        entries = {entry.name: entry for entry in _INDEX.validate_json(to_json(loaded))}
        n_bytes = path.stat().st_size
        mapped = np.memmap(path, np.uint8, "r") if n_bytes else np.zeros(0, np.uint8)
    except OSError as error:
        raise InputError(f"cannot read {error.filename}: {error.strerror}") from error
    except ValidationError as error:
        raise InputError(f"{index}: {explain(error)}") from None
    found: dict[str, NDArray[Any]] = {}
    for tensor in tensors:
        entry = entries.get(tensor.name)
        if entry is None or (entry.dtype, entry.shape) != (tensor.dtype, tensor.shape):
            has = "nothing" if entry is None else f"{entry.dtype} of shape {entry.shape}"
            raise InputError(
                f"{index}: weight {tensor.name}: found {has}, the program needs {tensor.dtype} of shape {tensor.shape}"
            )
        dtype = numpy_dtype(entry.dtype).newbyteorder("<")
        end = entry.offset + prod(entry.shape) * dtype.itemsize
        if end > n_bytes:
            raise InputError(f"{path} ends before weight {entry.name} does ({n_bytes:,} of {end:,} bytes)")
        found[entry.name] = mapped[entry.offset : end].view(dtype).reshape(entry.shape)
    return found
