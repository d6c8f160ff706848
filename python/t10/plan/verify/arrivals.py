"""Does every operand arrive: once, in a buffer of its own or where it really lies already, element by element?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import prod

from t10.core.expression import Operand, OperatorSpec
from t10.core.graph import Graph
from t10.core.nameless import REMEMBERED, nameless, nameless_layout
from t10.core.plan import OperatorPlan
from t10.core.schedule import Arrival, ModulePlan, ScheduledOperator, ValueLayout
from t10.plan.verify.body import ends_at
from t10.plan.verify.placed import placed_layout, placed_operand, same_slots
from t10.plan.verify.uses import Uses
from t10.plan.verify.violation import Violation

PREFIX_BY_SOURCE = {"weight": "idle", "input": "input", "result": "value"}


def arrival_violations(plan: ModulePlan, uses: Uses) -> Iterator[Violation]:
    """Yield operands that do not arrive, arrive twice, come from values not yet made, or are not in place."""
    graph = plan.graph
    layouts = layout_by_value(plan)
    made_at = {spec.output.name: step for step, spec in enumerate(graph.operators)}
    for step, (spec, scheduled) in enumerate(zip(graph.operators, plan.operators, strict=True)):
        numbers = sorted(arrival.operand for arrival in scheduled.arrivals)
        if numbers != list(range(len(spec.operands))):
            yield Violation(
                spec.name, "arrivals", f"operands {numbers}", f"0 to {len(spec.operands) - 1} once each"
            )
            continue
        for arrival in scheduled.arrivals:
            operand = spec.operands[arrival.operand]
            late = [v for v in uses.origins[operand.name] if made_at.get(v, -1) >= step or v not in layouts]
            if late:
                yield Violation(
                    spec.name, "order", f"{operand.name} reads {sorted(late)[0]}", "values made before"
                )
            elif arrival.kind == "in_place":
                yield from _in_place_rules(plan, uses, step, arrival, layouts)
            elif arrival.buffer != f"operand:{spec.name}:{arrival.operand}":
                expected = f"operand:{spec.name}:{arrival.operand}"
                yield Violation(spec.name, "arrivals", f"operand copied to {arrival.buffer}", expected)


def layout_by_value(plan: ModulePlan) -> dict[str, ValueLayout]:
    """Return the layout of every weight, input and result."""
    layouts = [*plan.weight_layouts, *plan.input_layouts, *(op.output_layout for op in plan.operators)]
    return {layout.value: layout for layout in layouts}


def _source(uses: Uses, layout: ValueLayout) -> tuple[ValueLayout, OperatorSpec | None, int]:
    """Return a layout and its operator without names, and the number of elements of its value."""
    maker = uses.makers.of(layout)
    n_elements = prod(uses.shapes[layout.value])
    return nameless_layout(layout), None if maker is None else nameless(maker), n_elements


@lru_cache(maxsize=REMEMBERED)
def _lies_right(
    reader: OperatorSpec,
    plan: OperatorPlan,
    number: int,
    layout: ValueLayout,
    maker: OperatorSpec | None,
    n_elements: int,
    is_padding_read: bool,
) -> bool:
    """Return whether a value under a layout has in its slots what operand `number` of a reader wants there."""
    if (reader, plan, number, 1) == (maker, layout.plan, layout.operand, layout.scatter):
        return True
    wanted = placed_operand(reader, plan, number)
    return same_slots(wanted, placed_layout(layout, maker, n_elements), is_padding_read)


def source_buffer(graph: Graph, value: str) -> str:
    """Return the name of the buffer in which a weight, input or result lies."""
    if value in {weight.name for weight in graph.weights}:
        return f"{PREFIX_BY_SOURCE['weight']}:{value}"
    if value in {given.name for given in graph.inputs}:
        return f"{PREFIX_BY_SOURCE['input']}:{value}"
    return f"{PREFIX_BY_SOURCE['result']}:{value}"


def _in_place_rules(
    plan: ModulePlan, uses: Uses, step: int, arrival: Arrival, layouts: dict[str, ValueLayout]
) -> Iterator[Violation]:
    """The operand is the value itself, in the same slots, is not read outside the tensor, and may be rotated away."""
    spec, scheduled = plan.graph.operators[step], plan.operators[step]
    operand = spec.operands[arrival.operand]
    what = f"operand {arrival.operand} ({operand.name})"
    name = uses.renamed[operand.name]
    buffer = source_buffer(plan.graph, name)
    if name not in layouts:
        yield Violation(spec.name, "in place", f"{what} is a view", "a value as it is, or reshaped")
        return
    if arrival.buffer != buffer:
        yield Violation(spec.name, "in place", f"{what} in {arrival.buffer}", buffer)
        return
    layout = layouts[name]
    has_padding = reads_outside(spec, operand)
    if has_padding and _padding_of(plan, uses, layout) != operand.pad_value:
        yield Violation(spec.name, "in place", f"{what} reads outside its tensor", "a copy with its padding")
    elif layout.dtype != operand.dtype or not _lies_right(
        nameless(spec), scheduled.active.plan, arrival.operand, *_source(uses, layout), has_padding
    ):
        yield Violation(
            spec.name, "in place", f"{what} lies elsewhere", "the same elements in the same slots"
        )
    if _is_rotated_away(spec, scheduled, arrival.operand, buffer):
        yield from _rotation_rules(plan, uses, step, arrival, what)


def _padding_of(plan: ModulePlan, uses: Uses, layout: ValueLayout) -> str | None:
    """Return what the slots outside the tensor hold: the operand's padding in a weight's idle layout, None if nothing.

    A weight laid out as an operand is put there with its padding; results and linear layouts have none.
    """
    is_weight = layout.value in {weight.name for weight in plan.graph.weights}
    spec = uses.makers.of(layout)
    return spec.operands[layout.operand].pad_value if is_weight and spec is not None else None


def reads_outside(spec: OperatorSpec, operand: Operand) -> bool:
    """Return whether some point of the iteration space reads an index outside the operand's shape."""
    for dim, extent in zip(operand.dims, operand.shape, strict=True):
        last = dim.offset + sum(term.coefficient * (spec.axes[term.axis].extent - 1) for term in dim.terms)
        if dim.offset < 0 or last >= extent:
            return True
    return False


