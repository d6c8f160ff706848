"""One model planned in a process of its own, so that nothing another one left behind is warm."""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Literal

from planner.graphs import graph_of
from planner.memory import liveness_bytes
from planner.models import MODELS
from planner.published import BUILDERS
from t10.chip import ChipSpec, load_chip
from t10.core.graph import Graph
from t10.core.schedule import ModulePlan, Optimality
from t10.cost import CostModel
from t10.cost.paper import paper_cost_model
from t10.cost.registry import cost_model
from t10.errors import InfeasiblePlanError
from t10.plan.cache import PlanCache
from t10.plan.options import PlanOptions
from t10.plan.schedule import plan_module

STRICT_PAPER = "t10-paper, strict"
"""The published constants, every scalar operation of an epilogue charged."""
KINDS = ("compute", "shift", "reduce", "relayout", "setup")


@dataclass(frozen=True, slots=True)
class Request:
    """What to plan: a model of `MODELS`, or with `is_published` the name of something in `published`."""

    model: str
    batch: int = 1
    is_published: bool = False
    chip: str = "ipu-mk2"
    cost_model: str = "ipu"
    options: PlanOptions = field(default_factory=PlanOptions)
    cache_folder: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it: wall seconds by stage, modelled cycles by kind, or why there is no plan (`error`).

    `status`: `planned`, `too large` (it does not fit the chip) or `failed`. `cpu_seconds` are those of all threads.
    """

    status: Literal["planned", "too large", "failed"]
    seconds_by_stage: dict[str, float]
    n_operators: int = 0
    cycles_by_kind: dict[str, int] = field(default_factory=dict[str, int])
    optimality: Optimality | None = None
    peak_bytes: int = 0
    capacity_bytes: int = 0
    liveness_bytes: int = 0
    error: str = ""
    cpu_seconds: float = 0.0

    @property
    def cycles(self) -> int:
        """Return the modelled cycles of the whole model."""
        return sum(self.cycles_by_kind.values())

    @property
    def reconcile_seconds(self) -> float:
        """Return the wall seconds behind the searches: choosing plans and layouts, counting moves, addresses."""
        return self.seconds - sum(self.seconds_by_stage.get(stage, 0.0) for stage in ("import", "search"))

    @property
    def seconds(self) -> float:
        """Return the wall seconds of all stages."""
        return sum(self.seconds_by_stage.values())


def in_own_process(request: Request) -> Outcome:
    """Return the outcome of a request, from a fresh process: import and planning are cold but for the cache folder."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            return pool.submit(planned, request).result()
        except BrokenProcessPool as error:
            return Outcome("failed", {}, error=str(error))


def planned(request: Request) -> Outcome:
    """Return the outcome of a request, in this process."""
    stages: dict[str, float] = {}
    start, cpu_start = time.perf_counter(), time.process_time()
    graph = requested_graph(request)
    stages["import"] = time.perf_counter() - start
    try:
        plan = _timed_plan(graph, request, stages)
    except InfeasiblePlanError as error:
        return Outcome("too large", stages, len(graph.operators), error=str(error))
    except Exception as error:  # one defect must not cost the other rows
        return Outcome("failed", stages, len(graph.operators), error=f"{type(error).__name__}: {error}")
    return Outcome(
        status="planned",
        cpu_seconds=time.process_time() - cpu_start,
        seconds_by_stage=stages,
        n_operators=len(graph.operators),
        cycles_by_kind=cycles_by_kind(plan),
        optimality=plan.optimality,
        peak_bytes=plan.peak_bytes,
        capacity_bytes=plan.capacity_bytes,
        liveness_bytes=liveness_bytes(plan, load_chip(request.chip).reserved_bytes),
    )


def requested_graph(request: Request) -> Graph:
    """Return the imported graph of a request."""
    if request.is_published:
        return graph_of(BUILDERS[request.model](), partials="f16")
    return graph_of(MODELS[request.model].build(request.batch))


def _timed_plan(graph: Graph, request: Request, stages: dict[str, float]) -> ModulePlan:
    """Plan; add the seconds of every stage the planner reports, also of those it did not end."""
    chip = load_chip(request.chip)
    cost = _cost_model(request.cost_model, chip)
    cache = PlanCache(Path(request.cache_folder)) if request.cache_folder else None
    current = "search"
    last = time.perf_counter()

    def progress(stage: str, done: int, total: int) -> None:
        nonlocal current, last
        del done, total
        now = time.perf_counter()
        stages[current] = stages.get(current, 0.0) + now - last
        current, last = stage, now

    try:
        return plan_module(graph, chip, request.options, progress, cost, cache=cache)
    finally:
        progress("", 0, 0)


def _cost_model(name: str, chip: ChipSpec) -> CostModel:
    """Return a cost model by its name; one more than users have is the strict reading of the published constants."""
    if name == STRICT_PAPER:
        return paper_cost_model(chip, hides_arithmetic=False)
    return cost_model(name, chip)


def cycles_by_kind(plan: ModulePlan) -> dict[str, int]:
    """Return the modelled cycles of a plan: what operators do, and what moves before them."""
    found: dict[str, int] = dict.fromkeys(KINDS, 0)
    for operator in plan.operators:
        for kind in KINDS:
            found[kind] += getattr(operator.active.cycles, kind)
    return found
