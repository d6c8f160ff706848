"""What lowering a statement needs of its operator: the plan, the variables, and what the statements before it did."""

from __future__ import annotations

from dataclasses import dataclass, replace

from t10.core import geometry
from t10.core.expression import AxisSizes, Operand, OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.program import Reduce, Shift, Statement
from t10.core.reduction import Round


@dataclass(frozen=True, slots=True)
class OperatorContext:
    """One operator between two statements; variables by name: inputs, epilogue inputs, accumulator, result.

    `run` is the operator as cores compute it: its sums may begin with `first` partials, which its epilogue lacks then.
    """

    spec: OperatorSpec
    run: OperatorSpec
    plan: OperatorPlan
    inputs: tuple[str, ...]
    first: tuple[str, ...]
    epilogue_inputs: tuple[str, ...]
    accumulator: str
    result: str
    positions: tuple[AxisSizes, ...]
    """At which positions the windows of every rotatable operand stand now, per axis."""
    whole: frozenset[int] = frozenset()
    """Summed axes whose padding holds zeros: sub-tasks run over all of it."""
    is_scattered: bool = False
    """Whether partial results were combined so that every core owns one chunk of its partition."""
    pending: Round | None = None
    """The last round of a reduction where its parts have arrived and the epilogue adds them."""

    def after(self, statement: Statement) -> OperatorContext:
        """Return the context in which the statement after this one is lowered."""
        match statement:
            case Reduce(mode):
                return replace(self, is_scattered=mode == "scatter")
            case Shift(operands, axis):
                moved = tuple(
                    (*old[:axis], statement.stop, *old[axis + 1 :]) if number in operands else old
                    for number, old in enumerate(self.positions)
                )
                return replace(self, positions=moved)
            case _:
                return self

    @property
    def output_positions(self) -> AxisSizes:
        """Return the positions at which the output's windows stand now, per axis."""
        return self.positions[self.output_slot]

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
