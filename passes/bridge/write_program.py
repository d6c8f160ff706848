"""A planned model as compute-shift programs: every operator's region becomes what its cores do (see `dialect.region`).

```
%w = "rtensor.resident"(%arg1)                where inputs, weights and constants rest
%c = "rtensor.operator"() ({
  %a0 = "rtensor.relayout"(%x)                operands that do not lie as they are read
  %z = "rtensor.fill"()
  %r:2 = scf.for %t = ... iter_args(%a = %a0, %s = %z) { position, shifts, sub_task }
  ...                                         shifts home, reduction, epilogue
})
```
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from t10.core.expression import OperatorSpec
from t10.core.laid_out import LayoutOperators
from t10.core.plan import OperatorPlan
from t10.core.program import Epilogue, Fill, Reduce, Shift, SubTask
from t10.core.schedule import ModulePlan, ScheduledOperator, ValueLayout
from t10.dialect.layout import LinearLayout, RotatingLayout
from t10.dialect.layout_attr import grid_attr, with_layout
from t10.dialect.mlir import ir
from t10.dialect.rtensor import FETCH
from t10.passes.bridge.layouts import accumulator_layout, operand_layout, padded_view, rest_layout
from t10.passes.bridge.write_generic import constant_attr
from t10.passes.bridge.write_spec import write_epilogue, write_root
from t10.passes.patterns.driver import apply_patterns
from t10.passes.patterns.same_cast import SAME_CAST
from t10.passes.read_graph import NAME, ReadModule

VIEWS = ("tensor.expand_shape", "tensor.collapse_shape")


def write_program(read: ReadModule, plan: ModulePlan) -> None:
    """Expand the operators of the function that a model was read from. Needs a current context."""
    writer = _Writer(read, plan)
    block = read.function.regions[0].blocks[0]
    with read.function.location, ir.InsertionPoint.at_block_begin(block):
        writer.residents()
    for spec, scheduled in zip(plan.graph.operators, plan.operators, strict=True):
        op = read.operations[spec.name]
        with op.location, ir.InsertionPoint(op):
            writer.operator(op, spec, scheduled)
    apply_patterns(read.function, (SAME_CAST,))
    update_signature(read.function)


def update_signature(function: Any) -> None:
    """Make the function's type that of its arguments and returned values."""
    block = function.regions[0].blocks[0]
    returned = list(block.operations)[-1].operation
    inputs = [argument.type for argument in block.arguments]
    results = [value.type for value in returned.operands]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


@dataclass
class _Types:
    """Makes types with layouts, each once: layers repeat, and so do their layouts."""

    known: dict[tuple[Any, LinearLayout | RotatingLayout], Any] = field(
        default_factory=dict[tuple[Any, LinearLayout | RotatingLayout], Any]
    )

    def of(self, type_: Any, layout: LinearLayout | RotatingLayout) -> Any:
        """Return a tensor type with a layout instead of what it has."""
        key = (type_, layout)
        if key not in self.known:
            self.known[key] = with_layout(type_, layout)
        return self.known[key]


