"""A lower bound of the cycles of steps that run in parts, where counting every part would take long."""

from __future__ import annotations

from t10.core.contiguous_parts import moduli
from t10.core.expression import OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.sub_task_nest import whole_axes
from t10.plan.search import _batch_function
from t10.plan.search._batch_function import BatchFunction

MOST_CORES = 16
MOST_PARTS = 1 << 17
"""Cores of which parts are looked at, at most, and parts of all of them."""


def least_part_cycles(spec: OperatorSpec, plan: OperatorPlan, bound: BatchFunction) -> float:
    """Return cycles that no steps of a plan fall below that run in parts; `bound` has those of a step, by its box.

    Every part takes as long as its slowest core, so no less than any core is bound by: here the slowest of a few.
    """
    whole = whole_axes(spec, plan, has_zeros=True)
    slots = range(len(spec.rotatable))
    axes = [
        (
            spec.axes[axis].extent,
            plan.f_op[axis],
            plan.lengths[axis],
            plan.steps[axis],
            plan.rp[axis],
            sorted(moduli(spec, plan, axis, slots)),
            [(term.sharer_axes, term.divisor, term.modulus, term.stride) for term in plan.phases[axis]],
            axis in whole,
            axis in spec.reduction_axes,
        )
        for axis in range(len(plan.f_op))
    ]
    return _batch_function.least_part_cycles(bound, axes, plan.core_order, MOST_CORES, MOST_PARTS)
