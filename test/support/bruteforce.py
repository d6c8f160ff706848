"""Execution of a planned model element by element in plain dictionaries: slow, small, and without the planner's help.

Every core's memory maps a byte address to (value, number of the byte, size of the element), so that an element that
was overwritten in part, never written, or whose buffer has died cannot be read. Values are Python integers, and what
operators compute is a hash of exactly what they should read (`mixed`), so that results are equal only if every
element took part as often as it should. Anything a wrong plan can cause ends in `BrokenPlan` or a wrong result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import prod

from t10.chip import ChipSpec
from t10.core.dtypes import size_bytes
from t10.core.expression import AxisSizes, Operand, OperatorSpec
from t10.core.graph import Graph
from t10.core.plan import OperatorPlan
from t10.core.schedule import Layout, ModulePlan

Index = tuple[int, ...]
Values = Mapping[Index, int]
MODULUS = (1 << 61) - 1


class BrokenPlan(Exception):
    """The plan cannot be executed: something is read that is not there."""


def mixed(*parts: int) -> int:
    """Return a number that stands for a combination of numbers: different for different ones, in practice."""
    return hash(parts) % MODULUS


def text_number(text: str) -> int:
    """Return a number that stands for a text, the same in every process."""
    return mixed(*text.encode())


def combined(how: str, left: int | None, right: int) -> int:
    """Return two partial results combined; None is the neutral element."""
    if left is None:
        return right
    if how == "max":
        return max(left, right)
    if how == "min":
        return min(left, right)
    return (left + right) % MODULUS


def boxes(extents: AxisSizes) -> Iterator[Index]:
    """Yield all index tuples of a box in row-major order."""
    return product(*(range(extent) for extent in extents))


def expected(graph: Graph, given: Mapping[str, Values]) -> dict[str, dict[Index, int]]:
    """Return every result of a graph under `mixed`, without any plan."""
    values: dict[str, Values] = dict(given)
    for spec in graph.operators:
        result: dict[Index, int | None] = {}
        for point in boxes(spec.extents):
            term = mixed(*(element(graph, values, o, point) for o in spec.inputs))
            where = output_index(spec, point)
            result[where] = combined(spec.combine, result.get(where), term)
        values[spec.output.name] = {
            where: finished(spec, total, [element(graph, values, o, point) for o in spec.epilogue_inputs])
            for where, total in result.items()
            if total is not None
            for point in [_point_of(spec, where)]
        }
    return {out.name: {i: value_at(graph, values, out.value, i) for i in boxes(graph.shape_by_value[out.value])}
            for out in graph.outputs}  # fmt: skip


def output_index(spec: OperatorSpec, point: Index) -> Index:
    """Return where a point of the iteration space is written."""
    return tuple(point[dim.terms[0].axis] if dim.terms else dim.offset for dim in spec.output.dims)


def _point_of(spec: OperatorSpec, where: Index) -> Index:
    """Return a point that writes an output element, 0 along reduction axes."""
    point = [0] * len(spec.axes)
    for dim, index in zip(spec.output.dims, where, strict=True):
        for term in dim.terms:
            point[term.axis] = index
    return tuple(point)


def finished(spec: OperatorSpec, total: int, extra: list[int]) -> int:
    """Return the epilogue of a combined value."""
    return total if spec.epilogue is None else mixed(total, *extra)


def read_index(operand: Operand, point: Index) -> Index:
    """Return which element of an operand a point reads; it may lie outside."""
    return tuple(dim.offset + sum(t.coefficient * point[t.axis] for t in dim.terms) for dim in operand.dims)


def is_inside(operand: Operand, index: Index) -> bool:
    """Return whether an index lies in the operand's tensor."""
    return all(0 <= i < extent for i, extent in zip(index, operand.shape, strict=True))


def padding(operand: Operand) -> int:
    """Return the number that stands for an operand's padding."""
    return text_number(f"padding {operand.pad_value}")


def element(graph: Graph, values: Mapping[str, Values], operand: Operand, point: Index) -> int:
    """Return the value that a point reads of an operand."""
    index = read_index(operand, point)
    return value_at(graph, values, operand.name, index) if is_inside(operand, index) else padding(operand)


