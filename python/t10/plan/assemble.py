"""Assembling a schedule from choices: layouts of weights, inputs and results, how operands arrive, and addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Literal

import numpy as np

from t10.chip import ChipSpec
from t10.core.arrays import Bools, Ints
from t10.core.chunks import chunk_slots, window_chunk
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.graph import TensorValue
from t10.core.laid_out import with_operand
from t10.core.movement import operand_of
from t10.core.operator_body import scheduled_operator
from t10.core.placed_costs import is_better_copied, left_over_cycles, reads_left_over
from t10.core.plan import Cycles, OperatorPlan
from t10.core.schedule import Arrival, ModulePlan, ScheduledOperator, ValueLayout
from t10.cost import CostModel
from t10.cost.operator import home_cycles, operator_cycles, output_chunk
from t10.errors import InfeasiblePlanError
from t10.plan.context import Context
from t10.plan.memory.allocation import placed
from t10.plan.memory.buffers import buffer_requests
from t10.plan.memory.input_readers import InputReader
from t10.plan.memory.levels import (
    Choice,
    operand_slots,
    replica_count,
    scatter_at,
    spread_cores,
)
from t10.plan.memory.liveness import unshaped
from t10.plan.options import Progress
from t10.plan.search.pareto import Front

LEAST_USED = 0.95
"""The part of all cores that have some of an input, at least, where each has whole rows of it."""
SHARE_PART, ROOM_PART = 4, 64
"""To lie as it is read, an input may take more than its share: this part of it or of the memory, whichever is more."""


def linear_layout(value: TensorValue, n_cores: int) -> ValueLayout:
    """Return the layout that spreads a value evenly over up to `n_cores` cores."""
    n_cores = spread_cores(prod(value.shape), value.dtype, n_cores)
    return ValueLayout(kind="linear", value=value.name, n_cores=n_cores, dtype=value.dtype)


def row_cores(value: TensorValue, n_cores: int) -> int:
    """Return over how many cores to spread an input so that each has whole rows; all where far fewer would do it.

    Readers cut rows alike where they cut them over so many cores: what is joined to others then stays where it lies.
    """
    n_rows, row = prod(value.shape[:-1]), value.shape[-1] if value.shape else 1
    n_used = -(-n_rows // -(-n_rows // n_cores))
    is_whole = chunk_slots(n_rows * row, n_used) % row == 0
    return n_used if is_whole and n_used >= LEAST_USED * n_cores else n_cores


def output_layout(spec: OperatorSpec, plan: OperatorPlan) -> ValueLayout:
    """Return how an operator leaves its result: cut over the cores that summed it, or whole on each of them."""
    n_members, _ = output_chunk(spec, plan)
    return ValueLayout(
        kind="operand",
        value=spec.output.name,
        n_cores=plan.n_cores,
        dtype=spec.output.dtype,
        operator=spec.name,
        operand=len(spec.operands),
        plan=plan,
        scatter=1 if plan.reduce == "all" else n_members,
    )


def weight_layouts(
    context: Context, fronts: tuple[Front, ...], choices: tuple[Choice, ...]
) -> dict[str, ValueLayout]:
    """Return the idle layout of every weight that is read."""
    layouts = {
        weight.name: linear_layout(weight, context.chip.n_cores)
        for weight in context.graph.weights
        if weight.name in context.lives.last_by_value
    }
    for step, (front, choice) in enumerate(zip(fronts, choices, strict=True)):
        layouts |= owned_layouts(context, step, front[choice.plan].plan, choice.level)
    return layouts


def owned_layouts(context: Context, step: int, plan: OperatorPlan, level: int) -> dict[str, ValueLayout]:
    """Return the idle layouts of the weights that one operator alone reads, under its plan and idle level."""
    spec = context.graph.operators[step]
    layouts: dict[str, ValueLayout] = {}
    for number in context.owned[step]:
        weight = context.weight_by_owner[step, number]
        operand = operand_of(spec, number)
        if level == 0:
            stored = TensorValue(weight, operand.shape, operand.dtype)
            layouts[weight] = linear_layout(stored, context.chip.n_cores)
            continue
        layouts[weight] = ValueLayout(
            kind="operand",
            value=weight,
            n_cores=plan.n_cores,
            dtype=operand.dtype,
            operator=spec.name,
            operand=number,
            plan=plan,
            scatter=scatter_at(level, replica_count(spec, plan, number)),
        )
    return layouts


def input_layouts(context: Context) -> dict[str, ValueLayout]:
    """Return inputs of which no operator decides where they lie, spread evenly (for the others: `read_layouts`)."""
    return {
        value.name: linear_layout(value, row_cores(value, context.chip.n_cores))
        for value in context.graph.inputs
        if value.name in context.lives.last_by_value and value.name not in context.reader_by_input
    }


def read_layouts(
    context: Context, step: int, plan: OperatorPlan, *, is_compared: bool = True
) -> dict[str, ValueLayout]:
    """Return where the inputs lie that an operator decides about: as it reads them, replicas sharing each part.

    The host writes an input once, in any layout: this one takes no more room than an even spread, and the operator at
    most gathers from its replicas. What is read through views or with halos takes more room, for slots outside the
    tensor and for halos: if that is too much, or if it rotates, it is spread evenly. So it is where that is faster; the
    two are not compared for an estimate.
    """
    return {
        value.name: _read_layout(context, value, reader, plan, is_compared=is_compared)
        for value in context.graph.inputs
        if (reader := context.reader_by_input.get(value.name)) is not None and reader.step == step
    }


def _read_layout(
    context: Context, value: TensorValue, reader: InputReader, plan: OperatorPlan, *, is_compared: bool
) -> ValueLayout:
    """Return where an input lies under a plan of the operator that decides about it."""
    number, read = reader.number, context.graph.operators[reader.step]
    as_read = _layout_as_read(context, value, reader, plan)
    is_alone = context.graph.sources_of(operand_of(read, number).name) == (value.name,)
    if as_read is not None and (reader.is_plain or not is_alone or not is_compared):
        return as_read
    even = linear_layout(value, row_cores(value, _near_cores(context.chip, plan.n_cores)))
    if not is_alone or not is_compared:
        return even
    # Halos of narrow parts are most of what is read: chunks of another size may send less. What is spread over the
    # reader's cores lies alike on any chip that has them, so that more cores make no plan slower.
    own = linear_layout(value, row_cores(value, plan.n_cores))
    return min(
        (even, own) if as_read is None else (as_read, even, own),
        key=lambda layout: context.mover.estimate(read, plan, number, {value.name: layout}),
    )


def _layout_as_read(
    context: Context, value: TensorValue, reader: InputReader, plan: OperatorPlan
) -> ValueLayout | None:
    """Return the layout in which a plan reads an input, None where that is not all of it, rotates, or is too much."""
    if reader.seen is None:
        return None
    number = reader.number
    spec = with_operand(context.graph.operators[reader.step], number, reader.seen)
    scatter = replica_count(spec, plan, number)
    if not reader.is_plain:
        size = size_bytes(value.dtype)
        n_bytes = window_chunk(operand_slots(spec, plan, number), scatter) * size
        share = -(-prod(value.shape) * size // plan.n_cores)
        rotates = number < len(spec.inputs) and prod(plan.ft[number]) > 1
        if rotates or n_bytes - share > max(share // SHARE_PART, context.chip.capacity_bytes // ROOM_PART):
            return None
    return ValueLayout(
        kind="operand",
        value=value.name,
        n_cores=plan.n_cores,
        dtype=value.dtype,
        operator=spec.name,
        operand=number,
        plan=plan,
        scatter=scatter,
    )


def _near_cores(chip: ChipSpec, n_cores: int) -> int:
    """Return how many cores are in the groups in which so many are: all where none are linked."""
    group = chip.n_cores if chip.links is None else chip.links.least_cores
    return min(-(-n_cores // group) * group, chip.n_cores)


def fronts_at_levels(
    context: Context, fronts: tuple[Front, ...], level_by_operator: Mapping[str, int]
) -> tuple[Front, ...]:
    """Return the fronts without plans of which the weights cannot rest at the level that is asked for.

    Raises `InfeasiblePlanError` for an operator of which no plan is left.
    """
    return tuple(
        _at_level(context, step, front, level_by_operator.get(spec.name, 0))
        for step, (spec, front) in enumerate(zip(context.graph.operators, fronts, strict=True))
    )


def _at_level(context: Context, step: int, front: Front, level: int) -> Front:
    """Return the plans under which some weight has replicas that a level divides; level 0 is there under any plan."""
    if level == 0:
        return front
    spec = context.graph.operators[step]
    replicas = [[replica_count(spec, each.plan, n) for n in context.owned[step]] for each in front]
    kept = tuple(
        each for each, counts in zip(front, replicas, strict=True) if any(n % level == 0 for n in counts)
    )
    if not kept:
        most = max((n for counts in replicas for n in counts), default=0)
        expected = (
            f"0 or a divisor of {most}, the replicas of its weights" if most else "0: no weight is its own"
        )
        raise InfeasiblePlanError(
            f"idle_level is {level}, expected {expected}",
            operator=spec.name,
            location=spec.location or None,
        )
    return kept if len(kept) < len(front) else front


def assemble(
    context: Context,
    fronts: tuple[Front, ...],
    choices: tuple[Choice, ...],
    progress: Progress | None,
    *,
    is_counted: bool = True,
) -> ModulePlan:
    """Return the schedule that follows from the choices; its buffers have no places yet (`memory.room`).

    Where it is not `is_counted`, nothing is known of what arrivals move and take.
    """
    graph, chip = context.graph, context.chip
    weights = weight_layouts(context, fronts, choices)
    inputs = input_layouts(context)
    for step, (front, choice) in enumerate(zip(fronts, choices, strict=True)):
        # Before any operator: an earlier one may read the same input through a view.
        inputs |= read_layouts(context, step, front[choice.plan].plan)
    layouts = {**weights, **inputs}
    operators: list[ScheduledOperator] = []
    # Operators that differ in names only share their plans.
    run_by_plan: dict[tuple[int, int], Cycles] = {}
    for step, (spec, front, choice) in enumerate(zip(graph.operators, fronts, choices, strict=True)):
        if progress:
            progress("schedule", step, len(graph.operators))
        priced = front[choice.plan]
        arrivals = arrivals_of(context, step, priced.plan, layouts, is_counted=is_counted)
        layout = output_layout(spec, priced.plan)
        layouts[spec.output.name] = layout
        key = id(front), choice.plan
        if key not in run_by_plan:
            run_by_plan[key] = operator_cycles(context.cost, spec, priced.plan)
        left = context.mover.left_over_cycles(spec, priced.plan) if reads_left_over(spec, arrivals) else 0
        cycles = cycles_of(context.cost, spec, priced.plan, arrivals, left, run_by_plan[key])
        operators.append(scheduled_operator(spec, replace(priced, cycles=cycles), arrivals, layout, front))
    requests = buffer_requests(graph, operators, layouts, chip)
    buffers = tuple(placed(request, chip.reserved_bytes) for request in requests)
    return ModulePlan(
        chip=chip.name,
        graph=graph,
        operators=tuple(operators),
        weight_layouts=tuple(weights.values()),
        input_layouts=tuple(inputs.values()),
        buffers=buffers,
        peak_bytes=0,
        capacity_bytes=chip.sram_bytes,
        reserved_bytes=chip.reserved_bytes,
    )


def arrivals_of(
    context: Context,
    step: int,
    plan: OperatorPlan,
    layouts: Mapping[str, ValueLayout],
    *,
    is_counted: bool = True,
) -> tuple[Arrival, ...]:
    """Return how the operands of an operator get to its cores."""
    spec = context.graph.operators[step]
    found: tuple[Arrival, ...] = ()
    for number in range(len(spec.operands)):
        buffer = place_of(context, step, number, plan, layouts)
        copy = f"operand:{spec.name}:{number}"
        if buffer is not None:
            found += (Arrival(number, "in_place", buffer),)
        elif is_counted:
            found += (context.mover.arrival(spec, plan, number, layouts, copy, before=found),)
        else:
            found += (Arrival(number, "relayout", copy),)
    return found


def place_of(
    context: Context, step: int, number: int, plan: OperatorPlan, layouts: Mapping[str, ValueLayout]
) -> str | None:
    """Return the buffer in which an operand lies already as the operator wants it, None where it must be brought."""
    spec = context.graph.operators[step]
    weight = context.weight_by_owner.get((step, number))
    if weight is not None:
        layout = layouts[weight]
        return f"idle:{weight}" if layout.kind == "operand" and layout.scatter == 1 else None
    value = unshaped(operand_of(spec, number).name, context.reshapes)
    kind = _kept_in(context, step, number, plan, value)
    if kind == "idle" and layouts[value].kind == "linear":
        return None
    if kind == "input":
        return f"input:{value}" if layouts[value].scatter == 1 else None
    is_there = kind in ("value", "idle") and context.mover.lies_in_place(spec, plan, number, layouts[value])
    is_left = is_there and (kind == "idle" or not _is_copied(context, step, number, plan))
    return f"{kind}:{value}" if is_left else None


def are_in_place(
    context: Context,
    step: int,
    number: int,
    plans: Sequence[OperatorPlan],
    layouts: Sequence[Mapping[str, ValueLayout]],
    pairs: Ints,
) -> Bools:
    """Return for pairs (n, 2), by plan and layouts, whether operand `number`, no own weight, has a `place_of`."""
    spec = context.graph.operators[step]
    value = unshaped(operand_of(spec, number).name, context.reshapes)
    kinds = np.array([_kept_in(context, step, number, plan, value) for plan in plans])[pairs[:, 0]]
    result = np.zeros(len(pairs), np.bool_)
    if (rows := np.flatnonzero(kinds == "input")).size:
        result[rows] = np.array([each[value].scatter == 1 for each in layouts])[pairs[rows, 1]]
    if (rows := np.flatnonzero((kinds == "value") | (kinds == "idle"))).size:
        homes = [each[value] for each in layouts]
        result[rows] = context.mover.lie_in_place(spec, plans, number, homes, pairs[rows])
    # Asked last, as it takes longest: under most plans nothing lies in place.
    left: set[int] = set(pairs[result & (kinds == "value"), 0].tolist())
    for row in left:
        result[pairs[:, 0] == row] &= not _is_copied(context, step, number, plans[row])
    return result


def _kept_in(
    context: Context, step: int, number: int, plan: OperatorPlan, value: str
) -> Literal["input", "value", "idle", ""]:
    """Return in what kind of buffer an operand that reads a value directly may lie as it is wanted, if in any.

    A weight that rotates is sent home, so that others find it where it rests.
    """
    if value in context.shared_weights:
        return "idle"
    rotates = number < len(context.graph.operators[step].inputs) and prod(plan.ft[number]) > 1
    if rotates and not is_last_use(context, step, value):
        return ""
    if context.lies_as_read(value, step, number):
        return "input"
    return "value" if value in context.mover.spec_by_value else ""


def _is_copied(context: Context, step: int, number: int, plan: OperatorPlan) -> bool:
    """Return whether a value of another operator is copied even where it lies as operand `number` reads it."""
    spec = context.graph.operators[step]
    n_bytes = operand_slots(spec, plan, number) * size_bytes(operand_of(spec, number).dtype)
    left_over = context.mover.left_over_cycles(spec, plan) if number < len(spec.inputs) else 0
    return is_better_copied(context.cost, left_over, n_bytes)


def is_last_use(context: Context, step: int, name: str) -> bool:
    """Return whether nothing reads a value after this operand, which may therefore rotate it away."""
    graph = context.graph
    if context.lives.last_by_value.get(name) != step or any(
        name in graph.sources_of(o.value) for o in graph.outputs
    ):
        return False
    operands = graph.operators[step].operands
    return sum(name in graph.sources_of(operand.name) for operand in operands) == 1


def cycles_of(
    cost: CostModel,
    spec: OperatorSpec,
    plan: OperatorPlan,
    arrivals: tuple[Arrival, ...],
    left_over: int | None = None,
    run: Cycles | None = None,
) -> Cycles:
    """Return the cycles of an operator with its exact arrivals, and with weights used in place shifted home.

    `left_over` is what steps take more as others left inputs, 0 where `cost` knows where buffers lie, and `run` is what
    `operator_cycles` says; each is counted if not given.
    """
    run = operator_cycles(cost, spec, plan) if run is None else run
    if left_over is None:
        left_over = left_over_cycles(cost, spec, plan) if reads_left_over(spec, arrivals) else 0
    resident = tuple(
        arrival.operand
        for arrival in arrivals
        if arrival.buffer.startswith("idle:") and arrival.operand < len(spec.inputs)
    )
    return replace(
        run,
        compute=run.compute + left_over,
        shift=run.shift + home_cycles(cost, spec, plan, resident),
        relayout=sum(arrival.cycles for arrival in arrivals if arrival.kind == "relayout"),
        setup=sum(arrival.cycles for arrival in arrivals if arrival.kind == "setup"),
    )
