"""Assembling a schedule from choices: layouts of weights, inputs and results, how operands arrive, and addresses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod

from t10.chip import ChipSpec
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph
from t10.core.movement import operand_of
from t10.core.plan import CostedPlan, Cycles, OperatorPlan
from t10.core.schedule import Arrival, Layout, ModulePlan, ScheduledOperator
from t10.cost import CostModel
from t10.cost.operator import home_cycles, operator_cycles, output_chunk
from t10.plan.allocation import allocate, peak_bytes
from t10.plan.arrivals import Mover
from t10.plan.buffers import buffer_requests
from t10.plan.levels import replica_count, scatter_at
from t10.plan.liveness import Liveness, liveness, reshapes_of, unshaped
from t10.plan.reconcile import Choice

Front = tuple[CostedPlan, ...]
Progress = Callable[[str, int, int], None]
"""Called with a stage's name, steps done and steps in all."""


@dataclass(frozen=True, slots=True)
class Context:
    """What every step of the schedule needs; `owned` are the operands per operator that are weights it alone reads."""

    graph: Graph
    chip: ChipSpec
    cost: CostModel
    lives: Liveness
    owned: tuple[tuple[int, ...], ...]
    weight_by_owner: Mapping[tuple[int, int], str]
    reshapes: Mapping[str, str]
    mover: Mover


def context_of(graph: Graph, chip: ChipSpec, cost: CostModel) -> Context:
    """Return what every step of the schedule needs."""
    lives = liveness(graph)
    owned: list[list[int]] = [[] for _ in graph.operators]
    for step, number in lives.owner_by_weight.values():
        owned[step].append(number)
    owners = {owner: weight for weight, owner in lives.owner_by_weight.items()}
    return Context(
        graph=graph,
        chip=chip,
        cost=cost,
        lives=lives,
        owned=tuple(tuple(sorted(numbers)) for numbers in owned),
        weight_by_owner=owners,
        reshapes=reshapes_of(graph),
        mover=Mover(graph, cost, chip.n_cores),
    )


def linear_layout(value: str, dtype: str, n_cores: int) -> Layout:
    """Return the layout that spreads a value evenly over `n_cores` cores."""
    return Layout(kind="linear", value=value, n_cores=n_cores, dtype=dtype)


def output_layout(spec: OperatorSpec, plan: OperatorPlan) -> Layout:
    """Return how an operator leaves its result: cut over the cores that summed it."""
    n_members, _ = output_chunk(spec, plan)
    return Layout(
        kind="operand",
        value=spec.output.name,
        n_cores=plan.n_cores,
        dtype=spec.output.dtype,
        operator=spec.name,
        operand=len(spec.operands),
        plan=plan,
        scatter=n_members,
    )


def weight_layouts(
    context: Context, fronts: tuple[Front, ...], choices: tuple[Choice, ...]
) -> dict[str, Layout]:
    """Return the idle layout of every weight that is read."""
    layouts = {
        weight.name: linear_layout(weight.name, weight.dtype, context.chip.n_cores)
        for weight in context.graph.weights
        if weight.name in context.lives.last_by_value
    }
    for step, (front, choice) in enumerate(zip(fronts, choices, strict=True)):
        layouts |= owned_layouts(context, step, front[choice.plan].plan, choice.level)
    return layouts


def owned_layouts(context: Context, step: int, plan: OperatorPlan, level: int) -> dict[str, Layout]:
    """Return the idle layouts of the weights that one operator alone reads, under its plan and idle level."""
    spec = context.graph.operators[step]
    layouts: dict[str, Layout] = {}
    for number in context.owned[step]:
        weight = context.weight_by_owner[step, number]
        dtype = operand_of(spec, number).dtype
        if level == 0:
            layouts[weight] = linear_layout(weight, dtype, context.chip.n_cores)
            continue
        layouts[weight] = Layout(
            kind="operand",
            value=weight,
            n_cores=plan.n_cores,
            dtype=dtype,
            operator=spec.name,
            operand=number,
            plan=plan,
            scatter=scatter_at(level, replica_count(spec, plan, number)),
        )
    return layouts


