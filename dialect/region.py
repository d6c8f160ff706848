"""The region of an operator at the compute-shift level, read one to one: what arrives, the loop, what follows it.

```
moves*                      relayout, setup, cast: operands that do not lie as they are read
fill | allocate             the accumulators
scf.for | sub_task          position, shifts and one sub-task, at every time; without loops one sub-task
shift*, rest*               weights that rotated where they rest go home
reduce?                     partial results are combined
allocate, sub_task          the epilogue
yield
```

Reading checks that this is all there is, that every value is used for what it is, and that every tensor stands where
the operation that reads it needs it: what it returns can be executed without another look. Raises `Invalid`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from t10.core.expression import AffineDim, AxisSizes
from t10.core.geometry import final_positions
from t10.dialect.compute_shift import constant_index, placed_layout, rotating_layout
from t10.dialect.grid import Grid
from t10.dialect.layout import RotatingLayout
from t10.dialect.layout_attr import decode_grid
from t10.dialect.maps import read_map
from t10.dialect.mlir import ir
from t10.dialect.ods import Invalid
from t10.errors import UnsupportedOpError

MOVES = {"rtensor.relayout": "relayout", "rtensor.setup": "setup", "rtensor.cast": "in_place"}
MEMORY = ("rtensor.fill", "rtensor.allocate")
SUB_TASK = "rtensor.sub_task"


@dataclass(frozen=True, slots=True)
class Read:
    """A tensor that a sub-task reads: the operand of its root, and the value that it was before any shift."""

    value: Any
    origin: Any
    layout: RotatingLayout


@dataclass(frozen=True, slots=True)
class LoopShift:
    """A shift inside the loop: of input `operand` of the root (its output: the number of inputs), along `axis`."""

    operand: int
    axis: int


@dataclass(frozen=True, slots=True)
class ShiftHome:
    """A shift behind the loop that brings a weight, known by its origin, back to position 0 of `axis`."""

    origin: Any
    axis: int


@dataclass(frozen=True, slots=True)
class ComputeShiftRegion:
    """What an operator does; `moves` are the operations by which operands arrive, in order.

    `root` and `epilogue` are linalg operations, `reads` and `epilogue_reads` what they read besides accumulators
    (shapes that only give loops their extents left out). `rests` are the origins of weights that end at home.
    `reduced` is the layout after the reduction, None without one. `accumulator` and `result` own their memory, and are
    the same operation where nothing follows the accumulation.
    """

    grid: Grid
    moves: tuple[Any, ...]
    accumulator: Any
    root: Any
    reads: tuple[Read, ...]
    accumulated: RotatingLayout
    shifts: tuple[LoopShift, ...]
    home: tuple[ShiftHome, ...]
    rests: tuple[Any, ...]
    reduced: RotatingLayout | None
    epilogue: Any
    epilogue_reads: tuple[Read, ...]
    result: Any
    output: RotatingLayout


def is_expanded(op: Any) -> bool:
    """Return whether an operation is an operator at the compute-shift level."""
    if op.name != "rtensor.operator":
        return False
    return any(inner.operation.name == SUB_TASK or inner.operation.name == "scf.for"
               for inner in op.regions[0].blocks[0].operations)  # fmt: skip


def check_region(op: Any) -> None:
    """Raise `Invalid` with the first rule that an operator's region breaks."""
    read_region(op)


def read_region(op: Any) -> ComputeShiftRegion:
    """Return what an operator at the compute-shift level does; raises `Invalid`."""
    return _Reader(op).read()


