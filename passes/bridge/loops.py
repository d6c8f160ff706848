"""The region of a planned operator rewritten as its compute-shift program.

```
%acc = "rtensor.nest"(%a, %b, %zero) ({            outermost rotating axis
^bb0(%pos: index, %a, %b, %acc):
  %sum = "rtensor.operator"(%a, %b, %acc) ({ ... }) {rtensor.sub_task = [1, 1, 2]}
  "rtensor.shift"(%a) {axis = 1, pace = 2}
  "rtensor.shift"(%b) {axis = 0, pace = 2}
  "rtensor.yield"(%sum)
}) {axes = [2], steps = [3], rp = [2]}
%own = "rtensor.reduce"(%acc) {kind = "sum"}       where partial sums lie on several cores
%out = "rtensor.operator"(%own, %bias) ({ ... })   the epilogue
```

Source: compute-shift model §4.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from t10.core import geometry
from t10.core.dtypes import size_bytes
from t10.core.expression import AffineDim, OperatorSpec
from t10.core.schedule import ScheduledOperator
from t10.cost import CostModel
from t10.cost.operator import combine_cycles, output_chunk, sub_task_box
from t10.dialect import build
from t10.dialect.attributes import to_attr
from t10.dialect.layout import Layout
from t10.dialect.mlir import ir
from t10.dialect.rtensor import layout_of, without_layout
from t10.passes.bridge.layouts import operand_layout
from t10.passes.bridge.region import Copier, Parts, arguments_read, combine_with, neutral, split_region

SUB_TASK = "rtensor.sub_task"
"""Extent of a sub-task's box per axis. Only its points are computed; elsewhere the result is the last operand."""


def is_expanded(op: Any) -> bool:
    """Return whether an operation is an operator whose region is loops already."""
    if op.name != "rtensor.operator":
        return False
    inner = {each.operation.name for each in op.regions[0].blocks[0].operations}
    return bool(inner & {"rtensor.nest", "rtensor.operator", "rtensor.reduce"})


def expand(
    op: Any, spec: OperatorSpec, scheduled: ScheduledOperator, numbers: dict[int, int], cost: CostModel
) -> None:
    """Replace a planned operator by one with loops; needs a current location and insertion point in front of it.

    `numbers` are those of `separate.operand_numbers`.
    """
    attributes = {name: op.attributes[name] for name in op.attributes}
    made = ir.Operation.create(
        "rtensor.operator",
        results=[result.type for result in op.results],
        operands=list(op.operands),
        attributes=attributes,
        regions=1,
    )
    layouts: dict[int, Layout] = {}
    for number, i in sorted(numbers.items()):
        layouts.setdefault(i, operand_layout(spec, scheduled.active.plan, number))
    types = [
        build.with_layout(value.type, layouts.get(i, layout_of(value.type)))
        for i, value in enumerate(op.operands)
    ]
    block = made.regions[0].blocks.append(*types, arg_locs=[op.location] * len(types))
    with ir.InsertionPoint(block):
        parts = split_region(op, spec)
        result = _Expander(spec, scheduled, cost, numbers, parts, list(block.arguments)).write(
            op.results[0].type
        )
        build.yield_(result)
    op.results[0].replace_all_uses_with(made.results[0])
    op.erase()


