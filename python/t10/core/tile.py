"""A tile as code sees it: worker threads and memory map. What of a chip the layers get that know no `ChipSpec`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

N_WORKERS = 6
"""Worker threads of a tile. The instruction set fixes them: `runall` starts six, `$WORKER0_BASE` to `$WORKER5_BASE`."""
WIDE_BYTES = 16
"""The widest load, which reaches the interleaved region only."""
ALIGNMENT_BYTES = WIDE_BYTES
"""Every buffer starts at a multiple of this, so that it can be read by the widest load wherever that reaches."""
OVERREAD_BYTES = 64
"""Codelets may read as much past their operands: the last bytes of the memory are never given to data."""
ADDRESS_BITS = 20
"""Bits of an address that one instruction can load (`setzi`): a tile's memory ends below 2^20."""
MOST_ELEMENTS = 64
"""Memory elements that the simulators tell apart."""

KEPT_RANGES = 65536


@dataclass(frozen=True, slots=True)
class TileMemory:
    """The memory of every tile: addresses `[base, end)`.

    ```
    base                       interleaved_base                          end
    | element | element | ...  | pair of elements | pair of elements | ... |
    ```

    A memory element serves one access per cycle: `element_bytes` in a row below `interleaved_base`; from there on pairs
    of them take turns every eight bytes, so that 16 bytes can be loaded at once. Instructions are fetched from below.
    Raises `ValueError` for numbers that describe no memory.
    """

    base: int
    interleaved_base: int
    end: int
    element_bytes: int

    def __post_init__(self) -> None:
        """Refuse numbers that describe no memory."""
        size = self.element_bytes
        if size < WIDE_BYTES or size & (size - 1):
            raise ValueError(f"element_bytes = {size} must be a power of two, at least {WIDE_BYTES}")
        if self.base < ALIGNMENT_BYTES or self.base % WIDE_BYTES:
            raise ValueError(f"memory_base = {self.base:#x} must be a positive multiple of {WIDE_BYTES}")
        if self.interleaved_base < self.base or (self.interleaved_base - self.base) % size:
            raise ValueError(
                f"interleaved_base = {self.interleaved_base:#x} must be whole memory elements ({size} bytes each) "
                f"above memory_base = {self.base:#x}"
            )

    @property
    def size_bytes(self) -> int:
        """Return the bytes of the memory."""
        return self.end - self.base

    @property
    def interleaved_bytes(self) -> int:
        """Return the bytes of a pair of elements, which the interleaved region consists of."""
        return 2 * self.element_bytes

    @property
    def n_elements(self) -> int:
        """Return the memory elements, each of a pair counted."""
        plain = min(self.end, self.interleaved_base) - self.base
        pairs = -(-max(self.end - self.interleaved_base, 0) // self.interleaved_bytes)
        return -(-plain // self.element_bytes) + 2 * pairs

    def is_interleaved(self, address: int) -> bool:
        """Return whether what begins at an address lies in the interleaved region."""
        return address >= self.interleaved_base

    def elements(self, first: int, last: int) -> frozenset[int]:
        """Return where the elements begin that reading `[first, last)` touches; a pair counts as one.

        What codelets read past the end counts: it may lie in the next element, where the other operand of a load is.
        """
        return _elements(self, first, last + OVERREAD_BYTES)


@dataclass(frozen=True, slots=True)
class TileRange:
    """Bytes of every tile: address of the first and how many, and the memory that they lie in."""

    address_bytes: int
    size_bytes: int
    memory: TileMemory

    @property
    def end_bytes(self) -> int:
        """Return the first address after them."""
        return self.address_bytes + self.size_bytes

    @property
    def is_interleaved(self) -> bool:
        """Return whether all of them lie in the interleaved region."""
        return self.memory.is_interleaved(self.address_bytes)

    @property
    def elements(self) -> frozenset[int]:
        """Return the memory elements that reading them touches; pairs in the interleaved region."""
        return self.memory.elements(self.address_bytes, self.end_bytes)


def are_apart(first: TileRange, second: TileRange) -> bool:
    """Return whether no access to one and one to the other ever meet in a memory element."""
    return not first.elements & second.elements


@lru_cache(maxsize=KEPT_RANGES)
def _elements(memory: TileMemory, address: int, end: int) -> frozenset[int]:
    """Return where the memory elements begin that bytes from `address` to `end` (excluded) touch."""
    found: set[int] = set()
    while address < end:
        is_interleaved = memory.is_interleaved(address)
        size = memory.interleaved_bytes if is_interleaved else memory.element_bytes
        base = memory.interleaved_base if is_interleaved else memory.base
        start = base + (address - base) // size * size
        found.add(start)
        address = start + size
    return frozenset(found)


IPU_MEMORY = TileMemory(base=0x4C000, interleaved_base=0x80000, end=0xE8000, element_bytes=0x4000)
"""The memory of an IPU Mk2's tile: 624 KiB. `ChipSpec` takes its numbers from here unless a chip file gives others."""
