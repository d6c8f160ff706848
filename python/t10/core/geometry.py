"""Which element lies where: closed forms of a plan as integers per axis and numpy arrays over cores.

Arrays over cores have the core number first. A window `[start, start + w) mod L` of a simple dim is stored as a
circular buffer: local index `l` lies in slot `l mod w`, so a shift overwrites exactly the slots it frees. Dims over
several axes, or with a coefficient, are stored as one contiguous run with its halo; an axis that occurs in such a
dim may only rotate whole blocks (compute-shift model R5).

Source: compute-shift model §2-§6, T10 §4.1-§4.2.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.core import _rings
from t10.core.arrays import Array, Ints
from t10.core.chunks import window_chunk
from t10.core.expression import AffineDim, AxisSizes, Operand, OperatorSpec
from t10.core.plan import OperatorPlan

CACHE_ENTRIES = 256
MOST_INT32 = (1 << 31) - 1
window_chunk_function: np.ufunc = np.frompyfunc(window_chunk, 2, 1)


def window_lengths(plan: OperatorPlan, slot: int) -> AxisSizes:
    """Return w_{T,a} = L_a / t_{T,a} per axis of rotatable operand number `slot`."""
    return tuple(length // t for length, t in zip(plan.lengths, plan.ft[slot], strict=True))


def n_sharers(operand: Operand, plan: OperatorPlan) -> int:
    """Return P_T: how many cores need the same sub-tensor of the operand."""
    own = operand.axes
    return prod(f for axis, f in enumerate(plan.f_op) if axis not in own)


def window_chunk_many(n_slots: Any, n_parts: Any) -> Any:
    """Return `core.chunks.window_chunk` for every pair of entries: of arrays, or of what records formulas."""
    chunks = window_chunk_function(n_slots, n_parts)
    return chunks if isinstance(chunks, int) else chunks.astype(np.int64)


def partition_elements(operand: Operand, windows: Ints) -> Ints:
    """Return the elements of an operand's partition per candidate; `windows` are its w_a, shape (n, axes)."""
    total = np.ones(len(windows), np.int64)
    for dim in operand.dims:
        extent = np.ones(len(windows), np.int64)
        for term in dim.terms:
            extent = extent + term.coefficient * (windows[:, term.axis] - 1)
        total = total * extent
    return total


def ring_length(plan: OperatorPlan, slot: int) -> int:
    """Return prod(ft) of rotatable operand number `slot`."""
    return prod(plan.ft[slot])


def n_replicas(spec: OperatorSpec, plan: OperatorPlan, slot: int) -> int:
    """Return P_T / prod(ft): the number of rings, each with one copy of the sub-tensor."""
    return n_sharers(spec.rotatable[slot], plan) // ring_length(plan, slot)


def dim_extent(dim: AffineDim, lengths: AxisSizes) -> int:
    """Return how many indices of a dim are touched when its axes run over `lengths` elements (halo included)."""
    return 1 + sum(term.coefficient * (lengths[term.axis] - 1) for term in dim.terms)


def partition_shape(operand: Operand, lengths: AxisSizes) -> tuple[int, ...]:
    """Return the extents of the part of an operand that covers `lengths` elements of every axis."""
    return tuple(dim_extent(dim, lengths) for dim in operand.dims)


def dim_factors(operand: Operand, per_axis: AxisSizes) -> tuple[int, ...]:
    """Return the product of per-axis factors per dim: turns `f_op` into `fs`, an `ft` row into `ft` per dim."""
    return tuple(prod(per_axis[axis] for axis in dim.axes) for dim in operand.dims)


@lru_cache(maxsize=CACHE_ENTRIES)
def coordinates(plan: OperatorPlan) -> Ints:
    """Return the coordinates s of every working core, shape (cores, axes)."""
    sizes = [plan.f_op[axis] for axis in plan.core_order]
    grid = np.indices(sizes).reshape(len(sizes), -1).T if sizes else np.zeros((1, 0), np.int64)
    result = np.empty((plan.n_cores, len(sizes)), np.int64)
    result[:, list(plan.core_order)] = grid
    result.flags.writeable = False
    return result


