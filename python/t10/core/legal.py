"""What a legal plan of one operator is: the one definition that planner, checker and IR verifiers apply.

```
for every axis a:     1 <= f_op[a] <= N_a: no more parts than elements; 1 where the axis may not be split
                      lengths[a] = ceil(N_a / f_op[a]), rounded up to a multiple of every ft[T][a]; of lines, too
                      steps[a] = max over T of ft[T][a];  rp[a] = lengths[a] / steps[a], 0 where nothing rotates
for every operand T:  prod(ft[T]) divides the cores that share a sub-tensor of T
                      ft[T][a] = 1 along axes on which T cannot rotate
```

How far lines are rounded up `t10.core.lengths` says; axes that are none may be, too. Rounding up for ft may leave the
last parts of an axis with padding only; such cores work on nothing that counts.
That the windows of every ring tile their sub-tensor is a property of the placement: `t10.plan.verify` proves it.

Source: compute-shift model §2 to §4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from math import prod

from t10.core.expression import AxisSizes, Operand, OperatorSpec
from t10.core.lengths import part_length
from t10.core.plan import OperatorPlan, PhaseTerm, Reduce

Phases = tuple[tuple[PhaseTerm, ...], ...]
_LEAST = {"rp": 0}


@dataclass(frozen=True, slots=True)
class PlanRows:
    """The numbers of an `OperatorPlan` as far as they are decided, under their names; None is what is still open."""

    f_op: AxisSizes
    ft: tuple[AxisSizes, ...] | None = None
    lengths: AxisSizes | None = None
    rp: AxisSizes | None = None
    steps: AxisSizes | None = None
    loop_order: AxisSizes | None = None
    core_order: AxisSizes | None = None
    phases: Phases | None = None
    reduce: Reduce | None = None

    @classmethod
    def of(cls, plan: OperatorPlan) -> PlanRows:
        """Return the numbers of a whole plan."""
        return cls(**{each.name: getattr(plan, each.name) for each in fields(PlanRows)})


@dataclass(frozen=True, slots=True)
class Expression:
    """What of an operator decides which plans are legal.

    `extents` per axis; `uses` the axes that index each rotatable operand (inputs, then output); `compound`, per
    operand, those that occur in a dim which is not just one axis; `whole` the axes that may not be split. Names are for
    messages; without them axes and operands are numbered.
    """

    extents: AxisSizes
    uses: tuple[frozenset[int], ...]
    compound: tuple[frozenset[int], ...]
    whole: frozenset[int] = frozenset()
    axis_names: tuple[str, ...] = ()
    operand_names: tuple[str, ...] = ()

    def axis_name(self, axis: int) -> str:
        """Return the name of an axis for messages."""
        return self.axis_names[axis] if self.axis_names else str(axis)

    def operand_name(self, number: int) -> str:
        """Return the name of a rotatable operand for messages."""
        return self.operand_names[number] if self.operand_names else f"operand {number}"

    def may_rotate(self, number: int, axis: int) -> bool:
        """Return whether an operand may rotate along an axis that indexes it.

        Not along a window position (a reduction axis of a compound dim): those are tiny, and every window would need
        its own halo (compute-shift model R4).
        """
        return axis not in self.compound[number] or axis in self.uses[-1]

    def n_sharers(self, number: int, f_op: AxisSizes) -> int:
        """Return how many cores need the same sub-tensor of an operand."""
        return prod(parts for axis, parts in enumerate(f_op) if axis not in self.uses[number])


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule that a plan breaks: its name, what was found, and what was expected, to follow the word "expected"."""

    rule: str
    found: str
    expected: str

    def __str__(self) -> str:
        """Return the breach as a sentence."""
        return f"{self.found}, expected {self.expected}"


def expression_of(spec: OperatorSpec) -> Expression:
    """Return what of an operator decides which plans are legal."""
    return Expression(
        extents=spec.extents,
        uses=tuple(operand.axes for operand in spec.rotatable),
        compound=tuple(_compound_axes(operand) for operand in spec.rotatable),
        whole=frozenset(number for number, axis in enumerate(spec.axes) if not axis.is_splittable),
        axis_names=tuple(axis.name for axis in spec.axes),
        operand_names=tuple(operand.name for operand in spec.rotatable),
    )


def breaches(
    plan: PlanRows, expression: Expression | None = None, n_cores: int | None = None
) -> Iterator[Breach]:
    """Yield the rules that a plan breaks by itself, on its operator, and on a chip of `n_cores`, if these are given.

    Later groups of rules build on the earlier ones: only the breaches of the first group that has some are yielded.
    """
    for group in (_form(plan, expression), _partition(plan, expression, n_cores), _lengths(plan, expression)):
        found = list(group)
        yield from found
        if found:
            return
    yield from _pace(plan)
    if expression is not None:
        yield from _reduce(plan, expression)


def row_breaches(rows: Mapping[str, AxisSizes | None], n_axes: int) -> Iterator[Breach]:
    """Yield rows per axis that have another length, or numbers below the least that their name may have."""
    for name, row in rows.items():
        if row is None:
            continue
        if len(row) != n_axes:
            yield Breach("rows", f"{name} has {len(row)} entries", f"{n_axes}: one per axis, as f_op")
        least = _LEAST.get(name, 1)
        for axis, value in enumerate(row):
            if value < least:
                yield Breach("rows", f"{name}[{axis}] = {value}", f"at least {least}")


