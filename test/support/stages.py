"""The front of one operator by the three stages of its search, one after the other, nothing left out."""

from __future__ import annotations

from t10.chip import ChipSpec
from t10.core.expression import OperatorSpec
from t10.core.plan import CostedPlan
from t10.core.space import PartitionSpace
from t10.cost import CostModel
from t10.plan.fronts.stages import partitions_or_space, placed_plans
from t10.plan.options import PlanOptions
from t10.plan.search.listed import front_that_fits

UNLIMITED = 1 << 60


def staged_front(
    spec: OperatorSpec, chip: ChipSpec, cost: CostModel, options: PlanOptions
) -> tuple[CostedPlan, ...]:
    """Return the front of all partitions, listed, then placed, then priced."""
    partitions = partitions_or_space(spec, chip, cost, options, UNLIMITED)
    assert not isinstance(partitions, PartitionSpace)
    forced = options.forced_for(spec.name)
    plans = placed_plans(spec, partitions, None if forced is None else forced.rp)
    return front_that_fits(spec, plans, chip, cost, options)
