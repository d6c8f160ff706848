"""A whole model's plan: fronts per operator, reconciliation, layouts, arrivals with their traffic, and addresses."""

from __future__ import annotations

from concurrent.futures import Executor
from math import prod

import numpy as np
from numpy.typing import NDArray

from t10.chip import ChipSpec
from t10.core.dtypes import size_bytes
from t10.core.graph import Graph
from t10.core.plan import CostedPlan
from t10.core.schedule import ModulePlan
from t10.cost import CostModel, IpuCostModel
from t10.cost.operator import output_chunk
from t10.errors import InfeasiblePlanError
from t10.plan.allocation import aligned_size
from t10.plan.assemble import Context, Front, Progress, assemble, context_of
from t10.plan.cache import PlanCache
from t10.plan.chain import followed
from t10.plan.fronts import operator_fronts
from t10.plan.levels import LevelTable, level_table
from t10.plan.options import PlanOptions
from t10.plan.reconcile import HINT, Choice, Problem, reconcile

Ints = NDArray[np.int64]

LIVE_ROUNDS = 4
FIT_ROUNDS = 8


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
    fronts = operator_fronts(graph, chip, cost, chosen_options, progress, executor=executor, cache=cache)
    return schedule_module(graph, chip, cost, fronts, chosen_options, progress)


def schedule_module(
    graph: Graph,
    chip: ChipSpec,
    cost: CostModel,
    fronts: tuple[Front, ...],
    options: PlanOptions,
    progress: Progress | None = None,
) -> ModulePlan:
    """Return the plan of a model from the fronts of its operators.

    Memory is reconciled by sizes. Then operators follow their producers' layouts where that is faster; if those plans
    do not fit, they are left as they were. If first fit wastes more than is left, all is done again with less memory.
    """
    context = context_of(graph, chip, cost)
    tables = _tables(context, fronts)
    spare = peak = 0
    for _ in range(FIT_ROUNDS):
        if progress:
            progress("reconcile", 0, 1)
        choices = reconciled(context, fronts, tables, options, spare)
        free = _free_bytes(context, fronts, tables, choices, spare)
        for candidate in (followed(context, fronts, choices, free, options), (fronts, choices)):
            plan = assemble(context, *candidate, progress)
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
    plan = assemble(context_of(graph, chip, cost), tuple((priced,) for priced in plans), choices, None)
    if plan.peak_bytes > plan.capacity_bytes:
        raise InfeasiblePlanError(
            f"buffers need {plan.peak_bytes} bytes per core, {chip.name} has {plan.capacity_bytes}", hint=HINT
        )
    return plan


def _tables(context: Context, fronts: tuple[Front, ...]) -> tuple[LevelTable, ...]:
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
    context: Context,
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


def _free_bytes(
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
    used = _base_bytes(context) + spare_bytes + idle + need + _live_bytes(context, fronts, choices)
    return context.chip.capacity_bytes - used


def _base_bytes(context: Context) -> int:
    """Return the bytes every core always spends: shift buffer, weights that no operator owns alone."""
    total = context.chip.shift_buffer_bytes
    for weight in context.graph.weights:
        if weight.name in context.lives.last_by_value and weight.name not in context.lives.owner_by_weight:
            total += aligned_size(-(-prod(weight.shape) // context.chip.n_cores) * size_bytes(weight.dtype))
    return total


def _live_bytes(context: Context, fronts: tuple[Front, ...], choices: tuple[Choice, ...]) -> Ints:
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
