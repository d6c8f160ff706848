"""A whole model's plan: fronts per operator, reconciliation, layouts, arrivals with their traffic, and addresses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial

from t10.chip import ChipSpec
from t10.core.costs import links_of
from t10.core.expression import OperatorSpec
from t10.core.garbage import rare_collections
from t10.core.graph import Graph
from t10.core.loads import shared_places
from t10.core.movement import operand_of
from t10.core.nameless import nameless
from t10.core.placed_costs import placed_costs, tile_ranges
from t10.core.plan import CostedPlan, Cycles, OperatorPlan
from t10.core.schedule import Arrival, Fetch, ModulePlan, Optimality, ScheduledOperator, most_bytes
from t10.cost import CostModel, IpuCostModel
from t10.cost.counts import kept_between_runs
from t10.cost.operator import operator_cycles
from t10.errors import InfeasiblePlanError
from t10.plan.assemble import assemble, cycles_of, fronts_at_levels
from t10.plan.context import Context, context_of
from t10.plan.fewer_cores import choices_on_fewer_cores
from t10.plan.fit.explain_fit import explaining
from t10.plan.fronts.cache import PlanCache
from t10.plan.fronts.helper import kept_helpers
from t10.plan.fronts.operator_fronts import operator_fronts
from t10.plan.fronts.shown import with_fronts
from t10.plan.greedy.algorithm1 import base_bytes, by_reading, free_bytes, reconciled, tables_of
from t10.plan.greedy.chain import followed
from t10.plan.greedy.on_links import with_numberings
from t10.plan.joint.choose import JointPlanner, KnownChoice, deadline_of, is_past
from t10.plan.joint.solve import FEW_OPERATORS
from t10.plan.joint.states import NUMBERED, PLAIN, Breadth
from t10.plan.memory.allocation import memory_bytes
from t10.plan.memory.levels import Choice
from t10.plan.memory.room import CountedRoom, DataRoom, Room
from t10.plan.memory.wishes import Wishes
from t10.plan.options import PlanOptions, Progress, Reading
from t10.plan.prefetch.choose import fetched_plan, kept_or_fetched
from t10.plan.prefetch.fetching import with_waits
from t10.plan.search.listed import room_hint
from t10.plan.search.pareto import Front
from t10.plan.sharing import best_sharing

READINGS: tuple[Reading, ...] = ("literal", "aware")
FIT_ROUNDS = 8
SHORT_PART = 2
"""Data that take less than this part of the memory leave room for any program."""
SPARE_PART = 64
"""Where a choice does not fit beside its program, the next leaves this part of it for what its own may have more."""
LOST_PART = 200
"""A plan is chosen again with less memory if it takes longer, by more than this part, where its buffers lie."""
LESS = (0.0, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)
"""By how many pairs of memory elements further choices have less; each takes at least a byte less than the last."""
MANY_OPERATORS, MANY_LESS = 32, (1 / 16, 1 / 4, 1, 2)
"""What models of more operators have less."""


@rare_collections()
@kept_helpers()
def plan_module(
    graph: Graph,
    chip: ChipSpec,
    options: PlanOptions | None = None,
    progress: Progress | None = None,
    cost: CostModel | None = None,
    *,
    executor: Executor | None = None,
    cache: PlanCache | None = None,
) -> ModulePlan:
    """Return the plan of a model on a chip; operators are searched on `executor` and kept in `cache`.

    Raises `InfeasiblePlanError` naming the operator that does not fit, with bytes needed and available.
    """
    chosen_options = options or PlanOptions()
    cost = cost or IpuCostModel(chip)
    with kept_between_runs(cache), explaining(graph, chip, cost, chosen_options):
        fronts = operator_fronts(graph, chip, cost, chosen_options, progress, executor=executor, cache=cache)
        return as_placed(schedule_module(graph, chip, cost, fronts, chosen_options, progress), chip, cost)


@kept_helpers()
def schedule_module(
    graph: Graph,
    chip: ChipSpec,
    cost: CostModel,
    fronts: tuple[Front, ...],
    options: PlanOptions,
    progress: Progress | None = None,
    room: Room | None = None,
) -> ModulePlan:
    """Return the plan of a model from the fronts of its operators, whose buffers `room` places.

    Plans, idle levels and layouts are chosen together with a proved gap (see `joint`), or by Algorithm 1. Both count
    memory a little high; where neither fits, the smallest plans may. Raises `InfeasiblePlanError` naming the operator
    that does not fit.
    """
    context = context_of(graph, chip, cost, options.forced)
    plan = _scheduled(context, fronts, options, progress, room or DataRoom(chip, Wishes(cost)))
    known = _known(plan)
    if _is_pinned(graph, fronts, options, known):
        known = replace(known, method="pinned")
    return replace(plan, optimality=known)


def _placed_cycles(context: Context, plan: ModulePlan) -> int:
    """Return the cycles of a plan where its buffers lie."""
    return sum_of_cycles(as_placed(plan, context.chip, context.cost))


def _known(plan: ModulePlan) -> Optimality:
    return plan.optimality or Optimality("greedy", sum_of_cycles(plan))


def _is_pinned(graph: Graph, fronts: tuple[Front, ...], options: PlanOptions, known: Optimality) -> bool:
    """Return whether the user's pins leave every operator one plan and one layout: a bound then says nothing."""
    n_operators = len(graph.operators)
    return (
        n_operators > 0
        and all(options.forced_for(spec.name) is not None for spec in graph.operators)
        and all(len(front) == 1 for front in fronts)
        and known.n_states in (0, n_operators)
    )


