"""Seconds that the search of one operator takes on one core, and how many plans it goes through."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median

from planner.bars import Bar, number, table_lines
from planner.models import MODELS
from planner.planned import Request, requested_graph
from planner.settings import Settings
from t10.chip import ChipSpec, load_chip
from t10.core.expression import OperatorSpec
from t10.cost import CostModel
from t10.cost.registry import cost_model, given
from t10.errors import T10Error
from t10.plan.fronts.canonical import canonical
from t10.plan.options import PlanOptions
from t10.plan.search.operator import search_operator

MOST_MEDIAN_MS = 50.0
MOST_WORST_MS = 500.0
MOST_EXHAUSTIVE_MS = 3000.0
LEAST_PLANS_PER_SECOND = 10e6

LARGER_BATCH = {"vit-b16": 8, "bert-large": 8, "resnet18": 32}
"""Models whose operators are searched at another batch as well."""

MOST_SECONDS = 15
"""A search that takes longer is given up."""

BRUTE_FORCE = ("resnet18", 32, "/layer2/0/conv2/Conv")
"""Model, batch and operator whose whole space is priced without pruning, for the rate at which plans are evaluated."""

HEADINGS = ("model", "operators", "median ms", "worst ms", "plans", "plans / s", "slowest operator")


@dataclass(frozen=True, slots=True)
class Search:
    """One search: CPU time of its one thread, and how many plans its space has; `error` where it failed."""

    spec: OperatorSpec
    milliseconds: float
    n_plans: int = 0
    error: str = ""


def run(settings: Settings) -> list[Bar]:
    """Print a row per model for both kinds of search, and return the bars."""
    graphs = {name: _operators(name, settings) for name in settings.models}
    bars = _section(graphs, settings, PlanOptions(), "default constraints")
    if settings.exhaustive:
        bars += _section(graphs, settings, PlanOptions(exhaustive=True), "exhaustive")
    return [*bars, _rate_bar(settings)]


def _operators(name: str, settings: Settings) -> tuple[OperatorSpec, ...]:
    """Return the operators of a model that differ in more than names, at batch 1 and a larger one."""
    del settings
    batches = (1, LARGER_BATCH[name]) if name in LARGER_BATCH else (1,)
    found: dict[OperatorSpec, OperatorSpec] = {}
    for batch in batches:
        for spec in requested_graph(Request(MODELS[name].name, batch)).operators:
            found.setdefault(canonical(spec), spec)
    return tuple(found.values())


def _section(
    graphs: dict[str, tuple[OperatorSpec, ...]], settings: Settings, options: PlanOptions, title: str
) -> list[Bar]:
    """Search every operator once, print a row per model, and return the bars."""
    chip = load_chip(settings.chip)
    cost = cost_model(given(settings.cost_model), chip)
    rows: list[tuple[str, ...]] = []
    everything: list[Search] = []
    for name, specs in graphs.items():
        searches = [_search(spec, chip, cost, options) for spec in specs]
        everything += searches
        times = [each.milliseconds for each in searches]
        n_plans = sum(each.n_plans for each in searches)
        rate = n_plans / (sum(times) / 1000)
        columns = (number(median(times)), number(max(times)), number(n_plans), number(rate))
        rows.append((name, str(len(specs)), *columns, _which(searches)))
    print(f"\nsearch of one operator, {title}: CPU time of its one thread")
    print("\n".join(table_lines(HEADINGS, rows)), flush=True)
    return _bars(everything, options)


def _search(spec: OperatorSpec, chip: ChipSpec, cost: CostModel, options: PlanOptions) -> Search:
    """Search one operator on this thread."""
    start = time.thread_time()

    def progress(share: float) -> None:
        if time.thread_time() - start > MOST_SECONDS:
            raise T10Error(f"given up after {MOST_SECONDS} s, {100 * share:.0f} % done", operator=spec.name)

    try:
        result = search_operator(spec, chip, cost, options, progress=progress)
    except T10Error as error:
        print(f"the search failed: {error}")
        return Search(spec, 1000 * (time.thread_time() - start), error=str(error))
    return Search(spec, 1000 * (time.thread_time() - start), result.statistics.n_plans)


def _bars(searches: list[Search], options: PlanOptions) -> list[Bar]:
    times = [each.milliseconds for each in searches]
    failed = [each for each in searches if each.error]
    note = f"{len(failed)} searches failed" if failed else _which(searches)
    middle, worst = median(times), None if failed else max(times)
    if options.exhaustive:
        limit = MOST_EXHAUSTIVE_MS
        return [Bar("search", "exhaustive: worst operator", worst, "ms", limit, "<=", "measured", note)]
    return [
        Bar("search", "median operator", middle, "ms", MOST_MEDIAN_MS, "<=", "measured"),
        Bar("search", "worst operator", worst, "ms", MOST_WORST_MS, "<=", "measured", note),
    ]


def _which(searches: list[Search]) -> str:
    slowest = max(searches, key=lambda each: each.milliseconds)
    return f"{slowest.spec.name} {'x'.join(map(str, slowest.spec.extents))}"


def _rate_bar(settings: Settings) -> Bar:
    """Return how many plans a second are gone through where every legal one of them is priced."""
    model, batch, name = BRUTE_FORCE
    spec = next(spec for spec in requested_graph(Request(model, batch)).operators if spec.name == name)
    chip = load_chip(settings.chip)
    cost = cost_model(given(settings.cost_model), chip)
    rates: dict[bool, tuple[float, float]] = {}
    for is_pruning in (False, True):
        start = time.thread_time()
        found = search_operator(spec, chip, cost, PlanOptions(), is_pruning=is_pruning).statistics
        spent = time.thread_time() - start
        rates[is_pruning] = (found.n_plans / spent, found.n_priced / spent)
    every, priced = rates[False]
    note = f"{name}, no pruning; {number(priced)} of them legal; with pruning {number(rates[True][0])}"
    return Bar("search", "plans evaluated", every, "1/s", LEAST_PLANS_PER_SECOND, ">=", "measured", note)
