"""The compute-shift program of an operator: the statements that every core executes in lock step, one after the other.

```
Arrive(0) Arrive(1)            operands are copied to their cores (those that lie in place already are not)
Fill                           the accumulators hold the neutral element of the combination
SubTask((0, 0, 0))             compute one box, from resident elements into the accumulators
Shift((0, 1), axis 2, to 1)    windows of operands 0 and 1 move one position along axis 2
SubTask((0, 0, 1))
Shift((1,), axis 2, to 0)      a weight that rotated in its idle buffer moves back to where it started
Reduce("scatter")              partial results of several cores are combined
Epilogue                       the result is made of the accumulated elements
```

The compute-shift level of the `rtensor` dialect is this program as MLIR. Source: compute-shift model §4, T10 §4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from t10.core.expression import AxisSizes

ReduceMode = Literal["scatter", "all"]


@dataclass(frozen=True, slots=True)
class Arrive:
    """Operand number `operand` (as in `OperatorSpec.operands`) is copied from where its value lies to its cores."""

    operand: int


@dataclass(frozen=True, slots=True)
class Fill:
    """The accumulators of all cores hold the neutral element of the operator's combination."""


@dataclass(frozen=True, slots=True)
class Shift:
    """The windows of rotatable operands `operands` move along `axis` to position `stop`, all in one exchange.

    `positions` are those of the windows before the shift, per axis. `stop` is a neighbour of `positions[axis]` on the
    circle of the axis's positions.
    """

    operands: tuple[int, ...]
    axis: int
    positions: AxisSizes
    stop: int

    @property
    def direction(self) -> int:
        """Return +1 if windows move to higher indices, -1 if they move to lower ones."""
        return -1 if self.stop == self.positions[self.axis] - 1 else 1


@dataclass(frozen=True, slots=True)
class SubTask:
    """Every core computes the box at loop positions `positions` (per axis, 0 where the axis has no loop)."""

    positions: AxisSizes


@dataclass(frozen=True, slots=True)
class Reduce:
    """Partial results of the cores that share output elements are combined.

    `scatter` leaves each core with one chunk of its partition, `all` with the whole of it.
    """

    mode: ReduceMode


@dataclass(frozen=True, slots=True)
class Epilogue:
    """The epilogue runs on the accumulated elements each core owns, into the result; without one they are copied."""


Statement = Arrive | Fill | Shift | SubTask | Reduce | Epilogue