def _scheduled(
    context: Context, fronts: tuple[Front, ...], options: PlanOptions, progress: Progress | None, room: Room
) -> ModulePlan:
    at_levels = fronts_at_levels(context, fronts, context.level_by_operator)

    def counting(make: Callable[[Room], ModulePlan]) -> ModulePlan:
        counted = CountedRoom(room)
        plan = make(counted)
        return replace(plan, optimality=replace(_known(plan), n_choices=counted.n_plans))

    def planned(each: Context) -> ModulePlan:
        chosen = fronts_at_levels(each, fronts, each.level_by_operator)
        return counting(lambda counted: _planned(each, chosen, options, progress, counted))

    def kept() -> ModulePlan:
        return planned(context) if options.as_published else best_sharing(context, options.forced, planned)

    def fetched() -> ModulePlan:
        return counting(lambda counted: fetched_plan(context, at_levels, options, counted, cycles, progress))

    cycles = partial(_placed_cycles, context)
    is_exact = options.reconcile == "exact" and not options.as_published
    return kept_or_fetched(context, at_levels, kept, fetched, cycles if is_exact else None)


def _planned(
    context: Context, fronts: tuple[Front, ...], options: PlanOptions, progress: Progress | None, room: Room
) -> ModulePlan:
    try:
        if options.reconcile == "greedy" or options.as_published:
            return _greedy_plan(context, fronts, options, progress, room)
        return _joint_plan(context, fronts, options, progress, room)
    except InfeasiblePlanError:
        levels = [context.level_by_operator.get(spec.name, 0) for spec in context.graph.operators]
        plan = room(assemble(context, fronts, tuple(Choice(0, level) for level in levels), progress))
        if plan.end_bytes > context.chip.data_end_bytes:
            raise
        return replace(plan, optimality=Optimality("greedy", sum_of_cycles(plan)))


def _joint_plan(
    context: Context,
    fronts: tuple[Front, ...],
    options: PlanOptions,
    progress: Progress | None,
    placing: Room,
) -> ModulePlan:
    """Return the plan of plans, idle levels and layouts chosen together."""

    def report(done: int, total: int) -> None:
        if progress:
            progress("reconcile", done, total)

    readings = _starts(context, fronts)
    whole_room = context.chip.capacity_bytes - base_bytes(context)
    room = whole_room - _program_bytes(context, fronts, readings, placing)

    deadline = deadline_of(options)

    def planned(
        breadth: Breadth | None, numbered: int = 0, known: Sequence[KnownChoice] = ()
    ) -> tuple[ModulePlan | None, bool]:
        others = readings, report, breadth, room
        planner = JointPlanner(
            context, fronts, options, *others, numbered=numbered, known=known, deadline=deadline
        )
        plan, is_placed = _beside_program(context, fronts, planner, placing, room, progress)
        if not is_placed and room < whole_room:
            plan, is_placed = _beside_program(context, fronts, planner, placing, whole_room, progress)
        return plan, is_placed

    # Where data fit, but not beside any program, plans are chosen whose programs are smaller: than Algorithm 1's too.
    for breadth in (None, PLAIN):
        plan, is_placed = planned(breadth)
        if plan is not None:
            links = links_of(context.cost)
            if links is None or len(context.graph.operators) > FEW_OPERATORS:
                return plan
            # More states are not always solved as well.
            others = [None if is_past(deadline) else planned(breadth, NUMBERED)[0]]
            cycles = min(sum_of_cycles(each) for each in (plan, *others) if each is not None)
            known = choices_on_fewer_cores(context, links, options, _starts, cycles, deadline)
            if known:
                others.append(planned(breadth, known=known)[0])
            return min((plan, *(o for o in others if o)), key=partial(_placed_cycles, context))
        if not is_placed:
            break
    # Algorithm 1 says which operator does not fit, and may know a packing that does.
    return _greedy_plan(context, fronts, replace(options, reading="best"), progress, placing)


