"""`Costs`: what is asked about the time of one phase. It is handed in; `t10.cost` has models that answer."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, prod
from typing import Protocol, TypeGuard, cast, runtime_checkable

import numpy as np

from t10.core import geometry
from t10.core.arrays import Bools, Ints
from t10.core.epilogue_nest import wraps
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.first_partial import begins_with_bias, begun, bias_number
from t10.core.links import Links
from t10.core.movement import MoveCosts
from t10.core.plan import OperatorPlan
from t10.core.program import Shift
from t10.core.runs import epilogue_run
from t10.core.shift_rounds import shift_bytes
from t10.core.sub_task_nest import is_uneven


class Costs(MoveCosts, Protocol):
    """Cycles of the phases that all cores go through together; shapes and bytes go in, never data."""

    def sub_task_cycles(self, spec: OperatorSpec, box: AxisSizes) -> int:
        """Return the cycles of one compute step over `box` points of every axis."""
        ...

    def epilogue_cycles(self, spec: OperatorSpec, n_slots: int, run: int) -> int:
        """Return the cycles of the epilogue on `n_slots` accumulated elements of a core; 0 without one.

        `run` of them, from 1 to `n_slots`, lie in one row that accumulator, epilogue inputs and result all walk evenly
        (`t10.core.runs.epilogue_run`).
        """
        ...

    def shift_cycles(self, n_bytes: int) -> int:
        """Return the cycles in which every core passes `n_bytes` on, in rounds through the shift buffer.

        `n_bytes` is the sum over all operands that advance together.
        """
        ...

    def reduce_cycles(self, spec: OperatorSpec, n_members: int, n_slots: int) -> int:
        """Return the cycles of a reduce-scatter among `n_members` cores that have `n_slots` partial sums each.

        Each ends with a chunk of them (`t10.core.chunks`); 0 where there is one member.
        """
        ...

    def all_reduce_cycles(self, spec: OperatorSpec, n_members: int, n_slots: int) -> int:
        """Return the cycles in which each of `n_members` cores takes the parts of all others and adds them to its own.

        Every part has `n_slots` elements; 0 where there is one member.
        """
        ...


@runtime_checkable
class WindowCosts(Protocol):
    """What a cost model says that looks at how operands lie in what a core holds of them, not at extents alone.

    Windows are lengths per axis (compute-shift model, w_a); a step reads a box of them.
    """

    def step_cycles_many(self, spec: OperatorSpec, boxes: Ints, windows: Ints, adds: Bools) -> Ints:
        """Return the cycles of compute steps: boxes (n, axes), windows (n, rotatable operands, axes).

        Those of `adds` (n,) combine with what is there, others begin.
        """
        ...

    def fill_cycles_many(self, spec: OperatorSpec, n_slots: Ints) -> Ints:
        """Return the cycles in which a core fills so many accumulators with the neutral element."""
        ...

    def end_cycles_many(self, spec: OperatorSpec, windows: Ints, n_members: Ints) -> Ints:
        """Return the cycles in which accumulators become results: windows (n, axes) of the output.

        Of `n_members` (n,) cores with the same window each has a chunk; where the number is negative each has all, and
        results lie beside accumulators as those of chunks do.
        """
        ...


@runtime_checkable
class ShiftCosts(Protocol):
    """What a cost model says that looks at what a shift moves between which cores, not at bytes alone."""

    @property
    def sees_shifts(self) -> bool:
        """Return whether it does; else it is not asked."""
        ...

    def round_cycles(self, spec: OperatorSpec, plan: OperatorPlan, statement: Shift) -> tuple[int, ...]:
        """Return the cycles of a shift by round through the shift buffer (`t10.core.shift_rounds`)."""
        ...

    def nest_shift_cycles(self, spec: OperatorSpec, plan: OperatorPlan, most: float = inf) -> int:
        """Return the cycles of all shifts of a plan's loops, or a lower bound above `most`."""
        ...

    def least_shift_cycles_many(self, spec: OperatorSpec, n_bytes: Ints) -> Ints:
        """Return cycles that no shift falls below in which every rotatable operand, the last axis, moves so much."""
        ...


