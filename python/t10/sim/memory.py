"""The SRAM of all cores as one byte array, with buffers that live and die, poison, and a record of what was written.

Every core uses the same addresses, so a buffer is a column range of the array. Bytes that nobody wrote are poisoned
with 0xFF, which is a NaN in every floating-point type. Reading what nobody wrote is a trap for every type: a buffer
keeps, per core, how many of its bytes (from its start) were written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.core.dtypes import numpy_dtype
from t10.core.schedule import Buffer
from t10.core.tile import ALIGNMENT_BYTES
from t10.sim.traps import trap

POISON = 0xFF
Slots = NDArray[Any]


@dataclass(slots=True)
class LiveBuffer:
    """A buffer that holds data now; `written_bytes` (cores,) counts from its start.

    `is_taken` once another buffer goes on using its bytes.
    """

    buffer: Buffer
    written_bytes: NDArray[np.int64]
    is_taken: bool = False

    @property
    def end_bytes(self) -> int:
        """Return the first address after the buffer."""
        return self.buffer.address_bytes + self.buffer.size_bytes


class CoreMemory:
    """The memories of all cores; raises `SimTrap` for every access that real memory would not survive."""

    def __init__(self, n_cores: int, sram_bytes: int, reserved_bytes: int = 0) -> None:
        """Make the memories; the first `reserved_bytes` of each belong to code and stacks."""
        self.n_cores = n_cores
        self.sram_bytes = sram_bytes
        self.reserved_bytes = reserved_bytes
        self.peak_bytes = self.held_bytes = reserved_bytes
        row_bytes = -(-sram_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        # Not filled here: pages that no buffer ever uses are never touched; buffers are poisoned as they begin to live.
        self._sram = np.empty((n_cores, row_bytes), np.uint8)
        self._live: dict[str, LiveBuffer] = {}

    def begin(self, buffer: Buffer, takes_over: str = "") -> None:
        """Let a buffer live from now on, poisoned; it must lie inside the memory and overlap no other live buffer.

        It may lie exactly where the live buffer `takes_over` does, whose bytes then stay as they are, and stay readable
        through either name until that buffer dies.
        """
        start, end = buffer.address_bytes, buffer.address_bytes + buffer.size_bytes
        if buffer.name in self._live:
            raise trap(f"buffer {buffer.name} begins to live twice", address=start)
        if start < self.reserved_bytes or end > self.sram_bytes:
            raise trap(
                f"buffer {buffer.name} of {buffer.size_bytes} bytes lies outside the memory "
                f"[{self.reserved_bytes:#x}, {self.sram_bytes:#x})",
                address=start,
            )
        if start % ALIGNMENT_BYTES:
            raise trap(f"buffer {buffer.name} is not aligned to {ALIGNMENT_BYTES} bytes", address=start)
        for other in self._live.values():
            if other.buffer.name == takes_over:
                continue
            if start < other.end_bytes and other.buffer.address_bytes < end:
                raise trap(f"buffer {buffer.name} overlaps live buffer {other.buffer.name}", address=start)
        self._live[buffer.name] = LiveBuffer(buffer, np.zeros(self.n_cores, np.int64))
        if takes_over:
            old = self._find(takes_over)
            if (old.buffer.address_bytes, old.end_bytes) != (start, end):
                raise trap(
                    f"buffer {buffer.name} takes over other bytes than those of {takes_over}", address=start
                )
            old.is_taken = True
        else:
            self._sram[:, start:end] = POISON
            self.held_bytes += buffer.size_bytes
        self.peak_bytes = max(self.peak_bytes, self.held_bytes)

    def end(self, name: str) -> None:
        """Let a buffer die: its bytes are poisoned again, unless another took them over."""
        live = self._find(name)
        if not live.is_taken:
            self.held_bytes -= live.buffer.size_bytes
            self._sram[:, live.buffer.address_bytes : live.end_bytes] = POISON
        del self._live[name]

    def check_live(self, names: Iterable[str]) -> None:
        """Raise a trap unless all these buffers live."""
        for name in names:
            self._find(name)

    def is_live(self, name: str) -> bool:
        """Return whether a buffer of that name lives."""
        return name in self._live

    def slots(self, name: str, dtype: str, n_cores: int, n_slots: int) -> Slots:
        """Return `n_slots` elements of a live buffer on the first cores, (n_cores, n_slots), writable."""
        return self.bytes_as(name, numpy_dtype(dtype), n_cores, n_slots)

    def bytes_as(
        self, name: str, dtype: np.dtype[Any], n_cores: int, n_slots: int, offset_bytes: int = 0
    ) -> Slots:
        """Return what `slots` returns, for a numpy type, from a byte of the buffer on."""
        live = self._find(name)
        n_bytes = offset_bytes + n_slots * dtype.itemsize
        if n_bytes > live.buffer.size_bytes:
            raise trap(
                f"buffer {name} holds {live.buffer.size_bytes} bytes, {n_bytes} are accessed",
                address=live.end_bytes,
            )
        if n_cores > self.n_cores:
            raise trap(f"buffer {name} is accessed on {n_cores} cores of a chip with {self.n_cores}")
        start = live.buffer.address_bytes
        return self._sram[:n_cores, start + offset_bytes : start + n_bytes].view(dtype)

    def size_bytes(self, name: str) -> int:
        """Return the size of a live buffer."""
        return self._find(name).buffer.size_bytes

    def address_bytes(self, name: str) -> int:
        """Return the address of a live buffer."""
        return self._find(name).buffer.address_bytes

    @property
    def row_bytes(self) -> int:
        """Return the distance of two cores' memories in `flat`."""
        return self._sram.shape[1]

    def flat(self, dtype: np.dtype[Any]) -> Slots:
        """Return the memories of all cores laid end to end as elements of one type."""
        return self._sram.reshape(-1).view(dtype)

    def mark_written(self, name: str, n_cores: int, n_bytes: int) -> None:
        """Record that the first `n_bytes` of a buffer hold data on the first `n_cores` cores."""
        written = self._find(name).written_bytes
        written[:n_cores] = np.maximum(written[:n_cores], n_bytes)

    def written(self, name: str) -> NDArray[np.int64]:
        """Return how many bytes of a buffer were written, per core."""
        return self._find(name).written_bytes

    def check_written(self, name: str, n_cores: int, n_bytes: int) -> None:
        """Raise a trap unless the first `n_bytes` of a buffer were written on each of the first `n_cores` cores."""
        written = self.written(name)[:n_cores]
        short = np.flatnonzero(written < n_bytes)
        if short.size:
            core = int(short[0])
            address = self._find(name).buffer.address_bytes + int(written[core])
            raise trap(f"read of poisoned bytes in buffer {name}", core=core, address=address)

    def _find(self, name: str) -> LiveBuffer:
        live = self._live.get(name)
        if live is None:
            raise trap(f"access to buffer {name}, which is not live")
        return live
