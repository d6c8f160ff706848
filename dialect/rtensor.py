"""The `rtensor` dialect: layouts, plans and the compute-shift program of operators on cores that rotate tensors.

It has two levels. [Follow one matmul](follow-one-matmul.md) shows both.

**Planned level.** Tensors are whole. The unit that is planned is `rtensor.operator`, or one linalg operation; what is
decided of it is an attribute: `rtensor.candidates` or `rtensor.space` while there is a choice, then `rtensor.plan`
(how it is cut, rotated and ordered) and `rtensor.idle_level` (over how many replicas its weights are divided at rest: 0
spread over all cores, 1 as they are used). `rtensor.fetch = n` says that its weights come from off-chip memory: the
memory in which they rest is theirs from when operator n begins, counted from 0, until they are used. It stays at the
next level.

**Compute-shift level.** The plan is the types and operations; there is no plan attribute any more. The encoding of a
tensor, `#rtensor.layout` on a `#rtensor.grid`, says which element lies where on every core. `rtensor.resident` says
where values from outside rest. The region of an operator is what all cores execute in lock step:

```text
relayout, setup, cast        operands that do not lie as they are read
fill or allocate             the accumulators
scf.for                      position; shift, of everything that rotates, to it; sub_task
                             (without loops: one sub_task)
shift, rest                  weights that rotated where they rest go home
reduce                       partial results are combined
allocate, sub_task           the epilogue
yield
```

Every part of that but the sub-task may be missing; the order is fixed, and reading the region checks that there is
nothing else and that every tensor stands where it is read. `rtensor.place` is the address of what an operation owns.
Two more places stand on the function: `rtensor.shift_buffer`, through which shifts and reductions pass, and
`rtensor.program`, the bytes from address 0 on that are kept for code, vertex state, stacks and exchanges.

Each operation has an equation over cores: `x[s][e]` is element `e` of tensor `x` on core `s`. Windows, boxes, ring
neighbours, the cores of a reduction, who sends what in a relayout, and cycles follow from types and grids; they are not
stored. Operations that own memory (`resident`, `relayout`, `setup`, `allocate`, `fill`) are not pure: CSE would make
one buffer of two. `position`, `shift`, `sub_task` and `reduce` work on the buffers of their operands and are pure.

Operations print in MLIR's generic form, attributes under short names (`#grid`, `#layout`, `#plan`).
"""

# The docstrings below are the reference page: tools/gen_docs.py writes it.

from collections.abc import Sequence
from typing import Any, get_args

from t10.core.expression import OperatorKind
from t10.dialect import compute_shift
from t10.dialect.layout_attr import GridAttr, LayoutAttr, LinearAttr, PlaceAttr
from t10.dialect.ods import (
    DictAttr,
    Invalid,
    IsTerminator,
    Operand,
    Pure,
    Region,
    Result,
    StringAttr,
    verifier,
)
from t10.dialect.region import check_region, is_expanded
from t10.dialect.rtensor_base import RTensor as RTensor

