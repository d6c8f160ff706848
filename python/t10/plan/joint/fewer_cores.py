"""Plans on fewer cores than there are, on purpose.

Alone an operator is seldom faster on fewer cores, so a front holds few such plans. Between small operators the exchange
takes longer than computing, and fewer cores send fewer and longer runs. So the fastest plans without rotation, and the
fastest of those that leave a grid (see `grids`), are states for every number of `RUNGS`: what a small chip may choose,
a larger one may choose too.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from t10.core.expression import OperatorSpec
from t10.core.plan import CostedPlan
from t10.cost.model import least_costs
from t10.plan.assemble import Context
from t10.plan.joint.grids import leaves_grid
from t10.plan.search.alignment import align_pace
from t10.plan.search.evaluate import evaluate
from t10.plan.search.listed import costed
from t10.plan.search.pareto import front_indices
from t10.plan.search.placement import place
from t10.plan.search.space import has_few_partitions, operator_partitions

RUNGS = (1, 4, 16, 64, 256, 1024)


def rungs_of(spec: OperatorSpec, n_cores: int) -> list[int]:
    """Return the rungs up to `n_cores`, that included, on which an operator has few partitions, least first."""
    rungs = (*(rung for rung in RUNGS if rung < n_cores), n_cores)
    return [rung for rung in rungs if has_few_partitions(spec, rung)]


def few_core_plans(
    context: Context, spec: OperatorSpec, most: int, limit_cycles: float
) -> tuple[CostedPlan, ...]:
    """Return plans without rotation of no more than `limit_cycles`, for every rung on which partitions are few.

    Up to `most` of all, and as many that leave a grid: the fastest of the fronts of bounds; only they are priced.
    """
    rungs = rungs_of(spec, context.chip.n_cores)
    if not rungs:
        return ()
    rows = operator_partitions(spec, rungs[-1], parallelism=0.0, padding=0.0)
    ft = np.ones((len(rows), len(spec.rotatable), rows.shape[1]), np.int64)
    least = evaluate(spec, least_costs(context.cost), rows, ft)
    # What comes before an operator depends on its neighbours: it may be all of its inputs, or nothing.
    alone = least.cycles - least.relayout
    is_fast = alone <= limit_cycles
    n_cores = rows.prod(axis=1)
    chosen: set[int] = set()
    kinds = (is_fast, is_fast & leaves_grid(spec, rows)) if spec.reduction_axes else (is_fast,)
    for rung, is_wanted, cycles in product(rungs, kinds, (least.cycles, alone)):
        within = np.flatnonzero(is_wanted & (n_cores <= rung))
        best = front_indices(cycles[within], least.active_bytes[within])[::-1][:most]
        chosen.update(within[best].tolist())
    numbers = np.array(sorted(chosen), np.int64)
    priced = evaluate(spec, context.cost, rows[numbers], ft[numbers])
    ones = tuple((1,) * rows.shape[1] for _ in spec.rotatable)
    found: list[CostedPlan] = []
    for number, row in enumerate(rows[numbers].tolist()):
        plan = place(spec, tuple(row), ones, align_pace(spec, tuple(row), ones))
        if plan is not None:
            found.append(costed(plan, priced, number))
    return tuple(found)
