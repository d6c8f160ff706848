"""The lower bound of what the Reduce family (`t10.codelets.reduce`) takes: along rows, across columns, point by point.

Its code is known (`t10.codelets.reduce.pace`); what is left to a formula are the loops: how many outputs the busiest
worker has, how many passes each of them takes, and of how many steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product as combinations

import numpy as np

from t10.codelets.reduce.pace import NEVER, Along, Kernel, Mode, Pace, of_pieces, pace, parts_paces
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.tile import N_WORKERS, WIDE_BYTES
from t10.cost.bound.columns import Boxes, Column, always, both, chosen, either, never, product
from t10.cost.bound.scalar import scalar_bound
from t10.cost.bound.walks import (
    WalkLoop,
    axis_order,
    busiest_share,
    follow_evenly,
    has_plain_loops,
    innermost,
    is_cut_evenly,
    may_step_evenly,
    product_of,
    united_loops,
)

ACCESS_BYTES, WORD_BYTES, PAIR = 8, 4, 2
LAUNCH_CYCLES = 12
"""What a vertex of workers takes besides its busiest worker."""
IMPOSSIBLE = 1 << 40
FAR = 1 << 32
"""More cycles than steps of an output take."""
MOST_WRITTEN_OUT = 16 * N_WORKERS
"""Steps up to which those of a piece may be written out."""
MOVING_CYCLES = 18
"""What a worker takes to find where it begins in an operand."""

LEVEL_CYCLES, POINTER_CYCLES = 30, 12
"""What a pass of a loop around another one takes at least, and what it takes to move an input's pointer there."""

Members = tuple[bool, ...]
"""Whether each input does something."""
_Way = tuple[Pace, Column, Column]
"""A pace, where it is one, and the extent of its inner loop."""


def reduction_bound(
    spec: OperatorSpec, boxes: Boxes, *, initial: bool = True, extents: Boxes | None = None
) -> Column | None:
    """Return cycles that the Reduce family's code never falls below; None where it never takes the operator.

    `IMPOSSIBLE` for boxes that reduce nothing. Where not `initial`, the step adds to what is there. With `extents`,
    (n, axes), operands may lie in windows that are longer than the box along axes of which it has less.
    """
    reduced = frozenset(spec.reduction_axes)
    if not reduced or spec.selectors:
        return None
    nest = _Nest.of(spec, boxes, initial, extents)
    is_plain = all(has_plain_loops(operand, reduced) for operand in spec.inputs)
    best = nest.best() if is_plain else nest.loosely()
    return None if best is None else chosen(nest.n_terms > 1, LAUNCH_CYCLES + best, IMPOSSIBLE)


