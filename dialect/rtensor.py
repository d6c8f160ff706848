"""The `rtensor` dialect: what linalg cannot say about computing on cores that hand tensors round.

A *layout* (`#rtensor.layout`) says how a tensor lies on the cores and is its encoding; a *plan* (`#rtensor.plan`) says
how an operator is cut, rotated and ordered and is an attribute of it. Operations exist for what moves data between
operators (`setup`, `relayout`), inside an operator (`shift`, `reduce`), for the loop nest (`nest`) and for the unit
that is planned (`operator`). All but `shift` are pure: canonicalization and CSE treat them as arithmetic.

Operations print in MLIR's generic form.
"""

# The docstrings below are the reference page: tools/gen_docs.py writes it.

from collections.abc import Sequence
from typing import Any, get_args

from t10.core.expression import OperatorKind
from t10.dialect.attributes import int_tuple, to_python
from t10.dialect.groups import operand_groups
from t10.dialect.layout import Layout, check_layout, read_layout
from t10.dialect.mlir import ir
from t10.dialect.ods import (
    ArrayAttr,
    Dialect,
    DictAttr,
    IntegerAttr,
    Invalid,
    IsIsolatedFromAbove,
    IsTerminator,
    Operand,
    Pure,
    Region,
    Result,
    StringAttr,
    verifier,
)

PLAN = "rtensor.plan"
"""Name of the attribute that holds an operator's plan: on a linalg op or on `rtensor.operator`."""
CANDIDATES = "rtensor.candidates"
"""Name of the attribute that holds an array of plans to choose from, in the order the planner gave them."""
SPACE = "rtensor.space"
"""Name of the attribute that holds, instead of candidates too many to list, the constraints they satisfy."""
FORCED = "rtensor.forced"
"""Name of the attribute that holds what the user chose of an operator's plan; nothing may change it."""

DIRECTIONS = ("forward", "backward")
COMBINES = ("sum", "prod", "max", "min", "and", "or")
REDUCE_MODES = ("scatter", "all")


class RTensor(Dialect, name="rtensor"):
    """Compute-shift on rotating tensors: layouts, plans and what moves data."""


class LayoutAttr(RTensor.Attribute, name="layout"):
    """How a tensor lies on the cores; the encoding of a `tensor` type.

    ```mlir
    func.func private @f(tensor<6x8xf16, #rtensor.layout<{fs = [2, 1], ft = [1, 2], rp = [0, 2], cores = 4}>>)
    func.func private @g(tensor<6x8xf16, #rtensor.layout<{linear = 16}>>)
    ```

    Per tensor dim, outermost first: `fs` pieces in space, `ft` pieces of a sub-tensor over one ring, `rp` elements that
    every core hands to its neighbour in one shift. Optional: `cores` that share a sub-tensor, `scatter` (a core keeps
    one of that many chunks of its partition), `halo` elements by which neighbours overlap in a compound dim, `padded`
    extents where temporal factors ask for more padding than `fs`.
    `linear = n` alone: elements in row-major order, in n equal chunks, one per core. Chunks are one element or an even
    number of them (where there are several). The first example stands for

    ```text
    for i in range(2):                 # fs: sub-tensors of 3x8
      for copy in range(4 / (1 * 2)):  # rings: cores / prod(ft)
        for r in range(2):             # members of a ring; the window starts at 4 * r, and moves by rp = 2 per shift
          a core holds T[3 * i : 3 * i + 3, 4 * r : 4 * r + 4]
    ```

    Rules: one entry per dim; no more pieces than elements; prod(ft) divides `cores`; rp at most a partition, and 0
    where ft is 1.
    """

    fields: DictAttr


