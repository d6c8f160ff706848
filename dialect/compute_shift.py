"""The operations of the compute-shift level: what every core does inside an `rtensor.operator`, in lock step.

Each has an equation over cores: `x[s][e]` is element `e` of tensor `x` on core `s`. What follows from types and grids
is not stored: windows, boxes, ring neighbours, who sends what in a relayout, cycles.
"""

# The docstrings below are part of the reference page: tools/gen_docs.py writes it.

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from t10.core.expression import Combine
from t10.dialect.layout import COMBINES, Layout, LinearLayout, RotatingLayout, check_rings
from t10.dialect.layout_attr import GridAttr, decode_grid, layout_of, read_place
from t10.dialect.mlir import ir
from t10.dialect.ods import Index, IntegerAttr, Invalid, Operand, Pure, Region, Result, StringAttr, verifier
from t10.dialect.rtensor_base import RTensor

PLACE = "rtensor.place"
"""Attribute of an operation that owns memory: where its result lies in every core (`#rtensor.place`)."""


class ResidentOp(RTensor.Operation, name="resident"):
    """Says where a value from outside rests on the cores: the host writes it there before the program runs.

    ```mlir
    func.func @f(%w: tensor<8x8xf16>) {
      %r = "rtensor.resident"(%w) {rtensor.place = #rtensor.place<{address = 20480, bytes = 16}>}
        : (tensor<8x8xf16>) -> tensor<8x8xf16, #rtensor.linear<{cores = 16}>>
      return
    }
    ```

    The source is an argument of the function, a constant, or a reshaped view of one of them.

    ```text
    result[s][e] = source[e]
    ```
    """

    out: Result[Any]
    source: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        """Check that the source lies on no core yet, and the result does."""
        source, _ = _moved(self)
        if layout_of(source.type) is not None:
            raise Invalid(f"places {source.type}, expected a value without layout: it lies somewhere already")
        _check_place(self)


class RelayoutOp(RTensor.Operation, name="relayout"):
    """Copies a value to the layout its consumer needs: an exchange of arbitrary pattern between cores.

    ```mlir
    func.func @f(%x: tensor<8x8xf16, #rtensor.linear<{cores = 16}>>) {
      %y = "rtensor.relayout"(%x)
        : (tensor<8x8xf16, #rtensor.linear<{cores = 16}>>) -> tensor<8x8xf16, #rtensor.linear<{cores = 4}>>
      return
    }
    ```

    A source without layout is a view (reshape, slice, concat ...) of placed values: it is read through. The cores of
    the source hold one or several copies of it, and each core reads one: the copy of which it holds a part, else copy
    s mod n. Padding of the result is filled in. Where the result is read by an epilogue behind a reduce-scatter and is
    as large as what that makes, each core takes the elements that belong to its chunk; its other slots hold nothing.

    ```text
    result[s][e] = source[s'][e], s' = the lowest core that holds e in the copy that s reads
    ```
    """

    out: Result[Any]
    source: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        """Check that only the layout changes."""
        _moved(self)
        _check_place(self)


class SetupOp(RTensor.Operation, name="setup"):
    """Copies a weight from where it rests to where its operator reads it; otherwise as `rtensor.relayout`.

    ```mlir
    func.func @f(%w: tensor<8x8xf16, #rtensor.linear<{cores = 16}>>) {
      %a = "rtensor.setup"(%w)
        : (tensor<8x8xf16, #rtensor.linear<{cores = 16}>>) -> tensor<8x8xf16, #rtensor.linear<{cores = 4}>>
      return
    }
    ```
    """

    out: Result[Any]
    source: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        """Check that only the layout changes."""
        _moved(self)
        _check_place(self)


class CastOp(RTensor.Operation, name="cast"):
    """The same bytes of every core seen under another layout: moves nothing.

    ```mlir
    func.func @f(%x: tensor<8x8xf16, #rtensor.linear<{cores = 4}>>) {
      %y = "rtensor.cast"(%x)
        : (tensor<8x8xf16, #rtensor.linear<{cores = 4}>>) -> tensor<8x8xf16, #rtensor.linear<{cores = 4}>>
      return
    }
    ```

    Both layouts must name the same element in every slot, which `--t10-verify-plan` proves; a source without layout is
    a reshape of a placed value. It is how an operator reads a value on its own grid that lies on another one.

    ```text
    result[s][slot] = source[s][slot]
    ```
    """

    out: Result[Any]
    source: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        """Check that only the layout changes."""
        _moved(self)


