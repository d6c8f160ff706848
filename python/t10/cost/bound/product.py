"""A lower bound of a product on the matrix engine (`t10.codelets.matrix`), over every way to compute it there.

```
for groups and blocks of columns:                      sums begin, from zero
    for window positions and blocks of the inner axis:
        load a block of weights, launch                six workers: rows through the engine
```

A block takes the load of its weights, the slots of the busiest worker, and a launch, with the best placement of
operands. Lines that end inside a word or are not contiguous are copied first. The formula leaves out only what adds
cycles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Literal

import numpy as np

from t10.codelets.matrix.product import LEVELS_OF_ROWS
from t10.core.expression import Operand, OperatorSpec
from t10.core.products import SUMS_BYTES, hands_on_rounded, is_product
from t10.core.tile import N_WORKERS
from t10.cost.bound.columns import Boxes, Column, always, both, chosen, either, never, product
from t10.cost.bound.product_axes import (
    is_tangled,
    last_axes,
    line_axis,
    n_positions,
    own_columns,
    own_line,
    window_of,
)
from t10.cost.bound.rows import BLOCK_WORDS, Engine, Launches, Rows, launches, widening_slots
from t10.cost.bound.walks import WalkLoop, axis_order, may_step_evenly, strides_of, united_loops
from t10.cost.bound.weights import even_words, load_cycles

Cut = Literal["", "columns", "lines"]
IMPOSSIBLE = 1 << 40
"""Cycles of a box that no way computes."""
MOST_SCRATCH_BYTES = 1 << 16
WORD_BYTES, F32_BYTES = 8, 4
ENGINES = {
    ("f16", "f32"): Engine(phases=4, columns=8, per_word=4, per_store=2),
    ("f16", "f16"): Engine(phases=4, columns=16, per_word=4, per_store=4),
    ("f32", "f32"): Engine(phases=8, columns=16, per_word=2, per_store=2),
}
"""Modes by types of inputs and output."""
ROUNDING = replace(ENGINES["f16", "f32"], rounds=True)
"""That of sums in f32 that their last block rounds."""

# Cycles of the supervisor.
VERTEX, SUMS, SECOND_PASS = 31, 21, 38
"""Before the first launch and after the last one; more where sums have several blocks, where words are left over."""
LAUNCH = 12
"""From a launch to the first bundle, and from the last one to the supervisor."""
TURN, REACH_BACK, REACH_BACK_SUMS = 3, 58, 18
"""From workers that end together to the next load; where the last block of columns reaches back, and with sums."""
ONE_SUM, NEXT_SUM, NEXT_SUM_EVEN = 3, 5, 16
"""To begin a sum of one block; between sums of several, and more where workers end together."""
MOVES = 15
"""A load of few words: as long takes going on to the next block."""
COPY_X, COPY_W = 33, 44
"""A launch that copies lines, with its preparation."""

# Slots of workers that copy.
COPY = 25
"""Besides the lines."""
LINE, RUN, ODD_RUN = 14, 17, 19
"""A line besides its words: any, one of contiguous f16, one that begins in the middle of 32 bits."""


def product_bound(
    spec: OperatorSpec,
    boxes: Boxes,
    *,
    extents: Boxes | None = None,
    windows: Sequence[Boxes] | None = None,
    adds: bool = False,
) -> Column | None:
    """Return cycles (n,) that no way on the matrix engine falls below; None for what never goes there.

    Launches are left out. `IMPOSSIBLE` where none of its ways can compute a box. With `extents`, (n, axes), steps may
    add to what is there, and operands may lie in windows that are longer than the box along axes of which it has less:
    in `windows`, (n, axes) of each, where they are known. Where it `adds`, steps add to what is there in any case.
    """
    if len(spec.inputs) != 2 or spec.combine != "sum" or spec.selectors or not is_product(spec.body):
        return None
    first, second = spec.inputs
    engine = ROUNDING if hands_on_rounded(spec) else ENGINES.get((first.dtype, spec.acc_dtype))
    if engine is None or first.dtype != second.dtype:
        return None
    if any(is_tangled(operand, frozenset(spec.reduction_axes)) for operand in spec.inputs):
        return product(boxes, ()) * VERTEX
    known = () if windows is None else tuple(windows)
    ways = [
        _Way(
            spec, boxes, engine, x, w, extents, (known[i], known[1 - i], known[2]) if known else (), cut, adds
        )
        for i, (x, w) in enumerate(((first, second), (second, first)))
        for cut in (_cuts(spec, x, w) if extents is not None and not known else ("",))
    ]
    return reduce(np.minimum, [way.cycles() for way in ways])


@dataclass(frozen=True, slots=True)
class _Columns:
    """Columns that lie side by side in the output, `step` elements apart in the weights, in blocks of up to `width`.

    There are `outs` blocks in all, `beside` of them next to each other, the last one of which reaches back where it
    `overlaps`. They `fit` where there are such columns, or one alone.
    """

    n: Column
    step: Column
    width: Column
    outs: Column
    beside: Column
    overlaps: Column
    fit: Column


@dataclass(frozen=True, slots=True)
class _Inner:
    """What a row sums: lines of `n` elements, `sums` of them, `apart` of which never are one line in copies either.

    `has_lines` where they are contiguous in the streaming input, `gap` elements apart in the weights; `pixel` is the
    streaming input's last axis, if that is one of them.
    """

    n: Column
    sums: Column
    apart: Column
    has_lines: Column
    gap: Column
    pixel: Column


@dataclass(frozen=True, slots=True)
class _Way:
    """A product with `x` streaming past blocks of `w`; both and the output lie in `windows` where these are known.

    In longer windows that are not, where there are `extents`,
    columns or lines may be `cut`: columns are no longer than the output's last axis,
    lines of several reduced axes are not contiguous.
    """

    spec: OperatorSpec
    boxes: Boxes
    engine: Engine
    x: Operand
    w: Operand
    extents: Boxes | None
    windows: tuple[Boxes, ...]
    cut: Cut
    adds: bool

    def cycles(self) -> Column:
        """Return the least cycles, `IMPOSSIBLE` where the output's columns do not lie as the engine needs them."""
        columns, inner = self._columns(), self._inner()
        rows = self._row_loops()
        if len(rows) > LEVELS_OF_ROWS:
            # Every point of the others takes launches of its own.
            n_rows = reduce(np.multiply, [loop.extent for loop in rows])
            own = reduce(np.multiply, self._longest(rows))
            columns = replace(columns, outs=columns.outs * (n_rows // own))
        is_whole = inner.n % self.engine.per_word == 0
        copies_x = np.logical_not(both(is_whole, inner.has_lines))
        copies_w = np.logical_not(both(is_whole, inner.gap == 1))
        lies = both(is_whole, inner.has_lines, inner.gap == 1, inner.pixel % self.engine.per_word == 0)
        as_it_lies = self._cycles(columns, inner, copies_x, copies_w, lies)
        # Where lines are no whole blocks both may be copied and filled up, needed or not.
        filled = self._cycles(columns, inner, always(lies), always(lies), never(lies))
        is_ragged = inner.n % (BLOCK_WORDS * self.engine.per_word) > 0
        return np.minimum(as_it_lies, chosen(is_ragged, filled, IMPOSSIBLE))

    def _cycles(
        self, columns: _Columns, inner: _Inner, copies_x: Column, copies_w: Column, lies: Column
    ) -> Column:
        """Return the least cycles where inputs are copied or lie as the engine needs them."""
        engine = self.engine
        words = -(-inner.n // engine.per_word)
        # Lines that are copied may become one.
        sums = chosen(lies, inner.sums, inner.apart)
        deep = chosen(lies, words, -(-inner.sums // inner.apart) * words)
        most_words = chosen(lies, even_words(words), BLOCK_WORDS) if engine.rounds else BLOCK_WORDS
        kit, blocks = np.minimum(deep, most_words), sums * -(-deep // most_words)
        is_second = both(deep > most_words, deep % most_words > 0)
        dense = words if len(self.spec.reduction_axes) == 1 else chosen(inner.has_lines, words, kit)
        step = chosen(copies_w, dense, columns.step // engine.per_word)
        is_wide = both(np.logical_not(copies_w), columns.step % (2 * engine.per_word) == 0)
        # Where the last block of columns reaches back, what adds loads its new ones alone; sums begin with all.
        most, new = (
            load_cycles(kit, step, columns.width, 1, is_wide),
            load_cycles(kit, step, columns.n, columns.beside, is_wide),
        )
        first = np.maximum(most if self.extents is None else new, chosen(columns.overlaps, 0, MOVES))
        left = load_cycles(deep % BLOCK_WORDS, step, columns.n // columns.beside, 1, is_wide)
        load = np.maximum(deep // most_words, 1) * first + chosen(is_second, left, 0)
        # Where lines stay apart, blocks have fewer words.
        row_words = words if len(self.spec.reduction_axes) == 1 else chosen(inner.has_lines, words, 1)
        # Blocks of a sum that is rounded are of as many words.
        row_words = row_words // -(-row_words // BLOCK_WORDS) if engine.rounds else row_words
        # What adds goes on with sums at once.
        is_many = always(blocks) if self.adds else blocks > 1
        rows = self._in_room(self._rows(self._row_loops(), lies), columns.width)
        slots = launches(engine, rows, columns.n, np.minimum(row_words, BLOCK_WORDS), is_many)
        # Where weights are copied code is as for sums of several blocks.
        is_deep = either(blocks > 1, copies_w)
        turn, between = _pauses(columns, slots, is_many)
        work = self._work(columns, slots, blocks, rows.most)
        cycles = VERTEX - turn + columns.outs * (blocks * (LAUNCH + turn) + sums * load + work)
        cycles = cycles + chosen(is_deep, SUMS + (columns.outs - 1) * between, columns.outs * ONE_SUM)
        # Lines are filled up to whole blocks where both inputs are copied; else what is left takes a pass of its own,
        # but in sums that the last block rounds.
        passes = lies if len(self.spec.reduction_axes) > 1 else np.logical_not(both(copies_x, copies_w))
        is_second = never(is_second) if engine.rounds else both(is_second, passes)
        cycles = cycles + chosen(is_second, SECOND_PASS + N_WORKERS * columns.outs * slots.again, 0)
        result: Column = IMPOSSIBLE
        for x_slots, w_slots in self._copies(columns, inner):
            x_copy = chosen(copies_x, COPY_X + N_WORKERS * (COPY + x_slots), 0)
            # Copies take the registers that hold a worker's share.
            w_copy = (
                columns.outs * chosen(is_second, 2, 1) * (COPY_W + N_WORKERS * (COPY + w_slots + slots.setup))
            )
            result = np.minimum(result, cycles + x_copy + chosen(copies_w, w_copy, N_WORKERS * slots.setup))
        held = chosen(copies_x, self._points(), 0) + chosen(
            copies_w, self._weight_lines(columns, inner) * inner.n, 0
        )
        fits = held * (WORD_BYTES // engine.per_word) <= MOST_SCRATCH_BYTES
        return chosen(both(columns.fit, inner.n > 1, fits), result, IMPOSSIBLE)

    def _work(self, columns: _Columns, slots: Launches, blocks: Column, most_rows: Column) -> Column:
        """Return the cycles of the workers in all launches of a block of columns."""
        first = slots.add + slots.again if self.adds else slots.begin
        work = first + (blocks - 1) * slots.add
        if self.engine.rounds:
            # Last results that are rounded leave sooner.
            work = work - (1 if self.adds else chosen(blocks > 1, 1, 0))
        if self.engine.rounds and self.adds:
            work = work + most_rows * widening_slots(-(-columns.width // self.engine.per_store))
        return N_WORKERS * work

    @property
    def _one(self) -> Column:
        return product(self.boxes, ())

    @property
    def _skips(self) -> bool:
        """Return whether rows may leave elements of the streaming input out."""
        return any(term.coefficient > 1 for dim in self.x.dims for term in dim.terms)

    def _is_whole(self, *axes: int) -> Column:
        """Return where no window is longer than the box along axes: the box has all of them."""
        if self.extents is None:
            return always(self._one)
        if self.windows:
            return both(*(self.boxes[:, a] == one[:, a] for a in axes for one in self.windows[:2]))
        return both(*(self.boxes[:, axis] >= self.extents[:, axis] for axis in axes))

    def _lengths(self, number: int) -> Boxes:
        """Return the windows (n, axes) of the streaming input, the weights or the output, the box if not known."""
        return self.windows[number] if self.windows else self.boxes

    def _columns(self) -> _Columns:
        """Return the columns: axes of the weights alone, from the output's last one on."""
        boxes, output, most = self.boxes, self.spec.output, self.engine.columns
        order, steps = axis_order(output), strides_of(output, self._lengths(2))
        weights = strides_of(self.w, self._lengths(1))
        own = own_columns(self.spec, self.x, self.w)
        columns, step = self._one, self._one * 0
        for axis in own[:-2:-1] if self.cut == "columns" else reversed(own):
            extent, begins = boxes[:, axis], columns == 1
            walks = both(steps[axis] == columns, either(begins, weights[axis] == columns * step))
            is_in = both(extent > 1, walks)
            step = chosen(both(is_in, begins), weights[axis], step)
            columns = columns * chosen(is_in, extent, 1)
        n = product(boxes, own)
        groups = product(boxes, [axis for axis in order if axis in self.w.axes and axis in self.x.axes])
        fit = either(columns > 1, n == 1)
        per_store = self.engine.per_store * (2 if self.engine.rounds else 1)
        if per_store > 2:
            # An f16 alone is no access of the engine's.
            fit = both(fit, columns % per_store == 0)
        beside, overlaps = -(-columns // most), both(columns > most, columns % most != 0)
        outs = groups * (n // columns) * beside
        return _Columns(columns, step, np.minimum(columns, most), outs, beside, overlaps, fit)

    def _inner(self) -> _Inner:
        """Return the inner axis: reduced axes that both inputs walk evenly, from the streaming input's last one on."""
        boxes, reduced, line = self.boxes, self.spec.reduction_axes, own_line(self.x)
        steps, weights = strides_of(self.x, self._lengths(0)), strides_of(self.w, self._lengths(1))
        inner, gap, apart, inside = self._one, self._one, self._one, self._one
        for dim in reversed(self.x.dims):
            for axis in [axis for axis in reversed(dim.axes) if axis in reduced]:
                extent, begins = boxes[:, axis], inner == 1
                step = weights.get(axis, self._one * 0)
                is_in = both(steps[axis] == inner, either(begins, step == inner * gap))
                gap = chosen(both(is_in, begins, extent > 1), step, gap)
                inner = chosen(is_in, inner * extent, inner)
                # Lines of other rows lie between its own.
                apart = apart * chosen(inside > 1, extent, 1)
            inside = inside * product(boxes, [axis for axis in dim.axes if axis not in reduced])
        if len(reduced) == 1:
            gap = weights.get(reduced[0], self._one * 0)
        n, has_lines = product(boxes, reduced), inner > 1
        if self.cut == "lines":
            has_lines = both(has_lines, self._is_whole(*last_axes(self.x)))
        inner, apart = chosen(has_lines, inner, n), chosen(has_lines, apart, 1)
        return _Inner(inner, n // inner, apart, has_lines, gap, boxes[:, line] if line in reduced else inner)

    def _row_loops(self) -> list[WalkLoop]:
        """Return the loops over rows, innermost first: axes that the weights lack."""
        order = [axis for axis in axis_order(self.spec.output) if axis not in self.w.axes]
        windows = (self.windows[0], self.windows[2]) if self.windows else ()
        loops = united_loops(self.boxes, order, (self.x, self.spec.output), windows)
        if self.extents is None or windows:
            return loops
        may_join = may_step_evenly(self.spec, self.boxes, self.extents)
        if may_join is None:
            return loops
        extents = [product(self.boxes, order), *(self._one for _ in loops[1:])]
        return [
            WalkLoop(
                chosen(may_join, extent, loop.extent),
                tuple([chosen(may_join, 0, step) for step in loop.steps]),
            )
            for extent, loop in zip(extents, loops, strict=True)
        ]

    def _rows(self, loops: Sequence[WalkLoop], lies: Column) -> Rows:
        """Return the rows of a launch: the two longest loops."""
        if len(loops) > LEVELS_OF_ROWS:
            nothing = self._one * 0
            longest = self._longest(loops)
            return Rows(reduce(np.multiply, longest), [WalkLoop(n, (nothing, nothing)) for n in longest])
        if self._skips:
            # What lies between is not copied: rows that are far apart need not be.
            loops = [WalkLoop(one.extent, (chosen(lies, one.steps[0], 0), one.steps[1])) for one in loops]
        return Rows(reduce(np.multiply, [loop.extent for loop in loops]), loops)

    def _in_room(self, rows: Rows, width: Column) -> Rows:
        """Return the rows of a launch where sums may have room of their own: more than it holds are in one segment.

        They take turns, in launches of whole segments or of parts of one, whichever is faster.
        """
        if not self.engine.rounds or len(rows.loops) == 1:
            return rows
        is_over = rows.n * width * F32_BYTES > SUMS_BYTES
        loops = zip(rows.loops, (rows.n, 1), strict=True)
        return Rows(
            rows.n,
            [
                WalkLoop(
                    chosen(is_over, n, loop.extent), tuple([chosen(is_over, 0, step) for step in loop.steps])
                )
                for loop, n in loops
            ],
        )

    def _longest(self, loops: Sequence[WalkLoop]) -> Sequence[Column]:
        """Return the extents of the loops that a launch walks, the longest ones."""
        return _two_longest([loop.extent for loop in loops])

    def _points(self) -> Column:
        """Return how many elements of the streaming input there are, at least."""
        result = self._one
        for dim in self.x.dims:
            result = result * n_positions(dim, self.boxes)
        return result

    def _weight_lines(self, columns: _Columns, inner: _Inner) -> Column:
        """Return how many lines of weights are copied for a block, at least."""
        width = columns.width if self.extents is None else columns.n // columns.beside
        if not any(len(dim.terms) > 1 for dim in self.w.dims):
            return width * inner.sums
        least = np.maximum(width, inner.sums)
        own = own_columns(self.spec, self.x, self.w)
        if not own:
            return least
        # Lines of several columns and positions are the same only along dims that have both.
        beside = [axis for dim in self.w.dims if set(own).intersection(dim.axes) for axis in dim.axes]
        n_shared, walked = self._one, line_axis(self.x, self.spec)
        for axis in (axis for axis in beside if axis in self.spec.reduction_axes):
            extent = self.boxes[:, axis]
            if axis == walked:
                # It is what lines walk.
                extent = chosen(inner.has_lines, 1, extent)
            n_shared = n_shared * extent
        is_own = self.boxes[:, own[-1]] > 1
        return chosen(is_own, np.maximum(least, width * (inner.sums // n_shared)), least)

    def _copies(self, columns: _Columns, inner: _Inner) -> list[tuple[Column, Column]]:
        """Return the slots of a worker's lines of the streaming input, and of a block of weights, by ways to copy."""
        boxes, reduced, w_lines = self.boxes, self.spec.reduction_axes, self._weight_lines(columns, inner)
        dims = [dim for dim in self.x.dims if dim.terms]
        if len(reduced) == 1 and all(dim.axes == reduced or reduced[0] not in dim.axes for dim in dims):
            lines = product(boxes, [axis for dim in dims for axis in dim.axes if axis != reduced[0]])
            x_step = inner.n if own_line(self.x) == reduced[0] and not self._skips else self._one * 0
            return [
                (
                    self._share(inner, lines, inner.n, x_step),
                    self._share(inner, w_lines, inner.n, columns.step),
                )
            ]
        # Which axis is the inner one is not known where none is contiguous; shares of lines differ by ways.
        points, whole = self._points(), self._line(inner, inner.n)
        scattered, w_slots = self._scattered(inner), w_lines * whole // N_WORKERS
        near = dims[-2].terms if len(dims) > 1 and own_line(self.x) in reduced else ()
        rows = [term for term in near if term.axis not in reduced]
        if len(near) < 2 or len(rows) != 1:
            x_slots = points // inner.n * whole // N_WORKERS
            return [(x_slots if len(reduced) == 1 else chosen(inner.has_lines, x_slots, scattered), w_slots)]
        # Lines of several pixels, which rows next to each other share, or none longer than these are apart.
        extent = boxes[:, rows[0].axis]
        length = chosen(extent > 1, np.minimum(rows[0].coefficient * inner.pixel, inner.n), inner.n)
        long = points // (n_positions(dims[-2], boxes) * inner.pixel) * extent * whole // N_WORKERS
        x_short, w_short = (
            chosen(
                length == inner.pixel,
                self._share(inner, lines, length),
                lines * self._line(inner, length) // N_WORKERS,
            )
            for lines in (points // length, w_lines * -(-inner.n // length))
        )
        is_one = inner.n == inner.pixel
        ways = ((chosen(is_one, x_short, long), chosen(is_one, w_short, w_slots)), (x_short, w_short))
        return [(chosen(inner.has_lines, x_slots, scattered), w_slots) for x_slots, w_slots in ways]

    def _scattered(self, inner: _Inner) -> Column:
        """Return the slots of a worker's lines of the streaming input where no reduced axis is contiguous."""
        points, reduced = self._points(), frozenset(self.spec.reduction_axes)
        result = 3 * points // 2 // N_WORKERS
        dims = [dim for dim in self.x.dims if reduced.intersection(dim.axes)]
        windows = [window_of(dim, reduced) for dim in dims]
        known = [window for window in windows if window is not None]
        if len(known) < len(windows) or not known:
            return result
        # Lines go along one window, and begin wherever it does.
        ways = [
            points
            // n_positions(dim, self.boxes)
            * self.boxes[:, place]
            * self._line(inner, self.boxes[:, axis])
            for dim, (place, axis) in zip(dims, known, strict=True)
        ]
        is_apart = both(*(self.boxes[:, place] > 1 for place, _ in known))
        return chosen(is_apart, reduce(np.minimum, ways) // N_WORKERS, result)

    def _share(self, inner: _Inner, lines: Column, elements: Column, step: Column = 0) -> Column:
        """Return the slots of the busiest worker; its lines, every sixth, begin on 32 bits, or none of them does."""
        own = self._line(inner, elements)
        share = -(-lines // N_WORKERS) * own
        if self.engine.per_word == 2:
            return share
        is_whole = self._is_whole(*self.spec.reduction_axes)
        is_odd = both(inner.has_lines, inner.gap == 1, elements % 2 == 1, step % 2 == 1, is_whole)
        # The first worker's lines begin on 32 bits.
        odd = -(-(lines - 1) // N_WORKERS) * (own + ODD_RUN - RUN + elements // self.engine.per_word)
        return chosen(is_odd, np.maximum(share, odd), share)

    def _line(self, inner: _Inner, elements: Column) -> Column:
        """Return the slots of a line."""
        words, left = elements // self.engine.per_word, elements % self.engine.per_word
        if self.engine.per_word == 2:
            return LINE + 3 * words + 2 * left
        in_runs = always(words) if self.cut == "lines" else both(inner.has_lines, inner.gap == 1)
        return chosen(in_runs, RUN + 3 * words, LINE + 6 * words) + np.minimum(6 * left, left + 7)


def _two_longest(extents: Sequence[Column]) -> tuple[Column, Column]:
    """Return the greatest extent and the one after it."""
    longest, second = extents[0], extents[0] * 0 + 1
    for extent in extents[1:]:
        second = np.maximum(second, np.minimum(longest, extent))
        longest = np.maximum(longest, extent)
    return longest, second


def _cuts(spec: OperatorSpec, x: Operand, w: Operand) -> tuple[Cut, ...]:
    """Return how windows may cut what is united in boxes."""
    columns: tuple[Cut, ...] = ("columns",) if len(own_columns(spec, x, w)) > 1 else ()
    # Lines of one reduced axis are contiguous wherever their elements are neighbours.
    is_cut = len(spec.reduction_axes) > 1 and not spec.output.axes.issuperset(last_axes(x))
    lines: tuple[Cut, ...] = ("lines",) if is_cut else ()
    return ("", *columns, *lines)


def _pauses(columns: _Columns, slots: Launches, is_many: Column) -> tuple[Column, Column]:
    """Return the cycles from a launch's end to the next load, and those more between sums."""
    alone = np.maximum(REACH_BACK - N_WORKERS * slots.spread, 0)
    sums, plain = chosen(slots.is_even, REACH_BACK_SUMS, 0), chosen(slots.is_even, TURN, 0)
    turn = chosen(columns.overlaps, chosen(is_many, sums, alone) + 1, plain)
    return turn, NEXT_SUM + chosen(slots.is_even, NEXT_SUM_EVEN, 0)
