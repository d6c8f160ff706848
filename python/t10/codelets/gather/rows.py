"""Which tasks are look-ups of whole rows, and how a row is copied.

```
out[i, :] = table[index[i], :]        (or += where the task is not initial)
```
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import gcd, prod

from t10.codelets.body.expand import expand
from t10.codelets.loops.picking import inputs_read, picked_axes
from t10.codelets.nest import Level, levels, split_any
from t10.codelets.reduce.shape import Shape
from t10.core.dtypes import size_bytes
from t10.core.expression import Selector
from t10.core.intervals import fits_words
from t10.core.scalar import ScalarFunction
from t10.core.task import Task, TaskOperand
from t10.core.tile import N_WORKERS

WORD = 4
DOUBLE = 8
MOVES = frozenset(
    {"const", "arith.addi", "arith.subi", "arith.cmpi", "arith.select", "arith.index_cast", "arith.extsi"}
)
"""Operations of index functions that count from the end where an index is negative."""
ROW_SLOTS, LOOP_SLOTS = 18, 8
"""About what a row takes beside its accesses, and a loop over rows once."""


@dataclass(frozen=True, slots=True)
class RowLookup:
    """A look-up of rows.

    `words` is the task on 32-bit words (on f16 where those are added), `shape` its loops: the inner one walks a row (or
    a piece of it) in accesses of `access_bytes`. `has_rest`: one more word follows. `table` numbers the input that is
    looked up.
    """

    task: Task
    words: Task
    shape: Shape
    table: int
    selector: Selector
    access_bytes: int
    has_rest: bool
    is_added: bool


def row_lookup(task: Task) -> RowLookup | None:
    """Return how to look up rows, None where the task is something else."""
    picked = picked_axes(task)
    if len(task.selectors) != 1 or len(picked) != 1 or task.combine != "sum" or task.body.ops:
        return None
    table, axis = task.body.result, picked[0]
    if any(task.extents[a] != 1 for a in task.reduction_axes if a != axis):
        return None
    selector = task.selectors[0]
    is_indexed = any(op.opcode == "index" for op in selector.index.ops)
    if not _is_in_words(selector.index, tuple(operand.dtype for operand in task.inputs)):
        return None
    if is_indexed or table in inputs_read(selector.index) or task.inputs[table].dtype != task.output.dtype:
        return None
    if not task.initial and task.output.dtype not in ("f16", "f32"):
        return None
    nest = [level for level in levels(task) if level.axis != axis]
    columns = [level for level in nest if level.strides[table] == 1 and level.out_stride == 1]
    if not columns or any(stride for i, stride in enumerate(columns[0].strides[:-1]) if i != table):
        return None
    return _planned(task, [level for level in nest if level is not columns[0]], columns[0], table, axis)


def _is_in_words(index: ScalarFunction, dtypes: tuple[str, ...]) -> bool:
    """Return whether an index that does not fit in a word may count as a miss: the function only moves indices."""
    function = expand(index, dtypes)
    return all(op.opcode in MOVES for op in function.ops) or fits_words(function, dtypes, 0)


def _planned(task: Task, rows: list[Level], column: Level, table: int, axis: int) -> RowLookup | None:
    """Return the look-up with its accesses; None where rows are not made of whole words."""
    size = size_bytes(task.output.dtype)
    out = len(task.inputs)
    steps = [task.inputs[table].strides[axis] * size, column.extent * size]
    steps += [level.strides[i] * size for level in rows for i in (table, out)]
    if (
        any(step % WORD for step in steps)
        or min(task.inputs[table].align_bytes, task.output.align_bytes) < WORD
    ):
        return None
    is_wide = all(step % DOUBLE == 0 for i, step in enumerate(steps) if i != 1)
    is_wide = is_wide and min(task.inputs[table].align_bytes, task.output.align_bytes) >= DOUBLE
    is_wide = is_wide and column.extent * size >= DOUBLE
    access = DOUBLE if is_wide else WORD
    is_added = not task.initial
    unit = 2 if is_added and task.output.dtype == "f16" else WORD
    words = _as_words(task, table, unit, size)
    nest = tuple(_scaled(level, table, unit, size) for level in rows)
    n_accesses, has_rest = column.extent * size // access, bool(column.extent * size % access)
    pieces = gcd(n_accesses, N_WORKERS) if _is_uneven(nest) and not has_rest else 1
    moving = partial(_only, len(task.operands), table)
    ways = [_shape(nest, column, n_accesses, access // unit, n, moving) for n in sorted({1, pieces})]
    shape = min(ways, key=partial(_slots, DOUBLE // access))
    return RowLookup(task, words, shape, table, task.selectors[0], access, has_rest, is_added)


def _shape(
    rows: tuple[Level, ...],
    column: Level,
    n_accesses: int,
    lanes: int,
    pieces: int,
    moving: Callable[[int], tuple[int, ...]],
) -> Shape:
    """Return the loops of a look-up whose rows are cut in pieces; `moving` gives strides of what is copied."""
    inner = Level(column.axis, n_accesses // pieces * lanes, moving(1), is_reduction=True)
    piece = Level(column.axis, pieces, moving(inner.extent), is_reduction=False)
    nest = (*rows, piece) if pieces > 1 else rows
    share = split_any(nest)
    if share.level is not None:
        nest = (nest[share.level], *(level for i, level in enumerate(nest) if i != share.level))
        share = replace(share, level=0)
    return Shape("rows", lanes, nest, (), inner, n_accesses // pieces, 0, share)


def _slots(per_access: int, shape: Shape) -> int:
    """Return about how many slots the busiest worker takes."""
    n_rows = prod(level.extent for level in shape.parallel)
    if shape.share.level is not None:
        n_rows = n_rows // shape.parallel[0].extent * shape.most_shared
    return n_rows * (ROW_SLOTS + per_access * shape.steps) + (0 if shape.is_once else LOOP_SLOTS)


def _is_uneven(rows: tuple[Level, ...]) -> bool:
    """Return whether whole rows would leave workers idle."""
    most = max((level.extent for level in rows), default=1)
    return most < N_WORKERS


def _only(n: int, table: int, stride: int) -> tuple[int, ...]:
    """Return strides of table and output; indices do not move."""
    return tuple(stride if i in (table, n - 1) else 0 for i in range(n))


def _as_words(task: Task, table: int, unit: int, size: int) -> Task:
    """Return the task with table and output made of words (or halves)."""
    dtype = "f16" if unit == 2 else "f32"

    def retyped(operand: TaskOperand) -> TaskOperand:
        return replace(operand, dtype=dtype, strides=tuple(s * size // unit for s in operand.strides))

    inputs = tuple(retyped(o) if i == table else o for i, o in enumerate(task.inputs))
    return replace(task, inputs=inputs, output=retyped(task.output))


def _scaled(level: Level, table: int, unit: int, size: int) -> Level:
    out = len(level.strides) - 1
    strides = tuple(s * size // unit if i in (table, out) else s for i, s in enumerate(level.strides))
    return replace(level, strides=strides)
