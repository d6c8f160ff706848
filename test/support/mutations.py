"""Random damage to planned models: one change of a plan, a layout, an arrival or an address at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from random import Random

from t10.core.expression import OperatorSpec
from t10.core.operator_body import scheduled_operator
from t10.core.plan import OperatorPlan, PhaseTerm, Reduce
from t10.core.schedule import PHASES, Arrival, Buffer, ModulePlan, ScheduledOperator, ValueLayout, most_bytes

Ints = tuple[int, ...]
REDUCES: tuple[Reduce, ...] = ("none", "scatter", "all")


def mutated(rng: Random, plan: ModulePlan) -> tuple[str, ModulePlan]:
    """Return the name of a random change and the plan it leads to, which may be equal or still right.

    Programs follow: what is damaged is what they are made from. See `support.bodies` for damage to programs.
    """
    name = rng.choice(sorted(MUTATIONS))
    damaged = MUTATIONS[name](rng, plan)
    operators = zip(damaged.graph.operators, damaged.operators, strict=True)
    return name, replace(
        damaged, operators=tuple(with_body(spec, scheduled) for spec, scheduled in operators)
    )


def with_body(spec: OperatorSpec, scheduled: ScheduledOperator) -> ScheduledOperator:
    """Return an operator with the program that follows from its plan and arrivals; as it is where none follows."""
    fields = (scheduled.active, scheduled.arrivals, scheduled.output_layout, scheduled.pareto)
    try:
        return scheduled_operator(spec, *fields)
    except (ArithmeticError, LookupError):
        return scheduled


def _changed(rng: Random, row: Ints, index: int | None = None) -> Ints:
    """Return a row with one entry a little larger or smaller."""
    if not row:
        return row
    where = rng.randrange(len(row)) if index is None else index
    entry = row[where]
    new = rng.choice([entry + 1, max(0, entry - 1), entry * 2, entry // 2, 1, 0, 2, 3])
    return (*row[:where], new, *row[where + 1 :])


def _swapped(rng: Random, row: Ints) -> Ints:
    """Return a row with two entries exchanged."""
    if len(row) < 2:
        return row
    i, j = rng.sample(range(len(row)), 2)
    result = list(row)
    result[i], result[j] = result[j], result[i]
    return tuple(result)


def _with_operator_plan(
    rng: Random, plan: ModulePlan, change: Callable[[OperatorPlan], OperatorPlan]
) -> ModulePlan:
    """Return the module with one operator's plan changed: in most cases wherever the plan is written down."""
    number = rng.randrange(len(plan.operators))
    old = plan.operators[number]
    new = change(old.active.plan)

    def followed(layout: ValueLayout) -> ValueLayout:
        follows = layout.operator == old.name and layout.plan == old.active.plan
        return replace(layout, plan=new) if follows else layout

    active = replace(old.active, plan=new)
    if rng.random() < 0.1:
        operators = [*plan.operators]
        operators[number] = replace(old, active=active)
        return replace(plan, operators=tuple(operators))
    operators = [replace(op, output_layout=followed(op.output_layout)) for op in plan.operators]
    operators[number] = replace(operators[number], active=active)
    weights = tuple(followed(layout) for layout in plan.weight_layouts)
    return replace(plan, operators=tuple(operators), weight_layouts=weights)


def _pace(rng: Random, plan: ModulePlan) -> ModulePlan:
    return _with_operator_plan(
        rng, plan, lambda p: replace(p, rp=_changed(rng, p.rp, _rotating_axis(rng, p)))
    )


def _steps(rng: Random, plan: ModulePlan) -> ModulePlan:
    return _with_operator_plan(
        rng, plan, lambda p: replace(p, steps=_changed(rng, p.steps, _rotating_axis(rng, p)))
    )


def _rotating_axis(rng: Random, plan: OperatorPlan) -> int:
    """Return an axis, one that rotates if there is any."""
    return rng.choice(plan.loop_order or tuple(range(len(plan.f_op))))


