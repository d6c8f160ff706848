"""The memories of a device as variables: bytes of a variable on some tiles, poison, and what nobody wrote.

Bytes that nobody wrote hold 0xFF (a NaN in every floating-point type). The record of what was written is per byte:
the host's data and exchanges write exactly the bytes they name; a vertex is taken to write all of every variable it
points to with an `out` or `inout` field. An exchange that reads a byte nobody wrote is a trap.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from t10.core.arrays import Array, Bools
from t10.core.device import DeviceProgram, MemoryMap, Variable
from t10.core.dtypes import numpy_dtype, size_bytes
from t10.errors import VerifyError
from t10.sim.device._device import Memories
from t10.sim.device.machine import TileMachine


class DeviceMemory:
    """All tiles' memories with the variables of a program in them."""

    def __init__(self, program: DeviceProgram, machine: TileMachine) -> None:
        """Poison all variables; raises `VerifyError` where one lies outside the memory."""
        self.program = program
        self.n_tiles = program.n_tiles
        self.base = program.memory.base
        views = [machine.memory(tile) for tile in range(program.n_tiles)]
        self.size_bytes = len(views[0]) if views else 0
        self.native = Memories(views)
        self.variables = {variable.name: variable for variable in program.variables}
        for variable in program.variables:
            _check(variable, program.memory, self.base + self.size_bytes, program.n_tiles)
        for first, last in _merged(program.variables):
            self.native.poison(self.n_tiles, first - self.base, last - first)

    def variable(self, name: str, user: str) -> Variable:
        """Return a variable by name; raises `VerifyError` where there is none, naming its `user`."""
        found = self.variables.get(name)
        if found is None:
            raise VerifyError(f"{user} names variable '{name}', which the program does not have")
        return found

    def offset(self, variable: Variable) -> int:
        """Return where a variable begins, from the begin of the memory."""
        return variable.address_bytes - self.base

    def write(self, variable: Variable, tiles: NDArray[np.int32], rows: Array) -> None:
        """Write the first bytes of a variable on some tiles; `rows` is (tiles, slots) of its type."""
        data = np.ascontiguousarray(rows).view(np.uint8).reshape(len(tiles), -1)
        self.native.write_rows(tiles, self.offset(variable), data)

    def read(self, variable: Variable, tiles: NDArray[np.int32]) -> Array:
        """Return all slots of a variable on some tiles, (tiles, slots)."""
        out = np.empty((len(tiles), variable_bytes(variable)), np.uint8)
        self.native.read_rows(tiles, self.offset(variable), out)
        return out.view(numpy_dtype(variable.dtype))

    def is_written(self, variable: Variable, tiles: NDArray[np.int32]) -> Bools:
        """Return whether anybody wrote the first byte of every slot, (tiles, slots)."""
        out = np.empty((len(tiles), variable_bytes(variable)), np.uint8)
        self.native.written_rows(tiles, self.offset(variable), out)
        return out[:, :: size_bytes(variable.dtype)].astype(np.bool_)


def variable_bytes(variable: Variable) -> int:
    """Return the bytes of a variable on one tile."""
    return prod(variable.shape) * size_bytes(variable.dtype)


def _check(variable: Variable, memory: MemoryMap, end: int, n_tiles: int) -> None:
    first, last = variable.address_bytes, variable.address_bytes + variable_bytes(variable)
    if first < memory.base or last > end:
        raise VerifyError(
            f"variable '{variable.name}' lies at [{first:#x}, {last:#x}), "
            f"outside the memory [{memory.base:#x}, {end:#x})"
        )
    if variable.n_tiles > n_tiles:
        raise VerifyError(f"variable '{variable.name}' lies on {variable.n_tiles} of {n_tiles} tiles")


def _merged(variables: tuple[Variable, ...]) -> list[tuple[int, int]]:
    """Return the address ranges that variables cover, joined where they touch."""
    ranges: list[tuple[int, int]] = []
    for first, n in sorted((v.address_bytes, variable_bytes(v)) for v in variables):
        if ranges and first <= ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], max(ranges[-1][1], first + n))
        elif n:
            ranges.append((first, first + n))
    return ranges
