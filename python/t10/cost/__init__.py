"""Cost models: cycles of steps and exchanges; the bundled models, and users' own."""

from t10.cost.custom import CustomCostModel, UserCost
from t10.cost.ipu import IpuCostModel
from t10.cost.model import CostModel
from t10.cost.operator import advance_bytes, operator_cycles
from t10.cost.paper import PaperCostModel, paper_cost_model
from t10.cost.registry import (
    DEFAULT_COST_MODEL,
    cost_model,
    cost_model_names,
    given,
    register_cost,
    register_cost_model,
)

__all__ = [
    "DEFAULT_COST_MODEL",
    "CostModel",
    "CustomCostModel",
    "IpuCostModel",
    "PaperCostModel",
    "UserCost",
    "advance_bytes",
    "cost_model",
    "cost_model_names",
    "given",
    "operator_cycles",
    "paper_cost_model",
    "register_cost",
    "register_cost_model",
]
