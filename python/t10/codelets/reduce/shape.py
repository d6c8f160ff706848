"""How a reduction is walked: which loop runs in the repeat block, and how many elements an access takes.

```
rows     the inner reduction is contiguous: lanes are neighbours of one sum, folded at the end    out[i] += in[i, r]
columns  a parallel axis is contiguous: lanes are neighbouring outputs                            out[i] += in[r, i]
points   neither (or misaligned): one element at a time, any strides
```
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Literal

from t10.codelets.nest import Level, Split, levels, split, split_any, split_first
from t10.codelets.workers import MOST_DEALT
from t10.core.dtypes import is_float, size_bytes
from t10.core.expression import Combine
from t10.core.task import Task, TaskOperand
from t10.core.tile import N_WORKERS, WIDE_BYTES

Mode = Literal["rows", "columns", "points"]
ACCESS_BYTES = 8
KEPT_TASKS = 8
MOST_UNROLLED = 16
"""Bundles of a whole reduction up to which no loop is made of it."""
LEAST_REPEATED = 4
"""Steps from which on the inner loop is a repeat block."""

COST_OF_TAIL, COST_OF_STRAIGHT, COST_OF_LOOP = 5, 2, 4
COST_OF_RESULT: dict[Mode, int] = {"rows": 6, "columns": 5, "points": 6}
NEAR = 1.4
"""Ways are counted whose slots, as estimated, are so many times those of the best."""
COST_OF_HALF = 7
"""About how many slots things cost that are not inner steps: to choose between shapes."""
SLOTS_OF_LANE = {"math.exp": 3, "math.exp2": 3, "math.log": 6, "math.log2": 6, "math.tanh": 5, "math.sqrt": 5,
                 "math.rsqrt": 4, "arith.divf": 4}  # fmt: skip
"""Slots of functions that are computed lane by lane."""

NEVER, PER_OUTPUT, PER_STEP, PER_LANE = range(4)
"""In which loop a value changes: never, from output to output, from step to step of the inner loop, in every lane."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A reduction's loops.

    `parallel` are the levels around one output (in columns mode: around one vector of outputs; its extent counts
    vectors, strides are element strides of one vector), the shared one first; `outer` are reductions around the inner
    one; `inner` is the level in the repeat block and `steps` its whole vectors. `tail` are elements beyond whole
    vectors: of the inner level in rows mode, of the columns in columns mode. `column` is the columns' place in
    `parallel`. `is_wide`: the input is loaded 16 bytes at a time, from interleaved memory.
    """

    mode: Mode
    lanes: int
    parallel: tuple[Level, ...]
    outer: tuple[Level, ...]
    inner: Level
    steps: int
    tail: int
    share: Split
    column: int | None = None
    is_wide: bool = False

    @property
    def reductions(self) -> tuple[Level, ...]:
        """Return all reduction levels, the inner one last."""
        return (*self.outer, self.inner)

    @property
    def is_dealt(self) -> bool:
        """Return whether workers take every sixth point of the shared level, else a stretch of it each."""
        is_single = self.share.level is not None and self.share.unit == 1
        return is_single and self.parallel[0].extent <= MOST_DEALT

    @property
    def is_once(self) -> bool:
        """Return whether no worker has more than one output: nothing is counted, and no pointer goes on."""
        is_few = len(self.parallel) == 1 and self.parallel[0].extent <= N_WORKERS
        return self.is_dealt and is_few and self.mode != "columns"

    @property
    def most_shared(self) -> int:
        """Return the points of the shared level that the busiest worker takes."""
        unit = self.share.unit
        return -(-self.parallel[0].extent // (unit * N_WORKERS)) * unit

    @property
    def unevenness(self) -> float:
        """Return how many times as much as in the mean the busiest worker does."""
        if self.share.level is None:
            return N_WORKERS
        return self.most_shared * N_WORKERS / self.parallel[0].extent

    def level_of_input(self, number: int) -> int:
        """Return in which loop an input changes, see `PER_OUTPUT`..."""
        is_moving = self.moves(number)
        if self.mode == "points":
            return PER_LANE if is_moving else PER_OUTPUT
        lanes_along = self.inner if self.column is None else self.parallel[self.column]
        if lanes_along.strides[number]:
            return PER_LANE
        return PER_STEP if is_moving else PER_OUTPUT

    def moves(self, number: int) -> bool:
        """Return whether an input's pointer moves within one output."""
        return bool(self.inner.strides[number]) or any(level.strides[number] for level in self.outer)


