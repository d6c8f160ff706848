"""Random shifts, reduce-scatters and all-reduces: the patterns that programs have, and what the model says of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from t10.chip import ChipSpec
from t10.core.arrays import Ints
from t10.core.device import Pattern
from t10.core.dtypes import size_bytes
from t10.core.reduction import Groups, Round, all_rounds, scatter_rounds
from t10.cost.ipu import IpuCostModel
from t10.cost.reductions import exchange_cycles
from t10.emit.patterns import in_order, moved, pattern

Random = np.random.Generator
MOST_SLOTS_LOG2 = 13
ITEM_BYTES = (4, 2)


@dataclass(frozen=True, slots=True, eq=False)
class Collective:
    """Phases that belong together, and their modelled cycles; additions are left out of both."""

    patterns: tuple[Pattern, ...]
    is_neighbour: bool
    cycles: int


def collectives(chip: ChipSpec, count: int, seed: int) -> dict[str, list[Collective]]:
    """Return `count` random shifts, reduce-scatters and all-reduces, by kind."""
    makers = {"shifts": _shift, "reduce-scatters": _scatter, "all-reduces": _all}
    result: dict[str, list[Collective]] = {}
    for kind, make in makers.items():
        random = np.random.default_rng([seed, *kind.encode()])
        result[kind] = [make(random, chip) for _ in range(count)]
    return result


def _shift(random: Random, chip: ChipSpec) -> Collective:
    """Return a shift along rings in rounds through the shift buffer, and the copies out of it."""
    length = int(random.integers(2, min(64, chip.n_cores) + 1))
    n_bytes = 4 * int(2 ** random.uniform(0, 13))
    n_used = chip.n_cores // length * length
    core: Ints = np.arange(n_used, dtype=np.int64)[:, None]
    source = core // length * length + (core + 1) % length
    patterns: list[Pattern] = []
    for begin in range(0, n_bytes, chip.shift_buffer_bytes):
        n = min(chip.shift_buffer_bytes, n_bytes - begin) // 4
        slot: Ints = np.arange(n, dtype=np.int64)[None, :]
        patterns.append(pattern(in_order(0, source, begin // 4 + slot, core, slot), 4))
        patterns.append(pattern(in_order(0, core, slot, core, begin // 4 + slot), 4))
    cycles = IpuCostModel(chip).shift_cycles(n_bytes)
    return Collective(tuple(patterns), is_neighbour=True, cycles=cycles)


def _scatter(random: Random, chip: ChipSpec) -> Collective:
    """Return the phases of a reduce-scatter."""
    who, dtype = _members(random, chip, 64), str(random.choice(["f32", "f16"]))
    return _reduction(
        scatter_rounds, who, int(2 ** random.uniform(0, MOST_SLOTS_LOG2)), chip, size_bytes(dtype)
    )


def _all(random: Random, chip: ChipSpec) -> Collective:
    """Return the phases of an all-reduce."""
    who, item_bytes = _members(random, chip, 16), int(random.choice(ITEM_BYTES))
    return _reduction(all_rounds, who, int(2 ** random.uniform(0, 10)), chip, item_bytes)


def _reduction(
    make: Callable[[Groups, int, int, int], Iterator[Round]],
    who: Groups,
    n_slots: int,
    chip: ChipSpec,
    item_bytes: int,
) -> Collective:
    """Return the phases of a reduction in all groups; one group has the price of all."""
    numbers = n_slots, chip.shift_buffer_bytes // item_bytes, item_bytes
    patterns = tuple(moved(each.moves, item_bytes) for each in make(who, *numbers))
    one = Groups.one(who.members.shape[1])
    cores = np.unique(who.members, axis=0)
    cycles = sum(exchange_cycles(chip, each, item_bytes, cores=cores) for each in make(one, *numbers))
    return Collective(patterns, is_neighbour=False, cycles=cycles)


def _members(random: Random, chip: ChipSpec, most: int) -> Groups:
    """Return equal groups of consecutive or strided cores."""
    size = int(random.integers(2, min(most, chip.n_cores) + 1))
    n_groups = chip.n_cores // size
    core: Ints = np.arange(n_groups * size, dtype=np.int64)
    if random.random() < 0.5:
        return Groups(core % size, core.reshape(-1, size)[core // size])
    return Groups(core // n_groups, core.reshape(size, -1).T[core % n_groups])
