"""The figures of the evaluation that are drawn from rows of whole models; None where rows are missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paper.claims import (
    ANSOR,
    CHIP,
    CLOCK_HZ,
    COST,
    OURS,
    POPART,
    PUBLISHED,
    ROLLER,
    SPLIT,
    Known,
    bytes_per_nanosecond,
)
from paper.systems import Row
from t10.chip import load_chip
from t10.report.plots import new_figure

COLOURS = {
    POPART: "#888888",
    ROLLER: "#e0a500",
    SPLIT: "#b05ab0",
    ANSOR: "#a0522d",
    PUBLISHED: "#3b9bb3",
    OURS: "#3a923a",
}
JOINED = "v-ipu-2", "v-ipu-4"
"""Chips that are joined to one."""
MODELLED = "modelled, chip ipu-mk2, cost model ipu"


def _beside_each_other(
    known: Known, height: float, value: Callable[[Row], float], *, crosses: bool = False
) -> tuple[Any, Any]:
    """Return a figure and its axes: for every model and batch a bar per system, or a cross where nothing fits."""
    figure = new_figure(11, height)
    axes = figure.add_subplot()
    points = known.points()
    width = 0.8 / len(COLOURS)
    for place, (system, colour) in enumerate(COLOURS.items()):
        at = [number + (place - len(COLOURS) / 2 + 0.5) * width for number in range(len(points))]
        rows = [known.row(model, batch, system) for model, batch in points]
        axes.bar(at, [0 if row is None else value(row) for row in rows], width, color=colour, label=system)
        for x, (model, batch) in zip(at, points, strict=True):
            tried = known.rows.get((CHIP, COST, model, batch, system))
            if crosses and tried is not None and tried.status != "ok":
                axes.text(x, 0.02, "x", color="red", ha="center", transform=axes.get_xaxis_transform())
    names = [f"{model}, {batch}" for model, batch in points]
    axes.set_xticks(range(len(points)), names, rotation=30, ha="right", fontsize=8)
    axes.set_xlabel("model, batch")
    axes.legend(frameon=False, ncols=len(COLOURS), fontsize=8)
    return figure, axes


def latency(known: Known) -> Any:
    """Return figure 12: end-to-end latency; a cross where a system does not fit the model."""
    figure, axes = _beside_each_other(known, 4, lambda row: 1e3 * row.cycles / CLOCK_HZ, crosses=True)
    axes.set_yscale("log")
    axes.set_ylabel("milliseconds")
    axes.set_title(f"Figure 12: latency ({MODELLED}); x: does not fit")
    return figure


def shares(known: Known) -> Any:
    """Return figure 13: the part of the time in which elements move."""
    figure, axes = _beside_each_other(known, 3.6, lambda row: 100 * row.transfer_cycles / row.cycles)
    axes.set_ylabel("% of the time in transfers")
    axes.set_ylim(0, 100)
    axes.set_title(f"Figure 13: transfer share ({MODELLED})")
    return figure


def bandwidth(known: Known) -> Any:
    """Return figure 14: bytes that a core takes on average by time in transfers."""
    figure, axes = _beside_each_other(known, 3.6, bytes_per_nanosecond)
    axes.axhline(5.32, color="black", linewidth=0.8, linestyle="--")
    axes.set_ylabel("GB/s per core")
    axes.set_title(f"Figure 14: bandwidth while elements move ({MODELLED}); dashed: 4 bytes a cycle")
    return figure


def operators(known: Known) -> Any:
    """Return figure 15: how much faster operators are than Roller's and Ansor's, as a distribution."""
    figure = new_figure(8, 3.8)
    axes = figure.add_subplot()
    for slower, style in ((ROLLER, "-"), (SPLIT, "--"), (ANSOR, ":")):
        for faster, colour in ((PUBLISHED, COLOURS[PUBLISHED]), ("ours unfused", COLOURS[OURS])):
            ratios = sorted(known.operator_speedups(slower, faster))
            if ratios:
                part = [100 * (i + 1) / len(ratios) for i in range(len(ratios))]
                axes.plot(ratios, part, style, color=colour, label=f"{faster} against {slower}")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("times faster")
    axes.set_ylabel("% of operators")
    axes.set_title(f"Figure 15: operators ({MODELLED})")
    axes.legend(frameon=False, fontsize=8)
    return figure


def memories(known: Known) -> Any:
    """Return time, and how many operators rotate, against the memory of a core; None without rows."""
    if not _varied(known, "sram_bytes", OURS):
        return None
    figure = new_figure(8, 3.8)
    axes = figure.add_subplot()
    other = axes.twinx()
    for system in (OURS, PUBLISHED):
        rows = sorted(
            (int(row.chip.split("=")[1].removesuffix("KiB")), row)
            for row in _varied(known, "sram_bytes", system)
        )
        if rows:
            sizes = [size for size, _ in rows]
            axes.plot(sizes, [row.cycles / 1e3 for _, row in rows], "o-", color=COLOURS[system], label=system)
            rotating = [100 * row.rotating / row.operators for _, row in rows]
            other.plot(sizes, rotating, "x:", color=COLOURS[system])
    axes.set_xlabel("KiB of memory per core")
    axes.set_ylabel("thousand cycles")
    other.set_ylabel("% of operators that rotate (dotted)")
    axes.set_ylim(bottom=0)
    axes.set_title(f"RetNet-1.3B's layer, batch 1 ({MODELLED})")
    axes.legend(frameon=False)
    return figure


def cores(known: Known) -> Any:
    """Return figure 21: time against the number of cores; None without rows."""
    if not _varied(known, "n_cores", OURS):
        return None
    figure = new_figure(8, 3.6)
    axes = figure.add_subplot()
    for system in (SPLIT, OURS):
        rows = [*_varied(known, "n_cores", system)]
        rows += [row for chip in (CHIP, *JOINED) if (row := known.row("retnet-1.3b", 1, system, chip=chip))]
        points = sorted((n_cores_of(row.chip), row.cycles / 1e3) for row in rows)
        axes.plot(*zip(*points, strict=True), "o-", color=COLOURS[system], label=system)
    axes.axvspan(1472, n_cores_of(JOINED[-1]), color="#eeeeee", zorder=0, label="several chips")
    axes.set_xlabel("cores")
    axes.set_ylabel("thousand cycles")
    axes.set_ylim(bottom=0)
    axes.set_title(f"Figure 21: RetNet-1.3B's layer, batch 1 ({MODELLED})")
    axes.legend(frameon=False)
    return figure


def n_cores_of(chip: str) -> int:
    """Return the cores of a chip by its name."""
    return load_chip(chip).n_cores


def _varied(known: Known, field: str, system: str) -> list[Row]:
    return [
        row
        for key, row in sorted(known.rows.items())
        if f":{field}=" in row.chip and row.system == system and row.status == "ok" and key[1] == COST
    ]


FIGURES = {
    "figure-12-latency": latency,
    "figure-13-transfer-share": shares,
    "figure-14-bandwidth": bandwidth,
    "figure-15-operators": operators,
    "figure-21-cores": cores,
    "figure-memory": memories,
}