@runtime_checkable
class GroupCosts(Protocol):
    """What a cost model says that looks at which cores combine partial sums, not at their number alone."""

    def combine_cycles(self, spec: OperatorSpec, plan: OperatorPlan) -> int | None:
        """Return the cycles in which the partial sums of several cores are combined; None where it does not look."""
        ...


@runtime_checkable
class FusedCosts(Protocol):
    """What a cost model says under which ends of operators may do the last additions of a reduction as well."""

    def fused_cycles_many(self, spec: OperatorSpec, windows: Ints, n_members: Ints) -> Ints:
        """Return the cycles that reductions take less because `WindowCosts.end_cycles_many` has their last additions.

        Windows (n, axes) and `n_members` (n,) are as there; 0 where additions are apart from the end.
        """
        ...


@runtime_checkable
class LinkCosts(Protocol):
    """What a cost model says of a chip whose cores lie in groups with links between them."""

    @property
    def links(self) -> Links | None:
        """Return the links, None where all cores share one exchange or the model does not look at links."""
        ...

    def crossing_cycles(self, spec: OperatorSpec, plan: OperatorPlan) -> int:
        """Return what combining partial sums takes beyond what `Costs` says, because parts pass links."""
        ...


@runtime_checkable
class OverlapCosts(Protocol):
    """What a cost model says of a chip that may compute and transfer at once."""

    @property
    def overlaps(self) -> bool:
        """Return whether it does; then `nest_shift_cycles` are what steps do not hide (`t10.core.overlap`)."""
        ...


@runtime_checkable
class PartCosts(Protocol):
    """What a cost model says that looks at what every core does in every sub-task, part by part."""

    def part_cycles(
        self, spec: OperatorSpec, plan: OperatorPlan
    ) -> Mapping[AxisSizes, tuple[int, ...]] | None:
        """Return by loop positions the cycles of a sub-task's parts, in order (`t10.core.contiguous_parts`).

        None where it does not look at that: then every step is one box.
        """
        ...

    def fills(self, spec: OperatorSpec, plan: OperatorPlan) -> bool:
        """Return whether some core's accumulators are filled before the first step."""
        ...

    def wrapped_end_cycles(self, spec: OperatorSpec, plan: OperatorPlan) -> int | None:
        """Return the cycles of an epilogue that is cut where windows wrap (`t10.core.epilogue_nest`).

        None where it does not look at that: then it takes what it does over whole windows.
        """
        ...


@runtime_checkable
class FirstCosts(Protocol):
    """What a cost model says under which sums may begin with a bias."""

    def takes_first(self, spec: OperatorSpec) -> bool:
        """Return whether steps of an operator are priced as the code that begins with it (`t10.core.first_partial`)."""
        ...


class CostsOfParts(Costs, PartCosts, Protocol):
    """What a cost model says that looks at parts, with what all say."""


_answers: dict[tuple[type, type], bool] = {}


def _is_one(costs: object, protocol: type) -> bool:
    """Return whether costs are of a protocol: asked once per type, as looking through its members takes long."""
    key = type(costs), protocol
    if key not in _answers:
        _answers[key] = isinstance(costs, protocol)
    return _answers[key]


def sees_windows(costs: object) -> TypeGuard[WindowCosts]:
    """Return whether a cost model looks at how operands lie in what a core holds of them."""
    return _is_one(costs, WindowCosts)


def sees_parts(costs: object) -> TypeGuard[CostsOfParts]:
    """Return whether a cost model looks at the parts of sub-tasks that cross the ends of windows."""
    return _is_one(costs, PartCosts)


