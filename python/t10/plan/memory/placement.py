"""Placement: addresses of buffers without overlap of live ranges, in separate memory elements if that is faster.

A greedy start places the largest buffer first, or that with the most wishes, or all that do not live always, where it
grants most. If it does not fit or breaks wishes, the closest packing (`plan.memory.allocation`) gives others, with the
buffers of the whole program stacked below and above the rest. Then single buffers move to where they grant more, and in
full memory some change places; what breaks least in the end is taken.
Addresses are those of the device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from t10.chip import ChipSpec
from t10.core.arrays import Bools, Ints
from t10.core.schedule import Buffer, Wish
from t10.core.tile import ALIGNMENT_BYTES, OVERREAD_BYTES
from t10.plan.memory._places import Blocks
from t10.plan.memory.allocation import (
    Request,
    aligned_size,
    block_of_request,
    live_always,
    live_bytes,
    packed,
    placed,
)
from t10.plan.memory.blocks import Block, neighbours
from t10.plan.memory.packing import first_fit

MOVING_ROUNDS = 3
MOST_LARGE = 8
MOST_REORDERED = 400
"""Blocks of which several orders and many packings are tried."""
MOST_FITTED = 20_000
"""Blocks that are placed by first fit to try other orders, all tries together."""
MOST_TRIES = 10_000
"""Places that are tried to repack one block and those around it."""
SHIFTS = 32
"""Places within two memory elements at which the bytes for what does not live always are tried to begin."""
MOST_FILLED = 8
"""Of them those that are filled with all blocks: typical ones break least."""
MOST_MOVED = 6
"""Closest packings whose single blocks move to where they grant more."""
GOOD_ENOUGH = 100
"""Cycles that broken wishes may take: then no other packing is repacked."""
MOST_IN_VAIN = 4
"""Packings repacked in a row that are not better than the best: then no more are. Of many blocks one is enough."""
KEPT_PLACEMENTS = 4


@lru_cache(maxsize=KEPT_PLACEMENTS)
def placed_buffers(
    requests: tuple[Request, ...], wishes: tuple[Wish, ...], chip: ChipSpec, bottom_bytes: int
) -> tuple[Buffer, ...]:
    """Return a buffer per request, in their order, from `bottom_bytes` of the memory on.

    The last of them ends above `chip.data_end_bytes` where the closest packing does. Raises `T10Error` for a request
    that cannot take over what it names.
    """
    buffers, lost = _placed(requests, wishes, chip, bottom_bytes)
    apart = _taking_over_less(requests, wishes)
    if apart == requests or bottom_bytes + live_bytes(apart).max() > chip.data_end_bytes:
        return buffers
    others, lost_then = _placed(apart, wishes, chip, bottom_bytes)
    has_room = max(each.address_bytes + each.size_bytes for each in others) <= chip.data_end_bytes
    return others if has_room and lost_then < lost else buffers


def _placed(
    requests: Sequence[Request], wishes: Sequence[Wish], chip: ChipSpec, bottom_bytes: int
) -> tuple[tuple[Buffer, ...], int]:
    """Return a buffer per request and the weight of the wishes that are not granted."""
    owner = block_of_request(requests)
    placing = _Placing(requests, owner, wishes, chip, bottom_bytes)
    starts = placing.starts()
    buffers = tuple(placed(request, int(starts[b])) for b, request in zip(owner, requests, strict=True))
    return buffers, placing.penalty(starts) + placing.broken


def _taking_over_less(requests: tuple[Request, ...], wishes: Sequence[Wish]) -> tuple[Request, ...]:
    """Return requests that take over nothing that they lose cycles beside: that saves bytes and may cost time."""
    losing = {frozenset(wish.names) for wish in wishes if wish.weight > 1}
    return tuple(
        replace(request, takes_over="")
        if frozenset((request.name, request.takes_over)) in losing
        else request
        for request in requests
    )


class _Placing:
    """Blocks of bytes, each of one request or of several that take it over, and what is wished of them."""

    def __init__(
        self,
        requests: Sequence[Request],
        owner: Sequence[int],
        wishes: Sequence[Wish],
        chip: ChipSpec,
        bottom_bytes: int,
    ) -> None:
        self.memory = chip.tile_memory
        self.bottom = -(-bottom_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        self.top = chip.data_end_bytes
        self.plain = self.memory.interleaved_base - self.memory.base
        n = max(owner, default=-1) + 1
        self.first: Ints = np.full(n, np.iinfo(np.int64).max)
        self.last: Ints = np.full(n, -1, np.int64)
        self.size: Ints = np.zeros(n, np.int64)
        for block, request in zip(owner, requests, strict=True):
            self.first[block] = min(self.first[block], request.first)
            self.last[block] = max(self.last[block], request.last)
            self.size[block] = aligned_size(request.size_bytes)
        number = {request.name: block for block, request in zip(owner, requests, strict=True)}
        self.alone: Ints = np.zeros(n, np.int64)
        self.broken = 0
        by_pair: dict[tuple[int, int], int] = {}
        for wish in wishes:
            blocks = sorted({number[name] for name in wish.names if name in number})
            if len(blocks) < len(wish.names):
                # Buffers of one block are never apart.
                self.broken += wish.weight if all(name in number for name in wish.names) else 0
            elif len(blocks) == 1:
                self.alone[blocks[0]] += wish.weight
            else:
                pair = (blocks[0], blocks[1])
                by_pair[pair] = by_pair.get(pair, 0) + wish.weight
        self.paired: Ints = np.zeros(n, np.int64)
        for pair, weight in by_pair.items():
            self.paired[list(pair)] += weight
        self.wished: Ints = self.alone + self.paired
        element_bytes = self.memory.element_bytes, self.memory.interleaved_bytes
        self.blocks = Blocks(
            self.first.tolist(),
            self.last.tolist(),
            self.size.tolist(),
            self.alone.tolist(),
            [(*pair, weight) for pair, weight in by_pair.items()],
            (self.bottom, self.top, self.plain, *element_bytes, ALIGNMENT_BYTES, OVERREAD_BYTES),
        )
        self.penalty = self.blocks.penalty

    def starts(self) -> Ints:
        """Return where every block begins."""
        first, *others = self._tried()
        best, n_in_vain = self._repacked(first), 0
        most_in_vain = MOST_IN_VAIN if len(best) <= MOST_REORDERED else 1
        # Which starts break least once repacked is not known before.
        for starts in others:
            if self.penalty(best) <= GOOD_ENOUGH or n_in_vain >= most_in_vain:
                break
            found = self._repacked(starts)
            is_better = self.penalty(found) < self.penalty(best)
            best, n_in_vain = (found, 0) if is_better else (best, n_in_vain + 1)
        return best

    def _tried(self) -> list[Ints]:
        """Return starts found by placing and moving one block at a time, those that break least first."""
        greedy: Ints | None = None
        # What lives for a while takes little: one small part of the interleaved region serves all of it.
        passing = np.where(live_always(self.first, self.last), 0, self.size.sum(initial=0)) + self.size
        for rank in (self.size, self.wished, passing):
            found = self._greedy(rank)
            if found is not None:
                found = self._moved(found)
                greedy = found if greedy is None else min(greedy, found, key=self.penalty)
                if not self.penalty(greedy):
                    return [greedy]
        stacked = self._stacked()
        if (stacked[0] + self.size).max(initial=0) > self.top:
            return stacked[:1] if greedy is None else [greedy]
        if greedy is None:
            stacked = [self._reordered(stacked[0]), *stacked[1:]]
        found = [self._moved(starts) for starts in stacked]
        return sorted(found if greedy is None else [greedy, *found], key=self.penalty)

    def _greedy(self, rank: Ints, starts: Ints | None = None, blocks: Ints | None = None) -> Ints | None:
        """Return starts where every block in turn, the highest rank first, takes its best free bytes.

        Blocks that have `starts` of 0 or more keep them, all but some `blocks` are left out. None where a block finds
        no room.
        """
        starts = np.full(len(self.size), -1, np.int64) if starts is None else starts.copy()
        numbers: list[int] = list(range(len(self.size))) if blocks is None else blocks.tolist()
        order = sorted(numbers, key=lambda b: (-rank[b], -self.size[b], -self.wished[b], self.first[b], b))
        return starts if self.blocks.fill(starts, order) else None

    def _moved(self, starts: Ints) -> Ints:
        """Return starts after blocks moved to where fewer of their wishes are broken, as long as that helps."""
        moved = starts.copy()
        self.blocks.move(moved, MOVING_ROUNDS)
        return moved

    def _repacked(self, starts: Ints) -> Ints:
        """Return starts after blocks changed places with those around them, where fewer wishes are broken then."""
        repacked = starts.copy()
        self.blocks.repack(repacked, MOST_TRIES)
        return repacked

    def _stacked(self) -> list[Ints]:
        """Return the closest packings, with those that live always in the best orders found, below and above the rest.

        The rest lies as packed, or each where it grants most wishes in the bytes that are left.
        """
        always = live_always(self.first, self.last)
        below = int(self.size[always].sum())
        # What has no bytes lies at 0 there.
        tight = np.maximum(packed(self.first, self.last, self.size), np.where(always, 0, below))
        height = int((tight + self.size)[~always].max(initial=below)) - below
        # What wishes for nothing alone may lie in the region that is not interleaved.
        stack = sorted(np.flatnonzero(always).tolist(), key=lambda b: (self.alone[b] / self.size[b], b))
        upwards, downwards = tight - below, height - (tight - below) - self.size
        found = [
            self._arranged(stack, n_below, np.where(always, 0, inner), height)
            for inner in (upwards, downwards)
            for n_below in sorted({0, len(stack) // 2, len(stack)})
        ]
        best = min(found, key=self.penalty)
        if not self.penalty(best) or (best + self.size).max(initial=0) > self.top:
            return [best]
        tried: list[tuple[int, Ints]] = []
        typical = self._typical(always)
        for around, hole in self._around_holes(stack, self.top - self.bottom - below):
            starts = np.where(always, around, -1)
            found_typical = self._greedy(self.size, starts, typical)
            if found_typical is not None:
                tried.append((self.penalty(found_typical), starts))
            if hole is not None:
                found += [np.where(always, around, hole + inner) for inner in (upwards, downwards)]
        tried.sort(key=lambda each: each[0])
        filled = [self._greedy(self.size, starts) for _, starts in tried[:MOST_FILLED]]
        moved = [self._moved(starts) for starts in sorted(found, key=self.penalty)[:MOST_MOVED]]
        filled = sorted((starts for starts in filled if starts is not None), key=self.penalty)
        return sorted([*filled[:1], *moved], key=self.penalty)

    def _typical(self, always: Bools) -> Ints:
        """Return the blocks alive in some moments, the first of each with so many bytes in so many blocks."""
        rest = np.flatnonzero(~always)
        moments = np.unique(self.first[rest])
        is_alive = (self.first[rest] <= moments[:, None]) & (moments[:, None] <= self.last[rest])
        alike = np.stack([is_alive @ self.size[rest], is_alive.sum(axis=1)])
        return rest[is_alive[np.unique(alike, axis=1, return_index=True)[1]].any(axis=0)]

    def _around_holes(self, stack: list[int], room: int) -> Iterator[tuple[Ints, int | None]]:
        """Yield starts of a stack around a hole of `room` bytes for all that does not live always, and the hole's.

        The latter is None where there are two holes. A hole lies in the interleaved region or below it, and begins
        elsewhere in a memory element every time: that decides what of the rest lies apart, as there may be just
        enough room for it.
        """
        plain = max(0, self.plain - self.bottom)
        for n_plain in sorted({plain, max(0, plain - room)}, reverse=True):
            low, high = self._parted(stack, n_plain)
            if n_plain == plain:
                # What wishes least to be apart from the rest lies next to the hole.
                calm = sorted(high, key=lambda b: (self.paired[b], b))
                for above in self._sums(calm):
                    below = [*low, *(b for b in reversed(calm) if b not in above)]
                    arranged = self._arranged([*below, *above], len(below), np.zeros_like(self.size), room)
                    yield arranged, self.bottom + int(self.size[below].sum())
                    yield from self._lifted(arranged, np.array(below, np.int64), room)
            if n_plain < plain or plain <= room:
                small = [b for b in high if self.size[b] < self.memory.element_bytes]
                for chosen in self._sums([*low, *sorted(small, key=lambda b: self.alone[b])]):
                    above = [*(b for b in low if b not in chosen), *(b for b in high if b not in chosen)]
                    arranged = self._arranged([*chosen, *above], len(chosen), np.zeros_like(self.size), room)
                    yield arranged, self.bottom + int(self.size[chosen].sum())

    def _lifted(self, arranged: Ints, below: Ints, room: int) -> Iterator[tuple[Ints, None]]:
        """Yield starts where no block begins just below the interleaved region that wishes for it: a hole is there."""
        crossing = below[(self.alone[below] > 0) & (arranged[below] < self.plain)]
        first = arranged[crossing].min(initial=self.plain)
        if 0 < self.plain - first <= room:
            lifted = arranged.copy()
            lifted[below[arranged[below] >= first]] += self.plain - first
            yield lifted, None

    def _parted(self, stack: list[int], n_bytes: int) -> tuple[list[int], list[int]]:
        """Return blocks that take `n_bytes` or more and lose least outside the interleaved region, and all others.

        Those that lose nothing are among the former; the others are chosen by dynamic programming over the bytes.
        """
        low = [block for block in stack if not self.alone[block]]
        wishing = [block for block in stack if self.alone[block]]
        n_units = max(0, n_bytes - int(self.size[low].sum())) // ALIGNMENT_BYTES
        least: Ints = np.full(n_units + 1, np.iinfo(np.int64).max // 2)
        least[0] = 0
        units = np.arange(n_units + 1)
        taken: list[Bools] = []
        for block in wishing:
            with_it = least[np.maximum(units - self.size[block] // ALIGNMENT_BYTES, 0)] + self.alone[block]
            taken.append(with_it < least)
            least = np.minimum(least, with_it)
        left, high = n_units, list[int]()
        for block, is_taken in zip(reversed(wishing), reversed(taken), strict=True):
            if is_taken[left]:
                left = max(0, left - int(self.size[block]) // ALIGNMENT_BYTES)
                low.append(block)
            else:
                high.insert(0, block)
        return low, high

    def _sums(self, blocks: list[int]) -> Iterator[list[int]]:
        """Yield some of the blocks: sets whose bytes end in different parts of a pair of memory elements."""
        reached = [1]
        for block in blocks:
            reached.append(reached[-1] | reached[-1] << int(self.size[block]) // ALIGNMENT_BYTES)
        step = self.memory.interleaved_bytes // SHIFTS
        by_part: dict[int, int] = {}
        for n_units in np.flatnonzero(_bits(reached[-1])).tolist():
            by_part.setdefault(n_units * ALIGNMENT_BYTES % self.memory.interleaved_bytes // step, n_units)
        for left in by_part.values():
            chosen: list[int] = []
            for number in range(len(blocks), 0, -1):
                if not reached[number - 1] >> left & 1:
                    chosen.insert(0, blocks[number - 1])
                    left -= int(self.size[blocks[number - 1]]) // ALIGNMENT_BYTES
            yield chosen

    def _arranged(self, stack: list[int], n_below: int, inner: Ints, height: int) -> Ints:
        """Return starts with the first `n_below` of a stack under the rest, which is `height` bytes high at `inner`."""
        sizes = self.size[stack]
        begins = self.bottom + np.cumsum(sizes) - sizes
        begins[n_below:] += height
        starts = self.bottom + int(sizes[:n_below].sum()) + inner
        starts[stack] = begins
        return starts

    def _reordered(self, starts: Ints) -> Ints:
        """Return starts by first fit in a better order: blocks with broken wishes go elsewhere among the largest.

        Of many blocks, single orders decide too little to be tried.
        """
        if len(starts) > MOST_REORDERED:
            return starts
        blocks = [
            Block(*each)
            for each in zip(self.first.tolist(), self.last.tolist(), self.size.tolist(), strict=True)
        ]
        near = neighbours(blocks)
        order: list[int] = np.argsort(starts, kind="stable").tolist()
        least, n_tries = self.penalty(starts), 0
        moves = self._moves(starts, order)
        while least and n_tries * len(order) < MOST_FITTED:
            move = next(moves, None)
            if move is None:
                break
            n_tries += 1
            fitted = self.bottom + np.array(first_fit(blocks, near, move), np.int64)
            if (fitted + self.size).max() <= self.top and self.penalty(fitted) < least:
                starts, order, least = fitted, move, self.penalty(fitted)
                moves = self._moves(starts, order)
        return starts

    def _moves(self, starts: Ints, order: list[int]) -> Iterator[list[int]]:
        """Yield orders with one block that has broken wishes put before or behind one of the largest others."""
        large = sorted(range(len(order)), key=lambda b: (-self.size[b], b))[:MOST_LARGE]
        for block in sorted(self.blocks.broken(starts), key=lambda b: (-self.size[b], b)):
            rest = [b for b in order if b != block]
            for other in large:
                if other != block:
                    at = rest.index(other)
                    yield [*rest[:at], block, *rest[at:]]
                    yield [*rest[: at + 1], block, *rest[at + 1 :]]


def _bits(number: int) -> Bools:
    """Return the bits of a number, the lowest first."""
    raw = np.frombuffer(number.to_bytes(number.bit_length() // 8 + 1, "little"), np.uint8)
    return np.unpackbits(raw, bitorder="little").astype(np.bool_)
