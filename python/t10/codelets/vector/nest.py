"""A task as the vector family sees it: rows along one inner axis, outer axes around them, a share per worker."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import product
from math import gcd, prod
from typing import Literal

from t10.codelets.vector.old_output import with_old_output
from t10.core.dtypes import size_bytes
from t10.core.expression import AxisSizes
from t10.core.scalar import ScalarFunction
from t10.core.task import Task, TaskOperand
from t10.core.tile import N_WORKERS

WORD_BYTES, DOUBLE_BYTES = 4, 8
ROW_UNIT = 4
"""Shares of rows are multiples of as many points."""
REST = (0, 1, 2, 1)
"""By points beyond whole units, as few after which turns of two and of four points leave a rest in the same cases."""
MOST_OUTER_AXES = 4
Split = Literal["columns", "rows", "flat", "parts", "alone"]
MOST_BEGIN = 1 << 16
"""Bytes from an operand's first element to where a worker's part begins are words of 16 bits."""
MOST_ALONE = 4
"""Points that one worker may do alone, written out: to find a share takes longer than as many."""


@dataclass(frozen=True, slots=True)
class Walk:
    """How a nest walks one operand: element strides of the outer axes (outermost first) and of the inner axis.

    `operand` is its number in the task; `align_bytes` divides the address of every row's first element. Rows that are
    out of step with words wherever the output's are, and only there, `follow_output`. `lane` is the stride between the
    elements of a point, where a point is several of them.
    """

    operand: int
    dtype: str
    outer: AxisSizes
    inner: int
    align_bytes: int
    follows_output: bool = False
    lane: int = 1

    @property
    def size_bytes(self) -> int:
        """Return the bytes of one element."""
        return size_bytes(self.dtype)


@dataclass(frozen=True, slots=True)
class RowNest:
    """Rows of `inner` points, `outer` extents around them; the last walk is the output's.

    `axes` gives, per axis of the task that an `index` names, its position among the outer axes (the inner axis comes
    after them; -1 for an axis of one point). Workers share the inner axis ("columns"), the outermost ("rows"), or all
    points, rows counted as if they were `padded` long ("flat"): worker w takes `per_worker` from `w * per_worker` on.
    Where rows are few, each takes one of their "parts": `begins` gives, per worker, its points and the bytes from each
    walk's first element to the part's. Or the first of them does a few points "alone".

    If `across` is not 0, a point is as many neighbouring elements, and rows run across the dense axis of the output:
    what does not vary along them stays in registers. `alike` gives, per walk, the first whose elements lie at the same
    bytes from its first one.
    """

    function: ScalarFunction
    outer: AxisSizes
    inner: int
    walks: tuple[Walk, ...]
    axes: tuple[tuple[int, int], ...]
    origin: AxisSizes
    split: Split
    per_worker: int
    alike: tuple[int, ...]
    across: int = 0
    begins: tuple[AxisSizes, ...] = ()

    @property
    def point_elements(self) -> int:
        """Return how many elements of the output a point is."""
        return self.across or 1

    @property
    def is_short(self) -> bool:
        """Return whether no more points are computed at a time than a row has."""
        return self.split == "alone" or self.inner < ROW_UNIT

    @property
    def padded(self) -> int:
        """Return the points of a row, rounded up to what a share is a multiple of."""
        return (self.inner + ROW_UNIT - 1) // ROW_UNIT * ROW_UNIT

    @property
    def starts(self) -> tuple[AxisSizes, ...]:
        """Return where every worker begins: if all points are shared, an index per outer axis, then the column.

        If parts are, the points of its part (0: it has none), then the bytes to it of walks that lie alike.
        """
        if self.split == "parts":
            none = (0,) * (1 + len(self.walks))
            given = [*self.begins, *[none] * (N_WORKERS - len(self.begins))]
            return tuple((begin[0], *(begin[1 + n] for n in self.moved)) for begin in given)
        result: list[AxisSizes] = []
        for worker in range(N_WORKERS):
            row, column = divmod(worker * self.per_worker, self.padded)
            index = [column]
            for extent in reversed(self.outer):
                row, rest = divmod(row, extent)
                index.insert(0, rest)
            result.append(tuple(index))
        return tuple(result)

    @property
    def moved(self) -> AxisSizes:
        """Return the walks that begin elsewhere for every part, the first of those that lie alike."""
        return tuple(n for n, walk in enumerate(self.walks) if self.alike[n] == n and is_moved_by_parts(walk))

    @property
    def inputs(self) -> tuple[Walk, ...]:
        """Return the walks of the inputs."""
        return self.walks[:-1]

    @property
    def output(self) -> Walk:
        """Return the walk of the output."""
        return self.walks[-1]


def is_moved_by_parts(walk: Walk) -> bool:
    """Return whether parts of rows may lie at other places of an operand."""
    return bool(walk.inner or any(walk.outer))


@dataclass(frozen=True, slots=True)
class _Axis:
    number: int
    extent: int
    strides: AxisSizes
    is_named: bool


def skeleton(nest: RowNest) -> RowNest:
    """Return a nest with other numbers that is computed by the same instructions, the same one for all such nests.

    Which of its walks are `alike` is left out.
    """
    inner = nest.inner if nest.is_short else ROW_UNIT + REST[nest.inner % ROW_UNIT]
    walks = tuple(
        [
            Walk(
                walk.operand, walk.dtype, tuple([min(stride, 1) for stride in walk.outer]), min(walk.inner, 2),
                _relied_on(walk, is_single=walk is not nest.output and not nest.across), walk.follows_output,
                walk.lane,
            )
            for walk in nest.walks
        ]
    )  # fmt: skip
    per_worker = inner if nest.per_worker >= nest.inner else 1
    return RowNest(
        nest.function, tuple([min(extent, 2) for extent in nest.outer]), inner, walks, nest.axes,
        (0,) * len(nest.origin), nest.split, per_worker, (), nest.across,
    )  # fmt: skip


def _relied_on(walk: Walk, *, is_single: bool) -> int:
    """Return what of an operand's alignment instructions can use; with `is_single` strided elements come one by one."""
    return min(walk.align_bytes, walk.size_bytes if is_single and walk.inner != 1 else DOUBLE_BYTES)