def input_layouts(context: Context) -> dict[str, Layout]:
    """Return where the model's inputs lie when it starts: spread over all cores."""
    return {
        value.name: linear_layout(value.name, value.dtype, context.chip.n_cores)
        for value in context.graph.inputs
        if value.name in context.lives.last_by_value
    }


def assemble(
    context: Context, fronts: tuple[Front, ...], choices: tuple[Choice, ...], progress: Progress | None
) -> ModulePlan:
    """Return the schedule that follows from the choices; its peak may exceed the capacity."""
    graph, chip = context.graph, context.chip
    weights = weight_layouts(context, fronts, choices)
    inputs = input_layouts(context)
    layouts = {**weights, **inputs}
    operators: list[ScheduledOperator] = []
    for step, (spec, front, choice) in enumerate(zip(graph.operators, fronts, choices, strict=True)):
        if progress:
            progress("schedule", step, len(graph.operators))
        priced = front[choice.plan]
        arrivals = tuple(
            arrival_of(context, step, number, priced.plan, layouts) for number in range(len(spec.operands))
        )
        layout = output_layout(spec, priced.plan)
        layouts[spec.output.name] = layout
        active = replace(priced, cycles=cycles_of(context, spec, priced.plan, arrivals))
        operators.append(ScheduledOperator(spec.name, active, arrivals, layout, front))
    requests = buffer_requests(graph, context.lives, operators, layouts, chip.shift_buffer_bytes)
    buffers = allocate(requests, chip.reserved_bytes)
    return ModulePlan(
        chip=chip.name,
        graph=graph,
        operators=tuple(operators),
        weight_layouts=tuple(weights.values()),
        input_layouts=tuple(inputs.values()),
        buffers=buffers,
        peak_bytes=peak_bytes(buffers, chip.reserved_bytes),
        capacity_bytes=chip.sram_bytes,
    )


def arrival_of(
    context: Context, step: int, number: int, plan: OperatorPlan, layouts: Mapping[str, Layout]
) -> Arrival:
    """Return how one operand gets to its cores."""
    spec = context.graph.operators[step]
    name = operand_of(spec, number).name
    weight = context.weight_by_owner.get((step, number))
    if weight is not None:
        layout = layouts[weight]
        if layout.kind == "operand" and layout.scatter == 1:
            return Arrival(number, "in_place", f"idle:{weight}")
    elif (result := unshaped(name, context.reshapes)) in context.mover.spec_by_value:
        rotates = number < len(spec.inputs) and prod(plan.ft[number]) > 1
        is_free = not rotates or _is_last_use(context, step, result)
        if is_free and context.mover.lies_in_place(spec, plan, number, layouts[result]):
            return Arrival(number, "in_place", f"value:{result}")
    return context.mover.arrival(spec, plan, number, dict(layouts), f"operand:{spec.name}:{number}")


def _is_last_use(context: Context, step: int, name: str) -> bool:
    """Return whether nothing reads a value after this operand, which may therefore rotate it away."""
    graph = context.graph
    if context.lives.last_by_value[name] != step or any(
        name in graph.sources_of(o.value) for o in graph.outputs
    ):
        return False
    operands = graph.operators[step].operands
    return sum(name in graph.sources_of(operand.name) for operand in operands) == 1


def cycles_of(
    context: Context, spec: OperatorSpec, plan: OperatorPlan, arrivals: tuple[Arrival, ...]
) -> Cycles:
    """Return the cycles of an operator with its exact arrivals, and with weights used in place shifted home."""
    run = operator_cycles(context.cost, spec, plan)
    resident = tuple(
        arrival.operand
        for arrival in arrivals
        if arrival.buffer.startswith("idle:") and arrival.operand < len(spec.inputs)
    )
    return replace(
        run,
        shift=run.shift + home_cycles(context.cost, spec, plan, resident),
        relayout=sum(arrival.cycles for arrival in arrivals if arrival.kind == "relayout"),
        setup=sum(arrival.cycles for arrival in arrivals if arrival.kind == "setup"),
    )
