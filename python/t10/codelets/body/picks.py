"""Bodies that pick what they compute by the place along an axis: `select(index(j) == 0, x, x * x)`.

Where the place is known they are shorter: x where j is 0, x * x where it is 1.
"""

from __future__ import annotations

from functools import lru_cache

from t10.codelets.body.expand import without_dead
from t10.core.scalar import ScalarFunction, ScalarOp, constant_text


@lru_cache(maxsize=4096)
def picking_axes(function: ScalarFunction) -> tuple[int, ...]:
    """Return the axes by whose places a function picks, and does nothing else with them."""
    users: dict[int, list[ScalarOp]] = {}
    for op in function.ops:
        for value in op.operands:
            users.setdefault(value, []).append(op)
    result: list[int] = []
    for number, op in enumerate(function.ops, function.n_inputs):
        if op.opcode == "index" and all(_test(function, user) is not None for user in users.get(number, ())):
            result.append(int(op.attribute))
    return tuple(result)


@lru_cache(maxsize=4096)
def picked(function: ScalarFunction, axis: int, place: int) -> ScalarFunction:
    """Return a function that picks by `axis` as it is at a place there."""
    ops: list[ScalarOp] = []
    value_of = list(range(function.n_inputs))
    truths: dict[int, bool] = {}
    for number, op in enumerate(function.ops, function.n_inputs):
        test = _test(function, op)
        if test is not None and test[0] == axis:
            truths[number] = place == test[1]
        if op.opcode == "arith.select" and op.operands[0] in truths:
            _, then, otherwise = op.operands
            value_of.append(value_of[then if truths[op.operands[0]] else otherwise])
            continue
        if number in truths:
            op = ScalarOp("const", (), "i1", constant_text(truths[number]))
        operands = tuple([value_of[value] for value in op.operands])
        value_of.append(function.n_inputs + len(ops))
        ops.append(ScalarOp(op.opcode, operands, op.dtype, op.attribute))
    return without_dead(ScalarFunction(function.n_inputs, tuple(ops), value_of[function.result]))


def _test(function: ScalarFunction, op: ScalarOp) -> tuple[int, int] | None:
    """Return (axis, place) where an operation asks whether the place along an axis is that one, else None."""
    if op.opcode != "arith.cmpi" or op.attribute != "eq":
        return None
    made = [function.ops[value - function.n_inputs] for value in op.operands if value >= function.n_inputs]
    index = next((each for each in made if each.opcode == "index"), None)
    constant = next((each for each in made if each.opcode == "const"), None)
    return None if index is None or constant is None else (int(index.attribute), int(constant.attribute))
