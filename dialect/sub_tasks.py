"""The loop of an operator at the compute-shift level and its sub-tasks, read one to one. Raises `Invalid`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from t10.core.expression import AffineDim, AxisSizes
from t10.dialect.compute_shift import rotating_layout
from t10.dialect.layout import RotatingLayout
from t10.dialect.layout_attr import decode_grid
from t10.dialect.maps import read_map
from t10.dialect.mlir import ir
from t10.dialect.ods import Invalid
from t10.errors import UnsupportedOpError

SUB_TASK = "rtensor.sub_task"


@dataclass(frozen=True, slots=True)
class RootOperand:
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
class ReadSubTask:
    """A sub-task: its operation, root, what the root reads besides the accumulator, and the accumulator's layout.

    An epilogue that copies has the root None.
    """

    op: Any
    root: Any
    reads: tuple[RootOperand, ...]
    layout: RotatingLayout


@dataclass(frozen=True, slots=True)
class ReadLoop:
    """A loop: its sub-task, the shifts before it, the accumulators it ends with, origins by what it hands on."""

    task: ReadSubTask
    shifts: tuple[LoopShift, ...]
    final: Any
    inputs: dict[Any, Any]


def read_loop(op: Any, accumulator: Any) -> ReadLoop:
    """Read the loop over the sub-tasks; `accumulator` is what it starts from."""
    block = op.regions[0].blocks[0]
    inside = [inner.operation for inner in block.operations if inner.operation.name != "arith.constant"]
    carried, initial = list(block.arguments)[1:], list(op.operands)[3:]
    if len(set(initial)) != len(initial) or accumulator not in initial:
        raise Invalid("the loop carries a tensor twice, or not the accumulators")
    position, *others = inside
    if position.name != "rtensor.position":
        raise Invalid(f"the loop begins with {position.name}, expected rtensor.position")
    n_shifts = next((i for i, inner in enumerate(others) if inner.name != "rtensor.shift"), len(others))
    current = _shifted(others[:n_shifts], carried, position)
    if [inner.name for inner in others[n_shifts:]] != [SUB_TASK, "scf.yield"]:
        found = ", ".join(inner.name for inner in others[n_shifts:])
        raise Invalid(f"the loop goes on with {found}, expected rtensor.sub_task and scf.yield")
    task_op, end = others[n_shifts:]
    start = dict(zip(carried, initial, strict=True))
    target = next(argument for argument in carried if start[argument] == accumulator)
    origins = {value: start[argument] for argument, (value, _) in current.items()}
    task = read_task(task_op, current[target][0], tuple(position.results), origins)
    handed = [task_op.results[0] if argument == target else current[argument][0] for argument in carried]
    if list(end.operands) != handed:
        raise Invalid(
            "scf.yield does not hand on every tensor after its shifts, and the accumulators after the sub-task"
        )
    finals = dict(zip(carried, op.results, strict=True))
    return ReadLoop(
        task,
        _loop_shifts(task, current, target),
        finals[target],
        {finals[argument]: start[argument] for argument in carried if argument != target},
    )


def _shifted(shifts: list[Any], carried: list[Any], position: Any) -> dict[Any, tuple[Any, AxisSizes]]:
    """Return, by what the loop carries, its value after the shifts and the axes along which it has moved."""
    grid, positions = decode_grid(position.attributes["grid"]), list(position.results)
    current: dict[Any, tuple[Any, AxisSizes]] = {argument: (argument, ()) for argument in carried}
    holder = {argument: argument for argument in carried}
    for shift in shifts:
        axis = shift.attributes["axis"].value
        argument = holder.pop(shift.operands[0], None)
        if argument is None:
            raise Invalid("rtensor.shift in the loop moves a tensor that the loop does not carry")
        if axis not in grid.loop_order or shift.operands[1] != positions[grid.loop_order.index(axis)]:
            raise Invalid(f"rtensor.shift along axis {axis} does not move to the loop's position along it")
        axes = current[argument][1]
        if axes and grid.loop_order.index(axes[-1]) >= grid.loop_order.index(axis):
            raise Invalid(f"rtensor.shift along axis {axis} stands twice, or not in the order of the loops")
        current[argument] = (shift.results[0], (*axes, axis))
        holder[shift.results[0]] = argument
    for value, axes in current.values():
        layout = rotating_layout(value, "tensor that the loop carries")
        if layout.grid != grid:
            raise Invalid("the loop carries a tensor of another grid")
        if set(axes) != {axis for axis, t in enumerate(layout.ft) if t > 1}:
            raise Invalid(
                f"the loop shifts a tensor along axes {list(axes)}, which does not bring it to the positions of the box"
            )
    return current


def _loop_shifts(
    task: ReadSubTask, current: dict[Any, tuple[Any, AxisSizes]], target: Any
) -> tuple[LoopShift, ...]:
    """Return the shifts of a loop by the operands of its root; `target` carries the accumulators."""
    slots = {read.value: slot for slot, read in enumerate(task.reads)}
    if len(slots) != len(task.reads) and any(read.layout.rotates for read in task.reads):
        raise Invalid("the root reads a tensor that rotates twice")
    shifts: list[LoopShift] = []
    for argument, (value, axes) in current.items():
        if argument != target and value not in slots:
            raise Invalid("the loop carries a tensor that the root does not read")
        slot = len(task.reads) if argument == target else slots[value]
        shifts.extend(LoopShift(slot, axis) for axis in axes)
    return tuple(shifts)


def read_task(op: Any, accumulator: Any, positions: tuple[Any, ...], origins: dict[Any, Any]) -> ReadSubTask:
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
    reads: list[RootOperand] = []
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
        reads.append(RootOperand(value, origins.get(value, value), here))
    return ReadSubTask(op, root, tuple(reads), layout)


def read_epilogue(
    op: Any, memory: Any, accumulated: Any, output: RotatingLayout, positions: AxisSizes
) -> ReadSubTask:
    """Read the sub-task that makes the result of what is accumulated.

    One that hands out the accumulators as they are copies them: canonicalization leaves no root of a copy.
    """
    if list(op.operands) != [memory]:
        raise Invalid("the epilogue writes elsewhere than into the memory allocated for it")
    layout = rotating_layout(memory, "result")
    if layout != output:
        raise Invalid("the epilogue leaves its result in another layout than the accumulators have")
    if _copies(op, accumulated):
        return ReadSubTask(op, None, (), layout)
    root = _root_of(op, memory)
    maps = _maps(root)
    if any(len(loop.terms) != len(dim.terms) for loop, dim in zip(maps[-1], output.dims, strict=True)):
        raise Invalid("the epilogue writes along other axes than the layout of its result says")
    axis_by_loop = {loop.axes[0]: dim for loop, dim in zip(maps[-1], output.dims, strict=True) if loop.terms}
    reads: list[RootOperand] = []
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
        reads.append(RootOperand(value, value, here))
    if not found:
        raise Invalid("the epilogue does not read the accumulators")
    return ReadSubTask(op, root, tuple(reads), layout)


def _copies(op: Any, accumulated: Any) -> bool:
    """Return whether an epilogue hands out the accumulators as they are."""
    first = op.regions[0].blocks[0].operations[0].operation
    if first.name != "rtensor.yield" or list(first.operands) != [accumulated]:
        return False
    if accumulated.type != op.results[0].type:
        raise Invalid(
            f"the epilogue copies {accumulated.type} to {op.results[0].type}, expected the same type"
        )
    return True


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
    for inner in root.regions[0].blocks[0].operations:
        if inner.operation.results and not any(True for value in inner.operation.results for _ in value.uses):
            raise Invalid(f"the root computes {inner.operation.name}, which nothing uses")
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
