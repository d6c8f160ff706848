"""What combining partial sums takes: exchanges into the shift buffer, and additions.

Where steps are counted a reduction takes what its rounds do (`t10.core.reduction`); elsewhere, and as a bound of that,
there are formulas, of arrays or of what records formulas.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.chip import ChipSpec
from t10.core.arrays import Ints
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.geometry import window_chunk_many
from t10.core.loads import Places, phase_loads
from t10.core.plan import OperatorPlan, final_positions
from t10.core.program import ReduceMode
from t10.core.reduction import (
    Groups,
    Round,
    all_rounds,
    groups,
    part_slots,
    scatter_rounds,
    slots_at_once,
)
from t10.core.tile import WIDE_BYTES
from t10.cost.exchange import (
    WORD_BYTES,
    exchange_rates,
    inside_cycles,
    part_port_cycles,
    parts_cycles,
    phase_cycles,
)
from t10.cost.steps import Steps

MOST_SCHEDULED = 1 << 13
"""Transfers of a phase that are scheduled where no formula holds; in larger phases all are taken to be on time."""
KEPT_PLANS = 1 << 12
NO_FILLS = np.zeros((0, 4), np.int32)


def reduce_scatter_formula(
    chip: ChipSpec, steps: Steps, spec: OperatorSpec, n_members: Any, n_slots: Any
) -> Any:
    """Return the cycles of a reduce-scatter of windows of `n_slots` elements; 0 where it has one member.

    Every core takes `n_members - 1` chunks. As many as fit the shift buffer come in one exchange phase; a chunk
    larger than the buffer comes in pieces. Then they are combined with the core's own. The last is taken to be whole.
    """
    if spec.combine == "none":
        return n_members * 0
    chunk, rounds = window_chunk_many(n_slots, n_members), n_members - 1
    buffer_slots = chip.shift_buffer_bytes // size_bytes(spec.acc_dtype)
    piece = np.maximum(np.minimum(chunk, buffer_slots), 1)
    at_once = np.maximum(buffer_slots // part_slots(piece, size_bytes(spec.acc_dtype)), 1)
    n_pieces = -(-chunk // piece)
    last = chunk - (n_pieces - 1) * piece
    full, rest = np.divmod(rounds, at_once)

    def phase(n_slots: Any, n_parts: Any) -> Any:
        moved = parts_cycles(chip, n_slots * size_bytes(spec.acc_dtype), n_parts)
        return moved + chip.launch_cycles + steps.combine(spec, n_parts, n_slots)

    def pieces(n_slots: Any) -> Any:
        return full * phase(n_slots, at_once) + np.where(rest > 0, phase(n_slots, rest), 0)

    return np.where(rounds > 0, (n_pieces - 1) * pieces(piece) + pieces(last), 0)


def all_reduce_formula(
    chip: ChipSpec, steps: Steps, spec: OperatorSpec, n_members: Any, n_slots: Any, *, may_pair: bool = False
) -> Any:
    """Return the cycles of an all-reduce of windows of `n_slots` elements; 0 where it has one member.

    In a phase every core takes the same elements of all others, as many as fit the shift buffer, and combines them
    with its own; of more than two members, its own part is copied among the others'. What many cores want of one is
    sent to all of them at once, so receiving takes the time. Where members `may_pair`, as in a bound, all come in
    double words but what a core takes of its partner.
    """
    if spec.combine == "none":
        return n_members * 0
    others, item_bytes = n_members - 1, size_bytes(spec.acc_dtype)
    n_parts = np.where(others > 1, n_members, 1)
    room = chip.shift_buffer_bytes // item_bytes // n_parts
    at_once = slots_at_once(room, item_bytes)
    full, rest = np.divmod(n_slots, at_once)

    def phase(n_slots: Any) -> Any:
        n_own, n_paired = np.where(others > 1, 1, 0), np.maximum(others - 1, 0) if may_pair else 0
        moved = parts_cycles(chip, n_slots * item_bytes, others, n_own=n_own, n_paired=n_paired)
        return moved + chip.launch_cycles + steps.combine(spec, n_parts, n_slots, is_whole=True)

    return np.where(others > 0, full * phase(at_once) + np.where(rest > 0, phase(rest), 0), 0)


def rounds_cycles(
    chip: ChipSpec,
    mode: ReduceMode,
    dtype: str,
    n_members: int,
    n_slots: int,
    added: Callable[[Round], int | None],
    *,
    is_apart: bool,
    places: Places | None,
    cores: Ints | None = None,
) -> int | None:
    """Return the cycles of a reduction round by round; None where those of an addition are not known.

    Where the shift buffer and accumulators are not apart, `places` says where they lie, as far as that is known.
    `cores` (groups, members) are those of every different group, by rank; without them the first cores of a chip.
    """
    item_bytes, total = size_bytes(dtype), 0
    if n_members == 1:
        return total
    make = all_rounds if mode == "all" else scatter_rounds
    added_alike: dict[tuple[int, int, bytes, bytes], int] = {}
    moved_alike: dict[tuple[int, int, int, bytes, bytes], int] = {}
    for one in make(Groups.one(n_members), n_slots, chip.shift_buffer_bytes // item_bytes, item_bytes):
        # Code asks how its operands are aligned, exchanges in which memory elements they lie.
        begin = one.first * item_bytes
        if is_apart or places is None:
            begin %= WIDE_BYTES
        # Who waits for whom goes by how far away those are of which a core takes.
        turn = one.turns.start if _is_scheduled(chip, one, item_bytes, is_apart, places) else 0
        key = one.n_parts, one.stride, one.widths.tobytes(), begin.tobytes()
        if key not in added_alike:
            additions = added(one)
            if additions is None:
                return None
            added_alike[key] = chip.launch_cycles + additions
        where = turn, *key
        if where not in moved_alike:
            moved_alike[where] = exchange_cycles(
                chip, one, item_bytes, is_apart=is_apart, places=places, cores=cores
            )
        total += moved_alike[where] + added_alike[key]
    return total


def exchange_cycles(
    chip: ChipSpec,
    one: Round,
    item_bytes: int,
    *,
    is_apart: bool = True,
    places: Places | None = None,
    cores: Ints | None = None,
) -> int:
    """Return the cycles of a round's exchange among one group; see `rounds_cycles`.

    Many groups take no longer, where their cores are as far from each other: that decides who waits.
    """
    sizes = one.widths[one.widths > 0] * item_bytes
    most, least = int(sizes.max()), int(sizes.min())
    if _is_scheduled(chip, one, item_bytes, is_apart, places):
        moves = one.moves if cores is None else _among(one.moves, cores)
        n_cores = len(one.widths) if cores is None else int(cores.max()) + 1
        return phase_cycles(
            chip, phase_loads(moves, NO_FILLS, n_cores, item_bytes, exchange_rates(chip), places)
        )
    if one.replaces:
        # What many cores want of one is sent to all of them at once.
        n_paired = _n_paired(one.n_parts, most, cores)
        return int(parts_cycles(chip, most, one.n_parts - 1, 0 if is_apart else 1, 1, n_paired=n_paired))
    return int(parts_cycles(chip, most, one.n_parts, 0 if is_apart else one.n_parts, 0, least))


def _is_scheduled(chip: ChipSpec, one: Round, item_bytes: int, is_apart: bool, places: Places | None) -> bool:
    """Return whether transfers of a round are scheduled: where they take equally long, apart, none waits.

    A core that scatters more than the others may be done before them: when its transfers end decides.
    """
    sizes = one.widths[one.widths > 0] * item_bytes
    least, most = int(sizes.min()), int(sizes.max())
    n_parts = one.n_parts - one.replaces
    is_even = part_port_cycles(chip, least) <= part_port_cycles(chip, most) and (
        inside_cycles(chip, least, n_parts, one.replaces) <= inside_cycles(chip, most, n_parts, one.replaces)
    )
    is_known = is_even if is_apart else places is None
    return not is_known and len(one.widths) * one.n_parts <= MOST_SCHEDULED


def _n_paired(n_parts: int, n_bytes: int, cores: Ints | None) -> int:
    """Return how many parts of others all cores of groups (groups, members) take together with their partners.

    A core that has no partner in its group takes all in single words, and who has one what comes from that.
    """
    if cores is None or n_bytes % (2 * WORD_BYTES):
        return 0
    has_partner = (cores[:, :, None] == cores[:, None, :] ^ 1).any(axis=2)
    return n_parts - 2 if has_partner.all() else 0


@lru_cache(maxsize=KEPT_PLANS)
def different_groups(spec: OperatorSpec, plan: OperatorPlan) -> Ints:
    """Return the cores of every different group that combines partial sums, (groups, members), by rank.

    Alike are groups whose members are as far from each other. That of the last core is one of them: distances are
    counted round it.
    """
    members = groups(spec, plan, final_positions(plan)).members
    members = members[np.unique(members[:, 0], return_index=True)[1]]
    last = members[(members == members.max()).any(axis=1)]
    kinds = np.unique(members - members[:, :1], axis=0, return_index=True)[1]
    return np.unique(np.concatenate([last, members[kinds]]), axis=0)


def _among(moves: NDArray[np.int32], cores: Ints) -> NDArray[np.int32]:
    """Return what moves in some groups, of what moves in one of the first cores."""
    every = np.repeat(moves[None], len(cores), axis=0)
    for column in (1, 3):
        every[:, :, column] = cores[:, moves[:, column]]
    every = every.reshape(-1, moves.shape[1])
    return every[np.lexsort((every[:, 4], every[:, 3]))]
