"""Why claims differ, tried: one thing is varied, and what comes out stands beside what is printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from paper.part_data import CHIP, COST, Say, chip_and_costs, fill, read, table, unfused
from paper.results import read_operators, read_rows
from paper.systems import Row, builder_of, graph_of
from t10.baselines.poplin import DEFAULT_PROPORTION, plan_poplin
from t10.chip import ChipSpec
from t10.compare import SYSTEMS, compared
from t10.core.graph import Graph
from t10.core.schedule import ModulePlan
from t10.cost import CostModel
from t10.cost.registry import cost_model, given
from t10.plan.options import PlanOptions
from t10.plan.schedule import plan_module

FILE = "reasons.csv"
FIELDS = ("system", "varied", "compute_cycles", "transfer_cycles", "total_bytes", "slower", "operators")
"""`slower` of `operators` take more than a tenth longer than with Roller, split sums; -1: not looked at."""
MODEL, BATCH = "retnet-1.3b", 1
FREE, BOUNDS, RELAYOUTS = "phases begin for nothing", "no exact costs", "no relayouts"
FREE_FIELDS = ("sync_cycles", "setup_cycles", "latency_neighbour_cycles", "latency_any_cycles")
OURS, PUBLISHED, ROLLER, SPLIT, POPART = (
    "ours",
    "T10 as published",
    "Roller",
    "Roller, split sums",
    "PopART 0.6",
)
JOBS = (
    *((system, FREE) for system in (OURS, PUBLISHED, ROLLER, SPLIT, POPART)),
    (POPART, BOUNDS),
    (PUBLISHED, RELAYOUTS),
)
CLOCK_HZ = 1.33e9


def plan(say: Say) -> None:
    """Try what was not tried yet."""
    fill(FILE, FIELDS, list(JOBS), _made, say)


def _made(system: str, varied: str) -> Iterator[tuple[int, ...]]:
    chip, cost = chip_and_costs()
    if varied == RELAYOUTS:
        yield _without_relayouts()
        return
    way = SYSTEMS[system]
    if varied == FREE:
        chip = chip.model_copy(update=dict.fromkeys(FREE_FIELDS, 0))
        cost = cost_model(given(COST), chip)
    else:
        way = replace(way, plan=_popart_by_bounds)
    graph = graph_of(builder_of(MODEL)(BATCH), chip, joins=way.joins)
    found = compared(graph, way, chip, cost)
    yield found.compute_cycles, found.transfer_cycles, found.total_bytes, -1, found.n_operators


def _popart_by_bounds(graph: Graph, chip: ChipSpec, cost: CostModel) -> ModulePlan:
    return plan_poplin(graph, chip, cost, DEFAULT_PROPORTION, 1)


def _without_relayouts() -> tuple[int, ...]:
    """Return the cycles of T10's operators as published without what their neighbours' layouts add."""
    chip, cost = chip_and_costs()
    found = plan_module(unfused(MODEL, BATCH), chip, PlanOptions(as_published=True), None, cost)
    other = read_operators()[CHIP, COST, MODEL, BATCH, SPLIT]
    runs = {each.name: each.active.cycles for each in found.operators}
    slower = sum(cycles.run > other[name] / 0.9 for name, cycles in runs.items())
    compute = sum(cycles.compute for cycles in runs.values())
    transfer = sum(cycles.run for cycles in runs.values()) - compute
    return compute, transfer, 0, slower, len(runs)


def _tried() -> dict[tuple[str, str], dict[str, int]]:
    return {
        (line["system"], line["varied"]): {name: int(line[name]) for name in FIELDS[2:]}
        for line in read(FILE)
    }


def _row(system: str) -> Row | None:
    return read_rows().get((CHIP, COST, MODEL, BATCH, system))


def _share(compute: int, transfer: int) -> float:
    return transfer / max(compute + transfer, 1)


def _speed(total_bytes: int, transfer: int) -> float:
    return total_bytes / chip_and_costs()[0].n_cores / max(transfer, 1) * CLOCK_HZ / 1e9


def fixed_cycles() -> int:
    """Return the cycles that a phase takes before anything moves, between any two cores."""
    chip = chip_and_costs()[0]
    return chip.sync_cycles + chip.setup_cycles + chip.latency_any_cycles


def _free_phases() -> str:
    return f"{FREE}, not for {fixed_cycles()} cycles"


def _free(system: str) -> tuple[dict[str, int], Row] | None:
    found, row = _tried().get((system, FREE)), _row(system)
    return None if found is None or row is None else (found, row)


def _instead(system: str, measure: Callable[[Mapping[str, int]], float], form: str, unit: str = "") -> str:
    """Return a figure of a model whose phases take nothing to begin, and the figure as it is."""
    found = _free(system)
    if found is None:
        return NOT_TRIED
    tried, row = found
    free, now = measure(tried), measure({name: getattr(row, name) for name in FIELDS[2:5]})
    return f"tried: {MODEL}-{BATCH} has {free:{form}} instead of {now:{form}}{unit} if {_free_phases()}"


def why_share(system: str) -> str:
    """Return how much of a model's transfers is what phases take to begin."""
    return _instead(system, lambda of: _share(of["compute_cycles"], of["transfer_cycles"]), ".0%")


