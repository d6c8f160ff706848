"""An operator for the eye: who holds what at step 0, its front, where its cycles go. A front alone, too."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from math import ceil, sqrt
from pathlib import Path
from typing import Any

from t10.core.atomic import write_bytes, write_text
from t10.errors import InputError
from t10.explain.explanation import Explanation
from t10.explain.front import FrontPoint
from t10.explain.holdings import MOST_DRAWN, Holding
from t10.report.pareto import plot_of
from t10.report.plots import (
    CYCLE_COLOURS,
    RED,
    draw_front,
    label,
    missing_letters,
    new_figure,
    short_name,
    svg_text,
)
from t10.report.table import count_text

SUFFIXES = (".png", ".svg")
MOST_TENSORS = 6
COLUMNS = 3
DOTS_PER_INCH = 150
SVG_HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'
PANEL_INCHES = 3.2
CHARACTER_INCHES = 0.05
"""Width of a panel, and of a character of what is written on its cores."""
BELOW = 0.25
"""How far below a core's text the arrow of its ring goes, in cells."""

_DIM_ENDS = re.compile(r"(?<=\d) ")


def check_picture(path: Path) -> None:
    """Raise `InputError` for a file whose form cannot be told from its name."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"cannot draw {path}: its name ends in '{path.suffix}' (expected {' or '.join(SUFFIXES)})"
        )


def explanation_picture(explained: Explanation, path: Path) -> str:
    """Draw an explanation to a .png or .svg file: a panel per tensor, its front, its cycles. Return a line on it."""
    check_picture(path)
    shown = explained.holdings[:MOST_TENSORS]
    n_rows = ceil(len(shown) / COLUMNS)
    figure = new_figure(12, 3.6 * n_rows + 3.4)
    grid = figure.add_gridspec(n_rows + 1, COLUMNS)
    for number, holding in enumerate(shown):
        axes = figure.add_subplot(grid[number // COLUMNS, number % COLUMNS])
        _draw_holding(axes, explained, holding)
    _draw_front(figure.add_subplot(grid[n_rows, :2]), explained.front, explained.cost_model)
    _draw_cycles(figure.add_subplot(grid[n_rows, 2]), explained)
    figure.suptitle(
        f"{short_name(explained.operator, 60)} on {explained.chip}: {explained.kind}", fontsize=11
    )
    return _write(figure, path)


def front_picture(points: Sequence[FrontPoint], title: str, cost_model: str, path: Path) -> str:
    """Draw a front, time against memory, to a .png or .svg file; the chosen plan is a star. Return a line on it."""
    check_picture(path)
    figure = new_figure(8, 4.5)
    axes = figure.add_subplot()
    _draw_front(axes, points, cost_model)
    axes.set_title(label(title), loc="left")
    return _write(figure, path)


def _draw_holding(axes: Any, explained: Explanation, holding: Holding) -> None:
    """Draw every core as a cell, coloured by the part of the tensor it holds."""
    n_cores = len(holding.parts)
    n_columns = _columns(explained, n_cores)
    numbers = {part: i for i, part in enumerate(dict.fromkeys(holding.parts))}
    n_rows = ceil(n_cores / n_columns)
    cells = [[float("nan")] * n_columns for _ in range(n_rows)]
    for core, part in enumerate(holding.parts):
        cells[core // n_columns][core % n_columns] = float(numbers[part])
    axes.imshow(cells, cmap="viridis", aspect="auto", alpha=0.45, interpolation="nearest", vmin=0)
    axes.set_xticks([])
    axes.set_yticks([])
    texts = [_DIM_ENDS.sub("\n", part) or "all" for part in holding.parts]
    widest = max(len(line) for text in texts for line in text.split("\n"))
    if n_cores <= MOST_DRAWN and widest * CHARACTER_INCHES * n_columns <= PANEL_INCHES:
        for core, text in enumerate(texts):
            where = (core % n_columns, core // n_columns)
            axes.annotate(text, where, ha="center", va="center", fontsize=6, color="#222222")
    for before, after in zip(holding.first_ring, holding.first_ring[1:], strict=False):
        arrow = {"arrowstyle": "->", "color": RED, "linewidth": 1}
        start, end = ((core % n_columns, core // n_columns + BELOW) for core in (before, after))
        axes.annotate("", end, start, arrowprops=arrow)
    turns = (
        f"ring of {holding.ring}, {holding.replicas} per part"
        if holding.ring > 1
        else f"copies: {holding.replicas}"
    )
    axes.set_title(f"{short_name(holding.name, 26)}: {holding.sub_tensors} parts, {turns}", loc="left")


def _columns(explained: Explanation, n_cores: int) -> int:
    """Return how many cores stand in a row: those along the last axis, or as many as make a square."""
    last = list(explained.axes.values())[-1] if explained.axes else 1
    return last if 1 < last < n_cores else ceil(sqrt(n_cores))


def _draw_front(axes: Any, points: Sequence[FrontPoint], cost_model: str) -> None:
    chosen = next(((each.active_bytes, each.cycles) for each in points if each.is_chosen), None)
    plot = plot_of([(each.active_bytes, each.cycles) for each in points], chosen)
    draw_front(axes, plot)
    axes.set_xlabel("KiB per core while it runs")
    axes.set_ylabel(f"modelled cycles, alone ({cost_model})")
    star = ", the star is the chosen one" if chosen else ""
    axes.set_title(f"{count_text(len(plot.front), 'plan')} on the Pareto front{star}", loc="left")


def _draw_cycles(axes: Any, explained: Explanation) -> None:
    left = 0
    for kind, colour in CYCLE_COLOURS.items():
        width = explained.cycles[kind]
        axes.barh([0], [width], left=left, color=colour, label=kind, height=0.5)
        left += width
    axes.set_yticks([])
    axes.set_ylim(-1, 1)
    axes.set_xlabel(f"modelled cycles ({explained.cost_model})")
    axes.legend(frameon=False, ncols=3, loc="upper left")


def _write(figure: Any, path: Path) -> str:
    """Write a figure at once or not at all; the same figure gives the same bytes. Return what is to be said of it."""
    if path.suffix.lower() == ".svg":
        write_text(path, SVG_HEAD + svg_text(figure))
        return f"wrote {path}"
    out = io.BytesIO()
    with missing_letters() as missing:
        figure.savefig(out, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
    write_bytes(path, out.getvalue())
    boxes = " (no font here has some letters of the names, which are boxes: an .svg keeps them)"
    return f"wrote {path}{boxes if missing else ''}"
