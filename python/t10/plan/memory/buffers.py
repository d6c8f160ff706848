"""The buffers of a program: size and live range of each, phase by phase.

Within an operator step, what is copied from dies as the operands have arrived, and what the loop nest reads dies before
the epilogue writes a result beside its accumulator. A result that is made slot by slot from an operand that nobody
reads later takes over that operand's buffer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from math import prod

from t10.chip import ChipSpec
from t10.core.chunks import chunk_slots, window_chunk
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph
from t10.core.laid_out import LayoutOperators
from t10.core.movement import operand_of
from t10.core.overlap import second_name, second_windows
from t10.core.own_weights import own_weights
from t10.core.plan import OperatorPlan
from t10.core.products import SUMS_BYTES, hands_on_rounded
from t10.core.schedule import Arrival, Fetch, ModulePlan, Phase, ScheduledOperator, ValueLayout, moment
from t10.cost.operator import output_chunk
from t10.errors import InputError
from t10.plan.memory.allocation import Request, aligned_size
from t10.plan.memory.levels import operand_slots

TAKEN = ("value:", "input:")
"""How buffers begin that a result may take over: weights stay, and a copy is only made where a value lies wrong."""


def buffer_requests(
    graph: Graph,
    operators: Sequence[ScheduledOperator],
    layouts: Mapping[str, ValueLayout],
    chip: ChipSpec,
    fetches: Sequence[Fetch] = (),
) -> list[Request]:
    """Return every buffer the program needs, with its lifetime in moments (see `core.schedule.moment`).

    `layouts` are those of weights and inputs that are read, by value. Weights that `fetches` do not bring rest as long
    as the program. Raises `InputError` for a shift buffer that is
    too small for sums in it.
    """
    last_by_value = last_moments(graph, operators)
    kept = {source for output in graph.outputs for source in graph.sources_of(output.value)}
    end = moment(max(len(operators) - 1, 0), "finish")
    makers = LayoutOperators(graph)
    shift_bytes = chip.shift_buffer_bytes
    if shift_bytes < SUMS_BYTES and any(map(hands_on_rounded, graph.operators)):
        raise InputError(
            f"partials that are mixed grow in the shift buffer, which has {shift_bytes:,} bytes (expected at least "
            f"{SUMS_BYTES:,})",
            hint="give another type of partials, or the chip a larger shift_buffer_bytes",
        )
    found = {"shift": Request("shift", shift_bytes, 0, end)}
    own = own_weights(graph) if fetches else {}
    begins = {w.name: moment(fetch.first, "arrive") for fetch in fetches for w in own.get(fetch.operator, ())}
    for values, prefix in ((graph.weights, "idle"), (graph.inputs, "input")):
        for value in values:
            if value.name not in layouts:
                continue
            is_kept = prefix == "idle" and value.name not in begins
            last = end if is_kept else last_by_value[value.name]
            size = layout_slots(makers, layouts[value.name], prod(value.shape)) * size_bytes(value.dtype)
            name = f"{prefix}:{value.name}"
            found[name] = Request(name, size, begins.get(value.name, 0), last)
    for step, (spec, scheduled) in enumerate(zip(graph.operators, operators, strict=True)):
        plan = scheduled.active.plan
        for request in working_requests(spec, plan, scheduled.arrivals, step, chip):
            found[request.name] = request
        last = last_by_value.get(spec.output.name, moment(step, "finish"))
        result = result_request(spec, plan, step, last)
        free = [a for a in scheduled.arrivals if a.buffer.partition(":")[2] not in kept]
        source = _taken_over(spec, plan, free, result, found)
        found[result.name] = Request(result.name, result.size_bytes, result.first, result.last, source)
    return list(found.values())


def requests_of(plan: ModulePlan, chip: ChipSpec) -> tuple[Request, ...]:
    """Return every buffer that a plan needs, with its lifetime."""
    layouts = {layout.value: layout for layout in (*plan.weight_layouts, *plan.input_layouts)}
    return tuple(buffer_requests(plan.graph, plan.operators, layouts, chip, plan.fetches))


def last_moments(graph: Graph, operators: Sequence[ScheduledOperator]) -> dict[str, int]:
    """Return the last moment at which the bytes of every input, weight and result are needed; absent if never read."""
    sources_of = cache(graph.sources_of)
    last: dict[str, int] = {}
    for step, (spec, scheduled) in enumerate(zip(graph.operators, operators, strict=True)):
        for arrival in scheduled.arrivals:
            now = moment(step, _last_phase(spec, arrival))
            for source in sources_of(operand_of(spec, arrival.operand).name):
                last[source] = max(last.get(source, 0), now)
    for output in graph.outputs:
        for source in sources_of(output.value):
            last[source] = moment(max(len(operators) - 1, 0), "finish")
    return last


def working_requests(
    spec: OperatorSpec, plan: OperatorPlan, arrivals: Sequence[Arrival], step: int, chip: ChipSpec
) -> list[Request]:
    """Return the buffers that one operator alone uses: copies of operands, second windows, and its accumulator."""
    requests: list[Request] = []
    for arrival in arrivals:
        if arrival.kind != "in_place":
            dtype = operand_of(spec, arrival.operand).dtype
            size = operand_slots(spec, plan, arrival.operand) * size_bytes(dtype)
            last: Phase = "nest" if arrival.operand < len(spec.inputs) else "finish"
            requests.append(Request(arrival.buffer, size, moment(step, "arrive"), moment(step, last)))
    seconds = second_windows(spec, plan) if chip.overlaps else {}
    if seconds:
        nest = moment(step, "nest")
        requests.append(Request(second_name(spec.name), sum(seconds.values()), nest, nest))
    if has_accumulator(spec, plan):
        size = operand_slots(spec, plan, len(spec.operands)) * size_bytes(spec.acc_dtype)
        name = f"accumulator:{spec.name}"
        requests.append(Request(name, size, moment(step, "nest"), moment(step, "finish")))
    return requests


def result_request(spec: OperatorSpec, plan: OperatorPlan, step: int, last: int) -> Request:
    """Return the buffer of an operator's result, which is written after the nest where there is an accumulator."""
    first = moment(step, "finish" if has_accumulator(spec, plan) else "nest")
    size = output_chunk(spec, plan)[1] * size_bytes(spec.output.dtype)
    return Request(f"value:{spec.output.name}", size, first, last)