class AllocateOp(RTensor.Operation, name="allocate"):
    """Memory for a tensor on every core that holds part of it: for results, or where a root writes all it computes.

    ```mlir
    func.func @f() {
      %z = "rtensor.allocate"() {rtensor.place = #rtensor.place<{address = 20480, bytes = 32}>}
        : () -> tensor<8x8xf16, #rtensor.linear<{cores = 4}>>
      return
    }
    ```
    """

    out: Result[Any]

    @verifier
    def verify_invariants(self) -> None:
        """Check that the result lies on cores."""
        placed_layout(self.operation.results[0], "result")
        _check_place(self)


class FillOp(RTensor.Operation, name="fill"):
    """Memory for accumulators that hold the neutral element of a combination (sum, prod, max, min, and, or).

    ```mlir
    func.func @f() {
      %z = "rtensor.fill"() {combine = "sum"} : () -> tensor<8x8xf32, #rtensor.linear<{cores = 4}>>
      return
    }
    ```

    ```text
    result[s][e] = neutral element of `combine`
    ```
    """

    out: Result[Any]
    combine: StringAttr

    @verifier
    def verify_invariants(self) -> None:
        """Check the combination and that the result lies on cores."""
        if self.combine.value not in COMBINES:
            raise Invalid(f'combine is "{self.combine.value}", expected one of {", ".join(COMBINES)}')
        placed_layout(self.operation.results[0], "result")
        _check_place(self)


class PositionOp(RTensor.Operation, name="position", traits=[Pure]):
    """The loop positions at a time: one result per loop of the grid, outermost first.

    ```mlir
    #grid = #rtensor.grid<{f_op = [2, 1], lengths = [4, 4], steps = [1, 2], loop_order = [1], core_order = [0],
      phases = [[], [[2, 1, 2, 0]]]}>
    func.func @f() {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      scf.for %t = %c0 to %c2 step %c1 {
        %p = "rtensor.position"(%t) {grid = #grid} : (index) -> index
      }

      func.return
    }
    ```

    The loop around it runs once over all positions of the grid. Inner loops go to and fro, so that from one time to the
    next one position changes, by one (the reflected mixed-radix code):

    ```text
    digits = the digits of time, one per loop, radix steps[a]; o_a = the number that the digits outside digit a make
    result_a = digit_a if o_a is even, else steps[a] - 1 - digit_a
    ```
    """

    positions: Sequence[Result[Index]]
    time: Operand[Index]
    grid: GridAttr

    @verifier
    def verify_invariants(self) -> None:
        """Check that the loop around it runs once over all positions."""
        op, grid = self.operation, decode_grid(self.grid)
        loop = op.parent
        if loop is None or loop.name != "scf.for":
            raise Invalid("stands outside a loop, expected an scf.for around it")
        if op.operands[0] != loop.regions[0].blocks[0].arguments[0]:
            raise Invalid("reads another number than the time of the loop around it")
        bounds = [constant_index(value) for value in list(loop.operands)[:3]]
        if bounds != [0, grid.n_steps, 1]:
            raise Invalid(
                f"the loop runs from, to, by {bounds}, expected [0, {grid.n_steps}, 1]: all positions once"
            )
        if len(op.results) != len(grid.loop_order):
            raise Invalid(
                f"has {len(op.results)} results, expected one per loop, here {len(grid.loop_order)}"
            )


