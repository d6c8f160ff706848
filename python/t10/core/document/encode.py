"""From a `ModulePlan` to the records of plan.json, derived fields filled in."""

from __future__ import annotations

from dataclasses import asdict, fields
from math import prod
from typing import Generic, Literal, TypeVar

from t10.core import geometry, movement
from t10.core.chunks import chunk_slots
from t10.core.document import records
from t10.core.dtypes import size_bytes
from t10.core.expression import AffineDim, AxisSizes, Operand, OperatorSpec
from t10.core.plan import CostedPlan, Cycles, OperatorPlan
from t10.core.scalar import ScalarFunction
from t10.core.schedule import ModulePlan, ScheduledOperator, ValueLayout
from t10.errors import T10Error
from t10.version import VERSION

Value = TypeVar("Value")


class _Table(Generic[Value]):
    """Values stored once, numbered in the order of their first use."""

    def __init__(self) -> None:
        self.row_by_value: dict[Value, int] = {}

    def row(self, value: Value) -> int:
        """Return the number of a value, entering it when it is new."""
        return self.row_by_value.setdefault(value, len(self.row_by_value))


class _Encoder:
    """The tables of one document while it is written."""

    def __init__(self, module: ModulePlan) -> None:
        self.module = module
        self.functions: _Table[ScalarFunction] = _Table()
        self.plans: _Table[OperatorPlan] = _Table()
        self.fronts: _Table[tuple[CostedPlan, ...]] = _Table()
        self.layouts: _Table[ValueLayout] = _Table()
        self.idle_by_weight = {layout.value: layout for layout in module.weight_layouts}
        self.shape_by_weight = {weight.name: weight.shape for weight in module.graph.weights}
        self.costed_by_plan: dict[CostedPlan, records.CostedRecord] = {}

    def operator(self, spec: OperatorSpec, planned: ScheduledOperator) -> records.OperatorRecord:
        """Return the record of one operator."""
        if len({axis.name for axis in spec.axes}) != len(spec.axes):
            raise T10Error("two axes have one name", operator=spec.name)
        plan = planned.active.plan
        tensors = [self.tensor(spec, plan, number) for number in range(len(spec.operands) + 1)]
        weights = [i for i, tensor in enumerate(tensors) if tensor.idle_layout is not None]
        in_place = {arrival.operand for arrival in planned.arrivals if arrival.kind == "in_place"}
        return records.OperatorRecord(
            name=spec.name,
            kind=spec.kind,
            location=spec.location,
            axes=tuple(records.AxisRecord(**asdict(axis)) for axis in spec.axes),
            tensors=tuple(tensors),
            combine=spec.combine,
            body=self.functions.row(spec.body),
            acc_dtype=spec.acc_dtype,
            epilogue=None if spec.epilogue is None else self.functions.row(spec.epilogue),
            selectors=tuple(
                records.SelectorRecord(axis=spec.axes[s.axis].name, index=self.functions.row(s.index))
                for s in spec.selectors
            ),
            active=self.active(spec, planned.active),
            idle=records.IdleRecord(
                bytes_per_core=sum(tensors[i].idle_bytes_per_core or 0 for i in weights),
                is_active=all(i in in_place for i in weights),
            ),
            arrivals=tuple(records.ArrivalRecord(**asdict(arrival)) for arrival in planned.arrivals),
            output_layout=self.layouts.row(planned.output_layout),
            pareto=self.fronts.row(planned.pareto),
        )

    def active(self, spec: OperatorSpec, active: CostedPlan) -> records.ActiveRecord:
        """Return the record of the plan that is executed, axes by name."""
        plan = active.plan
        costed = self.costed(active)
        return records.ActiveRecord(
            plan=costed.plan,
            cycles=costed.cycles,
            weight_bytes=costed.weight_bytes,
            active_bytes=costed.active_bytes,
            n_cores=plan.n_cores,
            n_sub_tasks=plan.n_sub_tasks,
            f_op=_by_axis(spec, plan.f_op),
            lengths=_by_axis(spec, plan.lengths),
            rp=_by_axis(spec, plan.rp, default=0),
            steps=_by_axis(spec, plan.steps, default=1),
            loop_order=tuple(spec.axes[axis].name for axis in plan.loop_order),
            reduce=plan.reduce,
        )

    def costed(self, costed: CostedPlan) -> records.CostedRecord:
        """Return the record of a plan with its price."""
        known = self.costed_by_plan.get(costed)
        if known is None:
            known = records.CostedRecord(
                plan=self.plans.row(costed.plan),
                cycles=cycles_record(costed.cycles),
                weight_bytes=costed.weight_bytes,
                active_bytes=costed.active_bytes,
            )
            self.costed_by_plan[costed] = known
        return known

    def tensor(self, spec: OperatorSpec, plan: OperatorPlan, number: int) -> records.TensorRecord:
        """Return the record of operand `number` (numbered as in `ValueLayout.operand`)."""
        operand = movement.operand_of(spec, number)
        use, slot = _use(spec, number)
        lengths = geometry.window_lengths(plan, slot)
        sharers = geometry.n_sharers(operand, plan)
        ring_length = geometry.ring_length(plan, slot)
        partition = geometry.partition_shape(operand, lengths)
        idle = self.idle_by_weight.get(operand.name) if operand.role == "weight" else None
        return records.TensorRecord(
            name=operand.name,
            use=use,
            role=operand.role,
            dtype=operand.dtype,
            shape=operand.shape,
            dims=tuple(_dim(spec, dim) for dim in operand.dims),
            pad_value=operand.pad_value,
            fs=geometry.dim_factors(operand, plan.f_op),
            ft=_by_axis(spec, plan.ft[slot], default=1),
            sharers=sharers,
            ring_length=ring_length,
            rings=max(1, plan.n_cores // ring_length),
            replicas=max(1, sharers // ring_length),
            partition=partition,
            bytes_per_core=prod(partition) * size_bytes(operand.dtype),
            idle_layout=None if idle is None else self.layouts.row(idle),
            idle_bytes_per_core=None if idle is None else self.idle_bytes(operand, idle),
        )

    def idle_bytes(self, operand: Operand, idle: ValueLayout) -> int:
        """Return the bytes per core of a weight's idle layout."""
        buffer = next((b for b in self.module.buffers if b.name == f"idle:{idle.value}"), None)
        if buffer is not None:
            return buffer.size_bytes
        n_slots = chunk_slots(prod(operand.shape), idle.n_cores)
        return n_slots * size_bytes(operand.dtype)

    def layout(self, layout: ValueLayout) -> records.LayoutRecord:
        """Return the record of a layout."""
        return records.LayoutRecord(
            kind=layout.kind,
            value=layout.value,
            n_cores=layout.n_cores,
            dtype=layout.dtype,
            operator=layout.operator,
            operand=layout.operand,
            plan=None if layout.plan is None else self.plans.row(layout.plan),
            scatter=layout.scatter,
        )


def encode(module: ModulePlan) -> records.PlanDocument:
    """Return the document of a planned model."""
    graph = module.graph
    encoder = _Encoder(module)
    operators = tuple(
        encoder.operator(spec, planned)
        for spec, planned in zip(graph.operators, module.operators, strict=True)
    )
    # Tables are written after everything that enters rows into them; `plans` last, since fronts and layouts do too.
    input_layouts = tuple(encoder.layouts.row(layout) for layout in module.input_layouts)
    weight_layouts = tuple(encoder.layouts.row(layout) for layout in module.weight_layouts)
    fronts = tuple(
        tuple(encoder.costed(each) for each in front) for front in tuple(encoder.fronts.row_by_value)
    )
    layouts = tuple(encoder.layout(layout) for layout in tuple(encoder.layouts.row_by_value))
    return records.PlanDocument(
        format=records.FORMAT,
        version=records.VERSION,
        generator=f"t10 {VERSION}",
        modelled=True,
        chip=module.chip,
        model=graph.name,
        capacity_bytes=module.capacity_bytes,
        reserved_bytes=module.reserved_bytes,
        peak_bytes=module.peak_bytes,
        cycles=cycles_record(total_cycles(module)),
        optimality=(
            None if module.optimality is None else records.OptimalityRecord(**asdict(module.optimality))
        ),
        inputs=tuple(records.ValueRecord(**asdict(value)) for value in graph.inputs),
        weights=tuple(records.ValueRecord(**asdict(value)) for value in graph.weights),
        outputs=tuple(records.OutputRecord(**asdict(output)) for output in graph.outputs),
        operators=operators,
        views=tuple(records.ViewRecord(**asdict(view)) for view in graph.views),
        input_layouts=input_layouts,
        weight_layouts=weight_layouts,
        buffers=tuple(records.BufferRecord(**asdict(buffer)) for buffer in module.buffers),
        fetches=tuple(records.FetchRecord(**asdict(fetch)) for fetch in module.fetches),
        layouts=layouts,
        functions=tuple(records.FunctionRecord(**asdict(f)) for f in encoder.functions.row_by_value),
        fronts=fronts,
        plans=tuple(records.PlanRecord(**asdict(plan)) for plan in encoder.plans.row_by_value),
    )


def total_cycles(module: ModulePlan) -> Cycles:
    """Return the modelled cycles of all operators by kind."""
    kinds = [field.name for field in fields(Cycles)]
    return Cycles(**{kind: sum(getattr(op.active.cycles, kind) for op in module.operators) for kind in kinds})


def cycles_record(cycles: Cycles) -> records.CyclesRecord:
    """Return cycles by kind with their total."""
    return records.CyclesRecord(**asdict(cycles), total=cycles.total)


def _use(spec: OperatorSpec, number: int) -> tuple[Literal["input", "epilogue", "output"], int]:
    """Return how operand `number` is used and the row of `ft` it follows: its own, or the output's."""
    n_inputs = len(spec.inputs)
    if number < n_inputs:
        return "input", number
    return ("epilogue" if number < len(spec.operands) else "output"), n_inputs


def _dim(spec: OperatorSpec, dim: AffineDim) -> records.DimRecord:
    terms = {spec.axes[term.axis].name: term.coefficient for term in dim.terms}
    return records.DimRecord(terms=terms, offset=dim.offset)


def _by_axis(spec: OperatorSpec, numbers: AxisSizes, default: int | None = None) -> dict[str, int]:
    """Return the numbers by axis name, those equal to the default left out."""
    pairs = zip(spec.axes, numbers, strict=True)
    return {axis.name: number for axis, number in pairs if number != default}
