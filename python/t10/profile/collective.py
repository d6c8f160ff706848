"""Random shifts, reduce-scatters and all-reduces: the patterns that programs have, and what the model says of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from t10.chip import ChipSpec
from t10.core.arrays import Ints
from t10.core.chunks import chunk_slots
from t10.core.device import Pattern
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.cost.combine import combine_operator
from t10.cost.ipu import IpuCostModel
from t10.emit.patterns import in_order, moved, pattern
from t10.emit.reduction import Groups, all_rounds, scatter_rounds

Random = np.random.Generator
EVEN_BYTES = 8
MOST_SLOTS_LOG2 = 13


@dataclass(frozen=True, slots=True, eq=False)
class Collective:
    """Phases that belong together, and their modelled cycles; additions are left out of both."""

    patterns: tuple[Pattern, ...]
    is_neighbour: bool
    cycles: int


class _OnlyExchange(IpuCostModel):
    """The cost model with additions for nothing."""

    __slots__ = ()

    def combine_cycles_many(
        self, spec: OperatorSpec, n_parts: Ints, n_slots: Ints, *, is_whole: bool = False
    ) -> Ints:
        """Return 0 for every candidate."""
        del is_whole
        return np.zeros_like(n_parts * n_slots)


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
    n_slots = int(2 ** random.uniform(0, MOST_SLOTS_LOG2))
    item_bytes = size_bytes(dtype)
    n_members = who.members.shape[1]
    rounds = scatter_rounds(who, n_slots, chip.shift_buffer_bytes // item_bytes, EVEN_BYTES // item_bytes)
    chunk = chunk_slots(n_slots, n_members)

    spec = combine_operator(dtype, "sum")
    cycles = _OnlyExchange(chip).reduce_cycles(spec, n_members, chunk * item_bytes, chunk)
    return Collective(
        tuple(moved(each.moves, item_bytes) for each in rounds), is_neighbour=False, cycles=cycles
    )


def _all(random: Random, chip: ChipSpec) -> Collective:
    """Return the phases of an all-reduce."""
    who = _members(random, chip, 16)
    n_slots = int(2 ** random.uniform(0, 10))
    n_members = who.members.shape[1]
    rounds = all_rounds(who, n_slots, chip.shift_buffer_bytes // 4, EVEN_BYTES // 4)
    cycles = _OnlyExchange(chip).all_reduce_cycles(combine_operator("f32", "sum"), n_members, n_slots)
    return Collective(tuple(moved(each.moves, 4) for each in rounds), is_neighbour=False, cycles=cycles)


def _members(random: Random, chip: ChipSpec, most: int) -> Groups:
    """Return equal groups of consecutive or strided cores."""
    size = int(random.integers(2, min(most, chip.n_cores) + 1))
    n_groups = chip.n_cores // size
    core: Ints = np.arange(n_groups * size, dtype=np.int64)
    if random.random() < 0.5:
        return Groups(core % size, core.reshape(-1, size)[core // size])
    return Groups(core // n_groups, core.reshape(size, -1).T[core % n_groups])
