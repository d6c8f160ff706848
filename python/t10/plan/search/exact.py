"""Exact prices of single plans, for a search that goes by lower bounds: asked part by part, as long as it matters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from math import prod
from typing import Literal

import numpy as np

from t10.core.arrays import Bools, Floats, Ints
from t10.core.chunks import window_chunk
from t10.core.costs import (
    box_cycles,
    crossing_cycles,
    end_cycles,
    fused_cycles,
    links_of,
    nest_cycles,
    overlaps,
    part_cycles,
    plan_end_cycles,
    sees_parts,
    sees_shifts,
    takes_first,
    window_fill_cycles,
)
from t10.core.epilogue_nest import wraps
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.first_partial import begun, may_begin
from t10.core.geometry import partition_shape
from t10.core.lengths import lengths_of
from t10.core.plan import OperatorPlan
from t10.core.products import zero_addable_axes
from t10.cost import CostModel, advance_bytes
from t10.cost._batch_function import BatchFunction
from t10.cost.model import LyingCosts, least_costs
from t10.plan.search.evaluate import (
    advance_bytes_many,
    n_that_begin,
    nest_shift_cycles,
    padded_lengths,
    placed_plan,
    runs_in_parts,
    unhidden_cycles,
)
from t10.plan.search.listed import FtRows
from t10.plan.search.part_bound import least_part_cycles, least_part_cycles_of

Part = (
    tuple[Literal["begin", "add"], AxisSizes, tuple[AxisSizes, ...]]
    | tuple[Literal["fill"], AxisSizes]
    | tuple[Literal["begun", "begun_rest"], AxisSizes, tuple[AxisSizes, ...]]
    | tuple[Literal["rest"], AxisSizes, int]
    | tuple[Literal["nest", "cut_rest"], AxisSizes, FtRows]
)
"""A step over a box of windows; accumulators filled, over windows; one step that begins with a bias, and the epilogue
that it leaves; reduction and epilogue among so many members;
all steps of a plan, which run in parts; reduction and epilogue of a plan, cut where windows wrap."""
RESTS = ("rest", "cut_rest", "begun_rest")
Chunk = tuple[int, int]
"""So many members, and the elements of each."""


@dataclass(frozen=True, slots=True)
class ExactPrices:
    """The prices of one operator's plans under a cost model whose answers are slow: nothing is asked twice.

    They equal those of `t10.plan.search.evaluate`. `bound` is what a compute step takes at least, by its box, where
    that is known.
    """

    spec: OperatorSpec
    cost: CostModel
    bound: BatchFunction | None = None
    known: dict[Part, int] = field(default_factory=dict[Part, int])
    reductions: dict[Chunk, int] = field(default_factory=dict[Chunk, int])
    least: dict[tuple[AxisSizes, FtRows], float] = field(
        default_factory=dict[tuple[AxisSizes, FtRows], float]
    )
    steps: dict[tuple[AxisSizes, FtRows], tuple[float, float]] = field(
        default_factory=dict[tuple[AxisSizes, FtRows], tuple[float, float]]
    )
    """By plan, the least of a step that begins and of one that adds, where their windows lie."""
    in_parts: dict[tuple[AxisSizes, FtRows], bool] = field(
        default_factory=dict[tuple[AxisSizes, FtRows], bool]
    )
    counts_parts: list[bool] = field(default_factory=list[bool])
    """Whether steps in parts are priced by them, once asked: that goes by types and functions, not by extents."""

    def price(
        self, f_op: AxisSizes, ft: FtRows, least_step: float, least_rest: float, waits: float, most: float
    ) -> float:
        """Return the cycles of a plan but for fetches and the least its shifts take, or a lower bound above `most`.

        A step takes at least `least_step`, what follows the steps at least `least_rest`, shifts `waits` beyond their
        least. They come last: they ask where cores begin.
        """
        # What steps hide depends on them: then shifts are priced when steps are known.
        waits = 0.0 if overlaps(self.cost) else waits
        total = waits
        unknown: list[tuple[int, float, Part]] = []
        begins, adds = self.steps.get((f_op, ft), (least_step, least_step))
        least_of = dict.fromkeys(RESTS, least_rest) | {"fill": 0.0, "begin": begins, "add": adds}
        for n, part in self._parts(f_op, ft):
            least = least_of.get(part[0], least_step)
            if part[0] == "nest":
                least *= prod(map(max, zip(*ft, strict=True)))
            cycles = self.known.get(part)
            total += n * (least if cycles is None else cycles)
            if cycles is None:
                unknown.append((n, least, part))
        for n, least, part in unknown:
            if part[0] == "nest" and total <= most:
                closer = max(least, self._least_parts(f_op, ft))
                least, total = closer, total + closer - least
            if total > most:
                break
            cycles = self.known[part] = self._cycles(part)
            total += n * (cycles - least)
        if total <= most:
            total += self._crossing(f_op, ft)
        if total > most:
            return total
        total -= waits
        return total + self._waiting(f_op, ft, most - total)

    def bounds(self, f_op: Ints, ft: Ints) -> Floats:
        """Return what plans take at least, (n, 2): all steps where their windows lie, and shifts beyond their least.

        F_op (n, axes), ft (n, rotatable operands, axes). All are whole numbers: sums of them are exact.
        """
        result = np.zeros((len(f_op), 2))
        lengths, steps = padded_lengths(self.spec, f_op, ft), ft.max(axis=1)
        windows, boxes, least = lengths[:, None] // ft, lengths // steps, least_costs(self.cost)
        slowest = np.zeros(len(f_op))
        if isinstance(least, LyingCosts):
            is_cut = self._are_in_parts(f_op, ft)
            rows, cut = np.flatnonzero(~is_cut), np.flatnonzero(is_cut)
            if len(rows):
                table = np.concatenate([boxes[rows, None], windows[rows]], axis=1)
                n_begin = n_that_begin(self.spec, ft[rows])
                n_add = steps[rows].prod(axis=1) - n_begin
                begins, adds = (
                    self._least_of_steps(table, least, is_some=bool(n.any()), adds=n is n_add)
                    for n in (n_begin, n_add)
                )
                pairs = zip(begins.tolist(), adds.tolist(), strict=True)
                self.steps.update(zip(_plans(f_op[rows], ft[rows]), pairs, strict=True))
                result[rows, 0] = n_begin * begins + n_add * adds
                slowest[rows] = np.maximum(begins, adds)
            if len(cut) and self.bound is not None and any(self.counts_parts):
                result[cut, 0] = self._least_of_parts(f_op[cut], ft[cut], least)
        if sees_shifts(self.cost):
            n_bytes = advance_bytes_many(self.spec, windows, ft, boxes)
            cycles = self.cost.least_shift_cycles_many(self.spec, n_bytes)
            if overlaps(self.cost):
                is_cut = self._are_in_parts(f_op, ft)
                result[:, 1] = self._unhidden(cycles, ft, boxes, slowest, is_cut)
                return result
            closer = nest_shift_cycles(steps, cycles)
            result[:, 1] = closer - nest_shift_cycles(steps, least.shift_cycles_many(n_bytes.sum(axis=2)))
        return result

    def _least_of_steps(self, table: Ints, least: LyingCosts, *, is_some: bool, adds: bool) -> Ints:
        """Return what steps take at least (n,), that add or begin; 0 where there are none.

        Rows of `table` (n, 1 + rotatable operands, axes) are boxes and their windows.
        """
        if not is_some:
            return np.zeros(len(table), np.int64)
        different, places = np.unique(table, axis=0, return_inverse=True)
        cycles = least.lying_cycles_many(self.spec, different[:, 0], different[:, 1:], adds=adds)
        return cycles[places.reshape(-1)]

    def _unhidden(self, cycles: Ints, ft: Ints, boxes: Ints, least_step: Floats, is_cut: Bools) -> Ints:
        """Return what shifts take at least that steps do not hide, given the least that shifts and steps take.

        Where steps run in parts one may hide more than another: only shifts that none hides count.
        """
        least = least_costs(self.cost)
        known = [least.sub_task_cycles_many(each, boxes) for each in (self.spec, begun(self.spec))]
        step = np.maximum(np.maximum(*known), least_step.astype(np.int64))
        step[is_cut] = np.iinfo(np.int64).max >> 1
        return nest_shift_cycles(ft.max(axis=1), unhidden_cycles(cycles, ft, step))

    def _least_of_parts(self, f_op: Ints, ft: Ints, least: LyingCosts) -> Floats:
        """Return what all steps of plans take at least, part by part where their windows lie, and remember it."""
        keys = _plans(f_op, ft)
        plans = [placed_plan(self.spec, *key, links_of(self.cost)) for key in keys]
        known = [plan for plan in plans if plan is not None]
        found = iter(least_part_cycles_of(self.spec, known, partial(least.lying_cycles_many, self.spec)))
        cycles = [0.0 if plan is None else next(found) for plan in plans]
        self.least.update(zip(keys, cycles, strict=True))
        return np.array(cycles)

    def _crossing(self, f_op: AxisSizes, ft: FtRows) -> int:
        """Return what combining partial sums takes because parts pass links; 0 without a placement."""
        links, n_members = links_of(self.cost), prod(f_op[axis] for axis in self.spec.reduction_axes)
        if links is None or n_members == prod(ft[-1]) or prod(f_op) <= links.least_cores:
            return 0
        plan = placed_plan(self.spec, f_op, ft, links)
        return 0 if plan is None else crossing_cycles(self.cost, self.spec, plan)

    def _least_parts(self, f_op: AxisSizes, ft: FtRows) -> float:
        """Return cycles that the steps of a plan do not fall below, part by part; 0 where that is not known."""
        if self.bound is None or not any(self.counts_parts):
            return 0.0
        if (f_op, ft) not in self.least:
            plan = placed_plan(self.spec, f_op, ft, links_of(self.cost))
            least = 0.0 if plan is None else least_part_cycles(self.spec, plan, self.bound)
            self.least[f_op, ft] = least
        return self.least[f_op, ft]

    def _waiting(self, f_op: AxisSizes, ft: FtRows, most: float) -> int:
        """Return what the shifts of a plan take beyond their least, or less above `most`; 0 without a placement."""
        if all(factor == 1 for row in ft for factor in row) or not sees_shifts(self.cost):
            return 0
        plan = placed_plan(self.spec, f_op, ft, links_of(self.cost))
        if plan is None:
            return 0
        least = 0 if overlaps(self.cost) else self._least_shifts(plan)
        return self.cost.nest_shift_cycles(self.spec, plan, most + least) - least

    def _least_shifts(self, plan: OperatorPlan) -> int:
        """Return the least cycles of all shifts of a plan, by bytes alone and in the best order of loops."""
        n_bytes = np.array([advance_bytes(self.spec, plan, axis) for axis in plan.loop_order], np.int64)
        cycles: list[int] = self.cost.shift_cycles_many(n_bytes).tolist()
        total, n_sweeps = 0, 1
        for each, axis in sorted(zip(cycles, plan.loop_order, strict=True), reverse=True):
            total += each * (plan.steps[axis] - 1) * n_sweeps
            n_sweeps *= plan.steps[axis]
        return total

    def _parts(self, f_op: AxisSizes, ft: FtRows) -> Iterator[tuple[int, Part]]:
        """Yield how often a plan does what; steps come first: they count most, so most plans are dropped after them."""
        *boxes, end = self._box_parts(f_op, ft)
        if sees_parts(self.cost) and self._runs_in_parts(f_op, ft):
            yield 1, ("nest", f_op, ft)
        else:
            yield from boxes
        yield (1, ("cut_rest", f_op, ft)) if sees_parts(self.cost) and wraps(self.spec, ft[-1]) else end

    def _runs_in_parts(self, f_op: AxisSizes, ft: FtRows) -> bool:
        """Return what `runs_in_parts` does of many, without arrays where padding decides nothing."""
        known = self.in_parts.get((f_op, ft))
        if known is not None:
            return known
        if _is_cut_by(self.spec, ft):
            return True
        if set(self.spec.reduction_axes) <= zero_addable_axes(self.spec):
            return False
        return bool(runs_in_parts(self.spec, np.array([f_op], np.int64), np.array([ft], np.int64))[0])

    def _are_in_parts(self, f_op: Ints, ft: Ints) -> Bools:
        """Return what `runs_in_parts` does, and remember it."""
        found = runs_in_parts(self.spec, f_op, ft)
        self.in_parts.update(zip(_plans(f_op, ft), found.tolist(), strict=True))
        return found

    def _box_parts(self, f_op: AxisSizes, ft: FtRows) -> Iterator[tuple[int, Part]]:
        """Yield how often a plan does what if its steps are whole boxes, what follows them last."""
        spec = self.spec
        factors = tuple(zip(*ft, strict=True))
        steps = tuple(map(max, factors))
        lengths = lengths_of(spec, f_op, ft)
        windows = [tuple([n // t for n, t in zip(lengths, row, strict=True)]) for row in ft]
        ring, n_steps = prod(ft[-1]), prod(steps)
        n_begin = n_steps
        if spec.combine != "none":
            n_begin = prod(steps[axis] for axis in spec.output.axes) if ring == 1 else 0
        box = tuple([n // each for n, each in zip(lengths, steps, strict=True)])
        n_members = prod(f_op[axis] for axis in spec.reduction_axes) // ring
        if n_steps == n_members == 1 and takes_first(self.cost, spec) and may_begin(spec, lengths):
            yield 1, ("begun", box, tuple(windows))
            yield 1, ("begun_rest", box, tuple(windows))
            return
        if n_steps > n_begin:
            yield n_steps - n_begin, ("add", box, tuple(windows))
        if n_begin:
            yield n_begin, ("begin", box, tuple(windows))
        else:
            yield 1, ("fill", windows[-1])
        yield 1, ("rest", windows[-1], n_members)

    def _cycles(self, part: Part) -> int:
        """Return the cycles of a part, from the cost model."""
        spec = self.spec
        if part[0] == "rest":
            return self._rest(part[1], part[2])
        if part[0] == "cut_rest":
            plan = placed_plan(spec, part[1], part[2], links_of(self.cost))
            *_, (_, rest) = self._box_parts(part[1], part[2])
            assert rest[0] == "rest"
            return self._rest(rest[1], rest[2], plan)
        if part[0] == "nest":
            plan = placed_plan(spec, part[1], part[2], links_of(self.cost))
            if plan is not None:
                if not self.counts_parts:
                    self.counts_parts.append(part_cycles(self.cost, spec, plan) is not None)
                return nest_cycles(self.cost, spec, plan)
            *boxes, _ = self._box_parts(part[1], part[2])
            return sum(n * self._cycles(each) for n, each in boxes)
        if part[0] == "fill":
            return window_fill_cycles(self.cost, spec, part[1])
        if part[0] == "begun_rest":
            n_slots = prod(partition_shape(spec.output, part[2][-1]))
            return end_cycles(self.cost, begun(spec), part[2][-1], 1, n_slots)
        each = begun(spec) if part[0] == "begun" else spec
        return box_cycles(self.cost, each, part[1], part[2], adds=part[0] == "add")

    def _rest(self, windows: AxisSizes, n_members: int, plan: OperatorPlan | None = None) -> int:
        """Return the cycles of reduction and epilogue over windows of the output that so many cores have sums of.

        Windows may wrap as those of `plan` do.
        """
        spec = self.spec
        n_slots = prod(partition_shape(spec.output, windows))
        reduction = 0
        if n_members > 1:
            sums = n_members, n_slots
            if sums not in self.reductions:
                self.reductions[sums] = self.cost.reduce_cycles(spec, *sums)
            reduction = self.reductions[sums] - fused_cycles(self.cost, spec, windows, n_members)
        elif spec.epilogue is None and spec.acc_dtype == spec.output.dtype:
            return 0
        n_own = window_chunk(n_slots, n_members)
        if plan is None:
            return reduction + end_cycles(self.cost, spec, windows, n_members, n_own)
        return reduction + plan_end_cycles(self.cost, spec, plan, n_members, n_own)


def _plans(f_op: Ints, ft: Ints) -> list[tuple[AxisSizes, FtRows]]:
    """Return rows of F_op and ft as plans are known by."""
    return [
        (tuple(factors), tuple([tuple(row) for row in rows]))
        for factors, rows in zip(f_op.tolist(), ft.tolist(), strict=True)
    ]


def _is_cut_by(spec: OperatorSpec, ft: FtRows) -> bool:
    """Return what `t10.plan.search.evaluate.is_cut_by` does of many."""
    steps = tuple(map(max, zip(*ft, strict=True)))
    if max(steps) == 1:
        return False
    return any(steps[axis] % row[axis] for row, axes in zip(ft, _axes_of(spec), strict=True) for axis in axes)


@lru_cache(maxsize=64)
def _axes_of(spec: OperatorSpec) -> tuple[frozenset[int], ...]:
    return tuple(operand.axes for operand in spec.rotatable)
