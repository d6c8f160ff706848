"""The search of one operator: all partitions, then pace, placement, and the front that remains.

The search is complete: every F_op within the constraints, every combination of ft rows under it. It runs in native code
(`_search.cpp`), which leaves out only what bounds prove to be beaten. What it finds is completed and priced here, by
the code that defines the costs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from t10.chip import ChipSpec
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.plan import CostedPlan, Cycles, OperatorPlan
from t10.cost import CostModel
from t10.cost.program import CostProgram, cost_program
from t10.errors import InfeasiblePlanError, T10Error
from t10.plan.memory.operator_bound import least_bytes
from t10.plan.options import ForcedPartition, PlanOptions
from t10.plan.search import _search
from t10.plan.search.alignment import Pace, align_pace
from t10.plan.search.alternatives import evaluate_plans
from t10.plan.search.evaluate import Evaluation, evaluate
from t10.plan.search.pareto import front_indices, thinned
from t10.plan.search.placement import place
from t10.plan.search.space import searched_partitions
from t10.plan.search.task import SearchTask, compute_bound, search_task, shift_table

Ints = NDArray[np.int64]
FtRows = tuple[AxisSizes, ...]
PartitionFactors = tuple[AxisSizes, FtRows]
Found = tuple[PartitionFactors, int, int]
"""A plan on the front: its partition, its cycles, its bytes per core."""
Counts = tuple[int, int, int, int, int]
"""F_op, cases, plans priced, plans that had to be placed, sub-tasks."""
SearchProgress = Callable[[float], object]
"""Called about ten times per second, in the thread that searches, with the share that is done; may raise to end it."""

UNLIMITED_BYTES = 1 << 62
MOST_COPIES = 2
"""Plans are looked at up to this many times the memory there is: about half of what they hold may be in place."""
ROOMY_BYTES = 1 << 23
"""Memory of a core in which any plan worth looking at fits."""


@dataclass(frozen=True, slots=True)
class SearchStatistics:
    """What a search went through.

    `n_partitions` F_op; `n_plans` combinations of ft rows under them (each row by itself within the constraints);
    `n_cases` pairs of an F_op and padded lengths whose plans were looked at; `n_priced` plans priced exactly;
    `n_placed` plans whose placement had to be looked for; `n_sub_tasks` different sub-tasks priced.
    """

    n_partitions: int
    n_plans: int
    n_cases: int
    n_priced: int
    n_placed: int
    n_sub_tasks: int
    seconds: float


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The front of one operator, fastest last, and how it was found."""

    front: tuple[CostedPlan, ...]
    statistics: SearchStatistics


@dataclass(frozen=True, slots=True)
class _Space:
    """What is searched: F_op rows, under each all ft or the one given, the operator's numbers, and its costs."""

    spec: OperatorSpec
    rows: Ints
    ft: FtRows | None
    task: SearchTask
    cost: CostModel
    program: CostProgram

    def front(
        self, progress: SearchProgress | None, *, is_pruning: bool = True, is_bytes_only: bool = False
    ) -> tuple[list[Found], Counts]:
        """Return the front, least bytes first, and the counts of the search."""
        if self.ft is not None:
            return self._single(self.ft), (1, 1, 1, 1, 1)
        n_axes = len(self.spec.axes)
        limit_bytes = 0 if is_bytes_only else self.task.capacity_bytes
        table = shift_table(self.cost, limit_bytes, self.task.shift_granule_bytes)
        is_bounding = is_pruning and not is_bytes_only
        found, counts = _search.search(
            self.task,
            self.rows,
            self.program,
            table,
            compute_bound(self.task, self.rows, self.program.sub_task) if is_bounding else None,
            self._is_placeable,
            progress,
            is_pruning=is_pruning,
            is_bytes_only=is_bytes_only,
        )
        front = [
            ((tuple(self.rows[row].tolist()), _split(ft, len(self.spec.rotatable), n_axes)), cycles, n_bytes)
            for row, ft, cycles, n_bytes in found
        ]
        return front, counts

    def _single(self, ft: FtRows) -> list[Found]:
        """Return the one plan there is, nothing if it does not fit."""
        f_op: AxisSizes = tuple(self.rows[0].tolist())
        priced = evaluate(self.spec, self.cost, self.rows[:1], np.array([ft], np.int64))
        n_bytes = int(priced.active_bytes[0])
        return [((f_op, ft), int(priced.cycles[0]), n_bytes)] if n_bytes <= self.task.capacity_bytes else []

    def _is_placeable(self, f_op: AxisSizes, ft: FtRows) -> bool:
        return place(self.spec, f_op, ft, align_pace(self.spec, f_op, ft)) is not None


