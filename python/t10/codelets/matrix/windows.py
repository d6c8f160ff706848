"""Depthwise convolutions on the short-window engine: each channel is summed over a window by itself.

```
six workers: write each tap's weights of four channels as a diagonal matrix               scratch memory
for images, groups of four channels:                                                      supervisor
    for rows of the window, pieces of three or four taps along them:                      supervisor
        load the piece's weights into the engine                                          supervisor
        rows of positions through the engine, which hand on sums from tap to tap          six workers
```

Channels lie next to each other in input, weights and output. A step takes four channels at a position and gives four
sums in f16, or two in f32: then rows go through the engine twice. Sums go through memory between pieces of a window.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from t10.codelets.matrix.product import ProductLoop
from t10.codelets.matrix.windows_code import (
    CHANNELS,
    POINTERS,
    RECIPROCAL_BITS,
    WORD_BYTES,
    ZERO_TAP,
    Structure,
    codelet_of,
    row_through,
)
from t10.core.codelet import Compiled, Pointer, Scratch, Word
from t10.core.dtypes import size_bytes
from t10.core.products import is_product
from t10.core.task import Task

MOST_SCRATCH_BYTES = 1 << 14
"""Bytes of all weights as diagonal matrices."""
SHORTEST_WINDOW, LONGEST_WINDOW, MOST_TAPS = 3, 16, 4
"""Taps of a window's row, and those of a piece of it at most."""
MOST_OUTS = 3
"""Loops around the engine's, that over groups of channels among them."""
PACES = range(-512, 512)
"""Words of eight bytes that a field of the stride register holds."""
STRIDES = (1, 2)
"""Positions from one window to the next."""
GRIDS = ((6, 1), (3, 2), (2, 3), (1, 6))
"""How six workers share rows and columns of positions."""
ROW_BUNDLES = 8
"""What a row takes besides its steps, to choose how workers share them."""


