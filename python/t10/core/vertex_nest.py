"""What cores do in a loop nest: one task per core, and which of their tasks are one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from t10.core.arrays import Bools, Ints
from t10.core.expression import AxisSizes, Combine, Selector
from t10.core.scalar import ScalarFunction
from t10.core.task import Task, TaskOperand
from t10.core.task_nest import alignment_bytes, named_axes, simplified
from t10.core.tile import WIDE_BYTES, TileRange, are_apart

MOST_OFFSETS = 8


@dataclass(frozen=True, slots=True)
class VertexNest:
    """A loop nest that many cores run: body and operands (inputs, then the output) as (variable, strides)."""

    body: ScalarFunction
    combine: Combine
    reduction_axes: AxisSizes
    operands: tuple[tuple[str, TaskOperand], ...]
    selectors: tuple[Selector, ...] = ()
    first: int | None = None
    """The number of the operand that combining begins with, where work begins (see `Task`)."""
    epilogue: ScalarFunction | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """What cores `tiles` (n,) do in a nest: `extents` (n, axes), byte offsets (n, operands), whether they begin.

    `origin` (n, axes) is the global index of the first point; None where nothing depends on it.
    """

    tiles: Ints
    extents: Ints
    offsets: Ints
    initial: Bools
    origin: Ints | None = None


def renamed(
    made: Iterable[tuple[VertexNest, Work]], names: tuple[str, ...]
) -> Iterator[tuple[VertexNest, Work]]:
    """Yield the same nests on variables `names`, in the order of their operands."""
    for nest, work in made:
        operands = tuple((name, operand) for name, (_, operand) in zip(names, nest.operands, strict=True))
        yield replace(nest, operands=operands), work


@dataclass(frozen=True, slots=True)
class Lie:
    """How operands lie, by number: which in the interleaved region, which pairs in memory elements apart."""

    interleaved: frozenset[int]
    apart: frozenset[tuple[int, int]]

    @classmethod
    def best(cls, n_operands: int, *, is_wide: bool = True) -> Lie:
        """Return that everything is granted, but for the interleaved region where data does not reach it."""
        interleaved = frozenset(range(n_operands if is_wide else 0))
        return cls(interleaved, frozenset(combinations(range(n_operands), 2)))

    @classmethod
    def of(cls, places: Sequence[TileRange]) -> Lie:
        """Return how operands lie in these places."""
        pairs = combinations(range(len(places)), 2)
        return cls(
            frozenset(n for n, place in enumerate(places) if place.is_interleaved),
            frozenset((i, j) for i, j in pairs if are_apart(places[i], places[j])),
        )


def lying(task: Task, lie: Lie) -> Task:
    """Return a task whose operands lie so."""
    *inputs, output = (
        replace(operand, is_interleaved=number in lie.interleaved)
        for number, operand in enumerate(task.operands)
    )
    return replace(task, inputs=tuple(inputs), output=output, apart=lie.apart)


def tasks(nest: VertexNest, work: Work, lie: Lie) -> Iterator[tuple[Ints, Task]]:
    """Yield every different task of `work`, and the rows of `work` that do it."""
    rows = [work.extents, work.initial[:, None].astype(np.int64)]
    if work.origin is not None:
        # Where a task begins matters along the axes that its functions name.
        named = named_axes((nest.body, *(s.index for s in nest.selectors)), nest.selectors)
        matters = np.array([axis in named for axis in range(work.origin.shape[1])], np.bool_)
        rows.append(np.where(matters, work.origin, 0))
    rows_by_kind: dict[tuple[int, ...], list[int]] = {}
    columns: Ints = np.column_stack(rows)
    kinds: list[list[int]] = columns.tolist()
    for number, row in enumerate(kinds):
        rows_by_kind.setdefault(tuple(row), []).append(number)
    n_axes: int = work.extents.shape[1]
    for kind in sorted(rows_by_kind):
        chosen = np.array(rows_by_kind[kind], np.int64)
        origin = kind[n_axes + 1 :]
        task = _task(nest, kind[:n_axes], bool(kind[n_axes]), origin, work.offsets[chosen], lie)
        yield chosen, simplified(task)


def _task(
    nest: VertexNest,
    extents: AxisSizes,
    initial: bool,
    origin: AxisSizes,
    offsets: Ints,
    lie: Lie,
) -> Task:
    """Return the task of a group of cores; its operands are aligned as the worst of theirs."""
    steps: list[int] = np.gcd.reduce(offsets, axis=0).tolist()
    operands = [
        replace(
            operand,
            align_bytes=alignment_bytes(operand.dtype, (common,)),
            is_interleaved=number in lie.interleaved,
        )
        for number, ((_, operand), common) in enumerate(zip(nest.operands, steps, strict=True))
    ]
    return Task(
        extents=extents,
        inputs=tuple(operands[:-1]),
        output=operands[-1],
        combine=nest.combine,
        body=nest.body,
        reduction_axes=nest.reduction_axes,
        initial=initial,
        selectors=nest.selectors,
        origin=origin,
        apart=lie.apart,
        first=nest.first if initial else None,
        epilogue=nest.epilogue,
    )


def different_offsets(work: Work, chosen: Ints) -> list[list[int]]:
    """Return the different offsets at which operands begin on some tiles, as far as code asks for them."""
    offsets: list[list[int]] = (work.offsets[chosen] % WIDE_BYTES).tolist()
    return [list(each) for each in sorted(set(map(tuple, offsets)))[:MOST_OFFSETS]]
