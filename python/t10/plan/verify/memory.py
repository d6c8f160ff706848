"""Is every buffer there, large enough, alive as long as it is read, inside the memory, and alone in its bytes?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from t10.chip.spec import ChipSpec
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.schedule import Buffer, ModulePlan
from t10.plan.verify.placed import layout_slots, operand_slots
from t10.plan.verify.uses import Uses
from t10.plan.verify.violation import Violation
from t10.plan.verify.windows import output_replicas

ALIGNMENT_BYTES = 8
"""Every buffer starts at a multiple of this."""


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes that must be there: buffer `name` of `size_bytes`, from operator step `first` to `last`."""

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
        yield from _place_rules(buffer, chip)
    for need in needs(plan, chip, uses):
        yield from _need_rules(need, buffers.get(need.name))
    yield from _overlaps(plan.buffers)
    yield from _totals(plan, chip)


def needs(plan: ModulePlan, chip: ChipSpec, uses: Uses) -> Iterator[Need]:
    """Yield every buffer that the execution of a module touches, with the size and the steps it takes."""
    graph = plan.graph
    end = len(graph.operators) - 1
    for prefix, layouts in (("idle", plan.weight_layouts), ("input", plan.input_layouts)):
        for layout in layouts:
            n_elements = 1
            for extent in uses.shapes[layout.value]:
                n_elements *= extent
            n_slots = layout_slots(layout, uses.specs.get(layout.operator), n_elements)
            until = end if prefix == "idle" else uses.last.get(layout.value, 0)
            n_bytes = n_slots * size_bytes(layout.dtype)
            yield Need(f"{prefix}:{layout.value}", n_bytes, 0, until)
    for step, (spec, scheduled) in enumerate(zip(graph.operators, plan.operators, strict=True)):
        active = scheduled.active.plan
        if active.loop_order or output_replicas(spec, active) > 1:
            yield Need("shift", chip.shift_buffer_bytes, step, step)
        for arrival in scheduled.arrivals:
            operand = spec.operands[arrival.operand]
            n_bytes = operand_slots(spec, active, arrival.operand) * size_bytes(operand.dtype)
            yield Need(arrival.buffer, n_bytes, step, step)
        yield from _result_needs(spec, active, step, uses.last.get(spec.output.name, step))


def _result_needs(spec: OperatorSpec, plan: OperatorPlan, step: int, last: int) -> Iterator[Need]:
    """Yield the accumulator, unless it is the result itself, and the result's part of each core."""
    replicas = output_replicas(spec, plan)
    n_whole = operand_slots(spec, plan, len(spec.operands))
    n_slots = -(-n_whole // replicas)
    yield Need(f"value:{spec.output.name}", n_slots * size_bytes(spec.output.dtype), step, last)
    if spec.epilogue is not None or replicas > 1:
        yield Need(f"accumulator:{spec.name}", n_whole * size_bytes(spec.acc_dtype), step, step)


def _place_rules(buffer: Buffer, chip: ChipSpec) -> Iterator[Violation]:
    """A buffer lies aligned between the reserved bytes and the end of the memory."""
    low, high = buffer.address_bytes, buffer.address_bytes + buffer.size_bytes
    if low % ALIGNMENT_BYTES:
        yield Violation(buffer.name, "alignment", f"address {low}", f"a multiple of {ALIGNMENT_BYTES}")
    if low < chip.reserved_bytes or high > chip.sram_bytes:
        expected = f"within [{chip.reserved_bytes}, {chip.sram_bytes})"
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
    if buffer.first > need.first or buffer.last < need.last:
        found = f"alive at steps {buffer.first} to {buffer.last}"
        yield Violation(need.name, "lifetime", found, f"needed from {need.first} to {need.last}")


def _overlaps(buffers: tuple[Buffer, ...]) -> Iterator[Violation]:
    """Buffers that are alive together have no byte in common."""
    ordered = sorted((b for b in buffers if b.size_bytes), key=lambda b: (b.address_bytes, b.name))
    for i, low in enumerate(ordered):
        end = low.address_bytes + low.size_bytes
        for high in ordered[i + 1 :]:
            if high.address_bytes >= end:
                break
            if low.first <= high.last and high.first <= low.last:
                found = f"shares bytes [{high.address_bytes}, {end}) with {high.name} while both live"
                yield Violation(low.name, "overlap", found, "bytes of its own")


def _totals(plan: ModulePlan, chip: ChipSpec) -> Iterator[Violation]:
    """The stated peak is one past the highest address, and the capacity is the chip's memory."""
    top = max((b.address_bytes + b.size_bytes for b in plan.buffers), default=chip.reserved_bytes)
    if plan.peak_bytes != top:
        yield Violation(
            plan.graph.name, "peak", f"{plan.peak_bytes} bytes", f"{top}, the end of the last buffer"
        )
    if plan.capacity_bytes != chip.sram_bytes:
        yield Violation(plan.graph.name, "capacity", f"{plan.capacity_bytes} bytes", f"{chip.sram_bytes}")