def search_operator(
    spec: OperatorSpec,
    chip: ChipSpec,
    cost: CostModel,
    options: PlanOptions,
    *,
    progress: SearchProgress | None = None,
    is_pruning: bool = True,
) -> SearchResult:
    """Return the time x memory front of one operator, and statistics. The front is never empty.

    Without `is_pruning` every plan of the space is priced: the same front, for comparison. Raises
    `InfeasiblePlanError` where nothing fits a core's memory or a forced partition is wrong, and what `progress` raises.
    """
    start = time.perf_counter()
    space = _space(spec, chip, cost, options)
    found, counts = _front(space, chip, progress, is_pruning=is_pruning)
    plans = placed(spec, align(spec, tuple(partition for partition, _, _ in found)))
    front = pareto_front(spec, plans, cost, options)
    if not front:
        raise InfeasiblePlanError(
            f"f_op {list(found[0][0][0])} with ft {[list(row) for row in found[0][0][1]]} has no placement",
            operator=spec.name,
            location=spec.location or None,
            hint="leave ft to the search",
        )
    _check_prices(spec, front, {(cycles, n_bytes) for _, cycles, n_bytes in found})
    n_partitions, n_cases, n_priced, n_placed, n_sub_tasks = counts
    statistics = SearchStatistics(
        n_partitions=n_partitions,
        n_plans=int(_search.count(space.task, space.rows)),
        n_cases=n_cases,
        n_priced=n_priced,
        n_placed=n_placed,
        n_sub_tasks=n_sub_tasks,
        seconds=time.perf_counter() - start,
    )
    return SearchResult(front, statistics)


def plan_operator(
    spec: OperatorSpec,
    chip: ChipSpec,
    cost: CostModel,
    options: PlanOptions,
    progress: SearchProgress | None = None,
) -> tuple[CostedPlan, ...]:
    """Return the time x memory front of one operator, fastest last; see `search_operator`."""
    return search_operator(spec, chip, cost, options, progress=progress).front


def least_plan(spec: OperatorSpec, chip: ChipSpec, cost: CostModel, options: PlanOptions) -> CostedPlan:
    """Return the plan of an operator that takes the fewest bytes, more than a core has if need be.

    Raises `InfeasiblePlanError` where a forced partition is wrong.
    """
    partition, _, _ = _smallest(_space(spec, chip, cost, options))
    f_op, ft = partition
    plan = place(spec, f_op, ft, align_pace(spec, f_op, ft))
    if plan is None:
        raise InfeasiblePlanError(f"f_op {list(f_op)} has no placement with its ft", operator=spec.name)
    arrays = evaluate(spec, cost, np.array([f_op], np.int64), np.array([ft], np.int64))
    return costed(plan, arrays, 0)


def partition_candidates(
    spec: OperatorSpec, chip: ChipSpec, cost: CostModel, options: PlanOptions
) -> tuple[PartitionFactors, ...]:
    """Return the partitions on the front, (F_op, ft rows) each, least bytes first; raises as `search_operator`."""
    space = _space(spec, chip, cost, options)
    found, _ = _front(space, chip, None)
    cycles = np.array([cycles for _, cycles, _ in found], np.int64)
    kept: list[int] = thinned(np.arange(len(found)), cycles, options.max_front).tolist()
    return tuple(found[i][0] for i in kept)


def align(
    spec: OperatorSpec, partitions: tuple[PartitionFactors, ...]
) -> tuple[tuple[PartitionFactors, Pace], ...]:
    """Return every partition with its pace; partitions that cannot be aligned are left out."""
    result: list[tuple[PartitionFactors, Pace]] = []
    for partition in partitions:
        try:
            result.append((partition, align_pace(spec, *partition)))
        except InfeasiblePlanError:
            continue
    return tuple(result)


def placed(
    spec: OperatorSpec, aligned: tuple[tuple[PartitionFactors, Pace], ...]
) -> tuple[OperatorPlan, ...]:
    """Return the plans that have a placement."""
    plans = (place(spec, f_op, ft, pace) for (f_op, ft), pace in aligned)
    return tuple(plan for plan in plans if plan is not None)


def pareto_front(
    spec: OperatorSpec, plans: tuple[OperatorPlan, ...], cost: CostModel, options: PlanOptions
) -> tuple[CostedPlan, ...]:
    """Return the plans that no other beats in cycles and bytes, with their costs, fastest last."""
    if not plans:
        return ()
    priced = evaluate_plans(spec, cost, plans)
    indices = thinned(front_indices(priced.cycles, priced.active_bytes), priced.cycles, options.max_front)
    rows: list[int] = indices.tolist()
    return tuple(costed(plans[row], priced, row) for row in rows)