@dataclass
class _Reader:
    """Reads the operations of a region in order."""

    op: Any
    pending: list[Any] = field(init=False)

    def __post_init__(self) -> None:
        block = self.op.regions[0].blocks[0]
        self.pending = [inner.operation for inner in block.operations]
        for inner in self.pending:
            # A tensor that rotated away in a loop is not used any more.
            if inner.results and not any(True for result in inner.results for _ in result.uses):
                raise Invalid(f"{inner.name} makes a value that nothing uses")
        # Constants are positions and bounds: they are read where they are used.
        self.pending = [inner for inner in self.pending if inner.name != "arith.constant"]

    def _next_is(self, *names: str) -> bool:
        return bool(self.pending) and self.pending[0].name in names

    def _take(self, *names: str) -> Any:
        if not self._next_is(*names):
            found = self.pending[0].name if self.pending else "the end of the region"
            raise Invalid(f"found {found}, expected {' or '.join(names)} here")
        return self.pending.pop(0)

    def read(self) -> ComputeShiftRegion:
        moves: list[Any] = []
        while self._next_is(*MOVES):
            moves.append(self._take(*MOVES))
        accumulator = self._take(*MEMORY)
        inputs: dict[Any, Any] = {}
        if self._next_is("scf.for"):
            loop = _read_loop(self._take("scf.for"), accumulator.results[0])
            task, shifts = loop.task, loop.shifts
            final, inputs = loop.final, loop.inputs
            reads, accumulated = task.reads, task.layout
        else:
            task = _read_task(self._take(SUB_TASK), accumulator.results[0], (), {})
            shifts, reads, accumulated, final = (), task.reads, task.layout, task.op.results[0]
            if accumulated.grid.loop_order:
                raise Invalid(f"computes one sub-task of {accumulated.grid.n_steps}: a loop is missing")
        grid = accumulated.grid
        home, rests = self._home(grid, inputs)
        value, layout, reduced = final, accumulated, None
        if self._next_is("rtensor.reduce"):
            reduce = self._take("rtensor.reduce")
            if reduce.operands[0] != value:
                raise Invalid("rtensor.reduce reads another value than the accumulators")
            value = reduce.results[0]
            layout = reduced = rotating_layout(value, "result of rtensor.reduce")
        if layout.partial:
            raise Invalid("partial results leave the operator: rtensor.reduce is missing")
        positions = final_positions(grid.plan((layout.ft,)))
        output = replace(layout, at=()).standing(positions)
        if reduced is not None and reduced != output:
            raise Invalid(f"rtensor.reduce leaves windows at {list(reduced.at)}, expected {list(output.at)}")
        epilogue, others, memory = None, (), accumulator
        if self._next_is(*MEMORY):
            memory = self._take("rtensor.allocate")
            end = _read_epilogue(self._take(SUB_TASK), memory.results[0], value, output, positions)
            epilogue, others, value = end.root, end.reads, end.op.results[0]
        last = self._take("rtensor.yield")
        if self.pending:
            raise Invalid(f"{self.pending[0].name} stands behind rtensor.yield")
        if list(last.operands) != [value]:
            raise Invalid("rtensor.yield hands out another value than the last sub-task or reduction made")
        _check_result(self.op, value, output)
        return ComputeShiftRegion(
            grid=grid, moves=tuple(moves), accumulator=accumulator, root=task.root, reads=reads,
            accumulated=accumulated, shifts=shifts, home=home, rests=rests, reduced=reduced, epilogue=epilogue,
            epilogue_reads=others, result=memory, output=output,
        )  # fmt: skip

    def _home(self, grid: Grid, inputs: dict[Any, Any]) -> tuple[tuple[ShiftHome, ...], tuple[Any, ...]]:
        """Read the shifts home and the ends of rotations; `inputs` are origins by what the loop hands on."""
        final = final_positions(grid.plan(()))
        standing = {value: {a: p for a, p in enumerate(final) if p} for value in inputs}
        origin = dict(inputs)
        home: list[ShiftHome] = []
        rests: list[Any] = []
        while self._next_is("rtensor.shift"):
            op = self._take("rtensor.shift")
            source, axis = op.operands[0], op.attributes["axis"].value
            if source not in standing or constant_index(op.operands[1]) != 0:
                raise Invalid(
                    "rtensor.shift behind the loop moves a tensor that did not rotate in it, or not home"
                )
            if standing[source].pop(axis, 0) == 0:
                raise Invalid(f"rtensor.shift along axis {axis} moves a tensor that is home")
            home.append(ShiftHome(origin[source], axis))
            standing[op.results[0]], origin[op.results[0]] = standing.pop(source), origin.pop(source)
        while self._next_is("rtensor.rest"):
            value = self._take("rtensor.rest").operands[0]
            if value not in origin:
                raise Invalid("rtensor.rest ends the rotation of a tensor that did not rotate in the loop")
            layout = rotating_layout(value, "operand of rtensor.rest")
            away = [axis for axis in standing[value] if layout.ft[axis] > 1]
            if away:
                raise Invalid(f"rtensor.rest of a weight that is not home along axes {away}")
            rests.append(origin.pop(value))
        if any(each.origin not in rests for each in home):
            raise Invalid("a tensor goes home that does not rest there: rtensor.rest is missing")
        return tuple(home), tuple(rests)


