"""Plans whose result lies as a grid although several cores sum each part of it, so that readers can follow them.

A reduce-scatter leaves every core with a chunk of its part. Only where chunks are slices of the part's first long dim
is the result cut in a grid (see `search.producer_layouts`), and the plans of a front seldom happen to be such. Among
all partitions without rotation the best of those that are, by cycles and bytes, are worth having as states.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from t10.core.arrays import Ints
from t10.core.expression import OperatorSpec
from t10.core.plan import CostedPlan
from t10.cost.model import least_costs
from t10.plan.assemble import Context
from t10.plan.options import PlanOptions
from t10.plan.search.alignment import align_pace
from t10.plan.search.evaluate import evaluate
from t10.plan.search.listed import costed
from t10.plan.search.pareto import front_indices
from t10.plan.search.placement import place
from t10.plan.search.space import searched_partitions


def grid_plans(
    context: Context, spec: OperatorSpec, options: PlanOptions, most: int
) -> tuple[CostedPlan, ...]:
    """Return at most `most` plans that leave a grid of summed parts, fastest first; none without sums over cores.

    They are the fastest of the front of bounds: only these are priced.
    """
    if not spec.reduction_axes:
        return ()
    rows, _ = searched_partitions(spec, context.chip.n_cores, replace(options, exhaustive=False))
    rows = rows[leaves_grid(spec, rows)]
    if not len(rows):
        return ()
    ft = np.ones((len(rows), len(spec.rotatable), rows.shape[1]), np.int64)
    least = evaluate(spec, least_costs(context.cost), rows, ft)
    best = front_indices(least.cycles, least.active_bytes)[::-1][:most]
    priced = evaluate(spec, context.cost, rows[best], ft[best])
    ones = tuple((1,) * rows.shape[1] for _ in spec.rotatable)
    found: list[CostedPlan] = []
    for number, row in enumerate(rows[best].tolist()):
        plan = place(spec, tuple(row), ones, align_pace(spec, tuple(row), ones))
        if plan is not None:
            found.append(costed(plan, priced, number))
    return tuple(found)


def leaves_grid(spec: OperatorSpec, rows: Ints) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Return which F_op split a reduction axis and leave chunks that are slices of the first long dim of a part."""
    members = rows[:, list(spec.reduction_axes)].prod(axis=1)
    lengths = -(-np.array(spec.extents) // rows)
    is_slice = np.zeros(len(rows), np.bool_)
    is_found = np.zeros(len(rows), np.bool_)
    for dim in spec.output.dims:
        if not dim.terms:
            continue
        length = lengths[:, dim.terms[0].axis]
        here = ~is_found & (length > 1)
        is_slice |= here & (length % members == 0)
        is_found |= here
    return is_slice & (members > 1)
