"""Wishes: buffers accessed at once in different memory elements, and interleaved buffers, weighed in cycles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import prod

from t10.core.costs import computed
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.first_partial import split_arrivals
from t10.core.geometry import ring_length
from t10.core.graph import Graph
from t10.core.movement import operand_of
from t10.core.nameless import nameless
from t10.core.placed_costs import PlacedCosts, StepLies
from t10.core.plan import OperatorPlan
from t10.core.products import hands_on_rounded, n_nest_operands
from t10.core.schedule import ScheduledOperator, Wish
from t10.core.shift_rounds import shift_elements
from t10.core.vertex_nest import Lie
from t10.cost import CostModel
from t10.cost.operator import fused_saving, n_advances, operator_cycles, output_chunk
from t10.plan.memory.allocation import Request
from t10.plan.memory.levels import operand_slots

SHIFT = "shift"
PRODUCTS_PER_CYCLE = 16
POINTS_PER_CYCLE = 2
BYTES_PER_CYCLE = 8
"""About what a core does in a cycle, to weigh wishes against each other."""

Loss = tuple[str, tuple[int, ...], int]
"""A step (of `StepLies`), the numbers of its operands that are not interleaved or not apart, and the cycles lost."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What steps of plans wish of their buffers, as far as a plan says it; costs are those of `cost`.

    A wish weighs the cycles that are lost where it is not granted and all others are, as steps are counted; without a
    cost model that looks at where operands lie, about as many as accesses take.
    """

    cost: CostModel | None = None
    _losses: dict[tuple[OperatorSpec, OperatorPlan], tuple[Loss, ...]] = field(
        default_factory=dict[tuple[OperatorSpec, OperatorPlan], tuple[Loss, ...]], compare=False
    )

    def of(
        self, graph: Graph, operators: Sequence[ScheduledOperator], requests: Sequence[Request]
    ) -> tuple[Wish, ...]:
        """Return the wishes of all steps and exchanges."""
        buffers = frozenset(request.name for request in requests)
        result: list[Wish] = []
        for spec, scheduled in zip(graph.operators, operators, strict=True):
            result += self._of_steps(spec, scheduled, buffers)
        return (*result, *exchange_wishes(graph, operators, requests))

    def _of_steps(
        self, spec: OperatorSpec, scheduled: ScheduledOperator, buffers: frozenset[str]
    ) -> Iterator[Wish]:
        """Yield what sub-tasks, combining and epilogues wish of the operands they access at once."""
        if not isinstance(self.cost, PlacedCosts):
            yield from _of_codelets(spec, scheduled, buffers)
            return
        run = computed(self.cost, spec, scheduled.active.plan)
        key = nameless(run), scheduled.active.plan
        if key not in self._losses:
            self._losses[key] = tuple(_losses(self.cost.lying, *key))
        value, accumulator = f"value:{spec.output.name}", f"accumulator:{spec.name}"
        accumulator = accumulator if accumulator in buffers else value
        arrivals = [each.buffer for each in sorted(scheduled.arrivals, key=lambda each: each.operand)]
        first, later = split_arrivals(run, spec, arrivals)
        names = {
            "sub_task": (*arrivals[: len(spec.inputs)], *first, *_sums(spec), accumulator),
            "combine": (SHIFT, accumulator),
            "end": (accumulator, *later, value),
            "fused": (SHIFT, accumulator, *later, value),
        }
        for step, operands, cycles in self._losses[key]:
            wished = tuple(dict.fromkeys(names[step][n] for n in operands))
            if len(wished) == len(operands):
                yield Wish(wished, cycles)


def _losses(lying: Callable[[StepLies], CostModel], spec: OperatorSpec, plan: OperatorPlan) -> Iterator[Loss]:
    """Yield which step loses how many cycles where an operand is not interleaved, or two of them are not apart."""
    n_ended = len(spec.epilogue_inputs) + 2
    numbers = {"sub_task": n_nest_operands(spec), "combine": 2, "end": n_ended, "fused": n_ended + 1}
    best = {step: Lie.best(n) for step, n in numbers.items()}
    is_fused = fused_saving(lying(_lies(best)), spec, plan) > 0

    def cycles(lies: Mapping[str, Lie]) -> int:
        found = operator_cycles(lying(_lies(lies)), spec, plan)
        return found.compute + found.reduce

    least = cycles(best)
    for step, lie in best.items():
        if step == ("end" if is_fused else "fused"):
            continue
        for number in sorted(lie.interleaved):
            worse = replace(lie, interleaved=lie.interleaved - {number})
            yield step, (number,), 1 + cycles({**best, step: worse}) - least
        for pair in sorted(lie.apart):
            worse = replace(lie, apart=lie.apart - {pair})
            yield step, pair, 1 + cycles({**best, step: worse}) - least


def _lies(lies: Mapping[str, Lie]) -> StepLies:
    return StepLies(lies["sub_task"], lies["combine"], lies["end"], fused=lies["fused"])


def exchange_wishes(
    graph: Graph, operators: Sequence[ScheduledOperator], requests: Sequence[Request]
) -> tuple[Wish, ...]:
    """Return that what an exchange reads and what it writes shall lie apart.

    A tile that sends from and receives into one memory element does one after the other (timing reference, section 3).
    """
    buffers = frozenset(request.name for request in requests)
    result: list[Wish] = []
    homes = {value.name: f"idle:{value.name}" for value in graph.weights}
    homes |= {value.name: f"input:{value.name}" for value in graph.inputs}
    for spec, scheduled in zip(graph.operators, operators, strict=True):
        result += _of_exchanges(graph, spec, scheduled, homes, buffers)
        homes[spec.output.name] = f"value:{spec.output.name}"
    return tuple(wish for wish in result if wish.weight)


def _of_codelets(spec: OperatorSpec, scheduled: ScheduledOperator, buffers: frozenset[str]) -> Iterator[Wish]:
    """Yield what sub-tasks and epilogues wish of the operands they access at once."""
    plan = scheduled.active.plan
    value = f"value:{spec.output.name}"
    accumulator = f"accumulator:{spec.name}"
    accumulator = accumulator if accumulator in buffers else value
    arrivals = sorted(scheduled.arrivals, key=lambda a: a.operand)
    n_inputs = len(spec.inputs)
    is_product = spec.combine == "sum" and n_inputs > 1
    rate = PRODUCTS_PER_CYCLE if is_product else POINTS_PER_CYCLE
    n_points = prod(plan.box) * plan.n_sub_tasks
    read = (*(a.buffer for a in arrivals[:n_inputs]), *_sums(spec))
    yield from _together((*read, accumulator), 1 + n_points // rate)
    n_members, n_slots = output_chunk(spec, plan)
    if spec.epilogue is not None:
        names = (accumulator, *(a.buffer for a in arrivals[n_inputs:]), value)
        yield from _together(names, 1 + n_slots // POINTS_PER_CYCLE)
    if n_members > 1:
        yield from _together((SHIFT, accumulator), 1 + n_slots * n_members // POINTS_PER_CYCLE)


def _sums(spec: OperatorSpec) -> tuple[str, ...]:
    """Return where sub-tasks keep sums that they round in the end."""
    return (SHIFT,) if hands_on_rounded(spec) else ()


def _together(names: tuple[str, ...], weight: int) -> Iterator[Wish]:
    """Yield the wishes of one codelet: every operand interleaved, every two of them apart."""
    names = tuple(dict.fromkeys(names))
    yield from (Wish((name,), weight) for name in names)
    yield from (Wish(pair, weight) for pair in combinations(names, 2))


def _of_exchanges(
    graph: Graph,
    spec: OperatorSpec,
    scheduled: ScheduledOperator,
    homes: dict[str, str],
    buffers: frozenset[str],
) -> Iterator[Wish]:
    """Yield that what an exchange reads and what it writes lie apart."""
    plan = scheduled.active.plan
    for arrival in scheduled.arrivals:
        operand = operand_of(spec, arrival.operand)
        n_bytes = operand_slots(spec, plan, arrival.operand) * size_bytes(operand.dtype)
        if arrival.kind != "in_place":
            for source in graph.sources_of(operand.name):
                yield _apart(homes[source], arrival.buffer, n_bytes)
        if arrival.operand < len(spec.inputs) and ring_length(plan, arrival.operand) > 1:
            yield _apart(SHIFT, arrival.buffer, _passed_bytes(spec, plan, arrival.operand))
    output = len(spec.inputs)
    n_members, n_slots = output_chunk(spec, plan)
    n_bytes = (n_members - 1) * n_slots * size_bytes(spec.acc_dtype)
    if ring_length(plan, output) > 1:
        n_bytes += _passed_bytes(spec, plan, output)
    for name in (f"accumulator:{spec.name}", f"value:{spec.output.name}"):
        if name in buffers:
            yield _apart(SHIFT, name, n_bytes)


def _apart(one: str, other: str, n_bytes: int) -> Wish:
    """Return the wish that bytes leave and arrive in two memory elements."""
    return Wish((one, other), -(-n_bytes // BYTES_PER_CYCLE))


def _passed_bytes(spec: OperatorSpec, plan: OperatorPlan, slot: int) -> int:
    """Return the bytes of an operand that a core passes on in all shifts together."""
    dtype = spec.inputs[slot].dtype if slot < len(spec.inputs) else spec.acc_dtype
    n = sum(shift_elements(spec, plan, slot, a) * n_advances(plan, a) for a in plan.loop_order)
    return n * size_bytes(dtype)
