"""What things cost in cycles: the `CostModel` interface and the model of an IPU core and its exchange."""

from t10.cost.ipu import IpuCostModel
from t10.cost.model import CostModel
from t10.cost.operator import advance_bytes, operator_cycles

__all__ = ["CostModel", "IpuCostModel", "advance_bytes", "operator_cycles"]
