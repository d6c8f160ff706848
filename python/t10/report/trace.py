"""A timeline in the trace format that ui.perfetto.dev reads (Trace Event Format): phases and bytes in use.

One microsecond of the trace is one modelled microsecond of the chip.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from t10.chip import ChipSpec
from t10.core.atomic import write_text
from t10.core.document.records import MODELLED
from t10.core.expression import OperatorSpec
from t10.core.schedule import PHASES as CORE_PHASES
from t10.core.schedule import ModulePlan, ScheduledOperator, moment
from t10.report.analyser.memory import bytes_by_purpose
from t10.report.rates import BUSY_SHARE, MEAN_RATE, MEAN_RATE_OUT, busy_share, mean_rate
from t10.report.table import KINDS_IN_TIME
from t10.report.traffic import operator_traffic, sent_bytes

TRACE_FILE = "trace.json"
OPERATORS, PHASES = 1, 2
PROCESS = 1
MICROSECONDS_PER_SECOND = 1e6

Event = dict[str, Any]


class Phase(Protocol):
    """A stretch of modelled time in which all cores do one kind of work (what the plan simulator records)."""

    @property
    def operator(self) -> str:
        """Return the operator's name."""
        ...

    @property
    def kind(self) -> str:
        """Return what is done: compute, shift, reduce, relayout or setup."""
        ...

    @property
    def start_cycle(self) -> int:
        """Return when it begins."""
        ...

    @property
    def cycles(self) -> int:
        """Return how long it lasts."""
        ...

    @property
    def n_bytes(self) -> int:
        """Return the bytes that cross cores."""
        ...


def planned_trace(plan: ModulePlan, chip: ChipSpec) -> list[Event]:
    """Return the events of a plan: per operator one stretch for each kind of work (steps are not shown one by one)."""
    events = _header(chip)
    now = 0
    counters = held_by_operator(plan)
    for spec, scheduled in zip(plan.graph.operators, plan.operators, strict=True):
        begin = now
        traffic = operator_traffic(spec, scheduled).model_dump()
        for kind in KINDS_IN_TIME:
            cycles = int(getattr(scheduled.active.cycles, kind))
            if cycles:
                args = {"operator": scheduled.name, "bytes of the busiest core": traffic.get(kind, 0)}
                events.append(_slice(chip, PHASES, kind, now, cycles, args))
            now += cycles
        steps = scheduled.active.plan.n_sub_tasks
        args = {"cores": scheduled.active.plan.n_cores, "steps": steps, "cycles": now - begin}
        events.append(_slice(chip, OPERATORS, scheduled.name, begin, now - begin, args))
        events.append(_counter(chip, "bytes per core", begin, counters[scheduled.name]))
        events += _rates(chip, spec, scheduled, begin, now, scheduled.active.cycles.compute)
    return events


def held_by_operator(plan: ModulePlan) -> dict[str, dict[str, int]]:
    """Return per operator the bytes of a core by purpose at its fullest moment, and in all."""
    by_purpose = bytes_by_purpose(plan)
    found: dict[str, dict[str, int]] = {}
    for step, scheduled in enumerate(plan.operators):
        moments = [
            {name: row[moment(step, phase)] for name, row in by_purpose.items()} for phase in CORE_PHASES
        ]
        held = max(moments, key=lambda each: sum(each.values()))
        found[scheduled.name] = {"in use": sum(held.values()), **held}
    return found


def simulated_trace(plan: ModulePlan, chip: ChipSpec, timeline: Sequence[Phase]) -> list[Event]:
    """Return the events of a simulated run: every single phase."""
    events = _header(chip)
    counters = held_by_operator(plan)
    spans: dict[str, tuple[int, int]] = {}
    computed: dict[str, int] = {}
    for phase in timeline:
        events.append(
            _slice(
                chip,
                PHASES,
                phase.kind,
                phase.start_cycle,
                phase.cycles,
                {"operator": phase.operator, "bytes": phase.n_bytes},
            )
        )
        if phase.kind == "compute":
            computed[phase.operator] = computed.get(phase.operator, 0) + phase.cycles
        begin, _ = spans.get(phase.operator, (phase.start_cycle, 0))
        spans[phase.operator] = (begin, phase.start_cycle + phase.cycles)
    pairs = {each.name: (spec, each) for spec, each in zip(plan.graph.operators, plan.operators, strict=True)}
    for name, (begin, end) in spans.items():
        events.append(_slice(chip, OPERATORS, name, begin, end - begin, {"cycles": end - begin}))
        events.append(_counter(chip, "bytes per core", begin, counters[name]))
        events += _rates(chip, *pairs[name], begin, end, computed.get(name, 0))
    return events


def write_trace(path: Path | str, events: Iterable[Event], cost_model: str) -> None:
    """Write events to a file, at once or not at all; `cost_model` names where its times come from."""
    lines = ",\n".join(json.dumps(event) for event in events)
    head = json.dumps({"displayTimeUnit": "ns", "otherData": {"note": MODELLED, "cost model": cost_model}})[
        :-1
    ]
    write_text(path, f'{head}, "traceEvents": [\n{lines}\n]}}\n')


def _header(chip: ChipSpec) -> list[Event]:
    names = [("process_name", 0, f"{chip.name} (modelled)"), ("thread_name", OPERATORS, "operators")]
    names.append(("thread_name", PHASES, "all cores"))
    return [
        {"ph": "M", "pid": PROCESS, "tid": thread, "name": kind, "args": {"name": name}}
        for kind, thread, name in names
    ]


def _slice(chip: ChipSpec, thread: int, name: str, start: int, cycles: int, args: Event) -> Event:
    return {
        "ph": "X",
        "pid": PROCESS,
        "tid": thread,
        "name": name,
        "ts": microseconds(chip, start),
        "dur": microseconds(chip, cycles),
        "args": args,
    }


def _counter(chip: ChipSpec, name: str, start: int, values: Event) -> Event:
    return {"ph": "C", "pid": PROCESS, "name": name, "ts": microseconds(chip, start), "args": values}


def _rates(
    chip: ChipSpec, spec: OperatorSpec, scheduled: ScheduledOperator, start: int, end: int, computed: int
) -> list[Event]:
    """Return the rates of an operator over its time: bytes into and out of its busiest core, and computing."""
    seconds = (end - start) / chip.clock_hz
    moved = {
        MEAN_RATE: operator_traffic(spec, scheduled).total,
        MEAN_RATE_OUT: sent_bytes(spec, scheduled),
    }
    busy = busy_share(spec, scheduled.active.plan, computed, end - start, chip)
    return [
        *(
            _counter(chip, name, start, {"busiest core": round(mean_rate(n_bytes, seconds), 3)})
            for name, n_bytes in moved.items()
        ),
        _counter(chip, BUSY_SHARE, start, {"mean of all cores": round(busy, 4)}),
    ]


def microseconds(chip: ChipSpec, cycles: int) -> float:
    """Return modelled cycles as microseconds of the trace."""
    return round(cycles / chip.clock_hz * MICROSECONDS_PER_SECOND, 6)