def why_bandwidth(system: str) -> str:
    """Return the bandwidth of a model whose phases take nothing to begin."""
    return _instead(system, lambda of: _speed(of["total_bytes"], of["transfer_cycles"]), ".2f", " GB/s")


def why_popart() -> str:
    """Return what PopART's plans take without exact costs, and where phases begin for nothing."""
    bounds, popart, roller = _tried().get((POPART, BOUNDS)), _free(POPART), _free(SPLIT)
    if bounds is None or popart is None or roller is None:
        return NOT_TRIED
    inexact = bounds["compute_cycles"] + bounds["transfer_cycles"]
    (free, row), other = popart, roller[0]
    ratio = (free["compute_cycles"] + free["transfer_cycles"]) / (
        other["compute_cycles"] + other["transfer_cycles"]
    )
    return (
        f"tried: PopART's {MODEL}-{BATCH} takes {inexact:,} cycles without exact costs, {row.cycles:,} with them; if "
        f"{FREE}, Roller is at {ratio:.2f}x; PopART's weights lie where they are read, all its cores take "
        f"{row.total_bytes / 1e6:.0f} MB, Roller's {roller[1].total_bytes / 1e6:.0f} MB"
    )


def why_operators() -> str:
    """Return how many operators are slower than Roller's without relayouts."""
    tried = _tried().get((PUBLISHED, RELAYOUTS))
    known = read_operators()
    one, other = (known.get((CHIP, COST, MODEL, BATCH, name)) for name in (PUBLISHED, SPLIT))
    if tried is None or one is None or other is None:
        return NOT_TRIED
    slower = sum(cycles > other[name] / 0.9 for name, cycles in one.items())
    return (
        f"tried: of {tried['operators']} operators of {MODEL}-{BATCH}, {slower} are slower than with split sums, and "
        f"{tried['slower']} without relayouts, of which a shared memory has none"
    )


def why_nerf_fits(row: Row | None) -> str:
    """Return what PopART would need for NeRF's frame if it kept copies."""
    if row is None or row.status != "ok":
        return NOT_TRIED
    chip = chip_and_costs()[0]
    layer = 2 * 2_073_600 * 64 // chip.n_cores
    one, two = row.peak_bytes + layer, row.peak_bytes + 2 * layer
    return (
        f"our stand-in keeps no copies: NeRF's frame takes {row.peak_bytes:,} bytes per core of {chip.sram_bytes:,}, "
        f"{one:,} with a second copy of a layer's result, {two:,} with one of its input, too"
    )


NOT_TRIED = "perhaps: not tried yet"


def pictures() -> dict[str, Any]:
    """Return none: a table says it."""
    return {}


def claims() -> list[Any]:
    """Return none: these are reasons of other claims."""
    return []


def section() -> str:
    """Return the part of the page."""
    rows: list[tuple[str, ...]] = []
    for (system, varied), tried in _tried().items():
        row = _row(system)
        if row is not None:
            found = tried["compute_cycles"], tried["transfer_cycles"]
            now = f"{row.cycles:,} ({_share(row.compute_cycles, row.transfer_cycles):.0%})"
            rows.append((system, varied, now, f"{sum(found):,} ({_share(*found):.0%})"))
    headings = ("system", "varied", "cycles (in transfers)", "then")
    return f"""## Reasons tried

{MODEL}, batch {BATCH}, planned anew with one thing changed (modelled). *{FREE}*: the {fixed_cycles()} cycles of
synchronisation, set-up and latency of every phase are none. *{BOUNDS}*: PopART's plans are chosen by bounds of costs.
*{RELAYOUTS}*: without what it takes to rearrange operands between operators.

{table(headings, rows)}
"""
