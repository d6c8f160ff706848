"""Contiguous parts of a sub-task: boxes whose elements lie in contiguous runs in every operand's partition.

A window is a circular buffer (`core.geometry`): local index `l` of an axis lies in slot `l mod w`. Where a sub-task
crosses the end of some operand's buffer, it is cut there; what lies outside the tensor is cut off. Most plans need one
part; all of it is the same for all cores but for where it begins. Functions that take `cores` look at those only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

import numpy as np

from t10.core import geometry
from t10.core.arrays import Bools, Ints
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.plan import OperatorPlan

Chosen = Ints | slice
EVERY_CORE = slice(None)


@dataclass(frozen=True, slots=True)
class ContiguousPart:
    """A box on every core: `local` (cores, axes) first local index, `extents` (cores, axes), 0 where a core has none.

    `is_first` tells which cores' part is the first along all reduction axes.
    """

    local: Ints
    extents: Ints
    is_first: Bools


@dataclass(frozen=True, slots=True)
class _Segment:
    """A run along one axis: first local index and length per core, and whether no non-empty one stands before it."""

    local: Ints
    length: Ints
    is_first: Bools


def is_cut(spec: OperatorSpec, plan: OperatorPlan) -> bool:
    """Return whether boxes of sub-tasks may cross the end of a window: one that is longer and no multiple of them."""
    rotating = [axis for axis, n in enumerate(plan.steps) if n > 1]
    if not rotating:
        return False
    every = [
        (geometry.window_lengths(plan, slot), operand.axes) for slot, operand in enumerate(spec.rotatable)
    ]
    if any(windows[axis] % plan.rp[axis] for windows, axes in every for axis in rotating if axis in axes):
        return True
    return any((geometry.phases(plan)[:, axis] % plan.rp[axis]).any() for axis in rotating)


def sub_task_parts(
    spec: OperatorSpec,
    plan: OperatorPlan,
    positions: AxisSizes,
    whole: frozenset[int] = frozenset(),
    cores: Chosen = EVERY_CORE,
) -> tuple[ContiguousPart, ...]:
    """Return the parts of the sub-task at a loop state, in the order in which they must run.

    Along axes in `whole` nothing is cut off: what lies outside the tensor changes nothing that is inside.
    """
    begin, sizes = box_begins(plan, positions, cores), plan.box
    return _parts(spec, plan, begin, sizes, tuple(range(len(spec.rotatable))), whole, cores)


def box_begins(plan: OperatorPlan, positions: AxisSizes, cores: Chosen = EVERY_CORE) -> Ints:
    """Return where every core's sub-task begins, (cores, axes) local indices."""
    starts = geometry.phases(plan)[cores] + np.array(positions) * np.array(plan.rp)
    return np.where(np.array(plan.steps) > 1, starts % np.array(plan.lengths), 0)


def lacks_terms(
    spec: OperatorSpec,
    plan: OperatorPlan,
    positions: AxisSizes,
    whole: frozenset[int] = frozenset(),
    cores: Chosen = EVERY_CORE,
) -> Bools:
    """Return which cores have outputs at a loop state but nothing to add to them: their reduction is all padding."""
    begin = box_begins(plan, positions, cores)
    found: list[Bools] = []
    for axis, size in enumerate(plan.box):
        inside = inside_lengths(spec, plan, axis, whole)[cores]
        segments = _segments(begin[:, axis], size, plan.lengths[axis], {plan.lengths[axis]}, inside)
        found.append(sum((s.length for s in segments), np.zeros(len(begin), np.int64)) > 0)
    has_terms, has_outputs = np.ones((2, len(begin)), np.bool_)
    for axis, used in enumerate(found):
        chosen = has_terms if axis in spec.reduction_axes else has_outputs
        chosen &= used
    return has_outputs & ~has_terms


def _parts(
    spec: OperatorSpec,
    plan: OperatorPlan,
    begin: Ints,
    sizes: AxisSizes,
    slots: tuple[int, ...],
    whole: frozenset[int],
    cores: Chosen,
) -> tuple[ContiguousPart, ...]:
    """Return the product of every axis's segments, reduction axes innermost so that first parts come first."""
    by_axis: list[list[_Segment]] = []
    for axis, size in enumerate(sizes):
        cuts = moduli(spec, plan, axis, slots)
        inside = inside_lengths(spec, plan, axis, whole)[cores]
        by_axis.append(_segments(begin[:, axis], size, plan.lengths[axis], cuts, inside))
    result: list[ContiguousPart] = []
    for chosen in product(*by_axis):
        extents = np.stack([segment.length for segment in chosen], axis=1)
        extents[(extents == 0).any(axis=1)] = 0
        if not extents.any():
            continue
        first = np.ones(len(extents), np.bool_)
        for axis in spec.reduction_axes:
            first &= chosen[axis].is_first
        result.append(ContiguousPart(np.stack([segment.local for segment in chosen], axis=1), extents, first))
    return tuple(result)


def moduli(spec: OperatorSpec, plan: OperatorPlan, axis: int, slots: Iterable[int]) -> set[int]:
    """Return the lengths along an axis after which parts and windows of some operands begin again."""
    windows = {
        geometry.window_lengths(plan, slot)[axis] for slot in slots if axis in spec.rotatable[slot].axes
    }
    return windows | {plan.lengths[axis]}


def inside_lengths(spec: OperatorSpec, plan: OperatorPlan, axis: int, whole: frozenset[int]) -> Ints:
    """Return how many local indices of every core's part of an axis its sub-tasks run over, from the first on."""
    inside = spec.axes[axis].extent - geometry.coordinates(plan)[:, axis] * plan.lengths[axis]
    if axis not in whole:
        return np.maximum(inside, 0)
    # A core of whose outputs all are padding has nothing to do.
    is_idle = (inside <= 0) & (axis not in spec.reduction_axes)
    return np.where(is_idle, 0, np.maximum(inside, plan.lengths[axis]))


def _segments(begin: Ints, size: int, length: int, moduli: set[int], inside: Ints) -> list[_Segment]:
    """Return the runs of `size` local indices from `begin` on, cut at multiples of the moduli and at `inside`."""
    local = begin % length
    rest = np.full(begin.shape, size, np.int64)
    seen = np.zeros(begin.shape, np.bool_)
    segments: list[_Segment] = []
    while rest.any():
        run = rest.copy()
        for modulus in moduli:
            run = np.minimum(run, modulus - local % modulus)
        used = np.clip(inside - local, 0, run)
        if used.any():
            segments.append(_Segment(local, used, ~seen))
            seen = seen | (used > 0)
        rest = rest - run
        local = (local + run) % length
    return segments
