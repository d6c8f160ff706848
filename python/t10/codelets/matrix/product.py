"""A task as a product of two operands: which axis plays which part, with strides in bytes.

```
for groups, further columns, further rows:           the output moves
    for positions and blocks of the inner axis:      summed
        out[rows, columns] += x[rows, inner] * w[columns, inner]
```
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations
from math import prod

from t10.codelets.matrix.copying import Copies
from t10.codelets.matrix.engine import WORD_BYTES, Engine, engine_for
from t10.core.products import SUMS_BYTES, is_product
from t10.core.task import Task, TaskOperand

LEVELS_OF_ROWS = 2
"""Loops of rows."""


@dataclass(frozen=True, slots=True)
class ProductLoop:
    """Axes walked as one: points, and bytes from one to the next in input, weights and output."""

    extent: int
    x: int
    w: int
    out: int

    def is_inside(self, outer: ProductLoop) -> bool:
        """Return whether this and an outer loop walk on evenly, as one."""
        n = self.extent
        return outer.x == self.x * n and outer.w == self.w * n and outer.out == self.out * n


@dataclass(frozen=True, slots=True)
class Product:
    """The parts of a task; `x` and `w` are operand numbers of the streaming and the stationary input.

    `rows` has at most two loops, the outer first; `outs` are further loops that move the output, `sums` further reduced
    ones. Where operands are copied into scratch memory, strides are those of the copies, but for the weights' strides
    of `outs`, along which blocks are copied anew.
    """

    task: Task
    engine: Engine
    x: int
    w: int
    inner: ProductLoop
    columns: ProductLoop
    rows: tuple[ProductLoop, ...]
    outs: tuple[ProductLoop, ...]
    sums: tuple[ProductLoop, ...]
    copies: Copies | None = None

    @property
    def x_operand(self) -> TaskOperand:
        """Return the streaming input."""
        return self.task.inputs[self.x]

    @property
    def w_operand(self) -> TaskOperand:
        """Return the stationary input."""
        return self.task.inputs[self.w]

    @property
    def n_rows(self) -> int:
        """Return how many rows stream through a block."""
        n = 1
        for loop in self.rows:
            n *= loop.extent
        return n


def products(task: Task) -> Iterator[Product]:
    """Yield every way to see a task as a product: which input streams, which axes are inner and columns."""
    if task.combine != "sum" or task.selectors or not task.reduction_axes or not is_product(task.body):
        return
    first, second, *others = (operand.dtype for operand in task.inputs)
    engine = engine_for(first, task.output.dtype, rounds=len(others) > (task.first is not None))
    if engine is None or first != second:
        return
    if (task.body.ops[-1].dtype != task.output.dtype) != bool(engine.rounding):
        # Sums of more precision than the output's have room of their own.
        return
    for x, w in ((0, 1), (1, 0)):
        parts = _Parts(task, engine, x, w)
        for inner in parts.inner_axes():
            for column in parts.column_axes():
                found = parts.product(inner, column)
                if task.first is None or (column is not None and begins_with_row(found, column)):
                    yield found


def begins_with_row(product: Product, column: int) -> bool:
    """Return whether a product's sums can begin with the partials of its task, a row of them along `column`."""
    task, engine = product.task, product.engine
    assert task.first is not None
    row = task.inputs[task.first]
    is_row = row.strides[column] == 1 and not any(s for a, s in enumerate(row.strides) if a != column)
    return (
        is_row
        and (row.dtype, engine.in_dtype) == ("f16", "f16")
        and row.align_bytes >= WORD_BYTES
        and product.columns.extent == task.extents[column]
        and product.columns.extent % engine.columns == 0
        and product.inner.extent >= engine.depth
        and len(product.rows) == 1
        and not product.outs
    )