@dataclass(frozen=True, slots=True)
class _Nest:
    """A reduction's loops, innermost first, over outputs and over contributions."""

    spec: OperatorSpec
    boxes: Boxes
    kernel: Kernel
    sizes: tuple[int, ...]
    outputs: tuple[WalkLoop, ...]
    contributions: tuple[WalkLoop, ...]
    n_outputs: Column
    n_terms: Column
    extents: Boxes | None

    @classmethod
    def of(cls, spec: OperatorSpec, boxes: Boxes, initial: bool, extents: Boxes | None) -> _Nest:
        """Return the loops of an operator over boxes."""
        operands = (*spec.inputs, spec.output)
        dtypes = (*(operand.dtype for operand in spec.inputs), spec.acc_dtype)
        reduced = frozenset(spec.reduction_axes)
        order = [axis for operand in spec.inputs for axis in axis_order(operand) if axis in reduced]
        outputs = united_loops(boxes, axis_order(spec.output), operands)
        contributions = united_loops(boxes, tuple(dict.fromkeys([*order, *spec.reduction_axes])), operands)
        return cls(
            spec,
            boxes,
            Kernel(dtypes, spec.combine, spec.body, initial),
            tuple(size_bytes(dtype) for dtype in dtypes),
            tuple(outputs),
            tuple(contributions),
            product_of([loop.extent for loop in outputs]),
            product_of([loop.extent for loop in contributions]),
            extents,
        )

    def best(self) -> Column | None:
        """Return what the best way takes, None where there is none."""
        around, pieces = self.around_outputs(), self.pieces()
        ways = [each + around for each in (*self.rows(), *self.points())]
        ways += [*self.columns(), *([] if pieces is None else [pieces])]
        # Loops compute what finds no registers point by point, and lies so that no vectors walk it.
        scalar = scalar_bound(self.spec, self.boxes) if ways and self.may_fail else None
        ways += [] if scalar is None else [scalar]
        return reduce(np.minimum, ways) if ways else None

    def loosely(self) -> Column | None:
        """Return what the fastest steps alone take, whatever the loops."""
        paces = [own for own, _ in self.row_ways()] + [own for _, own in self.point_ways()]
        columns = combinations((8, 4, 2), self.members(axis_order(self.spec.output)), self.moving())
        for lanes, members, (_, moving) in columns:
            paces += self.column_paces(lanes, members, moving)
        if not paces:
            return None
        few = min(own.once - max(own.single, own.few_passing) for own in paces)
        once = chosen(self.n_outputs <= N_WORKERS, few, min(own.once for own in paces))
        per_eight = min(own.step * 8 // own.lanes for own in paces)
        return once + self.n_outputs * self.n_terms * per_eight // (8 * N_WORKERS)

    def rows(self) -> list[Column]:
        """Return what walks along rows take: lanes are neighbours of one sum."""
        return [
            chosen(inner >= own.lanes, self.cycles(own, self.busiest(), inner), IMPOSSIBLE)
            for own, inner in self.row_ways()
        ]

    def row_ways(self) -> list[tuple[Pace, Column]]:
        """Return the ways to walk along rows, and the extent of the loop that they walk, 0 where there is none."""
        result: list[tuple[Pace, Column]] = []
        ways: list[tuple[int, Members, bool]] = [
            (*way, False) for way in combinations((4, 2), self.members(self.spec.reduction_axes))
        ]
        if self.is_plain and self.kernel.has_wide_sums:
            ways.append((WIDE_BYTES // self.sizes[0], (True,), True))
        for lanes, members, is_wide in ways:
            if (own := self.row_pace(lanes, members, is_wide=is_wide)) is not None:
                result.append((own, self.row(lanes, members)))
        return result

    def row(self, lanes: int, members: Members) -> Column:
        """Return the extent of the loop that some inputs walk in vectors of so many lanes, 0 where there is none."""
        result: Column = 0
        # What all inputs walk is contiguous only where no loop is inside it.
        loops = [innermost(self.contributions)[0]] if self.are_alike else self.contributions
        for loop in loops:
            is_row = both(self.is_contiguous(loop, members), self.is_aligned(loop, members, lanes))
            result = np.maximum(result, chosen(is_row, loop.extent, 0))
        return result

    def columns(self) -> list[Column]:
        """Return what walks across columns take: lanes are neighbouring outputs."""
        axes = [axis for axis in axis_order(self.spec.output) if self.may_be_column(axis)]
        column, _ = innermost(self.outputs)
        return [
            self.column(own, column, members, when)
            for lanes, members, (when, moving) in combinations((8, 4, 2), self.members(axes), self.moving())
            for own in self.column_paces(lanes, members, moving)
        ]

    def column_paces(self, lanes: int, members: Members, moving: Members) -> list[Pace]:
        """Return the paces across columns in vectors of so many lanes; 16 bytes may be loaded at once."""
        found = [self.step_pace("columns", lanes, members, moving)]
        if self.is_plain and self.kernel.has_wide_sums and lanes * self.sizes[0] == WIDE_BYTES:
            found.append(self.step_pace("columns", lanes, members, moving, is_wide=True))
            found += parts_paces(self.kernel)
        return [own for own in found if own is not None]

    def column(self, own: Pace, column: WalkLoop, members: Members, when: Column) -> Column:
        """Return what a walk takes whose vectors lie along the innermost loop over outputs, if they can."""
        is_column = both(
            when,
            column.steps[-1] == 1,
            column.extent > 1,
            self.is_contiguous(column, members),
            self.is_aligned(column, (*members, True), own.lanes),
        )
        n_vectors, others = -(-column.extent // own.lanes), self.n_outputs // column.extent
        vectors = -(-n_vectors // N_WORKERS) * others
        if self.may_join is not None:
            vectors = chosen(self.may_join, -(-n_vectors * others // N_WORKERS), vectors)
        for loop in self.outputs if len(self.outputs) > 1 else ():
            # The loop of columns itself has the output's step of one.
            share = -(-loop.extent // N_WORKERS) * (others // loop.extent) * n_vectors
            vectors = np.minimum(vectors, chosen(loop.steps[-1] == 1, vectors, share))
        return chosen(is_column, self.cycles(own, vectors, self.longest), IMPOSSIBLE)

    def points(self) -> list[Column]:
        """Return what walks point by point take."""
        return [
            chosen(when, self.cycles(own, self.busiest(), self.longest), IMPOSSIBLE)
            for when, own in self.point_ways()
        ]

    def point_ways(self) -> list[tuple[Column, Pace]]:
        """Return the ways to walk point by point, and where inputs move so."""
        ways = [(when, self.step_pace("points", 1, (), moving)) for when, moving in self.moving()]
        return [(when, own) for when, own in ways if own is not None]

    @property
    def may_fail(self) -> bool:
        """Return whether some nests have no code that walks point by point."""
        ways = self.point_ways()
        numbers = {number for _, own in ways for number in (own.repeated, own.around, own.passed)}
        return len(ways) < len(self.moving()) or NEVER in numbers

    def pieces(self) -> Column | None:
        """Return what rows in n pieces take, which workers share, and whose results are then reduced.

        That is done where workers cannot share outputs evenly. None where it is never done.
        """
        kernel, last = of_pieces(self.kernel)
        if kernel is None:
            return None
        first = replace(self, kernel=kernel)
        ways: list[_Way] = [(own, inner >= own.lanes, inner) for own, inner in first.row_ways()]
        ways += [(own, when, self.longest) for when, own in first.point_ways()]
        if not ways or not last:
            return None
        alone, may_unite = self.joined(busiest_share([o.extent for o in self.outputs])), self.may_unite()
        best: Column = IMPOSSIBLE
        few = max(self.few(own) for own, *_ in ways)
        for n in range(2, N_WORKERS + 1):
            share = -(-(self.n_outputs * n) // N_WORKERS)
            share = chosen(may_unite, share, np.minimum(self.n_outputs, alone * n))
            one = self.piece(ways, n)
            cycles = chosen(self.can_cut(n), share * one, IMPOSSIBLE)
            # Where each worker has one piece, the last of a row may be shorter.
            best = np.minimum(best, chosen(self.n_outputs * n <= N_WORKERS, one - few, cycles))
        once = LAUNCH_CYCLES + min(own.once for own, *_ in ways)
        is_worth = N_WORKERS * 10 * self.busiest() > 11 * self.n_outputs
        if len(self.contributions) > 1:
            # Passes cost less in pieces that are short enough to be written out.
            written = [both(when, self.n_terms <= MOST_WRITTEN_OUT * own.lanes) for own, when, _ in ways]
            is_worth = either(is_worth, *written)
        return chosen(is_worth, best + once + self._ending(last), IMPOSSIBLE)

    def piece(self, ways: Sequence[_Way], n: int) -> Column:
        """Return what one of n pieces of an output takes in the best of some ways."""
        if self.extents is None:
            return reduce(
                np.minimum, [chosen(when, self.walk(own, inner, n), FAR) for own, when, inner in ways]
            )
        # Shorter rows in longer windows may leave less than steps, and more passes.
        output = min(min(own.unrolled, own.repeated, own.around) - self.more(own) for own, *_ in ways)
        found = [
            chosen(when, own.step * (self.n_terms // own.lanes) + self.more(own) * self.passes(inner), FAR)
            for own, when, inner in ways
        ]
        return output + reduce(np.minimum, found) // n

    def walk(self, own: Pace, inner: Column, n: int) -> Column:
        """Return what one of n pieces of an output takes in one way: written out if it is short, else with a loop."""
        steps, passes, more = own.step * (self.n_terms // own.lanes), self.passes(inner), self.more(own)
        if len(self.contributions) == 1:
            is_short = self.n_terms // n // own.lanes <= own.most_unrolled
            return chosen(is_short, min(own.unrolled, own.repeated), own.repeated) + steps // n
        # What is left over of every pass is no step.
        is_short = self.n_terms // n - passes * (own.lanes - 1) <= own.most_unrolled * own.lanes
        short = min(own.unrolled, own.repeated) - more + (steps + more * passes) // n
        long = min(own.around, own.repeated) + (steps + own.passed * passes) // n
        return chosen(is_short, np.minimum(short, long), long)

    def passes(self, inner: Column) -> Column:
        """Return the passes of an output whose inner loop has so many points."""
        return 1 if len(self.contributions) == 1 else self.n_terms // np.maximum(inner, 1)

    def more(self, own: Pace) -> int:
        """Return the least that a pass takes besides its steps."""
        return min(own.moved, own.passed) if len(self.contributions) > 1 else 0

    def few(self, own: Pace) -> int:
        """Return how much less is taken where no worker has more than one output."""
        return own.few if self.is_one_pass else own.few_passing

    def can_cut(self, n: int) -> Column:
        """Return whether a loop can be cut in n pieces; no vector of four lies across two of them."""
        if self.extents is not None and not self.is_one_pass:
            # What is one loop in a box may be several.
            return self.n_terms % n == 0
        return either(*(is_cut_evenly(loop.extent, n) for loop in self.contributions))

    def _ending(self, paces: tuple[Pace, ...]) -> Column:
        """Return the least that reducing the results of pieces takes."""
        once = min(own.once for own in paces)
        output = min(own.unrolled + own.step * 2 // own.lanes for own in paces)
        single, few = max(own.single for own in paces), max(own.few_passing for own in paces)
        less = chosen(self.n_outputs == 1, single, chosen(self.n_outputs <= N_WORKERS, few, 0))
        return once + -(-self.n_outputs // N_WORKERS) * output - less

    def may_unite(self) -> Column:
        """Return where pieces and outputs may be one loop: all inputs walk on evenly from one to the other."""
        if self.extents is None:
            pairs = combinations(self.outputs, self.contributions)
            found = [both(row.extent > 1, *follow_evenly(row, cut)) for row, cut in pairs]
            return either(*found)
        alike = [
            self.boxes[:, a] > 1
            for a in self.spec.output.axes
            for r in self.spec.reduction_axes
            if all((a in o.axes) == (r in o.axes) for o in self.spec.inputs)
        ]
        return either(*alike) if alike else never(self.n_terms)

    @property
    def may_join(self) -> Column | None:
        """Return where loops over outputs that are apart in a box may be one; None of nowhere."""
        return None if self.extents is None else may_step_evenly(self.spec, self.boxes, self.extents)

    @property
    def is_one_pass(self) -> bool:
        """Return whether contributions are one loop wherever operands lie."""
        return len(self.contributions) == 1 and (self.extents is None or len(self.spec.reduction_axes) == 1)

    @property
    def are_alike(self) -> bool:
        """Return whether all inputs walk all that is reduced."""
        return self.members(self.spec.reduction_axes) == [(True,) * len(self.spec.inputs)]

    @property
    def longest(self) -> Column:
        """Return the extent of the longest loop over contributions."""
        return reduce(np.maximum, [loop.extent for loop in self.contributions])

    def busiest(self) -> Column:
        """Return the outputs of the busiest worker; no two workers write into one word.

        In an output's longer window, all rows may begin alike in a word.
        """
        per_word = max(WORD_BYTES // self.sizes[-1], 1)
        if per_word == 1:
            return self.joined(busiest_share([loop.extent for loop in self.outputs]))
        extents, result, is_allowed = self.extents, self.n_outputs, always(self.n_outputs)
        order = axis_order(self.spec.output)
        cuts = [] if extents is None else [self.boxes[:, axis] < extents[:, axis] for axis in order[1:]]
        for loop in reversed(self.outputs):
            step = loop.steps[-1]
            if cuts:
                step = chosen(both(step > 1, either(*cuts)), per_word, step)
            unit = chosen(step % per_word == 0, 1, per_word)
            if per_word > PAIR:
                unit = chosen(both(step % PAIR == 0, step % per_word != 0), PAIR, unit)
            share = np.minimum(-(-loop.extent // (N_WORKERS * unit)) * unit, loop.extent)
            share = share * (self.n_outputs // loop.extent)
            result = np.minimum(result, chosen(is_allowed, share, self.n_outputs))
            is_allowed = both(is_allowed, either(loop.extent == 1, step % per_word == 0))
        # Where an axis lies in a longer window, words are apart along those around it.
        for place, is_cut in enumerate(cuts, 1):
            n_rows = product(self.boxes, order[:place])
            share = -(-n_rows // N_WORKERS) * (self.n_outputs // n_rows)
            result = np.minimum(result, chosen(is_cut, share, self.n_outputs))
        return self.joined(result)

    def joined(self, share: Column) -> Column:
        """Return a share of outputs, an even one where loops over them may be one."""
        even = -(-self.n_outputs // N_WORKERS)
        return share if self.may_join is None else chosen(self.may_join, even, share)

    def members(self, axes: Sequence[int]) -> list[Members]:
        """Return which inputs walk an axis, in all ways that there are."""
        return sorted({tuple(axis in operand.axes for operand in self.spec.inputs) for axis in axes})

    def moving(self) -> list[tuple[Column, Members]]:
        """Return which inputs move within an output, in all ways that there are, and where it is so."""
        reduced = frozenset(self.spec.reduction_axes)
        result: list[tuple[Column, Members]] = [(always(self.n_terms), ())]
        for operand in self.spec.inputs:
            own = tuple(sorted(reduced & operand.axes))
            sometimes = product(self.boxes, own) > 1
            ways = [(sometimes, True), (np.logical_not(sometimes), False)]
            if not own or len(own) == len(reduced):
                ways = [(always(self.n_terms), bool(own))]
            result = [(both(c, w), (*m, moves)) for c, m in result for w, moves in ways]
        return result

    def may_be_column(self, axis: int) -> bool:
        """Return whether an output's axis may be contiguous: nowhere strided, nor outside of all that is reduced."""
        for operand in self.spec.inputs:
            if any(term.axis == axis and term.coefficient > 1 for dim in operand.dims for term in dim.terms):
                return False
            places = [number for number, dim in enumerate(operand.dims) if axis in dim.axes]
            behind = {a for dim in operand.dims[places[0] + 1 :] for a in dim.axes} if places else set[int]()
            if behind.issuperset(self.spec.reduction_axes):
                return False
        return True

    def around_outputs(self) -> Column:
        """Return what loops around the innermost one over outputs take, along rows and point by point."""
        if len(self.outputs) == 1:
            return 0
        extent = self.outputs[-1].extent
        for loop in reversed(self.outputs[:-1]):
            extent = chosen(loop.extent > 1, loop.extent, extent)
        others, shared = self.n_outputs // extent, -(-extent // N_WORKERS)
        passes = self.busiest() // extent
        # Shared, the innermost loop becomes the outermost. Shares of outputs below a word are not known.
        is_shared = shared * others == self.busiest() if self.sizes[-1] >= WORD_BYTES else always(extent)
        passes = chosen(is_shared, np.minimum(shared, passes), passes)
        cycles = LEVEL_CYCLES + POINTER_CYCLES * min(self.n_moving, 1)
        is_one = others == 1 if self.may_join is None else either(others == 1, self.may_join)
        return cycles * chosen(is_one, 0, passes)

    @property
    def n_moving(self) -> int:
        """Return how many inputs move along any loop over outputs at least."""
        return min((sum(each) for each in self.members(axis_order(self.spec.output))), default=0)

    def is_contiguous(self, loop: WalkLoop, members: Members) -> Column:
        """Return whether some inputs are contiguous along a loop, and others stand still."""
        steps = zip(loop.steps, members, strict=False)
        return both(always(loop.extent), *(step == 1 if walks else step == 0 for step, walks in steps))

    def is_aligned(self, along: WalkLoop, members: Members, lanes: int) -> Column:
        """Return whether the vectors of some operands along a loop begin at multiples of what one access takes."""
        result = always(self.n_terms)
        for number, (size, walks) in enumerate(zip(self.sizes, members, strict=False)):
            unit = max(min(ACCESS_BYTES, lanes * size) // size, 1)
            if walks and unit > 1:
                # The loop itself moves by one element.
                result = both(result, self.beyond(number, unit) == along.extent - 1)
        return result

    def beyond(self, number: int, unit: int) -> Column:
        """Return how many elements an operand's loops move beyond multiples of a unit, in all."""
        loops = (*self.outputs, *self.contributions)
        terms = [(loop.extent - 1) * (loop.steps[number] % unit) for loop in loops]
        return reduce(np.add, terms)

    def row_pace(self, lanes: int, members: Members, *, is_wide: bool = False) -> Pace | None:
        """Return the pace along rows that some inputs walk; the others may move in outer reductions."""
        reduced = frozenset(self.spec.reduction_axes)
        ways = [
            (
                Along(False, walks, walks),
                *((Along(False, False, True),) if not walks and o.axes & reduced else ()),
            )
            for walks, o in zip(members, self.spec.inputs, strict=True)
        ]
        paces = [self.pace("rows", lanes, way, is_wide) for way in combinations(*ways)]
        found = [own for own in paces if own is not None]
        return reduce(Pace.or_better, found) if found and any(members) else None

    def step_pace(
        self, mode: Mode, lanes: int, columns: Members, moving: Members, *, is_wide: bool = False
    ) -> Pace | None:
        """Return the pace across columns or point by point: inputs that move may stand still in the inner reduction."""
        reduced = frozenset(self.spec.reduction_axes)
        ways: list[list[Along]] = []
        for number, (operand, moves) in enumerate(zip(self.spec.inputs, moving, strict=True)):
            is_column = bool(columns) and columns[number]
            inner = [moves] if not moves or operand.axes >= reduced else [True, False]
            ways.append([Along(is_column, one, moves) for one in inner])
        paces = [self.pace(mode, lanes, way, is_wide) for way in combinations(*ways)]
        found = [own for own in paces if own is not None]
        return reduce(Pace.or_better, found) if found else None

    @property
    def is_plain(self) -> bool:
        """Return whether the only input is combined as it is, widened or not."""
        return len(self.spec.inputs) == 1 and all(op.opcode == "arith.extf" for op in self.spec.body.ops)

    def pace(self, mode: Mode, lanes: int, inputs: tuple[Along, ...], is_wide: bool = False) -> Pace | None:
        """Return the pace of a way to walk."""
        kinds = set(self.kernel.dtypes)
        widest = 1 if not kinds <= {"f16", "f32"} else 4 if "f16" in kinds else 2
        may_double = is_wide or (mode == "columns" and self.is_plain and widest > 1)
        if lanes > widest * (2 if may_double else 1):
            return None
        return pace(self.kernel, mode, lanes, inputs, is_wide)

    def cycles(self, own: Pace, outputs: Column, inner: Column) -> Column:
        """Return the cycles of the busiest worker, which has `outputs`; their inner loop is `inner` points long."""
        less = chosen(self.n_outputs <= N_WORKERS, self.few(own), 0)
        once = own.once + MOVING_CYCLES * self.n_moving - less
        once = chosen(self.n_outputs == 1, own.once - own.single, once)
        per_step = own.lanes if own.mode == "rows" else 1
        n_steps = self.n_terms // per_step
        if len(self.contributions) == 1:
            outers, n_whole, short = 1, n_steps, own.unrolled
            long: Column = own.repeated
        else:
            outers = self.n_terms // np.maximum(inner, 1)
            n_whole = outers * (inner // per_step)
            short = own.unrolled - own.moved + own.moved * outers
            long = chosen(outers == 1, own.repeated, own.around + own.passed * outers)
        output = own.step * n_steps + chosen(n_whole <= own.most_unrolled, short, long)
        # What is left over of a pass is less than a step, of which `n_steps` may have a share.
        tail = max(own.tail - own.step * (per_step - 1) // per_step, 0)
        if per_step > 1 and tail:
            output = output + tail * (outers * np.minimum(inner % per_step, 1))
        return once + outputs * output
