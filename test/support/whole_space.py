"""The front of one operator by trying everything in numpy: what native search must find, bit for bit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from t10.chip import ChipSpec
from t10.core.expression import OperatorSpec
from t10.cost import CostModel
from t10.errors import InfeasiblePlanError
from t10.plan.options import PlanOptions
from t10.plan.search.alignment import align_pace
from t10.plan.search.evaluate import evaluate
from t10.plan.search.listed import PartitionFactors
from t10.plan.search.placement import place
from t10.plan.search.space import searched_partitions, unrotated_space
from t10.plan.search.temporal import TemporalSpace
from t10.plan.search.unrotated import no_rotation

Ints = NDArray[np.int64]
PricedPartition = tuple[PartitionFactors, int, int]


def every_plan(spec: OperatorSpec, chip: ChipSpec, options: PlanOptions) -> tuple[Ints, Ints]:
    """Return all (F_op, ft) of an operator in lexicographic order: arrays (n, axes) and (n, operands, axes)."""
    rows, padding = searched_partitions(spec, chip.n_cores, options)
    per_row = [TemporalSpace.of(spec).partitions(tuple(row.tolist()), padding) for row in rows]
    further = unrotated_space(spec, chip.n_cores, options)[1]
    f_op = np.concatenate([np.repeat(rows, [len(ft) for ft in per_row], axis=0), further])
    ft = np.concatenate([*per_row, no_rotation(spec, len(further))])
    order = np.lexsort(f_op.T[::-1])
    return f_op[order], ft[order]


def whole_front(
    spec: OperatorSpec, chip: ChipSpec, cost: CostModel, options: PlanOptions
) -> list[PricedPartition]:
    """Return the front as (partition, cycles, bytes), least bytes first; of equal plans the first that is placeable."""
    f_op, ft = every_plan(spec, chip, options)
    priced = evaluate(spec, cost, f_op, ft)
    fits = priced.active_bytes <= chip.capacity_bytes - chip.shift_buffer_bytes
    order = np.lexsort((np.arange(len(f_op)), priced.cycles, priced.active_bytes))
    front: list[PricedPartition] = []
    for i in order[fits[order]].tolist():
        cycles = int(priced.cycles[i])
        if front and front[-1][1] <= cycles:
            continue
        partition = (tuple(f_op[i].tolist()), tuple(tuple(row) for row in ft[i].tolist()))
        if _is_placeable(spec, partition):
            front.append((partition, cycles, int(priced.active_bytes[i])))
    return front


def _is_placeable(spec: OperatorSpec, partition: PartitionFactors) -> bool:
    try:
        return place(spec, *partition, align_pace(spec, *partition)) is not None
    except InfeasiblePlanError:
        return False
