"""Do two plans of one model, read from two files of a folder, say the same of what is executed?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from t10.core.graph import TensorValue
from t10.core.schedule import Buffer, ModulePlan, ScheduledOperator, ValueLayout


def disagreement(one: ModulePlan, other: ModulePlan) -> tuple[str, str, str] | None:
    """Return the first thing of which two plans say different things, and what each says of it; None if they agree.

    What operators compute is left out, and everything that only costs: whoever reads it looks where it is executed.
    """
    return next(((what, mine, theirs) for what, mine, theirs in _facts(one, other) if mine != theirs), None)


def _facts(one: ModulePlan, other: ModulePlan) -> Iterator[tuple[str, str, str]]:
    """Yield what both state, in words: equal words mean the same is done."""
    yield "the chip", one.chip, other.chip
    for kind, mine, theirs in (
        ("inputs", one.graph.inputs, other.graph.inputs),
        ("weights", one.graph.weights, other.graph.weights),
    ):
        yield f"the {kind}", _tensors(mine), _tensors(theirs)
    yield "the operators", _names(one), _names(other)
    yield "fetches from off-chip memory", _fetches(one), _fetches(other)
    for mine, theirs in zip(one.operators, other.operators, strict=True):
        yield f"the plan of {mine.name}", *_plans(mine, theirs)
        yield f"how operands of {mine.name} arrive", _arrivals(mine), _arrivals(theirs)
        waits = str(mine.active.cycles.wait), str(theirs.active.cycles.wait)
        yield f"the cycles that {mine.name} waits for off-chip memory", *waits
        yield f"where the result of {mine.name} lies", *_layouts([mine.output_layout], [theirs.output_layout])
    yield "where weights rest", *_layouts(one.weight_layouts, other.weight_layouts)
    yield "where inputs lie", *_layouts(one.input_layouts, other.input_layouts)
    for what in ("reserved_bytes", "peak_bytes", "capacity_bytes"):
        yield what, str(getattr(one, what)), str(getattr(other, what))
    buffers = ({b.name: _place(b) for b in plan.buffers} for plan in (one, other))
    mine, theirs = buffers
    for name in sorted({*mine, *theirs}):
        yield f"the buffer {name}", mine.get(name, "not there"), theirs.get(name, "not there")


def _tensors(tensors: Sequence[TensorValue]) -> str:
    return ", ".join(sorted(f"{t.name} {'x'.join(map(str, t.shape))} {t.dtype}" for t in tensors))


def _names(plan: ModulePlan) -> str:
    return ", ".join(operator.name for operator in plan.operators)


def _fetches(plan: ModulePlan) -> str:
    return ", ".join(f"{fetch.operator} from step {fetch.first}" for fetch in plan.fetches) or "none"


def _plans(one: ScheduledOperator, other: ScheduledOperator) -> tuple[str, str]:
    mine, theirs = one.active.plan, other.active.plan
    return ("", "") if mine.is_same(theirs) else (str(mine), str(theirs))


def _arrivals(operator: ScheduledOperator) -> str:
    found = sorted((each.operand, each.kind, each.buffer) for each in operator.arrivals)
    return ", ".join(f"{number} {kind} in {buffer}" for number, kind, buffer in found)


def _layouts(one: Sequence[ValueLayout], other: Sequence[ValueLayout]) -> tuple[str, str]:
    mine, theirs = {each.value: each for each in one}, {each.value: each for each in other}
    if mine.keys() != theirs.keys():
        return ", ".join(sorted(mine)), ", ".join(sorted(theirs))
    for value, layout in mine.items():
        if not _lies_same(layout, theirs[value]):
            return str(layout), str(theirs[value])
    return "", ""


def _lies_same(one: ValueLayout, other: ValueLayout) -> bool:
    if one.plan is None or other.plan is None:
        return one == other
    return one.plan.is_same(other.plan) and one == replace(other, plan=one.plan)


def _place(buffer: Buffer) -> str:
    lives = f"{buffer.first_phase} of step {buffer.first} to {buffer.last_phase} of step {buffer.last}"
    return f"{buffer.size_bytes} bytes at {buffer.address_bytes}, {lives}"
