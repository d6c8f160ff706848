"""report.html: the whole report on one page that needs nothing else, and the plots and the timeline as files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

from t10.chip import ChipSpec
from t10.core.atomic import write_text
from t10.core.device import DeviceProgram
from t10.core.schedule import ModulePlan
from t10.errors import printable
from t10.report.device_memory import device_memory_plot
from t10.report.plots import memory_plot, pareto_plot, time_plot
from t10.report.records import OperatorReport, Report
from t10.report.table import bytes_text, milliseconds_text, optimality_text
from t10.report.trace import planned_trace, write_trace

Progress = Callable[[str, int, int], None]

PAGE_FILE = "report.html"
TRACE_FILE = "trace.json"
DEVICE_FILE = "tile.svg"
SVG_HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 1100px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; margin-bottom: 0; } h2 { font-size: 1.15em; margin-top: 2em; }
.note { color: #666; } .facts { display: flex; flex-wrap: wrap; gap: 1em 2.5em; margin: 1.2em 0; }
.facts div { min-width: 8em; } .facts b { display: block; font-size: 1.35em; font-weight: 600; }
svg { max-width: 100%; height: auto; } .wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; }
th, td { padding: 3px 10px; text-align: right; border-bottom: 1px solid #e5e5e5; white-space: nowrap; }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left; }
"""

COLUMNS = (
    "operator", "kind", "cores", "steps", "cycles", "share", "compute", "shift", "reduce", "relayout", "setup",
    "active B/core", "idle B/core", "in use B/core", "plans",
)  # fmt: skip


def write_page(
    folder: Path,
    plan: ModulePlan,
    chip: ChipSpec,
    report: Report,
    progress: Progress | None = None,
    *,
    program: DeviceProgram | None = None,
) -> tuple[str, ...]:
    """Write report.html, its plots as SVG and trace.json into a folder; returns the names of the files.

    With a device program its memory is drawn as well.
    """
    drawings: list[tuple[str, Callable[[], str]]] = [
        ("time.svg", lambda: time_plot(report)),
        ("pareto.svg", lambda: pareto_plot(plan, report.cost_model)),
        ("memory.svg", lambda: memory_plot(plan, chip)),
    ]
    if program is not None:
        drawings.append((DEVICE_FILE, lambda: device_memory_plot(program, chip.interleaved_base)))
    svg_by_file: dict[str, str] = {}
    for number, (name, draw) in enumerate(drawings):
        if progress:
            progress("draw", number, len(drawings))
        svg_by_file[name] = draw()
        write_text(folder / name, SVG_HEAD + svg_by_file[name])
    write_text(folder / PAGE_FILE, page_text(report, tuple(svg_by_file.values())))
    write_trace(folder / TRACE_FILE, planned_trace(plan, chip), report.cost_model)
    return (PAGE_FILE, *svg_by_file, TRACE_FILE)


def page_text(report: Report, plots: Sequence[str]) -> str:
    """Return the page as HTML; `plots` are SVG elements: time, Pareto fronts, memory, and a program's memory if any."""
    time, pareto, memory = plots[:3]
    title = f"{escape(report.model)} on {escape(report.chip.name)}"
    page = f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<style>{STYLE}</style></head>
<body>
<h1>{title}</h1>
<p class="note">{escape(report.statement)} {escape(report.generator)}.</p>
<div class="facts">{_facts(report)}</div>
{_optimality(report)}
<h2>Where the time goes</h2>
{time}
<h2>Time against memory</h2>
<p class="note">Every dot is a plan on the front of an operator; the star is the plan chosen for the whole model.
Cycles here are those of the operator itself, without relayout and set-up.</p>
{pareto}
<h2>What lies where</h2>
<p class="note">The same on every core. Peak {bytes_text(report.peak_bytes)} of {bytes_text(report.capacity_bytes)}.</p>
{memory}
{_device(plots[3:])}
<h2>Operators</h2>
<p class="note">Cycles are modelled ({escape(report.cost_model)}).</p>
<div class="wide">{_table(report.operators)}</div>
</body>
</html>
"""
    return printable(page)


def _device(plots: Sequence[str]) -> str:
    """Return what a device program does with the same memory."""
    if not plots:
        return ""
    note = "The same memory as the device program uses it, by addresses; what is below the data is code and state."
    return f'<p class="note">{note}</p>\n{plots[0]}'


def _optimality(report: Report) -> str:
    """Return how good the plan is known to be, where that was computed."""
    if report.optimality is None:
        return ""
    return f'<p class="note">Plan: {escape(optimality_text(report))}.</p>'


def _facts(report: Report) -> str:
    seconds = sum(report.planner_seconds.values())
    facts = (
        ("modelled time", milliseconds_text(report.total_milliseconds)),
        ("modelled cycles", f"{report.total_cycles:,}"),
        ("cost model", report.cost_model),
        ("computing", f"{report.cycles.compute / max(report.total_cycles, 1):.0%}"),
        ("peak per core", bytes_text(report.peak_bytes)),
        ("weights", bytes_text(report.weight_bytes)),
        ("cores", f"{report.chip.n_cores:,}"),
        ("operators", str(len(report.operators))),
        ("compiled in", f"{seconds:.2f} s"),
    )
    return "".join(f"<div>{escape(name)}<b>{escape(value)}</b></div>" for name, value in facts)


def _table(operators: Sequence[OperatorReport]) -> str:
    head = "".join(f"<th>{name}</th>" for name in COLUMNS)
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in _cells(op))}</tr>\n" for op in operators
    )
    return f"<table>\n<tr>{head}</tr>\n{rows}</table>"


def _cells(operator: OperatorReport) -> tuple[str, ...]:
    cycles = operator.cycles
    counts = (cycles.compute, cycles.shift, cycles.reduce, cycles.relayout, cycles.setup)
    n_bytes = (operator.active_bytes, operator.idle_bytes, operator.peak_bytes)
    return (
        operator.name,
        operator.kind,
        f"{operator.n_cores:,}",
        f"{operator.n_sub_tasks:,}",
        f"{cycles.total:,}",
        f"{operator.share:.1%}",
        *(f"{count:,}" for count in counts),
        *(f"{count:,}" for count in n_bytes),
        str(operator.n_plans),
    )