def value_at(graph: Graph, values: Mapping[str, Values], name: str, index: Index) -> int:
    """Return one element of a value, through views."""
    found = origin(graph, name, index)
    return found if isinstance(found, int) else values[found[0]][found[1]]


def origin(graph: Graph, name: str, index: Index) -> tuple[str, Index] | int:
    """Return which element of which input, weight or result a value's element is; a number for a constant."""
    view = next((view for view in graph.views if view.name == name), None)
    if view is None:
        return name, index
    shapes = graph.shape_by_value
    source, at = view.sources[0], index
    if view.kind == "reshape":
        at = unflatten(flatten(index, view.shape), shapes[source])
    elif view.kind == "transpose":
        at = tuple(index[view.permutation.index(d)] for d in range(len(index)))
    elif view.kind == "slice":
        at = tuple(o + s * i for o, s, i in zip(view.offsets, view.strides, index, strict=True))
    elif view.kind == "broadcast":
        at = tuple(index[d] for d in view.dims)
    elif view.kind == "concat":
        along = index[view.axis]
        for source in view.sources:
            if along < shapes[source][view.axis]:
                break
            along -= shapes[source][view.axis]
        at = (*index[: view.axis], along, *index[view.axis + 1 :])
    else:
        at = tuple(i - low for i, low in zip(index, view.low, strict=True))
        if not all(0 <= i < n for i, n in zip(at, shapes[source], strict=True)):
            return text_number(f"constant {view.value}")
    return origin(graph, source, at)


def flatten(index: Index, shape: tuple[int, ...]) -> int:
    """Return the row-major number of an index."""
    number = 0
    for i, extent in zip(index, shape, strict=True):
        number = number * extent + i
    return number


def unflatten(number: int, shape: tuple[int, ...]) -> Index:
    """Return the index of a row-major number."""
    index: list[int] = []
    for extent in reversed(shape):
        number, i = divmod(number, extent)
        index.append(i)
    return tuple(reversed(index))