def slots_of(nest: RowNest, effort: Effort) -> float:
    """Return about how many issue slots the busiest worker takes."""
    n_rows = prod(nest.outer)
    per_point = effort.per_point * nest.point_elements
    if nest.split in ("columns", "parts", "alone"):
        back = 2 * len(nest.walks) if nest.outer else 0
        return n_rows * (nest.per_worker * per_point + effort.per_row + back)
    if nest.split == "rows":
        return n_rows // nest.outer[0] * nest.per_worker * (nest.inner * per_point + effort.per_row)
    rows = nest.per_worker // nest.padded + 2
    return nest.per_worker * per_point + rows * (effort.per_row + FLAT_ROW) + FLAT_START


@dataclass(frozen=True, slots=True)
class Effort:
    """Issue slots of a worker: per point, and per row besides; they decide how the work is shared."""

    per_point: float = 0.75
    per_row: int = 12


def nest_of(task: Task, effort: Effort, refused: frozenset[Split] = frozenset()) -> RowNest | None:
    """Return a task without reduction axes as rows; None where it is not that, or its output does not lie in rows.

    Workers share it in the best way that is not `refused`; None where there is no other.
    """
    rows = rows_of(task)
    return None if rows is None else rows.nest(effort, refused)


def rows_of(task: Task) -> Rows | None:
    """Return a task without reduction axes as rows to share; None where it is not that, or has no rows."""
    made = with_old_output(task)
    if made is None or task.reduction_axes or task.selectors:
        return None
    function, numbers = made
    operands = [task.operands[i] for i in (*numbers, len(task.inputs))]
    axes = _axes(task, operands, function)
    if not axes:
        axes = [_Axis(-1, 1, (0,) * (len(operands) - 1) + (1,), is_named=False)]
    inner = _inner(axes, operands[-1])
    if inner is None:
        return None
    axes.remove(inner)
    return Rows(task, function, (*numbers, len(task.inputs)), operands, axes, inner)


