"""A linalg module to stages: fused for one group of cores, cut, and every different stage planned as a module."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from t10.chip.groups import Groups
from t10.core.arrays import Ints
from t10.core.dtypes import size_bytes
from t10.core.garbage import rare_collections
from t10.core.graph import Graph, TensorValue
from t10.core.hand_over import entering, hand_over_cycles, least_cycles, leaving
from t10.core.movement import LoadCosts
from t10.core.own_weights import own_weights
from t10.core.partials import Partials
from t10.core.pieces import Pieces, pieces_of, unnamed
from t10.core.staged import HandOver, Stage, StagedPlan
from t10.cost import registry
from t10.cost.counts import kept_between_runs
from t10.dialect.mlir import ir, new_context
from t10.errors import InfeasiblePlanError, InputError
from t10.passes.cut import cut_module
from t10.passes.pipeline import CompiledModule, compile_fused, fused, module_text
from t10.plan.fronts.cache import PlanCache
from t10.plan.fronts.helper import kept_helpers
from t10.plan.fronts.operator_fronts import operator_fronts
from t10.plan.options import PlanOptions, Progress
from t10.plan.schedule import sum_of_cycles
from t10.plan.stages.places import narrow_places
from t10.plan.stages.search import Cut, CutProblem, best_cut


@dataclass(frozen=True, slots=True)
class StagedModule:
    """All stages as values, and the modules of those that differ.

    `weights` are the whole model's, and `constants` values of the fused module that became weights, by name.
    """

    staged: StagedPlan
    compiled: tuple[CompiledModule, ...]
    weights: tuple[TensorValue, ...] = ()
    constants: dict[str, NDArray[Any]] = field(default_factory=dict[str, NDArray[Any]])


@dataclass(slots=True)
class _Planner:
    """Plans stages of one fused module; those that are equal up to names once."""

    text: str
    pieces: Pieces
    groups: Groups
    costs: LoadCosts
    compile: Callable[[Any, Any], CompiledModule]
    compiled: list[CompiledModule] = field(default_factory=list[CompiledModule])
    _number_by_graph: dict[Graph, int | None] = field(default_factory=dict["Graph", "int | None"])
    _number_by_stage: dict[tuple[int, int], int | None] = field(
        default_factory=dict[tuple[int, int], "int | None"]
    )
    _cycles: dict[tuple[object, ...], int] = field(default_factory=dict[tuple[object, ...], int])

    @property
    def n_planned(self) -> int:
        """Return how many different stages were planned, those that do not fit included."""
        return len(self._number_by_graph)

    def number(self, first: int, end: int) -> int | None:
        """Return the number of the plan of operators `first` up to `end`, None where they do not fit."""
        if (first, end) not in self._number_by_stage:
            key = unnamed(self.pieces.piece(first, end))
            if key not in self._number_by_graph:
                self._number_by_graph[key] = self._planned(first, end)
            self._number_by_stage[first, end] = self._number_by_graph[key]
        return self._number_by_stage[first, end]

    def _planned(self, first: int, end: int) -> int | None:
        with new_context(), ir.Location.unknown():
            module = ir.Module.parse(self.text)
            read = cut_module(module, self.pieces, first, end)
            try:
                self.compiled.append(self.compile(module, read))
            except InfeasiblePlanError:
                return None
        return len(self.compiled) - 1

    def run_cycles(self, first: int, end: int) -> int | None:
        """Return what a stage runs, None where it does not fit."""
        number = self.number(first, end)
        return None if number is None else sum_of_cycles(self.compiled[number].plan)

    def sends(self, stage: int, source: tuple[int, int], target: tuple[int, int]) -> tuple[HandOver, ...]:
        """Return what stage number `stage` hands to the next; both are planned."""
        plans = [self.compiled[cast("int", self.number(*each))].plan for each in (source, target)]
        order, n_cores = self.groups.order, self.groups.chip.n_cores
        at = [group * n_cores for group in order[stage : stage + 2]]
        crossing = self.pieces.crossing(source[1])
        n_own = len(plans[0].graph.outputs) - len(crossing)
        n_before = len(plans[1].graph.inputs) - len(crossing)
        found: list[HandOver] = []
        for number, value in enumerate(crossing):
            ends = leaving(plans[0], n_own + number, at[0]), entering(plans[1], n_before + number, at[1])
            key = (*at, value.shape, value.dtype, ends)
            if key not in self._cycles:
                self._cycles[key] = hand_over_cycles(value, *ends, self.groups.whole.n_cores, self.costs)
            n_bytes = prod(value.shape) * size_bytes(value.dtype)
            found.append(HandOver(value.name, n_bytes, self._cycles[key]))
        return tuple(found)

    def stages(self, places: tuple[int, ...]) -> tuple[Stage, ...]:
        """Return planned stages between places."""
        spans = list(pairwise(places))
        return tuple(
            self._stage(number, span, spans[number + 1] if number + 1 < len(spans) else None)
            for number, span in enumerate(spans)
        )

    def _stage(self, number: int, span: tuple[int, int], after: tuple[int, int] | None) -> Stage:
        plan = cast("int", self.number(*span))
        piece, planned = self.pieces.piece(*span), self.compiled[plan].plan
        return Stage(
            plan=plan,
            group=self.groups.order[number],
            operators=tuple(spec.name for spec in piece.operators),
            inputs=tuple(value.name for value in piece.inputs),
            weights=tuple(value.name for value in piece.weights),
            outputs=tuple(output.name for output in piece.outputs),
            run_cycles=sum_of_cycles(planned),
            peak_bytes=planned.peak_bytes,
            sends=() if after is None else self.sends(number, span, after),
        )


@rare_collections()
@kept_helpers()
def compile_staged(
    module: Any,
    groups: Groups,
    n_stages: int | None,
    options: PlanOptions,
    progress: Progress | None = None,
    *,
    cost_model: str | registry.CodeFile = registry.DEFAULT_COST_MODEL,
    executor: Executor | None = None,
    cache: PlanCache | None = None,
    partials: Partials | None = None,
) -> StagedModule:
    """Fuse a linalg module, cut it into `n_stages` (None: as many as are fastest) and plan them; it is changed.

    Raises `InfeasiblePlanError` where it does not fit, and what `compile_module` raises.
    """
    costs = registry.cost_model(cost_model, groups.whole)
    if not isinstance(costs, LoadCosts) or costs.move_rates is None:
        raise InputError(f"cost model {registry.name_of(cost_model)} has no costs of links between stages")
    with module.context, ir.Location.unknown():
        read = fused(module, groups.chip, progress, partials, joins=not options.as_published)
        text = module_text(module)
    cost = registry.cost_model(cost_model, groups.chip)
    with kept_between_runs(cache):
        fronts = operator_fronts(
            read.graph, groups.chip, cost, options, progress, executor=executor, cache=cache
        )
    least = [min((each.cycles.run for each in front), default=0) for front in fronts]

    def compile(part: Any, left: Any) -> CompiledModule:
        return compile_fused(
            part, left, groups.chip, options, progress,
            cost_model=cost_model, executor=executor, cache=cache,
        )  # fmt: skip

    planner = _Planner(text, pieces_of(read.graph), groups, costs, compile)
    with kept_between_runs(cache):
        made = _cut(planner, least, n_stages, options.gap, progress)
    return replace(made, weights=read.graph.weights, constants=read.constants)


def _cut(
    planner: _Planner, least: list[int], n_stages: int | None, gap: float, progress: Progress | None
) -> StagedModule:
    """Return the best cut at narrow places; where none fits there, at any."""
    n_groups, n_operators = len(planner.groups.order), len(least)
    most = n_groups if n_stages is None else n_stages
    if most > min(n_groups, n_operators) and n_stages is not None:
        raise InputError(
            f"{most} stages are asked for, expected at most {min(n_groups, n_operators)}: {planner.groups.whole.name} "
            f"has {n_groups} x {planner.groups.level}, the model {n_operators} operators"
        )
    most = min(most, n_operators)
    n_bytes = planner.pieces.crossing_bytes()
    for places in (narrow_places(n_bytes), tuple(range(n_operators + 1))):
        if len(places) <= most and n_stages is not None:
            continue
        problem = _problem(planner, least, places, min(most, len(places) - 1), is_free=n_stages is None)

        def slowest(cut: Cut, places: tuple[int, ...] = places) -> int:
            return _staged(planner, tuple(places[each] for each in cut), 0, len(places)).interval_cycles

        def run_cycles(first: int, end: int, places: tuple[int, ...] = places) -> int | None:
            return planner.run_cycles(places[first], places[end])

        found = best_cut(problem, run_cycles, slowest, gap, lambda done, total: _tell(progress, done, total))
        if found is not None:
            at = tuple(places[each] for each in found.cut)
            return _kept(planner, _staged(planner, at, found.bound_cycles, len(places), n_stages is None))
    raise InfeasiblePlanError(
        f"the model does not fit in {most} {'stages' if most > 1 else 'stage'}, each on a {planner.groups.level} of "
        f"{planner.groups.whole.name}",
        hint="give more stages (--stages), or a chip with more groups or memory",
    )


def _tell(progress: Progress | None, done: int, total: int) -> None:
    if progress:
        progress("stages", done, total)


def _staged(
    planner: _Planner, at: tuple[int, ...], bound_cycles: int, n_places: int, is_free: bool = False
) -> StagedPlan:
    groups = planner.groups
    return StagedPlan(
        chip=groups.whole.name,
        level=groups.level,
        group_cores=groups.chip.n_cores,
        clock_hz=groups.whole.clock_hz,
        stages=planner.stages(at),
        n_places=n_places,
        n_planned=planner.n_planned,
        bound_cycles=bound_cycles,
        is_free=is_free,
    )


def _problem(
    planner: _Planner, least: list[int], places: tuple[int, ...], most: int, *, is_free: bool
) -> CutProblem:
    """Return what is to be cut: stages as bounded by their fastest operators and by their weights."""
    at = np.array(places)
    run = np.concatenate([[0], np.cumsum(least)])[at]
    weights = np.concatenate([[0], np.cumsum(_weight_bytes(planner.pieces.graph))])[at]
    room = planner.groups.chip.capacity_bytes * planner.groups.chip.n_cores
    fits = (weights[None, :] - weights[:, None] <= room) & (at[None, :] > at[:, None])
    hand = np.array([_hand_cycles(planner, number, places) for number in range(most - 1)], np.int64)
    n_bytes = np.array(planner.pieces.crossing_bytes(), np.int64)[at]
    return CutProblem(run, fits, hand.reshape(most - 1, len(places)), n_bytes, most, is_free)


def _hand_cycles(planner: _Planner, number: int, places: tuple[int, ...]) -> list[int]:
    """Return what a stage hands over at each place, at least."""
    links = planner.groups.whole.links
    assert links is not None
    n_cores = planner.groups.chip.n_cores
    first, second = (group * n_cores for group in planner.groups.order[number : number + 2])
    return [
        sum(
            least_cycles(prod(value.shape) * size_bytes(value.dtype), first, second, links, planner.costs)
            for value in planner.pieces.crossing(place)
        )
        for place in places
    ]


def _weight_bytes(graph: Graph) -> Ints:
    """Return the bytes of the weights that each operator alone reads."""
    own = own_weights(graph)
    return np.array(
        [
            sum(prod(weight.shape) * size_bytes(weight.dtype) for weight in own.get(spec.name, ()))
            for spec in graph.operators
        ],
        np.int64,
    )


def _kept(planner: _Planner, staged: StagedPlan) -> StagedModule:
    """Return the stages with the plans that they run, and no others, numbered in the order of their first use."""
    numbers = list(dict.fromkeys(stage.plan for stage in staged.stages))
    stages = tuple(replace(stage, plan=numbers.index(stage.plan)) for stage in staged.stages)
    return StagedModule(replace(staged, stages=stages), tuple(planner.compiled[each] for each in numbers))
