"""The closest packing of buffers, without regard to memory elements: where placement begins if memory is full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from t10.core.schedule import Buffer
from t10.plan.memory.allocation import Request, aligned_size, block_of_request, live_bytes, packed, placed


@dataclass(frozen=True, slots=True)
class Packing:
    """Buffers with addresses, the end of the highest, and what no packing can be below; reserved bytes included."""

    buffers: tuple[Buffer, ...]
    peak_bytes: int
    bound_bytes: int


def allocate(requests: Sequence[Request], base_bytes: int) -> Packing:
    """Return a buffer per request, in the order of the requests; addresses start at `base_bytes`.

    Raises `T10Error` for a request that cannot take over what it names.
    """
    owner = block_of_request(requests)
    n_blocks = max(owner, default=-1) + 1
    first = np.full(n_blocks, np.iinfo(np.int64).max)
    last = np.full(n_blocks, -1, np.int64)
    size = np.zeros(n_blocks, np.int64)
    for number, request in zip(owner, requests, strict=True):
        first[number] = min(first[number], request.first)
        last[number] = max(last[number], request.last)
        size[number] = aligned_size(request.size_bytes)
    start, bound = packed(first, last, size), int(live_bytes(requests).max(initial=0))
    buffers = tuple(
        placed(request, base_bytes + int(start[number]))
        for number, request in zip(owner, requests, strict=True)
    )
    return Packing(buffers, peak_bytes(buffers, base_bytes), base_bytes + bound)


def peak_bytes(buffers: Sequence[Buffer], base_bytes: int) -> int:
    """Return the end of the highest buffer: what a core needs, reserved bytes at the bottom included."""
    return max((b.address_bytes + b.size_bytes for b in buffers), default=base_bytes)


def bound_bytes(requests: Sequence[Request], base_bytes: int) -> int:
    """Return the most bytes alive at any moment: no packing needs less."""
    live = live_bytes(requests)
    return base_bytes + int(live.max(initial=0))
