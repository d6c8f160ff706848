"""The structure of a reduction: everything that the text of its codelet depends on; the numbers are its words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from t10.codelets.nest import Level, Split
from t10.codelets.reduce.homes import MOST_FIXED
from t10.codelets.reduce.shape import LEAST_REPEATED, MOST_UNROLLED, Mode, Shape
from t10.codelets.reduce.sources import access
from t10.codelets.workers import MOST_DEALT
from t10.core.dtypes import size_bytes
from t10.core.expression import Combine
from t10.core.scalar import ScalarFunction
from t10.core.task import Task, TaskOperand
from t10.core.tile import N_WORKERS

MANY_ACCESSES = 2
"""A pace that is none that instructions name."""
MANY = MOST_UNROLLED + 1
"""Steps, or points of a loop, that are not unrolled."""
Varies = tuple[bool, ...]
"""Whether every operand varies along a level."""


@dataclass(frozen=True, slots=True)
class Structure:
    """A task in a shape without what only its vertex's words depend on.

    `extents` are those of the outer reductions where all may be unrolled, else ones that may not; `paces` are the
    operands' steps in the inner loop in accesses, all but none and one as two; -1 for one that no access makes. Where
    there are too many for a register each, equal ones share one: then they are two, three and so on.
    """

    dtypes: tuple[str, ...]
    body: ScalarFunction
    combine: Combine
    initial: bool
    first: int | None
    epilogue: ScalarFunction | None
    n_axes: int
    mode: Mode
    lanes: int
    parallel: tuple[Varies, ...]
    outer: tuple[Varies, ...]
    extents: tuple[int, ...]
    paces: tuple[int, ...]
    steps: int
    has_tail: bool
    share: Split
    is_dealt: bool
    is_once: bool
    column: int | None
    is_wide: bool

    def example(self) -> tuple[Task, Shape]:
        """Return a task and a shape of this structure."""
        still = (0,) * self.n_axes
        operands = tuple(TaskOperand(dtype, still) for dtype in self.dtypes)
        task = Task(
            extents=(2,) * self.n_axes,
            inputs=operands[:-1],
            output=operands[-1],
            combine=self.combine,
            body=self.body,
            reduction_axes=tuple(range(self.n_axes)),
            initial=self.initial,
            first=self.first,
            epilogue=self.epilogue,
        )
        first = 2 if self.is_once else N_WORKERS + 1 if self.is_dealt else MOST_DEALT + 1
        parallel = tuple(
            Level(0, first if k == 0 else 2, tuple(map(int, varies)), is_reduction=False)
            for k, varies in enumerate(self.parallel)
        )
        outer = tuple(
            Level(0, extent, tuple(map(int, varies)), is_reduction=True)
            for extent, varies in zip(self.extents, self.outer, strict=True)
        )

        def shape(strides: tuple[int, ...]) -> Shape:
            inner = Level(0, 2, strides, is_reduction=True)
            tail = int(self.has_tail)
            loops = parallel, outer, inner, self.steps, tail, self.share, self.column
            return Shape(self.mode, self.lanes, *loops, self.is_wide)

        # How an input is accessed depends on whether it moves, and its stride is so many accesses.
        moving = shape(tuple(int(pace != 0) for pace in self.paces))
        strides = [_stride(task, moving, i, pace) for i, pace in enumerate(self.paces[:-1])]
        return task, shape((*strides, 0))


def structure(task: Task, shape: Shape, slots_of_step: Callable[[Structure], int]) -> Structure:
    """Return the structure of a task in a shape; raises `Unselectable` where an operand suits no access."""
    n_points = shape.steps
    for level in shape.outer:
        n_points *= level.extent
    found = Structure(
        dtypes=tuple([operand.dtype for operand in task.operands]),
        body=task.body,
        combine=task.combine,
        initial=task.initial,
        first=task.first,
        epilogue=task.epilogue,
        n_axes=len(task.extents),
        mode=shape.mode,
        lanes=shape.lanes,
        parallel=tuple([tuple(map(bool, level.strides)) for level in shape.parallel]),
        outer=tuple([tuple(map(bool, level.strides)) for level in shape.outer]),
        extents=(MANY,) * len(shape.outer),
        paces=_paces(task, shape),
        steps=MANY if n_points <= MOST_UNROLLED or shape.steps >= LEAST_REPEATED else shape.steps,
        has_tail=bool(shape.tail),
        share=shape.share,
        is_dealt=shape.is_dealt,
        is_once=shape.is_once,
        column=shape.column,
        is_wide=shape.is_wide,
    )
    if n_points > MOST_UNROLLED:
        return found
    if n_points * slots_of_step(found) <= MOST_UNROLLED:
        return replace(found, steps=shape.steps, extents=tuple(level.extent for level in shape.outer))
    return found if shape.steps >= LEAST_REPEATED else replace(found, steps=shape.steps)


def _paces(task: Task, shape: Shape) -> tuple[int, ...]:
    """Return `Structure.paces` of a task in a shape."""
    paces = [_pace(task, shape, i) for i in range(len(task.operands))]
    if len(task.inputs) + sum(pace > 1 for pace in paces) <= MOST_FIXED:
        return tuple([min(pace, MANY_ACCESSES) for pace in paces])
    numbers = {pace: MANY_ACCESSES + n for n, pace in enumerate(dict.fromkeys(p for p in paces if p > 1))}
    return tuple([numbers.get(pace, pace) for pace in paces])


def _pace(task: Task, shape: Shape, operand: int) -> int:
    """Return an operand's step in the inner loop in accesses, 0 of the output, -1 for one that no access makes."""
    stride = shape.inner.strides[operand]
    if not stride or operand == len(task.inputs):
        return 0
    if shape.mode == "rows":
        return 1
    pace, rest = divmod(stride, _elements(task, shape, operand))
    return -1 if rest else pace


def _stride(task: Task, shape: Shape, operand: int, pace: int) -> int:
    """Return a stride of the inner loop that is a pace."""
    if shape.mode == "rows" or pace < 0:
        return abs(pace)
    return pace * _elements(task, shape, operand)


def _elements(task: Task, shape: Shape, operand: int) -> int:
    """Return the elements that one access of an input takes."""
    return access(task, shape, operand).n_bytes // size_bytes(task.inputs[operand].dtype)
