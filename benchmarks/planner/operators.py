"""Seconds that the search of one operator takes on one core, and how many plans it goes through."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median

from planner.bars import Bar, number, table_lines
from planner.models import MODELS
from planner.planned import Request, requested_graph
from planner.settings import Settings
from t10.chip import load_chip
from t10.core.expression import OperatorSpec
from t10.cost.registry import cost_model
from t10.plan.canonical import canonical
from t10.plan.options import PlanOptions
from t10.plan.search import search_operator

MOST_MEDIAN_MS = 50.0
MOST_WORST_MS = 500.0
MOST_EXHAUSTIVE_MS = 3000.0
LEAST_PLANS_PER_SECOND = 10e6

LARGER_BATCH = {"vit-b16": 8, "bert-large": 8, "resnet18": 32}
"""Models whose operators are searched at another batch as well."""

HEADINGS = ("model", "operators", "median ms", "worst ms", "slowest operator")


@dataclass(frozen=True, slots=True)
class Search:
    """One search: its wall time, and the size of the front it found."""

    spec: OperatorSpec
    milliseconds: float
    n_front: int


def run(settings: Settings) -> list[Bar]:
    """Print a row per model for both kinds of search, and return the bars."""
    graphs = {name: _operators(name, settings) for name in settings.models}
    bars = _section(graphs, settings, PlanOptions(), "default constraints")
    if settings.exhaustive:
        bars += _section(graphs, settings, PlanOptions(exhaustive=True), "exhaustive")
    return bars


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
    cost = cost_model(settings.cost_model, chip)
    rows: list[tuple[str, ...]] = []
    everything: list[Search] = []
    for name, specs in graphs.items():
        searches: list[Search] = []
        for spec in specs:
            start = time.perf_counter()
            result = search_operator(spec, chip, cost, options)
            elapsed = 1000 * (time.perf_counter() - start)
            searches.append(Search(spec, elapsed, len(result.front)))
        everything += searches
        slowest = max(searches, key=lambda each: each.milliseconds)
        times = [each.milliseconds for each in searches]
        what = f"{slowest.spec.name} {'x'.join(map(str, slowest.spec.extents))}"
        rows.append((name, str(len(specs)), number(median(times)), number(max(times)), what))
    print(f"\nsearch of one operator, {title}: wall time on one core")
    print("\n".join(table_lines(HEADINGS, rows)), flush=True)
    return _bars(everything, options)


def _bars(searches: list[Search], options: PlanOptions) -> list[Bar]:
    times = [each.milliseconds for each in searches]
    if options.exhaustive:
        limit = MOST_EXHAUSTIVE_MS
        return [Bar("search", "exhaustive: worst operator", max(times), "ms", limit, "<=", "measured")]
    return [
        Bar("search", "median operator", median(times), "ms", MOST_MEDIAN_MS, "<=", "measured"),
        Bar("search", "worst operator", max(times), "ms", MOST_WORST_MS, "<=", "measured"),
    ]