def _temporal(rng: Random, plan: ModulePlan) -> ModulePlan:
    def change(p: OperatorPlan) -> OperatorPlan:
        row = rng.randrange(len(p.ft))
        new = _changed(rng, p.ft[row]) if rng.random() < 0.7 else _swapped(rng, p.ft[row])
        return replace(p, ft=(*p.ft[:row], new, *p.ft[row + 1 :]))

    return _with_operator_plan(rng, plan, change)


def _temporal_aligned(rng: Random, plan: ModulePlan) -> ModulePlan:
    """Change a temporal factor and follow it up with pace and steps, so that only placement is wrong."""

    def change(p: OperatorPlan) -> OperatorPlan:
        row, axis = rng.randrange(len(p.ft)), rng.randrange(len(p.f_op))
        factors = list(p.ft[row])
        factors[axis] = rng.choice([1, 2, 3, 4])
        ft = (*p.ft[:row], tuple(factors), *p.ft[row + 1 :])
        steps = tuple(max(r[a] for r in ft) for a in range(len(p.f_op)))
        rp = tuple(length // n if n > 1 else 0 for length, n in zip(p.lengths, steps, strict=True))
        order = tuple(a for a in range(len(p.f_op)) if steps[a] > 1)
        return replace(p, ft=ft, steps=steps, rp=rp, loop_order=order)

    return _with_operator_plan(rng, plan, change)


def _lengths(rng: Random, plan: ModulePlan) -> ModulePlan:
    return _with_operator_plan(rng, plan, lambda p: replace(p, lengths=_changed(rng, p.lengths)))


def _spatial(rng: Random, plan: ModulePlan) -> ModulePlan:
    def change(p: OperatorPlan) -> OperatorPlan:
        return replace(p, f_op=_changed(rng, p.f_op) if rng.random() < 0.5 else _swapped(rng, p.f_op))

    return _with_operator_plan(rng, plan, change)


def _core_order(rng: Random, plan: ModulePlan) -> ModulePlan:
    def change(p: OperatorPlan) -> OperatorPlan:
        order = _swapped(rng, p.core_order) if rng.random() < 0.5 else _changed(rng, p.core_order)
        return replace(p, core_order=order)

    return _with_operator_plan(rng, plan, change)


def _loop_order(rng: Random, plan: ModulePlan) -> ModulePlan:
    def change(p: OperatorPlan) -> OperatorPlan:
        kind = rng.randrange(3)
        if kind == 0 or not p.loop_order:
            return replace(p, loop_order=_swapped(rng, p.loop_order))
        if kind == 1:
            return replace(p, loop_order=p.loop_order[:-1])
        return replace(p, loop_order=(*p.loop_order, rng.choice(p.loop_order)))

    return _with_operator_plan(rng, plan, change)


def _phases(rng: Random, plan: ModulePlan) -> ModulePlan:
    def change(p: OperatorPlan) -> OperatorPlan:
        axis = _rotating_axis(rng, p)
        terms = list(p.phases[axis])
        if not terms:
            return p
        number = rng.randrange(len(terms))
        terms[number : number + 1] = _phase_changes(rng, p, terms[number])
        return replace(p, phases=(*p.phases[:axis], tuple(terms), *p.phases[axis + 1 :]))

    return _with_operator_plan(rng, plan, change)


def _phase_changes(rng: Random, plan: OperatorPlan, term: PhaseTerm) -> list[PhaseTerm]:
    """Return a phase term with one field changed, or nothing, or the term and another."""
    kind = rng.randrange(6)
    if kind == 0:
        return []
    if kind == 1:
        return [replace(term, stride=_changed(rng, (term.stride,))[0])]
    if kind == 2:
        return [replace(term, modulus=_changed(rng, (term.modulus,))[0])]
    if kind == 3:
        return [replace(term, divisor=_changed(rng, (term.divisor,))[0])]
    if kind == 4:
        return [replace(term, sharer_axes=_swapped(rng, term.sharer_axes) or (0,))]
    return [replace(term, sharer_axes=(rng.randrange(len(plan.f_op)),))]


def _reduce(rng: Random, plan: ModulePlan) -> ModulePlan:
    return _with_operator_plan(
        rng, plan, lambda p: replace(p, reduce=rng.choice([r for r in REDUCES if r != p.reduce]))
    )


def _reduce_and_layout(rng: Random, plan: ModulePlan) -> ModulePlan:
    """Combine partial sums the other way and say so in the result's layout, but leave its buffer as it is."""
    number = rng.randrange(len(plan.operators))
    old = plan.operators[number]
    spec, active = plan.graph.operators[number], old.active.plan
    if active.reduce == "none":
        return plan
    new = replace(active, reduce="all" if active.reduce == "scatter" else "scatter")
    sharers = prod(f for axis, f in enumerate(active.f_op) if axis not in spec.output.axes)
    scatter = 1 if new.reduce == "all" else sharers // prod(active.ft[-1])
    operators = [*plan.operators]
    layout = replace(old.output_layout, plan=new, scatter=scatter)
    operators[number] = replace(old, active=replace(old.active, plan=new), output_layout=layout)
    weights = tuple(
        replace(w, plan=new) if (w.operator, w.plan) == (old.name, active) else w for w in plan.weight_layouts
    )
    return replace(plan, operators=tuple(operators), weight_layouts=weights)


def _with_buffer(rng: Random, plan: ModulePlan, change: Callable[[Buffer], Buffer | None]) -> ModulePlan:
    """Return the module with one buffer changed or gone; the stated peak follows, so it gives nothing away."""
    number = rng.randrange(len(plan.buffers))
    new = change(plan.buffers[number])
    kept = () if new is None else (new,)
    buffers = (*plan.buffers[:number], *kept, *plan.buffers[number + 1 :])
    return replace(plan, buffers=buffers, peak_bytes=most_bytes(buffers, plan.reserved_bytes))


def _address(rng: Random, plan: ModulePlan) -> ModulePlan:
    def change(buffer: Buffer) -> Buffer:
        other = rng.choice(plan.buffers).address_bytes
        near = buffer.address_bytes + rng.choice([-1, 1]) * rng.choice([8, 16, 64, 1 << 20])
        return replace(buffer, address_bytes=rng.choice([other, other, near]))

    return _with_buffer(rng, plan, change)


def _size(rng: Random, plan: ModulePlan) -> ModulePlan:
    return _with_buffer(
        rng, plan, lambda b: replace(b, size_bytes=rng.choice([0, b.size_bytes // 2, b.size_bytes - 1]))
    )


def _lifetime(rng: Random, plan: ModulePlan) -> ModulePlan:
    def change(buffer: Buffer) -> Buffer | None:
        kind = rng.randrange(5)
        if kind == 0:
            return None
        if kind >= 3:
            field = "first_phase" if kind == 3 else "last_phase"
            return replace(buffer, **{field: rng.choice(PHASES)})
        return replace(buffer, first=buffer.first + 1) if kind == 1 else replace(buffer, last=buffer.last - 1)

    return _with_buffer(rng, plan, change)


def _taken_over(rng: Random, plan: ModulePlan) -> ModulePlan:
    """Let a result lie where an operand does, as if it took over its buffer, whether that is safe or not."""
    number = rng.randrange(len(plan.operators))
    spec, scheduled = plan.graph.operators[number], plan.operators[number]
    by_name = {buffer.name: buffer for buffer in plan.buffers}
    old = by_name.get(rng.choice(scheduled.arrivals).buffer)
    new = by_name.get(f"value:{spec.output.name}")
    if old is None or new is None:
        return plan
    phase = rng.choice((new.first_phase, new.first_phase, "nest"))
    changed = {
        old.name: replace(old, last=min(old.last, number), last_phase=phase),
        new.name: replace(new, address_bytes=old.address_bytes, size_bytes=old.size_bytes, first_phase=phase),
    }
    buffers = [changed.get(b.name, b) for b in plan.buffers]
    if rng.random() < 0.3:
        buffers = [b for b in buffers if b.name != f"accumulator:{spec.name}"]
    peak = max(b.address_bytes + b.size_bytes for b in buffers)
    return replace(plan, buffers=tuple(buffers), peak_bytes=peak)


def _arrival(rng: Random, plan: ModulePlan) -> ModulePlan:
    number = rng.randrange(len(plan.operators))
    scheduled = plan.operators[number]
    which = rng.randrange(len(scheduled.arrivals))
    old = scheduled.arrivals[which]
    name = plan.graph.operators[number].operands[old.operand].name
    homes = [b.name for b in plan.buffers if b.name.split(":", 1)[-1] == name]
    kind = rng.randrange(4)
    new: tuple[Arrival, ...]
    if kind == 0 and homes:
        new = (replace(old, kind="in_place", buffer=homes[0]),)
    elif kind == 1:
        new = (replace(old, buffer=rng.choice(plan.buffers).name),)
    elif kind == 2:
        new = ()
    else:
        new = (replace(old, operand=old.operand + 1),)
    arrivals = (*scheduled.arrivals[:which], *new, *scheduled.arrivals[which + 1 :])
    operators = (
        *plan.operators[:number],
        replace(scheduled, arrivals=arrivals),
        *plan.operators[number + 1 :],
    )
    return replace(plan, operators=operators)


def _in_place(rng: Random, plan: ModulePlan) -> ModulePlan:
    """Let an operand be read where its value lies, whether it lies right or not."""
    number = rng.randrange(len(plan.operators))
    scheduled, spec = plan.operators[number], plan.graph.operators[number]
    arrivals = list(scheduled.arrivals)
    which = rng.randrange(len(arrivals))
    name = spec.operands[arrivals[which].operand].name
    homes = [b.name for b in plan.buffers if b.name in (f"idle:{name}", f"input:{name}", f"value:{name}")]
    if homes:
        arrivals[which] = Arrival(arrivals[which].operand, "in_place", homes[0])
    operators = [*plan.operators]
    operators[number] = replace(scheduled, arrivals=tuple(arrivals))
    return replace(plan, operators=tuple(operators))


def _weight_layout(rng: Random, plan: ModulePlan) -> ModulePlan:
    if not plan.weight_layouts:
        return plan
    number = rng.randrange(len(plan.weight_layouts))
    old = plan.weight_layouts[number]
    kind = rng.randrange(4)
    if kind == 0 or old.kind == "linear":
        new = replace(old, n_cores=max(1, old.n_cores + rng.choice([-1, -2, 1])))
    elif kind == 1:
        new = replace(old, operand=old.operand + rng.choice([-1, 1]))
    else:
        new = replace(old, scatter=rng.choice([1, 2, 3, 4, old.scatter * 2]))
    layouts = (*plan.weight_layouts[:number], new, *plan.weight_layouts[number + 1 :])
    return replace(plan, weight_layouts=layouts)


def _output_layout(rng: Random, plan: ModulePlan) -> ModulePlan:
    number = rng.randrange(len(plan.operators))
    scheduled = plan.operators[number]
    old = scheduled.output_layout
    new = replace(old, scatter=rng.choice([1, 2, 3, old.scatter + 1]))
    operators = (
        *plan.operators[:number],
        replace(scheduled, output_layout=new),
        *plan.operators[number + 1 :],
    )
    return replace(plan, operators=operators)


MUTATIONS: dict[str, Callable[[Random, ModulePlan], ModulePlan]] = {
    "address": _address,
    "arrival": _arrival,
    "core order": _core_order,
    "in place": _in_place,
    "lengths": _lengths,
    "lifetime": _lifetime,
    "loop order": _loop_order,
    "output layout": _output_layout,
    "pace": _pace,
    "phases": _phases,
    "reduce": _reduce,
    "reduce and layout": _reduce_and_layout,
    "size": _size,
    "spatial": _spatial,
    "steps": _steps,
    "taken over": _taken_over,
    "temporal": _temporal,
    "temporal aligned": _temporal_aligned,
    "weight layout": _weight_layout,
}
"""What can be done to a module, by name."""
