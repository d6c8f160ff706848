"""The least memory of an operator while it runs, wherever its operands come from.

The bytes that plans are searched by count every operand as a copy, beside accumulator and result. In a model operands
may lie in place, a result may take over one of them, and operands of the loop nest are gone when the result is written.
"""

from __future__ import annotations

from t10.core.dtypes import size_bytes
from t10.core.expression import Operand, OperatorSpec
from t10.core.movement import operand_of
from t10.core.overlap import second_windows
from t10.core.plan import OperatorPlan
from t10.core.schedule import PHASES, Phase
from t10.cost.operator import output_chunk
from t10.plan.memory.allocation import aligned_size
from t10.plan.memory.buffers import goes_into_its_slot, has_accumulator
from t10.plan.memory.levels import operand_slots


def least_bytes(spec: OperatorSpec, plan: OperatorPlan, *, overlaps: bool = False) -> int:
    """Return the bytes of a core that an operator takes at least in its fullest phase, shift buffer left out.

    Activations of one shape may be one value, so they count once. Where steps overlap shifts, inputs that rotate have
    second windows.
    """
    held: dict[Phase, int] = dict.fromkeys(PHASES, 0)
    for phase in PHASES[1:]:
        size_by_value: dict[object, int] = {}
        for number, operand in enumerate(spec.operands):
            if number < len(spec.inputs) and phase == "finish":
                continue
            key = number if operand.role == "weight" else (operand.shape, operand.dtype)
            size_by_value[key] = max(size_by_value.get(key, 0), _copy_bytes(spec, plan, number))
        held[phase] = sum(size_by_value.values())
    held["nest"] += sum(second_windows(spec, plan).values()) if overlaps else 0
    result = aligned_size(output_chunk(spec, plan)[1] * size_bytes(spec.output.dtype))
    written: Phase = "nest"
    if has_accumulator(spec, plan):
        written = "finish"
        accumulator = aligned_size(operand_slots(spec, plan, len(spec.operands)) * size_bytes(spec.acc_dtype))
        held["nest"] += accumulator
        held["finish"] += accumulator
    if not _takes_over(spec, plan, written, result):
        held[written] += result
    held["finish"] = max(held["finish"], result)
    return max(held.values())


def _copy_bytes(spec: OperatorSpec, plan: OperatorPlan, number: int) -> int:
    operand: Operand = operand_of(spec, number)
    return aligned_size(operand_slots(spec, plan, number) * size_bytes(operand.dtype))


def _takes_over(spec: OperatorSpec, plan: OperatorPlan, written: Phase, result: int) -> bool:
    """Return whether a result that is written in a phase may take over an operand that is read in it."""
    return output_chunk(spec, plan)[0] == 1 and any(
        operand.role != "weight"
        and ("nest" if number < len(spec.inputs) else "finish") == written
        and _copy_bytes(spec, plan, number) == result
        and goes_into_its_slot(spec, plan, number)
        for number, operand in enumerate(spec.operands)
    )
