"""Figure 20: the states that Algorithm 1 passes, share of the memory that weights at rest take against cycles."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from paper.claims import Claim
from paper.part_data import MODELLED, Say, chip_and_costs, fill, read, shown, table, unfused
from t10.baselines.roller import Roller
from t10.baselines.shares import share_elements
from t10.baselines.vgm import plan_vgm
from t10.core.dtypes import size_bytes
from t10.core.graph import Graph
from t10.plan.context import Context, context_of
from t10.plan.fronts.operator_fronts import operator_fronts
from t10.plan.greedy.algorithm1 import base_bytes, live_bytes, reconciled, tables_of
from t10.plan.greedy.reconcile import Problem, reconcile
from t10.plan.memory.levels import Choice, LevelTable
from t10.plan.options import PlanOptions
from t10.plan.search.pareto import Front
from t10.report.plots import new_figure

FILE = "trajectories.csv"
FIELDS = ("model", "batch", "part", "system", "state", "idle_bytes", "cycles", "small_operators", "operators")
"""`state` counts what is passed; 0 is where it begins. `small_operators` are those whose plan needs at most `SMALL` of
the memory while it runs, known of the chosen state only (-1: not worked out)."""
LITERAL, AWARE, CHOSEN, ROLLER = "by execution", "with set-up", "chosen", "Roller, split sums"
SYSTEMS = (CHOSEN, ROLLER)
MODELS = (("resnet18", "64"), ("bert-large", "1"))
READINGS = {LITERAL: True, AWARE: False}
SMALL = 0.4
PICTURE = "figure-20-trajectories"
PAPER_SHARE, PAPER_MODEL = 0.58, "resnet18"
NEAR = 0.1
"""A share agrees within a tenth of the memory."""

State = tuple[str, int, int, int, int]


def plan(say: Say) -> None:
    """Plan what has no row yet."""
    fill(FILE, FIELDS, [(*each, part) for each in MODELS for part in SYSTEMS], _made, say)


def _made(model: str, batch: str, part: str) -> Iterator[tuple[object, ...]]:
    graph = unfused(model, int(batch))
    yield from _roller(graph) if part == ROLLER else _passed(graph)


def _roller(graph: Graph) -> Iterator[tuple[object, ...]]:
    """Yield Roller's only state: weights rest in equal shares."""
    chip, cost = chip_and_costs()
    found = plan_vgm(graph, chip, cost, Roller(splits_sums=True))
    idle = sum(
        share_elements(prod(each.shape), each.dtype, chip.n_cores) * size_bytes(each.dtype)
        for each in graph.weights
    )
    needs = np.array([each.regions.active_bytes + each.regions.sub_bytes for each in found.operators])
    small = int((needs <= SMALL * chip.sram_bytes).sum())
    yield ROLLER, 0, idle, found.cycles, small, len(needs)


def _passed(graph: Graph) -> Iterator[tuple[object, ...]]:
    """Yield the states of both readings of Algorithm 1, and the one that is chosen."""
    chip, cost = chip_and_costs()
    options = PlanOptions(as_published=True)
    context = context_of(graph, chip, cost)
    fronts = operator_fronts(graph, chip, cost, options)
    tables = tables_of(context, fronts)
    choices = reconciled(context, fronts, tables, options.reading, 0)
    problem = Problem(
        specs=graph.operators,
        tables=tables,
        live_bytes=live_bytes(context, fronts, choices),
        base_bytes=base_bytes(context),
        capacity_bytes=chip.capacity_bytes,
        chip=chip,
    )
    resting = problem.base_bytes - chip.shift_buffer_bytes
    for name, by_run_time in READINGS.items():
        states: list[tuple[int, int]] = []
        reconcile(problem, by_run_time=by_run_time, watch=states.append)
        for number, (idle, cycles) in enumerate(states):
            yield name, number, resting + idle, cycles, -1, len(tables)
    yield CHOSEN, 0, *_chosen(context, fronts, tables, choices, resting), len(tables)


def _chosen(
    context: Context,
    fronts: tuple[Front, ...],
    tables: tuple[LevelTable, ...],
    choices: tuple[Choice, ...],
    resting: int,
) -> tuple[int, int, int]:
    """Return the idle bytes and cycles of choices, and how many operators need little memory while they run."""
    idle = cycles = small = 0
    for table_, front, choice in zip(tables, fronts, choices, strict=True):
        row = np.nonzero((table_.plan == choice.plan) & (table_.level == choice.level))[0][0]
        idle += int(table_.idle_bytes[row])
        cycles += int(table_.cycles[row])
        small += front[choice.plan].active_bytes <= SMALL * context.chip.sram_bytes
    return resting + idle, cycles, small


