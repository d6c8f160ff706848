"""Where buffers lie in a tile's address space, so that what one bundle accesses lies in different memory elements.

The planner packs bytes without knowing of memory elements: it says which buffers must never overlap, and how many bytes
are enough. Here they are placed again: buffers that one operator uses at once are kept apart where there is room, and
begin where the interleaved region does, in which 16 bytes can be loaded at once. Where that does not fit, it begins
with the planner's own arrangement, upside down, and moves single buffers to where they are apart. The bottom of the
memory, where instructions are fetched from, is left to code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from t10.chip import ChipSpec
from t10.core.geometry import ring_length
from t10.core.schedule import Buffer, ModulePlan
from t10.core.tile import ALIGNMENT_BYTES, OVERREAD_BYTES, WIDE_BYTES, TileMemory
from t10.cost.operator import output_chunk

SHIFT = "shift"


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


def places_of(plan: ModulePlan, chip: ChipSpec) -> dict[str, TileRange]:
    """Return where every buffer of a plan lies on every tile."""
    packing = _Packing(plan, chip)
    return packing.places() or packing.improved(mirrored(plan.buffers, chip))


def mirrored(buffers: tuple[Buffer, ...], chip: ChipSpec) -> dict[str, TileRange]:
    """Return the planner's arrangement upside down at the end of the memory: what it puts lowest lies highest."""
    sizes = {b.name: _up(b.size_bytes, ALIGNMENT_BYTES) for b in buffers}
    used = max((b.address_bytes + sizes[b.name] for b in buffers), default=chip.reserved_bytes)
    free = (chip.sram_bytes - used) // ALIGNMENT_BYTES * ALIGNMENT_BYTES
    memory = chip.tile_memory
    top = memory.end - max(min(free, OVERREAD_BYTES), 0)
    return {
        b.name: TileRange(
            top - (b.address_bytes - chip.reserved_bytes + sizes[b.name]), sizes[b.name], memory
        )
        for b in buffers
    }


@dataclass(frozen=True, slots=True)
class _Group:
    """Buffers that lie on the same bytes, one taking over the other; `first` and `last` are moments."""

    names: tuple[str, ...]
    size_bytes: int
    first: int
    last: int


class _Packing:
    """Places groups of buffers one by one, the largest first, each where it is apart from most of its partners."""

    def __init__(self, plan: ModulePlan, chip: ChipSpec) -> None:
        self.memory = chip.tile_memory
        self.bottom = _up(self.memory.base + chip.reserved_bytes, WIDE_BYTES)
        self.top = self.memory.end - OVERREAD_BYTES
        self.groups = sorted(_groups(plan.buffers), key=lambda g: (-g.size_bytes, g.first, g.names))
        number = {name: i for i, group in enumerate(self.groups) for name in group.names}
        self.partners = _partners(used_together(plan), number)
        self.ends = _partners(exchanged(plan), number)
        n = len(self.groups)
        self.first = np.array([group.first for group in self.groups], np.int64)
        self.last = np.array([group.last for group in self.groups], np.int64)
        self.begin = np.zeros(n, np.int64)
        self.end = np.zeros(n, np.int64)
        self.elements: dict[int, frozenset[int]] = {}
        self.place_by_group: dict[int, TileRange] = {}

    def places(self) -> dict[str, TileRange] | None:
        """Return where every buffer lies, None where greed does not find room for all."""
        for number, group in enumerate(self.groups):
            size = _up(group.size_bytes, WIDE_BYTES)
            best = self._best(number, size, np.arange(number, dtype=np.int64))
            if best is None:
                return None
            self._put(number, TileRange(best[-1], size, self.memory))
        return self._by_name()

    def improved(self, start: Mapping[str, TileRange]) -> dict[str, TileRange]:
        """Return an arrangement with single groups moved to where they share elements with fewer of their partners."""
        everything: NDArray[np.int64] = np.arange(len(self.groups), dtype=np.int64)
        for number, group in enumerate(self.groups):
            self._put(number, start[group.names[0]])
        for number in [*range(len(self.groups))] * 2:
            place = self.place_by_group[number]
            shared = self._both_shared(place.elements, number)
            if shared == (0, 0):
                continue
            best = self._best(number, place.size_bytes, np.delete(everything, number))
            if best is not None and best[:2] < shared:
                self._put(number, TileRange(best[-1], place.size_bytes, self.memory))
        return self._by_name()

    def _put(self, number: int, place: TileRange) -> None:
        self.begin[number], self.end[number] = place.address_bytes, place.end_bytes
        self.place_by_group[number], self.elements[number] = place, place.elements

    def _by_name(self) -> dict[str, TileRange]:
        places = self.place_by_group
        return {name: places[number] for number, group in enumerate(self.groups) for name in group.names}

    def _best(self, number: int, size: int, others: NDArray[np.int64]) -> tuple[int, int, int, int] | None:
        """Return (partners, ends that share its elements, rank, address) of the best free address, None without any.

        What codelets use at once comes before both ends of exchanges; of equals, the first is taken. `others` are the
        groups that have their places.
        """
        alive = others[(self.first[others] <= self.last[number]) & (self.last[others] >= self.first[number])]
        begins, ends = self.begin[alive], self.end[alive]
        order = np.argsort(begins, kind="stable")
        begins, ends = begins[order], np.maximum.accumulate(ends[order])
        gaps = _gaps(begins, ends, size)
        best: tuple[int, int, int, int] | None = None
        for rank, (low, high) in enumerate(self._candidates()):
            here = _first_fit(gaps, low, size)
            if here is None or here + size > high:
                continue
            shared = self._both_shared(self.memory.elements(here, here + size), number)
            if best is None or (*shared, rank) < best[:3]:
                best = (*shared, rank, here)
            if shared == (0, 0):
                break
        return best

    def _both_shared(self, elements: frozenset[int], number: int) -> tuple[int, int]:
        return self._shared(elements, self.partners[number]), self._shared(elements, self.ends[number])

    def _shared(self, elements: frozenset[int], others: Iterable[int]) -> int:
        """Return with how many others that have their place these elements are shared."""
        return sum(bool(elements & self.elements[p]) for p in others if p in self.elements)

    def _candidates(self) -> Iterable[tuple[int, int]]:
        """Yield lowest and highest addresses to look between: every pair of the interleaved region, then the rest."""
        memory = self.memory
        for low in range(memory.interleaved_base, self.top, memory.interleaved_bytes):
            yield max(low, self.bottom), self.top
        for low in range(memory.base, min(memory.interleaved_base, self.top), memory.element_bytes):
            if low + memory.element_bytes > self.bottom:
                yield max(low, self.bottom), self.top