def wide_shapes(task: Task) -> tuple[Shape, ...]:
    """Return the ways to walk a task that take 16 bytes at once, if there are any: they are worth a count."""
    if not has_wide_sums(
        (*(operand.dtype for operand in task.inputs[: task.n_read]), task.acc_dtype), task.combine
    ):
        return ()
    if not _is_plain(task) or not task.inputs[0].is_interleaved:
        return ()
    nest, lanes = levels(task), WIDE_BYTES // size_bytes(task.inputs[0].dtype)
    found = (_columns(task, nest, lanes, is_wide=True), _rows(task, nest, lanes, is_wide=True))
    return tuple([shape for shape in found if shape is not None])


@lru_cache(maxsize=KEPT_TASKS)
def shapes(task: Task) -> tuple[Shape, ...]:
    """Return the ways to walk a task that has reduction levels, the best first."""
    return tuple([shape for _, _, _, shape in _estimated(task)])


def least_slots(task: Task) -> int:
    """Return what is estimated of the best way to walk a task."""
    return _estimated(task)[0][0]


@lru_cache(maxsize=KEPT_TASKS)
def _estimated(task: Task) -> list[tuple[int, int, str, Shape]]:
    """Return the ways to walk a task by their slots; the widest of equals come first."""
    nest = levels(task)
    if not any(level.is_reduction for level in nest):
        return []
    widest = _most_lanes(task)
    found = [_rows(task, nest, lanes) for lanes in (4, 2) if lanes <= widest]
    most = 2 * widest if _is_plain(task) else widest
    found += [_columns(task, nest, lanes) for lanes in (8, 4, 2) if lanes <= most]
    candidates = [*(shape for shape in found if shape is not None), _points(task, nest)]
    estimated = [(estimated_slots(shape, task), -shape.lanes, shape.mode, shape) for shape in candidates]
    return sorted(estimated, key=lambda one: one[:3])


def estimated_slots(shape: Shape, task: Task) -> int:
    """Return about how many slots the busiest worker takes: inner steps, loops, remainders and results.

    It tells which shapes are worth a count.
    """
    n_outer = prod(level.extent for level in shape.outer)
    per_step = _slots_of_step(shape, task)
    n_slots = shape.steps * per_step
    is_small = n_outer * n_slots <= MOST_UNROLLED
    remainder = COST_OF_TAIL + per_step if shape.mode == "rows" and shape.tail else 0
    per_outer = n_slots + remainder + (COST_OF_STRAIGHT if is_small else COST_OF_LOOP)
    half = COST_OF_HALF if task.output.dtype == "f16" and shape.mode != "columns" else 0
    per_output = n_outer * per_outer + COST_OF_RESULT[shape.mode] + half + 1
    n_outputs = prod(level.extent for level in shape.parallel)
    if shape.share.level is not None:
        n_outputs = n_outputs // shape.parallel[0].extent * shape.most_shared
    return per_output * n_outputs


