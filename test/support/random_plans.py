"""Random legal plans of operators and graphs, placed by trial instead of by the planner's theorems.

`random_plan` draws F_op and ft, aligns them by the definitions and draws phases until every window is where it must
be; `lay_out` makes a module of plans with random idle layouts, arrivals in place where that is allowed, and
addresses.
"""

from __future__ import annotations

from dataclasses import replace
from math import lcm, prod
from random import Random

import numpy as np

from t10.chip import ChipSpec
from t10.core import movement
from t10.core.chunks import window_chunk
from t10.core.dtypes import size_bytes
from t10.core.expression import AxisSizes, Operand, OperatorSpec
from t10.core.graph import Graph
from t10.core.operator_body import scheduled_operator
from t10.core.plan import CostedPlan, Cycles, OperatorPlan, PhaseTerm, Reduce
from t10.core.schedule import Arrival, Buffer, ModulePlan, ScheduledOperator, ValueLayout, most_bytes
from t10.core.tile import ALIGNMENT_BYTES
from t10.plan.memory.buffers import last_moments
from t10.plan.memory.room import DataRoom
from t10.plan.verify import verify_operator

TRIES = 12

LEAST_SHIFT_BUFFER_BYTES = 64


def divisors(number: int) -> list[int]:
    """Return the divisors of a number, ascending."""
    return [d for d in range(1, number + 1) if number % d == 0]


