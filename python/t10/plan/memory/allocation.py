"""The closest packing of the buffers of a core. All cores have the same addresses.

Buffers are rectangles, live range by bytes, that move along the bytes only. No packing is lower than the *bound*, the
most live bytes at any moment. Buffers that live as long as the program are stacked at the bottom. The rest falls into
groups that are never live together; in each, orders of first fit are tried until the bound is met, and
`plan.memory.packing_repair` repairs what ends above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from t10.core.arrays import Bools, Ints
from t10.core.schedule import PHASES, Buffer
from t10.core.tile import ALIGNMENT_BYTES, OVERREAD_BYTES
from t10.errors import T10Error
from t10.plan.memory.blocks import Block
from t10.plan.memory.packing import packed_starts


@dataclass(frozen=True, slots=True)
class Request:
    """Bytes wanted under a name from moment `first` to `last` (see `core.schedule.moment`), both included.

    `takes_over` names a request that ends in the moment this one begins, and whose bytes it goes on using.
    """

    name: str
    size_bytes: int
    first: int
    last: int
    takes_over: str = ""


def aligned_size(n_bytes: int) -> int:
    """Return a size rounded up to the alignment of buffers."""
    return -(-n_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def memory_bytes(end_bytes: int) -> int:
    """Return the least memory of a core, in bytes, whose data may end at `end_bytes`."""
    return aligned_size(end_bytes) + OVERREAD_BYTES


def live_bytes(requests: Sequence[Request]) -> Ints:
    """Return the bytes alive at every moment from 0 on; what is taken over counts once."""
    taken = {request.takes_over for request in requests if request.takes_over}
    last = np.array([r.last - (r.name in taken) for r in requests], np.int64)
    first = np.array([r.first for r in requests], np.int64)
    return _alive(first, last, np.array([aligned_size(r.size_bytes) for r in requests], np.int64))


def _alive(first: Ints, last: Ints, size: Ints) -> Ints:
    """Return the sum of sizes alive at every moment from 0 on."""
    if not len(first):
        return np.zeros(0, np.int64)
    change = np.zeros(int(last.max()) + 2, np.int64)
    np.add.at(change, np.maximum(first, 0), size)
    np.add.at(change, last + 1, -size)
    return np.cumsum(change)[:-1]


def block_of_request(requests: Sequence[Request]) -> list[int]:
    """Return for every request the number of the block of bytes it lies in: its own, or the one it takes over."""
    by_name = {request.name: i for i, request in enumerate(requests)}
    block: list[int] = []
    n_blocks = 0
    for request in requests:
        if not request.takes_over:
            block.append(n_blocks)
            n_blocks += 1
            continue
        source = by_name.get(request.takes_over, len(block))
        before = requests[source] if source < len(block) else None
        if before is None or before.last != request.first or before.size_bytes != request.size_bytes:
            raise T10Error(f"buffer {request.name} cannot take over {request.takes_over}")
        block.append(block[source])
    return block


def packed(first: Ints, last: Ints, size: Ints) -> Ints:
    """Return the start of every block in the closest packing that is found: lifetimes by moment, sizes in bytes."""
    start = np.zeros(len(size), np.int64)
    if not len(size):
        return start
    bound = int(_alive(first, last, size).max())
    always = live_always(first, last)
    start[always] = np.cumsum(size[always]) - size[always]
    base = int(size[always].sum())
    rest = np.nonzero(~always & (size > 0))[0]
    for group in _groups(rest, first, last):
        blocks = [Block(int(first[i]), int(last[i]), int(size[i])) for i in group]
        start[group] = base + np.array(packed_starts(blocks, bound - base), np.int64)
    return start


def live_always(first: Ints, last: Ints) -> Bools:
    """Return which blocks live as long as the program."""
    return (first <= first.min()) & (last >= last.max())


def _groups(rest: Ints, first: Ints, last: Ints) -> list[Ints]:
    """Return blocks in groups such that blocks of different groups are never alive together."""
    if not len(rest):
        return []
    order = rest[np.argsort(first[rest], kind="stable")]
    reached = np.maximum.accumulate(last[order])
    cuts = np.nonzero(first[order][1:] > reached[:-1])[0] + 1
    return np.split(order, cuts)


def placed(request: Request, address: int) -> Buffer:
    """Return the buffer of a request at an address."""
    first, first_phase = divmod(request.first, len(PHASES))
    last, last_phase = divmod(request.last, len(PHASES))
    size = aligned_size(request.size_bytes)
    return Buffer(request.name, address, size, first, last, PHASES[first_phase], PHASES[last_phase])
