"""What a plan.json must keep to beyond its form: legal plans, and numbers that name what there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from t10.core.document import records
from t10.core.expression import OperatorSpec
from t10.core.legal import PlanRows, breaches, expression_of
from t10.core.plan import OperatorPlan
from t10.core.schedule import Buffer, ModulePlan, ScheduledOperator, ValueLayout
from t10.errors import InputError


def check_document(
    document: records.PlanDocument, module: ModulePlan, layouts: tuple[ValueLayout, ...]
) -> None:
    """Raise `InputError` with the JSON path, what was found and what was expected, at the first thing that is wrong.

    `layouts` is the table of layouts, of which the module holds those that it uses.
    """
    checked: set[tuple[OperatorSpec, OperatorPlan]] = set()

    def check_plan(plan: OperatorPlan, spec: OperatorSpec, where: str) -> None:
        if (spec, plan) in checked:
            return
        checked.add((spec, plan))
        check_legal(plan, spec, where)

    specs = {spec.name: spec for spec in module.graph.operators}
    for i, operator in enumerate(module.operators):
        spec = specs[operator.name]
        check_plan(operator.active.plan, spec, f"operators[{i}].active.plan")
        for j, each in enumerate(operator.pareto):
            check_plan(each.plan, spec, f"fronts[{document.operators[i].pareto}][{j}].plan")
        _check_arrivals(
            operator, spec, f"operators[{i}].arrivals", {buffer.name for buffer in module.buffers}
        )
    for i, layout in enumerate(layouts):
        if layout.plan is None:
            continue
        spec, last = specs[layout.operator], len(specs[layout.operator].operands)
        if layout.operand > last:
            found = f"layouts[{i}].operand: found {layout.operand}, expected at most {last}"
            raise InputError(f"{found}: the operands, then the output", operator=spec.name)
        check_plan(layout.plan, spec, f"layouts[{i}].plan")
    _check_fetches(module, specs)
    for i, buffer in enumerate(module.buffers):
        for problem in _buffer_problems(buffer, len(module.operators)):
            raise InputError(f"buffers[{i}].{problem}")


def check_legal(plan: OperatorPlan, spec: OperatorSpec, where: str) -> None:
    """Raise `InputError`, naming the JSON path, unless a plan is one of an operator."""
    for breach in breaches(PlanRows.of(plan), expression_of(spec)):
        raise InputError(f"{where}: {breach}", operator=spec.name)


def _check_fetches(module: ModulePlan, specs: Mapping[str, OperatorSpec]) -> None:
    for i, fetch in enumerate(module.fetches):
        if fetch.operator not in specs:
            raise InputError(
                f"fetches[{i}].operator: found {fetch.operator!r}, which is no operator of this file"
            )


def _check_arrivals(operator: ScheduledOperator, spec: OperatorSpec, where: str, buffers: set[str]) -> None:
    numbers = [arrival.operand for arrival in operator.arrivals]
    if len(set(numbers)) < len(numbers) or not set(numbers) <= set(range(len(spec.operands))):
        expected = f"each of the {len(spec.operands)} operands at most once"
        raise InputError(f"{where}: found operands {numbers}, expected {expected}", operator=operator.name)
    for i, arrival in enumerate(operator.arrivals):
        if arrival.buffer not in buffers:
            found = f"{where}[{i}].buffer: found {arrival.buffer!r}, expected the name of a buffer"
            raise InputError(found, operator=operator.name)


def _buffer_problems(buffer: Buffer, n_operators: int) -> Iterator[str]:
    for field, step in (("first", buffer.first), ("last", buffer.last)):
        if not -1 <= step <= n_operators:
            yield f"{field}: found step {step} of {buffer.name}, expected -1 to {n_operators}"
    if buffer.first > buffer.last:
        yield f"last: found step {buffer.last} of {buffer.name}, expected at least its first, {buffer.first}"
