"""The states of an operator: plans of its front, and plans that a whole model may be faster with.

In a model a slower plan may be better because less has to move. So states also contain the plans without rotation
with the best marginals (`marginals`), and those whose layouts equal a state of a producer or a reader
(`search.producer_layouts`). Operators that differ only in names, with producers in equal states, share one tuple.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import prod

from t10.core.costs import links_of
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.movement import operand_of
from t10.core.plan import CostedPlan, OperatorPlan
from t10.cost.model import least_costs
from t10.cost.operator import output_chunk
from t10.plan.context import Context
from t10.plan.joint.candidates import listed_by_front
from t10.plan.joint.marginals import Marginals, alone
from t10.plan.joint.solve import FEW_OPERATORS
from t10.plan.memory.liveness import unshaped
from t10.plan.options import PlanOptions
from t10.plan.search.alternatives import alternatives, evaluate_plans, with_results_first
from t10.plan.search.laid_out import numberings
from t10.plan.search.listed import costed
from t10.plan.search.pareto import Front
from t10.plan.search.producer_layouts import following_plan, lying_plan
from t10.plan.search.reader_layouts import leading_plans, operand_parts

States = tuple[CostedPlan, ...]


@dataclass(frozen=True, slots=True)
class Breadth:
    """How many states an operator has at most.

    Of its front, of plans without rotation by their marginals (and the best of each size), of plans that follow a
    producer, and a reader; of those with other parts in different groups of cores. If it `is_full`, plans follow and
    lead twice, and of each number of cores one that lies as several operands do is among them, so that a chain can
    change as a whole.
    """

    of_front: int
    of_candidates: int
    following: int
    leading: int
    of_each_size: bool = False
    is_full: bool = False
    numbered: int = 0


@dataclass(frozen=True, slots=True)
class _Prices:
    """What plans cost without what moves before them, asked once for operators that share a front; how many to ask."""

    context: Context
    fronts: Sequence[Front]
    breadth: Breadth
    known: dict[tuple[int, bool], dict[OperatorPlan, CostedPlan]] = field(
        default_factory=dict[tuple[int, bool], dict[OperatorPlan, CostedPlan]]
    )

    def of(self, step: int, plans: Sequence[OperatorPlan], *, is_least: bool = False) -> list[CostedPlan]:
        """Return plans of an operator with their prices, or with bounds of them."""
        known = self.known.setdefault((id(self.fronts[step]), is_least), {})
        new = [plan for plan in dict.fromkeys(plans) if plan not in known]
        if new:
            cost = least_costs(self.context.cost) if is_least else self.context.cost
            arrays = evaluate_plans(self.context.graph.operators[step], cost, new)
            known |= {plan: alone(costed(plan, arrays, row)) for row, plan in enumerate(new)}
        return [known[plan] for plan in plans]


FULL = Breadth(of_front=14, of_candidates=12, following=16, leading=24, of_each_size=True, is_full=True)
WIDE = Breadth(of_front=14, of_candidates=12, following=8, leading=12, of_each_size=True)
DEEP = Breadth(of_front=8, of_candidates=6, following=8, leading=4)
THINNED = Breadth(of_front=14, of_candidates=32, following=8, leading=12)
"""What deep models begin with where states are thinned (`joint.thin`)."""
THINNED_CORES = 8192
"""Cores up to which they are: layouts of more take long to compare, and much memory."""
NARROW = Breadth(of_front=6, of_candidates=4, following=10, leading=4)
PLAIN = Breadth(of_front=14, of_candidates=0, following=8, leading=4)
"""Plans of fronts and those that follow them: less moves between them, and programs are smaller."""

NUMBERED = 4
"""Where cores are linked in groups, as many plans of an operator have other parts in different groups."""

VERY_FEW, SMALL_ELEMENTS = 8, 1 << 17
"""Models of so few operators, none of which reads more elements of a tensor, take little time to plan."""
LARGE_ELEMENTS = 4_000_000
"""What moves between operators is counted pair by pair; with results larger than this, fewer states are compared."""


WISHED_CELLS = 30_000
"""Where a table has more entries, its operators have fewer states if they can."""
MOST_CELLS = 200_000
"""Largest table counted entry by entry, in some ten seconds; what is larger is priced when a choice is made."""
MOST_DIMS = 32
"""Dims of a table, one per operator, up to which it is counted: arrays have 64 at most."""


def states_of(
    context: Context,
    fronts: Sequence[Front],
    options: PlanOptions,
    kept: Sequence[Sequence[OperatorPlan]] = (),
    breadth: Breadth | None = None,
) -> tuple[States, ...]:
    """Return the states of every operator, priced without what moves before they run; least bytes first.

    `kept` are choices, a plan per operator each, that are states in any case. The size of the model says how many
    there are where `breadth` does not. What is received through views is an estimate that may rank a good plan out:
    where there are any, those ranked without it are states too.
    """
    listed = listed_by_front(context, fronts, options)
    rankings = [Marginals(context, fronts, options, listed, through_views=True)]
    # Before any plan is counted: each ranks as it would alone.
    if rankings[0].sees_views:
        rankings.append(Marginals(context, fronts, options, listed, through_views=False))
    breadth = breadth or breadth_of(context)
    if breadth.of_candidates:
        rankings[0].count_best(breadth.of_candidates, of_each_size=breadth.of_each_size)
    prices = _Prices(context, fronts, breadth)
    found = [_ranked_states(prices, options, ranking, kept) for ranking in rankings]
    if len(found) == 1:
        return found[0]
    interned: dict[tuple[int, States], States] = {}
    united = [
        interned.setdefault((id(front), priced), priced)
        for front, *states in zip(fronts, *found, strict=True)
        for priced in [_ordered({state.plan: state for each in states for state in each})]
    ]
    return within_tables(context, united, found[0])


def breadth_of(context: Context) -> Breadth:
    """Return how many states operators have by the size of the model."""
    operators = context.graph.operators
    if max((prod(spec.output.shape) for spec in operators), default=0) > LARGE_ELEMENTS:
        return NARROW
    if len(operators) > FEW_OPERATORS:
        return DEEP
    largest = max((prod(operand.shape) for spec in operators for operand in spec.operands), default=0)
    return FULL if len(operators) <= VERY_FEW and largest <= SMALL_ELEMENTS else WIDE


def within_tables(context: Context, united: list[States], ranked: Sequence[States]) -> tuple[States, ...]:
    """Return states of which tables are small enough to be counted: some of the united ones as one ranking has them.

    A table that is left out costs more than states it has too few.
    """
    maker_by_value = {spec.output.name: step for step, spec in enumerate(context.graph.operators)}
    maker_by_value |= {value: reader.step for value, reader in context.reader_by_input.items()}
    maker_by_value |= {value: step for value, (step, _) in context.resting.items()}
    result = list(united)
    for step, spec in enumerate(context.graph.operators):
        for operand in spec.operands:
            sources = context.graph.sources_of(operand.name)
            scope = sorted({step, *(maker_by_value[each] for each in sources if each in maker_by_value)})
            for member in sorted(scope, key=lambda each: len(ranked[each]) / len(result[each])):
                if prod(len(result[each]) for each in scope) <= WISHED_CELLS:
                    break
                result[member] = ranked[member]
    return tuple(result)


def _ranked_states(
    prices: _Prices,
    options: PlanOptions,
    marginals: Marginals,
    kept: Sequence[Sequence[OperatorPlan]],
) -> tuple[States, ...]:
    """Return the states of every operator by one ranking."""
    context, fronts, breadth = prices.context, prices.fronts, prices.breadth
    result: list[States] = []
    step_by_value = {spec.output.name: step for step, spec in enumerate(context.graph.operators)}
    known: dict[object, States] = {}
    interned: dict[tuple[int, States], States] = {}
    readings = context.readings(of_inputs=breadth.is_full)
    kept_by_front: dict[int, dict[OperatorPlan, None]] = {id(front): {} for front in fronts}
    for plans in kept:
        for front, plan in zip(fronts, plans, strict=True):
            kept_by_front[id(front)][plan] = None
    for step, (spec, front) in enumerate(zip(context.graph.operators, fronts, strict=True)):
        makers = _makers(context, spec, step_by_value)
        sharing = [
            (n, first) for (reader, n), first in readings.items() if reader == step and first[0] < step
        ]
        key = (
            id(front),
            id(marginals.by_step[step]),
            tuple((number, id(result[maker])) for number, maker in makers),
            tuple((number, at, id(result[first])) for number, (first, at) in sharing),
        )
        if key not in known:
            chosen = {
                each.plan: alone(each) for each in _thinned(front, breadth.of_front, kept_by_front[id(front)])
            }
            # Those that were chosen for other numbers of cores are none of the front.
            chosen |= {
                each.plan: each
                for each in prices.of(step, [p for p in kept_by_front[id(front)] if p not in chosen])
            }
            if options.forced_for(spec.name) is None:
                chosen |= {
                    each.plan: each
                    for each in marginals.best(step, breadth.of_candidates, of_each_size=breadth.of_each_size)
                }
                offered = _offered(context, spec, makers, result)
                chosen |= _fastest(prices, marginals, step, offered, chosen, breadth.following)
                for number, first in sharing:
                    alike = _alike(context, (step, number), first, result[first[0]])
                    chosen |= _fastest(prices, marginals, step, alike, chosen, breadth.following)
                chosen |= _numbered(prices, marginals, step, chosen)
            pinned = options.forced_for(spec.name)
            if pinned is None or pinned.plan is None:
                chosen |= _other_sums(prices, step, chosen, is_pinned=pinned is not None)
            # Equal states are one object, or every layer of a deep model would be a kind of its own.
            priced = _ordered(chosen)
            known[key] = interned.setdefault((id(front), priced), priced)
        result.append(known[key])
    states = _with_leading(prices, options, marginals, result)
    if breadth.is_full:
        states = _with_following(prices, options, marginals, states)
        states = _with_leading(prices, options, marginals, states)
    return states


def _with_following(
    prices: _Prices, options: PlanOptions, marginals: Marginals, states: Sequence[States]
) -> tuple[States, ...]:
    """Return the states and those that follow a state of a producer that has become one since."""
    context, result = prices.context, list(states)
    step_by_value = {spec.output.name: step for step, spec in enumerate(context.graph.operators)}
    interned: dict[tuple[int, States], States] = {}
    for step, spec in enumerate(context.graph.operators):
        if options.forced_for(spec.name) is None:
            own = {priced.plan: priced for priced in result[step]}
            offered = _offered(context, spec, _makers(context, spec, step_by_value), result)
            found = _fastest(prices, marginals, step, offered, own, prices.breadth.following)
            priced = _ordered(own | found | _other_sums(prices, step, found))
            result[step] = interned.setdefault((id(prices.fronts[step]), priced), priced)
    return tuple(result)


def _makers(context: Context, spec: OperatorSpec, step_by_value: Mapping[str, int]) -> list[tuple[int, int]]:
    """Return the operands of an operator that others made, and which."""
    return [
        (number, step_by_value[value])
        for number, operand in enumerate(spec.operands)
        if (value := unshaped(operand.name, context.reshapes)) in step_by_value
    ]


def _with_leading(
    prices: _Prices, options: PlanOptions, marginals: Marginals, states: Sequence[States]
) -> tuple[States, ...]:
    """Return the states and those that leave a result as a state of a reader takes it."""
    context, fronts, breadth = prices.context, prices.fronts, prices.breadth
    result = list(states)
    step_by_value = {spec.output.name: step for step, spec in enumerate(context.graph.operators)}
    readers: list[list[tuple[int, int]]] = [[] for _ in result]
    for step, spec in enumerate(context.graph.operators):
        for number, operand in enumerate(spec.operands):
            maker = step_by_value.get(unshaped(operand.name, context.reshapes))
            if maker is not None:
                readers[maker].append((step, number))
    sharing: list[list[tuple[int, tuple[int, int]]]] = [[] for _ in result]
    for reader, (first, number) in context.readings(of_inputs=breadth.is_full).items():
        sharing[first].append((number, reader))
    known: dict[object, States] = {}
    interned: dict[tuple[int, States], States] = {}
    for step, spec in reversed(list(enumerate(context.graph.operators))):
        if options.forced_for(spec.name) is not None:
            continue
        key = (
            id(result[step]),
            tuple((number, id(result[reader])) for reader, number in readers[step]),
            tuple((number, at, id(result[reader])) for number, (reader, at) in sharing[step]),
        )
        if key not in known:
            own = {priced.plan: priced for priced in result[step]}
            offered = (
                plan
                for reader, number in readers[step]
                for state in result[reader]
                for plan in leading_plans(spec, context.graph.operators[reader], number, state.plan)
            )
            found = _fastest(prices, marginals, step, offered, own, breadth.leading)
            for number, other in sharing[step]:
                alike = _alike(context, (step, number), other, result[other[0]])
                found |= _fastest(prices, marginals, step, alike, own | found, breadth.leading)
            priced = _ordered(own | found | _other_sums(prices, step, found))
            known[key] = interned.setdefault((id(fronts[step]), priced), priced)
        result[step] = known[key]
    return tuple(result)


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


def _alike(
    context: Context, place: tuple[int, int], other: tuple[int, int], states: States
) -> Iterator[OperatorPlan]:
    """Yield the plans of an operator under which its operand lies as that of another does under a state of that."""
    spec, shown = context.graph.operators[place[0]], context.graph.operators[other[0]]
    shape = operand_of(shown, other[1]).shape
    for state in states:
        plan = lying_plan(spec, place[1], operand_parts(shown, other[1], state.plan), shape)
        if plan is not None:
            yield plan


def _thinned(front: Front, most: int, kept: Mapping[OperatorPlan, None]) -> Iterator[CostedPlan]:
    """Yield plans of a front, evenly spread and the two fastest, and those that are kept in any case.

    The fastest one may be no more than a little faster, and leave results as no other operator reads them.
    """
    thin = {*_spread(len(front), most), *range(max(len(front) - 2, 0), len(front))}
    yield from (each for number, each in enumerate(front) if number in thin or each.plan in kept)


def _fastest(
    prices: _Prices,
    marginals: Marginals,
    step: int,
    offered: Iterable[OperatorPlan],
    known: Mapping[OperatorPlan, CostedPlan],
    most: int,
) -> dict[OperatorPlan, CostedPlan]:
    """Return the plans of the least marginals that are not known yet, at most so many, with their prices.

    If the breadth is full, for each number of cores one that is offered most often besides: it lies as several operands
    do.
    """
    times = Counter(offered)
    order = marginals.ranked(step, [plan for plan in times if plan not in known])
    chosen = dict.fromkeys(order[:most])
    if prices.breadth.is_full:
        by_cores: dict[int, OperatorPlan] = {}
        for plan in sorted(order, key=times.__getitem__, reverse=True):
            by_cores.setdefault(prod(plan.f_op), plan)
        chosen |= dict.fromkeys(plan for plan in by_cores.values() if times[plan] > 1)
    return {each.plan: each for each in prices.of(step, list(chosen))}


def _numbered(
    prices: _Prices, marginals: Marginals, step: int, states: Mapping[OperatorPlan, CostedPlan]
) -> dict[OperatorPlan, CostedPlan]:
    """Return the plans of states with other parts of them in different groups of cores: less may move between these."""
    links, spec = links_of(prices.context.cost), prices.context.graph.operators[step]
    if links is None or not prices.breadth.numbered:
        return {}
    offered = (other for plan in states for other in numberings(links, spec, plan))
    found = _fastest(prices, marginals, step, offered, states, prices.breadth.numbered)
    return dict(islice(found.items(), prices.breadth.numbered))


def _other_sums(
    prices: _Prices, step: int, states: Mapping[OperatorPlan, CostedPlan], *, is_pinned: bool = False
) -> dict[OperatorPlan, CostedPlan]:
    """Return the plans that combine partial sums of states the other way and are not among them.

    If the breadth is full, also those whose cores are numbered as readers on few cores want them, unless the operator
    is pinned.
    """
    context, spec = prices.context, prices.context.graph.operators[step]
    pairs = [
        (priced, plan) for priced in states.values() for plan in alternatives(spec, priced.plan, context.chip)
    ]
    # An all-reduce of many cores has many rounds: only what may pay by its lower bound is counted.
    for is_least in (True, False):
        others = prices.of(step, [plan for _, plan in pairs], is_least=is_least)
        paying = [
            (priced, other)
            for (priced, _), other in zip(pairs, others, strict=True)
            if other.plan not in states and _may_pay(context, spec, priced, other)
        ]
        pairs = [(priced, other.plan) for priced, other in paying]
    found = {other.plan: other for _, other in paying}
    if prices.breadth.is_full and not is_pinned:
        turned = [with_results_first(spec, plan) for plan in (*states, *found)]
        priced = prices.of(step, [plan for plan in turned if plan is not None and plan not in states])
        found |= {each.plan: each for each in priced}
    return found


def _ordered(chosen: Mapping[OperatorPlan, CostedPlan]) -> States:
    return tuple(sorted(chosen.values(), key=lambda priced: (priced.active_bytes, priced.cycles.total)))


def _may_pay(context: Context, spec: OperatorSpec, priced: CostedPlan, other: CostedPlan) -> bool:
    """Return whether a reader can save more than it costs to combine partial sums on every member.

    What a reader saves at most is fetching the chunks of all other members.
    """
    n_members, n_slots = output_chunk(spec, other.plan)
    n_bytes = (n_slots - n_slots // n_members) * size_bytes(spec.output.dtype)
    fetch = context.cost.exchange_cycles(n_bytes, n_members - 1, neighbour=False)
    return other.cycles.total - priced.cycles.total < fetch


def _spread(n: int, most: int) -> list[int]:
    """Return at most `most` of n numbers, both ends among them, evenly spread."""
    if n <= most:
        return list(range(n))
    return sorted({round(i * (n - 1) / (most - 1)) for i in range(most)})
