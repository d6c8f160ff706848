"""Bytes that an operator moves while it runs (compute-shift model §4)."""

from __future__ import annotations

from math import prod

from t10.core import geometry, shift_rounds
from t10.core.chunks import window_chunk
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.program import Shift
from t10.core.schedule import ScheduledOperator
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
    n_taken = n_slots if plan.reduce == "all" else window_chunk(n_slots, n_members)
    return (n_members - 1) * n_taken * size_bytes(spec.acc_dtype)


def sent_bytes(spec: OperatorSpec, planned: ScheduledOperator) -> int:
    """Return what the busiest core sends for one operator; what several cores take is sent once."""
    even = shift_bytes(spec, planned) + reduce_bytes(spec, planned.active.plan)
    return even + sum(arrival.sent_bytes for arrival in planned.arrivals)


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
