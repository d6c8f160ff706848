"""Our plans beside the published predictions, priced by the published cost model, operator by operator and whole."""

from __future__ import annotations

from math import exp, log

from planner.bars import Bar, number, seconds, table_lines
from planner.planned import KINDS, STRICT_PAPER, Outcome, Request, in_own_process
from planner.published import PUBLISHED_MODELS, PUBLISHED_OPERATORS
from planner.settings import Settings

COST_MODEL = "t10-paper"
OWN_KINDS = ("compute", "shift", "reduce")
LEAST_SPEEDUP = 1.5
LEAST_NERF_SPEEDUP = 1.9


def run(settings: Settings) -> list[Bar]:
    """Print both tables and return their bars."""
    return [*_operators(settings), *_models(settings, COST_MODEL), *_models(settings, STRICT_PAPER)]


def _operators(settings: Settings) -> list[Bar]:
    """Compare single operators, each planned as a model of its own.

    The published figure is a plan's: compute, shifts, sums over cores. What has to move before our plan can start is
    shown beside it.
    """
    rows: list[tuple[str, ...]] = []
    bars: list[Bar] = []
    for each in PUBLISHED_OPERATORS:
        outcome = in_own_process(_request(each.name, COST_MODEL, settings))
        own = sum(outcome.cycles_by_kind.get(kind, 0) for kind in OWN_KINDS)
        is_planned = outcome.status == "planned"
        ratio = own / each.cycles if is_planned else None
        with_moves = outcome.cycles / each.cycles if is_planned else None
        kinds = (number(outcome.cycles_by_kind.get(kind)) for kind in KINDS)
        rows.append((each.name, number(each.cycles), number(own), *kinds, number(ratio), number(with_moves)))
        note = f"{number(with_moves)} with what moves before it" if is_planned else outcome.error
        bars.append(Bar("paper", f"{each.name}: ours / published", ratio, "", 1.0, "<=", "modelled", note))
    print(f"\nsingle operators, modelled cycles under {COST_MODEL}")
    headings = ("", "published", "ours", *KINDS, "ratio", "with moves")
    print("\n".join(table_lines(headings, rows)), flush=True)
    return bars


def _models(settings: Settings, cost: str) -> list[Bar]:
    """Compare whole models; bars hold for the cost model as published, the strict one is for information."""
    rows: list[tuple[str, ...]] = []
    speedups: list[float] = []
    bars: list[Bar] = []
    for each in PUBLISHED_MODELS:
        outcome = in_own_process(_request(each.name, cost, settings))
        rows.append((each.name, number(each.cycles), *_columns(outcome, each.cycles)))
        if outcome.status == "planned":
            speedups.append(each.cycles / outcome.cycles)
        if outcome.status != "planned":
            print(f"{each.name}: {outcome.error}")
        if each.name == "nerf":
            bars.append(_speedup_bar("NeRF: speedup", speedups[0] if speedups else None, LEAST_NERF_SPEEDUP))
    print(f"\nwhole models, modelled cycles under {cost}")
    headings = ("", "published", "ours", "speedup", *KINDS, "gap", "seconds")
    print("\n".join(table_lines(headings, rows)), flush=True)
    mean = (
        exp(sum(log(s) for s in speedups) / len(speedups)) if len(speedups) == len(PUBLISHED_MODELS) else None
    )
    bars.append(_speedup_bar("whole models: geometric mean of speedups", mean, LEAST_SPEEDUP))
    if cost == COST_MODEL:
        return bars
    for bar in bars:
        print(f"{bar.name} with every scalar operation charged: {number(bar.value)}")
    return []


def _request(name: str, cost: str, settings: Settings) -> Request:
    return Request(name, is_published=True, chip=settings.chip, cost_model=cost)


def _columns(outcome: Outcome, published: int) -> tuple[str, ...]:
    if outcome.status != "planned":
        return (outcome.status, *("-" for _ in KINDS), "-", "-", seconds(outcome.seconds))
    kinds = (number(outcome.cycles_by_kind[kind]) for kind in KINDS)
    gap = outcome.optimality.gap if outcome.optimality else None
    certain = "-" if gap is None else f"{100 * gap:.2f} %"
    return (
        number(outcome.cycles),
        f"{published / outcome.cycles:.2f}",
        *kinds,
        certain,
        f"{outcome.seconds:.1f}",
    )


def _speedup_bar(name: str, value: float | None, limit: float) -> Bar:
    return Bar("paper", name, value, "x", limit, ">=", "modelled")