@dataclass(slots=True)
class Rows:
    """A task as rows along one inner axis that workers may share in several ways; each is made once."""

    task: Task
    function: ScalarFunction
    numbers: tuple[int, ...]
    operands: list[TaskOperand]
    axes: list[_Axis]
    inner: _Axis
    _nests: dict[tuple[Split, int, tuple[int, ...]], RowNest] = field(
        default_factory=dict[tuple[Split, int, tuple[int, ...]], "RowNest"]
    )

    def nest(self, effort: Effort, refused: frozenset[Split]) -> RowNest | None:
        """Return the best way to share that is not `refused`, None where there is no other."""
        is_indexed = any(op.opcode == "index" for op in self.function.ops)
        choice = _split(
            self.axes, self.inner, self.operands, effort, refused | NOT_FLAT if is_indexed else refused
        )
        if choice is None:
            return None
        split, per_worker, axes = choice
        if len(axes) > MOST_OUTER_AXES:
            return None
        key = split, per_worker, tuple(axis.number for axis in axes)
        if key not in self._nests:
            self._nests[key] = self._nest(split, per_worker, axes)
        return self._nests[key]

    def alone(self) -> RowNest | None:
        """Return a few points as one worker does them, None where there are more or rows of them."""
        n_points = self.inner.extent
        return None if self.axes or n_points > MOST_ALONE else self._nest("alone", n_points, [])

    def parts(self) -> RowNest | None:
        """Return rows in parts, no more of them than there are workers; None where there are more."""
        n_rows, inner, output = prod(axis.extent for axis in self.axes), self.inner, self.operands[-1]
        is_indexed = any(op.opcode == "index" for op in self.function.ops)
        if n_rows > N_WORKERS or is_indexed or not _has_whole_words(output, self.axes):
            return None
        per_row = N_WORKERS // n_rows
        points = _rounded(-(-inner.extent // per_row), ROW_UNIT) if per_row > 1 else inner.extent
        rows = list(product(*(range(axis.extent) for axis in self.axes)))
        whole = self._nest("parts", points, self.axes)
        begins = tuple(
            (
                min(points, inner.extent - column),
                *(
                    (sum(i * stride for i, stride in zip(row, walk.outer, strict=True)) + column * walk.inner)
                    * walk.size_bytes
                    for walk in whole.walks
                ),
            )
            for row in rows
            for column in range(0, inner.extent, points)
        )
        if not all(0 <= number < MOST_BEGIN for begin in begins for number in begin):
            return None
        # Nothing goes from row to row; what is the same along one is still loaded once.
        walks = tuple(replace(walk, outer=(int(any(walk.outer)),)) for walk in whole.walks)
        places = [
            (is_moved_by_parts(walk), *(begin[1 + n] for begin in begins)) for n, walk in enumerate(walks)
        ]
        alike = tuple(map(places.index, places))
        return replace(whole, outer=(1,), walks=walks, alike=alike, begins=begins)

    def _nest(self, split: Split, per_worker: int, axes: list[_Axis]) -> RowNest:
        task, function, inner, output = self.task, self.function, self.inner, self.operands[-1]
        walks = tuple(
            Walk(
                number, operand.dtype, tuple([a.strides[i] for a in axes]), inner.strides[i],
                _row_alignment(operand, [a.strides[i] for a in axes]),
                _follows(operand, output, [(a.strides[i], a.strides[-1]) for a in axes]),
            )
            for i, (number, operand) in enumerate(zip(self.numbers, self.operands, strict=True))
        )  # fmt: skip
        ordered = [*axes, inner]
        position = {a.number: i for i, a in enumerate(ordered)}
        named = sorted({int(op.attribute) for op in function.ops if op.opcode == "index"})
        return RowNest(
            function, tuple(a.extent for a in axes), inner.extent, walks,
            tuple((a, position.get(a, -1)) for a in named),
            tuple(task.origin[a] if task.origin else 0 for a in named), split, per_worker, _alike(walks),
        )  # fmt: skip


def across_nest(task: Task) -> RowNest | None:
    """Return a task as rows across its dense axis; None where nothing would stay in registers, or it cannot be."""
    made = with_old_output(task)
    if made is None or task.reduction_axes or task.selectors:
        return None
    function, numbers = made
    if any(op.opcode == "index" for op in function.ops):
        return None
    operands = [task.operands[i] for i in (*numbers, len(task.inputs))]
    if any(operand.dtype not in ("f16", "f32") for operand in operands):
        return None
    lanes = 4 if any(operand.dtype == "f16" for operand in operands) else 2
    axes = _axes(task, operands, function)
    dense = next((axis for axis in axes if axis.strides[-1] == 1 and axis.extent % lanes == 0), None)
    if dense is None or any(stride not in (0, 1) for stride in dense.strides):
        return None
    across = max(
        (a for a in axes if a is not dense), key=lambda a: _n_kept(a, dense) * a.extent, default=None
    )
    if across is None or not _n_kept(across, dense) or not _lie_across(operands, axes, dense, across):
        return None
    outer = sorted((a for a in axes if a is not dense and a is not across), key=lambda a: -a.extent)
    chunks = replace(dense, extent=dense.extent // lanes, strides=tuple(s * lanes for s in dense.strides))
    outer = sorted([chunks, *outer], key=lambda a: _share(a.extent, 1) / a.extent)
    walks = tuple(
        Walk(n, o.dtype, tuple(a.strides[i] for a in outer), across.strides[i], 8, lane=dense.strides[i])
        for i, (n, o) in enumerate(zip((*numbers, len(task.inputs)), operands, strict=True))
    )
    if len(outer) > MOST_OUTER_AXES:
        return None
    extents = tuple(a.extent for a in outer)
    share = _share(extents[0], 1)
    return RowNest(function, extents, across.extent, walks, (), (), "rows", share, _alike(walks), lanes)


def _alike(walks: tuple[Walk, ...]) -> tuple[int, ...]:
    """Return `RowNest.alike`."""
    steps = [tuple(stride * walk.size_bytes for stride in (*walk.outer, walk.inner)) for walk in walks]
    return tuple(map(steps.index, steps))


def _n_kept(axis: _Axis, dense: _Axis) -> int:
    """Return how many operands lie along the dense axis but not along another."""
    return sum(d == 1 and s == 0 for s, d in zip(axis.strides, dense.strides, strict=True))


def _lie_across(operands: list[TaskOperand], axes: list[_Axis], dense: _Axis, across: _Axis) -> bool:
    """Return whether points can be read and written eight bytes at a time: none is one element spread over lanes."""
    for i, operand in enumerate(operands):
        if dense.strides[i] == 0:
            if any(axis.strides[i] for axis in axes):
                return False
        elif _row_alignment(operand, [a.strides[i] for a in axes if a is not dense]) % 8:
            return False
    return across.strides[-1] != 0


def _axes(task: Task, operands: list[TaskOperand], function: ScalarFunction) -> list[_Axis]:
    """Return the axes by falling output stride, those of one point dropped, neighbours that walk on evenly merged."""
    named = {int(op.attribute) for op in function.ops if op.opcode == "index"}
    axes = [
        _Axis(a, extent, tuple(o.strides[a] for o in operands), a in named)
        for a, extent in enumerate(task.extents)
        if extent != 1
    ]
    axes.sort(key=lambda axis: tuple(-stride for stride in reversed(axis.strides)))
    merged: list[_Axis] = []
    for axis in axes:
        last = merged[-1] if merged else None
        if last is None or last.is_named or axis.is_named or not _continues(last, axis):
            merged.append(axis)
        else:
            merged[-1] = replace(axis, extent=last.extent * axis.extent)
    return merged


def _continues(outer: _Axis, inner: _Axis) -> bool:
    return all(o == i * inner.extent for o, i in zip(outer.strides, inner.strides, strict=True))


def _inner(axes: list[_Axis], output: TaskOperand) -> _Axis | None:
    """Return the axis along which rows run: the output is dense along it, or has wide elements."""
    dense = [axis for axis in axes if axis.strides[-1] == 1]
    if dense:
        return max(dense, key=lambda axis: axis.extent)
    if size_bytes(output.dtype) < WORD_BYTES:
        return None
    return max(axes, key=lambda axis: (sum(stride <= 1 for stride in axis.strides), axis.extent))


def _follows(operand: TaskOperand, output: TaskOperand, strides: list[tuple[int, int]]) -> bool:
    """Return whether an operand's rows lie in words as the output's do; `strides` pairs their strides."""
    size = size_bytes(output.dtype)
    return (
        size_bytes(operand.dtype) == size
        and min(operand.align_bytes, output.align_bytes) >= WORD_BYTES
        and all((mine - its) * size % WORD_BYTES == 0 for mine, its in strides)
    )


def _row_alignment(operand: TaskOperand, strides: list[int]) -> int:
    size = size_bytes(operand.dtype)
    common = reduce(gcd, (stride * size for stride in strides), operand.align_bytes)
    return common & -common


def _split(
    axes: list[_Axis], inner: _Axis, operands: list[TaskOperand], effort: Effort, refused: frozenset[Split]
) -> tuple[Split, int, list[_Axis]] | None:
    """Return how workers share the work, so that the busiest has the least: along one axis, or all points.

    None where all there is is refused. Shares are multiples of what keeps two workers out of one word. One worker may
    have to do all of it.
    """
    output = operands[-1]
    has_whole_words = _has_whole_words(output, axes)
    n_rows = prod(axis.extent for axis in axes)
    columns = _share(inner.extent, ROW_UNIT) if has_whole_words else inner.extent
    back = 2 * len(operands) if axes else 0
    choices: list[tuple[float, int, Split, int, list[_Axis]]] = []
    choices.append(
        (n_rows * (columns * effort.per_point + effort.per_row + back), 0, "columns", columns, axes)
    )
    for axis in axes:
        unit = _rows_apart(axis, axes, inner, output)
        rows = axis.extent if unit is None else _share(axis.extent, unit)
        cost = n_rows // axis.extent * rows * (inner.extent * effort.per_point + effort.per_row)
        choices.append((cost, 1, "rows", rows, [axis, *(a for a in axes if a is not axis)]))
    if axes and has_whole_words and max(a.extent for a in (*axes, inner)) < MOST_FLAT:
        padded = (inner.extent + ROW_UNIT - 1) // ROW_UNIT * ROW_UNIT
        points = _share(n_rows * padded, ROW_UNIT)
        cost = points * effort.per_point + (points // padded + 2) * (effort.per_row + FLAT_ROW) + FLAT_START
        choices.append((cost, 2, "flat", points, axes))
    allowed = [choice for choice in choices if choice[2] not in refused]
    if not allowed:
        return None
    best = min(allowed, key=lambda choice: choice[:2])
    return best[2], best[3], best[4]


NOT_FLAT: frozenset[Split] = frozenset(("flat",))
FLAT_ROW, FLAT_START, MOST_FLAT = 5, 12, 1 << 16
"""What sharing all points takes more than sharing rows: slots per row, once; indices are words of 16 bits."""


def _has_whole_words(output: TaskOperand, axes: list[_Axis]) -> bool:
    """Return whether every row of the output begins with a word."""
    strides = [axis.strides[-1] for axis in axes]
    return size_bytes(output.dtype) >= WORD_BYTES or _row_alignment(output, strides) >= WORD_BYTES


def _share(extent: int, unit: int) -> int:
    return _rounded(-(-extent // N_WORKERS), unit)


def _rounded(extent: int, unit: int) -> int:
    return -(-extent // unit) * unit


def _rows_apart(axis: _Axis, axes: list[_Axis], inner: _Axis, output: TaskOperand) -> int | None:
    """Return what shares of an outer axis must be multiples of for workers to stay out of one word; None: nothing."""
    size = size_bytes(output.dtype)
    if size >= WORD_BYTES:
        return 1
    alignment = _row_alignment(output, [a.strides[-1] for a in axes])
    if alignment >= WORD_BYTES:
        return 1
    # What lies between two steps of the axis is one share's. Shares of `unit` steps begin on words if the first does.
    step = axis.strides[-1]
    others = [a for a in axes if a is not axis]
    within = sum((a.extent - 1) * a.strides[-1] for a in (*others, inner) if a.strides[-1] < step)
    around = [a.strides[-1] * size for a in others if a.strides[-1] >= step]
    if output.align_bytes % WORD_BYTES or within >= step or any(stride % WORD_BYTES for stride in around):
        return None
    return WORD_BYTES // gcd(step * size, WORD_BYTES)
