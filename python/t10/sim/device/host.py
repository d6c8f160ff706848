"""What crosses the host's link: arrays placed into variables slot by slot, outputs read back."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from t10.core.arrays import Array
from t10.core.device import HostPiece, HostTensor
from t10.core.dtypes import numpy_dtype
from t10.core.scalar import parse_constant
from t10.errors import SimTrap, VerifyError
from t10.sim.arrays import checked_array
from t10.sim.device.memory import DeviceMemory


def place(
    memory: DeviceMemory, tensors: tuple[HostTensor, ...], arrays: Mapping[str, Array], what: str
) -> None:
    """Write host arrays where their pieces say; raises `InputError` for a missing array or a wrong one."""
    for tensor in tensors:
        data = checked_array(tensor, arrays, what).reshape(-1)
        for piece in tensor.pieces:
            variable = memory.variable(piece.variable, f"{what} '{tensor.name}'")
            elements = _slots(piece, len(data), tensor)
            fill = np.array(parse_constant(piece.fill)).astype(data.dtype)
            rows = np.where(elements < 0, fill, data[np.maximum(elements, 0)]) if len(data) else elements
            tiles = np.arange(len(elements), dtype=np.int32)
            memory.write(variable, tiles, rows.astype(numpy_dtype(variable.dtype), copy=False))


def collect(memory: DeviceMemory, tensors: tuple[HostTensor, ...]) -> dict[str, Array]:
    """Return outputs by name, each element from the first slot that holds it; raises `SimTrap` where none does."""
    return {tensor.name: _collect(memory, tensor) for tensor in tensors}


def _collect(memory: DeviceMemory, tensor: HostTensor) -> Array:
    n_elements = int(np.prod(tensor.shape, dtype=np.int64))
    out = np.zeros(n_elements, numpy_dtype(tensor.dtype))
    missing = np.ones(n_elements, np.bool_)
    for piece in tensor.pieces:
        elements = _slots(piece, n_elements, tensor)
        if not piece.variable:
            named = elements[elements >= 0]
            out[named] = np.array(parse_constant(piece.fill)).astype(out.dtype)
            missing[named] = False
            continue
        variable = memory.variable(piece.variable, f"output '{tensor.name}'")
        tiles = np.arange(len(elements), dtype=np.int32)
        n_slots = elements.shape[1]
        slots = memory.read(variable, tiles)[:, :n_slots]
        is_held = (elements >= 0) & memory.is_written(variable, tiles)[:, :n_slots]
        # Written back to front, so that the first slot of an element is what stays.
        held = elements[is_held][::-1]
        values = slots[is_held][::-1]
        first = missing[held]
        out[held[first]] = values[first].astype(out.dtype, copy=False)
        missing[held] = False
    if missing.any():
        raise SimTrap(
            f"element {int(np.flatnonzero(missing)[0])} of output '{tensor.name}' was written on no tile"
        )
    return out.reshape(tensor.shape)


def _slots(piece: HostPiece, n_elements: int, tensor: HostTensor) -> Array:
    """Return which element lies in every slot; raises `VerifyError` for elements the tensor does not have."""
    if piece.elements.size and int(piece.elements.max()) >= n_elements:
        raise VerifyError(
            f"'{tensor.name}' has {n_elements} elements, variable '{piece.variable}' is to hold number "
            f"{int(piece.elements.max())}"
        )
    return piece.elements
