"""Chips that compute and transfer at once: which shifts steps hide, and the memory that it takes.

While a step computes, what the next one reads arrives in *second windows*: both take as long as the longer of them. An
output that rotates is passed on only when the step has added to it, so such a shift comes after the step, with all that
moves in it.
"""

from __future__ import annotations

from math import prod

from t10.core import geometry
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.tile import ALIGNMENT_BYTES


def is_beside_step(plan: OperatorPlan, axis: int) -> bool:
    """Return whether shifts along an axis are made while the step before them computes: no output moves in them."""
    return plan.ft[-1][axis] == 1


def second_windows(spec: OperatorSpec, plan: OperatorPlan) -> dict[int, int]:
    """Return the bytes of a core's second window by the number of every input that rotates, aligned."""
    found: dict[int, int] = {}
    for number, operand in enumerate(spec.inputs):
        if prod(plan.ft[number]) > 1:
            n_slots = prod(geometry.partition_shape(operand, geometry.window_lengths(plan, number)))
            n_bytes = n_slots * size_bytes(operand.dtype)
            found[number] = -(-n_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    return found


def second_name(operator: str) -> str:
    """Return the name of the buffer that has the second windows of an operator, in the order of its inputs."""
    return f"second:{operator}"