def sees_shifts(costs: object) -> TypeGuard[ShiftCosts]:
    """Return whether a cost model looks at what a shift moves between which cores."""
    return _is_one(costs, ShiftCosts) and cast(ShiftCosts, costs).sees_shifts


def links_of(costs: object) -> Links | None:
    """Return the links that a cost model looks at, None where it looks at none."""
    return cast(LinkCosts, costs).links if _is_one(costs, LinkCosts) else None


def overlaps(costs: object) -> bool:
    """Return whether a cost model hides shifts behind the steps beside them."""
    return _is_one(costs, OverlapCosts) and cast(OverlapCosts, costs).overlaps


def takes_first(costs: object, spec: OperatorSpec) -> bool:
    """Return whether sums of an operator begin with a bias where a plan lets them."""
    if bias_number(spec) is None or not _is_one(costs, FirstCosts):
        return False
    return cast(FirstCosts, costs).takes_first(spec)


def computed(costs: object, spec: OperatorSpec, plan: OperatorPlan) -> OperatorSpec:
    """Return an operator as cores compute it under a plan: its sums may begin with a bias."""
    return begun(spec) if takes_first(costs, spec) and begins_with_bias(spec, plan) else spec


def crossing_cycles(costs: object, spec: OperatorSpec, plan: OperatorPlan) -> int:
    """Return what combining partial sums takes because parts pass links."""
    return 0 if links_of(costs) is None else cast(LinkCosts, costs).crossing_cycles(spec, plan)


def shift_cycles(costs: Costs, spec: OperatorSpec, plan: OperatorPlan, statement: Shift) -> int:
    """Return the cycles of a shift, in all its rounds."""
    if sees_shifts(costs):
        return sum(costs.round_cycles(spec, plan, statement))
    return costs.shift_cycles(shift_bytes(spec, plan, statement))


def step_cycles(costs: Costs, spec: OperatorSpec, plan: OperatorPlan, *, adds: bool) -> int:
    """Return the cycles of one compute step of a plan, that combines with what is there or begins."""
    spec = computed(costs, spec, plan)
    windows = tuple([geometry.window_lengths(plan, slot) for slot in range(len(spec.rotatable))])
    return box_cycles(costs, spec, plan.box, windows, adds=adds)


def part_cycles(
    costs: object, spec: OperatorSpec, plan: OperatorPlan
) -> Mapping[AxisSizes, tuple[int, ...]] | None:
    """Return by loop positions the cycles of a sub-task's parts; None where a step takes what a whole box does."""
    spec = computed(costs, spec, plan)
    return costs.part_cycles(spec, plan) if sees_parts(costs) and is_uneven(spec, plan) else None


def step_part_cycles(
    costs: Costs, spec: OperatorSpec, plan: OperatorPlan, positions: AxisSizes, *, adds: bool
) -> tuple[int, ...]:
    """Return the cycles of the parts of the compute step at some loop positions; of a whole box where it is none."""
    parts = part_cycles(costs, spec, plan)
    return (step_cycles(costs, spec, plan, adds=adds),) if parts is None else parts[positions]


def nest_cycles(costs: Costs, spec: OperatorSpec, plan: OperatorPlan) -> int:
    """Return the cycles of all compute steps of a nest, and of filling accumulators that no step begins."""
    parts = part_cycles(costs, spec, plan)
    steps = whole_cycles(costs, spec, plan) if parts is None else sum(map(sum, parts.values()))
    return fill_cycles(costs, spec, plan) + steps


def whole_cycles(costs: Costs, spec: OperatorSpec, plan: OperatorPlan) -> int:
    """Return the cycles of all compute steps of a nest as if each were one box."""
    n_begin = n_steps = plan.n_sub_tasks
    if spec.combine != "none":
        n_begin = 0 if rotates_output(spec, plan) else prod(plan.steps[axis] for axis in spec.output.axes)
    counts = ((n_begin, False), (n_steps - n_begin, True))
    return sum(n_each * step_cycles(costs, spec, plan, adds=adds) for n_each, adds in counts if n_each)


