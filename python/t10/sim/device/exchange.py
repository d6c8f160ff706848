"""One exchange phase on the device: bytes move as its pattern says, and the clock advances by what that takes.

The phase's cycles depend on addresses, not on data: they are computed once per copy (see `phase.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from t10.core.arrays import Ints
from t10.core.device import Copy, DeviceProgram, Pattern, Variable
from t10.core.dtypes import numpy_dtype
from t10.core.scalar import parse_constant
from t10.errors import SimTrap, VerifyError
from t10.sim.device._device import find_race
from t10.sim.device.memory import DeviceMemory, variable_bytes


@dataclass(frozen=True, slots=True, eq=False)
class LoadedCopy:
    """A copy with the addresses of its variables, as offsets from the begin of the memory."""

    copy: Copy
    pattern: Pattern
    sources: tuple[Variable, ...]
    target: Variable
    source_offsets: Ints
    target_offset: int
    fill_elements: NDArray[np.uint8]


def load_copies(program: DeviceProgram, memory: DeviceMemory) -> dict[str, LoadedCopy]:
    """Return all copies by name; raises `VerifyError` for a variable or pattern that does not exist."""
    patterns = {pattern.key: pattern for pattern in program.patterns}
    loaded: dict[str, LoadedCopy] = {}
    for copy in program.copies:
        pattern = patterns.get(copy.pattern)
        if pattern is None:
            raise VerifyError(f"copy '{copy.name}' names pattern '{copy.pattern}', which is not there")
        sources = tuple(memory.variable(name, f"copy '{copy.name}'") for name in copy.sources)
        target = memory.variable(copy.target, f"copy '{copy.name}'")
        dtype = numpy_dtype(copy.dtype)
        constants = [np.array(parse_constant(text)).astype(dtype).reshape(1) for text in pattern.constants]
        elements = np.concatenate(constants) if constants else np.zeros(0, dtype)
        loaded[copy.name] = LoadedCopy(
            copy,
            pattern,
            sources,
            target,
            np.array([memory.offset(variable) for variable in sources], np.int64),
            memory.offset(target),
            elements.view(np.uint8).reshape(len(elements), dtype.itemsize),
        )
    return loaded


def check(loaded: LoadedCopy, n_tiles: int) -> None:
    """Raise `VerifyError` where the copy leaves its variables, writes a byte twice or writes what it reads."""
    runs, fills = loaded.pattern.runs, loaded.pattern.fills
    name = loaded.copy.name
    for number, source in enumerate(loaded.sources):
        _check_inside(runs[runs[:, 0] == number][:, [2, 5, 6, 7]], source, f"copy '{name}' reads")
    _check_inside(runs[:, [4, 5, 6, 8]], loaded.target, f"copy '{name}' writes")
    _check_inside(fills[:, [1, 2, 3, 4]], loaded.target, f"copy '{name}' fills")
    row, tile, offset = find_race(
        runs, fills, loaded.source_offsets, loaded.target_offset, n_tiles, variable_bytes(loaded.target)
    )
    if row >= 0:
        raise VerifyError(
            f"copy '{name}' writes byte {offset - loaded.target_offset} of '{loaded.target.name}' on tile {tile} "
            f"twice, or also reads it (row {row} of its pattern)"
        )


def _check_inside(spans: NDArray[np.int32], variable: Variable, what: str) -> None:
    """Refuse spans (offset, bytes, count, step) that leave a variable."""
    wide = spans.astype(np.int64)
    last = wide[:, 0] + (wide[:, 2] - 1) * wide[:, 3]
    low, high = np.minimum(wide[:, 0], last), np.maximum(wide[:, 0], last) + wide[:, 1]
    bad = (low < 0) | (high > variable_bytes(variable))
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise VerifyError(
            f"{what} bytes [{int(low[at])}, {int(high[at])}) of '{variable.name}', which has {variable_bytes(variable)}"
        )


def move(loaded: LoadedCopy, memory: DeviceMemory) -> None:
    """Move the bytes; raises `SimTrap` where a source byte was never written.

    Shifts and reductions move whole windows, whose padding nobody may have written: it stays unwritten where it
    arrives. Relayouts and set-ups name single elements.
    """
    row, tile, offset = memory.native.move(
        loaded.pattern.runs,
        loaded.source_offsets,
        loaded.target_offset,
        loaded.copy.kind in ("relayout", "setup"),
    )
    if row >= 0:
        source = loaded.sources[int(loaded.pattern.runs[row, 0])]
        raise SimTrap(
            f"copy '{loaded.copy.name}' reads poisoned bytes of '{source.name}' on tile {tile} at address "
            f"{memory.base + offset:#x}",
            operator=loaded.copy.operator,
        )
    if len(loaded.pattern.fills):
        memory.native.fill(
            loaded.pattern.fills, loaded.pattern.fill_values, loaded.target_offset, loaded.fill_elements
        )
