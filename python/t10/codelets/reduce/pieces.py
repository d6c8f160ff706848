"""Few outputs of many contributions: rows cut in pieces that workers reduce at once, then the pieces reduced.

Pieces are equal, or each worker has one, the last of every row a shorter one with code of its own.

```
partial[i, c] = combine of piece c of row i          six workers on rows x pieces
out[i] = combine of partial[i, :]
```
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import gcd

from t10.codelets.nest import WORD_BYTES, Level, indexed_axes, levels, n_points
from t10.codelets.reduce.shape import Shape, estimated_slots, least_slots
from t10.core.dtypes import size_bytes
from t10.core.scalar import ScalarFunction, ScalarOp, identity
from t10.core.task import Task, TaskOperand
from t10.core.tile import N_WORKERS

LAUNCH_SLOTS = 16
"""About what a launch costs: the prologue of the workers, and the supervisor's work in slots of six cycles."""
PART_SLOTS = 6
"""What workers take to see that pieces are not theirs."""
UNEVEN = 1.15
"""How uneven work must be shared for pieces to pay off."""
WORTH_A_COUNT = 1.1
"""Pieces are counted whose slots, as estimated, are so many times those of the whole."""
VECTOR = 4
"""Elements in multiples of which pieces begin."""
BRIDGES = frozenset({"f16", "f32", "i32"})


@dataclass(frozen=True, slots=True)
class Pieces:
    """A piece of every row, or all of them: `task` begins `begins` bytes behind the rows in every input.

    Workers from `first_worker` on do it. Results begin `n_bytes` behind those of the first pieces.
    """

    task: Task
    begins: tuple[int, ...]
    first_worker: int = 0
    n_bytes: int = 0


@dataclass(frozen=True, slots=True)
class SplitReduction:
    """A reduction in two: `partials` leave results of pieces in `n_bytes` of scratch memory, `final` makes outputs."""

    partials: tuple[Pieces, ...]
    final: Task
    n_bytes: int

    @property
    def slots(self) -> int:
        """Return what is estimated of the slots of the worker with most to do in `partials`."""
        return max(least_slots(each.task) for each in self.partials)


def pieces(task: Task, found: tuple[Shape, ...]) -> SplitReduction | None:
    """Return a reduction of some shapes in two, in the pieces that are estimated to be the best; None of slow ones."""
    if indexed_axes(task) or task.selectors or task.output.dtype not in BRIDGES:
        return None
    if not found or found[0].unevenness <= UNEVEN:
        return None
    whole = LAUNCH_SLOTS + estimated_slots(found[0], task)
    most = WORTH_A_COUNT * whole if is_counted(task) else whole / UNEVEN
    best: SplitReduction | None = None
    for split in (*cuts(task), *uneven_cuts(task)):
        slots = 2 * LAUNCH_SLOTS + PART_SLOTS * (len(split.partials) - 1) + split.slots
        if slots < most:
            slots += least_slots(split.final)
        if slots < most:
            most, best = slots, split
    return best


