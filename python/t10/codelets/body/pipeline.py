"""Software pipelining: times for the instructions of a loop so that iterations overlap, and registers that suit.

A worker's instruction sees the results of all bundles before its own, and both halves of a bundle read before either
writes. So an iteration may start every `interval` bundles as long as each pipe takes one instruction per bundle and no
value lives longer than the interval (there are no rotating registers).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from t10.codelets.body._times import Body
from t10.codelets.body.virtual import File, Fusion, Instruction, Placement, Register, Slice, printed

Free = dict[File, tuple[int, ...]]
"""Physical registers by file."""

FILES: tuple[File, File] = ("a", "m")
CELLS_PER_REGISTER = 4

MOST_STAGES = 4
"""Loads run ahead of stores by fewer iterations than this: as much is read past the end of an operand."""

MOST_EXTRA = 12
"""How many bundles more than the least an iteration may take before another way is tried."""


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


class Times:
    """Times and registers for instructions in an order in which they could run one by one.

    `pinned` are virtual registers that live all the time, and where.
    """

    def __init__(self, instructions: Sequence[Instruction], pinned: Placement) -> None:
        """Find what is read, written and stepped."""
        self._numbers: dict[Register, int] = {}
        self._pinned = pinned
        streams: dict[str, int] = {}
        rows = [
            (
                i.is_main,
                self._cells(i.reads),
                self._cells(i.writes),
                [streams.setdefault(stream, len(streams)) for stream in i.streams],
            )
            for i in instructions
        ]
        registers = [(FILES.index(r.file), r.width, r.number) for r in self._numbers]
        self._body = Body(rows, registers, [register in pinned for register in self._numbers])

    def _cells(self, slices: tuple[Slice, ...]) -> list[int]:
        numbers = self._numbers
        return [
            CELLS_PER_REGISTER * numbers.setdefault(slice_.register, len(numbers)) + slice_.first + i
            for slice_ in slices
            for i in range(slice_.width)
        ]

    def pipelined(
        self,
        fusions: Sequence[tuple[int, int]],
        is_store: Sequence[bool],
        free: Free,
        least: int,
        extra: int,
        most_stages: int,
    ) -> tuple[int, tuple[int, ...], Placement] | None:
        """Return the shortest interval found from `least` on, times and registers; see `pipelined`."""
        found = self._body.pipelined(fusions, is_store, _files(free), least, extra, most_stages)
        return None if found is None else (found[0], tuple(found[1]), self._placement(found[2]))

    def straight(self, free: Free) -> tuple[list[int], Placement] | None:
        """Return times of code that runs once, each as early as can be; one by one if that takes fewer registers."""
        found = self._body.straight(_files(free))
        return None if found is None else (found[1], self._placement(found[2]))

    def ahead(
        self, windows: Sequence[int], free: Free, live: Sequence[Slice]
    ) -> tuple[list[int], Placement] | None:
        """Return times of code that runs once; instructions run ahead of those before them by a window at most.

        It is the first window that registers allow, else one instruction runs after the other; `live` live behind it.
        """
        known = [self._numbers[slice_.register] for slice_ in live if slice_.register in self._numbers]
        found = self._body.ahead(windows, _files(free), known)
        return None if found is None else (found[1], self._placement(found[2]))

    def _placement(self, places: Sequence[int]) -> Placement:
        placed = {
            register: place for register, place in zip(self._numbers, places, strict=True) if place >= 0
        }
        return {**self._pinned, **placed}


def _files(free: Free) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return free["a"], free["m"]


def pipelined(
    instructions: Sequence[Instruction],
    fusions: Sequence[Fusion],
    is_store: Sequence[bool],
    free: Free,
    pinned: Placement,
    extra: int = MOST_EXTRA,
    most_stages: int = MOST_STAGES,
) -> Pipeline | None:
    """Return the shortest interval found, None where registers do not suffice at `extra` bundles more than the least.

    `free` are physical registers by file; `pinned` virtual registers that live through the whole loop and where.
    Intervals are tried in strides that grow, then back in halves: long bodies have hundreds of them.
    """
    number = {instruction: i for i, instruction in enumerate(instructions)}
    pairs = [(number[fusion.load], number[fusion.store]) for fusion in fusions]
    least = least_interval(instructions, fusions)
    found = Times(instructions, pinned).pipelined(pairs, is_store, free, least, extra, most_stages)
    return None if found is None else Pipeline(tuple(instructions), tuple(fusions), *found)


def least_interval(instructions: Sequence[Instruction], fusions: Sequence[Fusion]) -> int:
    """Return how many bundles an iteration takes at least: each pipe takes one instruction per bundle."""
    n_main = sum(instruction.is_main for instruction in instructions) - len(fusions)
    return max(n_main, len(instructions) - n_main - len(fusions), 1)


def straight(
    instructions: Sequence[Instruction], free: Free, pinned: Placement
) -> list[tuple[str, str]] | None:
    """Return code that runs once as bundles (main, aux) of text, None where registers do not suffice.

    First as early as possible, then, if that takes too many registers, one instruction after the other.
    """
    found = Times(instructions, pinned).straight(free)
    return None if found is None else bundled(instructions, *found)


def bundled(
    instructions: Sequence[Instruction], times: Sequence[int], placement: Placement
) -> list[tuple[str, str]]:
    """Return instructions as bundles (main, aux) of text, in the order of their times."""
    rows: dict[int, list[str]] = {}
    for instruction, time in zip(instructions, times, strict=True):
        row = rows.setdefault(time, ["", ""])
        row[not instruction.is_main] = printed(instruction.text, instruction.operands, placement)
    return [(row[0], row[1]) for _, row in sorted(rows.items())]
