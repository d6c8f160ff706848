"""Cores' memories as dictionaries of bytes."""

from __future__ import annotations

from dataclasses import dataclass, field

from support.bruteforce.symbols import BrokenPlan
from t10.chip import ChipSpec
from t10.core.schedule import ModulePlan


@dataclass
class Machine:
    """Cores with memories of bytes; `live` are the buffers that may be touched now."""

    chip: ChipSpec
    n_cores: int
    memory: list[dict[int, tuple[int | None, int, int]]] = field(default_factory=list)
    live: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Start with empty memories."""
        self.memory = [{} for _ in range(self.n_cores)]

    def address(self, buffer: str, slot: int, size: int) -> int:
        """Return the address of a slot of a live buffer."""
        if buffer not in self.live:
            raise BrokenPlan(f"{buffer} is not alive")
        base, n_bytes = self.live[buffer]
        if not 0 <= slot * size <= n_bytes - size:
            raise BrokenPlan(f"slot {slot} is outside {buffer}")
        if base < self.chip.reserved_bytes or base + n_bytes > self.chip.sram_bytes:
            raise BrokenPlan(f"{buffer} is outside the memory")
        return base + slot * size

    def store(self, core: int, buffer: str, slot: int, size: int, value: int | None) -> None:
        """Write one element."""
        first = self.address(buffer, slot, size)
        for number in range(size):
            self.memory[core][first + number] = (value, number, size)

    def load(self, core: int, buffer: str, slot: int, size: int) -> int | None:
        """Return one element; it must be there whole."""
        first = self.address(buffer, slot, size)
        cells = [self.memory[core].get(first + number) for number in range(size)]
        head = cells[0]
        if head is None or any(cell != (head[0], number, size) for number, cell in enumerate(cells)):
            raise BrokenPlan(f"{buffer} slot {slot} on core {core} holds no whole element")
        return head[0]

    def load_computed(self, core: int, buffer: str, slot: int, size: int) -> int:
        """Return one element that must have been computed."""
        value = self.load(core, buffer, slot, size)
        if value is None:
            raise BrokenPlan(f"{buffer} slot {slot} on core {core} was never computed")
        return value

    def raw(self, core: int, buffer: str, slot: int, size: int) -> list[tuple[int | None, int, int] | None]:
        """Return the bytes of a slot as they are, even if they are no element: shifts move holes along."""
        first = self.address(buffer, slot, size)
        return [self.memory[core].get(first + number) for number in range(size)]

    def store_raw(
        self, core: int, buffer: str, slot: int, size: int, cells: list[tuple[int | None, int, int] | None]
    ) -> None:
        """Write the bytes of a slot."""
        first = self.address(buffer, slot, size)
        for number, cell in enumerate(cells):
            if cell is None:
                self.memory[core].pop(first + number, None)
            else:
                self.memory[core][first + number] = cell

    def clobber(self, core: int, n_bytes: int) -> None:
        """Overwrite the shift buffer with something in transit."""
        first = self.address("shift", 0, 1)
        for number in range(min(n_bytes, self.live["shift"][1])):
            self.memory[core][first + number] = (None, -1, 0)

    def enter(self, plan: ModulePlan, now: int) -> None:
        """Make the buffers of a moment alive and forget the bytes that are in none."""
        self.live = {
            b.name: (b.address_bytes, b.size_bytes)
            for b in plan.buffers
            if b.first_moment <= now <= b.last_moment
        }
        kept: set[int] = set()
        for base, n_bytes in self.live.values():
            kept.update(range(base, base + n_bytes))
        for cells in self.memory:
            for gone in [address for address in cells if address not in kept]:
                del cells[gone]
