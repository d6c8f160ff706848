"""Which float inputs tell places, as the grid of a GridSample does: found by following them through the operators.

A place is rounded to a whole number, which then selects an element or is compared with each of 0, 1, 2, ...
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.core.dtypes import is_float
from t10.core.expression import Operand
from t10.core.graph import Graph
from t10.core.scalar import ScalarFunction

_WHOLE = frozenset(
    ("math.floor", "math.ceil", "math.round", "math.roundeven", "math.trunc", "arith.fptosi", "arith.fptoui")
)
_COUNTED = frozenset(("arith.index_cast", "arith.index_castui", "arith.sitofp", "arith.uitofp"))
"""Conversions of what counts 0, 1, 2, ..."""
_EQUAL = frozenset(("oeq", "ueq", "eq"))
_State = bool | None
"""Of a value: None if it is not made of the input, else whether it is of whole numbers."""


def coordinate_inputs(graph: Graph, weights: Mapping[str, NDArray[Any]]) -> frozenset[str]:
    """Return the names of the float inputs that tell places, in a model with weights of such values."""
    counting = frozenset(weight.name for weight in graph.weights if _counts(weights.get(weight.name)))
    floats = [value.name for value in graph.inputs if is_float(value.dtype)]
    return frozenset(name for name in floats if _tells_places(graph, name, counting))


def _counts(values: NDArray[Any] | None) -> bool:
    """Return whether values are 0, 1, 2, ..., each of them once."""
    return values is not None and np.array_equal(values.ravel(), np.arange(values.size))


def _tells_places(graph: Graph, name: str, counting: frozenset[str]) -> bool:
    states: dict[str, bool] = {name: False}

    def of(operands: Iterable[Operand]) -> list[_State]:
        return [_joint(states.get(s) for s in graph.sources_of(operand.name)) for operand in operands]

    def counts(operands: Iterable[Operand]) -> list[bool]:
        return [counting.issuperset(graph.sources_of(operand.name)) for operand in operands]

    for spec in graph.operators:
        given, later = of(spec.inputs), of(spec.epilogue_inputs)
        if all(state is None for state in (*given, *later)):
            continue
        counted = counts(spec.inputs)
        if any(_followed(each.index, given, counted)[0] for each in spec.selectors):
            return True
        result, is_place = _followed(spec.body, given, counted)
        if result is not None and spec.combine in ("sum", "prod") and not spec.selectors:
            result = False
        if spec.epilogue is not None and not is_place:
            counted = [False, *counts(spec.epilogue_inputs)]
            result, is_place = _followed(spec.epilogue, [result, *later], counted)
        if is_place:
            return True
        if result is not None:
            states[spec.output.name] = result
    return False


def _followed(
    function: ScalarFunction, given: Sequence[_State], counted: Sequence[bool]
) -> tuple[_State, bool]:
    """Return what the result of a function is, and whether it compares a place; `counted` operands count 0, 1, ..."""
    states, counts = list(given), list(counted)
    for op in function.ops:
        found = [states[operand] for operand in op.operands]
        if op.opcode.startswith("arith.cmp"):
            pairs = zip(op.operands, op.operands[::-1], strict=True)
            if op.attribute in _EQUAL and any(states[a] and counts[b] for a, b in pairs):
                return None, True
            states.append(None)
        else:
            state = _joint(found)
            states.append(True if state is not None and op.opcode in _WHOLE else state)
        counts.append(op.opcode == "index" or (op.opcode in _COUNTED and counts[op.operands[0]]))
    return states[function.result], False


def _joint(states: Iterable[_State]) -> _State:
    """Return what is made of several values: whole numbers if all that are made of the input are."""
    found = [state for state in states if state is not None]
    return all(found) if found else None
