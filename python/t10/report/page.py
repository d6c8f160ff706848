"""The files of `t10 report`: the analyser page report.html, plots as SVG, and the timeline for Perfetto."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from t10.chip import ChipSpec
from t10.core.atomic import write_text
from t10.core.device import DeviceProgram
from t10.core.schedule import ModulePlan
from t10.cost import CostModel
from t10.report.analyser.data import page_data
from t10.report.analyser.page import PAGE_FILE, page_text
from t10.report.device_memory import device_memory_plot
from t10.report.plots import memory_plot, pareto_plot, time_plot
from t10.report.records import Report
from t10.report.trace import TRACE_FILE, planned_trace, write_trace

Progress = Callable[[str, int, int], None]

DEVICE_FILE = "tile.svg"
SVG_HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'


def write_page(
    folder: Path,
    plan: ModulePlan,
    chip: ChipSpec,
    report: Report,
    progress: Progress | None = None,
    *,
    program: DeviceProgram | None = None,
    check: str = "",
    costs: CostModel | None = None,
) -> tuple[str, ...]:
    """Write report.html, its plots as SVG and trace.json into a folder; returns the names of the files.

    With a device program its memory is drawn as well. With `check`, what a comparison of the outputs found, the page
    begins with this and with an operator that rotates. With `costs` its timeline has the steps of operators.
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
    data = page_data(plan, chip, report, costs)
    write_text(folder / PAGE_FILE, page_text(report, data, svg_by_file.get(DEVICE_FILE, ""), check))
    write_trace(folder / TRACE_FILE, planned_trace(plan, chip), report.cost_model)
    return (PAGE_FILE, *svg_by_file, TRACE_FILE)
