"""What a result may differ by: the one place, and what docs/numerics.md states.

By operator, given the same inputs, a result y of a reference r is right if it has the same bits (0 and -0 are told
apart, all NaN are alike), or

    exact     never else
    rounded   |y - r| <= ulps units in the last place of r
    summed    |y - r| <= ulps units in the last place of the sum of |terms|
    composed  |y - r| <= ulps units in the last place of the largest |r|

in the type of the result; those of f32 where that is double, which no chip computes. Integers and booleans are exact.

By element type, for what a whole model gives (`t10 verify`): the error relative to the largest |r|, because a small
element may be the difference of large ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from t10.core.dtypes import is_float

Class = Literal["exact", "rounded", "summed", "composed"]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The class of an operator's results, and units in the last place that f32 and f16 results may differ by."""

    kind: Class
    ulps_f32: float = 0.0
    ulps_f16: float = 0.0

    def ulps(self, dtype: str) -> float:
        """Return the units in the last place of results of a type; float64 has those of f32."""
        return self.ulps_f16 if dtype in ("float16", "bfloat16") else self.ulps_f32


_SUM = Tolerance("summed", 8, 1)
_COMPOSED = Tolerance("composed", 64, 4)
_FUNCTION = Tolerance("rounded", 4, 1)

TOLERANCES: dict[str, Tolerance] = {
    **dict.fromkeys(
        (
            "Abs", "Add", "And", "ArgMax", "ArgMin", "BitCast", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr",
            "BitwiseXor", "Cast", "CastLike", "Ceil", "CenterCropPad", "Clip", "Compress", "Concat",
            "ConcatFromSequence", "Constant", "ConstantOfShape", "ConvInteger", "DepthToSpace", "DequantizeLinear",
            "Div", "Dropout", "Equal", "Expand", "EyeLike", "Flatten", "Floor", "Gather", "GatherElements", "GatherND",
            "GlobalMaxPool", "Greater", "GreaterOrEqual", "Hardmax", "Identity", "IsInf", "IsNaN", "Less",
            "LessOrEqual", "MatMulInteger", "Max", "MaxPool", "MaxUnpool", "Min", "Mod", "Mul", "Neg", "Not", "OneHot",
            "Optional", "OptionalGetElement", "OptionalHasElement", "Or", "PRelu", "Pad", "QuantizeLinear", "Range",
            "Reciprocal", "ReduceMax", "ReduceMin", "Relu", "Reshape", "ReverseSequence", "Round", "Scatter",
            "ScatterElements", "ScatterND", "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase",
            "SequenceInsert", "SequenceLength", "Shape", "Sign", "Size", "Slice", "SpaceToDepth", "Split",
            "SplitToSequence", "Sqrt", "Squeeze", "Sub", "TensorScatter", "ThresholdedRelu", "Tile", "TopK",
            "Transpose", "Trilu", "Unique", "Unsqueeze", "Where", "Xor", "Shrink",
        ),
        Tolerance("exact"),
    ),
    **dict.fromkeys(
        (
            "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh", "Exp", "Log", "Sigmoid",
            "Sin", "Sinh", "Tan", "Tanh",
        ),
        _FUNCTION,
    ),
    "Erf": Tolerance("rounded", 4, 2),
    "Pow": Tolerance("rounded", 134, 1),
    "Softplus": Tolerance("rounded", 8, 2),
    "Softsign": Tolerance("rounded", 4, 2),
    "Gelu": Tolerance("summed", 4, 1),
    # The slope is a number of f16, as in ONNX Runtime; the reference multiplies by one in double.
    "LeakyRelu": Tolerance("rounded", 0, 1),
    # States are stored in f16 after every step; 4 ulp do not do for GRU.
    **dict.fromkeys(("GRU", "LSTM", "RNN"), Tolerance("composed", 64, 32)),
    **dict.fromkeys(
        (
            "AveragePool", "Conv", "ConvTranspose", "CumSum", "Einsum", "Gemm", "GlobalAveragePool", "MatMul", "Mean",
            "ReduceL1", "ReduceMean", "ReduceSum", "ReduceSumSquare", "Sum", "Col2Im", "CausalConvWithState",
        ),
        _SUM,
    ),
}  # fmt: skip


def tolerance_of(operator: str, reduction: str = "") -> Tolerance:
    """Return the tolerance of an operator; what no row names is composed of several steps.

    A scatter whose `reduction` adds or multiplies is a sum, which may go in any order.
    """
    if reduction in ("add", "mul") and operator.startswith("Scatter"):
        return _SUM
    return TOLERANCES.get(operator, _COMPOSED)


RELATIVE = {"f16": 5e-3, "f32": 1e-4, "f64": 1e-4}
"""Most error of what a model gives, by the least precise floating-point type in it; `f64` may be computed in f32."""


def tolerance(dtype: str) -> float:
    """Return the most relative error of results of an element type; integers and booleans must be equal."""
    return RELATIVE[dtype] if is_float(dtype) else 0.0


def loosest(dtypes: Iterable[str]) -> float:
    """Return the tolerance of what is computed from values of these types: that of the least precise one."""
    return max((tolerance(dtype) for dtype in dtypes), default=0.0)
