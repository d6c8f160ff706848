"""Plots of a planned model as SVG text: where time goes, time against memory, and what lies where over time.

The same plan gives the same text: no dates, no random identifiers.
"""

from __future__ import annotations

import importlib
import io
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from math import ceil
from typing import Any

from t10.chip import ChipSpec
from t10.core.plan import CostedPlan
from t10.core.schedule import PHASES, ModulePlan, ScheduledOperator
from t10.errors import printable
from t10.report.pareto import FrontPlot, front_plot
from t10.report.records import Report
from t10.report.table import slowest

KIB = 1024
CYCLE_COLOURS = {
    "compute": "#3a923a",
    "shift": "#3b9bb3",
    "reduce": "#b05ab0",
    "relayout": "#e0a500",
    "setup": "#4a6fd0",
    "wait": "#d04a4a",
}
BUFFER_COLOURS = {
    "idle": "#4a6fd0",
    "value": "#3a923a",
    "operand": "#e0a500",
    "accumulator": "#b05ab0",
    "input": "#3b9bb3",
    "shift": "#888888",
}
"""By the first part of a buffer's name."""

MOST_BARS = 24
MOST_FRONTS = 12
FRONT_COLUMNS = 4
MOST_VECTOR_BOXES = 2000
"""More boxes than this are drawn as pixels: an SVG of thousands of boxes is slow to show."""
BLUE, RED, GREY = "#4a6fd0", "#d04a4a", "#a5a5a5"
LONG_FRONT = 20
"""A front whose slowest plan takes so many times the cycles of its fastest is drawn on a scale of powers."""
SHOWN_WHOLE = 0.4
"""Least part of the memory in use for the memory map to show all of it."""

SETTINGS = {
    "svg.hashsalt": "t10",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
}


