"""The search of one operator: partitions under an evaluation budget, then pace, placement, and the front that remains.

First every F_op without rotation, which is exact and cheap. Then F_op by F_op with rotation, alternating between those
with the best time and those with the best memory, skipping those that cannot reach past the front found so far.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from t10.chip import ChipSpec
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.plan import CostedPlan, Cycles, OperatorPlan
from t10.cost import CostModel
from t10.errors import InfeasiblePlanError
from t10.plan.alignment import Pace, align_pace
from t10.plan.evaluate import Evaluation, evaluate, partition_elements
from t10.plan.options import ForcedPartition, PlanOptions
from t10.plan.pareto import front_indices, thinned
from t10.plan.placement import place
from t10.plan.space import relaxed_partitions
from t10.plan.temporal import TemporalSpace, temporal_partitions

Ints = NDArray[np.int64]
FtRows = tuple[AxisSizes, ...]
Partition = tuple[AxisSizes, FtRows]

ROWS_PER_PARTITION = 4096
BATCH_ROWS = 16_384
BUDGET = 60_000
SPARE_CANDIDATES = 3
"""Near-front candidates kept per wanted plan, in case some cannot be placed."""


@dataclass(frozen=True, slots=True)
class _Pool:
    """Candidates found so far: arrays (n, axes), (n, operands, axes) and their evaluation."""

    f_op: Ints
    ft: Ints
    cycles: Ints
    n_bytes: Ints


def partition_candidates(
    spec: OperatorSpec, chip: ChipSpec, cost: CostModel, options: PlanOptions
) -> tuple[Partition, ...]:
    """Return the partitions worth aligning, (F_op, ft rows) each: those on the front and spare ones close to it.

    Raises `InfeasiblePlanError` where none fits a core's memory or a forced one is wrong.
    """
    forced = options.forced_for(spec.name)
    if forced is not None:
        pool = _forced_pool(spec, chip, cost, forced)
    else:
        pool = _searched_pool(spec, chip, cost, options)
    chosen = _layers(pool, options.max_front)
    return tuple(
        (tuple(pool.f_op[i].tolist()), tuple(tuple(row) for row in pool.ft[i].tolist())) for i in chosen
    )


def align(spec: OperatorSpec, partitions: tuple[Partition, ...]) -> tuple[tuple[Partition, Pace], ...]:
    """Return every partition with its pace; partitions that cannot be aligned are left out."""
    result: list[tuple[Partition, Pace]] = []
    for partition in partitions:
        try:
            result.append((partition, align_pace(spec, *partition)))
        except InfeasiblePlanError:
            continue
    return tuple(result)


def placed(spec: OperatorSpec, aligned: tuple[tuple[Partition, Pace], ...]) -> tuple[OperatorPlan, ...]:
    """Return the plans that have a placement."""
    plans = (place(spec, f_op, ft, pace) for (f_op, ft), pace in aligned)
    return tuple(plan for plan in plans if plan is not None)


def pareto_front(
    spec: OperatorSpec, plans: tuple[OperatorPlan, ...], cost: CostModel, options: PlanOptions
) -> tuple[CostedPlan, ...]:
    """Return the plans that no other beats in cycles and bytes, with their prices, fastest last."""
    if not plans:
        return ()
    f_op = np.array([plan.f_op for plan in plans], np.int64)
    ft = np.array([plan.ft for plan in plans], np.int64)
    priced = evaluate(spec, cost, f_op, ft)
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


def plan_operator(
    spec: OperatorSpec, chip: ChipSpec, cost: CostModel, options: PlanOptions
) -> tuple[CostedPlan, ...]:
    """Return the time x memory front of one operator, fastest last; never empty.

    Raises `InfeasiblePlanError` where nothing fits a core's memory.
    """
    partitions = partition_candidates(spec, chip, cost, options)
    front = pareto_front(spec, placed(spec, align(spec, partitions)), cost, options)
    if not front:
        raise InfeasiblePlanError(
            f"none of {len(partitions)} partitions could be aligned and placed",
            operator=spec.name,
            location=spec.location or None,
            hint="relax --parallelism or --padding",
        )
    return front


def _forced_pool(spec: OperatorSpec, chip: ChipSpec, cost: CostModel, forced: ForcedPartition) -> _Pool:
    """Return the one partition a user asked for, or all ft under the F_op they asked for."""
    n_rows = len(spec.rotatable)
    ones = tuple((1,) * len(spec.axes) for _ in range(n_rows))
    ft_rows = forced.ft if forced.ft is not None else ones
    align_pace(spec, forced.f_op, ft_rows)
    if prod(forced.f_op) > chip.n_cores:
        raise InfeasiblePlanError(
            f"f_op {list(forced.f_op)} needs {prod(forced.f_op)} cores, {chip.name} has {chip.n_cores}",
            operator=spec.name,
        )
    if forced.ft is None:
        ft = temporal_partitions(spec, forced.f_op, 0.0, ROWS_PER_PARTITION)
    else:
        ft = np.array([forced.ft], np.int64)
    f_op = np.repeat(np.array([forced.f_op], np.int64), len(ft), axis=0)
    return _fitting(spec, chip, _evaluated(spec, cost, f_op, ft))


def _searched_pool(spec: OperatorSpec, chip: ChipSpec, cost: CostModel, options: PlanOptions) -> _Pool:
    """Return the best partitions found within the budget."""
    rows, padding = relaxed_partitions(
        spec, chip.n_cores, parallelism=options.parallelism, padding=options.padding
    )
    n_slots = len(spec.rotatable)
    space = TemporalSpace.of(spec)
    pool = _evaluated(spec, cost, rows, np.ones((len(rows), n_slots, rows.shape[1]), np.int64))
    floor_bytes = _least_bytes(spec, rows)
    best = _best_of(pool)
    spent = len(rows)
    batch: list[tuple[Ints, Ints]] = []
    n_batch = 0
    for row in _promising(pool.cycles, floor_bytes):
        if spent + n_batch >= BUDGET:
            break
        if _is_beaten(best, int(pool.cycles[row]), int(floor_bytes[row])):
            continue
        ft = space.partitions(tuple(rows[row].tolist()), padding, ROWS_PER_PARTITION)
        batch.append((np.repeat(rows[row : row + 1], len(ft), axis=0), ft))
        n_batch += len(ft)
        if n_batch >= BATCH_ROWS:
            best = _merged(spec, cost, best, batch)
            spent, n_batch, batch = spent + n_batch, 0, []
    if batch:
        best = _merged(spec, cost, best, batch)
    return _fitting(spec, chip, best)


def _promising(cycles: Ints, floor_bytes: Ints) -> Ints:
    """Return F_op rows, alternating between the fastest without rotation and the smallest with all of it."""
    by_time = np.lexsort((floor_bytes, cycles))
    by_bytes = np.lexsort((cycles, floor_bytes))
    mixed = np.column_stack([by_time, by_bytes]).ravel()
    _, first = np.unique(mixed, return_index=True)
    return mixed[np.sort(first)]


def _is_beaten(best: _Pool, cycles: int, floor_bytes: int) -> bool:
    """Return whether a plan at least this slow and this large cannot be on the front (compute-shift theorem 4)."""
    return bool(((best.cycles <= cycles) & (best.n_bytes <= floor_bytes)).any())


def _least_bytes(spec: OperatorSpec, rows: Ints) -> Ints:
    """Return a lower bound of the operand bytes under each F_op, whatever rotates: the sub-tensors over sharers."""
    lengths = -(-np.array(spec.extents) // rows)
    total = np.zeros(len(rows), np.int64)
    for operand in spec.rotatable:
        n_sharers = rows[:, [a for a in range(rows.shape[1]) if a not in operand.axes]].prod(axis=1)
        total += partition_elements(operand, lengths) * 2 // n_sharers
    return total


def _evaluated(spec: OperatorSpec, cost: CostModel, f_op: Ints, ft: Ints) -> _Pool:
    priced = evaluate(spec, cost, f_op, ft)
    return _Pool(f_op, ft, priced.cycles, priced.active_bytes)


def _taken(pool: _Pool, indices: Ints) -> _Pool:
    return _Pool(pool.f_op[indices], pool.ft[indices], pool.cycles[indices], pool.n_bytes[indices])


def _best_of(pool: _Pool) -> _Pool:
    """Return the front and the layers right behind it."""
    return _taken(pool, _layers(pool, len(pool.cycles)))


def _layers(pool: _Pool, most: int) -> Ints:
    """Return candidates layer by layer: the front, the front without it, and so on, each thinned to `most`."""
    left = np.arange(len(pool.cycles))
    found: list[Ints] = []
    for _ in range(SPARE_CANDIDATES):
        if not len(left):
            break
        inner = front_indices(pool.cycles[left], pool.n_bytes[left])
        found.append(left[thinned(inner, pool.cycles[left], most)])
        left = np.delete(left, inner)
    return np.concatenate(found)


def _merged(spec: OperatorSpec, cost: CostModel, best: _Pool, batch: list[tuple[Ints, Ints]]) -> _Pool:
    """Return the best of what was known and a batch of new partitions."""
    new = _evaluated(
        spec, cost, np.concatenate([f_op for f_op, _ in batch]), np.concatenate([ft for _, ft in batch])
    )
    joined = _Pool(
        np.concatenate([best.f_op, new.f_op]),
        np.concatenate([best.ft, new.ft]),
        np.concatenate([best.cycles, new.cycles]),
        np.concatenate([best.n_bytes, new.n_bytes]),
    )
    return _best_of(joined)


def _fitting(spec: OperatorSpec, chip: ChipSpec, pool: _Pool) -> _Pool:
    """Return the candidates that fit a core with nothing else in it."""
    room = chip.capacity_bytes - chip.shift_buffer_bytes
    keep = np.nonzero(pool.n_bytes <= room)[0]
    if len(keep):
        return _taken(pool, keep)
    raise InfeasiblePlanError(
        f"needs at least {int(pool.n_bytes.min())} bytes per core, {room} are available on {chip.name}",
        operator=spec.name,
        location=spec.location or None,
        hint="use a chip with more cores, a smaller batch, or fp16",
    )