def _gaps(begins: NDArray[np.int64], ends: NDArray[np.int64], size: int) -> list[tuple[int, int]]:
    """Return where `size` bytes may begin and must end, lowest first, between intervals sorted by begin."""
    starts = _up_all(np.concatenate([[0], ends]), WIDE_BYTES)
    limits = np.concatenate([begins, [np.iinfo(np.int64).max]])
    wide = np.flatnonzero(starts + size <= limits)
    return list(zip(starts[wide].tolist(), limits[wide].tolist(), strict=True))


def _first_fit(gaps: list[tuple[int, int]], low: int, size: int) -> int | None:
    """Return the lowest address from `low` on at which `size` bytes lie in one of the gaps."""
    low = _up(low, WIDE_BYTES)
    return next((max(start, low) for start, limit in gaps if max(start, low) + size <= limit), None)


def _groups(buffers: tuple[Buffer, ...]) -> list[_Group]:
    """Return buffers joined where one takes over another's bytes: it begins there in the phase in which that ends."""
    groups: dict[str, list[Buffer]] = {}
    head: dict[str, str] = {}
    ending: dict[tuple[int, int, int], str] = {}
    for buffer in sorted(buffers, key=lambda b: (b.first_moment, b.last_moment, b.name)):
        where = (buffer.address_bytes, buffer.size_bytes)
        old = ending.get((*where, buffer.first_moment)) if buffer.size_bytes else None
        name = head[old] if old is not None else buffer.name
        head[buffer.name] = name
        groups.setdefault(name, []).append(buffer)
        ending[(*where, buffer.last_moment)] = buffer.name
    return [
        _Group(
            tuple(b.name for b in members),
            members[0].size_bytes,
            min(b.first_moment for b in members),
            max(b.last_moment for b in members),
        )
        for members in groups.values()
    ]


def _partners(together: Iterable[tuple[str, ...]], number: Mapping[str, int]) -> list[set[int]]:
    """Return by group the numbers of the groups that it is named together with."""
    result: list[set[int]] = [set() for _ in range(max(number.values(), default=-1) + 1)]
    for names in together:
        numbers = {number[name] for name in names if name in number}
        for one in numbers:
            result[one] |= numbers - {one}
    return result


def used_together(plan: ModulePlan) -> list[tuple[str, ...]]:
    """Return the names of buffers that codelets access at once: operands and accumulator, accumulator and result."""
    result: list[tuple[str, ...]] = []
    specs = {spec.name: spec for spec in plan.graph.operators}
    known = {buffer.name for buffer in plan.buffers}
    for scheduled in plan.operators:
        value = f"value:{specs[scheduled.name].output.name}"
        accumulator = f"accumulator:{scheduled.name}"
        accumulator = accumulator if accumulator in known else value
        arrivals = sorted(scheduled.arrivals, key=lambda a: a.operand)
        n_inputs = len(specs[scheduled.name].inputs)
        result.append((*(a.buffer for a in arrivals[:n_inputs]), accumulator))
        result.append((accumulator, *(a.buffer for a in arrivals[n_inputs:]), value))
        if output_chunk(specs[scheduled.name], scheduled.active.plan)[0] > 1:
            result.append((SHIFT, accumulator))
    return result


def exchanged(plan: ModulePlan) -> list[tuple[str, ...]]:
    """Return pairs of names of buffers that an exchange reads and writes: sources and target, what rotates and passes.

    A tile that sends from and receives into one memory element does one after the other (timing reference, section 3).
    """
    result: list[tuple[str, ...]] = []
    graph = plan.graph
    homes = {value.name: f"idle:{value.name}" for value in graph.weights}
    homes |= {value.name: f"input:{value.name}" for value in graph.inputs}
    for spec, scheduled in zip(graph.operators, plan.operators, strict=True):
        for arrival in scheduled.arrivals:
            if arrival.kind != "in_place":
                sources = graph.sources_of(spec.operands[arrival.operand].name)
                result.extend((homes[source], arrival.buffer) for source in sources)
            if arrival.operand < len(spec.inputs) and ring_length(scheduled.active.plan, arrival.operand) > 1:
                result.append((SHIFT, arrival.buffer))
        homes[spec.output.name] = result_name = f"value:{spec.output.name}"
        if ring_length(scheduled.active.plan, len(spec.inputs)) > 1:
            result += [(SHIFT, f"accumulator:{spec.name}"), (SHIFT, result_name)]
    return result


def _up_all(values: NDArray[np.int64], step: int) -> NDArray[np.int64]:
    return -(-values // step) * step


def _up(value: int, step: int) -> int:
    return -(-value // step) * step