class PlanAttr(RTensor.Attribute, name="plan"):
    """How an operator is cut, rotated, ordered and placed, and what that costs: its attribute `rtensor.plan`.

    ```mlir
    func.func private @f() attributes {rtensor.plan = #rtensor.plan<{
      f_op = [2, 3, 1], lengths = [1, 1, 6], ft = [[1, 1, 3], [1, 1, 2], [1, 1, 1]],
      rp = [0, 0, 2], steps = [1, 1, 3], loop_order = [2]}>}
    ```

    | key | shape | meaning |
    |---|---|---|
    | `f_op` | axes | parts of every axis; their product is the number of cores that work |
    | `lengths` | axes | elements of one part, temporal padding included |
    | `ft` | operands x axes | temporal factors of the inputs in order, then of the output |
    | `rp`, `steps` | axes | elements per shift (0: nothing rotates) and sub-tasks along the axis |
    | `loop_order` | rotating axes | outermost loop first |
    | `core_order` | axes | core number = row-major number of the core's coordinates in this order |
    | `phases` | axes x terms | where a core starts: terms `[stride, divisor, modulus, sharer axes ...]` |
    | `reduce` | | how partial sums are combined: `none`, `scatter` or `all` |
    | `cycles` | | dictionary of `compute`, `shift`, `reduce`, `relayout`, `setup`, in cycles |
    | `weight_bytes`, `active_bytes` | | bytes per core: of weights, of everything the operator holds |

    It stands for, on every core at once,

    ```text
    for pos in serpentine order over loop_order, outermost first:
      compute the box prod_a [phase_a + pos_a * rp_a, + rp_a) mod lengths_a
      shift every operand with ft > 1 on the axis that advances, by rp of that axis
    combine partial sums as `reduce` says
    ```

    Axes are those of the linalg op that is the operator's root; one that gathers has an axis more per computed index.
    `rtensor.candidates` is an array of plans. In it plans may be incomplete: `--t10-partition` decides `f_op` and `ft`,
    `--t10-align-pace` everything up to `reduce`, `--t10-pareto` cycles and bytes. `rtensor.forced` is a dictionary of
    the same keys that a user fixes, and `idle_level`, how the operator's weights rest.
    """

    fields: DictAttr


class SpaceAttr(RTensor.Attribute, name="space"):
    """The partitions of an operator that are searched, where they are too many to list: its attribute `rtensor.space`.

    ```mlir
    func.func private @f() attributes {rtensor.space = #rtensor.space<{
      cores = 64, least_cores = 58, padding = 0.81, n_f_op = 84, at_most = 18955}>}
    ```

    | key | meaning |
    |---|---|
    | `cores`, `least_cores` | most and fewest cores that work: the product of `f_op` lies between them |
    | `padding` | least useful part of every padded axis: extent / (parts * length) |
    | `n_f_op` | the number of `f_op` within these constraints |
    | `at_most` | partitions (`f_op` and `ft`), counted row by row of `ft`; some rows do not go together |
    | `f_op` | optional: the only one |
    | `rp` | optional, with `f_op`: the pace that `ft` must give |
    | `aligned` | optional: `--t10-align-pace` has run; pace, steps and loop order follow from each partition |

    It stands for

    ```text
    for every f_op with least_cores <= prod(f_op) <= cores that pads no axis below `padding`:
      for every ft, one row per operand: a divisor of the cores that share the operand, cut along its axes,
                                         so that lengths rounded up to multiples of it keep `padding`
    ```

    The constraints are those that are kept, relaxed where the options left no partition. Passes that read the attribute
    count `n_f_op` again and refuse an attribute that is not the operator's.
    """

    fields: DictAttr


class YieldOp(RTensor.Operation, name="yield", traits=[IsTerminator, Pure]):
    """Ends the region of `rtensor.operator` and `rtensor.nest`: hands out its result.

    ```mlir
    func.func @exp(%x: tensor<4xf16>, %init: tensor<4xf16>) -> tensor<4xf16> {
      %y = "rtensor.operator"(%x, %init) ({
      ^bb0(%a: tensor<4xf16>, %o: tensor<4xf16>):
        %r = linalg.exp ins(%a : tensor<4xf16>) outs(%o : tensor<4xf16>) -> tensor<4xf16>
        "rtensor.yield"(%r) : (tensor<4xf16>) -> ()
      }) {op_name = "exp_0", kind = "elementwise", operandSegmentSizes = array<i32: 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}
         : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
      return %y : tensor<4xf16>
    }
    ```
    """

    value: Operand[Any]


class _MixedOperation(RTensor.Operation):
    """Base of operations whose operands are of any types; the bindings collect fields of a base class."""


_untyped: Any = _MixedOperation
_untyped._fields = operand_groups()