def _starts(context: Context, fronts: tuple[Front, ...]) -> dict[Reading, tuple[Choice, ...] | None]:
    """Return what Algorithm 1 chooses, by reading."""
    tables = tables_of(context, fronts)
    return {reading: by_reading(context, fronts, tables, reading) for reading in READINGS}


def _beside_program(
    context: Context,
    fronts: tuple[Front, ...],
    planner: JointPlanner,
    placing: Room,
    room: int,
    progress: Progress | None,
) -> tuple[ModulePlan | None, bool]:
    """Return the best plan that is found beside its program, and whether any was placed; `room` bytes are for data."""
    bound_cycles, gap, whole_room = None, planner.options.gap, room

    def planned(room: int) -> ModulePlan | None:
        nonlocal bound_cycles
        joint = planner.best(room)
        if joint is None:
            return None
        # With less room, because packing wasted some, the bound would be one of fewer choices.
        bound_cycles = joint.bound_cycles if bound_cycles is None else min(bound_cycles, joint.bound_cycles)
        plan = placing(assemble(context, joint.states, joint.choices, progress))
        found = replace(joint, bound_cycles=bound_cycles)
        return with_fronts(context, plan, fronts, found.optimality(sum_of_cycles(plan)))

    def closed(plan: ModulePlan) -> ModulePlan:
        known, cycles = _known(plan), _placed_cycles(context, plan)
        if known.bound_cycles >= cycles * (1 - gap):
            return plan
        closer = max(known.bound_cycles, planner.closer_bound(whole_room, cycles))
        return replace(plan, optimality=replace(known, bound_cycles=min(closer, known.cycles)))

    is_placed = False
    for _ in range(FIT_ROUNDS):
        plan = planned(room)
        if plan is None:
            break
        is_placed = True
        if plan.end_bytes <= context.chip.data_end_bytes:
            return closed(_lying_better(context, plan, room, planned)), True
        # Another choice has another program, which may be a little larger.
        spare = (plan.reserved_bytes - context.chip.reserved_bytes) // SPARE_PART
        room -= plan.end_bytes - context.chip.data_end_bytes + spare
        room = min(room, _too_little(context, plan))
    return None, is_placed


def _too_little(context: Context, plan: ModulePlan) -> int:
    """Return a room in which a plan is not chosen again, as its buffers take more, however they lie."""
    return plan.peak_bytes - plan.reserved_bytes - base_bytes(context) - 1


def _lying_better(
    context: Context, plan: ModulePlan, room: int, planned: Callable[[int], ModulePlan | None]
) -> ModulePlan:
    """Return the plan of a room, or one that takes less where its buffers lie: `planned` gives those of other rooms.

    Where memory is more than half full, operands may share elements: less to place may lie better.
    """
    cycles = partial(_placed_cycles, context)

    def lies_badly(plan: ModulePlan, lying: int) -> bool:
        return (lying - sum_of_cycles(plan)) * LOST_PART > lying

    least = cycles(plan)
    if plan.peak_bytes * SHORT_PART < context.chip.capacity_bytes or not lies_badly(plan, least):
        return plan
    last = plan
    for part in LESS if len(plan.operators) <= MANY_OPERATORS else MANY_LESS:
        less = int(context.chip.tile_memory.interleaved_bytes * part)
        found = planned(min(room - less, _too_little(context, last)))
        if found is None or sum_of_cycles(found) >= least:
            break
        last = found
        if last.end_bytes > context.chip.data_end_bytes:
            continue
        lying = cycles(last)
        if lying < least:
            plan, least = last, lying
        if not lies_badly(last, lying):
            break
    return plan


