"""Where cores and windows lie, worked out from the definitions alone (compute-shift model §2-§4).

Nothing here uses `t10.core.geometry`: a checker that shared its arithmetic would share its mistakes. Arrays over
cores have the core number first.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from t10.core.arrays import Ints
from t10.core.expression import AffineDim, AxisSizes, Operand, OperatorSpec
from t10.core.plan import OperatorPlan


@dataclass(frozen=True, slots=True)
class HeldDim:
    """The global index in every slot along one dim: core c has row `row_of_core[c]` of `rows` (rows, slots)."""

    rows: Ints
    row_of_core: Ints

    @property
    def full(self) -> Ints:
        """Return the indices with one row per core, shape (cores, slots)."""
        return self.rows[self.row_of_core]

    @property
    def n_slots(self) -> int:
        """Return the slots along the dim."""
        return self.rows.shape[1]


Held = tuple[HeldDim, ...]
"""What the cores hold of an operand, per dim."""


@dataclass(frozen=True, slots=True)
class Window:
    """What part of an operand the cores hold: per axis the `width`, and per core where it `start`s, in [0, L)."""

    operand: Operand
    widths: AxisSizes
    starts: Ints
    is_rotating: tuple[bool, ...]


def core_coordinates(plan: OperatorPlan) -> Ints:
    """Return the coordinates of every core, shape (cores, axes): the digits of its number, last axis fastest."""
    rest = np.arange(prod(plan.f_op), dtype=np.int64)
    where = np.zeros((len(rest), len(plan.f_op)), np.int64)
    for axis in reversed(plan.core_order):
        rest, where[:, axis] = np.divmod(rest, plan.f_op[axis])
    return where


def core_phases(plan: OperatorPlan) -> Ints:
    """Return where every core starts along every axis, shape (cores, axes), in [0, L_a)."""
    where = core_coordinates(plan)
    result = np.zeros_like(where)
    for axis, terms in enumerate(plan.phases):
        for term in terms:
            weights = [
                prod(plan.f_op[a] for a in term.sharer_axes[i + 1 :]) for i in range(len(term.sharer_axes))
            ]
            number = sum(
                (where[:, a] * weight for a, weight in zip(term.sharer_axes, weights, strict=True)),
                start=np.zeros(len(where), np.int64),
            )
            digit = number // term.divisor % term.modulus
            if term.is_folded:
                # Even digits lie on the way there, odd ones on the way back.
                there = [*range(0, term.modulus, 2), *reversed(range(1, term.modulus, 2))]
                digit = np.argsort(there)[digit]
            result[:, axis] += digit * term.stride
    return result % np.array(plan.lengths, np.int64)


def last_positions(plan: OperatorPlan) -> AxisSizes:
    """Return the positions after the nest: an axis ends on its far side if it is swept an odd number of times."""
    result = [0] * len(plan.f_op)
    for depth, axis in enumerate(plan.loop_order):
        n_sweeps = prod(plan.steps[outer] for outer in plan.loop_order[:depth])
        if n_sweeps % 2:
            result[axis] = plan.steps[axis] - 1
    return tuple(result)


def window_at(operand: Operand, ft_row: AxisSizes, plan: OperatorPlan, positions: AxisSizes) -> Window:
    """Return the windows of an operand at a state of the nest; along axes with t = 1 a core holds all of [0, L)."""
    moved = (core_phases(plan) + np.array(positions) * np.array(plan.rp)) % np.array(plan.lengths)
    rotates = tuple(t > 1 and axis in operand.axes for axis, t in enumerate(ft_row))
    return Window(
        operand,
        tuple(length // t for length, t in zip(plan.lengths, ft_row, strict=True)),
        np.where(np.array(rotates, np.bool_), moved, 0),
        rotates,
    )


def numbered_window(spec: OperatorSpec, plan: OperatorPlan, number: int) -> Window:
    """Return the windows of operand `number` of a layout: inputs before the first step, the others after the last.

    Epilogue inputs (after the inputs) lie under the output's factors, and `len(operands)` is the output.
    """
    n_inputs = len(spec.inputs)
    if number < n_inputs:
        return window_at(spec.inputs[number], plan.ft[number], plan, (0,) * len(plan.f_op))
    operand = spec.output if number == len(spec.operands) else spec.operands[number]
    return window_at(operand, plan.ft[n_inputs], plan, last_positions(plan))


def slots_along(dim: AffineDim, widths: AxisSizes) -> int:
    """Return how many slots a dim takes for windows of the given widths, halo included."""
    reach = 1
    for term in dim.terms:
        reach += term.coefficient * (widths[term.axis] - 1)
    return reach


def held_indices(window: Window, plan: OperatorPlan) -> Held:
    """Return what the slots of a window hold: circular in simple dims, one run with its halo in the others."""
    where = core_coordinates(plan)
    result: list[HeldDim] = []
    for dim in window.operand.dims:
        # Cores that agree in what this dim depends on share a row: an uncut dim is stored once.
        own = list(dim.axes)
        distinct, _, row_of_core = distinct_rows(np.hstack([where[:, own], window.starts[:, own]]))
        parts, starts = distinct[:, : len(own)], distinct[:, len(own) :]
        result.append(HeldDim(_dim_rows(dim, window.widths, plan, parts, starts), row_of_core))
    return tuple(result)


def distinct_rows(table: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the different rows of a table of numbers >= 0, where each stands first, and which one every row is."""
    radices = table.max(axis=0, initial=0) + 1
    if prod(radices.tolist()) > np.iinfo(np.int64).max:
        rows, first, number = np.unique(table, axis=0, return_index=True, return_inverse=True)
        return rows, first, number.reshape(-1)
    keys = np.zeros(len(table), np.int64)
    for column, radix in zip(table.T, radices, strict=True):
        keys = keys * radix + column
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    return table[first], first, number


