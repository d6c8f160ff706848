"""Algorithm 1 of the paper for a whole model: level tables, values alive, and a choice that fits (T10 §4.3.2)."""

from __future__ import annotations

from math import prod

import numpy as np

from t10.core.arrays import Ints
from t10.core.costs import links_of
from t10.core.dtypes import size_bytes
from t10.cost.operator import output_chunk
from t10.errors import InfeasiblePlanError
from t10.plan.assemble import row_cores
from t10.plan.context import Context
from t10.plan.greedy.on_links import on_links
from t10.plan.greedy.reconcile import Problem, reconcile
from t10.plan.memory.allocation import aligned_size
from t10.plan.memory.levels import Choice, LevelTable, level_table, spread_bytes
from t10.plan.options import Reading
from t10.plan.search.pareto import Front

LIVE_ROUNDS = 4


def tables_of(context: Context, fronts: tuple[Front, ...]) -> tuple[LevelTable, ...]:
    """Return the (plan, idle level) table of every operator; operators of one kind share one object.

    Where cores are linked, what moves is counted as it passes links (`on_links`).
    """
    found: dict[object, LevelTable] = {}
    result: list[LevelTable] = []
    has_links = links_of(context.cost) is not None
    operators = zip(context.graph.operators, fronts, context.owned, strict=True)
    for step, (spec, front, owned) in enumerate(operators):
        pinned = context.level_by_operator.get(spec.name)
        key = (id(front), owned, pinned)
        if key not in found:
            table = level_table(spec, front, owned, context.chip.n_cores, context.cost, pinned)
            found[key] = on_links(context, step, front, table) if has_links else table
        result.append(found[key])
    return tuple(result)


def reconciled(
    context: Context,
    fronts: tuple[Front, ...],
    tables: tuple[LevelTable, ...],
    reading: Reading,
    spare_bytes: int,
) -> tuple[Choice, ...]:
    """Return a plan and an idle level per operator by one reading of Algorithm 1 (or the best of both).

    `spare_bytes` are kept free. How much of other values is alive depends on the plans chosen, so this is repeated
    until they fit. Raises `InfeasiblePlanError` where an operator does not fit.
    """
    choices = tuple(Choice(len(front) - 1, 0) for front in fronts)
    live = live_bytes(context, fronts, choices)
    readings = {"literal": (True,), "aware": (False,), "best": (True, False)}[reading]
    for _ in range(LIVE_ROUNDS):
        problem = Problem(
            specs=context.graph.operators,
            tables=tables,
            live_bytes=live,
            base_bytes=base_bytes(context) + spare_bytes,
            capacity_bytes=context.chip.capacity_bytes,
            chip=context.chip,
        )
        outcomes = [reconcile(problem, by_run_time=by_run_time) for by_run_time in readings]
        choices = min(outcomes, key=lambda outcome: outcome[1])[0]
        now = live_bytes(context, fronts, choices)
        if (now <= live).all():
            break
        live = np.maximum(live, now)
    return choices


def free_bytes(
    context: Context,
    fronts: tuple[Front, ...],
    tables: tuple[LevelTable, ...],
    choices: tuple[Choice, ...],
    spare_bytes: int,
) -> Ints:
    """Return per operator the bytes of a core that are left free while it runs."""
    idle = 0
    need = np.zeros(len(choices), np.int64)
    for step, (table, choice) in enumerate(zip(tables, choices, strict=True)):
        row = np.nonzero((table.plan == choice.plan) & (table.level == choice.level))[0][0]
        idle += int(table.idle_bytes[row])
        need[step] = table.need_bytes[row]
    used = base_bytes(context) + spare_bytes + idle + need + live_bytes(context, fronts, choices)
    return context.chip.capacity_bytes - used


def base_bytes(context: Context) -> int:
    """Return the bytes every core always spends: shift buffer, weights of which no operator decides how they rest."""
    total, owned = context.chip.shift_buffer_bytes, set(context.weight_by_owner.values())
    for weight in context.graph.weights:
        if weight.name in context.lives.last_by_value and weight.name not in owned:
            total += spread_bytes(prod(weight.shape), weight.dtype, context.chip.n_cores)
    return total


def live_bytes(context: Context, fronts: tuple[Front, ...], choices: tuple[Choice, ...]) -> Ints:
    """Return per operator the bytes of values alive while it runs, other than its own operands and result."""
    n = len(context.graph.operators)
    live = np.zeros(n, np.int64)
    for value in context.graph.inputs:
        last = context.lives.last_by_value.get(value.name, -1)
        n_cores = context.chip.n_cores
        n_cores = n_cores if value.name in context.reader_by_input else row_cores(value, n_cores)
        live[: last + 1] += spread_bytes(prod(value.shape), value.dtype, n_cores)
    for step, (spec, front, choice) in enumerate(zip(context.graph.operators, fronts, choices, strict=True)):
        _, n_slots = output_chunk(spec, front[choice.plan].plan)
        last = context.lives.last_by_value.get(spec.output.name, step)
        live[step + 1 : last + 1] += aligned_size(n_slots * size_bytes(spec.output.dtype))
    return live


def by_reading(
    context: Context, fronts: tuple[Front, ...], tables: tuple[LevelTable, ...], reading: Reading
) -> tuple[Choice, ...] | None:
    """Return what one reading of Algorithm 1 chooses, None where it finds no choice that fits."""
    try:
        return reconciled(context, fronts, tables, reading, 0)
    except InfeasiblePlanError:
        return None
