"""A planned model turned into a device program, operator by operator."""

from __future__ import annotations

from dataclasses import dataclass, field

from t10.core import geometry
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.schedule import Arrival, Buffer, ModulePlan, ScheduledOperator
from t10.cost import CostModel
from t10.cost.operator import combine_cycles, output_chunk, rotating_dtype, shift_elements, sub_task_box
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
    VariableRole,
    VertexKind,
)

SHIFT_BUFFER = "shift"


def lower(plan: ModulePlan, n_tiles: int, cost: CostModel) -> DeviceProgram:
    """Return the device program of a planned model on a chip of `n_tiles` tiles; cycles are those of `cost`."""
    builder = _Builder(plan, cost)
    builder.flat_variable(SHIFT_BUFFER, "buffer", "ui8", n_tiles)
    for layout in plan.weight_layouts:
        builder.flat_variable(f"idle:{layout.value}", "weight", layout.dtype, layout.n_cores)
    for layout in plan.input_layouts:
        builder.flat_variable(f"input:{layout.value}", "input", layout.dtype, layout.n_cores)
    specs = {spec.name: spec for spec in plan.graph.operators}
    programs = [builder.operator(specs[scheduled.name], scheduled) for scheduled in plan.operators]
    return DeviceProgram(
        chip=plan.chip,
        n_tiles=n_tiles,
        variables=tuple(builder.variables.values()),
        compute_sets=tuple(builder.compute_sets),
        copies=tuple(builder.copies.values()),
        operators=tuple(programs),
    )


