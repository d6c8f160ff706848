"""From the records of plan.json back to a `ModulePlan`; derived fields are not read (see `file`, which checks them)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from t10.core.document import records
from t10.core.document.check import check_document, check_legal
from t10.core.expression import AffineDim, Axis, Operand, OperatorSpec, Selector, Term
from t10.core.graph import Graph, GraphOutput, Parts, TensorValue, View
from t10.core.operator_body import scheduled_operator
from t10.core.plan import CostedPlan, Cycles, OperatorPlan, PhaseTerm
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.core.schedule import (
    Arrival,
    Buffer,
    Fetch,
    ModulePlan,
    Optimality,
    ScheduledOperator,
    ValueLayout,
)
from t10.errors import InputError

Value = TypeVar("Value")


class _Decoder:
    """The tables of one document while it is read."""

    def __init__(self, document: records.PlanDocument) -> None:
        self.operator_names = {operator.name for operator in document.operators}
        self.functions = tuple(_function(each) for each in document.functions)
        self.plans = tuple(_plan(each) for each in document.plans)
        self.layouts = tuple(self.layout(each, f"layouts[{i}]") for i, each in enumerate(document.layouts))
        self.fronts = tuple(
            tuple(self.costed(each, f"fronts[{i}][{j}]") for j, each in enumerate(front))
            for i, front in enumerate(document.fronts)
        )

    def layout(self, record: records.LayoutRecord, where: str) -> ValueLayout:
        if record.operator and record.operator not in self.operator_names:
            raise InputError(
                f"{where}.operator: found {record.operator!r}, which is no operator of this file"
            )
        values = _shallow(record)
        values["plan"] = None if record.plan is None else _at(self.plans, record.plan, f"{where}.plan")
        return ValueLayout(**values)

    def costed(self, record: records.CostedRecord, where: str) -> CostedPlan:
        return CostedPlan(
            plan=_at(self.plans, record.plan, f"{where}.plan"),
            cycles=Cycles(**_shallow(record.cycles, without=("total",))),
            weight_bytes=record.weight_bytes,
            active_bytes=record.active_bytes,
        )

    def planned(self, record: records.OperatorRecord, where: str) -> ScheduledOperator:
        spec, active = self.spec(record, where), self.costed(record.active, f"{where}.active")
        # Its program is as long as it has steps.
        check_legal(active.plan, spec, f"{where}.active.plan")
        return scheduled_operator(
            spec,
            active=active,
            arrivals=tuple(Arrival(**_shallow(arrival)) for arrival in record.arrivals),
            output_layout=_at(self.layouts, record.output_layout, f"{where}.output_layout"),
            pareto=_at(self.fronts, record.pareto, f"{where}.pareto"),
        )

    def spec(self, record: records.OperatorRecord, where: str) -> OperatorSpec:
        number_by_axis = {axis.name: i for i, axis in enumerate(record.axes)}

        def operands(use: str) -> tuple[Operand, ...]:
            return tuple(
                _operand(tensor, number_by_axis, f"{where}.tensors[{i}]")
                for i, tensor in enumerate(record.tensors)
                if tensor.use == use
            )

        outputs = operands("output")
        if len(outputs) != 1:
            raise InputError(f"{where}.tensors: found {len(outputs)} outputs, expected 1")
        epilogue = record.epilogue
        return OperatorSpec(
            name=record.name,
            kind=record.kind,
            axes=tuple(Axis(**_shallow(axis)) for axis in record.axes),
            inputs=operands("input"),
            output=outputs[0],
            combine=record.combine,
            body=_at(self.functions, record.body, f"{where}.body"),
            acc_dtype=record.acc_dtype,
            epilogue=None if epilogue is None else _at(self.functions, epilogue, f"{where}.epilogue"),
            epilogue_inputs=operands("epilogue"),
            selectors=tuple(
                Selector(
                    _axis(number_by_axis, selector.axis, f"{where}.selectors[{i}].axis"),
                    _at(self.functions, selector.index, f"{where}.selectors[{i}].index"),
                )
                for i, selector in enumerate(record.selectors)
            ),
            location=record.location,
        )


def decode(document: records.PlanDocument) -> ModulePlan:
    """Return the planned model of a document.

    Raises `InputError` with the JSON path where a table has no such row or an axis does not exist, and `T10Error`
    where the values contradict each other.
    """
    decoder = _Decoder(document)
    numbered = [(f"operators[{i}]", operator) for i, operator in enumerate(document.operators)]
    graph = Graph(
        name=document.model,
        inputs=tuple(_tensor(value) for value in document.inputs),
        weights=tuple(_tensor(value) for value in document.weights),
        operators=tuple(decoder.spec(operator, where) for where, operator in numbered),
        views=tuple(View(**_shallow(view)) for view in document.views),
        outputs=tuple(GraphOutput(**_shallow(output)) for output in document.outputs),
    )
    module = ModulePlan(
        chip=document.chip,
        graph=graph,
        operators=tuple(decoder.planned(operator, where) for where, operator in numbered),
        weight_layouts=tuple(
            _at(decoder.layouts, row, f"weight_layouts[{i}]") for i, row in enumerate(document.weight_layouts)
        ),
        input_layouts=tuple(
            _at(decoder.layouts, row, f"input_layouts[{i}]") for i, row in enumerate(document.input_layouts)
        ),
        buffers=tuple(Buffer(**_shallow(buffer)) for buffer in document.buffers),
        peak_bytes=document.peak_bytes,
        capacity_bytes=document.capacity_bytes,
        reserved_bytes=document.reserved_bytes,
        optimality=None if document.optimality is None else Optimality(**_shallow(document.optimality)),
        fetches=tuple(Fetch(**_shallow(fetch)) for fetch in document.fetches),
    )
    check_document(document, module, decoder.layouts)
    return module


def _function(record: records.FunctionRecord) -> ScalarFunction:
    ops = tuple(ScalarOp(**_shallow(op)) for op in record.ops)
    return ScalarFunction(record.n_inputs, ops, record.result)


def _plan(record: records.PlanRecord) -> OperatorPlan:
    values = _shallow(record)
    values["phases"] = tuple(tuple(PhaseTerm(**_shallow(term)) for term in row) for row in record.phases)
    return OperatorPlan(**values)


def _operand(record: records.TensorRecord, number_by_axis: dict[str, int], where: str) -> Operand:
    dims: list[AffineDim] = []
    for i, dim in enumerate(record.dims):
        terms = [
            Term(_axis(number_by_axis, axis, f"{where}.dims[{i}].terms"), coefficient)
            for axis, coefficient in dim.terms.items()
        ]
        dims.append(AffineDim(tuple(terms), dim.offset))
    return Operand(record.name, record.role, record.dtype, record.shape, tuple(dims), record.pad_value)


def _axis(number_by_axis: dict[str, int], name: str, where: str) -> int:
    number = number_by_axis.get(name)
    if number is None:
        raise InputError(f"{where}: found axis {name!r}, expected one of {', '.join(number_by_axis)}")
    return number


def _at(table: Sequence[Value], row: int, where: str) -> Value:
    if row >= len(table):
        raise InputError(f"{where}: found row {row} of a table with {len(table)} rows")
    return table[row]


def _tensor(record: records.ValueRecord) -> TensorValue:
    parts = None if record.parts is None else Parts(record.parts.axis, record.parts.names)
    return TensorValue(**_shallow(record, ("parts",)), parts=parts)


def _shallow(record: BaseModel, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the fields of a record as they are, records inside it included."""
    return {name: getattr(record, name) for name in type(record).model_fields if name not in without}
