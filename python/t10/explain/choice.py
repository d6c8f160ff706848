"""Why a model runs an operator by one plan of its front: what limits it, what its neighbours have to do with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from t10.chip import ChipSpec
from t10.core.movement import operand_of
from t10.core.overlap import second_name
from t10.core.plan import CostedPlan
from t10.core.schedule import Buffer, ModulePlan, ScheduledOperator
from t10.explain.front import front_numbers
from t10.explain.placement import Placed, placement_reasons
from t10.report.build import step_peaks
from t10.report.table import AS_PINNED, SMALLEST_GAP, count_text

KIB = 1024
LIMITS = {
    "compute": "computing: more cores, larger sub-tasks or fewer padded points would help",
    "shift": "shifting: less rotation (more memory) or larger pieces per shift would help",
    "reduce": "combining partial sums: fewer parts of the reduction axis would help",
    "relayout": "fetching activations: a layout that its producers leave would help",
    "setup": "setting up weights: keeping more of them ready (more memory) would help",
    "wait": "waiting for weights from off-chip memory: more bandwidth (--hbm-bandwidth), smaller weights, or more "
    "memory on the chip, in which they stay, would help",
}


@dataclass(frozen=True, slots=True)
class Moved:
    """What moves between two operators: an operand of `reader` that comes from `source`, and what that costs.

    `kind` is in_place, relayout or setup; bytes are the most any core receives; cycles are modelled.
    """

    source: str
    reader: str
    operand: str
    kind: str
    received_bytes: int
    fragments: int
    cycles: int


@dataclass(frozen=True, slots=True)
class Held:
    """Bytes of every core while the operator runs; `is_own` where they are its operands, accumulator or result."""

    buffer: str
    n_bytes: int
    is_own: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """`number` of the plan on its front of `n_front`, 0 where it is not on it; `reasons` are sentences.

    `shares` of the operator's cycles by kind; `limit` is the kind that takes most. Of the `capacity_bytes` of a core,
    `reserved_bytes` are code and stacks; `free_bytes` are left when most is in use while the operator runs.
    """

    number: int
    n_front: int
    limit: str
    shares: dict[str, float]
    reasons: tuple[str, ...]
    moved_in: tuple[Moved, ...]
    moved_out: tuple[Moved, ...]
    held: tuple[Held, ...]
    free_bytes: int
    reserved_bytes: int
    capacity_bytes: int


def explain_choice(plan: ModulePlan, step: int, chip: ChipSpec | None = None) -> Choice:
    """Return why operator number `step` of a planned model runs as it does; on `chip`, what its placement costs."""
    scheduled = plan.operators[step]
    front = scheduled.pareto
    own = next((priced for priced in front if priced.plan == scheduled.active.plan), scheduled.active)
    numbers = front_numbers(front)
    number = numbers[front.index(own)] if own in front else 0
    on_front = [priced for priced, place in zip(front, numbers, strict=True) if place]
    held = _held(plan, step)
    free = plan.capacity_bytes - step_peaks(plan)[step]
    cycles = scheduled.active.cycles
    shares = {kind: getattr(cycles, kind) / max(cycles.total, 1) for kind in LIMITS}
    limit = max(shares, key=lambda kind: shares[kind])
    moved_in = tuple(_moved_in(plan, scheduled))
    moved_out = tuple(_moved_out(plan, scheduled))
    reasons = (
        *_rank_reasons(on_front, own, free, is_on=number > 0),
        *(() if chip is None else placement_reasons(Placed.on(chip, plan), step, own.cycles)),
        *_layout_reasons(moved_in, moved_out),
        f"{shares[limit]:.0%} of its cycles go into {LIMITS[limit]}",
        *_whole_reasons(plan),
    )
    return Choice(
        number, len(on_front), limit, shares, reasons, moved_in, moved_out, held,
        free, plan.reserved_bytes, plan.capacity_bytes,
    )  # fmt: skip


def _rank_reasons(front: Sequence[CostedPlan], own: CostedPlan, free: int, *, is_on: bool) -> list[str]:
    """Return how the plan compares with its front, at the cycles that the table of the front shows."""
    if not front:
        return []
    if len(front) == 1 and is_on:
        return ["the only plan on its front, or pinned"]
    fastest = min(front, key=lambda priced: priced.cycles.total)
    plans = count_text(len(front), "plan")
    if own.cycles.total <= fastest.cycles.total:
        return [f"the fastest of the {plans} on its front"]
    more = fastest.active_bytes - own.active_bytes
    slower = own.cycles.total / max(fastest.cycles.total, 1) - 1
    text = f"alone, {slower:.1%} slower than the fastest of {plans} on its front"
    if more > max(free, 0):
        return [f"{text}, which needs {more / KIB:.1f} KiB more of every core: {free / KIB:.1f} KiB are free"]
    saved = f", with {more / KIB:.1f} KiB more" if more > 0 else ""
    return [f"{text}, which would fit{saved}, but was not the best choice with the data movement around it"]


def _layout_reasons(moved_in: Sequence[Moved], moved_out: Sequence[Moved]) -> list[str]:
    """Return what the layouts around it save or cost."""
    ready = [each for each in moved_in if each.kind == "in_place"]
    paid = sum(each.cycles for each in moved_in)
    reasons: list[str] = []
    if ready:
        reasons.append(
            f"{_names(ready)} already {'lies where it is' if len(ready) == 1 else 'lie where they are'} needed"
        )
    if paid:
        reasons.append(f"{paid:,} cycles bring {'the rest' if ready else 'what it reads'}")
    if moved_out:
        free = sum(each.kind == "in_place" for each in moved_out)
        cost = sum(each.cycles for each in moved_out)
        reasons.append(_readers(len(moved_out), free, cost))
    return reasons


def _readers(n_readers: int, n_free: int, cost: int) -> str:
    """Return what the readers of a result make of where it lies."""
    if n_free == n_readers:
        return (
            "its only reader uses the result where it lies"
            if n_readers == 1
            else "all readers use its result where it lies"
        )
    if not n_free:
        who = "its only reader pays" if n_readers == 1 else f"its {n_readers} readers pay"
        return f"{who} {cost:,} cycles to fetch the result"
    return f"{n_free} of {n_readers} readers use its result where it lies, the others pay {cost:,} cycles to fetch it"


def _whole_reasons(plan: ModulePlan) -> list[str]:
    known = plan.optimality
    if known is None:
        return []
    if known.method == "pinned":
        return [f"all plans of the model are {AS_PINNED}"]
    if known.method == "greedy":
        return ["plans of the model were chosen by Algorithm 1"]
    if known.gap is None:
        return ["all plans of the model were chosen together"]
    near = (
        f"at most {known.gap:.3%} from the optimum of {known.n_states:,} states"
        if known.gap >= SMALLEST_GAP
        else f"and no choice of {known.n_states:,} states is faster"
    )
    return [f"all plans of the model were chosen together, {near}"]


def _moved_in(plan: ModulePlan, scheduled: ScheduledOperator) -> list[Moved]:
    spec = next(spec for spec in plan.graph.operators if spec.name == scheduled.name)
    maker = {each.output.name: each.name for each in plan.graph.operators}
    found: list[Moved] = []
    for arrival in scheduled.arrivals:
        name = operand_of(spec, arrival.operand).name
        sources = [maker.get(value, value) for value in plan.graph.sources_of(name)]
        found.append(
            Moved(
                source=", ".join(dict.fromkeys(sources)),
                reader=scheduled.name,
                operand=name,
                kind=arrival.kind,
                received_bytes=arrival.received_bytes,
                fragments=arrival.fragments,
                cycles=arrival.cycles,
            )
        )
    return found


def _moved_out(plan: ModulePlan, scheduled: ScheduledOperator) -> list[Moved]:
    """Return how every reader takes the operator's result."""
    return [
        moved
        for reader in plan.operators
        for moved in _moved_in(plan, reader)
        if scheduled.name in moved.source.split(", ") and reader.name != scheduled.name
    ]


