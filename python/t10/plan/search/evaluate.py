"""Bytes and cycles of many candidate partitions of one operator at once, as numpy arrays.

One row per candidate. The numbers equal the closed forms of `t10.cost.operator` for each of them, except `relayout`,
which is an estimate: what activations would cost to fetch from anywhere (the layouts around are not known yet).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from t10.core.arrays import Bools, Ints
from t10.core.costs import (
    WindowCosts,
    crossing_cycles,
    end_cycles,
    links_of,
    nest_cycles,
    overlaps,
    plan_end_cycles,
    rotating_fill_cycles,
    sees_fused,
    sees_parts,
    sees_shifts,
    sees_windows,
    takes_first,
    whole_cycles,
)
from t10.core.dtypes import size_bytes
from t10.core.epilogue_nest import epilogue_axes
from t10.core.expression import AxisSizes, Operand, OperatorSpec
from t10.core.first_partial import begun, may_begin_many
from t10.core.geometry import partition_elements, window_chunk_many, window_lengths
from t10.core.links import Links
from t10.core.part_lengths import whole_lengths
from t10.core.plan import OperatorPlan
from t10.core.products import zero_addable_axes
from t10.core.runs import epilogue_run_axes
from t10.core.tile import ALIGNMENT_BYTES
from t10.cost import CostModel
from t10.cost.operator import output_chunk
from t10.plan.movement.fetch import contiguous_runs, fetch_cycles
from t10.plan.search.alignment import align_pace
from t10.plan.search.laid_out import laid_out
from t10.plan.search.placement import place

Mask = Bools
KEPT_PLANS = 8192


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
    lengths = whole_lengths(spec, f_op)
    multiple = np.lcm.reduce(ft, axis=1)
    return -(-lengths // multiple) * multiple


def evaluate(
    spec: OperatorSpec,
    cost: CostModel,
    f_op: Ints,
    ft: Ints,
    is_whole: Mask | None = None,
    plans: Sequence[OperatorPlan] | None = None,
) -> Evaluation:
    """Return bytes and cycles of candidates: `f_op` (n, axes), `ft` (n, rotatable operands, axes).

    `is_whole` (n,) are those whose partial sums are combined on every core that has some (`reduce` of a plan is all).
    What shifts take may depend on where cores begin: candidates are priced as they are placed, or as `plans` are.
    Only plans may have other lengths than their partition asks for.
    """
    lengths, steps = padded_lengths(spec, f_op, ft), ft.max(axis=1)
    if plans:
        lengths = np.array([plan.lengths for plan in plans], np.int64)
    pace = lengths // steps
    windows = lengths[:, None] // ft
    advance = advance_bytes_many(spec, windows, ft, pace).sum(axis=2)
    weight_bytes, active_bytes, relayout = np.zeros((3, len(f_op)), np.int64)
    for slot, operand in enumerate(spec.inputs):
        size = size_bytes(operand.dtype)
        n_elements = partition_elements(operand, windows[:, slot])
        n_bytes = aligned(n_elements * size)
        active_bytes += n_bytes
        if overlaps(cost):
            active_bytes += np.where(ft[:, slot].prod(axis=1) > 1, n_bytes, 0)
        if operand.role == "weight":
            weight_bytes += n_bytes
        else:
            relayout += fetch_cycles(cost, n_elements * size, contiguous_runs(operand, windows[:, slot]))
    out_windows = lengths // ft[:, -1]
    for operand in spec.epilogue_inputs:
        n_bytes = partition_elements(operand, out_windows) * size_bytes(operand.dtype)
        active_bytes += aligned(n_bytes)
        if operand.role == "weight":
            weight_bytes += aligned(n_bytes)
        else:
            relayout += fetch_cycles(cost, n_bytes, contiguous_runs(operand, out_windows))
    members = _members(spec, f_op, ft)
    n_out = partition_elements(spec.output, out_windows)
    chunk = window_chunk_many(n_out, members)
    reduce = cost.reduce_cycles_many(spec, members, n_out)
    if is_whole is not None and is_whole.any():
        reduce = np.where(is_whole, cost.all_reduce_cycles_many(spec, members, n_out), reduce)
        chunk = np.where(is_whole, n_out, chunk)
    reduce -= _fused(spec, cost, out_windows, members, is_whole)
    active_bytes += result_bytes(spec, n_out, chunk, members)
    compute = compute_cycles(spec, cost, lengths, ft, members, is_whole)
    shift = _shifts_by_bytes(spec, cost, lengths, ft, advance)
    return Evaluation(
        compute=compute + _cuts(spec, cost, f_op, ft, plans) + _seams(spec, cost, f_op, ft, is_whole, plans),
        shift=_shifts(spec, cost, f_op, ft, shift, plans),
        reduce=reduce + _crossings(spec, cost, f_op, ft, members, is_whole, plans),
        relayout=relayout,
        weight_bytes=weight_bytes,
        active_bytes=active_bytes,
    )


def _moved(operand: Operand, windows: Ints, pace: Ints) -> Ints:
    """Return the elements that a core takes when its window advances along each axis, shape (n, axes)."""
    n_elements = partition_elements(operand, windows)
    moved = np.zeros_like(windows)
    for axis in operand.axes:
        is_simple = axis in operand.simple_axes
        moved[:, axis] = n_elements // windows[:, axis] * pace[:, axis] if is_simple else n_elements
    return moved


def advance_bytes_many(spec: OperatorSpec, windows: Ints, ft: Ints, paces: Ints) -> Ints:
    """Return what a core passes on when an axis advances, (n, axes, rotatable operands); see `evaluate`."""
    result = np.zeros((*paces.shape, len(spec.rotatable)), np.int64)
    for slot, operand in enumerate(spec.rotatable):
        is_output = slot == len(spec.inputs)
        size = size_bytes(spec.acc_dtype if is_output else operand.dtype)
        moved = _moved(operand, windows[:, slot], paces) * size
        result[:, :, slot] = np.where(ft[:, slot] > 1, moved, 0)
    return result


def _members(spec: OperatorSpec, f_op: Ints, ft: Ints) -> Ints:
    """Return how many cores have partial sums of the same outputs, shape (n,)."""
    reduced = [a for a in range(len(spec.axes)) if a not in spec.output.axes]
    members: Ints = f_op[:, reduced].prod(axis=1) // ft[:, -1].prod(axis=1)
    return members


def compute_cycles(
    spec: OperatorSpec, cost: CostModel, lengths: Ints, ft: Ints, members: Ints, is_whole: Mask | None = None
) -> Ints:
    """Return the cycles of all steps of every nest and of what ends it; see `evaluate`.

    Lengths (n, axes) of parts; `members` (n,) cores have sums of the same elements.
    """
    steps, out_windows = ft.max(axis=1), lengths // ft[:, -1]
    if sees_windows(cost):
        total = np.zeros(len(lengths), np.int64)
        begins = _begins_with_bias(spec, cost, steps, lengths, members)
        for rows, each in ((np.flatnonzero(~begins), spec), (np.flatnonzero(begins), begun(spec))):
            all_or_own = is_whole if is_whole is None else is_whole[rows]
            total[rows] = _steps(each, cost, steps[rows], lengths[rows], ft[rows])
            total[rows] += _ends(each, cost, out_windows[rows], members[rows], all_or_own)
        return total
    n_out = partition_elements(spec.output, out_windows)
    chunk = window_chunk_many(n_out, members)
    chunk = chunk if is_whole is None else np.where(is_whole, n_out, chunk)
    compute = steps.prod(axis=1) * cost.sub_task_cycles_many(spec, _boxes(lengths, steps))
    return compute + _epilogues(spec, cost, out_windows, chunk)


def _begins_with_bias(
    spec: OperatorSpec, cost: WindowCosts, steps: Ints, lengths: Ints, members: Ints
) -> Bools:
    """Return under which candidates sums begin with a bias; see `t10.core.costs.computed`."""
    found = np.zeros(len(steps), np.bool_)
    if takes_first(cost, spec):
        rows = np.flatnonzero((steps.prod(axis=1) == 1) & (members == 1))
        found[rows] = may_begin_many(spec, lengths[rows])
    return found


def _boxes(lengths: Ints, steps: Ints) -> Ints:
    """Return the extents of one compute step of every nest, (n, axes): the pace where it rotates, else all."""
    return np.where(steps > 1, lengths // steps, lengths)


def n_that_begin(spec: OperatorSpec, ft: Ints) -> Ints:
    """Return how many steps of every nest combine with nothing, (n,); 0 where accumulators rotate, and are filled."""
    steps = ft.max(axis=1)
    if spec.combine == "none":
        return steps.prod(axis=1)
    begins = steps[:, sorted(spec.output.axes)].prod(axis=1)
    return np.where(ft[:, -1].prod(axis=1) > 1, 0, begins)


def _steps(spec: OperatorSpec, cost: WindowCosts, steps: Ints, lengths: Ints, ft: Ints) -> Ints:
    """Return the cycles of all steps of every nest, and of filling accumulators that rotate.

    Elsewhere the first step that touches an output begins, and the others combine with it.
    """
    windows, boxes = lengths[:, None, :] // ft, _boxes(lengths, steps)
    n_begin, n_steps = n_that_begin(spec, ft), steps.prod(axis=1)
    total = np.zeros_like(n_steps)
    if spec.combine != "none":
        rows = np.flatnonzero(n_begin == 0)
        total[rows] = cost.fill_cycles_many(spec, partition_elements(spec.output, windows[rows, -1]))
    for n_each, adds in ((n_begin, False), (n_steps - n_begin, True)):
        rows = np.flatnonzero(n_each)
        cycles = cost.step_cycles_many(spec, boxes[rows], windows[rows], np.full(len(rows), adds))
        total[rows] += n_each[rows] * cycles
    return total


def _cuts(
    spec: OperatorSpec, cost: CostModel, f_op: Ints, ft: Ints, plans: Sequence[OperatorPlan] | None
) -> Ints:
    """Return what steps take beyond whole boxes where those run in parts, and filling where none begins."""
    total = np.zeros(len(f_op), np.int64)
    if not sees_parts(cost):
        return total
    for row in np.flatnonzero(runs_in_parts(spec, f_op, ft)).tolist():
        plan = (
            plans[row]
            if plans
            else placed_plan(spec, tuple(f_op[row].tolist()), _rows(ft[row]), links_of(cost))
        )
        if plan is not None:
            boxes = whole_cycles(cost, spec, plan) + rotating_fill_cycles(cost, spec, plan)
            total[row] = nest_cycles(cost, spec, plan) - boxes
    return total


def _seams(
    spec: OperatorSpec,
    cost: CostModel,
    f_op: Ints,
    ft: Ints,
    is_whole: Mask | None,
    plans: Sequence[OperatorPlan] | None,
) -> Ints:
    """Return what epilogues take beyond those over whole windows where they are cut as windows wrap."""
    total = np.zeros(len(f_op), np.int64)
    if not sees_parts(cost) or not epilogue_axes(spec):
        return total
    for row in np.flatnonzero((ft[:, -1, sorted(epilogue_axes(spec))] > 1).any(axis=1)).tolist():
        plan = (
            plans[row]
            if plans
            else placed_plan(spec, tuple(f_op[row].tolist()), _rows(ft[row]), links_of(cost))
        )
        if plan is not None:
            is_all = is_whole is not None and bool(is_whole[row]) and plan.reduce != "none"
            plan = replace(plan, reduce="all") if is_all else plan
            n_members, n_slots = output_chunk(spec, plan)
            windows = window_lengths(plan, len(spec.inputs))
            asked = -n_members if plan.reduce == "all" else n_members, n_slots
            total[row] = plan_end_cycles(cost, spec, plan, *asked) - end_cycles(cost, spec, windows, *asked)
    return total


def runs_in_parts(spec: OperatorSpec, f_op: Ints, ft: Ints) -> Bools:
    """Return of which candidates some step may be no whole box, nor the same rest of one on every last core.

    Boxes cross the ends of windows, lie in padding as a whole, or some are cut off by it while others rotate past.
    """
    lengths, steps = padded_lengths(spec, f_op, ft), ft.max(axis=1)
    extents, boxes = np.array(spec.extents), _boxes(lengths, steps)
    padding = f_op * lengths - extents
    zeros = zero_addable_axes(spec)
    is_left_out = np.array(
        [axis in spec.reduction_axes and axis not in zeros for axis in range(len(extents))]
    )
    is_short = (padding > 0) & is_left_out & ((padding >= boxes) | (steps > 1))
    return is_cut_by(spec, ft) | is_short.any(axis=1)


def is_cut_by(spec: OperatorSpec, ft: Ints) -> Bools:
    """Return which factors (n, rotatable operands, axes) have windows longer than steps and no multiple of them."""
    has = np.array([[axis in o.axes for axis in range(ft.shape[2])] for o in spec.rotatable], np.bool_)
    return ((ft.max(axis=1)[:, None] % ft != 0) & has).any(axis=(1, 2))


def _epilogues(spec: OperatorSpec, cost: CostModel, windows: Ints, n_slots: Ints) -> Ints:
    """Return the cycles of epilogues on so many elements of windows (n, axes) of the output, by their runs."""
    runs = np.minimum(windows[:, list(epilogue_run_axes(spec))].prod(axis=1), n_slots)
    return cost.epilogue_cycles_many(spec, n_slots, runs)


def _ends(spec: OperatorSpec, cost: WindowCosts, windows: Ints, members: Ints, is_whole: Mask | None) -> Ints:
    """Return the cycles in which accumulators become results: windows (n, axes) of the output, by core."""
    total = np.zeros(len(windows), np.int64)
    is_needed = spec.epilogue is not None or spec.acc_dtype != spec.output.dtype
    rows = np.flatnonzero(is_needed | (members > 1))
    n_members = _signed(members, is_whole)
    total[rows] = cost.end_cycles_many(spec, windows[rows], n_members[rows])
    return total


def _fused(spec: OperatorSpec, cost: CostModel, windows: Ints, members: Ints, is_whole: Mask | None) -> Ints:
    """Return the cycles that reductions take less because ends have their last additions."""
    if not sees_fused(cost):
        return np.zeros_like(members)
    return cost.fused_cycles_many(spec, windows, _signed(members, is_whole))


def _signed(members: Ints, is_whole: Mask | None) -> Ints:
    """Return members as `t10.core.costs.WindowCosts` ask for them: negative where each ends with all."""
    return members if is_whole is None else np.where(is_whole & (members > 1), -members, members)


def _shifts_by_bytes(spec: OperatorSpec, cost: CostModel, lengths: Ints, ft: Ints, advance: Ints) -> Ints:
    """Return the cycles of all shifts of every nest, as far as bytes and steps say."""
    steps, cycles = ft.max(axis=1), cost.shift_cycles_many(advance)
    if overlaps(cost):
        cycles = unhidden_cycles(cycles, ft, cost.sub_task_cycles_many(spec, _boxes(lengths, steps)))
    return nest_shift_cycles(steps, cycles)


def _shifts(
    spec: OperatorSpec,
    cost: CostModel,
    f_op: Ints,
    ft: Ints,
    least: Ints,
    plans: Sequence[OperatorPlan] | None,
) -> Ints:
    """Return the cycles of all shifts of every nest, which are no fewer than `least`."""
    if not sees_shifts(cost):
        return least
    cycles = least.copy()
    for row in np.flatnonzero((ft > 1).any(axis=(1, 2))).tolist():
        plan = (
            plans[row]
            if plans
            else placed_plan(spec, tuple(f_op[row].tolist()), _rows(ft[row]), links_of(cost))
        )
        if plan is not None:
            cycles[row] = cost.nest_shift_cycles(spec, plan)
    return cycles


def _crossings(
    spec: OperatorSpec,
    cost: CostModel,
    f_op: Ints,
    ft: Ints,
    members: Ints,
    is_whole: Mask | None,
    plans: Sequence[OperatorPlan] | None,
) -> Ints:
    """Return what combining partial sums takes because parts pass links between groups of cores."""
    cycles = np.zeros(len(f_op), np.int64)
    links = links_of(cost)
    if links is None:
        return cycles
    for row in np.flatnonzero((members > 1) & (f_op.prod(axis=1) > links.least_cores)).tolist():
        plan = plans[row] if plans else placed_plan(spec, tuple(f_op[row].tolist()), _rows(ft[row]), links)
        if plan is not None:
            is_all = is_whole is not None and bool(is_whole[row])
            cycles[row] = crossing_cycles(cost, spec, replace(plan, reduce="all") if is_all else plan)
    return cycles


def _rows(ft: Ints) -> tuple[AxisSizes, ...]:
    return tuple(tuple(row) for row in ft.tolist())


@lru_cache(maxsize=KEPT_PLANS)
def placed_plan(
    spec: OperatorSpec, f_op: AxisSizes, ft: tuple[AxisSizes, ...], links: Links | None = None
) -> OperatorPlan | None:
    """Return the plan of a partition, None where no placement is found; cores lie as links are least busy."""
    plan = place(spec, f_op, ft, align_pace(spec, f_op, ft))
    return plan if plan is None or links is None else laid_out(links, spec, plan)


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


def unhidden_cycles(advance_cycles: Ints, ft: Ints, step: Ints) -> Ints:
    """Return what of an advance along each axis (n, axes) a step (n,) does not hide that is made beside it."""
    return np.where(ft[:, -1] > 1, advance_cycles, np.maximum(advance_cycles - step[:, None], 0))


def result_bytes(spec: OperatorSpec, n_out: Ints, chunk: Ints, members: Ints) -> Ints:
    """Return the bytes per core of the accumulator and, where it is not the result itself, of the result.

    `n_out` elements are accumulated; sums of several `members` end as `chunk` elements on each of them.
    """
    accumulator = aligned(n_out * size_bytes(spec.acc_dtype))
    value = aligned(chunk * size_bytes(spec.output.dtype))
    if spec.acc_dtype != spec.output.dtype:
        return accumulator + value
    return accumulator + np.where(members > 1, value, 0)
