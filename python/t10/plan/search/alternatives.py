"""All-reduce plans: partial sums are combined on every core that has some of them.

A reduce-scatter leaves each core with a chunk of the sum; a reader of the whole sum gathers the chunks in a second
phase. An all-reduce saves that phase, but takes longer, and every core repeats the epilogue. It pays for small sums
that all those cores read (row statistics of a softmax or a layer norm). No front of a single operator contains such
plans, so the choice for a whole model adds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from t10.chip import ChipSpec
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.plan import OperatorPlan
from t10.cost import CostModel
from t10.cost.operator import output_chunk
from t10.plan.search.alignment import align_pace
from t10.plan.search.evaluate import Evaluation, evaluate
from t10.plan.search.placement import place


def alternatives(spec: OperatorSpec, plan: OperatorPlan, chip: ChipSpec) -> tuple[OperatorPlan, ...]:
    """Return the plan with its partial sums combined the other way, none where they are on one core each.

    An all-reduce takes an element of every other member at once, so the shift buffer must have room for these.
    """
    n_members, _ = output_chunk(spec, plan)
    if plan.reduce == "all":
        return (replace(plan, reduce="scatter"),)
    if n_members == 1 or (n_members - 1) * size_bytes(spec.acc_dtype) > chip.shift_buffer_bytes:
        return ()
    return (replace(plan, reduce="all"),)


def with_results_first(spec: OperatorSpec, plan: OperatorPlan) -> OperatorPlan | None:
    """Return an all-reduce plan without rotation whose first cores have every part of the result, each once.

    A reader that runs on so few cores then has it in place. None where the plan numbers its cores so, or rotates.
    """
    order = sorted(plan.core_order, key=lambda axis: (plan.f_op[axis] > 1, axis not in spec.reduction_axes))
    if plan.reduce != "all" or max(plan.steps) > 1 or tuple(order) == plan.core_order:
        return None
    found = place(spec, plan.f_op, plan.ft, align_pace(spec, plan.f_op, plan.ft), tuple(order))
    return None if found is None else replace(found, reduce="all")


def evaluate_plans(spec: OperatorSpec, cost: CostModel, plans: Sequence[OperatorPlan]) -> Evaluation:
    """Return bytes and cycles of plans, one row each, as `evaluate` does of partitions with reduce-scatter."""
    return evaluate(
        spec,
        cost,
        np.array([plan.f_op for plan in plans], np.int64),
        np.array([plan.ft for plan in plans], np.int64),
        np.array([plan.reduce == "all" for plan in plans]),
        plans,
    )
