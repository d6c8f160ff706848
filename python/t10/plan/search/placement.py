"""Placement: where every core starts along every rotating axis, so that each ring holds each element exactly once.

A core's sub-task and its windows start at the same phase, so the window condition always holds; what must be found
are phases for which the windows of every ring tile the sub-tensor. Theorems 1 and 2 of the compute-shift model give
them in closed form; what they leave over is searched among mixed-radix digits and checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from math import lcm, prod

import numpy as np

from t10.core import geometry
from t10.core.arrays import Ints
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.plan import OperatorPlan, PhaseTerm
from t10.plan.search.alignment import Pace, sharers

Phases = tuple[tuple[PhaseTerm, ...], ...]
MAX_TRIES = 200


def place(
    spec: OperatorSpec,
    f_op: AxisSizes,
    ft: tuple[AxisSizes, ...],
    pace: Pace,
    core_order: AxisSizes | None = None,
) -> OperatorPlan | None:
    """Return the placed plan of an aligned partition, None where no placement was found.

    `core_order` defaults to `natural_core_order`.
    """
    order = natural_core_order(spec, f_op, pace.lengths) if core_order is None else core_order

    def planned(phases: Phases) -> OperatorPlan:
        n_replicas = sharers(spec.output, f_op) // prod(ft[-1])
        return OperatorPlan(
            f_op=f_op,
            lengths=pace.lengths,
            ft=ft,
            rp=pace.rp,
            steps=pace.steps,
            loop_order=pace.loop_order,
            phases=phases,
            core_order=order,
            reduce="scatter" if n_replicas > 1 else "none",
        )

    closed = _closed_form(spec, f_op, ft, pace)
    if all(terms is not None for terms in closed):
        return planned(tuple(terms or () for terms in closed))
    for phases in _searched(spec, f_op, ft, pace, closed):
        plan = planned(phases)
        if is_tiling(spec, plan):
            return plan
    return None


def natural_core_order(spec: OperatorSpec, f_op: AxisSizes, lengths: AxisSizes) -> AxisSizes:
    """Return the axes, slowest first: those of the output in its order, reduction axes behind its first long one.

    Axes that are not cut number no cores: they come first, so that equal numberings are written alike.
    """
    order = [dim.terms[0].axis for dim in spec.output.dims if dim.terms]
    place_after = next((i for i, axis in enumerate(order) if lengths[axis] > 1), len(order) - 1)
    rest = [axis for axis in range(len(f_op)) if axis not in order]
    cut = (*order[: place_after + 1], *rest, *order[place_after + 1 :])
    return (
        *(axis for axis, parts in enumerate(f_op) if parts == 1),
        *(axis for axis in cut if f_op[axis] > 1),
    )


def fastest_axes(spec: OperatorSpec, rows: Ints, lengths: Ints) -> Ints:
    """Return the axis that numbers cores fastest in `natural_core_order`, by rows of F_op and of lengths."""
    found = np.zeros(len(rows), np.int64)
    is_long = lengths > 1
    patterns, which = np.unique(np.concatenate([rows > 1, is_long], axis=1), axis=0, return_inverse=True)
    n_axes = rows.shape[1]
    for number, pattern in enumerate(patterns.tolist()):
        cut, long = pattern[:n_axes], pattern[n_axes:]
        order = natural_core_order(spec, tuple(1 + each for each in cut), tuple(1 + each for each in long))
        found[which.reshape(-1) == number] = order[-1]
    return found


def is_tiling(spec: OperatorSpec, plan: OperatorPlan) -> bool:
    """Return whether the windows of every operand tile its sub-tensor the same number of times everywhere.

    That is so if the number of cores that hold a window does not change when the window moves by its own length.
    Outputs must also have all their replicas in one place, and dims over several axes start at whole blocks.
    """
    return all(_tiles(spec, plan, slot) for slot in range(len(spec.rotatable)))


def _tiles(spec: OperatorSpec, plan: OperatorPlan, slot: int) -> bool:
    operand = spec.rotatable[slot]
    rotating = [axis for axis, t in enumerate(plan.ft[slot]) if t > 1]
    if not rotating:
        return True
    own = sorted(operand.axes)
    windows = geometry.window_lengths(plan, slot)
    starts = geometry.window_starts(plan, slot, (0,) * len(plan.f_op))
    blocks = [axis for axis in rotating if axis not in operand.simple_axes]
    if any((starts[:, axis] % windows[axis]).any() for axis in blocks):
        return False
    sizes = tuple([plan.f_op[axis] for axis in own] + [plan.lengths[axis] for axis in rotating])
    held = np.column_stack([geometry.coordinates(plan)[:, own], starts[:, rotating]])
    keys, counts = np.unique(_number(held.T, sizes), return_counts=True)
    if slot == len(spec.inputs) and (counts != geometry.n_replicas(spec, plan, slot)).any():
        return False
    places = np.array(np.unravel_index(keys, sizes))
    for number, axis in enumerate(rotating, start=len(own)):
        moved = places.copy()
        moved[number] = (moved[number] + windows[axis]) % plan.lengths[axis]
        wanted = _number(moved, sizes)
        found = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        if ((keys[found] != wanted) | (counts[found] != counts)).any():
            return False
    return True


def _number(places: Ints, sizes: AxisSizes) -> Ints:
    """Return the row-major number of every column of `places`, shape (sizes, n)."""
    return np.asarray(np.ravel_multi_index(tuple(places), sizes), np.int64)


def _rotating(ft: tuple[AxisSizes, ...], axis: int) -> list[int]:
    """Return R_a, the rotatable operands that rotate along an axis."""
    return [slot for slot, row in enumerate(ft) if row[axis] > 1]


def _missing(spec: OperatorSpec, f_op: AxisSizes, slot: int) -> AxisSizes:
    """Return M(T) restricted to split axes: the coordinates that tell the sharers of an operand apart."""
    own = spec.rotatable[slot].axes
    return tuple(axis for axis, f in enumerate(f_op) if f > 1 and axis not in own)


def _ring_term(
    spec: OperatorSpec, f_op: AxisSizes, row: AxisSizes, slot: int, axis: int, stride: int
) -> PhaseTerm:
    """Return the digit of `axis` in the sharer number of an operand: last rotating axis varies fastest."""
    divisor = prod(row[axis + 1 :])
    return PhaseTerm(_missing(spec, f_op, slot), divisor, row[axis], stride)


def _closed_form(
    spec: OperatorSpec, f_op: AxisSizes, ft: tuple[AxisSizes, ...], pace: Pace
) -> list[tuple[PhaseTerm, ...] | None]:
    """Return the phases per axis by theorem 1 or 2, None for an axis that neither covers."""
    result: list[tuple[PhaseTerm, ...] | None] = []
    # Theorem 1 fixes the digits of a tensor on all its axes, theorem 2 those of tensors with a single one.
    for axis in range(len(f_op)):
        slots = _rotating(ft, axis)
        missing = [set(_missing(spec, f_op, slot)) for slot in slots]
        together = {a for one in missing for a in one}
        if sum(map(len, missing)) == len(together):
            length = pace.lengths[axis]
            result.append(tuple(
                _ring_term(spec, f_op, ft[slot], slot, axis, length // ft[slot][axis]) for slot in slots
            ))  # fmt: skip
        else:
            result.append(_same_missing(spec, f_op, ft, pace, axis))
    return result


def _same_missing(
    spec: OperatorSpec, f_op: AxisSizes, ft: tuple[AxisSizes, ...], pace: Pace, axis: int
) -> tuple[PhaseTerm, ...] | None:
    """Return the phase of an axis by theorem 2, None where it does not apply.

    An output must have all replicas of a window in one place, so its own factor must be the common one.
    """
    slots = _rotating(ft, axis)
    if len({_missing(spec, f_op, slot) for slot in slots}) > 1 or any(
        prod(ft[s]) != ft[s][axis] for s in slots
    ):
        return None
    modulus = lcm(*(ft[slot][axis] for slot in slots))
    output = len(spec.inputs)
    if output in slots and ft[output][axis] != modulus:
        return None
    return (PhaseTerm(_missing(spec, f_op, slots[0]), 1, modulus, pace.lengths[axis] // modulus),)


def _searched(
    spec: OperatorSpec,
    f_op: AxisSizes,
    ft: tuple[AxisSizes, ...],
    pace: Pace,
    closed: list[tuple[PhaseTerm, ...] | None],
) -> Iterator[Phases]:
    """Yield phases in which the axes without a closed form get digits of all coordinates that matter there."""
    open_axes = [axis for axis, terms in enumerate(closed) if terms is None]
    choices = {axis: list(_axis_choices(spec, f_op, ft, pace, axis)) for axis in open_axes}
    n_tries = max((len(options) for options in choices.values()), default=0)
    # Open axes are few (one as a rule): walk their choices in step, then against each other.
    for shift in range(n_tries if len(open_axes) > 1 else 1):
        for number in range(min(n_tries, MAX_TRIES)):
            phases = [terms or () for terms in closed]
            for rank, axis in enumerate(open_axes):
                options = choices[axis]
                phases[axis] = options[(number + shift * rank) % len(options)]
            yield tuple(phases)


def _axis_choices(
    spec: OperatorSpec, f_op: AxisSizes, ft: tuple[AxisSizes, ...], pace: Pace, axis: int
) -> Iterator[tuple[PhaseTerm, ...]]:
    """Yield phases of one axis: a digit of the union of coordinates, or one digit per tensor over separate ones."""
    slots = _rotating(ft, axis)
    length = pace.lengths[axis]
    union = sorted({a for slot in slots for a in _missing(spec, f_op, slot)})
    modulus = lcm(*(ft[slot][axis] for slot in slots))
    for order in permutations(union):
        divisor = 1
        for place in (None, *reversed(order)):
            divisor *= 1 if place is None else f_op[place]
            yield (PhaseTerm(order, divisor, modulus, length // modulus),)
    # From the tensor with the fewest sharers: its digit first, then what it lacks to the next one's.
    ordered = sorted(slots, key=lambda slot: (len(_missing(spec, f_op, slot)), slot))
    for order in permutations(union):
        terms: list[PhaseTerm] = []
        used: set[int] = set()
        stride = length
        for slot in ordered:
            row = ft[slot]
            fresh = tuple(a for a in order if a in _missing(spec, f_op, slot) and a not in used)
            window = length // row[axis]
            factor = stride // window if stride % window == 0 else row[axis]
            used |= set(fresh)
            if factor > 1 and fresh:
                terms.append(PhaseTerm(fresh, prod(row[axis + 1 :]), factor, window))
                stride = window
        yield tuple(terms)