@dataclass(frozen=True, slots=True)
class _Parts:
    task: Task
    engine: Engine
    x: int
    w: int

    def loop(self, axis: int) -> ProductLoop:
        task, size = self.task, self.engine.in_bytes
        x, w = task.inputs[self.x].strides[axis] * size, task.inputs[self.w].strides[axis] * size
        return ProductLoop(task.extents[axis], x, w, task.output.strides[axis] * self.engine.out_bytes)

    def axes(self, *, reduced: bool) -> list[int]:
        """Return the axes of more than one point."""
        chosen = self.task.reduction_axes if reduced else self.task.parallel_axes
        return [a for a in chosen if self.task.extents[a] > 1]

    def inner_axes(self) -> list[int | None]:
        """Return reduced axes that may be the inner one: those contiguous in the input, if there are any."""
        axes = self.axes(reduced=True)
        contiguous = [a for a in axes if self.loop(a).x == self.engine.in_bytes]
        return list(contiguous or axes or [None])

    def column_axes(self) -> list[int | None]:
        """Return axes that may be the columns: those contiguous in the output, if there are any."""
        axes = [a for a in self.axes(reduced=False) if self.loop(a).x == 0 and self.loop(a).w != 0]
        contiguous = [a for a in axes if self.loop(a).out == self.engine.out_bytes]
        return list(contiguous or axes or [None])

    def product(self, inner: int | None, column: int | None) -> Product:
        """Return the parts with the given inner axis and columns (None: of one point)."""
        engine = self.engine
        one = ProductLoop(1, engine.in_bytes, engine.in_bytes, engine.out_bytes)
        parallel = [self.loop(a) for a in self.axes(reduced=False) if a != column]
        summed = [self.loop(a) for a in self.axes(reduced=True) if a != inner]
        the_inner = one if inner is None else self.loop(inner)
        the_columns = replace(one, x=0, w=0) if column is None else self.loop(column)
        the_inner, summed = absorbed(the_inner, summed)
        the_columns, parallel = absorbed(the_columns, parallel)
        rows = merged([loop for loop in parallel if loop.w == 0])
        outs = merged([loop for loop in parallel if loop.w != 0])
        # The longer loop is the inner one: fewer segments.
        kept = tuple(reversed(sorted(rows, key=lambda loop: -loop.extent)[:LEVELS_OF_ROWS]))
        if engine.rounding:
            width = min(the_columns.extent, engine.columns) * engine.words_per_store * engine.out_bytes
            kept = _in_room(rows, SUMS_BYTES // width)
        further = [left for loop in rows for left in _left_over(loop, kept)]
        return Product(
            self.task, engine, self.x, self.w, the_inner, the_columns, kept, (*outs, *further), tuple(merged(summed))
        )  # fmt: skip


def _in_room(loops: list[ProductLoop], most: int) -> tuple[ProductLoop, ...]:
    """Return as many rows as may be, at most so many, in at most two of the loops or parts of them, the outer first."""
    found: list[tuple[ProductLoop, ...]] = [()]
    for inner in loops:
        rows = _part(inner, most)
        lines = [_part(outer, most // rows.extent) for outer in loops if outer is not inner]
        found += [(rows,), *((line, rows) for line in lines if line.extent > 1 and rows == inner)]
    # Of as many rows, those of the fewest segments.
    return max(
        found, key=lambda kept: (prod(loop.extent for loop in kept), -prod(loop.extent for loop in kept[:-1]))
    )


def _part(loop: ProductLoop, most: int) -> ProductLoop:
    """Return the longest part of a loop of at most so many points that goes into it evenly."""
    return replace(loop, extent=next(n for n in range(min(most, loop.extent), 0, -1) if loop.extent % n == 0))


def _left_over(loop: ProductLoop, kept: tuple[ProductLoop, ...]) -> list[ProductLoop]:
    """Return the loop over what is left of one of which there are parts among those kept, none where it is there."""
    n = max((one.extent for one in kept if replace(one, extent=loop.extent) == loop), default=1)
    rest = ProductLoop(loop.extent // n, loop.x * n, loop.w * n, loop.out * n)
    return [rest] if rest.extent > 1 else []


def absorbed(inner: ProductLoop, others: list[ProductLoop]) -> tuple[ProductLoop, list[ProductLoop]]:
    """Return a loop with all others merged into it that it is inside of, and those that are left."""
    for loop in others:
        if inner.is_inside(loop):
            grown = replace(inner, extent=inner.extent * loop.extent)
            return absorbed(grown, [other for other in others if other is not loop])
    return inner, others


def merged(loops: list[ProductLoop]) -> list[ProductLoop]:
    """Return loops with those merged that walk on evenly, in the order given otherwise."""
    for outer, inner in permutations(range(len(loops)), 2):
        if loops[inner].is_inside(loops[outer]):
            one = replace(loops[inner], extent=loops[inner].extent * loops[outer].extent)
            rest = [loop for i, loop in enumerate(loops) if i not in (inner, outer)]
            return merged([*rest, one])
    return loops
