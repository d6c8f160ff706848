"""What each statement of a compute-shift program does to the cores' memories, and what it costs.

A statement is executed as it is written. The plan says where windows lie at given positions; which positions those are,
and what runs next, is in the statements alone.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Literal

from t10.core import geometry, movement
from t10.core.chunks import window_chunk
from t10.core.costs import (
    crossing_cycles,
    fill_cycles,
    fused_cycles,
    overlaps,
    plan_end_cycles,
    rotates_output,
    shift_cycles,
    step_part_cycles,
)
from t10.core.dtypes import size_bytes
from t10.core.expression import Operand
from t10.core.overlap import is_beside_step, second_name, second_windows
from t10.core.program import Arrive, Fill, Reduce, Shift, SubTask
from t10.core.schedule import Arrival, ValueLayout
from t10.sim.combine import neutral
from t10.sim.compute import Running, compute_sub_task
from t10.sim.epilogue import run_epilogue
from t10.sim.execution import Execution
from t10.sim.partition import Partition
from t10.sim.reduce import all_reduce, reduce_scatter, reduction_groups
from t10.sim.shift import shift, shift_across


def take_in_place(run: Execution, arrival: Arrival) -> None:
    """Use an operand where its value lies."""
    operand = run.spec.operands[arrival.operand]
    run.machine.mover.check_in_place(operand.name, _wanted(run, arrival.operand), arrival.buffer)
    run.operands[arrival.operand] = _arrived(run, operand, arrival)


def arrive(run: Execution, statement: Arrive) -> None:
    """Copy an operand to its cores."""
    number = statement.operand
    arrival = run.arrivals.get(number)
    if arrival is None or arrival.kind == "in_place" or number in run.operands:
        raise run.trap(f"operand {number} arrives, but it lies there already or comes from nowhere")
    operand = run.spec.operands[number]
    moved = run.machine.mover.fetch(operand.name, _wanted(run, number), arrival.buffer)
    _charge_arrival(run, arrival.kind, moved, size_bytes(operand.dtype))
    run.operands[number] = _arrived(run, operand, arrival)


def _wanted(run: Execution, number: int) -> ValueLayout:
    operand, plan = run.spec.operands[number], run.plan
    return ValueLayout("operand", operand.name, plan.n_cores, operand.dtype, run.spec.name, number, plan)


def _arrived(run: Execution, operand: Operand, arrival: Arrival) -> Partition:
    """Return the partition of an operand that lies in its buffer now."""
    rotatable = min(arrival.operand, run.output_slot)
    lengths = geometry.window_lengths(run.plan, rotatable)
    n_slots = prod(geometry.partition_shape(operand, lengths))
    memory, n_cores = run.machine.memory, run.plan.n_cores
    memory.check_written(arrival.buffer, n_cores, n_slots * size_bytes(operand.dtype))
    return Partition(
        operand, rotatable, lengths, memory.slots(arrival.buffer, operand.dtype, n_cores, n_slots)
    )


def _charge_arrival(
    run: Execution, kind: Literal["relayout", "setup"], moved: movement.Traffic, element_bytes: int
) -> None:
    """Record an exchange phase of arbitrary pattern, and what every core copies or fills by itself after it."""
    most = max(moved.received_elements, moved.sent_elements) * element_bytes
    costs = movement.ArrivalCosts(run.machine.cost)
    is_relayout = kind == "relayout"
    cycles = costs.cycles(moved, element_bytes, is_joined=is_relayout and run.has_relaid)
    run.has_relaid |= is_relayout and moved.received_elements > 0
    run.charge(kind, cycles, moved.total_elements * element_bytes, most)


def make_accumulator(run: Execution) -> None:
    """Lay the accumulators over their buffer; they hold nothing yet."""
    spec, plan = run.spec, run.plan
    lengths = geometry.window_lengths(plan, run.output_slot)
    n_slots = prod(geometry.partition_shape(spec.output, lengths))
    slots = run.machine.memory.slots(run.accumulator_buffer, spec.acc_dtype, plan.n_cores, n_slots)
    run.accumulator = Partition(replace(spec.output, dtype=spec.acc_dtype), run.output_slot, lengths, slots)


def make_second_windows(run: Execution) -> None:
    """Lay the second windows of inputs over their buffer, where the chip computes and transfers at once."""
    if not overlaps(run.machine.cost):
        return
    offset_bytes, name, n_cores = 0, second_name(run.spec.name), run.plan.n_cores
    for number, n_bytes in second_windows(run.spec, run.plan).items():
        here = run.rotatable(number)
        n_slots = here.slots.shape[1]
        slots = run.machine.memory.bytes_as(name, here.slots.dtype, n_cores, n_slots, offset_bytes)
        run.others[number] = replace(here, slots=slots)
        offset_bytes += n_bytes


def fill(run: Execution, _: Fill) -> None:
    """Put the neutral element into the accumulators."""
    if run.is_filled or run.spec.combine == "none":
        raise run.trap("the accumulators are filled twice, or nothing is combined in them")
    run.rotatable(run.output_slot).slots[:] = neutral(run.spec.combine, run.spec.acc_dtype)
    run.charge("compute", fill_cycles(run.machine.cost, run.spec, run.plan))
    run.is_filled = True


def sub_task(run: Execution, statement: SubTask) -> None:
    """Compute one box on every core; its operands must stand where it reads them."""
    spec, plan = run.spec, run.plan
    run.n_sub_tasks += 1
    if spec.combine != "none" and not run.is_filled:
        raise run.trap("a sub-task combines with accumulators that were never filled")
    for number in range(len(spec.rotatable)):
        run.check_positions(number, statement.positions, f"the sub-task at {list(statement.positions)}")
    inputs = tuple(run.rotatable(number) for number in range(run.output_slot))
    accumulator = run.rotatable(run.output_slot)
    running = Running(spec, plan, inputs, accumulator, tuple(run.positions), run.factors)
    compute_sub_task(running, statement.positions, run.last_sub_task)
    n_bytes = accumulator.slots.shape[1] * size_bytes(spec.acc_dtype)
    run.machine.memory.mark_written(run.accumulator_buffer, plan.n_cores, n_bytes)
    outputs = tuple(p for axis, p in enumerate(statement.positions) if axis in spec.output.axes)
    adds = spec.combine != "none" and (rotates_output(spec, plan) or outputs in run.touched)
    run.touched.add(outputs)
    run.step_cycles = sum(step_part_cycles(run.machine.cost, spec, plan, statement.positions, adds=adds))
    run.charge("compute", run.step_cycles)
    run.step_done()


def shift_windows(run: Execution, statement: Shift) -> None:
    """Move the windows of operands together, and record it as one shift of their bytes."""
    spec, plan, axis = run.spec, run.plan, statement.axis
    here, n_steps = statement.positions[axis], plan.steps[axis]
    if statement.stop not in ((here + 1) % n_steps, (here - 1) % n_steps) or statement.stop == here:
        raise run.trap(f"a shift along axis {axis} from position {here} to {statement.stop} of {n_steps}")
    per_core = 0
    for number in statement.operands:
        if plan.ft[number][axis] == 1:
            raise run.trap(f"{spec.rotatable[number].name} does not rotate along axis {axis}")
        run.check_positions(number, statement.positions, f"a shift along axis {axis}")
        per_core += _shift_window(run, number, axis, statement.direction)
        run.positions[number] = (
            *run.positions[number][:axis],
            statement.stop,
            *run.positions[number][axis + 1 :],
        )
    cycles = shift_cycles(run.machine.cost, spec, plan, statement)
    if run.is_between_steps and overlaps(run.machine.cost) and is_beside_step(plan, axis):
        cycles = max(cycles - run.step_cycles, 0)
    run.charge("shift", cycles, per_core * plan.n_cores, per_core)


def _shift_window(run: Execution, number: int, axis: int, direction: int) -> int:
    """Move the windows of one operand and return the bytes each core passed on.

    Between two steps the next window of an input is made beside the one that is read, where there is room for two;
    after the last step it is made in its own buffer.
    """
    here, positions = run.rotatable(number), run.positions[number]
    if number in run.others and (run.is_between_steps or number in run.in_second):
        there = run.others[number]
        n_bytes = shift_across(
            run.spec, run.plan, here, there, positions, axis, direction, step=run.last_sub_task
        )
        run.operands[number], run.others[number] = there, here
        run.in_second ^= {number}
        return n_bytes
    return shift(
        run.machine.memory, run.spec, run.plan, here, positions, axis, direction, step=run.last_sub_task
    )


def reduce(run: Execution, statement: Reduce) -> None:
    """Combine the accumulators of the cores whose windows of the output are the same."""
    spec, plan, memory = run.spec, run.plan, run.machine.memory
    accumulator = run.rotatable(run.output_slot)
    groups = reduction_groups(spec, plan, run.positions[run.output_slot])
    n_members = groups.members.shape[1]
    n_slots = accumulator.slots.shape[1]
    if n_members == 1 or spec.combine == "none":
        raise run.trap("a reduction where no two cores hold partial results of one element")
    if statement.mode == "all":
        per_core = all_reduce(memory, spec, plan, accumulator, groups)
        cycles = run.machine.cost.all_reduce_cycles(spec, n_members, n_slots)
    else:
        per_core = reduce_scatter(memory, spec, plan, accumulator, groups)
        cycles = run.machine.cost.reduce_cycles(spec, n_members, n_slots)
        run.owners = groups
    signed = -n_members if statement.mode == "all" else n_members
    windows = geometry.window_lengths(plan, run.output_slot)
    cycles -= fused_cycles(run.machine.cost, spec, windows, signed)
    cycles += crossing_cycles(run.machine.cost, spec, replace(plan, reduce=statement.mode))
    run.charge("reduce", cycles, per_core * plan.n_cores, per_core)


def epilogue(run: Execution) -> None:
    """Run the epilogue on the elements each core owns, into the operator's result."""
    spec, plan, memory = run.spec, run.plan, run.machine.memory
    accumulator = run.rotatable(run.output_slot)
    n_slots = accumulator.slots.shape[1]
    ranks = None
    if run.owners is not None:
        ranks = run.owners.ranks
        n_slots = window_chunk(n_slots, run.owners.members.shape[1])
    inputs = tuple(run.operands[n] for n in range(run.output_slot, len(spec.operands)))
    slots = memory.slots(run.result.buffer, spec.output.dtype, plan.n_cores, n_slots)
    run_epilogue(spec, plan, run.positions[run.output_slot], accumulator, inputs, slots, ranks)
    memory.mark_written(run.result.buffer, plan.n_cores, n_slots * size_bytes(spec.output.dtype))
    n_members = 1 if run.owners is None else run.owners.members.shape[1]
    if plan.reduce == "all":
        n_members = -geometry.n_replicas(spec, plan, run.output_slot)
    modelled = plan_end_cycles(run.machine.cost, spec, plan, n_members, n_slots)
    run.charge("compute", modelled)
    run.is_finished = True
