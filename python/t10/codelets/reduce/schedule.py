"""Times and registers for code that runs once, and the bundles of loops that were pipelined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from t10.codelets.body.pipeline import Free, Pipeline, Times, bundled
from t10.codelets.body.select import Unselectable
from t10.codelets.body.virtual import (
    N_REGISTERS,
    File,
    Instruction,
    Operand,
    Placement,
    Register,
    Slice,
    printed,
)

BANK, FIRST_BANK = 4, 1 << 20
"""Registers of a bank; numbers of virtual registers from which on they are banks."""
Bundle = tuple[str, str]
"""Main and aux half as text, empty where there is none."""


@dataclass(frozen=True, slots=True)
class Registers:
    """Physical registers: those free for values, and those of values that live through all of the code."""

    free: Free
    pinned: Placement


WINDOWS = (1 << 30, 8, 4, 2, 1)
"""How many bundles an instruction may run ahead of those before it, the first that registers allow."""


def straight(
    instructions: Sequence[Instruction], free: Free, pinned: Placement, live: Sequence[Slice] = ()
) -> tuple[list[Bundle], Placement]:
    """Return bundles in which instructions run as early as they can, and where their registers lie.

    `pinned` registers live before and after, `live` ones after. Raises `Unselectable` where registers do not suffice
    even one by one.
    """
    found = Times(instructions, pinned).ahead(WINDOWS, free, live)
    if found is None:
        raise Unselectable("more values than registers")
    return bundled(instructions, *found), found[1]


def stage_instructions(pipeline: Pipeline, first: int, pinned: Placement) -> list[Instruction]:
    """Return what is left of the last iterations of a pipelined loop from stage `first` on, in order.

    Values that are not `pinned` share registers, which decide what may run before what: they are parts of banks
    (`bank_places`). Raises `Unselectable` where each half of a bundle reads what the other writes.
    """
    last = pipeline.n_stages - 1
    by_time: dict[int, list[Instruction]] = {}
    placed = [_in_banks(instruction, pipeline.placement, pinned) for instruction in pipeline.instructions]
    for done in range(first, last + 1):
        for instruction, time in zip(placed, pipeline.times, strict=True):
            if time // pipeline.interval >= done:
                slot = (done - first) * pipeline.interval + time % pipeline.interval
                by_time.setdefault(slot, []).append(instruction)
    return [instruction for _, bundle in sorted(by_time.items()) for instruction in _readers_first(bundle)]


def bank_places() -> Placement:
    """Return the banks: all physical registers as virtual ones of four, which lie where they are."""
    files: tuple[File, ...] = ("a", "m")
    return {_bank(file, first): first for file in files for first in range(0, N_REGISTERS[file], BANK)}


def _bank(file: File, place: int) -> Register:
    return Register(FIRST_BANK + place // BANK, file, BANK)


def _in_banks(instruction: Instruction, placement: Placement, pinned: Placement) -> Instruction:
    def moved(operand: Operand) -> Operand:
        if isinstance(operand, str) or operand.register in pinned:
            return operand
        first = placement[operand.register] + operand.first
        return _bank(operand.register.file, first).whole().part(first % BANK, operand.width)

    return replace(instruction, operands=tuple(map(moved, instruction.operands)))


def _readers_first(bundle: list[Instruction]) -> list[Instruction]:
    """Return the halves of a bundle so that one after the other they do the same: both read before either writes."""
    if len(bundle) == 1:
        return bundle
    first, second = bundle
    if not _reads_of(second, first):
        return bundle
    if _reads_of(first, second):
        raise Unselectable("halves of a bundle that read what the other writes")
    return [second, first]


def _reads_of(reader: Instruction, writer: Instruction) -> bool:
    """Return whether an instruction reads what another writes."""
    written = {cell for slice_ in writer.writes for cell in slice_.cells}
    return any(cell in written for slice_ in reader.reads for cell in slice_.cells)


def stage_bundles(pipeline: Pipeline, first: int, last: int) -> list[Bundle]:
    """Return one interval of a pipelined loop with the instructions of stages `first` to `last`; whole bundles."""
    bundles: list[list[str]] = [["", ""] for _ in range(pipeline.interval)]
    for instruction, time in zip(pipeline.instructions, pipeline.times, strict=True):
        if first <= time // pipeline.interval <= last:
            text = printed(instruction.text, instruction.operands, pipeline.placement)
            bundles[time % pipeline.interval][not instruction.is_main] = text
    return [(main, aux) for main, aux in bundles]
