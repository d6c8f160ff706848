"""Plans that are listed: their paces, placements and prices, and the front that remains of them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from t10.chip import ChipSpec
from t10.core.arrays import Ints
from t10.core.dtypes import size_bytes
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.links import Links
from t10.core.plan import CostedPlan, Cycles, OperatorPlan
from t10.cost import CostModel
from t10.cost.model import least_costs
from t10.errors import InfeasiblePlanError
from t10.plan.memory.operator_bound import least_bytes
from t10.plan.options import PlanOptions
from t10.plan.search.alignment import Pace, align_pace
from t10.plan.search.alternatives import evaluate_plans
from t10.plan.search.evaluate import Evaluation
from t10.plan.search.laid_out import laid_out
from t10.plan.search.pareto import fastest, front_indices, thinned
from t10.plan.search.placement import place

FtRows = tuple[AxisSizes, ...]
PartitionFactors = tuple[AxisSizes, FtRows]
Found = tuple[PartitionFactors, int, int]
"""A plan on the front: its partition, its cycles, its bytes per core."""

MOST_COPIES = 2
"""Plans are looked at up to this many times the memory there is: about half of what they hold may be in place."""
ROOMY_BYTES = 1 << 23
"""Memory of a core in which any plan worth looking at fits."""


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
    spec: OperatorSpec,
    aligned: tuple[tuple[PartitionFactors, Pace], ...],
    links: Links | None = None,
) -> tuple[OperatorPlan, ...]:
    """Return the plans that have a placement; cores lie as links are least busy."""
    plans = tuple(place(spec, f_op, ft, pace) for (f_op, ft), pace in aligned)
    known = (plan for plan in plans if plan is not None)
    return tuple(known) if links is None else tuple(laid_out(links, spec, plan) for plan in known)


def pareto_front(
    spec: OperatorSpec, plans: tuple[OperatorPlan, ...], cost: CostModel, options: PlanOptions
) -> tuple[CostedPlan, ...]:
    """Return the plans that no other beats in cycles and bytes, with their costs, fastest last."""
    if not plans:
        return ()
    front, priced = _priced_front(spec, plans, cost)
    rows: list[int] = thinned(np.arange(len(front)), priced.cycles, options.max_front).tolist()
    return tuple(costed(front[row], priced, row) for row in rows)


def front_that_fits(
    spec: OperatorSpec,
    plans: tuple[OperatorPlan, ...],
    chip: ChipSpec,
    cost: CostModel,
    options: PlanOptions,
) -> tuple[CostedPlan, ...]:
    """Return the front of plans that are listed, fastest last: those of them that fit, as `search_operator` finds them.

    Of plans equal in cycles and bytes the first counts. Raises `InfeasiblePlanError` where none fits.
    """
    room, (front, priced) = room_bytes(chip), _priced_front(spec, plans, cost)
    needs: list[int] = []
    for limit in limits_bytes(chip):
        within = np.flatnonzero(priced.active_bytes <= limit)
        numbers: list[int] = within.tolist()
        needs = [_need_bytes(spec, front[i], int(priced.active_bytes[i]), chip) for i in numbers]
        fitting = within[np.array(needs, np.int64) <= room]
        if len(fitting):
            rows: list[int] = thinned(fitting, priced.cycles, options.max_front).tolist()
            return tuple(costed(front[row], priced, row) for row in rows)
    raise too_large(spec, chip, min(needs, default=int(priced.active_bytes[0])))


def room_bytes(chip: ChipSpec) -> int:
    """Return what a core has for what operators hold."""
    return chip.capacity_bytes - chip.shift_buffer_bytes


def limits_bytes(chip: ChipSpec) -> tuple[int, int]:
    """Return up to how many bytes plans are looked at: first those a model is likely to have room for, then any."""
    return MOST_COPIES * room_bytes(chip), max(ROOMY_BYTES, chip.sram_bytes)


def costed(plan: OperatorPlan, priced: Evaluation, row: int) -> CostedPlan:
    """Return a plan with row `row` of an evaluation as its price."""
    cycles = Cycles(
        compute=int(priced.compute[row]),
        shift=int(priced.shift[row]),
        reduce=int(priced.reduce[row]),
        relayout=int(priced.relayout[row]),
    )
    return CostedPlan(plan, cycles, int(priced.weight_bytes[row]), int(priced.active_bytes[row]))


def too_large(spec: OperatorSpec, chip: ChipSpec, need: int) -> InfeasiblePlanError:
    """Return the error of an operator of which nothing fits, with what the smallest of its plans needs."""
    return InfeasiblePlanError(
        f"needs at least {need:,} bytes per core, {room_bytes(chip):,} are available on {chip.name}",
        operator=spec.name,
        location=spec.location or None,
        hint=room_hint((spec,)),
    )


def room_hint(specs: Iterable[OperatorSpec]) -> str:
    """Return what makes room for operators that do not fit; fp16 only where a tensor has wider floats."""
    dtypes = {operand.dtype for spec in specs for operand in (*spec.operands, spec.output)}
    is_wide = any(dtype.startswith("f") and size_bytes(dtype) > size_bytes("f16") for dtype in dtypes)
    return f"use a chip with more cores{', a smaller batch, or fp16' if is_wide else ' or a smaller batch'}"


def _priced_front(
    spec: OperatorSpec, plans: tuple[OperatorPlan, ...], cost: CostModel
) -> tuple[tuple[OperatorPlan, ...], Evaluation]:
    """Return the plans that no other beats and their prices, least bytes first; bounds spare most of the others'."""
    least = evaluate_plans(spec, least_costs(cost), plans)

    def price(rows: Ints) -> Ints:
        chosen: list[int] = rows.tolist()
        return evaluate_plans(spec, cost, [plans[row] for row in chosen]).cycles

    if least_costs(cost) is cost:
        found = front_indices(least.cycles, least.active_bytes)
    else:
        found = fastest(least.cycles, least.active_bytes, price, len(plans))[0][::-1]
    rows: list[int] = found.tolist()
    front = tuple(plans[row] for row in rows)
    return front, evaluate_plans(spec, cost, front)


def _need_bytes(spec: OperatorSpec, plan: OperatorPlan, n_bytes: int, chip: ChipSpec) -> int:
    """Return what a plan of `n_bytes`, all operands as copies, takes at least in a model, if these are too many."""
    return n_bytes if n_bytes <= room_bytes(chip) else least_bytes(spec, plan, overlaps=chip.overlaps)
