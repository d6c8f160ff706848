"""Everything that the page shows, as JSON values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from t10.chip import ChipSpec
from t10.core.expression import OperatorSpec
from t10.core.movement import operand_of
from t10.core.placed_costs import placed_costs
from t10.core.schedule import ModulePlan, ScheduledOperator
from t10.cost import CostModel
from t10.report.analyser.memory import bytes_by_purpose, purpose
from t10.report.analyser.rotation import rotation_record
from t10.report.analyser.tiles import TileCounter
from t10.report.build import first_of_kind
from t10.report.pareto import front_record
from t10.report.records import OperatorReport, Report
from t10.report.steps import NAMES, Folded, folded, operator_steps
from t10.report.table import KINDS_IN_TIME, joules_text

MOST_NUMBERS = 250_000
"""Numbers that steps may take on a page, at most 2 MB of text; of what is beyond, a page shows sums."""


def page_data(
    plan: ModulePlan, chip: ChipSpec, report: Report, costs: CostModel | None = None
) -> dict[str, Any]:
    """Return the data of a planned model's page; without `costs`, operators have no steps.

    Operators that only differ in names share an entry of `classes`: their front, plan and work by tile. Those that take
    the same steps share one of `programs`.
    """
    classes: list[dict[str, Any]] = []
    class_by_key: dict[object, int] = {}
    counter = TileCounter(plan)
    rows: list[dict[str, Any]] = []
    programs = _Programs()
    placed = {} if costs is None else placed_costs(costs, plan, chip.tile_memory)
    for spec, planned, shown, first in zip(
        plan.graph.operators, plan.operators, report.operators, first_of_kind(plan), strict=True
    ):
        moves = tuple((a.operand, a.kind, a.received_bytes, a.sent_bytes) for a in planned.arrivals)
        key = (first, planned.active.plan, moves)
        if key not in class_by_key:
            class_by_key[key] = len(classes)
            classes.append(_class(spec, planned, counter))
        rows.append(_operator(plan, spec, planned, shown, class_by_key[key]))
        if costs is not None:
            rows[-1]["program"] = programs.number(class_by_key[key], spec, planned, placed[spec.name])
    return {
        "model": report.model,
        "statement": report.statement,
        "costModel": report.cost_model,
        "kinds": list(KINDS_IN_TIME),
        "stepNames": list(NAMES),
        "chip": {
            "name": chip.name,
            "cores": chip.n_cores,
            "hertz": chip.clock_hz,
            "tilesPerRow": chip.floor_plan.tiles_per_row,
            "rows": chip.floor_plan.rows,
            "levels": [[each.name, each.count, each.columns, sorted(each.missing)] for each in chip.levels]
            or [["core", chip.n_cores, 0]],
            "bytesPerCycle": chip.exchange_bytes_per_cycle,
        },
        "capacity": plan.capacity_bytes,
        "operators": rows,
        "classes": classes,
        "programs": programs.records,
        "purposes": bytes_by_purpose(plan),
        "buffers": [
            [b.name, purpose(b.name), b.address_bytes, b.size_bytes, b.first_moment, b.last_moment]
            for b in plan.buffers
        ],
        "atRest": _runs(counter.at_rest().tolist()),
    }


class _Programs:
    """The steps of operators, each program once: patterns, [count, [name, cycles, bytes, name, ...]]."""

    def __init__(self) -> None:
        self.records: list[list[list[Any]]] = []
        self._numbers: dict[object, int | None] = {}
        self._room = MOST_NUMBERS

    def number(
        self, same: int, spec: OperatorSpec, planned: ScheduledOperator, costs: CostModel
    ) -> int | None:
        """Return the number of an operator's program; None where it has none, or its numbers have no room."""
        key = (same, id(costs), planned.active.cycles)
        if key not in self._numbers:
            steps = operator_steps(spec, planned, costs)
            self._numbers[key] = None if steps is None else self._added(folded(steps))
        return self._numbers[key]

    def _added(self, patterns: Folded) -> int | None:
        record: list[list[Any]] = [
            [count, [n for step in steps for n in (NAMES.index(step.name), step.cycles, step.n_bytes)]]
            for count, steps in patterns
        ]
        if record in self.records:
            return self.records.index(record)
        n_numbers = sum(1 + len(numbers) for _, numbers in record)
        if n_numbers > self._room:
            return None
        self._room -= n_numbers
        self.records.append(record)
        return len(self.records) - 1


def _class(spec: OperatorSpec, planned: ScheduledOperator, counter: TileCounter) -> dict[str, Any]:
    work = counter.work(planned)
    useful = [round(float(part), 4) for part in work.useful]
    return {
        "front": front_record(planned),
        "rotation": rotation_record(spec, planned.active.plan),
        "tiles": {
            "useful": _runs(useful),
            "held": _runs(work.held.tolist()),
            "in": _runs(work.received.tolist()),
            "out": _runs(work.sent.tolist()),
        },
    }


def _operator(
    plan: ModulePlan, spec: OperatorSpec, planned: ScheduledOperator, shown: OperatorReport, number: int
) -> dict[str, Any]:
    maker = {each.output.name: each.name for each in plan.graph.operators}
    moved: list[list[Any]] = []
    for arrival in planned.arrivals:
        name = operand_of(spec, arrival.operand).name
        sources = dict.fromkeys(maker.get(value, value) for value in plan.graph.sources_of(name))
        moved.append([name, arrival.kind, ", ".join(sources), arrival.received_bytes, arrival.cycles])
    traffic = shown.traffic_bytes
    return {
        "name": spec.name,
        "kind": spec.kind,
        "at": spec.location,
        "class": number,
        "cycles": [int(getattr(shown.cycles, kind)) for kind in KINDS_IN_TIME],
        "bytes": [0, traffic.setup, traffic.relayout, 0, traffic.shift, traffic.reduce],
        "cores": shown.n_cores,
        "steps": shown.n_sub_tasks,
        "plans": shown.n_plans,
        "active": shown.active_bytes,
        "peak": shown.peak_bytes,
        "utilisation": shown.utilisation,
        "energy": "" if shown.energy is None else joules_text(shown.energy.total),
        "program": None,
        "tensors": [operand.name for operand in spec.rotatable],
        "moved": moved,
    }


def _runs(numbers: Sequence[float] | Iterable[float]) -> list[float]:
    """Return numbers as value, count, value, count: neighbouring tiles are often alike."""
    return [each for value, group in groupby(numbers) for each in (value, sum(1 for _ in group))]
