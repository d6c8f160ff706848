"""The states an operator may be in: plans of its front, and plans that lie as a producer leaves what it reads.

Fronts are made for operators on their own. In a model a slower plan may be better because nothing has to move before
it, so every state of a producer offers its consumers the plan that follows it (see `search.producer_layouts`).
Operators that only differ in names, with producers in equal states, share one tuple of states.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.plan import CostedPlan, OperatorPlan
from t10.cost.model import least_costs
from t10.cost.operator import output_chunk
from t10.plan.assemble import Context
from t10.plan.joint.fewer_cores import few_core_plans, rungs_of
from t10.plan.joint.grids import grid_plans
from t10.plan.memory.liveness import unshaped
from t10.plan.options import PlanOptions
from t10.plan.search.alternatives import alternatives, evaluate_plans
from t10.plan.search.listed import costed
from t10.plan.search.pareto import Front
from t10.plan.search.producer_layouts import following_plan
from t10.plan.search.reader_layouts import leading_plans

States = tuple[CostedPlan, ...]


@dataclass(frozen=True, slots=True)
class Breadth:
    """How many states an operator has at most.

    Of its front, of plans that follow a producer, of grids, per number of cores, and of plans that follow a reader.
    """

    of_front: int
    following: int
    grids: int
    per_rung: int = 1
    leading: int = 4


WIDE = Breadth(of_front=14, following=8, grids=4)
NARROW = Breadth(of_front=6, following=10, grids=4)

LARGE_ELEMENTS = 4_000_000
"""What moves between operators is counted pair by pair; with results larger than this, fewer states are compared."""
MOST_READERS = 1
"""How many readers are thought to save a fetch if a sum is left whole on all its cores."""
SLOWEST = 2.0
"""A plan that is not of the front may take so much longer than its fastest plan with its fetches and one more."""


def states_of(
    context: Context,
    fronts: Sequence[Front],
    options: PlanOptions,
    kept: Sequence[Sequence[OperatorPlan]] = (),
) -> tuple[States, ...]:
    """Return the states of every operator, priced without what moves before they run; least bytes first.

    `kept` are choices, a plan per operator each, that are states in any case.
    """
    largest = max((prod(spec.output.shape) for spec in context.graph.operators), default=0)
    breadth = NARROW if largest > LARGE_ELEMENTS else WIDE
    result: list[States] = []
    step_by_value = {spec.output.name: step for step, spec in enumerate(context.graph.operators)}
    known: dict[object, States] = {}
    grids: dict[int, tuple[CostedPlan, ...]] = {}
    interned: dict[tuple[int, States], States] = {}
    kept_by_front: dict[int, dict[OperatorPlan, None]] = {id(front): {} for front in fronts}
    for plans in kept:
        for front, plan in zip(fronts, plans, strict=True):
            kept_by_front[id(front)][plan] = None
    for spec, front in zip(context.graph.operators, fronts, strict=True):
        makers = [
            (number, step_by_value[value])
            for number, operand in enumerate(spec.operands)
            if (value := unshaped(operand.name, context.reshapes)) in step_by_value
        ]
        key = (
            id(front),
            options.forced_for(spec.name) is None,
            tuple((number, id(result[maker])) for number, maker in makers),
        )
        if key not in known:
            offered = () if options.forced_for(spec.name) else _offered(context, spec, makers, result)
            if id(front) not in grids:
                free = options.forced_for(spec.name) is None
                grids[id(front)] = (
                    (
                        *grid_plans(context, spec, options, breadth.grids),
                        *few_core_plans(context, spec, breadth.per_rung, _limit_cycles(context, front)),
                    )
                    if free
                    else ()
                )
            priced = _priced(
                context, spec, front, offered, kept_by_front[id(front)], grids[id(front)], breadth
            )
            pinned = options.forced_for(spec.name)
            if pinned is None or pinned.plan is None:
                priced = _with_whole_sums(context, spec, priced)
            # Equal states are one object, or every layer of a deep model would be a kind of its own.
            known[key] = interned.setdefault((id(front), priced), priced)
        result.append(known[key])
    return _with_leading(context, options, breadth, fronts, result)


def _with_leading(
    context: Context,
    options: PlanOptions,
    breadth: Breadth,
    fronts: Sequence[Front],
    states: Sequence[States],
) -> tuple[States, ...]:
    """Return the states and those that leave a result as a state of a reader takes it."""
    result = list(states)
    step_by_value = {spec.output.name: step for step, spec in enumerate(context.graph.operators)}
    readers: list[list[tuple[int, int]]] = [[] for _ in result]
    for step, spec in enumerate(context.graph.operators):
        for number, operand in enumerate(spec.operands):
            maker = step_by_value.get(unshaped(operand.name, context.reshapes))
            if maker is not None:
                readers[maker].append((step, number))
    known: dict[object, States] = {}
    interned: dict[tuple[int, States], States] = {}
    for step, spec in reversed(list(enumerate(context.graph.operators))):
        if options.forced_for(spec.name) is not None:
            continue
        key = (id(result[step]), tuple((number, id(result[reader])) for reader, number in readers[step]))
        if key not in known:
            own = {priced.plan: priced for priced in result[step]}
            offered = dict.fromkeys(
                plan
                for reader, number in readers[step]
                for state in result[reader]
                for plan in leading_plans(spec, context.graph.operators[reader], number, state.plan)
                if plan not in own
            )
            limit = _limit_cycles(context, fronts[step])
            for priced in _cheapest(context, spec, list(offered), breadth.leading):
                if priced.cycles.total <= limit:
                    own[priced.plan] = priced
            found = _with_whole_sums(context, spec, _ordered(own)) if offered else result[step]
            known[key] = interned.setdefault((id(fronts[step]), found), found)
        result[step] = known[key]
    return tuple(result)


def _limit_cycles(context: Context, front: Front) -> float:
    """Return the cycles up to which a plan is worth having: slower ones save no more than they cost."""
    return SLOWEST * (front[-1].cycles.total + context.cost.exchange_cycles(4, 1, neighbour=False))


def _offered(
    context: Context, spec: OperatorSpec, makers: list[tuple[int, int]], states: list[States]
) -> Iterator[OperatorPlan]:
    """Yield the plans that follow a state of a producer."""
    for number, maker in makers:
        producer = context.graph.operators[maker]
        for state in states[maker]:
            plan = following_plan(spec, number, producer, state.plan)
            if plan is not None:
                yield plan


def _priced(
    context: Context,
    spec: OperatorSpec,
    front: Front,
    offered: Iterable[OperatorPlan],
    kept: Mapping[OperatorPlan, None],
    grids: tuple[CostedPlan, ...],
    breadth: Breadth,
) -> States:
    """Return the front, thinned, grids, and the fastest of the plans offered, with the price of running alone."""
    chosen: dict[OperatorPlan, CostedPlan] = {}
    thin = set(_spread(len(front), breadth.of_front))
    for number, priced in enumerate(front):
        if number in thin or priced.plan in kept:
            chosen[priced.plan] = replace(priced, cycles=replace(priced.cycles, relayout=0))
    limit = _limit_cycles(context, front)
    for priced in grids:
        if priced.cycles.total <= limit:
            chosen[priced.plan] = replace(priced, cycles=replace(priced.cycles, relayout=0))
    new = [plan for plan in dict.fromkeys(offered) if plan not in chosen]
    for priced in _cheapest(context, spec, new, breadth.following):
        if priced.cycles.total <= limit:
            chosen[priced.plan] = priced
    return _ordered(chosen)


def _cheapest(
    context: Context, spec: OperatorSpec, plans: Sequence[OperatorPlan], most: int
) -> list[CostedPlan]:
    """Return the plans that take the fewest cycles without what moves before them, as far as bounds tell.

    `most` are returned per rung of cores on which the operator has few partitions, and beyond.
    """
    if not most:
        return []
    rungs = rungs_of(spec, context.chip.n_cores)
    by_rung: dict[int, list[OperatorPlan]] = {}
    for plan in plans:
        rung = next((rung for rung in rungs if plan.n_cores <= rung), context.chip.n_cores)
        by_rung.setdefault(rung, []).append(plan)
    return [priced for each in by_rung.values() for priced in _cheapest_of(context, spec, each, most)]


def _cheapest_of(
    context: Context, spec: OperatorSpec, plans: Sequence[OperatorPlan], most: int
) -> list[CostedPlan]:
    """Return the `most` plans with the least bounds of cycles without what moves before them: only those are priced."""
    bounds = evaluate_plans(spec, least_costs(context.cost), plans)
    order: list[int] = np.argsort(bounds.cycles - bounds.relayout, kind="stable")[:most].tolist()
    priced = _costed_all(context, spec, [plans[number] for number in order])
    return [replace(each, cycles=replace(each.cycles, relayout=0)) for each in priced]


def _with_whole_sums(context: Context, spec: OperatorSpec, states: States) -> States:
    """Return the states and those that combine partial sums on every member."""
    known = {priced.plan: priced for priced in states}
    pairs = [(priced, plan) for priced in states for plan in alternatives(spec, priced.plan, context.chip)]
    others = _costed_all(context, spec, [plan for _, plan in pairs])
    for (priced, _), other in zip(pairs, others, strict=True):
        if _may_pay(context, spec, priced, other):
            without = replace(other, cycles=replace(other.cycles, relayout=0))
            known.setdefault(other.plan, without)
    return _ordered(known)


def _costed_all(context: Context, spec: OperatorSpec, plans: Sequence[OperatorPlan]) -> list[CostedPlan]:
    """Return plans of an operator with their costs."""
    if not plans:
        return []
    arrays = evaluate_plans(spec, context.cost, plans)
    return [costed(plan, arrays, row) for row, plan in enumerate(plans)]


def _ordered(chosen: Mapping[OperatorPlan, CostedPlan]) -> States:
    return tuple(sorted(chosen.values(), key=lambda priced: (priced.active_bytes, priced.cycles.total)))


def _may_pay(context: Context, spec: OperatorSpec, priced: CostedPlan, other: CostedPlan) -> bool:
    """Return whether a reader can save more than it costs to combine partial sums on every member.

    What a reader saves at most is fetching the chunks of all other members.
    """
    n_members, n_slots = output_chunk(spec, other.plan)
    n_bytes = (n_slots - n_slots // n_members) * size_bytes(spec.output.dtype)
    fetch = context.cost.exchange_cycles(n_bytes, n_members - 1, neighbour=False)
    return other.cycles.total - other.cycles.relayout - priced.cycles.total < fetch * MOST_READERS


def _spread(n: int, most: int) -> list[int]:
    """Return at most `most` of n numbers, both ends among them, evenly spread."""
    if n <= most:
        return list(range(n))
    return sorted({round(i * (n - 1) / (most - 1)) for i in range(most)})
