"""A whole model's plan: fronts per operator, reconciliation, layouts, arrivals with their traffic, and addresses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from t10.chip import ChipSpec
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph
from t10.core.movement import operand_of, partition_scatter
from t10.core.plan import CostedPlan, Cycles, OperatorPlan
from t10.core.schedule import Arrival, Layout, ModulePlan, ScheduledOperator
from t10.cost import CostModel, IpuCostModel
from t10.cost.operator import home_cycles, operator_cycles, output_chunk
from t10.errors import InfeasiblePlanError
from t10.plan.allocation import Request, aligned_size, allocate, peak_bytes
from t10.plan.arrivals import Mover
from t10.plan.canonical import canonical
from t10.plan.levels import LevelTable, level_table, operand_slots, replica_count, scatter_at
from t10.plan.liveness import Liveness, liveness, reshapes_of, unshaped
from t10.plan.options import PlanOptions
from t10.plan.reconcile import HINT, Choice, Problem, reconcile
from t10.plan.search import plan_operator

Front = tuple[CostedPlan, ...]
Progress = Callable[[str, int, int], None]
"""Called with a stage's name, steps done and steps in all."""

LIVE_ROUNDS = 4
FIT_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class _Context:
    """What every step of the schedule needs."""

    graph: Graph
    chip: ChipSpec
    cost: CostModel
    lives: Liveness
    owned: tuple[tuple[int, ...], ...]
    weight_by_owner: Mapping[tuple[int, int], str]
    reshapes: Mapping[str, str]
    mover: Mover


def plan_module(
    graph: Graph,
    chip: ChipSpec,
    options: PlanOptions | None = None,
    progress: Progress | None = None,
    cost: CostModel | None = None,
) -> ModulePlan:
    """Return the plan of a model on a chip.

    Raises `InfeasiblePlanError` naming the operator that does not fit, with bytes needed and available.
    """
    chosen_options = options or PlanOptions()
    cost = cost or IpuCostModel(chip)
    fronts = operator_fronts(graph, chip, cost, chosen_options, progress)
    return schedule_module(graph, chip, cost, fronts, chosen_options, progress)


def operator_fronts(
    graph: Graph,
    chip: ChipSpec,
    cost: CostModel,
    options: PlanOptions,
    progress: Progress | None = None,
) -> tuple[Front, ...]:
    """Return the time x memory front of every operator; operators that only differ in names are solved once."""
    found: dict[OperatorSpec, Front] = {}
    result: list[Front] = []
    for number, spec in enumerate(graph.operators):
        if progress:
            progress("search", number, len(graph.operators))
        if options.forced_for(spec.name) is not None:
            result.append(plan_operator(spec, chip, cost, options))
            continue
        key = canonical(spec)
        if key not in found:
            found[key] = plan_operator(spec, chip, cost, options)
        result.append(found[key])
    return tuple(result)


def schedule_module(
    graph: Graph,
    chip: ChipSpec,
    cost: CostModel,
    fronts: tuple[Front, ...],
    options: PlanOptions,
    progress: Progress | None = None,
) -> ModulePlan:
    """Return the plan of a model from the fronts of its operators.

    Memory is reconciled by sizes; if first fit then wastes more than is left, reconciled again with that much less.
    """
    context = _context(graph, chip, cost)
    tables = _tables(context, fronts)
    spare = peak = 0
    for _ in range(FIT_ROUNDS):
        if progress:
            progress("reconcile", 0, 1)
        choices = reconciled(context, fronts, tables, options, spare)
        plan = _assemble(context, fronts, choices, progress)
        if plan.peak_bytes <= plan.capacity_bytes:
            return plan
        peak = plan.peak_bytes
        spare += peak - plan.capacity_bytes
    raise InfeasiblePlanError(
        f"buffers need {peak} bytes per core, {chip.name} has {chip.sram_bytes}", hint=HINT
    )


def restore_module(
    graph: Graph,
    chip: ChipSpec,
    cost: CostModel,
    plans: tuple[CostedPlan, ...],
    idle_levels: tuple[int, ...],
) -> ModulePlan:
    """Return the schedule of a model whose plans and idle levels (see `levels`) are already chosen, one per operator.

    Raises `InfeasiblePlanError` if the buffers do not fit.
    """
    choices = tuple(Choice(0, level) for level in idle_levels)
    plan = _assemble(_context(graph, chip, cost), tuple((priced,) for priced in plans), choices, None)
    if plan.peak_bytes > plan.capacity_bytes:
        raise InfeasiblePlanError(
            f"buffers need {plan.peak_bytes} bytes per core, {chip.name} has {plan.capacity_bytes}", hint=HINT
        )
    return plan


