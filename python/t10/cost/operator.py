"""Closed forms of one plan's bytes per shift and cycles: what the planner predicts and the simulators check.

Source: compute-shift model §6, T10 §4.2.
"""

from __future__ import annotations

from math import prod

from t10.core import geometry
from t10.core.chunks import window_chunk
from t10.core.costs import (
    GroupCosts,
    crossing_cycles,
    fused_cycles,
    nest_cycles,
    plan_end_cycles,
    sees_shifts,
    shift_cycles,
)
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.operator_body import shifts_home
from t10.core.plan import Cycles, OperatorPlan
from t10.core.shift_rounds import rotating_dtype, shift_elements
from t10.cost.model import CostModel


def advance_bytes(spec: OperatorSpec, plan: OperatorPlan, axis: int) -> int:
    """Return the bytes a core passes on when `axis` advances, all operands that rotate along it together."""
    return sum(
        shift_elements(spec, plan, slot, axis) * size_bytes(rotating_dtype(spec, slot))
        for slot in range(len(spec.rotatable))
    )


def n_advances(plan: OperatorPlan, axis: int) -> int:
    """Return how often `axis` advances in the serpentine nest: once less than its steps in every sweep."""
    outside = plan.loop_order[: plan.loop_order.index(axis)]
    return (plan.steps[axis] - 1) * prod(plan.steps[a] for a in outside)


def output_chunk(spec: OperatorSpec, plan: OperatorPlan) -> tuple[int, int]:
    """Return (r, n): r cores hold partial sums of the same output elements, each ends with n of them."""
    slot = len(spec.inputs)
    n_members = geometry.n_replicas(spec, plan, slot)
    n_elements = prod(geometry.partition_shape(spec.output, geometry.window_lengths(plan, slot)))
    return n_members, n_elements if plan.reduce == "all" else window_chunk(n_elements, n_members)


def members(spec: OperatorSpec, plan: OperatorPlan) -> int:
    """Return how many cores have sums of the same outputs, as `WindowCosts` ask: negative where each ends with all."""
    n_members = geometry.n_replicas(spec, plan, len(spec.inputs))
    return -n_members if plan.reduce == "all" and n_members > 1 else n_members


def fused_saving(cost: CostModel, spec: OperatorSpec, plan: OperatorPlan) -> int:
    """Return the cycles that a reduction takes less because the end has its last additions; 0 where they are apart."""
    windows = geometry.window_lengths(plan, len(spec.inputs))
    return fused_cycles(cost, spec, windows, members(spec, plan))


def combine_cycles(cost: CostModel, spec: OperatorSpec, plan: OperatorPlan) -> int:
    """Return the cycles in which the partial sums of all cores are combined; 0 where every sum is on one core.

    Without the last additions where the end has them.
    """
    slot = len(spec.inputs)
    n_members = geometry.n_replicas(spec, plan, slot)
    if n_members == 1:
        return 0
    found = cost.combine_cycles(spec, plan) if isinstance(cost, GroupCosts) else None
    others = crossing_cycles(cost, spec, plan) - fused_saving(cost, spec, plan)
    if found is not None:
        return found + others
    n_slots = prod(geometry.partition_shape(spec.output, geometry.window_lengths(plan, slot)))
    cycles = cost.all_reduce_cycles if plan.reduce == "all" else cost.reduce_cycles
    return cycles(spec, n_members, n_slots) + others


def epilogue_cycles(cost: CostModel, spec: OperatorSpec, plan: OperatorPlan) -> int:
    """Return the cycles in which the elements that each core ends with become results; 0 where they are that."""
    n_members, n_slots = output_chunk(spec, plan)
    if spec.epilogue is None and n_members == 1 and spec.acc_dtype == spec.output.dtype:
        return 0
    return plan_end_cycles(cost, spec, plan, members(spec, plan), n_slots)


def nest_shift_cycles(cost: CostModel, spec: OperatorSpec, plan: OperatorPlan) -> int:
    """Return the cycles of all shifts of a nest."""
    if sees_shifts(cost):
        return cost.nest_shift_cycles(spec, plan)
    return sum(n_advances(plan, a) * cost.shift_cycles(advance_bytes(spec, plan, a)) for a in plan.loop_order)


def operator_cycles(cost: CostModel, spec: OperatorSpec, plan: OperatorPlan) -> Cycles:
    """Return the cycles of an operator's nest, reduction and epilogue (in `compute`); nothing that comes before it."""
    return Cycles(
        compute=nest_cycles(cost, spec, plan) + epilogue_cycles(cost, spec, plan),
        shift=nest_shift_cycles(cost, spec, plan),
        reduce=combine_cycles(cost, spec, plan),
    )


def home_cycles(cost: CostModel, spec: OperatorSpec, plan: OperatorPlan, slots: tuple[int, ...]) -> int:
    """Return the cycles in which operands `slots` are shifted home after the nest, where it ended elsewhere.

    One further advance per axis that ended at its last position (compute-shift model R7).
    """
    return sum(shift_cycles(cost, spec, plan, statement) for statement in shifts_home(plan, slots))
