"""The HTML of report.html, and of the page that compares two runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from t10.report.analyser.document import LIBRARY, SHARED, document, facts_html, note_html
from t10.report.rates import MEAN_RATE, UTILISATION
from t10.report.records import Report
from t10.report.table import bytes_text, energy_text, optimality_text, time_text

PAGE_FILE = "report.html"
ANALYSER = (*LIBRARY, *SHARED, "lanes.js", "time.js", "operator.js", "tiles.js", "main.js")
COMPARISON = (*LIBRARY, *SHARED, "lanes.js", "compare.js")

ROTATION = """<h3>Rotation, step by step</h3>
<p class="note" id="rotation-none">No tensor of this operator rotates: every core holds all that it reads.</p>
<div class="rotates">
<p class="bar"><button id="rotation-back">back</button><button id="rotation-next">next</button>
<button id="rotation-play">play</button><input id="rotation-step" type="range" min="0" value="0" aria-label="step"></p>
<p id="rotation-says" role="status"></p>
<div id="rings"></div></div>
"""
ROTATION_CHIP = """<div class="rotates">
<p class="bar"><label>chip: what every core holds of <select id="rotation-tensor"></select></label></p>
<div><canvas id="rotation-chip"></canvas></div>
<p class="note">A colour per piece of the tensor along the axis. The ring is framed; a click on a core shows its ring.
In a ring, the coloured part of a row is what the core holds, the frame what it computes in this step.</p></div>
"""
FRONT = """<h3>Time against memory</h3>
<div id="front"></div>
<p class="note" id="front-note"></p>
"""
OPERATOR_NAME = """<h2>Operator: <span id="operator-name"></span></h2>
"""
OPERATOR_NUMBERS = """<div class="facts" id="operator-facts"></div>
<ul id="operator-moves"></ul>
"""
RUN = """<h2>Time</h2>
<p class="note">Drag over a stretch to zoom in, double-click to see all; a click selects an operator.</p>
<p class="bar"><button id="zoom-in">zoom in</button><button id="zoom-out">zoom out</button>
<button id="zoom-operator">to the selected operator</button><button id="zoom-all">whole run</button>
</p>
<p class="bar"><span class="bar" id="operator-kinds"></span></p>
<p class="bar"><span class="bar" id="kinds"></span></p>
<div id="timeline"></div>
<p class="note" id="time-readout" role="status">Point at the chart to see what runs, and what a core holds.</p>
<h2>Memory of a core</h2>
<p class="note">Every core has the same buffers at the same addresses. Uncheck weights to see the rest closer;
<span id="capacity-note">the red line is the capacity</span>.</p>
<p class="bar"><select id="memory-form" aria-label="form"><option value="purpose">bytes by purpose</option>
<option value="address">buffers by address</option></select><span class="bar" id="memory-purposes"></span></p>
<div id="memory"></div>
<details><summary>Largest buffers while the selected operator runs</summary><ul id="largest"></ul></details>
<h2>Operators</h2>
<div id="operators"></div>
"""
RUNS = """<h2>Time</h2>
<p class="note">Both runs on one axis. Drag over a stretch to zoom in, double-click to see all; a click selects an
operator, which is framed in both.</p>
<p class="bar"><button id="zoom-in">zoom in</button><button id="zoom-out">zoom out</button>
<button id="zoom-all">whole runs</button></p>
<p class="bar"><span class="bar" id="operator-kinds"></span></p>
<p class="bar"><span class="bar" id="kinds"></span></p>
<div id="runs"></div>
<p class="note" id="time-readout" role="status">Point at a run to see what it does.</p>
<h2>Operators</h2>
<div id="operators"></div>
"""
TILES = """<h2>Tiles</h2>
<p class="bar"><select id="tiles-metric" aria-label="what is shown"><option value="busy">busy share</option>
<option value="held">bytes</option><option value="in">mean GB/s in</option>
<option value="out">mean GB/s out</option></select>
<select id="tiles-scope" aria-label="of what"><option value="run">whole run</option>
<option value="operator">selected operator</option></select></p>
<p class="note" id="tiles-note"></p>
<div><canvas id="chip"></canvas></div>
<div><canvas id="chip-scale" role="img" aria-label="what the colours stand for"></canvas></div>
<p class="note" id="tiles-readout" role="status"></p>
"""
OPERATOR = f"""{OPERATOR_NAME}{OPERATOR_NUMBERS}
<div class="two"><div>{ROTATION}</div><div>{ROTATION_CHIP}</div></div>{FRONT}"""
"""An operator among the other parts of the page."""
LEAD = f"""{OPERATOR_NAME}
<div class="two"><div>{ROTATION}</div><div>{FRONT}</div><div>{ROTATION_CHIP}</div>
<div>{OPERATOR_NUMBERS}</div></div>"""
"""An operator at the top of the page: how its tensors rotate beside the time that this takes, on one screen."""


def page_text(report: Report, data: Mapping[str, Any], device_plot: str = "", check: str = "") -> str:
    """Return report.html: `data` as `analyser.data.page_data` makes it, `device_plot` an SVG of a program's memory.

    With `check`, what a comparison of the outputs found, the page begins with this and with an operator that rotates.
    """
    title = f"{report.model} on {report.chip.name}"
    plan = (
        "" if report.optimality is None else f'<p class="note">Plan: {escape(optimality_text(report))}.</p>\n'
    )
    device = (
        "<h2>Memory of the device program</h2>\n<details><summary>Every variable by address; what is below the data is "
        f'code and state</summary><div id="device">{device_plot}</div></details>\n'
        if device_plot
        else ""
    )
    note = f"{report.statement} {report.generator}, cost model {report.cost_model}."
    run = f"{facts_html(_report_facts(report))}\n{plan}{RUN}"
    if not check:
        return document(title, note, f"{run}{OPERATOR}{TILES}{device}", data, ANALYSER)
    lead = f'<p class="check">{escape(check)}</p>\n{LEAD}<h2>The run</h2>\n'
    return document(title, "", f"{lead}{note_html(note)}{run}{TILES}{device}", data, ANALYSER)


def compare_page(title: str, note: str, facts: Iterable[tuple[str, str]], data: Mapping[str, Any]) -> str:
    """Return the page of two runs, `data` as `report.compare.page_record` makes it: totals, times, operators."""
    return document(title, note, f"{facts_html(facts)}\n{RUNS}", data, COMPARISON)


def _report_facts(report: Report) -> tuple[tuple[str, str], ...]:
    seconds = sum(report.planner_seconds.values())
    timed = () if report.timed_cycles is None else (("cycles as emitted", f"{report.timed_cycles:,}"),)
    share = report.utilisation
    engines = () if share is None else ((UTILISATION, f"{share:.1%} of the matrix engines' peak"),)
    energy = () if report.energy is None else (("modelled energy", energy_text(report.energy)),)
    return (
        ("modelled time", time_text(report)),
        ("modelled cycles", f"{report.total_cycles:,}"),
        *timed,
        *energy,
        ("computing", f"{report.cycles.compute / max(report.total_cycles, 1):.0%}"),
        *engines,
        (MEAN_RATE, f"{report.mean_rate:.2f}, busiest core"),
        ("peak per core", f"{bytes_text(report.peak_bytes)} of {bytes_text(report.capacity_bytes)}"),
        ("weights", bytes_text(report.weight_bytes)),
        ("cores", f"{report.chip.n_cores:,}"),
        ("operators", str(len(report.operators))),
        ("compiled in", f"{seconds:.2f} s"),
    )
