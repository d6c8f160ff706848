"""What shifts and reductions take because cores lie in groups: bytes that pass links, counted from who sends to whom.

A phase takes no less than its busiest link, and the latency of its longest way besides. Relayouts and set-ups are
counted where their loads are (`t10.core.loads`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod

import numpy as np

from t10.chip import ChipSpec
from t10.core import geometry
from t10.core.arrays import Ints
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.links import Links, sent_alone
from t10.core.loads import Loads
from t10.core.plan import OperatorPlan, final_positions
from t10.core.program import Shift
from t10.core.reduction import Groups, all_rounds, group_of_core, groups, scatter_rounds
from t10.core.shift_rounds import Passage
from t10.cost.exchange import part_port_cycles

KEPT_SHARES = 1 << 10
MOST_GROUPS = 1 << 8
"""Groups of cores of which all pairs are looked at together."""

Share = tuple[Ints, int]
"""How many transfers of one byte pass every link, and the latency of the longest way."""


def crosses(links: Links | None, plan: OperatorPlan) -> bool:
    """Return whether cores of a plan lie in several groups."""
    return links is not None and plan.n_cores > links.least_cores


def with_crossing(
    chip: ChipSpec, spec: OperatorSpec, plan: OperatorPlan, statement: Shift, passage: Passage, loads: Loads
) -> Loads:
    """Return the loads of an exchange of a shift with what passes links."""
    links = chip.links
    if links is None or not crosses(links, plan):
        return loads
    item_bytes, axis, direction = size_bytes(passage.dtype), statement.axis, statement.direction
    shares = [
        (part.n_elements * item_bytes, *shift_share(links, spec, plan, part.number, axis, direction))
        for part in passage.parts
    ]
    cycles, latency = together(links, plan, shares)
    return replace(loads, port_cycles=max(loads.port_cycles, chip.fragment_cycles + cycles) + latency)


def combine_crossing_cycles(chip: ChipSpec, spec: OperatorSpec, plan: OperatorPlan) -> int:
    """Return what combining partial sums takes beyond a chip of one exchange: no chunk is taken to be short."""
    links, slot = chip.links, len(spec.inputs)
    if links is None or not crosses(links, plan) or spec.combine == "none":
        return 0
    n_members = geometry.n_replicas(spec, plan, slot)
    if n_members == 1:
        return 0
    item_bytes = size_bytes(spec.acc_dtype)
    n_slots = prod(geometry.partition_shape(spec.output, geometry.window_lengths(plan, slot)))
    make = all_rounds if plan.reduce == "all" else scatter_rounds
    total = 0
    for one in make(Groups.one(n_members), n_slots, chip.shift_buffer_bytes // item_bytes, item_bytes):
        n_bytes, n_parts = int(one.widths.max()) * item_bytes, one.n_parts - one.replaces
        share = _all_share(links, spec, plan) if one.replaces else turns_share(links, spec, plan, one.turns)
        cycles, latency = together(links, plan, [(n_bytes, *share)])
        port = n_parts * (int(part_port_cycles(chip, n_bytes)) + chip.fragment_cycles) - chip.fragment_cycles
        total += max(cycles - port, 0) + latency
    return total


def together(links: Links, plan: OperatorPlan, shares: Sequence[tuple[int, Ints, int]]) -> tuple[int, int]:
    """Return the cycles of the busiest link and the longest latency of transfers of so many bytes each."""
    if not shares:
        return 0, 0
    n_bytes = sum(each * share for each, share, _ in shares)
    return links.cycles(plan.n_cores, np.asarray(n_bytes)), max(latency for _, _, latency in shares)


@lru_cache(maxsize=KEPT_SHARES)
def shift_share(
    links: Links, spec: OperatorSpec, plan: OperatorPlan, number: int, axis: int, direction: int
) -> Share:
    """Return the share of a shift in which every core takes a byte of operand `number`."""
    sources = geometry.shift_sources(spec, plan, number, axis, direction)
    return links.loads(plan.n_cores, sent_alone([sources], [1]))


@lru_cache(maxsize=KEPT_SHARES)
def turns_share(links: Links, spec: OperatorSpec, plan: OperatorPlan, turns: range) -> Share:
    """Return the share of a phase in which every core takes a byte of its own from those `turns` ranks behind it."""
    where = _groups_of_members(links, spec, plan)
    n_members, n_groups = where.shape[1], int(where.max()) + 1
    if len(turns) == n_members - 1 and n_groups <= MOST_GROUPS:
        cells = np.arange(len(where))[:, None] * n_groups + where
        held = np.bincount(cells.reshape(-1), minlength=len(where) * n_groups).reshape(-1, n_groups)
        among = held.T @ held
    elif n_groups <= MOST_GROUPS:
        among: Ints = np.zeros((n_groups, n_groups), np.int64)
        twice = np.concatenate((where, where), axis=1) * n_groups
        for turn in turns:
            keys = twice[:, turn : turn + n_members] + where
            among += np.bincount(keys.reshape(-1), minlength=among.size).reshape(among.shape)
    else:
        keys = np.concatenate([np.roll(where, -turn, axis=1) * n_groups + where for turn in turns])
        found, n_each = np.unique(keys, return_counts=True)
        return _between(links, plan, found // n_groups, found % n_groups, n_each)
    source, target = np.nonzero(among)
    return _between(links, plan, source, target, among[source, target])


def _between(links: Links, plan: OperatorPlan, source: Ints, target: Ints, n_each: Ints) -> Share:
    """Return the share of so many transfers from group to group of the smallest groups with links between them.

    What goes from one group of cores to another takes the same way, whichever cores they are.
    """
    rows = np.stack((np.arange(len(source)), source, target, n_each), axis=1)
    rows[:, 1:3] *= links.least_cores
    return links.loads(plan.n_cores, rows[source != target])


@lru_cache(maxsize=KEPT_SHARES)
def _groups_of_members(links: Links, spec: OperatorSpec, plan: OperatorPlan) -> Ints:
    """Return by reduction and rank in which of the smallest groups with links between them a member lies."""
    group, ranks = (
        group_of_core(spec, plan, final_positions(plan)),
        geometry.replica_ranks(spec.output, plan, len(spec.inputs)),
    )
    table = np.empty((int(group.max()) + 1, int(ranks.max()) + 1), np.int64)
    table[group, ranks] = np.arange(len(group)) // links.least_cores
    return table


@lru_cache(maxsize=KEPT_SHARES)
def _all_share(links: Links, spec: OperatorSpec, plan: OperatorPlan) -> Share:
    """Return the share of a phase in which every core sends the same byte to all others of its group."""
    who = groups(spec, plan, final_positions(plan))
    n_cores, n_members = who.members.shape
    rows = np.empty((n_cores, n_members, 4), np.int64)
    cores: Ints = np.arange(n_cores, dtype=np.int64)
    rows[:, :, 0] = rows[:, :, 1] = cores[:, None]
    rows[:, :, 2] = who.members
    rows[:, :, 3] = 1
    return links.loads(n_cores, rows.reshape(-1, 4))
