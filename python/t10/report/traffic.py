"""Bytes a plan moves while its operator runs, in closed form (compute-shift model §4)."""

from __future__ import annotations

from math import prod

from t10.core import geometry
from t10.core.chunks import chunk_slots
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.schedule import ScheduledOperator
from t10.report.records import Traffic


def advances(plan: OperatorPlan, axis: int) -> int:
    """Return how many times the nest advances along an axis: once per step but the first, in every sweep of it."""
    if axis not in plan.loop_order:
        return 0
    n_sweeps = prod(plan.steps[outer] for outer in plan.loop_order[: plan.loop_order.index(axis)])
    return (plan.steps[axis] - 1) * n_sweeps


def shift_bytes(spec: OperatorSpec, plan: OperatorPlan, resident: frozenset[int] = frozenset()) -> int:
    """Return the bytes every core receives by shifts; weights in `resident` (input numbers) are shifted home too."""
    total = 0
    ends = geometry.final_positions(plan)
    for slot, operand in enumerate(spec.rotatable):
        dtype = spec.acc_dtype if slot == len(spec.inputs) else operand.dtype
        lengths = geometry.window_lengths(plan, slot)
        n_bytes = prod(geometry.partition_shape(operand, lengths)) * size_bytes(dtype)
        for axis in plan.loop_order:
            if plan.ft[slot][axis] > 1:
                is_away = slot in resident and ends[axis] > 0
                total += (advances(plan, axis) + is_away) * (n_bytes * plan.rp[axis] // lengths[axis])
    return total


def reduce_bytes(spec: OperatorSpec, plan: OperatorPlan) -> int:
    """Return the bytes every core receives when partial results are combined: of every other member a chunk or all."""
    slot = len(spec.inputs)
    n_members = geometry.n_replicas(spec, plan, slot)
    if n_members < 2:
        return 0
    n_slots = prod(geometry.partition_shape(spec.output, geometry.window_lengths(plan, slot)))
    n_taken = n_slots if plan.reduce == "all" else chunk_slots(n_slots, n_members)
    return (n_members - 1) * n_taken * size_bytes(spec.acc_dtype)


def operator_traffic(spec: OperatorSpec, planned: ScheduledOperator) -> Traffic:
    """Return what the busiest core receives for one operator."""
    by_kind = {"relayout": 0, "setup": 0, "in_place": 0}
    for arrival in planned.arrivals:
        by_kind[arrival.kind] += arrival.received_bytes
    resident = frozenset(a.operand for a in planned.arrivals if a.buffer.startswith("idle:"))
    plan = planned.active.plan
    return Traffic(
        relayout=by_kind["relayout"],
        setup=by_kind["setup"],
        shift=shift_bytes(spec, plan, resident),
        reduce=reduce_bytes(spec, plan),
    )
