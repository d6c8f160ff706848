"""One operator from the arrival of its operands to its result, phase by phase, on all cores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.core import geometry, movement
from t10.core.chunks import chunk_slots
from t10.core.dtypes import size_bytes
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.runs import epilogue_run
from t10.core.schedule import Arrival, Layout, ScheduledOperator
from t10.errors import SimTrap
from t10.sim.combine import neutral
from t10.sim.compute import Running, compute_sub_task
from t10.sim.epilogue import run_epilogue
from t10.sim.lifetimes import Lifetimes, check_taken_over
from t10.sim.memory import CoreMemory
from t10.sim.nest import nest_states
from t10.sim.partition import Partition
from t10.sim.prices import Prices
from t10.sim.product import factors_of
from t10.sim.reduce import all_reduce, reduce_scatter, reduction_groups
from t10.sim.relayout import Home, Mover
from t10.sim.result import PhaseKind, Timeline
from t10.sim.shift import shift
from t10.sim.traps import trap

StepDone = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Machine:
    """What operators run on: memories, data movement, the clock and what things cost."""

    memory: CoreMemory
    mover: Mover
    timeline: Timeline
    cost: Prices
    lifetimes: Lifetimes


def run_operator(
    machine: Machine, spec: OperatorSpec, scheduled: ScheduledOperator, step: int, step_done: StepDone
) -> Home:
    """Execute operator number `step` and return where its result lies. Raises `SimTrap` naming the operator."""
    try:
        return _run(machine, spec, scheduled, step, step_done)
    except SimTrap as error:
        if error.operator is None:
            error.operator = spec.name
        raise


def _run(
    machine: Machine, spec: OperatorSpec, scheduled: ScheduledOperator, step: int, step_done: StepDone
) -> Home:
    plan = scheduled.active.plan
    if plan.n_cores > machine.memory.n_cores:
        raise trap(f"the plan uses {plan.n_cores} cores of a chip with {machine.memory.n_cores}")
    operands = _arrive(machine, spec, plan, scheduled.arrivals)
    slot = len(spec.inputs)
    n_replicas = geometry.n_replicas(spec, plan, slot)
    result = Home(scheduled.output_layout, f"value:{spec.output.name}")
    taken = machine.lifetimes.enter(step, "nest")
    check_taken_over(spec, plan, scheduled.arrivals, "nest", n_replicas, taken)
    machine.memory.check_live(arrival.buffer for arrival in scheduled.arrivals)
    name = f"accumulator:{spec.name}"
    if n_replicas == 1 and spec.acc_dtype == spec.output.dtype and name not in machine.lifetimes.names:
        name = result.buffer
    accumulator = _accumulator(machine.memory, spec, plan, name)
    running = Running(spec, plan, operands[:slot], accumulator, factors_of(spec))
    _run_nest(machine, running, step_done)
    _shift_home(machine, running, scheduled.arrivals)
    machine.memory.mark_written(name, plan.n_cores, accumulator.slots.shape[1] * size_bytes(spec.acc_dtype))
    chunk_numbers = _combine(machine, running) if n_replicas > 1 else None
    taken = machine.lifetimes.enter(step, "finish")
    check_taken_over(spec, plan, scheduled.arrivals, "finish", n_replicas, taken)
    machine.memory.check_live((name, *(a.buffer for a in scheduled.arrivals if a.operand >= slot)))
    if spec.epilogue is not None or name != result.buffer:
        _finish(machine, running, operands[slot:], result, chunk_numbers)
    _forget_moved(machine, running, scheduled.arrivals)
    return result


def _arrive(
    machine: Machine, spec: OperatorSpec, plan: OperatorPlan, arrivals: tuple[Arrival, ...]
) -> tuple[Partition, ...]:
    """Bring every operand to its cores and return their partitions: inputs, then epilogue inputs."""
    by_operand = {arrival.operand: arrival for arrival in arrivals}
    partitions: list[Partition] = []
    n_inputs = len(spec.inputs)
    for number, operand in enumerate(spec.operands):
        arrival = by_operand.get(number)
        if arrival is None:
            raise trap(f"operand {operand.name} never arrives")
        wanted = Layout("operand", operand.name, plan.n_cores, operand.dtype, spec.name, number, plan)
        if arrival.kind == "in_place":
            machine.mover.check_in_place(operand.name, wanted, arrival.buffer)
        else:
            moved = machine.mover.fetch(operand.name, wanted, arrival.buffer)
            _charge(machine, spec.name, arrival.kind, moved, size_bytes(operand.dtype))
        rotatable = min(number, n_inputs)
        lengths = geometry.window_lengths(plan, rotatable)
        n_slots = prod(geometry.partition_shape(operand, lengths))
        machine.memory.check_written(arrival.buffer, plan.n_cores, n_slots * size_bytes(operand.dtype))
        slots = machine.memory.slots(arrival.buffer, operand.dtype, plan.n_cores, n_slots)
        partitions.append(Partition(operand, rotatable, lengths, slots))
    return tuple(partitions)


def _charge(
    machine: Machine, operator: str, kind: PhaseKind, moved: movement.Traffic, element_bytes: int
) -> None:
    """Record an exchange phase of arbitrary pattern, and what every core copies or fills by itself after it."""
    most = max(moved.received_elements, moved.sent_elements) * element_bytes
    cycles = movement.ArrivalPrices(machine.cost).cycles(moved, element_bytes)
    machine.timeline.add(operator, kind, cycles, moved.total_elements * element_bytes, most)


def _accumulator(memory: CoreMemory, spec: OperatorSpec, plan: OperatorPlan, name: str) -> Partition:
    """Return the accumulators, holding the neutral element where the operator combines."""
    slot = len(spec.inputs)
    lengths = geometry.window_lengths(plan, slot)
    n_slots = prod(geometry.partition_shape(spec.output, lengths))
    slots = memory.slots(name, spec.acc_dtype, plan.n_cores, n_slots)
    if spec.combine != "none":
        slots[:] = neutral(spec.combine, spec.acc_dtype)
    return Partition(replace(spec.output, dtype=spec.acc_dtype), slot, lengths, slots)


def _run_nest(machine: Machine, running: Running, step_done: StepDone) -> None:
    """Alternate sub-tasks and shifts in serpentine order."""
    spec, plan = running.spec, running.plan
    box = tuple(
        rp if n > 1 else length for rp, n, length in zip(plan.rp, plan.steps, plan.lengths, strict=True)
    )
    sub_task_cycles = machine.cost.sub_task_cycles(spec, box)
    partitions = (*running.inputs, running.accumulator)
    for step, state in enumerate(nest_states(plan)):
        compute_sub_task(running, state.positions, step)
        machine.timeline.add(spec.name, "compute", sub_task_cycles)
        step_done()
        if state.axis >= 0:
            moving = [p for p in partitions if plan.ft[p.number][state.axis] > 1]
            _advance(machine, running, moving, state.positions, state.axis, state.direction, step)


def _advance(
    machine: Machine,
    running: Running,
    moving: list[Partition],
    positions: AxisSizes,
    axis: int,
    direction: int,
    step: int,
) -> None:
    """Shift operands together and record it as one shift of their bytes."""
    spec, plan = running.spec, running.plan
    per_core = sum(
        shift(machine.memory, spec, plan, p, positions, axis, direction, step=step) for p in moving
    )
    cycles = machine.cost.shift_cycles(per_core)
    machine.timeline.add(spec.name, "shift", cycles, per_core * plan.n_cores, per_core)


def _shift_home(machine: Machine, running: Running, arrivals: tuple[Arrival, ...]) -> None:
    """Bring weights that rotate in their own idle copy back to where the next run expects them.

    An axis that was swept an odd number of times stands at its last position: one more shift forward is home.
    """
    plan = running.plan
    positions = list(geometry.final_positions(plan))
    weights = {a.operand for a in arrivals if a.kind == "in_place"}
    for axis in plan.loop_order:
        moving = [
            p for p in running.inputs
            if p.number in weights and p.operand.role == "weight" and plan.ft[p.number][axis] > 1
        ]  # fmt: skip
        if positions[axis] and moving:
            _advance(machine, running, moving, tuple(positions), axis, 1, plan.n_sub_tasks)
            positions[axis] = 0


def _combine(machine: Machine, running: Running) -> NDArray[Any] | None:
    """Combine the accumulators of several cores and return which chunk each core owns, None if each has all of it."""
    spec, plan = running.spec, running.plan
    groups = reduction_groups(spec, plan)
    n_members = groups.members.shape[1]
    n_slots = running.accumulator.slots.shape[1]
    if plan.reduce == "all":
        per_core = all_reduce(machine.memory, spec, plan, running.accumulator, groups)
        cycles = machine.cost.all_reduce_cycles(spec, n_members, n_slots)
    else:
        per_core = reduce_scatter(machine.memory, spec, plan, running.accumulator, groups)
        n_slots = chunk_slots(n_slots, n_members)
        cycles = machine.cost.reduce_cycles(spec, n_members, n_slots * size_bytes(spec.acc_dtype), n_slots)
    machine.timeline.add(spec.name, "reduce", cycles, per_core * plan.n_cores, per_core)
    return None if plan.reduce == "all" else groups.ranks


def _finish(
    machine: Machine,
    running: Running,
    inputs: tuple[Partition, ...],
    result: Home,
    chunk_numbers: NDArray[Any] | None,
) -> None:
    """Run the epilogue on the elements each core owns, into the operator's result."""
    spec, plan = running.spec, running.plan
    n_slots = running.accumulator.slots.shape[1]
    if chunk_numbers is not None:
        n_slots = chunk_slots(n_slots, geometry.n_replicas(spec, plan, len(spec.inputs)))
    slots = machine.memory.slots(result.buffer, spec.output.dtype, plan.n_cores, n_slots)
    run_epilogue(spec, plan, running.accumulator, inputs, slots, chunk_numbers)
    machine.memory.mark_written(result.buffer, plan.n_cores, n_slots * size_bytes(spec.output.dtype))
    if spec.epilogue is not None:
        run = epilogue_run(spec, running.accumulator.lengths, n_slots)
        machine.timeline.add(spec.name, "compute", machine.cost.epilogue_cycles(spec, n_slots, run))


def _forget_moved(machine: Machine, running: Running, arrivals: tuple[Arrival, ...]) -> None:
    """Drop the record of where activations lie that rotated in their producer's buffer: they lie there no longer."""
    plan = running.plan
    for arrival in arrivals:
        if arrival.kind != "in_place" or arrival.operand >= len(running.inputs):
            continue
        operand = running.spec.inputs[arrival.operand]
        if operand.role != "weight" and np.prod(plan.ft[arrival.operand]) > 1:
            machine.mover.forget(operand.name)
