"""A task's loops in the order code runs them, and how six workers share them.

Axes of one point vanish, neighbours that every operand walks with one stride become one level:

```
extents (1, 4, 8), out strides (32, 8, 1), in strides (32, 8, 1)   ->   one level of 32 points, strides 1, 1
```
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from t10.core.dtypes import size_bytes
from t10.core.expression import AxisSizes
from t10.core.scalar import ScalarFunction
from t10.core.task import Task, TaskOperand
from t10.core.tile import N_WORKERS

WORD_BYTES = 4


@dataclass(frozen=True, slots=True)
class Level:
    """A loop: its points and the element stride of every operand (inputs first, then the output).

    `axis` is the task's axis (the innermost of those it unites); `origin` the global index of its first point.
    """

    axis: int
    extent: int
    strides: AxisSizes
    is_reduction: bool
    origin: int = 0

    @property
    def out_stride(self) -> int:
        """Return the output's element stride."""
        return self.strides[-1]


@dataclass(frozen=True, slots=True)
class Split:
    """How workers share a task: level `level` in pieces of `unit` points; `level` None: one worker does all of it."""

    level: int | None
    unit: int = 1


def indexed_axes(task: Task) -> frozenset[int]:
    """Return the axes whose global index the body or a selector refers to."""
    functions: list[ScalarFunction] = [task.body, *(selector.index for selector in task.selectors)]
    named = {int(op.attribute) for f in functions for op in f.ops if op.opcode == "index"}
    return frozenset(named | {selector.axis for selector in task.selectors})


def simplified(task: Task) -> Task:
    """Return the same task without reductions over axes of one point: what sums one thing is no sum."""
    if task.selectors or not task.reduction_axes or any(task.extents[a] != 1 for a in task.reduction_axes):
        return task
    return replace(task, reduction_axes=(), combine="none" if task.initial else task.combine)


def copied_as_words(task: Task) -> Task:
    """Return the copy of 8-byte elements as one of two words each; other tasks as they are."""
    is_copy = task.combine == "none" and task.body.is_identity and len(task.inputs) == 1
    if (
        not is_copy
        or size_bytes(task.output.dtype) != 2 * WORD_BYTES
        or task.inputs[0].dtype != task.output.dtype
    ):
        return task

    def words(operand: TaskOperand) -> TaskOperand:
        return replace(operand, dtype="i32", strides=(*(2 * s for s in operand.strides), 1))

    return replace(
        task,
        extents=(*task.extents, 2),
        inputs=tuple(words(operand) for operand in task.inputs),
        output=words(task.output),
        origin=(*task.origin, 0) if task.origin else (),
    )


def levels(task: Task) -> tuple[Level, ...]:
    """Return the loops, outermost first: parallel ones by falling output stride, then reductions."""
    kept = indexed_axes(task)
    strides = tuple(zip(*(operand.strides for operand in task.operands), strict=True))
    found = [
        Level(a, n, strides[a], a in task.reduction_axes, task.origin[a] if task.origin else 0)
        for a, n in enumerate(task.extents)
        if n != 1 or a in kept
    ]
    found.sort(key=_order)
    united: list[Level] = []
    for level in found:
        if united and _are_one(united[-1], level, kept):
            extent = level.extent * united[-1].extent
            united[-1] = Level(level.axis, extent, level.strides, level.is_reduction, level.origin)
        else:
            united.append(level)
    return tuple(united)


def _order(level: Level) -> tuple[bool, int, int, int]:
    return level.is_reduction, -level.out_stride, -sum(level.strides[:-1]), level.axis


def _are_one(outer: Level, inner: Level, kept: frozenset[int]) -> bool:
    if outer.is_reduction != inner.is_reduction or outer.axis in kept or inner.axis in kept:
        return False
    return all(a == b * inner.extent for a, b in zip(outer.strides, inner.strides, strict=True))


def split(nest: tuple[Level, ...], dtype: str, align_bytes: int) -> Split:
    """Return how workers share the output's points so that no two write into one 32-bit word.

    Among the levels that allow it, the one that spreads the work most evenly, the outer of equals.
    """
    size = size_bytes(dtype)
    rising = [i for i in reversed(range(len(nest))) if not nest[i].is_reduction]
    spans = _spans(nest, rising, size)
    if size < WORD_BYTES and any(nest[i].out_stride * size < spans[i] for i in rising):
        return Split(None)
    found: list[tuple[float, int, Split]] = []
    for i in rising:
        if not all(_is_safe(nest[j].out_stride * size, 1, size, align_bytes, 0) for j in rising if j < i):
            continue
        for unit in (1, 2, 4):
            if _is_safe(nest[i].out_stride * size, unit, size, align_bytes, spans[i]):
                found.append((_share(nest[i].extent, unit), i, Split(i, unit)))
                break
    return min(found, key=lambda entry: entry[:2])[2] if found else Split(None)


def split_any(nest: tuple[Level, ...]) -> Split:
    """Return how workers share levels of which any point may be anyone's: the most even, the outer of equals."""
    found = [(_share(level.extent, 1), i) for i, level in enumerate(nest)]
    return Split(min(found)[1]) if found else Split(None)


def _spans(nest: tuple[Level, ...], rising: list[int], size: int) -> dict[int, int]:
    """Return the bytes from the first to behind the last element that one point of a level writes, by level."""
    spans: dict[int, int] = {}
    span = size
    for i in rising:
        spans[i] = span
        span += nest[i].out_stride * size * (nest[i].extent - 1)
    return spans


def _is_safe(stride_bytes: int, unit: int, size: int, align_bytes: int, span: int) -> bool:
    """Return whether blocks of `unit` points `stride_bytes` apart, `span` bytes each, share no word."""
    if size >= WORD_BYTES:
        return True
    if align_bytes % WORD_BYTES == 0 and stride_bytes * unit % WORD_BYTES == 0:
        return True
    return span > 0 and stride_bytes - span >= WORD_BYTES - 1


def _share(extent: int, unit: int) -> float:
    """Return the part of a level that the busiest worker does."""
    n_units = -(-extent // unit)
    return min(1.0, -(-n_units // N_WORKERS) * unit / extent)


def share_points(extent: int, unit: int) -> int:
    """Return the points of a level that a worker takes, as long as there are so many; see `Split`."""
    return -(-extent // (unit * N_WORKERS)) * unit


def n_points(nest: tuple[Level, ...]) -> int:
    """Return the points of a nest."""
    return prod(level.extent for level in nest)


def split_first(nest: tuple[Level, ...], share: Split) -> tuple[tuple[Level, ...], Split]:
    """Return the loops with the shared one outermost, so that nobody steps back over an extent unknown before."""
    if share.level is None:
        return nest, share
    chosen = nest[share.level]
    rest = tuple(level for i, level in enumerate(nest) if i != share.level)
    return (chosen, *rest), Split(0, share.unit)
