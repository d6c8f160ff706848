"""An operator that is being lowered: its plan and the variables its operands lie in."""

from __future__ import annotations

from dataclasses import dataclass

from t10.core import geometry
from t10.core.expression import Operand, OperatorSpec
from t10.core.plan import OperatorPlan


@dataclass(frozen=True, slots=True)
class Running:
    """One operator under its plan; variables by name: inputs, epilogue inputs, accumulator, result."""

    spec: OperatorSpec
    plan: OperatorPlan
    inputs: tuple[str, ...]
    epilogue_inputs: tuple[str, ...]
    accumulator: str
    result: str
    whole: frozenset[int] = frozenset()
    """Summed axes whose padding holds zeros: sub-tasks run over all of it."""

    @property
    def output_slot(self) -> int:
        """Return the number of the output among the rotatable operands."""
        return len(self.spec.inputs)

    @property
    def n_output_slots(self) -> int:
        """Return the elements of one core's accumulators."""
        lengths = geometry.window_lengths(self.plan, self.output_slot)
        n = 1
        for extent in geometry.partition_shape(self.spec.output, lengths):
            n *= extent
        return n


def rtensor_comment(operand: Operand, plan: OperatorPlan, slot: int) -> str:
    """Return which rTensor a variable holds: shape, fs, ft and rp per dim (T10 §4.1)."""
    fs = geometry.dim_factors(operand, plan.f_op)
    ft = geometry.dim_factors(operand, plan.ft[slot])
    rp = [max((plan.rp[a] for a in dim.axes if plan.ft[slot][a] > 1), default=0) for dim in operand.dims]
    shape = "x".join(map(str, operand.shape)) or "scalar"
    return f"{operand.name}: {shape} {operand.dtype}, fs={list(fs)} ft={list(ft)} rp={rp}"
