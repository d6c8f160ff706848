"""Prefetching as in the paper (T10, section 6.8): one buffer to execute in, one to fetch into, both of fixed size.

*Single Op*: the weights of the next operator are fetched while an operator runs. *Inter Op*: operators are grouped, as
many as rest in the prefetch buffer; a group's weights are fetched while the group before it runs, and Algorithm 1
chooses plans and idle levels of a group within the execution buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from t10.core.off_chip import OffChip
from t10.core.own_weights import own_weights
from t10.plan.assemble import assemble
from t10.plan.context import Context
from t10.plan.greedy.algorithm1 import base_bytes, live_bytes, tables_of
from t10.plan.greedy.reconcile import Problem, reconcile
from t10.plan.memory.levels import Choice
from t10.plan.prefetch.fetching import fetched_bytes
from t10.plan.search.pareto import Front

EXECUTE_PARTS, PARTS = 2, 3
"""596 of 896 MB are to execute in, 298 to fetch into."""


@dataclass(frozen=True, slots=True)
class Group:
    """Operators that run one after the other on weights that are all there: cycles, and weights to fetch."""

    cycles: int
    weight_bytes: int


def double_buffered(groups: Sequence[Group], memory: OffChip) -> int:
    """Return the cycles if the weights of a group are fetched while the group before it runs."""
    loads = [memory.cycles(group.weight_bytes) for group in groups]
    # The first group waits for its own; behind the last nothing is fetched.
    hidden = [
        max(group.cycles, load + (memory.latency_cycles if load else 0))
        for group, load in zip(groups, [*loads[1:], 0], strict=True)
    ]
    return loads[0] + (memory.latency_cycles if loads[0] else 0) + sum(hidden)


def single_op(context: Context, fronts: tuple[Front, ...]) -> tuple[Group, ...]:
    """Return the operators of a model as groups of their own, each on the fastest plan in the execution buffer.

    Raises `InfeasiblePlanError` where one does not fit.
    """
    return _groups(context, fronts, [[step] for step in range(len(fronts))])


def inter_op(context: Context, fronts: tuple[Front, ...]) -> tuple[Group, ...]:
    """Return the operators of a model in groups, as many in each as rest in the prefetch buffer together.

    Raises `InfeasiblePlanError` where one does not fit.
    """
    tables = tables_of(context, fronts)
    most = context.chip.capacity_bytes * (PARTS - EXECUTE_PARTS) // PARTS
    grouped: list[list[int]] = []
    held = 0
    for step, table in enumerate(tables):
        rest = int(table.idle_bytes.min())
        if not grouped or held + rest > most:
            grouped.append([])
            held = 0
        grouped[-1].append(step)
        held += rest
    return _groups(context, fronts, grouped)


def _groups(
    context: Context, fronts: tuple[Front, ...], grouped: Sequence[Sequence[int]]
) -> tuple[Group, ...]:
    """Return groups with what they take, moving between operators counted."""
    tables, chip = tables_of(context, fronts), context.chip
    choices = tuple(Choice(len(front) - 1, 0) for front in fronts)
    live = live_bytes(context, fronts, choices)
    chosen: list[Choice] = []
    for steps in grouped:
        problem = Problem(
            specs=[context.graph.operators[step] for step in steps],
            tables=[tables[step] for step in steps],
            live_bytes=live[list(steps)],
            base_bytes=base_bytes(context),
            capacity_bytes=chip.capacity_bytes * EXECUTE_PARTS // PARTS,
            chip=chip,
        )
        chosen += min((reconcile(problem, by_run_time=by) for by in (True, False)), key=lambda o: o[1])[0]
    plan = assemble(context, fronts, tuple(chosen), None)
    own = own_weights(context.graph)
    return tuple(
        Group(
            sum(plan.operators[step].active.cycles.total for step in steps),
            sum(fetched_bytes(own.get(context.graph.operators[step].name, ())) for step in steps),
        )
        for steps in grouped
    )
