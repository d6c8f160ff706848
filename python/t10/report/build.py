"""From a planned model to its report."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from t10.chip import ChipSpec
from t10.codelets.body.expand import branches_on_data
from t10.core.document.encode import cycles_record, total_cycles
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.partials import allowed_error, partials_type
from t10.core.schedule import PHASES, ModulePlan, Optimality, ScheduledOperator, bytes_in_use, moment
from t10.cost.registry import DEFAULT_COST_MODEL
from t10.report import records
from t10.report.pareto import front_plot
from t10.report.rates import utilisation
from t10.report.traffic import operator_traffic
from t10.version import VERSION

MILLISECONDS_PER_SECOND = 1000


def build_report(
    plan: ModulePlan,
    chip: ChipSpec,
    *,
    source: str = "",
    cost_model: str = DEFAULT_COST_MODEL,
    planner_seconds: Mapping[str, float] | None = None,
    timed_cycles: int | None = None,
) -> records.Report:
    """Return the report of a planned model; `source` names the model's file, `planner_seconds` are by stage.

    `timed_cycles` are what its program takes on the device simulator, where that was found out.
    """
    total = total_cycles(plan)
    peaks = step_peaks(plan)
    at_rest = [b for b in plan.buffers if b.name.startswith("idle:")]
    idle_by_weight = {b.name: b.size_bytes for b in at_rest}
    operators = tuple(
        _operator(spec, planned, peak, idle_by_weight, total.total, chip)
        for spec, planned, peak in zip(plan.graph.operators, plan.operators, peaks, strict=True)
    )
    taken = _energies(plan, chip)
    operators = tuple(
        operator.model_copy(update={"same_as": first if first != operator.name else "", "energy": energy})
        for operator, first, energy in zip(operators, first_of_kind(plan), taken, strict=True)
    )
    highest = max(range(len(peaks)), key=peaks.__getitem__, default=None)
    return records.Report(
        format=records.FORMAT,
        version=records.VERSION,
        generator=f"t10 {VERSION}",
        modelled=True,
        model=plan.graph.name,
        source=source,
        chip=records.ChipSummary(
            name=chip.name, n_cores=chip.n_cores, clock_hz=chip.clock_hz, sram_bytes=chip.sram_bytes
        ),
        cost_model=cost_model,
        optimality=_optimality(plan.optimality),
        total_cycles=total.total,
        timed_cycles=timed_cycles,
        n_timed_on_data=0 if timed_cycles is None else sum(map(_branches, plan.graph.operators)),
        total_milliseconds=milliseconds(total.total, chip.clock_hz),
        cycles=cycles_record(total),
        utilisation=utilisation(plan.graph.operators, total.total, chip),
        peak_bytes=plan.peak_bytes,
        peak_operator="" if highest is None else operators[highest].name,
        capacity_bytes=plan.capacity_bytes,
        weight_bytes=sum(prod(w.shape) * size_bytes(w.dtype) for w in plan.graph.weights),
        # Weights that are fetched from off-chip memory rest one after the other in the same bytes.
        idle_bytes=max(bytes_in_use(at_rest).values(), default=0),
        traffic_bytes=_sum(tuple(operator.traffic_bytes for operator in operators)),
        energy=records.EnergyReport.added(taken),
        planner_seconds={stage: round(seconds, 3) for stage, seconds in (planner_seconds or {}).items()},
        operators=operators,
    )


def _energies(plan: ModulePlan, chip: ChipSpec) -> tuple[records.EnergyReport | None, ...]:
    """Return the energy of every operator; None where the chip file has none."""
    if chip.energy is None:
        return (None,) * len(plan.operators)
    from t10.report.energy import energies  # its bytes are counted by the planner

    return energies(plan, chip, chip.energy)


def _branches(spec: OperatorSpec) -> bool:
    """Return whether an operator's code branches on data: it looks up, or computes with arguments that may be far."""
    inputs, epilogue_inputs = ([each.dtype for each in row] for row in (spec.inputs, spec.epilogue_inputs))
    functions = [
        (spec.body, inputs),
        *([(spec.epilogue, [spec.acc_dtype, *epilogue_inputs])] if spec.epilogue else []),
    ]
    return bool(spec.selectors) or any(branches_on_data(each, tuple(dtypes)) for each, dtypes in functions)


def step_peaks(plan: ModulePlan) -> tuple[int, ...]:
    """Return per operator the most bytes of a core in use at once while it runs, its program included."""
    used = bytes_in_use(plan.buffers)
    return tuple(
        plan.reserved_bytes + max(used.get(moment(step, phase), 0) for phase in PHASES)
        for step in range(len(plan.operators))
    )


def first_of_kind(plan: ModulePlan) -> tuple[str, ...]:
    """Return per operator the first one with the same front over as many points: they only differ in names."""
    found: dict[tuple[object, ...], str] = {}
    return tuple(
        found.setdefault((spec.kind, spec.extents, planned.pareto or planned.name), spec.name)
        for spec, planned in zip(plan.graph.operators, plan.operators, strict=True)
    )


def _optimality(found: Optimality | None) -> records.OptimalityReport | None:
    if found is None:
        return None
    return records.OptimalityReport(
        method=found.method,
        cycles=found.cycles,
        bound_cycles=found.bound_cycles,
        gap=None if found.gap is None else round(found.gap, 6),
        literal_cycles=found.literal_cycles,
        aware_cycles=found.aware_cycles,
        n_choices=found.n_choices,
        n_states=found.n_states,
        priced_cycles=found.priced_cycles,
    )


def milliseconds(cycles: int, clock_hz: float) -> float:
    """Return modelled milliseconds, rounded to the nanosecond."""
    return round(cycles / clock_hz * MILLISECONDS_PER_SECOND, 6)


def _operator(
    spec: OperatorSpec,
    planned: ScheduledOperator,
    peak: int,
    idle_by_weight: Mapping[str, int],
    total: int,
    chip: ChipSpec,
) -> records.OperatorReport:
    active = planned.active
    idle = {f"idle:{operand.name}" for operand in spec.operands if operand.role == "weight"}
    return records.OperatorReport(
        name=spec.name,
        kind=spec.kind,
        location=spec.location,
        n_points=spec.n_points,
        n_cores=active.plan.n_cores,
        n_sub_tasks=active.plan.n_sub_tasks,
        n_plans=len(front_plot(planned).front),
        cycles=cycles_record(active.cycles),
        milliseconds=milliseconds(active.cycles.total, chip.clock_hz),
        share=round(active.cycles.total / total, 6) if total else 0.0,
        active_bytes=active.active_bytes,
        idle_bytes=sum(idle_by_weight.get(name, 0) for name in idle),
        peak_bytes=peak,
        traffic_bytes=operator_traffic(spec, planned),
        utilisation=utilisation((spec,), active.cycles.total, chip),
        partials=partials_type(spec),
        partials_error=allowed_error(spec, active.plan),
    )


def _sum(parts: tuple[records.Traffic, ...]) -> records.Traffic:
    kinds = records.Traffic.model_fields
    return records.Traffic(**{kind: sum(getattr(part, kind) for part in parts) for kind in kinds})