def _context(graph: Graph, chip: ChipSpec, cost: CostModel) -> _Context:
    """Return what every step of the schedule needs."""
    lives = liveness(graph)
    owned: list[list[int]] = [[] for _ in graph.operators]
    for step, number in lives.owner_by_weight.values():
        owned[step].append(number)
    owners = {owner: weight for weight, owner in lives.owner_by_weight.items()}
    return _Context(
        graph=graph,
        chip=chip,
        cost=cost,
        lives=lives,
        owned=tuple(tuple(sorted(numbers)) for numbers in owned),
        weight_by_owner=owners,
        reshapes=reshapes_of(graph),
        mover=Mover(graph, cost, chip.n_cores),
    )


def _tables(context: _Context, fronts: tuple[Front, ...]) -> tuple[LevelTable, ...]:
    """Return the (plan, idle level) table of every operator; operators of one kind share one object."""
    found: dict[tuple[int, tuple[int, ...]], LevelTable] = {}
    result: list[LevelTable] = []
    for spec, front, owned in zip(context.graph.operators, fronts, context.owned, strict=True):
        key = (id(front), owned)
        if key not in found:
            found[key] = level_table(spec, front, owned, context.chip.n_cores, context.cost)
        result.append(found[key])
    return tuple(result)


def reconciled(
    context: _Context,
    fronts: tuple[Front, ...],
    tables: tuple[LevelTable, ...],
    options: PlanOptions,
    spare_bytes: int,
) -> tuple[Choice, ...]:
    """Return a plan and an idle level per operator; `spare_bytes` are kept free.

    How much of other values is alive depends on the plans chosen, so this is repeated until they fit.
    """
    choices = tuple(Choice(len(front) - 1, 0) for front in fronts)
    live = _live_bytes(context, fronts, choices)
    readings = {"literal": (True,), "aware": (False,), "best": (True, False)}[options.reading]
    for _ in range(LIVE_ROUNDS):
        problem = Problem(
            specs=context.graph.operators,
            tables=tables,
            live_bytes=live,
            base_bytes=_base_bytes(context) + spare_bytes,
            capacity_bytes=context.chip.capacity_bytes,
            chip=context.chip,
        )
        outcomes = [reconcile(problem, by_run_time=reading) for reading in readings]
        choices = min(outcomes, key=lambda outcome: outcome[1])[0]
        now = _live_bytes(context, fronts, choices)
        if (now <= live).all():
            break
        live = np.maximum(live, now)
    return choices


