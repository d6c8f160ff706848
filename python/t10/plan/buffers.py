"""The buffers a program needs: what lies in a core's memory, how large it is and from when to when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph
from t10.core.movement import operand_of, partition_scatter
from t10.core.schedule import Layout, ScheduledOperator
from t10.cost.operator import output_chunk
from t10.plan.allocation import Request
from t10.plan.levels import operand_slots
from t10.plan.liveness import Liveness


def buffer_requests(
    graph: Graph,
    lives: Liveness,
    operators: Sequence[ScheduledOperator],
    layouts: Mapping[str, Layout],
    shift_bytes: int,
) -> list[Request]:
    """Return every buffer the program needs, with its lifetime in operator steps."""
    end = max(len(operators) - 1, 0)
    requests = [Request("shift", shift_bytes, 0, end)]
    specs = {spec.name: spec for spec in graph.operators}
    for values, prefix in ((graph.weights, "idle"), (graph.inputs, "input")):
        for value in values:
            if value.name not in layouts:
                continue
            last = end if prefix == "idle" else lives.last_by_value[value.name]
            size = layout_slots(specs, layouts[value.name], prod(value.shape)) * size_bytes(value.dtype)
            requests.append(Request(f"{prefix}:{value.name}", size, 0, last))
    for step, (spec, scheduled) in enumerate(zip(graph.operators, operators, strict=True)):
        plan = scheduled.active.plan
        for arrival in scheduled.arrivals:
            if arrival.kind != "in_place":
                dtype = operand_of(spec, arrival.operand).dtype
                size = operand_slots(spec, plan, arrival.operand) * size_bytes(dtype)
                requests.append(Request(arrival.buffer, size, step, step))
        n_members, n_slots = output_chunk(spec, plan)
        if spec.epilogue is not None or n_members > 1:
            size = operand_slots(spec, plan, len(spec.operands)) * size_bytes(spec.acc_dtype)
            requests.append(Request(f"accumulator:{spec.name}", size, step, step))
        last = lives.last_by_value.get(spec.output.name, step)
        requests.append(
            Request(f"value:{spec.output.name}", n_slots * size_bytes(spec.output.dtype), step, last)
        )
    return requests


def layout_slots(specs: Mapping[str, OperatorSpec], layout: Layout, n_elements: int) -> int:
    """Return how many elements a core holds under a layout."""
    if layout.plan is None:
        return -(-n_elements // layout.n_cores)
    return partition_scatter(
        operand_slots(specs[layout.operator], layout.plan, layout.operand), layout.scatter
    )
