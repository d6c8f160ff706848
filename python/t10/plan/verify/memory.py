"""Is every buffer there, large enough, alive as long as it is read, inside the memory, and alone in its bytes?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from t10.chip.spec import ChipSpec
from t10.core.dtypes import size_bytes
from t10.core.expression import Operand, OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.products import hands_on_rounded
from t10.core.schedule import PHASES, Buffer, ModulePlan, moment
from t10.core.tile import ALIGNMENT_BYTES
from t10.plan.verify.fetches import fetched_from
from t10.plan.verify.placed import layout_slots, operand_slots
from t10.plan.verify.uses import Uses
from t10.plan.verify.violation import Violation
from t10.plan.verify.windows import output_chunks, output_replicas


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes that must be there: buffer `name` of `size_bytes`, from `first` to `last` (see `core.schedule.moment`)."""

    name: str
    size_bytes: int
    first: int
    last: int


def memory_violations(plan: ModulePlan, chip: ChipSpec, uses: Uses) -> Iterator[Violation]:
    """Yield buffers that are missing, too small, dead too early, outside the memory or over each other."""
    buffers: dict[str, Buffer] = {}
    for buffer in plan.buffers:
        if buffer.name in buffers:
            yield Violation(buffer.name, "buffers", "two buffers of this name", "one")
        buffers[buffer.name] = buffer
        yield from _place_rules(buffer, plan.reserved_bytes, chip)
    for need in needs(plan, chip, uses):
        yield from _need_rules(need, buffers.get(need.name))
    yield from _overlaps(plan)
    yield from _totals(plan, chip)


def needs(plan: ModulePlan, chip: ChipSpec, uses: Uses) -> Iterator[Need]:
    """Yield every buffer that the execution of a module touches, with the size and the moments it takes."""
    graph = plan.graph
    names = {buffer.name for buffer in plan.buffers}
    end = moment(len(graph.operators) - 1, "finish")
    fetched = fetched_from(plan, uses)
    for prefix, layouts in (("idle", plan.weight_layouts), ("input", plan.input_layouts)):
        for layout in layouts:
            n_elements = 1
            for extent in uses.shapes[layout.value]:
                n_elements *= extent
            n_slots = layout_slots(layout, uses.makers.of(layout), n_elements)
            first, until = 0, end
            if prefix == "input" or layout.value in fetched:
                first, until = fetched.get(layout.value, 0), _last_read(plan, uses, layout.value, 0)
            n_bytes = n_slots * size_bytes(layout.dtype)
            yield Need(f"{prefix}:{layout.value}", n_bytes, first, until)
    for step, (spec, scheduled) in enumerate(zip(graph.operators, plan.operators, strict=True)):
        active = scheduled.active.plan
        if active.loop_order or output_replicas(spec, active) > 1 or hands_on_rounded(spec):
            n_bytes = max(chip.shift_buffer_bytes, _least_landing_bytes(spec, active))
            yield Need("shift", n_bytes, moment(step, "nest"), moment(step, "nest"))
        for arrival in scheduled.arrivals:
            operand = spec.operands[arrival.operand]
            n_bytes = operand_slots(spec, active, arrival.operand) * size_bytes(operand.dtype)
            until = moment(step, "nest" if arrival.operand < len(spec.inputs) else "finish")
            yield Need(arrival.buffer, n_bytes, moment(step, "arrive"), until)
        if chip.overlaps and (n_bytes := _second_bytes(spec, active)):
            yield Need(f"second:{spec.name}", n_bytes, moment(step, "nest"), moment(step, "nest"))
        due = _last_read(plan, uses, spec.output.name, moment(step, "finish"))
        yield from _result_needs(spec, active, step, due, f"accumulator:{spec.name}" in names)


def _second_bytes(spec: OperatorSpec, plan: OperatorPlan) -> int:
    """Return the bytes of a further window of every input that rotates: it arrives while a step reads the first."""
    total = 0
    for number, operand in enumerate(spec.inputs):
        if any(t > 1 for t in plan.ft[number]):
            n_bytes = operand_slots(spec, plan, number) * size_bytes(operand.dtype)
            total += n_bytes + -n_bytes % ALIGNMENT_BYTES
    return total


