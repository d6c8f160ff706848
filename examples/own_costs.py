"""Costs of one's own kernels: `--cost-model examples/own_costs.py`, or with `:on_paper` behind it.

A cost function takes an operator and many boxes at once: int64, one row per candidate, one column per axis of the
operator. It returns the cycles in which a core computes each box. Written in plain numpy arithmetic it is turned into
native code once per operator; anything else works too, but is called back for every batch of candidates.
"""

from t10.chip import ChipSpec
from t10.core.expression import OperatorSpec
from t10.cost import CostModel, cost_model, register_cost


def softmax_sums(spec: OperatorSpec) -> bool:
    """Return whether an operator is a sum of exponentials."""
    return spec.combine == "sum" and any(op.opcode == "math.exp" for op in spec.body.ops)


def exponential_unit(spec: OperatorSpec, boxes):
    """Return the cycles of a kernel that adds two exponentials per cycle and starts each row in 12 cycles."""
    columns = boxes[:, list(spec.reduction_axes)].prod(axis=1)
    rows = boxes.prod(axis=1) // columns
    return 90 + rows * (12 + -(-columns // 2))


register_cost(softmax_sums, exponential_unit, name="exponential unit", version="1")


def on_paper(chip: ChipSpec) -> CostModel:
    """Return the published constants with what is registered above laid over them."""
    return cost_model("t10-paper", chip)