def costed(plan: OperatorPlan, priced: Evaluation, row: int) -> CostedPlan:
    """Return a plan with row `row` of an evaluation as its price."""
    cycles = Cycles(
        compute=int(priced.compute[row]),
        shift=int(priced.shift[row]),
        reduce=int(priced.reduce[row]),
        relayout=int(priced.relayout[row]),
    )
    return CostedPlan(plan, cycles, int(priced.weight_bytes[row]), int(priced.active_bytes[row]))


def _space(spec: OperatorSpec, chip: ChipSpec, cost: CostModel, options: PlanOptions) -> _Space:
    """Return what there is to search; of a forced F_op all ft, however much they pad."""
    forced = options.forced_for(spec.name)
    if forced is None:
        rows, padding = searched_partitions(spec, chip.n_cores, options)
    else:
        _check_forced(spec, chip, forced)
        rows, padding = np.array([forced.f_op], np.int64), 0.0
    return _Space(
        spec=spec,
        rows=np.ascontiguousarray(rows),
        ft=None if forced is None else forced.ft,
        task=search_task(spec, chip, cost, padding),
        cost=cost,
        program=cost_program(cost, spec),
    )


def _check_forced(spec: OperatorSpec, chip: ChipSpec, forced: ForcedPartition) -> None:
    ones = tuple((1,) * len(spec.axes) for _ in spec.rotatable)
    align_pace(spec, forced.f_op, ones if forced.ft is None else forced.ft)
    if prod(forced.f_op) > chip.n_cores:
        raise InfeasiblePlanError(
            f"f_op {list(forced.f_op)} needs {prod(forced.f_op)} cores, {chip.name} has {chip.n_cores}",
            operator=spec.name,
            location=spec.location or None,
        )


def _front(
    space: _Space, chip: ChipSpec, progress: SearchProgress | None, *, is_pruning: bool = True
) -> tuple[list[Found], Counts]:
    """Return the front of the plans that fit with all operands as copies, or may fit with some in place.

    Raises `InfeasiblePlanError` where there is none.
    """
    room = space.task.capacity_bytes
    needs: list[int] = []
    for limit in (MOST_COPIES * room, max(ROOMY_BYTES, chip.sram_bytes)):
        wider = replace(space, task=replace(space.task, capacity_bytes=limit))
        found, counts = wider.front(progress, is_pruning=is_pruning)
        needs = [
            n_bytes if n_bytes <= room else _least_bytes(space.spec, partition)
            for partition, _, n_bytes in found
        ]
        fitting = [plan for plan, need in zip(found, needs, strict=True) if need <= room]
        if fitting:
            return fitting, counts
    raise _too_large(space, chip, min(needs, default=_smallest(space)[2]))


def _least_bytes(spec: OperatorSpec, partition: PartitionFactors) -> int:
    """Return what a partition takes at least in a model; what cannot be placed takes more than there is."""
    aligned = placed(spec, align(spec, (partition,)))
    return least_bytes(spec, aligned[0]) if aligned else UNLIMITED_BYTES


def _too_large(space: _Space, chip: ChipSpec, need: int) -> InfeasiblePlanError:
    """Return the error of an operator of which nothing fits, with what the smallest of its plans needs."""
    room = space.task.capacity_bytes
    return InfeasiblePlanError(
        f"needs at least {need} bytes per core, {room} are available on {chip.name}",
        operator=space.spec.name,
        location=space.spec.location or None,
        hint="use a chip with more cores, a smaller batch, or fp16",
    )


def _smallest(space: _Space) -> Found:
    """Return the partition of fewest bytes on cores of any size."""
    unlimited = replace(space, task=replace(space.task, capacity_bytes=UNLIMITED_BYTES))
    found, _ = unlimited.front(None, is_bytes_only=True)
    return found[0]


def _check_prices(spec: OperatorSpec, front: tuple[CostedPlan, ...], found: set[tuple[int, int]]) -> None:
    """Raise `T10Error` if native search priced a plan otherwise than `evaluate`: a cost model that is no function."""
    for plan in front:
        price = (plan.cycles.total, plan.active_bytes)
        if price not in found:
            raise T10Error(
                f"a plan costs {price[0]} cycles and {price[1]} bytes, search had it otherwise: cost functions"
                " must give the same for the same numbers, one at a time or many",
                operator=spec.name,
                location=spec.location or None,
            )


def _split(ft: list[int], n_slots: int, n_axes: int) -> FtRows:
    return tuple(tuple(ft[slot * n_axes : (slot + 1) * n_axes]) for slot in range(n_slots))
