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

from t10.codelets.matrix.copying import Copies
from t10.codelets.matrix.engine import WORD_BYTES, Engine, engine_for
from t10.core.products import SUMS_BYTES, is_product
from t10.core.task import Task, TaskOperand

LEVELS_OF_ROWS = 2
"""Loops of rows; one where sums grow in a place of their own, in which rows follow each other."""


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
    engine = engine_for(first, task.output.dtype, rounds=bool(others) and task.first is None)
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
                    yield _in_room(found) if engine.rounding else found


def begins_with_row(product: Product, column: int) -> bool:
    """Return whether a product's sums can begin with the partials of its task, a row of them along `column`."""
    task, engine = product.task, product.engine
    assert task.first is not None
    row = task.inputs[task.first]
    is_row = row.strides[column] == 1 and not any(s for a, s in enumerate(row.strides) if a != column)
    return (
        is_row
        and (row.dtype, engine.in_dtype, engine.out_dtype) == ("f16", "f16", "f32")
        and row.align_bytes >= WORD_BYTES
        and product.columns.extent == task.extents[column]
        and product.columns.extent % engine.columns == 0
        and product.inner.extent >= engine.depth
        and len(product.rows) == 1
        and not product.outs
    )


def _in_room(product: Product) -> Product:
    """Return a product of so few rows that their sums fit where they grow; the others are further ones."""
    (rows,) = product.rows or (ProductLoop(1, 0, 0, 0),)
    width = min(product.columns.extent, product.engine.columns)
    most = SUMS_BYTES // (width * product.engine.words_per_store * product.engine.out_bytes)
    n = next(n for n in range(1, rows.extent + 1) if rows.extent % n == 0 and rows.extent <= n * most)
    if n == 1:
        return product
    own = replace(rows, extent=rows.extent // n)
    others = ProductLoop(n, own.extent * rows.x, 0, own.extent * rows.out)
    return replace(product, rows=(own,), outs=(*product.outs, others))


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
        n_levels = 1 if engine.rounding else LEVELS_OF_ROWS
        kept = sorted(rows, key=lambda loop: -loop.extent)[:n_levels]
        # The longer loop is the inner one: fewer segments.
        return Product(
            self.task, engine, self.x, self.w, the_inner, the_columns,
            tuple(reversed(kept)), tuple(outs + [loop for loop in rows if loop not in kept]), tuple(merged(summed)),
        )  # fmt: skip


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
