"""Where one operator's windows lie, one core and one element at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

from support.bruteforce.symbols import BrokenPlan, Index, flatten, unflatten
from t10.core.expression import AxisSizes, Operand, OperatorSpec
from t10.core.plan import OperatorPlan


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
                digit = (sigma // term.divisor) % term.modulus
                if term.is_folded:
                    order = [d for d in range(term.modulus) if d % 2 == 0]
                    order += [d for d in reversed(range(term.modulus)) if d % 2 == 1]
                    digit = order.index(digit)
                phase += digit * term.stride
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