def _dim_rows(dim: AffineDim, widths: AxisSizes, plan: OperatorPlan, parts: Ints, starts: Ints) -> Ints:
    """Return the indices held along a dim, one row per row of `parts` and `starts` (rows, axes of the dim)."""
    if dim.is_simple:
        axis = dim.terms[0].axis
        length, width = plan.lengths[axis], widths[axis]
        local = (starts + np.arange(width)) % length
        slots = np.empty_like(local)
        np.put_along_axis(slots, local % width, local, axis=1)
        return parts * length + slots
    first = np.full((len(parts), 1), dim.offset, np.int64)
    for i, term in enumerate(dim.terms):
        first[:, 0] += term.coefficient * (parts[:, i] * plan.lengths[term.axis] + starts[:, i])
    return first + np.arange(slots_along(dim, widths))


def window_keys(window: Window, plan: OperatorPlan) -> list[tuple[int, ...]]:
    """Return one key per core, equal exactly for cores that hold the same window of the same sub-tensor."""
    where = core_coordinates(plan)
    own = sorted(window.operand.axes)
    return [tuple(row) for row in np.hstack([where[:, own], window.starts[:, own]]).tolist()]


def ranks_of(keys: list[tuple[int, ...]]) -> list[int]:
    """Return for every core how many cores with a smaller number have the same key."""
    seen: dict[tuple[int, ...], int] = {}
    result: list[int] = []
    for key in keys:
        result.append(seen.get(key, 0))
        seen[key] = result[-1] + 1
    return result


def sharers_of(operand: Operand, plan: OperatorPlan) -> int:
    """Return P_T, the number of cores that need the same sub-tensor."""
    return prod(f for axis, f in enumerate(plan.f_op) if axis not in operand.axes)


def output_replicas(spec: OperatorSpec, plan: OperatorPlan) -> int:
    """Return r, the number of cores that end with partial sums of the same part of the output."""
    return sharers_of(spec.output, plan) // prod(plan.ft[len(spec.inputs)])


def output_chunks(spec: OperatorSpec, plan: OperatorPlan) -> int:
    """Return in how many chunks the result's part is divided over the cores that had partial sums of it."""
    return 1 if plan.reduce == "all" else output_replicas(spec, plan)