def has_accumulator(spec: OperatorSpec, plan: OperatorPlan) -> bool:
    """Return whether an operator accumulates beside its result: in another type, or parts of one sum on several cores.

    Otherwise the epilogue replaces every accumulated element in its slot.
    """
    return spec.acc_dtype != spec.output.dtype or output_chunk(spec, plan)[0] > 1


def _last_phase(spec: OperatorSpec, arrival: Arrival) -> Phase:
    """Return the phase in which an operand's value is last read where it lies."""
    if arrival.kind != "in_place":
        return "arrive"
    return "nest" if arrival.operand < len(spec.inputs) else "finish"


def _taken_over(
    spec: OperatorSpec,
    plan: OperatorPlan,
    arrivals: Sequence[Arrival],
    result: Request,
    found: Mapping[str, Request],
) -> str:
    """Return the name of the buffer that a result takes over, "" if there is none to be had.

    `arrivals` are those of operands that nobody needs afterwards: an output of the model lives to its end.
    """
    if output_chunk(spec, plan)[0] > 1:
        return ""
    phase: Phase = "finish" if has_accumulator(spec, plan) else "nest"
    for arrival in arrivals:
        buffer = found.get(arrival.buffer)
        if arrival.kind != "in_place" or buffer is None or not arrival.buffer.startswith(TAKEN):
            continue
        if buffer.last != result.first or aligned_size(buffer.size_bytes) != aligned_size(result.size_bytes):
            continue
        readers = [a.operand for a in arrivals if a.buffer == buffer.name and _last_phase(spec, a) == phase]
        if readers and all(goes_into_its_slot(spec, plan, number) for number in readers):
            return buffer.name
    return ""


def goes_into_its_slot(spec: OperatorSpec, plan: OperatorPlan, number: int) -> bool:
    """Return whether slot i of an operand is read for slot i of the result alone, and not after that is written.

    An input of the nest must not be read for other points (no reduction axis), an epilogue input never is.
    """
    operand = operand_of(spec, number)
    if operand.dims != spec.output.dims or size_bytes(operand.dtype) != size_bytes(spec.output.dtype):
        return False
    return number >= len(spec.inputs) or (spec.combine == "none" and plan.ft[number] == plan.ft[-1])


def layout_slots(makers: LayoutOperators, layout: ValueLayout, n_elements: int) -> int:
    """Return how many elements a core holds under a layout."""
    spec = makers.of(layout)
    if layout.plan is None or spec is None:
        return chunk_slots(n_elements, layout.n_cores)
    return window_chunk(operand_slots(spec, layout.plan, layout.operand), layout.scatter)