@dataclass(frozen=True, slots=True)
class Windows:
    """A task as windows of `kernel` (rows, columns of taps) over `rows` and `columns` of positions."""

    structure: Structure
    operands: tuple[int, int]
    kernel: tuple[ProductLoop, ProductLoop]
    rows: ProductLoop
    columns: ProductLoop
    groups: ProductLoop
    outs: tuple[ProductLoop, ...]

    @property
    def scratch_bytes(self) -> int:
        """Return the bytes of all weights as diagonal matrices."""
        return self.groups.extent * self.kernel[0].extent * self.structure.row_bytes

    def grid(self) -> tuple[int, int] | None:
        """Return how workers share rows and columns, None where columns would be too few for the code."""
        structure = self.structure
        least = least_columns(structure.pieces, structure.stride, self.kernel[0].extent)
        found = [
            (-(-self.rows.extent // a) * (2 * -(-self.columns.extent // b) + ROW_BUNDLES), a, b)
            for a, b in GRIDS
            if self.columns.extent // b >= least
        ]
        return min(found)[1:] if found else None

    def compiled(self) -> Compiled | None:
        """Return the code and its words, None where it takes no such shape."""
        grid = self.grid()
        if grid is None or self.scratch_bytes > MOST_SCRATCH_BYTES:
            return None
        numbers = self._numbers(grid)
        x, w = self.operands
        pointers: dict[str, Word] = {
            "x": Pointer(x),
            "w": Pointer(w),
            "scratch": Scratch(),
            "out": Pointer(2),
        }
        words = [pointers.get(name, numbers.get(name, 0)) for name in (*POINTERS, *self.structure.words())]
        return Compiled(codelet_of(self.structure), tuple(words), self.scratch_bytes)

    def _numbers(self, grid: tuple[int, int]) -> dict[str, int]:
        structure, (down, along) = self.structure, self.kernel
        row_groups, col_groups = grid
        row_share, row_rest = divmod(self.rows.extent, row_groups)
        col_share, col_rest = divmod(self.columns.extent, col_groups)
        halves = WORD_BYTES * (structure.halves - 1)
        steps = [k * along.x for k in structure.pieces]
        if structure.has_zero:
            steps[0] -= along.x
        steps[-1] = down.x - sum(steps[:-1])
        group_bytes = down.extent * structure.row_bytes
        numbers = {
            "kernel_rows": down.extent,
            "out_next": self.rows.out - halves,
            "pace": (self.columns.x // structure.stride // WORD_BYTES & 0x3FF)
            | (self.columns.out // WORD_BYTES & 0x3FF) << 10,
            "x_row": self.rows.x,
            "out_row": self.rows.out,
            "x_col": self.columns.x,
            "out_col": self.columns.out,
            "row_share": row_share,
            "row_rest": row_rest,
            "col_share": col_share,
            "col_rest": col_rest,
            "col_groups": col_groups,
            "col_reciprocal": -(-(1 << RECIPROCAL_BITS) // col_groups),
            "groups": self.groups.extent,
            "group_bytes": group_bytes,
            "w_row": down.w,
            "w_tap": along.w // WORD_BYTES,
        } | {f"x_step{i}": step for i, step in enumerate(steps)}
        x_moved, w_moved, out_moved = down.extent * down.x, group_bytes, 0
        for i, loop in reversed(tuple(enumerate(self.outs))):
            is_groups = loop is self.groups
            w_step = group_bytes if is_groups else 0
            numbers |= {
                f"count{i}": loop.extent,
                f"x_out{i}": loop.x - x_moved,
                f"out_out{i}": loop.out - out_moved,
            }
            numbers[f"w_out{i}"] = w_step - w_moved
            x_moved, w_moved, out_moved = loop.x * loop.extent, w_step * loop.extent, loop.out * loop.extent
        return numbers


def windows(task: Task) -> tuple[Compiled, ...]:
    """Return a depthwise convolution on the engine, along either axis of its window; nothing where it is none."""
    return tuple(code for found in _windows(task) if (code := found.compiled()) is not None)


def _windows(task: Task) -> Iterator[Windows]:
    """Yield the ways to see a task as windows."""
    if not task.initial or task.combine != "sum" or task.selectors:
        return
    if len(task.inputs) != 2 or not is_product(task.body):
        return
    dtype = task.output.dtype
    if dtype not in ("f16", "f32") or task.body.ops[-1].dtype != dtype:
        return
    if any(operand.dtype != "f16" for operand in task.inputs):
        return
    if any(operand.align_bytes < WORD_BYTES for operand in task.operands):
        return
    for x, w in ((0, 1), (1, 0)):
        if task.are_apart(x, 2):
            yield from _ways(task, dtype, x, w)


def _ways(task: Task, dtype: Literal["f16", "f32"], x: int, w: int) -> Iterator[Windows]:
    """Yield the ways in which one input is seen through windows and the other holds weights."""
    size = size_bytes(dtype)
    loops = {
        a: ProductLoop(
            n, 2 * task.inputs[x].strides[a], 2 * task.inputs[w].strides[a], size * task.output.strides[a]
        )
        for a, n in enumerate(task.extents)
        if n > 1
    }
    kernel = [loops.pop(a) for a in task.reduction_axes if a in loops]
    channels = [loop for loop in loops.values() if (loop.x, loop.w, loop.out) == (2, 2, size)]
    others = [loop for loop in loops.values() if loop not in channels]
    if (
        len(channels) != 1
        or channels[0].extent % CHANNELS
        or any(loop.w for loop in others)
        or len(kernel) > 2
    ):
        return
    if any(step % WORD_BYTES for loop in (*kernel, *others) for step in (loop.x, loop.w, loop.out)):
        return
    groups = ProductLoop(channels[0].extent // CHANNELS, WORD_BYTES, WORD_BYTES, CHANNELS * size)
    for along in kernel:
        down = next((loop for loop in kernel if loop is not along), ProductLoop(1, 0, 0, 0))
        for loop in others:
            left = [other for other in others if other is not loop]
            for columns, outer in _columns(loop, along):
                found = _placed(dtype, (x, w), groups, (down, along), columns, [*outer, *left])
                if found is not None:
                    yield found


def _columns(loop: ProductLoop, along: ProductLoop) -> Iterator[tuple[ProductLoop, list[ProductLoop]]]:
    """Yield the columns along which windows move in a loop, and the loop around them that is left of it.

    Columns may be every n-th point, where rows that lie one after another have become one loop.
    """
    yield loop, []
    for stride in STRIDES:
        n, rest = divmod(stride * along.x, loop.x) if loop.x > 0 else (0, 1)
        if not rest and n > 1 and loop.extent % n == 0 and loop.extent > n:
            yield (
                ProductLoop(loop.extent // n, n * loop.x, 0, n * loop.out),
                [ProductLoop(n, loop.x, 0, loop.out)],
            )


def _placed(
    dtype: Literal["f16", "f32"],
    operands: tuple[int, int],
    groups: ProductLoop,
    kernel: tuple[ProductLoop, ProductLoop],
    columns: ProductLoop,
    others: list[ProductLoop],
) -> Windows | None:
    """Return windows that move along some columns, None where the code takes no such."""
    along, pieces = kernel[1], pieces_of(kernel[1].extent)
    stride = columns.x // along.x if along.x > 0 else 0
    if pieces is None or stride not in STRIDES or columns.x != stride * along.x:
        return None
    if along.x // WORD_BYTES not in PACES or columns.out // WORD_BYTES not in PACES:
        return None
    rows = max(others, key=lambda loop: loop.extent, default=ProductLoop(1, 0, 0, 0))
    outs = (*(loop for loop in others if loop is not rows), groups)
    if len(outs) > MOST_OUTS:
        return None
    structure = Structure(dtype, stride, pieces, along.extent == ZERO_TAP, len(outs))
    return Windows(structure, operands, kernel, rows, columns, groups, outs)


@lru_cache(maxsize=256)
def least_columns(pieces: tuple[int, ...], stride: int, kernel_rows: int) -> int:
    """Return the fewest results in a row that the loops take in which rows of a window go through the engine."""
    structure = Structure("f32", stride, pieces, False, 1)
    begins = row_through(structure, pieces[0], adds=False).least
    adding = pieces if kernel_rows > 1 else pieces[1:]
    return max([begins, *(row_through(structure, taps, adds=True).least for taps in adding)])


def pieces_of(taps: int) -> tuple[int, ...] | None:
    """Return the pieces in which a row of so many taps goes through the engine, None of none."""
    if not SHORTEST_WINDOW <= taps <= LONGEST_WINDOW:
        return None
    n_three = -taps % MOST_TAPS if taps != ZERO_TAP else 2
    return (MOST_TAPS,) * ((taps - 3 * n_three) // MOST_TAPS) + (3,) * n_three
