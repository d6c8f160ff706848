"""Seconds that importing and planning a whole model takes: with nothing known before, and with a warm plan cache."""

from __future__ import annotations

import tempfile
from dataclasses import replace

from planner.bars import Bar, number, seconds, table_lines
from planner.models import MODELS
from planner.planned import Outcome, Request, in_own_process
from planner.settings import Settings

STAGES = ("import", "search", "reconcile", "schedule")


def run(settings: Settings) -> list[Bar]:
    """Print a row per model, cold and warm, and return the bars of the cold ones."""
    rows: list[tuple[str, ...]] = []
    bars: list[Bar] = []
    for name in settings.models:
        with tempfile.TemporaryDirectory() as folder:
            request = Request(name, chip=settings.chip, cost_model=settings.cost_model, cache_folder=folder)
            cold, warm = in_own_process(request), in_own_process(request)
        rows += [_row(f"{name} cold", cold), _row(f"{name} warm", warm)]
        bars.append(_bar(name, cold))
        if (cold.cycles, cold.peak_bytes) != (warm.cycles, warm.peak_bytes):
            print(f"{name}: the plans with a cold and a warm cache differ")
    headings = ("model", "operators", "seconds", *STAGES, "other", "CPU s", "cycles")
    print("\nwhole models at batch 1, wall seconds by stage")
    print("\n".join(table_lines(headings, rows)), flush=True)
    return bars


def _row(name: str, outcome: Outcome) -> tuple[str, ...]:
    stages = outcome.seconds_by_stage
    other = outcome.seconds - sum(stages.get(stage, 0.0) for stage in STAGES)
    columns = (
        *(seconds(stages.get(stage, 0.0)) for stage in STAGES),
        seconds(other),
        seconds(outcome.cpu_seconds),
    )
    cycles = number(outcome.cycles) if outcome.status == "planned" else outcome.error[:60]
    return (name, str(outcome.n_operators), seconds(outcome.seconds), *columns, cycles)


def _bar(name: str, outcome: Outcome) -> Bar:
    value = outcome.seconds if outcome.status == "planned" else None
    bar = Bar("models", f"{name}: import to plan", value, "s", MODELS[name].limit_seconds, "<=", "measured")
    return replace(bar, note=outcome.error or f"{seconds(outcome.cpu_seconds)} s CPU")