def _is_rotated_away(spec: OperatorSpec, scheduled: ScheduledOperator, number: int, buffer: str) -> bool:
    """Return whether the operator leaves another window in the buffer than it found; weights are sent home."""
    if number >= len(spec.inputs) or all(t == 1 for t in scheduled.active.plan.ft[number]):
        return False
    sharing = [arrival for arrival in scheduled.arrivals if arrival.buffer == buffer]
    if len(sharing) > 1:
        return True
    if buffer.startswith(PREFIX_BY_SOURCE["weight"]):
        return False
    return any(ends_at(spec, scheduled.body)[number])


def _rotation_rules(
    plan: ModulePlan, uses: Uses, step: int, arrival: Arrival, what: str
) -> Iterator[Violation]:
    """A value that is rotated in its own buffer has no other reader of that buffer, now or later."""
    spec, scheduled = plan.graph.operators[step], plan.operators[step]
    value = uses.renamed[spec.operands[arrival.operand].name]
    if any(a.buffer == arrival.buffer and a.operand != arrival.operand for a in scheduled.arrivals):
        yield Violation(
            spec.name, "in place", f"{what} rotates in a buffer that another operand has", "its own"
        )
    later = [read for read in uses.reads.get(value, ()) if read.step > step]
    if later or value in uses.kept:
        reader = plan.graph.operators[later[0].step].name if later else "the model's result"
        yield Violation(
            spec.name, "in place", f"{what} is rotated away before {reader} reads it", "the last reader"
        )
