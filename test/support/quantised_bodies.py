"""Bodies that write a float as a byte, and this as a float again."""

from __future__ import annotations

from t10.core.scalar import ScalarFunction, ScalarOp

SIGNED, UNSIGNED = (-128, 127), (0, 255)


def quantised(
    zero: float | None,
    limits: tuple[float, float],
    back: str,
    *,
    swapped: bool = False,
    scale: float | None = None,
) -> ScalarFunction:
    """Return x as a byte, and this as a float again by the operation `back`; no float if it is empty.

    With a scale x is divided by it before, and the float is taken back by the zero point and the scale.
    """
    ops: list[ScalarOp] = []

    def op(opcode: str, *operands: int, dtype: str = "f32", attribute: str = "") -> int:
        ops.append(ScalarOp(opcode, operands, dtype, attribute))
        return len(ops)

    def constant(value: float) -> int:
        return op("const", attribute=repr(float(value)))

    kept = op("math.roundeven", 0 if scale is None else op("arith.divf", 0, constant(scale)))
    if zero is not None:
        kept = op("arith.addf", kept, constant(zero))
    pairs = [("arith.maximumf", limits[0]), ("arith.minimumf", limits[1])]
    for opcode, limit in pairs[::-1] if swapped else pairs:
        kept = op(opcode, kept, constant(limit))
    result = op("arith.trunci", op("arith.fptosi", kept, dtype="i32"), dtype="i8")
    if back:
        result = op(back, result)
    if back and scale is not None:
        centred = result if zero is None else op("arith.subf", result, constant(zero))
        result = op("arith.mulf", centred, constant(scale))
    return ScalarFunction(1, tuple(ops), result)
