"""Addresses: where every buffer of a core lies, by first fit over lifetimes. All cores have the same addresses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from t10.chip.spec import BUFFER_ALIGNMENT_BYTES
from t10.core.schedule import Buffer


@dataclass(frozen=True, slots=True)
class Request:
    """Bytes wanted under a name from operator step `first` to `last`, both included."""

    name: str
    size_bytes: int
    first: int
    last: int


def aligned_size(n_bytes: int) -> int:
    """Return a size rounded up to the alignment of buffers."""
    return -(-n_bytes // BUFFER_ALIGNMENT_BYTES) * BUFFER_ALIGNMENT_BYTES


def allocate(requests: Sequence[Request], base_bytes: int) -> tuple[Buffer, ...]:
    """Return a buffer per request, in the order of the requests; addresses start at `base_bytes`.

    Longest lived first, then largest: buffers of the whole program lie at the bottom, short ones stack above. Two
    buffers overlap in bytes only if their lifetimes do not.
    """
    n = len(requests)
    order = sorted(
        range(n),
        key=lambda i: (requests[i].first - requests[i].last, -requests[i].size_bytes, requests[i].name),
    )
    first = np.array([r.first for r in requests], np.int64)
    last = np.array([r.last for r in requests], np.int64)
    start = np.zeros(n, np.int64)
    end = np.zeros(n, np.int64)
    is_done = np.zeros(n, np.bool_)
    for i in order:
        near = np.nonzero(is_done & (first <= last[i]) & (last >= first[i]))[0]
        near = near[np.argsort(start[near], kind="stable")]
        size = aligned_size(requests[i].size_bytes)
        start[i] = _first_gap(start[near].tolist(), end[near].tolist(), size, base_bytes)
        end[i] = start[i] + size
        is_done[i] = True
    return tuple(
        Buffer(r.name, int(start[i]), aligned_size(r.size_bytes), r.first, r.last)
        for i, r in enumerate(requests)
    )


def _first_gap(starts: list[int], ends: list[int], size: int, base: int) -> int:
    """Return the lowest address from `base` with `size` free bytes between taken ranges sorted by start."""
    address = base
    for start, end in zip(starts, ends, strict=True):
        if start - address >= size:
            return address
        address = max(address, end)
    return address


def peak_bytes(buffers: Sequence[Buffer], base_bytes: int) -> int:
    """Return the end of the highest buffer: what a core needs, reserved bytes at the bottom included."""
    return max((b.address_bytes + b.size_bytes for b in buffers), default=base_bytes)
