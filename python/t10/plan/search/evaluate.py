"""Bytes and cycles of many candidate partitions of one operator at once, as numpy arrays.

One row per candidate. The numbers equal the closed forms of `t10.cost.operator` for each of them, except `relayout`,
which is an estimate: what activations would cost to fetch from anywhere (the layouts around are not known yet).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from t10.core.arrays import Bools, Ints
from t10.core.dtypes import size_bytes
from t10.core.expression import Operand, OperatorSpec
from t10.core.geometry import chunk_slots_many
from t10.core.runs import epilogue_run_axes
from t10.core.tile import ALIGNMENT_BYTES
from t10.cost import CostModel
from t10.plan.movement.fetch import contiguous_runs, fetch_cycles

Mask = Bools


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Arrays over candidates: cycles by kind and bytes per core; `cycles` is the sum of all kinds."""

    compute: Ints
    shift: Ints
    reduce: Ints
    relayout: Ints
    weight_bytes: Ints
    active_bytes: Ints

    @property
    def cycles(self) -> Ints:
        """Return the elapsed cycles of every candidate."""
        return self.compute + self.shift + self.reduce + self.relayout


def aligned(n_bytes: Ints) -> Ints:
    """Return sizes rounded up to the alignment of buffers."""
    return -(-n_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def padded_lengths(spec: OperatorSpec, f_op: Ints, ft: Ints) -> Ints:
    """Return L_a per candidate, shape (n, axes): ceil(N / F) rounded up to a multiple of every ft on the axis."""
    lengths = -(-np.array(spec.extents) // f_op)
    multiple = np.lcm.reduce(ft, axis=1)
    return -(-lengths // multiple) * multiple


def partition_elements(operand: Operand, windows: Ints) -> Ints:
    """Return the elements of an operand's partition per candidate; `windows` are its w_a, shape (n, axes)."""
    total = np.ones(len(windows), np.int64)
    for dim in operand.dims:
        extent = np.ones(len(windows), np.int64)
        for term in dim.terms:
            extent = extent + term.coefficient * (windows[:, term.axis] - 1)
        total = total * extent
    return total


def evaluate(
    spec: OperatorSpec, cost: CostModel, f_op: Ints, ft: Ints, is_whole: Mask | None = None
) -> Evaluation:
    """Return bytes and cycles of candidates: `f_op` (n, axes), `ft` (n, rotatable operands, axes).

    `is_whole` (n,) are those whose partial sums are combined on every core that has some (`reduce` of a plan is all).
    """
    lengths = padded_lengths(spec, f_op, ft)
    steps = ft.max(axis=1)
    pace = lengths // steps
    advance = np.zeros_like(lengths)
    weight_bytes = np.zeros(len(f_op), np.int64)
    active_bytes = np.zeros(len(f_op), np.int64)
    relayout = np.zeros(len(f_op), np.int64)
    for slot, operand in enumerate(spec.rotatable):
        is_output = slot == len(spec.inputs)
        size = size_bytes(spec.acc_dtype if is_output else operand.dtype)
        windows = lengths // ft[:, slot]
        n_elements = partition_elements(operand, windows)
        simple = operand.simple_axes
        for axis in operand.axes:
            moved = n_elements // windows[:, axis] * pace[:, axis] if axis in simple else n_elements
            advance[:, axis] += np.where(ft[:, slot, axis] > 1, moved * size, 0)
        if is_output:
            continue
        n_bytes = aligned(n_elements * size)
        active_bytes += n_bytes
        if operand.role == "weight":
            weight_bytes += n_bytes
        else:
            relayout += fetch_cycles(cost, n_elements * size, contiguous_runs(operand, windows))
    out_windows = lengths // ft[:, -1]
    for operand in spec.epilogue_inputs:
        n_bytes = partition_elements(operand, out_windows) * size_bytes(operand.dtype)
        active_bytes += aligned(n_bytes)
        if operand.role == "weight":
            weight_bytes += aligned(n_bytes)
        else:
            relayout += fetch_cycles(cost, n_bytes, contiguous_runs(operand, out_windows))
    reduced = [a for a in range(len(spec.axes)) if a not in spec.output.axes]
    members = f_op[:, reduced].prod(axis=1) // ft[:, -1].prod(axis=1)
    n_out = partition_elements(spec.output, out_windows)
    chunk = chunk_slots_many(n_out, members)
    reduce = cost.reduce_cycles_many(spec, members, chunk * size_bytes(spec.acc_dtype), chunk)
    if is_whole is not None and is_whole.any():
        reduce = np.where(is_whole, cost.all_reduce_cycles_many(spec, members, n_out), reduce)
        chunk = np.where(is_whole, n_out, chunk)
    active_bytes += result_bytes(spec, n_out, chunk, members)
    runs = np.minimum(out_windows[:, list(epilogue_run_axes(spec))].prod(axis=1), chunk)
    epilogue = cost.epilogue_cycles_many(spec, chunk, runs)
    compute, shift = _nests(spec, cost, steps, np.where(steps > 1, pace, lengths), advance)
    return Evaluation(
        compute=compute + epilogue,
        shift=shift,
        reduce=reduce,
        relayout=relayout,
        weight_bytes=weight_bytes,
        active_bytes=active_bytes,
    )


def _nests(spec: OperatorSpec, cost: CostModel, steps: Ints, boxes: Ints, advance: Ints) -> tuple[Ints, Ints]:
    """Return the cycles of all sub-tasks and of all shifts; steps, boxes and bytes that move by axis, (n, axes)."""
    compute = steps.prod(axis=1) * cost.sub_task_cycles_many(spec, boxes)
    return compute, nest_shift_cycles(steps, cost.shift_cycles_many(advance))


def nest_shift_cycles(steps: Ints, advance_cycles: Ints) -> Ints:
    """Return the cycles of all shifts of every nest; steps, and cycles of one advance, by axis, (n, axes).

    The axis whose advance takes longest is outermost: no order of loops takes less (compute-shift model, theorem 3).
    """
    order = np.argsort(-advance_cycles, axis=1, kind="stable")
    total, sweeps = (np.full(len(steps), n, np.int64) for n in (0, 1))
    for axis in order.T:
        n_steps, cycles = (
            np.take_along_axis(each, axis[:, None], 1)[:, 0] for each in (steps, advance_cycles)
        )
        total += cycles * (n_steps - 1) * sweeps
        sweeps *= n_steps
    return total


def result_bytes(spec: OperatorSpec, n_out: Ints, chunk: Ints, members: Ints) -> Ints:
    """Return the bytes per core of the accumulator and, where it is not the result itself, of the result.

    `n_out` elements are accumulated; sums of several `members` end as `chunk` elements on each of them.
    """
    accumulator = aligned(n_out * size_bytes(spec.acc_dtype))
    value = aligned(chunk * size_bytes(spec.output.dtype))
    if spec.acc_dtype != spec.output.dtype:
        return accumulator + value
    return accumulator + np.where(members > 1, value, 0)
