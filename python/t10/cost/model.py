"""`CostModel`: the questions that planner and simulators ask about time. All answers are in cycles of one core.

Functions take shapes only, never data: every core works in lock step on equal boxes, so one number is the time of all.
The `_many` forms answer for many candidates at once and give exactly the numbers of the plain forms.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from t10.chip import ChipSpec
from t10.core.expression import AxisSizes, OperatorSpec

Ints = NDArray[np.int64]


def chip_fingerprint(chip: ChipSpec) -> str:
    """Return a text that differs whenever a number of two chips differs; names do not count."""
    numbers = chip.model_dump_json(exclude={"name", "description"})
    return sha256(numbers.encode()).hexdigest()


class CostModel(Protocol):
    """Cycles of compute steps, exchange phases, shifts and reductions."""

    @property
    def name(self) -> str:
        """Return what reports call the model."""
        ...

    def fingerprint(self) -> str | None:
        """Return a text that differs whenever any number may differ, None where the model cannot promise that.

        What was planned under a model is only kept for later under its fingerprint.
        """
        ...

    def sub_task_cycles(self, spec: OperatorSpec, box: AxisSizes) -> int:
        """Return the cycles of one compute step over `box` points of every axis."""
        ...

    def sub_task_cycles_many(self, spec: OperatorSpec, boxes: Ints) -> Ints:
        """Return the cycles of one compute step for every row of `boxes`, shape (candidates, axes)."""
        ...

    def epilogue_cycles(self, spec: OperatorSpec, n_slots: int, run: int) -> int:
        """Return the cycles of the epilogue on `n_slots` accumulated elements of a core; 0 without one.

        `run` of them, from 1 to `n_slots`, lie in one row that accumulator, epilogue inputs and result all walk evenly
        (`t10.core.runs.epilogue_run`).
        """
        ...

    def epilogue_cycles_many(self, spec: OperatorSpec, n_slots: Ints, runs: Ints) -> Ints:
        """Return the cycles of the epilogue for every candidate."""
        ...

    def exchange_cycles(self, max_bytes: int, fragments: int, *, neighbour: bool) -> int:
        """Return the cycles of one exchange phase in which no core sends or receives more than `max_bytes`.

        `fragments` is the most separate contiguous runs of any core; `neighbour` says that every core talks to a ring
        neighbour only. A phase that moves nothing takes no time.
        """
        ...

    def copy_cycles(self, n_bytes: int) -> int:
        """Return the cycles in which every core copies or fills at most `n_bytes` of its own memory; 0 for none."""
        ...

    def shift_cycles(self, n_bytes: int) -> int:
        """Return the cycles in which every core passes `n_bytes` on, in rounds through the shift buffer.

        `n_bytes` is the sum over all operands that advance together.
        """
        ...

    def shift_cycles_many(self, n_bytes: Ints) -> Ints:
        """Return the cycles of one shift for every candidate; `n_bytes` may have any shape."""
        ...

    def reduce_cycles(self, spec: OperatorSpec, n_members: int, chunk_bytes: int, n_slots: int) -> int:
        """Return the cycles of a reduce-scatter among `n_members` cores of chunks of `n_slots` elements each."""
        ...

    def reduce_cycles_many(
        self, spec: OperatorSpec, n_members: Ints, chunk_bytes: Ints, n_slots: Ints
    ) -> Ints:
        """Return the cycles of a reduce-scatter for every candidate; 0 where it has one member."""
        ...

    def all_reduce_cycles(self, spec: OperatorSpec, n_members: int, n_slots: int) -> int:
        """Return the cycles in which each of `n_members` cores takes the parts of all others and adds them to its own.

        Every part has `n_slots` elements; 0 where there is one member.
        """
        ...

    def all_reduce_cycles_many(self, spec: OperatorSpec, n_members: Ints, n_slots: Ints) -> Ints:
        """Return the cycles of an all-reduce for every candidate."""
        ...