def _held(plan: ModulePlan, step: int) -> tuple[Held, ...]:
    """Return what lies in a core's memory while an operator runs, most bytes first; buffers in one place count once."""
    scheduled = plan.operators[step]
    own = {arrival.buffer for arrival in scheduled.arrivals}
    own |= {"shift", f"accumulator:{scheduled.name}", f"value:{scheduled.output_layout.value}"}
    own.add(second_name(scheduled.name))
    alive = [buffer for buffer in plan.buffers if buffer.first <= step <= buffer.last]
    return tuple(
        Held(buffer.name, buffer.size_bytes, buffer.name in own)
        for buffer in sorted(_apart(alive), key=lambda buffer: (-buffer.size_bytes, buffer.name))
    )


def _apart(buffers: Sequence[Buffer]) -> list[Buffer]:
    """Return buffers without those that lie inside one before: results in the place of an operand, for example."""
    kept: list[Buffer] = []
    for buffer in sorted(buffers, key=lambda each: (each.address_bytes, -each.size_bytes)):
        end = kept[-1].address_bytes + kept[-1].size_bytes if kept else 0
        if not kept or buffer.address_bytes + buffer.size_bytes > end:
            kept.append(buffer)
    return kept


def _names(moved: Sequence[Moved]) -> str:
    return ", ".join(dict.fromkeys(each.operand for each in moved))
