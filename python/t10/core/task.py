"""A task: what one vertex computes, as a loop nest over strided operands in one core's memory.

```
for every point p of the axes that are not in `reduction_axes`:
    acc = (input `first` at p . strides, or the neutral element of combine) if initial else output[p . strides]
    for every point of the reduction axes (that satisfies every selector):
        acc = combine(acc, body(inputs[i] at p . strides of input i))
    output[p . strides] = acc, or epilogue(acc, the last inputs at p . strides) where there is one
```

Operators, epilogues, fills and the additions of a reduction are all tasks: a sub-task is one or more of them (a
circular window that wraps cuts it in pieces), and a codelet family turns a task into code. Nothing here knows a plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from t10.core.expression import AxisSizes, Combine, Selector
from t10.core.scalar import ScalarFunction
from t10.errors import T10Error


@dataclass(frozen=True, slots=True)
class TaskOperand:
    """How a task walks one operand: element type and element strides per axis (0: does not vary along it).

    `align_bytes` (2, 4, 8 or 16; 1 for bytes) divides the address of the first element on every core. `is_interleaved`
    tells that all of it lies in the interleaved region of memory, where 16 bytes can be loaded at once.
    """

    dtype: str
    strides: AxisSizes
    align_bytes: int = 8
    is_interleaved: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """A loop nest on one core; see the module's docstring.

    Operands are numbered inputs first, then the output. `origin` is the global index of the first point per axis, which
    `index` operations of the body and selectors refer to (all 0 where there are none). `first` is the number of an
    input that the body does not read, with which sums begin. `apart` holds pairs of operand numbers, the smaller first,
    that lie in different memory elements on every core: one bundle may access both. Of a task with an `epilogue` the
    body hands its first input through, which has the type of `acc`; the epilogue's other inputs are the task's last.
    """

    extents: AxisSizes
    inputs: tuple[TaskOperand, ...]
    output: TaskOperand
    combine: Combine
    body: ScalarFunction
    reduction_axes: AxisSizes = ()
    initial: bool = True
    selectors: tuple[Selector, ...] = ()
    origin: AxisSizes = ()
    apart: frozenset[tuple[int, int]] = field(default_factory=frozenset[tuple[int, int]])
    first: int | None = None
    epilogue: ScalarFunction | None = None

    def __post_init__(self) -> None:
        """Refuse rows of unequal length."""
        n_axes = len(self.extents)
        rows = (self.output.strides, *(operand.strides for operand in self.inputs))
        if any(len(row) != n_axes for row in rows) or (self.origin and len(self.origin) != n_axes):
            raise T10Error(f"task has rows of unequal length (expected {n_axes} axes in each)")
        if self.body.n_inputs != len(self.inputs):
            raise T10Error(f"body of a task takes {self.body.n_inputs} of {len(self.inputs)} inputs")
        if (self.combine == "none") != (not self.reduction_axes) and self.initial:
            raise T10Error("an initial task combines if and only if it has a reduction axis")
        if self.epilogue is not None and not (self.initial and self.body.is_identity):
            raise T10Error("a task with an epilogue begins, and combines its first input as it is")

    @property
    def operands(self) -> tuple[TaskOperand, ...]:
        """Return inputs in order, then the output."""
        return (*self.inputs, self.output)

    @property
    def acc_dtype(self) -> str:
        """Return the type in which contributions are combined."""
        return self.output.dtype if self.epilogue is None else self.inputs[0].dtype

    @property
    def n_read(self) -> int:
        """Return how many inputs are read for every contribution."""
        return len(self.inputs) - (self.first is not None) if self.epilogue is None else 1

    @property
    def parallel_axes(self) -> AxisSizes:
        """Return the axes that index the output."""
        return tuple(a for a in range(len(self.extents)) if a not in self.reduction_axes)

    @property
    def n_points(self) -> int:
        """Return the number of points of the nest."""
        return prod(self.extents)

    def are_apart(self, first: int, second: int) -> bool:
        """Return whether one bundle may access both operands."""
        return (min(first, second), max(first, second)) in self.apart
