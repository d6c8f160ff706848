"""Software pipelining: times for the instructions of a loop so that iterations overlap, and registers that suit.

A worker's instruction sees the results of all bundles before its own, and both halves of a bundle read before either
writes. So an iteration may start every `interval` bundles as long as each pipe takes one instruction per bundle and no
value lives longer than the interval (there are no rotating registers).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from t10.codelets.body.allocate import Lifetime, place
from t10.codelets.body.virtual import File, Fusion, Instruction, Operand, Placement, Register, printed

MOST_STAGES = 4
"""Loads run ahead of stores by fewer iterations than this: as much is read past the end of an operand."""

MOST_EXTRA = 12
"""How many bundles more than the least an iteration may take before another way is tried."""

GROWTH = 8
"""Further on, intervals are tried in strides of a part in so many of what they are beyond the least."""

KEPT_LOOPS = 4096
Parts = tuple[str, tuple[Operand, ...], str, bool, tuple[str, ...], int]
"""The fields of an instruction, which compare by value."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A loop as bundles: an iteration's instruction `i` runs `times[i]` bundles after its start; stores come last.

    `stages[i]` counts the iterations that have started since. `placement` is where virtual registers lie.
    """

    instructions: tuple[Instruction, ...]
    fusions: tuple[Fusion, ...]
    interval: int
    times: tuple[int, ...]
    placement: Placement

    @property
    def n_stages(self) -> int:
        """Return how many iterations are under way at once."""
        return max(t // self.interval for t in self.times) + 1

    def stage(self, instruction: Instruction) -> int:
        """Return the stage of an instruction."""
        return self.times[self.instructions.index(instruction)] // self.interval


@dataclass(frozen=True, slots=True)
class _Timed:
    """What is found out about a loop; see `Pipeline`."""

    interval: int
    times: tuple[int, ...]
    placement: Placement


def pipelined(
    instructions: Sequence[Instruction],
    fusions: Sequence[Fusion],
    is_store: Sequence[bool],
    free: dict[File, tuple[int, ...]],
    pinned: Placement,
    extra: int = MOST_EXTRA,
    most_stages: int = MOST_STAGES,
) -> Pipeline | None:
    """Return the shortest interval found, None where registers do not suffice at `extra` bundles more than the least.

    `free` are physical registers by file; `pinned` virtual registers that live through the whole loop and where.
    """
    number = {instruction: i for i, instruction in enumerate(instructions)}
    found = _timed(
        tuple([(i.text, i.operands, i.roles, i.is_main, i.streams, i.slots) for i in instructions]),
        tuple([(number[fusion.load], number[fusion.store], fusion.text) for fusion in fusions]),
        tuple(is_store),
        tuple(free.items()),
        tuple(pinned.items()),
        extra,
        most_stages,
    )
    if found is None:
        return None
    return Pipeline(
        tuple(instructions), tuple(fusions), found.interval, found.times, {**pinned, **found.placement}
    )


@lru_cache(maxsize=KEPT_LOOPS)
def _timed(
    parts: tuple[Parts, ...],
    pairs: tuple[tuple[int, int, str], ...],
    is_store: tuple[bool, ...],
    free: tuple[tuple[File, tuple[int, ...]], ...],
    pinned: tuple[tuple[Register, int], ...],
    extra: int,
    most_stages: int,
) -> _Timed | None:
    """Return times and registers of the loop whose instructions have these fields; fusions are of two of them.

    Nests that differ in what no instruction shows ask for the same loop again and again.
    """
    instructions = [Instruction(*fields) for fields in parts]
    fusions = [Fusion(instructions[load], instructions[store], text) for load, store, text in pairs]
    dependences = Dependences(instructions)
    lives = _Lives(instructions, dict(pinned))
    registers = dict(free)

    def at(interval: int) -> _Timed | None:
        for loads_late in (True, False):
            times = _times(instructions, fusions, dependences, interval, loads_late=loads_late)
            if times is None or not dependences.hold(times, interval):
                continue
            aligned = _with_stores_last(times, is_store, interval, most_stages)
            if aligned is None:
                continue
            placement = place(lives.at(aligned), interval, registers)
            if placement is not None:
                return _Timed(interval, aligned, placement)
        return None

    return _shortest(at, least_interval(instructions, fusions), extra)


def _shortest(at: Callable[[int], _Timed | None], least: int, extra: int) -> _Timed | None:
    """Return the pipeline of the shortest interval found from `least` on, in strides that grow, then back in halves.

    Long bodies have hundreds of intervals to try.
    """
    fails, interval = least - 1, least
    found = at(interval)
    while found is None and interval < least + extra:
        fails, interval = interval, min(interval + 1 + (interval - least) // GROWTH, least + extra)
        found = at(interval)
    while found is not None and found.interval - fails > 1:
        middle = (found.interval + fails) // 2
        shorter = at(middle)
        fails, found = (middle, found) if shorter is None else (fails, shorter)
    return found


class Dependences:
    """Which instruction must follow which, and by how many bundles."""

    def __init__(self, instructions: Sequence[Instruction]) -> None:
        """Find them from what is read, written and stepped, in the order given."""
        self.before: list[list[tuple[int, int]]] = [[] for _ in instructions]
        self.after: list[list[tuple[int, int]]] = [[] for _ in instructions]
        self.streams: dict[str, list[int]] = {}
        writers: dict[object, list[int]] = {}
        readers: dict[object, list[int]] = {}
        for i, instruction in enumerate(instructions):
            for slice_ in instruction.reads:
                for cell in slice_.cells:
                    self._add(writers.get(cell, []), i, 1)
                    readers.setdefault(cell, []).append(i)
            for slice_ in instruction.writes:
                for cell in slice_.cells:
                    self._add(readers.get(cell, []), i, 0)
                    self._add(writers.get(cell, []), i, 1)
                    writers.setdefault(cell, []).append(i)
            for stream in instruction.streams:
                self._add(self.streams.get(stream, [])[-1:], i, 1)
                self.streams.setdefault(stream, []).append(i)

    def _add(self, sources: Sequence[int], target: int, delay: int) -> None:
        for source in sources:
            if source != target:
                self.before[target].append((source, delay))
                self.after[source].append((target, delay))

    def hold(self, times: Sequence[int], interval: int) -> bool:
        """Return whether times respect all of them, also between iterations."""
        within = all(times[i] >= times[j] + d for i, row in enumerate(self.before) for j, d in row)
        return within and all(
            times[chain[-1]] - times[chain[0]] < interval for chain in self.streams.values()
        )


def least_interval(instructions: Sequence[Instruction], fusions: Sequence[Fusion]) -> int:
    """Return how many bundles an iteration takes at least: each pipe takes one instruction per bundle."""
    n_main = sum(instruction.is_main for instruction in instructions) - len(fusions)
    return max(n_main, len(instructions) - n_main - len(fusions), 1)


def _times(
    instructions: Sequence[Instruction],
    fusions: Sequence[Fusion],
    dependences: Dependences,
    interval: int,
    *,
    loads_late: bool = True,
) -> tuple[int, ...] | None:
    """Return times in which no pipe is used twice: everything as early as it can, but loads, if late, just in time."""
    number = {instruction: i for i, instruction in enumerate(instructions)}
    times: dict[int, int] = {}
    taken: tuple[set[int], set[int]] = (set(), set())
    fused = {number[f.load] for f in fusions} | {number[f.store] for f in fusions}
    waiting: list[int] = []
    for i, instruction in enumerate(instructions):
        if i in fused or (loads_late and _can_wait(instruction, dependences, i, waiting)):
            waiting.append(i)
            continue
        earliest = max((times[j] + d for j, d in dependences.before[i] if j in times), default=0)
        _take(times, taken[instruction.is_main], i, _upwards(earliest, interval), interval)
    for fusion in reversed(fusions):
        pair = number[fusion.load], number[fusion.store]
        if not _place_fusion(times, taken[True], dependences, pair, interval):
            return None
    for i in reversed([i for i in waiting if i not in fused]):
        latest = min((times[j] - d for j, d in dependences.after[i] if j in times), default=0)
        _take(times, taken[instructions[i].is_main], i, _downwards(latest, interval), interval)
    if len(times) < len(instructions):
        return None
    return tuple(times[i] for i in range(len(instructions)))


def _can_wait(instruction: Instruction, dependences: Dependences, i: int, waiting: list[int]) -> bool:
    """Return whether nothing that has a time already must come before an instruction."""
    return instruction.is_load and all(j in waiting for j, _ in dependences.before[i])


def _upwards(first: int, interval: int) -> Iterator[int]:
    return iter(range(first, first + interval))


def _downwards(last: int, interval: int) -> Iterator[int]:
    return iter(range(last, last - interval, -1))


def _take(times: dict[int, int], taken: set[int], i: int, candidates: Iterator[int], interval: int) -> None:
    for time in candidates:
        if time % interval not in taken:
            taken.add(time % interval)
            times[i] = time
            return


def _place_fusion(
    times: dict[int, int], taken: set[int], dependences: Dependences, pair: tuple[int, int], interval: int
) -> bool:
    """Give a load and a store times that are equal modulo the interval, close to what needs them."""
    load, store = pair
    latest = min((times[j] - d for j, d in dependences.after[load] if j in times), default=-1)
    earliest = max((times[j] + d for j, d in dependences.before[store] if j in times), default=0)
    following = min((times[j] - d for j, d in dependences.after[store] if j in times), default=None)
    best: tuple[int, int, int] | None = None
    for at in range(earliest, earliest + interval):
        if at % interval in taken or (following is not None and at > following):
            continue
        loaded = latest - (latest - at) % interval
        cost = (at - earliest) + (latest - loaded)
        if best is None or cost < best[0]:
            best = (cost, loaded, at)
    if best is None:
        return False
    taken.add(best[2] % interval)
    times[load], times[store] = best[1], best[2]
    return True


def _with_stores_last(
    times: Sequence[int], is_store: Sequence[bool], interval: int, most_stages: int
) -> tuple[int, ...] | None:
    """Return times from 0 on, shifted so that all stores lie in the last stage; None where they cannot."""
    if not any(is_store):
        return None
    first = min(times)
    length = max(times) - first
    store = min(time for time, stores in zip(times, is_store, strict=True) if stores) - first
    fitting = (
        ((length + shift) // interval, shift)
        for shift in range(interval)
        if (store + shift) // interval == (length + shift) // interval
    )
    n_before, shift = min(fitting, default=(most_stages, 0))
    if n_before >= most_stages:
        return None
    return tuple(time - first + shift for time in times)


class _Lives:
    """Who writes and reads every virtual register but `pinned` ones, by number of the instruction."""

    def __init__(self, instructions: Sequence[Instruction], pinned: Placement) -> None:
        users: dict[Register, tuple[list[int], list[int]]] = {}
        for i, instruction in enumerate(instructions):
            for slice_ in instruction.writes:
                if slice_.register not in pinned:
                    users.setdefault(slice_.register, ([], []))[0].append(i)
        for i, instruction in enumerate(instructions):
            for slice_ in instruction.reads:
                if slice_.register in users:
                    users[slice_.register][1].append(i)
        self._users = [(register, writes, [*writes, *reads]) for register, (writes, reads) in users.items()]

    def at(self, times: Sequence[int]) -> dict[Register, Lifetime]:
        """Return when every register is written first and read last, instructions issuing at `times`."""
        return {
            register: Lifetime(min(times[i] for i in writes), max(times[i] for i in every))
            for register, writes, every in self._users
        }


def straight(
    instructions: Sequence[Instruction], free: dict[File, tuple[int, ...]], pinned: Placement
) -> list[tuple[str, str]] | None:
    """Return code that runs once as bundles (main, aux) of text, None where registers do not suffice.

    First as early as possible, then, if that takes too many registers, one instruction after the other.
    """
    dependences = Dependences(instructions)
    lives = _Lives(instructions, pinned)
    interval = 2 * len(instructions) + 2
    early = _times(instructions, (), dependences, interval)
    for times in (early, tuple(range(len(instructions)))):
        if times is None:
            continue
        first = min(times)
        shifted = [t - first for t in times]
        placement = place(lives.at(shifted), interval, free)
        if placement is not None:
            return _bundled(instructions, shifted, {**pinned, **placement})
    return None


def _bundled(
    instructions: Sequence[Instruction], times: Sequence[int], placement: Placement
) -> list[tuple[str, str]]:
    rows: dict[int, list[str]] = {}
    for instruction, time in zip(instructions, times, strict=True):
        row = rows.setdefault(time, ["", ""])
        row[not instruction.is_main] = printed(instruction.text, instruction.operands, placement)
    return [(row[0], row[1]) for _, row in sorted(rows.items())]