@dataclass
class Machine:
    """Cores with memories of bytes; `live` are the buffers that may be touched now."""

    chip: ChipSpec
    n_cores: int
    memory: list[dict[int, tuple[int | None, int, int]]] = field(default_factory=list)
    live: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Start with empty memories."""
        self.memory = [{} for _ in range(self.n_cores)]

    def address(self, buffer: str, slot: int, size: int) -> int:
        """Return the address of a slot of a live buffer."""
        if buffer not in self.live:
            raise BrokenPlan(f"{buffer} is not alive")
        base, n_bytes = self.live[buffer]
        if not 0 <= slot * size <= n_bytes - size:
            raise BrokenPlan(f"slot {slot} is outside {buffer}")
        if base < self.chip.reserved_bytes or base + n_bytes > self.chip.sram_bytes:
            raise BrokenPlan(f"{buffer} is outside the memory")
        return base + slot * size

    def store(self, core: int, buffer: str, slot: int, size: int, value: int | None) -> None:
        """Write one element."""
        first = self.address(buffer, slot, size)
        for number in range(size):
            self.memory[core][first + number] = (value, number, size)

    def load(self, core: int, buffer: str, slot: int, size: int) -> int | None:
        """Return one element; it must be there whole."""
        first = self.address(buffer, slot, size)
        cells = [self.memory[core].get(first + number) for number in range(size)]
        head = cells[0]
        if head is None or any(cell != (head[0], number, size) for number, cell in enumerate(cells)):
            raise BrokenPlan(f"{buffer} slot {slot} on core {core} holds no whole element")
        return head[0]

    def load_computed(self, core: int, buffer: str, slot: int, size: int) -> int:
        """Return one element that must have been computed."""
        value = self.load(core, buffer, slot, size)
        if value is None:
            raise BrokenPlan(f"{buffer} slot {slot} on core {core} was never computed")
        return value

    def raw(self, core: int, buffer: str, slot: int, size: int) -> list[tuple[int | None, int, int] | None]:
        """Return the bytes of a slot as they are, even if they are no element: shifts move holes along."""
        first = self.address(buffer, slot, size)
        return [self.memory[core].get(first + number) for number in range(size)]

    def store_raw(
        self, core: int, buffer: str, slot: int, size: int, cells: list[tuple[int | None, int, int] | None]
    ) -> None:
        """Write the bytes of a slot."""
        first = self.address(buffer, slot, size)
        for number, cell in enumerate(cells):
            if cell is None:
                self.memory[core].pop(first + number, None)
            else:
                self.memory[core][first + number] = cell

    def clobber(self, core: int, n_bytes: int) -> None:
        """Overwrite the shift buffer with something in transit."""
        first = self.address("shift", 0, 1)
        for number in range(min(n_bytes, self.live["shift"][1])):
            self.memory[core][first + number] = (None, -1, 0)

    def enter(self, plan: ModulePlan, step: int) -> None:
        """Make the buffers of an operator step alive and forget the bytes that are in none."""
        self.live = {
            b.name: (b.address_bytes, b.size_bytes) for b in plan.buffers if b.first <= step <= b.last
        }
        kept: set[int] = set()
        for base, n_bytes in self.live.values():
            kept.update(range(base, base + n_bytes))
        for cells in self.memory:
            for gone in [address for address in cells if address not in kept]:
                del cells[gone]


class Placed:
    """One operator's plan on the cores: coordinates, starts and windows, by the definitions, one core at a time."""

    def __init__(self, spec: OperatorSpec, plan: OperatorPlan) -> None:
        self.spec, self.plan = spec, plan
        self.where: list[Index] = []
        for core in range(prod(plan.f_op)):
            digits = unflatten(core, tuple(plan.f_op[axis] for axis in plan.core_order))
            self.where.append(tuple(digits[plan.core_order.index(axis)] for axis in range(len(plan.f_op))))
        if len(set(self.where)) != len(self.where):
            raise BrokenPlan("two cores have the same coordinates")
        self.phase = [self._phase(where) for where in self.where]

    def _phase(self, where: Index) -> Index:
        result: list[int] = []
        for axis, terms in enumerate(self.plan.phases):
            phase = 0
            for term in terms:
                sigma = flatten(
                    tuple(where[a] for a in term.sharer_axes),
                    tuple(self.plan.f_op[a] for a in term.sharer_axes),
                )
                phase += (sigma // term.divisor) % term.modulus * term.stride
            result.append(phase % self.plan.lengths[axis])
        return tuple(result)

    def starts(self, core: int, row: AxisSizes, positions: Index) -> Index:
        """Return where the windows of an operand with temporal factors `row` start; 0 along whole axes."""
        return tuple(
            (phase + at * pace) % length if t > 1 else 0
            for phase, at, pace, length, t in zip(
                self.phase[core], positions, self.plan.rp, self.plan.lengths, row, strict=True
            )
        )

    def widths(self, row: AxisSizes) -> Index:
        """Return the window lengths of an operand with temporal factors `row`."""
        return tuple(length // t for length, t in zip(self.plan.lengths, row, strict=True))

    def slots(self, operand: Operand, row: AxisSizes) -> tuple[int, ...]:
        """Return the extents of a partition in slots."""
        widths = self.widths(row)
        return tuple(1 + sum(t.coefficient * (widths[t.axis] - 1) for t in dim.terms) for dim in operand.dims)

    def slot_of(self, operand: Operand, row: AxisSizes, starts: Index, local: Index) -> int:
        """Return the slot of the element that a local point reads."""
        widths = self.widths(row)
        index: list[int] = []
        for dim in operand.dims:
            if dim.is_simple:
                axis = dim.terms[0].axis
                if (local[axis] - starts[axis]) % self.plan.lengths[axis] >= widths[axis]:
                    raise BrokenPlan("a point outside the resident window")
                index.append(local[axis] % widths[axis])
            else:
                index.append(sum(t.coefficient * (local[t.axis] - starts[t.axis]) for t in dim.terms))
        shape = self.slots(operand, row)
        if not all(0 <= i < n for i, n in zip(index, shape, strict=True)):
            raise BrokenPlan("a point outside the stored block")
        return flatten(tuple(index), shape)

    def elements(self, core: int, operand: Operand, row: AxisSizes, positions: Index) -> list[Index]:
        """Return the element index, perhaps outside the tensor, in every slot."""
        starts, widths = self.starts(core, row, positions), self.widths(row)
        per_dim: list[list[int]] = []
        for dim in operand.dims:
            base = dim.offset + sum(
                t.coefficient * (self.where[core][t.axis] * self.plan.lengths[t.axis]) for t in dim.terms
            )
            if dim.is_simple:
                axis = dim.terms[0].axis
                held = [0] * widths[axis]
                for i in range(widths[axis]):
                    local = (starts[axis] + i) % self.plan.lengths[axis]
                    held[local % widths[axis]] = base + local
                per_dim.append(held)
            else:
                first = base + sum(t.coefficient * starts[t.axis] for t in dim.terms)
                reach = 1 + sum(t.coefficient * (widths[t.axis] - 1) for t in dim.terms)
                per_dim.append([first + i for i in range(reach)])
        return list(product(*per_dim))

    def key(self, core: int, operand: Operand, row: AxisSizes, positions: Index) -> tuple[Index, Index]:
        """Return what cores with the same window of the same sub-tensor have in common."""
        own = sorted(operand.axes)
        starts = self.starts(core, row, positions)
        return tuple(self.where[core][a] for a in own), tuple(starts[a] for a in own)

    def rank(self, core: int, operand: Operand, row: AxisSizes, positions: Index) -> int:
        """Return how many cores with a smaller number hold the same window."""
        key = self.key(core, operand, row, positions)
        return sum(self.key(other, operand, row, positions) == key for other in range(core))

    def final(self) -> Index:
        """Return the positions after the nest, by walking it."""
        return [positions for positions, _, _ in self.nest()][-1]

    def nest(self) -> Iterator[tuple[Index, int, int]]:
        """Yield (positions, axis that advanced, direction) of every sub-task; axis -1 for the first."""
        yield from self._loops(list(self.plan.loop_order), [0] * len(self.plan.f_op), {}, [-1, 0])

    def _loops(
        self, order: list[int], positions: list[int], way: dict[int, int], moved: list[int]
    ) -> Iterator[tuple[Index, int, int]]:
        if not order:
            yield tuple(positions), moved[0], moved[1]
            return
        axis, inner = order[0], order[1:]
        direction = way.get(axis, 1)
        for step in range(self.plan.steps[axis]):
            if step:
                positions[axis] += direction
                moved[:] = [axis, direction]
            yield from self._loops(inner, positions, way, moved)
        way[axis] = -direction


class Run:
    """One execution of a planned model."""

    def __init__(self, plan: ModulePlan, chip: ChipSpec, given: Mapping[str, Values]) -> None:
        self.plan, self.graph, self.given = plan, plan.graph, given
        self.specs = {spec.name: spec for spec in plan.graph.operators}
        n_cores = max(chip.n_cores, *(prod(op.active.plan.f_op) for op in plan.operators))
        if n_cores > chip.n_cores:
            raise BrokenPlan("more cores than the chip has")
        self.machine = Machine(chip, n_cores)
        self.homes: dict[str, dict[Index, list[tuple[int, int]]]] = {}
        self.outside: dict[str, list[tuple[int, int, int]]] = {}
        self.buffer_by_value: dict[str, str] = {}

    def results(self) -> dict[str, dict[Index, int]]:
        """Return the model's results by public name, element by element."""
        self.machine.enter(self.plan, 0)
        self._load_given()
        for step, spec in enumerate(self.graph.operators):
            self.machine.enter(self.plan, step)
            self._operator(step, spec)
        return {
            out.name: {i: self._read(out.value, i) for i in boxes(self.graph.shape_by_value[out.value])}
            for out in self.graph.outputs
        }

    def _load_given(self) -> None:
        """Put weights and inputs where their layouts say; what pads a weight's operand comes with it."""
        for prefix, layouts in (("idle", self.plan.weight_layouts), ("input", self.plan.input_layouts)):
            for layout in layouts:
                buffer = f"{prefix}:{layout.value}"
                self._enter_layout(layout, buffer)
                size = size_bytes(layout.dtype)
                for index, places in self.homes[layout.value].items():
                    for core, slot in places:
                        self.machine.store(core, buffer, slot, size, self.given[layout.value][index])
                for core, slot, value in self.outside.get(layout.value, ()):
                    self.machine.store(core, buffer, slot, size, value)

    def _enter_layout(self, layout: Layout, buffer: str) -> None:
        """Note where every element of a value lies under a layout, and which slots lie outside the tensor."""
        shape = self.graph.shape_by_value[layout.value]
        homes: dict[Index, list[tuple[int, int]]] = {index: [] for index in boxes(shape)}
        if layout.plan is None:
            chunk = -(-prod(shape) // layout.n_cores)
            for number, index in enumerate(boxes(shape)):
                homes[index].append((number // chunk, number % chunk))
        else:
            spec = self.specs[layout.operator]
            placed = Placed(spec, layout.plan)
            operand, row, positions = self._operand(spec, placed, layout.operand)
            if operand.name != layout.value:
                raise BrokenPlan("a layout of another value")
            for core in range(len(placed.where)):
                held = placed.elements(core, operand, row, positions)
                length = -(-len(held) // layout.scatter)
                chunk = placed.rank(core, operand, row, positions) % layout.scatter
                for slot, index in enumerate(held[chunk * length : (chunk + 1) * length]):
                    if index in homes:
                        homes[index].append((core, slot))
                    else:
                        self.outside.setdefault(layout.value, []).append((core, slot, padding(operand)))
        self.homes[layout.value] = homes
        self.buffer_by_value[layout.value] = buffer

    def _operand(self, spec: OperatorSpec, placed: Placed, number: int) -> tuple[Operand, AxisSizes, Index]:
        """Return an operand with its temporal factors and the positions its layout stands for."""
        n_inputs = len(spec.inputs)
        if number < n_inputs:
            return spec.inputs[number], placed.plan.ft[number], (0,) * len(spec.axes)
        operand = spec.output if number == len(spec.operands) else spec.operands[number]
        return operand, placed.plan.ft[n_inputs], placed.final()

    def _read(self, value: str, index: Index) -> int:
        """Return an element of a value from where it lies; all its copies must agree."""
        found = origin(self.graph, value, index)
        if isinstance(found, int):
            return found
        name, at = found
        if name not in self.homes:
            raise BrokenPlan(f"{name} is not made yet")
        if not self.homes[name][at]:
            raise BrokenPlan(f"element {at} of {name} is stored nowhere")
        size, buffer = size_bytes(self._dtype(name)), self.buffer_by_value[name]
        found_values = {self.machine.load(core, buffer, slot, size) for core, slot in self.homes[name][at]}
        if len(found_values) != 1 or None in found_values:
            raise BrokenPlan(f"{name} was never computed, or its copies differ")
        return next(value for value in found_values if value is not None)

    def _dtype(self, value: str) -> str:
        given = {v.name: v.dtype for v in (*self.graph.inputs, *self.graph.weights)}
        return given.get(value) or next(
            s.output.dtype for s in self.graph.operators if s.output.name == value
        )

    def _operator(self, step: int, spec: OperatorSpec) -> None:
        scheduled = self.plan.operators[step]
        plan = scheduled.active.plan
        placed = Placed(spec, plan)
        buffers = self._arrivals(step, placed)
        n_inputs = len(spec.inputs)
        operands = [*spec.inputs, spec.output]
        replicas = self._replicas(placed)
        is_direct = spec.epilogue is None and replicas == 1
        value_buffer = f"value:{spec.output.name}"
        acc = value_buffer if is_direct else f"accumulator:{spec.name}"
        sizes = [size_bytes(o.dtype) for o in spec.inputs] + [size_bytes(spec.acc_dtype)]
        names = [*(buffers[i] for i in range(n_inputs)), acc]
        for core in range(len(placed.where)):
            for slot in range(prod(placed.slots(spec.output, plan.ft[n_inputs]))):
                self.machine.store(core, acc, slot, sizes[-1], None)
        positions = (0,) * len(spec.axes)
        for after, axis, direction in placed.nest():
            if axis >= 0:
                for number, operand in enumerate(operands):
                    if plan.ft[number][axis] > 1:
                        self._shift(
                            placed, operand, number, names[number], sizes[number], positions, axis, direction
                        )
            positions = after
            self._sub_task(placed, names, sizes, positions)
        self._finish(placed, buffers, acc, value_buffer, positions, replicas)
        self._go_home(step, placed, names, sizes, positions)
        layout = scheduled.output_layout
        self._enter_layout(layout, value_buffer)

    def _arrivals(self, step: int, placed: Placed) -> dict[int, str]:
        """Copy the operands to their buffers; return the buffer of every operand."""
        spec, scheduled = placed.spec, self.plan.operators[step]
        buffers = {arrival.operand: arrival.buffer for arrival in scheduled.arrivals}
        if set(buffers) != set(range(len(spec.operands))) or len(buffers) != len(scheduled.arrivals):
            raise BrokenPlan("operands that do not arrive once")
        copies: list[tuple[int, str, int, int, int]] = []
        for arrival in scheduled.arrivals:
            if arrival.kind == "in_place":
                continue
            operand, row, positions = self._operand(spec, placed, arrival.operand)
            size = size_bytes(operand.dtype)
            for core in range(len(placed.where)):
                for slot, index in enumerate(placed.elements(core, operand, row, positions)):
                    value = self._read(operand.name, index) if is_inside(operand, index) else padding(operand)
                    copies.append((core, arrival.buffer, slot, size, value))
        for core, buffer, slot, size, value in copies:
            self.machine.store(core, buffer, slot, size, value)
        return buffers

    def _sub_task(self, placed: Placed, names: list[str], sizes: list[int], positions: Index) -> None:
        """Compute one box on every core."""
        spec, plan = placed.spec, placed.plan
        operands = [*spec.inputs, spec.output]
        for core, where in enumerate(placed.where):
            ranges = [
                [
                    (placed.phase[core][a] + positions[a] * plan.rp[a] + i) % plan.lengths[a]
                    for i in range(plan.rp[a])
                ]
                if plan.steps[a] > 1
                else list(range(plan.lengths[a]))
                for a in range(len(spec.axes))
            ]
            starts = [placed.starts(core, row, positions) for row in plan.ft]
            for local in product(*ranges):
                point = tuple(w * length + i for w, length, i in zip(where, plan.lengths, local, strict=True))
                if any(i >= n for i, n in zip(point, spec.extents, strict=True)):
                    continue
                slots = [
                    placed.slot_of(o, row, start, local)
                    for o, row, start in zip(operands, plan.ft, starts, strict=True)
                ]
                read = [
                    self.machine.load_computed(core, name, slot, size)
                    for name, slot, size in zip(names[:-1], slots, sizes, strict=False)
                ]
                before = self.machine.load(core, names[-1], slots[-1], sizes[-1])
                total = combined(spec.combine, before, mixed(*read))
                self.machine.store(core, names[-1], slots[-1], sizes[-1], total)

    def _shift(
        self,
        placed: Placed,
        operand: Operand,
        number: int,
        buffer: str,
        size: int,
        positions: Index,
        axis: int,
        direction: int,
    ) -> None:
        """Move one operand by rp along an axis on all cores at once, from ring neighbour to ring neighbour."""
        plan, row = placed.plan, placed.plan.ft[number]
        width, pace, length = placed.widths(row)[axis], plan.rp[axis], plan.lengths[axis]
        cores = range(len(placed.where))
        key_of = [
            (*placed.key(core, operand, row, positions), placed.rank(core, operand, row, positions))
            for core in cores
        ]
        own = sorted(operand.axes)
        moves: list[tuple[int, int, list[tuple[int | None, int, int] | None]]] = []
        whole = any(axis in dim.axes and not dim.is_simple for dim in operand.dims)
        shape = placed.slots(operand, row)
        for core in cores:
            part, starts, rank = key_of[core]
            beyond = tuple(
                (s + direction * width) % length if a == axis else s for a, s in zip(own, starts, strict=True)
            )
            sender = key_of.index((part, beyond, rank))
            start = starts[own.index(axis)]
            freed = [(start + i) % length % width for i in range(pace)] if direction > 0 else [
                (start - 1 - i) % length % width for i in range(pace)]  # fmt: skip
            for slot, place in enumerate(boxes(shape)):
                along = [p for dim, p in zip(operand.dims, place, strict=True) if axis in dim.axes]
                if whole or all(p in freed for p in along):
                    moves.append((core, slot, self.machine.raw(sender, buffer, slot, size)))
        for core in cores:
            self.machine.clobber(core, len(moves) * size // len(cores))
        for core, slot, cells in moves:
            self.machine.store_raw(core, buffer, slot, size, cells)

    def _replicas(self, placed: Placed) -> int:
        sharers = prod(f for a, f in enumerate(placed.plan.f_op) if a not in placed.spec.output.axes)
        return sharers // prod(placed.plan.ft[len(placed.spec.inputs)])

    def _finish(
        self,
        placed: Placed,
        buffers: dict[int, str],
        acc: str,
        value_buffer: str,
        positions: Index,
        replicas: int,
    ) -> None:
        """Combine partial sums over the cores of one window, and apply the epilogue to each core's chunk."""
        spec, plan = placed.spec, placed.plan
        n_inputs = len(spec.inputs)
        row = plan.ft[n_inputs]
        if plan.reduce != ("scatter" if replicas > 1 else "none"):
            raise BrokenPlan("partial sums are not combined")
        acc_size, size = size_bytes(spec.acc_dtype), size_bytes(spec.output.dtype)
        stores: list[tuple[int, int, int | None]] = []
        for core, where in enumerate(placed.where):
            key = placed.key(core, spec.output, row, positions)
            group = [c for c in range(len(placed.where)) if placed.key(c, spec.output, row, positions) == key]
            rank = group.index(core)
            held = placed.elements(core, spec.output, row, positions)
            length = -(-len(held) // replicas)
            members = group[:replicas]
            for slot, index in list(enumerate(held))[rank * length : (rank + 1) * length]:
                if not is_inside(spec.output, index):
                    continue
                total: int | None = None
                for member in members:
                    part = self.machine.load(member, acc, slot, acc_size)
                    total = total if part is None else combined(spec.combine, total, part)
                if total is None:
                    raise BrokenPlan("an element of the result that nothing was added to")
                point = _point_of(spec, index)
                local = tuple(p - w * n for p, w, n in zip(point, where, plan.lengths, strict=True))
                extra: list[int] = []
                for number, operand in enumerate(spec.epilogue_inputs, n_inputs):
                    at = placed.slot_of(operand, row, placed.starts(core, row, positions), local)
                    extra.append(
                        self.machine.load_computed(core, buffers[number], at, size_bytes(operand.dtype))
                    )
                stores.append((core, slot - rank * length, finished(spec, total, extra)))
        if acc == value_buffer:
            return
        for core in range(len(placed.where) if replicas > 1 else 0):
            self.machine.clobber(core, prod(placed.slots(spec.output, row)) * acc_size)
        for core, slot, value in stores:
            self.machine.store(core, value_buffer, slot, size, value)

    def _go_home(
        self, step: int, placed: Placed, names: list[str], sizes: list[int], positions: Index
    ) -> None:
        """Send weights that rotated in their idle place back to where they started."""
        spec, plan = placed.spec, placed.plan
        for arrival in self.plan.operators[step].arrivals:
            number = arrival.operand
            if (
                arrival.kind != "in_place"
                or number >= len(spec.inputs)
                or not arrival.buffer.startswith("idle:")
            ):
                continue
            now = positions
            for axis in plan.loop_order:
                if plan.ft[number][axis] > 1 and now[axis] == plan.steps[axis] - 1:
                    operand = spec.inputs[number]
                    self._shift(placed, operand, number, names[number], sizes[number], now, axis, 1)
                    now = tuple(0 if a == axis else p for a, p in enumerate(now))
