"""A compute-shift plan of one operator: how it is cut (F_op), shared in time (ft), paced (rp), ordered and placed.

```
#rtensor.plan<{f_op = [2, 3, 1], ft = [[1,1,3],[1,1,2],[1,1,1]], rp = [0,0,2], steps = [1,1,3], loop_order = [2], ...}>
```

stands for, on every core `s` at once (compute-shift model §4):

```
for pos in serpentine order over the rotating axes, outermost first as in loop_order:
    compute the box  prod_a [phase_a(s) + pos_a * rp_a, + rp_a) mod lengths_a
    shift every operand that rotates along the axis that advances, by rp of that axis
combine the partial results of cores that hold the same part of the output
```
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Literal

from t10.core.expression import AxisSizes
from t10.errors import T10Error

Reduce = Literal["none", "scatter", "all"]


@dataclass(frozen=True, slots=True)
class PhaseTerm:
    """One digit of a core's position among the sharers of a tensor, times a stride.

    Its value is `stride * ((sigma // divisor) % modulus)`, where `sigma` is the row-major number of the core's
    coordinates along `sharer_axes` (first axis slowest). A digit that `is_folded` counts 0, 2, 4 ... 5, 3, 1: digits
    that follow each other, the last and the first too, are then no further than 2 apart.
    """

    sharer_axes: AxisSizes
    divisor: int
    modulus: int
    stride: int
    is_folded: bool = False


@dataclass(frozen=True, slots=True)
class OperatorPlan:
    """All that is needed to execute one operator on the cores.

    Per axis, in the order of `OperatorSpec.axes`: `f_op` parts; `lengths` elements of one part after temporal
    padding (L_a); `rp` elements per shift, 0 where nothing rotates; `steps` sub-tasks along the axis (S_a);
    `phases` terms whose sum modulo L_a is where core `s` starts (both its sub-task and its windows). `ft` has one
    row per rotatable operand (inputs, then output) and one factor per axis. `core_order` lists all axes, slowest
    first: core number = row-major number of the coordinates in that order. `reduce` says how partial results of a
    split reduction axis are combined: `scatter` leaves each of the r sharers with 1/r of the partition, `all` each of
    them with all of it, so that the epilogue runs r times.
    """

    f_op: AxisSizes
    lengths: AxisSizes
    ft: tuple[AxisSizes, ...]
    rp: AxisSizes
    steps: AxisSizes
    loop_order: AxisSizes
    phases: tuple[tuple[PhaseTerm, ...], ...]
    core_order: AxisSizes
    reduce: Reduce = "none"

    def __post_init__(self) -> None:
        """Refuse rows of unequal length."""
        n_axes = len(self.f_op)
        rows = (self.lengths, self.rp, self.steps, self.phases, self.core_order, *self.ft)
        if any(len(row) != n_axes for row in rows):
            raise T10Error(f"plan has rows of unequal length (expected {n_axes} axes in each)")

    def __hash__(self) -> int:
        """Return a hash of what tells most plans apart: a plan is a key of much that is kept, and has many numbers."""
        return hash((self.f_op, self.ft, self.lengths, self.reduce))

    @property
    def n_cores(self) -> int:
        """Return the number of cores that work: prod(F_op)."""
        return prod(self.f_op)

    @property
    def cut_order(self) -> AxisSizes:
        """Return the axes of several parts as `core_order` lists them: the others number no cores."""
        return tuple(axis for axis in self.core_order if self.f_op[axis] > 1)

    def is_same(self, other: OperatorPlan) -> bool:
        """Return whether another plan does the same; where uncut axes stand in `core_order` does not count."""
        return self.cut_order == other.cut_order and self == replace(other, core_order=self.core_order)

    @property
    def n_sub_tasks(self) -> int:
        """Return the number of compute steps of every core: prod(S)."""
        return prod(self.steps)

    @property
    def box(self) -> AxisSizes:
        """Return the extents of one compute step: the pace where an axis rotates, else the whole part."""
        return tuple(
            rp if n > 1 else length for rp, n, length in zip(self.rp, self.steps, self.lengths, strict=True)
        )


def final_positions(plan: OperatorPlan) -> AxisSizes:
    """Return pos_a after the serpentine nest: S_a - 1 where the axis was swept an odd number of times, else 0."""
    result = [0] * len(plan.f_op)
    n_sweeps = 1
    for axis in plan.loop_order:
        result[axis] = plan.steps[axis] - 1 if n_sweeps % 2 else 0
        n_sweeps *= plan.steps[axis]
    return tuple(result)


@dataclass(frozen=True, slots=True)
class Cycles:
    """Modelled cycles of one operator by kind; all cores run in lock step, so these are elapsed cycles.

    `wait` are those before it begins in which all cores wait for its weights from off-chip memory.
    """

    compute: int = 0
    shift: int = 0
    reduce: int = 0
    relayout: int = 0
    setup: int = 0
    wait: int = 0

    @property
    def total(self) -> int:
        """Return the sum over all kinds."""
        return self.run + self.relayout + self.setup + self.wait

    @property
    def run(self) -> int:
        """Return the cycles of the operator itself: what its neighbours' layouts add (relayout, set-up) is left out."""
        return self.compute + self.shift + self.reduce


@dataclass(frozen=True, slots=True)
class CostedPlan:
    """A plan with its price: `cycles` elapsed; bytes per core of weight partitions and of everything it holds."""

    plan: OperatorPlan
    cycles: Cycles
    weight_bytes: int
    active_bytes: int