def _base_bytes(context: _Context) -> int:
    """Return the bytes every core always spends: shift buffer, weights that no operator owns alone."""
    total = context.chip.shift_buffer_bytes
    for weight in context.graph.weights:
        if weight.name in context.lives.last_by_value and weight.name not in context.lives.owner_by_weight:
            total += aligned_size(-(-prod(weight.shape) // context.chip.n_cores) * size_bytes(weight.dtype))
    return total


def _live_bytes(
    context: _Context, fronts: tuple[Front, ...], choices: tuple[Choice, ...]
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return per operator the bytes of values alive while it runs, other than its own operands and result."""
    n = len(context.graph.operators)
    live = np.zeros(n, np.int64)
    for value in context.graph.inputs:
        last = context.lives.last_by_value.get(value.name, -1)
        size = aligned_size(-(-prod(value.shape) // context.chip.n_cores) * size_bytes(value.dtype))
        live[: last + 1] += size
    for step, (spec, front, choice) in enumerate(zip(context.graph.operators, fronts, choices, strict=True)):
        _, n_slots = output_chunk(spec, front[choice.plan].plan)
        last = context.lives.last_by_value.get(spec.output.name, step)
        live[step + 1 : last + 1] += aligned_size(n_slots * size_bytes(spec.output.dtype))
    return live


def _linear(value: str, dtype: str, n_cores: int) -> Layout:
    return Layout(kind="linear", value=value, n_cores=n_cores, dtype=dtype)


def _output_layout(spec: OperatorSpec, plan: OperatorPlan) -> Layout:
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


def _weight_layouts(
    context: _Context, fronts: tuple[Front, ...], choices: tuple[Choice, ...]
) -> dict[str, Layout]:
    """Return the idle layout of every weight that is read."""
    layouts: dict[str, Layout] = {}
    for weight in context.graph.weights:
        if weight.name not in context.lives.last_by_value:
            continue
        layouts[weight.name] = _linear(weight.name, weight.dtype, context.chip.n_cores)
        owner = context.lives.owner_by_weight.get(weight.name)
        if owner is None or choices[owner[0]].level == 0:
            continue
        step, number = owner
        spec, choice = context.graph.operators[step], choices[step]
        plan = fronts[step][choice.plan].plan
        layouts[weight.name] = Layout(
            kind="operand",
            value=weight.name,
            n_cores=plan.n_cores,
            dtype=weight.dtype,
            operator=spec.name,
            operand=number,
            plan=plan,
            scatter=scatter_at(choice.level, replica_count(spec, plan, number)),
        )
    return layouts


def _assemble(
    context: _Context, fronts: tuple[Front, ...], choices: tuple[Choice, ...], progress: Progress | None
) -> ModulePlan:
    """Return the schedule that follows from the choices; its peak may exceed the capacity."""
    graph, chip = context.graph, context.chip
    weights = _weight_layouts(context, fronts, choices)
    inputs = {
        value.name: _linear(value.name, value.dtype, chip.n_cores)
        for value in graph.inputs
        if value.name in context.lives.last_by_value
    }
    layouts = {**weights, **inputs}
    operators: list[ScheduledOperator] = []
    for step, (spec, front, choice) in enumerate(zip(graph.operators, fronts, choices, strict=True)):
        if progress:
            progress("schedule", step, len(graph.operators))
        priced = front[choice.plan]
        arrivals = tuple(
            _arrival(context, step, number, priced.plan, layouts) for number in range(len(spec.operands))
        )
        layout = _output_layout(spec, priced.plan)
        layouts[spec.output.name] = layout
        active = replace(priced, cycles=_cycles(context, spec, priced.plan, arrivals))
        operators.append(ScheduledOperator(spec.name, active, arrivals, layout, front))
    requests = _requests(context, operators, layouts)
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


def _arrival(
    context: _Context, step: int, number: int, plan: OperatorPlan, layouts: Mapping[str, Layout]
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


def _is_last_use(context: _Context, step: int, name: str) -> bool:
    """Return whether nothing reads a value after this operand, which may therefore rotate it away."""
    graph = context.graph
    if context.lives.last_by_value[name] != step or any(
        name in graph.sources_of(o.value) for o in graph.outputs
    ):
        return False
    operands = graph.operators[step].operands
    return sum(name in graph.sources_of(operand.name) for operand in operands) == 1


def _cycles(
    context: _Context, spec: OperatorSpec, plan: OperatorPlan, arrivals: tuple[Arrival, ...]
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


def _requests(
    context: _Context, operators: list[ScheduledOperator], layouts: Mapping[str, Layout]
) -> list[Request]:
    """Return every buffer the program needs, with its lifetime in operator steps."""
    graph, lives = context.graph, context.lives
    end = max(len(operators) - 1, 0)
    requests = [Request("shift", context.chip.shift_buffer_bytes, 0, end)]
    specs = {spec.name: spec for spec in graph.operators}
    for values, prefix in ((graph.weights, "idle"), (graph.inputs, "input")):
        for value in values:
            if value.name not in layouts:
                continue
            last = end if prefix == "idle" else lives.last_by_value[value.name]
            size = layout_slots(specs, layouts[value.name], prod(value.shape)) * size_bytes(value.dtype)
            requests.append(Request(f"{prefix}:{value.name}", size, 0, last))
    for step, (spec, scheduled) in enumerate(zip(graph.operators, operators, strict=True)):
        plan = scheduled.active.plan
        for arrival in scheduled.arrivals:
            if arrival.kind != "in_place":
                dtype = operand_of(spec, arrival.operand).dtype
                size = operand_slots(spec, plan, arrival.operand) * size_bytes(dtype)
                requests.append(Request(arrival.buffer, size, step, step))
        n_members, n_slots = output_chunk(spec, plan)
        if spec.epilogue is not None or n_members > 1:
            size = operand_slots(spec, plan, len(spec.operands)) * size_bytes(spec.acc_dtype)
            requests.append(Request(f"accumulator:{spec.name}", size, step, step))
        last = lives.last_by_value.get(spec.output.name, step)
        requests.append(
            Request(f"value:{spec.output.name}", n_slots * size_bytes(spec.output.dtype), step, last)
        )
    return requests


def layout_slots(specs: Mapping[str, OperatorSpec], layout: Layout, n_elements: int) -> int:
    """Return how many elements a core holds under a layout."""
    if layout.plan is None:
        return -(-n_elements // layout.n_cores)
    return partition_scatter(
        operand_slots(specs[layout.operator], layout.plan, layout.operand), layout.scatter
    )
