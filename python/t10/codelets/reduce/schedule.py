"""Times and registers for code that runs once, and the bundles of loops that were pipelined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from t10.codelets.body.pipeline import Free, Pipeline, Times, bundled
from t10.codelets.body.select import Unselectable
from t10.codelets.body.virtual import Instruction, Placement, Slice, printed

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


def stage_instructions(pipeline: Pipeline, first: int) -> list[Instruction]:
    """Return what is left of the last iterations of a pipelined loop from stage `first` on, in order."""
    last = pipeline.n_stages - 1
    by_time: dict[int, list[Instruction]] = {}
    for done in range(first, last + 1):
        for instruction, time in zip(pipeline.instructions, pipeline.times, strict=True):
            if time // pipeline.interval >= done:
                slot = (done - first) * pipeline.interval + time % pipeline.interval
                by_time.setdefault(slot, []).append(instruction)
    return [instruction for _, bundle in sorted(by_time.items()) for instruction in _readers_first(bundle)]


def _readers_first(bundle: list[Instruction]) -> list[Instruction]:
    """Return the halves of a bundle so that one after the other they do the same: both read before either writes."""
    if len(bundle) == 1:
        return bundle
    first, second = bundle
    written = {cell for slice_ in first.writes for cell in slice_.cells}
    is_read = any(cell in written for slice_ in second.reads for cell in slice_.cells)
    return [second, first] if is_read else bundle


def stage_bundles(pipeline: Pipeline, first: int, last: int) -> list[Bundle]:
    """Return one interval of a pipelined loop with the instructions of stages `first` to `last`; whole bundles."""
    bundles: list[list[str]] = [["", ""] for _ in range(pipeline.interval)]
    for instruction, time in zip(pipeline.instructions, pipeline.times, strict=True):
        if first <= time // pipeline.interval <= last:
            text = printed(instruction.text, instruction.operands, pipeline.placement)
            bundles[time % pipeline.interval][not instruction.is_main] = text
    return [(main, aux) for main, aux in bundles]