def _states() -> dict[tuple[str, str], list[State]]:
    """Return the states by model and batch: system, idle bytes, cycles, small operators, operators."""
    found: dict[tuple[str, str], list[State]] = {}
    for line in read(FILE):
        numbers = [int(line[name]) for name in ("idle_bytes", "cycles", "small_operators", "operators")]
        state = (line["system"], numbers[0], numbers[1], numbers[2], numbers[3])
        found.setdefault((line["model"], line["batch"]), []).append(state)
    return {key: states for key, states in found.items() if {CHOSEN, ROLLER} <= {each[0] for each in states}}


def _one(states: list[State], system: str) -> State:
    return next(each for each in states if each[0] == system)


def _share(n_bytes: int) -> float:
    return n_bytes / chip_and_costs()[0].sram_bytes


def pictures() -> dict[str, Any]:
    """Return a panel per model: dots of the states, the chosen plan as a star, Roller's as a triangle."""
    found = _states()
    if not found:
        return {}
    figure = new_figure(9, 3.4)
    for number, ((model, batch), states) in enumerate(found.items()):
        axes = figure.add_subplot(1, len(MODELS), number + 1)
        for name, colour in ((LITERAL, "#3b9bb3"), (AWARE, "#4a6fd0")):
            dots = [(100 * _share(each[1]), each[2] / 1e3) for each in states if each[0] == name]
            axes.plot(*zip(*dots, strict=True), ".", color=colour, markersize=3, label=f"Algorithm 1, {name}")
        for name, mark, colour in ((CHOSEN, "*", "#d04a4a"), (ROLLER, "^", "#b05ab0")):
            _, idle, cycles, *_ = _one(states, name)
            axes.plot([100 * _share(idle)], [cycles / 1e3], mark, color=colour, markersize=10, label=name)
        axes.set_ylim(0, 1.08 * max(each[2] for each in states) / 1e3)
        axes.set_title(f"{model}, batch {batch}", loc="left")
        axes.legend(frameon=False, fontsize=8)
    figure.supxlabel(f"% of a core's memory that weights at rest take ({MODELLED})")
    figure.supylabel("thousand cycles")
    return {PICTURE: figure}


def claims() -> list[Claim]:
    """Return what the paper says of figure 20."""
    found = _states()
    if not found:
        return []
    places: list[str] = []
    is_left = True
    for (model, batch), states in found.items():
        _, idle, cycles, *_ = _one(states, ROLLER)
        slowest = max(each[2] for each in states if each[0] != ROLLER)
        least = min(each[1] for each in states if each[0] != ROLLER)
        places.append(
            f"{model}-{batch}: {_share(idle):.1%} of the memory (T10's least {_share(least):.1%}), "
            f"{cycles:,} cycles (T10's slowest state {slowest:,})"
        )
        is_left &= cycles >= slowest and idle <= least * (1 + NEAR)
    rolled = Claim(
        "Roller keeps least at rest and is slowest, figure 20",
        "for most models",
        "; ".join(places),
        is_left,
        WHY_NOT_SLOWEST,
    )
    return [rolled, *(_idle_claim(key, states) for key, states in found.items() if key[0] == PAPER_MODEL)]


WHY_NOT_SLOWEST = "Algorithm 1 begins with weights spread as thin as Roller's"
WHY_SMALL_SHARE = "all its weights take little"


def _idle_claim(key: tuple[str, str], states: list[State]) -> Claim:
    _, idle, _, small, n = _one(states, CHOSEN)
    text = f"{_share(idle):.0%}; {small} of {n} operators need at most {SMALL:.0%} while they run"
    agrees = abs(_share(idle) - PAPER_SHARE) <= NEAR and small > n / 2
    return Claim(
        f"memory at rest of {key[0]}-{key[1]}, figure 20",
        "grows to about 58 % of the chip; many operators need at most 40 %",
        text,
        agrees,
        WHY_SMALL_SHARE,
    )


def section() -> str:
    """Return the part of the page."""
    rows: list[tuple[str, ...]] = []
    for (model, batch), states in _states().items():
        for system in (ROLLER, CHOSEN):
            name, idle, cycles, small, n = _one(states, system)
            rows.append((f"{model}-{batch}", name, f"{_share(idle):.1%}", f"{cycles:,}", f"{small} of {n}"))
    headings = ("model", "plan", "memory of weights at rest", "cycles", f"operators within {SMALL:.0%}")
    return f"""## What Algorithm 1 passes

{shown(PICTURE)}

Every dot is a state of Algorithm 1 on T10's published fronts: it begins with all weights spread over the
cores (left) and gives memory to those whose set-up is dear. Cycles are modelled, with relayouts of
activations estimated as in the fronts.

{table(headings, rows)}
"""
