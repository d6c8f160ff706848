"""stages.json: a model as a pipeline of stages, as validated records, and as tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field
from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from t10.chip import ChipSpec
from t10.core.atomic import write_text
from t10.core.document.file import HINT
from t10.core.document.records import MODELLED, Record
from t10.core.document.text import json_text
from t10.core.schedule import ModulePlan
from t10.core.staged import HandOver, Stage, StagedPlan
from t10.core.trust.schema import Count, Size, read_record
from t10.report.columns import Column, FittedTable
from t10.report.rates import MEAN_RATE, OF_PEAK, UTILISATION, mean_rate, utilisation
from t10.report.records import UTILISATION as UTILISATION_TEXT
from t10.report.records import EnergyReport
from t10.report.table import (
    bytes_text,
    count_text,
    energy_text,
    joules_text,
    milliseconds_text,
    share_text,
)
from t10.report.traffic import operator_traffic
from t10.version import VERSION as T10_VERSION

FORMAT: Literal["t10-stages"] = "t10-stages"
VERSION: Literal[1] = 1
STAGES_FILE = "stages.json"

Names = tuple[str, ...]


class HandOverRecord(Record):
    """A value that a stage gives to the next."""

    value: str
    n_bytes: Annotated[Size, Field(description="of the value, once")]
    cycles: Annotated[Size, Field(description="modelled; both groups of cores take part")]


class StageRecord(Record):
    """Consecutive operators of the model on a group of cores; names are those of the whole model."""

    plan: Annotated[Size, Field(description="number of its folder in stages/; equal stages have one")]
    group: Annotated[Size, Field(description="number of its group of cores on the chip")]
    operators: Names
    inputs: Annotated[
        Names, Field(description="in the order of the plan's inputs; what is handed over is last")
    ]
    weights: Annotated[Names, Field(description="in the order of the plan's weights")]
    outputs: Annotated[
        Names, Field(description="in the order of the plan's outputs; what is handed on is last")
    ]
    run_cycles: Annotated[Size, Field(description="modelled, of the operators")]
    stage_cycles: Annotated[Size, Field(description="modelled, of receiving, running and sending")]
    peak_bytes: Annotated[Size, Field(description="most bytes of a core in use at once")]
    link_share: Annotated[float, Field(description="part of the interval in which it hands over to the next")]
    utilisation: Annotated[float | None, Field(ge=0, description=f"{UTILISATION_TEXT}: the interval")] = None
    mean_gbytes_per_second_in: Annotated[
        float, Field(ge=0, description="into its busiest core, over the interval; without hand-overs")
    ] = 0.0
    sends: tuple[HandOverRecord, ...]
    energy: Annotated[
        EnergyReport | None,
        Field(
            description="modelled, of a result, where the chip file has energies; static over the interval"
        ),
    ] = None


class StagesReport(Record):
    """A model as a pipeline: stages in order, each on a group of cores of one level of the chip."""

    format: Literal["t10-stages"]
    version: Annotated[Literal[1], Field(description="raised when a reader of the old form would go wrong")]
    generator: str
    modelled: Annotated[Literal[True], Field(description=MODELLED)]
    statement: str = MODELLED
    source: str
    chip: str
    level: Annotated[str, Field(description="of the chip's levels: a stage has one such group")]
    group_cores: Count
    capacity_bytes: Annotated[Size, Field(description="memory of a core")]
    clock_hz: float
    cost_model: str
    interval_cycles: Annotated[Size, Field(description="modelled, from one result to the next")]
    latency_cycles: Annotated[Size, Field(description="modelled, from a request to its result")]
    results_per_second: Annotated[float, Field(description="modelled, of all stages together")]
    bound_cycles: Annotated[
        Size,
        Field(description="no cut at these places has a shorter interval, each stage as it would be planned"),
    ]
    utilisation: Annotated[
        float | None, Field(ge=0, description="the same of all stages' groups together, over the interval")
    ] = None
    mean_gbytes_per_second_in: Annotated[float, Field(ge=0, description="the most of any stage")] = 0.0
    energy: Annotated[
        EnergyReport | None, Field(description="modelled, of a result: the sum over the stages")
    ] = None
    n_places: Annotated[
        Count, Field(description="places at which the model could be cut, both ends included")
    ]
    n_planned: Annotated[Size, Field(description="different stages that were planned to choose")]
    is_free: Annotated[bool, Field(description="whether the number of stages was free, up to that of groups")]
    stages: Annotated[tuple[StageRecord, ...], Field(min_length=1)]

    @property
    def staged(self) -> StagedPlan:
        """Return the stages as values."""
        return StagedPlan(
            chip=self.chip,
            level=self.level,
            group_cores=self.group_cores,
            clock_hz=self.clock_hz,
            stages=tuple(_stage(each) for each in self.stages),
            n_places=self.n_places,
            n_planned=self.n_planned,
            bound_cycles=self.bound_cycles,
            is_free=self.is_free,
        )


def _stage(record: StageRecord) -> Stage:
    fields = {name: getattr(record, name) for name in Stage.__slots__ if name != "sends"}
    sends = tuple(HandOver(each.value, each.n_bytes, each.cycles) for each in record.sends)
    return Stage(**fields, sends=sends)


def stages_report(
    staged: StagedPlan, plans: Sequence[ModulePlan], chip: ChipSpec, *, source: str, cost_model: str
) -> StagesReport:
    """Return the report of a model as stages, of the plans that differ; `chip` is one of the groups of cores."""
    interval = staged.interval_cycles
    rates = [_rates(plan, chip, interval) for plan in plans]
    taken = _energies(staged, plans, chip)
    specs = [spec for stage in staged.stages for spec in plans[stage.plan].graph.operators]
    return StagesReport(
        format=FORMAT,
        version=VERSION,
        generator=f"t10 {T10_VERSION}",
        modelled=True,
        source=source,
        chip=staged.chip,
        level=staged.level,
        group_cores=staged.group_cores,
        capacity_bytes=plans[0].capacity_bytes,
        clock_hz=staged.clock_hz,
        cost_model=cost_model,
        interval_cycles=interval,
        latency_cycles=staged.latency_cycles,
        results_per_second=round(staged.results_per_second, 3),
        bound_cycles=staged.bound_cycles,
        utilisation=utilisation(specs, interval * len(staged.stages), chip),
        mean_gbytes_per_second_in=max(rates[stage.plan][1] for stage in staged.stages),
        energy=EnergyReport.added(taken),
        n_places=staged.n_places,
        n_planned=staged.n_planned,
        is_free=staged.is_free,
        stages=tuple(
            StageRecord(
                plan=stage.plan,
                group=stage.group,
                operators=stage.operators,
                inputs=stage.inputs,
                weights=stage.weights,
                outputs=stage.outputs,
                run_cycles=stage.run_cycles,
                stage_cycles=staged.stage_cycles(number),
                peak_bytes=stage.peak_bytes,
                link_share=round(stage.send_cycles / max(interval, 1), 6),
                utilisation=rates[stage.plan][0],
                mean_gbytes_per_second_in=rates[stage.plan][1],
                sends=tuple(
                    HandOverRecord(value=each.value, n_bytes=each.n_bytes, cycles=each.cycles)
                    for each in stage.sends
                ),
                energy=taken[number],
            )
            for number, stage in enumerate(staged.stages)
        ),
    )


def _energies(
    staged: StagedPlan, plans: Sequence[ModulePlan], chip: ChipSpec
) -> tuple[EnergyReport | None, ...]:
    """Return the energy of every stage for a result; None where the chip file has none.

    A stage takes what the stage before it hands over, and has its share of the chip's watts from one result to the
    next, whether it works or waits.
    """
    if chip.energy is None:
        return (None,) * len(staged.stages)
    from t10.report.energy import PICO, energies  # its bytes are counted by the planner

    of_plans = [EnergyReport.added(energies(plan, chip, chip.energy)) for plan in plans]
    static = chip.energy.static_watts * staged.interval_cycles / chip.clock_hz
    found: list[EnergyReport | None] = []
    for number, stage in enumerate(staged.stages):
        own = of_plans[stage.plan] or EnergyReport(compute=0, exchange=0, off_chip=0, static=0)
        n_bytes = sum(each.n_bytes for each in staged.stages[number - 1].sends) if number else 0
        exchange = own.exchange + n_bytes * chip.energy.byte_pj * PICO
        found.append(own.model_copy(update={"exchange": exchange, "static": static}))
    return tuple(found)


def _rates(plan: ModulePlan, chip: ChipSpec, interval: int) -> tuple[float | None, float]:
    """Return what part of its engines' fastest rate a stage comes to, and GB/s into its busiest core."""
    pairs = zip(plan.graph.operators, plan.operators, strict=True)
    received = sum(operator_traffic(spec, scheduled).total for spec, scheduled in pairs)
    rate = round(mean_rate(received, interval / chip.clock_hz), 6)
    return utilisation(plan.graph.operators, interval, chip), rate