def _program_bytes(
    context: Context,
    fronts: tuple[Front, ...],
    readings: Mapping[Reading, tuple[Choice, ...] | None],
    placing: Room,
) -> int:
    """Return the bytes that programs need beyond what the chip reserves, as far as memory may be short of them.

    They are counted for what Algorithm 1 chooses: other choices have programs of about that size.
    """
    choices = next((each for each in readings.values() if each is not None), None)
    if choices is None:
        return 0
    buffers = assemble(context, fronts, choices, None, is_counted=False).buffers
    if most_bytes(buffers, 0) * SHORT_PART < context.chip.capacity_bytes:
        return 0
    plan = assemble(context, fronts, choices, None)
    return placing.reserved_bytes(plan) - context.chip.reserved_bytes


def sum_of_cycles(plan: ModulePlan) -> int:
    """Return the modelled cycles of a whole model."""
    return sum(scheduled.active.cycles.total for scheduled in plan.operators)


def _greedy_plan(
    context: Context,
    fronts: tuple[Front, ...],
    options: PlanOptions,
    progress: Progress | None,
    placing: Room,
) -> ModulePlan:
    """Return the plan of Algorithm 1; operators then follow their producers' layouts where that is faster.

    If those do not fit, they are left as they were. If packing wastes too much, all is done again with less memory.
    """
    offered = fronts if options.as_published else with_numberings(context, fronts)
    tables = tables_of(context, offered)
    spare = end = 0
    for _ in range(FIT_ROUNDS):
        if progress:
            progress("reconcile", 0, 1)
        choices = reconciled(context, offered, tables, options.reading, spare)
        free = free_bytes(context, offered, tables, choices, spare)
        own = (offered, choices)
        candidates = (own,) if options.as_published else (followed(context, *own, free, options), own)
        for candidate in candidates:
            plan = placing(assemble(context, *candidate, progress))
            if plan.end_bytes <= context.chip.data_end_bytes:
                return with_fronts(context, plan, fronts, Optimality("greedy", sum_of_cycles(plan)))
            end = plan.end_bytes
        spare += end - context.chip.data_end_bytes
    raise InfeasiblePlanError(
        f"buffers as last placed need {memory_bytes(end):,} bytes per core, {context.chip.name} has "
        f"{context.chip.sram_bytes:,}",
        hint=room_hint(context.graph.operators),
    )


def restore_module(
    graph: Graph,
    chip: ChipSpec,
    cost: CostModel,
    plans: tuple[CostedPlan, ...],
    idle_levels: tuple[int, ...],
    *,
    fetches: tuple[Fetch, ...] = (),
    is_exact: bool = False,
) -> ModulePlan:
    """Return the schedule of a model of which plans and idle levels (`memory.levels`) are chosen, one per operator.

    Its buffers have no places, and its operators wait for `fetches`. Weights rest at the largest level of theirs that
    divides the one chosen; with `is_exact` levels that are none are refused (`InfeasiblePlanError`).
    """
    choices = tuple(Choice(0, level) for level in idle_levels)
    context, fronts = context_of(graph, chip, cost), tuple((priced,) for priced in plans)
    if is_exact:
        names = [spec.name for spec in graph.operators]
        fronts_at_levels(context, fronts, dict(zip(names, idle_levels, strict=True)))
    return with_waits(replace(assemble(context, fronts, choices, None), fetches=fetches), chip)


def check_room(plan: ModulePlan, chip: ChipSpec) -> None:
    """Raise `InfeasiblePlanError` if the buffers of a plan end too high."""
    if plan.end_bytes > chip.data_end_bytes:
        need = f"{memory_bytes(plan.end_bytes):,} bytes per core, {chip.name} has {chip.sram_bytes:,}"
        raise InfeasiblePlanError(f"buffers as placed need {need}", hint=room_hint(plan.graph.operators))


def costed_arrivals(plan: ModulePlan, chip: ChipSpec, cost: CostModel) -> ModulePlan:
    """Return a plan with what its arrivals move and take, and with the cycles of its operators, by a cost model.

    All lies as well as it can; see `as_placed`.
    """
    context = context_of(plan.graph, chip, cost)
    layouts = {layout.value: layout for layout in (*plan.weight_layouts, *plan.input_layouts)}
    operators: list[ScheduledOperator] = []
    for spec, scheduled in zip(plan.graph.operators, plan.operators, strict=True):
        active = scheduled.active
        arrivals: tuple[Arrival, ...] = ()
        for each in scheduled.arrivals:
            if each.kind != "in_place":
                where = each.operand, layouts, each.buffer
                each = context.mover.arrival(spec, active.plan, *where, before=arrivals)
            arrivals += (each,)
        layouts[spec.output.name] = scheduled.output_layout
        priced = replace(active, cycles=cycles_of(cost, spec, active.plan, arrivals))
        operators.append(replace(scheduled, active=priced, arrivals=arrivals))
    return with_waits(replace(plan, operators=tuple(operators)), chip)


