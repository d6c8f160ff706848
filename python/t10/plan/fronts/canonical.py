"""Operators up to names, scales and zero points: what is solved once for all operators of the same kind in a model."""

from __future__ import annotations

from t10.codelets.compile import own_digest
from t10.core.canonical import canonical
from t10.core.expression import OperatorSpec
from t10.cost import CostModel, IpuCostModel
from t10.cost.custom import CustomCostModel
from t10.plan.fronts.typical_constants import with_typical_constants


def searched_as(spec: OperatorSpec, cost: CostModel) -> OperatorSpec:
    """Return what is searched for an operator: equal operators have equal fronts.

    Names are neutral unless the operator is priced by a cost function of somebody's own, which may look at them. Where
    code is counted, the bundled families', scales and zero points are typical ones.
    """
    is_special = isinstance(cost, CustomCostModel) and cost.own_cost(spec) is not None
    if is_special:
        return spec
    neutral = canonical(spec)
    is_counted = type(cost) is IpuCostModel and cost.is_counted and not own_digest()
    return with_typical_constants(neutral) if is_counted else neutral