def _slots_of_step(shape: Shape, task: Task) -> int:
    """Return the slots of one inner step: loads, or what is computed from them."""
    loads = 0
    for i, operand in enumerate(task.inputs):
        if shape.moves(i):
            loads += -(-shape.lanes * size_bytes(operand.dtype) // ACCESS_BYTES)
    if _is_plain(task):
        # What instructions drop NaNs, another one watches for.
        return max(1, loads) * (2 if task.combine in ("max", "min") and is_float(task.acc_dtype) else 1)
    pairs = -(-shape.lanes // 2)
    computed = pairs
    for op in task.body.ops:
        computed += SLOTS_OF_LANE[op.opcode] * shape.lanes if op.opcode in SLOTS_OF_LANE else pairs
    return max(1, loads, computed)


def _rows(task: Task, nest: tuple[Level, ...], lanes: int, *, is_wide: bool = False) -> Shape | None:
    parallel = tuple([level for level in nest if not level.is_reduction])
    reductions = [level for level in nest if level.is_reduction]
    contiguous = [level for level in reductions if _is_contiguous(level.strides[:-1])]
    if not contiguous:
        return None
    inner = max(contiguous, key=lambda level: level.extent)
    rest = [level for level in nest if level is not inner]
    if inner.extent < lanes or not _is_aligned(task, inner, rest, lanes):
        return None
    tail = inner.extent % lanes
    if is_wide and (tail or not _operand_is_aligned(task.inputs[0], 0, rest, lanes, WIDE_BYTES)):
        return None
    parallel, share = _share(parallel, task)
    outer = tuple(level for level in reductions if level is not inner)
    return Shape("rows", lanes, parallel, outer, inner, inner.extent // lanes, tail, share, is_wide=is_wide)


def has_wide_sums(dtypes: tuple[str, ...], combine: Combine) -> bool:
    """Return whether one instruction adds 16 bytes of the one input to accumulators; `dtypes` has the output's last."""
    return len(dtypes) == 2 and combine == "sum" and dtypes[0] in ("f16", "f32")


def _columns(task: Task, nest: tuple[Level, ...], lanes: int, *, is_wide: bool = False) -> Shape | None:
    parallel = [level for level in nest if not level.is_reduction]
    contiguous = [level for level in parallel if level.out_stride == 1 and _is_contiguous(level.strides)]
    if not contiguous:
        return None
    reductions = [level for level in nest if level.is_reduction]
    column = contiguous[0]
    rest = [level for level in nest if level is not column]
    if not _is_aligned(task, column, rest, lanes, is_stored=True):
        return None
    if is_wide and not _operand_is_aligned(task.inputs[0], 0, rest, lanes, WIDE_BYTES):
        return None
    strides = tuple([s * lanes for s in column.strides])
    vectors = Level(column.axis, -(-column.extent // lanes), strides, column.is_reduction, column.origin)
    around = tuple([vectors if level is column else level for level in parallel])
    around, share = split_first(around, split_any(around))
    inner = max(reductions, key=lambda level: level.extent)
    outer = tuple(level for level in reductions if level is not inner)
    tail = column.extent % lanes
    place = around.index(vectors)
    return Shape("columns", lanes, around, outer, inner, inner.extent, tail, share, place, is_wide)


def _points(task: Task, nest: tuple[Level, ...]) -> Shape:
    parallel = tuple(level for level in nest if not level.is_reduction)
    reductions = [level for level in nest if level.is_reduction]
    inner = max(reductions, key=lambda level: level.extent)
    outer = tuple(level for level in reductions if level is not inner)
    parallel, share = _share(parallel, task)
    return Shape("points", 1, parallel, outer, inner, inner.extent, 0, share)


def _share(parallel: tuple[Level, ...], task: Task) -> tuple[tuple[Level, ...], Split]:
    return split_first(parallel, split(parallel, task.output.dtype, task.output.align_bytes))


def _is_contiguous(strides: tuple[int, ...]) -> bool:
    return set(strides) <= {0, 1} and 1 in strides


def _most_lanes(task: Task) -> int:
    """Return the elements of the widest vectors that suit the types: floats only, four of f16, else two.

    Columns may be twice as many where nothing is computed but their combination.
    """
    kinds = {operand.dtype for operand in task.operands}
    return 0 if not kinds <= {"f16", "f32"} else 4 if "f16" in kinds else 2


def _is_plain(task: Task) -> bool:
    """Return whether a body hands its only input through, widened or not."""
    is_through = not task.body.ops or [op.opcode for op in task.body.ops] == ["arith.extf"]
    return task.n_read == 1 and is_through


def _is_aligned(task: Task, along: Level, rest: list[Level], lanes: int, *, is_stored: bool = False) -> bool:
    """Return whether every vector along a level begins at a multiple of what one access takes."""
    for number, operand in enumerate(task.operands):
        if along.strides[number] == 0 or (number == len(task.inputs) and not is_stored):
            continue
        if not _operand_is_aligned(operand, number, rest, lanes):
            return False
    return True


def _operand_is_aligned(
    operand: TaskOperand, number: int, rest: list[Level], lanes: int, most_bytes: int = ACCESS_BYTES
) -> bool:
    size = size_bytes(operand.dtype)
    access = min(most_bytes, lanes * size)
    return operand.align_bytes % access == 0 and all(
        level.strides[number] * size % access == 0 for level in rest
    )