def phase_breaches(
    phases: Phases, f_op: AxisSizes, lengths: AxisSizes | None, steps: AxisSizes | None
) -> Iterator[Breach]:
    """Yield terms of phases that do not move cores apart on an axis that has a loop."""
    if len(phases) != len(f_op):
        yield Breach("rows", f"phases has {len(phases)} entries", f"{len(f_op)}: one per axis, as f_op")
        return
    for axis, terms in enumerate(phases):
        where = f"phases[{axis}]"
        for term in terms:
            if steps is not None and steps[axis] == 1:
                yield Breach("phases", f"{where} is stated, but the axis has one step", "[]")
            elif not set(term.sharer_axes) <= set(range(len(f_op))):
                yield Breach("phases", f"{where} names axes {list(term.sharer_axes)}", "axes of the grid")
            elif len(set(term.sharer_axes)) != len(term.sharer_axes):
                yield Breach("phases", f"{where} names axes {list(term.sharer_axes)}", "each axis once")
            elif lengths is not None and not 0 < term.stride < lengths[axis]:
                yield Breach("phases", f"{where} has stride {term.stride}", f"1 to {lengths[axis] - 1}")
            else:
                yield from _digit(where, term, prod(f_op[sharer] for sharer in term.sharer_axes))


def _digit(where: str, term: PhaseTerm, n_sharers: int) -> Iterator[Breach]:
    if term.divisor < 1 or term.modulus < 2 or term.divisor * term.modulus > n_sharers:
        yield Breach(
            "phases",
            f"{where} takes the digit (sigma / {term.divisor}) mod {term.modulus} of {n_sharers} cores",
            "a modulus of at least 2 and no more digits than cores",
        )


def _form(plan: PlanRows, expression: Expression | None) -> Iterator[Breach]:
    """Rows have one entry per axis and one row per operand; every number is in its range."""
    n_axes = len(plan.f_op)
    if expression is not None and len(expression.extents) != n_axes:
        wanted = len(expression.extents)
        yield Breach(
            "rows", f"f_op has {n_axes} factors for an operator of {wanted} axes", f"{wanted} factors"
        )
        return
    yield from row_breaches(
        {"f_op": plan.f_op, "lengths": plan.lengths, "rp": plan.rp, "steps": plan.steps}, n_axes
    )
    if plan.ft is not None and expression is not None and len(plan.ft) != len(expression.uses):
        wanted = f"{len(expression.uses)} rows of {n_axes} factors: one per input, then the output"
        yield Breach("rows", f"ft has {len(plan.ft)} rows", wanted)
    for i, row in enumerate(plan.ft or ()):
        if len(row) != n_axes:
            yield Breach("rows", f"ft[{i}] has {len(row)} entries", f"{n_axes}: one per axis, as f_op")
        if any(factor < 1 for factor in row):
            yield Breach("rows", f"ft[{i}] = {list(row)} holds a factor below 1", "at least 1 each")
    if plan.core_order is not None and sorted(plan.core_order) != list(range(n_axes)):
        yield Breach(
            "core order", f"core_order = {list(plan.core_order)}", f"a permutation of the {n_axes} axes"
        )


def _partition(plan: PlanRows, expression: Expression | None, n_cores: int | None) -> Iterator[Breach]:
    """Parts are of elements, on cores that there are; operands are cut in time along axes on which they may rotate."""
    if expression is not None:
        for axis, (extent, parts) in enumerate(zip(expression.extents, plan.f_op, strict=True)):
            if parts > 1 and axis in expression.whole:
                found = (
                    f"f_op[{axis}] = {parts} splits axis {expression.axis_name(axis)}, which may not be split"
                )
                yield Breach("unsplittable axis", found, "1")
            elif parts > extent:
                found = f"f_op[{axis}] = {parts} cuts extent {extent} into more parts than it has elements"
                yield Breach("parts", found, f"at most {extent}")
        if plan.ft is not None:
            yield from _temporal(plan.ft, plan.f_op, expression)
    if n_cores is not None and prod(plan.f_op) > n_cores:
        found = f"f_op = {list(plan.f_op)} needs {prod(plan.f_op)} cores"
        yield Breach("cores", found, f"at most {n_cores}")


def _temporal(ft: tuple[AxisSizes, ...], f_op: AxisSizes, expression: Expression) -> Iterator[Breach]:
    """Every operand is cut along axes on which it may rotate, in rings that divide the cores that share it."""
    for number, row in enumerate(ft):
        operand = expression.operand_name(number)
        for axis, factor in enumerate(row):
            name = expression.axis_name(axis)
            if factor > 1 and axis not in expression.uses[number]:
                found = f"ft[{number}][{axis}] = {factor}, but {operand} is not indexed by axis {name}"
                yield Breach("temporal axis", found, "1")
            elif factor > 1 and not expression.may_rotate(number, axis):
                found = f"{operand} is cut {factor}x in time along axis {name}, along which it cannot rotate"
                yield Breach("temporal axis", found, f"ft[{number}][{axis}] = 1")
        sharers = expression.n_sharers(number, f_op)
        if sharers % prod(row):
            found = (
                f"prod(ft[{number}]) = {prod(row)} does not divide the {sharers} cores that share {operand}"
            )
            yield Breach("ring divides", found, "a divisor")
    for axis in range(len(f_op)):
        yield from _blocks([row[axis] for row in ft], axis, expression)


