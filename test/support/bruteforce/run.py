"""The execution itself: arrivals, sub-tasks, shifts, reduction, epilogue, one element at a time."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod

from support.bruteforce.machine import Machine
from support.bruteforce.placed import Placed
from support.bruteforce.symbols import (
    BrokenPlan,
    Index,
    Values,
    boxes,
    combined,
    finished,
    is_inside,
    mixed,
    origin,
    padding,
    point_of,
)
from t10.chip import ChipSpec
from t10.core.dtypes import size_bytes
from t10.core.expression import AxisSizes, Operand, OperatorSpec
from t10.core.schedule import ModulePlan, ValueLayout, moment


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
        self.machine.enter(self.plan, moment(0, "arrive"))
        self._load_given()
        for step, spec in enumerate(self.graph.operators):
            self.machine.enter(self.plan, moment(step, "arrive"))
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

    def _enter_layout(self, layout: ValueLayout, buffer: str) -> None:
        """Note where every element of a value lies under a layout, and which slots lie outside the tensor."""
        shape = self.graph.shape_by_value[layout.value]
        homes: dict[Index, list[tuple[int, int]]] = {index: [] for index in boxes(shape)}
        if layout.plan is None:
            chunk = _chunk(prod(shape), layout.n_cores)
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
                length = _chunk(len(held), layout.scatter)
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

    def _has(self, buffer: str) -> bool:
        return any(b.name == buffer for b in self.plan.buffers)

    def _operator(self, step: int, spec: OperatorSpec) -> None:
        scheduled = self.plan.operators[step]
        plan = scheduled.active.plan
        placed = Placed(spec, plan)
        buffers = self._arrivals(step, placed)
        n_inputs = len(spec.inputs)
        operands = [*spec.inputs, spec.output]
        replicas = self._replicas(placed)
        value_buffer, acc = f"value:{spec.output.name}", f"accumulator:{spec.name}"
        if replicas == 1 and spec.acc_dtype == spec.output.dtype and not self._has(acc):
            acc = value_buffer
        sizes = [size_bytes(o.dtype) for o in spec.inputs] + [size_bytes(spec.acc_dtype)]
        names = [*(buffers[i] for i in range(n_inputs)), acc]
        self.machine.enter(self.plan, moment(step, "nest"))
        for core in range(len(placed.where) if spec.combine != "none" else 0):
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
        self._go_home(step, placed, names, sizes, positions)
        self.machine.enter(self.plan, moment(step, "finish"))
        self._finish(placed, buffers, acc, value_buffer, positions, replicas)
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
                total = mixed(*read)
                if spec.combine != "none":
                    before = self.machine.load(core, names[-1], slots[-1], sizes[-1])
                    total = combined(spec.combine, before, total)
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
        if plan.reduce not in (("scatter", "all") if replicas > 1 else ("none",)):
            raise BrokenPlan("partial sums are not combined")
        acc_size, size = size_bytes(spec.acc_dtype), size_bytes(spec.output.dtype)
        stores: list[tuple[int, int, int | None]] = []
        for core, where in enumerate(placed.where):
            key = placed.key(core, spec.output, row, positions)
            group = [c for c in range(len(placed.where)) if placed.key(c, spec.output, row, positions) == key]
            rank = group.index(core)
            held = placed.elements(core, spec.output, row, positions)
            length = _chunk(len(held), replicas)
            members = group[:replicas]
            first, last = (0, len(held)) if plan.reduce == "all" else (rank * length, (rank + 1) * length)
            for slot, index in list(enumerate(held))[first:last]:
                if not is_inside(spec.output, index):
                    continue
                total: int | None = None
                for member in members:
                    part = self.machine.load(member, acc, slot, acc_size)
                    total = total if part is None else combined(spec.combine, total, part)
                if total is None:
                    raise BrokenPlan("an element of the result that nothing was added to")
                point = point_of(spec, index)
                local = tuple(p - w * n for p, w, n in zip(point, where, plan.lengths, strict=True))
                extra: list[int] = []
                for number, operand in enumerate(spec.epilogue_inputs, n_inputs):
                    at = placed.slot_of(operand, row, placed.starts(core, row, positions), local)
                    extra.append(
                        self.machine.load_computed(core, buffers[number], at, size_bytes(operand.dtype))
                    )
                stores.append((core, slot - first, finished(spec, total, extra)))
        if acc == value_buffer and spec.epilogue is None:
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


def _chunk(n_slots: int, n_parts: int) -> int:
    """Return the slots of a chunk: all, one, or an even number."""
    chunk = -(-n_slots // n_parts)
    return chunk if n_parts == 1 or chunk == 1 else 2 * -(-chunk // 2)
