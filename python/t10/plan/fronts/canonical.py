"""Operators up to names: what is solved once for all operators of the same kind in a model."""

from __future__ import annotations

from t10.core.canonical import canonical
from t10.core.expression import OperatorSpec
from t10.cost import CostModel
from t10.cost.custom import CustomCostModel


def searched_as(spec: OperatorSpec, cost: CostModel) -> OperatorSpec:
    """Return what is searched for an operator: equal operators have equal fronts.

    Names are neutral unless the operator is priced by a cost function of somebody's own, which may look at them.
    """
    is_special = isinstance(cost, CustomCostModel) and cost.own_cost(spec) is not None
    return spec if is_special else canonical(spec)
