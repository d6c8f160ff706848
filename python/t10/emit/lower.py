"""A planned model turned into a device program, operator by operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

import numpy as np

from t10.chip import ChipSpec
from t10.core import geometry
from t10.core.chunks import window_chunk
from t10.core.costs import computed
from t10.core.device import DeviceProgram, Step, VariableRole
from t10.core.expression import OperatorSpec
from t10.core.first_partial import split_arrivals
from t10.core.graph import TensorValue
from t10.core.placed_costs import placed_costs, reads_left_over
from t10.core.plan import OperatorPlan
from t10.core.program import Arrive, Epilogue, Fill, Reduce, Shift, SubTask
from t10.core.schedule import Arrival, Home, ModulePlan, ScheduledOperator, ValueLayout
from t10.core.sub_task_nest import initial_cores, whole_axes
from t10.cost import CostModel
from t10.emit.arrive import Homes, Host, HostValue
from t10.emit.builder import Builder
from t10.emit.combine import combine_partials
from t10.emit.epilogue import epilogue_work
from t10.emit.kept import Kept
from t10.emit.link import LoweredOperator, Parts, link
from t10.emit.lowering_context import OperatorContext, rtensor_comment
from t10.emit.nest import fill, sub_task
from t10.emit.shifts import shift
from t10.emit.target import check_target
from t10.errors import T10Error, naming


def lower(plan: ModulePlan, chip: ChipSpec, cost: CostModel) -> DeviceProgram:
    """Return the device program of a planned model on a chip; cycles are those of `cost`.

    Raises `UnsupportedOpError` for what no codelet computes, naming the operator, and `InputError` for a chip that the
    codelets cannot run on.
    """
    parts = lowered_parts(plan, chip, cost)
    return link(parts, chip, {b.name: b.address_bytes for b in plan.buffers}, plan.reserved_bytes)


def lowered_parts(
    plan: ModulePlan, chip: ChipSpec, cost: CostModel, kept: Kept | None = None, *, is_placed: bool = True
) -> Parts:
    """Return a planned model lowered for a chip as far as that does not depend on where its buffers lie.

    Only cycles do: with `is_placed` they are those of operands where they lie. What `kept` holds of lowering another
    plan of the model is not made again. Raises what `lower` raises.
    """
    check_target(chip)
    sizes = {buffer.name: buffer.size_bytes for buffer in plan.buffers}
    kept = kept or Kept()
    builder = Builder(chip.n_cores, sizes, kept=kept)
    costs = (
        placed_costs(cost, plan, chip.tile_memory)
        if is_placed
        else dict.fromkeys((spec.name for spec in plan.graph.operators), cost)
    )
    lowering = _Lowering(plan, costs, builder, Homes(plan.graph, kept))
    weights = lowering.idle(plan.graph.weights, plan.weight_layouts, "idle", "weight")
    inputs = lowering.idle(plan.graph.inputs, plan.input_layouts, "input", "input")
    specs = {spec.name: spec for spec in plan.graph.operators}
    programs = tuple(lowering.operator(specs[scheduled.name], scheduled) for scheduled in plan.operators)
    return Parts(plan.graph.name, builder, programs, Host(lowering.homes, weights, inputs))


@dataclass(slots=True)
class _Lowering:
    """What lowering one operator needs of the whole model."""

    plan: ModulePlan
    costs: Mapping[str, CostModel]
    builder: Builder
    homes: Homes
    results: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        graph = self.plan.graph
        self.results = frozenset(name for out in graph.outputs for name in graph.sources_of(out.value))

    def idle(
        self,
        values: tuple[TensorValue, ...],
        layouts: tuple[ValueLayout, ...],
        prefix: str,
        role: VariableRole,
    ) -> tuple[HostValue, ...]:
        """Add the variables in which values from outside lie before anything runs, and return which fills which."""
        layout_by_value = {layout.value: layout for layout in layouts}
        result: list[HostValue] = []
        for value in values:
            layout = layout_by_value.get(value.name)
            name = f"{prefix}:{value.name}"
            if layout is None or name not in self.builder.sizes:
                continue
            home = Home(layout, name)
            shape = (self.homes.n_slots(layout),)
            comment = f"{value.name}: {'x'.join(map(str, value.shape))} {value.dtype}, {layout.kind} layout"
            self.builder.variable(name, role, value.dtype, shape, layout.n_cores, comment)
            self.homes.by_value[value.name] = home
            result.append(HostValue(value, home, self._padding(layout)))
        return tuple(result)

    def _padding(self, layout: ValueLayout) -> str:
        """Return what slots outside a tensor hold in a layout, as a constant's spelling."""
        for spec in self.plan.graph.operators:
            if spec.name == layout.operator:
                return (*spec.operands, spec.output)[layout.operand].pad_value or "0"
        return "0"

    def operator(self, spec: OperatorSpec, scheduled: ScheduledOperator) -> LoweredOperator:
        """Add what one operator needs and return its steps."""
        with naming(spec.name):
            return LoweredOperator(spec.name, self._steps(spec, scheduled))

    def _steps(self, spec: OperatorSpec, scheduled: ScheduledOperator) -> tuple[tuple[Step, ...], ...]:
        plan = scheduled.active.plan
        arrivals = {arrival.operand: arrival for arrival in scheduled.arrivals}
        operands = [self._operand(spec, plan, arrivals[number]) for number in sorted(arrivals)]
        accumulator, result = self._output(spec, scheduled)
        run = computed(self.costs[spec.name], spec, plan)
        context = OperatorContext(
            spec,
            run,
            plan,
            tuple(operands[: len(spec.inputs)]),
            *split_arrivals(run, spec, operands),
            accumulator,
            result,
            ((0,) * len(spec.axes),) * len(spec.rotatable),
            whole_axes(spec, plan, has_zeros=not reads_left_over(spec, scheduled.arrivals)),
        )
        initial = initial_cores(spec, plan, scheduled.body, context.whole)
        made: list[tuple[Step, ...]] = []
        for number, statement in enumerate(scheduled.body):
            steps: list[Step] = []
            match statement:
                case Arrive(operand):
                    steps.append(self._arrive(context, arrivals[operand]))
                case Fill():
                    steps += fill(self.builder, self.costs[context.spec.name], context, initial[number])
                case SubTask(positions):
                    steps += sub_task(
                        self.builder, self.costs[context.spec.name], context, positions, initial[number]
                    )
                case Shift():
                    steps += shift(self.builder, self.costs[context.spec.name], context, statement)
                case Reduce(mode):
                    combining, pending = combine_partials(
                        self.builder, self.costs[context.spec.name], context, mode
                    )
                    steps += combining
                    context = replace(context, pending=pending)
                case Epilogue():
                    steps += self._epilogue(context)
                case _:
                    assert_never(statement)
            made.append(tuple(steps))
            context = context.after(statement)
        self._leave(context, scheduled)
        return tuple(made)

    def _operand(self, spec: OperatorSpec, plan: OperatorPlan, arrival: Arrival) -> str:
        """Add the variable an operand lies in, unless it is somebody's already, and return its name."""
        operand = spec.operands[arrival.operand]
        slot = min(arrival.operand, len(spec.inputs))
        shape = geometry.partition_shape(operand, geometry.window_lengths(plan, slot))
        role: VariableRole = "weight" if operand.role == "weight" else "activation"
        comment = rtensor_comment(operand, plan, slot)
        return self.builder.variable(arrival.buffer, role, operand.dtype, shape, plan.n_cores, comment)

    def _output(self, spec: OperatorSpec, scheduled: ScheduledOperator) -> tuple[str, str]:
        """Add the accumulator and the result (one variable where nothing comes after) and return their names."""
        plan = scheduled.active.plan
        slot = len(spec.inputs)
        shape = geometry.partition_shape(spec.output, geometry.window_lengths(plan, slot))
        comment = rtensor_comment(spec.output, plan, slot)
        result = f"value:{spec.output.name}"
        role: VariableRole = "output" if spec.output.name in self.results else "activation"
        accumulator = f"accumulator:{spec.name}"
        if accumulator not in self.builder.sizes:
            self.builder.variable(result, role, spec.acc_dtype, shape, plan.n_cores, comment)
            return result, result
        self.builder.variable(accumulator, "partial", spec.acc_dtype, shape, plan.n_cores, comment)
        if scheduled.output_layout.scatter > 1:
            n_slots = int(np.prod(shape, dtype=np.int64))
            shape = (window_chunk(n_slots, scheduled.output_layout.scatter),)
            comment += f", one of {scheduled.output_layout.scatter} chunks"
        self.builder.variable(result, role, spec.output.dtype, shape, plan.n_cores, comment)
        return accumulator, result

    def _arrive(self, context: OperatorContext, arrival: Arrival) -> Step:
        """Return the exchange that brings an operand to its cores."""
        spec = context.spec
        if arrival.kind == "in_place":
            name = spec.operands[arrival.operand].name
            raise T10Error(f"{name} arrives where it lies already", operator=spec.name)
        sources, made = self.homes.arrival(spec, context.plan, arrival.operand)
        what = f":{arrival.operand}"
        comment = f"{spec.operands[arrival.operand].name} to where {spec.name} reads it"
        return self.builder.exchange(
            spec.name, arrival.kind, what, sources, arrival.buffer, made, arrival.cycles, comment
        )

    def _epilogue(self, context: OperatorContext) -> list[Step]:
        """Return the executions of the epilogue."""
        return [
            self.builder.execute(context.spec.name, "epilogue", nest, work, cycles)
            for nest, work, cycles in epilogue_work(self.builder, self.costs[context.spec.name], context)
        ]

    def _leave(self, context: OperatorContext, scheduled: ScheduledOperator) -> None:
        """Record where the result lies from now on; forget values whose windows moved in place."""
        spec = context.spec
        self.homes.by_value[spec.output.name] = Home(scheduled.output_layout, context.result)
        for arrival in scheduled.arrivals:
            is_moved = arrival.operand < len(spec.inputs) and any(context.positions[arrival.operand])
            if arrival.kind == "in_place" and is_moved:
                self.homes.by_value.pop(spec.inputs[arrival.operand].name, None)
