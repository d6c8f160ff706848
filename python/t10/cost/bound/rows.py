"""Lower bounds of what one launch of the matrix engine's workers takes: slots of rows that stream through a block.

A worker's rows are a pipeline, or single rows where they are few. How many slots a row takes depends on which accesses
of a step share a bundle, and so on where the next row lies: strides of packed addresses reach so far, partials and
results fall in different banks of an interleaved output, or the output is accessed by 32-bit words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from t10.core.tile import N_WORKERS
from t10.cost.bound.columns import Column, both, chosen, either, never
from t10.cost.bound.walks import WalkLoop

BLOCK_WORDS = 4
"""Words of input per row, and of weights per channel of a block."""
STRIDE_WORDS = 511
"""Words that strides of packed addresses reach."""
SETUP, SETUP_SEGMENTS = 16, 22
"""Slots that find a worker's share; more for segments."""
BEGIN, NEXT, FIRST = 6, 3, 4
"""Slots of launches that begin sums, that go on with them, and more that begin them by adding: addresses and end."""
WIDE = 2
"""Slots less where the first partials are loaded 16 bytes at a time."""
FEW_BEGIN, FEW_ADD = 14, 8
"""Slots of launches of single rows, besides the rows."""
SEGMENTS, SEGMENT, FEW_SEGMENT = 3, 13, 19
"""Slots of a launch with segments, and of each of them besides its pipeline, or its single rows."""
SEGMENTS_ROUNDING, FEW_SEGMENT_ROUNDING = SEGMENTS - 2, FEW_SEGMENT - 3
"""The same where sums have room of their own: launches in which they grow do not look at the output."""
TWINS, TWIN_BEGIN = 9, 3
"""Slots of two rows of one column, and what their loops that begin sums take besides; those that add take one more."""
FAR_APART = 1 << 10
"""Slots between the ends of workers of which nothing better is known."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A mode of the engine: steps of a row, columns of a block, elements in a word of input and of sums.

    Where it `rounds`, sums' last blocks make words of the output of two words of sums.
    """

    phases: int
    columns: int
    per_word: int
    per_store: int
    rounds: bool = False


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that stream through a block: `n` of them, in segments where they have two loops of several steps."""

    n: Column
    loops: Sequence[WalkLoop]

    @property
    def least(self) -> Column:
        """Return the rows of the worker that has fewest."""
        return self.n // N_WORKERS

    @property
    def most(self) -> Column:
        """Return the rows of the worker that has most."""
        return -(-self.n // N_WORKERS)

    @property
    def length(self) -> Column:
        """Return the rows of a segment: all where there are none."""
        return self.n if len(self.loops) == 1 else np.maximum(*(loop.extent for loop in self.loops))

    @property
    def has_segments(self) -> Column:
        """Return where rows are in several segments."""
        return self.length < self.n

    def everywhere(self, condition: Callable[[Column, Column], Column]) -> Column:
        """Return where a condition on the steps of input and output holds for all loops of several points."""
        if len(self.loops) == 1:
            return condition(*self.loops[0].steps)
        holds = [either(loop.extent == 1, condition(*loop.steps)) for loop in self.loops]
        return both(self.n > 1, *holds)


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop over rows: `fixed + each * rows` slots as a pipeline, `single` for each of fewer than `shortest` rows."""

    each: Column
    fixed: Column
    single: Column
    shortest: Column


@dataclass(frozen=True, slots=True)
class Launches:
    """Slots of the busiest worker in a launch that begins sums and one that goes on with them.

    `setup` more find its share, `again` more begin sums by adding. Workers end together where they are `even`, else up
    to `spread` slots apart where sums begin.
    """

    begin: Column
    add: Column
    setup: Column
    again: Column
    is_even: Column
    spread: Column


