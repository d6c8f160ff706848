"""Chains: operators that follow the layout of a value they read, where that is faster than fetching it.

Fronts are made for operators on their own, with what they read fetched from anywhere. Once plans are chosen, layouts
are known and exact: walking the operators in order, each may give up its plan for one that its operands already lie in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from t10.core.arrays import Ints
from t10.core.costs import links_of
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.plan import CostedPlan, OperatorPlan
from t10.core.schedule import ValueLayout
from t10.cost.operator import operator_cycles, output_chunk
from t10.plan.assemble import (
    Front,
    arrivals_of,
    cycles_of,
    input_layouts,
    output_layout,
    owned_layouts,
    read_layouts,
    weight_layouts,
)
from t10.plan.context import Context
from t10.plan.memory.allocation import aligned_size
from t10.plan.memory.levels import Choice
from t10.plan.options import PlanOptions
from t10.plan.search.alternatives import evaluate_plans
from t10.plan.search.listed import costed
from t10.plan.search.producer_layouts import following_plan


@dataclass(slots=True)
class _Walk:
    """Layouts known so far, the plan of every operator that was passed, and bytes per core left free at every step."""

    layouts: dict[str, ValueLayout]
    plans: dict[str, OperatorPlan]
    free_bytes: Ints


def followed(
    context: Context,
    fronts: tuple[Front, ...],
    choices: tuple[Choice, ...],
    free_bytes: Ints,
    options: PlanOptions,
) -> tuple[tuple[Front, ...], tuple[Choice, ...]]:
    """Return fronts and choices in which operators follow their producers where that takes fewer cycles.

    `free_bytes` are left on every core while each operator runs; what plans take more comes out of them. A plan that is
    not on an operator's front yet is put there. Operators with a partition forced by the user keep it.
    """
    layouts = {**weight_layouts(context, fronts, choices), **input_layouts(context)}
    for step, (front, choice) in enumerate(zip(fronts, choices, strict=True)):
        layouts |= read_layouts(context, step, front[choice.plan].plan)
    walk = _Walk(layouts, {}, free_bytes.copy())
    new_fronts: list[Front] = []
    new_choices: list[Choice] = []
    for step, (spec, front, choice) in enumerate(zip(context.graph.operators, fronts, choices, strict=True)):
        if options.forced_for(spec.name) is None:
            front, choice = _best(context, walk, step, front, choice)
        plan = front[choice.plan].plan
        walk.layouts |= owned_layouts(context, step, plan, choice.level) | read_layouts(context, step, plan)
        walk.layouts[spec.output.name] = output_layout(spec, plan)
        walk.plans[spec.output.name] = plan
        new_fronts.append(front)
        new_choices.append(choice)
    return tuple(new_fronts), tuple(new_choices)


def _best(context: Context, walk: _Walk, step: int, front: Front, choice: Choice) -> tuple[Front, Choice]:
    """Return the front and choice of one operator: as they were, or with the best plan that follows an operand."""
    spec, current = context.graph.operators[step], front[choice.plan]
    best, best_cycles = current, _exact_cycles(context, walk, step, current.plan, choice.level)
    # Where cores are linked, what a plan's operands take to arrive differs more than what plans compute.
    others = [each.plan for each in front] if links_of(context.cost) is not None else []
    for plan in dict.fromkeys((*_candidates(context, walk, spec), *others)):
        priced = _priced(context, spec, plan)
        if plan == current.plan or not _has_room(context, walk, step, current, priced):
            continue
        # The nest alone is a lower bound; arrivals are counted only for plans that can still win.
        if operator_cycles(context.cost, spec, plan).total >= best_cycles:
            continue
        cycles = _exact_cycles(context, walk, step, plan, choice.level)
        if cycles < best_cycles:
            best, best_cycles = priced, cycles
    if best is current:
        return front, choice
    _take_room(context, walk, step, current, best)
    return _with_plan(front, best, choice.level)


def _growth(context: Context, step: int, current: CostedPlan, other: CostedPlan) -> Ints:
    """Return per step the bytes that `other` takes more than `current`: while it runs, and as its result lives."""
    spec = context.graph.operators[step]
    last = context.lives.last_by_value.get(spec.output.name, step)
    growth = np.zeros(len(context.graph.operators), np.int64)
    growth[step + 1 : last + 1] = _result_bytes(spec, other.plan) - _result_bytes(spec, current.plan)
    growth[step] = other.active_bytes - current.active_bytes
    return growth


def _result_bytes(spec: OperatorSpec, plan: OperatorPlan) -> int:
    return aligned_size(output_chunk(spec, plan)[1] * size_bytes(spec.output.dtype))


def _has_room(context: Context, walk: _Walk, step: int, current: CostedPlan, other: CostedPlan) -> bool:
    """Return whether what another plan takes more is free wherever it takes more."""
    growth = _growth(context, step, current, other)
    return bool(((growth <= 0) | (growth <= walk.free_bytes)).all())


def _take_room(context: Context, walk: _Walk, step: int, current: CostedPlan, other: CostedPlan) -> None:
    walk.free_bytes -= _growth(context, step, current, other)


def _with_plan(front: Front, best: CostedPlan, level: int) -> tuple[Front, Choice]:
    """Return a front that holds a plan, still least bytes first, and the choice of it."""
    for number, priced in enumerate(front):
        if priced.plan == best.plan:
            return front, Choice(number, level)
    place = sum(priced.active_bytes < best.active_bytes for priced in front)
    return (*front[:place], best, *front[place:]), Choice(place, level)


def _candidates(context: Context, walk: _Walk, spec: OperatorSpec) -> list[OperatorPlan]:
    """Return the plans that follow one of the operands, without repeats."""
    found: dict[OperatorPlan, None] = {}
    for number, operand in enumerate(spec.operands):
        producer = context.mover.spec_by_value.get(operand.name)
        if producer is None or operand.role == "weight":
            continue
        plan = following_plan(spec, number, producer, walk.plans[operand.name])
        if plan is not None:
            found[plan] = None
    return list(found)


def _exact_cycles(context: Context, walk: _Walk, step: int, plan: OperatorPlan, level: int) -> int:
    """Return the cycles of an operator under a plan, its operands fetched from where they lie."""
    spec = context.graph.operators[step]
    layouts = {
        **walk.layouts,
        **owned_layouts(context, step, plan, level),
        **read_layouts(context, step, plan),
    }
    arrivals = arrivals_of(context, step, plan, layouts)
    return cycles_of(context.cost, spec, plan, arrivals).total


def _priced(context: Context, spec: OperatorSpec, plan: OperatorPlan) -> CostedPlan:
    """Return a plan with its price; nothing is charged for operands that lie where it wants them."""
    priced = costed(plan, evaluate_plans(spec, context.cost, (plan,)), 0)
    return replace(priced, cycles=replace(priced.cycles, relayout=0))
