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
from t10.cost.registry import cost_model, given
from t10.errors import InfeasiblePlanError
from t10.plan.fronts.cache import PlanCache
from t10.plan.options import PlanOptions
from t10.plan.schedule import plan_module

BEFORE = ("import", "search")
"""Stages before reconciliation."""
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

    `status`: `planned`, `too large` (it does not fit the chip) or `failed`. `cpu_by_stage` is of all threads.
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
    cpu_by_stage: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def cycles(self) -> int:
        """Return the modelled cycles of the whole model."""
        return sum(self.cycles_by_kind.values())

    @property
    def reconcile_seconds(self) -> float:
        """Return the wall seconds behind the searches: choosing plans and layouts, counting moves, addresses."""
        return sum(s for stage, s in self.seconds_by_stage.items() if stage not in BEFORE)

    @property
    def reconcile_cpu_seconds(self) -> float:
        """Return the CPU seconds behind the searches: less than the wall's where other programs run, too."""
        return sum(s for stage, s in self.cpu_by_stage.items() if stage not in BEFORE)

    @property
    def cpu_seconds(self) -> float:
        """Return the CPU seconds of all stages."""
        return sum(self.cpu_by_stage.values())

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
    clock = _Clock()
    graph = requested_graph(request)
    clock.start("search")
    try:
        plan = _plan(graph, request, clock)
    except InfeasiblePlanError as error:
        return Outcome(
            "too large", clock.wall, len(graph.operators), error=str(error), cpu_by_stage=clock.cpu
        )
    except Exception as error:  # one defect must not cost the other rows
        text = f"{type(error).__name__}: {error}"
        return Outcome("failed", clock.wall, len(graph.operators), error=text, cpu_by_stage=clock.cpu)
    return Outcome(
        status="planned",
        seconds_by_stage=clock.wall,
        cpu_by_stage=clock.cpu,
        n_operators=len(graph.operators),
        cycles_by_kind=cycles_by_kind(plan),
        optimality=plan.optimality,
        peak_bytes=plan.peak_bytes,
        capacity_bytes=plan.capacity_bytes,
        liveness_bytes=liveness_bytes(plan, load_chip(request.chip).reserved_bytes),
    )


class _Clock:
    """Seconds of wall and CPU by stage; begins with the import."""

    def __init__(self) -> None:
        self.wall: dict[str, float] = {}
        self.cpu: dict[str, float] = {}
        self._stage = "import"
        self._last = time.perf_counter(), time.process_time()

    def start(self, stage: str) -> None:
        """Charge the stage that ran until now, and begin another."""
        now = time.perf_counter(), time.process_time()
        for spent, new, old in zip((self.wall, self.cpu), now, self._last, strict=True):
            spent[self._stage] = spent.get(self._stage, 0.0) + new - old
        self._stage, self._last = stage, now


def requested_graph(request: Request) -> Graph:
    """Return the imported graph of a request."""
    if request.is_published:
        return graph_of(BUILDERS[request.model](), partials="f16")
    return graph_of(MODELS[request.model].build(request.batch))


def _plan(graph: Graph, request: Request, clock: _Clock) -> ModulePlan:
    """Return the plan; the clock knows every stage the planner reports, also those it did not end."""
    chip = load_chip(request.chip)
    cache = PlanCache(Path(request.cache_folder)) if request.cache_folder else None

    def progress(stage: str, done: int, total: int) -> None:
        del done, total
        clock.start(stage)

    cost = _cost_model(request.cost_model, chip)
    try:
        return plan_module(graph, chip, request.options, progress, cost, cache=cache)
    finally:
        clock.start("")


def _cost_model(name: str, chip: ChipSpec) -> CostModel:
    """Return a cost model by its name; one more than users have is the strict reading of the published constants."""
    if name == STRICT_PAPER:
        return paper_cost_model(chip, hides_arithmetic=False)
    return cost_model(given(name), chip)


def cycles_by_kind(plan: ModulePlan) -> dict[str, int]:
    """Return the modelled cycles of a plan: what operators do, and what moves before them."""
    found: dict[str, int] = dict.fromkeys(KINDS, 0)
    for operator in plan.operators:
        for kind in KINDS:
            found[kind] += getattr(operator.active.cycles, kind)
    return found
