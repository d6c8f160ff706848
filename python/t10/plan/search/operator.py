"""The search of one operator: all partitions, then pace, placement, and the front that remains.

The search is complete: every F_op within the constraints, every combination of ft rows under it. It runs in native code
(`_search.cpp`), which leaves out only what bounds prove to be beaten. What it finds is completed and priced here, by
the code that defines the costs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from t10.chip import ChipSpec
from t10.core.arrays import Ints
from t10.core.costs import links_of, takes_first
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.first_partial import begun
from t10.core.legal import PlanRows
from t10.core.plan import CostedPlan
from t10.core.space import PartitionSpace
from t10.cost import CostModel
from t10.cost._batch_function import read
from t10.cost.model import least_costs
from t10.cost.program import CostProgram, cost_program
from t10.errors import InfeasiblePlanError, T10Error
from t10.plan.memory.operator_bound import least_bytes
from t10.plan.options import PlanOptions
from t10.plan.search import _search
from t10.plan.search.alignment import align_pace, require_legal
from t10.plan.search.alternatives import evaluate_plans
from t10.plan.search.evaluate import evaluate, padded_lengths, placed_plan
from t10.plan.search.exact import ExactPrices
from t10.plan.search.listed import (
    Found,
    FtRows,
    PartitionFactors,
    align,
    costed,
    limits_bytes,
    pareto_front,
    placed,
    too_large,
)
from t10.plan.search.placement import place
from t10.plan.search.space import (
    partitions_within,
    searched_partitions,
    unrotated_space,
    unrotated_within,
)
from t10.plan.search.task import SearchTask, compute_bound, search_task, shift_table
from t10.plan.search.temporal import TemporalSpace
from t10.plan.search.unrotated import with_unrotated

Counts = tuple[int, int, int, int, int, int]
"""F_op, cases, plans priced, plans that had to be placed, sub-tasks, plans priced after a bound."""
SearchProgress = Callable[[float], object]
"""Called about ten times per second, in the thread that searches, with the share that is done; may raise to end it."""

UNLIMITED_BYTES = 1 << 62
MOST_NAMED = 8
"""Paces that an error lists."""


@dataclass(frozen=True, slots=True)
class SearchStatistics:
    """What a search went through.

    `n_partitions` F_op; `n_plans` combinations of ft rows under them (each row by itself within the constraints);
    `n_cases` pairs of an F_op and padded lengths whose plans were looked at; `n_priced` plans priced exactly;
    `n_placed` plans whose placement had to be looked for; `n_sub_tasks` different sub-tasks priced, or bounded where
    prices are slow; `n_exact` plans priced exactly after that.
    """

    n_partitions: int
    n_plans: int
    n_cases: int
    n_priced: int
    n_placed: int
    n_sub_tasks: int
    n_exact: int
    seconds: float


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The front of one operator, fastest last, and how it was found."""

    front: tuple[CostedPlan, ...]
    statistics: SearchStatistics


@dataclass(frozen=True, slots=True)
class _Space:
    """What is searched: F_op rows, under each all ft, the operator's numbers, and its costs.

    `program` has the costs, or lower bounds of them, in a form that is quick.

    `ft` (n, operands, axes) are those of a single F_op where a user has fixed some of it; None for all there are.
    """

    spec: OperatorSpec
    rows: Ints
    ft: Ints | None
    task: SearchTask
    cost: CostModel
    program: CostProgram
    is_chained: bool = False
    """Whether along every axis each tensor's parts divide the next one's."""
    unrotated: Ints | None = None
    """Further F_op, of which only plans that do not rotate are looked at."""

    def front(
        self, progress: SearchProgress | None, *, is_pruning: bool = True, is_bytes_only: bool = False
    ) -> tuple[list[Found], Counts]:
        """Return the front, least bytes first, and the counts of the search."""
        if self.ft is not None:
            return self._listed(self.ft), (1, 1, len(self.ft), len(self.ft), len(self.ft), 0)
        n_axes = len(self.spec.axes)
        limit_bytes = 0 if is_bytes_only else self.task.capacity_bytes
        table = shift_table(self.cost, limit_bytes, self.task.shift_granule_bytes)
        is_bounding = is_pruning and not is_bytes_only
        prices = None
        if least_costs(self.cost) is not self.cost:
            prices = ExactPrices(self.spec, self.cost, read(self.program.sub_task))
        found, counts = _search.search(
            self.task,
            self.rows,
            self.program,
            prices and prices.price,
            prices and prices.bounds,
            table,
            compute_bound(self.task, self.rows, self.program.sub_task) if is_bounding else None,
            self._is_placeable,
            progress,
            is_pruning=is_pruning,
            is_bytes_only=is_bytes_only,
            asks_always=self.is_chained,
        )
        front = [
            ((tuple(self.rows[row].tolist()), _split(ft, len(self.spec.rotatable), n_axes)), cycles, n_bytes)
            for row, ft, cycles, n_bytes in found
        ]
        return front, counts

    def _listed(self, ft: Ints) -> list[Found]:
        """Return the front of some ft under the one F_op; a single one need not have a placement."""
        f_op: AxisSizes = tuple(self.rows[0].tolist())
        priced = evaluate(self.spec, self.cost, np.repeat(self.rows, len(ft), axis=0), ft)
        fits = np.flatnonzero(priced.active_bytes <= self.task.capacity_bytes)
        order = fits[np.lexsort((fits, priced.cycles[fits], priced.active_bytes[fits]))]
        found: list[Found] = []
        for i in order.tolist():
            cycles = int(priced.cycles[i])
            rows: FtRows = tuple(tuple(row) for row in ft[i].tolist())
            is_beaten = bool(found) and found[-1][1] <= cycles
            if not is_beaten and (len(ft) == 1 or self._is_placeable(f_op, rows)):
                found.append(((f_op, rows), cycles, int(priced.active_bytes[i])))
        return found

    def _is_placeable(self, f_op: AxisSizes, ft: FtRows) -> bool:
        if self.is_chained and not is_chain(ft):
            return False
        return placed_plan(self.spec, f_op, ft) is not None


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
    space = _space(spec, chip, cost, options)
    return _searched(space, chip, options, progress, is_pruning=is_pruning)