def cuts(task: Task) -> Iterator[SplitReduction]:
    """Yield a reduction in two, for all pieces that workers may share."""
    nest = levels(task)
    rows = [level for level in nest if not level.is_reduction]
    reductions = [level for level in nest if level.is_reduction]
    for cut in reductions:
        for n in range(2, N_WORKERS + 1):
            if cut.extent % n or cut.extent < 2 * n or (cut.extent % 4 == 0) > (cut.extent // n % 4 == 0):
                continue
            yield _cut(task, rows, reductions, cut, n)


def uneven_cuts(task: Task) -> Iterator[SplitReduction]:
    """Yield a reduction of few rows in two, for pieces of which each worker has one and the last ones are shorter."""
    nest = levels(task)
    rows = [level for level in nest if not level.is_reduction]
    reductions = [level for level in nest if level.is_reduction]
    n_rows = n_points(tuple(rows))
    for cut in reductions:
        for n in range(2, N_WORKERS // n_rows + 1):
            length = -(-cut.extent // (n * VECTOR)) * VECTOR
            rest = cut.extent - (n - 1) * length
            # Equal pieces of several rows may be no one loop.
            is_wanted = cut.extent % (n * VECTOR) or n_rows > 1
            if is_wanted and length >= 2 * VECTOR and rest >= VECTOR:
                yield _cut_unevenly(task, rows, reductions, cut, n, length)


def _cut_unevenly(
    task: Task, rows: list[Level], reductions: list[Level], cut: Level, n: int, length: int
) -> SplitReduction:
    """Return the reduction with level `cut` in n - 1 pieces of some length, and what is left."""
    whole = [replace(level, extent=n * length) if level is cut else level for level in reductions]
    place = reductions.index(cut)
    even = _cut(task, rows, whole, whole[place], n)
    partial, piece, n_rows = even.partials[0].task, len(rows), n_points(tuple(rows))

    def part(first: int, count: int, extent: int) -> Pieces:
        """Return pieces from the first one on, whose extents are those along the cut."""
        extents = list(partial.extents)
        extents[piece], extents[piece + 1 + place] = count, extent
        begins = tuple([first * each.strides[piece] * size_bytes(each.dtype) for each in partial.inputs])
        n_bytes = first * partial.output.strides[piece] * size_bytes(partial.output.dtype)
        inputs = tuple([_aligned(each, begin) for each, begin in zip(partial.inputs, begins, strict=True)])
        made = replace(
            partial, extents=tuple(extents), inputs=inputs, output=_aligned(partial.output, n_bytes)
        )
        return Pieces(made, begins, first * n_rows, n_bytes)

    # Of several rows, rows and pieces are no one loop, which workers could share.
    counts = [n - 1] if n_rows == 1 else [1] * (n - 1)
    parts = [part(first, count, length) for first, count in enumerate(counts)]
    rest = part(n - 1, 1, cut.extent - (n - 1) * length)
    return replace(even, partials=(*parts, rest))


def _aligned(operand: TaskOperand, begin: int) -> TaskOperand:
    """Return an operand that begins so many bytes later."""
    return replace(operand, align_bytes=gcd(operand.align_bytes, begin))


def is_counted(task: Task) -> bool:
    """Return whether pieces can be counted: integers that are passed on in memory are data to the counter."""
    return task.output.dtype in ("f16", "f32")


def _cut(task: Task, rows: list[Level], reductions: list[Level], cut: Level, n: int) -> SplitReduction:
    """Return the reduction with level `cut` in `n` pieces."""
    is_sum = task.combine == "sum" and task.output.dtype == "f16"
    dtype = "f32" if is_sum else task.output.dtype
    step = max(1, WORD_BYTES // size_bytes(dtype))
    length = cut.extent // n
    piece = replace(cut, extent=n, strides=tuple(s * length for s in cut.strides), is_reduction=False)
    inner = [replace(level, extent=length) if level is cut else level for level in reductions]
    # Pieces of a row are neighbours in scratch memory, a word each.
    strides: list[int] = []
    size = n * step
    for level in reversed(rows):
        strides.insert(0, size)
        size *= level.extent
    bridge = TaskOperand(dtype, (*strides, step, *(0 for _ in inner)), 8)
    partial = Task(
        extents=tuple(level.extent for level in (*rows, piece, *inner)),
        inputs=tuple(_operand(task.inputs[i], i, [*rows, piece, *inner]) for i in range(len(task.inputs))),
        output=bridge,
        combine=task.combine,
        body=widened(task.body) if is_sum else task.body,
        reduction_axes=tuple(range(len(rows) + 1, len(rows) + 1 + len(inner))),
        apart=frozenset(pair for pair in task.apart if len(task.inputs) not in pair),
    )
    final = Task(
        extents=tuple(level.extent for level in (*rows, piece)),
        inputs=(replace(bridge, strides=bridge.strides[: len(rows) + 1]),),
        output=replace(
            _operand(task.output, -1, [*rows, piece]), strides=(*(level.out_stride for level in rows), 0)
        ),
        combine=task.combine,
        body=identity(),
        reduction_axes=(len(rows),),
        initial=task.initial,
    )
    return SplitReduction((Pieces(partial, (0,) * len(partial.inputs)),), final, size * size_bytes(dtype))


def _operand(operand: TaskOperand, number: int, nest: list[Level]) -> TaskOperand:
    return replace(operand, strides=tuple(level.strides[number] for level in nest))


def widened(body: ScalarFunction) -> ScalarFunction:
    """Return a body of f16 whose result is widened, or one of f32 as it is."""
    if body.ops and body.result == body.n_inputs + len(body.ops) - 1 and body.ops[-1].dtype == "f32":
        return body
    op = ScalarOp("arith.extf", (body.result,), "f32")
    return ScalarFunction(body.n_inputs, (*body.ops, op), body.n_inputs + len(body.ops))