def time_plot(report: Report) -> str:
    """Return a bar per kind of operator, the slowest first, split by kind of cycles."""
    rows = slowest(report, MOST_BARS)
    figure = new_figure(9, 0.8 + 0.26 * max(len(rows), 2))
    axes = figure.add_subplot()
    left = [0] * len(rows)
    for kind, colour in CYCLE_COLOURS.items():
        widths = [int(getattr(row.cycles, kind)) for row in rows]
        axes.barh(range(len(rows)), widths, left=left, color=colour, label=kind)
        left = [a + b for a, b in zip(left, widths, strict=True)]
    axes.set_yticks(range(len(rows)), [short_name(row.name) for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel(f"modelled cycles ({label(report.cost_model)})")
    axes.legend(frameon=False, ncols=len(CYCLE_COLOURS), loc="lower right")
    return svg_text(figure)


def pareto_plot(plan: ModulePlan, cost_model: str) -> str:
    """Return time against memory of the slowest operators, one panel per distinct front, the chosen plan marked.

    Fronts of a single plan are left out where there are others.
    """
    every = distinct_fronts(plan)
    panels = ([pair for pair in every if len(pair[0].pareto) > 1] or every)[:MOST_FRONTS]
    n_rows = max(1, ceil(len(panels) / FRONT_COLUMNS))
    figure = new_figure(11, 0.4 + 2.3 * n_rows)
    for number, (operator, n_alike) in enumerate(panels):
        axes = figure.add_subplot(n_rows, FRONT_COLUMNS, number + 1)
        draw_front(axes, front_plot(operator))
        axes.set_title(short_name(operator.name, 26) + (f"  (×{n_alike})" if n_alike > 1 else ""), loc="left")
    figure.supxlabel("KiB per core while it runs (active bytes); steps: Pareto front, star: the chosen plan")
    figure.supylabel(f"modelled cycles, alone ({label(cost_model)})")
    return svg_text(figure)


def draw_front(axes: Any, plot: FrontPlot) -> None:
    """Draw a front as steps, other plans as grey dots, and the chosen plan as a star, which no line joins."""
    where = [(n_bytes / KIB, cycles) for n_bytes, cycles in plot.front]
    if where:
        axes.plot(
            *zip(*where, strict=True), "o-", color=BLUE, markersize=3, linewidth=1, drawstyle="steps-post"
        )
    if plot.others:
        axes.plot(*zip(*((x / KIB, y) for x, y in plot.others), strict=True), "o", color=GREY, markersize=3)
    if plot.chosen is not None:
        axes.plot([plot.chosen[0] / KIB], [plot.chosen[1]], "*", color=RED, markersize=11)
    heights = [y for _, y in where]
    if heights and max(heights) > LONG_FRONT * max(1, min(heights)):
        axes.set_yscale("log")


def memory_plot(plan: ModulePlan, chip: ChipSpec) -> str:
    """Return what lies where in every core's memory over the operators of the program."""
    patches = importlib.import_module("matplotlib.patches")
    collections = importlib.import_module("matplotlib.collections")
    figure = new_figure(11, 4.6)
    axes = figure.add_subplot()
    last_step = max(len(plan.operators), 1)
    by_colour: dict[str, list[Any]] = {}
    for buffer in plan.buffers:
        kind = buffer.name.partition(":")[0]
        begin = max(buffer.first_moment / len(PHASES), 0)
        end = min((buffer.last_moment + 1) / len(PHASES), last_step)
        box = patches.Rectangle((begin, buffer.address_bytes / KIB), end - begin, buffer.size_bytes / KIB)
        by_colour.setdefault(kind, []).append(box)
    is_large = len(plan.buffers) > MOST_VECTOR_BOXES
    for kind, boxes in by_colour.items():
        edge = 0.0 if is_large else 0.3
        axes.add_collection(
            collections.PatchCollection(
                boxes,
                facecolor=BUFFER_COLOURS.get(kind, "#bbbbbb"),
                edgecolor="white",
                linewidth=edge,
                rasterized=is_large,
            )
        )
    axes.axhspan(0, plan.reserved_bytes / KIB, color="#dddddd")
    axes.set_xlim(0, last_step)
    _scale_memory(axes, plan.peak_bytes / KIB, plan.end_bytes / KIB, chip.sram_bytes / KIB)
    axes.set_xlabel("operator, in the order of the program")
    axes.set_ylabel("address in every core, KiB")
    handles = [patches.Patch(color=BUFFER_COLOURS.get(kind, "#bbbbbb"), label=kind) for kind in by_colour]
    handles.append(patches.Patch(color="#dddddd", label="code and stacks"))
    axes.legend(
        handles=handles, frameon=False, ncols=len(handles), loc="upper center", bbox_to_anchor=(0.5, 1.1)
    )
    return svg_text(figure)


def _scale_memory(axes: Any, peak_kib: float, end_kib: float, capacity_kib: float) -> None:
    """Show all of the memory with its end marked; only up to the last buffer where that lies low, and say so."""
    if end_kib >= SHOWN_WHOLE * capacity_kib:
        axes.axhline(capacity_kib, color="#d04a4a", linewidth=1)
        axes.set_ylim(0, max(capacity_kib, end_kib) * 1.02)
        return
    axes.set_ylim(0, end_kib * 1.25)
    axes.axhline(end_kib, color="#666666", linewidth=0.8, linestyle="--")
    text = f"peak {peak_kib:,.1f} of {capacity_kib:,.0f} KiB"
    axes.annotate(text, (1, end_kib), xycoords=("axes fraction", "data"), ha="right", va="bottom")


def distinct_fronts(plan: ModulePlan) -> list[tuple[ScheduledOperator, int]]:
    """Return one operator per distinct front and how many share it; most modelled cycles together first."""
    groups: dict[tuple[CostedPlan, ...], list[ScheduledOperator]] = {}
    for operator in plan.operators:
        if operator.pareto:
            groups.setdefault(operator.pareto, []).append(operator)
    ordered = sorted(groups.values(), key=lambda group: -sum(op.active.cycles.total for op in group))
    return [(group[0], len(group)) for group in ordered]


def new_figure(width_inches: float, height_inches: float) -> Any:
    """Return an empty figure that no window system is needed for."""
    matplotlib = importlib.import_module("matplotlib")
    matplotlib.rcParams.update(SETTINGS)
    figure = importlib.import_module("matplotlib.figure").Figure(
        figsize=(width_inches, height_inches), layout="constrained"
    )
    return figure


_LETTERS = ("Glyph ", "Matplotlib currently does not support ")
"""What matplotlib's warnings of letters begin with."""


@contextmanager
def missing_letters() -> Generator[list[str]]:
    """Keep warnings of letters that fonts lack from the terminal; yield a list that holds them behind the block."""
    found: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield found
    for warning in caught:
        text = str(warning.message)
        if text.startswith(_LETTERS):
            found.append(text)
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def svg_text(figure: Any) -> str:
    """Return a figure as an `<svg>` element."""
    out = io.StringIO()
    with missing_letters():  # the names are text, which the reader's fonts draw: they are only measured here
        figure.savefig(out, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    text = out.getvalue()
    return printable(text[text.index("<svg") :])


def short_name(name: str, n_characters: int = 34) -> str:
    """Return the end of a name that is too long to draw."""
    return label(name if len(name) <= n_characters else "…" + name[1 - n_characters :])


def label(text: str) -> str:
    """Return a text as matplotlib is to draw it: what stands between two dollars is no formula."""
    return printable(text).replace("$", r"\$")
