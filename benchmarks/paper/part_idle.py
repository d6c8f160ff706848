"""Figure 9: an operator's weights at rest, bytes of them against the cycles that setting them up takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from paper.claims import Claim
from paper.part_data import (
    MODELLED,
    Say,
    chip_and_costs,
    fill,
    operator_of,
    read,
    searched,
    shown,
    table,
    unfused,
)
from t10.plan.memory.levels import level_table
from t10.report.plots import KIB, new_figure

FILE = "idle.csv"
FIELDS = (
    "model",
    "batch",
    "operator",
    "plan",
    "level",
    "active_bytes",
    "idle_bytes",
    "setup_cycles",
    "run_cycles",
)
"""`plan` counts from the smallest of the front; `level` 0 spreads weights over all cores, n keeps one in n replicas."""
OPERATOR = ("bert-large", "1", "/layer0/intermediate/MatMul")
PICTURE = "figure-9-idle"
PLANS = 5
"""Lines that are drawn: plans evenly from the smallest to the fastest."""


@dataclass(frozen=True, slots=True)
class Level:
    """A plan of the front with its weights at rest at a level: bytes per core, and cycles."""

    plan: int
    level: int
    active_bytes: int
    idle_bytes: int
    setup_cycles: int
    run_cycles: int


def plan(say: Say) -> None:
    """Plan the operator if it has no rows yet."""
    fill(FILE, FIELDS, [OPERATOR], _made, say)


def _made(model: str, batch: str, operator: str) -> Iterator[tuple[int, ...]]:
    chip, cost = chip_and_costs()
    spec = operator_of(unfused(model, int(batch)), operator)
    front = searched(model, int(batch), operator)[0].front
    weights = tuple(number for number, each in enumerate(spec.operands) if each.role == "weight")
    found = level_table(spec, front, weights, chip.n_cores, cost)
    for row in range(len(found.plan)):
        number, run = int(found.plan[row]), int(found.run_cycles[row])
        yield (
            number, int(found.level[row]), front[number].active_bytes, int(found.idle_bytes[row]),
            int(found.cycles[row]) - run, run,
        )  # fmt: skip


def _levels() -> dict[int, list[Level]]:
    """Return the levels of every plan, least at rest first."""
    found: dict[int, list[Level]] = {}
    for line in read(FILE):
        level = Level(*(int(line[name]) for name in FIELDS[3:]))
        found.setdefault(level.plan, []).append(level)
    return {number: sorted(each, key=lambda one: one.idle_bytes) for number, each in found.items()}


def _drawn() -> list[list[Level]]:
    levels = list(_levels().values())
    if len(levels) <= PLANS:
        return levels
    return [levels[number * (len(levels) - 1) // (PLANS - 1)] for number in range(PLANS)]


def pictures() -> dict[str, Any]:
    """Return a line per plan: what a byte at rest saves."""
    drawn = _drawn()
    if not drawn:
        return {}
    figure = new_figure(7, 3.6)
    axes = figure.add_subplot()
    for levels in drawn:
        label = f"{levels[0].active_bytes / KIB:.1f} KiB while it runs, {levels[0].run_cycles:,} cycles"
        where = [(each.idle_bytes / KIB, each.setup_cycles) for each in levels]
        axes.plot(*zip(*where, strict=True), "o-", markersize=4, label=label)
    axes.set_xlabel("KiB per core that weights take at rest")
    axes.set_ylabel("cycles of setting them up")
    axes.set_ylim(bottom=0)
    axes.set_title(f"{OPERATOR[0]} {OPERATOR[2]} ({MODELLED})", loc="left")
    axes.legend(frameon=False, fontsize=8, title="plan")
    return {PICTURE: figure}


def claims() -> list[Claim]:
    """Return what the paper says of figure 9."""
    levels = _levels()
    if not levels:
        return []
    fastest = levels[max(levels)]
    thin, thick = fastest[0], fastest[-1]
    falls = all(
        more.setup_cycles <= less.setup_cycles for each in levels.values() for less, more in pairwise(each)
    )
    return [
        Claim(
            "more memory at rest, less set-up, figure 9",
            "a trade-off",
            f"fastest plan of {OPERATOR[0]}'s product: {thin.idle_bytes / KIB:.1f} KiB at rest and "
            f"{thin.setup_cycles:,} cycles of set-up, or {thick.idle_bytes / KIB:.1f} KiB and {thick.setup_cycles:,}",
            falls,
            "a plan whose weights take more at rest takes longer to set up: replicas divide them into more pieces",
        )
    ]


def section() -> str:
    """Return the part of the page."""
    rows = [
        (
            f"{each.active_bytes / KIB:.1f} KiB",
            f"{each.run_cycles:,}",
            f"{each.idle_bytes / KIB:.1f} KiB",
            f"{each.setup_cycles:,}",
        )
        for levels in _drawn()
        for each in (levels[0], levels[-1])
    ]
    headings = ("while it runs", "cycles", "weights at rest", "cycles of set-up")
    return f"""## Idle and active memory

{shown(PICTURE)}

The weights of one operator may rest spread over all cores, or where a plan reads them, every replica with a
part. The more rests, the less is fetched before the operator runs. All cycles are modelled.

{table(headings, rows)}
"""
