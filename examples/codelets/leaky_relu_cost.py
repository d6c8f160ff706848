"""What the codelet LeakyReluFloat costs: the planner asks for the cycles of many sub-tasks at once."""

from t10.core.expression import OperatorSpec
from t10.cost import register_cost


def is_leaky_relu(spec: OperatorSpec) -> bool:
    """Return whether an operator is x < 0 ? slope * x : x, as an ONNX LeakyRelu becomes."""
    opcodes = [op.opcode.removeprefix("arith.") for op in spec.body.ops if op.opcode != "const"]
    return spec.kind == "elementwise" and opcodes == ["cmpf", "mulf", "select"]


def leaky_relu_cycles(spec: OperatorSpec, boxes):
    """Return cycles for boxes of shape (n, axes): six workers, ten slots of six cycles per element."""
    return 120 + 60 * -(-boxes.prod(axis=1) // 6)


register_cost(is_leaky_relu, leaky_relu_cycles, name="leaky relu codelet", version="1")
