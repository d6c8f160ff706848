"""`CostModel`: the questions that planner and simulators ask about time. All answers are in cycles of one core.

Functions take shapes only, never data: every core works in lock step on equal boxes, so one number is the time of all.
The `_many` forms answer for many candidates at once and give exactly the numbers of the plain forms of `Costs`.
"""

from __future__ import annotations

from collections.abc import Hashable
from hashlib import sha256
from typing import Protocol, runtime_checkable

import numpy as np

from t10.chip import ChipSpec
from t10.core.arrays import Ints
from t10.core.costs import Costs
from t10.core.expression import AxisSizes, OperatorSpec
from t10.cost.formula import Formula


def chip_fingerprint(chip: ChipSpec) -> str:
    """Return a text that differs whenever a number of two chips differs; names and energy do not count."""
    numbers = chip.model_dump_json(exclude={"name", "description", "energy"})
    return sha256(numbers.encode()).hexdigest()


class CostModel(Costs, Protocol):
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

    def sub_task_cycles_many(self, spec: OperatorSpec, boxes: Ints) -> Ints:
        """Return the cycles of one compute step for every row of `boxes`, shape (candidates, axes)."""
        ...

    def epilogue_cycles_many(self, spec: OperatorSpec, n_slots: Ints, runs: Ints) -> Ints:
        """Return the cycles of the epilogue for every candidate."""
        ...

    def shift_cycles_many(self, n_bytes: Ints) -> Ints:
        """Return the cycles of one shift for every candidate; `n_bytes` may have any shape."""
        ...

    def reduce_cycles_many(self, spec: OperatorSpec, n_members: Ints, n_slots: Ints) -> Ints:
        """Return the cycles of a reduce-scatter for every candidate; 0 where it has one member."""
        ...

    def all_reduce_cycles_many(self, spec: OperatorSpec, n_members: Ints, n_slots: Ints) -> Ints:
        """Return the cycles of an all-reduce for every candidate."""
        ...


@runtime_checkable
class BoundedCosts(Protocol):
    """What a cost model says whose answers are slow: another that bounds them from below and is quick.

    Search asks for the answers themselves only where a plan might be among the best.
    """

    @property
    def least(self) -> CostModel:
        """Return the model whose numbers are never above this one's; itself where it is quick."""
        ...


@runtime_checkable
class WholeCosts(Protocol):
    """What a cost model says that bounds steps: more of those whose operands are as large as the box."""

    def sees_windows(self, spec: OperatorSpec) -> bool:
        """Return whether it says more of them; else it is not asked."""
        ...

    def whole_cycles_many(self, spec: OperatorSpec, boxes: Ints) -> Ints:
        """Return the cycles of compute steps that add to nothing, with operands as large as the box."""
        ...


@runtime_checkable
class LyingCosts(Protocol):
    """What a cost model says that bounds steps: more of those whose windows are known."""

    def lying_cycles_many(
        self, spec: OperatorSpec, boxes: Ints, windows: Ints, *, adds: bool = False
    ) -> Ints:
        """Return the cycles of compute steps over boxes (n, axes) in windows (n, rotatable operands, axes).

        No box crosses the end of a window. Where it `adds`, steps combine with what is there; else they may.
        """
        ...


@runtime_checkable
class ChunkCosts(Protocol):
    """What a cost model says to which it matters how many cores have sums of the same elements."""

    def chunk_cycles_many(self, spec: OperatorSpec, n_slots: Ints, runs: Ints, n_members: Ints) -> Ints:
        """Return the cycles in which accumulators become results: `n_slots` (n,) of a core, in rows of `runs`.

        They are a window, or a chunk of one that `n_members` cores have sums of.
        """
        ...


@runtime_checkable
class FormulaCosts(Protocol):
    """What a cost model says that has formulas of its own: nothing is traced anew. None where it has none."""

    def step_formula(self, spec: OperatorSpec, *, is_whole: bool = False) -> Formula | None:
        """Return the formula of compute steps, of a box; with `is_whole` that of operands as large as the box."""
        ...

    def end_formula(self, spec: OperatorSpec) -> Formula | None:
        """Return the formula of `ChunkCosts.chunk_cycles_many`, of slots, runs and members."""
        ...


@runtime_checkable
class AlikeCosts(Protocol):
    """What a cost model says that knows on what of an operator its answers depend. It can be hashed."""

    def steps_alike(self, spec: OperatorSpec) -> Hashable:
        """Return a value that is equal for operators whose sub-tasks have equal answers."""
        ...

    def reductions_alike(self, spec: OperatorSpec) -> Hashable:
        """Return a value that is equal for operators whose reductions have equal answers."""
        ...


def least_costs(cost: CostModel) -> CostModel:
    """Return what bounds a cost model from below and is quick; the model itself where that is quick."""
    return cost.least if isinstance(cost, BoundedCosts) else cost


class PlainForms:
    """The plain forms of a model that has the `_many` forms."""

    __slots__ = ()

    def sub_task_cycles(self: CostModel, spec: OperatorSpec, box: AxisSizes) -> int:
        """Return the cycles of one compute step over `box` points of every axis."""
        return int(self.sub_task_cycles_many(spec, np.array([box], np.int64).reshape(1, len(spec.axes)))[0])

    def epilogue_cycles(self: CostModel, spec: OperatorSpec, n_slots: int, run: int) -> int:
        """Return the cycles of the epilogue on `n_slots` accumulated elements of a core; 0 without one."""
        return int(self.epilogue_cycles_many(spec, *_each(n_slots, run))[0])

    def shift_cycles(self: CostModel, n_bytes: int) -> int:
        """Return the cycles in which every core passes `n_bytes` on, in rounds through the shift buffer."""
        return int(self.shift_cycles_many(np.array(n_bytes, np.int64)))

    def reduce_cycles(self: CostModel, spec: OperatorSpec, n_members: int, n_slots: int) -> int:
        """Return the cycles of a reduce-scatter among `n_members` cores that have `n_slots` partial sums each."""
        return int(self.reduce_cycles_many(spec, *_each(n_members, n_slots))[0])

    def all_reduce_cycles(self: CostModel, spec: OperatorSpec, n_members: int, n_slots: int) -> int:
        """Return the cycles of an all-reduce among `n_members` cores of parts of `n_slots` elements each."""
        return int(self.all_reduce_cycles_many(spec, *_each(n_members, n_slots))[0])


def _each(*numbers: int) -> tuple[Ints, ...]:
    """Return every number as the one row of an array."""
    return tuple(np.array([number], np.int64) for number in numbers)