class ShiftOp(RTensor.Operation, name="shift", traits=[Pure]):
    """Moves every window of a tensor to a position along an axis of its grid, in place.

    ```mlir
    #grid = #rtensor.grid<{f_op = [2, 1], lengths = [4, 4], steps = [1, 2], loop_order = [1], core_order = [0],
      phases = [[], [[2, 1, 2, 0]]]}>
    #a = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (k)>, fs = [1], ft = [2], rp = [2]}>
    func.func @f(%x: tensor<4xf16, #a>) {
      %c0 = arith.constant 0 : index
      %y = "rtensor.shift"(%x, %c0) {axis = 1} : (tensor<4xf16, #a>, index) -> tensor<4xf16, #a>
      return
    }
    ```

    The tensor as a whole keeps its value. The position is one of the loop's (`rtensor.position`), or 0: home; it is at
    most one step away from the one before, on the circle of positions. The windows of the cores that share a sub-tensor
    form rings, each of which tiles it: what a core lacks after the move lies on the core before or behind it in the
    ring.

    ```text
    core s holds [phase_a(s) + position * rp, + lengths[a] / ft) mod lengths[a] of its part of axis a
    ```
    """

    out: Result[Any]
    source: Operand[Any]
    position: Operand[Index]
    axis: IntegerAttr

    @verifier
    def verify_invariants(self) -> None:
        """Check that the tensor rotates along the axis in rings, and that the position is one of that axis."""
        source, position = self.operation.operands
        layout = rotating_layout(source, "operand")
        if source.type != self.operation.results[0].type:
            raise Invalid(
                f"changes {source.type} to {self.operation.results[0].type}, expected the same type"
            )
        axis = self.axis.value
        if not 0 <= axis < len(layout.ft) or layout.ft[axis] == 1:
            rotating = [a for a, t in enumerate(layout.ft) if t > 1]
            raise Invalid(f"axis = {axis}, but the tensor rotates along {rotating}")
        check_rings(layout)
        if constant_index(position) != 0 and position_axis(position, layout) != axis:
            raise Invalid(f"moves to a number that is neither the loop's position along axis {axis} nor 0")


class SubTaskOp(RTensor.Operation, name="sub_task", traits=[Pure]):
    """Every core computes the region's root on its box of points, from elements it holds, into its accumulators.

    ```mlir
    #grid = #rtensor.grid<{f_op = [2], lengths = [4], steps = [1], loop_order = [], core_order = [0], phases = [[]]}>
    #x = #rtensor.layout<#grid, {map = affine_map<(m) -> (m)>, fs = [2], ft = [1], rp = [0]}>
    func.func @f(%x: tensor<8xf16, #x>) {
      %z = "rtensor.allocate"() : () -> tensor<8xf16, #x>
      %y = "rtensor.sub_task"(%z) ({
        %r = linalg.exp ins(%x : tensor<8xf16, #x>) outs(%z : tensor<8xf16, #x>) -> tensor<8xf16, #x>
        "rtensor.yield"(%r) : (tensor<8xf16, #x>) -> ()
      }) : (tensor<8xf16, #x>) -> tensor<8xf16, #x>
      return
    }
    ```

    The root is one linalg operation whose loops are the axes of the grid. With positions it computes the box at them;
    without any, on a grid without loops, the whole part of every axis; so does an epilogue, whose loops are the axes of
    its result. Every tensor that it reads and that rotates stands at the positions of the box.

    ```text
    result[s] = accumulator[s], combined with the root over prod_a [phase_a(s) + p_a * pace_a, + pace_a) mod lengths[a]
    ```
    """

    out: Result[Any]
    accumulator: Operand[Any]
    positions: Sequence[Operand[Index]]
    body: Region

    @verifier
    def verify_invariants(self) -> None:
        """Check the accumulator and the positions."""
        accumulator, *positions = self.operation.operands
        layout = rotating_layout(accumulator, "accumulator")
        if accumulator.type != self.operation.results[0].type:
            raise Invalid(
                f"makes {self.operation.results[0].type} of {accumulator.type}, expected the same type"
            )
        if positions and [position_axis(p, layout) for p in positions] != list(layout.grid.loop_order):
            raise Invalid(f"expected the positions along axes {list(layout.grid.loop_order)} in this order")


class ReduceOp(RTensor.Operation, name="reduce", traits=[Pure]):
    """Combines the partial results that cores hold of one element, in place.

    ```mlir
    #grid = #rtensor.grid<{f_op = [2, 4], lengths = [4, 4], steps = [1, 1], loop_order = [], core_order = [0, 1],
      phases = [[], []]}>
    #part = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (m)>, fs = [2], ft = [1], rp = [0], partial = "sum"}>
    #own = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (m)>, fs = [2], ft = [1], rp = [0], scatter = 4}>
    func.func @f(%x: tensor<8xf32, #part>) {
      %y = "rtensor.reduce"(%x) : (tensor<8xf32, #part>) -> tensor<8xf32, #own>
      return
    }
    ```

    The combination is the `partial` of the source. A result with `scatter` leaves every core with its chunk (a
    reduce-scatter); one without leaves all of it on each (an all-reduce).

    ```text
    result[s][e] = combination of source[s'][e] over the cores s' that hold e, in the order of core numbers
    ```
    """

    out: Result[Any]
    source: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        """Check that partial results become final ones on the same windows."""
        source, target = _moved(self)
        before, after = rotating_layout(source, "operand"), rotating_layout(target, "result")
        if not before.partial:
            raise Invalid("reduces final results, expected a layout with `partial`")
        if after.scatter not in (1, before.n_copies):
            raise Invalid(
                f"leaves scatter = {after.scatter}, expected 1 or {before.n_copies}: all or one chunk each"
            )
        if after != replace(before, partial="", scatter=after.scatter, at=after.at):
            raise Invalid("moves windows, expected those of the operand")