def search_space(
    spec: OperatorSpec, within: PartitionSpace, chip: ChipSpec, cost: CostModel, options: PlanOptions
) -> tuple[CostedPlan, ...]:
    """Return the front of the plans of a space, as `search_operator` does of the space that options leave.

    Of `options` only the length of the front counts. Raises `InputError` for a space of another operator.
    """
    rows = partitions_within(spec, within)
    ft = None if within.rp is None or within.f_op is None else ft_of_pace(spec, within.f_op, within.rp)
    space = _made(spec, rows, within.padding, ft, chip, cost)
    return _searched(replace(space, unrotated=unrotated_within(spec, within)), chip, options).front


def operator_space(
    spec: OperatorSpec, chip: ChipSpec, cost: CostModel, options: PlanOptions
) -> PartitionSpace:
    """Return the partitions that `search_operator` searches, as constraints: those on F_op only."""
    forced = options.forced_for(spec.name)
    rows, padding = _rows(spec, chip, options)
    unrotated, further = (None, rows[:0]) if forced else unrotated_space(spec, chip.n_cores, options)
    return PartitionSpace(
        cores=chip.n_cores,
        least_cores=int(rows.prod(axis=1).min()),
        padding=padding,
        n_f_op=len(rows),
        at_most=int(_search.count(search_task(spec, chip, cost, padding), rows)) + len(further),
        f_op=None if forced is None else forced.f_op,
        unrotated=unrotated,
    )


