"""A planned model written into its module: plans as attributes, layouts as encodings, relayouts and setups as ops."""

from __future__ import annotations

from typing import Any

from t10.core.expression import OperatorSpec
from t10.core.schedule import Arrival, Layout, ModulePlan, ScheduledOperator
from t10.dialect.attributes import to_attr
from t10.dialect.build import set_plan, with_layout
from t10.dialect.groups import SEGMENTS, segment_sizes
from t10.dialect.mlir import ir
from t10.dialect.plan import Expression
from t10.dialect.rtensor import CANDIDATES, FORCED, PLAN, SPACE, without_layout
from t10.passes.bridge.layouts import dialect_layout, operand_layout
from t10.passes.bridge.separate import operand_numbers, separate
from t10.passes.bridge.wrap import wrap
from t10.passes.read_graph import ReadModule

CHIP = "t10.chip"
COST_MODEL = "t10.cost_model"
"""Attribute of a module: where its cycles come from, as `t10.cost.registry` takes it."""
IDLE = "t10.idle"
IDLE_LEVEL = "rtensor.idle_level"
"""Over how many replicas an operator's weights are divided at rest: 0 spread over all cores, 1 as they are used."""
BUFFERS = "rtensor.buffers"
"""Attribute of a function: name, address, size (bytes) and first and last step of everything in a core's memory."""
WRAPPER_ATTRIBUTES = (CANDIDATES, SPACE, FORCED, PLAN, IDLE_LEVEL, "op_name", "kind")
"""Attributes of a bare linalg operation that belong to the `rtensor.operator` around it."""


def expression_of(spec: OperatorSpec) -> Expression:
    """Return what a plan of the operator is checked against: extents, and the axes of every rotatable operand."""
    return Expression(spec.extents, tuple(operand.axes for operand in spec.rotatable))


def annotate(module: Any, read: ReadModule, plan: ModulePlan) -> None:
    """Write a plan into the module its graph was read from. Needs a current context and location."""
    if CHIP not in module.operation.attributes:
        # A pass before has named the chip as the user did: perhaps by the path of its file.
        module.operation.attributes[CHIP] = ir.StringAttr.get(plan.chip)
    specs = {spec.name: spec for spec in plan.graph.operators}
    levels: dict[str, int] = {}
    for layout in plan.weight_layouts:
        levels[layout.operator] = max(levels.get(layout.operator, 0), layout.scatter)
    names = dict(read.names)
    function = read.function
    _encode_arguments(read, plan)
    for scheduled in plan.operators:
        spec = specs[scheduled.name]
        op = wrap(
            read.operations[spec.name],
            spec.name,
            spec.kind,
            without=WRAPPER_ATTRIBUTES,
        )
        op = separate(op, spec, names, read.sources)
        _arrive(op, spec, scheduled, names, read.sources)
        set_plan(op, scheduled.active)
        op.attributes[IDLE_LEVEL] = to_attr(levels.get(spec.name, 0))
        for undecided in (CANDIDATES, SPACE, FORCED):
            if undecided in op.attributes:
                del op.attributes[undecided]
        layout = operand_layout(
            spec, scheduled.active.plan, len(spec.operands), scheduled.output_layout.scatter
        )
        result = op.results[0]
        result.set_type(with_layout(result.type, layout))
        names[result] = spec.output.name
    update_signature(function)


def argument_types(read: ReadModule, plan: ModulePlan) -> list[Any]:
    """Return the type of every argument of the function with its idle or input layout."""
    layouts = {layout.value: layout for layout in (*plan.weight_layouts, *plan.input_layouts)}
    specs = {spec.name: spec for spec in plan.graph.operators}
    types: list[Any] = []
    for argument in read.function.regions[0].blocks[0].arguments:
        layout = layouts.get(read.names[argument])
        bare = without_layout(argument.type)
        types.append(bare if layout is None else _argument_type(bare, layout, specs))
    return types


def _encode_arguments(read: ReadModule, plan: ModulePlan) -> None:
    """Give every argument its idle or input layout; its kind is also stated as `t10.idle`."""
    kinds = {layout.value: layout.kind for layout in (*plan.weight_layouts, *plan.input_layouts)}
    function = read.function
    block = function.regions[0].blocks[0]
    attributes = [dict(_named(entry)) for entry in _entries(function, len(block.arguments))]
    for i, type_ in enumerate(argument_types(read, plan)):
        argument = block.arguments[i]
        kind = kinds.get(read.names[argument])
        if kind is not None:
            attributes[i][IDLE] = ir.StringAttr.get(kind)
            argument.set_type(type_)
    function.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(entry) for entry in attributes])


def _argument_type(type_: Any, layout: Layout, specs: dict[str, OperatorSpec]) -> Any:
    """Return an argument's type with its layout; an operand layout of a view of it cannot be an encoding of it."""
    spec = specs.get(layout.operator)
    if spec is not None and spec.operands[layout.operand].name != layout.value:
        return type_
    return with_layout(type_, dialect_layout(spec, layout, tuple(type_.shape)))


def _arrive(
    op: Any, spec: OperatorSpec, scheduled: ScheduledOperator, names: dict[Any, str], sources: dict[str, str]
) -> None:
    """Put a relayout or setup in front of every operand that has to move."""
    numbers = operand_numbers(op, spec, names, sources)
    for arrival in scheduled.arrivals:
        i = numbers.get(arrival.operand)
        if i is not None and arrival.kind != "in_place":
            op.operands[i] = _move(op, op.operands[i], spec, scheduled, arrival)
    op.attributes[SEGMENTS] = segment_sizes([value.type for value in op.operands])


def _move(op: Any, value: Any, spec: OperatorSpec, scheduled: ScheduledOperator, arrival: Arrival) -> Any:
    layout = operand_layout(spec, scheduled.active.plan, arrival.operand)
    made = ir.Operation.create(
        f"rtensor.{arrival.kind}",
        results=[with_layout(value.type, layout)],
        operands=[value],
        attributes={"bytes": to_attr(arrival.received_bytes), "cycles": to_attr(arrival.cycles)},
        loc=op.location,
        ip=ir.InsertionPoint(op),
    )
    return made.results[0]


def update_signature(function: Any) -> None:
    """Make the function's type that of its arguments and returned values."""
    block = function.regions[0].blocks[0]
    returned = list(block.operations)[-1].operation
    inputs = [argument.type for argument in block.arguments]
    results = [value.type for value in returned.operands]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


def _entries(function: Any, count: int) -> list[Any]:
    if "arg_attrs" not in function.attributes:
        return [ir.DictAttr.get({}) for _ in range(count)]
    return list(function.attributes["arg_attrs"])


def _named(dictionary: Any) -> list[tuple[str, Any]]:
    return [(entry.name, entry.attr) for entry in dictionary]
