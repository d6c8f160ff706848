"""Where buffers lie in a tile's address space: data from the top, so that it begins in the interleaved memory region.

The planner packs bytes without knowing of memory elements. Its addresses are mirrored: what it puts lowest lies
highest. The bottom of the memory, where instructions can be fetched from, is left to code, vertex state and stacks.
"""

from __future__ import annotations

from dataclasses import dataclass

from t10.chip import ChipSpec
from t10.core.schedule import Buffer

SRAM_BASE = 0x4C000
REGION1_BASE = 0x80000
ELEMENT_BYTES = 0x4000
INTERLEAVED_BYTES = 2 * ELEMENT_BYTES
ALIGNMENT_BYTES = 8


@dataclass(frozen=True, slots=True)
class Place:
    """Bytes of every tile: address of the first and how many."""

    address_bytes: int
    size_bytes: int

    @property
    def end_bytes(self) -> int:
        """Return the first address after them."""
        return self.address_bytes + self.size_bytes

    @property
    def is_interleaved(self) -> bool:
        """Return whether all of them lie in the interleaved region."""
        return self.address_bytes >= REGION1_BASE

    @property
    def elements(self) -> frozenset[int]:
        """Return the memory elements they touch: 16 KiB each below the interleaved region, pairs of them in it."""
        found: set[int] = set()
        address, end = self.address_bytes, max(self.end_bytes, self.address_bytes + 1)
        while address < end:
            size = INTERLEAVED_BYTES if address >= REGION1_BASE else ELEMENT_BYTES
            base = REGION1_BASE if address >= REGION1_BASE else SRAM_BASE
            start = base + (address - base) // size * size
            found.add(start)
            address = start + size
        return frozenset(found)


def mirrored(buffers: tuple[Buffer, ...], chip: ChipSpec) -> dict[str, Place]:
    """Return where every buffer lies: the planner's arrangement upside down at the end of the memory."""
    top = SRAM_BASE + chip.sram_bytes
    places: dict[str, Place] = {}
    for buffer in buffers:
        size = -(-buffer.size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        below = buffer.address_bytes - chip.reserved_bytes + size
        places[buffer.name] = Place(top - below, size)
    return places


def are_apart(first: Place, second: Place) -> bool:
    """Return whether no access to one and one to the other ever meet in a memory element."""
    return not first.elements & second.elements
