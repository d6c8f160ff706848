"""Physical registers for values whose lifetimes are arcs of a loop (or stretches of straight code)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from t10.codelets.body.virtual import File, Placement, Register

MOST_TRIALS = 1000


@dataclass(frozen=True, slots=True)
class Lifetime:
    """From the bundle that writes a register first to the one that reads it last."""

    first: int
    last: int


def place(
    lifetimes: Mapping[Register, Lifetime], interval: int, free: Mapping[File, tuple[int, ...]]
) -> Placement | None:
    """Return a register for every value so that no two share one while both live, None where none is found.

    A value occupies the bundles after its first write up to its last read, modulo `interval`.
    """
    arcs: dict[Register, int] = {}
    room = {file: interval * len(registers) for file, registers in free.items()}
    for register, life in lifetimes.items():
        length = max(life.last - life.first, 1)
        room[register.file] -= length * register.width
        if length > interval or room[register.file] < 0:
            return None
        arcs[register] = _arc(life.first + 1, length, interval)
    result: Placement = {}
    for file in ("a", "m"):
        registers = [register for register in arcs if register.file == file]
        if _most_alive(registers, arcs, interval) > len(free[file]):
            return None
        found = _place_file(registers, arcs, lifetimes, free[file])
        if found is None:
            return None
        result.update(found)
    return result


def _most_alive(registers: list[Register], arcs: Mapping[Register, int], interval: int) -> int:
    """Return how many single registers are occupied at once at most."""
    alive = [0] * interval
    for register in registers:
        arc = arcs[register]
        for i in range(interval):
            if arc >> i & 1:
                alive[i] += register.width
    return max(alive, default=0)


def _arc(first: int, length: int, interval: int) -> int:
    """Return the bundles of an arc as bits."""
    bits = ((1 << length) - 1) << first % interval
    return (bits | bits >> interval) & ((1 << interval) - 1)


def _place_file(
    registers: list[Register],
    arcs: Mapping[Register, int],
    lifetimes: Mapping[Register, Lifetime],
    free: tuple[int, ...],
) -> Placement | None:
    """Return registers of one file: greedily in several orders, then by search."""
    orders: tuple[Callable[[Register], tuple[int, ...]], ...] = (
        lambda r: (-r.width, lifetimes[r].first, r.number),
        lambda r: (lifetimes[r].first, -r.width, r.number),
        lambda r: (-r.width * arcs[r].bit_count(), r.number),
    )
    for order in orders:
        found = _Search(sorted(registers, key=order), arcs, free, len(registers)).run()
        if found is not None:
            return found
    return _Search(sorted(registers, key=orders[0]), arcs, free, MOST_TRIALS).run()


class _Search:
    """Depth-first search over placements in a fixed order of values, cut off after a number of trials."""

    def __init__(
        self, registers: list[Register], arcs: Mapping[Register, int], free: tuple[int, ...], trials: int
    ) -> None:
        self.registers = registers
        self.arcs = arcs
        self.busy: dict[int, int] = dict.fromkeys(free, 0)
        self.trials = trials
        self.placement: Placement = {}

    def run(self) -> Placement | None:
        return self.placement if self._from(0) else None

    def _from(self, position: int) -> bool:
        if position == len(self.registers):
            return True
        register = self.registers[position]
        arc = self.arcs[register]
        for first in self._candidates(register.width, arc):
            self.trials -= 1
            if self.trials < 0:
                return False
            cells = range(first, first + register.width)
            for cell in cells:
                self.busy[cell] |= arc
            self.placement[register] = first
            if self._from(position + 1):
                return True
            for cell in cells:
                self.busy[cell] &= ~arc
        return False

    def _candidates(self, width: int, arc: int) -> Iterator[int]:
        for first in self.busy:
            cells = range(first, first + width)
            if first % width == 0 and all(c in self.busy and not self.busy[c] & arc for c in cells):
                yield first