def as_placed(plan: ModulePlan, chip: ChipSpec, cost: CostModel) -> ModulePlan:
    """Return a plan, costed as if all lay as well as it can, with what it takes where its buffers lie."""
    graph, mover = plan.graph, context_of(plan.graph, chip, cost).mover
    costs, places = placed_costs(cost, plan, chip.tile_memory), tile_ranges(plan, chip.tile_memory)
    layouts = {layout.value: layout for layout in (*plan.weight_layouts, *plan.input_layouts)}
    homes = {value.name: f"idle:{value.name}" for value in graph.weights}
    homes |= {value.name: f"input:{value.name}" for value in graph.inputs}

    def arrived(
        arrival: Arrival, spec: OperatorSpec, active: OperatorPlan, before: Sequence[Arrival]
    ) -> Arrival:
        if arrival.kind == "in_place":
            return arrival
        sources = graph.sources_of(operand_of(spec, arrival.operand).name)
        shared = shared_places(places[arrival.buffer], [places[homes[source]] for source in sources])
        if shared is None:
            return arrival
        return mover.arrival(spec, active, arrival.operand, layouts, arrival.buffer, shared, before)

    # Equal operators that lie alike share their costs and a plan.
    run_by_kind: dict[tuple[int, OperatorSpec, int], Cycles] = {}
    operators: list[ScheduledOperator] = []
    for spec, scheduled in zip(graph.operators, plan.operators, strict=True):
        active = scheduled.active
        numbered = enumerate(scheduled.arrivals)
        arrivals = tuple([arrived(a, spec, active.plan, scheduled.arrivals[:n]) for n, a in numbered])
        layouts[spec.output.name] = scheduled.output_layout
        homes[spec.output.name] = f"value:{spec.output.name}"
        cost, key = costs[spec.name], (id(costs[spec.name]), nameless(spec), id(active.plan))
        if key not in run_by_kind:
            run_by_kind[key] = operator_cycles(cost, spec, active.plan)
        cycles = cycles_of(cost, spec, active.plan, arrivals, 0, run_by_kind[key])
        operators.append(replace(scheduled, active=replace(active, cycles=cycles), arrivals=arrivals))
    plan = with_waits(replace(plan, operators=tuple(operators)), chip)
    known, total = plan.optimality, sum_of_cycles(plan)
    # Choosing takes every step for one that begins where code is slowest: few plans have a step where no core does.
    known = known and replace(known, cycles=total, bound_cycles=min(known.bound_cycles, total))
    return replace(plan, optimality=known)


def with_costs(plan: ModulePlan, known: ModulePlan) -> ModulePlan | None:
    """Return a plan with what is known about it: cycles, traffic and the fronts it was chosen from.

    None where `known` does something else: it is then not this plan that is known.
    """
    operators: list[ScheduledOperator] = []
    names, others = ([each.name for each in each_plan.operators] for each_plan in (plan, known))
    if names != others or plan.fetches != known.fetches:
        return None
    # Text keeps no locations: those of the model are known from where it was compiled.
    located = tuple(
        replace(spec, location=other.location)
        for spec, other in zip(plan.graph.operators, known.graph.operators, strict=True)
    )
    for one, other in zip(plan.operators, known.operators, strict=True):
        arrivals = tuple(sorted(other.arrivals, key=lambda each: each.operand))
        stated = [(each.operand, each.kind, each.buffer) for each in one.arrivals]
        same = stated == [(e.operand, e.kind, e.buffer) for e in arrivals]
        if not same or one.body != other.body or not one.active.plan.is_same(other.active.plan):
            return None
        plan_now = one.active.plan
        active = replace(other.active, plan=plan_now)
        # Prices on a front are of one kind: the plan that runs keeps its own there.
        front = tuple(
            replace(each, plan=plan_now) if each.plan.is_same(plan_now) else each for each in other.pareto
        )
        operators.append(replace(one, active=active, arrivals=arrivals, pareto=front))
    graph = replace(plan.graph, operators=located)
    return replace(plan, graph=graph, operators=tuple(operators), optimality=known.optimality)