@dataclass(frozen=True, slots=True)
class _Task:
    """A sub-task: its operation, root, what the root reads besides the accumulator, and the accumulator's layout."""

    op: Any
    root: Any
    reads: tuple[Read, ...]
    layout: RotatingLayout


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop: its sub-task, the shifts before it, the accumulators it ends with, origins by what it hands on."""

    task: _Task
    shifts: tuple[LoopShift, ...]
    final: Any
    inputs: dict[Any, Any]


def _read_loop(op: Any, accumulator: Any) -> _Loop:
    """Read the loop over the sub-tasks; `accumulator` is what it starts from."""
    block = op.regions[0].blocks[0]
    inside = [inner.operation for inner in block.operations if inner.operation.name != "arith.constant"]
    carried, initial = list(block.arguments)[1:], list(op.operands)[3:]
    if len(set(initial)) != len(initial) or accumulator not in initial:
        raise Invalid("the loop carries a tensor twice, or not the accumulators")
    position, *others = inside
    if position.name != "rtensor.position":
        raise Invalid(f"the loop begins with {position.name}, expected rtensor.position")
    grid = decode_grid(position.attributes["grid"])
    positions = list(position.results)
    current = dict(zip(carried, zip(carried, [()] * len(carried), strict=True), strict=True))
    holder = {value: value for value in carried}
    while others and others[0].name == "rtensor.shift":
        shift = others.pop(0)
        source, axis = shift.operands[0], shift.attributes["axis"].value
        argument = holder.pop(source, None)
        if argument is None:
            raise Invalid("rtensor.shift in the loop moves a tensor that the loop does not carry")
        if axis not in grid.loop_order or shift.operands[1] != positions[grid.loop_order.index(axis)]:
            raise Invalid(f"rtensor.shift along axis {axis} does not move to the loop's position along it")
        axes: tuple[int, ...] = current[argument][1]
        if axes and grid.loop_order.index(axes[-1]) >= grid.loop_order.index(axis):
            raise Invalid(f"rtensor.shift along axis {axis} stands twice, or not in the order of the loops")
        current[argument] = (shift.results[0], (*axes, axis))
        holder[shift.results[0]] = argument
    if [inner.name for inner in others] != [SUB_TASK, "scf.yield"]:
        found = ", ".join(inner.name for inner in others)
        raise Invalid(f"the loop goes on with {found}, expected rtensor.sub_task and scf.yield")
    task_op, end = others
    start = dict(zip(carried, initial, strict=True))
    target = next(argument for argument in carried if start[argument] == accumulator)
    for value, axes in current.values():
        layout = rotating_layout(value, "tensor that the loop carries")
        if layout.grid != grid:
            raise Invalid("the loop carries a tensor of another grid")
        if set(axes) != {axis for axis, t in enumerate(layout.ft) if t > 1}:
            raise Invalid(
                f"the loop shifts a tensor along axes {list(axes)}, which does not bring it to the positions of the box"
            )
    origins = {value: start[argument] for argument, (value, _) in current.items()}
    task = _read_task(task_op, current[target][0], tuple(positions), origins)
    handed = [task_op.results[0] if argument == target else current[argument][0] for argument in carried]
    if list(end.operands) != handed:
        raise Invalid(
            "scf.yield does not hand on every tensor after its shifts, and the accumulators after the sub-task"
        )
    slots = {read.value: slot for slot, read in enumerate(task.reads)}
    if len(slots) != len(task.reads):
        raise Invalid("the root reads a tensor that rotates twice")
    shifts: list[LoopShift] = []
    for argument in carried:
        value, axes = current[argument]
        if argument != target and value not in slots:
            raise Invalid("the loop carries a tensor that the root does not read")
        slot = len(task.reads) if argument == target else slots[value]
        shifts.extend(LoopShift(slot, axis) for axis in axes)
    finals = dict(zip(carried, op.results, strict=True))
    return _Loop(
        task,
        tuple(shifts),
        finals[target],
        {finals[argument]: start[argument] for argument in carried if argument != target},
    )


def _read_task(op: Any, accumulator: Any, positions: tuple[Any, ...], origins: dict[Any, Any]) -> _Task:
    """Read a sub-task that accumulates into `accumulator` at `positions`; `origins` of what the loop carries."""
    if op.operands[0] != accumulator or list(op.operands)[1:] != list(positions):
        raise Invalid("rtensor.sub_task accumulates elsewhere than at the loop's accumulators and positions")
    root = _root_of(op, accumulator)
    layout = rotating_layout(accumulator, "accumulator")
    if layout.scatter != 1 or layout.at:
        raise Invalid("accumulators are scattered or stand away from home before the loop")
    grid = layout.grid
    maps = _maps(root)
    n_loops = len(list(root.attributes["iterator_types"]))
    if n_loops != len(grid.f_op):
        raise Invalid(f"the root has {n_loops} loops, expected the {len(grid.f_op)} axes of the grid")
    if layout.dims != maps[-1]:
        raise Invalid("the root writes along other axes than the layout of the accumulators says")
    reads: list[Read] = []
    for value, dims in _inputs(root, maps):
        here = rotating_layout(value, "operand of the root")
        if here.grid != grid or here.dims != dims:
            raise Invalid(
                "the root reads a tensor along other axes than its layout says, or from another grid"
            )
        if here.scatter != 1 or here.partial or here.at:
            raise Invalid("the root reads a tensor that is scattered, partial or away from home")
        if here.rotates and value not in origins:
            raise Invalid(
                "the root reads a tensor that rotates, but does not stand at the positions of the box"
            )
        reads.append(Read(value, origins.get(value, value), here))
    return _Task(op, root, tuple(reads), layout)


def _read_epilogue(
    op: Any, memory: Any, accumulated: Any, output: RotatingLayout, positions: AxisSizes
) -> _Task:
    """Read the sub-task that makes the result of what is accumulated."""
    if list(op.operands) != [memory]:
        raise Invalid("the epilogue writes elsewhere than into the memory allocated for it")
    root = _root_of(op, memory)
    layout = rotating_layout(memory, "result")
    if layout != output:
        raise Invalid("the epilogue leaves its result in another layout than the accumulators have")
    maps = _maps(root)
    if any(len(loop.terms) != len(dim.terms) for loop, dim in zip(maps[-1], output.dims, strict=True)):
        raise Invalid("the epilogue writes along other axes than the layout of its result says")
    axis_by_loop = {loop.axes[0]: dim for loop, dim in zip(maps[-1], output.dims, strict=True) if loop.terms}
    reads: list[Read] = []
    found = False
    for value, dims in _inputs(root, maps):
        through = tuple(_substituted(dim, axis_by_loop) for dim in dims)
        if value == accumulated:
            if through != output.dims:
                raise Invalid("the epilogue reads the accumulators along other axes than it writes")
            found = True
            continue
        here = rotating_layout(value, "operand of the epilogue")
        if here.grid != output.grid or here.dims != through:
            raise Invalid("the epilogue reads a tensor along other axes than its layout says")
        expected = tuple(t if axis in here.axes else 1 for axis, t in enumerate(output.ft))
        if here.scatter != 1 or here.partial or here.ft != expected:
            raise Invalid("the epilogue reads a tensor whose windows are not those of its result")
        if here != replace(here, at=()).standing(positions):
            raise Invalid("the epilogue reads a tensor that does not stand where its result does")
        reads.append(Read(value, value, here))
    if not found:
        raise Invalid("the epilogue does not read the accumulators")
    return _Task(op, root, tuple(reads), layout)


def _root_of(op: Any, accumulator: Any) -> Any:
    """Return the linalg operation of a sub-task, which writes to `accumulator`."""
    inside = [inner.operation for inner in op.regions[0].blocks[0].operations]
    inside = [inner for inner in inside if inner.name not in ("tensor.empty", "arith.constant")]
    if len(inside) != 2 or inside[0].name != "linalg.generic" or inside[1].name != "rtensor.yield":
        found = ", ".join(inner.name for inner in inside)
        raise Invalid(f"rtensor.sub_task holds {found}, expected one linalg.generic and rtensor.yield")
    root, end = inside
    if len(root.results) != 1 or list(end.operands) != list(root.results):
        raise Invalid("rtensor.sub_task yields another value than its root makes")
    if list(root.operands)[-1] != accumulator:
        raise Invalid("the root writes elsewhere than into the accumulator of its sub-task")
    return root


def _maps(root: Any) -> list[tuple[AffineDim, ...]]:
    try:
        return [read_map(attr.value) for attr in root.attributes["indexing_maps"]]
    except UnsupportedOpError as problem:
        raise Invalid(problem.message) from None


def _inputs(root: Any, maps: list[tuple[AffineDim, ...]]) -> Iterator[tuple[Any, tuple[AffineDim, ...]]]:
    """Yield the tensors that a root reads, with their index; shapes that only give loops their extent are left out."""
    arguments = list(root.regions[0].blocks[0].arguments)
    for value, dims, argument in zip(list(root.operands)[:-1], maps[:-1], arguments[:-1], strict=True):
        is_read = any(True for _ in argument.uses)
        owner = value.owner
        is_shape = not isinstance(owner, ir.Block) and owner.operation.name == "tensor.empty"
        if is_read == is_shape:
            raise Invalid("the root reads an empty tensor, or has an operand that it does not read")
        if is_read:
            yield value, dims


def _substituted(dim: AffineDim, axis_by_loop: dict[int, AffineDim]) -> AffineDim:
    """Return an index over the loops of an epilogue as one over the axes of the grid."""
    terms = [(term, axis_by_loop.get(term.axis)) for term in dim.terms]
    if any(form is None for _, form in terms):
        raise Invalid("the epilogue reads along a loop that is no axis of its result")
    made = [replace(term, axis=form.axes[0]) for term, form in terms if form is not None]
    return AffineDim(tuple(sorted(made, key=lambda term: term.axis)), dim.offset)


def _check_result(op: Any, value: Any, output: RotatingLayout) -> None:
    """Check that the operator's result is what is yielded, seen where its windows stand."""
    result = op.results[0]
    layout = placed_layout(result, "result")
    if layout != output:
        raise Invalid(
            f"result has layout {result.type}, expected that of {value.type} where its windows stand"
        )
    if result.type.element_type != value.type.element_type or list(result.type.shape) != list(
        value.type.shape
    ):
        raise Invalid(f"results in {result.type}, expected {value.type}")