class OperatorOp(_MixedOperation, name="operator", traits=[IsIsolatedFromAbove, Pure]):
    """The unit that is planned: a root linalg op (contraction, convolution ...) and the elementwise ops around it.

    ```mlir
    func.func @linear(%x: tensor<4x8xf16>, %w: tensor<8x2xf16>, %init: tensor<4x2xf16>) -> tensor<4x2xf16> {
      %y = "rtensor.operator"(%x, %w, %init) ({
      ^bb0(%a: tensor<4x8xf16>, %b: tensor<8x2xf16>, %o: tensor<4x2xf16>):
        %c = linalg.matmul ins(%a, %b : tensor<4x8xf16>, tensor<8x2xf16>) outs(%o : tensor<4x2xf16>) -> tensor<4x2xf16>
        %e = linalg.exp ins(%c : tensor<4x2xf16>) outs(%o : tensor<4x2xf16>) -> tensor<4x2xf16>
        "rtensor.yield"(%e) : (tensor<4x2xf16>) -> ()
      }) {op_name = "/mlp/MatMul", kind = "contraction",
          operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0>}
         : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<4x2xf16>) -> tensor<4x2xf16>
      return %y : tensor<4x2xf16>
    }
    ```

    `op_name` is the name the model gave it; `kind` one of contraction, convolution, reduction, pooling, elementwise,
    gather. The region sees nothing from above: its arguments are the operands. The root is the first linalg op with a
    reduction iterator, or the first linalg op that is not a fill. `operandSegmentSizes` counts runs of operands of
    equal type (IRDL cannot say "operands of any types" in another way).
    """

    out: Result[Any]
    op_name: StringAttr
    kind: StringAttr
    body: Region

    @verifier
    def verify_invariants(self) -> None:
        """Check the kind and the region's arguments."""
        _check_member("kind", self.kind, get_args(OperatorKind))
        _check_arguments(self.body, [value.type for value in self.operation.operands], plain=True)

    @verifier
    def verify_region_invariants(self) -> None:
        """Check that there is a root and that what is yielded is the result."""
        block = self.body.blocks[0]
        if not any(
            op.operation.name.startswith(("linalg.", "rtensor.nest", "rtensor.operator"))
            for op in block.operations
        ):
            raise Invalid("holds no linalg operation, expected a root")
        _check_yield(block, [value.type for value in self.operation.results], plain=True)


class SetupOp(RTensor.Operation, name="setup", traits=[Pure]):
    """Brings a weight from its idle to its active layout before its operator runs.

    ```mlir
    func.func @f(%w: tensor<8x8xf16, #rtensor.layout<{linear = 16}>>) {
      %a = "rtensor.setup"(%w) {bytes = 24, cycles = 310}
        : (tensor<8x8xf16, #rtensor.layout<{linear = 16}>>)
        -> tensor<8x8xf16, #rtensor.layout<{fs = [4, 1], ft = [1, 2], rp = [0, 4], cores = 4}>>
      return
    }
    ```

    `bytes` is the most any core receives, `cycles` the modelled time. Going back to idle is free: the copy is dropped.
    An active partition is at least as large as the idle one, which may be rounded up to an even number of elements.
    """

    active: Result[Any]
    idle: Operand[Any]
    bytes: IntegerAttr
    cycles: IntegerAttr

    @verifier
    def verify_invariants(self) -> None:
        """Check types, layouts and that the active partition holds no less than the idle one."""
        source, target = self.operation.operands[0].type, self.operation.results[0].type
        before, after = _check_move(source, target, self)
        shape = tuple(source.shape)
        if before is None:
            return
        found, expected = after.partition_elements(shape), before.partition_elements(shape)
        # Chunks are even, partitions need not be.
        if found + found % 2 < expected:
            raise Invalid(
                f"active partition holds {found} elements, expected at least the idle partition's {expected}"
            )


