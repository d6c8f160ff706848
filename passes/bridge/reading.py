"""Where the region of an operator reads the operands of its expression."""

from __future__ import annotations

from typing import Any

from t10.core.expression import OperatorSpec
from t10.dialect.mlir import walk


def readings(
    op: Any, spec: OperatorSpec, names: dict[Any, str], sources: dict[str, str]
) -> dict[int, tuple[Any, int]]:
    """Return, by operand of its expression, which operation of an operator's region reads it as which of its operands.

    A value read at two indices is two operands of the expression and read in two places. What is read through a view
    inside the region has no place. `names` are those of values, `sources` of padded values what they pad.
    """
    inner = [each.operation for each in walk(op)[1:]]
    inside = {result for each in inner for result in each.results}
    free = [
        (each, i, names[value])
        for each in inner
        for i, value in enumerate(each.operands)
        if value in names and value not in inside
    ]
    found: dict[int, tuple[Any, int]] = {}
    for number, operand in enumerate(spec.operands):
        for place in free:
            if operand.name in (place[2], sources.get(place[2])):
                found[number] = place[:2]
                free.remove(place)
                break
    return found