@dataclass
class _Writer:
    """Writes one function; `placed` are values by name as they lie on the cores."""

    read: ReadModule
    plan: ModulePlan
    types: _Types = field(default_factory=_Types)
    values: dict[str, Any] = field(init=False)
    placed: dict[str, Any] = field(default_factory=dict[str, Any])
    makers: LayoutOperators = field(init=False)

    def __post_init__(self) -> None:
        self.makers = LayoutOperators(self.plan.graph)
        self.values = {}
        for value, name in self.read.names.items():
            self.values.setdefault(name, value)

    def residents(self) -> None:
        """Write where inputs, weights and constants rest."""
        for layout in (*self.plan.input_layouts, *self.plan.weight_layouts):
            if layout.value not in self.values:
                self._repeated_constant(layout)
                continue
            source = self.values[layout.value]
            if not isinstance(source.owner, ir.Block):
                # A constant: its place is said behind it.
                point = ir.InsertionPoint.after(source.owner.operation)
                with point:
                    self._resident(layout, source)
            else:
                self._resident(layout, source)

    def _resident(self, layout: ValueLayout, source: Any) -> None:
        spec = self.makers.of(layout)
        name = layout.value if spec is None else spec.operands[layout.operand].name
        made = layout_value(spec, layout)
        seen = source if name == layout.value else self._reshaped(self.values[name], source)
        placed = operation("rtensor.resident", [seen], [self.types.of(seen.type, made)]).results[0]
        self.placed[name] = placed
        if seen == source:
            source.replace_all_uses_except(placed, [placed.owner.operation])
            self.values = {key: placed if value == source else value for key, value in self.values.items()}

    def _repeated_constant(self, layout: ValueLayout) -> None:
        """Write where the element rests that views repeat where a constant is all over: it is no value of its own."""
        array = self.read.constants[layout.value]
        kind = ir.Type.parse(layout.dtype)
        attribute = ir.DenseElementsAttr.get_splat(
            ir.RankedTensorType.get(list(array.shape), kind),
            constant_attr(repr(array.reshape(-1)[0].item()), kind),
        )
        source = operation("arith.constant", [], [attribute.type], value=attribute).results[0]
        made = layout_value(None, layout)
        name = ir.StringAttr.get(layout.value)
        operation("rtensor.resident", [source], [self.types.of(source.type, made)], **{NAME: name})

    def _reshaped(self, view: Any, source: Any) -> Any:
        """Return a copy of a reshaped view of a value, at the current insertion point."""
        if view == source:
            return source
        op = view.owner.operation
        assert op.name in VIEWS
        before = self._reshaped(op.operands[0], source)
        copied = op.clone().operation
        copied.operands[0] = before
        return copied.results[0]

    def operator(self, op: Any, spec: OperatorSpec, scheduled: ScheduledOperator) -> None:
        """Write the program of one operator in front of the planned operation, which is erased."""
        sources = [self._source(spec, number) for number in range(len(spec.operands))]
        output = operand_layout(
            spec, scheduled.active.plan, len(spec.operands), scheduled.output_layout.scatter
        )
        result_type = self.types.of(_tensor_type(spec.output.shape, spec.output.dtype), output)
        made = operation(
            "rtensor.operator", [], [result_type], regions=1,
            op_name=ir.StringAttr.get(spec.name), kind=ir.StringAttr.get(spec.kind),
        )  # fmt: skip
        if FETCH in op.attributes:
            made.attributes[FETCH] = op.attributes[FETCH]
        block = made.regions[0].blocks.append()
        with ir.InsertionPoint(block):
            value = _OperatorWriter(spec, scheduled, output, self.types).write(sources)
            operation("rtensor.yield", [value], [])
        old, new = op.results[0], made.results[0]
        old.replace_all_uses_with(new)
        self.values[spec.output.name] = self.placed[spec.output.name] = new
        op.erase()

    def _source(self, spec: OperatorSpec, number: int) -> Any:
        """Return the value that an operand is read from: placed if it is somewhere, else a view; padded if need be."""
        operand = spec.operands[number]
        value = self.placed.get(operand.name, self.values[operand.name])
        view = padded_view(spec, operand)
        return (
            value if view.is_whole and not operand.pad_value else _pad(value, operand.pad_value or "0", view)
        )


def _pad(value: Any, text: str, view: Any) -> Any:
    """Return a padded view of a tensor."""
    shape = [low + int(n) + high for low, n, high in zip(view.low, value.type.shape, view.high, strict=True)]
    kind = value.type.element_type
    result = ir.RankedTensorType.get(shape, kind)
    op = operation(
        "tensor.pad", [value], [result], regions=1,
        static_low=ir.DenseI64ArrayAttr.get(list(view.low)),
        static_high=ir.DenseI64ArrayAttr.get(list(view.high)),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, 0, 0]),
    )  # fmt: skip
    index = ir.IndexType.get()
    block = op.regions[0].blocks.append(*[index] * len(shape), arg_locs=[ir.Location.current] * len(shape))
    with ir.InsertionPoint(block):
        constant = operation("arith.constant", [], [kind], value=constant_attr(text, kind)).results[0]
        operation("tensor.yield", [constant], [])
    return op.results[0]


