"""Bytes that an operator moves while it runs (compute-shift model §4): of the busiest core, and of all together."""

from __future__ import annotations

from math import prod

from t10.chip import ChipSpec
from t10.core import geometry, shift_rounds
from t10.core.chunks import chunk_slots
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.movement import operand_of
from t10.core.plan import OperatorPlan
from t10.core.program import Shift
from t10.core.schedule import ModulePlan, ScheduledOperator
from t10.cost import CostModel
from t10.plan.assemble import context_of
from t10.report.records import Traffic


def shift_bytes(spec: OperatorSpec, planned: ScheduledOperator) -> int:
    """Return the bytes every core receives by the shifts of an operator's program."""
    plan = planned.active.plan
    return sum(
        shift_rounds.shift_bytes(spec, plan, statement)
        for statement in planned.body
        if isinstance(statement, Shift)
    )


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
    return Traffic(
        relayout=by_kind["relayout"],
        setup=by_kind["setup"],
        shift=shift_bytes(spec, planned),
        reduce=reduce_bytes(spec, planned.active.plan),
    )


def bytes_of_all_cores(plan: ModulePlan, chip: ChipSpec, cost: CostModel) -> tuple[int, ...]:
    """Return by operator the bytes that all cores together take from others."""
    mover = context_of(plan.graph, chip, cost).mover
    layouts = {layout.value: layout for layout in (*plan.weight_layouts, *plan.input_layouts)}
    taken: list[int] = []
    for spec, scheduled in zip(plan.graph.operators, plan.operators, strict=True):
        chosen, moved = scheduled.active.plan, operator_traffic(spec, scheduled)
        # Every core of an operator takes as much by shifts and of partial sums.
        total = prod(chosen.f_op) * (moved.shift + moved.reduce)
        for arrival in scheduled.arrivals:
            if arrival.kind != "in_place":
                n_elements = mover.traffic(spec, chosen, arrival.operand, layouts).total_elements
                total += n_elements * size_bytes(operand_of(spec, arrival.operand).dtype)
        layouts[spec.output.name] = scheduled.output_layout
        taken.append(total)
    return tuple(taken)
