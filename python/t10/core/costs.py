"""`Costs`: what is asked about the time of one phase. It is handed in; `t10.cost` has models that answer."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.movement import MoveCosts


class Costs(MoveCosts, Protocol):
    """Cycles of the phases that all cores go through together; shapes and bytes go in, never data."""

    def sub_task_cycles(self, spec: OperatorSpec, box: AxisSizes) -> int:
        """Return the cycles of one compute step over `box` points of every axis."""
        ...

    def epilogue_cycles(self, spec: OperatorSpec, n_slots: int, run: int) -> int:
        """Return the cycles of the epilogue on `n_slots` accumulated elements of a core; 0 without one.

        `run` of them, from 1 to `n_slots`, lie in one row that accumulator, epilogue inputs and result all walk evenly
        (`t10.core.runs.epilogue_run`).
        """
        ...

    def shift_cycles(self, n_bytes: int) -> int:
        """Return the cycles in which every core passes `n_bytes` on, in rounds through the shift buffer.

        `n_bytes` is the sum over all operands that advance together.
        """
        ...

    def reduce_cycles(self, spec: OperatorSpec, n_members: int, chunk_bytes: int, n_slots: int) -> int:
        """Return the cycles of a reduce-scatter among `n_members` cores of chunks of `n_slots` elements each."""
        ...

    def all_reduce_cycles(self, spec: OperatorSpec, n_members: int, n_slots: int) -> int:
        """Return the cycles in which each of `n_members` cores takes the parts of all others and adds them to its own.

        Every part has `n_slots` elements; 0 where there is one member.
        """
        ...


@runtime_checkable
class PlanCosts(Protocol):
    """Cycles of the statements of one plan, as they were measured."""

    def statement_cycles(self, operator: str, number: int) -> int | None:
        """Return the cycles of statement `number` of an operator's body; None where they were not measured."""
        ...