@dataclass
class _OperatorWriter:
    """Writes the statements of one operator at the current insertion point."""

    spec: OperatorSpec
    scheduled: ScheduledOperator
    output: RotatingLayout
    types: _Types

    @property
    def plan(self) -> OperatorPlan:
        """Return the operator's plan."""
        return self.scheduled.active.plan

    def write(self, sources: list[Any]) -> Any:
        """Return the operator's result; `sources` are the values its operands are read from."""
        spec, body = self.spec, self.scheduled.body
        operands = self._arrivals(sources)
        inputs = dict(enumerate(operands[: len(spec.inputs)]))
        accumulators = self.types.of(
            _tensor_type(spec.output.shape, spec.acc_dtype), accumulator_layout(spec, self.plan)
        )
        if any(isinstance(each, Fill) for each in body):
            combine = ir.StringAttr.get(spec.combine)
            accumulator = operation("rtensor.fill", [], [accumulators], combine=combine).results[0]
        else:
            accumulator = operation("rtensor.allocate", [], [accumulators]).results[0]
        if self.plan.loop_order:
            accumulator = self._loop(inputs, accumulator)
        else:
            accumulator = self._sub_task(inputs, accumulator, ())
        self._home(inputs)
        value = accumulator
        if any(isinstance(each, Reduce) for each in body):
            value = operation("rtensor.reduce", [value], [self.types.of(value.type, self.output)]).results[0]
        if any(isinstance(each, Epilogue) for each in body):
            value = self._epilogue(value, operands[len(spec.inputs) :])
        return value

    def _arrivals(self, sources: list[Any]) -> list[Any]:
        """Return every operand as the operator reads it."""
        operands: list[Any] = []
        for arrival, source in zip(
            sorted(self.scheduled.arrivals, key=lambda each: each.operand), sources, strict=True
        ):
            layout = operand_layout(self.spec, self.plan, arrival.operand)
            name = "rtensor.cast" if arrival.kind == "in_place" else f"rtensor.{arrival.kind}"
            operands.append(operation(name, [source], [self.types.of(source.type, layout)]).results[0])
        return operands

    def _loop(self, inputs: dict[int, Any], accumulator: Any) -> Any:
        """Write the loop over the sub-tasks; what rotates is carried, and stands for itself in `inputs` afterwards."""
        plan = self.plan
        rotating = [number for number in inputs if max(plan.ft[number]) > 1]
        initial = [*(inputs[number] for number in rotating), accumulator]
        index = ir.IndexType.get()
        bounds = [_index(value) for value in (0, plan.n_sub_tasks, 1)]
        types = [value.type for value in initial]
        loop = operation("scf.for", [*bounds, *initial], types, regions=1)
        block = loop.regions[0].blocks.append(
            index, *types, arg_locs=[ir.Location.current] * (len(types) + 1)
        )
        time, *carried, start = block.arguments
        with ir.InsertionPoint(block):
            grid = grid_attr(self.output.grid)
            positions = operation(
                "rtensor.position", [time], [index] * len(plan.loop_order), grid=grid
            ).results
            by_axis = dict(zip(plan.loop_order, positions, strict=True))
            here = dict(inputs)
            for number, value in zip(rotating, carried, strict=True):
                here[number] = self._shifted(value, number, by_axis)
            summed = self._shifted(start, len(self.spec.inputs), by_axis)
            made = self._sub_task(here, summed, tuple(positions))
            operation("scf.yield", [*(here[number] for number in rotating), made], [])
        inputs.update(zip(rotating, loop.results, strict=False))
        return loop.results[len(rotating)]

    def _shifted(self, value: Any, number: int, positions: dict[int, Any]) -> Any:
        """Return a tensor moved to the loop's positions along every axis it rotates along."""
        for axis in self.plan.loop_order:
            if self.plan.ft[number][axis] > 1:
                value = _shift(value, positions[axis], axis)
        return value

    def _sub_task(self, inputs: dict[int, Any], accumulator: Any, positions: tuple[Any, ...]) -> Any:
        """Return the accumulators after the sub-task at positions."""
        op = operation("rtensor.sub_task", [accumulator, *positions], [accumulator.type], regions=1)
        with ir.InsertionPoint(op.regions[0].blocks.append()):
            dims = [padded_view(self.spec, operand).dims for operand in self.spec.inputs]
            value = write_root(self.spec, [inputs[number] for number in sorted(inputs)], dims, accumulator)
            operation("rtensor.yield", [value], [])
        return op.results[0]

    def _home(self, inputs: dict[int, Any]) -> None:
        """Write the way home of weights that rotated where they rest."""
        body = self.scheduled.body
        last = max((i for i, each in enumerate(body) if isinstance(each, SubTask)), default=0)
        zero: Any = None
        for each in body[last + 1 :]:
            if isinstance(each, Shift):
                zero = zero or _index(0)
                for number in each.operands:
                    inputs[number] = _shift(inputs[number], zero, each.axis)
        for arrival in self.scheduled.arrivals:
            number = arrival.operand
            if number < len(self.spec.inputs) and arrival.is_resident and max(self.plan.ft[number]) > 1:
                operation("rtensor.rest", [inputs[number]], [])

    def _epilogue(self, accumulated: Any, inputs: Iterable[Any]) -> Any:
        """Return the result that the epilogue makes of what is accumulated."""
        spec = self.spec
        type_ = self.types.of(_tensor_type(spec.output.shape, spec.output.dtype), self.output)
        memory = operation("rtensor.allocate", [], [type_]).results[0]
        op = operation("rtensor.sub_task", [memory], [type_], regions=1)
        with ir.InsertionPoint(op.regions[0].blocks.append()):
            dims = [padded_view(spec, operand).dims for operand in spec.epilogue_inputs]
            value = write_epilogue(spec, accumulated, list(zip(inputs, dims, strict=True)), memory)
            operation("rtensor.yield", [value], [])
        return op.results[0]


def layout_value(spec: OperatorSpec | None, layout: ValueLayout) -> LinearLayout | RotatingLayout:
    """Return the dialect's value of the layout in which a value rests; `spec` is the operator that it names."""
    if spec is None or layout.plan is None:
        return LinearLayout(layout.n_cores)
    return rest_layout(spec, layout.plan, layout.operand, layout.scatter)


def operation(
    name: str, operands: list[Any], results: list[Any], *, regions: int = 0, **attributes: Any
) -> Any:
    """Return a new operation at the current location and insertion point."""
    return ir.Operation.create(
        name, results=results, operands=operands, attributes=attributes, regions=regions
    )


def _shift(value: Any, position: Any, axis: int) -> Any:
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), axis)
    return operation("rtensor.shift", [value, position], [value.type], axis=number).results[0]


def _index(value: int) -> Any:
    index = ir.IndexType.get()
    return operation("arith.constant", [], [index], value=ir.IntegerAttr.get(index, value)).results[0]


def _tensor_type(shape: tuple[int, ...], dtype: str) -> Any:
    return ir.RankedTensorType.get(list(shape), ir.Type.parse(dtype))