def _least_landing_bytes(spec: OperatorSpec, plan: OperatorPlan) -> int:
    """Return the least bytes of the shift buffer: an all-reduce takes an element of every other member at once."""
    others = output_replicas(spec, plan) - 1
    return others * size_bytes(spec.acc_dtype) if plan.reduce == "all" else 0


def _last_read(plan: ModulePlan, uses: Uses, value: str, unread: int) -> int:
    """Return the last moment at which a value's bytes are read where they lie, `unread` if they never are.

    What is copied away is read as operands arrive, an input of the nest until it ends, an epilogue input after it.
    """
    if value in uses.kept:
        return moment(len(plan.operators) - 1, "finish")
    last = unread
    for read in uses.reads.get(value, ()):
        is_input = read.operand < len(plan.graph.operators[read.step].inputs)
        arrivals = plan.operators[read.step].arrivals
        is_copied = any(a.operand == read.operand and a.kind != "in_place" for a in arrivals)
        last = max(last, moment(read.step, "arrive" if is_copied else "nest" if is_input else "finish"))
    return last


def _result_needs(
    spec: OperatorSpec, plan: OperatorPlan, step: int, last: int, has_accumulator: bool
) -> Iterator[Need]:
    """Yield the accumulator, unless the result itself serves as one, and the result's part of each core."""
    replicas = output_replicas(spec, plan)
    n_whole = operand_slots(spec, plan, len(spec.operands))
    n_slots = -(-n_whole // output_chunks(spec, plan))
    is_apart = has_accumulator or replicas > 1 or spec.acc_dtype != spec.output.dtype
    made = moment(step, "finish" if is_apart else "nest")
    yield Need(f"value:{spec.output.name}", n_slots * size_bytes(spec.output.dtype), made, last)
    if is_apart:
        n_bytes = n_whole * size_bytes(spec.acc_dtype)
        yield Need(f"accumulator:{spec.name}", n_bytes, moment(step, "nest"), moment(step, "finish"))


def _place_rules(buffer: Buffer, reserved_bytes: int, chip: ChipSpec) -> Iterator[Violation]:
    """A buffer lies aligned between the bytes that are kept for the program and the last that data may have."""
    low, high = buffer.address_bytes, buffer.address_bytes + buffer.size_bytes
    if low % ALIGNMENT_BYTES:
        yield Violation(buffer.name, "alignment", f"address {low}", f"a multiple of {ALIGNMENT_BYTES}")
    if low < reserved_bytes or high > chip.data_end_bytes:
        expected = f"within [{reserved_bytes}, {chip.data_end_bytes})"
        yield Violation(buffer.name, "capacity", f"bytes [{low}, {high})", expected)


def _need_rules(need: Need, buffer: Buffer | None) -> Iterator[Violation]:
    """What is touched exists, is large enough and lives long enough."""
    if buffer is None:
        yield Violation(
            need.name, "buffers", "no such buffer", f"{need.size_bytes} bytes at step {need.first}"
        )
        return
    if buffer.size_bytes < need.size_bytes:
        yield Violation(need.name, "size", f"{buffer.size_bytes} bytes", f"at least {need.size_bytes}")
    if buffer.first_moment > need.first or buffer.last_moment < need.last:
        found = f"alive from {_when(buffer.first_moment)} to {_when(buffer.last_moment)}"
        yield Violation(
            need.name, "lifetime", found, f"needed from {_when(need.first)} to {_when(need.last)}"
        )


def _when(now: int) -> str:
    """Return a moment in words."""
    step, phase = divmod(now, len(PHASES))
    return f"{PHASES[phase]} of step {step}"


def _overlaps(plan: ModulePlan) -> Iterator[Violation]:
    """Buffers that are alive together have no byte in common, unless one takes over the other."""
    ordered = sorted((b for b in plan.buffers if b.size_bytes), key=lambda b: (b.address_bytes, b.name))
    for i, low in enumerate(ordered):
        end = low.address_bytes + low.size_bytes
        for high in ordered[i + 1 :]:
            if high.address_bytes >= end:
                break
            if low.first_moment <= high.last_moment and high.first_moment <= low.last_moment:
                if _takes_over(plan, low, high) or _takes_over(plan, high, low):
                    continue
                found = f"shares bytes [{high.address_bytes}, {end}) with {high.name} while both live"
                yield Violation(low.name, "overlap", found, "bytes of its own")


def _takes_over(plan: ModulePlan, new: Buffer, old: Buffer) -> bool:
    """Return whether a result goes on using an operand's bytes, replacing every slot just after its only read.

    That is so if both meet in one phase of the operator that makes the result; if no other core's partial results go
    into a slot; and if whatever this phase reads of the old buffer is read for the slot of the same number, once.
    """
    if (new.address_bytes, new.size_bytes) != (old.address_bytes, old.size_bytes):
        return False
    now, phase = new.first_moment, new.first_phase
    if old.last_moment != now or not 0 <= new.first < len(plan.operators) or _is_output(plan, old):
        return False
    spec, scheduled = plan.graph.operators[new.first], plan.operators[new.first]
    active = scheduled.active.plan
    if new.name != f"value:{spec.output.name}" or output_replicas(spec, active) > 1 or phase == "arrive":
        return False
    read = [a for a in scheduled.arrivals if a.buffer == old.name]
    in_phase = [a for a in read if (a.operand < len(spec.inputs)) == (phase == "nest")]
    if not in_phase or any(a.kind != "in_place" for a in read):
        return False
    # In the nest a point writes the slot it belongs to, whole: only where nothing is accumulated or rotated.
    rows = [active.ft[-1], *(active.ft[a.operand] for a in in_phase if a.operand < len(spec.inputs))]
    is_once = phase == "finish" or (spec.combine == "none" and all(t == 1 for row in rows for t in row))
    return is_once and all(_same_slots(spec, spec.operands[a.operand]) for a in in_phase)


def _is_output(plan: ModulePlan, buffer: Buffer) -> bool:
    """Return whether a buffer holds what the host reads as the model has run."""
    held = {source for output in plan.graph.outputs for source in plan.graph.sources_of(output.value)}
    return buffer.name.partition(":")[2] in held


def _same_slots(spec: OperatorSpec, operand: Operand) -> bool:
    """Return whether a point finds an operand's element in the slot its result goes to."""
    same_index = operand.dims == spec.output.dims
    return same_index and size_bytes(operand.dtype) == size_bytes(spec.output.dtype)


def _totals(plan: ModulePlan, chip: ChipSpec) -> Iterator[Violation]:
    """What the chip reserves is kept, the peak is the most bytes in use at once, the capacity all of the memory."""
    if plan.reserved_bytes < chip.reserved_bytes:
        expected = f"at least {chip.reserved_bytes}"
        yield Violation(plan.graph.name, "reserved", f"{plan.reserved_bytes} bytes", expected)
    most = plan.reserved_bytes + max((_in_use(plan, b.first_moment) for b in plan.buffers), default=0)
    if plan.peak_bytes != most:
        yield Violation(
            plan.graph.name, "peak", f"{plan.peak_bytes} bytes", f"{most}, the most in use at a moment"
        )
    if plan.capacity_bytes != chip.sram_bytes:
        yield Violation(plan.graph.name, "capacity", f"{plan.capacity_bytes} bytes", f"{chip.sram_bytes}")


def _in_use(plan: ModulePlan, now: int) -> int:
    """Return the bytes under all buffers that are alive at a moment, each byte once."""
    alive = sorted(
        (b.address_bytes, b.address_bytes + b.size_bytes)
        for b in plan.buffers
        if b.first_moment <= now <= b.last_moment
    )
    total = reached = 0
    for begin, end in alive:
        total += max(end - max(begin, reached), 0)
        reached = max(reached, end)
    return total
