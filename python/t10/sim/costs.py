"""`Costs`: what a simulator asks about time. It is handed in; `t10.cost` has models that answer."""

from __future__ import annotations

from typing import Protocol

from t10.core.expression import AxisSizes, OperatorSpec


class Costs(Protocol):
    """Cycles of the phases that all cores go through together; shapes and bytes go in, never data."""

    def sub_task_cycles(self, spec: OperatorSpec, box: AxisSizes) -> int:
        """Return the cycles of one compute step over `box` points of every axis."""
        ...

    def epilogue_cycles(self, spec: OperatorSpec, n_slots: int, run: int) -> int:
        """Return the cycles of the epilogue on `n_slots` accumulated elements of a core, `run` of them in a row."""
        ...

    def exchange_cycles(self, max_bytes: int, fragments: int, *, neighbour: bool) -> int:
        """Return the cycles of one exchange phase in which no core sends or receives more than `max_bytes`."""
        ...

    def copy_cycles(self, n_bytes: int) -> int:
        """Return the cycles in which every core copies or fills at most `n_bytes` of its own memory."""
        ...

    def shift_cycles(self, n_bytes: int) -> int:
        """Return the cycles in which every core passes `n_bytes` on, all operands that advance together."""
        ...

    def reduce_cycles(self, spec: OperatorSpec, n_members: int, chunk_bytes: int, n_slots: int) -> int:
        """Return the cycles of a reduce-scatter among `n_members` cores of chunks of `n_slots` elements each."""
        ...

    def all_reduce_cycles(self, spec: OperatorSpec, n_members: int, n_slots: int) -> int:
        """Return the cycles of an all-reduce among `n_members` cores of parts of `n_slots` elements each."""
        ...