def stages_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of stages.json."""
    schema = StagesReport.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "stages.json of T10",
        **schema,
    }


def write_stages(path: Path, report: StagesReport) -> None:
    """Write stages.json, at once or not at all."""
    write_text(path, json_text(report.model_dump(mode="json")))


def read_stages(path: Path) -> StagesReport:
    """Return what a stages.json says; raises `InputError` with the JSON path of what is wrong."""
    return read_record(StagesReport, path, FORMAT, VERSION, hint=HINT)


STAGE_COLUMNS = (
    Column("stage"),
    Column("group", rank=2),
    Column("operators", rank=1),
    Column("from", is_folded=True, is_number=False, rank=3),
    Column("cycles"),
    Column("run", rank=1),
    Column("sends", rank=1),
    Column("link", rank=2),
    Column(MEAN_RATE, rank=4),
    Column(OF_PEAK, rank=4),
    Column("KiB/core"),
    Column("energy", rank=4),
)


def stages_table(report: StagesReport) -> FittedTable:
    """Return one row per stage: cycles with what it receives and sends, bytes handed on, how busy its links are.

    Rates are as in `t10.report.rates`, over the time from one result to the next. Energy, modelled, is that of a
    result, where the chip file has energies.
    """
    has_energy = report.energy is not None
    columns = [each for each in STAGE_COLUMNS if has_energy or each.title != "energy"]
    table = FittedTable(tuple(columns), f"Stages (cycles are modelled, {report.cost_model})")
    for number, stage in enumerate(report.stages):
        table.add_row(
            str(number),
            f"{stage.group}",
            f"{len(stage.operators):,}",
            stage.operators[0] if stage.operators else "",
            f"{stage.stage_cycles:,}",
            f"{stage.run_cycles:,}",
            bytes_text(sum(each.n_bytes for each in stage.sends)),
            f"{stage.link_share:.1%}",
            f"{stage.mean_gbytes_per_second_in:.2f}",
            share_text(stage.utilisation),
            f"{stage.peak_bytes / 1024:.1f}",
            *((joules_text(stage.energy.total),) if stage.energy is not None else ()),
        )
    return table


def stages_summary(report: StagesReport) -> RenderableType:
    """Return the short form: how many results, how long each takes, and how good the cut is known to be."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column()
    n_stages, n_plans = len(report.stages), len({stage.plan for stage in report.stages})
    chip = f"{escape(report.chip)}: a {escape(report.level)} of {report.group_cores:,} cores for each stage"
    table.add_row("chip", f"{chip}, {report.clock_hz / 1e9:g} GHz")
    table.add_row("stages", f"{n_stages:,}, with {count_text(n_plans, 'different plan')}")
    source = f"(modelled, {escape(report.cost_model)})"
    table.add_row(
        "throughput",
        f"{report.results_per_second:,.1f} results per second, one every {report.interval_cycles:,} cycles {source}",
    )
    milliseconds = milliseconds_text(report.latency_cycles / report.clock_hz * 1000)
    table.add_row("latency", f"{milliseconds}, {report.latency_cycles:,} cycles {source}")
    if report.utilisation is not None:
        table.add_row(
            UTILISATION, f"{report.utilisation:.1%} of the fastest rate of all stages' matrix engines"
        )
    rate = f"{report.mean_gbytes_per_second_in:.2f}, into the busiest core, over all of the time"
    table.add_row(MEAN_RATE, rate)
    if report.energy is not None:
        table.add_row("energy", f"{energy_text(report.energy)}, of a result")
    table.add_row("cut", cut_text(report))
    peak = max(stage.peak_bytes for stage in report.stages)
    share = peak / report.capacity_bytes if report.capacity_bytes else 0.0
    table.add_row(
        "memory", f"{bytes_text(peak)} of {bytes_text(report.capacity_bytes)} per core ({share:.0%})"
    )
    return table


def cut_text(report: StagesReport) -> str:
    """Return over what the cut is the best, and up to what gap."""
    gap = 1 - report.bound_cycles / max(report.interval_cycles, 1)
    count = "up to one stage per group" if report.is_free else "as many stages"
    return (
        f"no other cut at the {report.n_places:,} narrowest places, into {count}, has an interval below "
        f"{report.bound_cycles:,} cycles (gap {gap:.2%}; {report.n_planned:,} stages planned)"
    )