@dataclass
class _Expander:
    """Writes the program of one operator; `arguments` stand for the operands of its `rtensor.operator`.

    `inputs` are the values that the sub-task reads; `by_slot` says which of them an input of the expression is,
    `by_argument` which of them stands for an argument in the sub-task's region.
    """

    spec: OperatorSpec
    scheduled: ScheduledOperator
    cost: CostModel
    numbers: dict[int, int]
    parts: Parts
    arguments: list[Any]
    inputs: list[Any] = field(default_factory=list[Any])
    by_slot: dict[int, int] = field(default_factory=dict[int, int])
    by_argument: dict[int, int] = field(default_factory=dict[int, int])

    def write(self, result_type: Any) -> Any:
        """Return the operator's result."""
        plan = self.scheduled.active.plan
        self._collect_inputs()
        value = self._sweep(plan.loop_order, self.inputs, self._initial())
        self._home()
        n_members, n_slots = output_chunk(self.spec, plan)
        if n_members > 1:
            value = self._reduce(value, n_members, n_slots)
        return self._epilogue(value, result_type) if self.parts.has_epilogue else value

    def _collect_inputs(self) -> None:
        """Find what the sub-task reads."""
        for slot in range(len(self.spec.inputs)):
            i = self.numbers[slot]
            if i not in self.by_argument:
                self.by_argument[i] = len(self.inputs)
                self.inputs.append(self.arguments[i])
            self.by_slot[slot] = self.by_argument[i]
        for i in arguments_read(self.parts.sub_task_values, self.parts.block):
            if i not in self.by_argument:
                self.by_argument[i] = len(self.inputs)
                self.inputs.append(self.arguments[i])

    def _initial(self) -> Any:
        """Return the accumulator before the first sub-task."""
        type_ = build.with_layout(self.parts.accumulated.type, self._accumulator_layout())
        if self.parts.root is None:
            return ir.Operation.create("tensor.empty", results=[type_]).results[0]
        value = ir.DenseElementsAttr.get_splat(type_, neutral(self.spec.combine, type_.element_type))
        return ir.Operation.create("arith.constant", results=[type_], attributes={"value": value}).results[0]

    def _accumulator_layout(self, scatter: int = 1) -> Layout:
        """Return the layout of the accumulator, whose dims are those of the root: an epilogue may permute them."""
        shape = tuple(int(n) for n in self.parts.accumulated.type.shape)
        output = replace(self.spec.output, shape=shape, dims=self.parts.accumulated_dims)
        seen = replace(self.spec, output=output)
        return operand_layout(seen, self.scheduled.active.plan, len(self.spec.operands), scatter)

    def _sweep(self, axes: tuple[int, ...], values: list[Any], accumulator: Any) -> Any:
        """Return the accumulator after the loops over `axes`, outermost first."""
        if not axes:
            return self._sub_task(values, accumulator)
        plan, axis = self.scheduled.active.plan, axes[0]
        loop = {"axes": (axis,), "steps": (plan.steps[axis],), "rp": (plan.rp[axis],)}
        nest, block = build.nest((*values, accumulator), **loop)
        with ir.InsertionPoint(block):
            _, *inner, start = block.arguments
            result = self._sweep(axes[1:], inner, start)
            self._advance(inner, range(len(self.spec.inputs)), axis)
            if plan.ft[-1][axis] > 1:
                result = _shifted(result, self.parts.accumulated_dims, axis)
            build.yield_(result)
        return nest.results[0]

    def _advance(self, values: list[Any], slots: Iterable[int], axis: int) -> None:
        """Shift those of `slots` that rotate along an axis."""
        moving = [slot for slot in slots if self.scheduled.active.plan.ft[slot][axis] > 1]
        first_by_input: dict[int, int] = {}
        for slot in moving:
            first_by_input.setdefault(self.by_slot[slot], slot)
        for number, slot in first_by_input.items():
            _shifted(values[number], self.spec.inputs[slot].dims, axis)

    def _sub_task(self, values: list[Any], accumulator: Any) -> Any:
        """Return the accumulator after one sub-task."""
        reads = (*values, accumulator)
        made, block = build.operator(reads, accumulator.type, op_name=self.spec.name, kind=self.spec.kind)
        made.attributes[SUB_TASK] = to_attr(sub_task_box(self.scheduled.active.plan))
        *arguments, start = _plain(block)
        old = self.parts.block.arguments
        copier = Copier({old[i]: arguments[number] for i, number in self.by_argument.items()})
        with ir.InsertionPoint(block):
            root = self.parts.root
            build.yield_(
                copier.value(self.parts.result) if root is None else copier.operation(root, outs=start)
            )
        return made.results[0]

    def _home(self) -> None:
        """Shift weights that turned in their place of rest back to where they started (compute-shift model R7)."""
        plan = self.scheduled.active.plan
        arrivals = self.scheduled.arrivals[: len(self.spec.inputs)]
        resident = [a.operand for a in arrivals if a.kind == "in_place" and a.buffer.startswith("idle:")]
        final = geometry.final_positions(plan)
        for axis in plan.loop_order:
            if final[axis]:
                self._advance(self.inputs, resident, axis)

    def _reduce(self, value: Any, n_members: int, n_slots: int) -> Any:
        """Return the combined accumulator: one chunk on every core that held partial results, or all of it on each."""
        plan = self.scheduled.active.plan
        is_whole = plan.reduce == "all"
        chunk_bytes = n_slots * size_bytes(self.spec.acc_dtype)
        return build.reduce(
            value,
            self._accumulator_layout(scatter=1 if is_whole else n_members),
            kind=self.spec.combine,
            mode="all" if is_whole else "scatter",
            cores=n_members,
            bytes_=chunk_bytes * (n_members - 1),
            cycles=combine_cycles(self.cost, self.spec, plan),
        )

    def _epilogue(self, value: Any, result_type: Any) -> Any:
        """Return the result of what follows the sub-tasks."""
        parts = self.parts
        read = arguments_read(parts.epilogue_values, parts.block, stop=parts.accumulated)
        reads = (value, *(self.arguments[i] for i in read))
        made, block = build.operator(reads, result_type, op_name=self.spec.name, kind="elementwise")
        accumulated, *others = _plain(block)
        old = parts.block.arguments
        copier = Copier({old[i]: argument for i, argument in zip(read, others, strict=True)})
        with ir.InsertionPoint(block):
            if parts.init is not None:
                accumulated = combine_with(parts.root, accumulated, copier.value(parts.init))
            copier.made[parts.accumulated] = accumulated
            build.yield_(copier.value(parts.result))
        return made.results[0]


def _plain(block: Any) -> list[Any]:
    """Return a block's arguments, made tensors without layouts: a region computes on whole tensors."""
    for argument in block.arguments:
        argument.set_type(without_layout(argument.type))
    return list(block.arguments)


def _shifted(value: Any, dims: tuple[AffineDim, ...], axis: int) -> Any:
    """Return a tensor shifted along the dim that an axis indexes."""
    number = next(number for number, dim in enumerate(dims) if axis in dim.axes)
    layout = layout_of(value.type)
    assert layout is not None
    return build.shift(value, axis=number, pace=layout.rp[number])
