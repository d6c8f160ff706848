"""All models at batches doubling until they do not fit: cycles, the proved gap, and how far Algorithm 1 is off."""

from __future__ import annotations

from dataclasses import replace

from planner.bars import Bar, number, percent, seconds, table_lines
from planner.planned import Outcome, Request, in_own_process
from planner.settings import Settings
from t10.plan.options import PlanOptions

MOST_GAP = 0.001
MOST_SECONDS = 10.0
"""With layouts chosen jointly; 2 s were asked for where they are not."""

HEADINGS = (
    "model",
    "batch",
    "cycles",
    "bound",
    "gap",
    "literal",
    "aware",
    "reconcile s",
    "CPU s",
    "search s",
    "peak KiB",
)


def run(settings: Settings) -> list[Bar]:
    """Print a row per model and batch and return the bars."""
    rows: list[tuple[str, ...]] = []
    bars: list[Bar] = []
    for name in settings.models:
        outcomes = planned_batches(name, settings)
        rows += [_row(name, batch, outcome) for batch, outcome in outcomes.items()]
        fitting = {batch: each for batch, each in outcomes.items() if each.status == "planned"}
        bars += _gap_bars(name, fitting)
        bars.append(_fit_bar(name, fitting, outcomes, settings))
    print("\nbatches: modelled cycles, proved gap, distance of Algorithm 1 (both readings) from our plan")
    print("\n".join(table_lines(HEADINGS, rows)), flush=True)
    return bars


def planned_batches(name: str, settings: Settings) -> dict[int, Outcome]:
    """Return the outcome of every batch from 1, doubling, up to the first that is not planned."""
    outcomes: dict[int, Outcome] = {}
    batch = 1
    while batch <= settings.max_batch:
        outcomes[batch] = in_own_process(_request(name, batch, settings))
        if outcomes[batch].status != "planned":
            break
        batch *= 2
    return outcomes


def _request(name: str, batch: int, settings: Settings) -> Request:
    options = PlanOptions(time_limit_seconds=settings.seconds)
    return Request(name, batch=batch, chip=settings.chip, cost_model=settings.cost_model, options=options)


def _gap_bars(name: str, fitting: dict[int, Outcome]) -> list[Bar]:
    gaps = {b: each.optimality.gap if each.optimality else None for b, each in fitting.items()}
    times = {b: each.reconcile_seconds for b, each in fitting.items()}
    unknown = [batch for batch, gap in gaps.items() if gap is None]
    worst = max((gap for gap in gaps.values() if gap is not None), default=None)
    slowest = max(times, key=lambda batch: times[batch], default=0)
    cpu = f", {seconds(fitting[slowest].reconcile_cpu_seconds)} s CPU" if slowest else ""
    note = f"no bound at batches {unknown}" if unknown else _where(gaps)
    return [
        Bar(
            "gap",
            f"{name}: worst proved gap",
            None if unknown else worst,
            "",
            MOST_GAP,
            "<=",
            "computed",
            note,
        ),
        Bar(
            "gap",
            f"{name}: slowest reconciliation",
            max(times.values(), default=None),
            "s",
            MOST_SECONDS,
            "<=",
            "measured",
            _where(dict(times)) + cpu,
        ),
    ]


def _where(value_by_batch: dict[int, float | None] | dict[int, float]) -> str:
    known = {batch: value for batch, value in value_by_batch.items() if value is not None}
    return f"at batch {max(known, key=lambda batch: known[batch])}" if known else "nothing fits"


def _fit_bar(name: str, fitting: dict[int, Outcome], outcomes: dict[int, Outcome], settings: Settings) -> Bar:
    """Return whether Algorithm 1 finds a plan at the first batch that ours does not."""
    largest = max(fitting, default=0)
    bar = Bar("batches", f"{name}: largest batch that fits", largest, "", largest, ">=", "computed")
    if largest == max(outcomes, default=0):
        return replace(bar, note=f"up to {settings.max_batch} tried")
    request = _request(name, max(outcomes), settings)
    greedy = in_own_process(replace(request, options=replace(request.options, reconcile="greedy")))
    error = outcomes[max(outcomes)].error
    limit = max(outcomes) if greedy.status == "planned" else largest
    return replace(bar, limit=limit, note=f"next: {error[:160]}")


def _row(name: str, batch: int, outcome: Outcome) -> tuple[str, ...]:
    if outcome.status != "planned":
        return (name, str(batch), outcome.status, *("-" for _ in HEADINGS[3:]))
    best = outcome.optimality
    times = outcome.seconds_by_stage
    return (
        name,
        str(batch),
        number(outcome.cycles),
        number(best.bound_cycles) if best else "-",
        percent(best.gap if best else None),
        _distance(best.literal_cycles if best else 0, outcome.cycles),
        _distance(best.aware_cycles if best else 0, outcome.cycles),
        seconds(outcome.reconcile_seconds),
        seconds(outcome.reconcile_cpu_seconds),
        seconds(times.get("search", 0.0)),
        f"{outcome.peak_bytes / 1024:.0f}",
    )


def _distance(greedy_cycles: int, cycles: int) -> str:
    """Return how much slower a plan of Algorithm 1 is; `no plan` where it found none or was not tried."""
    return f"{100 * (greedy_cycles / cycles - 1):+.1f} %" if greedy_cycles else "no plan"
