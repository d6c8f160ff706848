"""Products with room for sums: a third input that is not read, in which they grow in f32 until they are rounded to f16.

The matrix engine uses it; whoever else computes such a product sums in registers.
"""

from __future__ import annotations

from dataclasses import replace

from t10.core.codelet import Compiled, Pointer
from t10.core.products import is_product
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.core.task import Task

FACTORS = 2


def has_room(task: Task) -> bool:
    """Return whether a task is a product with room for its sums."""
    n_inputs = FACTORS + 1 + (task.first is not None)
    return len(task.inputs) == n_inputs and task.output.dtype == "f16" and is_product(task.body)


def without_room(task: Task) -> Task:
    """Return the same product of its factors alone; what sums nothing is rounded as it is."""
    unread = len(task.inputs) - FACTORS
    ops = tuple(
        replace(op, operands=tuple(v - unread * (v >= FACTORS) for v in op.operands)) for op in task.body.ops
    )
    result = task.body.result - unread
    if not task.reduction_axes:
        ops, result = (*ops, ScalarOp("arith.truncf", (result,), task.output.dtype)), FACTORS + len(ops)
    factors = frozenset(range(FACTORS))
    apart = {pair for pair in task.apart if factors.issuperset(pair)}
    apart |= {(n, FACTORS) for n in factors if task.are_apart(n, len(task.inputs))}
    body = ScalarFunction(FACTORS, ops, result)
    return replace(task, inputs=task.inputs[:FACTORS], body=body, apart=frozenset(apart))


def beside_room(compiled: Compiled) -> Compiled:
    """Return the code of a product without room as that of the one with room."""
    words = tuple(
        replace(word, operand=word.operand + 1)
        if isinstance(word, Pointer) and word.operand == FACTORS
        else word
        for word in compiled.words
    )
    return replace(compiled, words=words)
