"""The time x memory fronts of all operators of a model; operators equal up to names are solved once.

What was found before comes from this process's memory or from the plan cache; the rest is searched side by side.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, fields, replace
from math import prod
from threading import Event

from t10.chip import ChipSpec
from t10.codelets.compile import own_digest
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph
from t10.cost import CostModel, IpuCostModel
from t10.errors import T10Error
from t10.plan.fronts.cache import PlanCache
from t10.plan.fronts.canonical import searched_as
from t10.plan.fronts.front_cache import FrontCache
from t10.plan.fronts.parallel_map import CallError, Stopped, Work, parallel_map
from t10.plan.fronts.pinned import pinned_front
from t10.plan.options import PlanOptions, Progress
from t10.plan.search.pareto import Front

IRRELEVANT_OPTIONS = ("forced", "reading", "reconcile", "gap", "time_limit_seconds")
"""Options that say how plans are chosen, not which there are."""


@dataclass(frozen=True, slots=True)
class Search:
    """The search of one front; its names are neutral unless a plan is forced on it by name or a cost may look at them.

    `steps` are the numbers of the model's operators that have this front.
    """

    spec: OperatorSpec
    options: PlanOptions
    steps: tuple[int, ...]

    @property
    def weight(self) -> int:
        """Return a number that grows with the search space: the pairs of factors of all axes, roughly."""
        return prod(axis.extent.bit_length() ** 2 for axis in self.spec.axes)


def operator_fronts(
    graph: Graph,
    chip: ChipSpec,
    cost: CostModel,
    options: PlanOptions,
    progress: Progress | None = None,
    *,
    executor: Executor | None = None,
    cache: PlanCache | None = None,
) -> tuple[Front, ...]:
    """Return the time x memory front of every operator: one object for operators that differ in names only.

    Searches run on the threads of this process, or as calls of `solve` on an executor (processes, other machines).
    Fronts found are kept in `cache` as they come, so that an interrupted search is not lost. Raises
    `InfeasiblePlanError` for the first operator in the model's order that has no plan.
    """
    searches = _searches(graph, cost, options)
    front_cache = FrontCache(chip, cost, cache)
    found: dict[int, Front] = {}
    n_done = 0

    def done(number: int, front: Front) -> None:
        nonlocal n_done
        found[number] = front
        n_done += len(searches[number].steps)
        if progress:
            progress("search", n_done, len(graph.operators))

    if progress:
        progress("search", 0, len(graph.operators))
    for number, search in enumerate(searches):
        front = front_cache.find(search.spec, search.options)
        if front is not None:
            done(number, front)
    todo = [number for number in range(len(searches)) if number not in found]

    def searched(place: int, front: Front) -> None:
        search = searches[todo[place]]
        front_cache.keep(search.spec, search.options, front)
        done(todo[place], front)

    calls = [(searches[n].spec, chip, cost, searches[n].options) for n in todo]
    work = Work(solve, calls, [searches[n].weight for n in todo], is_portable(cost))
    try:
        parallel_map(work, searched, executor)
    except CallError as failure:
        raise _named(failure, graph.operators[searches[todo[failure.number]].steps[0]]) from failure.__cause__
    front_by_step = {step: found[n] for n, search in enumerate(searches) for step in search.steps}
    return tuple(front_by_step[step] for step in range(len(graph.operators)))


def is_portable(cost: CostModel) -> bool:
    """Return whether any process finds the same costs: what somebody registered in this one is not known in others."""
    return type(cost) is IpuCostModel and cost.is_counted and not own_digest()


def solve(
    spec: OperatorSpec, chip: ChipSpec, cost: CostModel, options: PlanOptions, *, stop: Event | None = None
) -> Front:
    """Return the front of one operator: the call that executors carry. Raises `Stopped` soon after `stop` is set."""

    def end_if_stopped(_: float) -> None:
        if stop is not None and stop.is_set():
            raise Stopped

    return pinned_front(spec, chip, cost, options, end_if_stopped)


def search_options(options: PlanOptions) -> PlanOptions:
    """Return the options without those that fronts do not depend on."""
    defaults = {field.name: field.default for field in fields(options)}
    return replace(options, **{name: defaults[name] for name in IRRELEVANT_OPTIONS})


def _searches(graph: Graph, cost: CostModel, options: PlanOptions) -> tuple[Search, ...]:
    """Return the different searches of a model, in the order of their first operator."""
    free = search_options(options)
    steps_by_search: dict[tuple[OperatorSpec, PlanOptions], list[int]] = {}
    for step, spec in enumerate(graph.operators):
        forced = options.forced_for(spec.name)
        key = (searched_as(spec, cost), free) if forced is None else (spec, replace(free, forced=(forced,)))
        steps_by_search.setdefault(key, []).append(step)
    return tuple(Search(spec, chosen, tuple(steps)) for (spec, chosen), steps in steps_by_search.items())


def _named(failure: CallError, spec: OperatorSpec) -> T10Error:
    """Return the error of a search as one of the operator it was for."""
    cause = failure.__cause__
    if isinstance(cause, T10Error):
        location = spec.location or None
        return type(cause)(cause.message, operator=spec.name, location=location, hint=cause.hint)
    return T10Error(f"its search failed: {type(cause).__name__}: {cause}", operator=spec.name)
