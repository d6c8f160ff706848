"""Rules a plan's numbers must obey before its windows can be looked at: shapes, divisibility, pace, loop order."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from t10.core.expression import Operand, OperatorSpec
from t10.core.plan import OperatorPlan
from t10.plan.verify.violation import Violation
from t10.plan.verify.windows import output_replicas, sharers_of


def shape_violations(spec: OperatorSpec, plan: OperatorPlan, n_cores: int | None) -> Iterator[Violation]:
    """Yield every rule that the rows of a plan break; stops after the first group, as later ones build on it."""
    for rules in (_row_rules, _partition_rules, _temporal_rules, _pace_rules, _block_rules):
        found = list(rules(spec, plan))
        yield from found
        if found:
            return
    if n_cores is not None and prod(plan.f_op) > n_cores:
        yield Violation(spec.name, "cores", f"prod(f_op) = {prod(plan.f_op)}", f"at most {n_cores}")


def _row_rules(spec: OperatorSpec, plan: OperatorPlan) -> Iterator[Violation]:
    """Rows have one entry per axis and one row per operand; every number is in its range."""
    n_axes = len(spec.axes)
    rows = {
        "f_op": plan.f_op,
        "lengths": plan.lengths,
        "rp": plan.rp,
        "steps": plan.steps,
        "phases": plan.phases,
    }
    for name, row in rows.items():
        if len(row) != n_axes:
            yield Violation(spec.name, "rows", f"{len(row)} entries in {name}", f"{n_axes}, one per axis")
    if len(plan.ft) != len(spec.rotatable):
        expected = f"{len(spec.rotatable)}: the inputs and the output"
        yield Violation(spec.name, "rows", f"{len(plan.ft)} rows of ft", expected)
    if any(len(row) != n_axes for row in plan.ft):
        yield Violation(spec.name, "rows", f"ft = {plan.ft}", f"{n_axes} entries in every row")
    positive = (*plan.f_op, *plan.lengths, *plan.steps, *(t for row in plan.ft for t in row))
    if any(number < 1 for number in positive) or any(pace < 0 for pace in plan.rp):
        yield Violation(spec.name, "rows", "a factor, length or pace below its range", "at least 1 (rp: 0)")
    if sorted(plan.core_order) != list(range(n_axes)):
        yield Violation(spec.name, "core order", f"{plan.core_order}", "every axis once")
    for axis, terms in enumerate(plan.phases):
        for term in terms:
            known = set(term.sharer_axes) <= set(range(n_axes))
            once = len(set(term.sharer_axes)) == len(term.sharer_axes)
            if not known or not once or term.divisor < 1 or term.modulus < 1:
                yield Violation(
                    spec.name, "phases", f"{term} on axis {axis}", "known axes, digits of at least 1"
                )


def _partition_rules(spec: OperatorSpec, plan: OperatorPlan) -> Iterator[Violation]:
    """The parts cover every axis, and unsplittable axes stay whole."""
    for axis, f, length in zip(spec.axes, plan.f_op, plan.lengths, strict=True):
        if f > 1 and not axis.is_splittable:
            yield Violation(spec.name, "unsplittable axis", f"f_op = {f} on axis {axis.name}", "1")
        if f * length < axis.extent:
            found = f"{f} parts of {length} on axis {axis.name}"
            yield Violation(spec.name, "lengths", found, f"at least {axis.extent} elements in all")


def _temporal_rules(spec: OperatorSpec, plan: OperatorPlan) -> Iterator[Violation]:
    """Temporal factors divide lengths and sharers, and a tensor is only cut along its own axes."""
    for operand, row in zip(spec.rotatable, plan.ft, strict=True):
        for axis, t in enumerate(row):
            if t > 1 and axis not in operand.axes:
                found = f"ft = {t} for {operand.name} on axis {spec.axes[axis].name}"
                yield Violation(spec.name, "temporal axis", found, "1: the tensor is not indexed by the axis")
            if plan.lengths[axis] % t:
                found = f"ft = {t} for {operand.name} on axis {spec.axes[axis].name}"
                yield Violation(
                    spec.name, "temporal divides", found, f"a divisor of L = {plan.lengths[axis]}"
                )
        sharers = sharers_of(operand, plan)
        if sharers % prod(row):
            found = f"a ring of {prod(row)} for {operand.name}"
            yield Violation(spec.name, "ring divides", found, f"a divisor of its {sharers} sharers")
    yield from _reduce_rule(spec, plan)


def _reduce_rule(spec: OperatorSpec, plan: OperatorPlan) -> Iterator[Violation]:
    """Partial results that lie on several cores are combined, others are not."""
    sharers, ring = sharers_of(spec.output, plan), prod(plan.ft[len(spec.inputs)])
    if sharers % ring:
        return
    expected = ("scatter", "all") if output_replicas(spec, plan) > 1 else ("none",)
    if plan.reduce not in expected:
        found = f"reduce = {plan.reduce} with {sharers // ring} replicas of the output"
        yield Violation(spec.name, "reduce", found, " or ".join(expected))


def _pace_rules(spec: OperatorSpec, plan: OperatorPlan) -> Iterator[Violation]:
    """The pace of an axis is its smallest partition, L = steps * rp; the nest has exactly the rotating axes."""
    rotating: list[int] = []
    for axis, length in enumerate(plan.lengths):
        name = spec.axes[axis].name
        widths = [length // row[axis] for row in plan.ft if row[axis] > 1]
        if not widths:
            if (plan.rp[axis], plan.steps[axis]) != (0, 1):
                found = f"rp = {plan.rp[axis]}, {plan.steps[axis]} steps on axis {name}"
                yield Violation(spec.name, "pace", found, "0 and 1: nothing rotates along it")
            continue
        rotating.append(axis)
        if plan.rp[axis] != min(widths):
            found = f"rp = {plan.rp[axis]} on axis {name}"
            yield Violation(spec.name, "pace", found, f"the smallest partition, {min(widths)}")
        elif plan.rp[axis] * plan.steps[axis] != length:
            found = f"{plan.steps[axis]} steps of {plan.rp[axis]} on axis {name}"
            yield Violation(spec.name, "pace", found, f"a product of {length}")
    if sorted(plan.loop_order) != rotating:
        yield Violation(spec.name, "loop order", f"{plan.loop_order}", f"each of {rotating} once")


def _block_rules(spec: OperatorSpec, plan: OperatorPlan) -> Iterator[Violation]:
    """Along an axis of a compound dim only whole blocks rotate, and all tensors alike (compute-shift model R5)."""
    for axis in plan.loop_order:
        rotating = [(o, row[axis]) for o, row in zip(spec.rotatable, plan.ft, strict=True) if row[axis] > 1]
        if all(is_circular(operand, axis) for operand, _ in rotating):
            continue
        if len({t for _, t in rotating}) > 1:
            found = (
                f"ft = {[t for _, t in rotating]} on axis {spec.axes[axis].name}, which a compound dim has"
            )
            yield Violation(spec.name, "blocks", found, "one common factor")


def is_circular(operand: Operand, axis: int) -> bool:
    """Return whether windows of the operand may wrap around along an axis: it is alone in one dim and nowhere else."""
    having = [dim for dim in operand.dims if axis in dim.axes]
    return len(having) == 1 and having[0].is_simple