PLAN = "rtensor.plan"
"""Name of the attribute that holds an operator's plan: on a linalg op or on `rtensor.operator`."""
CANDIDATES = "rtensor.candidates"
"""Name of the attribute that holds an array of plans to choose from, in the order the planner gave them."""
SPACE = "rtensor.space"
"""Name of the attribute that holds, instead of candidates too many to list, the constraints they satisfy."""
FETCH = "rtensor.fetch"
"""Name of the attribute that says from which operator on, counted from 0, an operator's weights are fetched."""
FORCED = "rtensor.forced"
"""Name of the attribute that holds what the user chose of an operator's plan; nothing may change it."""
COPY = "rtensor.copy"
"""Name of the unit attribute of an operator that copies elements to another order; without it, it is a view."""


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
    the same keys that a user fixes, and `idle_level`, how the operator's weights rest. `rtensor.copy` on a
    `linalg.generic` that only moves elements makes it an operator; without it, it is a view.
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
    | `unrotated` | optional: looser constraints (`least_cores`, `padding`, `n_f_op`) for plans that do not rotate |

    It stands for

    ```text
    for every f_op with least_cores <= prod(f_op) <= cores that pads no axis below `padding`:
      for every ft, one row per operand: a divisor of the cores that share the operand, cut along its axes,
                                         so that lengths rounded up to multiples of it keep `padding`
    for every other f_op within `unrotated`, where any axis may be padded by one element: ft = 1
    ```

    The constraints are those that are kept, relaxed where the options left no partition. Passes that read the attribute
    count `n_f_op` again and refuse an attribute that is not the operator's.
    """

    fields: DictAttr


class YieldOp(RTensor.Operation, name="yield", traits=[IsTerminator, Pure]):
    """Ends the region of `rtensor.operator` and `rtensor.sub_task`: hands out its result.

    ```mlir
    func.func @exp(%x: tensor<4xf16>, %init: tensor<4xf16>) -> tensor<4xf16> {
      %y = "rtensor.operator"() ({
        %r = linalg.exp ins(%x : tensor<4xf16>) outs(%init : tensor<4xf16>) -> tensor<4xf16>
        "rtensor.yield"(%r) : (tensor<4xf16>) -> ()
      }) {op_name = "exp_0", kind = "elementwise"} : () -> tensor<4xf16>
      return %y : tensor<4xf16>
    }
    ```
    """

    value: Operand[Any]


class OperatorOp(RTensor.Operation, name="operator", traits=[Pure]):
    """The unit that is planned: a root linalg op (contraction, convolution ...) and the elementwise ops around it.

    ```mlir
    func.func @linear(%x: tensor<4x8xf16>, %w: tensor<8x2xf16>, %init: tensor<4x2xf16>) -> tensor<4x2xf16> {
      %y = "rtensor.operator"() ({
        %c = linalg.matmul ins(%x, %w : tensor<4x8xf16>, tensor<8x2xf16>)
          outs(%init : tensor<4x2xf16>) -> tensor<4x2xf16>
        %e = linalg.exp ins(%c : tensor<4x2xf16>) outs(%init : tensor<4x2xf16>) -> tensor<4x2xf16>
        "rtensor.yield"(%e) : (tensor<4x2xf16>) -> ()
      }) {op_name = "/mlp/MatMul", kind = "contraction"} : () -> tensor<4x2xf16>
      return %y : tensor<4x2xf16>
    }
    ```

    `op_name` is the name the model gave it; `kind` one of contraction, convolution, reduction, pooling, elementwise,
    gather. There are no operands and no arguments: the region reads the values of the function around it. The root is
    the first linalg op with a reduction iterator, or the first linalg op that is not a fill. This is the planned level;
    at the compute-shift level the region is the program of the operator, as described above.
    """

    out: Result[Any]
    op_name: StringAttr
    kind: StringAttr
    body: Region

    @verifier
    def verify_invariants(self) -> None:
        """Check the kind and that the region is one block without arguments."""
        _check_member("kind", self.kind, get_args(OperatorKind))
        blocks = list(self.operation.regions[0].blocks)
        if len(blocks) != 1 or not len(blocks[0].operations):
            raise Invalid(
                "region is empty or has several blocks, expected one block that ends in rtensor.yield"
            )
        if len(blocks[0].arguments):
            raise Invalid(
                "region has arguments, expected none: it reads the values of the function around it"
            )

    @verifier
    def verify_region_invariants(self) -> None:
        """Check that there is a root and that what is yielded is the result."""
        block = self.body.blocks[0]
        if is_expanded(self.operation):
            if not self.op_name.value:
                raise Invalid("op_name is empty, expected a name: buffers and exchanges have it")
            check_region(self.operation)
            return
        names = [op.operation.name for op in block.operations]
        if not any(name.startswith("linalg.") and name != "linalg.fill" for name in names):
            raise Invalid("holds no linalg operation but fills, expected a root")
        _check_yield(block, [value.type for value in self.operation.results])


OPERATIONS: tuple[type[Any], ...] = (OperatorOp, *compute_shift.OPERATIONS, YieldOp)
ATTRIBUTES: tuple[type[Any], ...] = (GridAttr, LayoutAttr, LinearAttr, PlaceAttr, PlanAttr, SpaceAttr)


def _check_member(name: str, attr: Any, allowed: Sequence[str]) -> None:
    """Check that a string attribute is one of a few words."""
    if attr.value not in allowed:
        raise Invalid(f'{name} is "{attr.value}", expected one of {", ".join(allowed)}')


def _check_yield(block: Any, expected: list[Any]) -> None:
    """Check that a block ends in `rtensor.yield` of the expected types."""
    last = block.operations[len(block.operations) - 1].operation
    if last.name != "rtensor.yield":
        raise Invalid(f"region ends in {last.name}, expected rtensor.yield")
    found = [value.type for value in last.operands]
    if found != expected:
        raise Invalid(f"region yields {_types(found)}, expected {_types(expected)}")


def _types(types: list[Any]) -> str:
    """Return types as they stand in a signature."""
    return f"({', '.join(str(type_) for type_ in types)})"
