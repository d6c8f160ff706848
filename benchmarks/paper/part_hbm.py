"""Figure 24: weights from off-chip memory, by its rate: the paper's two ways, ours, and what bounds it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hbm

from paper.claims import Claim
from paper.part_data import CHIP, MODELLED, Say, fill, read, shown, table
from t10.report.plots import new_figure

FILE = "off-chip.csv"
FIELDS = ("model", "batch", "tb_per_second", "single_op", "inter_op", "ours", "ideal", "bound")
MODELS = (("llama2-13b", "1"), ("opt-13b", "1"))
RATES = (0.5, 1, 2, 4, 8, 16)
PICTURE = "figure-24-off-chip"
WAYS = (
    ("single_op", "Single Op", "#e0a500"),
    ("inter_op", "Inter Op", "#3b9bb3"),
    ("ours", "ours", "#3a923a"),
)


def plan(say: Say) -> None:
    """Plan what has no row yet."""
    fill(FILE, FIELDS, list(MODELS), _made, say)


def _made(model: str, batch: str) -> Iterator[tuple[object, ...]]:
    for row in hbm.rows(model, int(batch), CHIP, list(RATES)):
        papers = ["" if each is None else each for each in (row.single_op, row.inter_op)]
        yield (row.rate, *papers, row.ours, row.ideal, row.bound)


def _by_model() -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = {}
    for line in read(FILE):
        found.setdefault(f"{line['model']}, batch {line['batch']}", []).append(line)
    return found


def pictures() -> dict[str, Any]:
    """Return cycles against the rate, a panel per model."""
    models = _by_model()
    if not models:
        return {}
    figure = new_figure(9, 3.4)
    for place, (model, lines) in enumerate(models.items(), 1):
        axes = figure.add_subplot(1, len(models), place)
        for name, label, colour in WAYS:
            points = [(float(line["tb_per_second"]), int(line[name]) / 1e6) for line in lines if line[name]]
            if points:
                axes.plot(*zip(*points, strict=True), "o-", color=colour, label=label)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("TB/s")
        axes.set_ylabel("million cycles")
        axes.set_title(f"{model} ({MODELLED})", loc="left", fontsize=8)
        axes.legend(frameon=False)
    return {PICTURE: figure}


def claims() -> list[Claim]:
    """Return what the paper says of figure 24, and what ours reaches."""
    models = _by_model()
    if not models:
        return []
    pairs = [
        (float(line["tb_per_second"]), int(line["inter_op"]) / int(line["single_op"]))
        for lines in models.values()
        for line in lines
        if line["inter_op"] and line["single_op"]
    ]
    slow = [ratio for rate, ratio in pairs if rate == min(RATES)]
    ideals = [int(line["ideal"]) / int(line["ours"]) for lines in models.values() for line in lines]
    bounds = [int(line["bound"]) / int(line["ours"]) for lines in models.values() for line in lines]
    found: list[Claim] = []
    if slow:
        found.append(
            Claim(
                "Inter Op against Single Op where off-chip memory is slow, figure 24",
                "faster",
                f"takes {min(slow):.3f} to {max(slow):.3f} of the time at {min(RATES)} TB/s",
                max(slow) <= 1,
                "fetching alone decides there, and both fetch all weights",
            )
        )
    found.append(
        Claim(
            "ours with off-chip memory, of what is ideal",
            "(not in the paper)",
            f"{min(ideals):.1%} or more of the ideal, {min(bounds):.1%} or more of our bound",
            min(ideals) >= 0.96,
            "less than 96 %",
        )
    )
    return found


def section() -> str:
    """Return the part of the page."""
    rows = [
        (model, line["tb_per_second"], *(f"{int(line[name]):,}" if line[name] else "x" for name, *_ in WAYS),
         f"{int(line['ideal']) / int(line['ours']):.1%}", f"{int(line['bound']) / int(line['ours']):.1%}")
        for model, lines in _by_model().items()
        for line in lines
    ]  # fmt: skip
    headings = ("model", "TB/s", *(label for _, label, _ in WAYS), "of the ideal", "of the bound")
    return f"""## Off-chip memory

All layers of a language model, whose weights are fetched while others are computed with ({MODELLED}, sums of f32;
[how ours chooses](planner.md#weights-from-off-chip-memory)). The ideal gives every operator all of the memory,
and hides all fetches; the bound holds for every schedule over the same plans. x: does not fit the paper's buffer.

{shown(PICTURE) if rows else ""}

{table(headings, rows)}
"""