@dataclass
class _Builder:
    plan: ModulePlan
    cost: CostModel
    variables: dict[str, Variable] = field(default_factory=dict[str, Variable])
    compute_sets: list[ComputeSet] = field(default_factory=list[ComputeSet])
    copies: dict[str, Copy] = field(default_factory=dict[str, Copy])
    buffers: dict[str, Buffer] = field(init=False)
    results: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.buffers = {buffer.name: buffer for buffer in self.plan.buffers}
        graph = self.plan.graph
        self.results = frozenset(name for out in graph.outputs for name in graph.sources_of(out.value))

    def flat_variable(self, name: str, role: VariableRole, dtype: str, n_tiles: int) -> None:
        """Add a variable as long as its buffer, if there is one."""
        buffer = self.buffers.get(name)
        if buffer is not None and buffer.size_bytes:
            shape = (buffer.size_bytes // size_bytes(dtype),)
            self.variables[name] = Variable(name, role, dtype, shape, n_tiles, buffer.address_bytes)

    def operator(self, spec: OperatorSpec, scheduled: ScheduledOperator) -> OperatorProgram:
        """Add what one operator needs and return its steps."""
        plan = scheduled.active.plan
        fields = tuple(self._operand(spec, plan, arrival) for arrival in scheduled.arrivals)
        accumulator, result = self._output(spec, scheduled)
        inputs = fields[: len(spec.inputs)]
        steps: list[Step] = [step for arrival in scheduled.arrivals for step in self._arrive(spec, arrival)]
        if spec.combine != "none":
            steps.append(self._execute(spec, plan, "fill", (accumulator,)))
        steps.extend(self._nest(spec, plan, (*inputs, accumulator)))
        steps.extend(self._home(spec, plan, scheduled.arrivals, inputs))
        steps.extend(self._reduce(spec, plan, accumulator))
        if spec.epilogue is not None or result != accumulator:
            extra = fields[len(spec.inputs) :]
            steps.append(self._execute(spec, plan, "epilogue", (accumulator, *extra, result)))
        return OperatorProgram(spec.name, tuple(steps))

    def _execute(
        self, spec: OperatorSpec, plan: OperatorPlan, kind: VertexKind, fields: tuple[str, ...]
    ) -> Execute:
        """Add a compute set and return its execution."""
        box = sub_task_box(plan) if kind == "sub_task" else ()
        cycles = 0
        if kind == "sub_task":
            cycles = self.cost.sub_task_cycles(spec, box)
        elif kind == "epilogue":
            cycles = self.cost.epilogue_cycles(spec, output_chunk(spec, plan)[1])
        name = f"{kind}:{spec.name}"
        self.compute_sets.append(ComputeSet(name, spec.name, kind, plan.n_cores, box, fields, cycles))
        return Execute(name)

    def _operand(self, spec: OperatorSpec, plan: OperatorPlan, arrival: Arrival) -> str:
        """Add the variable an operand lies in, unless it is somebody's already, and return its name."""
        name = arrival.buffer
        if name in self.variables and not name.startswith(("idle:", "input:")):
            return name
        operand = spec.operands[arrival.operand]
        slot = min(arrival.operand, len(spec.inputs))
        shape = geometry.partition_shape(operand, geometry.window_lengths(plan, slot))
        role: VariableRole = "weight" if operand.role == "weight" else "activation"
        if name.startswith("input:"):
            role = "input"
        address = self.buffers[name].address_bytes
        self.variables[name] = Variable(name, role, operand.dtype, shape, plan.n_cores, address)
        return name

    def _output(self, spec: OperatorSpec, scheduled: ScheduledOperator) -> tuple[str, str]:
        """Add the accumulator and the result (one variable where nothing comes after) and return their names."""
        plan = scheduled.active.plan
        shape = geometry.partition_shape(spec.output, geometry.window_lengths(plan, len(spec.inputs)))
        result = f"value:{spec.output.name}"
        role: VariableRole = "output" if spec.output.name in self.results else "activation"
        accumulator = f"accumulator:{spec.name}"
        if accumulator not in self.buffers:
            accumulator = result
        address = self.buffers[accumulator].address_bytes
        own: VariableRole = role if accumulator == result else "partial"
        self.variables[accumulator] = Variable(accumulator, own, spec.acc_dtype, shape, plan.n_cores, address)
        if result != accumulator:
            chunk = (output_chunk(spec, plan)[1],) if scheduled.output_layout.scatter > 1 else shape
            address = self.buffers[result].address_bytes
            self.variables[result] = Variable(result, role, spec.output.dtype, chunk, plan.n_cores, address)
        return accumulator, result

    def _arrive(self, spec: OperatorSpec, arrival: Arrival) -> list[Step]:
        """Return the exchange that brings an operand to its cores, none where it lies there."""
        if arrival.kind == "in_place":
            return []
        weights = {layout.value for layout in self.plan.weight_layouts}
        inputs = {layout.value for layout in self.plan.input_layouts}
        sources = tuple(
            f"idle:{value}" if value in weights else f"input:{value}" if value in inputs else f"value:{value}"
            for value in self.plan.graph.sources_of(spec.operands[arrival.operand].name)
        )
        name = f"{arrival.kind}:{spec.name}:{arrival.operand}"
        copy = Copy(
            name, spec.name, arrival.kind, sources, arrival.buffer, arrival.received_bytes, arrival.cycles
        )
        self.copies[name] = copy
        return [Exchange(name)]

    def _nest(self, spec: OperatorSpec, plan: OperatorPlan, carried: tuple[str, ...]) -> list[Step]:
        """Return the compute-shift nest: sub-tasks with a shift between each two, inner loops going to and fro."""
        execute = self._execute(spec, plan, "sub_task", carried)
        ways = dict.fromkeys(plan.loop_order, 1)
        return self._sweep(spec, plan, carried, plan.loop_order, ways, execute)

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
            return [*_repeated(n_steps - 1, execute, advance), execute]
        there = self._sweep(spec, plan, carried, inner, ways, execute)
        back = self._sweep(spec, plan, carried, inner, ways, execute)
        if n_steps % 2:
            self._sweep(spec, plan, carried, inner, ways, execute)
            return [*_repeated(n_steps // 2, *there, advance, *back, advance), *there]
        return [*_repeated(n_steps // 2 - 1, *there, advance, *back, advance), *there, advance, *back]

    def _shift(
        self,
        spec: OperatorSpec,
        plan: OperatorPlan,
        carried: tuple[str, ...],
        axis: int,
        direction: int,
        suffix: str = "",
    ) -> Exchange:
        """Return one advance along an axis of all `carried` operands that rotate along it ("" stands for none)."""
        way = "forward" if direction > 0 else "backward"
        name = f"shift:{spec.name}:{spec.axes[axis].name}:{way}{suffix}"
        moving = [slot for slot, variable in enumerate(carried) if variable and plan.ft[slot][axis] > 1]
        n_bytes = sum(
            shift_elements(spec, plan, slot, axis) * size_bytes(rotating_dtype(spec, slot)) for slot in moving
        )
        sources = tuple(carried[slot] for slot in moving)
        cycles, rounds = self.cost.shift_cycles(n_bytes), self._rounds(n_bytes)
        copy = Copy(name, spec.name, "shift", sources, SHIFT_BUFFER, n_bytes, cycles, rounds, axis, direction)
        self.copies[name] = copy
        return Exchange(name)

    def _rounds(self, n_bytes: int) -> int:
        """Return how often the shift buffer is filled to pass bytes through it."""
        buffer = self.buffers.get(SHIFT_BUFFER)
        return max(1, -(-n_bytes // buffer.size_bytes)) if buffer is not None and buffer.size_bytes else 1

    def _home(
        self, spec: OperatorSpec, plan: OperatorPlan, arrivals: tuple[Arrival, ...], inputs: tuple[str, ...]
    ) -> list[Step]:
        """Return the shifts that bring weights that rotate in their idle place back to where they started."""
        resident = {a.operand for a in arrivals if a.kind == "in_place" and a.buffer.startswith("idle:")}
        final = geometry.final_positions(plan)
        steps: list[Step] = []
        for axis in plan.loop_order:
            moving = [slot for slot in resident if slot < len(inputs) and plan.ft[slot][axis] > 1]
            if final[axis] and moving:
                carried = tuple(name if slot in moving else "" for slot, name in enumerate(inputs))
                steps.append(self._shift(spec, plan, carried, axis, 1, ":home"))
        return steps

    def _reduce(self, spec: OperatorSpec, plan: OperatorPlan, accumulator: str) -> list[Step]:
        """Return how partial sums are combined, nothing where every output element is on one core."""
        n_members, n_slots = output_chunk(spec, plan)
        if n_members == 1:
            return []
        chunk_bytes = n_slots * size_bytes(spec.acc_dtype)
        n_bytes = chunk_bytes * (n_members - 1)
        cycles = combine_cycles(self.cost, spec, plan)
        name = f"reduce:{spec.name}"
        rounds = self._rounds(n_bytes)
        self.copies[name] = Copy(
            name, spec.name, "reduce", (accumulator,), SHIFT_BUFFER, n_bytes, cycles, rounds
        )
        return [Exchange(name), self._execute(spec, plan, "combine", (SHIFT_BUFFER, accumulator))]


def _repeated(count: int, *body: Step) -> tuple[Step, ...]:
    """Return `body` run `count` times; once or never needs no loop."""
    return (Repeat(count, body),) if count > 1 else body * count
