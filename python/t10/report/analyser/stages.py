"""The page of a model in stages: the pipeline, and a link to the page of every plan that differs."""

from __future__ import annotations

from typing import Any

from t10.report.analyser.document import LIBRARY, SHARED, document, facts_html
from t10.report.rates import MEAN_RATE, UTILISATION
from t10.report.stages import StagesReport, cut_text
from t10.report.table import bytes_text, energy_text, milliseconds_text, share_text

PIPELINE = (*LIBRARY, *SHARED, "lanes.js", "stages.js")
BODY = """<h2>Pipeline</h2>
<p class="note">A row per stage, from the first request on: every result passes all of them. Both ends of a hand-over
take part in it. Drag over a stretch to zoom in, double-click to see all; a click selects a stage.</p>
<p class="bar"><button id="zoom-in">zoom in</button><button id="zoom-out">zoom out</button>
<button id="zoom-interval">to one interval</button><button id="zoom-all">until the pipeline is full</button></p>
<p class="bar"><span class="bar" id="parts"></span></p>
<div id="pipeline"></div>
<p class="note" id="time-readout" role="status">Point at the chart to see what every stage does.</p>
<div class="two"><div><h2>Time of a stage</h2>
<p class="note">Against the interval, which is that of the slowest stage.</p><div id="times"></div></div>
<div><h2>Memory of a core</h2>
<p class="note">At its fullest moment, against the capacity.</p><div id="memories"></div></div></div>
<h2>Stages</h2>
<div id="stages"></div>
"""


def page_of_plan(plan: int) -> str:
    """Return the name of the page of a plan, by the number that stages give."""
    return f"stage-{plan}.html"


def stages_page(report: StagesReport) -> str:
    """Return report.html of a model in stages."""
    title = f"{report.source} in {len(report.stages):,} stages on {report.chip}"
    note = f"{report.statement} {report.generator}, cost model {report.cost_model}. Cut: {cut_text(report)}."
    return document(title, note, f"{facts_html(_facts(report))}\n{BODY}", _data(report), PIPELINE)


def _facts(report: StagesReport) -> tuple[tuple[str, str], ...]:
    """Return what the pipeline comes to as a whole."""
    milliseconds = [1e3 * n / report.clock_hz for n in (report.interval_cycles, report.latency_cycles)]
    interval, latency = map(milliseconds_text, milliseconds)
    engines = share_text(report.utilisation)
    peak = max(stage.peak_bytes for stage in report.stages)
    energy = report.energy
    return (
        ("results per second", f"{report.results_per_second:,.1f}"),
        ("interval", f"{interval}, {report.interval_cycles:,} cycles"),
        ("latency", f"{latency}, {report.latency_cycles:,} cycles"),
        *(((UTILISATION, f"{engines} of the matrix engines' peak"),) if engines else ()),
        *(() if energy is None else (("modelled energy of a result", energy_text(energy)),)),
        (MEAN_RATE, f"{report.mean_gbytes_per_second_in:.2f}, busiest core"),
        ("peak per core", f"{bytes_text(peak)} of {bytes_text(report.capacity_bytes)}"),
        ("a stage has", f"a {report.level} of {report.group_cores:,} cores"),
        ("different plans", f"{len({stage.plan for stage in report.stages}):,}"),
    )


def _data(report: StagesReport) -> dict[str, Any]:
    """Return what the page draws."""
    return {
        "hertz": report.clock_hz,
        "interval": report.interval_cycles,
        "capacity": report.capacity_bytes,
        "stages": [
            {
                "number": number,
                "page": page_of_plan(stage.plan),
                "group": stage.group,
                "first": stage.operators[0] if stage.operators else "",
                "operators": len(stage.operators),
                "run": stage.run_cycles,
                "send": sum(each.cycles for each in stage.sends),
                "sends": [[each.value, each.n_bytes] for each in stage.sends],
                "link": stage.link_share,
                "rate": stage.mean_gbytes_per_second_in,
                "utilisation": stage.utilisation,
                "peak": stage.peak_bytes,
            }
            for number, stage in enumerate(report.stages)
        ],
    }