def launches(engine: Engine, rows: Rows, columns: Column, kit: Column, is_many: Column) -> Launches:
    """Return the slots of launches over rows of `kit` words of input; `is_many` where sums have several blocks."""
    width, least, most = np.minimum(columns, engine.columns), rows.least, rows.most
    stores = -(-width // engine.per_store)
    is_word = columns % 2 != 0 if engine.per_store == 2 else never(columns)
    far_x, far_out = (STRIDE_WORDS + kit) * engine.per_word, (STRIDE_WORDS + stores) * engine.per_store
    is_plain = either(is_word, rows.everywhere(lambda x, out: either(x >= far_x, out >= far_out)))
    accesses = chosen(is_word, width, stores)
    own = chosen(is_many, accesses, accesses // 2) if engine.rounds else accesses
    begin = _begin_loop(engine.phases, stores, accesses, kit + own, is_plain)
    # The output may lie in a longer window, whose rows are any number of words apart: whatever is less.
    adds = [
        _add_loop(engine.phases, stores, accesses, kit, is_banked, is_word, is_plain)
        for is_banked in (np.logical_not(never(columns)), never(columns))
    ]
    shortest = adds[0].shortest
    is_few = least < chosen(is_many, shortest, 2)
    rest = chosen(is_few, 1, chosen(stores == engine.phases, -WIDE, 0))
    few_rows = chosen(most < shortest, most, chosen(least < shortest, least, 0))
    few = FEW_ADD + adds[0].single * few_rows
    begin_slots = chosen(most < 2, FEW_BEGIN - 3 + begin.single, BEGIN + begin.fixed + begin.each * most)
    many = np.minimum(*(add.fixed + add.each * most for add in adds))
    add_slots = chosen(most < shortest, few, np.maximum(few, NEXT + many + rest))
    setup = SETUP
    # One column of f32 goes by twos where it can (`codelets.matrix.twin`).
    is_even = rows.n % N_WORKERS == 0
    if engine.phases == BLOCK_WORDS and engine.per_store == 2:
        is_twin = columns == 1
        twins = chosen(is_twin, TWINS, 2 * FAR_APART) * most // 2 + (BEGIN + TWIN_BEGIN)
        begin_slots = np.minimum(begin_slots, twins)
        add_slots = np.minimum(add_slots, twins)
        is_even = is_even > is_twin
    # A pipeline of two rows takes as long as a single row, but for the steps beyond four.
    apart = chosen(least > 1, engine.phases, chosen(least == 1, engine.phases - 4, FAR_APART))
    spread = chosen(is_even, 0, chosen(is_plain, FAR_APART, apart))
    if len(rows.loops) == 1:
        return Launches(begin_slots, add_slots, setup, FIRST, is_even, spread)
    has_segments = rows.has_segments
    return Launches(
        chosen(has_segments, _segments(engine, rows, begin), begin_slots),
        chosen(has_segments, np.minimum(*(_segments(engine, rows, add) for add in adds)), add_slots),
        chosen(has_segments, SETUP + SETUP_SEGMENTS, setup),
        chosen(has_segments, 0, FIRST),
        both(is_even, np.logical_not(has_segments)),
        chosen(has_segments, FAR_APART, spread),
    )


def widening_slots(words: Column) -> Column:
    """Return the slots in which a row of the output becomes so many words of sums that go on."""
    return words + np.maximum(words // 2, 2)


def _begin_loop(steps: int, stores: Column, accesses: Column, plain: Column, is_plain: Column) -> Loop:
    """Return the loop that begins sums: `accesses` to the output a row, `stores` words, `plain` accesses in all."""
    each = np.maximum(chosen(is_plain, plain, steps), steps)
    fixed = 2 * steps + 3 + 2 * accesses - stores - 2 * each
    return Loop(each, fixed, steps + 3 + accesses, 2)


def _add_loop(
    steps: int,
    stores: Column,
    accesses: Column,
    kit: Column,
    is_banked: Column,
    is_word: Column,
    is_plain: Column,
) -> Loop:
    """Return the loop that adds: all accesses of a step at once where partials and results are in different banks.

    Of plain pointers every access takes a bundle; where only the input is far, partials and results still share theirs.
    """
    paired = np.maximum(np.maximum(2 * stores, stores + steps - 2), steps)
    plain = kit + chosen(is_word, 2 * accesses, np.minimum(2 * stores, steps))
    each = chosen(is_plain, plain, chosen(is_banked, steps, paired))
    banked = steps + 2 + np.minimum(2 * stores, stores + 2)
    fixed = chosen(is_plain, 1, chosen(is_banked, banked, 4 * steps + 1 + 2 * stores - 3 * each))
    return Loop(each, fixed, 2 * steps + 3 + 2 * accesses - stores, chosen(stores < 3, 4, 3))


def _segments(engine: Engine, rows: Rows, loop: Loop) -> Column:
    """Return the slots of a launch over segments, of which workers take rows, or whole segments."""
    first, few = (SEGMENTS_ROUNDING, FEW_SEGMENT_ROUNDING) if engine.rounds else (SEGMENTS, FEW_SEGMENT)
    length, most, lines = rows.length, rows.most, rows.n // rows.length
    is_even = rows.n % N_WORKERS == 0
    # Somebody's share goes on from one segment to the next; who takes a row less may be the one.
    is_aligned = either(length % most == 0, most % length == 0)
    cuts = chosen(is_even, chosen(is_aligned, 0, 3), chosen(rows.least >= 2, 1, 0))
    goes_on = np.minimum(cuts, 1)
    pieces = chosen(most <= length, 1 + goes_on, -(-(lines + cuts) // N_WORKERS))
    own = most - chosen(is_even, 0, goes_on)
    alone = own * loop.single + pieces * few
    piece = SEGMENT + loop.fixed
    shared = chosen(np.minimum(length, most) < loop.shortest, alone, own * loop.each + pieces * piece)
    line = chosen(length < loop.shortest, length * loop.single + few, length * loop.each + piece)
    return first + np.minimum(shared, -(-lines // N_WORKERS) * line)