class RelayoutOp(RTensor.Operation, name="relayout", traits=[Pure]):
    """Moves a value between operators to the layout its consumer needs: an all-to-all between cores.

    ```mlir
    func.func @f(%x: tensor<8x8xf16, #rtensor.layout<{fs = [4, 1], ft = [1, 1], rp = [0, 0]}>>) {
      %y = "rtensor.relayout"(%x) {bytes = 32, cycles = 450}
        : (tensor<8x8xf16, #rtensor.layout<{fs = [4, 1], ft = [1, 1], rp = [0, 0]}>>)
        -> tensor<8x8xf16, #rtensor.layout<{fs = [1, 4], ft = [1, 1], rp = [0, 0]}>>
      return
    }
    ```

    Shape and element type stay. `bytes` is the most any core receives, `cycles` the modelled time.
    """

    target: Result[Any]
    source: Operand[Any]
    bytes: IntegerAttr
    cycles: IntegerAttr

    @verifier
    def verify_invariants(self) -> None:
        """Check types and layouts."""
        _check_move(self.operation.operands[0].type, self.operation.results[0].type, self)


class ShiftOp(RTensor.Operation, name="shift"):
    """Rotates a tensor by one step: every core hands `pace` elements of dim `axis` to its neighbour in the ring.

    ```mlir
    func.func @f(%x: tensor<6x8xf16, #rtensor.layout<{fs = [2, 1], ft = [1, 2], rp = [0, 2]}>>) {
      %y = "rtensor.shift"(%x) {axis = 1, pace = 2, direction = "forward"}
        : (tensor<6x8xf16, #rtensor.layout<{fs = [2, 1], ft = [1, 2], rp = [0, 2]}>>)
        -> tensor<6x8xf16, #rtensor.layout<{fs = [2, 1], ft = [1, 2], rp = [0, 2]}>>
      return
    }
    ```

    The tensor as a whole keeps its value and its layout; every window moves: `start = (start + pace) mod sub_tensor`
    for `forward`, minus for `backward` (the way back of a serpentine sweep). Not pure: a shift moves the windows, so it
    is neither removed nor merged with another.
    """

    target: Result[Any]
    source: Operand[Any]
    axis: IntegerAttr
    pace: IntegerAttr
    direction: StringAttr

    @verifier
    def verify_invariants(self) -> None:
        """Check that the dim rotates, at this pace."""
        source, target = self.operation.operands[0].type, self.operation.results[0].type
        if source != target:
            raise Invalid(
                f"changes {source} to {target}, expected the same type: a shift keeps shape and layout"
            )
        layout = _layout_of(source, "operand")
        axis, pace = self.axis.value, self.pace.value
        if not 0 <= axis < len(layout.ft):
            raise Invalid(
                f"axis = {axis} of a rank-{len(layout.ft)} tensor, expected 0 to {len(layout.ft) - 1}"
            )
        if layout.ft[axis] == 1:
            raise Invalid(
                f"axis = {axis} is not cut in time (ft = {list(layout.ft)}), expected a dim with ft over 1"
            )
        if pace != layout.rp[axis]:
            raise Invalid(f"pace = {pace}, expected rp[{axis}] = {layout.rp[axis]} of the layout")
        _check_member("direction", self.direction, DIRECTIONS)


class ReduceOp(RTensor.Operation, name="reduce", traits=[Pure]):
    """Combines the partial sums that a split reduction axis leaves on `cores` cores.

    ```mlir
    func.func @f(%x: tensor<8x8xf32, #rtensor.layout<{fs = [2, 1], ft = [1, 1], rp = [0, 0], cores = 4}>>) {
      %y = "rtensor.reduce"(%x) {kind = "sum", mode = "scatter", cores = 4, bytes = 96, cycles = 200}
        : (tensor<8x8xf32, #rtensor.layout<{fs = [2, 1], ft = [1, 1], rp = [0, 0], cores = 4}>>)
        -> tensor<8x8xf32, #rtensor.layout<{fs = [2, 1], ft = [1, 1], rp = [0, 0], cores = 4, scatter = 4}>>
      return
    }
    ```

    `kind` is how (sum, prod, max, min, and, or); `mode = "scatter"` leaves every core with 1/cores of the partition,
    `"all"` with all of it. `bytes` is the most any core receives, `cycles` the modelled time.
    """

    target: Result[Any]
    partial: Operand[Any]
    kind: StringAttr
    mode: StringAttr
    cores: IntegerAttr
    bytes: IntegerAttr
    cycles: IntegerAttr

    @verifier
    def verify_invariants(self) -> None:
        """Check types, kind and mode, and that the result is scattered as the mode says."""
        _check_member("kind", self.kind, COMBINES)
        _check_member("mode", self.mode, REDUCE_MODES)
        source, target = self.operation.operands[0].type, self.operation.results[0].type
        _, after = _check_move(source, target, self)
        cores = self.cores.value
        if cores < 2:
            raise Invalid(f"cores = {cores}, expected at least 2 cores that hold partial results")
        expected = cores if self.mode.value == "scatter" else 1
        if after.scatter != expected:
            raise Invalid(f"result has scatter = {after.scatter}, expected {expected} for mode {self.mode}")


