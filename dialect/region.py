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

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from t10.core.plan import final_positions
from t10.core.schedule import ArrivalKind
from t10.dialect.compute_shift import constant_index, placed_layout, rotating_layout
from t10.dialect.grid import Grid
from t10.dialect.layout import RotatingLayout
from t10.dialect.ods import Invalid
from t10.dialect.sub_tasks import (
    SUB_TASK,
    LoopShift,
    ReadLoop,
    RootOperand,
    read_epilogue,
    read_loop,
    read_task,
)

MOVES: Mapping[str, ArrivalKind] = {
    "rtensor.relayout": "relayout",
    "rtensor.setup": "setup",
    "rtensor.cast": "in_place",
}
MEMORY = ("rtensor.fill", "rtensor.allocate")


@dataclass(frozen=True, slots=True)
class ShiftHome:
    """A shift behind the loop that brings a weight, known by its origin, back to position 0 of `axis`."""

    origin: Any
    axis: int


@dataclass(frozen=True, slots=True)
class ComputeShiftRegion:
    """What an operator does; `moves` are the operations by which operands arrive, in order.

    `root` and `epilogue` are linalg operations, `reads` and `epilogue_reads` what they read besides accumulators
    (shapes that only give loops their extents left out); an epilogue that copies is None, as none is. `rests` are the
    origins of weights that end at home. `reduced` is the layout after the reduction, None without one. `accumulator`
    and `result` own their memory, and are the same operation where nothing follows the accumulation.
    """

    grid: Grid
    moves: tuple[Any, ...]
    accumulator: Any
    root: Any
    reads: tuple[RootOperand, ...]
    accumulated: RotatingLayout
    shifts: tuple[LoopShift, ...]
    home: tuple[ShiftHome, ...]
    rests: tuple[Any, ...]
    reduced: RotatingLayout | None
    epilogue: Any
    epilogue_reads: tuple[RootOperand, ...]
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
        """Return what the region says; raises `Invalid` with the first rule that it breaks."""
        moves: list[Any] = []
        while self._next_is(*MOVES):
            moves.append(self._take(*MOVES))
        accumulator = self._take(*MEMORY)
        loop = self._loop(accumulator.results[0])
        accumulated = loop.task.layout
        home, rests = self._home(accumulated.grid, loop.inputs)
        value, reduced = self._reduction(loop.final)
        layout = reduced or accumulated
        if layout.partial:
            raise Invalid("partial results leave the operator: rtensor.reduce is missing")
        positions = final_positions(layout.grid.plan((layout.ft,)))
        output = replace(layout, at=()).standing(positions)
        if reduced is not None and reduced != output:
            raise Invalid(f"rtensor.reduce leaves windows at {list(reduced.at)}, expected {list(output.at)}")
        memory, end = accumulator, None
        if self._next_is(*MEMORY):
            memory = self._take("rtensor.allocate")
            end = read_epilogue(self._take(SUB_TASK), memory.results[0], value, output, positions)
            value = end.op.results[0]
        elif reduced is not None:
            raise Invalid("what is reduced stays where it was accumulated: rtensor.allocate is missing")
        self._end(value, output)
        return ComputeShiftRegion(
            grid=accumulated.grid,
            moves=tuple(moves),
            accumulator=accumulator,
            root=loop.task.root,
            reads=loop.task.reads,
            accumulated=accumulated,
            shifts=loop.shifts,
            home=home,
            rests=rests,
            reduced=reduced,
            epilogue=None if end is None else end.root,
            epilogue_reads=() if end is None else end.reads,
            result=memory,
            output=output,
        )

    def _loop(self, accumulator: Any) -> ReadLoop:
        """Read the loop over the sub-tasks, or the only sub-task where the grid has no loops."""
        if self._next_is("scf.for"):
            return read_loop(self._take("scf.for"), accumulator)
        task = read_task(self._take(SUB_TASK), accumulator, (), {})
        if task.layout.grid.loop_order:
            raise Invalid(f"computes one sub-task of {task.layout.grid.n_steps}: a loop is missing")
        return ReadLoop(task, (), task.op.results[0], {})

    def _reduction(self, accumulated: Any) -> tuple[Any, RotatingLayout | None]:
        """Return the accumulators after the reduction, and their layout; None where nothing is reduced."""
        if not self._next_is("rtensor.reduce"):
            return accumulated, None
        reduce = self._take("rtensor.reduce")
        if reduce.operands[0] != accumulated:
            raise Invalid("rtensor.reduce reads another value than the accumulators")
        return reduce.results[0], rotating_layout(reduce.results[0], "result of rtensor.reduce")

    def _end(self, value: Any, output: RotatingLayout) -> None:
        """Read the end of the region, which hands out `value`."""
        last = self._take("rtensor.yield")
        if list(last.operands) != [value]:
            raise Invalid("rtensor.yield hands out another value than the last sub-task or reduction made")
        _check_result(self.op, value, output)

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