class RestOp(RTensor.Operation, name="rest"):
    """Says that a weight rotated in the memory in which it rests: it is there for the next run, at home again.

    ```mlir
    #grid = #rtensor.grid<{f_op = [2, 1], lengths = [4, 4], steps = [1, 2], loop_order = [1], core_order = [0],
      phases = [[], [[2, 1, 2, 0]]]}>
    #a = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (k)>, fs = [1], ft = [2], rp = [2]}>
    func.func @f(%x: tensor<4xf16, #a>) {
      "rtensor.rest"(%x) : (tensor<4xf16, #a>) -> ()

      func.return
    }
    ```
    """

    weight: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        """Check that the weight rotates."""
        if not rotating_layout(self.operation.operands[0], "operand").rotates:
            raise Invalid(f"ends the rotation of {self.operation.operands[0].type}, which does not rotate")


OPERATIONS: tuple[type[Any], ...] = (
    ResidentOp, RelayoutOp, SetupOp, CastOp, AllocateOp, FillOp, PositionOp, ShiftOp, SubTaskOp, ReduceOp, RestOp,
)  # fmt: skip


def placed_layout(value: Any, what: str) -> Layout:
    """Return the layout of a value that must have one; raises `Invalid`."""
    layout = layout_of(value.type)
    if layout is None:
        raise Invalid(f"{what} {value.type} has no layout, expected tensor<..., #rtensor.layout<...>>")
    return layout


def rotating_layout(value: Any, what: str) -> RotatingLayout:
    """Return the layout of a value that must lie on a grid; raises `Invalid`."""
    layout = placed_layout(value, what)
    if isinstance(layout, LinearLayout):
        raise Invalid(f"{what} {value.type} lies in a linear layout, expected one on a grid")
    return layout


def constant_index(value: Any) -> int | None:
    """Return the integer that a value is, None if it is not a constant."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return None
    attribute = owner.operation.attributes["value"].maybe_downcast()
    return int(attribute.value) if isinstance(attribute, ir.IntegerAttr) else None


def position_axis(value: Any, layout: RotatingLayout) -> int | None:
    """Return the axis of whose loop a value is the position on the layout's grid, None if it is none."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "rtensor.position":
        return None
    if decode_grid(owner.operation.attributes["grid"]) != layout.grid:
        return None
    return layout.grid.loop_order[int(ir.OpResult(value).result_number)]


def neutral_combine(op: Any) -> Combine:
    """Return the combination whose neutral element an `rtensor.fill` holds."""
    return op.attributes["combine"].value


def _moved(op: Any) -> tuple[Any, Any]:
    """Check that only the layout changes, to one on cores; return source and result."""
    source, target = op.operation.operands[0], op.operation.results[0]
    for what, type_ in (("operand", source.type), ("result", target.type)):
        if not isinstance(type_, ir.RankedTensorType):
            raise Invalid(f"{what} is {type_}, expected a ranked tensor")
    if list(source.type.shape) != list(target.type.shape):
        found = f"{list(source.type.shape)} to {list(target.type.shape)}"
        raise Invalid(f"changes shape {found}, expected only the layout to change")
    if source.type.element_type != target.type.element_type:
        found = f"{source.type.element_type} to {target.type.element_type}"
        raise Invalid(f"changes element type {found}, expected only the layout to change")
    layout_of(source.type)
    placed_layout(target, "result")
    return source, target


def _check_place(op: Any) -> None:
    """Check the place of an operation that owns memory, where it is stated."""
    if PLACE in op.operation.attributes:
        read_place(op.operation.attributes[PLACE])