class NestOp(_MixedOperation, name="nest", traits=[IsIsolatedFromAbove, Pure]):
    """The compute-shift loop nest of one operator: its region is one sub-task and the shifts after it.

    ```mlir
    func.func @f(%a: tensor<6x8xf16, #rtensor.layout<{fs = [2, 1], ft = [1, 2], rp = [0, 4]}>>, %c: tensor<6xf16>)
        -> tensor<6xf16> {
      %r = "rtensor.nest"(%a, %c) ({
      ^bb0(%pos: index, %w: tensor<6x8xf16, #rtensor.layout<{fs = [2, 1], ft = [1, 2], rp = [0, 4]}>>,
           %acc: tensor<6xf16>):
        %n = "rtensor.shift"(%w) {axis = 1, pace = 4, direction = "forward"}
          : (tensor<6x8xf16, #rtensor.layout<{fs = [2, 1], ft = [1, 2], rp = [0, 4]}>>)
          -> tensor<6x8xf16, #rtensor.layout<{fs = [2, 1], ft = [1, 2], rp = [0, 4]}>>
        "rtensor.yield"(%acc) : (tensor<6xf16>) -> ()
      }) {axes = [1], steps = [2], rp = [4], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}
         : (tensor<6x8xf16, #rtensor.layout<{fs = [2, 1], ft = [1, 2], rp = [0, 4]}>>, tensor<6xf16>) -> tensor<6xf16>
      return %r : tensor<6xf16>
    }
    ```

    `axes` are the operator's rotating axes, outermost loop first; `steps` and `rp` stand in the same order. Operands
    are the tensors it reads, then the initial output. Region arguments: the position along every loop (index), then the
    operands; the region yields the output that the next sub-task continues with:

    ```text
    out = last operand
    for pos in serpentine order over steps, outermost first:
      out = region(pos, operands, out)        # compute the sub-task at pos, then shift what rotates along the next axis
    ```

    The region's shifts take place between two runs of it: once less than `steps`. `--t10-expand` writes one nest per
    axis; one inside another is run there and back in turn (serpentine), its shifts the other way every second time:
    their `direction` is that of the first.
    """

    out: Result[Any]
    axes: ArrayAttr
    steps: ArrayAttr
    rp: ArrayAttr
    body: Region

    @verifier
    def verify_invariants(self) -> None:
        """Check the loops, and that operands, region arguments and results agree."""
        axes, steps, pace = (int_tuple(to_python(row), name) for name, row in _rows_of(self))
        if not len(axes) == len(steps) == len(pace):
            raise Invalid(
                f"has {len(axes)} axes, {len(steps)} steps and {len(pace)} paces, expected one of each per loop"
            )
        if len(set(axes)) != len(axes):
            raise Invalid(f"axes = {list(axes)} names an axis twice")
        for name, row, least in (("axes", axes, 0), ("steps", steps, 2), ("rp", pace, 1)):
            for i, value in enumerate(row):
                if value < least:
                    raise Invalid(f"{name}[{i}] = {value}, expected at least {least}")
        operands = [value.type for value in self.operation.operands]
        result = self.operation.results[0].type
        if not operands or operands[-1] != result:
            raise Invalid(
                f"starts from {_types(operands[-1:])} but results in {result}, expected the same type"
            )
        index = ir.IndexType.get(self.operation.context)
        _check_arguments(self.body, [index] * len(axes) + operands)

    @verifier
    def verify_region_invariants(self) -> None:
        """Check that the region yields the next output."""
        _check_yield(self.body.blocks[0], [value.type for value in self.operation.results])


