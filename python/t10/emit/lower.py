"""A planned model turned into a device program, operator by operator."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from t10.core import geometry
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.movement import partition_scatter
from t10.core.plan import OperatorPlan
from t10.core.schedule import Arrival, Buffer, ModulePlan, ScheduledOperator
from t10.emit.program import (
    ComputeSet,
    Copy,
    DeviceProgram,
    Exchange,
    Execute,
    OperatorProgram,
    Repeat,
    Step,
    Variable,
)

SHIFT_BUFFER = "shift"


def lower(plan: ModulePlan, n_tiles: int) -> DeviceProgram:
    """Return the device program of a planned model on a chip of `n_tiles` tiles."""
    builder = _Builder(plan)
    if SHIFT_BUFFER in builder.buffers:
        builder.flat_variable(SHIFT_BUFFER, "ui8", n_tiles)
    for layout in plan.weight_layouts:
        builder.flat_variable(f"idle:{layout.value}", layout.dtype, n_tiles)
    for layout in plan.input_layouts:
        builder.flat_variable(f"input:{layout.value}", layout.dtype, n_tiles)
    specs = {spec.name: spec for spec in plan.graph.operators}
    programs = [builder.operator(specs[scheduled.name], scheduled) for scheduled in plan.operators]
    return DeviceProgram(
        chip=plan.chip,
        n_tiles=n_tiles,
        variables=tuple(builder.variables.values()),
        compute_sets=tuple(builder.compute_sets),
        copies=tuple(builder.copies),
        operators=tuple(programs),
    )


@dataclass
class _Builder:
    plan: ModulePlan
    variables: dict[str, Variable] = field(default_factory=dict[str, Variable])
    compute_sets: list[ComputeSet] = field(default_factory=list[ComputeSet])
    copies: list[Copy] = field(default_factory=list[Copy])
    buffers: dict[str, Buffer] = field(init=False)

    def __post_init__(self) -> None:
        self.buffers = {buffer.name: buffer for buffer in self.plan.buffers}

    def flat_variable(self, name: str, dtype: str, n_tiles: int) -> None:
        """Add a variable as long as its buffer."""
        buffer = self.buffers[name]
        shape = (buffer.size_bytes // size_bytes(dtype),)
        self.variables[name] = Variable(name, dtype, shape, n_tiles, buffer.address_bytes)

    def operator(self, spec: OperatorSpec, scheduled: ScheduledOperator) -> OperatorProgram:
        """Add what one operator needs and return its steps."""
        plan = scheduled.active.plan
        fields = tuple(self._operand(spec, plan, arrival) for arrival in scheduled.arrivals)
        accumulator, result = self._output(spec, scheduled)
        steps: list[Step] = [step for arrival in scheduled.arrivals for step in self._arrive(spec, arrival)]
        if spec.combine != "none":
            fill = ComputeSet(f"fill:{spec.name}", spec.name, "fill", plan.n_cores, (), (accumulator,))
            steps.append(self._execute(fill))
        steps.extend(self._nest(spec, plan, fields[: len(spec.inputs)], accumulator))
        steps.extend(self._home(spec, plan, scheduled.arrivals, fields))
        steps.extend(self._reduce(spec, plan, accumulator))
        if result != accumulator:
            extra = fields[len(spec.inputs) :]
            behind = ComputeSet(
                f"epilogue:{spec.name}",
                spec.name,
                "epilogue",
                plan.n_cores,
                (),
                (accumulator, *extra, result),
            )
            steps.append(self._execute(behind))
        return OperatorProgram(spec.name, tuple(steps))

    def _execute(self, compute_set: ComputeSet) -> Execute:
        if compute_set not in self.compute_sets[-4:]:
            self.compute_sets.append(compute_set)
        return Execute(compute_set.name)

    def _exchange(self, copy: Copy) -> Exchange:
        self.copies.append(copy)
        return Exchange(copy.name)

    def _operand(self, spec: OperatorSpec, plan: OperatorPlan, arrival: Arrival) -> str:
        """Add the variable an operand lies in and return its name."""
        name = arrival.buffer
        if name not in self.variables or arrival.kind == "in_place":
            operand = spec.operands[arrival.operand]
            slot = min(arrival.operand, len(spec.inputs))
            shape = geometry.partition_shape(operand, geometry.window_lengths(plan, slot))
            address = self.buffers[name].address_bytes
            self.variables[name] = Variable(name, operand.dtype, shape, plan.n_cores, address)
        return name

    def _output(self, spec: OperatorSpec, scheduled: ScheduledOperator) -> tuple[str, str]:
        """Add the accumulator and the result (one variable where nothing comes after) and return their names."""
        plan = scheduled.active.plan
        shape = geometry.partition_shape(spec.output, geometry.window_lengths(plan, len(spec.inputs)))
        result = f"value:{spec.output.name}"
        accumulator = f"accumulator:{spec.name}"
        if accumulator not in self.buffers:
            accumulator = result
        buffer = self.buffers[accumulator]
        self.variables[accumulator] = Variable(
            accumulator, spec.acc_dtype, shape, plan.n_cores, buffer.address_bytes
        )
        if result != accumulator:
            scatter = scheduled.output_layout.scatter
            chunk = (partition_scatter(prod(shape), scatter),) if scatter > 1 else shape
            address = self.buffers[result].address_bytes
            self.variables[result] = Variable(result, spec.output.dtype, chunk, plan.n_cores, address)
        return accumulator, result

    def _arrive(self, spec: OperatorSpec, arrival: Arrival) -> list[Step]:
        if arrival.kind == "in_place":
            return []
        operand = spec.operands[arrival.operand]
        weights = {layout.value for layout in self.plan.weight_layouts}
        inputs = {layout.value for layout in self.plan.input_layouts}
        sources = tuple(
            f"idle:{value}" if value in weights else f"input:{value}" if value in inputs else f"value:{value}"
            for value in self.plan.graph.sources_of(operand.name)
        )
        name = f"{arrival.kind}:{spec.name}:{arrival.operand}"
        return [self._exchange(Copy(name, arrival.kind, sources, arrival.buffer, arrival.received_bytes))]

    def _nest(
        self, spec: OperatorSpec, plan: OperatorPlan, inputs: tuple[str, ...], accumulator: str
    ) -> list[Step]:
        """Return the compute-shift nest: sub-tasks with a shift between each two, inner loops going to and fro."""
        box = tuple(length // steps for length, steps in zip(plan.lengths, plan.steps, strict=True))
        task = ComputeSet(
            f"sub_task:{spec.name}", spec.name, "sub_task", plan.n_cores, box, (*inputs, accumulator)
        )
        execute = self._execute(task)
        ways = dict.fromkeys(plan.loop_order, 1)
        return self._sweep(spec, plan, (*inputs, accumulator), plan.loop_order, ways, execute)

    def _sweep(
        self,
        spec: OperatorSpec,
        plan: OperatorPlan,
        carried: tuple[str, ...],
        axes: tuple[int, ...],
        ways: dict[int, int],
        execute: Execute,
    ) -> list[Step]:
        """Return one sweep along `axes[0]` with full sweeps of the inner axes; turns `ways` round for the next one.

        Two inner sweeps leave every inner way as it was, so pairs of them can be repeated.
        """
        if not axes:
            return [execute]
        axis, inner = axes[0], axes[1:]
        advance = self._shift(spec, plan, carried, axis, ways[axis])
        ways[axis] = -ways[axis]
        n_steps = plan.steps[axis]
        if not inner:
            return [Repeat(n_steps - 1, (execute, *advance)), execute]
        there = self._sweep(spec, plan, carried, inner, ways, execute)
        back = self._sweep(spec, plan, carried, inner, ways, execute)
        if n_steps % 2:
            self._sweep(spec, plan, carried, inner, ways, execute)
            return [Repeat(n_steps // 2, (*there, *advance, *back, *advance)), *there]
        last = [*there, *advance, *back]
        if n_steps == 2:
            return last
        return [Repeat(n_steps // 2 - 1, (*there, *advance, *back, *advance)), *last]

    def _shift(
        self, spec: OperatorSpec, plan: OperatorPlan, carried: tuple[str, ...], axis: int, direction: int
    ) -> list[Step]:
        """Return the shifts of every operand that rotates along an axis, added once per direction."""
        steps: list[Step] = []
        for slot, (operand, variable) in enumerate(zip(spec.rotatable, carried, strict=True)):
            if plan.ft[slot][axis] == 1:
                continue
            way = "forward" if direction > 0 else "backward"
            name = f"shift:{spec.name}:{slot}:{spec.axes[axis].name}:{way}"
            steps.append(Exchange(name))
            if all(copy.name != name for copy in self.copies[-32:]):
                window = geometry.window_lengths(plan, slot)
                moved = tuple(plan.rp[axis] if a == axis else n for a, n in enumerate(window))
                dtype = spec.acc_dtype if slot == len(spec.inputs) else operand.dtype
                n_bytes = prod(geometry.partition_shape(operand, moved)) * size_bytes(dtype)
                rounds = self._rounds(n_bytes)
                self.copies.append(
                    Copy(name, "shift", (variable,), variable, n_bytes, rounds, axis, direction)
                )
        return steps

    def _rounds(self, n_bytes: int) -> int:
        buffer = self.buffers.get(SHIFT_BUFFER)
        return -(-n_bytes // buffer.size_bytes) if buffer is not None and buffer.size_bytes else 1

    def _home(
        self, spec: OperatorSpec, plan: OperatorPlan, arrivals: tuple[Arrival, ...], fields: tuple[str, ...]
    ) -> list[Step]:
        """Return the shifts that bring weights that rotate in their idle place back to where they started."""
        steps: list[Step] = []
        for axis, position in enumerate(geometry.final_positions(plan)):
            for arrival in arrivals:
                slot = arrival.operand
                if position == 0 or slot >= len(spec.inputs) or plan.ft[slot][axis] == 1:
                    continue
                if arrival.kind == "in_place" and spec.inputs[slot].role == "weight":
                    carried = (*fields[: len(spec.inputs)], "")
                    wanted = f"shift:{spec.name}:{slot}:{spec.axes[axis].name}:forward"
                    steps.extend(
                        s for s in self._shift(spec, plan, carried, axis, 1) if s == Exchange(wanted)
                    )
        return steps

    def _reduce(self, spec: OperatorSpec, plan: OperatorPlan, accumulator: str) -> list[Step]:
        replicas = geometry.n_replicas(spec, plan, len(spec.inputs))
        if replicas == 1:
            return []
        n_slots = prod(self.variables[accumulator].shape)
        chunk_bytes = partition_scatter(n_slots, replicas) * size_bytes(spec.acc_dtype)
        rounds = self._rounds(chunk_bytes * (replicas - 1))
        copy = Copy(f"reduce:{spec.name}", "reduce", (accumulator,), SHIFT_BUFFER, chunk_bytes, rounds)
        fields = (SHIFT_BUFFER, accumulator)
        combine = ComputeSet(f"combine:{spec.name}", spec.name, "combine", plan.n_cores, (), fields)
        return [Repeat(replicas - 1, (self._exchange(copy), self._execute(combine)))]