def random_partition(rng: Random, spec: OperatorSpec, n_cores: int) -> AxisSizes:
    """Return random spatial factors that fit the cores; parts may be unequal and the last ones empty."""
    left = rng.choice([n_cores, n_cores, max(1, n_cores // 2), min(n_cores, 8)])
    f_op = [1] * len(spec.axes)
    for axis in rng.sample(range(len(f_op)), len(f_op)):
        if spec.axes[axis].is_splittable:
            f_op[axis] = rng.choice(
                [f for f in (1, 1, 2, 2, 3, 4, 5, 6, 8) if f <= min(left, spec.extents[axis])]
            )
            left //= f_op[axis]
    return tuple(f_op)


def random_ft(rng: Random, spec: OperatorSpec, f_op: AxisSizes) -> tuple[AxisSizes, ...]:
    """Return random temporal factors whose products divide the sharers; blocks of compound dims get equal ones."""
    rows: list[list[int]] = []
    for operand in spec.rotatable:
        sharers = prod(f for axis, f in enumerate(f_op) if axis not in operand.axes)
        row = [1] * len(f_op)
        for axis in rng.sample(sorted(operand.axes), len(operand.axes)):
            largest = 2 * -(-spec.extents[axis] // f_op[axis])
            row[axis] = rng.choice([1, *(d for d in divisors(sharers) if d <= largest)])
            sharers //= row[axis]
        rows.append(row)
    for axis in range(len(f_op)):
        compound = [row[axis] for row, o in zip(rows, spec.rotatable, strict=True) if not _may_wrap(o, axis)]
        common = max(compound, default=1)
        # Several tensors with one axis in a compound dim: all follow the first that rotates, or rest.
        if common > 1:
            for row in rows:
                row[axis] = common if row[axis] == common else 1
    return tuple(tuple(row) for row in rows)


def _may_wrap(operand: Operand, axis: int) -> bool:
    """Return whether the operand's windows along an axis may be circular."""
    return axis not in operand.axes or axis in operand.simple_axes


def random_plan(rng: Random, spec: OperatorSpec, n_cores: int) -> OperatorPlan:
    """Return a random legal plan, without rotation if no placement is found for what was drawn."""
    for _ in range(TRIES):
        f_op = random_partition(rng, spec, n_cores)
        ft = random_ft(rng, spec, f_op)
        if all(t == 1 for row in ft for t in row) and rng.random() < 0.8:
            continue
        placed = random_placement(rng, spec, aligned_plan(rng, spec, f_op, ft), n_cores)
        if placed is not None:
            return placed
    still = tuple((1,) * len(spec.axes) for _ in spec.rotatable)
    return aligned_plan(rng, spec, random_partition(rng, spec, n_cores), still)


def random_placement(
    rng: Random, spec: OperatorSpec, plan: OperatorPlan, n_cores: int
) -> OperatorPlan | None:
    """Return a plan with random phases that are legal, None if none of those drawn are."""
    for _ in range(TRIES):
        placed = replace(plan, phases=_random_phases(rng, spec, plan))
        if not verify_operator(spec, placed, n_cores):
            return placed
    return None


def aligned_plan(rng: Random, spec: OperatorSpec, f_op: AxisSizes, ft: tuple[AxisSizes, ...]) -> OperatorPlan:
    """Return the plan of a partition without phases, its loops and cores in any order."""
    multiples = [lcm(*(row[axis] for row in ft)) for axis in range(len(f_op))]
    parts = [-(-extent // f) for extent, f in zip(spec.extents, f_op, strict=True)]
    lengths = tuple(-(-part // m) * m for part, m in zip(parts, multiples, strict=True))
    steps = tuple(max(row[axis] for row in ft) for axis in range(len(f_op)))
    rotating = [axis for axis, n in enumerate(steps) if n > 1]
    sharers = prod(f for axis, f in enumerate(f_op) if axis not in spec.output.axes)
    return OperatorPlan(
        f_op=f_op,
        lengths=lengths,
        ft=ft,
        rp=tuple(length // n if n > 1 else 0 for length, n in zip(lengths, steps, strict=True)),
        steps=steps,
        loop_order=tuple(rng.sample(rotating, len(rotating))),
        phases=tuple(() for _ in f_op),
        core_order=tuple(rng.sample(range(len(f_op)), len(f_op))),
        reduce=_random_reduce(rng, spec, sharers // prod(ft[-1])),
    )


def n_sharing(spec: OperatorSpec, plan: OperatorPlan) -> int:
    """Return how many cores have sums of the same elements."""
    return prod(f for axis, f in enumerate(plan.f_op) if axis not in spec.output.axes)


def _random_reduce(rng: Random, spec: OperatorSpec, n_members: int) -> Reduce:
    """Return how partial sums on some cores are combined; the smallest shift buffers take few members at once."""
    if n_members == 1:
        return "none"
    fits = (n_members - 1) * size_bytes(spec.acc_dtype) <= LEAST_SHIFT_BUFFER_BYTES
    return rng.choice(["scatter", "scatter", "all"]) if fits else "scatter"


def _random_phases(rng: Random, spec: OperatorSpec, plan: OperatorPlan) -> tuple[tuple[PhaseTerm, ...], ...]:
    """Return a guess: per rotating axis one digit for each tensor that rotates along it, or one for all of them."""
    digit_order = {slot: rng.sample(range(len(plan.f_op)), len(plan.f_op)) for slot in range(len(plan.ft))}
    missing = {
        slot: tuple(
            axis
            for axis in rng.sample(range(len(plan.f_op)), len(plan.f_op))
            if plan.f_op[axis] > 1 and axis not in operand.axes
        )
        for slot, operand in enumerate(spec.rotatable)
    }
    phases: list[tuple[PhaseTerm, ...]] = []
    for axis, length in enumerate(plan.lengths):
        slots = [slot for slot, row in enumerate(plan.ft) if row[axis] > 1]
        if slots and rng.random() < 0.3:
            modulus = lcm(*(plan.ft[slot][axis] for slot in slots))
            term = PhaseTerm(missing[rng.choice(slots)], 1, modulus, length // modulus, length % 2 == 0)
            phases.append((term,))
            continue
        terms: list[PhaseTerm] = []
        for slot in slots:
            inner = digit_order[slot][: digit_order[slot].index(axis)]
            divisor = prod(plan.ft[slot][other] for other in inner)
            terms.append(
                PhaseTerm(
                    missing[slot],
                    divisor,
                    plan.ft[slot][axis],
                    length // plan.ft[slot][axis],
                    length % 2 == 0,
                )
            )
        phases.append(tuple(terms))
    return tuple(phases)


def random_module(rng: Random, graph: Graph, chip: ChipSpec) -> ModulePlan:
    """Return a random legal plan of a graph, half of the time with buffers as tight as the planner makes them."""
    plans = tuple(random_plan(rng, spec, chip.n_cores) for spec in graph.operators)
    plan = lay_out(rng, graph, plans, chip)
    return repacked(plan, chip) if rng.random() < 0.5 else plan


def repacked(plan: ModulePlan, chip: ChipSpec) -> ModulePlan:
    """Return a module with the planner's buffers: lifetimes by phase, and results in place of operands."""
    needed = last_moments(plan.graph, plan.operators)
    layouts = {layout.value: layout for layout in (*plan.weight_layouts, *plan.input_layouts)}
    layouts = {value: layout for value, layout in layouts.items() if value in needed}
    read = replace(
        plan,
        weight_layouts=tuple(layout for layout in plan.weight_layouts if layout.value in layouts),
        input_layouts=tuple(layout for layout in plan.input_layouts if layout.value in layouts),
    )
    return DataRoom(chip)(read)


def lay_out(rng: Random, graph: Graph, plans: tuple[OperatorPlan, ...], chip: ChipSpec) -> ModulePlan:
    """Return operators with given plans as a module: layouts, arrivals and addresses; cycles and traffic are 0."""
    weights = tuple(_idle_layout(rng, graph, plans, tensor.name, chip) for tensor in graph.weights)
    inputs = tuple(ValueLayout("linear", tensor.name, chip.n_cores, tensor.dtype) for tensor in graph.inputs)
    outputs = tuple(
        ValueLayout(
            "operand",
            spec.output.name,
            plan.n_cores,
            spec.output.dtype,
            spec.name,
            len(spec.operands),
            plan,
            r,
        )
        for spec, plan in zip(graph.operators, plans, strict=True)
        for r in [1 if plan.reduce == "all" else _replicas(spec, plan)]
    )
    layouts = {layout.value: layout for layout in (*weights, *inputs, *outputs)}
    operators: list[ScheduledOperator] = []
    for step, (spec, plan) in enumerate(zip(graph.operators, plans, strict=True)):
        arrivals = tuple(
            _arrival(rng, graph, layouts, step, plan, number) for number in range(len(spec.operands))
        )
        arrivals = _one_rotation_each(spec, plan, arrivals)
        operators.append(scheduled_operator(spec, CostedPlan(plan, Cycles(), 0, 0), arrivals, outputs[step]))
    buffers = _addressed(_buffers(graph, tuple(operators), weights, inputs, chip), chip)
    peak = most_bytes(buffers, chip.reserved_bytes)
    return ModulePlan(
        chip.name,
        graph,
        tuple(operators),
        weights,
        inputs,
        buffers,
        peak,
        chip.sram_bytes,
        chip.reserved_bytes,
    )


def _replicas(spec: OperatorSpec, plan: OperatorPlan) -> int:
    """Return on how many cores partial sums of one output window lie."""
    return prod(f for axis, f in enumerate(plan.f_op) if axis not in spec.output.axes) // prod(plan.ft[-1])


def _idle_layout(
    rng: Random, graph: Graph, plans: tuple[OperatorPlan, ...], weight: str, chip: ChipSpec
) -> ValueLayout:
    """Return a linear layout, or one like a reader's operand, cut over as many of its replicas as there are."""
    dtype = next(tensor.dtype for tensor in graph.weights if tensor.name == weight)
    readers = [
        (spec, plan, number)
        for spec, plan in zip(graph.operators, plans, strict=True)
        for number, operand in enumerate(spec.operands)
        if operand.name == weight
    ]
    linear = ValueLayout("linear", weight, chip.n_cores, dtype)
    if len(readers) != 1 or rng.random() < 0.3:
        return linear
    spec, plan, number = readers[0]
    whole = ValueLayout("operand", weight, plan.n_cores, dtype, spec.name, number, plan)
    n_elements = prod(spec.operands[number].shape)
    n_copies = int(movement.layout_map(spec, whole, n_elements).copies.max()) + 1
    scattered = replace(whole, scatter=rng.choice([1, 1, *divisors(n_copies)]))
    fitting = (scattered, whole)
    return next(
        (c for c in fitting if _is_whole(movement.layout_map(spec, c, n_elements), n_elements)), linear
    )


def _is_whole(home: movement.ElementMap, n_elements: int) -> bool:
    """Return whether every copy of a layout has every element."""
    n_copies = int(home.copies.max()) + 1
    return all(
        len(set(home.elements[home.copies == c].ravel()) - {-1}) == n_elements for c in range(n_copies)
    )


def _arrival(
    rng: Random, graph: Graph, layouts: dict[str, ValueLayout], step: int, plan: OperatorPlan, number: int
) -> Arrival:
    """Return how an operand arrives: in place where its value lies right and may be rotated away, else as a copy."""
    spec = graph.operators[step]
    operand = spec.operands[number]
    kind = "setup" if operand.role == "weight" else "relayout"
    copied = Arrival(number, kind, f"operand:{spec.name}:{number}")
    value = _renamed(graph, operand.name)
    layout = layouts.get(value)
    if layout is None or rng.random() < 0.3:
        return copied
    maker = next((s for s in graph.operators if s.name == layout.operator), None)
    home = movement.layout_map(maker, layout, prod(operand.shape)).elements
    wanted = movement.operand_elements(spec, plan, number).reshape(plan.n_cores, -1)
    if home.shape != wanted.shape or not np.array_equal(home, wanted) or operand.pad_value:
        return copied
    is_weight = value in {tensor.name for tensor in graph.weights}
    rotates = number < len(spec.inputs) and any(t > 1 for t in plan.ft[number])
    if is_weight:
        return Arrival(number, "in_place", f"idle:{value}")
    if rotates and _is_needed_after(graph, value, step):
        return copied
    is_input = value in {tensor.name for tensor in graph.inputs}
    return Arrival(number, "in_place", f"input:{value}" if is_input else f"value:{value}")


def _renamed(graph: Graph, value: str) -> str:
    """Return the value that `value` is a reshape of, itself if it is none: elements keep their numbers."""
    reshaped = {view.name: view.sources[0] for view in graph.views if view.kind == "reshape"}
    while value in reshaped:
        value = reshaped[value]
    return value


def _one_rotation_each(
    spec: OperatorSpec, plan: OperatorPlan, arrivals: tuple[Arrival, ...]
) -> tuple[Arrival, ...]:
    """Return the arrivals, later ones copied where an operand that rotates would share its buffer."""
    result: list[Arrival] = []
    for arrival in arrivals:
        sharing = [other for other in arrivals if other.buffer == arrival.buffer]
        rotates = any(o.operand < len(spec.inputs) and max(plan.ft[o.operand]) > 1 for o in sharing)
        if len(sharing) > 1 and rotates and arrival is not sharing[0]:
            arrival = Arrival(arrival.operand, "relayout", f"operand:{spec.name}:{arrival.operand}")
        result.append(arrival)
    return tuple(result)


def _is_needed_after(graph: Graph, value: str, step: int) -> bool:
    """Return whether a later operator or the model's result reads a value."""
    later = [o.name for spec in graph.operators[step + 1 :] for o in spec.operands]
    return any(value in graph.sources_of(name) for name in (*later, *(out.value for out in graph.outputs)))


def _buffers(
    graph: Graph,
    operators: tuple[ScheduledOperator, ...],
    weights: tuple[ValueLayout, ...],
    inputs: tuple[ValueLayout, ...],
    chip: ChipSpec,
) -> list[Buffer]:
    """Return all buffers of a module at address 0."""
    end = len(graph.operators) - 1
    shapes = graph.shape_by_value
    specs = {spec.name: spec for spec in graph.operators}
    found = [Buffer("shift", 0, chip.shift_buffer_bytes, 0, end)]
    for prefix, layouts in (("idle", weights), ("input", inputs)):
        for layout in layouts:
            home = movement.layout_map(specs.get(layout.operator), layout, prod(shapes[layout.value]))
            n_bytes = home.elements.shape[1] * size_bytes(layout.dtype)
            last = end if prefix == "idle" else _last_step(graph, layout.value)
            found.append(Buffer(f"{prefix}:{layout.value}", 0, n_bytes, 0, last))
    for step, (spec, scheduled) in enumerate(zip(graph.operators, operators, strict=True)):
        plan = scheduled.active.plan
        for arrival in scheduled.arrivals:
            if arrival.kind != "in_place":
                n_slots = prod(movement.operand_elements(spec, plan, arrival.operand).shape[1:])
                n_bytes = n_slots * size_bytes(spec.operands[arrival.operand].dtype)
                found.append(Buffer(arrival.buffer, 0, n_bytes, step, step))
        n_slots = prod(movement.operand_elements(spec, plan, len(spec.operands)).shape[1:])
        r = scheduled.output_layout.scatter
        if spec.epilogue is not None or _replicas(spec, plan) > 1:
            found.append(
                Buffer(f"accumulator:{spec.name}", 0, n_slots * size_bytes(spec.acc_dtype), step, step)
            )
        n_bytes = window_chunk(n_slots, r) * size_bytes(spec.output.dtype)
        found.append(
            Buffer(f"value:{spec.output.name}", 0, n_bytes, step, _last_step(graph, spec.output.name, step))
        )
    return found


def _last_step(graph: Graph, value: str, first: int = 0) -> int:
    """Return the last operator step that reads a value, the program's last for results of the model."""
    if any(value in graph.sources_of(out.value) for out in graph.outputs):
        return len(graph.operators) - 1
    steps = [
        i for i, s in enumerate(graph.operators) for o in s.operands if value in graph.sources_of(o.name)
    ]
    return max(steps, default=first)


def _addressed(buffers: list[Buffer], chip: ChipSpec) -> tuple[Buffer, ...]:
    """Return the buffers at the lowest addresses that no buffer alive at the same time has."""
    placed: list[Buffer] = []
    for buffer in buffers:
        address = chip.reserved_bytes
        for other in sorted(placed, key=lambda b: b.address_bytes):
            apart = buffer.last < other.first or other.last < buffer.first
            if (
                not apart
                and address < other.address_bytes + other.size_bytes
                and other.address_bytes < address + buffer.size_bytes
            ):
                address = -(-(other.address_bytes + other.size_bytes) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        placed.append(replace(buffer, address_bytes=address))
    return tuple(placed)