OPERATIONS: tuple[type[Any], ...] = (OperatorOp, SetupOp, RelayoutOp, ShiftOp, NestOp, ReduceOp, YieldOp)
ATTRIBUTES: tuple[type[Any], ...] = (LayoutAttr, PlanAttr, SpaceAttr)


def layout_of(type_: Any) -> Layout | None:
    """Return the layout that a type carries, or None; raises `Invalid` if it is malformed."""
    if not isinstance(type_, ir.RankedTensorType):
        return None
    encoding = type_.encoding
    if not isinstance(encoding, LayoutAttr):
        return None
    return read_layout(to_python(encoding.fields))


def _rows_of(op: Any) -> tuple[tuple[str, Any], ...]:
    """Return the array attributes of a nest by name."""
    return (("axes", op.axes), ("steps", op.steps), ("rp", op.rp))


def _layout_of(type_: Any, what: str) -> Layout:
    """Return the layout of a type that must have a valid one."""
    layout = layout_of(type_)
    if layout is None:
        raise Invalid(f"{what} {type_} has no layout, expected tensor<..., #rtensor.layout<...>>")
    check_layout(layout, tuple(type_.shape))
    return layout


def _check_move(source: Any, target: Any, op: Any) -> tuple[Layout | None, Layout]:
    """Check that only the layout changes and that the price is not negative; return both layouts.

    A source without one is a view (reshape, slice, concat ...) of placed values: it is read through.
    """
    for what, type_ in (("operand", source), ("result", target)):
        if not isinstance(type_, ir.RankedTensorType):
            raise Invalid(f"{what} is {type_}, expected a ranked tensor")
    if list(source.shape) != list(target.shape):
        raise Invalid(
            f"changes shape {list(source.shape)} to {list(target.shape)}, expected only the layout to change"
        )
    if source.element_type != target.element_type:
        found = f"{source.element_type} to {target.element_type}"
        raise Invalid(f"changes element type {found}, expected only the layout to change")
    for name in ("bytes", "cycles"):
        if op.attributes[name].value < 0:
            raise Invalid(f"{name} = {op.attributes[name].value}, expected a number that is not negative")
    before = _layout_of(source, "operand") if source.encoding is not None else None
    return before, _layout_of(target, "result")


def _check_member(name: str, attr: Any, allowed: Sequence[str]) -> None:
    """Check that a string attribute is one of a few words."""
    if attr.value not in allowed:
        raise Invalid(f'{name} is "{attr.value}", expected one of {", ".join(allowed)}')


def without_layout(type_: Any) -> Any:
    """Return a tensor type without its encoding: the region of an operator computes on whole tensors."""
    if not isinstance(type_, ir.RankedTensorType) or type_.encoding is None:
        return type_
    # Verifiers run where no location is current, as when a module is printed.
    location = ir.Location.unknown(type_.context)
    return ir.RankedTensorType.get(list(type_.shape), type_.element_type, loc=location)


def _check_arguments(region: Any, expected: list[Any], *, plain: bool = False) -> None:
    """Check the number and the types of a region's arguments; `plain`: but for layouts."""
    found = [argument.type for argument in region.blocks[0].arguments]
    if len(found) != len(expected):
        raise Invalid(f"region has {len(found)} arguments, expected {len(expected)}: {_types(expected)}")
    for i, (is_, should) in enumerate(zip(found, expected, strict=True)):
        if is_ != should and not (plain and without_layout(is_) == without_layout(should)):
            raise Invalid(f"region argument #{i} has type {is_}, expected {should}")


def _check_yield(block: Any, expected: list[Any], *, plain: bool = False) -> None:
    """Check that a block ends in `rtensor.yield` of the expected types; `plain`: but for layouts."""
    last = block.operations[len(block.operations) - 1].operation
    if last.name != "rtensor.yield":
        raise Invalid(f"region ends in {last.name}, expected rtensor.yield")
    found = [value.type for value in last.operands]
    if plain:
        found, expected = ([without_layout(type_) for type_ in types] for types in (found, expected))
    if found != expected:
        raise Invalid(f"region yields {_types(found)}, expected {_types(expected)}")


def _types(types: list[Any]) -> str:
    """Return types as they stand in a signature."""
    return f"({', '.join(str(type_) for type_ in types)})"