@lru_cache(maxsize=CACHE_ENTRIES)
def phases(plan: OperatorPlan) -> Ints:
    """Return phi_a(s), where each core starts along each axis, shape (cores, axes), in [0, L_a)."""
    where = coordinates(plan)
    result = np.zeros_like(where)
    for axis, terms in enumerate(plan.phases):
        for term in terms:
            sigma = np.zeros(len(where), np.int64)
            for sharer_axis in term.sharer_axes:
                sigma = sigma * plan.f_op[sharer_axis] + where[:, sharer_axis]
            digit = (sigma // term.divisor) % term.modulus
            if term.is_folded:
                digit = np.where(digit % 2, term.modulus - (digit + 1) // 2, digit // 2)
            result[:, axis] += term.stride * digit
        result[:, axis] %= plan.lengths[axis]
    result.flags.writeable = False
    return result


def window_starts(plan: OperatorPlan, slot: int, positions: AxisSizes) -> Ints:
    """Return where the windows of a rotatable operand start at a loop state, shape (cores, axes); 0 if t = 1."""
    starts = phases(plan)
    if any(positions):
        starts = (starts + np.array(positions) * np.array(plan.rp)) % np.array(plan.lengths)
    return starts * (np.array(plan.ft[slot]) > 1)


def dim_indices(dim: AffineDim, lengths: AxisSizes, plan: OperatorPlan, starts: Ints) -> Ints:
    """Return the global index held by every slot of one dim, shape (cores, extent). May lie outside the tensor.

    `lengths` are window lengths w_a, `starts` local window starts (cores, axes).
    """
    slots = np.arange(dim_extent(dim, lengths))
    base = coordinates(plan) * np.array(plan.lengths)
    if dim.is_simple:
        axis = dim.terms[0].axis
        start = starts[:, axis, None]
        local = (start + (slots - start) % lengths[axis]) % plan.lengths[axis]
        return base[:, axis, None] + local
    first = np.full(len(base), dim.offset, np.int64)
    for term in dim.terms:
        first = first + term.coefficient * (base[:, term.axis] + starts[:, term.axis])
    return first[:, None] + slots


def element_parts(operand: Operand, lengths: AxisSizes, plan: OperatorPlan, starts: Ints) -> tuple[Ints, ...]:
    """Return what every slot of every dim adds to the row-major number of its element, (cores, extent) per dim.

    A sum over the dims is negative where the slot lies outside the tensor.
    """
    parts: list[Ints] = []
    n_elements = stride = max(prod(operand.shape), 1)
    for dim, extent in zip(operand.dims, operand.shape, strict=True):
        stride //= max(extent, 1)
        index = dim_indices(dim, lengths, plan, starts)
        # So little that the sum is negative, whatever the others are.
        parts.append(np.where((index < 0) | (index >= extent), -n_elements, index * stride))
    return tuple(parts)


def flat_elements(
    operand: Operand, lengths: AxisSizes, plan: OperatorPlan, starts: Ints
) -> NDArray[np.int32]:
    """Return the row-major element number held by every slot, shape (cores, *partition); -1 outside the tensor."""
    parts = element_parts(operand, lengths, plan, starts)
    # Narrow where that holds every sum: these arrays are the largest that there are.
    dtype = np.int32 if max(prod(operand.shape), 1) * (len(parts) + 1) <= MOST_INT32 else np.int64
    flat: Array = np.zeros((plan.n_cores,) + (1,) * len(parts), dtype)
    for d, part in enumerate(parts):
        where = (plan.n_cores, *(part.shape[1] if i == d else 1 for i in range(len(parts))))
        flat = flat + part.astype(dtype).reshape(where)
    is_ragged = np.zeros(plan.n_cores, np.bool_)
    for part in parts:
        is_ragged |= (part < 0).any(axis=1)
    ragged = np.flatnonzero(is_ragged)
    flat[ragged] = np.maximum(flat[ragged], -1)
    return flat.astype(np.int32, copy=False)


def replica_ranks(operand: Operand, plan: OperatorPlan, slot: int) -> Ints:
    """Return, per core, its number among the cores that hold the same window of the operand: which ring it is on.

    `slot` is the rotatable operand whose windows it follows: its own, or the output's for an epilogue input. Cores
    are numbered in core order; with the ring-tiling condition every ring has one member per rank.
    """
    starts = window_starts(plan, slot, (0,) * len(plan.f_op))
    ranks = np.empty(plan.n_cores, np.int64)
    _rings.window_ranks(coordinates(plan), starts, sorted(operand.axes), ranks)
    return ranks


def shift_sources(spec: OperatorSpec, plan: OperatorPlan, slot: int, axis: int, direction: int) -> Ints:
    """Return, per core, the ring member it receives from when the operand advances along `axis`.

    `direction` +1: the member whose window starts where this core's ends; -1: the one whose window ends where this
    core's starts. Returns -1 where no such member exists (a plan that breaks the tiling condition).
    """
    own, length = sorted(spec.rotatable[slot].axes), plan.lengths[axis]
    starts = window_starts(plan, slot, (0,) * len(plan.f_op))
    step = direction * window_lengths(plan, slot)[axis] % length
    sources = np.empty(plan.n_cores, np.int64)
    _rings.ring_sources(coordinates(plan), starts, own, axis, step, length, sources)
    return sources