def _blocks(factors: list[int], axis: int, expression: Expression) -> Iterator[Breach]:
    """Along an axis of a compound dim only whole blocks rotate, and all operands alike (compute-shift model R5)."""
    rotating = {factor for factor in factors if factor > 1}
    has_blocks = any(
        factor > 1 and axis in compound for factor, compound in zip(factors, expression.compound, strict=True)
    )
    if has_blocks and len(rotating) > 1:
        found = (
            f"axis {expression.axis_name(axis)} is cut {sorted(rotating)} times in time, but a dim over several axes "
            "rotates along it in whole blocks, so all factors must be equal"
        )
        yield Breach("blocks", found, "one factor")


def _lengths(plan: PlanRows, expression: Expression | None) -> Iterator[Breach]:
    """Parts are as long as they must be: they cover the axis, rounded up as lines are and so that every ft divides."""
    lengths = plan.lengths
    if lengths is None:
        return
    for axis, length in enumerate(lengths):
        factors = tuple([row[axis] for row in plan.ft or ()])
        extent = None if expression is None else expression.extents[axis]
        if extent is not None and plan.f_op[axis] * length < extent:
            found = f"f_op[{axis}] = {plan.f_op[axis]} parts of lengths[{axis}] = {length} do not cover extent {extent}"
            yield Breach("lengths", found, f"at least {-(-extent // plan.f_op[axis])}")
        wrong = next((i for i, factor in enumerate(factors) if length % factor), None)
        if wrong is not None:
            found = f"ft[{wrong}][{axis}] = {factors[wrong]} does not divide lengths[{axis}] = {length}"
            yield Breach("temporal divides", found, "a divisor")
        elif extent is not None and plan.ft is not None:
            most = part_length(extent, plan.f_op[axis], factors, is_line=True)
            if length > most:
                yield Breach(
                    "lengths", f"lengths[{axis}] = {length} pads more than ft needs", f"{most} at most"
                )


def _pace(plan: PlanRows) -> Iterator[Breach]:
    """One pace per axis, the smallest partition, in max(ft) steps; loops over the rotating axes (model §3)."""
    steps = plan.steps
    if plan.ft is not None:
        most = tuple(max((row[axis] for row in plan.ft), default=1) for axis in range(len(plan.f_op)))
        for axis, expected in enumerate(most):
            if steps is not None and steps[axis] != expected:
                yield Breach(
                    "pace", f"steps[{axis}] = {steps[axis]}", f"{expected}: the largest ft on axis {axis}"
                )
        yield from _rp(plan.rp, plan.lengths, most)
        rotating = [axis for axis, n in enumerate(most) if n > 1]
        if plan.loop_order is not None and sorted(plan.loop_order) != rotating:
            found = f"loop_order = {list(plan.loop_order)}"
            yield Breach("loop order", found, f"every rotating axis once, here {rotating}")
        steps = most
    if plan.phases is not None:
        yield from phase_breaches(plan.phases, plan.f_op, plan.lengths, steps)


def _rp(rp: AxisSizes | None, lengths: AxisSizes | None, steps: AxisSizes) -> Iterator[Breach]:
    """Yield paces that are not what one sub-task of a part is long."""
    for axis, pace in enumerate(rp or ()):
        if steps[axis] == 1:
            if pace:
                found = f"rp[{axis}] = {pace}, but no operand rotates along axis {axis}"
                yield Breach("pace", found, "0")
            continue
        if lengths is None:
            continue
        smallest = lengths[axis] // steps[axis]
        if pace > smallest:
            found = f"rp[{axis}] = {pace} is larger than the smallest partition of {smallest} elements"
            yield Breach("pace", found, f"{smallest}")
        elif pace * steps[axis] != lengths[axis]:
            found = (
                f"rp[{axis}] = {pace} in {steps[axis]} steps does not cover lengths[{axis}] = {lengths[axis]}"
            )
            yield Breach("pace", found, f"the smallest partition, {smallest}")


def _reduce(plan: PlanRows, expression: Expression) -> Iterator[Breach]:
    """Partial results that lie on several cores are combined, others are not."""
    if plan.reduce is None or plan.ft is None:
        return
    n_replicas = expression.n_sharers(-1, plan.f_op) // prod(plan.ft[-1])
    expected = ("scatter", "all") if n_replicas > 1 else ("none",)
    if plan.reduce not in expected:
        found = f'reduce = "{plan.reduce}" with {n_replicas} replicas of the output'
        yield Breach("reduce", found, " or ".join(expected))


def _compound_axes(operand: Operand) -> frozenset[int]:
    return operand.axes - operand.simple_axes