def _searched(
    space: _Space,
    chip: ChipSpec,
    options: PlanOptions,
    progress: SearchProgress | None = None,
    *,
    is_pruning: bool = True,
) -> SearchResult:
    """Return the front of a space and statistics; see `search_operator`."""
    start = time.perf_counter()
    spec, cost = space.spec, space.cost
    found, counts = _front(space, chip, progress, is_pruning=is_pruning)
    plans = placed(spec, align(spec, tuple(partition for partition, _, _ in found)), links_of(cost))
    front = pareto_front(spec, plans, cost, options)
    if not front:
        raise InfeasiblePlanError(
            f"f_op {list(found[0][0][0])} with ft {[list(row) for row in found[0][0][1]]} has no placement",
            operator=spec.name,
            location=spec.location or None,
            hint="leave ft to the search",
        )
    _check_prices(spec, front, {(cycles, n_bytes) for _, cycles, n_bytes in found})
    n_partitions, n_cases, n_priced, n_placed, n_sub_tasks, n_exact = counts
    n_unrotated = 0 if space.unrotated is None else len(space.unrotated)
    statistics = SearchStatistics(
        n_partitions=n_partitions + n_unrotated,
        n_plans=int(_search.count(space.task, space.rows)) + n_unrotated,
        n_cases=n_cases,
        n_priced=n_priced,
        n_placed=n_placed,
        n_sub_tasks=n_sub_tasks,
        n_exact=n_exact,
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
    return costed(plan, evaluate_plans(spec, cost, (plan,)), 0)


def ft_of_pace(spec: OperatorSpec, f_op: AxisSizes, rp: AxisSizes) -> Ints:
    """Return all ft under an F_op that align to a pace, shape (n, operands, axes), in lexicographic order.

    Raises `InfeasiblePlanError` where there is none, with the paces there are.
    """
    ft = TemporalSpace.of(spec).partitions(f_op, 0.0)
    steps = ft.max(axis=1)
    lengths = padded_lengths(spec, np.repeat(np.array([f_op], np.int64), len(ft), axis=0), ft)
    paces = np.where(steps > 1, lengths // steps, 0)
    kept = ft[(paces == np.array(rp)).all(axis=1)] if len(rp) == len(f_op) else ft[:0]
    if not len(kept):
        raise no_such_pace(spec, f_op, rp, {tuple(pace) for pace in paces.tolist()})
    return kept


def no_such_pace(
    spec: OperatorSpec, f_op: AxisSizes, rp: AxisSizes, paces: Iterable[AxisSizes]
) -> InfeasiblePlanError:
    """Return the error of a pace that no ft under an F_op gives."""
    known = sorted(paces)
    more = ", ..." if len(known) > MOST_NAMED else ""
    return InfeasiblePlanError(
        f"no ft under f_op {list(f_op)} aligns to rp {list(rp)}"
        f" (expected one of {', '.join(str(list(pace)) for pace in known[:MOST_NAMED])}{more})",
        operator=spec.name,
        location=spec.location or None,
        hint="give ft as well: rp follows from it",
    )


def _rows(spec: OperatorSpec, chip: ChipSpec, options: PlanOptions) -> tuple[Ints, float]:
    """Return every F_op to search and the least padding; under a forced F_op, ft may pad however much."""
    forced = options.forced_for(spec.name)
    if forced is None:
        return searched_partitions(spec, chip.n_cores, options)
    require_legal(spec, PlanRows(forced.f_op, forced.ft), chip)
    return np.array([forced.f_op], np.int64), 0.0


def _space(spec: OperatorSpec, chip: ChipSpec, cost: CostModel, options: PlanOptions) -> _Space:
    """Return what there is to search."""
    forced = options.forced_for(spec.name)
    rows, padding = _rows(spec, chip, options)
    ft, unrotated = None, None
    if forced is None:
        unrotated = unrotated_space(spec, chip.n_cores, options)[1]
    elif forced.ft is not None:
        ft = np.array([forced.ft], np.int64)
    elif forced.rp is not None:
        ft = ft_of_pace(spec, forced.f_op, forced.rp)
    space = _made(spec, rows, padding, ft, chip, cost)
    return replace(space, is_chained=options.as_published, unrotated=unrotated)


def is_chain(ft: FtRows) -> bool:
    """Return whether, along every axis, of the parts of any two tensors that rotate one number divides the other."""
    for parts in zip(*ft, strict=True):
        rising = sorted(parts)
        if any(more % fewer for fewer, more in pairwise(rising)):
            return False
    return True


def _made(
    spec: OperatorSpec, rows: Ints, padding: float, ft: Ints | None, chip: ChipSpec, cost: CostModel
) -> _Space:
    least = least_costs(cost)
    # No epilogue takes less than the one that a bias has left.
    shortest = begun(spec) if takes_first(cost, spec) else spec
    return _Space(
        spec=spec,
        rows=np.ascontiguousarray(rows),
        ft=ft,
        task=search_task(spec, chip, cost, padding),
        cost=cost,
        program=cost_program(least, shortest, is_bound=least != cost),
    )


def _front(
    space: _Space, chip: ChipSpec, progress: SearchProgress | None, *, is_pruning: bool = True
) -> tuple[list[Found], Counts]:
    """Return the front of the plans that fit with all operands as copies, or may fit with some in place.

    Raises `InfeasiblePlanError` where there is none.
    """
    room = space.task.capacity_bytes
    needs: list[int] = []
    for limit in limits_bytes(chip):
        wider = replace(space, task=replace(space.task, capacity_bytes=limit))
        found, counts = wider.front(progress, is_pruning=is_pruning)
        found, counts = _with_unrotated(space, found, counts, limit)
        needs = [
            n_bytes if n_bytes <= room else _least_bytes(space.spec, partition, chip)
            for partition, _, n_bytes in found
        ]
        fitting = [plan for plan, need in zip(found, needs, strict=True) if need <= room]
        if fitting:
            return fitting, counts
    raise too_large(space.spec, chip, min(needs, default=_smallest(space)[2]))


def _with_unrotated(
    space: _Space, found: list[Found], counts: Counts, limit: int
) -> tuple[list[Found], Counts]:
    """Return the front that plans without rotation under further F_op leave, and the counts with these."""
    rows = space.unrotated
    if rows is None or not len(rows):
        return found, counts
    found, n_exact = with_unrotated(space.spec, space.cost, rows, found, limit)
    n_rows, n_cases, n_priced, n_placed, n_sub_tasks, n_before = counts
    return found, (n_rows, n_cases, n_priced + len(rows), n_placed, n_sub_tasks, n_before + n_exact)


def _least_bytes(spec: OperatorSpec, partition: PartitionFactors, chip: ChipSpec) -> int:
    """Return what a partition takes at least in a model; what cannot be placed takes more than there is."""
    aligned = placed(spec, align(spec, (partition,)))
    return least_bytes(spec, aligned[0], overlaps=chip.overlaps) if aligned else UNLIMITED_BYTES


def _smallest(space: _Space) -> Found:
    """Return the partition of fewest bytes on cores of any size."""
    unlimited = replace(space, task=replace(space.task, capacity_bytes=UNLIMITED_BYTES))
    found, _ = unlimited.front(None, is_bytes_only=True)
    if not found:
        raise InfeasiblePlanError(
            f"no ft under f_op {space.rows[0].tolist()} as forced has a placement",
            operator=space.spec.name,
            location=space.spec.location or None,
        )
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