def box_cycles(
    costs: Costs, spec: OperatorSpec, box: AxisSizes, windows: tuple[AxisSizes, ...], *, adds: bool
) -> int:
    """Return the cycles of one compute step over a box of the windows of every rotatable operand."""
    if not sees_windows(costs):
        return costs.sub_task_cycles(spec, box)
    return int(costs.step_cycles_many(spec, _row(box), _row(windows), np.array([adds]))[0])


def fill_cycles(costs: Costs, spec: OperatorSpec, plan: OperatorPlan) -> int:
    """Return the cycles in which accumulators are filled: where they rotate, or a first step may be all padding.

    Elsewhere the first steps begin.
    """
    if sees_parts(costs) and costs.fills(spec, plan):
        return window_fill_cycles(costs, spec, geometry.window_lengths(plan, len(spec.inputs)))
    return rotating_fill_cycles(costs, spec, plan)


def rotating_fill_cycles(costs: Costs, spec: OperatorSpec, plan: OperatorPlan) -> int:
    """Return the cycles in which accumulators are filled because they rotate; 0 where they do not."""
    if not rotates_output(spec, plan):
        return 0
    return window_fill_cycles(costs, spec, geometry.window_lengths(plan, len(spec.inputs)))


def window_fill_cycles(costs: Costs, spec: OperatorSpec, windows: AxisSizes) -> int:
    """Return the cycles in which accumulators over windows of the output are filled."""
    if not sees_windows(costs):
        return 0
    n_slots = prod(geometry.partition_shape(spec.output, windows))
    return int(costs.fill_cycles_many(spec, np.array([n_slots]))[0])


def plan_end_cycles(
    costs: Costs, spec: OperatorSpec, plan: OperatorPlan, n_members: int, n_slots: int
) -> int:
    """Return the cycles of the epilogue of a plan, a copy where there is none, over a core's `n_slots`."""
    spec = computed(costs, spec, plan)
    if sees_parts(costs) and wraps(spec, plan.ft[-1]):
        found = costs.wrapped_end_cycles(spec, plan)
        if found is not None:
            return found
    return end_cycles(costs, spec, geometry.window_lengths(plan, len(spec.inputs)), n_members, n_slots)


def end_cycles(costs: Costs, spec: OperatorSpec, windows: AxisSizes, n_members: int, n_slots: int) -> int:
    """Return the cycles of the epilogue, a copy where there is none, over a core's `n_slots` of an output's windows.

    Windows are taken not to wrap. Nothing is left to do where sums are whole, of the result's type, and all it takes.
    """
    if n_members == 1 and spec.epilogue is None and spec.acc_dtype == spec.output.dtype:
        return 0
    if sees_windows(costs):
        return int(costs.end_cycles_many(spec, _row(windows), np.array([n_members]))[0])
    if spec.epilogue is None:
        return 0
    return costs.epilogue_cycles(spec, n_slots, epilogue_run(spec, windows, n_slots))


def fused_cycles(costs: object, spec: OperatorSpec, windows: AxisSizes, n_members: int) -> int:
    """Return the cycles that a reduction takes less because the end has its last additions; see `FusedCosts`."""
    if n_members == 1 or not _is_one(costs, FusedCosts):
        return 0
    return int(cast(FusedCosts, costs).fused_cycles_many(spec, _row(windows), np.array([n_members]))[0])


def sees_fused(costs: object) -> TypeGuard[FusedCosts]:
    """Return whether under a cost model ends may do the last additions of a reduction."""
    return _is_one(costs, FusedCosts)


def rotates_output(spec: OperatorSpec, plan: OperatorPlan) -> bool:
    """Return whether accumulators pass from core to core between the steps."""
    return spec.combine != "none" and prod(plan.ft[-1]) > 1


def _row(numbers: object) -> Ints:
    return np.array([numbers], np.int64)
